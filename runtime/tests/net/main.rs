//! Sockets, through the public API.

mod close;
mod connect;
mod half_closed;
mod migrate;
mod support;
mod udp;
mod unix_datagram;
mod unix_seqpacket;
mod unix_stream;
