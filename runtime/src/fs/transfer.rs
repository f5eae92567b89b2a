//! Moving bytes in and out of a file.
//!
//! What is refused here and not left to the kernel: ranges that a file cannot have (an offset of all ones would even
//! mean something to the ring), and misaligned direct transfers, of which the kernel says `EINVAL` and nothing else.

use std::io;

use super::error::FileError;
use super::file::{Direct, File};
use crate::buffer::{BufResult, IoBuf, IoBufMut};
use crate::ring::ops::read_at::ReadAt;
use crate::ring::ops::vectored_at::{ReadVectoredAt, WriteVectoredAt};
use crate::ring::ops::write_at::WriteAt;
use crate::ring::{Op, is_interrupted};

/// No byte of a file has a higher offset.
const OFFSET_MAX: u64 = i64::MAX.unsigned_abs();

/// One transfer: of what, where, how far it came. Gathers what an error has to say.
#[derive(Clone, Copy)]
struct Transfer<'a> {
    file: &'a File,
    operation: &'static str,
    offset: u64,
    wanted: usize,
}

pub(super) async fn read_at<B: IoBufMut>(
    file: &File,
    buffer: B,
    offset: u64,
) -> BufResult<usize, B> {
    let transfer = Transfer::new(file, "read", offset, buffer.capacity());
    if let Err(error) = transfer.check() {
        return (Err(error), buffer);
    }
    let (result, buffer) = read_once(file, buffer, offset).await;
    let address = buffer.as_ptr().addr();
    (
        result.map_err(|cause| transfer.error(0, cause, address)),
        buffer,
    )
}

pub(super) async fn read_exact_at<B: IoBufMut>(
    file: &File,
    mut buffer: B,
    offset: u64,
) -> BufResult<(), B> {
    let end = buffer.capacity();
    let transfer = Transfer::new(file, "read", offset, end);
    if let Err(error) = transfer.check() {
        return (Err(error), buffer);
    }
    let mut filled = 0;
    while filled < end {
        let part = buffer.slice(filled..end);
        let (result, part) = read_once(file, part, offset + filled as u64).await;
        buffer = part.into_inner();
        match result {
            Ok(0) => return (Err(transfer.ended_early(filled)), buffer),
            Ok(count) => filled += count,
            Err(cause) => {
                let address = buffer.as_ptr().addr();
                return (Err(transfer.error(filled, cause, address)), buffer);
            }
        }
    }
    (Ok(()), buffer)
}

pub(super) async fn read_vectored_at<B: IoBufMut>(
    file: &File,
    mut buffers: Vec<B>,
    offset: u64,
) -> BufResult<usize, Vec<B>> {
    let lengths = buffers.iter().map(IoBufMut::capacity);
    let transfer = Transfer::new(file, "read", offset, lengths.fold(0, usize::saturating_add));
    let checked = transfer.check_all(buffers.iter().map(IoBufMut::capacity));
    if let Err(error) = checked {
        return (Err(error), buffers);
    }
    if transfer.wanted == 0 {
        return (Ok(0), buffers);
    }
    loop {
        let operation = ReadVectoredAt::new(file.open.clone(), buffers, offset);
        let (result, returned) = Op::new(operation).await;
        if !is_interrupted(&result) {
            let address = misaligned(file, returned.iter().map(IoBuf::as_ptr));
            return (
                result.map_err(|cause| transfer.error(0, cause, address)),
                returned,
            );
        }
        buffers = returned;
    }
}

pub(super) async fn write_at<B: IoBuf>(file: &File, buffer: B, offset: u64) -> BufResult<usize, B> {
    let transfer = Transfer::new(file, "write", offset, buffer.len());
    if let Err(error) = transfer.check() {
        return (Err(error), buffer);
    }
    let (result, buffer) = write_once(file, buffer, offset).await;
    let address = buffer.as_ptr().addr();
    (
        result.map_err(|cause| transfer.error(0, cause, address)),
        buffer,
    )
}

pub(super) async fn write_all_at<B: IoBuf>(
    file: &File,
    mut buffer: B,
    offset: u64,
) -> BufResult<(), B> {
    let transfer = Transfer::new(file, "write", offset, buffer.len());
    if let Err(error) = transfer.check() {
        return (Err(error), buffer);
    }
    let mut written = 0;
    while written < transfer.wanted {
        let part = buffer.slice(written..);
        let (result, part) = write_once(file, part, offset + written as u64).await;
        buffer = part.into_inner();
        match result.and_then(nothing_is_an_error) {
            Ok(count) => written += count,
            Err(cause) => {
                let address = buffer.as_ptr().addr();
                return (Err(transfer.error(written, cause, address)), buffer);
            }
        }
    }
    (Ok(()), buffer)
}

pub(super) async fn write_vectored_at<B: IoBuf>(
    file: &File,
    buffers: Vec<B>,
    offset: u64,
) -> BufResult<usize, Vec<B>> {
    let transfer = match Transfer::of_pieces(file, &buffers, offset) {
        Ok(transfer) => transfer,
        Err(error) => return (Err(error), buffers),
    };
    let (result, buffers) = write_pieces(file, buffers, 0, offset).await;
    let address = misaligned(file, buffers.iter().map(IoBuf::as_ptr));
    (
        result.map_err(|cause| transfer.error(0, cause, address)),
        buffers,
    )
}

pub(super) async fn write_all_vectored_at<B: IoBuf>(
    file: &File,
    mut buffers: Vec<B>,
    offset: u64,
) -> BufResult<(), Vec<B>> {
    let transfer = match Transfer::of_pieces(file, &buffers, offset) {
        Ok(transfer) => transfer,
        Err(error) => return (Err(error), buffers),
    };
    let mut written = 0;
    while written < transfer.wanted {
        let (result, returned) = write_pieces(file, buffers, written, offset).await;
        buffers = returned;
        match result.and_then(nothing_is_an_error) {
            Ok(count) => written += count,
            Err(cause) => {
                let address = misaligned(file, buffers.iter().map(IoBuf::as_ptr));
                return (Err(transfer.error(written, cause, address)), buffers);
            }
        }
    }
    (Ok(()), buffers)
}

/// Refuses a range that no file can have.
pub(super) fn check_range(
    file: &File,
    operation: &'static str,
    offset: u64,
    len: u64,
) -> io::Result<()> {
    if offset.checked_add(len).is_some_and(|end| end <= OFFSET_MAX) {
        return Ok(());
    }
    let text =
        format!("{len} bytes at offset {offset} reach beyond the end of any file, {OFFSET_MAX}");
    Err(FileError::invalid(operation, file.name.clone(), text).into())
}

impl Transfer<'_> {
    fn new<'a>(
        file: &'a File,
        operation: &'static str,
        offset: u64,
        wanted: usize,
    ) -> Transfer<'a> {
        Transfer {
            file,
            operation,
            offset,
            wanted,
        }
    }

    /// A write of several pieces, checked.
    fn of_pieces<'a, B: IoBuf>(
        file: &'a File,
        buffers: &[B],
        offset: u64,
    ) -> io::Result<Transfer<'a>> {
        let lengths = buffers.iter().map(IoBuf::len);
        let wanted = lengths.fold(0, usize::saturating_add);
        let transfer = Transfer::new(file, "write", offset, wanted);
        transfer.check_all(buffers.iter().map(IoBuf::len))?;
        Ok(transfer)
    }

    fn check(&self) -> io::Result<()> {
        self.check_all([self.wanted].into_iter())
    }

    /// Refuses what the kernel would not take, as far as that can be known. Where the buffer lies is left to the
    /// kernel: a buffer may move on its way to its record.
    fn check_all(&self, mut lengths: impl Iterator<Item = usize>) -> io::Result<()> {
        check_range(self.file, self.operation, self.offset, self.wanted as u64)?;
        let Direct::Aligned(alignment) = self.file.direct else {
            return Ok(());
        };
        let unit = alignment.offset;
        let odd_length = lengths.find(|len| !len.is_multiple_of(unit));
        let (what, value) = match odd_length {
            _ if !self.offset.is_multiple_of(unit as u64) => ("offset", self.offset),
            Some(len) => ("length", len as u64),
            None => return Ok(()),
        };
        let text = format!(
            "the {what} {value} is no multiple of {unit}, which O_DIRECT asks for here: use a multiple, or open the \
             file without"
        );
        let name = self.file.name.clone();
        let error = FileError::invalid(self.operation, name, text);
        Err(error.at(self.offset).into())
    }

    /// The error of a transfer that stopped after `done` bytes. `address` is that of the buffer.
    #[cold]
    fn error(&self, done: usize, cause: io::Error, address: usize) -> io::Error {
        let is_refused = cause.raw_os_error() == Some(libc::EINVAL);
        let mut error = self.file.error(self.operation, cause).at(self.offset);
        if done > 0 {
            error = error.after(done, self.wanted);
        }
        if is_refused && let Some(cure) = self.direct_cure(address) {
            error = error.cure(cure);
        }
        error.into()
    }

    /// What a direct transfer that the kernel refused may have got wrong.
    fn direct_cure(&self, address: usize) -> Option<String> {
        match self.file.direct {
            Direct::No => None,
            Direct::Aligned(alignment) => Some(format!(
                "O_DIRECT asks for memory aligned to {} here, and the buffer is at {address:#x}: use an `AlignedBuf`",
                alignment.memory
            )),
            Direct::Unknown => Some(format!(
                "O_DIRECT asks for an aligned offset, length ({}) and buffer (at {address:#x}): use an `AlignedBuf`, \
                 and multiples of 4096",
                self.wanted
            )),
        }
    }

    #[cold]
    fn ended_early(&self, filled: usize) -> io::Error {
        let cause = io::Error::new(io::ErrorKind::UnexpectedEof, "the file ended");
        let error = self.file.error(self.operation, cause).at(self.offset);
        error.after(filled, self.wanted).into()
    }
}

async fn read_once<B: IoBufMut>(file: &File, mut buffer: B, offset: u64) -> BufResult<usize, B> {
    if buffer.capacity() == 0 {
        return (Ok(0), buffer);
    }
    loop {
        let operation = ReadAt::new(file.open.clone(), buffer, offset);
        let (result, returned) = Op::new(operation).await;
        if !is_interrupted(&result) {
            return (result, returned);
        }
        buffer = returned;
    }
}

async fn write_once<B: IoBuf>(file: &File, mut buffer: B, offset: u64) -> BufResult<usize, B> {
    if buffer.is_empty() {
        return (Ok(0), buffer);
    }
    loop {
        let operation = WriteAt::new(file.open.clone(), buffer, offset);
        let (result, returned) = Op::new(operation).await;
        if !is_interrupted(&result) {
            return (result, returned);
        }
        buffer = returned;
    }
}

/// Writes once, leaving out the first `skip` bytes of the buffers, which belong at `offset`.
async fn write_pieces<B: IoBuf>(
    file: &File,
    mut buffers: Vec<B>,
    skip: usize,
    offset: u64,
) -> BufResult<usize, Vec<B>> {
    if buffers.iter().all(IoBuf::is_empty) {
        return (Ok(0), buffers);
    }
    loop {
        let at = offset + skip as u64;
        let operation = WriteVectoredAt::new(file.open.clone(), buffers, skip, at);
        let (result, returned) = Op::new(operation).await;
        if !is_interrupted(&result) {
            return (result, returned);
        }
        buffers = returned;
    }
}

/// A write that writes nothing would be repeated for ever.
pub(super) fn nothing_is_an_error(count: usize) -> io::Result<usize> {
    if count == 0 {
        return Err(io::Error::new(
            io::ErrorKind::WriteZero,
            "the system wrote nothing and gave no reason",
        ));
    }
    Ok(count)
}

/// The address of the first buffer that a direct transfer cannot use, or of the first one.
fn misaligned(file: &File, mut addresses: impl Iterator<Item = *const u8> + Clone) -> usize {
    let unit = match file.direct {
        Direct::Aligned(alignment) => alignment.memory,
        Direct::No | Direct::Unknown => 1,
    };
    let first = addresses.clone().next();
    let odd = addresses.find(|address| !address.addr().is_multiple_of(unit));
    odd.or(first).map_or(0, |address| address.addr())
}
