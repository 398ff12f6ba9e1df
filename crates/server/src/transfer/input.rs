//! The file that is imported: opened, unpacked if it is gzip, its progress shown.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use indicatif::{ProgressBar, ProgressStyle};

use super::error::TransferError;

/// The first bytes of gzip data.
const GZIP_MAGIC: [u8; 2] = [0x1F, 0x8B];
const BUFFER_BYTES: usize = 256 * 1024;

/// The content of a file, unpacked, and a bar that shows how much of the file was read.
pub(super) struct Input {
    pub(super) content: Box<dyn BufRead>,
    pub(super) progress: ProgressBar,
}

impl Input {
    /// Opens a file.
    pub(super) fn open(path: &Path) -> Result<Input, TransferError> {
        let failed = |source| TransferError::File { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let packed = is_gzip(&mut file).map_err(failed)?;
        let progress = progress_bar(length);
        let counted = BufReader::with_capacity(BUFFER_BYTES, progress.wrap_read(file));
        let content: Box<dyn BufRead> = if packed {
            Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(counted)))
        } else {
            Box::new(counted)
        };
        Ok(Input { content, progress })
    }
}

/// Whether a file is gzip, by its first bytes and not by its name.
fn is_gzip(file: &mut File) -> io::Result<bool> {
    let mut magic = Vec::new();
    file.by_ref().take(2).read_to_end(&mut magic)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(magic == GZIP_MAGIC)
}

/// A bar on standard error; none where that is not a terminal.
fn progress_bar(length: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes}  {msg}  {elapsed}");
    let bar = ProgressBar::new(length);
    match style {
        Ok(style) => bar.with_style(style),
        // The template is right above; without it the bar has its usual look.
        Err(_) => bar,
    }
}
