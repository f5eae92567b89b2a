//! A key-value server that speaks RESP2: `cargo run --release --example kv -- --shards 2 --addr 127.0.0.1:6379`.
//!
//! Every shard has a part of the keys, in an actor of its own, and its share of the connections, which are tasks. What
//! a client sent in one read goes to each shard concerned as one message, to all of them at the same time, and comes
//! back as replies that only need to be put in order. No lock is taken, and no byte of a value is shared.
//!
//! Reading order:
//! * What a server is made of: [`server`], [`front`], which lets clients in, and [`gate`], which lets them out.
//! * What happens to a read: [`connection`], [`client`], [`protocol`], [`pipeline`], [`routing`], [`batch`], [`shard`].
//! * What commands do: [`command`], [`keyspace`], [`value`], [`bytes`], [`reply`], [`error`].
//! * What a client and a server say to each other, as tests: `dialogues`, `conversation`.

mod batch;
mod bytes;
mod client;
mod clock;
mod command;
mod connection;
#[cfg(test)]
mod conversation;
#[cfg(test)]
mod dialogues;
mod error;
mod front;
mod gate;
mod integer;
mod keyspace;
mod pipeline;
mod protocol;
mod random;
mod reply;
mod routing;
mod server;
mod session;
mod shard;
mod value;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use greenroom::runtime::signal;

use crate::server::Server;

/// A key-value server that speaks RESP2.
#[derive(Debug, Parser)]
struct Options {
    /// How many shards share the keys and the connections [default: one per CPU].
    #[arg(long, value_name = "N")]
    shards: Option<usize>,
    /// Where to listen; port 0 takes a free port.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6379")]
    addr: String,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If nobody can be told, the exit code still tells. The form for debugging has all causes.
            let _ = writeln!(io::stderr(), "kv: {error:?}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), greenroom::Error> {
    let mut end = signal::termination()?;
    let server = Server::start(options.shards, &options.addr)?;
    writeln!(io::stdout(), "{server}")?;
    server.run_until(end.recv());
    // From here on nobody listens: a second signal ends the process at once.
    drop(end);
    server.stop();
    Ok(())
}
