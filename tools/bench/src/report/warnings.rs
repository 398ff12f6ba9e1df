//! The warnings: reasons to doubt a figure. A run with failures, with misses that must not be, or after which
//! the data was wrong, is not a measurement at all: it is *flagged*, and the tool ends with 1.

use super::Figures;
use super::Finding;
use super::dips::steadiness;
use super::file::{Circumstances, RunFacts};
use crate::client::{Misses, Pace};

/// Beyond this share of the CPU time, the client is a part of what is measured.
const CLIENT_SHARE_MAX: f64 = 0.25;
/// Beyond this, a thread of the client may be what limits the rate.
const THREAD_BUSY_MAX: f64 = 0.90;
/// Below this, the machine is what limits the rate, and client and server take from each other.
const MACHINE_IDLE_MIN: f64 = 0.05;
/// Other processes that take less than this share of the machine are not why it is used up: the kernel does
/// as much for the connections of client and server without counting it as theirs.
const OTHERS_SHARE_MIN: f64 = 0.10;
/// Beyond this share of the client's own ceiling, it is a part of what is measured.
pub const CEILING_SHARE_MAX: f64 = 0.5;
/// Beyond this readahead, a memory-mapped engine reads much more than it needs.
const READAHEAD_KB_MAX: u64 = 32;
/// Mapped files below this are not where an engine keeps its data.
const MAPPED_BYTES_MIN: u64 = 1_000_000;
/// Beyond this deviation of its seconds by their mean, a run is noisy.
const VARIATION_MAX: f64 = 0.25;
/// Shorter runs say nothing about it.
const NOISE_SECONDS_MIN: usize = 10;
/// A unit under way at the end is told of if it has waited so many times as long as the longest latency, and
/// so many microseconds.
const UNANSWERED_RATIO: f64 = 2.0;
const UNANSWERED_US_MIN: f64 = 100_000.0;
/// Where more operations than this a second are done, a second without any is a stall.
const IDLE_RATE_MIN: f64 = 10.0;
/// Within this share of the rate that was asked for, an open loop has held its schedule.
const RATE_ERROR_MAX: f64 = 0.01;

/// The users of a machine that had no idle time left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MachineUsers {
    /// Client and server, as far as is known: they take CPU from each other.
    ClientAndServer,
    /// Other processes, which took this share (0..=1) of the CPU time of all cores.
    Others(f64),
}

/// The users of a machine without idle time; nothing if it had some. Client and server take CPU from each
/// other only if there would be no idle time without the other processes either.
pub fn machine_users(figures: &Figures, cores: usize) -> Option<MachineUsers> {
    let idle = figures.machine?.idle;
    if idle >= MACHINE_IDLE_MIN {
        return None;
    }
    let others = figures.others_share(cores).filter(|share| *share >= OTHERS_SHARE_MIN);
    Some(others.map_or(MachineUsers::ClientAndServer, MachineUsers::Others))
}

/// Whether the tool itself limits the rate: this is above half of its own ceiling, or one of its threads had
/// hardly a pause. That the client takes much CPU beside the server is another doubt
/// ([`takes_much_cpu`]): it limits the rate only where the machine is used up.
pub fn is_client_bound(figures: &Figures, ceiling: Option<f64>) -> bool {
    share_of_ceiling(figures, ceiling).is_some() || busy_thread(figures).is_some()
}

/// The rate by the tool's own ceiling, if that limits it.
fn share_of_ceiling(figures: &Figures, ceiling: Option<f64>) -> Option<f64> {
    let share = figures.rate / ceiling.filter(|ceiling| *ceiling > 0.0)?;
    Some(share).filter(|share| *share > CEILING_SHARE_MAX)
}

/// The share of the window in which a thread of the client ran that had hardly a pause.
fn busy_thread(figures: &Figures) -> Option<f64> {
    let busy = figures.client_threads_busy.iter().copied().find(|busy| *busy > THREAD_BUSY_MAX);
    // Clients that ended before the window opened leave a window without a length, and so without a share.
    busy.filter(|_| figures.operations > 0)
}

/// Whether the client took more than a quarter of the CPU time that it and the server used.
pub fn takes_much_cpu(figures: &Figures) -> bool {
    figures.client_share().is_some_and(|share| share > CLIENT_SHARE_MAX)
}

/// Whether the run is no measurement.
pub fn is_flagged(figures: &Figures, misses: Misses, findings: &[Finding]) -> bool {
    !reasons(figures, misses, findings).is_empty()
}

/// Why the run is no measurement; nothing if it is one.
fn reasons(figures: &Figures, misses: Misses, findings: &[Finding]) -> Vec<String> {
    let counted = |count: u64, one: &str, several: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {several}")),
    };
    let faults = if misses == Misses::AreFaults { figures.missed } else { 0 };
    let missed = counted(
        faults,
        "operation missed a document that must be there",
        "operations missed documents that must be there",
    );
    let failed = counted(figures.failed, "operation failed", "operations failed");
    let idle = (figures.operations == 0).then(|| "no operation was done".to_owned());
    let wrong = findings.iter().any(|finding| finding.wrong > 0);
    let wrong = wrong.then(|| "the data was wrong after the run".to_owned());
    [missed, failed, idle, wrong].into_iter().flatten().collect()
}

pub fn warnings(figures: &Figures, facts: &RunFacts, circumstances: &Circumstances) -> Vec<String> {
    let mut warnings = Vec::new();
    if is_flagged(figures, facts.misses, &facts.findings) {
        let reasons = reasons(figures, facts.misses, &facts.findings).join("; ");
        warnings.push(format!("FLAGGED: this is no measurement: {reasons}"));
        warnings.extend(figures.failures.iter().map(|failure| format!("failure: {failure}")));
        let wrong = facts.findings.iter().filter(|finding| finding.wrong > 0);
        warnings.extend(wrong.map(|finding| format!("wrong after the run: {finding}")));
    }
    if let Some(share) = figures.client_share().filter(|_| takes_much_cpu(figures)) {
        warnings.push(format!(
            "the client took {:.0} % of the CPU time that it and the server used",
            share * 100.0
        ));
    }
    warnings.extend(of_server_cpu(figures));
    if let Some(busy) = busy_thread(figures) {
        warnings.push(format!("a client thread was {:.0} % busy: give it more by --threads", busy * 100.0));
    }
    warnings.extend(of_machine(figures, circumstances.machine.cores));
    if let Some((share, ceiling)) = share_of_ceiling(figures, facts.ceiling).zip(facts.ceiling) {
        let share = share * 100.0;
        warnings.push(format!(
            "{share:.0} % of the tool's own ceiling of {ceiling:.0}/s: it limits what is seen"
        ));
    }
    warnings.extend(of_open_loop(figures, facts));
    warnings.extend(of_readahead(circumstances));
    warnings.extend(of_noise(figures));
    warnings.extend(of_late_answers(figures));
    warnings
}

/// A machine without idle time limits the rate.
fn of_machine(figures: &Figures, cores: usize) -> Option<String> {
    let users = match machine_users(figures, cores)? {
        MachineUsers::ClientAndServer => "client and server take CPU from each other".to_owned(),
        MachineUsers::Others(share) => format!("other processes took {:.0} % of its CPU time", share * 100.0),
    };
    let idle = figures.machine.map_or(0.0, |shares| shares.idle);
    Some(format!("the machine was {:.1} % idle: {users}", idle * 100.0))
}

/// A memory-mapped engine reads by page faults, each of which brings the whole readahead.
fn of_readahead(circumstances: &Circumstances) -> Option<String> {
    let machine = &circumstances.machine;
    let kilobytes = machine.read_ahead_kb.filter(|kilobytes| *kilobytes > READAHEAD_KB_MAX)?;
    let mapped = machine.open_files.filter(|files| files.mapped_bytes > MAPPED_BYTES_MIN)?;
    Some(format!(
        "readahead is {kilobytes} KB and {:.0} MB of the data are memory-mapped: a read of one page may bring that much; \
         see --readahead-sweep",
        mapped.mapped_bytes as f64 / 1e6
    ))
}

/// A short run, or one that asks little of the server, has no CPU time of it that could be shown or compared.
fn of_server_cpu(figures: &Figures) -> Option<String> {
    let is_counted = figures.server_resident_bytes.is_some() && figures.operations > 0;
    (is_counted && figures.per_operation.server_cpu_us.is_none()).then(|| {
        "the server took less CPU than a tick of the kernel's clock (10 ms): its CPU is not known, measure more operations"
            .to_owned()
    })
}

/// Seconds of a steady run differ little.
fn of_noise(figures: &Figures) -> Option<String> {
    let found = steadiness(figures);
    let has_stalled = found.idle_seconds > 0 && figures.rate > IDLE_RATE_MIN;
    if !has_stalled && (figures.timeline.len() < NOISE_SECONDS_MIN || found.variation < VARIATION_MAX) {
        return None;
    }
    let again = found.period_s.map_or_else(String::new, |period| format!(" again every {period} s"));
    Some(format!(
        "noisy: seconds differ by {:.0} % of their mean ({} dips{again}, {} seconds without work): repeat it, or run it longer",
        found.variation * 100.0,
        found.dips.len(),
        found.idle_seconds
    ))
}

/// A server that stands still at the end of the window, or beyond, answers nothing that would be counted.
fn of_late_answers(figures: &Figures) -> Option<String> {
    let (waited, longest) = (figures.longest_unanswered_us, figures.latency_us.max);
    if waited < UNANSWERED_US_MIN || waited < UNANSWERED_RATIO * longest {
        return None;
    }
    Some(format!(
        "when the window ended a unit had waited for {:.1} s, and the longest latency is {:.3} s: no latency counts that wait, run it \
         longer",
        waited / 1e6,
        longest / 1e6
    ))
}

fn of_open_loop(figures: &Figures, facts: &RunFacts) -> Option<String> {
    let Pace::Open { rate, .. } = facts.plan.pace else { return None };
    let found = figures.units as f64 / figures.seconds;
    if figures.not_begun > 0 && found < rate * (1.0 - RATE_ERROR_MAX) {
        return Some(format!(
            "{found:.0}/s of the {rate:.0}/s that were asked for: {} units had not begun at the end, the first of them {:.1} s late; \
             latencies grow with the length of the run",
            figures.not_begun,
            figures.longest_wait_us / 1e6
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::{measured, tally};
    use super::super::file::tests::circumstances;
    use super::*;
    use crate::client::{Spacing, Tally, ThreadUsage};

    fn facts(ceiling: Option<f64>, pace: Pace) -> RunFacts {
        RunFacts {
            workload: "point".into(),
            summary: String::new(),
            operations: "queries",
            parameters: serde_json::Value::Null,
            misses: Misses::AreFaults,
            plan: crate::run::Plan {
                clients: 1,
                threads: 1,
                warmup_s: 0,
                duration_s: 2,
                pace,
                interval_s: 10,
            },
            ceiling,
            findings: Vec::new(),
            lines: Vec::new(),
            extras: serde_json::Value::Null,
            why: crate::why::Why::default(),
        }
    }

    fn figures(change: impl FnOnce(&mut Tally)) -> Figures {
        let mut tally = tally(2);
        change(&mut tally);
        Figures::new(&measured(tally, None), &[])
    }

    #[test]
    fn a_clean_run_is_silent() {
        let clean = figures(|_| {});
        assert!(!is_flagged(&clean, Misses::AreFaults, &[]));
        assert_eq!(
            warnings(&clean, &facts(Some(100.0), Pace::Closed), &circumstances()),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_stall_that_lasts_to_the_end_is_told() {
        let late = figures(|tally| tally.longest_unanswered = std::time::Duration::from_secs(3));
        let told = warnings(&late, &facts(None, Pace::Closed), &circumstances());
        assert!(told.iter().any(|warning| warning.contains("waited for 3.0 s")), "{told:?}");
        let idle = figures(|tally| {
            let busy = crate::client::Second { operations: 100, ..tally.seconds[0] };
            tally.seconds = vec![busy, crate::client::Second::default(), busy];
        });
        let told = warnings(&idle, &facts(None, Pace::Closed), &circumstances());
        assert!(told.iter().any(|warning| warning.contains("1 seconds without work")), "{told:?}");
    }

    #[test]
    fn one_miss_flags_a_run_unless_misses_are_part_of_the_work() {
        let missed = figures(|tally| tally.missed = 1);
        assert!(is_flagged(&missed, Misses::AreFaults, &[]));
        assert!(!is_flagged(&missed, Misses::AreExpected, &[]));
        assert!(warnings(&missed, &facts(None, Pace::Closed), &circumstances())[0].starts_with("FLAGGED"));
        let nothing = figures(|tally| tally.seconds.clear());
        assert!(is_flagged(&nothing, Misses::AreFaults, &[]), "nothing done is no measurement");
    }

    #[test]
    fn a_flagged_run_says_why_and_names_no_misses_that_are_part_of_the_work() {
        let of = |figures: &Figures, facts: &RunFacts| warnings(figures, facts, &circumstances())[0].clone();
        let mut linkbench = RunFacts { misses: Misses::AreExpected, ..facts(None, Pace::Closed) };
        linkbench.findings = vec![Finding { what: "counts".into(), checked: 100, wrong: 82 }];
        let missed = figures(|tally| tally.missed = 60);
        assert_eq!(
            of(&missed, &linkbench),
            "FLAGGED: this is no measurement: the data was wrong after the run"
        );
        let nothing = figures(|tally| {
            tally.seconds.clear();
            tally.threads = vec![ThreadUsage { cpu_us: 1_900_000.0, switches: 0 }];
        });
        let told = warnings(&nothing, &facts(None, Pace::Closed), &circumstances());
        assert_eq!(told, ["FLAGGED: this is no measurement: no operation was done"]);
        let both = figures(|tally| (tally.missed, tally.failed) = (1, 2));
        assert_eq!(
            of(&both, &facts(None, Pace::Closed)),
            "FLAGGED: this is no measurement: 1 operation missed a document that must be there; 2 operations failed"
        );
    }

    #[test]
    fn wrong_data_after_the_run_flags_it() {
        let wrong = Finding { what: "counts".into(), checked: 10, wrong: 1 };
        assert!(is_flagged(&figures(|_| {}), Misses::AreFaults, &[wrong]));
    }

    #[test]
    fn a_busy_thread_and_a_near_ceiling_are_told() {
        let busy = figures(|tally| tally.threads = vec![ThreadUsage { cpu_us: 1_900_000.0, switches: 0 }]);
        assert!(warnings(&busy, &facts(None, Pace::Closed), &circumstances())[0].contains("95 % busy"));
        assert!(
            warnings(&figures(|_| {}), &facts(Some(1.5), Pace::Closed), &circumstances())[0]
                .contains("ceiling")
        );
    }

    #[test]
    fn cpu_of_the_server_below_a_tick_is_told_and_says_nothing_of_the_clients_share() {
        let mut usage = super::super::figures::tests::usage();
        let server = usage.server.as_mut().expect("there is a server");
        (server.user_us, server.system_us) = (0.0, 0.0);
        let figures = Figures::new(&measured(tally(2), Some(usage)), &[]);
        let told = warnings(&figures, &facts(None, Pace::Closed), &circumstances());
        assert!(told.len() == 1 && told[0].contains("less CPU than a tick"), "{told:?}");
    }

    #[test]
    fn a_machine_without_idle_time_names_those_who_used_it() {
        let of = |server_us: f64, client_us: f64| {
            let mut usage = super::super::figures::tests::usage();
            usage.machine = pando_measuring::counters::Shares { idle: 0.01, user: 0.79, system: 0.20 };
            let server = usage.server.as_mut().expect("there is a server");
            (server.user_us, server.system_us) = (server_us, 0.0);
            let mut tally = tally(2);
            tally.threads = vec![ThreadUsage { cpu_us: client_us, switches: 0 }];
            Figures::new(&measured(tally, Some(usage)), &[])
        };
        let mut two_cores = circumstances();
        two_cores.machine.cores = 2;
        let told = |figures: &Figures| {
            let told = warnings(figures, &facts(None, Pace::Closed), &two_cores);
            told.into_iter().find(|warning| warning.contains("idle")).expect("it is told")
        };
        // Two cores for two seconds: four seconds of CPU.
        let theirs = of(900_000.0, 100_000.0);
        assert_eq!(told(&theirs), "the machine was 1.0 % idle: other processes took 74 % of its CPU time");
        let ours = of(2_600_000.0, 1_300_000.0);
        let each_other = "the machine was 1.0 % idle: client and server take CPU from each other";
        assert_eq!(told(&ours), each_other);
        let mut unknown = of(900_000.0, 100_000.0);
        (unknown.server_resident_bytes, unknown.per_second.server_cpu_us) = (None, None);
        assert_eq!(told(&unknown), each_other, "the server may be among the others");
        let mut idle = theirs;
        idle.machine = idle.machine.map(|shares| pando_measuring::counters::Shares { idle: 0.5, ..shares });
        assert_eq!(machine_users(&idle, 2), None);
    }

    #[test]
    fn a_run_is_bound_by_its_client_near_the_ceiling_or_with_a_busy_thread_and_not_by_much_cpu() {
        let clean = figures(|_| {});
        assert!(!is_client_bound(&clean, None) && !is_client_bound(&clean, Some(2.5 * clean.rate)));
        assert!(is_client_bound(&clean, Some(1.5 * clean.rate)));
        let busy = figures(|tally| tally.threads = vec![ThreadUsage { cpu_us: 1_900_000.0, switches: 0 }]);
        assert!(is_client_bound(&busy, None));
        let mut costly = Figures::new(&measured(tally(2), Some(super::super::figures::tests::usage())), &[]);
        costly.per_operation.client_cpu_us = costly.per_operation.server_cpu_us;
        assert!(takes_much_cpu(&costly) && !is_client_bound(&costly, None));
    }

    #[test]
    fn a_schedule_that_was_not_held_is_told() {
        let late = figures(|tally| tally.not_begun = 7);
        let open = Pace::Open { rate: 100.0, spacing: Spacing::Even };
        assert!(warnings(&late, &facts(None, open), &circumstances())[0].contains("7 units had not begun"));
    }

    #[test]
    fn much_readahead_under_a_mapped_engine_is_told() {
        let mut mapped = circumstances();
        mapped.machine.read_ahead_kb = Some(8192);
        assert_eq!(of_readahead(&mapped), None);
        let files = pando_measuring::counters::OpenFiles { files: 1, direct: 0, mapped_bytes: 1_000_000_000 };
        mapped.machine.open_files = Some(files);
        assert!(of_readahead(&mapped).is_some_and(|warning| warning.contains("8192 KB")));
    }

    #[test]
    fn seconds_that_differ_much_are_told() {
        let noisy = figures(|tally| {
            let second = |operations| crate::client::Second { operations, ..Default::default() };
            tally.seconds = (0..20).map(|place| second(if place % 2 == 0 { 10 } else { 100 })).collect();
        });
        assert!(of_noise(&noisy).is_some_and(|warning| warning.starts_with("noisy")));
    }
}
