//! Recursive matrix multiply: twenty workers cut a product of two matrices into eight smaller ones each, until they are
//! small enough to be done at once.

use std::sync::Arc;

use futures_util::future::try_join_all;
use greenroom::Error;
use greenroom::prelude::*;

use crate::farm::Farm;
use crate::harness::{Size, check, start, start_many};

/// A square matrix, row after row.
struct Matrix {
    side: usize,
    cells: Vec<f64>,
}

impl Matrix {
    fn new(side: usize, cell: impl Fn(usize, usize) -> f64) -> Self {
        let places = (0..side * side).map(|at| (at / side, at % side));
        Self {
            side,
            cells: places.map(|(row, column)| cell(row, column)).collect(),
        }
    }

    /// The cells of a row of a block.
    fn row(&self, row: usize, column: usize, side: usize) -> &[f64] {
        &self.cells[row * self.side + column..][..side]
    }
}

/// The factors of a piece of the product: the blocks of this side at (`row`, `inner`) and (`inner`, `column`).
#[derive(Clone, Copy)]
struct Piece {
    row: usize,
    inner: usize,
    column: usize,
    side: usize,
}

impl Piece {
    fn cut(self) -> Vec<Self> {
        let side = self.side / 2;
        let starts = |start| [start, start + side];
        let mut pieces = Vec::with_capacity(8);
        for row in starts(self.row) {
            for column in starts(self.column) {
                pieces.extend(starts(self.inner).map(|inner| Self {
                    row,
                    inner,
                    column,
                    side,
                }));
            }
        }
        pieces
    }

    fn product(self, left: &Matrix, right: &Matrix) -> Vec<f64> {
        let Self {
            row,
            inner,
            column,
            side,
        } = self;
        let mut product = vec![0.0; side * side];
        for (at, sums) in product.chunks_exact_mut(side).enumerate() {
            for (depth, factor) in left.row(row + at, inner, side).iter().enumerate() {
                let others = right.row(inner + depth, column, side);
                for (sum, other) in sums.iter_mut().zip(others) {
                    *sum += factor * other;
                }
            }
        }
        product
    }
}

/// Adds up the pieces.
struct Product {
    matrix: Matrix,
}

#[actor]
impl Product {
    pub fn add(&mut self, piece: Piece, cells: Vec<f64>) {
        for (at, row) in cells.chunks_exact(piece.side).enumerate() {
            let start = (piece.row + at) * self.matrix.side + piece.column;
            for (sum, cell) in self.matrix.cells[start..].iter_mut().zip(row) {
                *sum += cell;
            }
        }
    }

    /// How many cells are what they should be.
    pub fn count_right(&self, expected: fn(usize, usize, usize) -> f64) -> usize {
        let side = self.matrix.side;
        let cells = self.matrix.cells.iter().enumerate();
        cells
            .filter(|&(at, &cell)| cell == expected(at / side, at % side, side))
            .count()
    }
}

struct Worker {
    left: Arc<Matrix>,
    right: Arc<Matrix>,
    /// The side of the largest piece that is not cut.
    threshold: usize,
}

#[actor]
impl Worker {
    /// Returns how many pieces it worked on.
    pub async fn work(
        &mut self,
        farm: Addr<Farm<Piece>>,
        product: Addr<Product>,
    ) -> Result<u64, Error> {
        let mut pieces = 0;
        while let Some(piece) = farm.next().await? {
            pieces += 1;
            if piece.side > self.threshold {
                farm.add(piece.cut()).await?;
            } else {
                let cells = piece.product(&self.left, &self.right);
                product.add(piece, cells).await?;
            }
        }
        Ok(pieces)
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let (count, side, threshold) = size.pick((20, 1024, 128), (4, 32, 8));
    let whole = Piece {
        row: 0,
        inner: 0,
        column: 0,
        side,
    };
    let farm = start(0, move || Farm::new(whole, count)).await?;
    let product = start(0, move || Product {
        matrix: Matrix::new(side, |_, _| 0.0),
    })
    .await?;
    let left = Arc::new(Matrix::new(side, |row, _| row as f64));
    let right = Arc::new(Matrix::new(side, |_, column| column as f64));
    let workers = start_many(count, move |_| Worker {
        left: left.clone(),
        right: right.clone(),
        threshold,
    })
    .await?;
    let work = workers
        .iter()
        .map(|worker| worker.work(farm, product).into_future());
    let pieces: u64 = try_join_all(work).await?.iter().sum();
    let right = product.count_right(|row, column, side| (row * column * side) as f64);
    check("the number of right cells", right.await?, side * side)?;
    Ok(4 * pieces)
}
