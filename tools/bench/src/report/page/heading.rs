//! The head of a page: the suite, when its runs were made, by which tool and on which machine. A page on
//! paper has nothing else that says so.

use crate::report::file::RunFile;
use crate::report::runs_in_words;
use pando_document::write_date;
use pando_measuring::chart::escape;
use std::collections::BTreeSet;

/// The title, also of the browser's tab: the suite, or the workloads.
pub fn title(files: &[RunFile]) -> String {
    let suites: BTreeSet<&str> =
        files.iter().filter_map(|file| file.labels.get("suite")).map(String::as_str).collect();
    if !suites.is_empty() {
        return joined(&suites);
    }
    let workloads: BTreeSet<&str> =
        files.iter().map(|file| file.workload.trim_end_matches(" load")).collect();
    if workloads.is_empty() {
        "Benchmark report".to_owned()
    } else {
        format!("Benchmark of {}", joined(&workloads))
    }
}

/// The title, and a line below it.
pub fn render(files: &[RunFile]) -> String {
    let title = format!("<h1>{}</h1>", escape(&title(files)));
    let moments = || files.iter().map(|file| file.written_unix_s);
    let (Some(first), Some(last)) = (moments().min(), moments().max()) else { return title };
    let tools: BTreeSet<String> =
        files.iter().map(|file| format!("pando-bench {}", file.tool_version)).collect();
    let machines: BTreeSet<String> = files.iter().map(machine).collect();
    let runs = runs_in_words(files.len());
    let tools = joined(&tools.iter().map(String::as_str).collect());
    let machines = joined(&machines.iter().map(String::as_str).collect());
    let parts: Vec<String> = span(first, last).into_iter().chain([runs, tools, machines]).collect();
    format!("{title}<p>{}</p>", escape(&parts.join(", ")))
}

fn machine(file: &RunFile) -> String {
    let model = file.machine.cpu_model.as_deref().unwrap_or("unknown processor");
    let unit = if file.machine.cores == 1 { "core" } else { "cores" };
    format!("{} {unit} ({model})", file.machine.cores)
}

fn joined(names: &BTreeSet<&str>) -> String {
    names.iter().copied().collect::<Vec<_>>().join(", ")
}

/// From when to when, in UTC to the minute; nothing for a time that no calendar has.
fn span(first_unix_s: u64, last_unix_s: u64) -> Option<String> {
    let (first_date, first_time) = date_and_time(first_unix_s)?;
    let (last_date, last_time) = date_and_time(last_unix_s)?;
    Some(if first_date != last_date {
        format!("{first_date} {first_time} to {last_date} {last_time} UTC")
    } else if first_time != last_time {
        format!("{first_date} {first_time} to {last_time} UTC")
    } else {
        format!("{first_date} {first_time} UTC")
    })
}

/// `2026-11-27` and `08:37`.
fn date_and_time(unix_s: u64) -> Option<(String, String)> {
    let mut text = String::new();
    if !write_date(&mut text, i64::try_from(unix_s).ok()?.checked_mul(1000)?) {
        return None;
    }
    let (date, time) = text.split_once('T')?;
    Some((date.to_owned(), time.get(..5)?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::file::tests::file;

    #[test]
    fn a_page_says_its_suite_its_time_its_tool_and_its_machine() {
        let mut files = [file("point", 8, 1.0), file("kv load", 8, 1.0)];
        assert_eq!(title(&files), "Benchmark of kv, point");
        for (file, moment) in files.iter_mut().zip([1_795_768_664, 1_795_772_345]) {
            file.labels.insert("suite".into(), "post <A>, small".into());
            file.written_unix_s = moment;
        }
        let html = render(&files);
        assert!(
            html.starts_with(
                "<h1>post &lt;A&gt;, small</h1><p>2026-11-27 08:37 to 09:39 UTC, 2 runs, pando-bench "
            ),
            "{html}"
        );
        assert!(html.contains("core"), "{html}");
        assert_eq!(render(&[]), "<h1>Benchmark report</h1>");
    }

    #[test]
    fn a_span_names_a_day_once_and_a_time_beyond_all_calendars_is_left_out() {
        assert_eq!(span(0, 59).unwrap(), "1970-01-01 00:00 UTC");
        assert_eq!(span(951_782_399, 951_782_400).unwrap(), "2000-02-28 23:59 to 2000-02-29 00:00 UTC");
        for beyond in [253_402_300_800, u64::MAX / 1000, u64::MAX] {
            assert_eq!(span(0, beyond), None);
        }
        let mut files = [file("point", 8, 1.0)];
        files[0].written_unix_s = u64::MAX;
        assert!(render(&files).contains("<p>1 run, pando-bench "), "{}", render(&files));
    }
}
