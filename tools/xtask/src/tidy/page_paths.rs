//! The rule on the paths in pages: a file, folder, module or section that a page names is there.
//!
//! The pages are README.md, ARCHITECTURE.md, CONTRIBUTING.md and those below `docs`. Fenced blocks are left
//! out.
//!
//! 1. A relative link `[…](path#section)` leads to a file or folder of the tree, and to a heading of that
//!    page.
//! 2. A word in backticks that begins with a folder of the product (`crates/x/src/y.rs`) is a file or folder.
//! 3. A word in backticks that ends with `.rs` (`x/y.rs`), or begins with `tests/`, is the end of a path.
//! 4. A word in backticks that begins with a crate of the product (`pando_x::y::Z`) leads through modules
//!    that have files to a name that the crate's sources contain.
//!
//! A word with a placeholder (`…`, `*`, `<`, `{`, a part of one letter or in capitals) stands for many and is
//! not looked at. Rules 2 to 4 leave out the diaries in `docs/experiments`, which speak of the sources of
//! their day.

use crate::finding::{CheckError, Finding};
use std::collections::BTreeSet;
use std::path::Path;

const RULE: &str = "page-path";

/// The pages at the top.
const TOP_PAGES: [&str; 3] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
/// The folder of the other pages.
const PAGES: &str = "docs/";
/// The diaries.
const DIARIES: &str = "docs/experiments/";
/// The folders of the product.
const FOLDERS: [&str; 5] = ["crates/", "engines/", "tools/", "docs/", "fuzz/"];
/// A folder that the product has, and many of its crates too.
const TESTS: &str = "tests/";

/// Checks the pages among these files.
pub fn check(root: &Path, paths: &[String]) -> Result<Vec<Finding>, CheckError> {
    let tree = Tree::of(paths);
    let read = |path: &str| super::read(&root.join(path)).unwrap_or_default();
    let mut findings = Vec::new();
    for path in paths.iter().filter(|path| is_page(path)) {
        let text = super::read(&root.join(path))?;
        findings.extend(check_page(&tree, path, &text, &read));
    }
    Ok(findings)
}

fn is_page(path: &str) -> bool {
    TOP_PAGES.contains(&path) || (path.starts_with(PAGES) && path.ends_with(".md"))
}

/// The files of the tree and the folders that they are in.
struct Tree<'a> {
    files: &'a [String],
    places: BTreeSet<&'a str>,
}

impl Tree<'_> {
    fn of(files: &[String]) -> Tree<'_> {
        let mut places = BTreeSet::new();
        for file in files {
            places.insert(file.as_str());
            places.extend(file.match_indices('/').map(|(at, _)| &file[..at]));
        }
        Tree { files, places }
    }

    fn has(&self, place: &str) -> bool {
        place.is_empty() || self.places.contains(place.trim_end_matches('/'))
    }

    fn has_end(&self, end: &str) -> bool {
        let end = end.trim_end_matches('/');
        let ends =
            |place: &&str| place.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
        self.places.iter().any(ends)
    }
}

fn check_page(tree: &Tree<'_>, page: &str, text: &str, read: &dyn Fn(&str) -> String) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced {
            let links = links(line).into_iter().filter_map(|link| broken_link(tree, page, link, read));
            let is_diary = page.starts_with(DIARIES);
            let words = words_in_backticks(line).into_iter().filter(|_| !is_diary);
            let words = words.filter_map(|word| missing_word(tree, word, read));
            let found = links.chain(words).map(|message| Finding::new(page, index + 1, RULE, message));
            findings.extend(found);
        }
    }
    findings
}

/// The targets of the links of a line.
fn links(line: &str) -> Vec<&str> {
    let targets = line.match_indices("](").map(|(at, opening)| &line[at + opening.len()..]);
    targets.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.trim()).collect()
}

/// The words in backticks of a line; code with spaces in it is none.
fn words_in_backticks(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).filter(|word| !word.is_empty() && !word.contains(' ')).collect()
}

fn broken_link(tree: &Tree<'_>, page: &str, link: &str, read: &dyn Fn(&str) -> String) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, section) = link.split_once('#').map_or((link, None), |(path, section)| (path, Some(section)));
    let target = if path.is_empty() { Some(page.to_owned()) } else { resolved(page, path) };
    let Some(target) = target.filter(|target| tree.has(target)) else {
        return Some(format!("the link leads to `{path}`, which is not in the tree: correct or remove it"));
    };
    let section = section.filter(|_| target.ends_with(".md"))?;
    let is_there =
        read(&target).lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == section);
    (!is_there).then(|| format!("{target} has no heading whose anchor is `#{section}`: correct the link"))
}

/// The path that a relative link of a page means; `None` if it leaves the tree.
fn resolved(page: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The anchor that code hosts give to a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn missing_word(tree: &Tree<'_>, word: &str, read: &dyn Fn(&str) -> String) -> Option<String> {
    if stands_for_many(word) {
        return None;
    }
    if word.contains("::") {
        return missing_name(tree, word, read);
    }
    // A place may name its line: `crates/x/src/y.rs:12`.
    let place = word.split_once(".rs:").map_or(word, |(path, _)| &word[..path.len() + 3]);
    let is_place = FOLDERS.iter().any(|folder| place.starts_with(folder));
    let is_end = place.ends_with(".rs") || place.starts_with(TESTS);
    if is_place && !tree.has(place) {
        Some(format!("`{place}` is not in the tree: name what took its place"))
    } else if !is_place && is_end && !tree.has_end(place) {
        Some(format!("no path in the tree ends with `{place}`: name what took its place"))
    } else {
        None
    }
}

fn stands_for_many(word: &str) -> bool {
    let has_placeholder = word.contains(['*', '<', '{', '…'])
        || ["...", "YYYY", "NNNN"].iter().any(|placeholder| word.contains(placeholder));
    let is_placeholder = |part: &str| {
        let (stem, ending) = part.split_once('.').unwrap_or((part, ""));
        let is_shouted = !stem.is_empty() && stem.chars().all(|c| c.is_ascii_uppercase());
        stem.len() == 1 || (is_shouted && ending != "md")
    };
    has_placeholder || word.split('/').any(is_placeholder)
}

/// The fault of a path such as `pando_storage::cursor::Cursor`, if it has one.
fn missing_name(tree: &Tree<'_>, word: &str, read: &dyn Fn(&str) -> String) -> Option<String> {
    let mut names = word.trim_end_matches("()").trim_end_matches('!').split("::");
    let name = names.next()?.strip_prefix("pando_")?;
    let folder = [format!("crates/{name}"), format!("engines/{name}"), format!("tools/{name}")]
        .into_iter()
        .find(|folder| tree.has(folder));
    let Some(folder) = folder else {
        return Some(format!("`{word}`: there is no crate `{name}`; name what took its place"));
    };
    let mut place = format!("{folder}/src");
    for name in names {
        if tree.has(&format!("{place}/{name}.rs")) {
            place = format!("{place}/{name}");
            continue;
        }
        let below = format!("{place}/");
        let file = format!("{place}.rs");
        let mut files = tree.files.iter().filter(|path| path.starts_with(&below) || **path == file);
        let is_there = files.any(|path| super::source::words(&read(path), name).next().is_some());
        return (!is_there).then(|| format!("`{word}`: {place} has no `{name}`; name what took its place"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings of a page with this text, in a small tree.
    fn findings(page: &str, text: &str) -> Vec<String> {
        let files = [
            "README.md",
            "docs/a.md",
            "docs/decisions/0001-b.md",
            "crates/storage/src/lib.rs",
            "crates/storage/src/cursor.rs",
            "crates/storage/tests/reads.rs",
        ];
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        let read = |path: &str| match path {
            "docs/a.md" => "# A `page`, with words\n".to_owned(),
            "crates/storage/src/cursor.rs" => "pub struct Cursor;\n".to_owned(),
            _ => String::new(),
        };
        let found = check_page(&Tree::of(&files), page, text, &read);
        found.into_iter().map(|finding| finding.to_string()).collect()
    }

    fn are_fine(lines: &[&str]) {
        for line in lines {
            assert_eq!(findings("docs/a.md", line), Vec::<String>::new(), "{line}");
        }
    }

    fn are_found(lines: &[&str]) {
        for line in lines {
            assert_eq!(findings("docs/a.md", line).len(), 1, "{line}");
        }
    }

    #[test]
    fn relative_links_lead_to_files_and_folders() {
        are_fine(&[
            "[b](decisions/0001-b.md) [c](../README.md)",
            "[d](decisions/)",
            "[e](https://example.org/x.md)",
        ]);
        are_found(&["[b](0001-b.md)", "[c](README.md)", "[d](../../README.md)"]);
    }

    #[test]
    fn sections_are_headings_of_their_page() {
        are_fine(&["[a](a.md#a-page-with-words)", "[a](#a-page-with-words)"]);
        are_found(&["[a](a.md#another)", "[a](#another)"]);
    }

    #[test]
    fn places_in_backticks_are_there() {
        are_fine(&[
            "`crates/storage/src/cursor.rs:12`",
            "`crates/storage`",
            "`crates/storage/`",
            "`cursor.rs`",
        ]);
        are_found(&[
            "`crates/storage/src/cursors.rs`",
            "`crates/store`",
            "`cursors.rs`",
            "`ursor.rs`",
            "`tests/writes.rs`",
        ]);
    }

    #[test]
    fn paths_of_names_are_there() {
        are_fine(&[
            "`pando_storage::cursor::Cursor`",
            "`pando_storage::cursor`",
            "`std::fs::read`",
            "`Commands::handle`",
        ]);
        are_found(&["`pando_storage::cursor::Curs`", "`pando_store::cursor`", "`pando_storage::scan`"]);
    }

    #[test]
    fn placeholders_and_fenced_blocks_are_left_out() {
        are_fine(&[
            "`crates/x/src/y.rs`",
            "`crates/*/src`",
            "`tests/…`",
            "`x.rs` beside `x/`",
            "cat `crates/store x`",
        ]);
        assert!(findings("docs/a.md", "```sh\ncat `crates/store`\n```\n").is_empty());
    }

    #[test]
    fn diaries_may_name_what_is_gone_but_their_links_hold() {
        assert!(findings("docs/experiments/2026-01-01-a.md", "`crates/store`").is_empty());
        assert_eq!(findings("docs/experiments/2026-01-01-a.md", "[b](gone.md)").len(), 1);
    }
}
