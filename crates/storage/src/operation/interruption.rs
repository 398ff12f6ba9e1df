//! The reasons why an operation ends before it is done.

use std::fmt;

use crate::error::{ErrorKind, StorageError};

/// A reason. The layer that knows clients gives each a code and words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interruption {
    /// Its time limit is over.
    TimeLimit,
    /// A person or a program has killed it.
    Killed,
    /// Its client has closed the connection.
    ClientGone,
    /// The store is about to be closed.
    Shutdown,
    /// The collection that it reads was dropped.
    CollectionDropped,
    /// The cursor that it reads was killed.
    CursorKilled,
}

/// All reasons; the code of each is its place, from 1.
const ALL: [Interruption; 6] = [
    Interruption::TimeLimit,
    Interruption::Killed,
    Interruption::ClientGone,
    Interruption::Shutdown,
    Interruption::CollectionDropped,
    Interruption::CursorKilled,
];

impl Interruption {
    /// A number from 1.
    pub(super) fn code(self) -> u8 {
        self as u8 + 1
    }

    /// The reason of a number; 0 and unknown ones have none.
    pub(super) fn of_code(code: u8) -> Option<Interruption> {
        ALL.get(usize::from(code.checked_sub(1)?)).copied()
    }
}

/// An engine's call that was interrupted may be made again. The caller knows the reason better: it stands at
/// the operation.
impl From<Interruption> for StorageError {
    fn from(interruption: Interruption) -> StorageError {
        StorageError::new(ErrorKind::Busy, interruption.to_string())
    }
}

impl fmt::Display for Interruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Interruption::TimeLimit => "operation exceeded time limit",
            Interruption::Killed => "operation was interrupted",
            Interruption::ClientGone => "operation was interrupted because its client closed the connection",
            Interruption::Shutdown => "operation was interrupted because the store is closing",
            Interruption::CollectionDropped => "operation was interrupted because its collection was dropped",
            Interruption::CursorKilled => "operation was interrupted because its cursor was killed",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_code_of_its_own_and_zero_is_none() {
        for reason in ALL {
            assert_eq!(Interruption::of_code(reason.code()), Some(reason));
        }
        assert_eq!(Interruption::of_code(0), None);
        assert_eq!(Interruption::of_code(200), None);
    }
}
