//! The bank: its books are right whatever happens to its accounts.

use std::process::Command;

use greenroom_tests::example;

/// Runs the bank; returns what it says of each round.
fn rounds(shards: usize) -> Vec<String> {
    let output = Command::new(example("bank"))
        .args(["--shards", &shards.to_string(), "--transfers", "400"])
        .args(["--rounds", "2", "--accounts", "50"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    said.lines().map(str::to_owned).collect()
}

/// The number before a word.
fn count(line: &str, what: &str) -> u64 {
    let before = line.split(what).next().unwrap();
    before.split_whitespace().last().unwrap().parse().unwrap()
}

#[test]
fn accounts_are_killed_and_no_coin_is_lost_or_made() {
    for shards in [1, 2, 4] {
        let rounds = rounds(shards);
        assert_eq!(rounds.len(), 2);
        let mut killed = 0;
        for round in &rounds {
            assert!(round.ends_with(" 50000 coins"), "{round}");
            assert_eq!(count(round, " transfers") + count(round, " refused"), 400);
            killed += count(round, " accounts killed");
        }
        assert!(killed > 0, "nobody was killed: {rounds:?}");
    }
}
