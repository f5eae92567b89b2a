//! What a connection knows about its client.

use std::sync::Arc;

/// What all connections know about their server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) shards: usize,
    pub(crate) backend: String,
    pub(crate) port: u16,
}

/// One client, from connect to close.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: i64,
    pub(crate) name: Vec<u8>,
    /// The client said that it is done.
    pub(crate) quit: bool,
    pub(crate) server: Arc<Server>,
}

impl Session {
    pub(crate) fn new(id: i64, server: Arc<Server>) -> Self {
        Session {
            id,
            name: Vec::new(),
            quit: false,
            server,
        }
    }
}
