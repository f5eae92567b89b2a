//! Direct transfers and their alignment, full disks, limits: clear errors and nothing lost.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use greenroom_runtime::buffer::IoBuf;
use greenroom_runtime::fs::{self, AlignedBuf, File, FileError, StreamOptions};
use greenroom_runtime::time::timeout;
use greenroom_runtime::{Builder, spawn, yield_now};

use super::support::{Scratch, on_a_shard, pattern};

/// A file for direct transfers; `None` where the file system has none.
async fn direct_file(path: &Path) -> Option<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).direct(true);
    match options.open(path).await {
        Ok(file) => Some(file),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(
                error.to_string().contains("may not know O_DIRECT"),
                "{error}"
            );
            None
        }
    }
}

fn aligned(file: &File, contents: &[u8]) -> AlignedBuf {
    let alignment = file.direct_alignment().unwrap();
    let mut buffer = AlignedBuf::for_direct(contents.len(), alignment).unwrap();
    assert_eq!(buffer.append(contents), contents.len());
    buffer
}

#[test]
fn aligned_buffers_go_past_the_page_cache_and_back() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let Some(file) = direct_file(&path).await else {
            return;
        };
        let Some(alignment) = file.direct_alignment() else {
            return;
        };
        let contents = pattern(16_384);
        file.write_all_at(aligned(&file, &contents), 0)
            .await
            .0
            .unwrap();
        let unit = alignment.memory.max(alignment.offset);
        let part = aligned(&file, &vec![1; 2 * unit]).slice(unit..);
        file.write_all_at(part, 16_384).await.0.unwrap();

        let buffer = AlignedBuf::for_direct(16_384, alignment).unwrap();
        let (result, buffer) = file.read_exact_at(buffer, 0).await;
        result.unwrap();
        assert_eq!(buffer[..], contents);
        let pieces = vec![
            aligned(&file, &vec![0; unit]),
            aligned(&file, &vec![0; unit]),
        ];
        let (result, pieces) = file.read_vectored_at(pieces, 0).await;
        assert_eq!(result.unwrap(), 2 * unit);
        assert_eq!([&pieces[0][..], &pieces[1]].concat(), contents[..2 * unit]);
    });
}

#[test]
fn misaligned_direct_transfers_name_the_value_and_the_cure() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let Some(file) = direct_file(&path).await else {
            return;
        };
        let Some(alignment) = file.direct_alignment() else {
            return;
        };
        let unit = alignment.offset;
        let buffer = || AlignedBuf::for_direct(4096, alignment).unwrap();
        let check = |error: std::io::Error, text: &str| {
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
            assert!(error.to_string().contains(text), "{error}");
        };
        let multiple = format!("no multiple of {unit}, which O_DIRECT asks for here");
        let error = file.read_at(buffer(), 100).await.0.unwrap_err();
        check(error, &format!("the offset 100 is {multiple}"));
        let error = file.read_at(buffer().slice(..100), 0).await.0.unwrap_err();
        check(error, &format!("the length 100 is {multiple}"));
        let error = file.write_all_at("short", 0).await.0.unwrap_err();
        check(error, &format!("the length 5 is {multiple}"));
        let pieces = vec![vec![0; unit], vec![0; 7]];
        let error = file.write_all_vectored_at(pieces, 0).await.0.unwrap_err();
        check(error, &format!("the length 7 is {multiple}"));
        let file_of_stream = direct_file(&path).await.unwrap();
        let stream = StreamOptions::new().start(100).writer(file_of_stream);
        check(
            stream.unwrap_err(),
            &format!("a start at 100 is {multiple}"),
        );

        // Where memory must be aligned to more than one byte, an odd address is refused.
        if alignment.memory > 1 {
            let mut odd = buffer();
            odd.resize(4096, 0);
            let odd = AlignedBuf::for_direct(8192, alignment)
                .map(|mut buffer| {
                    buffer.resize(8192, 0);
                    buffer.slice(1..1 + odd.len())
                })
                .unwrap();
            let error = file.write_at(odd, 0).await.0.unwrap_err();
            check(error, "use an `AlignedBuf`");
        }
        assert_eq!(
            file.metadata().await.unwrap().len(),
            0,
            "nothing was written"
        );
    });
}

#[test]
fn direct_streams_read_what_buffered_ones_wrote_and_the_other_way_round() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    on_a_shard(move || async move {
        let Some(file) = direct_file(&path).await else {
            return;
        };
        let unit = file
            .direct_alignment()
            .map_or(4096, |alignment| alignment.offset);
        let options = StreamOptions::new().block_size(8192).depth(3);
        let contents = pattern(100_000);
        for len in [0, 1, unit, 8192, 24_576, 99_999] {
            fs::write(&path, contents[..len].to_vec()).await.unwrap();
            let mut reader = options.reader(direct_file(&path).await.unwrap()).unwrap();
            let mut found = Vec::new();
            reader.read_to_end(&mut found).await.unwrap();
            assert_eq!(found, contents[..len], "{len} bytes");
            // A direct read that goes on begins before the end.
            assert_eq!(reader.read_to_end(&mut found).await.unwrap(), 0);
            reader.seek(len as u64 / 2);
            found.clear();
            reader.read_to_end(&mut found).await.unwrap();
            assert_eq!(
                found,
                contents[len / 2..len],
                "from the middle of {len} bytes"
            );
        }
        fs::write(&path, "").await.unwrap();
        let mut writer = options.writer(file).unwrap();
        let rest = unit - 100_000 % unit;
        writer.write_all(&contents).await.unwrap();
        if rest < unit {
            let error = writer.flush().await.unwrap_err();
            assert!(
                error.to_string().contains(&format!("write {rest} more")),
                "{error}"
            );
            writer.write_all(&vec![0; rest]).await.unwrap();
        }
        writer.close().await.unwrap();
        assert_eq!(fs::read(&path).await.unwrap()[..100_000], contents);
    });
}

/// A file system of one megabyte, or a device that is always full where none may be mounted.
struct SmallDisk {
    scratch: Scratch,
    is_mounted: bool,
}

impl SmallDisk {
    fn new() -> SmallDisk {
        let scratch = Scratch::new();
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
            .arg(scratch.path(""));
        let is_mounted = mount.output().is_ok_and(|output| output.status.success());
        SmallDisk {
            scratch,
            is_mounted,
        }
    }

    fn path(&self) -> PathBuf {
        if self.is_mounted {
            self.scratch.path("file")
        } else {
            "/dev/full".into()
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if self.is_mounted {
            Command::new("umount")
                .arg(self.scratch.path(""))
                .status()
                .ok();
        }
    }
}

#[test]
fn a_full_disk_is_reported_with_what_was_written_and_nothing_is_lost() {
    let disk = SmallDisk::new();
    let (path, is_mounted) = (disk.path(), disk.is_mounted);
    on_a_shard(move || async move {
        let file = File::options()
            .write(true)
            .create(is_mounted)
            .open(&path)
            .await
            .unwrap();
        let (result, buffer) = file.write_all_at(vec![1; 3 << 20], 0).await;
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert_eq!(fs::raw_os_error(&error), Some(libc::ENOSPC));
        assert_eq!(buffer.len(), 3 << 20, "the buffer comes back");
        if !is_mounted {
            return;
        }
        let written = FileError::of(&error).unwrap().transferred();
        assert!(written > 0 && written <= 1 << 20, "{error}");
        assert_eq!(file.metadata().await.unwrap().len(), written);
        assert_eq!(
            file.allocate(0, 2 << 20).await.unwrap_err().kind(),
            ErrorKind::StorageFull
        );
        let found = fs::read(&path).await.unwrap();
        assert!(found.iter().all(|&byte| byte == 1) && found.len() as u64 == written);
        let error = fs::write(path.with_extension("2"), vec![0; 100_000])
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        let copied = fs::copy("/proc/self/exe", path.with_extension("3")).await;
        assert_eq!(copied.unwrap_err().kind(), ErrorKind::StorageFull);
    });
}

#[test]
fn a_writer_goes_on_once_a_full_disk_has_room_again() {
    let disk = SmallDisk::new();
    if !disk.is_mounted {
        return;
    }
    let path = disk.path();
    on_a_shard(move || async move {
        let ballast = path.with_extension("ballast");
        fs::write(&ballast, vec![0; 900_000]).await.unwrap();
        let options = StreamOptions::new().block_size(64 * 1024).depth(2);
        let mut writer = options.writer(File::create(&path).await.unwrap()).unwrap();
        let contents = pattern(500_000);
        let mut accepted = 0;
        let mut failures = 0;
        while accepted < contents.len() {
            match writer.write(&contents[accepted..]).await {
                Ok(count) => accepted += count,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::StorageFull);
                    failures += 1;
                    assert!(failures < 1000, "still full");
                    if failures == 5 {
                        fs::remove_file(&ballast).await.unwrap();
                    }
                }
            }
        }
        assert!(failures >= 5, "the disk was full: {failures}");
        while let Err(error) = writer.flush().await {
            assert_eq!(error.kind(), ErrorKind::StorageFull);
            failures += 1;
            assert!(failures < 1000, "still full");
        }
        writer.close().await.unwrap();
        assert_eq!(fs::read(&path).await.unwrap(), contents);
    });
}

/// The child's part of the next test; does nothing when run with the others.
#[test]
fn child_with_a_limit_on_file_sizes() {
    let Ok(path) = std::env::var("GREENROOM_FILE_LIMIT") else {
        return;
    };
    on_a_shard(move || async move {
        let file = File::create(&path).await.unwrap();
        let (result, _) = file.write_all_at(vec![1; 100_000], 0).await;
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge, "{error}");
        assert!(error.to_string().contains("ulimit -f"), "{error}");
        let written = FileError::of(&error).unwrap().transferred();
        assert_eq!(written, 8 * 1024, "{error}");
        assert_eq!(file.metadata().await.unwrap().len(), written);
        let error = file.set_len(100_000).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge, "{error}");
    });
}

#[test]
fn a_limit_on_file_sizes_is_reported_with_what_was_written() {
    // The signal that comes with the limit ends a process that does not ignore it. Blocks of the shell are half a KiB,
    // or one in shells that follow another tradition: it is told to be of the first kind.
    run_limited(
        "bash",
        "trap '' XFSZ; set -o posix; ulimit -f 16",
        "child_with_a_limit_on_file_sizes",
        "GREENROOM_FILE_LIMIT",
    );
}

#[test]
fn an_open_that_waits_for_ever_can_be_dropped_and_does_not_hold_up_the_end() {
    let scratch = Scratch::new();
    let pipe = scratch.path("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let runtime = Builder::new().shards(1).start().unwrap();
    if runtime.backend() != "io_uring" {
        // Elsewhere a thread of the pool waits, and nothing can call it back.
        return;
    }
    runtime.run_on(0, move || async move {
        for _ in 0..20 {
            let opened = timeout(Duration::from_millis(1), File::create(&pipe)).await;
            assert!(opened.is_err(), "nobody reads: {opened:?}");
        }
        // What was cancelled has left room for others.
        assert!(fs::exists(&pipe).await.unwrap());
        spawn(async move { File::create(pipe).await }).detach();
        yield_now().await;
    });
    assert_eq!(runtime.shutdown().leaked_operations(), 0);
}

/// The child's part of the next test; does nothing when run with the others.
#[test]
fn child_with_few_descriptors() {
    let Ok(path) = std::env::var("GREENROOM_FEW_DESCRIPTORS") else {
        return;
    };
    on_a_shard(move || async move {
        let mut files = Vec::new();
        let error = loop {
            match File::create(&path).await {
                Ok(file) => files.push(file),
                Err(error) => break error,
            }
            assert!(files.len() < 64, "there is a limit of 64");
        };
        assert_eq!(fs::raw_os_error(&error), Some(libc::EMFILE));
        assert!(error.to_string().contains("ulimit -n"), "{error}");
        let error = files[0].try_clone().unwrap_err();
        assert_eq!(fs::raw_os_error(&error), Some(libc::EMFILE));
        files.pop().unwrap().close().await.unwrap();
        File::create(&path).await.unwrap();
    });
}

#[test]
fn running_out_of_descriptors_is_an_error_with_its_cure() {
    run_limited(
        "sh",
        "ulimit -n 64",
        "child_with_few_descriptors",
        "GREENROOM_FEW_DESCRIPTORS",
    );
}

/// Runs one test of this file in a process of its own, which a shell gives its limits. The variable holds the path of a
/// file for it.
#[track_caller]
fn run_limited(shell: &str, limits: &str, child: &str, variable: &str) {
    let scratch = Scratch::new();
    let script = format!("{limits}; exec \"$0\" --exact limits::{child}");
    let output = Command::new(shell)
        .args(["-c", &script])
        .arg(std::env::current_exe().unwrap())
        .env(variable, scratch.path("file"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let ran = String::from_utf8_lossy(&output.stdout).contains("1 passed");
    assert!(ran, "there is no such test: {output:?}");
}
