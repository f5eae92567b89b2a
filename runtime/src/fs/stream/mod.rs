//! Files from their start to their end: reading ahead and writing behind.
//!
//! Both hold blocks: aligned buffers of one size. The reader keeps a number of reads in flight ahead of whoever reads, the
//! writer a number of writes behind whoever writes. The operations belong to the stream and not to the future of a
//! call, so a dropped call takes nothing with it.

mod reader;
mod writer;

pub use self::reader::FileReader;
pub use self::writer::FileWriter;

use std::io;

use super::aligned::AlignedBuf;
use super::error::FileError;
use super::file::{Direct, File};
use super::transfer::check_range;

/// What blocks are aligned to unless the file asks for more: enough for all usual devices.
const ALIGNMENT: usize = 4096;

/// How a file is read or written from start to end.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::{Builder, fs::{File, StreamOptions}};
///
/// let runtime = Builder::new().shards(1).start()?;
/// # let path = std::env::temp_dir().join(format!("greenroom-stream-{}", std::process::id()));
/// # let remove = path.clone();
/// runtime.run_on(0, move || async move {
///     let options = StreamOptions::new().block_size(64 * 1024).depth(8);
///     let mut writer = options.writer(File::create(&path).await?)?;
///     for number in 0..10_000 {
///         writer.write_all(format!("line {number}\n").as_bytes()).await?;
///     }
///     writer.close().await?;
///
///     let mut reader = options.start(7).reader(File::open(&path).await?)?;
///     let mut line = Vec::new();
///     reader.read_until(b'\n', &mut line).await?;
///     assert_eq!(line, b"line 1\n");
///     Ok::<(), std::io::Error>(())
/// })?;
/// # std::fs::remove_file(remove)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "options do nothing until a stream is made with them"]
pub struct StreamOptions {
    block_size: usize,
    depth: usize,
    start: u64,
}

impl Default for StreamOptions {
    fn default() -> StreamOptions {
        StreamOptions::new()
    }
}

impl StreamOptions {
    /// Blocks of 128 KiB, four in flight, from the start of the file.
    pub fn new() -> StreamOptions {
        StreamOptions {
            block_size: 128 * 1024,
            depth: 4,
            start: 0,
        }
    }

    /// Sets how many bytes one operation moves: a multiple of 4096.
    pub fn block_size(mut self, block_size: usize) -> StreamOptions {
        self.block_size = block_size;
        self
    }

    /// Sets how many operations are in flight at most; at least one. A stream holds one block more than that.
    pub fn depth(mut self, depth: usize) -> StreamOptions {
        self.depth = depth;
        self
    }

    /// Sets where in the file the stream begins.
    pub fn start(mut self, start: u64) -> StreamOptions {
        self.start = start;
        self
    }

    /// Makes a reader of a file.
    ///
    /// # Errors
    ///
    /// If the block size is zero or no multiple of 4096, the depth is zero, or the file is one of direct transfers and
    /// asks for more: the error names the value and what to use.
    pub fn reader(self, file: File) -> io::Result<FileReader> {
        self.check(&file, "read", 1)?;
        Ok(FileReader::with_options(file, self))
    }

    /// Makes a writer to a file.
    ///
    /// # Errors
    ///
    /// As for [`reader`](Self::reader), and if the start is no multiple of what a file of direct transfers asks for.
    pub fn writer(self, file: File) -> io::Result<FileWriter> {
        self.check(&file, "write", offset_unit(&file))?;
        Ok(FileWriter::with_options(file, self))
    }

    /// `unit` is what the start has to be a multiple of.
    fn check(&self, file: &File, operation: &'static str, unit: u64) -> io::Result<()> {
        check_range(file, operation, self.start, 0)?;
        let alignment = block_alignment(file);
        let text = if self.block_size == 0 || !self.block_size.is_multiple_of(alignment) {
            format!(
                "a block size of {} is no positive multiple of {alignment}: use one, such as {}",
                self.block_size,
                alignment * 32
            )
        } else if self.depth == 0 {
            "a depth of 0 lets nothing happen: use at least 1".to_owned()
        } else if !self.start.is_multiple_of(unit) {
            format!(
                "a start at {} is no multiple of {unit}, which O_DIRECT asks for here",
                self.start
            )
        } else {
            return Ok(());
        };
        Err(FileError::invalid(operation, file.name.clone(), text).into())
    }
}

/// What blocks of a stream over this file are aligned to.
fn block_alignment(file: &File) -> usize {
    match file.direct {
        Direct::Aligned(asked) => ALIGNMENT.max(asked.memory).max(asked.offset),
        Direct::No | Direct::Unknown => ALIGNMENT,
    }
}

/// What offsets and lengths of transfers have to be multiples of.
fn offset_unit(file: &File) -> u64 {
    match file.direct {
        Direct::No => 1,
        Direct::Aligned(asked) => asked.offset as u64,
        // Not told; what is enough for all usual devices.
        Direct::Unknown => ALIGNMENT as u64,
    }
}

/// The blocks of a stream that are not in use.
#[derive(Debug)]
struct Blocks {
    spare: Vec<AlignedBuf>,
    size: usize,
    alignment: usize,
}

impl Blocks {
    fn new(file: &File, size: usize) -> Blocks {
        Blocks {
            spare: Vec::new(),
            size,
            alignment: block_alignment(file),
        }
    }

    /// An empty block. Allocates only until the stream has as many as it ever uses at one time.
    fn take(&mut self) -> io::Result<AlignedBuf> {
        if let Some(mut block) = self.spare.pop() {
            block.clear();
            return Ok(block);
        }
        Ok(AlignedBuf::with_capacity(self.size, self.alignment)?)
    }

    fn give_back(&mut self, block: AlignedBuf) {
        self.spare.push(block);
    }
}
