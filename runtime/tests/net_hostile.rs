//! Sockets in a process that is short of descriptors, is interrupted all the time, or closes what it should not.
//!
//! What these tests do concerns a whole process, so each of them runs in one of its own: the test starts its own binary
//! again, for this one test, and looks at how it ends.
#![expect(
    unsafe_code,
    reason = "sets limits and timers, and closes descriptors behind the back of their owners"
)]

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::mem;
use std::net::TcpStream as StdStream;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::Command;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use greenroom_runtime::net::{
    ConnectError, DescriptorsLost, TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixStream,
};
use greenroom_runtime::{Builder, spawn, yield_now};

const CHILD: &str = "GREENROOM_TEST_CHILD";

/// Runs a test on a shard, in a process of its own.
fn in_child<F>(name: &str, test: impl FnOnce() -> F + Send + 'static)
where
    F: Future<Output = io::Result<()>> + 'static,
{
    if std::env::var_os(CHILD).is_some() {
        let runtime = Builder::new().shards(1).pin(false).start().unwrap();
        runtime.run_on(0, test).unwrap();
        assert_eq!(runtime.shutdown().leaked_operations(), 0);
        return;
    }
    let binary = std::env::current_exe().unwrap();
    let child = Command::new(binary)
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text =
        [child.stdout, child.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(
        child.status.success() && text[0].contains("1 passed"),
        "{}\n{}",
        text[0],
        text[1]
    );
}

/// Opens files until there is no room for one more.
fn fill_the_table() -> Vec<OwnedFd> {
    let limit = libc::rlimit {
        rlim_cur: 64,
        rlim_max: 64,
    };
    // SAFETY: the pointer is valid for reads.
    let result = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    assert_eq!(result, 0);
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file.into());
        assert!(files.len() <= 64, "the limit does not hold");
    }
    files
}

fn is_table_full(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMFILE)
}

#[test]
fn a_full_table_of_descriptors_is_an_error_that_passes() {
    in_child(
        "a_full_table_of_descriptors_is_an_error_that_passes",
        || async {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let address = listener.local_addr()?;
            let udp = UdpSocket::bind("127.0.0.1:0")?;
            let mut files = fill_the_table();

            assert!(is_table_full(&UdpSocket::bind("127.0.0.1:0").unwrap_err()));
            assert!(is_table_full(
                &TcpListener::bind("127.0.0.1:0").unwrap_err()
            ));
            assert!(is_table_full(&UnixStream::pair().unwrap_err()));
            assert!(is_table_full(&UnixDatagram::unbound().unwrap_err()));
            let error = TcpStream::connect(address).await.unwrap_err();
            let inner: &ConnectError = error.get_ref().unwrap().downcast_ref().unwrap();
            assert!(is_table_full(&inner.attempts()[0].1), "{error}");
            udp.send_to("open sockets work", udp.local_addr()?)
                .await
                .0?;
            assert_eq!(udp.recv([0; 32]).await.0?.len, 17);

            // Room for one end of a connection, and none for the other.
            files.pop();
            let mut client = TcpStream::connect(address).await?;
            assert!(is_table_full(&listener.accept().await.unwrap_err()));
            files.pop();
            let (mut server, peer) = listener.accept().await?;
            assert_eq!(peer, client.local_addr()?, "the connection waited");
            client.write_all("hello").await.0?;
            assert_eq!(server.read_exact([0; 5]).await.1, *b"hello");
            Ok(())
        },
    );
}

#[test]
fn descriptors_without_room_are_reported_and_their_bytes_stay() {
    in_child(
        "descriptors_without_room_are_reported_and_their_bytes_stay",
        || async {
            let (mut one, mut other) = UnixStream::pair()?;
            let (from, to) = UnixDatagram::pair()?;
            let file: OwnedFd = File::open("/dev/null")?.into();
            let (_, (_, sent)) = one.send_with_fds("stream", vec![file]).await;
            let (_, (_, sent)) = from.send_with_fds("datagram", sent).await;
            let mut files = fill_the_table();

            let (result, bytes) = other.recv_with_fds([0; 6], 1).await;
            let error = result.unwrap_err();
            let lost: &DescriptorsLost = error.get_ref().unwrap().downcast_ref().unwrap();
            assert_eq!((lost.len(), &bytes), (6, b"stream"));
            let (result, bytes) = to.recv_with_fds([0; 8], 1).await;
            assert_eq!(
                (result.unwrap_err().kind(), &bytes),
                (ErrorKind::InvalidData, b"datagram")
            );

            files.pop();
            let (_, (_, sent)) = one.send_with_fds("again", sent).await;
            let (result, _) = other.recv_with_fds([0; 8], 1).await;
            assert_eq!(result?.1.len(), 1, "nothing was leaked: the room is there");
            drop(sent);
            Ok(())
        },
    );
}

/// Whether an operation on a descriptor ended with an error of that number.
fn failed_with<T>(result: &io::Result<T>, errno: i32) -> bool {
    matches!(result, Err(error) if error.raw_os_error() == Some(errno))
}

/// Puts another open file behind the number of a descriptor.
fn replace(fd: &impl AsFd, by: &File) {
    // SAFETY: takes no pointers.
    let result = unsafe { libc::dup2(by.as_raw_fd(), fd.as_fd().as_raw_fd()) };
    assert!(result >= 0, "{}", io::Error::last_os_error());
}

#[test]
fn a_descriptor_that_is_closed_or_no_socket_gives_errors() {
    in_child(
        "a_descriptor_that_is_closed_or_no_socket_gives_errors",
        || async {
            let null = File::open("/dev/null")?;
            for (is_closed, errno) in [(true, libc::EBADF), (false, libc::ENOTSOCK)] {
                let udp = UdpSocket::bind("127.0.0.1:0")?;
                let target = udp.local_addr()?;
                let (mut stream, _peer) = UnixStream::pair()?;
                let (datagram, _other) = UnixDatagram::pair()?;
                let fds = [udp.as_fd(), stream.as_fd(), datagram.as_fd()].map(|fd| fd.as_raw_fd());
                for fd in fds {
                    if is_closed {
                        // SAFETY: takes no pointers. Its owner still has the number, which gets a new file below.
                        let result = unsafe { libc::close(fd) };
                        assert_eq!(result, 0);
                    } else {
                        // SAFETY: takes no pointers.
                        let result = unsafe { libc::dup2(null.as_raw_fd(), fd) };
                        assert_eq!(result, fd);
                    }
                }
                assert!(failed_with(&udp.recv_from([0; 4]).await.0, errno));
                assert!(failed_with(&udp.send_to("x", target).await.0, errno));
                assert!(failed_with(&udp.try_recv([0; 4]).0, errno));
                assert!(failed_with(&udp.local_addr(), errno));
                assert!(failed_with(&stream.read([0; 4]).await.0, errno));
                assert!(failed_with(&stream.write_all("x").await.0, errno));
                assert!(failed_with(&stream.recv().await, errno));
                assert!(failed_with(&stream.recv_with_fds([0; 4], 1).await.0, errno));
                assert!(failed_with(&stream.peer_cred(), errno));
                assert!(failed_with(&datagram.send("x").await.0, errno));
                for fd in [udp.as_fd(), stream.as_fd(), datagram.as_fd()] {
                    replace(&fd, &null);
                }
            }
            Ok(())
        },
    );
}

/// The signals that were heard.
static SIGNALS: AtomicU64 = AtomicU64::new(0);

/// Interrupts system calls of this process a few thousand times a second.
fn start_storm() {
    extern "C" fn count(_signal: libc::c_int) {
        // ORDERING: Relaxed; a count, read at the end.
        SIGNALS.fetch_add(1, Ordering::Relaxed);
    }
    let handler: extern "C" fn(libc::c_int) = count;
    // SAFETY: all zeroes is an action without flags, `SA_RESTART` among them, and with an empty mask.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    // SAFETY: the handler does nothing but add to an atomic.
    let result = unsafe { libc::sigaction(libc::SIGALRM, &raw const action, ptr::null_mut()) };
    assert_eq!(result, 0);
    let interval = libc::timeval {
        tv_sec: 0,
        tv_usec: 300,
    };
    let timer = libc::itimerval {
        it_interval: interval,
        it_value: interval,
    };
    // SAFETY: the pointer is valid for reads.
    let result = unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut()) };
    assert_eq!(result, 0);
}

#[test]
fn a_storm_of_signals_changes_nothing() {
    in_child("a_storm_of_signals_changes_nothing", || async {
        // Started on the one thread that lives as long as the test, and heard by any.
        start_storm();
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let echo = spawn(async move {
            for _ in 0..50 {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (result, bytes) = stream.read_exact(vec![0; 100_000].into_boxed_slice()).await;
                result.unwrap();
                stream.write_all(bytes).await.0.unwrap();
            }
        });
        let (from, to) = UnixDatagram::pair()?;
        let udp = UdpSocket::bind("127.0.0.1:0")?;
        for round in 0..50_u8 {
            let mut client = TcpStream::connect(address).await?;
            client.write_all(vec![round; 100_000]).await.0?;
            let (result, bytes) = client.read_exact(vec![0; 100_000].into_boxed_slice()).await;
            result?;
            assert!(bytes.iter().all(|&byte| byte == round));
            for _ in 0..20 {
                from.send([round]).await.0?;
                udp.try_send_to([round], udp.local_addr()?).0?;
                yield_now().await;
                assert_eq!(to.recv([0; 2]).await.1[0], round);
                assert_eq!(udp.recv([0; 2]).await.1[0], round);
            }
        }
        echo.await.unwrap();
        assert!(SIGNALS.load(Ordering::Relaxed) > 0, "there was no storm");
        Ok(())
    });
}

/// A connection whose other end is reset when it is closed.
fn resetting() -> io::Result<(TcpStream, StdStream)> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let near = StdStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    socket2::SockRef::from(&far).set_linger(Some(std::time::Duration::ZERO))?;
    Ok((TcpStream::from_std(near)?, far))
}

#[test]
fn a_reset_in_the_middle_is_told_and_gives_the_buffer_back() {
    in_child(
        "a_reset_in_the_middle_is_told_and_gives_the_buffer_back",
        || async {
            let (mut stream, mut peer) = resetting()?;
            peer.write_all(b"12")?;
            let reset = spawn(async move { drop(peer) });
            let (result, bytes) = stream.read_exact([0; 4]).await;
            assert_eq!(
                (result.unwrap_err().kind(), &bytes[..2]),
                (ErrorKind::ConnectionReset, b"12".as_slice())
            );
            reset.await.unwrap();

            let (mut stream, peer) = resetting()?;
            let reset = spawn(async move {
                for _ in 0..8 {
                    yield_now().await;
                }
                drop(peer);
            });
            // More than sockets hold, and more than one call can say.
            let huge = vec![7_u8; 20_000_000];
            let (result, huge) = stream.write_all(huge).await;
            let kind = result.unwrap_err().kind();
            assert!(
                [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe].contains(&kind),
                "{kind}"
            );
            assert_eq!(huge.len(), 20_000_000);
            reset.await.unwrap();

            let (stream, peer) = resetting()?;
            drop(peer);
            let mut moved = stream.detach().await?.attach();
            assert_eq!(
                moved.recv().await.unwrap_err().kind(),
                ErrorKind::ConnectionReset
            );
            Ok(())
        },
    );
}

#[test]
fn a_write_of_more_than_two_gibibytes_takes_what_the_socket_takes() {
    in_child(
        "a_write_of_more_than_two_gibibytes_takes_what_the_socket_takes",
        || async {
            let (mut stream, mut other) = UnixStream::pair()?;
            // Zeroed memory of this size is mapped, not touched.
            let huge = vec![0_u8; (1 << 31) + 10];
            let (result, mut huge) = stream.write(huge).await;
            let count = result?;
            assert!(count > 0 && count < 1 << 31, "{count}");
            assert_eq!(huge.len(), (1 << 31) + 10);
            huge.clear();
            let (result, huge) = other.read(huge).await;
            assert_eq!(result?, huge.len());
            assert!(huge.len() <= count && !huge.is_empty());
            Ok(())
        },
    );
}
