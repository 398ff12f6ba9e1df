//! The cells of a suite that failed: their runs are missing among its results. The file of the suite's
//! progress keeps them, so that each later report says so, too.

use super::file::suite_file;
use super::runs_in_words;
use crate::error::{BenchError, read_text};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// A cell whose last try failed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct FailedCell {
    pub server: String,
    /// The name of its run, mostly its workload.
    pub run: String,
    pub cause: String,
}

/// The part of a suite's progress that reports need.
#[derive(Deserialize)]
struct Progress {
    #[serde(default)]
    failed: BTreeMap<String, FailedCell>,
}

/// The failed cells of a suite's folder; none of another one.
pub fn read(folder: &Path) -> Result<Vec<FailedCell>, BenchError> {
    let path = suite_file(folder);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = read_text(&path)?;
    let progress: Progress = serde_json::from_str(&text).map_err(|error| BenchError::FileForm {
        path,
        line: error.line(),
        cause: error.to_string(),
    })?;
    Ok(progress.failed.into_values().collect())
}

/// The caveat of a report: how many failed, of which server and which run; nothing if none did.
pub fn caveat(failed: &[FailedCell]) -> Option<String> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for cell in failed {
        *counts.entry((&cell.server, &cell.run)).or_default() += 1;
    }
    let named = counts.iter().map(|((server, run), count)| format!("{server}, {run} ({count})"));
    let named: Vec<String> = named.collect();
    let are = if failed.len() == 1 { "is" } else { "are" };
    (!failed.is_empty()).then(|| {
        format!(
            "{} of the suite failed and {are} missing here: {}; the next call of the suite tries again",
            runs_in_words(failed.len()),
            named.join("; ")
        )
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn failed(server: &str, run: &str) -> FailedCell {
        FailedCell { server: server.into(), run: run.into(), cause: "it ended by itself".into() }
    }

    #[test]
    fn failed_cells_are_named_with_their_number() {
        assert_eq!(caveat(&[]), None);
        assert_eq!(
            caveat(&[failed("b", "point")]).as_deref(),
            Some(
                "1 run of the suite failed and is missing here: b, point (1); the next call of the suite tries again"
            )
        );
        let all = [failed("b", "point"), failed("a", "kv"), failed("b", "point")];
        let said = caveat(&all).expect("some failed");
        assert!(
            said.starts_with("3 runs of the suite failed and are missing here: a, kv (1); b, point (2);"),
            "{said}"
        );
    }

    #[test]
    fn a_folder_without_a_suite_or_of_an_earlier_tool_has_none() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert_eq!(read(folder.path()).expect("nothing is there"), []);
        std::fs::write(suite_file(folder.path()), r#"{"done": {}, "loaded": {}, "server": null}"#)
            .expect("writable");
        assert_eq!(read(folder.path()).expect("it is whole"), []);
        std::fs::write(suite_file(folder.path()), "{").expect("writable");
        assert!(read(folder.path()).is_err());
    }
}
