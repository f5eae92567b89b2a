//! A soak of three seconds, on each backend.

use std::process::Command;

#[test]
fn three_seconds_of_random_work_leave_nothing_behind() {
    for backend in ["io_uring", "epoll"] {
        let output = Command::new(env!("CARGO_BIN_EXE_soak"))
            .args(["--seconds", "3", "--seed", "3", "--backend", backend])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn what_is_not_understood_is_refused_with_the_usage() {
    for arguments in [
        &["--second", "3"][..],
        &["--seed"],
        &["--seed", "x"],
        &["--backend", "x"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_soak"))
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("usage: soak"), "{text}");
    }
}
