//! The names by which each server reports its checkpoints, its unwritten bytes, and its background writes.
//!
//! | server | checkpoints | behind | background |
//! |---|---|---|---|
//! | MongoDB, WiredTiger | counted, with their time | dirty bytes in the cache | bytes written from the cache |
//! | Pando, `betree` | counted, with their time | bytes in buffers that are to be merged | bytes written to the data file |

use super::{Counted, Told};
use pando_document::{Document, Value};

/// The parts of serverStatus that are looked at.
pub const PARTS: [&str; 2] = ["wiredTiger", "pando"];

pub fn of_server_status(status: &Document) -> Told {
    let at = |path: &[&str]| number(status, path);
    let engine = |name: &str| at(&["pando", "engine", name]);
    if let Some(over) = engine("checkpoints.count") {
        let seconds = engine("checkpoints.nanos").unwrap_or(0.0) / 1e9;
        return Told {
            checkpoints: Some(Counted { over: over as u64, seconds, is_running: false }),
            behind: engine("buffers.bytes").map(|bytes| bytes as u64),
            background: engine("data.write_bytes").map(|bytes| bytes as u64),
        };
    }
    // From version 8 on, checkpoints have a part of their own.
    let older = |name: &str| at(&["wiredTiger", "transaction", &format!("transaction checkpoint{name}")]);
    let newer = |name: &str| at(&["wiredTiger", "checkpoint", name]);
    let over = older("s").or_else(|| newer("total succeed number of checkpoints"));
    let milliseconds = older(" total time (msecs)").or_else(|| newer("total time (msecs)"));
    let running = older(" currently running").or_else(|| newer("progress state"));
    let checkpoints = over.map(|over| Counted {
        over: over as u64,
        seconds: milliseconds.unwrap_or(0.0) / 1e3,
        is_running: running.is_some_and(|state| state != 0.0),
    });
    let of_cache = |name: &str| at(&["wiredTiger", "cache", name]).map(|bytes| bytes as u64);
    Told {
        checkpoints,
        behind: of_cache("tracked dirty bytes in the cache"),
        background: of_cache("bytes written from cache"),
    }
}

fn number(document: &Document, path: &[&str]) -> Option<f64> {
    let (name, rest) = path.split_first()?;
    match document.get(name)? {
        Value::Document(inner) => number(inner, rest),
        Value::Double(number) if rest.is_empty() => Some(*number),
        value if rest.is_empty() => Some(value.as_i64_exact()? as f64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_document::doc;

    #[test]
    fn both_forms_of_mongodb_and_pandos_are_understood() {
        let older = doc! {
            "transaction checkpoints": 7, "transaction checkpoint total time (msecs)": 1500,
            "transaction checkpoint currently running": 1,
        };
        let cache = doc! { "tracked dirty bytes in the cache": 4096_i64, "bytes written from cache": 9.0 };
        let told = of_server_status(&doc! { "wiredTiger": { "transaction": older, "cache": cache.clone() } });
        let counted = Counted { over: 7, seconds: 1.5, is_running: true };
        assert_eq!(told, Told { checkpoints: Some(counted), behind: Some(4096), background: Some(9) });
        let newer = doc! {
            "total succeed number of checkpoints": 7_i64, "total time (msecs)": 1500_i64, "progress state": 0,
        };
        let told = of_server_status(
            &doc! { "wiredTiger": { "transaction": {}, "checkpoint": newer, "cache": cache } },
        );
        assert_eq!(told.checkpoints, Some(Counted { is_running: false, ..counted }));
        let engine = doc! {
            "checkpoints.count": 3_i64, "checkpoints.nanos": 250_000_000_i64, "buffers.bytes": 5_i64, "data.write_bytes": 6_i64,
        };
        let told = of_server_status(&doc! { "pando": { "engine": engine } });
        let counted = Counted { over: 3, seconds: 0.25, is_running: false };
        assert_eq!(told, Told { checkpoints: Some(counted), behind: Some(5), background: Some(6) });
    }

    #[test]
    fn another_status_says_nothing() {
        for status in [doc! {}, doc! { "wiredTiger": 5, "pando": { "engine": "none" } }, doc! { "pando": {} }]
        {
            assert_eq!(of_server_status(&status), Told::default(), "{status:?}");
        }
    }
}
