//! Files that an import has not read to their end: lines for people, objects for scripts.

use serde_json::{Value, json};

use super::failure::error_lines;
use super::import_report::quoted;
use crate::amounts::counted;
use crate::error_text::error_text;
use crate::transfer::{Damage, DamagedFile, ResumePoint};

/// Flags that the import of one file of a folder has otherwise. The short ones may have their value behind
/// them in the same word.
const OWN_FLAGS: [&str; 3] = ["--db", "--collection", "--resume"];
const OWN_SHORT_FLAGS: [&str; 2] = ["-d", "-c"];

/// The files, with the damage of each and the command that imports its rest. `source` is the input as the
/// command line has it.
pub(super) fn damaged_lines(files: &[DamagedFile], command_line: &[String], source: &str) -> Vec<String> {
    files.iter().flat_map(|file| lines_of(file, command_line, source)).collect()
}

fn lines_of(file: &DamagedFile, command_line: &[String], source: &str) -> Vec<String> {
    let path = file.path.display();
    match &file.damage {
        Damage::Unreadable { error, point } => {
            let mut lines = error_lines(error);
            lines.push(match point.records {
                0 => "  no record of this file is done".to_owned(),
                done => format!("  done of this file: its first {}", counted(done, "record")),
            });
            lines.push("  once it is mended, to import its rest without doubles:".to_owned());
            lines.push(format!("    {}", command_for(file, point, &Words { command_line, source })));
            lines
        }
        Damage::BehindGzip { offset } => vec![format!(
            "pando: {path}: the gzip data was read to its end; behind it, from byte {offset} on, there is something else, \
             which is passed over"
        )],
        Damage::ToldBefore => vec![
            format!("pando: {path}: damaged, as the import before this one has said"),
            "  its rest is in only if it was mended and imported by itself since then".to_owned(),
        ],
    }
}

/// A command line, and the input as it has it.
struct Words<'w> {
    command_line: &'w [String],
    source: &'w str,
}

/// The command line for one file of the folder. It keeps `--drop` if no record of the file was read, since
/// the collection was not dropped then.
fn command_for(file: &DamagedFile, point: &ResumePoint, words: &Words<'_>) -> String {
    let path = file.path.to_string_lossy();
    let source_at = words.source_at();
    let mut kept = Vec::new();
    let mut is_value = false;
    for (at, word) in words.command_line.iter().enumerate() {
        if std::mem::take(&mut is_value) || (word == "--drop" && point.records > 0) {
            continue;
        }
        let is_own = OWN_FLAGS.contains(&word.as_str()) || OWN_SHORT_FLAGS.contains(&word.as_str());
        if is_own {
            is_value = true;
            continue;
        }
        let has_value = |flag: &&str| word.strip_prefix(*flag).is_some_and(|rest| rest.starts_with('='));
        let is_joined =
            OWN_FLAGS.iter().any(has_value) || OWN_SHORT_FLAGS.iter().any(|flag| word.starts_with(flag));
        match source_at == Some(at) {
            true if word.starts_with("--file=") => kept.push(quoted(&format!("--file={path}"))),
            true => kept.push(quoted(&path)),
            false if is_joined => {}
            false => kept.push(quoted(word)),
        }
    }
    let target = format!("--db {} --collection {}", quoted(&file.database), quoted(&file.collection));
    let resume = if point.records > 0 { format!(" --resume {point}") } else { String::new() };
    format!("{} {target}{resume}", kept.join(" "))
}

impl Words<'_> {
    /// The word that names the input: not the value of another flag, as far as that can be seen.
    fn source_at(&self) -> Option<usize> {
        let is_source = |at: &usize| {
            let word = &self.command_line[*at];
            word == self.source || word.strip_prefix("--file=") == Some(self.source)
        };
        let is_free = |at: &usize| {
            let before = self.command_line.get(at.wrapping_sub(1)).map_or("", String::as_str);
            !before.starts_with('-') || before == "--file"
        };
        let found: Vec<usize> = (0..self.command_line.len()).filter(is_source).collect();
        found.iter().copied().find(is_free).or(found.last().copied())
    }
}

/// A file for scripts.
pub(super) fn damaged_json(file: &DamagedFile) -> Value {
    let (error, resume) = match &file.damage {
        Damage::Unreadable { error, point } => (error_text(error), Some(point.to_string())),
        Damage::BehindGzip { offset } => {
            (format!("something else behind the gzip data, from byte {offset} on"), None)
        }
        Damage::ToldBefore => ("damaged, as the import before this one has said".to_owned(), None),
    };
    json!({
        "path": file.path.display().to_string(),
        "database": file.database,
        "collection": file.collection,
        "error": error,
        "resume": resume,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::TransferError;

    fn command(command_line: &[&str], source: &str, point: &str) -> String {
        let point: ResumePoint = point.parse().unwrap();
        let file = DamagedFile {
            path: "dump/shop/a b.bson".into(),
            database: "shop".to_owned(),
            collection: "a b".to_owned(),
            damage: Damage::Unreadable { error: TransferError::Stopped, point: point.clone() },
        };
        let command_line: Vec<String> = command_line.iter().map(|word| (*word).to_owned()).collect();
        command_for(&file, &point, &Words { command_line: &command_line, source })
    }

    #[test]
    fn the_command_for_a_damaged_file_names_it_and_its_collection_and_drops_only_what_was_not_dropped() {
        let words =
            ["pando", "import", "-d", "dump", "--uri", "mongodb://x", "dump", "--drop", "-cx", "--db=y"];
        let point = "7:65f0c3a8e4b0f2a1c3d4e5f6";
        assert_eq!(
            command(&words, "dump", point),
            format!(
                "pando import --uri mongodb://x 'dump/shop/a b.bson' --db shop --collection 'a b' --resume {point}"
            )
        );
        let words = ["pando", "import", "--quiet", "--file=dump", "--drop", "--resume", "1:0"];
        assert_eq!(
            command(&words, "dump", "0"),
            "pando import --quiet '--file=dump/shop/a b.bson' --drop --db shop --collection 'a b'"
        );
    }
}
