//! The chat: who hears what, and what becomes of those who do not read.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use greenroom_tests::{PATIENCE, example};

/// A running server, killed when a test fails and drops it.
struct Server {
    child: Child,
    address: String,
    /// Kept open: what the process still prints must not fail.
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    fn start(shards: usize) -> Self {
        let mut child = Command::new(example("chat"))
            .args(["--shards", &shards.to_string(), "--addr", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let mut words = line.split_whitespace();
        let address = words.find(|word| word.starts_with("127.0.0.1:"));
        let address = address
            .unwrap_or_else(|| panic!("no address in {line:?}"))
            .to_owned();
        Server {
            child,
            address,
            _stdout: stdout,
        }
    }

    /// Asks the process to end, and checks that it does so on good terms.
    fn stop(mut self) {
        let signalled = Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(signalled.success());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }

    /// Somebody in a room.
    fn guest(&self, nick: &str, room: &str) -> Client {
        let mut client = Client::connect(&self.address);
        client.say(&format!("/nick {nick}"));
        client.say(&format!("/join {room}"));
        client.hears(&format!("* you are in {room}"));
        client
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process has ended already unless a test failed, so errors tell nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Client {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
}

impl Client {
    fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let reader = BufReader::new(stream.try_clone().unwrap());
        let mut client = Client { stream, reader };
        assert!(client.line().starts_with("* welcome, guest"));
        client
    }

    fn say(&mut self, line: &str) {
        self.stream
            .write_all(format!("{line}\n").as_bytes())
            .unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Reads until this line, which comes.
    #[track_caller]
    fn hears(&mut self, wanted: &str) {
        loop {
            let line = self.line();
            assert!(!line.is_empty(), "{wanted:?} does not come");
            if line == wanted {
                return;
            }
        }
    }
}

#[test]
fn who_is_in_a_room_hears_what_is_said_there_in_order_and_nothing_else() {
    for shards in [1, 2, 4] {
        let server = Server::start(shards);
        let mut guests: Vec<_> = ["ada", "grace", "edsger"]
            .map(|nick| server.guest(nick, "lounge"))
            .into();
        let mut elsewhere = server.guest("alan", "garden");
        for number in 0..20 {
            guests[0].say(&format!("line {number}"));
        }
        for guest in &mut guests {
            guest.hears("ada: line 0");
            for number in 1..20 {
                assert_eq!(guest.line(), format!("ada: line {number}"));
            }
        }
        guests[1].say("/who");
        assert_eq!(guests[1].line(), "* ada edsger grace");
        elsewhere.say("anybody?");
        elsewhere.hears("alan: anybody?");
        server.stop();
    }
}

#[test]
fn a_room_hears_when_somebody_goes_and_goes_with_the_last_one() {
    let server = Server::start(2);
    let mut stays = server.guest("ada", "lounge");
    let hangs_up = server.guest("grace", "lounge");
    stays.hears("* grace is here");
    drop(hangs_up);
    stays.hears("* grace has left");
    let mut quits = server.guest("edsger", "lounge");
    quits.say("/quit");
    stays.hears("* edsger has left");
    stays.say("/who");
    stays.hears("* ada");
    stays.say("/leave");
    stays.hears("* you left lounge");
    stays.say("hello?");
    stays.hears("* what? /nick NAME, /join ROOM, /who, /leave, /quit");
    stays.say("/join lounge");
    stays.hears("* you are in lounge");
    stays.say("/who");
    stays.hears("* ada");
    server.stop();
}

#[test]
fn one_who_does_not_read_misses_lines_is_told_and_holds_nobody_up() {
    const LINES: usize = 30_000;
    for shards in [1, 2] {
        let server = Server::start(shards);
        let mut sleeper = server.guest("sleeper", "lounge");
        let mut talker = server.guest("talker", "lounge");
        let mut listener = server.guest("listener", "lounge");
        sleeper.hears("* listener is here");
        let padding = "x".repeat(400);
        let mut voice = talker.stream.try_clone().unwrap();
        let talking = thread::spawn(move || {
            for number in 0..LINES {
                let line = format!("{number} {padding}\n");
                voice.write_all(line.as_bytes()).unwrap();
            }
            voice.write_all(b"the end\n").unwrap();
        });
        let listening = thread::spawn(move || listener.hears("talker: the end"));
        // More than any socket holds; it comes through all the same.
        talker.hears("talker: the end");
        talking.join().unwrap();
        listening.join().unwrap();

        let (mut heard, mut missed) = (0, 0);
        loop {
            let line = sleeper.line();
            if line == "talker: the end" {
                break;
            }
            if let Some(count) = line.strip_prefix("* you missed ") {
                missed += count
                    .strip_suffix(" lines")
                    .unwrap()
                    .parse::<usize>()
                    .unwrap();
            } else {
                let number = line.strip_prefix("talker: ").unwrap();
                let number: usize = number.split(' ').next().unwrap().parse().unwrap();
                assert_eq!(
                    number,
                    heard + missed,
                    "what is missing is told where it is missing"
                );
                heard += 1;
            }
        }
        assert_eq!(heard + missed, LINES);
        assert!(missed > 0 && heard > 0, "{heard} heard, {missed} missed");
        server.stop();
    }
}
