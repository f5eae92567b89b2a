//! Running a server, loading it, and reading what that cost.

use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 50;
/// How many requests each connection has in flight.
const DEPTHS: [usize; 2] = [1, 16];
/// The kernel counts CPU time in hundredths of a second here, on every architecture.
const TICKS_PER_SECOND: f64 = 100.0;
/// How long a server may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server to measure.
pub(crate) struct Candidate {
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
    /// What comes before the port.
    pub(crate) arguments: Vec<&'static str>,
}

/// How to measure.
pub(crate) struct Bench {
    pub(crate) rounds: usize,
    pub(crate) requests: usize,
    pub(crate) server_cpu: usize,
    pub(crate) client_cpu: usize,
}

/// What one measurement gave.
#[derive(Clone, Copy)]
struct Sample {
    requests_per_second: f64,
    /// CPU time of the server, kernel included.
    us_per_request: f64,
}

impl Bench {
    /// Measures all candidates in each round, and prints the medians.
    pub(crate) fn run(&self, candidates: &[Candidate]) -> io::Result<()> {
        let mut samples = vec![[const { Vec::new() }; DEPTHS.len()]; candidates.len()];
        for round in 1..=self.rounds {
            for (candidate, samples) in candidates.iter().zip(&mut samples) {
                eprintln!("echo_bench: round {round}: {}", candidate.name);
                for (found, samples) in self.measure(candidate)?.into_iter().zip(samples) {
                    samples.push(found);
                }
            }
        }
        print!("{:10}", "server");
        for depth in DEPTHS {
            print!("  {:>12} {:>10}", format!("req/s P={depth}"), "us/req");
        }
        println!();
        for (candidate, samples) in candidates.iter().zip(&samples) {
            print!("{:10}", candidate.name);
            for samples in samples {
                let rate = median(samples.iter().map(|sample| sample.requests_per_second));
                let cost = median(samples.iter().map(|sample| sample.us_per_request));
                print!("  {rate:12.0} {cost:10.3}");
            }
            println!();
        }
        Ok(())
    }

    fn measure(&self, candidate: &Candidate) -> io::Result<Vec<Sample>> {
        let server = Server::start(candidate, self.server_cpu)?;
        DEPTHS
            .iter()
            .map(|depth| self.load(&server, *depth))
            .collect()
    }

    /// Loads the server once.
    fn load(&self, server: &Server, depth: usize) -> io::Result<Sample> {
        let requests = self.requests * depth;
        let before = server.cpu_seconds()?;
        let output = Command::new("taskset")
            .args(["-c", &self.client_cpu.to_string(), "redis-benchmark", "-q"])
            .args(["-t", "ping_inline", "--csv"])
            .args(["-p", &server.port.to_string()])
            .args(["-c", &CONNECTIONS.to_string()])
            .args(["-P", &depth.to_string()])
            .args(["-n", &requests.to_string()])
            .output()?;
        let cpu_seconds = server.cpu_seconds()? - before;
        let text = String::from_utf8_lossy(&output.stdout);
        let rate = text
            .lines()
            .find_map(|line| line.strip_prefix("\"PING_INLINE\",\""))
            .and_then(|rest| rest.split('"').next()?.parse().ok());
        let Some(requests_per_second) = rate else {
            return Err(io::Error::other(format!(
                "redis-benchmark printed no rate: {text}"
            )));
        };
        let requests = u32::try_from(requests).map_or(f64::INFINITY, f64::from);
        Ok(Sample {
            requests_per_second,
            us_per_request: cpu_seconds * 1e6 / requests,
        })
    }
}

/// A server that runs until this is dropped.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    fn start(candidate: &Candidate, cpu: usize) -> io::Result<Server> {
        // Free a moment ago; servers listen at a port they are told.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let process = Command::new("taskset")
            .args(["-c", &cpu.to_string()])
            .arg(&candidate.program)
            .args(&candidate.arguments)
            .arg(port.to_string())
            .stdout(Stdio::null())
            .spawn()?;
        let mut server = Server { process, port };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if start.elapsed() > PATIENCE || server.process.try_wait()?.is_some() {
                let name = candidate.name;
                return Err(io::Error::other(format!("{name} does not listen")));
            }
            #[expect(
                clippy::disallowed_methods,
                reason = "another process is waited for, and no shard runs here"
            )]
            thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    /// CPU time so far, of all threads, in user space and in the kernel.
    fn cpu_seconds(&self) -> io::Result<f64> {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        // The second field is a name in brackets, which may hold anything; times are the 14th and 15th.
        let fields = text.rsplit(')').next().unwrap_or_default();
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks: f64 = ticks.filter_map(|field| field.parse::<f64>().ok()).sum();
        Ok(ticks / TICKS_PER_SECOND)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails if it has ended by itself.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
