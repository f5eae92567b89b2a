//! Sockets, through the public API.

mod support;
mod udp;
mod unix_datagram;
