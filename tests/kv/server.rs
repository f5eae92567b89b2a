//! The example as a child process.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use greenroom_tests::example;

/// A running server, killed when a test fails and drops it.
pub(crate) struct Server {
    child: Child,
    address: String,
    /// Kept open: what the process still prints must not fail.
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    pub(crate) fn start(shards: usize) -> Self {
        let mut child = Command::new(example("kv"))
            .args(["--shards", &shards.to_string(), "--addr", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let address = line
            .split_whitespace()
            .find(|word| word.starts_with("127.0.0.1:"));
        let address = address
            .unwrap_or_else(|| panic!("no address in {line:?}"))
            .to_owned();
        Server {
            child,
            address,
            _stdout: stdout,
        }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// How much memory the process has.
    pub(crate) fn resident_bytes(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap();
        let kib: usize = line.trim().trim_end_matches(" kB").parse().unwrap();
        kib << 10
    }

    /// Asks the process to end.
    pub(crate) fn signal(&self) {
        let signalled = Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(signalled.success());
    }

    /// Asks the process to end, and waits until it has begun to.
    pub(crate) fn begin_to_stop(&self) {
        self.signal();
        while TcpStream::connect(&self.address).is_ok() {}
    }

    /// Waits for the end of the process.
    pub(crate) fn exit_status(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Asks the process to end, and checks that it does so on good terms.
    pub(crate) fn stop(self) {
        self.signal();
        assert_eq!(self.exit_status().code(), Some(0));
    }
}

/// Runs the example with arguments that it cannot start with; returns its exit code and what it says.
pub(crate) fn fail_to_start(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(example("kv"))
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.stdout.is_empty());
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process has ended already unless a test failed, so errors tell nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
