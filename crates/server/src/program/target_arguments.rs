//! The arguments that commands share: which store, which collection.

use std::path::PathBuf;

use clap::{Arg, ArgMatches};

use crate::transfer::TargetChoice;

pub(super) fn target_arguments() -> [Arg; 4] {
    let [uri, data] = store_arguments();
    [
        Arg::new("db").long("db").value_name("DATABASE").required(true).help("The database"),
        Arg::new("collection")
            .long("collection")
            .value_name("COLLECTION")
            .required(true)
            .help("The collection"),
        uri,
        data,
    ]
}

/// The arguments that name the store.
pub(super) fn store_arguments() -> [Arg; 2] {
    [
        Arg::new("uri")
            .long("uri")
            .value_name("URI")
            .required_unless_present("data")
            .conflicts_with("data")
            .help("A running server, such as mongodb://127.0.0.1:27017"),
        Arg::new("data")
            .long("data")
            .value_name("DIR")
            .help("A data folder that no server has open, instead of a running server"),
    ]
}

/// The store that was chosen.
pub(super) fn target_of(matches: &ArgMatches) -> TargetChoice {
    match (matches.get_one::<String>("uri"), matches.get_one::<String>("data")) {
        (Some(uri), _) => TargetChoice::Uri(uri.clone()),
        (None, data) => TargetChoice::Data(data.map(PathBuf::from).expect("clap requires one of the two")),
    }
}

/// The value of an argument that clap requires.
pub(super) fn required(matches: &ArgMatches, name: &str) -> String {
    matches.get_one::<String>(name).expect("clap requires it").clone()
}
