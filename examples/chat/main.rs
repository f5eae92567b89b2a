//! Chat rooms over TCP: `cargo run --example chat -- --shards 2 --addr 127.0.0.1:7000`, then `nc 127.0.0.1 7000`.
//!
//! Every connection is an actor on the shard that accepted it, every room one on the shard of its name. A line goes from a
//! connection to its room, which publishes it; from there it travels once to each shard with somebody in the room.
//! Nobody waits for those who do not read: a connection that is too slow misses lines, and is told how many.
//!
//! Reading order: [`front`] lets clients in, [`session`] is a connection, [`room`] a room, and [`lines`] cuts what is read.

mod front;
mod lines;
mod room;
mod session;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use greenroom::prelude::*;
use greenroom::runtime::signal;

use crate::room::Room;

/// How long those who are still here may take to hear the end.
const GRACE: Duration = Duration::from_secs(1);

/// Chat rooms over TCP.
#[derive(Debug, Parser)]
struct Options {
    /// How many shards share rooms and connections.
    #[arg(long, default_value_t = 2)]
    shards: usize,
    /// Where to listen; port 0 takes a free port.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7000")]
    addr: String,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If nobody can be told, the exit code still tells.
            let _ = writeln!(io::stderr(), "chat: {error:?}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), greenroom::Error> {
    let mut end = signal::termination()?;
    let system = System::builder()
        .shards(options.shards)
        .pin(false)
        .start()?;
    let handle = system.handle().clone();
    let address = system.block_on(async {
        let rooms = system
            .keyed_with(async move |name: &String| Room::open(name, &handle))
            // A room ends when the last one has left.
            .never_idle()
            .start()
            .await?;
        front::listen(&system, &options.addr, &rooms).await
    })?;
    writeln!(
        io::stdout(),
        "listening at {address} with {} shards",
        options.shards
    )?;
    system.block_on(end.recv());
    drop(end);
    system.shutdown(GRACE);
    Ok(())
}
