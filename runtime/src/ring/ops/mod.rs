//! The operations, one file each: payload, description for the kernel, and what the end means.

pub(crate) mod accept;
pub(crate) mod connect;
pub(crate) mod doorbell;
pub(crate) mod recv;
pub(crate) mod send;
pub(crate) mod send_message;
pub(crate) mod shutdown;
mod sockaddr;
