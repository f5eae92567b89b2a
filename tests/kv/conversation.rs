//! A client that checks what it hears.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Longer than any answer takes, so that a missing one fails the test instead of hanging it.
const PATIENCE: Duration = Duration::from_secs(20);

/// One connection.
pub(crate) struct Conversation {
    pub(crate) stream: TcpStream,
}

impl Conversation {
    pub(crate) fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Conversation { stream }
    }

    /// Says lines without listening, from another thread: the server may not take them before it is heard.
    pub(crate) fn say(&mut self, request: &str) {
        let mut stream = self.stream.try_clone().unwrap();
        let bytes = format!("{request}\r\n").into_bytes();
        std::thread::spawn(move || stream.write_all(&bytes));
    }

    /// Says lines and hears exactly `reply`.
    #[track_caller]
    pub(crate) fn hears(&mut self, request: &str, reply: &str) {
        self.say(request);
        let mut heard = vec![0; reply.len()];
        let mut length = 0;
        // Compares as it goes: a shorter answer is told at once and not after the time-out.
        while length < heard.len() {
            let read = self.stream.read(&mut heard[length..]).unwrap_or(0);
            length += read;
            if read == 0 || heard[..length] != reply.as_bytes()[..length] {
                break;
            }
        }
        let show = |bytes: &[u8]| bytes[..bytes.len().min(2000)].escape_ascii().to_string();
        assert!(
            heard[..length] == *reply.as_bytes(),
            "after {}: heard {:?} instead of {:?}",
            show(request.as_bytes()),
            show(&heard[..length]),
            show(reply.as_bytes()),
        );
    }

    /// Says a line until it hears `reply`, each time an answer of that length.
    #[track_caller]
    pub(crate) fn until(&mut self, request: &str, reply: &str) {
        let start = Instant::now();
        let mut heard = vec![0; reply.len()];
        while heard != reply.as_bytes() {
            assert!(
                start.elapsed() < PATIENCE,
                "{request} is never answered with {reply:?}"
            );
            self.say(request);
            self.stream.read_exact(&mut heard).unwrap();
        }
    }

    /// Hears `count` bytes of any kind.
    #[track_caller]
    pub(crate) fn passes_over(&mut self, count: usize) {
        self.stream.read_exact(&mut vec![0; count]).unwrap();
    }

    /// Hears all there is until the server hangs up.
    #[track_caller]
    pub(crate) fn rest(&mut self) -> String {
        let mut heard = Vec::new();
        self.stream.read_to_end(&mut heard).unwrap();
        String::from_utf8(heard).unwrap()
    }
}
