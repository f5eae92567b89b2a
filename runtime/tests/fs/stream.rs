//! Files from start to end: reading ahead, writing behind, and what a dropped call means.

use std::io::ErrorKind;
use std::process::Command;
use std::task::Poll;

use futures_util::poll;
use greenroom_runtime::fs::{self, File, FileError, FileReader, FileWriter, StreamOptions};
use greenroom_runtime::{ShardCounts, yield_now};

use super::support::{Scratch, on_a_shard, pattern, quiet};

const BLOCK: usize = 4096;

fn small() -> StreamOptions {
    StreamOptions::new().block_size(BLOCK).depth(3)
}

#[test]
fn a_file_is_read_to_its_end_whatever_its_length() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        for len in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 100_000] {
            let contents = pattern(len);
            fs::write(&path, contents.clone()).await.unwrap();
            for depth in [1, 2, 7] {
                let file = File::open(&path).await.unwrap();
                let mut reader = small().depth(depth).reader(file).unwrap();
                let mut found = Vec::new();
                assert_eq!(reader.read_to_end(&mut found).await.unwrap(), len);
                assert_eq!(found, contents, "{len} bytes at depth {depth}");
                assert_eq!(reader.position(), len as u64);
                assert!(
                    reader.fill_buf().await.unwrap().is_empty(),
                    "it stays at the end"
                );
            }
        }
    });
}

#[test]
fn reads_of_every_size_see_the_same_bytes() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let contents = pattern(50_000);
        fs::write(&path, contents.clone()).await.unwrap();
        for size in [1, 100, BLOCK, 10_000] {
            let mut reader = small().reader(File::open(&path).await.unwrap()).unwrap();
            let mut found = Vec::new();
            let mut piece = vec![0; size];
            loop {
                let count = reader.read(&mut piece).await.unwrap();
                found.extend_from_slice(&piece[..count]);
                if count == 0 {
                    break;
                }
            }
            assert_eq!(found, contents, "in pieces of {size}");
        }
        let mut reader = FileReader::new(File::open(&path).await.unwrap());
        assert_eq!(reader.read(&mut []).await.unwrap(), 0);
        let mut piece = [0; 5000];
        reader.read_exact(&mut piece).await.unwrap();
        assert_eq!(piece, contents[..5000]);
        reader.seek(49_000);
        let error = reader.read_exact(&mut piece).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        assert_eq!(FileError::of(&error).unwrap().transferred(), 1000);
        assert_eq!(piece[..1000], contents[49_000..]);
    });
}

#[test]
fn lines_are_found_across_blocks() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let lines: Vec<String> = (0..3000).map(|n| format!("line {n}\n")).collect();
        fs::write(&path, lines.concat()).await.unwrap();
        let mut reader = small().reader(File::open(&path).await.unwrap()).unwrap();
        for line in &lines {
            let mut found = Vec::new();
            reader.read_until(b'\n', &mut found).await.unwrap();
            assert_eq!(found, line.as_bytes());
        }
        let mut found = Vec::new();
        assert_eq!(reader.read_until(b'\n', &mut found).await.unwrap(), 0);
        reader.seek(lines[0].len() as u64);
        reader.read_until(b'\n', &mut found).await.unwrap();
        assert_eq!(found, b"line 1\n");
        reader.read_until(b'@', &mut found).await.unwrap();
        assert!(
            found.ends_with(b"line 2999\n"),
            "the end of the file ends it as well"
        );
    });
}

#[test]
fn a_dropped_read_loses_nothing() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let contents = pattern(200_000);
        fs::write(&path, contents.clone()).await.unwrap();
        let mut reader = small().reader(File::open(&path).await.unwrap()).unwrap();
        let mut found = Vec::new();
        let mut dropped = 0;
        loop {
            let mut piece = [0; 1000];
            let mut read = Box::pin(reader.read(&mut piece));
            let polled = poll!(read.as_mut());
            drop(read);
            match polled {
                Poll::Ready(Ok(0)) => break,
                Poll::Ready(count) => found.extend_from_slice(&piece[..count.unwrap()]),
                Poll::Pending => {
                    dropped += 1;
                    assert!(dropped < 100_000, "nothing comes");
                    yield_now().await;
                }
            }
        }
        assert!(dropped > 0);
        assert_eq!(found, contents);
    });
}

#[test]
fn a_growing_file_can_be_followed() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let log = File::create(&path).await.unwrap();
        let mut reader = small().reader(File::open(&path).await.unwrap()).unwrap();
        let mut offset = 0;
        for round in 0..5_u8 {
            assert!(reader.fill_buf().await.unwrap().is_empty());
            let more = vec![round; 3000];
            log.write_all_at(more.clone(), offset).await.0.unwrap();
            offset += 3000;
            let mut found = Vec::new();
            reader.read_to_end(&mut found).await.unwrap();
            assert_eq!(found, more);
        }
    });
}

#[test]
fn a_read_that_fails_is_reported_and_tried_again() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let file = File::create(&path).await.unwrap();
        let mut reader = FileReader::new(file);
        for _ in 0..2 {
            let error = reader.fill_buf().await.unwrap_err();
            assert!(
                error.to_string().contains("open the file for reading"),
                "{error}"
            );
        }
        drop(reader.into_file());
        let mut reader = FileReader::new(File::open(scratch_dir(&path)).await.unwrap());
        let error = reader.read(&mut [0; 4]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IsADirectory, "{error}");
    });
}

fn scratch_dir(path: &std::path::Path) -> &std::path::Path {
    path.parent().unwrap()
}

#[test]
fn what_is_written_in_any_pieces_is_in_the_file() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        for (size, depth) in [(1, 1), (7, 3), (BLOCK, 2), (BLOCK + 1, 1), (50_000, 3)] {
            let contents = pattern(60_000);
            let file = File::create(&path).await.unwrap();
            let mut writer = small().depth(depth).writer(file).unwrap();
            for piece in contents.chunks(size) {
                writer.write_all(piece).await.unwrap();
            }
            assert_eq!(writer.position(), 60_000);
            writer.close().await.unwrap();
            assert_eq!(fs::read(&path).await.unwrap(), contents, "pieces of {size}");
        }
    });
}

#[test]
fn a_flush_writes_what_is_there_and_writing_goes_on() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        fs::write(&path, "--head--").await.unwrap();
        let file = File::options().write(true).open(&path).await.unwrap();
        let mut writer = small().start(4).writer(file).unwrap();
        let mut wanted = b"--he".to_vec();
        writer.flush().await.unwrap();
        for n in 0..300_u32 {
            let piece = n.to_string();
            writer.write_all(piece.as_bytes()).await.unwrap();
            wanted.extend_from_slice(piece.as_bytes());
            if n % 50 == 0 {
                writer.flush().await.unwrap();
                assert!(fs::read(&path).await.unwrap().starts_with(&wanted));
            }
        }
        let writer = writer
            .into_file()
            .expect_err("it holds what was not flushed");
        let mut writer = writer;
        writer.flush().await.unwrap();
        let file = writer.into_file().expect("it holds nothing");
        file.close().await.unwrap();
        assert_eq!(fs::read(&path).await.unwrap(), wanted);
    });
}

#[test]
fn an_appending_writer_keeps_its_order() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        fs::write(&path, "start").await.unwrap();
        let file = File::options().append(true).open(&path).await.unwrap();
        let mut writer = small().depth(8).writer(file).unwrap();
        let contents = pattern(100_000);
        writer.write_all(&contents).await.unwrap();
        writer.close().await.unwrap();
        let found = fs::read(&path).await.unwrap();
        assert_eq!(found[..5], *b"start");
        assert_eq!(found[5..], contents);
    });
}

#[test]
fn a_dropped_write_accepted_nothing_and_loses_nothing() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let contents = pattern(200_000);
        let mut writer = small()
            .depth(1)
            .writer(File::create(&path).await.unwrap())
            .unwrap();
        let mut accepted = 0;
        let mut dropped = 0;
        while accepted < contents.len() {
            let mut write = Box::pin(writer.write(&contents[accepted..]));
            let polled = poll!(write.as_mut());
            drop(write);
            match polled {
                Poll::Ready(count) => accepted += count.unwrap(),
                Poll::Pending => {
                    dropped += 1;
                    assert!(dropped < 100_000, "no room comes");
                    yield_now().await;
                }
            }
            assert_eq!(writer.position(), accepted as u64);
        }
        assert!(dropped > 0);
        loop {
            let mut flush = Box::pin(writer.flush());
            if poll!(flush.as_mut()).is_ready() {
                break;
            }
            drop(flush);
            yield_now().await;
        }
        assert_eq!(fs::read(&path).await.unwrap(), contents);
    });
}

#[test]
fn no_more_operations_are_in_flight_than_asked_for() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let mut writer = small()
            .depth(2)
            .writer(File::create(&path).await.unwrap())
            .unwrap();
        for _ in 0..100 {
            writer.write_all(&[7; 3000]).await.unwrap();
            let live = ShardCounts::current().unwrap().live_operations;
            assert!(
                live <= 1 + 2,
                "{live} operations, one of them the doorbell's"
            );
        }
        writer.close().await.unwrap();
        let mut reader = small()
            .depth(2)
            .reader(File::open(&path).await.unwrap())
            .unwrap();
        while !reader.fill_buf().await.unwrap().is_empty() {
            let live = ShardCounts::current().unwrap().live_operations;
            // The file that was closed by dropping it may still be on its way.
            assert!(
                live <= 1 + 2 + 1,
                "{live} operations, one of them the doorbell's"
            );
            reader.consume(usize::MAX);
        }
    });
}

#[test]
fn a_failed_write_behind_is_reported_by_the_next_call_and_by_flush_and_close() {
    on_a_shard(|| async {
        let full = || async {
            let file = File::options().write(true).open("/dev/full").await.unwrap();
            small().depth(2).writer(file).unwrap()
        };
        let check = |error: std::io::Error| {
            assert_eq!(error.kind(), ErrorKind::StorageFull);
            assert_eq!(fs::raw_os_error(&error), Some(libc::ENOSPC));
            assert!(
                error
                    .to_string()
                    .starts_with("write /dev/full at offset 0: No space"),
                "{error}"
            );
        };
        let mut writer = full().await;
        writer.write_all(&[1; BLOCK]).await.unwrap();
        check(writer.flush().await.unwrap_err());
        check(writer.flush().await.unwrap_err());
        check(writer.close().await.unwrap_err());

        let mut writer = full().await;
        // Accepted; the failure is only known later.
        writer.write_all(&[1; BLOCK]).await.unwrap();
        quiet().await;
        check(writer.write(b"x").await.unwrap_err());
        assert_eq!(
            writer.position(),
            BLOCK as u64,
            "the call that reports accepts nothing"
        );
        check(writer.close().await.unwrap_err());

        let mut writer = full().await;
        writer.write_all(&[1; 10]).await.unwrap();
        check(writer.close().await.unwrap_err());
    });
}

#[test]
fn streams_that_make_no_sense_are_refused_with_their_value() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        fs::write(&path, "").await.unwrap();
        let check = async |options: StreamOptions, text: &str| {
            let error = options
                .reader(File::open(&path).await.unwrap())
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(text), "{error}");
            let file = File::open(&path).await.unwrap();
            assert!(options.writer(file).unwrap_err().to_string().contains(text));
        };
        check(StreamOptions::new().block_size(0), "block size of 0").await;
        check(StreamOptions::new().block_size(5000), "block size of 5000").await;
        check(StreamOptions::new().depth(0), "depth of 0").await;

        check(StreamOptions::new().start(u64::MAX), "18446744073709551615").await;

        // At the last offset there is no room for a block.
        let last = StreamOptions::new().start(i64::MAX.unsigned_abs());
        let mut reader = last.reader(File::open(&path).await.unwrap()).unwrap();
        let error = reader.fill_buf().await.unwrap_err();
        assert!(error.to_string().contains("9223372036854775807"), "{error}");
        reader.seek(u64::MAX);
        let error = reader.fill_buf().await.unwrap_err();
        assert!(
            error.to_string().contains("18446744073709551615"),
            "{error}"
        );
        let file = File::options().write(true).open(&path).await.unwrap();
        let mut writer = last.writer(file).unwrap();
        writer.write_all(b"x").await.unwrap();
        let error = writer.flush().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(writer.close().await.is_err());
    });
}

#[test]
fn writes_in_flight_go_on_when_the_writer_is_dropped() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let contents = pattern(2 * BLOCK);
        let mut writer = small().writer(File::create(&path).await.unwrap()).unwrap();
        writer.write_all(&contents).await.unwrap();
        drop(writer);
        quiet().await;
        assert_eq!(fs::read(&path).await.unwrap(), contents);
    });
}

/// The child's part of the next test; does nothing when run with the others.
#[test]
fn child_that_drops_a_writer() {
    let Ok(path) = std::env::var("GREENROOM_DROP_WRITER") else {
        return;
    };
    on_a_shard(move || async move {
        let mut writer = FileWriter::new(File::create(&path).await.unwrap());
        writer.write_all(b"never flushed").await.unwrap();
        drop(writer);
        let mut writer = FileWriter::new(File::create(&path).await.unwrap());
        writer.write_all(b"nor this").await.unwrap();
        drop(writer);
        let mut writer = FileWriter::new(File::create(&path).await.unwrap());
        writer.write_all(b"flushed").await.unwrap();
        writer.flush().await.unwrap();
        drop(writer);
    });
}

#[test]
fn a_debug_build_says_what_a_dropped_writer_lost() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "stream::child_that_drops_a_writer",
            "--nocapture",
        ])
        .env("GREENROOM_DROP_WRITER", &path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    let wanted = format!(
        "a writer of {} was dropped with 13 bytes that were never written",
        path.display()
    );
    if cfg!(debug_assertions) {
        assert_eq!(said.matches("was dropped with").count(), 1, "{said}");
        assert!(said.contains(&wanted), "{said}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"flushed");
}
