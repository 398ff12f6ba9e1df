//! The arguments of the sysbench documents, which several subcommands share.

use super::{
    LOAD_HEADING, choice, database_argument, databases_argument, durability, generator, number,
    seed_arguments, under, value,
};
use crate::workload::load::IndexBuild;
use crate::workload::sysbench::documents::DataSet;
use crate::workload::sysbench::loading::Load;
use clap::{Arg, ArgMatches};

/// The most documents per collection: `_id` is an int32.
const DOCUMENTS_MAX: i64 = i32::MAX as i64;

pub fn data_arguments() -> Vec<Arg> {
    let mut arguments = vec![
        database_argument("sbtest"),
        databases_argument(),
        number("collections", "8", 1..=100_000).help("Collections sbtest1 to sbtestN"),
        number("docs", "125000", 1..=DOCUMENTS_MAX).help("Documents per collection"),
    ];
    arguments.extend(seed_arguments());
    arguments
}

/// The index on `k`.
pub fn index_arguments() -> Vec<Arg> {
    let arguments = vec![
        choice("secondary-index", "on|off", ["on", "off"]).help("Whether there is an index on k"),
        choice("index-build", "WHEN", ["before", "after"]).help("Create it before or after the load"),
    ];
    under(LOAD_HEADING, arguments)
}

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
