//! The form of a value in the cluster: a byte for its kind, and then its content.
//!
//! | kind | then | is |
//! |---|---|---|
//! | 0 | bytes | a value |
//! | 1 | the number of its commit, 8 bytes, then bytes | a value by which a commit can be recognised |
//! | 2 | group, 8 bytes; length, 8 bytes | a large value, whose pieces lie elsewhere |
//!
//! Invariant: no value is empty, because some stores take an empty one for an absent one.

/// A value, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored<'v> {
    Whole(&'v [u8]),
    Large { group: u64, bytes: u64 },
}

const WHOLE: u8 = 0;
const NUMBERED: u8 = 1;
const LARGE: u8 = 2;

/// A value as it is stored.
pub(crate) fn whole(value: &[u8]) -> Vec<u8> {
    [&[WHOLE], value].concat()
}

/// A value with the number of its commit.
pub(crate) fn numbered(value: &[u8], commit: u64) -> Vec<u8> {
    [&[NUMBERED], &commit.to_be_bytes()[..], value].concat()
}

/// The place of a large value.
pub(crate) fn large(group: u64, bytes: u64) -> Vec<u8> {
    [&[LARGE], &group.to_be_bytes()[..], &bytes.to_be_bytes()].concat()
}

/// A stored value; `None` where the bytes make no sense.
pub(crate) fn decode(stored: &[u8]) -> Option<Stored<'_>> {
    let (kind, rest) = stored.split_first()?;
    match *kind {
        WHOLE => Some(Stored::Whole(rest)),
        NUMBERED => rest.split_first_chunk::<8>().map(|(_, value)| Stored::Whole(value)),
        LARGE => {
            let (group, bytes) = rest.split_first_chunk::<8>()?;
            let bytes = u64::from_be_bytes(bytes.try_into().ok()?);
            Some(Stored::Large { group: u64::from_be_bytes(*group), bytes })
        }
        _ => None,
    }
}

/// The number of the commit that has written a value, if it has one.
pub(crate) fn number_of(stored: &[u8]) -> Option<u64> {
    let number = stored.strip_prefix(&[NUMBERED])?.first_chunk::<8>()?;
    Some(u64::from_be_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_back_and_none_is_empty() {
        assert_eq!(decode(&whole(b"")), Some(Stored::Whole(b"")));
        assert_eq!(decode(&numbered(b"v", 77)), Some(Stored::Whole(b"v")));
        assert_eq!(number_of(&numbered(b"v", 77)), Some(77));
        assert_eq!(number_of(&whole(b"12345678")), None);
        assert_eq!(decode(&large(5, 1 << 40)), Some(Stored::Large { group: 5, bytes: 1 << 40 }));
        for broken in [&b""[..], b"\x01short", b"\x02", b"\x03whole"] {
            assert_eq!(decode(broken), None);
        }
    }
}
