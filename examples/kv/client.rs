//! One client as a machine without I/O: bytes in, batches out and back, bytes out.

use crate::batch;
use crate::pipeline::Pipeline;
use crate::protocol::Parser;
use crate::routing::Routing;
use crate::session::Session;

/// Whether the client is to be heard after what it said so far is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Next {
    Read,
    Close,
}

/// The state of one connection.
#[derive(Debug)]
pub(crate) struct Client {
    session: Session,
    parser: Parser,
    /// The start of a command whose end has not arrived.
    unfinished: Vec<u8>,
    /// The commands that were received and are not answered.
    pub(crate) pipeline: Pipeline,
}

impl Client {
    pub(crate) fn new(session: Session, routing: Routing) -> Self {
        Client {
            session,
            parser: Parser::default(),
            unfinished: Vec::new(),
            pipeline: Pipeline::new(routing),
        }
    }

    /// Collects the commands of one read into the pipeline, which is to be answered before the next read.
    pub(crate) fn receive(&mut self, read: &[u8]) -> Next {
        if self.unfinished.is_empty() {
            let (next, used) = self.collect(read);
            self.unfinished.extend_from_slice(&read[used..]);
            return next;
        }
        let mut input = std::mem::take(&mut self.unfinished);
        input.extend_from_slice(read);
        let (next, used) = self.collect(&input);
        if used == input.len() {
            batch::clear(&mut input);
            self.parser.trim(batch::KEPT_BYTES_MAX / size_of::<usize>());
        } else {
            input.drain(..used);
        }
        self.unfinished = input;
        next
    }

    /// Collects the commands at the start of `input`; returns how long they are.
    fn collect(&mut self, input: &[u8]) -> (Next, usize) {
        let mut used = 0;
        loop {
            match self.parser.next(&input[used..]) {
                Ok(Some(request)) => {
                    used += request.length;
                    self.pipeline.push(&mut self.session, request.arguments);
                    if self.session.quit {
                        return (Next::Close, used);
                    }
                }
                Ok(None) => return (Next::Read, used),
                Err(error) => {
                    self.pipeline
                        .refuse(format_args!("ERR Protocol error: {error}"));
                    return (Next::Close, used);
                }
            }
        }
    }
}
