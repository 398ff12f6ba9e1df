//! The arguments of the sysbench documents, which several subcommands share.

use super::{durability, generator, option, seed_arguments, value};
use crate::workload::load::IndexBuild;
use crate::workload::sysbench::documents::DataSet;
use crate::workload::sysbench::loading::Load;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, value_parser};

/// The most documents per collection: `_id` is an int32.
const DOCUMENTS_MAX: i64 = i32::MAX as i64;

/// Which documents there are.
pub fn data_arguments() -> Vec<Arg> {
    let mut arguments = vec![
        option("database", "NAME", "The database").default_value("sbtest"),
        option("databases", "N", "Spread the collections over so many: NAME1 to NAMEN")
            .default_value("1")
            .value_parser(value_parser!(u32).range(1..=100_000)),
        option("collections", "N", "Collections sbtest1 to sbtestN")
            .default_value("8")
            .value_parser(value_parser!(u32).range(1..=100_000)),
        option("docs", "N", "Documents per collection")
            .default_value("125000")
            .value_parser(value_parser!(u32).range(1..=DOCUMENTS_MAX)),
    ];
    arguments.extend(seed_arguments());
    arguments
}

/// The index on `k`.
pub fn index_arguments() -> Vec<Arg> {
    vec![
        option("secondary-index", "on|off", "Whether there is an index on k")
            .default_value("on")
            .value_parser(PossibleValuesParser::new(["on", "off"])),
        option("index-build", "WHEN", "Create it before or after the load")
            .default_value("before")
            .value_parser(PossibleValuesParser::new(["before", "after"])),
    ]
}

/// What the arguments say.
pub fn load(matches: &ArgMatches) -> Load {
    let text = |name| value::<String>(matches, name);
    let index = match (text("secondary-index").as_str(), text("index-build").as_str()) {
        ("off", _) => IndexBuild::Never,
        (_, "after") => IndexBuild::After,
        _ => IndexBuild::Before,
    };
    Load {
        data: DataSet {
            database: text("database"),
            databases: value(matches, "databases"),
            collections: value(matches, "collections"),
            documents: value(matches, "docs"),
        },
        generator: generator(matches),
        seed: value(matches, "seed"),
        connections: value(matches, "load-connections"),
        batch: value(matches, "batch"),
        index,
        durability: durability(matches),
    }
}
