//! The operations, one file each: payload, description for the kernel, and what the end means.

pub(crate) mod accept_multi;
pub(crate) mod close;
pub(crate) mod connect;
pub(crate) mod doorbell;
pub(crate) mod file_call;
pub(crate) mod message;
pub(crate) mod open;
pub(crate) mod path_call;
pub(crate) mod pieces;
pub(crate) mod pipe;
pub(crate) mod poll;
pub(crate) mod read_at;
pub(crate) mod receive_message;
pub(crate) mod recv;
pub(crate) mod recv_multi;
pub(crate) mod send;
pub(crate) mod send_datagram;
pub(crate) mod send_message;
pub(crate) mod send_zero_copy;
pub(crate) mod shutdown;
pub(crate) mod stat;
pub(crate) mod vectored_at;
pub(crate) mod write_at;
