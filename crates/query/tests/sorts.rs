//! Sorts of the corpus in `tests/sorts` give the order that MongoDB 6.0 gave, or are
//! refused in the same words.
//!
//! The expectations were written by `tests/filters/ask_oracle.py`.

use std::path::{Path, PathBuf};

use pando_document::RawDocumentBuf;
use pando_query::QueryError;
use pando_query::sort::Sort;

use crate::extended_json;

/// The `_id`s of the documents in order.
fn order(documents: &[RawDocumentBuf], sort: &Sort) -> Result<Vec<i64>, QueryError> {
    let mut keyed = Vec::new();
    for document in documents {
        let mut key = Vec::new();
        if let Some(pattern) = sort.pattern() {
            pattern.append_key(document, &mut key)?;
        }
        keyed.push((key, document.get("_id")?.unwrap().as_i64_exact().unwrap()));
    }
    keyed.sort();
    Ok(keyed.into_iter().map(|(_, id)| id).collect())
}

fn answer(documents: &[RawDocumentBuf], sort: &str) -> String {
    let ordered = Sort::parse(&extended_json::document(sort)).and_then(|sort| order(documents, &sort));
    match ordered {
        Ok(ids) => ids.iter().fold("ids".to_owned(), |line, id| format!("{line} {id}")),
        Err(error) => format!("error {error}"),
    }
}

/// How many sorts a file has, and which of them differ.
fn check(path: &Path) -> (usize, Vec<String>) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut documents = Vec::new();
    let mut sort: Option<&str> = None;
    let (mut asked, mut differences) = (0, Vec::new());
    for line in text.lines() {
        if let Some(document) = line.strip_prefix("doc ") {
            if sort.take().is_some() {
                documents.clear();
            }
            documents.push(extended_json::document(document));
        } else if let Some(next) = line.strip_prefix("sort ") {
            sort = Some(next);
        } else if line.starts_with("ids") || line.starts_with("error ") {
            let sort = sort.unwrap();
            // MongoDB says in which command an executor failed; that is for the layer above.
            let wanted = line.replace("Executor error during find command :: caused by :: ", "");
            let ours = answer(&documents, sort);
            if ours != wanted {
                differences.push(format!("{sort}\n  MongoDB: {wanted}\n  Pando:   {ours}"));
            }
            asked += 1;
        }
    }
    (asked, differences)
}

#[test]
fn sorts_give_the_order_that_mongodb_gives() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/sorts");
    let (mut asked, mut differences) = (0, Vec::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            let (more, found) = check(&path);
            asked += more;
            differences.extend(found);
        }
    }
    assert!(asked >= 300, "the corpus has shrunk to {asked} sorts");
    assert!(differences.is_empty(), "{} of {asked} differ:\n{}", differences.len(), differences.join("\n"));
}
