//! The meaning of an acknowledged write, in words: figures of servers with different promises do not compare.
//!
//! 1. What the user says of the server (label `durability`) counts first.
//! 2. Else what a server of MySQL's protocol says of its settings: a client of that protocol asks for
//!    nothing.
//! 3. Else the workload's own `durability`.
//! 4. A workload of MongoDB's protocol without one writes nothing. Commands of the user's own may write, and
//!    ask for it themselves.

use crate::target::ServerFacts;
use serde_json::Value;
use std::collections::BTreeMap;

/// Said of runs that only read.
pub const NO_WRITES: &str = "no writes";

/// The meaning of an acknowledged write of this run.
pub fn stated(parameters: &Value, server: &ServerFacts, labels: &BTreeMap<String, String>) -> String {
    let asked = find(parameters).map(in_words);
    match (labels.get("durability"), &server.settings, asked) {
        (Some(label), None, Some(asked)) => format!("{label} ({asked})"),
        (Some(_), None, None) if !has_own_commands(parameters) => NO_WRITES.to_owned(),
        (Some(label), _, _) => label.clone(),
        // A server of MySQL's protocol promises by its settings.
        (None, Some(settings), _) => settings.clone(),
        (None, None, Some(asked)) => asked.to_owned(),
        (None, None, None) if has_own_commands(parameters) => "as the commands ask".to_owned(),
        (None, None, None) => NO_WRITES.to_owned(),
    }
}

fn has_own_commands(parameters: &Value) -> bool {
    parameters.get("commands").is_some()
}

fn find(parameters: &Value) -> Option<&str> {
    let members = parameters.as_object()?;
    let own = members.get("durability").and_then(Value::as_str);
    own.or_else(|| members.values().find_map(find))
}

fn in_words(asked: &str) -> &str {
    match asked {
        "w1" => "w:1, not synced before the answer",
        "j" => "w:1, j:true, synced before the answer",
        "majority" => "w:majority, synced on most members",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(settings: Option<&str>) -> ServerFacts {
        ServerFacts {
            version: None,
            git_version: None,
            allocator: None,
            replica_set: None,
            wire_version: None,
            settings: settings.map(str::to_owned),
            cache_bytes: None,
        }
    }

    #[test]
    fn the_asked_durability_is_found_wherever_it_stands_and_a_label_goes_before() {
        let parameters = serde_json::json!({ "load": { "durability": "j" } });
        let none = BTreeMap::new();
        assert!(stated(&parameters, &server(None), &none).contains("synced before the answer"));
        assert_eq!(stated(&parameters, &server(Some("flush at commit: 1")), &none), "flush at commit: 1");
        let labels = BTreeMap::from([("durability".to_owned(), "log written each 100 ms".to_owned())]);
        assert!(
            stated(&parameters, &server(None), &labels).starts_with("log written each 100 ms (w:1, j:true")
        );
        let of_mysql = serde_json::json!({ "durability": "as the server is set" });
        let synced = BTreeMap::from([("durability".to_owned(), "log synced at each commit".to_owned())]);
        let settings = server(Some("InnoDB, innodb_flush_log_at_trx_commit = 1"));
        for parameters in [&of_mysql, &parameters] {
            let said = stated(parameters, &settings, &synced);
            assert_eq!(said, "log synced at each commit", "the client asked for nothing");
        }
        assert_eq!(stated(&Value::Null, &server(None), &none), NO_WRITES);
        assert_eq!(stated(&Value::Null, &server(None), &labels), NO_WRITES, "reads promise nothing");
        assert_eq!(stated(&Value::Null, &server(Some("flush: 1")), &labels), "log written each 100 ms");
        let own = serde_json::json!({ "commands": ["{}"] });
        assert_eq!(stated(&own, &server(None), &labels), "log written each 100 ms");
        assert_eq!(stated(&own, &server(None), &none), "as the commands ask");
    }
}
