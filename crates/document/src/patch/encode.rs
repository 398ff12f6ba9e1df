//! The encoding of a patch from the operators of an update.

use super::{PATCH_BYTES_MAX, Patch, PatchOperator, compare_paths};
use crate::{DocumentWriter, RawValue};

/// An operator with its path, as an update has it.
#[derive(Clone, Copy, Debug)]
pub struct PatchChange<'c> {
    /// The operator.
    pub operator: PatchOperator,
    /// Names of fields, with dots between them.
    pub path: &'c str,
    /// The operand; that of `$unset` counts for nothing.
    pub operand: RawValue<'c>,
}

/// The reason why operators are no patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unencodable {
    /// The encoding would be longer than [`PATCH_BYTES_MAX`].
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// A path, an operand or the whole is none of a patch.
    Unfit,
}

/// The encoding of operators, in any order.
///
/// # Errors
/// They are no patch.
pub fn encode(mut changes: Vec<PatchChange<'_>>) -> Result<Vec<u8>, Unencodable> {
    changes.sort_by(|a, b| {
        let (a, b): (Vec<&str>, Vec<&str>) = (a.path.split('.').collect(), b.path.split('.').collect());
        compare_paths(&a, &b)
    });
    let mut bytes = Vec::with_capacity(64);
    let mut writer = DocumentWriter::begin(&mut bytes);
    let mut name = String::new();
    for change in &changes {
        name.clear();
        name.push(change.operator.character());
        name.push_str(change.path);
        let operand = match change.operator {
            PatchOperator::Unset => RawValue::Null,
            _ => change.operand,
        };
        writer.append(&name, operand);
    }
    writer.finish();
    if bytes.len() > PATCH_BYTES_MAX {
        return Err(Unencodable::TooLong { bytes: bytes.len() });
    }
    match Patch::decode(&bytes) {
        Some(_) => Ok(bytes),
        None => Err(Unencodable::Unfit),
    }
}
