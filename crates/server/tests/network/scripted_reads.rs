//! Reads that the scripted handler misses: of a file on disk, past the page cache where that can be, so that
//! they are really under way for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pando_environment::{Access, AlignedBuffer, Environment, File, MissedRead, OpenMode};

/// Bytes of a block of the file.
const BLOCK_BYTES: usize = 4_096;
/// Blocks that there are.
const BLOCKS: usize = 8;

/// A file of blocks, each full of its number.
pub struct ScriptedReads {
    file: Arc<dyn File>,
}

/// A block that a session lacks.
#[derive(Debug)]
pub struct ScriptedRead {
    file: Held,
    block: usize,
    /// Blocks that the session has by now.
    have: Arc<AtomicUsize>,
    panics: bool,
}

struct Held(Arc<dyn File>);

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.path().display())
    }
}

impl Default for ScriptedReads {
    fn default() -> ScriptedReads {
        ScriptedReads { file: block_file() }
    }
}

/// The file stays open and has no name any more: nothing is left behind by a server that outlives its test.
fn block_file() -> Arc<dyn File> {
    let files = Environment::real();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("blocks");
    let file = files.files().open(&path, OpenMode::CreateNew, Access::Direct).unwrap();
    for block in 0..BLOCKS {
        let mut content = AlignedBuffer::zeroed(BLOCK_BYTES);
        content.fill(block as u8);
        file.write_all_at(&content, (block * BLOCK_BYTES) as u64).unwrap();
    }
    file
}

impl ScriptedReads {
    /// The read of the next block that a session lacks. From the end of the file on, reads fail.
    pub fn next(&self, have: &Arc<AtomicUsize>) -> Arc<dyn MissedRead> {
        let block = have.load(Ordering::SeqCst);
        Arc::new(ScriptedRead {
            file: Held(Arc::clone(&self.file)),
            block,
            have: Arc::clone(have),
            panics: false,
        })
    }

    /// A read whose bytes make the receiver panic.
    pub fn panicking(&self) -> Arc<dyn MissedRead> {
        let file = Held(Arc::clone(&self.file));
        Arc::new(ScriptedRead { file, block: 0, have: Arc::default(), panics: true })
    }

    /// A read that the device refuses.
    pub fn failing(&self) -> Arc<dyn MissedRead> {
        Arc::new(ScriptedRead {
            file: Held(Arc::clone(&self.file)),
            block: BLOCKS + 5,
            have: Arc::default(),
            panics: false,
        })
    }
}

impl MissedRead for ScriptedRead {
    fn file(&self) -> &Arc<dyn File> {
        &self.file.0
    }

    fn offset(&self) -> u64 {
        (self.block * BLOCK_BYTES) as u64
    }

    fn length(&self) -> usize {
        BLOCK_BYTES
    }

    fn fulfil(&self, bytes: &[u8]) {
        assert!(!self.panics, "as the request asked");
        assert_eq!(bytes, [self.block as u8; BLOCK_BYTES], "the bytes of the block that was asked for");
        self.have.fetch_add(1, Ordering::SeqCst);
    }
}
