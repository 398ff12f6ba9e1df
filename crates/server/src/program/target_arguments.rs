//! The arguments that commands share: which store, which collection; and those of MongoDB's tools that are
//! taken in their own spelling.

use std::error::Error;

use clap::{Arg, ArgAction, ArgMatches};

use super::encryption_arguments::OF_STORE;
use super::failure::UsageError;
use super::login_arguments;
use crate::transfer::{DataFolder, TargetChoice, without_password};

/// The server of a command that names none.
pub(super) const URI_DEFAULT: &str = "mongodb://127.0.0.1:27017";
const PORT_DEFAULT: u16 = 27017;

/// The arguments that name a collection and its store. Without any, the store is the server of this machine.
pub(super) fn target_arguments() -> Vec<Arg> {
    let [uri, data] = place_arguments();
    let mut arguments = vec![
        Arg::new("db")
            .long("db")
            .short('d')
            .value_name("DATABASE")
            .help("The database [default: the one that --uri names, or test]"),
        Arg::new("collection").long("collection").short('c').value_name("COLLECTION").help("The collection"),
        uri.help(format!("A running server [default: {URI_DEFAULT}]")),
        data,
        Arg::new("host").long("host").value_name("HOST").hide(true).conflicts_with_all(["uri", "data"]),
        Arg::new("port")
            .long("port")
            .value_name("PORT")
            .hide(true)
            .value_parser(clap::value_parser!(u16))
            .conflicts_with_all(["uri", "data"]),
    ];
    arguments.extend(arguments_without_effect());
    arguments.extend(arguments_not_yet_supported());
    arguments.extend(login_arguments::login_arguments());
    arguments.extend(OF_STORE.arguments("the data folder"));
    arguments
}

/// The options of an engine by name, whose store a command makes.
pub(super) fn engine_option_argument() -> Arg {
    Arg::new("engine-option")
        .long("engine-option")
        .value_name("NAME=VALUE")
        .action(ArgAction::Append)
        .value_parser(|text: &str| match text.split_once('=') {
            Some((name, value)) if !name.is_empty() && !value.is_empty() => {
                Ok((name.to_owned(), value.to_owned()))
            }
            _ => Err("an option is NAME=VALUE"),
        })
}

/// The values of [`engine_option_argument`].
pub(super) fn engine_options(matches: &ArgMatches) -> Vec<(String, String)> {
    matches.get_many("engine-option").into_iter().flatten().cloned().collect()
}

/// A switch of MongoDB's tools that the help does not list.
pub(super) fn hidden_switch(name: &'static str) -> Arg {
    Arg::new(name).long(name).hide(true).action(ArgAction::SetTrue)
}

/// The arguments that name the store and the login to its server, for commands that want them said.
pub(super) fn store_arguments() -> Vec<Arg> {
    place_arguments().into_iter().chain(login_arguments::login_arguments()).collect()
}

fn place_arguments() -> [Arg; 2] {
    [
        Arg::new("uri")
            .long("uri")
            .value_name("URI")
            .conflicts_with("data")
            .help(format!("A running server, such as {URI_DEFAULT}")),
        Arg::new("data")
            .long("data")
            .value_name("DIR")
            .help("A data folder that no server has open, instead of a running server"),
    ]
}

/// Flags of MongoDB's tools that change nothing here: a script that has them need not be changed.
fn arguments_without_effect() -> Vec<Arg> {
    let switch = |name: &'static str| Arg::new(name).long(name).hide(true).action(ArgAction::SetTrue);
    let value = |name: &'static str| Arg::new(name).long(name).hide(true);
    vec![
        switch("verbose").short('v').action(ArgAction::Count),
        value("readPreference"),
        value("compressors"),
        value("networkCompressors"),
        value("serverSelectionTimeout"),
        value("dialTimeout"),
        value("socketTimeout"),
    ]
}

/// Flags of MongoDB's tools that cannot be ignored, because they would do less than the user believes.
const NOT_YET: [(&str, &str); 5] = [
    (
        "gzip",
        "an import recognises gzip by itself, and an export into a file FILE.gz packs it; leave the flag out",
    ),
    ("archive", "an archive of mongodump is not read; have it write a folder, with mongodump --out DIR"),
    ("dryRun", "every import writes; try it on a copy, such as --data of another folder"),
    ("legacy", "the Extended JSON of version 1 is not read or written; leave the flag out"),
    ("useArrayIndexFields", "numbers in names of columns make documents, not arrays; leave the flag out"),
];

fn arguments_not_yet_supported() -> impl Iterator<Item = Arg> {
    NOT_YET
        .iter()
        .map(|(name, _)| Arg::new(*name).long(*name).hide(true).num_args(0..=1).default_missing_value("true"))
}

/// The store that was chosen; the server of this machine if none was.
pub(super) fn target_or_default(matches: &ArgMatches) -> Result<TargetChoice, Box<dyn Error>> {
    let not_yet = NOT_YET.iter().find(|(name, _)| matches.contains_id(name));
    if let Some((name, reason)) = not_yet {
        return Err(UsageError::new(format!("--{name}: {reason}")).into());
    }
    let text = |name| matches.get_one::<String>(name).map(String::as_str);
    if text("data").is_some() {
        return target_of(matches);
    }
    OF_STORE.refuse_for_server(matches)?;
    if let Some(uri) = text("uri") {
        return Ok(TargetChoice::Uri(login_arguments::completed(uri, matches)?));
    }
    let port = matches.get_one::<u16>("port").copied();
    let uri = match (text("host"), port) {
        (None, None) => URI_DEFAULT.to_owned(),
        (host, port) => address_uri(host.unwrap_or("127.0.0.1"), port),
    };
    Ok(TargetChoice::Uri(login_arguments::completed(&uri, matches)?))
}

/// The connection string of a host, which may have its port.
fn address_uri(host: &str, port: Option<u16>) -> String {
    let has_port = host.rsplit_once(':').is_some_and(|(name, port)| {
        port.parse::<u16>().is_ok() && (!name.contains(':') || name.ends_with(']'))
    });
    match (has_port, port) {
        (true, None) => format!("mongodb://{host}"),
        (_, port) => format!("mongodb://{host}:{}", port.unwrap_or(PORT_DEFAULT)),
    }
}

/// Refuses a connection string in the place of a folder.
pub(super) fn refuse_uri(folder: &str) -> Result<(), UsageError> {
    if folder.contains("://") {
        let server = without_password(folder);
        return Err(UsageError::new(format!(
            "{server} is a server and no folder: name it with --uri {server}"
        )));
    }
    Ok(())
}

/// Refuses a path that only a shell understands.
fn refuse_tilde(folder: &str) -> Result<(), UsageError> {
    if folder == "~" || folder.starts_with("~/") {
        return Err(UsageError::new(format!(
            "--data {folder}: only a shell replaces '~'; write the home folder out"
        )));
    }
    Ok(())
}

/// The store that was chosen.
pub(super) fn target_of(matches: &ArgMatches) -> Result<TargetChoice, Box<dyn Error>> {
    match (matches.get_one::<String>("uri"), matches.get_one::<String>("data")) {
        (Some(uri), _) => {
            OF_STORE.refuse_for_server(matches)?;
            Ok(TargetChoice::Uri(login_arguments::completed(uri, matches)?))
        }
        (None, Some(data)) => {
            refuse_uri(data)?;
            refuse_tilde(data)?;
            login_arguments::refuse_for_folder(matches)?;
            Ok(TargetChoice::Data(DataFolder::new(data, OF_STORE.load(matches)?)))
        }
        (None, None) => Err(UsageError::new(format!(
            "name the store: --uri for a running server, such as --uri {URI_DEFAULT}, or --data for a data folder that no \
             server has open"
        ))
        .into()),
    }
}

/// The value of an argument that clap requires.
pub(super) fn required(matches: &ArgMatches, name: &str) -> String {
    matches.get_one::<String>(name).expect("clap requires it").clone()
}

/// Results as one JSON object, for scripts.
pub(super) fn json_argument() -> Arg {
    Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print the result as one JSON object")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_in_the_place_of_a_folder_is_told_without_its_password() {
        assert!(refuse_uri("./data").is_ok());
        let error = refuse_uri("mongodb://ada:secret@h:1").unwrap_err().to_string();
        assert!(error.contains("--uri mongodb://ada:…@h:1") && !error.contains("secret"), "{error}");
    }

    #[test]
    fn a_folder_whose_path_only_a_shell_understands_is_refused() {
        assert!(refuse_tilde("~/x").is_err() && refuse_tilde("~").is_err());
        assert!(refuse_tilde("./~/x").is_ok() && refuse_tilde("~x").is_ok());
    }

    #[test]
    fn a_host_may_have_its_port() {
        let cases = [
            ("db", None, "mongodb://db:27017"),
            ("db", Some(5), "mongodb://db:5"),
            ("db:7", None, "mongodb://db:7"),
            ("[::1]", None, "mongodb://[::1]:27017"),
            ("[::1]:7", None, "mongodb://[::1]:7"),
        ];
        for (host, port, uri) in cases {
            assert_eq!(address_uri(host, port), uri);
        }
    }
}
