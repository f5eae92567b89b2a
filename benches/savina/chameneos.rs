//! Chameneos: a hundred creatures meet at a mall, two at a time, and take on colours from each other.

use futures_util::future::try_join_all;
use greenroom::Error;
use greenroom::prelude::*;

use crate::harness::{Size, check, start, start_many};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Colour {
    Blue,
    Red,
    Yellow,
}

impl Colour {
    /// What a creature of this colour is after it has met one of another: of the third.
    fn after(self, met: Self) -> Self {
        match (self, met) {
            (mine, theirs) if mine == theirs => mine,
            (Self::Blue, Self::Red) | (Self::Red, Self::Blue) => Self::Yellow,
            (Self::Blue, Self::Yellow) | (Self::Yellow, Self::Blue) => Self::Red,
            _ => Self::Blue,
        }
    }
}

struct Mall {
    meetings_left: u64,
    waiting: Option<(Colour, Reply<Option<Colour>>)>,
}

#[actor]
impl Mall {
    /// Answers with the colour of the next who comes; with nothing when the mall has closed.
    pub fn meet(&mut self, colour: Colour, reply: Reply<Option<Colour>>) {
        if self.meetings_left == 0 {
            return reply.send(None);
        }
        match self.waiting.take() {
            None => self.waiting = Some((colour, reply)),
            Some((other_colour, other)) => {
                self.meetings_left -= 1;
                other.send(Some(colour));
                reply.send(Some(other_colour));
            }
        }
    }
}

struct Chameneo {
    colour: Colour,
}

#[actor]
impl Chameneo {
    /// Meets others until the mall closes, and says how many it met.
    pub async fn live(&mut self, mall: Addr<Mall>) -> Result<u64, Error> {
        let mut met = 0;
        while let Some(other) = mall.meet(self.colour).await? {
            self.colour = self.colour.after(other);
            met += 1;
        }
        Ok(met)
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let (chameneos, meetings) = size.pick((100, 200_000), (10, 500));
    let mall = start(0, move || Mall {
        meetings_left: meetings,
        waiting: None,
    })
    .await?;
    let colours = [Colour::Yellow, Colour::Blue, Colour::Red];
    let chameneos = start_many(chameneos, move |number| Chameneo {
        colour: colours[number % 3],
    })
    .await?;
    let lives = chameneos
        .iter()
        .map(|chameneo| chameneo.live(mall).into_future());
    let met: u64 = try_join_all(lives).await?.iter().sum();
    check("how often somebody met another", met, 2 * meetings)?;
    Ok(4 * meetings)
}
