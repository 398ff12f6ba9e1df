//! The commit quorum of `createIndexes`: how many members of a replica set must be ready before an index is
//! taken into use.
//!
//! The set that a client sees has one member, so every quorum that it can satisfy is the same.

use pando_document::{DocumentWriter, RawValue};

use crate::arguments::{Argument, whole};
use crate::persona::Persona;
use crate::{CommandError, ErrorCode};

/// Largest number that a quorum may name, as in MongoDB.
const MEMBERS_MAX: i64 = 50;

/// A quorum, as the reply repeats it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CommitQuorum {
    /// A server outside a set has none and does not mention it.
    None,
    /// `"majority"` or `"votingMembers"`.
    Mode(&'static str),
    /// The number of members: 0 or 1.
    Members(i32),
}

impl CommitQuorum {
    /// The quorum of a request that names none.
    pub(super) fn of_none_given(persona: Persona) -> CommitQuorum {
        match persona {
            Persona::Standalone => CommitQuorum::None,
            Persona::ReplicaSet | Persona::Mongos => CommitQuorum::Mode("votingMembers"),
        }
    }

    /// The quorum that a request names. Fails with MongoDB's errors where the value is no quorum, where one
    /// member cannot satisfy it, and on a standalone server.
    pub(super) fn of(argument: &Argument<'_>, persona: Persona) -> Result<CommitQuorum, CommandError> {
        let refused = |code, reason: &str| Err(CommandError::failed(code, reason));
        if argument.is_absent() {
            return Ok(CommitQuorum::of_none_given(persona));
        }
        let value = argument.value;
        if !value.is_number() && value.as_str().is_none() {
            return Err(argument.wrong_type("types '[long, int, decimal, double, string']"));
        }
        if value.as_str() == Some("") {
            return refused(ErrorCode::FailedToParse, "commitQuorum can't be an empty string");
        }
        if value.is_number() && !(0..=MEMBERS_MAX).contains(&whole(value)) {
            return refused(
                ErrorCode::FailedToParse,
                "commitQuorum has to be a non-negative number and not greater than 50",
            );
        }
        if persona == Persona::Standalone {
            return refused(ErrorCode::BadValue, "Standalones can't specify commitQuorum");
        }
        match value.as_str() {
            Some("majority") => Ok(CommitQuorum::Mode("majority")),
            Some("votingMembers") => Ok(CommitQuorum::Mode("votingMembers")),
            Some(mode) => refused(
                ErrorCode::UnknownReplWriteConcern,
                &format!("No write concern mode named '{mode}' found in replica set configuration"),
            ),
            None => match whole(value) {
                0 => Ok(CommitQuorum::Members(0)),
                1 => Ok(CommitQuorum::Members(1)),
                _ => refused(
                    ErrorCode::UnsatisfiableCommitQuorum,
                    "Not enough data-bearing nodes to satisfy commit quorum",
                ),
            },
        }
    }

    /// Appends `commitQuorum` where there is one.
    pub(super) fn append_to(&self, reply: &mut DocumentWriter<'_>) {
        match self {
            CommitQuorum::None => {}
            CommitQuorum::Mode(mode) => reply.append("commitQuorum", RawValue::String(mode)),
            CommitQuorum::Members(members) => reply.append("commitQuorum", RawValue::Int32(*members)),
        }
    }
}
