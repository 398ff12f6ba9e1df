//! Where the parts of a key end, without making values of them.

use crate::decode::{check_depth, is_number, lead_is_of};
use crate::decode_number::read_number;
use crate::reader::Reader;
use crate::{DecodeError, Direction, lead_byte};

/// How many bytes the first parts take, one for each direction; more bytes may follow, as the primary key
/// does in an index entry. Allocates nothing.
///
/// # Errors
/// Bytes that end within these parts, or that no part has.
pub fn parts_length(key: &[u8], directions: &[Direction]) -> Result<usize, DecodeError> {
    let mut reader = Reader::new(key);
    for direction in directions {
        reader.set_direction(*direction);
        let lead = reader.byte()?;
        skip_payload(lead, &mut reader, 0)?;
    }
    Ok(reader.offset())
}

fn skip_payload(lead: u8, reader: &mut Reader<'_>, depth: usize) -> Result<(), DecodeError> {
    match lead {
        lead if is_number(lead) => read_number(lead, reader).map(|_| ()),
        lead_byte::STRING | lead_byte::JAVASCRIPT => reader.skip_until_end(),
        lead_byte::OBJECT_ID => reader.skip(12),
        lead_byte::DATE_TIME | lead_byte::TIMESTAMP => reader.skip(8),
        lead_byte::MIN_KEY
        | lead_byte::UNDEFINED
        | lead_byte::NULL
        | lead_byte::FALSE
        | lead_byte::TRUE
        | lead_byte::MAX_KEY => Ok(()),
        lead_byte::DOCUMENT => skip_fields(reader, depth),
        lead_byte::ARRAY => skip_values(reader, depth),
        lead_byte::BINARY => {
            let length = reader.length()?;
            reader.skip(1)?;
            reader.skip(length)
        }
        lead_byte::REGEX => {
            reader.skip_until_end()?;
            reader.skip_until_end()
        }
        lead_byte::DB_POINTER => {
            let length = reader.length()?;
            reader.skip(length)?;
            reader.skip(12)
        }
        lead_byte::JAVASCRIPT_WITH_SCOPE => {
            reader.skip_until_end()?;
            skip_fields(reader, depth)
        }
        lead_byte => Err(DecodeError::UnknownLeadByte { lead_byte, offset: reader.offset() - 1 }),
    }
}

fn skip_fields(reader: &mut Reader<'_>, depth: usize) -> Result<(), DecodeError> {
    check_depth(depth)?;
    loop {
        let bracket = reader.byte()?;
        if bracket == lead_byte::END {
            return Ok(());
        }
        reader.skip_until_end()?;
        let lead = match bracket {
            lead_byte::NAN | lead_byte::FALSE => reader.byte()?,
            _ => bracket,
        };
        if !lead_is_of(lead, bracket) {
            return Err(reader.impossible());
        }
        skip_payload(lead, reader, depth + 1)?;
    }
}

fn skip_values(reader: &mut Reader<'_>, depth: usize) -> Result<(), DecodeError> {
    check_depth(depth)?;
    loop {
        match reader.byte()? {
            lead_byte::END => return Ok(()),
            lead => skip_payload(lead, reader, depth + 1)?,
        }
    }
}
