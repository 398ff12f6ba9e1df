//! The priority of a request by its command, for the network side: it reads no more of a request than that.

use pando_document::{RawDocument, RawValue};

use crate::registry::{self, Priority};

/// The stages that may follow `$currentOp` in a short request, as shells send it. Others could take long.
const SHORT_STAGES: [&str; 6] = ["$match", "$project", "$sort", "$limit", "$skip", "$count"];

/// The priority of a command document.
pub fn priority_of(body: &RawDocument) -> Priority {
    let Some(Ok((name, _))) = body.iter().next() else { return Priority::Normal };
    match registry::position(name) {
        Some(_) if name == "aggregate" && lists_operations(body) => Priority::High,
        Some(at) => registry::COMMANDS[at].priority,
        None => Priority::Normal,
    }
}

/// Whether an aggregation lists operations and does little else, as `db.currentOp()` of a shell.
fn lists_operations(body: &RawDocument) -> bool {
    let Ok(Some(RawValue::Array(pipeline))) = body.get("pipeline") else { return false };
    let mut stages = pipeline.iter().map(|stage| match stage {
        Ok(RawValue::Document(stage)) => stage.iter().next().and_then(Result::ok).map(|(name, _)| name),
        _ => None,
    });
    stages.next().flatten() == Some("$currentOp")
        && stages.all(|stage| stage.is_some_and(|name| SHORT_STAGES.contains(&name)))
}

#[cfg(test)]
mod tests {
    use pando_document::{Document, Value, doc};

    use super::*;

    #[test]
    fn logins_and_an_operators_commands_come_first_and_work_on_documents_does_not() {
        let of = |body: Document| priority_of(&body.to_raw());
        for name in ["saslStart", "hello", "killOp", "serverStatus", "setParameter", "shutdown"] {
            assert_eq!(of(doc! { name: 1 }), Priority::High, "{name}");
        }
        for name in ["find", "insert", "dbHash", "fsync", "pandoBackup", "compact", "no such command"] {
            assert_eq!(of(doc! { name: 1 }), Priority::Normal, "{name}");
        }
        let aggregate = |stages: &[&str]| {
            let stages = stages.iter().map(|name| Value::Document(doc! { (*name): {} })).collect();
            of(doc! { "aggregate": 1, "pipeline": (Value::Array(stages)) })
        };
        assert_eq!(aggregate(&["$currentOp", "$match"]), Priority::High);
        assert_eq!(aggregate(&["$currentOp", "$lookup"]), Priority::Normal);
        assert_eq!(aggregate(&["$match"]), Priority::Normal);
        assert_eq!(of(doc! {}), Priority::Normal);
    }
}
