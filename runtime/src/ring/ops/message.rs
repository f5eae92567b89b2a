//! Messages: a header, and everything it points to.
//!
//! The kernel gets the address of a header, which points to the address of the peer, to the list of the pieces, and to
//! the *control* memory that descriptors travel in. All of it lies in one [`Message`] on the heap that the operation
//! owns while it runs. A socket keeps the one of its last operation in each direction, so that a message allocates
//! nothing but what its buffers do.
#![expect(
    unsafe_code,
    reason = "lays out control memory, and owns the descriptors that come in it"
)]

use std::fmt;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use socket2::{SockAddr, SockAddrStorage};

use super::pieces::{Gather, Scatter};

/// The kernel takes at most this many descriptors in one message.
pub(crate) const FDS_MAX: usize = 253;

/// A message header with the memory it points to.
pub(crate) struct Message {
    header: libc::msghdr,
    address: SockAddrStorage,
    pieces: Vec<libc::iovec>,
    /// Of words, because control messages are aligned like them.
    control: Vec<usize>,
}

impl Message {
    pub(crate) fn new() -> Box<Message> {
        Box::new(Message {
            header: EMPTY,
            address: SockAddrStorage::zeroed(),
            pieces: Vec::new(),
            control: Vec::new(),
        })
    }

    /// The address of a peer without one.
    pub(super) fn nobody() -> SockAddr {
        // SAFETY: an address of no bytes has no content.
        unsafe { SockAddr::new(SockAddrStorage::zeroed(), 0) }
    }

    /// Prepares for sending: whom to, unless the socket is connected, and what descriptors along with the bytes.
    ///
    /// # Panics
    ///
    /// If there are more than [`FDS_MAX`] descriptors.
    pub(super) fn address_to(&mut self, target: Option<&SockAddr>, fds: &[OwnedFd]) {
        self.header = EMPTY;
        if let Some(target) = target {
            self.address = target.clone().as_storage();
            self.header.msg_namelen = target.len();
        }
        self.control.clear();
        if !fds.is_empty() {
            self.control = rights(fds);
        }
        self.header.msg_controllen = self.control_len();
    }

    /// Prepares for receiving: makes room for so many descriptors.
    pub(super) fn expect_fds(&mut self, fds_max: usize) {
        self.header = EMPTY;
        self.header.msg_namelen = self.address.size_of();
        self.control.clear();
        if fds_max > 0 {
            self.control.resize(space_for(fds_max.min(FDS_MAX)), 0);
        }
        self.header.msg_controllen = self.control_len();
    }

    /// The header for the kernel to read. Valid while `self` and `buffers` are in place.
    pub(super) fn gathered_from(&mut self, buffers: &impl Gather) -> *const libc::msghdr {
        self.pieces.clear();
        buffers.list(&mut self.pieces);
        self.point()
    }

    /// The header for the kernel to read and write. Valid while `self` and `buffers` are in place.
    pub(super) fn scattered_to(&mut self, buffers: &mut impl Scatter) -> *mut libc::msghdr {
        self.pieces.clear();
        buffers.list(&mut self.pieces);
        self.point()
    }

    fn point(&mut self) -> *mut libc::msghdr {
        if self.header.msg_namelen > 0 {
            self.header.msg_name = (&raw mut self.address).cast();
        }
        self.header.msg_iov = self.pieces.as_mut_ptr();
        self.header.msg_iovlen = self.pieces.len();
        if self.header.msg_controllen > 0 {
            self.header.msg_control = self.control.as_mut_ptr().cast();
        }
        &raw mut self.header
    }

    fn control_len(&self) -> usize {
        self.control.len() * size_of::<usize>()
    }

    /// Who sent the message that was received.
    ///
    /// # Safety
    ///
    /// The kernel received a message by this header.
    pub(super) unsafe fn peer(&self) -> SockAddr {
        let len = self.header.msg_namelen.min(self.address.size_of());
        // SAFETY: a copy of bytes that are all initialised.
        let storage = unsafe { ptr::read(&raw const self.address) };
        // SAFETY: the kernel wrote an address of that length there, or none and a length of zero, by the contract.
        unsafe { SockAddr::new(storage, len) }
    }

    /// Takes the descriptors out of the message that was received. Tells whether some were lost on the way, because
    /// there was no room for them here or in the table of the process.
    ///
    /// # Safety
    ///
    /// The kernel received a message by this header, and the descriptors are taken once.
    pub(super) unsafe fn take_fds(&mut self) -> (Vec<OwnedFd>, bool) {
        let is_cut = self.header.msg_flags & libc::MSG_CTRUNC != 0;
        let mut fds = Vec::new();
        if self.control.is_empty() {
            return (fds, is_cut);
        }
        // SAFETY: the header's control memory is ours, in place, and as long as the kernel says it filled it.
        let mut next = unsafe { libc::CMSG_FIRSTHDR(&raw const self.header) };
        while !next.is_null() {
            // SAFETY: the macros return headers that lie within the control memory, aligned like it.
            let control = unsafe { ptr::read(next) };
            if control.cmsg_level == libc::SOL_SOCKET && control.cmsg_type == libc::SCM_RIGHTS {
                // SAFETY: takes no memory.
                let head_len = unsafe { libc::CMSG_LEN(0) } as usize;
                let count = (control.cmsg_len.saturating_sub(head_len)) / size_of::<RawFd>();
                // SAFETY: as for `next`; the data begins behind the header.
                let data = unsafe { libc::CMSG_DATA(next) }.cast::<RawFd>();
                for index in 0..count {
                    // SAFETY: within the data, which the kernel filled with `count` descriptors.
                    let fd = unsafe { ptr::read_unaligned(data.add(index)) };
                    // SAFETY: the kernel made it for this process, and it is taken once by the contract.
                    fds.push(unsafe { OwnedFd::from_raw_fd(fd) });
                }
            }
            // SAFETY: as for the first; `next` came from there.
            next = unsafe { libc::CMSG_NXTHDR(&raw const self.header, next) };
        }
        self.control.clear();
        (fds, is_cut)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("pieces", &self.pieces.len())
            .field("control_len", &self.control_len())
            .finish_non_exhaustive()
    }
}

/// A header that points to nothing.
pub(super) const EMPTY: libc::msghdr = libc::msghdr {
    msg_name: ptr::null_mut(),
    msg_namelen: 0,
    msg_iov: ptr::null_mut(),
    msg_iovlen: 0,
    msg_control: ptr::null_mut(),
    msg_controllen: 0,
    msg_flags: 0,
};

/// How many words a control message with so many descriptors takes.
fn space_for(fds: usize) -> usize {
    let bytes = u32::try_from(size_of::<RawFd>() * fds).expect("at most 253 descriptors");
    // SAFETY: takes no memory.
    let space = unsafe { libc::CMSG_SPACE(bytes) } as usize;
    space.div_ceil(size_of::<usize>())
}

/// Control memory with one message that carries the descriptors.
fn rights(fds: &[OwnedFd]) -> Vec<usize> {
    assert!(
        fds.len() <= FDS_MAX,
        "{} descriptors in one message, at most {FDS_MAX}",
        fds.len()
    );
    let mut control = vec![0_usize; space_for(fds.len())];
    let data_len = u32::try_from(size_of_val(fds)).expect("at most 253 descriptors");
    let head = libc::cmsghdr {
        // SAFETY: takes no memory.
        cmsg_len: unsafe { libc::CMSG_LEN(data_len) } as usize,
        cmsg_level: libc::SOL_SOCKET,
        cmsg_type: libc::SCM_RIGHTS,
    };
    let at = control.as_mut_ptr().cast::<libc::cmsghdr>();
    // SAFETY: the memory has room for a header, and is aligned like one: both are made of words.
    unsafe { at.write(head) };
    // SAFETY: as above; the data begins behind the header.
    let data = unsafe { libc::CMSG_DATA(at) }.cast::<RawFd>();
    for (index, fd) in fds.iter().enumerate() {
        // SAFETY: `space_for` made room for all of them.
        unsafe { data.add(index).write_unaligned(fd.as_raw_fd()) };
    }
    control
}

#[cfg(test)]
mod tests {
    use std::os::fd::IntoRawFd;

    use super::*;
    use crate::ring::ops::pieces::Single;

    #[test]
    fn descriptors_survive_the_way_through_control_memory() {
        let fds: Vec<OwnedFd> = (0..3)
            .map(|_| std::fs::File::open("/dev/null").unwrap().into())
            .collect();
        let numbers: Vec<RawFd> = fds.iter().map(AsRawFd::as_raw_fd).collect();
        let mut message = Message::new();
        message.address_to(None, &fds);
        message.gathered_from(&Single("x"));
        // The descriptors are given up here, as if the kernel had made new ones with the same numbers.
        for fd in fds {
            let _number = fd.into_raw_fd();
        }
        // SAFETY: what the header says is what a receive would have written; taken once.
        let (taken, is_cut) = unsafe { message.take_fds() };
        let taken_numbers: Vec<RawFd> = taken.iter().map(AsRawFd::as_raw_fd).collect();
        assert_eq!((taken_numbers, is_cut), (numbers, false));
    }

    #[test]
    #[should_panic(expected = "254 descriptors in one message, at most 253")]
    fn too_many_descriptors_are_a_bug_of_the_caller() {
        let fds: Vec<OwnedFd> = (0..254)
            .map(|_| std::fs::File::open("/dev/null").unwrap().into())
            .collect();
        Message::new().address_to(None, &fds);
    }
}
