//! One connection: read, execute, write, in turn.
//!
//! The next read starts when the answers to the last one are written. So a client that does not read is not read from,
//! and what a connection holds is bounded: one read, the unfinished command before it, and for each shard the replies
//! of one message.

use std::io;

use futures_util::future::join_all;
use greenroom::prelude::*;
use greenroom::runtime::net::TcpStream;

use crate::batch::{self, Batch};
use crate::client::{Client, Next};
use crate::gate::Pass;
use crate::pipeline::{Merged, Pipeline};
use crate::routing::ShardIndex;
use crate::shard::Store;

/// How much is read at once.
const READ_BYTES: usize = 16 << 10;

/// A stream, and the stores that what comes from it is for.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    store: Sharded<Store>,
    /// The shard the connection lives on.
    home: ShardIndex,
    /// The store of that shard, by the short way.
    home_store: Local<Store>,
}

impl Connection {
    /// A connection that lives on the calling shard, which is `home`; `None` when its store has ended.
    pub(crate) fn new(stream: TcpStream, store: Sharded<Store>, home: ShardIndex) -> Option<Self> {
        let home_store = Addr::local(store.on(home))?;
        Some(Connection {
            stream,
            store,
            home,
            home_store,
        })
    }

    /// Serves the client until one side has had enough.
    ///
    /// # Errors
    /// The connection broke, or a store ended.
    pub(crate) async fn serve(mut self, mut client: Client, pass: &Pass) -> io::Result<()> {
        let mut input = Vec::with_capacity(READ_BYTES);
        let mut output = Vec::new();
        loop {
            let read = self.stream.read(input);
            let Some((read, buffer)) = pass.unless_closed(read).await else {
                return Ok(());
            };
            let length = read?;
            if length == 0 {
                return Ok(());
            }
            // The buffer is as long as the longest read so far.
            let next = client.receive(&buffer[..length]);
            input = buffer;
            output = self.answer(&mut client.pipeline, output).await?;
            if next == Next::Close {
                return Ok(());
            }
        }
    }

    async fn answer(
        &mut self,
        pipeline: &mut Pipeline,
        mut output: Vec<u8>,
    ) -> io::Result<Vec<u8>> {
        self.execute_all(pipeline).await?;
        loop {
            let merged = pipeline.merge(&mut output);
            if !output.is_empty() {
                let (written, buffer) = self.stream.write_all(output).await;
                written?;
                output = buffer;
                batch::clear(&mut output);
            }
            match merged {
                Merged::All => return Ok(output),
                Merged::Until(shard) => self.execute(pipeline, shard).await?,
            }
        }
    }

    /// Has every batch of the pipeline executed, all at the same time.
    async fn execute_all(&self, pipeline: &mut Pipeline) -> io::Result<()> {
        if let Some(shard) = pipeline.only_shard() {
            return self.execute(pipeline, shard).await;
        }
        // The home shard comes last: what goes to others should be on its way before this one works.
        let shards: Vec<_> = pipeline.shards(self.home).collect();
        let asked = shards.into_iter().map(|shard| {
            let batch = pipeline.take(shard);
            async move { (shard, self.ask(shard, batch).await) }
        });
        for (shard, answer) in join_all(asked).await {
            pipeline.put_back(shard, answer?);
        }
        Ok(())
    }

    async fn execute(&self, pipeline: &mut Pipeline, shard: ShardIndex) -> io::Result<()> {
        let batch = pipeline.take(shard);
        let batch = self.ask(shard, batch).await?;
        pipeline.put_back(shard, batch);
        Ok(())
    }

    async fn ask(&self, shard: ShardIndex, batch: Box<Batch>) -> io::Result<Box<Batch>> {
        let answer = if shard == self.home {
            self.home_store.apply(batch).await
        } else {
            self.store.on(shard).apply(batch).await
        };
        answer.map_err(io::Error::other)
    }
}
