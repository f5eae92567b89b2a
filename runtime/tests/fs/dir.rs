//! What runs on the pool: reading directories, removing trees, copying, resolving.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use futures_util::poll;
use greenroom_runtime::fs::{self, FileError};
use greenroom_runtime::yield_now;

use super::support::{Scratch, on_a_shard, pattern};

#[test]
fn every_entry_of_a_directory_is_found_once() {
    // None, some, exactly one batch, and several.
    for count in [0, 3, 256, 1000_usize] {
        let scratch = Scratch::new();
        let dir = scratch.path("dir");
        std::fs::create_dir(&dir).unwrap();
        let names: BTreeSet<String> = (0..count).map(|n| format!("file {n}")).collect();
        for name in &names {
            std::fs::write(dir.join(name), "").unwrap();
        }
        on_a_shard(move || async move {
            let mut found = BTreeSet::new();
            let mut entries = fs::read_dir(&dir).await.unwrap();
            while let Some(entry) = entries.next_entry().await.unwrap() {
                assert!(entry.file_type().is_file());
                assert_eq!(entry.path(), dir.join(entry.file_name()));
                let name = entry.file_name().to_str().unwrap().to_owned();
                assert!(found.insert(name), "{entry:?} came twice");
            }
            assert!(
                entries.next_entry().await.unwrap().is_none(),
                "it stays at the end"
            );
            assert_eq!(found, names);
        });
    }
}

#[test]
fn entries_know_their_type_and_number() {
    let scratch = Scratch::new();
    let path = move |name: &str| scratch.path(name);
    on_a_shard(move || async move {
        std::fs::create_dir(path("dir")).unwrap();
        std::fs::write(path("file"), "12345").unwrap();
        std::os::unix::fs::symlink("file", path("link")).unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        let mut entries = fs::read_dir(path("")).await.unwrap();
        let mut seen = 0;
        while let Some(entry) = entries.next_entry().await.unwrap() {
            let file_type = entry.file_type();
            match entry.file_name().to_str().unwrap() {
                "dir" => assert!(file_type.is_dir()),
                "file" => assert!(file_type.is_file()),
                "link" => assert!(file_type.is_symlink()),
                "socket" => assert!(file_type.is_socket()),
                other => panic!("{other}"),
            }
            let metadata = entry.metadata().await.unwrap();
            assert_eq!(
                (metadata.file_type(), metadata.ino()),
                (file_type, entry.ino())
            );
            seen += 1;
        }
        assert_eq!(seen, 4);
    });
}

#[test]
fn a_dropped_wait_for_an_entry_loses_none() {
    let scratch = Scratch::new();
    let dir = scratch.path("dir");
    std::fs::create_dir(&dir).unwrap();
    for n in 0..600 {
        std::fs::write(dir.join(n.to_string()), "").unwrap();
    }
    on_a_shard(move || async move {
        let mut entries = fs::read_dir(&dir).await.unwrap();
        let mut found = BTreeSet::new();
        let mut dropped = 0;
        loop {
            // Polled once and dropped, until it is ready at once.
            let next = Box::pin(entries.next_entry());
            let mut next = next;
            let Some(entry) = (match poll!(next.as_mut()) {
                std::task::Poll::Ready(entry) => entry.unwrap(),
                std::task::Poll::Pending => {
                    drop(next);
                    dropped += 1;
                    assert!(dropped < 1_000_000, "no entry comes");
                    yield_now().await;
                    continue;
                }
            }) else {
                break;
            };
            assert!(found.insert(entry.file_name().to_owned()));
        }
        assert_eq!(found.len(), 600);
    });
}

#[test]
fn trees_are_removed_and_links_not_followed() {
    let scratch = Scratch::new();
    let path = move |name: &str| scratch.path(name);
    on_a_shard(move || async move {
        fs::create_dir_all(path("tree/a/b")).await.unwrap();
        fs::write(path("tree/a/b/file"), "x").await.unwrap();
        fs::write(path("precious"), "x").await.unwrap();
        fs::symlink("../precious", path("tree/link")).await.unwrap();
        fs::remove_dir_all(path("tree")).await.unwrap();
        assert!(!fs::exists(path("tree")).await.unwrap());
        assert!(fs::exists(path("precious")).await.unwrap());
        let error = fs::remove_dir_all(path("tree")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(FileError::of(&error).unwrap().path().unwrap(), path("tree"));
    });
}

#[test]
fn copies_are_equal_and_keep_their_permissions() {
    let scratch = Scratch::new();
    let path = move |name: &str| scratch.path(name);
    on_a_shard(move || async move {
        let contents = pattern(1_000_003);
        fs::write(path("from"), contents.clone()).await.unwrap();
        let permissions = std::fs::Permissions::from_mode(0o600);
        fs::set_permissions(path("from"), permissions)
            .await
            .unwrap();
        fs::write(path("to"), "longer than nothing").await.unwrap();
        assert_eq!(fs::copy(path("from"), path("to")).await.unwrap(), 1_000_003);
        assert_eq!(fs::read(path("to")).await.unwrap(), contents);
        assert_eq!(
            fs::metadata(path("to")).await.unwrap().mode() & 0o777,
            0o600
        );
        let error = fs::copy(path("gone"), path("to")).await.unwrap_err();
        let text = format!(
            "copy {} to {}: ",
            path("gone").display(),
            path("to").display()
        );
        assert!(error.to_string().starts_with(&text), "{error}");
    });
}

#[test]
fn links_are_read_and_resolved() {
    let scratch = Scratch::new();
    let path = move |name: &str| scratch.path(name);
    on_a_shard(move || async move {
        fs::write(path("file"), "").await.unwrap();
        fs::symlink("./file", path("link")).await.unwrap();
        assert_eq!(
            fs::read_link(path("link")).await.unwrap().to_str(),
            Some("./file")
        );
        let real = std::fs::canonicalize(path("file")).unwrap();
        assert_eq!(fs::canonicalize(path("link")).await.unwrap(), real);
        let error = fs::read_link(path("file")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    });
}

#[test]
fn refused_calls_on_the_pool_name_the_operation_and_the_path() {
    let scratch = Scratch::new();
    let gone = scratch.path("gone");
    on_a_shard(move || async move {
        let name = gone.to_str().unwrap();
        let permissions = std::fs::Permissions::from_mode(0o600);
        let results = [
            (fs::read_dir(&gone).await.map(drop), "read directory"),
            (fs::canonicalize(&gone).await.map(drop), "canonicalize"),
            (fs::read_link(&gone).await.map(drop), "read link"),
            (
                fs::set_permissions(&gone, permissions).await,
                "set the permissions of",
            ),
        ];
        for (result, operation) in results {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
            assert_eq!(fs::raw_os_error(&error), Some(libc::ENOENT));
            assert!(
                error
                    .to_string()
                    .starts_with(&format!("{operation} {name}: ")),
                "{error}"
            );
        }
        let error = fs::read_dir("/proc/version").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotADirectory);
        for result in [
            fs::read_dir("a\0").await.map(drop),
            fs::remove_dir_all("a\0").await,
            fs::copy("a\0", "b").await.map(drop),
            fs::copy("b", "a\0").await.map(drop),
            fs::canonicalize("a\0").await.map(drop),
            fs::read_link("a\0").await.map(drop),
        ] {
            let error = result.unwrap_err();
            assert!(
                error.to_string().contains("NUL byte at position 1"),
                "{error}"
            );
        }
    });
}

#[test]
fn a_file_is_not_copied_onto_itself_by_whatever_name() {
    let scratch = Scratch::new();
    let path = move |name: &str| scratch.path(name);
    on_a_shard(move || async move {
        fs::write(path("file"), "contents").await.unwrap();
        fs::symlink(path("file"), path("link")).await.unwrap();
        fs::hard_link(path("file"), path("name")).await.unwrap();
        for to in ["file", "link", "name"] {
            let error = fs::copy(path("file"), path(to)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains("the same file"), "{error}");
            assert_eq!(fs::read(path("file")).await.unwrap(), b"contents");
        }
        // What is no file has the error of the system.
        assert!(fs::copy(path("nothing"), path("nothing")).await.is_err());
    });
}
