//! What can be set about a UDP socket.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::udp::UdpSocket;

/// Options.
///
/// All of them are set and read at once. What the kernel reports as an error is about the value, or about an option of
/// the other address family.
impl UdpSocket {
    /// Sets whether datagrams may be sent to a broadcast address. Otherwise such a send is refused.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn set_broadcast(&self, broadcast: bool) -> io::Result<()> {
        self.options().set_broadcast(broadcast)
    }

    /// Returns whether datagrams may be sent to a broadcast address.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn broadcast(&self) -> io::Result<bool> {
        self.options().broadcast()
    }

    /// Receives what is sent to a group from now on, through the interface with that address.
    ///
    /// [`UNSPECIFIED`](Ipv4Addr::UNSPECIFIED) leaves the choice of the interface to the kernel. The socket has to be
    /// bound to the port of the group, and to its address or to none.
    ///
    /// # Errors
    ///
    /// If the address is not one of a group, there is no such interface, or the socket is in the group already.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::net::Ipv4Addr;
    /// use greenroom_runtime::Builder;
    /// use greenroom_runtime::net::UdpSocket;
    ///
    /// let runtime = Builder::new().shards(1).start()?;
    /// runtime.run_on(0, || async {
    ///     let group = Ipv4Addr::new(239, 1, 2, 3);
    ///     let member = UdpSocket::bind("0.0.0.0:0")?;
    ///     member.join_multicast_v4(group, Ipv4Addr::LOCALHOST)?;
    ///     let sender = UdpSocket::bind("127.0.0.1:0")?;
    ///     sender.send_to("to all", (group, member.local_addr()?.port())).await.0?;
    ///     assert_eq!(member.recv([0; 16]).await.0?.len, 6);
    ///     member.leave_multicast_v4(group, Ipv4Addr::LOCALHOST)
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn join_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.options().join_multicast_v4(&group, &interface)
    }

    /// Ends what [`join_multicast_v4`](Self::join_multicast_v4) began.
    ///
    /// # Errors
    ///
    /// If the socket is not in the group.
    pub fn leave_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.options().leave_multicast_v4(&group, &interface)
    }

    /// Receives what is sent to a group from now on, through the interface with that index.
    ///
    /// Index 0 leaves the choice of the interface to the kernel.
    ///
    /// # Errors
    ///
    /// If the address is not one of a group, there is no such interface, or the socket is in the group already.
    pub fn join_multicast_v6(&self, group: Ipv6Addr, interface: u32) -> io::Result<()> {
        self.options().join_multicast_v6(&group, interface)
    }

    /// Ends what [`join_multicast_v6`](Self::join_multicast_v6) began.
    ///
    /// # Errors
    ///
    /// If the socket is not in the group.
    pub fn leave_multicast_v6(&self, group: Ipv6Addr, interface: u32) -> io::Result<()> {
        self.options().leave_multicast_v6(&group, interface)
    }

    /// Sets whether members of a group on this host receive what this socket sends to it. They do unless told not to.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn set_multicast_loop_v4(&self, is_looped: bool) -> io::Result<()> {
        self.options().set_multicast_loop_v4(is_looped)
    }

    /// Sets how many networks a datagram to a group may cross. It stays in the own one unless told otherwise.
    ///
    /// # Errors
    ///
    /// If the number is above 255.
    pub fn set_multicast_ttl_v4(&self, ttl: u32) -> io::Result<()> {
        self.options().set_multicast_ttl_v4(ttl)
    }

    /// Sets the interface that datagrams to a group leave by.
    ///
    /// # Errors
    ///
    /// If there is no such interface.
    pub fn set_multicast_interface_v4(&self, interface: Ipv4Addr) -> io::Result<()> {
        self.options().set_multicast_if_v4(&interface)
    }

    /// Sets how many routers a datagram may pass.
    ///
    /// # Errors
    ///
    /// If the number is 0 or above 255.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        match self.local_addr()?.is_ipv4() {
            true => self.options().set_ttl_v4(ttl),
            false => self.options().set_unicast_hops_v6(ttl),
        }
    }

    /// Returns how many routers a datagram may pass.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn ttl(&self) -> io::Result<u32> {
        match self.local_addr()?.is_ipv4() {
            true => self.options().ttl_v4(),
            false => self.options().unicast_hops_v6(),
        }
    }

    /// Asks for room for so many bytes that were not yet received. The kernel has its own bounds and book-keeping.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn set_recv_buffer_size(&self, bytes: usize) -> io::Result<()> {
        self.options().set_recv_buffer_size(bytes)
    }

    /// Returns the room for what was not yet received, as the kernel counts: about twice what was asked for.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn recv_buffer_size(&self) -> io::Result<usize> {
        self.options().recv_buffer_size()
    }

    /// Asks for room for so many bytes that did not leave yet. The kernel has its own bounds and book-keeping.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn set_send_buffer_size(&self, bytes: usize) -> io::Result<()> {
        self.options().set_send_buffer_size(bytes)
    }

    /// Returns the room for what did not leave yet, as the kernel counts: about twice what was asked for.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn send_buffer_size(&self) -> io::Result<usize> {
        self.options().send_buffer_size()
    }

    /// Takes the error that waits to be reported by the next operation, if there is one.
    ///
    /// # Errors
    ///
    /// What the kernel reports about the question itself.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.options().take_error()
    }
}
