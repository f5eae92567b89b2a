//! Every benchmark of the suite, small, on each backend: their results are right.

use std::process::{Command, Output};

fn savina(arguments: &[&str], backend: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_savina"))
        .args(arguments)
        .env("GREENROOM_BACKEND", backend)
        .output()
        .unwrap()
}

#[test]
fn all_benchmarks_come_to_the_right_result_on_one_shard_and_on_two() {
    for backend in ["io_uring", "epoll"] {
        let output = savina(&["--small", "--rounds", "1"], backend);
        assert!(output.status.success(), "{backend}: {output:?}");
    }
}

#[test]
fn what_is_not_understood_is_refused_with_the_usage() {
    for arguments in [
        &["no_such_benchmark"][..],
        &["--rounds"],
        &["--rounds", "0"],
        &["--shards", "1,x"],
    ] {
        let output = savina(arguments, "auto");
        assert_eq!(output.status.code(), Some(2));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("usage: savina"), "{text}");
    }
}
