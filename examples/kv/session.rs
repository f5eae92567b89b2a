//! What a connection knows about its client.

use std::sync::Arc;

/// What all connections know about their server.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) shards: usize,
    pub(crate) backend: &'static str,
    pub(crate) port: u16,
}

/// One client, from connect to close.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: i64,
    pub(crate) name: Vec<u8>,
    /// The client said that it is done.
    pub(crate) quit: bool,
    pub(crate) facts: Arc<Facts>,
}

impl Session {
    pub(crate) fn new(id: i64, facts: Arc<Facts>) -> Self {
        Session {
            id,
            name: Vec::new(),
            quit: false,
            facts,
        }
    }
}
