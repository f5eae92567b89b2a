//! A directory for the files of one test.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A fresh directory, removed with all that is in it when dropped.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes one in the system's place for temporary files.
    pub(crate) fn new() -> Scratch {
        Scratch::under(&std::env::temp_dir())
    }

    /// Makes one in a place of its own choice.
    pub(crate) fn under(place: &Path) -> Scratch {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        // ORDERING: Relaxed; only the numbers have to differ.
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = place.join(format!("greenroom-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    /// The path of something in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}
