//! The content of gzip data: its members one after the other, as gzip itself unpacks them.
//!
//! # Behind the end of a member
//! | bytes | step |
//! |---|---|
//! | the first bytes of gzip data | the next member is unpacked |
//! | zeros | passed over: tapes and disks pad files with them |
//! | anything else | the content ends, and [`BehindGzip`] has the place |
//!
//! The content ends without an error in the last case, so that a reader gives its last record first.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::GzDecoder;

/// The first bytes of gzip data.
pub(super) const GZIP_MAGIC: [u8; 2] = [0x1F, 0x8B];

/// The place of the first byte behind the gzip data that does not belong to it. It is shared with the one
/// that asks at the end.
#[derive(Clone, Debug, Default)]
pub(super) struct BehindGzip {
    /// The offset in the file; 0 if there is no such byte, because gzip data begins at 0.
    offset: Arc<AtomicU64>,
}

impl BehindGzip {
    pub(super) fn offset(&self) -> Option<u64> {
        Some(self.offset.load(Ordering::Relaxed)).filter(|offset| *offset > 0)
    }
}

/// A member from its first bytes on, which were read to recognise it.
type Member<R> = Chain<Cursor<Vec<u8>>, BufReader<R>>;

/// See the [module](self).
pub(super) struct GzipMembers<R> {
    /// `None` behind the last member.
    member: Option<GzDecoder<Member<R>>>,
    /// Bytes that `R` has given so far.
    read: Arc<AtomicU64>,
    behind: BehindGzip,
}

impl<R: Read> GzipMembers<R> {
    /// Unpacks an input whose first bytes were read: those of [`GZIP_MAGIC`]. `read` counts its bytes.
    pub(super) fn new(input: BufReader<R>, read: Arc<AtomicU64>, behind: BehindGzip) -> GzipMembers<R> {
        let first = Cursor::new(GZIP_MAGIC.to_vec()).chain(input);
        GzipMembers { member: Some(GzDecoder::new(first)), read, behind }
    }

    /// The member behind one that has ended, if there is one.
    fn next(&self, mut input: BufReader<R>) -> io::Result<Option<GzDecoder<Member<R>>>> {
        loop {
            let buffered = input.fill_buf()?;
            let zeros = buffered.iter().take_while(|byte| **byte == 0).count();
            let is_all = zeros == buffered.len();
            input.consume(zeros);
            if zeros == 0 || !is_all {
                break;
            }
        }
        let mut front = Vec::new();
        input.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut front)?;
        if front == GZIP_MAGIC {
            return Ok(Some(GzDecoder::new(Cursor::new(front).chain(input))));
        }
        if !front.is_empty() {
            let given = self.read.load(Ordering::Relaxed);
            let not_taken = (input.buffer().len() + front.len()) as u64;
            self.behind.offset.store(given.saturating_sub(not_taken), Ordering::Relaxed);
        }
        Ok(None)
    }
}

impl<R: Read> Read for GzipMembers<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let count = member.read(into)?;
            if count > 0 || into.is_empty() {
                return Ok(count);
            }
            let ended = self.member.take().map(|member| member.into_inner().into_inner().1);
            if let Some(input) = ended {
                self.member = self.next(input)?;
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// One byte at a time, so that each border between two reads is tried.
    struct Slow<'b> {
        bytes: &'b [u8],
        read: Arc<AtomicU64>,
    }

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let end = into.len().min(1);
            let count = self.bytes.read(&mut into[..end])?;
            self.read.fetch_add(count as u64, Ordering::Relaxed);
            Ok(count)
        }
    }

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn unpacked(bytes: &[u8]) -> (io::Result<String>, Option<u64>) {
        let read = Arc::new(AtomicU64::new(GZIP_MAGIC.len() as u64));
        let slow = Slow { bytes: &bytes[GZIP_MAGIC.len()..], read: Arc::clone(&read) };
        let behind = BehindGzip::default();
        let mut members = GzipMembers::new(BufReader::new(slow), read, behind.clone());
        let mut text = String::new();
        (members.read_to_string(&mut text).map(|_| text), behind.offset())
    }

    #[test]
    fn members_are_one_content_and_zeros_behind_them_are_nothing() {
        for zeros in [0, 1, 600] {
            let bytes = [packed("a"), packed("bc"), vec![0; zeros]].concat();
            let (content, behind) = unpacked(&bytes);
            assert_eq!((content.unwrap().as_str(), behind), ("abc", None));
        }
    }

    #[test]
    fn anything_else_behind_the_end_is_told_with_its_place() {
        let whole = packed("abc");
        for (padding, tail) in [(&b""[..], &b"x"[..]), (b"", b"\x1F"), (b"\0\0", b"more than ten bytes")] {
            let (content, behind) = unpacked(&[&whole[..], padding, tail].concat());
            assert_eq!(content.unwrap(), "abc");
            assert_eq!(behind, Some((whole.len() + padding.len()) as u64), "{tail:?}");
        }
    }

    #[test]
    fn a_member_that_is_cut_is_an_error() {
        let bytes = [packed("abc"), packed("def")].concat();
        for missing in [1, 9, 15] {
            let error = unpacked(&bytes[..bytes.len() - missing]).0.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{missing}");
        }
    }
}
