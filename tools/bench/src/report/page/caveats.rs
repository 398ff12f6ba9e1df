//! The caveats of a page: reasons why its figures do not compare, said once at its top.

use super::{is_just_started, plain_server_name};
use crate::report::differences;
use crate::report::durability::NO_WRITES;
use crate::report::failed_cells::{self, FailedCell};
use crate::report::file::RunFile;
use crate::report::runs_in_words;
use crate::report::warnings::{MachineUsers, takes_much_cpu};
use pando_measuring::chart::escape;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The caveats; nothing if there are none.
pub fn render(files: &[RunFile], failed: &[FailedCell]) -> String {
    let mut html = String::new();
    for caveat in failed_cells::caveat(failed).into_iter().chain(caveats(files)) {
        let _ = write!(html, "<li>{}</li>", escape(&caveat));
    }
    if html.is_empty() { html } else { format!("<section><h2>Caveats</h2><ul>{html}</ul></section>") }
}

fn caveats(files: &[RunFile]) -> Vec<String> {
    let distinct = |of: &dyn Fn(&RunFile) -> Option<String>| -> BTreeSet<String> {
        files.iter().filter_map(of).collect()
    };
    let mut caveats = Vec::new();
    caveats.extend(
        distinct(&|file| file.labels.get("scaled").cloned())
            .into_iter()
            .map(|scaled| format!("scaled down: {scaled}")),
    );
    let mut servers: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.durability != NO_WRITES) {
        servers.entry(&file.durability).or_default().insert(plain_server_name(file));
    }
    if servers.len() > 1 {
        let all = servers.iter().map(|(promise, servers)| {
            let servers: Vec<&str> = servers.iter().map(String::as_str).collect();
            format!("{}: {promise}", servers.join(" and "))
        });
        let all: Vec<String> = all.collect();
        caveats.push(format!("writes are answered with different promises: {}", all.join("; ")));
    }
    let machines = distinct(&|file| Some(format!("{:?} {:?}", file.machine.kernel, file.machine.cpu_model)));
    if machines.len() > 1 {
        caveats.push(format!("the runs are from {} different machines or kernels", machines.len()));
    }
    let readaheads = distinct(&|file| file.machine.read_ahead_kb.map(|kb| format!("{kb} KB")));
    if readaheads.len() > 1 {
        let all: Vec<String> = readaheads.into_iter().collect();
        caveats.push(format!("readahead differs: {}", all.join(", ")));
    }
    caveats.extend(differences::within(files));
    // The verb goes with the first number.
    let mut count = |of_one: &str, of_several: &str, is: &dyn Fn(&RunFile) -> bool| {
        let found = files.iter().filter(|file| is(file)).count();
        let what = if found == 1 { of_one } else { of_several };
        if found > 0 {
            caveats.push(format!("{found} of {} {what}", runs_in_words(files.len())));
        }
    };
    count("is flagged: it is no measurement", "are flagged: they are no measurements", &|file| file.flagged);
    let warned = |file: &RunFile, word: &str| file.warnings.iter().any(|warning| warning.contains(word));
    count(
        "is client-bound: the tool itself limits the rate",
        "are client-bound: the tool itself limits the rate",
        &|file| file.is_client_bound(),
    );
    let much_cpu = "a client that took more than a quarter of the CPU time that it and the server used";
    count(&format!("has {much_cpu}"), &format!("have {much_cpu}"), &|file| {
        !file.flagged && takes_much_cpu(&file.figures)
    });
    let just_started =
        "warm on a server that was started right before: its cache had only what the warm-up brought";
    count(&format!("was {just_started}"), &format!("were {just_started}"), &is_just_started);
    count("is noisy", "are noisy", &|file| warned(file, "noisy"));
    let all_used = "used all of the machine: client and server took CPU from each other";
    count(all_used, all_used, &|file| file.machine_users() == Some(MachineUsers::ClientAndServer));
    caveats.extend(of_others(files));
    caveats
}

/// Runs on a machine that other processes used.
fn of_others(files: &[RunFile]) -> Option<String> {
    let share = |file: &RunFile| match file.machine_users()? {
        MachineUsers::Others(share) => Some(share * 100.0),
        MachineUsers::ClientAndServer => None,
    };
    let shares: Vec<f64> = files.iter().filter_map(share).collect();
    let (least, most) = shares
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(least, most), share| (least.min(*share), most.max(*share)));
    let was = match shares.len() {
        0 => return None,
        1 => "was",
        _ => "were",
    };
    let took = if most - least < 1.0 { format!("{most:.0} %") } else { format!("{least:.0} to {most:.0} %") };
    Some(format!(
        "{} of {} {was} made on a machine without idle time, of which other processes took {took}",
        shares.len(),
        runs_in_words(files.len())
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::failed_cells::tests::failed;
    use crate::report::file::tests::file;

    #[test]
    fn differences_between_servers_and_doubts_are_said_once() {
        let mut files = vec![file("point", 8, 1.0), file("point", 8, 2.0), file("point", 8, 3.0)];
        assert_eq!(caveats(&files), Vec::<String>::new());
        files[0].durability = "synced".into();
        files[1].durability = "not synced".into();
        files[1].flagged = true;
        files[2].labels.insert("scaled".into(), "checkpoints each 6 s instead of 60".into());
        let all = caveats(&files);
        assert_eq!(all.len(), 3, "{all:?}");
        assert!(all[0].contains("6 s instead of 60"), "{all:?}");
        assert!(
            all[1].contains("127.0.0.1:1: not synced; ") && all[1].ends_with("127.0.0.1:1: synced"),
            "{all:?}"
        );
        assert!(all[2].starts_with("1 of 3 runs is flagged: it is no measurement"), "{all:?}");
    }

    #[test]
    fn servers_that_did_other_things_and_warm_runs_of_new_servers_are_told() {
        let mut files = vec![file("point", 8, 1.0), file("point", 8, 2.0)];
        files[1].parameters = serde_json::json!({ "seed": 2 });
        files[0].labels.insert("state".into(), "warm: a warm-up".into());
        files[1].labels.insert("state".into(), "warm: the server was started right before; a warm-up".into());
        let all = caveats(&files);
        assert_eq!(all[0], "point: what was done differs: seed 1 | seed 2");
        assert!(
            all[1].starts_with("1 of 2 runs was warm on a server that was started right before"),
            "{all:?}"
        );
    }

    #[test]
    fn runs_that_the_client_bounds_are_those_that_the_tables_mark() {
        let mut files = vec![file("point", 8, 700.0), file("kv", 8, 700.0), file("iibench", 8, 700.0)];
        files.iter_mut().for_each(|file| file.ceiling = Some(10_000.0));
        files[0].ceiling = Some(1000.0);
        let costs = &mut files[1].figures.per_operation;
        (costs.client_cpu_us, costs.server_cpu_us) = (Some(5.0), Some(5.0));
        files[1].warnings.push("the client took 50 % of the CPU time that it and the server used".into());
        let all = caveats(&files);
        assert_eq!(all[0], "1 of 3 runs is client-bound: the tool itself limits the rate");
        assert!(all[1].starts_with("1 of 3 runs has a client that took more than a quarter"), "{all:?}");
        let tables = crate::report::markdown::render(&files, &[]);
        assert_eq!(tables.matches("(client-bound)").count(), 1, "{tables}");
    }

    #[test]
    fn a_machine_that_other_processes_used_is_not_told_as_used_by_client_and_server() {
        let mut files = vec![file("point", 8, 700.0), file("point", 8, 700.0)];
        for (file, server_us) in files.iter_mut().zip([500_000.0, 1_900_000.0]) {
            file.machine.cores = 2;
            let figures = &mut file.figures;
            figures.machine = Some(pando_measuring::counters::Shares { idle: 0.0, user: 0.9, system: 0.1 });
            figures.server_resident_bytes = Some(1);
            figures.per_second.server_cpu_us = Some(server_us);
        }
        let all = caveats(&files);
        assert_eq!(
            all,
            [
                "1 of 2 runs used all of the machine: client and server took CPU from each other",
                "1 of 2 runs was made on a machine without idle time, of which other processes took 75 %",
            ]
        );
    }

    #[test]
    fn cells_of_a_suite_that_failed_are_the_first_caveat() {
        let mut files = [file("point", 8, 1.0)];
        files[0].flagged = true;
        let html = render(&files, &[failed("a <server>", "kv")]);
        assert!(html.contains("<ul><li>1 run of the suite failed"), "{html}");
        assert!(
            html.contains("a &lt;server&gt;, kv (1)") && html.contains("1 of 1 run is flagged"),
            "{html}"
        );
    }
}
