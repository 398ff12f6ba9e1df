//! A stored log record: a header of 28 bytes, the payload, zeros up to a multiple of 8 bytes. Little-endian.
//!
//! ```text
//!   0                4          8       12            16    24     25      26         28
//!   | payload length | checksum | chain | not durable | lsn | kind | flags | reserved | payload | zeros |
//!   | u32            | u32      | u32   | u32         | u64 | u8   | u8    | u16      |
//!
//!  chain:  [checksum 51 | chain 07]  [checksum a3 | chain 51]  [checksum .. | chain a3]
//! ```
//!
//! - *Checksum*: crc32c of the segment's salt (8 bytes), the header without the checksum, and the payload.
//! - *Chain*: the checksum of the record before.
//! - *Not durable*: the number of records before this one that no sync was known to cover when it was
//!   appended.
//! - *Flags*: how the payload is stored ([`Encoding`]), plus 128 if the LSN follows a gap.

use pando_encryption::{SEAL_BYTES, Vault};
use pando_storage::Lsn;

use super::lsn_gap::is_gap;
use super::packed::Encoding;
use super::segment::Salt;
use crate::base::RecordKind;

/// Bytes of a record's header.
pub(super) const HEADER_BYTES: usize = 28;

/// Bytes that the seal of a record authenticates beside its payload.
pub(super) const BOUND_BYTES: usize = 22 + HEADER_BYTES;

/// Records begin at multiples of this many bytes.
pub(super) const ALIGNMENT: usize = 8;

/// The longest payload, in bytes.
pub(crate) const RECORD_BYTES_MAX: usize = 512 * 1024 * 1024;

/// The flag of a record whose LSN follows a gap.
const GAP: u8 = 0x80;

/// Bytes of a record with this payload length.
pub(super) const fn record_bytes(payload_length: usize) -> usize {
    (HEADER_BYTES + payload_length).next_multiple_of(ALIGNMENT)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHeader {
    pub(super) length: u32,
    pub(super) checksum: u32,
    pub(super) chain: u32,
    pub(super) not_durable: u32,
    pub(super) lsn: Lsn,
    pub(super) kind: RecordKind,
    pub(super) encoding: Encoding,
    pub(super) advance: Advance,
}

/// The distance of a record's LSN from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advance {
    /// The next LSN.
    Next,
    /// A later LSN, after a gap.
    Gap,
}

impl RecordHeader {
    /// The header in these bytes, if they may be one. Only the checksum shows whether they are.
    pub(super) fn decode(bytes: &[u8]) -> Option<RecordHeader> {
        let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let encoding = Encoding::from_flags(bytes[25] & !GAP)?;
        let advance = if bytes[25] & GAP == 0 { Advance::Next } else { Advance::Gap };
        let lsn = Lsn::new(u64::from_le_bytes(std::array::from_fn(|byte| bytes[16 + byte])));
        // No gap leads near the greatest number, so that the LSNs behind it can be counted on.
        let is_plausible = bytes[24] != 0
            && bytes[26..28] == [0; 2]
            && u32_at(0) as usize <= RECORD_BYTES_MAX + SEAL_BYTES
            && (advance == Advance::Next || is_gap(Lsn::ZERO, lsn));
        is_plausible.then(|| RecordHeader {
            length: u32_at(0),
            checksum: u32_at(4),
            chain: u32_at(8),
            not_durable: u32_at(12),
            lsn,
            kind: RecordKind::new(bytes[24]),
            encoding,
            advance,
        })
    }

    /// Whether the record may be the one that is expected with this LSN.
    pub(super) fn follows(&self, expected: Lsn) -> bool {
        match self.advance {
            Advance::Next => self.lsn == expected,
            Advance::Gap => self.lsn > expected,
        }
    }

    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.checksum.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.chain.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.not_durable.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.lsn.get().to_le_bytes());
        bytes[24] = self.kind.number();
        bytes[25] = self.encoding as u8 | if self.advance == Advance::Gap { GAP } else { 0 };
        bytes
    }

    /// The checksum of a record with this header, without the header's own checksum field, and payload.
    fn checksum_over(&self, salt: Salt, payload: &[&[u8]]) -> u32 {
        let bytes = self.encode();
        let seed = crc32c::crc32c(&salt.bytes());
        let header = crc32c::crc32c_append(crc32c::crc32c_append(seed, &bytes[0..4]), &bytes[8..]);
        payload.iter().fold(header, |checksum, part| crc32c::crc32c_append(checksum, part))
    }

    /// The bytes to which the seal of an encrypted payload is bound: the record's place and header.
    pub(super) fn bound(&self, number: u64, salt: Salt) -> [u8; BOUND_BYTES] {
        let mut bytes = [0; BOUND_BYTES];
        bytes[..6].copy_from_slice(b"record");
        bytes[6..14].copy_from_slice(&number.to_le_bytes());
        bytes[14..22].copy_from_slice(&salt.bytes());
        bytes[22..].copy_from_slice(&RecordHeader { checksum: 0, ..*self }.encode());
        bytes
    }

    /// Whether the payload matches the checksum.
    pub(super) fn holds(&self, salt: Salt, payload: &[u8]) -> bool {
        self.checksum == self.checksum_over(salt, &[payload])
    }

    /// The newest record that was certainly durable when this one was appended.
    pub(super) fn durable_before(&self) -> Lsn {
        match self.not_durable {
            u32::MAX => Lsn::ZERO,
            count => Lsn::new(self.lsn.get().saturating_sub(1).saturating_sub(u64::from(count))),
        }
    }
}

/// The content of a record, with the storage of its payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored<'a> {
    pub(super) kind: RecordKind,
    pub(super) encoding: Encoding,
    /// The payload as it is stored, in consecutive parts.
    pub(super) payload: &'a [&'a [u8]],
    /// The record's LSN, if it follows a gap.
    pub(super) gap_to: Option<Lsn>,
}

/// The keys of a log, and the number of the segment that a record goes to.
#[derive(Clone, Copy)]
pub(super) struct Sealing<'v> {
    pub(super) vault: &'v Vault,
    pub(super) segment: u64,
}

/// Appends a record to `out` and returns its checksum, which is the chain of the next record.
/// `sealing` encrypts the payload.
pub(super) fn write_record(
    out: &mut Vec<u8>,
    salt: Salt,
    chain: u32,
    lsn: Lsn,
    durable: Lsn,
    record: Stored<'_>,
    sealing: Option<Sealing<'_>>,
) -> u32 {
    let Stored { kind, encoding, payload, gap_to } = record;
    let advance = if gap_to.is_some() { Advance::Gap } else { Advance::Next };
    let seal_bytes = if sealing.is_some() { SEAL_BYTES } else { 0 };
    let length = payload.iter().map(|part| part.len()).sum::<usize>() + seal_bytes;
    let not_durable = (lsn.get() - 1).saturating_sub(durable.get());
    let mut header = RecordHeader {
        length: u32::try_from(length).expect("payloads beyond RECORD_BYTES_MAX are refused before"),
        checksum: 0,
        chain,
        not_durable: u32::try_from(not_durable).unwrap_or(u32::MAX),
        lsn,
        kind,
        encoding,
        advance,
    };
    let start = out.len();
    out.reserve(record_bytes(length));
    out.extend_from_slice(&[0; HEADER_BYTES]);
    for part in payload {
        out.extend_from_slice(part);
    }
    match sealing {
        None => header.checksum = header.checksum_over(salt, payload),
        Some(Sealing { vault, segment }) => {
            let bound = header.bound(segment, salt);
            let seal = vault.seal(&bound, &mut out[start + HEADER_BYTES..]);
            out.extend_from_slice(&seal);
            header.checksum = header.checksum_over(salt, &[&out[start + HEADER_BYTES..]]);
        }
    }
    out[start..start + HEADER_BYTES].copy_from_slice(&header.encode());
    out.resize(start + record_bytes(length), 0);
    header.checksum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Vec<u8> {
        let mut out = Vec::new();
        let (lsn, durable) = (Lsn::new(0x0102), Lsn::new(0x0100));
        let payload: [&[u8]; 2] = [b"hel", b"lo"];
        let kind = RecordKind::new(3);
        let record = Stored { kind, encoding: Encoding::Plain, payload: &payload, gap_to: None };
        write_record(&mut out, Salt::new(7), 0xaabb_ccdd, lsn, durable, record, None);
        out
    }

    #[test]
    fn a_record_has_the_bytes_that_the_format_says() {
        let hex: String = example().iter().map(|byte| format!("{byte:02x}")).collect();
        let golden = include_str!("golden/record.hex").replace('\n', "");
        assert_eq!(hex, golden);
    }

    #[test]
    fn a_record_is_told_from_every_record_with_one_bit_flipped() {
        let bytes = example();
        let payload = HEADER_BYTES..HEADER_BYTES + 5;
        let header = RecordHeader::decode(&bytes).unwrap();
        assert!(header.holds(Salt::new(7), &bytes[payload.clone()]));
        assert!(!header.holds(Salt::new(8), &bytes[payload.clone()]), "another salt, another checksum");
        assert_eq!(header.durable_before(), Lsn::new(0x0100));
        for bit in 0..(HEADER_BYTES + 5) * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let is_accepted = RecordHeader::decode(&flipped)
                .is_some_and(|header| header.holds(Salt::new(7), &flipped[payload.clone()]));
            assert!(!is_accepted, "bit {bit}");
        }
    }

    #[test]
    fn zeros_are_no_record() {
        assert_eq!(RecordHeader::decode(&[0; 64]), None);
        assert_eq!(RecordHeader::decode(&[1; 20]), None);
    }
}
