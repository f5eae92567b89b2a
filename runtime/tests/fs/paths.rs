//! Names, directories and whole files.

use std::io::ErrorKind;

use greenroom_runtime::fs::{self, FileError};

use super::support::{Scratch, on_a_shard};

#[test]
fn whole_files_are_written_and_read() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        for len in [0, 1, 8191, 8192, 8193, 3 << 20] {
            let contents: Vec<u8> = (0..len).map(|n: u32| n.to_le_bytes()[0]).collect();
            fs::write(&path, contents.clone()).await.unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), contents);
            assert_eq!(fs::read(&path).await.unwrap(), contents);
        }
        fs::write(&path, "grün").await.unwrap();
        assert_eq!(fs::read_to_string(&path).await.unwrap(), "grün");
        fs::write(&path, [b'a', 0xff]).await.unwrap();
        let error = fs::read_to_string(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(
            error.to_string().contains(path.to_str().unwrap()),
            "{error}"
        );
    });
}

#[test]
fn files_that_do_not_tell_their_length_are_read_to_their_end() {
    on_a_shard(|| async {
        let status = fs::read_to_string("/proc/self/status").await.unwrap();
        assert!(status.contains("Pid:"));
        // Larger than the first guess.
        let symbols = fs::read("/proc/kallsyms").await.unwrap();
        assert!(symbols.len() > 8 * 1024);
    });
}

#[test]
fn a_file_larger_than_memory_is_an_error_that_says_so() {
    if std::fs::read("/proc/sys/vm/overcommit_memory").unwrap()[0] == b'1' {
        // Such a machine promises any amount, and ends who asks for it.
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let file = fs::File::create(&path).await.unwrap();
        file.set_len(1 << 43).await.unwrap();
        let error = fs::read(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
        assert!(error.to_string().contains("read it in parts"), "{error}");
    });
}

#[test]
fn names_are_made_moved_and_removed() {
    let scratch = Scratch::new();
    let path = move |name: &str| scratch.path(name);
    on_a_shard(move || async move {
        fs::write(path("one"), "1").await.unwrap();
        fs::hard_link(path("one"), path("two")).await.unwrap();
        assert_eq!(fs::metadata(path("one")).await.unwrap().nlink(), 2);
        fs::rename(path("one"), path("three")).await.unwrap();
        assert!(!fs::exists(path("one")).await.unwrap());
        fs::symlink("three", path("link")).await.unwrap();
        assert_eq!(fs::read(path("link")).await.unwrap(), b"1");
        assert!(
            fs::symlink_metadata(path("link"))
                .await
                .unwrap()
                .is_symlink()
        );
        assert!(fs::metadata(path("link")).await.unwrap().is_file());
        fs::write(path("other"), "2").await.unwrap();
        fs::rename(path("other"), path("three")).await.unwrap();
        assert_eq!(
            fs::read(path("link")).await.unwrap(),
            b"2",
            "renaming replaces"
        );
        fs::remove_file(path("three")).await.unwrap();
        assert!(!fs::exists(path("link")).await.unwrap(), "leads nowhere");
        fs::remove_file(path("link")).await.unwrap();
        fs::remove_file(path("two")).await.unwrap();

        fs::create_dir(path("dir")).await.unwrap();
        assert!(fs::metadata(path("dir")).await.unwrap().is_dir());
        fs::remove_dir(path("dir")).await.unwrap();
        assert!(!fs::exists(path("dir")).await.unwrap());
    });
}

#[test]
fn directories_are_made_with_all_that_lead_to_them() {
    let scratch = Scratch::new();
    let path = move |name: &str| scratch.path(name);
    on_a_shard(move || async move {
        fs::create_dir_all(path("a/b/c/d")).await.unwrap();
        assert!(path("a/b/c/d").is_dir());
        fs::create_dir_all(path("a/b/c/d")).await.unwrap();
        fs::create_dir_all(path("a/b/e/")).await.unwrap();
        assert!(path("a/b/e").is_dir());
        fs::create_dir_all("").await.unwrap();
        fs::create_dir_all(".").await.unwrap();
        fs::create_dir_all("/").await.unwrap();

        fs::write(path("file"), "").await.unwrap();
        for blocked in ["file", "file/inner", "file/inner/most"] {
            let error = fs::create_dir_all(path(blocked)).await.unwrap_err();
            assert!(
                matches!(
                    error.kind(),
                    ErrorKind::AlreadyExists | ErrorKind::NotADirectory
                ),
                "{error}"
            );
        }
        fs::symlink("nowhere", path("dangling")).await.unwrap();
        let error = fs::create_dir_all(path("dangling/x")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
    });
}

#[test]
fn every_error_names_the_operation_and_the_paths() {
    let scratch = Scratch::new();
    let gone = scratch.path("gone");
    let dir = scratch.path("dir");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("file"), "").unwrap();
    on_a_shard(move || async move {
        let name = gone.to_str().unwrap();
        let not_found = [
            (fs::read(&gone).await.map(drop), format!("open {name}: ")),
            (
                fs::read_to_string(&gone).await.map(drop),
                format!("open {name}: "),
            ),
            (
                fs::metadata(&gone).await.map(drop),
                format!("stat {name}: "),
            ),
            (
                fs::symlink_metadata(&gone).await.map(drop),
                format!("stat {name}: "),
            ),
            (fs::remove_file(&gone).await, format!("remove {name}: ")),
            (fs::remove_dir(&gone).await, format!("remove {name}: ")),
            (
                fs::rename(&gone, "/x").await,
                format!("rename {name} to /x: "),
            ),
            (
                fs::hard_link(&gone, "/x").await,
                format!("link {name} to /x: "),
            ),
            (
                fs::write(gone.join("y"), "").await,
                format!("open {name}/y: "),
            ),
            (
                fs::create_dir(gone.join("y")).await,
                format!("create {name}/y: "),
            ),
            (
                fs::symlink("y", gone.join("y")).await,
                format!("symlink y to {name}/y: "),
            ),
        ];
        for (result, text) in not_found {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
            assert_eq!(fs::raw_os_error(&error), Some(libc::ENOENT));
            assert!(error.to_string().starts_with(&text), "{error}");
            assert_eq!(FileError::of(&error).unwrap().kind(), ErrorKind::NotFound);
        }
        let error = fs::remove_dir(&dir).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DirectoryNotEmpty, "{error}");
        let error = fs::remove_file(&dir).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IsADirectory, "{error}");
        let error = fs::read(&dir).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IsADirectory, "{error}");
        let error = fs::create_dir(&dir).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
    });
}

#[test]
fn a_nul_byte_in_any_path_is_refused_before_the_kernel_sees_it() {
    on_a_shard(|| async {
        let bad = "a\0b";
        let results = [
            fs::read(bad).await.map(drop),
            fs::read_to_string(bad).await.map(drop),
            fs::write(bad, "").await,
            fs::metadata(bad).await.map(drop),
            fs::symlink_metadata(bad).await.map(drop),
            fs::exists(bad).await.map(drop),
            fs::rename(bad, "x").await,
            fs::rename("x", bad).await,
            fs::hard_link("x", bad).await,
            fs::symlink("x", bad).await,
            fs::remove_file(bad).await,
            fs::remove_dir(bad).await,
            fs::create_dir(bad).await,
            fs::create_dir_all(bad).await,
        ];
        for result in results {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(
                error.to_string().contains("NUL byte at position 1"),
                "{error}"
            );
        }
    });
}

#[test]
fn a_path_that_is_too_long_is_an_error_of_its_own_kind() {
    on_a_shard(|| async {
        let error = fs::read("x/".repeat(4000)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidFilename, "{}", error.kind());
    });
}
