//! The kinds of work.
//!
//! Each is a future that checks its own results and that may be dropped at any moment.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use futures_util::future::{Either, join_all, select};
use greenroom_runtime::fs::{self, File, FileReader, StreamOptions};
use greenroom_runtime::net::{TcpListener, TcpStream};
use greenroom_runtime::sync;
use greenroom_runtime::time::{Instant, sleep, timeout};
use greenroom_runtime::{
    Handle, blocking, current_shard, offload, random, spawn, spawn_anywhere, yield_now,
};

/// The text of panics that are part of the work.
pub(crate) const WANTED_PANIC: &str = "a panic that is part of the soak";

/// The kinds, in the order of [`Totals`].
const KINDS: [&str; 8] = [
    "echoes",
    "files",
    "streams",
    "timers",
    "tasks",
    "channels",
    "remote spawns",
    "jobs",
];

/// What the work of one round has in common.
pub(crate) struct Place {
    servers: Vec<SocketAddr>,
    dir: PathBuf,
    time: Duration,
    totals: Arc<Totals>,
    /// Values of the work that were not dropped yet, see [`Token`].
    tokens: Arc<AtomicI64>,
    failures: Mutex<Vec<String>>,
}

/// How much was done.
#[derive(Default)]
pub(crate) struct Totals {
    started: [AtomicU64; KINDS.len()],
    finished: [AtomicU64; KINDS.len()],
}

/// A value that is to be dropped once, wherever it has got to.
struct Token(Arc<AtomicI64>);

impl Place {
    pub(crate) fn new(servers: Vec<SocketAddr>, dir: PathBuf, time: Duration) -> Arc<Place> {
        Arc::new(Place {
            servers,
            dir,
            time,
            totals: Arc::default(),
            tokens: Arc::default(),
            failures: Mutex::default(),
        })
    }

    pub(crate) fn time(&self) -> Duration {
        self.time
    }

    pub(crate) fn totals(&self) -> Arc<Totals> {
        Arc::clone(&self.totals)
    }

    /// What is being done, for who is stuck.
    pub(crate) fn doing(&self) -> String {
        self.totals.to_string()
    }

    /// Results that must not be.
    pub(crate) fn failures(&self) -> Vec<String> {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut failures)
    }

    /// Says if values of the work were lost, or dropped twice.
    pub(crate) fn check(&self) -> Option<String> {
        // ORDERING: Relaxed; whoever dropped one has ended, which the main thread has learned through a channel.
        let left = self.tokens.load(Ordering::Relaxed);
        (left != 0).then(|| format!("{left} values of the work were not dropped"))
    }

    fn token(&self) -> Token {
        // ORDERING: Relaxed; a counter.
        self.tokens.fetch_add(1, Ordering::Relaxed);
        Token(Arc::clone(&self.tokens))
    }

    fn fail(&self, kind: usize, text: &str) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        // One mistake shows in many places; the first of them tell enough.
        if failures.len() < 20 {
            failures.push(format!("{}: {text}", KINDS[kind]));
        }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        // ORDERING: Relaxed; a counter.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, name) in KINDS.iter().enumerate() {
            // ORDERING: Relaxed; counters.
            let started = self.started[kind].load(Ordering::Relaxed);
            // ORDERING: Relaxed; counters.
            let finished = self.finished[kind].load(Ordering::Relaxed);
            let comma = if kind == 0 { "" } else { ", " };
            write!(f, "{comma}{finished} of {started} {name}")?;
        }
        Ok(())
    }
}

/// A random number below a limit.
fn below(limit: u64) -> u64 {
    random() % limit
}

fn below_usize(limit: usize) -> usize {
    usize::try_from(below(limit as u64)).expect("below a usize")
}

/// Work after work, about half of it dropped at a random moment, until the time is over.
pub(crate) async fn until_the_end(place: &Arc<Place>) {
    let end = Instant::now() + place.time;
    while Instant::now() < end {
        let kind = below_usize(KINDS.len());
        // ORDERING: Relaxed; counters.
        place.totals.started[kind].fetch_add(1, Ordering::Relaxed);
        let result = if below(2) == 0 {
            timeout(Duration::from_micros(below(4000)), work(place, kind)).await
        } else {
            Ok(work(place, kind).await)
        };
        match result {
            Ok(Ok(())) => {
                // ORDERING: Relaxed; counters.
                place.totals.finished[kind].fetch_add(1, Ordering::Relaxed);
            }
            Ok(Err(text)) => place.fail(kind, &text),
            // Dropped on the way.
            Err(_) => {}
        }
    }
}

async fn work(place: &Arc<Place>, kind: usize) -> Result<(), String> {
    let _token = place.token();
    match kind {
        0 => echo(place).await,
        1 => files(place).await,
        2 => streams(place).await,
        3 => timers().await,
        4 => tasks(place).await,
        5 => channels(place).await,
        6 => remote(place).await,
        _ => jobs(place).await,
    }
}

/// Sends back what it is sent, on every connection, until it is aborted.
pub(crate) async fn serve(tell: mpsc::Sender<SocketAddr>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    tell.send(listener.local_addr().expect("it is bound"))
        .expect("the main thread waits for it");
    drop(tell);
    // A server that ended would show as connections that are refused.
    while let Ok((mut stream, _)) = listener.accept().await {
        spawn(async move {
            // Ends with the client, which may go at any moment.
            if below(2) == 0 {
                while let Ok(Some(bytes)) = stream.recv().await {
                    if stream.write_all(bytes).await.0.is_err() {
                        return;
                    }
                }
            } else {
                let mut buffer = Vec::with_capacity(4096);
                loop {
                    let (count, read) = stream.read(buffer).await;
                    if !matches!(count, Ok(1..)) {
                        return;
                    }
                    let (result, written) = stream.write_all(read).await;
                    buffer = written;
                    if result.is_err() {
                        return;
                    }
                }
            }
        })
        .detach();
    }
}

/// Bytes that differ from those of others.
fn pattern(len: usize) -> Vec<u8> {
    let seed = random().to_le_bytes();
    (0..len).map(|n| seed[n % 8] ^ n.to_le_bytes()[0]).collect()
}

async fn echo(place: &Place) -> Result<(), String> {
    let server = place.servers[below_usize(place.servers.len())];
    let said = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(server).await.map_err(said)?;
    for _ in 0..=below(4) {
        let sent = pattern(1 + below_usize(20_000));
        let (result, sent) = stream.write_all(sent).await;
        result.map_err(said)?;
        let echo = vec![0; sent.len()].into_boxed_slice();
        let (result, echo) = stream.read_exact(echo).await;
        result.map_err(said)?;
        if echo[..] != sent[..] {
            return Err(format!("{} bytes came back as others", sent.len()));
        }
    }
    Ok(())
}

async fn files(place: &Place) -> Result<(), String> {
    let path = place.dir.join(format!("{:016x}", random()));
    let moved = path.with_extension("moved");
    let result = async {
        let file = File::create_new(&path).await?;
        let offset = below(10_000);
        let (result, written) = file
            .write_all_at(pattern(1 + below_usize(50_000)), offset)
            .await;
        result?;
        if below(8) == 0 {
            file.sync_data().await?;
        }
        fs::rename(&path, &moved).await?;
        let (result, read) = file
            .read_exact_at(vec![0; written.len()].into_boxed_slice(), offset)
            .await;
        result?;
        if below(2) == 0 {
            file.close().await?;
        }
        let len = fs::metadata(&moved).await?.len();
        let same = read[..] == written[..] && len == offset + written.len() as u64;
        fs::remove_file(&moved).await?;
        Ok::<bool, std::io::Error>(same)
    };
    match result.await {
        Ok(true) => Ok(()),
        Ok(false) => Err("a file holds other bytes than were written".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

async fn streams(place: &Place) -> Result<(), String> {
    let path = place.dir.join(format!("{:016x}", random()));
    let result = async {
        let options = StreamOptions::new()
            .block_size(4096)
            .depth(1 + below_usize(4));
        let written = pattern(below_usize(60_000));
        let mut writer = options.writer(File::create(&path).await?)?;
        for piece in written.chunks(1 + below_usize(9000)) {
            writer.write_all(piece).await?;
        }
        // Flushed first: a debug build speaks of every writer that is dropped with something in it.
        writer.flush().await?;
        writer.close().await?;
        let mut read = Vec::new();
        FileReader::new(File::open(&path).await?)
            .read_to_end(&mut read)
            .await?;
        fs::remove_file(&path).await?;
        Ok::<bool, std::io::Error>(read == written)
    };
    match result.await {
        Ok(true) => Ok(()),
        Ok(false) => Err("a stream holds other bytes than were written".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

async fn timers() -> Result<(), String> {
    let start = Instant::now();
    let short = Duration::from_micros(below(3000));
    let sleeps = (0..below(20)).map(|_| sleep(Duration::from_millis(below(3))));
    match select(Box::pin(join_all(sleeps)), Box::pin(sleep(short))).await {
        Either::Left(_) => {}
        Either::Right(_) if start.elapsed() < short => {
            return Err(format!(
                "a sleep of {short:?} ended after {:?}",
                start.elapsed()
            ));
        }
        Either::Right(_) => {}
    }
    Ok(())
}

async fn tasks(place: &Arc<Place>) -> Result<(), String> {
    let spawned = (0..below(20)).map(|number| {
        let token = place.token();
        let steps = below(4);
        let panics = below(50) == 0;
        let handle = spawn(async move {
            let _token = token;
            for _ in 0..steps {
                yield_now().await;
            }
            if panics {
                panic!("{WANTED_PANIC}");
            }
            sleep(Duration::from_micros(below(500))).await;
            number
        });
        (number, panics, handle)
    });
    let spawned: Vec<_> = spawned.collect();
    for (number, panics, handle) in spawned {
        match below(4) {
            0 => handle.abort(),
            1 => {
                handle.detach();
                continue;
            }
            _ => {}
        }
        match handle.await {
            Ok(found) if found == number && !panics => {}
            Err(error) if error.is_cancelled() || (error.is_panic() && panics) => {}
            other => {
                return Err(format!(
                    "task {number}, panics {panics}, ended with {other:?}"
                ));
            }
        }
    }
    Ok(())
}

async fn channels(place: &Arc<Place>) -> Result<(), String> {
    let count = below(200);
    if below(2) == 0 {
        let (sender, mut receiver) = sync::mpsc::channel(1 + below_usize(8));
        let place = Arc::clone(place);
        spawn(async move {
            for number in 0..count {
                if sender.send((number, place.token())).await.is_err() {
                    return;
                }
            }
        })
        .detach();
        for number in 0..count {
            let found = receiver.recv().await.map(|(found, _)| found);
            if found != Some(number) {
                return Err(format!("{found:?} came instead of {number}"));
            }
        }
    } else {
        let (sender, mut receiver) = sync::cross::mpsc::channel(1 + below_usize(8));
        let handle = Handle::current().expect("it runs on a shard");
        let shard = random_shard(&handle);
        let place = Arc::clone(place);
        handle
            .spawn_on(shard, move || async move {
                for number in 0..count {
                    if sender.send((number, place.token())).await.is_err() {
                        return;
                    }
                }
            })
            .detach();
        for number in 0..count {
            let found = receiver.recv().await.map(|(found, _)| found);
            if found != Some(number) {
                return Err(format!("{found:?} came instead of {number} from {shard}"));
            }
        }
    }
    Ok(())
}

fn random_shard(handle: &Handle) -> greenroom_runtime::ShardId {
    let index = below_usize(handle.shard_count());
    handle.shards().nth(index).expect("below the count")
}

async fn remote(place: &Arc<Place>) -> Result<(), String> {
    let handle = Handle::current().expect("it runs on a shard");
    let shard = random_shard(&handle);
    let token = place.token();
    let spawned = handle.spawn_on(shard, move || async move {
        for _ in 0..below(3) {
            yield_now().await;
        }
        (current_shard(), token)
    });
    match below(4) {
        0 => spawned.abort(),
        1 => {
            spawned.detach();
            return Ok(());
        }
        _ => {}
    }
    match spawned.await {
        Ok((found, _token)) if found == Some(shard) => Ok(()),
        Ok((found, _token)) => Err(format!("{found:?} ran what was for {shard}")),
        Err(error) if error.is_cancelled() => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

async fn jobs(place: &Arc<Place>) -> Result<(), String> {
    let wanted = below(1000);
    let token = place.token();
    let job = move || {
        let _token = token;
        // A moment on a thread of the pool, without a sleep.
        (0..wanted * 20).fold(0_u64, |sum, n| std::hint::black_box(sum.wrapping_add(n)));
        wanted
    };
    let found = match below(3) {
        0 => blocking::run(job).await.map_err(|error| error.to_string()),
        1 => offload(job).await.map_err(|error| error.to_string()),
        _ => spawn_anywhere(move || async move { job() })
            .await
            .map_err(|error| error.to_string()),
    };
    match found? {
        found if found == wanted => Ok(()),
        found => Err(format!("a job returned {found} instead of {wanted}")),
    }
}
