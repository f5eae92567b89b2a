//! Descriptors that come with messages.

use std::error::Error;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

use crate::net::datagram::Datagram;
use crate::ring::ops::receive_message::Arrival;

/// Descriptors came with a message, and not all of them could be received.
///
/// Part of an [`io::Error`] of the kind [`InvalidData`](io::ErrorKind::InvalidData). More were sent than the receiver
/// expected, or the process has no room for more open files. Those that did come were closed. The bytes of the message
/// are in the buffer.
///
/// # Examples
///
/// ```
/// use std::fs::File;
/// use greenroom_runtime::Builder;
/// use greenroom_runtime::net::{DescriptorsLost, UnixDatagram};
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let (one, other) = UnixDatagram::pair()?;
///     let fds = vec![File::open("/dev/null")?.into(), File::open("/dev/zero")?.into()];
///     one.send_with_fds("two files", fds).await.0?;
///     let (result, buffer) = other.recv_with_fds(Vec::with_capacity(16), 1).await;
///     let error = result.unwrap_err();
///     let lost = error.get_ref().unwrap().downcast_ref::<DescriptorsLost>().unwrap();
///     assert_eq!(&buffer[..lost.len()], b"two files");
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DescriptorsLost {
    len: usize,
    fds_max: usize,
}

impl DescriptorsLost {
    pub(in crate::net) fn error(len: usize, fds_max: usize) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, DescriptorsLost { len, fds_max })
    }

    /// How many bytes of the message are in the buffer.
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "the length of what is in the buffer, not of a collection"
    )]
    pub fn len(&self) -> usize {
        self.len
    }
}

impl fmt::Display for DescriptorsLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a message came with more than the {} descriptors expected, or the process has too many open files; \
             those that came were closed",
            self.fds_max
        )
    }
}

impl Error for DescriptorsLost {}

/// Takes the descriptors out of a message, unless some were lost on the way.
pub(super) fn with_fds(arrival: Arrival, fds_max: usize) -> io::Result<(Datagram, Vec<OwnedFd>)> {
    let datagram = Datagram::from(&arrival);
    // A message that a cancelled receive took may have come with more than this one expects.
    if arrival.envelope.are_fds_lost || arrival.envelope.fds.len() > fds_max {
        return Err(DescriptorsLost::error(datagram.len, fds_max));
    }
    Ok((datagram, arrival.envelope.fds))
}
