//! `$exists`: whether there is a value at all, null included. The argument is any value, taken as a boolean.

use pando_document::RawValue;

use super::{Node, Test};
use crate::path::Path;

/// Parses `$exists`.
pub(super) fn parse(path: &Path, argument: RawValue<'_>) -> Node {
    let node = Node::field(path, Test::Exists);
    if argument.to_bool() { node } else { node.negated() }
}
