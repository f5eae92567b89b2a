//! Tests in processes of their own.

use std::env;
use std::process::Command;

/// Says in a child process which test it is for.
const CHILD: &str = "GREENROOM_TEST_CHILD";

/// Runs `body` in a process of its own, whose environment has this to say about backends.
pub(crate) fn alone(test: &str, variable: Option<&str>, body: impl FnOnce()) {
    if env::var(CHILD).is_ok_and(|name| name == test) {
        return body();
    }
    let mut child = Command::new(env::current_exe().unwrap());
    child
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, test);
    match variable {
        Some(value) => child.env("GREENROOM_BACKEND", value),
        None => child.env_remove("GREENROOM_BACKEND"),
    };
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
}
