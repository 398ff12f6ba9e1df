//! A fenced block of arrows, in a page or in the head of a crate's root.
//!
//! The block opens with "```arrows". Each of its lines is one of
//! - `from -> to, to`: an arrow to each name on the right;
//! - `group: name, name`: a group, whose meaning the reader of the block knows.
//!
//! A name has small letters, digits, `-` and `_`. A page has one block at most.

/// Opens the block.
const OPENING: &str = "```arrows";
/// Closes it.
const CLOSING: &str = "```";

/// Why a text has no usable block.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArrowsError {
    /// There is no block.
    #[error("there is no block that opens with {OPENING}: write one with lines such as `query -> catalog`")]
    Missing,
    /// The block does not end.
    #[error("the block that opens in line {line} is not closed")]
    Unclosed {
        /// Where it opens.
        line: usize,
    },
    /// There is a second block.
    #[error("line {line} opens a second block: keep all arrows in one")]
    Second {
        /// Where it opens.
        line: usize,
    },
    /// A line that is neither an arrow nor a group.
    #[error("line {line} is neither `name -> name, name` nor `group: name, name`: {text}")]
    NotUnderstood {
        /// Its line number.
        line: usize,
        /// Its text.
        text: String,
    },
}

impl ArrowsError {
    /// The line that is wrong; 1 if the block is missing.
    pub fn line(&self) -> usize {
        match self {
            ArrowsError::Missing => 1,
            ArrowsError::Unclosed { line }
            | ArrowsError::Second { line }
            | ArrowsError::NotUnderstood { line, .. } => *line,
        }
    }
}

/// One line of a block.
#[derive(Debug, PartialEq, Eq)]
pub enum Entry {
    /// `from -> to, to`.
    Arrow {
        /// The user.
        from: String,
        /// The used.
        to: Vec<String>,
    },
    /// `name: member, member`.
    Group {
        /// The group's name.
        name: String,
        /// Its members.
        members: Vec<String>,
    },
}

/// Reads the entries of the block in these lines, each with its line number from 1.
pub fn entries<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Vec<(usize, Entry)>, ArrowsError> {
    let mut entries = Vec::new();
    let mut opened_at = None;
    let mut seen = false;
    for (index, line) in lines.enumerate() {
        let (number, text) = (index + 1, line.trim());
        match opened_at {
            None if text == OPENING && seen => return Err(ArrowsError::Second { line: number }),
            None if text == OPENING => (opened_at, seen) = (Some(number), true),
            None => {}
            Some(_) if text == CLOSING => opened_at = None,
            Some(_) if text.is_empty() => {}
            Some(_) => {
                let entry = entry(text).ok_or_else(|| not_understood(number, text))?;
                entries.push((number, entry));
            }
        }
    }
    match opened_at {
        Some(line) => Err(ArrowsError::Unclosed { line }),
        None if seen => Ok(entries),
        None => Err(ArrowsError::Missing),
    }
}

/// The error for a line that has no meaning to the reader of the block.
pub fn not_understood(line: usize, text: &str) -> ArrowsError {
    ArrowsError::NotUnderstood { line, text: text.to_owned() }
}

fn entry(text: &str) -> Option<Entry> {
    if let Some((from, to)) = text.split_once("->") {
        Some(Entry::Arrow { from: name(from)?, to: names(to)? })
    } else {
        let (group, members) = text.split_once(':')?;
        Some(Entry::Group { name: name(group)?, members: names(members)? })
    }
}

/// The names of a comma-separated list; `None` if one of them is no name.
fn names(list: &str) -> Option<Vec<String>> {
    list.split(',').map(name).collect()
}

fn name(text: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let text = text.trim();
    (!text.is_empty() && text.chars().all(is_part)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(usize, Entry)>, ArrowsError> {
        entries(text.lines())
    }

    #[test]
    fn arrows_and_groups_come_with_their_lines() {
        let found = read("# Page\n```arrows\na -> b_c, d\n\nleaves: e-f\n```\n").expect("well formed");
        let arrow = Entry::Arrow { from: "a".into(), to: vec!["b_c".into(), "d".into()] };
        let group = Entry::Group { name: "leaves".into(), members: vec!["e-f".into()] };
        assert_eq!(found, [(3, arrow), (5, group)]);
    }

    #[test]
    fn a_page_without_a_block_is_refused() {
        assert_eq!(read("# Page\n```text\nquery -> catalog\n```\n"), Err(ArrowsError::Missing));
    }

    #[test]
    fn a_block_that_does_not_end_is_refused() {
        assert_eq!(read("```arrows\nquery -> catalog\n"), Err(ArrowsError::Unclosed { line: 1 }));
    }

    #[test]
    fn a_second_block_is_refused() {
        let block = "```arrows\na -> b\n```\n";
        assert_eq!(read(&format!("{block}{block}")), Err(ArrowsError::Second { line: 4 }));
    }

    #[test]
    fn a_line_that_is_no_entry_is_refused_with_its_number() {
        for line in ["query => catalog", "query -> ", "-> catalog", "Query -> catalog", "a -> b: c"] {
            let error = read(&format!("```arrows\n{line}\n```\n"));
            assert_eq!(error, Err(not_understood(2, line.trim())), "{line}");
        }
    }
}
