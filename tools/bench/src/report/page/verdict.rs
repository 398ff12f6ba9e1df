//! The verdict of a page: one sentence, and one chart of bars.
//!
//! # Terms
//! - *Comparison*: the runs of one workload with the same cache, the same settings and the most clients, a
//!   median rate for each server. A server whose run is flagged has no part in it. It is *even* where the two
//!   fastest differ by less than [`SAME`], or where a repeat of the one is within the repeats of the other.
//!
//! # Not here
//! Whether the posts' conclusions hold: [`posts`](super::posts).

use super::plain_server_name;
use super::runs::Colours;
use crate::report::file::RunFile;
use crate::report::{clients_in_words, runs_in_words};
use pando_measuring::chart::escape;
use pando_measuring::number::{median, number, time};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Rates that differ by less than this share are about the same.
const SAME: f64 = 0.05;
/// Comparisons in the chart; those beyond have their tables below.
const SHOWN_MAX: usize = 12;

/// Units with more operations on average are batches.
const OPERATIONS_A_BATCH_MIN: f64 = 1.05;

/// The common work of the runs of a comparison, beside their clients.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Work<'f> {
    workload: &'f str,
    /// The name of the run in its suite, if that says more.
    run: &'f str,
    cache: &'f str,
    /// The settings that tell it from other runs of these servers.
    settings: &'f str,
}

struct Comparison<'f> {
    /// The workload, the clients, and what else tells it from others.
    name: String,
    operations: &'f str,
    /// Servers and their rates, the fastest first.
    rates: Vec<Rated>,
    /// The median latency of a unit of the fastest, and how many operations a unit has.
    p50_us: f64,
    operations_a_unit: f64,
}

/// A server's rate over its repeats.
struct Rated {
    server: String,
    /// The median, and the repeats around it.
    rate: f64,
    least: f64,
    most: f64,
    repeats: usize,
}

impl Rated {
    fn of(server: &str, files: &[&RunFile]) -> Rated {
        let rates: Vec<f64> = files.iter().map(|file| file.figures.rate).collect();
        Rated {
            server: server.to_owned(),
            least: rates.iter().copied().fold(f64::INFINITY, f64::min),
            most: rates.iter().copied().fold(0.0, f64::max),
            repeats: rates.len(),
            rate: median(rates).unwrap_or(0.0),
        }
    }
}

impl Comparison<'_> {
    /// Whether the two fastest are about as fast.
    fn is_near(&self) -> bool {
        let [first, next, ..] = self.rates.as_slice() else { return false };
        next.rate > 0.0 && first.rate / next.rate - 1.0 < SAME
    }

    /// Whether the repeats of the two fastest overlap.
    fn overlaps(&self) -> bool {
        let [first, next, ..] = self.rates.as_slice() else { return false };
        next.rate > 0.0 && first.least <= next.most
    }

    /// Whether no difference between the two fastest is shown.
    fn is_even(&self) -> bool {
        self.is_near() || self.overlaps()
    }

    /// Whether one of the two fastest has a single run, which tells nothing of its spread.
    fn lacks_spread(&self) -> bool {
        self.rates.len() > 1 && self.rates[..2].iter().any(|rated| rated.repeats == 1)
    }
}

/// The section; nothing without runs.
pub fn render(files: &[RunFile], colours: &Colours) -> String {
    if files.is_empty() {
        return String::new();
    }
    let all = comparisons(files);
    let doubts = doubts(&all, files);
    let doubts = if doubts.is_empty() { doubts } else { format!("<p>{}</p>", escape(&doubts)) };
    let verdict = escape(&sentence(&all));
    format!("<section><p class=\"verdict\">{verdict}</p>{doubts}{}</section>", bars(&all, colours))
}

/// Why the verdict is not to be relied on yet; empty where nothing says so.
fn doubts(all: &[Comparison<'_>], files: &[RunFile]) -> String {
    let mut sentences = Vec::new();
    if all.iter().any(Comparison::lacks_spread) {
        let is_of_suite = files.iter().any(|file| file.labels.contains_key("suite"));
        let with = if is_of_suite { "repeats = 3 in the suite's file" } else { "--repeats 3" };
        sentences.push(format!("A single run has no spread: measure it again with {with}."));
    }
    let warned = files.iter().filter(|file| !file.warnings.is_empty()).count();
    if warned > 0 {
        let have = if warned == 1 { "has" } else { "have" };
        sentences
            .push(format!("{warned} of {} {have} warnings; they stand below.", runs_in_words(files.len())));
    }
    sentences.join(" ")
}

fn comparisons(files: &[RunFile]) -> Vec<Comparison<'_>> {
    let mut alike: BTreeMap<Work<'_>, Vec<&RunFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.flagged) {
        let cache = file.labels.get("cache").map_or("", String::as_str);
        let settings = file.settings_apart.as_deref().unwrap_or_default();
        let work =
            Work { workload: &file.workload, run: file.run_label().unwrap_or_default(), cache, settings };
        alike.entry(work).or_default().push(file);
    }
    alike.into_iter().filter_map(|(work, files)| comparison(work, &files)).collect()
}

fn comparison<'f>(work: Work<'_>, files: &[&'f RunFile]) -> Option<Comparison<'f>> {
    let clients = files.iter().map(|file| file.plan.clients).max()?;
    let mut by_server: BTreeMap<String, Vec<&RunFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.plan.clients == clients) {
        by_server.entry(plain_server_name(file)).or_default().push(file);
    }
    let of = |files: &[&RunFile], figure: fn(&RunFile) -> f64| {
        median(files.iter().map(|file| figure(file)).collect()).unwrap_or(0.0)
    };
    let mut rates: Vec<Rated> = by_server.iter().map(|(server, files)| Rated::of(server, files)).collect();
    rates.sort_by(|a, b| b.rate.total_cmp(&a.rate));
    let fastest = by_server.get(&rates.first()?.server)?;
    let name = [work.workload, work.run, work.cache, work.settings, &clients_in_words(clients)]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(", ");
    let p50_us = of(fastest, |file| file.figures.latency_us.p50);
    let operations_a_unit =
        of(fastest, |file| file.figures.operations as f64 / file.figures.units.max(1) as f64);
    Some(Comparison { name, operations: &files[0].operations, rates, p50_us, operations_a_unit })
}

fn sentence(all: &[Comparison<'_>]) -> String {
    let contests: Vec<&Comparison<'_>> = all.iter().filter(|one| one.rates.len() > 1).collect();
    match (all, contests.as_slice()) {
        ([], _) => "No run of this page is a measurement: all of them are flagged.".to_owned(),
        ([first, ..], []) => alone(first, all.len()),
        (_, [only]) => contest(only),
        (_, contests) => wins(contests),
    }
}

/// One server's own rate.
fn alone(one: &Comparison<'_>, comparisons: usize) -> String {
    let Rated { server, rate, .. } = &one.rates[0];
    let further = match comparisons {
        1 => String::new(),
        2 => " Another measurement is below.".to_owned(),
        several => format!(" {} further measurements are below.", several - 1),
    };
    format!(
        "{server} does {} {} per second ({}); {} take at most {}.{further}",
        number(*rate),
        one.operations,
        one.name,
        half_of(one),
        time(one.p50_us)
    )
}

/// The half of the units that a median latency is about: an insert is a batch of documents.
fn half_of(one: &Comparison<'_>) -> String {
    if one.operations_a_unit < OPERATIONS_A_BATCH_MIN {
        return "half of them".to_owned();
    }
    format!("half of the batches, of {} {} on average,", number(one.operations_a_unit), one.operations)
}

/// The fastest beside the next.
fn contest(one: &Comparison<'_>) -> String {
    let [Rated { server: first, rate, .. }, Rated { server: second, rate: next, .. }, ..] =
        one.rates.as_slice()
    else {
        return String::new();
    };
    let (what, name) = (one.operations, &one.name);
    if one.overlaps() && !one.is_near() {
        return format!(
            "No difference between {first} and {second} is shown: {} and {} {what} per second ({name}), and their \
             repeats overlap.",
            number(*rate),
            number(*next)
        );
    }
    if one.is_near() {
        return format!(
            "{first} and {second} are about as fast: {} and {} {what} per second ({name}).",
            number(*rate),
            number(*next)
        );
    }
    let times =
        if *next > 0.0 { format!("{} times as many as", number(rate / next)) } else { "before".into() };
    format!(
        "{first} does {} {what} per second, {times} {second} with {} ({name}).",
        number(*rate),
        number(*next)
    )
}

/// How often each server is clearly the fastest.
fn wins(contests: &[&Comparison<'_>]) -> String {
    let near = contests.iter().filter(|one| one.is_near()).count();
    let overlapping = contests.iter().filter(|one| one.overlaps() && !one.is_near()).count();
    if near == contests.len() {
        return format!("In all {near} comparisons the two fastest servers are about as fast.");
    }
    if near + overlapping == contests.len() {
        let why = match near {
            0 => "their repeats overlap".to_owned(),
            near => format!("in {overlapping} their repeats overlap, in {near} they are about as fast"),
        };
        return format!("No comparison shows a difference between its two fastest servers: {why}.");
    }
    let mut won: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for one in contests.iter().filter(|one| !one.is_even()) {
        let (first, next) = (&one.rates[0], &one.rates[1]);
        won.entry(first.server.as_str()).or_default().push(first.rate / next.rate.max(1e-9));
    }
    let mut won: Vec<(&str, Vec<f64>)> = won.into_iter().collect();
    won.sort_by_key(|(_, times)| std::cmp::Reverse(times.len()));
    let (first, ratios) = &won[0];
    let (least, most) =
        (ratios.iter().copied().fold(f64::INFINITY, f64::min), ratios.iter().copied().fold(0.0, f64::max));
    let times =
        if ratios.len() > 1 { format!("{} to {}", number(least), number(most)) } else { number(most) };
    let mut text = format!(
        "{first} is the fastest in {} of {} comparisons, {times} times as fast as the next",
        ratios.len(),
        contests.len()
    );
    for (server, ratios) in &won[1..] {
        let _ = write!(text, "; {server} is it in {}", ratios.len());
    }
    if near > 0 {
        let _ = write!(text, "; in {near} the two fastest are about as fast");
    }
    if overlapping > 0 {
        let _ = write!(
            text,
            "; in {overlapping} no difference is shown, since the repeats of the two fastest overlap"
        );
    }
    text + "."
}

/// A group of bars for each comparison, in parts of its fastest server. A server has one colour.
fn bars(all: &[Comparison<'_>], colours: &Colours) -> String {
    let mut html = String::new();
    for one in all.iter().take(SHOWN_MAX) {
        let most = one.rates[0].rate.max(1e-9);
        let _ = write!(
            html,
            "<h4>{}, {} per second</h4><div class=\"bars\">",
            escape(&one.name),
            escape(one.operations)
        );
        for Rated { server, rate, .. } in &one.rates {
            let colour = colours.colour(server);
            let _ = write!(
                html,
                "<span>{}</span><span class=\"track\"><span class=\"bar key c{colour}\" style=\"width:{:.1}%\"></span></span>\
                 <span>{}</span>",
                escape(server),
                (rate / most * 100.0).max(0.5),
                number(*rate)
            );
        }
        html.push_str("</div>");
    }
    if all.len() > SHOWN_MAX {
        let _ = write!(html, "<p>{} more are below.</p>", all.len() - SHOWN_MAX);
    }
    if html.is_empty() { html } else { format!("<figure>{html}</figure>") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::file::tests::file;

    fn run(workload: &str, server: &str, rate: f64) -> RunFile {
        let mut run = file(workload, 8, rate);
        run.labels.insert("server".to_owned(), server.to_owned());
        run
    }

    fn said(files: &[RunFile]) -> String {
        sentence(&comparisons(files))
    }

    #[test]
    fn two_servers_are_compared_by_the_medians_of_their_repeats() {
        let files = [run("point", "a", 100.0), run("point", "a", 300.0), run("point", "b", 50.0)];
        assert_eq!(
            said(&files),
            "a does 200 queries per second, 4 times as many as b with 50 (point, 8 clients)."
        );
        let files = [run("point", "a", 100.0), run("point", "b", 98.0)];
        assert!(said(&files).starts_with("a and b are about as fast: 100 and 98 "), "{}", said(&files));
    }

    #[test]
    fn several_comparisons_are_counted() {
        let files = [
            run("kv", "a", 1.0),
            run("kv", "b", 2.0),
            run("point", "a", 4.0),
            run("point", "b", 2.0),
            run("iibench", "b", 1.0),
        ];
        assert_eq!(
            said(&files),
            "a is the fastest in 1 of 2 comparisons, 2 times as fast as the next; b is it in 1."
        );
    }

    #[test]
    fn comparisons_within_the_noise_are_won_by_nobody() {
        let of = |workload, a, b| [run(workload, "a", a), run(workload, "b", b)];
        let even = [of("kv", 100.0, 101.0), of("point", 103.0, 100.0)].concat();
        assert_eq!(said(&even), "In all 2 comparisons the two fastest servers are about as fast.");
        let files = [even, of("iibench", 300.0, 100.0).to_vec()].concat();
        assert_eq!(
            said(&files),
            "a is the fastest in 1 of 3 comparisons, 3 times as fast as the next; in 2 the two fastest are about as fast."
        );
    }

    #[test]
    fn repeats_that_overlap_are_won_by_nobody_and_single_runs_are_said_to_be_such() {
        let overlapping = [
            run("point", "a", 38.7),
            run("point", "a", 31.8),
            run("point", "a", 24.9),
            run("point", "b", 30.0),
            run("point", "b", 27.7),
            run("point", "b", 26.0),
        ];
        assert_eq!(
            said(&overlapping),
            "No difference between a and b is shown: 31.8 and 27.7 queries per second (point, 8 clients), and their \
             repeats overlap."
        );
        let others = [run("kv", "a", 300.0), run("kv", "b", 100.0)];
        let both = said(&[overlapping.to_vec(), others.to_vec()].concat());
        assert!(
            both.contains("in 1 of 2 comparisons") && both.contains("; in 1 no difference is shown"),
            "{both}"
        );
        let near = [run("kv", "a", 100.0), run("kv", "b", 99.0)];
        let both = said(&[overlapping.to_vec(), near.to_vec()].concat());
        assert!(both.ends_with("in 1 their repeats overlap, in 1 they are about as fast."), "{both}");
        assert_eq!(doubts(&comparisons(&overlapping), &overlapping), "");
        let mut single = [run("point", "a", 300.0), run("point", "b", 100.0)];
        single[0].warnings = vec!["the machine was 0.0 % idle".to_owned()];
        let told = doubts(&comparisons(&single), &single);
        assert!(told.contains("--repeats 3") && told.contains("1 of 2 runs has warnings"), "{told}");
        single[1].labels.insert("suite".to_owned(), "small".to_owned());
        let told = doubts(&comparisons(&single), &single);
        assert!(told.contains("repeats = 3 in the suite's file") && !told.contains("--repeats"), "{told}");
    }

    #[test]
    fn one_server_says_its_rate_and_flagged_runs_do_not_count() {
        let mut files = [run("point", "a", 12_345.0), run("point", "b", 99_999.0)];
        files[1].flagged = true;
        assert!(
            said(&files).starts_with("a does 12.3k queries per second (point, 8 clients)"),
            "{}",
            said(&files)
        );
        assert!(said(&files).contains("; half of them take at most "), "{}", said(&files));
        files[0].flagged = true;
        assert!(said(&files).contains("all of them are flagged"));
        assert_eq!(render(&[], &Colours::of(&[])), "");
    }

    #[test]
    fn the_latency_of_inserts_is_said_to_be_that_of_a_batch() {
        let mut load = run("point load", "a", 27_500.0);
        (load.operations, load.figures.operations, load.figures.units) = ("documents".into(), 50_000, 50);
        let said = said(&[load]);
        assert!(
            said.contains("; half of the batches, of 1,000 documents on average, take at most "),
            "{said}"
        );
    }

    #[test]
    fn bars_are_parts_of_the_fastest_and_a_server_keeps_its_colour() {
        let files =
            [run("kv", "a", 1.0), run("kv", "b", 2.0), run("point", "a", 4.0), run("point", "b", 2.0)];
        let html = render(&files, &Colours::of(&files));
        assert_eq!(html.matches("c0\" style=\"width:50.0%\"").count(), 1, "{html}");
        assert_eq!(html.matches("c1\" style=\"width:100.0%\"").count(), 1, "{html}");
    }
}
