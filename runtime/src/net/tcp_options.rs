//! What can be set about a TCP connection.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

use super::tcp_stream::TcpStream;

/// When a silent connection is asked whether it is still there, and how long until it is given up.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::net::Keepalive;
/// use std::time::Duration;
///
/// let minute = Keepalive { idle: Duration::from_secs(30), ..Keepalive::default() };
/// assert_eq!(minute.idle + minute.interval * minute.retries, Duration::from_secs(60));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// How long nothing may come before the peer is asked. Whole seconds, from 1 to 32767.
    pub idle: Duration,
    /// How long an answer may take before the peer is asked again. Whole seconds, from 1 to 32767.
    pub interval: Duration,
    /// How many questions may stay unanswered, from 1 to 127. Then the connection is gone: reads fail with
    /// [`TimedOut`](io::ErrorKind::TimedOut).
    pub retries: u32,
}

impl Default for Keepalive {
    /// After a minute of silence, three questions ten seconds apart: a dead peer is noticed after 90 seconds.
    fn default() -> Keepalive {
        Keepalive {
            idle: Duration::from_secs(60),
            interval: Duration::from_secs(10),
            retries: 3,
        }
    }
}

impl Keepalive {
    /// Sets the options of a socket.
    pub(super) fn apply(self, socket: &SockRef<'_>) -> io::Result<()> {
        let keepalive = TcpKeepalive::new()
            .with_time(self.idle)
            .with_interval(self.interval)
            .with_retries(self.retries);
        socket.set_tcp_keepalive(&keepalive)
    }
}

/// Options.
///
/// All of them are set and read at once.
impl TcpStream {
    /// Sets whether small writes are sent at once (`TCP_NODELAY`) instead of being held back to be joined.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        SockRef::from(self).set_tcp_nodelay(nodelay)
    }

    /// Returns whether small writes are sent at once.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn nodelay(&self) -> io::Result<bool> {
        SockRef::from(self).tcp_nodelay()
    }

    /// Sets whether, and how, a silent peer is asked for a sign of life. `None` for never, which is the default.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if a value is out of range.
    pub fn set_keepalive(&self, keepalive: Option<Keepalive>) -> io::Result<()> {
        let socket = SockRef::from(self);
        match keepalive {
            Some(keepalive) => keepalive.apply(&socket),
            None => socket.set_keepalive(false),
        }
    }

    /// Returns whether, and how, a silent peer is asked for a sign of life.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn keepalive(&self) -> io::Result<Option<Keepalive>> {
        let socket = SockRef::from(self);
        if !socket.keepalive()? {
            return Ok(None);
        }
        Ok(Some(Keepalive {
            idle: socket.tcp_keepalive_time()?,
            interval: socket.tcp_keepalive_interval()?,
            retries: socket.tcp_keepalive_retries()?,
        }))
    }

    /// Lets a drop reset the connection (`SO_LINGER` of zero): what was not sent yet is thrown away.
    ///
    /// There is no other lingering here. With a time, closing the descriptor would block the shard that long; who wants
    /// to know that everything arrived lets the peer say so, and reads to the end after a
    /// [`shutdown`](Self::shutdown).
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn reset_on_drop(&self) -> io::Result<()> {
        SockRef::from(self).set_linger(Some(Duration::ZERO))
    }

    /// Sets how many bytes the kernel keeps for writes that are on their way. The kernel doubles it, and caps it.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn set_send_buffer_size(&self, bytes: usize) -> io::Result<()> {
        SockRef::from(self).set_send_buffer_size(bytes)
    }

    /// Returns how many bytes the kernel keeps for writes that are on their way.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn send_buffer_size(&self) -> io::Result<usize> {
        SockRef::from(self).send_buffer_size()
    }

    /// Sets how many bytes the kernel keeps for reads. The kernel doubles it, caps it, and stops to adapt it.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn set_recv_buffer_size(&self, bytes: usize) -> io::Result<()> {
        SockRef::from(self).set_recv_buffer_size(bytes)
    }

    /// Returns how many bytes the kernel keeps for reads.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn recv_buffer_size(&self) -> io::Result<usize> {
        SockRef::from(self).recv_buffer_size()
    }

    /// Sets how many routers an IPv4 packet may pass.
    ///
    /// # Errors
    ///
    /// What the kernel reports, zero and values above 255 included.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        SockRef::from(self).set_ttl_v4(ttl)
    }

    /// Returns how many routers an IPv4 packet may pass.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn ttl(&self) -> io::Result<u32> {
        SockRef::from(self).ttl_v4()
    }

    /// Takes the error the kernel keeps for the socket, if there is one.
    ///
    /// # Errors
    ///
    /// If the kernel cannot be asked.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        SockRef::from(self).take_error()
    }
}
