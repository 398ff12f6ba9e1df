//! The five posts: what they published in numbers, and their conclusions, from `suites/posts/posts.toml`.
//! That file explains its fields. [`super::verdicts`] judges the conclusions.

use super::verdicts::Verdict;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A part of the program: a file that is whole, as a test says.
const TEXT: &str = include_str!("../../suites/posts/posts.toml");

static POSTS: LazyLock<Posts> =
    LazyLock::new(|| toml::from_str(TEXT).expect("the file of the posts is whole"));

/// All posts.
pub fn posts() -> &'static [Post] {
    &POSTS.posts
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Posts {
    #[serde(rename = "post")]
    posts: Vec<Post>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Post {
    /// Which: A to E.
    pub letter: String,
    pub workload: String,
    pub title: String,
    pub conclusions: Vec<String>,
    pub size: Size,
    #[serde(rename = "table")]
    pub tables: Vec<PostTable>,
    #[serde(rename = "verdict")]
    pub verdicts: Vec<Verdict>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// Arguments that grow with the data, and their values there.
    pub grows: BTreeMap<String, u64>,
    /// Arguments that do not.
    pub fixed: BTreeMap<String, u64>,
    /// Its cache in 10^6 bytes.
    pub cache_mb: u64,
    /// Where that comes from.
    pub cache_of: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PostTable {
    pub title: String,
    pub headings: Vec<String>,
    /// Rows, whose first cell is their name.
    pub rows: Vec<Vec<String>>,
    /// A remark below the table.
    pub note: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_wide_as_their_headings_and_every_post_has_a_table() {
        assert_eq!(posts().iter().map(|post| post.letter.as_str()).collect::<String>(), "ABCDE");
        assert_eq!(posts().iter().map(|post| post.tables.len()).sum::<usize>(), 6);
        for post in posts() {
            assert!(!post.tables.is_empty() && !post.verdicts.is_empty(), "{}", post.letter);
            for table in &post.tables {
                assert!(table.rows.iter().all(|row| row.len() == table.headings.len()), "{}", table.title);
            }
            for verdict in &post.verdicts {
                let questions = [verdict.comparison.is_some(), verdict.wrong_counts_of.is_some()];
                assert_eq!(questions.iter().filter(|asked| **asked).count(), 1, "{}", verdict.says);
            }
        }
    }

    #[test]
    fn an_unknown_field_is_refused() {
        assert!(toml::from_str::<Posts>(&TEXT.replace("two_caches", "three_caches")).is_err());
    }
}
