//! The colours of the chameneos.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Colour {
    Blue,
    Red,
    Yellow,
}

/// By the number of the creature.
pub const COLOURS: [Colour; 3] = [Colour::Yellow, Colour::Blue, Colour::Red];

impl Colour {
    /// What a creature of this colour is after it has met one of another: of the third.
    pub fn after(self, met: Self) -> Self {
        match (self, met) {
            (mine, theirs) if mine == theirs => mine,
            (Self::Blue, Self::Red) | (Self::Red, Self::Blue) => Self::Yellow,
            (Self::Blue, Self::Yellow) | (Self::Yellow, Self::Blue) => Self::Red,
            _ => Self::Blue,
        }
    }
}
