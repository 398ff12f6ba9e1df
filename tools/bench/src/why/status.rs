//! Numbers of serverStatus (of MySQL: SHOW GLOBAL STATUS), and which of them a run changed. Servers without
//! the command have none.

use crate::client::Session;
use crate::target::Target;
use pando_document::{Document, Value, doc};
use std::collections::BTreeMap;

/// Numbers that every run changes, and that say nothing.
const CLOCKS: [&str; 5] = ["uptime", "uptimeMillis", "uptimeEstimate", "localTime", "pid"];
/// Where Pando repeats the numbers of its engine.
const ENGINE_AGAIN: &str = "pando.engine.";
/// Documents in documents are followed so far.
const DEPTH_MAX: usize = 12;

/// All numbers of a serverStatus by their paths.
pub type Status = BTreeMap<String, f64>;

/// Asks the server; empty if it does not answer this.
pub fn sample(target: &Target) -> Status {
    let mut status = Status::new();
    let asked = Session::open(target.address())
        .and_then(|mut session| session.command("admin", doc! { "serverStatus": 1 }));
    if let Ok(reply) = asked {
        numbers(&reply, &mut status);
    }
    status
}

/// The numbers of a reply. Pando has those of its engine twice: in the section with the engine's name, and
/// for programs that do not know this name in [`ENGINE_AGAIN`]. They are taken once.
fn numbers(reply: &Document, status: &mut Status) {
    flatten(reply, "", 0, status);
    let engine = reply.get("storageEngine").and_then(Value::as_document);
    let name = engine.and_then(|engine| engine.get("name")).and_then(Value::as_str);
    if name.and_then(|name| reply.get(name)).and_then(Value::as_document).is_some() {
        status.retain(|path, _| !path.starts_with(ENGINE_AGAIN));
    }
}

/// The size of the cache, where the server tells it: MongoDB, and each engine of Pando that has a cache.
pub fn cache_bytes(status: &Status) -> Option<u64> {
    let is_it = |path: &str| {
        path == "wiredTiger.cache.maximum bytes configured" || path.ends_with(".cache.limit_bytes")
    };
    let (_, bytes) = status.iter().find(|(path, _)| is_it(path))?;
    (*bytes > 0.0).then_some(*bytes as u64)
}

fn flatten(document: &Document, above: &str, depth: usize, status: &mut Status) {
    for (name, value) in document.iter() {
        if depth == 0 && CLOCKS.contains(&name) || depth > DEPTH_MAX {
            continue;
        }
        let path = if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") };
        match value {
            Value::Document(inner) => flatten(inner, &path, depth + 1, status),
            Value::Int32(number) => drop(status.insert(path, f64::from(*number))),
            Value::Int64(number) => drop(status.insert(path, *number as f64)),
            Value::Double(number) if number.is_finite() => drop(status.insert(path, *number)),
            _ => {}
        }
    }
}

/// The numbers that changed, and by how much; none if the server did not answer the first time.
pub fn changed(before: &Status, after: &Status) -> Status {
    if before.is_empty() {
        return Status::new();
    }
    let change = |(path, after): (&String, &f64)| {
        let change = after - before.get(path).copied().unwrap_or(0.0);
        (change != 0.0).then(|| (path.clone(), change))
    };
    after.iter().filter_map(change).collect()
}

/// The same, from the first of some samples to the last.
pub fn changed_between(samples: &[Status]) -> Status {
    match samples {
        [first, .., last] => changed(first, last),
        _ => Status::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_an_engine_that_stand_twice_are_told_once() {
        let mut reply = doc! {
            "storageEngine": { "name": "betree" },
            "betree": { "cache": { "hits": 5 } },
            "pando": { "engine": { "cache.hits": 5 }, "rangedScans": { "scans": 1 } },
        };
        let paths = |reply: &Document| {
            let mut status = Status::new();
            numbers(reply, &mut status);
            status.into_keys().collect::<Vec<_>>()
        };
        assert_eq!(paths(&reply), ["betree.cache.hits", "pando.rangedScans.scans"]);
        reply.remove("betree");
        assert_eq!(paths(&reply), ["pando.engine.cache.hits", "pando.rangedScans.scans"]);
    }

    #[test]
    fn the_size_of_a_cache_is_that_of_mongodb_or_of_pandos_engine() {
        let told = |paths: &[(&str, f64)]| {
            cache_bytes(&paths.iter().map(|(path, bytes)| ((*path).to_owned(), *bytes)).collect())
        };
        assert_eq!(told(&[("wiredTiger.cache.maximum bytes configured", 64e6)]), Some(64_000_000));
        assert_eq!(told(&[("betree.cache.hits", 5.0), ("betree.cache.limit_bytes", 32e6)]), Some(32_000_000));
        assert_eq!(told(&[("opcounters.query", 7.0)]), None);
    }

    #[test]
    fn changed_numbers_are_told_by_their_path_and_clocks_are_not() {
        let status = |reads: i64, writes: i32| {
            let document = doc! {
                "uptime": reads, "host": "a",
                "cache": { "pages": { "read": reads, "written": writes } },
            };
            let mut status = Status::new();
            flatten(&document, "", 0, &mut status);
            status
        };
        let changes = changed(&status(10, 5), &status(25, 5));
        assert_eq!(changes.into_iter().collect::<Vec<_>>(), [("cache.pages.read".to_owned(), 15.0)]);
        assert_eq!(changed(&Status::new(), &status(25, 5)), Status::new(), "no change from an unknown state");
    }
}
