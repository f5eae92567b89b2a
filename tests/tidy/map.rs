//! The page that says where everything came from: its rows name files and tests, which are there.

use std::collections::BTreeSet;

use super::{File, files, report, root};

const PAGE: &str = "book/src/internals/seed-map.md";
/// Where paths of the page begin.
const BASES: [&str; 2] = ["", "runtime/src"];

/// The cells of a row of a table that is named by a letter and a number.
fn cells(line: &str) -> Option<Vec<&str>> {
    let row = line.strip_prefix("| ")?.strip_suffix('|')?;
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    let (letter, number) = cells[0].split_once('-')?;
    let is_row = ["T", "N", "G"].contains(&letter) && number.parse::<u8>().is_ok();
    is_row.then_some(cells)
}

/// What stands between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The functions of all files that have tests.
fn functions() -> BTreeSet<String> {
    let sources = files(&["rs"]);
    let tested = sources
        .iter()
        .filter(|file| file.is_test() || file.text.contains("#[test]"));
    let names = |file: &File| -> Vec<String> {
        let code = file.text.lines().filter_map(|line| {
            let (before, rest) = line.split_once("fn ")?;
            let is_item = before.trim().split(' ').all(|word| {
                word.is_empty() || ["pub", "pub(crate)", "async", "const"].contains(&word)
            });
            let end = rest.find(|found: char| !(found.is_alphanumeric() || found == '_'))?;
            is_item.then(|| rest[..end].to_owned())
        });
        code.collect()
    };
    tested.flat_map(names).collect()
}

#[test]
fn what_the_seed_map_names_is_there() {
    let page = std::fs::read_to_string(root().join(PAGE)).expect("the page is there");
    let functions = functions();
    let mut rows = BTreeSet::new();
    let mut offences = Vec::new();
    for (at, line) in page.lines().enumerate() {
        let Some(cells) = cells(line) else { continue };
        let mut offend = |what: String| offences.push(format!("{PAGE}:{}: {what}", at + 1));
        let &[row, _, _, places, tests] = &cells[..] else {
            offend(format!("{} cells, not 5", cells.len()));
            continue;
        };
        if !rows.insert(row.to_owned()) {
            offend(format!("{row} is there twice"));
        }
        for path in quoted(places) {
            if !BASES
                .iter()
                .any(|base| root().join(base).join(path).exists())
            {
                offend(format!("{row}: there is no file {path}"));
            }
        }
        for test in quoted(tests).filter(|test| !functions.contains(*test)) {
            offend(format!("{row}: there is no test {test}"));
        }
    }
    assert!(rows.len() > 80, "{} rows were found", rows.len());
    report(&offences);
}
