//! Child processes: what they are given, what comes back, how they end, and that nothing is left of them.
//!
//! The tests take turns: some look at all children or descriptors of the process.

use std::fmt::Debug;
use std::fs;
use std::future::pending;
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::sync::{Mutex, PoisonError, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use greenroom_runtime::process::{Command, Stdio};
use greenroom_runtime::signal::SignalKind;
use greenroom_runtime::{Builder, Runtime, spawn, yield_now};

static TURNS: Mutex<()> = Mutex::new(());

/// Runs a test's body on a shard.
#[track_caller]
fn on_shard<F, Fut>(body: F) -> Fut::Output
where
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future + 'static,
    Fut::Output: Send + 'static,
{
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    runtime().run_on(0, body)
}

fn runtime() -> Runtime {
    Builder::new().shards(1).start().unwrap()
}

fn sh(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// The state of a process, as the kernel prints it in one letter; `None` if nothing is left of it.
fn state(id: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// Looks for something until nothing is left of it.
#[track_caller]
fn until_gone<T: Debug>(look: impl Fn() -> Option<T>) {
    let (_never, nothing) = mpsc::channel::<()>();
    for _ in 0..10_000 {
        if look().is_none() {
            return;
        }
        nothing.recv_timeout(Duration::from_millis(1)).unwrap_err();
    }
    panic!("still there: {:?}", look());
}

#[test]
fn a_child_gets_its_arguments_environment_and_directory() {
    on_shard(|| async {
        let mut command = sh(r#"echo "$0 $1 $SET $PATH $GONE"; pwd"#);
        command
            .args(["zero", "a b;c"])
            .env("GONE", "seen")
            .env_clear()
            .env("SET", "value")
            .env("TOO", "much")
            .env_remove("TOO")
            .current_dir("/proc");
        // A command can be used again.
        for command in [command.clone(), command] {
            let output = command.output().await.unwrap();
            let path = String::from_utf8(output.stdout).unwrap();
            let mut lines = path.lines();
            let first = lines.next().unwrap();
            assert!(first.starts_with("zero a b;c value "), "{first}");
            assert!(!first.contains("seen"), "{first}");
            assert_eq!(lines.next(), Some("/proc"));
            assert_eq!((output.status.code(), output.stderr), (Some(0), vec![]));
        }
    });
}

#[test]
fn the_exit_status_tells_code_and_signal() {
    on_shard(|| async {
        assert_eq!(sh("exit 7").status().await.unwrap().code(), Some(7));
        let status = sh("kill -TERM $$").status().await.unwrap();
        assert_eq!(status.signal(), Some(libc::SIGTERM));
    });
}

#[test]
fn a_program_that_cannot_run_is_an_error_and_leaves_nothing() {
    on_shard(|| async {
        let missing = Command::new("/no/such/program").spawn().await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        let denied = Command::new("/etc/passwd").spawn().await.unwrap_err();
        assert_eq!(denied.kind(), ErrorKind::PermissionDenied);
        let invalid = Command::new("a\0b").spawn().await.unwrap_err();
        assert_eq!(invalid.kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn much_flows_through_a_child_in_both_directions_at_once() {
    on_shard(|| async {
        const LEN: usize = 1 << 20;
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .await
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writer = spawn(async move {
            let bytes: Vec<u8> = (0..LEN).map(|at| at.to_le_bytes()[0]).collect();
            stdin.write_all(bytes).await.0.unwrap();
        });
        let mut all = Vec::new();
        let mut stdout = child.stdout.take().unwrap();
        assert_eq!(stdout.read_to_end(&mut all).await.unwrap(), LEN);
        assert!(
            all.iter()
                .enumerate()
                .all(|(at, byte)| *byte == at.to_le_bytes()[0])
        );
        writer.await.unwrap();
        assert!(child.wait().await.unwrap().success());
        assert_eq!(
            stdout.read([0; 8]).await.0.unwrap(),
            0,
            "the end stays the end"
        );
    });
}

#[test]
fn output_reads_both_pipes_whichever_fills_first() {
    on_shard(|| async {
        let script = "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero; echo end >&2; exit 1";
        let output = sh(script).output().await.unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(
            (output.stdout.len(), output.stderr.len()),
            (300_000, 300_004)
        );
    });
}

#[test]
fn output_gives_its_child_nothing_to_read() {
    const TEST: &str = "output_gives_its_child_nothing_to_read";
    if std::env::var_os("HAS_INPUT").is_none() {
        // In a process of its own, whose input is not nothing as well.
        let this = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", TEST])
            .env("HAS_INPUT", "a pipe")
            .stdin(std::process::Stdio::piped())
            .output()
            .unwrap();
        assert!(this.status.success(), "{this:?}");
        return;
    }
    on_shard(|| async {
        let input = sh("readlink /proc/self/fd/0").output().await.unwrap();
        assert_eq!(input.stdout, b"/dev/null\n");
    });
}

#[test]
fn waiting_closes_the_input_and_may_be_repeated() {
    on_shard(|| async {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .spawn()
            .await
            .unwrap();
        assert_eq!(child.try_wait().unwrap(), None);
        let id = child.id().unwrap();
        assert!(child.wait().await.unwrap().success());
        assert!(child.wait().await.unwrap().success());
        assert!(child.try_wait().unwrap().unwrap().success());
        assert_eq!((child.id(), state(id)), (None, None));
    });
}

#[test]
fn a_dropped_read_loses_no_bytes() {
    on_shard(|| async {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .await
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        for byte in 0..50_u8 {
            let mut cx = Context::from_waker(Waker::noop());
            assert!(pin!(stdout.read([0; 4])).poll(&mut cx).is_pending());
            stdin.write_all(vec![byte; 3]).await.0.unwrap();
        }
        drop(stdin);
        let mut all = Vec::new();
        stdout.read_to_end(&mut all).await.unwrap();
        let wanted: Vec<u8> = (0..50).flat_map(|byte| [byte; 3]).collect();
        assert_eq!(all, wanted);
        child.wait().await.unwrap();
    });
}

#[test]
fn writing_to_a_child_that_reads_no_more_is_a_broken_pipe() {
    on_shard(|| async {
        let mut child = Command::new("true")
            .stdin(Stdio::piped())
            .spawn()
            .await
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        child.wait().await.unwrap();
        let error = stdin.write_all("late").await.0.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        assert_eq!(stdin.write("").await.0.unwrap(), 0);
    });
}

#[test]
fn the_output_of_one_child_can_be_the_input_of_another() {
    on_shard(|| async {
        let mut first = Command::new("echo")
            .arg("through two")
            .stdout(Stdio::piped())
            .spawn()
            .await
            .unwrap();
        let pipe = first.stdout.take().unwrap().into_owned_fd().unwrap();
        let second = Command::new("tr")
            .args(["a-z", "A-Z"])
            .stdin(pipe)
            .output()
            .await
            .unwrap();
        assert_eq!(second.stdout, b"THROUGH TWO\n");
        first.wait().await.unwrap();
    });
}

#[test]
fn a_signal_reaches_the_child_until_it_was_waited_for() {
    on_shard(|| async {
        let mut child = Command::new("sleep").arg("1000").spawn().await.unwrap();
        child.signal(SignalKind::TERMINATE).unwrap();
        assert_eq!(child.wait().await.unwrap().signal(), Some(libc::SIGTERM));
        let error = child.signal(SignalKind::TERMINATE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        child.kill().await.unwrap();
    });
}

#[test]
fn a_dropped_wait_goes_on_with_the_next() {
    on_shard(|| async {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .spawn()
            .await
            .unwrap();
        let held = child.stdin.take();
        for _ in 0..5 {
            let mut cx = Context::from_waker(Waker::noop());
            let Poll::Pending = pin!(child.wait()).poll(&mut cx) else {
                panic!("it reads for ever");
            };
            yield_now().await;
        }
        drop(held);
        assert!(child.wait().await.unwrap().success());
    });
}

#[test]
fn a_dropped_child_runs_on_and_leaves_no_zombie() {
    let id = on_shard(|| async {
        let child = Command::new("cat")
            .stdin(Stdio::piped())
            .spawn()
            .await
            .unwrap();
        // With it goes its input, so it ends.
        child.id().unwrap()
    });
    until_gone(|| state(id));
}

#[test]
fn a_child_outlives_its_runtime_unless_it_is_to_be_killed() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let start = |kill: bool| {
        let runtime = runtime();
        let id = runtime.run_on(0, move || async move {
            let mut child = Command::new("sleep")
                .arg("1000")
                .kill_on_drop(kill)
                .spawn()
                .await?;
            let id = child.id().unwrap();
            spawn(async move {
                child.wait().await.unwrap();
                pending::<()>().await;
            })
            .detach();
            yield_now().await;
            Ok::<_, io::Error>(id)
        });
        runtime.shutdown();
        id.unwrap()
    };
    let killed = start(true);
    until_gone(|| state(killed));
    let survivor = start(false);
    let survived = state(survivor);
    let killed = std::process::Command::new("kill")
        .arg(survivor.to_string())
        .status();
    assert!(killed.unwrap().success());
    until_gone(|| state(survivor));
    assert!(survived.is_some_and(|state| state != 'Z'), "{survived:?}");
}

#[test]
fn a_spawn_that_is_dropped_half_way_is_a_dropped_child() {
    let marker = format!("1000.{}", std::process::id());
    let argument = marker.clone();
    on_shard(move || async move {
        let mut command = Command::new("sleep");
        command.arg(argument).kill_on_drop(true);
        for _ in 0..20 {
            let mut cx = Context::from_waker(Waker::noop());
            drop(pin!(command.spawn()).poll(&mut cx));
            yield_now().await;
        }
        // The pool serves in order: when this is done, those before it have been started or taken out.
        Command::new("true").status().await.unwrap();
    });
    until_gone(|| {
        fs::read_dir("/proc").unwrap().find_map(|entry| {
            let path = entry.unwrap().path();
            let line = fs::read(path.join("cmdline")).ok()?;
            let mut parts = line.windows(marker.len());
            parts.any(|part| part == marker.as_bytes()).then_some(path)
        })
    });
}

#[test]
fn a_child_inherits_no_descriptor_no_mask_and_no_pin() {
    // What this process was given by whoever started it goes on to its children.
    let before = std::process::Command::new("ls")
        .arg("/proc/self/fd")
        .output();
    let before = before.unwrap().stdout;
    on_shard(|| async move {
        // Descriptors of every kind that a shard makes.
        let listener = greenroom_runtime::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = spawn(greenroom_runtime::net::TcpStream::connect(address));
        let _server = listener.accept().await.unwrap();
        let _client = client.await.unwrap().unwrap();
        let _other = Command::new("sleep")
            .arg("1000")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .await
            .unwrap();

        let listed = Command::new("ls").arg("/proc/self/fd").output().await;
        assert_eq!(listed.unwrap().stdout, before);

        let status = Command::new("cat")
            .arg("/proc/self/status")
            .output()
            .await
            .unwrap();
        let status = String::from_utf8(status.stdout).unwrap();
        let field = |text: &str, name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap().trim().to_owned()
        };
        assert_eq!(field(&status, "SigBlk:"), "0000000000000000");
        let ignored = u64::from_str_radix(&field(&status, "SigIgn:"), 16).unwrap();
        assert_eq!(ignored & 1 << (libc::SIGPIPE - 1), 0);
        let own = fs::read_to_string("/proc/self/status").unwrap();
        let allowed = "Cpus_allowed_list:";
        assert_eq!(field(&status, allowed), field(&own, allowed));
    });
}

#[test]
fn fifty_children_at_once_are_all_waited_for() {
    let ids = on_shard(|| async {
        let children: Vec<_> = (0..50)
            .map(|code| {
                spawn(async move {
                    let mut child = sh(&format!("exit {code}")).spawn().await.unwrap();
                    let id = child.id().unwrap();
                    assert_eq!(child.wait().await.unwrap().code(), Some(code));
                    id
                })
            })
            .collect();
        let mut ids = Vec::new();
        for child in children {
            ids.push(child.await.unwrap());
        }
        ids
    });
    for id in ids {
        assert_eq!(state(id), None);
    }
}

#[test]
fn a_thread_that_is_no_shard_is_told_so() {
    let command = Command::new("true");
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(refused) = pin!(command.spawn()).poll(&mut cx) else {
        panic!("there is nothing to wait for");
    };
    assert!(refused.unwrap_err().to_string().contains("shard"));
}
