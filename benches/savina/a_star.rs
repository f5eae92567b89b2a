//! A*: twenty workers search a grid of thirty by thirty by thirty places, with walls, for a way from corner to corner.
//!
//! As in the suite the grid is shared, and a place belongs to whoever gets there first. A worker looks at a thousand places
//! and then gives what lies at the edge of them to whoever asks for it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::try_join_all;
use greenroom::Error;
use greenroom::prelude::*;

use crate::farm::Farm;
use crate::harness::{Size, check, start, start_many};
use crate::random::Random;

const NOWHERE: usize = usize::MAX;
const WALL: usize = usize::MAX - 1;
/// Of a hundred places.
const WALLS: usize = 30;

struct Grid {
    side: usize,
    /// From where each place was reached first.
    from: Vec<AtomicUsize>,
}

impl Grid {
    fn new(side: usize) -> Self {
        let mut random = Random::new(7);
        let places = side * side * side;
        let from = (0..places).map(|place| {
            if place == 0 {
                AtomicUsize::new(0)
            } else if place != places - 1 && random.below(100) < WALLS {
                AtomicUsize::new(WALL)
            } else {
                AtomicUsize::new(NOWHERE)
            }
        });
        Self {
            side,
            from: from.collect(),
        }
    }

    fn target(&self) -> usize {
        self.from.len() - 1
    }

    /// Whether this is the first to get to a place that is no wall.
    fn reach(&self, place: usize, from: usize) -> bool {
        // Nothing else is published by it. Who follows the way back has heard from all who wrote it.
        self.from[place]
            .compare_exchange(NOWHERE, from, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Where a place lies, in each of the three directions.
    fn coordinates(&self, place: usize) -> [usize; 3] {
        let side = self.side;
        [place / (side * side), place / side % side, place % side]
    }

    fn neighbours(&self, place: usize) -> impl Iterator<Item = usize> {
        let side = self.side;
        let near = |at: usize| at.saturating_sub(1)..(at + 2).min(side);
        let [x, y, z] = self.coordinates(place).map(near);
        x.flat_map(move |x| y.clone().map(move |y| (x, y)))
            .flat_map(move |(x, y)| z.clone().map(move |z| (x * side + y) * side + z))
    }

    /// Whether the way back from the target leads to the start, one step after the other.
    fn has_way(&self) -> bool {
        let mut place = self.target();
        for _ in 0..self.from.len() {
            if place == 0 {
                return true;
            }
            let from = self.from[place].load(Ordering::Relaxed);
            if from >= self.from.len() || !self.neighbours(from).any(|next| next == place) {
                return false;
            }
            place = from;
        }
        false
    }
}

struct Worker {
    grid: Arc<Grid>,
    threshold: usize,
}

#[actor]
impl Worker {
    /// Returns how often it got work.
    pub async fn search(&mut self, farm: Addr<Farm<usize>>) -> Result<u64, Error> {
        let mut searches = 0;
        while let Some(start) = farm.next().await? {
            searches += 1;
            match self.search_from(start) {
                Some(edge) => farm.add(edge).await?,
                None => farm.close().await?,
            }
        }
        Ok(searches)
    }

    /// Returns where the search stopped, or nothing if it came to the target.
    fn search_from(&self, start: usize) -> Option<Vec<usize>> {
        let mut places = VecDeque::from([start]);
        for _ in 0..self.threshold {
            let Some(place) = places.pop_front() else {
                break;
            };
            for next in self.grid.neighbours(place) {
                if self.grid.reach(next, place) {
                    if next == self.grid.target() {
                        return None;
                    }
                    places.push_back(next);
                }
            }
        }
        Some(places.into())
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let (count, side, threshold) = size.pick((20, 30, 1024), (4, 8, 16));
    let grid = Arc::new(Grid::new(side));
    let farm = start(0, move || Farm::new(0, count)).await?;
    let shared = Arc::clone(&grid);
    let workers = start_many(count, move |_| Worker {
        grid: Arc::clone(&shared),
        threshold,
    })
    .await?;
    let work = workers
        .iter()
        .map(|worker| worker.search(farm).into_future());
    let searches: u64 = try_join_all(work).await?.iter().sum();
    check("whether there is a way", grid.has_way(), true)?;
    Ok(4 * searches)
}
