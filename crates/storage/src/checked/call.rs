//! The kinds of errors that each method of the contract may answer with.

use crate::error::{ErrorKind, StorageError};

/// A method of the contract, or several with the same errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    CreateTree,
    DropTree,
    ListTrees,
    Begin,
    WaitDurable,
    Checkpoint,
    /// `tree_estimate` and `bytes_on_disk`.
    TreeFigure,
    /// `backup` and `check`.
    Backup,
    /// `change_settings` and `change_tree_options`.
    Change,
    /// `load` and `compact`.
    Load,
    Close,
    /// `get`, `scan` and `estimate` that must not block.
    CachedRead,
    /// The same with `MayBlock`.
    Read,
    /// `put` and `delete`, blind or not; `merge` and `delete_range` with `MayBlock`.
    Update,
    /// `merge` and `delete_range` that must not block.
    CachedUpdate,
    Commit,
}

impl Call {
    /// Whether the method may answer with this kind of error.
    pub(super) fn allows(self, kind: ErrorKind) -> bool {
        match kind {
            // A device can fail at any call, and any call can find the engine closed.
            ErrorKind::Corrupt | ErrorKind::Io | ErrorKind::Unavailable | ErrorKind::Closed => true,
            // Changes of trees and bulk loads commit, too.
            ErrorKind::Undetermined => !matches!(self, Call::CachedRead | Call::Read),
            ErrorKind::WouldBlock => matches!(self, Call::CachedRead | Call::CachedUpdate),
            ErrorKind::Conflict => {
                matches!(self, Call::Update | Call::CachedUpdate | Call::Commit)
            }
            // Reading never lacks room; everything that makes something new may.
            ErrorKind::Busy => {
                !matches!(self, Call::CachedRead | Call::Read | Call::ListTrees | Call::TreeFigure)
            }
            ErrorKind::TooLarge => {
                matches!(self, Call::Update | Call::CachedUpdate | Call::Commit)
            }
            ErrorKind::NotFound => !matches!(
                self,
                Call::CreateTree
                    | Call::ListTrees
                    | Call::Begin
                    | Call::WaitDurable
                    | Call::Checkpoint
                    | Call::Backup
                    | Call::Close
            ),
            ErrorKind::InvalidInput => !matches!(
                self,
                Call::DropTree
                    | Call::ListTrees
                    | Call::WaitDurable
                    | Call::Checkpoint
                    | Call::TreeFigure
                    | Call::Close
                    | Call::Commit
            ),
        }
    }

    /// Passes an outcome on, and panics if its error is not one of this method's.
    pub(super) fn check<T>(self, outcome: Result<T, StorageError>) -> Result<T, StorageError> {
        if let Err(error) = &outcome {
            assert!(
                self.allows(error.kind()),
                "{self:?} answered with an error that it may not give: {error:?}"
            );
        }
        outcome
    }
}
