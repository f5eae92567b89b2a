//! Trapezoid: a hundred workers compute an integral, a piece each, by ten million trapezoids.

use futures_util::future::try_join_all;
use greenroom::Error;
use greenroom::prelude::*;

use crate::harness::{Size, check_close, start_many};

const LEFT: f64 = 1.0;
const RIGHT: f64 = 5.0;

fn function(x: f64) -> f64 {
    let rising = (1.0 + (2.0 * x).sqrt().exp()).sqrt();
    rising * (x * x * x - 1.0).sin() / (x + 1.0)
}

/// The area under the function, by trapezoids of the same width.
fn area(left: f64, right: f64, trapezoids: u32) -> f64 {
    let width = (right - left) / f64::from(trapezoids);
    let edges = (1..trapezoids).map(|edge| function(left + f64::from(edge) * width));
    width * ((function(left) + function(right)) / 2.0 + edges.sum::<f64>())
}

/// The same area by Simpson's rule, which gets as close with far fewer points.
fn simpson(points: u32) -> f64 {
    (4.0 * area(LEFT, RIGHT, 2 * points) - area(LEFT, RIGHT, points)) / 3.0
}

struct Worker;

#[actor]
impl Worker {
    pub fn area(&self, left: f64, right: f64, trapezoids: u32) -> f64 {
        area(left, right, trapezoids)
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let (count, trapezoids, tolerance) = size.pick((100, 10_000_000, 1e-8), (10, 10_000, 1e-3));
    let workers = start_many(count, |_| Worker).await?;
    let width = (RIGHT - LEFT) / count as f64;
    let each = trapezoids / u32::try_from(count)?;
    let areas = workers.iter().enumerate().map(|(number, worker)| {
        let left = LEFT + number as f64 * width;
        worker.area(left, left + width, each).into_future()
    });
    let found: f64 = try_join_all(areas).await?.iter().sum();
    check_close("the integral", found, simpson(50_000), tolerance)?;
    Ok(2 * count as u64)
}
