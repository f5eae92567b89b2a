//! The chapter that compares counters shows programs that are in the tree, whole.

use super::{report, root};

const CHAPTER: &str = "book/src/tutorial/defining-actors.md";
/// What marks the first line of the counter's own code, how its block is marked, and where it is.
const COUNTERS: [(&str, &str, &str); 4] = [
    ("use actix", "rust,ignore", "src/bin/counter_actix.rs"),
    ("use ractor", "rust,ignore", "src/bin/counter_ractor.rs"),
    ("use kameo", "rust,ignore", "src/bin/counter_kameo.rs"),
    ("-module", "erlang", "foreign/counter.erl"),
];

#[test]
fn counters_of_others_are_shown_as_they_are_built() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("the file is there");
    let chapter = read(CHAPTER);
    let mut offences = Vec::new();
    for (start, mark, path) in COUNTERS {
        let path = format!("benches/peers/{path}");
        let text = read(&path);
        let code = &text[text.find(start).expect("it has a first line")..];
        if !chapter.contains(&format!("```{mark}\n{code}```")) {
            offences.push(format!(
                "{CHAPTER}: its block is not what {path} has: copy it"
            ));
        }
        let lines = format!("{} lines", code.lines().count());
        if !chapter.contains(&lines) {
            offences.push(format!("{CHAPTER}: {path} has {lines}: say so"));
        }
    }
    report(&offences);
}
