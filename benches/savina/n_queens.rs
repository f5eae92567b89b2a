//! N-queens: twenty workers find all ways to put twelve queens on a board so that none attacks another.

use futures_util::future::try_join_all;
use greenroom::Error;
use greenroom::prelude::*;

use crate::farm::Farm;
use crate::harness::{Size, check, start, start_many};

/// The columns of the queens in the first rows.
type Board = Vec<usize>;

/// Whether a queen in the next row and this column is attacked by none of them.
fn is_free(board: &[usize], column: usize) -> bool {
    let row = board.len();
    board
        .iter()
        .enumerate()
        .all(|(other_row, &other)| other != column && other.abs_diff(column) != row - other_row)
}

fn solutions(board: &mut Board, queens: usize) -> u64 {
    if board.len() == queens {
        return 1;
    }
    let mut count = 0;
    for column in 0..queens {
        if is_free(board, column) {
            board.push(column);
            count += solutions(board, queens);
            board.pop();
        }
    }
    count
}

struct Worker {
    queens: usize,
    /// Boards with fewer queens become more work.
    threshold: usize,
}

#[actor]
impl Worker {
    /// Returns how many boards it worked on, and how many solutions it found.
    pub async fn work(&mut self, farm: Addr<Farm<Board>>) -> Result<(u64, u64), Error> {
        let (mut boards, mut found) = (0, 0);
        while let Some(mut board) = farm.next().await? {
            boards += 1;
            if board.len() < self.threshold {
                let columns = (0..self.queens).filter(|&column| is_free(&board, column));
                let boards = columns.map(|column| [&board[..], &[column]].concat());
                farm.add(boards.collect()).await?;
            } else {
                found += solutions(&mut board, self.queens);
            }
        }
        Ok((boards, found))
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let (count, queens, threshold, expected) = size.pick((20, 12, 4, 14_200), (4, 6, 2, 4));
    let farm = start(0, move || Farm::new(Board::new(), count)).await?;
    let workers = start_many(count, move |_| Worker { queens, threshold }).await?;
    let work = workers.iter().map(|worker| worker.work(farm).into_future());
    let done = try_join_all(work).await?;
    let found: u64 = done.iter().map(|(_, found)| found).sum();
    check("the number of solutions", found, expected)?;
    Ok(3 * done.iter().map(|(boards, _)| boards).sum::<u64>())
}
