//! `pando-bench point`: its arguments.

use crate::cli;
use crate::workload::point::{PointQuery, Projection};
use clap::{ArgMatches, Command};
use pando_measuring::random::distribution::Shape;

pub fn command() -> Command {
    Command::new("point")
        .about("Point queries by _id")
        .args(cli::server_arguments())
        .args(cli::sysbench::data_arguments())
        .args(cli::load_arguments())
        .args(cli::sysbench::index_arguments())
        .args(cli::run_arguments())
        .arg(cli::load_when_argument())
        .arg(
            cli::option("dist", "SHAPE")
                .help("Which keys: uniform, zipf:THETA, special, latest")
                .default_value("uniform")
                .value_parser(|name: &str| name.parse::<Shape>()),
        )
        .arg(
            cli::choice("projection", "WHAT", ["c", "full"])
                .help("Ask for field c only, or for the full document"),
        )
}

pub fn workload(matches: &ArgMatches) -> PointQuery {
    let full = cli::value::<String>(matches, "projection") == "full";
    PointQuery {
        load: cli::sysbench::load(matches),
        shape: cli::value(matches, "dist"),
        projection: if full { Projection::Full } else { Projection::C },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{LoadWhen, MeasureOptions};
    use crate::client::{Draws, Pace, Spacing};
    use crate::workload::load::{Durability, IndexBuild};

    fn point(arguments: &[&str]) -> Option<(PointQuery, MeasureOptions)> {
        let all = std::iter::once(&"point").chain(arguments);
        let matches = command().try_get_matches_from(all).ok()?;
        Some((workload(&matches), cli::measure_options(&matches)))
    }

    #[test]
    fn defaults_are_those_of_the_documentation() {
        let (workload, options) = point(&[]).expect("no argument is required");
        assert_eq!(options.plans.iter().map(|plan| plan.clients).collect::<Vec<_>>(), [8, 32, 100]);
        assert_eq!(workload.shape, Shape::Uniform);
        assert_eq!((workload.load.index, workload.load.durability), (IndexBuild::Before, Durability::W1));
        assert!(options.with_ceiling && !options.null_server);
        assert!(options.plans.iter().all(|plan| plan.pace == Pace::Closed));
    }

    #[test]
    fn every_value_reaches_the_tools_own_terms() {
        let arguments = "--clients 1,2 --dist zipf:0.5 --projection full --secondary-index off --durability j --load only \
                         --rate 500 --arrivals poisson --repeats 3 --seed 9";
        let (workload, options) =
            point(&arguments.split_whitespace().collect::<Vec<_>>()).expect("all are known");
        assert_eq!((workload.shape, workload.projection), (Shape::Zipf(0.5), Projection::Full));
        assert_eq!(
            (workload.load.index, workload.load.durability),
            (IndexBuild::Never, Durability::Journaled)
        );
        assert_eq!((options.plans.len(), options.load_when, options.repeats), (2, LoadWhen::Only, 3));
        let spacing = Spacing::Poisson(Draws { seed: 9, stream: 0 });
        assert_eq!(options.plans[0].pace, Pace::Open { rate: 500.0, spacing });
    }

    #[test]
    fn a_host_or_a_port_is_refused_with_the_argument_to_take() {
        for arguments in [&["point", "--host", "x"][..], &["point", "--port", "3"], &["point", "--host"]] {
            let refusal = command().try_get_matches_from(arguments).expect_err("there is none").to_string();
            assert!(refusal.contains("--uri mongodb://HOST:PORT"), "{refusal}");
            assert!(!refusal.contains("--out"), "{refusal}");
        }
        assert!(!command().render_long_help().to_string().contains("--host"));
    }

    #[test]
    fn the_help_has_the_workloads_own_options_first_and_groups_of_the_others() {
        let help = command().render_help().to_string();
        let places: Vec<Option<usize>> = [
            "\nOptions:\n",
            "--dist",
            "\nServer and files:\n",
            "--uri",
            "\nLoad:\n",
            "--batch",
            "\nRuns:\n",
            "--clients",
        ]
        .iter()
        .map(|part| help.find(part))
        .collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{help}");
    }

    #[test]
    fn nonsense_is_refused() {
        for arguments in [
            ["--clients", "0"],
            ["--clients", "many"],
            ["--docs", "3000000000"],
            ["--dist", "pareto"],
            ["--durability", "w9"],
            ["--duration", "0"],
            ["--rate", "0"],
            ["--rate", "nan"],
            ["--unknown", "1"],
        ] {
            assert!(point(&arguments).is_none(), "{arguments:?}");
        }
    }
}
