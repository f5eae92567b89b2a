//! What is asked of an open file without handing over memory: syncing, reserving space, setting the length.
#![expect(
    unsafe_code,
    reason = "implements the contract of operations; holds no address"
)]

use std::io;
use std::os::fd::AsRawFd;

use crate::ring::backend::{EntryKind, SyncScope};
use crate::ring::file::FileRef;
use crate::ring::op::{Operation, Outcome};

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FileRequest {
    Sync(SyncScope),
    Allocate { mode: i32, offset: u64, len: u64 },
    SetLen(u64),
}

/// Asks something of an open file.
pub(crate) struct FileCall {
    file: FileRef,
    request: FileRequest,
}

impl FileCall {
    pub(crate) fn new(file: FileRef, request: FileRequest) -> FileCall {
        FileCall { file, request }
    }
}

// SAFETY: none of the entries holds an address.
unsafe impl Operation for FileCall {
    type Output = io::Result<()>;

    const NAME: &'static str = "sync, allocation or truncation of a file";

    fn entry(&mut self) -> EntryKind {
        let fd = self.file.as_raw_fd();
        match self.request {
            FileRequest::Sync(scope) => EntryKind::Sync { fd, scope },
            FileRequest::Allocate { mode, offset, len } => EntryKind::Allocate {
                fd,
                mode,
                offset,
                len,
            },
            FileRequest::SetLen(len) => EntryKind::SetLen { fd, len },
        }
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        outcome?.into_result().map(drop)
    }

    /// It was done, or it was not.
    fn orphan(self, _outcome: Outcome) {}
}
