//! Rules of the project that no lint checks.
//!
//! Every test reads the whole tree and reports all offences at once, each with its file, its line, and what to do.

#[path = "tidy/blank.rs"]
mod blank;
#[path = "tidy/counters.rs"]
mod counters;
#[path = "tidy/map.rs"]
mod map;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use blank::blank_text;

/// Files that may contain the keyword `unsafe`, and what for. Adding one is a decision about safety: keep it small.
const UNSAFE_FILES: &str = "
benches/messages.rs: counts what the allocator is asked for
benches/peers/src/bin/raw.rs: a server on io_uring without a runtime, to measure against
runtime/src/fs/aligned.rs: owns memory of a chosen alignment
runtime/src/inject/queue.rs: owns nodes from push to drain
runtime/src/mesh/at_once.rs: writes answers into frames further down the stack
runtime/src/mesh/block.rs: owns memory that is handed to another thread by a pointer in a record
runtime/src/mesh/cross.rs: asserts `Send` for what was proved `Send` when it was wrapped
runtime/src/mesh/fifo.rs: keeps values in memory that is not always initialised
runtime/src/mesh/record.rs: reads a record back as the type its vtable was made for
runtime/src/mesh/reply/key.rs: owns a sender by an address that is kept as a number
runtime/src/mesh/reply/mod.rs: opens, fills and reads slots by the type their generation proves
runtime/src/mesh/reply/table.rs: keeps values of any type in fixed slots
runtime/src/mesh/resident.rs: reads table entries back as the type their id proves
runtime/src/mesh/ring/consumer.rs: hands out payloads that lie in one block of memory
runtime/src/mesh/ring/mod.rs: drops what is left in one block of memory
runtime/src/mesh/ring/producer.rs: writes values of many types into one block of memory
runtime/src/mesh/ring/races.rs: test: records of its own
runtime/src/mesh/ring/storage.rs: owns one block of memory and reads headers in it
runtime/src/mesh/ring/tests.rs: test: records of its own
runtime/src/net/tests.rs: test: a buffer of its own
runtime/src/ring/buf_ring.rs: writes to memory that is shared with the kernel
runtime/src/ring/buffer.rs: states the contract for memory the kernel reads and writes
runtime/src/ring/epoll/file_call.rs: makes the system calls that entries describe
runtime/src/ring/epoll/jobs.rs: lets threads of the pool act on addresses in records
runtime/src/ring/epoll/transfer.rs: makes the system calls that entries describe
runtime/src/ring/epoll/work.rs: makes the system calls that entries describe
runtime/src/ring/fake.rs: test: plays the kernel, which writes through addresses
runtime/src/ring/inflight.rs: moves payloads into records and out of them, by their key
runtime/src/ring/op.rs: states the contract of operations
runtime/src/ring/ops/accept_multi.rs: owns the descriptors it is given; holds no address
runtime/src/ring/ops/close.rs: implements the contract of operations; holds no address
runtime/src/ring/ops/connect.rs: hands out the address of its payload
runtime/src/ring/ops/doorbell.rs: hands out the address of its payload
runtime/src/ring/ops/file_call.rs: implements the contract of operations; holds no address
runtime/src/ring/ops/message.rs: lays out control memory, owns the descriptors that come in it
runtime/src/ring/ops/open.rs: hands out the address of its path, owns the descriptor it is given
runtime/src/ring/ops/path_call.rs: hands out the addresses of its paths
runtime/src/ring/ops/pieces.rs: states the contract for lists of buffers
runtime/src/ring/ops/pipe.rs: hands out the addresses of its buffers, notes what the kernel wrote
runtime/src/ring/ops/poll.rs: implements the contract of operations; holds no address
runtime/src/ring/ops/read_at.rs: hands out the address of its buffer, notes what the kernel wrote
runtime/src/ring/ops/receive_message.rs: hands out the address of its message, notes what the kernel wrote
runtime/src/ring/ops/recv.rs: hands out the address of its buffer, notes what the kernel wrote
runtime/src/ring/ops/recv_multi.rs: implements the contract of operations; holds no address
runtime/src/ring/ops/send.rs: hands out the address of its buffer
runtime/src/ring/ops/send_datagram.rs: hands out the address of its message
runtime/src/ring/ops/send_message.rs: hands out the addresses of its buffers and of their list
runtime/src/ring/ops/send_zero_copy.rs: hands out the address of its buffer
runtime/src/ring/ops/shutdown.rs: implements the contract of operations; holds no address
runtime/src/ring/ops/stat.rs: hands out the addresses of its path and of the room for the answer
runtime/src/ring/ops/vectored_at.rs: hands out the addresses of its buffers and of their list
runtime/src/ring/ops/write_at.rs: hands out the address of its buffer
runtime/src/ring/payload.rs: stores and restores values of erased type
runtime/src/ring/pool.rs: owns the memory of the receive buffers
runtime/src/ring/record.rs: owns the pages, and the payloads in their slots
runtime/src/ring/tests/life.rs: test: writes through addresses as the kernel would
runtime/src/ring/tests/parity.rs: test: operations of its own
runtime/src/ring/tests/real.rs: test: operations of its own, raw descriptors
runtime/src/ring/tests/records.rs: test: operations of its own
runtime/src/ring/uring.rs: maps entries to the ring's and enters the kernel
runtime/src/shard/context.rs: reads the scoped pointer to the current shard
runtime/src/sys.rs: the only libc calls outside of the ring
runtime/tests/tcp_shortage.rs: test: lowers the limit on open files
runtime/src/task/join.rs: names the output type of an erased task
runtime/src/task/raw.rs: owns the task's allocation
runtime/src/task/waker.rs: builds a waker whose data word is an id
runtime/tests/net_hostile.rs: test: sets limits and timers, closes descriptors behind the back of their owners
runtime/tests/support/limits.rs: test: gives up rights
runtime/tests/support/refusals.rs: test: installs seccomp filters
tests/allocations.rs: test: counts what the allocator is asked for
tests/churn/main.rs: test: a counting allocator
";

/// Libraries that forbid unsafe code altogether.
const FORBIDDEN_UNSAFE: [&str; 2] = ["actor/", "actor-macros/"];

/// Files longer than [`LINES_MAX`], and how long they may be. The numbers only ever go down.
const LONG_FILES: [(&str, usize); 1] = [("tests/behaviour/stop.rs", 623)];
const LINES_MAX: usize = 600;

/// How far above an atomic access its `ORDERING` comment may stand.
const ORDERING_LINES: usize = 8;

/// What each library may depend on, examples and tests aside. Adding one is a decision about the architecture.
const DEPENDENCIES: [(&str, &[&str]); 3] = [
    ("actor-macros", &["proc-macro2", "quote", "syn"]),
    (
        "actor",
        &[
            "foldhash",
            "futures-channel",
            "futures-core",
            "futures-util",
            "greenroom-macros",
            "greenroom-runtime",
            "hashbrown",
            "pin-project-lite",
            "serde",
            "serde_json",
            "slab",
            "tracing",
        ],
    ),
    (
        "runtime",
        &[
            "crossbeam-deque",
            "futures-channel",
            "futures-core",
            "futures-util",
            "io-uring",
            "libc",
            "loom",
            "mio",
            "serde",
            "serde_json",
            "signal-hook",
            "slab",
            "socket2",
            "tracing",
        ],
    ),
];

/// Hosts that pages may point to.
const HOSTS: [&str; 6] = [
    "docs.rs",
    "doc.rust-lang.org",
    "example.invalid",
    "kernel.org",
    "man7.org",
    "www.apache.org",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package is a folder of the workspace")
        .to_owned()
}

/// A file of the tree, by its path from the root.
struct File {
    path: String,
    text: String,
}

/// All files with one of these extensions, in the order of their paths.
fn files(extensions: &[&str]) -> Vec<File> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder can be read") {
            let path = entry.expect("a folder can be read").path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .expect("names are UTF-8")
                .to_owned();
            if path.is_dir() {
                if !(name.starts_with('.')
                    || ["target", "wip"].contains(&name.as_str())
                    || path.ends_with("book/book"))
                {
                    folders.push(path);
                }
            } else if path
                .extension()
                .is_some_and(|found| extensions.iter().any(|wanted| found == *wanted))
            {
                let text = fs::read_to_string(&path).expect("a source is UTF-8");
                let path = path.strip_prefix(root()).expect("found below the root");
                found.push(File {
                    path: path.to_str().expect("names are UTF-8").to_owned(),
                    text,
                });
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(found.len() > 3, "the tree was not found");
    found
}

impl File {
    /// Whether this is input of a test of the compiler: it shows a form, and nothing else is asked of it.
    fn is_specimen(&self) -> bool {
        self.path.starts_with("tests/ui/") || self.path.starts_with("actor-macros/tests/expand/")
    }

    /// Whether its crate forbids unsafe code, so that the word can only be data there.
    fn is_forbidden_unsafe(&self) -> bool {
        FORBIDDEN_UNSAFE
            .iter()
            .any(|library| self.path.starts_with(library))
    }

    /// Whether the whole file is test code.
    fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().expect("a path has a name");
        self.path.split('/').any(|part| part == "tests") || ["tests.rs", "fake.rs"].contains(&name)
    }

    /// The lines of code, without what comments and literals say. Tests at the end of the file are left out.
    fn code(&self) -> Vec<String> {
        let code = blank_text(&self.text);
        let lines: Vec<String> = code.lines().map(str::to_owned).collect();
        let is_gate = |line: &str| line.starts_with("#[cfg(") && line.contains("test");
        let is_module = |line: &str| line.starts_with("mod ") && line.ends_with('{');
        let tests = lines
            .windows(2)
            .position(|pair| is_gate(&pair[0]) && is_module(&pair[1]));
        lines[..tests.unwrap_or(lines.len())].to_vec()
    }
}

/// Fails with all offences.
#[track_caller]
fn report(offences: &[String]) {
    let mut text = String::new();
    for offence in offences {
        let _ = writeln!(text, "  {offence}");
    }
    assert!(offences.is_empty(), "{} offences:\n{text}", offences.len());
}

/// The words of a line of code.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|found: char| !(found.is_alphanumeric() || found == '_'))
}

#[test]
fn every_file_says_what_it_is() {
    let mut offences = Vec::new();
    for file in files(&["rs"]).iter().filter(|file| !file.is_specimen()) {
        if !file.text.starts_with("//! ") {
            offences.push(format!("{}: begins without `//!`", file.path));
        }
    }
    report(&offences);
}

#[test]
fn unsafe_code_is_where_it_is_expected() {
    let mut offences = Vec::new();
    let mut found = BTreeSet::new();
    let lines = UNSAFE_FILES.lines().filter(|line| !line.is_empty());
    let listed: Vec<&str> = lines
        .map(|line| line.split_once(": ").expect("a reason").0)
        .collect();
    for file in files(&["rs"])
        .iter()
        .filter(|file| !file.is_specimen() && !file.is_forbidden_unsafe())
    {
        let code = blank_text(&file.text);
        let Some(line) = code
            .lines()
            .position(|line| words(line).any(|word| word == "unsafe"))
        else {
            continue;
        };
        found.insert(file.path.clone());
        if !listed.contains(&file.path.as_str()) {
            offences.push(format!(
                "{}:{}: `unsafe` outside of the listed files",
                file.path,
                line + 1
            ));
        }
    }
    for path in listed.iter().filter(|path| !found.contains(**path)) {
        offences.push(format!(
            "{path}: listed, but has no `unsafe`: take it off the list"
        ));
    }
    report(&offences);
}

#[test]
fn crates_that_forbid_unsafe_code_say_so() {
    for library in FORBIDDEN_UNSAFE {
        let library = format!("{library}src/lib.rs");
        let text = fs::read_to_string(root().join(&library)).expect("the library is there");
        assert!(
            text.lines().any(|line| line == "#![forbid(unsafe_code)]"),
            "{library} has no `#![forbid(unsafe_code)]`"
        );
    }
}

/// Whether a line of code passes a memory ordering on.
fn names_ordering(line: &str) -> bool {
    const ORDERINGS: [&str; 5] = ["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"];
    ORDERINGS.iter().any(|ordering| {
        line.match_indices(ordering).any(|(at, _)| {
            let (before, after) = (&line[..at], &line[at + ordering.len()..]);
            (before.ends_with([' ', '(', ':']) || before.is_empty())
                && after.starts_with([')', ',', ';'])
        })
    })
}

#[test]
fn every_atomic_access_argues_its_ordering() {
    let mut offences = Vec::new();
    for file in files(&["rs"])
        .iter()
        .filter(|file| file.path.starts_with("runtime/") || file.path.starts_with("actor/"))
    {
        if file.is_test()
            || !file
                .code()
                .iter()
                .any(|line| words(line).any(|word| word == "atomic"))
        {
            continue;
        }
        let text: Vec<&str> = file.text.lines().collect();
        let mut is_import = false;
        for (at, line) in file.code().iter().enumerate() {
            is_import |= line.starts_with("use ") || line.starts_with("pub(crate) use ");
            let above = &text[at.saturating_sub(ORDERING_LINES)..=at];
            if !is_import
                && names_ordering(line)
                && !above.iter().any(|line| line.contains("ORDERING: "))
            {
                offences.push(format!(
                    "{}:{}: an ordering without `// ORDERING: ..`",
                    file.path,
                    at + 1
                ));
            }
            is_import &= !line.ends_with(';');
        }
    }
    report(&offences);
}

#[test]
fn files_do_not_grow_without_bound() {
    let mut offences = Vec::new();
    for file in files(&["rs"]) {
        let lines = file.text.lines().count();
        let listed = LONG_FILES.iter().find(|(path, _)| *path == file.path);
        let limit = listed.map_or(LINES_MAX, |(_, limit)| *limit);
        if lines > limit {
            offences.push(format!(
                "{}: {lines} lines, at most {limit}: split it",
                file.path
            ));
        }
        if listed.is_some() && lines <= LINES_MAX {
            offences.push(format!(
                "{}: {lines} lines: take it off the list of long files",
                file.path
            ));
        }
    }
    report(&offences);
}

#[test]
fn every_rejection_has_a_reviewed_text() {
    let mut offences = Vec::new();
    let folder = root().join("tests/ui/fail");
    for entry in fs::read_dir(&folder).expect("the cases are there") {
        let path = entry.expect("the cases are there").path();
        let partner = match path.extension().and_then(|extension| extension.to_str()) {
            Some("rs") => path.with_extension("stderr"),
            Some("stderr") => path.with_extension("rs"),
            _ => continue,
        };
        if !partner.exists() {
            offences.push(format!("{} has no {}", path.display(), partner.display()));
        }
    }
    report(&offences);
}

/// The targets of a page's links, with the number of the line.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut links = Vec::new();
    let mut is_code = false;
    for (at, line) in text.lines().enumerate() {
        is_code ^= line.trim_start().starts_with("```");
        if is_code {
            continue;
        }
        for (_, rest) in line
            .match_indices("](")
            .map(|(at, _)| line.split_at(at + 2))
        {
            if let Some(end) = rest.find(')') {
                links.push((at + 1, &rest[..end]));
            }
        }
    }
    links
}

/// The anchors of a page, one for each heading.
fn anchors(text: &str) -> Vec<String> {
    let headings = text
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim());
    let anchor = |heading: &str| {
        let kept = heading
            .chars()
            .filter(|found| found.is_alphanumeric() || " -_".contains(*found));
        kept.map(|found| {
            if found == ' ' {
                '-'
            } else {
                found.to_ascii_lowercase()
            }
        })
        .collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_of_pages_lead_somewhere() {
    let mut offences = Vec::new();
    for page in files(&["md"]) {
        let folder = root()
            .join(&page.path)
            .parent()
            .expect("a page is in a folder")
            .to_owned();
        for (line, link) in links(&page.text) {
            if let Some((_, address)) = link.split_once("://") {
                let host = address.split('/').next().unwrap_or_default();
                if !HOSTS.contains(&host) {
                    offences.push(format!(
                        "{}:{line}: {link}: a host that is not on the list",
                        page.path
                    ));
                }
                continue;
            }
            if link.starts_with("macro@") {
                // The text is part of the documentation of code, which the compiler of those checks.
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() {
                root().join(&page.path)
            } else {
                folder.join(path)
            };
            if !target.exists() {
                offences.push(format!(
                    "{}:{line}: {link}: there is no such file",
                    page.path
                ));
            } else if !anchor.is_empty() {
                let text = fs::read_to_string(&target).expect("an anchor is in a page");
                if !anchors(&text).iter().any(|found| found == anchor) {
                    offences.push(format!(
                        "{}:{line}: {link}: there is no such heading",
                        page.path
                    ));
                }
            }
        }
    }
    report(&offences);
}

#[test]
fn every_page_is_in_the_summary_and_in_the_doc_tests() {
    let mut offences = Vec::new();
    let summary =
        fs::read_to_string(root().join("book/src/SUMMARY.md")).expect("the book has a summary");
    let tested = fs::read_to_string(root().join("tests/book.rs")).expect("the book is tested");
    let listed: Vec<&str> = links(&summary).into_iter().map(|(_, link)| link).collect();
    for page in files(&["md"]) {
        let Some(path) = page
            .path
            .strip_prefix("book/src/")
            .filter(|path| *path != "SUMMARY.md")
        else {
            continue;
        };
        if !listed.contains(&path) {
            offences.push(format!("{}: not in the summary", page.path));
        }
        let has_code = page.text.lines().any(|line| line.starts_with("```rust"));
        if has_code && !tested.contains(&format!("../{}\"", page.path)) {
            offences.push(format!(
                "{}: has Rust blocks, and is not in tests/book.rs",
                page.path
            ));
        }
    }
    report(&offences);
}

#[test]
fn libraries_depend_on_what_was_agreed() {
    let mut offences = Vec::new();
    for (folder, allowed) in DEPENDENCIES {
        let manifest =
            fs::read_to_string(root().join(folder).join("Cargo.toml")).expect("the crate is there");
        let mut counts = false;
        for line in manifest.lines() {
            if line.starts_with('[') {
                counts = line.contains("dependencies") && !line.contains("dev-dependencies");
                continue;
            }
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            if counts && !name.is_empty() && !name.starts_with('#') && !allowed.contains(&name) {
                offences.push(format!("{folder}/Cargo.toml: `{name}` is not on the list"));
            }
        }
    }
    report(&offences);
}

#[test]
fn texts_name_no_place_of_one_machine() {
    // In parts, so that this file may be read as well.
    let places = ["tmp", "home", "root", "work", "Users"].map(|place| format!("/{place}/"));
    let mut offences = Vec::new();
    for file in files(&["md", "rs", "toml", "sh", "yml"])
        .iter()
        .filter(|file| !file.is_specimen())
    {
        for (at, line) in file.text.lines().enumerate() {
            for place in places.iter().filter(|place| line.contains(place.as_str())) {
                let before = line.split(place.as_str()).next().unwrap_or_default();
                // Inside of a longer path it is an ordinary folder.
                if !before.ends_with(|last: char| last.is_alphanumeric() || "._-}".contains(last)) {
                    offences.push(format!(
                        "{}:{}: {place} is a place of one machine",
                        file.path,
                        at + 1
                    ));
                }
            }
        }
    }
    report(&offences);
}
