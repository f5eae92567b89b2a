//! Random operations, on files and names, with the standard library as the model.
//!
//! Every step is done twice: here, and by `std::fs` in a directory beside. Results, kinds of errors and what is there in
//! the end are the same.

use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use greenroom_runtime::fs::{self, File, StreamOptions};
use greenroom_runtime::{Builder, Runtime};
use proptest::prelude::*;

use super::support::Scratch;

#[derive(Clone, Debug)]
enum FileStep {
    Write(u64, Vec<u8>),
    WriteVectored(u64, Vec<Vec<u8>>),
    Read(u64, usize),
    ReadExact(u64, usize),
    ReadVectored(u64, Vec<usize>),
    SetLen(u64),
    Append(Vec<u8>),
    /// Through a writer, from an offset, in pieces of a size.
    Stream(u64, Vec<u8>, usize),
    /// Through a reader, from an offset, in pieces of a size.
    ReadStream(u64, usize),
    Len,
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..9000)
}

fn file_step() -> impl Strategy<Value = FileStep> {
    let offset = || 0..20_000_u64;
    let size = || 0..9000_usize;
    prop_oneof![
        4 => (offset(), bytes()).prop_map(|(offset, bytes)| FileStep::Write(offset, bytes)),
        2 => (offset(), proptest::collection::vec(bytes(), 0..4))
            .prop_map(|(offset, pieces)| FileStep::WriteVectored(offset, pieces)),
        3 => (offset(), size()).prop_map(|(offset, len)| FileStep::Read(offset, len)),
        2 => (offset(), size()).prop_map(|(offset, len)| FileStep::ReadExact(offset, len)),
        2 => (offset(), proptest::collection::vec(size(), 0..4))
            .prop_map(|(offset, lens)| FileStep::ReadVectored(offset, lens)),
        1 => offset().prop_map(FileStep::SetLen),
        1 => bytes().prop_map(FileStep::Append),
        2 => (offset(), bytes(), 1..5000_usize)
            .prop_map(|(offset, bytes, piece)| FileStep::Stream(offset, bytes, piece)),
        2 => (offset(), 1..5000_usize).prop_map(|(offset, piece)| FileStep::ReadStream(offset, piece)),
        1 => Just(FileStep::Len),
    ]
}

fn kind<T>(result: io::Result<T>) -> Result<T, ErrorKind> {
    result.map_err(|error| error.kind())
}

async fn our_file_step(path: &Path, file: &File, step: FileStep) -> Result<Vec<u8>, ErrorKind> {
    let small = |start| StreamOptions::new().block_size(4096).depth(2).start(start);
    let result = match step {
        FileStep::Write(offset, bytes) => file
            .write_all_at(bytes, offset)
            .await
            .0
            .map(|()| Vec::new()),
        FileStep::WriteVectored(offset, pieces) => {
            let (result, _) = file.write_all_vectored_at(pieces, offset).await;
            result.map(|()| Vec::new())
        }
        FileStep::Read(offset, len) => {
            let (result, bytes) = file.read_at(vec![0; len].into_boxed_slice(), offset).await;
            result.map(|count| bytes[..count].to_vec())
        }
        FileStep::ReadExact(offset, len) => {
            let (result, bytes) = file
                .read_exact_at(vec![0; len].into_boxed_slice(), offset)
                .await;
            result.map(|()| bytes.into_vec())
        }
        FileStep::ReadVectored(offset, lens) => {
            let pieces = lens.iter().map(|&len| vec![0; len].into_boxed_slice());
            let (result, pieces) = file.read_vectored_at(pieces.collect(), offset).await;
            result.map(|count| pieces.concat()[..count].to_vec())
        }
        FileStep::SetLen(len) => file.set_len(len).await.map(|()| Vec::new()),
        FileStep::Append(bytes) => {
            let appended = File::options().append(true).open(path).await.unwrap();
            appended.write_all_at(bytes, 7).await.0.map(|()| Vec::new())
        }
        FileStep::Stream(offset, bytes, piece) => {
            let mut writer = small(offset).writer(file.try_clone().unwrap()).unwrap();
            for bytes in bytes.chunks(piece) {
                writer.write_all(bytes).await.unwrap();
            }
            writer.close().await.map(|()| Vec::new())
        }
        FileStep::ReadStream(offset, piece) => {
            let mut reader = small(offset).reader(file.try_clone().unwrap()).unwrap();
            let mut found = Vec::new();
            let mut bytes = vec![0; piece];
            loop {
                match reader.read(&mut bytes).await.unwrap() {
                    0 => break Ok(found),
                    count => found.extend_from_slice(&bytes[..count]),
                }
            }
        }
        FileStep::Len => file
            .metadata()
            .await
            .map(|found| found.len().to_le_bytes().to_vec()),
    };
    kind(result)
}

fn their_file_step(
    path: &Path,
    file: &std::fs::File,
    step: FileStep,
) -> Result<Vec<u8>, ErrorKind> {
    let read = |offset, len| {
        let mut bytes = vec![0; len];
        let count = file.read_at(&mut bytes, offset)?;
        bytes.truncate(count);
        Ok(bytes)
    };
    let result = match step {
        FileStep::Write(offset, bytes) | FileStep::Stream(offset, bytes, _) => {
            file.write_all_at(&bytes, offset).map(|()| Vec::new())
        }
        FileStep::WriteVectored(offset, pieces) => file
            .write_all_at(&pieces.concat(), offset)
            .map(|()| Vec::new()),
        FileStep::Read(offset, len) => read(offset, len),
        FileStep::ReadExact(offset, len) => {
            let mut bytes = vec![0; len];
            file.read_exact_at(&mut bytes, offset).map(|()| bytes)
        }
        FileStep::ReadVectored(offset, lens) => read(offset, lens.iter().sum()),
        FileStep::SetLen(len) => file.set_len(len).map(|()| Vec::new()),
        FileStep::Append(bytes) => {
            let mut appended = std::fs::OpenOptions::new().append(true).open(path).unwrap();
            appended.write_all(&bytes).map(|()| Vec::new())
        }
        FileStep::ReadStream(offset, _) => read(offset, 1 << 20),
        FileStep::Len => file
            .metadata()
            .map(|found| found.len().to_le_bytes().to_vec()),
    };
    kind(result)
}

#[derive(Clone, Debug)]
enum NameStep {
    Write(PathBuf, Vec<u8>),
    Read(PathBuf),
    CreateNew(PathBuf),
    CreateDir(PathBuf),
    CreateDirAll(PathBuf),
    RemoveFile(PathBuf),
    RemoveDir(PathBuf),
    RemoveDirAll(PathBuf),
    Rename(PathBuf, PathBuf),
    HardLink(PathBuf, PathBuf),
    Symlink(PathBuf, PathBuf),
    Copy(PathBuf, PathBuf),
    Exists(PathBuf),
    Type(PathBuf),
    ReadDir(PathBuf),
}

/// Few names, so that steps meet.
fn path() -> impl Strategy<Value = PathBuf> {
    proptest::collection::vec(prop_oneof![Just("a"), Just("b"), Just("c")], 1..4)
        .prop_map(|names| names.iter().collect())
}

fn name_step() -> impl Strategy<Value = NameStep> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..20);
    prop_oneof![
        3 => (path(), bytes()).prop_map(|(path, bytes)| NameStep::Write(path, bytes)),
        2 => path().prop_map(NameStep::Read),
        1 => path().prop_map(NameStep::CreateNew),
        3 => path().prop_map(NameStep::CreateDir),
        2 => path().prop_map(NameStep::CreateDirAll),
        2 => path().prop_map(NameStep::RemoveFile),
        1 => path().prop_map(NameStep::RemoveDir),
        1 => path().prop_map(NameStep::RemoveDirAll),
        2 => (path(), path()).prop_map(|(from, to)| NameStep::Rename(from, to)),
        1 => (path(), path()).prop_map(|(from, to)| NameStep::HardLink(from, to)),
        1 => (path(), path()).prop_map(|(from, to)| NameStep::Symlink(from, to)),
        1 => (path(), path()).prop_map(|(from, to)| NameStep::Copy(from, to)),
        1 => path().prop_map(NameStep::Exists),
        1 => path().prop_map(NameStep::Type),
        1 => path().prop_map(NameStep::ReadDir),
    ]
}

async fn our_name_step(root: &Path, step: NameStep) -> Result<Vec<u8>, ErrorKind> {
    let at = |path: PathBuf| root.join(path);
    let nothing = |()| Vec::new();
    kind(match step {
        NameStep::Write(path, bytes) => fs::write(at(path), bytes).await.map(nothing),
        NameStep::Read(path) => fs::read(at(path)).await,
        NameStep::CreateNew(path) => File::create_new(at(path)).await.map(drop).map(nothing),
        NameStep::CreateDir(path) => fs::create_dir(at(path)).await.map(nothing),
        NameStep::CreateDirAll(path) => fs::create_dir_all(at(path)).await.map(nothing),
        NameStep::RemoveFile(path) => fs::remove_file(at(path)).await.map(nothing),
        NameStep::RemoveDir(path) => fs::remove_dir(at(path)).await.map(nothing),
        NameStep::RemoveDirAll(path) => fs::remove_dir_all(at(path)).await.map(nothing),
        NameStep::Rename(from, to) => fs::rename(at(from), at(to)).await.map(nothing),
        NameStep::HardLink(from, to) => fs::hard_link(at(from), at(to)).await.map(nothing),
        NameStep::Symlink(from, to) => fs::symlink(from, at(to)).await.map(nothing),
        NameStep::Copy(from, to) => fs::copy(at(from), at(to))
            .await
            .map(|count| count.to_le_bytes().to_vec()),
        NameStep::Exists(path) => fs::exists(at(path))
            .await
            .map(|found| vec![u8::from(found)]),
        NameStep::Type(path) => fs::symlink_metadata(at(path)).await.map(|found| {
            let found = found.file_type();
            vec![
                found.is_dir().into(),
                found.is_file().into(),
                found.is_symlink().into(),
            ]
        }),
        NameStep::ReadDir(path) => our_names(&at(path)).await,
    })
}

async fn our_names(path: &Path) -> io::Result<Vec<u8>> {
    let mut names = Vec::new();
    let mut entries = fs::read_dir(path).await?;
    while let Some(entry) = entries.next_entry().await? {
        names.push(format!(
            "{} {}",
            entry.file_name().display(),
            entry.file_type().is_dir()
        ));
    }
    names.sort();
    Ok(names.concat().into_bytes())
}

fn their_name_step(root: &Path, step: NameStep) -> Result<Vec<u8>, ErrorKind> {
    let at = |path: PathBuf| root.join(path);
    let nothing = |()| Vec::new();
    kind(match step {
        NameStep::Write(path, bytes) => std::fs::write(at(path), bytes).map(nothing),
        NameStep::Read(path) => std::fs::read(at(path)),
        NameStep::CreateNew(path) => std::fs::File::create_new(at(path)).map(drop).map(nothing),
        NameStep::CreateDir(path) => std::fs::create_dir(at(path)).map(nothing),
        NameStep::CreateDirAll(path) => std::fs::create_dir_all(at(path)).map(nothing),
        NameStep::RemoveFile(path) => std::fs::remove_file(at(path)).map(nothing),
        NameStep::RemoveDir(path) => std::fs::remove_dir(at(path)).map(nothing),
        NameStep::RemoveDirAll(path) => std::fs::remove_dir_all(at(path)).map(nothing),
        NameStep::Rename(from, to) => std::fs::rename(at(from), at(to)).map(nothing),
        NameStep::HardLink(from, to) => std::fs::hard_link(at(from), at(to)).map(nothing),
        NameStep::Symlink(from, to) => std::os::unix::fs::symlink(from, at(to)).map(nothing),
        // The one difference: the standard library leaves nothing of a file that is copied onto itself.
        NameStep::Copy(from, to) if is_one_file(&at(from.clone()), &at(to.clone())) => {
            Err(ErrorKind::InvalidInput.into())
        }
        NameStep::Copy(from, to) => {
            std::fs::copy(at(from), at(to)).map(|count| count.to_le_bytes().to_vec())
        }
        NameStep::Exists(path) => std::fs::exists(at(path)).map(|found| vec![u8::from(found)]),
        NameStep::Type(path) => std::fs::symlink_metadata(at(path)).map(|found| {
            let found = found.file_type();
            vec![
                found.is_dir().into(),
                found.is_file().into(),
                found.is_symlink().into(),
            ]
        }),
        NameStep::ReadDir(path) => std::fs::read_dir(at(path)).map(|entries| {
            let names = entries.map(|entry| {
                let entry = entry.unwrap();
                format!(
                    "{} {}",
                    entry.file_name().display(),
                    entry.file_type().unwrap().is_dir()
                )
            });
            let mut names: Vec<String> = names.collect();
            names.sort();
            names.concat().into_bytes()
        }),
    })
}

/// All that is below a directory, with what is in it.
fn tree(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_owned();
            let file_type = std::fs::symlink_metadata(&path).unwrap().file_type();
            if file_type.is_dir() {
                found.push((name, b"directory".to_vec()));
                folders.push(path);
            } else if file_type.is_symlink() {
                let target = std::fs::read_link(path).unwrap();
                found.push((name, target.into_os_string().into_encoded_bytes()));
            } else {
                found.push((name, std::fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn is_one_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| {
        std::fs::metadata(path)
            .ok()
            .map(|found| (found.dev(), found.ino()))
    };
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

fn runtime() -> Arc<Runtime> {
    Arc::new(Builder::new().shards(1).start().unwrap())
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

#[test]
fn files_are_as_the_standard_library_would_leave_them() {
    let runtime = runtime();
    let steps = proptest::collection::vec(file_step(), 1..30);
    proptest!(config(40), |(steps in steps)| {
        let scratch = Scratch::new();
        let (ours, theirs) = (scratch.path("ours"), scratch.path("theirs"));
        let mut options = std::fs::OpenOptions::new();
        let model = options.read(true).write(true).create(true).truncate(false).open(&theirs).unwrap();
        let expected: Vec<_> = steps.iter().map(|step| their_file_step(&theirs, &model, step.clone())).collect();
        let path = ours.clone();
        let found = runtime.run_on(0, move || async move {
            let file = File::create_new(&path).await.unwrap();
            let mut found = Vec::new();
            for step in steps {
                found.push(our_file_step(&path, &file, step).await);
            }
            file.close().await.unwrap();
            found
        });
        prop_assert_eq!(found, expected);
        prop_assert_eq!(std::fs::read(ours).unwrap(), std::fs::read(theirs).unwrap());
    });
}

#[test]
fn names_are_as_the_standard_library_would_leave_them() {
    let runtime = runtime();
    let steps = proptest::collection::vec(name_step(), 1..60);
    proptest!(config(60), |(steps in steps)| {
        let scratch = Scratch::new();
        let (ours, theirs) = (scratch.path("ours"), scratch.path("theirs"));
        std::fs::create_dir(&ours).unwrap();
        std::fs::create_dir(&theirs).unwrap();
        let expected: Vec<_> = steps.iter().map(|step| their_name_step(&theirs, step.clone())).collect();
        let root = ours.clone();
        let found = runtime.run_on(0, move || async move {
            let mut found = Vec::new();
            for step in steps {
                found.push(our_name_step(&root, step).await);
            }
            found
        });
        prop_assert_eq!(found, expected);
        prop_assert_eq!(tree(&ours), tree(&theirs));
    });
}
