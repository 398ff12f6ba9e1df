//! The input of an import: a file or standard input, unpacked if it is gzip, its bytes counted.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::TransferError;
use super::gzip_members::{BehindGzip, GZIP_MAGIC, GzipMembers};

const BUFFER_BYTES: usize = 256 * 1024;
/// The front of the content, by which the format is detected.
const HEAD_BYTES: u64 = 16 * 1024;
/// The same of standard input and of a pipe. They come as somebody types or another program goes, so a few
/// have to do.
const PIPE_HEAD_BYTES: u64 = 64;

/// The place of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Standard,
}

impl Source {
    /// The name for people.
    pub fn name(&self) -> PathBuf {
        match self {
            Source::File(path) => path.clone(),
            Source::Standard => PathBuf::from("standard input"),
        }
    }
}

/// The content of an input, unpacked.
pub(super) struct Input {
    pub(super) content: Box<dyn BufRead + Send>,
    /// The front of the content, which is still in it.
    pub(super) head: Vec<u8>,
    pub(super) bytes: InputBytes,
}

/// The bytes of an input, before unpacking.
#[derive(Clone, Debug)]
pub(super) struct InputBytes {
    read: Arc<AtomicU64>,
    /// All of them, where that is known.
    pub(super) total: Option<u64>,
    behind_gzip: BehindGzip,
}

impl InputBytes {
    /// Bytes that `read` counts.
    pub(super) fn new(read: Arc<AtomicU64>, total: Option<u64>) -> InputBytes {
        InputBytes { read, total, behind_gzip: BehindGzip::default() }
    }

    /// The counter, for the one that reads.
    pub(super) fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.read)
    }

    /// Those that were read so far.
    pub(super) fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// The byte behind the end of the gzip data at which something else begins; known at the end of the
    /// content.
    pub(super) fn behind_gzip(&self) -> Option<u64> {
        self.behind_gzip.offset()
    }
}

impl Input {
    /// Opens an input.
    pub(super) fn open(source: &Source) -> Result<Input, TransferError> {
        let path = source.name();
        let failed = |source| TransferError::Read { path: path.clone(), source };
        let (raw, total): (Box<dyn Read + Send>, _) = match source {
            Source::File(path) => {
                let file = File::open(path).map_err(failed)?;
                let metadata = file.metadata().map_err(failed)?;
                (Box::new(file), metadata.is_file().then_some(metadata.len()))
            }
            Source::Standard => (Box::new(io::stdin()), None),
        };
        let bytes = InputBytes::new(Arc::default(), total);
        let mut counted = Counted { raw, read: Arc::clone(&bytes.read) };
        let magic = read_front(&mut counted, GZIP_MAGIC.len() as u64).map_err(failed)?;
        // By its first bytes and not by its name.
        let packed = magic == GZIP_MAGIC;
        let mut content: Box<dyn BufRead + Send> = if packed {
            let rest = BufReader::with_capacity(BUFFER_BYTES, counted);
            let members = GzipMembers::new(rest, bytes.counter(), bytes.behind_gzip.clone());
            Box::new(BufReader::with_capacity(BUFFER_BYTES, members))
        } else {
            Box::new(BufReader::with_capacity(BUFFER_BYTES, Cursor::new(magic).chain(counted)))
        };
        let (head, fault) =
            read_head(&mut content, if total.is_some() { HEAD_BYTES } else { PIPE_HEAD_BYTES });
        let content: Box<dyn BufRead + Send> = match fault {
            // The bytes before the fault are read first.
            Some(fault) => Box::new(Cursor::new(head.clone()).chain(BufReader::new(Fault(Some(fault))))),
            None => Box::new(Cursor::new(head.clone()).chain(content)),
        };
        Ok(Input { content, head, bytes })
    }
}

/// The first bytes, fewer where the input ends before.
fn read_front(input: &mut impl Read, bytes: u64) -> io::Result<Vec<u8>> {
    let mut front = Vec::new();
    input.take(bytes).read_to_end(&mut front)?;
    Ok(front)
}

/// The first bytes, and the fault that ends them.
fn read_head(input: &mut impl Read, bytes: u64) -> (Vec<u8>, Option<io::Error>) {
    let mut head = Vec::new();
    let read = input.take(bytes).read_to_end(&mut head);
    (head, read.err())
}

/// An input that cannot be read on.
struct Fault(Option<io::Error>);

impl Read for Fault {
    fn read(&mut self, _into: &mut [u8]) -> io::Result<usize> {
        Err(self.0.take().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()))
    }
}

/// A whole small file, unpacked.
pub(super) fn read_whole(path: &Path) -> Result<Vec<u8>, TransferError> {
    let mut input = Input::open(&Source::File(path.to_owned()))?;
    let mut content = Vec::new();
    let read = input.content.read_to_end(&mut content);
    read.map_err(|source| TransferError::Read { path: path.to_owned(), source })?;
    Ok(content)
}

/// Counts the bytes that it reads.
struct Counted {
    raw: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.raw.read(into)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
