//! The meaning of an acknowledged write, in words: figures of servers with different promises do not compare.
//!
//! 1. What the user says of the server (label `durability`) counts first.
//! 2. Else the workload's own `durability`, read with what the server is known to do about it.

use crate::target::ServerFacts;
use serde_json::Value;
use std::collections::BTreeMap;

/// The meaning of an acknowledged write of this run.
pub fn stated(parameters: &Value, server: &ServerFacts, labels: &BTreeMap<String, String>) -> String {
    let asked = find(parameters).map(in_words);
    match (labels.get("durability"), &server.settings, asked) {
        (Some(label), _, Some(asked)) => format!("{label} ({asked})"),
        (Some(label), _, None) => label.clone(),
        // A server of MySQL's protocol promises by its settings.
        (None, Some(settings), _) => settings.clone(),
        (None, None, Some(asked)) => asked.to_owned(),
        (None, None, None) => "no writes".to_owned(),
    }
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
        assert_eq!(stated(&Value::Null, &server(None), &none), "no writes");
    }
}
