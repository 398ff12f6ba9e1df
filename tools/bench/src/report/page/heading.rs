//! The head of a page: the suite, when its runs were made, by which tool and on which machine. A page on
//! paper has nothing else that says so.

use crate::report::file::RunFile;
use pando_measuring::chart::escape;
use std::collections::BTreeSet;

const SECONDS_OF_DAY: u64 = 86_400;

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
    let runs = if files.len() == 1 { "1 run".to_owned() } else { format!("{} runs", files.len()) };
    let line = format!(
        "{}, {runs}, {}, {}",
        span(first, last),
        joined(&tools.iter().map(String::as_str).collect()),
        joined(&machines.iter().map(String::as_str).collect())
    );
    format!("{title}<p>{}</p>", escape(&line))
}

fn machine(file: &RunFile) -> String {
    let model = file.machine.cpu_model.as_deref().unwrap_or("unknown processor");
    let unit = if file.machine.cores == 1 { "core" } else { "cores" };
    format!("{} {unit} ({model})", file.machine.cores)
}

fn joined(names: &BTreeSet<&str>) -> String {
    names.iter().copied().collect::<Vec<_>>().join(", ")
}

/// From when to when, in UTC to the minute.
fn span(first: u64, last: u64) -> String {
    if first / 60 == last / 60 {
        return format!("{} {} UTC", date(first), time_of_day(first));
    }
    if first / SECONDS_OF_DAY == last / SECONDS_OF_DAY {
        return format!("{} {} to {} UTC", date(first), time_of_day(first), time_of_day(last));
    }
    format!("{} {} to {} {} UTC", date(first), time_of_day(first), date(last), time_of_day(last))
}

fn time_of_day(unix_s: u64) -> String {
    let minutes = unix_s % SECONDS_OF_DAY / 60;
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

/// `2026-11-27`: years are counted off, which are few since 1970.
fn date(unix_s: u64) -> String {
    let mut days = unix_s / SECONDS_OF_DAY;
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
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
    fn dates_are_those_of_the_calendar() {
        for (unix_s, expected) in [
            (0, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_735_689_599, "2024-12-31"),
            (1_735_689_600, "2025-01-01"),
        ] {
            assert_eq!(date(unix_s), expected);
        }
    }
}
