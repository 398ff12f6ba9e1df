//! The result of an import, for people and for scripts.

use std::fmt::Write;

use serde_json::{Value, json};

use super::damage_report::damaged_json;
use super::failure::error_lines;
use crate::amounts::{bytes_text, count_text, counted, rate, time_text};
use crate::transfer::{End, ImportCounts, Imported, StoppedAt, TransferError, WriteMode};

/// The words of a summary.
pub(super) struct Words {
    /// The deed: `imported`.
    pub(super) done: &'static str,
    /// A record of the input: `line`.
    pub(super) record: &'static str,
}

/// The last line of an import: what became of the records, and how fast.
pub(super) fn summary(imported: &Imported, mode: WriteMode, words: &Words) -> String {
    let Words { done, record } = words;
    let counts = &imported.counts;
    let mut text = match mode {
        WriteMode::Insert => format!("{} {done}", counted(counts.inserted, "document")),
        WriteMode::Upsert | WriteMode::Merge => format!(
            "{} {done} ({} new, {} changed, {} as before)",
            counted(counts.inserted + counts.modified + counts.unchanged, "document"),
            counts.inserted,
            counts.modified,
            counts.unchanged
        ),
        WriteMode::Delete => {
            format!("{} deleted, {} not there", counted(counts.deleted, "document"), counts.not_found)
        }
    };
    // Writing to a String cannot fail.
    let unreadable = counted(counts.unreadable, record);
    let _ = write!(text, ", {unreadable} unreadable, {} refused", counted(counts.refused, "document"));
    for (count, words) in
        [(counts.already_in, "in already from the import before"), (counts.passed_over, "passed over")]
    {
        if count > 0 {
            let _ = write!(text, ", {count} {words}");
        }
    }
    if counts.indexes > 0 {
        let _ = write!(text, ", {} built", counted(counts.indexes, "index"));
    }
    if counts.not_created > 0 {
        let noun = if counts.not_created == 1 { "index or collection" } else { "indexes or collections" };
        let _ = write!(text, ", {} {noun} not made", counts.not_created);
    }
    let (bytes, elapsed) = (imported.input_bytes, imported.elapsed);
    let _ = write!(
        text,
        "; {}; {} of input in {} ({} documents/s, {}/s)",
        destination(&imported.namespaces),
        bytes_text(bytes),
        time_text(elapsed),
        count_text(rate(counts.done(), elapsed)),
        bytes_text(rate(bytes, elapsed))
    );
    text
}

/// The way on for documents whose `_id` is there already.
pub(super) fn same_id_advice(imported: &Imported) -> Option<String> {
    let count = imported.counts.same_id;
    (count > 0).then(|| {
        let documents = counted(count, "document");
        format!(
            "{documents} with an _id that is there already: --mode upsert replaces such, --drop begins anew"
        )
    })
}

/// The collections that were written.
fn destination(namespaces: &[String]) -> String {
    match namespaces {
        [one] => format!("collection {one}"),
        several => format!("{} collections: {}", several.len(), several.join(", ")),
    }
}

/// Why and where an import stopped, and how to go on; nothing for one that came to its end.
pub(super) fn stopped_lines(imported: &Imported, command_line: &[String]) -> Vec<String> {
    let mut lines = match &imported.end {
        End::Complete => return Vec::new(),
        End::Interrupted => vec!["pando: interrupted".to_owned()],
        End::Failed(error) => error_lines(error),
    };
    let Some(stopped) = &imported.stopped else { return lines };
    if matches!(imported.end, End::Failed(TransferError::WrongPoint { .. })) {
        return lines;
    }
    lines.push(format!("  stopped at {} {} of {}", stopped.unit, stopped.line, stopped.input));
    if stopped.doubtful > 0 {
        lines.push(format!(
            "  the store did not say what became of the last {} documents: they may be in or not",
            stopped.doubtful
        ));
    }
    let is_damaged = matches!(imported.end, End::Failed(TransferError::BsonFile { .. }));
    if is_damaged {
        lines.push("  the file is damaged there, so each import stops there until it is mended".to_owned());
    }
    if imported.counts.done() == 0 && stopped.doubtful == 0 && stopped.point.records == 0 {
        lines.push("  no document was written: run the command again when that is mended".to_owned());
        return lines;
    }
    let from = match (is_damaged, &stopped.point.place) {
        (true, _) => "once it is mended, to go on without doubles",
        (false, Some(_)) => "to go on without doubles, from the same folder, with the files that it has",
        (false, None) => "to go on without doubles, from the same input",
    };
    lines.push(format!("  {from}:"));
    lines.push(format!("    {}", resumed(command_line, stopped)));
    lines
}

/// The command line that goes on: as before, without what is to happen only once. In a folder there are
/// files behind the point whose collections are still to be dropped.
fn resumed(command_line: &[String], stopped: &StoppedAt) -> String {
    let mut words = Vec::new();
    let mut skip_value = false;
    for word in command_line {
        // A copy takes the flag without a point as well.
        if (std::mem::take(&mut skip_value) && !word.starts_with("--"))
            || (word == "--drop" && stopped.point.place.is_none())
            || word.starts_with("--resume=")
        {
            continue;
        }
        if word == "--resume" {
            skip_value = true;
            continue;
        }
        words.push(quoted(word));
    }
    format!("{} --resume {}", words.join(" "), stopped.point)
}

/// A word as a shell reads it.
pub(super) fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The result for scripts.
pub(super) fn as_json(imported: &Imported) -> Value {
    let ImportCounts {
        inserted,
        modified,
        unchanged,
        deleted,
        not_found,
        already_in,
        passed_over,
        unreadable,
        refused,
        same_id,
        indexes,
        not_created,
    } = imported.counts;
    let error = match &imported.end {
        End::Complete => Value::Null,
        End::Interrupted => "interrupted".into(),
        End::Failed(error) => crate::error_text::error_text(error).into(),
    };
    let stopped = imported.stopped.as_ref().map(|stopped| {
        json!({
            "input": stopped.input,
            "unit": stopped.unit,
            "at": stopped.line,
            "doubtful": stopped.doubtful,
            "resume": stopped.point.to_string(),
        })
    });
    let damaged = imported.damaged.iter().map(damaged_json).collect::<Value>();
    json!({
        "complete": imported.is_complete(),
        "namespaces": imported.namespaces,
        "inserted": inserted,
        "modified": modified,
        "unchanged": unchanged,
        "deleted": deleted,
        "notFound": not_found,
        "alreadyIn": already_in,
        "passedOver": passed_over,
        "unreadable": unreadable,
        "refused": refused,
        "sameId": same_id,
        "indexes": indexes,
        "notCreated": not_created,
        "inputBytes": imported.input_bytes,
        "seconds": imported.elapsed.as_secs_f64(),
        "error": error,
        "stopped": stopped,
        "damagedFiles": damaged,
        "remarks": imported.remarks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_that_goes_on_drops_nothing_and_names_the_point_once() {
        let stopped = StoppedAt {
            input: "x".to_owned(),
            unit: "line",
            line: 7,
            doubtful: 0,
            point: "2000:65f0c3a8e4b0f2a1c3d4e5f6".parse().unwrap(),
        };
        let words =
            ["pando", "import", "my file.json", "--drop", "--resume", "10:65f0", "--resume=3", "-c", "it's"];
        let words = words.map(str::to_owned);
        assert_eq!(
            resumed(&words, &stopped),
            r"pando import 'my file.json' -c 'it'\''s' --resume 2000:65f0c3a8e4b0f2a1c3d4e5f6"
        );
    }

    #[test]
    fn the_way_on_in_a_folder_drops_the_collections_that_are_still_to_come() {
        let way_on = |point: &str, words: &[&str]| {
            let stopped = StoppedAt {
                input: "x".to_owned(),
                unit: "document",
                line: 8,
                doubtful: 0,
                point: point.parse().unwrap(),
            };
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            resumed(&words, &stopped)
        };
        let (of_folder, of_file) = ("7:65f0c3a8e4b0f2a1c3d4e5f6:1-a9fc8669", "7:65f0c3a8e4b0f2a1c3d4e5f6");
        assert!(way_on(of_folder, &["pando", "import", "dump", "--drop"]).contains(" --drop --resume "));
        assert!(!way_on(of_folder, &["pando", "import", "dump"]).contains("--drop"));
        assert!(!way_on(of_file, &["pando", "import", "a.json", "--drop"]).contains("--drop"));
    }
}
