//! The older operations: the messages of clients from before OP_MSG.
//!
//! | operation | layout behind the header | reply |
//! |---|---|---|
//! | [`OpQuery`] | flags, namespace, skip, number to return, query, projection? | OP_REPLY |
//! | [`OpGetMore`] | zero, namespace, number to return, cursor | OP_REPLY |
//! | [`OpKillCursors`] | zero, count, cursors | none |
//! | [`OpInsert`] | flags, namespace, documents | none |
//! | [`OpUpdate`] | zero, namespace, flags, selector, update | none |
//! | [`OpDelete`] | zero, namespace, flags, selector | none |
//!
//! A namespace is `database.collection`. A command is a query of the namespace `database.$cmd`. Flags that
//! are not known are ignored, as servers of that time did.

mod delete;
mod get_more;
mod insert;
mod kill_cursors;
mod query;
mod reply;
mod update;

pub use delete::OpDelete;
pub use get_more::OpGetMore;
pub use insert::OpInsert;
pub use kill_cursors::OpKillCursors;
pub use query::{OpQuery, QueryFlags, append_op_query};
pub use reply::{OpReply, OpReplyWriter, ReplyFields};
pub use update::OpUpdate;

use crate::WireError;
use crate::reader::Reader;

/// A request of an older operation; borrows from its frame.
#[derive(Clone, Copy, Debug)]
pub enum LegacyRequest<'a> {
    /// OP_QUERY.
    Query(OpQuery<'a>),
    /// OP_GET_MORE.
    GetMore(OpGetMore<'a>),
    /// OP_KILL_CURSORS.
    KillCursors(OpKillCursors<'a>),
    /// OP_INSERT.
    Insert(OpInsert<'a>),
    /// OP_UPDATE.
    Update(OpUpdate<'a>),
    /// OP_DELETE.
    Delete(OpDelete<'a>),
}

/// Refuses bytes behind the last part of a message.
fn check_end(reader: Reader<'_>) -> Result<(), WireError> {
    if reader.is_empty() { Ok(()) } else { Err(WireError::TrailingBytes { count: reader.remaining() }) }
}
