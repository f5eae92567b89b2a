//! kv
mod batch;
mod bytes;
mod client;
mod command;
#[cfg(test)]
mod conversation;
#[cfg(test)]
mod dialogues;
mod error;
mod integer;
mod keyspace;
mod pipeline;
mod protocol;
mod random;
mod reply;
mod routing;
mod session;
mod value;
fn main() {}
