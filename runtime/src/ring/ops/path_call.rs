//! What is asked about names: renaming, linking, removing, making a directory.
#![expect(unsafe_code, reason = "hands out the addresses of its own paths")]

use std::ffi::CString;
use std::io;

use crate::ring::backend::EntryKind;
use crate::ring::op::{Operation, Outcome};

/// What is asked. `path` is the one it is about, or the older of two.
#[derive(Debug)]
pub(crate) enum PathRequest {
    Rename { path: CString, to: CString },
    HardLink { path: CString, link: CString },
    Symlink { path: CString, link: CString },
    RemoveFile { path: CString },
    RemoveDir { path: CString },
    CreateDir { path: CString, mode: libc::mode_t },
}

/// Asks something about names.
pub(crate) struct PathCall {
    request: PathRequest,
}

impl PathCall {
    pub(crate) fn new(request: PathRequest) -> PathCall {
        PathCall { request }
    }
}

// SAFETY: the addresses are those of strings on the heap, owned by the payload and never written to.
unsafe impl Operation for PathCall {
    /// The paths come back, for the text of an error.
    type Output = (io::Result<()>, PathRequest);

    const NAME: &'static str = "change of a name";

    fn entry(&mut self) -> EntryKind {
        match &self.request {
            PathRequest::Rename { path, to } => EntryKind::Rename {
                from: path.as_ptr(),
                to: to.as_ptr(),
            },
            PathRequest::HardLink { path, link } => EntryKind::HardLink {
                original: path.as_ptr(),
                link: link.as_ptr(),
            },
            PathRequest::Symlink { path, link } => EntryKind::Symlink {
                target: path.as_ptr(),
                link: link.as_ptr(),
            },
            PathRequest::RemoveFile { path } => EntryKind::Unlink {
                path: path.as_ptr(),
                flags: 0,
            },
            PathRequest::RemoveDir { path } => EntryKind::Unlink {
                path: path.as_ptr(),
                flags: libc::AT_REMOVEDIR,
            },
            PathRequest::CreateDir { path, mode } => EntryKind::CreateDir {
                path: path.as_ptr(),
                mode: *mode,
            },
        }
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        let result = outcome.and_then(Outcome::into_result);
        (result.map(drop), self.request)
    }

    /// It was done, or it was not.
    fn orphan(self, _outcome: Outcome) {}
}
