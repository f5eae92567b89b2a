//! Supervision: what fails is made anew, and what fails too often is given up.

use std::process::Command;

use greenroom_tests::example;

#[test]
fn what_fails_is_made_anew_and_what_fails_too_often_is_given_up() {
    let output = Command::new(example("supervision")).output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "the second reader has read 1 line, the sum is 7",
            "the second store has 5",
            "2 restarts so far",
        ]
    );
    assert!(
        lines[3].starts_with("Plant ended: a child failed: Machine"),
        "{said}"
    );
    assert!(lines[3].contains("the machine is broken"), "{said}");
    assert!(lines[4].ends_with("the actor has stopped"), "{said}");
    assert_eq!(lines.len(), 5);
}
