//! A command as the library sends it to its store.

use bson::Document;
use pando_commands::CursorLife;

/// A command, with what goes beside it.
pub(crate) struct Call<'d> {
    pub command: Document,
    /// The documents of an insert, back to back.
    pub documents: Option<&'d [u8]>,
    /// Whether a cursor that it opens times out.
    pub cursor_life: CursorLife,
}

impl<'d> Call<'d> {
    /// A command alone. A cursor that it opens times out.
    pub fn of(command: Document) -> Call<'d> {
        Call { command, documents: None, cursor_life: CursorLife::TimesOut }
    }

    /// A command that opens a cursor, which the library ends.
    pub fn with_cursor(command: Document) -> Call<'d> {
        Call { cursor_life: CursorLife::Kept, ..Call::of(command) }
    }

    /// An insert of documents that stand back to back.
    pub fn with_documents(command: Document, documents: &'d [u8]) -> Call<'d> {
        Call { documents: Some(documents), ..Call::of(command) }
    }
}
