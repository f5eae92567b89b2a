//! Open files: reading, writing, syncing, closing, and what is refused.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;

use futures_util::{FutureExt, poll};
use greenroom_runtime::buffer::IoBuf;
use greenroom_runtime::fs::{self, File, FileError, OpenOptions};
use greenroom_runtime::{Builder, ShardCounts, spawn, yield_now};

use super::support::{Scratch, on_a_shard, quiet};

/// How many descriptors of this process lead to the path.
fn open_descriptors(path: &std::path::Path) -> usize {
    std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .filter(|target| target == path)
        .count()
}

fn read_write() -> OpenOptions {
    let mut options = File::options();
    options.read(true).write(true).create(true);
    options
}

#[test]
fn what_was_written_is_read_wherever_it_was_put() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let file = File::create_new(&path).await.unwrap();
        assert_eq!(file.write_at("world", 6).await.0.unwrap(), 5);
        assert_eq!(file.write_at(*b"hello ", 0).await.0.unwrap(), 6);
        let (result, bytes) = file.read_at(Vec::with_capacity(100), 0).await;
        assert_eq!((result.unwrap(), &bytes[..]), (11, &b"hello world"[..]));
        let (result, bytes) = file.read_at([b'-'; 4], 9).await;
        assert_eq!((result.unwrap(), &bytes), (2, b"ld--"));
        let (result, _) = file.read_at([0; 4], 11).await;
        assert_eq!(result.unwrap(), 0, "the end of the file");
        let (result, _) = file.read_at([0; 4], 1 << 40).await;
        assert_eq!(result.unwrap(), 0, "far behind it");
        file.close().await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"hello world");
    });
}

#[test]
fn several_buffers_are_filled_and_written_in_order() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let file = File::create_new(&path).await.unwrap();
        let pieces = vec![b"ab".to_vec(), Vec::new(), b"cde".to_vec()];
        let (result, pieces) = file.write_all_vectored_at(pieces, 1).await;
        result.unwrap();
        assert_eq!(pieces.len(), 3);
        let (result, found) = file
            .read_vectored_at(
                vec![
                    vec![9; 2].into_boxed_slice(),
                    vec![9; 3].into(),
                    vec![9; 4].into(),
                ],
                0,
            )
            .await;
        assert_eq!(result.unwrap(), 6);
        assert_eq!(
            [&found[0][..], &found[1], &found[2]],
            [&b"\0a"[..], b"bcd", b"e\x09\x09\x09"]
        );
        let (result, found) = file.read_vectored_at(vec![vec![0; 4], vec![0; 4]], 3).await;
        assert_eq!(result.unwrap(), 3);
        assert_eq!(
            found,
            [b"cde".to_vec(), Vec::new()],
            "vectors hold what was read"
        );
        let none = file.read_vectored_at(Vec::<Vec<u8>>::new(), 0).await;
        assert_eq!(none.0.unwrap(), 0);
        assert_eq!(file.write_vectored_at(vec![""], 0).await.0.unwrap(), 0);
    });
}

#[test]
fn more_buffers_than_the_kernel_takes_are_all_written() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let file = File::create_new(&path).await.unwrap();
        let pieces: Vec<Vec<u8>> = (0..2500_u32).map(|n| n.to_ne_bytes().to_vec()).collect();
        let all = pieces.concat();
        let (written, pieces) = file.write_vectored_at(pieces, 0).await;
        assert_eq!(written.unwrap(), 4096, "1024 pieces at a time");
        file.write_all_vectored_at(pieces, 0).await.0.unwrap();
        assert_eq!(fs::read(&path).await.unwrap(), all);
        let empty = vec![vec![0; 4]; 1500];
        let (read, found) = file.read_vectored_at(empty, 0).await;
        assert_eq!(read.unwrap(), 4096);
        assert_eq!(found.concat(), all[..4096]);
    });
}

#[test]
fn a_file_that_ends_early_says_after_how_many_bytes() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        fs::write(&path, "0123456789").await.unwrap();
        let file = File::open(&path).await.unwrap();
        let (result, bytes) = file.read_exact_at([0; 4], 6).await;
        result.unwrap();
        assert_eq!(&bytes, b"6789");
        let (result, bytes) = file.read_exact_at([0; 5], 6).await;
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        assert_eq!(FileError::of(&error).unwrap().transferred(), 4);
        let wanted = format!(
            "read {} at offset 6: the file ended, after 4 of 5 bytes",
            path.display()
        );
        assert_eq!(error.to_string(), wanted);
        assert_eq!(&bytes, b"6789\0", "what was there is in the buffer");
    });
}

#[test]
fn nothing_takes_no_visit_to_the_kernel() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let file = File::create_new(&path).await.unwrap();
        let (read, _) = file.read_at(Vec::new(), 0).now_or_never().unwrap();
        assert_eq!(read.unwrap(), 0);
        let (written, _) = file.write_at("", 1 << 62).now_or_never().unwrap();
        assert_eq!(written.unwrap(), 0);
        file.read_exact_at([], 5).await.0.unwrap();
        file.write_all_at([], 5).await.0.unwrap();
        assert_eq!(file.metadata().await.unwrap().len(), 0);
    });
}

#[test]
fn ranges_that_no_file_has_are_refused_with_their_value() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let file = File::create_new(&path).await.unwrap();
        file.write_all_at("safe", 0).await.0.unwrap();
        let check = |result: io::Result<()>, value: &str| {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(value), "{error}");
        };
        // All ones would mean the current position to the ring.
        let all_ones = "18446744073709551615";
        check(file.write_at("x", u64::MAX).await.0.map(drop), all_ones);
        check(file.read_at([0; 1], u64::MAX).await.0.map(drop), all_ones);
        check(
            file.write_all_at("x", 1 << 63).await.0,
            "9223372036854775808",
        );
        check(
            file.read_exact_at([0; 2], (1 << 63) - 2).await.0,
            "9223372036854775806",
        );
        check(
            file.write_all_vectored_at(vec!["x"], u64::MAX).await.0,
            all_ones,
        );
        check(
            file.read_vectored_at(vec![[0; 1]], u64::MAX)
                .await
                .0
                .map(drop),
            all_ones,
        );
        check(file.set_len(1 << 63).await, "9223372036854775808");
        check(file.allocate(1, u64::MAX).await, all_ones);
        check(file.allocate(1, 0).await, "at least one");
        assert_eq!(fs::read(&path).await.unwrap(), b"safe");
    });
}

#[test]
fn a_buffer_beyond_two_gigabytes_is_split() {
    const LEN: usize = (1 << 31) + 4097;
    on_a_shard(|| async {
        // Nobody looks into the bytes, so neither side takes memory.
        let null = OpenOptions::new()
            .write(true)
            .open("/dev/null")
            .await
            .unwrap();
        let zeroes = vec![0_u8; LEN];
        let (result, zeroes) = null.write_at(zeroes, 0).await;
        assert_eq!(result.unwrap(), 0x7fff_f000, "the most that one call moves");
        let (result, zeroes) = null.write_all_at(zeroes, 0).await;
        result.unwrap();
        let (result, _) = null.write_all_vectored_at(vec![zeroes], 0).await;
        result.unwrap();
    });
}

#[test]
fn a_huge_buffer_for_a_small_file_gets_the_small_file() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        fs::write(&path, "small").await.unwrap();
        let file = File::open(&path).await.unwrap();
        let (result, bytes) = file.read_at(Vec::with_capacity(3 << 30), 0).await;
        assert_eq!((result.unwrap(), &bytes[..]), (5, &b"small"[..]));
        let (result, bytes) = file.read_exact_at(bytes.slice(..3 << 30), 0).await;
        let error = result.unwrap_err();
        assert_eq!(FileError::of(&error).unwrap().transferred(), 5);
        assert_eq!(&bytes[..], b"small");
    });
}

#[test]
fn appending_writes_to_the_end_wherever_it_is_told_to() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        fs::write(&path, "start").await.unwrap();
        let mut options = File::options();
        let file = options.append(true).read(true).open(&path).await.unwrap();
        file.write_all_at(" middle", 0).await.0.unwrap();
        file.write_all_vectored_at(vec![" ", "end"], 3)
            .await
            .0
            .unwrap();
        assert_eq!(fs::read_to_string(&path).await.unwrap(), "start middle end");
        let (result, bytes) = file.read_at([0; 5], 0).await;
        assert_eq!(
            (result.unwrap(), &bytes),
            (5, b"start"),
            "reads go where they are told to"
        );
    });
}

#[test]
fn space_is_reserved_and_lengths_are_set() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let file = read_write().open(&path).await.unwrap();
        file.write_all_at("0123456789", 0).await.0.unwrap();
        file.set_len(4).await.unwrap();
        assert_eq!(fs::read(&path).await.unwrap(), b"0123");
        file.set_len(6).await.unwrap();
        assert_eq!(fs::read(&path).await.unwrap(), b"0123\0\0");
        file.allocate(0, 1 << 20).await.unwrap();
        let metadata = file.metadata().await.unwrap();
        assert_eq!(metadata.len(), 1 << 20);
        assert!(metadata.blocks() >= (1 << 20) / 512, "{metadata:?}");
        file.sync_all().await.unwrap();
        file.sync_data().await.unwrap();

        let reader = File::open(&path).await.unwrap();
        let error = reader.set_len(0).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(
            error.to_string().contains(path.to_str().unwrap()),
            "{error}"
        );
        assert_eq!(metadata.len(), 1 << 20);
    });
}

#[test]
fn metadata_agrees_with_the_standard_library() {
    use std::os::unix::fs::MetadataExt;
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        read_write().mode(0o640).open(&path).await.unwrap();
        fs::write(&path, vec![7; 5000]).await.unwrap();
        let ours = File::open(&path).await.unwrap().metadata().await.unwrap();
        let theirs = std::fs::metadata(&path).unwrap();
        assert_eq!(ours.len(), 5000);
        assert_eq!(
            (
                ours.ino(),
                ours.dev(),
                ours.nlink(),
                ours.mode(),
                ours.uid(),
                ours.gid()
            ),
            (
                theirs.ino(),
                theirs.dev(),
                theirs.nlink(),
                theirs.mode(),
                theirs.uid(),
                theirs.gid()
            )
        );
        assert_eq!(ours.modified().unwrap(), theirs.modified().unwrap());
        assert_eq!(ours.accessed().unwrap(), theirs.accessed().unwrap());
        assert_eq!(ours.created().ok(), theirs.created().ok());
        assert_eq!(ours.permissions().mode() & 0o777, 0o640);
        assert!(ours.is_file() && !ours.is_dir() && !ours.is_symlink());
    });
}

#[test]
fn opening_is_refused_with_the_path_and_the_reason() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let error = File::open(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let text = format!(
            "open {}: No such file or directory (os error 2)",
            path.display()
        );
        assert_eq!(error.to_string(), text);
        assert_eq!(fs::raw_os_error(&error), Some(2));

        File::create_new(&path).await.unwrap();
        let error = File::create_new(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);

        let refuse = async |options: &OpenOptions, text: &str| {
            let error = options.open(&path).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
            assert!(error.to_string().contains(text), "{error}");
        };
        refuse(&File::options(), "no access was asked for").await;
        refuse(File::options().read(true).create(true), "set `write`").await;
        refuse(File::options().read(true).truncate(true), "set `write`").await;
        refuse(File::options().append(true).truncate(true), "leave one out").await;

        for interior in ["a\0b", "\0"] {
            let error = File::open(interior).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains("NUL byte"), "{error}");
        }
    });
}

#[test]
fn the_wrong_access_is_an_error_that_says_what_to_do() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let writer = File::create(&path).await.unwrap();
        let error = writer.read_at([0; 1], 0).await.0.unwrap_err();
        assert_eq!(fs::raw_os_error(&error), Some(libc::EBADF));
        assert!(
            error.to_string().ends_with("; open the file for reading"),
            "{error}"
        );
        let reader = File::open(&path).await.unwrap();
        let error = reader.write_all_at("x", 0).await.0.unwrap_err();
        assert!(
            error.to_string().ends_with("; open the file for writing"),
            "{error}"
        );
        let (result, buffer) = reader.write_vectored_at(vec!["x"], 0).await;
        assert_eq!(fs::raw_os_error(&result.unwrap_err()), Some(libc::EBADF));
        assert_eq!(buffer, ["x"], "the buffers come back");
    });
}

#[test]
fn a_dropped_file_closes_by_itself() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let file = File::create(&path).await.unwrap();
        assert_eq!(open_descriptors(&path), 1);
        drop(file);
        quiet().await;
        assert_eq!(open_descriptors(&path), 0);
    });
}

#[test]
fn files_opened_and_dropped_in_a_loop_do_not_pile_up() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        File::create(&path).await.unwrap();
        let mut most = 0;
        for _ in 0..500 {
            let file = File::open(&path).await.unwrap();
            most = most.max(open_descriptors(&path));
            drop(file);
        }
        // One that was just opened and those that are closing.
        assert!(most <= 65, "{most} descriptors at a time");
        quiet().await;
        assert_eq!(open_descriptors(&path), 0);
    });
}

#[test]
fn a_dropped_open_closes_what_it_opened() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        for polls in [0, 1, 2, 3, 10] {
            let mut open = Box::pin(File::create(path.clone()));
            for _ in 0..polls {
                if poll!(open.as_mut()).is_ready() {
                    break;
                }
                yield_now().await;
            }
            drop(open);
            quiet().await;
            assert_eq!(open_descriptors(&path), 0, "dropped after {polls} polls");
        }
    });
}

#[test]
fn an_open_that_is_dropped_in_flight_closes_what_it_opened() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        for round in 0..20 {
            let mut open = Box::pin(File::create(path.clone()));
            assert!(poll!(open.as_mut()).is_pending());
            // It goes to the kernel with this one, and has ended or is with a worker afterwards.
            fs::metadata("/").await.unwrap();
            drop(open);
            quiet().await;
            assert_eq!(open_descriptors(&path), 0, "in round {round}");
        }
        assert!(fs::exists(&path).await.unwrap(), "no open went through");
    });
}

#[test]
fn an_open_waits_while_many_files_are_closing() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let mut files = vec![File::create(&path).await.unwrap()];
        while files.len() < 300 {
            files.push(File::open(&path).await.unwrap());
        }
        drop(files);
        let _file = File::open(&path).await.unwrap();
        let live = ShardCounts::current().unwrap().live_operations;
        assert!(live <= 64, "the doorbell and {} closes", live - 1);
    });
}

#[test]
fn closing_waits_for_cancelled_operations_and_reports() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let file = File::create_new(&path).await.unwrap();
        let len = 4 << 20;
        for _ in 0..4 {
            let mut write = Box::pin(file.write_at(vec![1_u8; len], 0));
            assert!(poll!(write.as_mut()).is_pending());
            yield_now().await;
            drop(write);
        }
        file.close().await.unwrap();
        assert_eq!(
            ShardCounts::current().unwrap().live_operations,
            1,
            "nothing is left behind"
        );
        assert_eq!(open_descriptors(&path), 0);
    });
}

#[test]
fn a_close_that_nobody_waits_for_closes() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        for polls in 0..3 {
            let file = File::create(&path).await.unwrap();
            let mut close = Box::pin(file.close());
            for _ in 0..polls {
                if poll!(close.as_mut()).is_ready() {
                    break;
                }
                yield_now().await;
            }
            drop(close);
            quiet().await;
            assert_eq!(open_descriptors(&path), 0, "dropped after {polls} polls");
        }
    });
}

#[test]
fn files_still_open_when_the_runtime_ends_are_closed() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    let kept = path.clone();
    let runtime = Builder::new().shards(1).start().unwrap();
    runtime.run_on(0, || async move {
        let file = File::create(&kept).await.unwrap();
        spawn(async move {
            let _file = file;
            std::future::pending::<()>().await;
        })
        .detach();
        drop(File::open(&kept).await.unwrap());
    });
    let report = runtime.shutdown();
    assert_eq!(report.leaked_operations(), 0);
    assert_eq!(open_descriptors(&path), 0);
}

#[test]
fn handles_move_between_here_and_the_standard_library() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let mut options = std::fs::OpenOptions::new();
        let theirs = options.append(true).create(true).open(&path).unwrap();
        let file = File::from_std(theirs);
        file.write_all_at("ours", 7).await.0.unwrap();
        let error = file.read_at([0; 1], 0).await.0.unwrap_err();
        assert!(error.to_string().starts_with("read descriptor "), "{error}");
        assert_eq!(FileError::of(&error).unwrap().path(), None);
        let twin = file.try_clone().unwrap();
        let mut theirs = file.into_std().unwrap();
        io::Write::write_all(&mut theirs, b" theirs").unwrap();
        drop(theirs);
        twin.write_all_at(" twin", 0).await.0.unwrap();
        assert!(twin.as_fd().try_clone_to_owned().is_ok());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "ours theirs twin");
    });
}

#[test]
fn a_file_with_a_cancelled_operation_does_not_leave_its_shard() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let file = File::create_new(&path).await.unwrap();
        let mut write = Box::pin(file.write_at(vec![1_u8; 8 << 20], 0));
        assert!(poll!(write.as_mut()).is_pending());
        yield_now().await;
        drop(write);
        let mut kept = file;
        for _ in 0..100_000 {
            match kept.into_std() {
                Ok(_) => return,
                Err(file) => kept = file,
            }
            yield_now().await;
        }
        panic!("the cancelled write does not end");
    });
}

#[test]
fn many_operations_on_one_file_run_at_once() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let file = std::rc::Rc::new(File::create_new(&path).await.unwrap());
        let writes: Vec<_> = (0..200_u8)
            .map(|n| {
                let file = file.clone();
                spawn(async move { file.write_all_at(vec![n; 100], u64::from(n) * 100).await.0 })
            })
            .collect();
        for write in writes {
            write.await.unwrap().unwrap();
        }
        let bytes = fs::read(&path).await.unwrap();
        assert!(
            bytes
                .chunks(100)
                .zip(0..)
                .all(|(chunk, n)| chunk == [n; 100])
        );
        assert_eq!(bytes.len(), 20_000);
    });
}
