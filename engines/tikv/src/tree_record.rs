//! The record of a tree in the cluster: its state, whether it has merges, and its name.

use pando_storage::StorageError;

use crate::failure::corrupt;
use crate::trees::Merging;

/// See the module's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TreeRecord {
    Live {
        name: String,
        merging: Merging,
    },
    /// Its entries are being removed.
    Dropped,
}

const LIVE: u8 = b'l';
const LIVE_MERGING: u8 = b'm';
const DROPPED: u8 = b'd';

impl TreeRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            TreeRecord::Live { name, merging: Merging::No } => [&[LIVE], name.as_bytes()].concat(),
            TreeRecord::Live { name, merging: Merging::Yes } => [&[LIVE_MERGING], name.as_bytes()].concat(),
            TreeRecord::Dropped => vec![DROPPED],
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<TreeRecord, StorageError> {
        let damaged = || corrupt("the record of a tree makes no sense");
        let (state, name) = bytes.split_first().ok_or_else(damaged)?;
        let merging = match *state {
            LIVE => Merging::No,
            LIVE_MERGING => Merging::Yes,
            DROPPED => return Ok(TreeRecord::Dropped),
            _ => return Err(damaged()),
        };
        let name = std::str::from_utf8(name).map_err(|_| damaged())?.to_owned();
        Ok(TreeRecord::Live { name, merging })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_read_back_and_broken_ones_are_told() {
        for record in [
            TreeRecord::Live { name: "ümlaut".to_owned(), merging: Merging::No },
            TreeRecord::Live { name: String::new(), merging: Merging::Yes },
            TreeRecord::Dropped,
        ] {
            assert_eq!(TreeRecord::decode(&record.encode()).expect("it reads back"), record);
        }
        for broken in [&b""[..], b"x", b"l\xFF"] {
            assert!(TreeRecord::decode(broken).is_err());
        }
    }
}
