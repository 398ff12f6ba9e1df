//! The exceptions to the rules of `tidy`, each with its reason. Their number only falls.
//!
//! ```toml
//! [[file]]                       # more than 600 production lines
//! path = "crates/x/src/y.rs"
//! lines = 640                    # the most it may have
//! reason = "one state machine; its halves would share every field"
//!
//! [[function]]                   # more than 70 lines
//! path = "crates/x/src/y.rs"
//! name = "decode"
//! lines = 84                     # left out for a table-like match: it may be as long as its table
//! reason = "one arm per type byte"
//!
//! [[boolean_parameter]]          # in a public function
//! path = "crates/x/src/y.rs"
//! name = "append_bool"
//! reason = "the value itself is a truth value"
//!
//! [[backlog]]                    # findings of a rule that is newer than the sources
//! rule = "comment-width"
//! path = "crates/x"              # a folder, with all that is below it, or a file
//! most = 12                      # exactly this many; `cargo xtask tidy --lower` lowers it
//! reason = "the rule is newer"
//! ```

use crate::finding::Finding;
use serde::Deserialize;
use std::cmp::Ordering;

/// Begins a backlog; backlogs stand at the end of the list.
const BACKLOG_OPENING: &str = "[[backlog]]";

/// The whole list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratchet {
    #[serde(default)]
    file: Vec<LongFile>,
    #[serde(default)]
    function: Vec<LongFunction>,
    #[serde(default)]
    boolean_parameter: Vec<BooleanParameter>,
    #[serde(default)]
    backlog: Vec<Backlog>,
}

/// A file with more production lines than the rule allows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LongFile {
    path: String,
    lines: usize,
    reason: String,
}

/// A function that is longer than the rule allows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LongFunction {
    path: String,
    name: String,
    lines: Option<usize>,
    reason: String,
}

/// A public function with a boolean parameter.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BooleanParameter {
    path: String,
    name: String,
    reason: String,
}

/// Findings of a rule that is newer than the sources below a path.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Backlog {
    rule: String,
    path: String,
    most: usize,
    reason: String,
}

impl Backlog {
    fn covers(&self, finding: &Finding) -> bool {
        let rest = finding.path.strip_prefix(self.path.as_str());
        finding.rule == self.rule && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl Ratchet {
    /// Takes the findings away that a backlog covers. One finding more than it allows, and all of them stay;
    /// one less, and the number is to be lowered.
    pub fn without_backlog(&self, ratchet_path: &str, mut findings: Vec<Finding>) -> Vec<Finding> {
        for backlog in &self.backlog {
            let Backlog { rule, path, most, reason } = backlog;
            let count = findings.iter().filter(|finding| backlog.covers(finding)).count();
            if count <= *most {
                findings.retain(|finding| !backlog.covers(finding));
            }
            let message = match count.cmp(most) {
                Ordering::Equal if reason.trim().is_empty() => {
                    format!("the backlog of {path} gives no reason")
                }
                Ordering::Equal => continue,
                Ordering::Greater => {
                    format!(
                        "{path} has {count} findings of `{rule}`, at most {most}: mend those that are new"
                    )
                }
                Ordering::Less if count == 0 => {
                    format!("{path} has no finding of `{rule}`: remove its backlog")
                }
                Ordering::Less => {
                    format!(
                        "{path} has {count} findings of `{rule}`: lower its backlog from {most} to {count}"
                    )
                }
            };
            findings.push(Finding::new(ratchet_path, 1, "ratchet", message));
        }
        findings
    }

    /// The list with the numbers of its backlogs lowered to what these findings need; a backlog that is no
    /// longer needed goes. No number rises.
    pub fn lowered(&self, text: &str, findings: &[Finding]) -> String {
        let mut parts = text.split(BACKLOG_OPENING);
        let mut lowered = parts.next().unwrap_or_default().trim_end().to_owned();
        lowered.push('\n');
        for (part, backlog) in parts.zip(&self.backlog) {
            let count = findings.iter().filter(|finding| backlog.covers(finding)).count();
            if count > 0 {
                let most = format!("most = {}", count.min(backlog.most));
                let part = part.trim_end().replace(&format!("most = {}", backlog.most), &most);
                lowered.push_str(&format!("\n{BACKLOG_OPENING}{part}\n"));
            }
        }
        lowered
    }

    /// Reads the list.
    pub fn parse(text: &str) -> Result<Ratchet, toml::de::Error> {
        toml::from_str(text)
    }

    /// The most production lines that this file is allowed beyond the rule.
    pub fn file_lines(&self, path: &str) -> Option<usize> {
        self.file.iter().find(|entry| entry.path == path).map(|entry| entry.lines)
    }

    /// The most lines that this function is allowed beyond the rule; a table has no limit.
    pub fn function_lines(&self, path: &str, name: &str) -> Option<usize> {
        let entry = self.function.iter().find(|entry| entry.path == path && entry.name == name);
        entry.map(|entry| entry.lines.unwrap_or(usize::MAX))
    }

    /// Whether this function may have boolean parameters.
    pub fn boolean_parameter(&self, path: &str, name: &str) -> bool {
        self.boolean_parameter.iter().any(|entry| entry.path == path && entry.name == name)
    }

    /// The functions that are listed for this file as long, and those that are listed with a boolean
    /// parameter.
    pub fn functions_of(&self, path: &str) -> (Vec<&str>, Vec<&str>) {
        let long = self.function.iter().filter(|entry| entry.path == path).map(|entry| entry.name.as_str());
        let boolean =
            self.boolean_parameter.iter().filter(|entry| entry.path == path).map(|entry| entry.name.as_str());
        (long.collect(), boolean.collect())
    }

    /// Entries of files that no longer exist, and entries without a reason.
    pub fn files_that_are_gone(&self, ratchet_path: &str, existing: &[String]) -> Vec<Finding> {
        let files = self.file.iter().map(|entry| (&entry.path, &entry.reason));
        let functions = self.function.iter().map(|entry| (&entry.path, &entry.reason));
        let booleans = self.boolean_parameter.iter().map(|entry| (&entry.path, &entry.reason));
        let mut findings = Vec::new();
        for (path, reason) in files.chain(functions).chain(booleans) {
            if !existing.contains(path) {
                findings.push(Finding::new(
                    ratchet_path,
                    1,
                    "ratchet",
                    format!("{path} is gone: remove its entry"),
                ));
            }
            if reason.trim().is_empty() {
                findings.push(Finding::new(
                    ratchet_path,
                    1,
                    "ratchet",
                    format!("an entry of {path} gives no reason"),
                ));
            }
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_field_or_a_missing_reason_is_refused() {
        assert!(Ratchet::parse("[[file]]\npath = \"a\"\nlines = 700\n").is_err());
        assert!(Ratchet::parse("[[file]]\npath = \"a\"\nlines = 700\nreason = \"b\"\nmore = 1\n").is_err());
        assert!(Ratchet::parse("").is_ok());
    }

    #[test]
    fn a_function_without_a_number_is_a_table() {
        let list = "[[function]]\npath = \"a\"\nname = \"f\"\nreason = \"one arm per type\"\n";
        let ratchet = Ratchet::parse(list).expect("the list is well formed");
        assert_eq!(ratchet.function_lines("a", "f"), Some(usize::MAX));
        assert_eq!(ratchet.function_lines("a", "g"), None);
    }

    /// The findings that are left of one at each of these paths, with a backlog of two below `crates/x`.
    fn left(paths: &[&str]) -> Vec<String> {
        let list = "[[backlog]]\nrule = \"head\"\npath = \"crates/x\"\nmost = 2\nreason = \"newer\"\n";
        let ratchet = Ratchet::parse(list).expect("the list is well formed");
        let findings = paths.iter().map(|path| Finding::new(path, 1, "head", "")).collect();
        ratchet
            .without_backlog("ratchet.toml", findings)
            .into_iter()
            .map(|finding| finding.to_string())
            .collect()
    }

    #[test]
    fn a_backlog_covers_its_folder_and_no_more() {
        assert!(left(&["crates/x/a.rs", "crates/x/b/c.rs"]).is_empty());
        assert_eq!(left(&["crates/x/a.rs", "crates/x/b.rs", "crates/xy/a.rs"]), ["crates/xy/a.rs:1: head: "]);
    }

    #[test]
    fn a_backlog_only_falls() {
        assert_eq!(left(&["crates/x/a.rs", "crates/x/b.rs", "crates/x/c.rs"]).len(), 4);
        assert!(left(&["crates/x/a.rs"]).concat().contains("lower its backlog from 2 to 1"));
        assert!(left(&[]).concat().contains("remove its backlog"));
    }

    #[test]
    fn numbers_are_lowered_and_never_raised() {
        let backlog = |path: &str, most| {
            format!("[[backlog]]\nrule = \"head\"\npath = \"{path}\"\nmost = {most}\nreason = \"newer\"\n")
        };
        let text = format!("# Head.\n\n{}\n{}\n{}", backlog("a", 3), backlog("b", 2), backlog("c", 1));
        let ratchet = Ratchet::parse(&text).expect("the list is well formed");
        let findings: Vec<Finding> =
            ["a/1.rs", "a/2.rs", "c/1.rs", "c/2.rs"].map(|path| Finding::new(path, 1, "head", "")).into();
        let expected = format!("# Head.\n\n{}\n{}", backlog("a", 2), backlog("c", 1));
        assert_eq!(ratchet.lowered(&text, &findings), expected);
    }

    #[test]
    fn entries_of_gone_files_and_blank_reasons_are_found() {
        let list = "[[file]]\npath = \"gone.rs\"\nlines = 700\nreason = \"x\"\n\
                    [[file]]\npath = \"here.rs\"\nlines = 700\nreason = \" \"\n";
        let ratchet = Ratchet::parse(list).expect("the list is well formed");
        let found = ratchet.files_that_are_gone("ratchet.toml", &["here.rs".to_owned()]);
        assert_eq!(found.len(), 2);
    }
}
