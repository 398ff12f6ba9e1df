//! `pando copy`.

use std::error::Error;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use pandodb::{EngineName, SOCKET_NAME};
use serde_json::json;

use super::encryption_arguments::{EncryptionArguments, OF_SOURCE, OF_STORE};
use super::failure::UsageError;
use super::import_command::resume_point;
use super::import_report::{Words, as_json, stopped_lines, summary};
use super::login_arguments::{self, LoginArguments};
use super::output::print_line;
use super::target_arguments::{engine_option_argument, engine_options, json_argument, required};
use crate::amounts::{count_text, counted};
use crate::error_text::tell_line;
use crate::transfer::{
    AfterFault, CLUSTER_ENGINE, CLUSTER_SCHEME, Check, ClusterStore, Compared, Continuation, Copied,
    DataFolder, Digests, EXIT_CODE_INTERRUPTED, End, Existing, ImportOptions, StoreCopy, Talk, TargetChoice,
    WriteMode, Writing, copy, database_of,
};
use crate::uri_encoding::socket_uri;

/// Whether a store is only read, so that the server that has its folder open will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Yes,
    No,
}

const EXAMPLES: &str = "Examples:
  pando copy --from mongodb://old.example:27017 --to mongodb://127.0.0.1:27017
      all databases of a MongoDB server, with options and indexes, into the server on this machine
  pando copy --from mongodb://old.example:27017 --to ./data --db shop --collection orders
      one collection, into a folder that no server has open
  pando copy --from mongodb://old.example:27017 --to mongodb://127.0.0.1:27017 --db shop --drop
      once more: collections of the target are replaced
  pando copy --from mongodb://old.example:27017 --from-username ada --from-password-file ada.txt --to ./data
      from a server that asks for a login; others on this machine can read a password on a command line
  pando copy --from ./data --to ./other --engine lmdb
      a store into one of another engine; a server that has the source open goes on serving
  pando copy --from ./data --to ./sealed --encryption-key-file ./master.key
      a plain store into an encrypted one
  pando copy --from ./data --to tikv://10.0.0.1:2379/shop
      a store into the keyspace shop of a TiKV cluster, whose placement driver has this address; ?servers=several and
      other options of the engine can follow

Options of a collection come first, then its documents in their natural order, then its indexes; views come last.
A collection that the target has keeps its options: those that differ from the source are named, the documents come in all
the same, and the exit code is 1. One of another kind, such as a plain one for a time series, is refused before anything
is copied. Documents that are older than the validator of their collection come in as well.
A copy is no snapshot: stop the applications that write to the source, or copy again with --mode upsert. The end of a copy
counts and hashes the documents of each collection on both sides, with the digest of the command dbHash; those of a time
series are counted. An interrupted copy names the command that goes on without doubles; one that was killed goes on with
--resume alone. A time series of which the target has a part is not added to: copy it anew with --drop.

Exit codes: 0 everything is there, and both sides agree; 1 something is not, and the messages say what; 2 a wrong command
line; 130 interrupted (Ctrl-C).";

pub(super) fn command() -> Command {
    Command::new("copy")
        .about(
            "Copy databases or collections from one server or data folder to another, such as from MongoDB",
        )
        .arg(
            Arg::new("from")
                .long("from")
                .value_name("URI|DIR")
                .required(true)
                .help("The source: a server that speaks MongoDB's protocol, a data folder, or tikv://HOST:PORT/KEYSPACE"),
        )
        .arg(
            Arg::new("to")
                .long("to")
                .value_name("URI|DIR")
                .required(true)
                .help(
                    "The target: a server, a data folder, which is made if it is missing or empty, or \
                     tikv://HOST:PORT/KEYSPACE",
                ),
        )
        .arg(
            Arg::new("db")
                .long("db")
                .short('d')
                .value_name("DATABASE")
                .help("One database [default: the one that --from names, or all]"),
        )
        .arg(
            Arg::new("collection")
                .long("collection")
                .short('c')
                .value_name("COLLECTION")
                .help("One collection of that database [default: all]"),
        )
        .arg(
            Arg::new("engine")
                .long("engine")
                .value_name("ENGINE")
                .value_parser(engine_of_name)
                .help("The engine of a target folder [default: that of the store in it, or betree]"),
        )
        .arg(
            engine_option_argument()
                .help("An option of that engine, such as pd=10.0.0.1:2379; several are possible"),
        )
        .args(write_arguments())
        .args(login_arguments::OF_SOURCE.arguments(" at the source"))
        .args(login_arguments::OF_STORE.arguments(" at the target"))
        .args(OF_SOURCE.arguments("the source folder"))
        .args(OF_STORE.arguments("the target folder"))
        .arg(json_argument())
        .arg(Arg::new("quiet").long("quiet").action(ArgAction::SetTrue).help("No progress, no summary"))
        .after_help(EXAMPLES)
}

fn write_arguments() -> Vec<Arg> {
    vec![
        Arg::new("mode")
            .long("mode")
            .value_name("MODE")
            .value_parser(PossibleValuesParser::new(["insert", "upsert", "merge"]))
            .help("insert [default]; upsert: insert or replace, by _id; merge: insert or set fields"),
        Arg::new("drop")
            .long("drop")
            .action(ArgAction::SetTrue)
            .help("Drop each collection of the target before its first document"),
        Arg::new("stop-on-error")
            .long("stop-on-error")
            .action(ArgAction::SetTrue)
            .help("Stop at the first document that is refused"),
        Arg::new("resume")
            .long("resume")
            .value_name("POINT")
            .num_args(0..=1)
            .default_missing_value("")
            .conflicts_with("drop")
            .help(
                "Go on where a copy of the same, unchanged source stopped: at the point that it has named, or, without a \
                 point, behind the documents that the target has",
            ),
        Arg::new("verify")
            .long("verify")
            .value_name("CHECK")
            .value_parser(PossibleValuesParser::new(Check::NAMES))
            .help("The comparison at the end: hash [default], or count, which reads less"),
    ]
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    let text = |name| matches.get_one::<String>(name).cloned();
    let (from, to) = (store_of(&required(matches, "from"))?, store_of(&required(matches, "to"))?);
    let logins = [&login_arguments::OF_SOURCE, &login_arguments::OF_STORE];
    if logins.iter().all(|login| login.is_from_standard_input(matches)) {
        let reason = "--from-password-file - and --password-file -: standard input has one password; name a file for the other";
        return Err(UsageError::new(reason).into());
    }
    let from = opened(from, (&OF_SOURCE, &login_arguments::OF_SOURCE), Reading::Yes, matches)?;
    let to = opened(to, (&OF_STORE, &login_arguments::OF_STORE), Reading::No, matches)?;
    let database = database(matches, &from, &to)?;
    let mode = text("mode").and_then(|name| WriteMode::of_name(&name)).unwrap_or_default();
    let engine = matches.get_one::<EngineName>("engine").copied();
    let engine_options = engine_options(matches);
    refuse_other_engine(&to, engine, &engine_options)?;
    let point = text("resume");
    let continuation = match point.as_deref() {
        Some("") => Continuation::FromTarget,
        Some(_) | None => Continuation::None,
    };
    if continuation == Continuation::FromTarget && mode != WriteMode::Insert {
        return Err(UsageError::new("--resume without a point goes with --mode insert only").into());
    }
    let point = point.filter(|point| !point.is_empty());
    let stops = matches.get_flag("stop-on-error");
    let quiet = matches.get_flag("quiet");
    let copied = copy(&StoreCopy {
        from,
        to,
        database,
        collection: text("collection"),
        engine,
        engine_options,
        continuation,
        check: text("verify").and_then(|name| Check::of_name(&name)).unwrap_or_default(),
        options: ImportOptions {
            writing: Writing {
                mode,
                after_fault: if stops { AfterFault::Stop } else { AfterFault::GoOn },
                ..Writing::default()
            },
            existing: if matches.get_flag("drop") { Existing::Dropped } else { Existing::Kept },
            resume: resume_point(point)?,
            batch_records: None,
            talk: if quiet { Talk::Quiet } else { Talk::All },
        },
    })?;
    Ok(report(matches, &copied, mode))
}

/// Refuses an engine for a target that has one.
fn refuse_other_engine(
    to: &TargetChoice,
    engine: Option<EngineName>,
    options: &[(String, String)],
) -> Result<(), UsageError> {
    match to {
        TargetChoice::Uri(_) if engine.is_some() || !options.is_empty() => Err(UsageError::new(
            "--engine and --engine-option are for a folder; the server of --to has its engine",
        )),
        TargetChoice::Cluster(_) if engine.is_some_and(|engine| engine.as_str() != CLUSTER_ENGINE) => {
            Err(UsageError::new("--engine is for a folder; the store of --to is one of the engine tikv"))
        }
        _ => Ok(()),
    }
}

/// Says how it ended.
fn report(matches: &ArgMatches, copied: &Copied, mode: WriteMode) -> ExitCode {
    let Copied { imported, other_options, compared } = copied;
    for remark in &imported.remarks {
        tell_line!("{remark}");
    }
    let differences: Vec<&Compared> = compared.iter().filter(|one| !one.agrees(mode)).collect();
    if matches.get_flag("json") {
        print_line!("{}", result_json(copied, mode));
    } else if !matches.get_flag("quiet") {
        print_line!("{}", summary(imported, mode, &Words { done: "copied", record: "document" }));
        if !compared.is_empty() && differences.is_empty() {
            let documents = compared.iter().map(|one| one.source).sum();
            let hashed = compared.iter().filter(|one| one.digests.is_some()).count();
            print_line!(
                "counted{} on both sides: {}{}, {} at the source, {}",
                if hashed == compared.len() { " and hashed" } else { "" },
                counted(compared.len() as u64, "collection"),
                // A time series has no hash.
                if (1..compared.len()).contains(&hashed) {
                    format!(" ({hashed} of them hashed)")
                } else {
                    String::new()
                },
                documents_text(documents),
                // An option or an index may be missing, which is told above.
                if is_complete(copied, mode) { "all there" } else { "all these documents are there" }
            );
        }
    }
    for one in compared.iter().filter(|one| one.agrees(mode) && one.more_at_target() > 0) {
        let (more, source) = (documents_text(one.more_at_target()), documents_text(one.source));
        tell_line!(
            "{}: {source} at the source, and {more} more at the target; such a collection is counted only, so that changed \
             documents do not show",
            one.namespace
        );
    }
    for one in &differences {
        tell_line!("{}", difference(one));
    }
    if !differences.is_empty() {
        tell_line!(
            "  if an application writes to one of them, stop it and copy again, with --drop or, unless it is a time series, \
             --mode upsert"
        );
    }
    if !other_options.is_empty() {
        let names: Vec<&str> = other_options.iter().map(|one| one.namespace.as_str()).collect();
        tell_line!(
            "options differ in {}, as the first lines say: {}",
            counted(names.len() as u64, "collection"),
            names.join(", ")
        );
        tell_line!(
            "  to have the options of the source, copy such a collection anew with --db DATABASE --collection NAME --drop, \
             which deletes it at the target first; a validator can be set by collMod, too"
        );
    }
    let command_line: Vec<String> = std::env::args().collect();
    for line in stopped_lines(imported, &command_line) {
        tell_line!("{line}");
    }
    match imported.end {
        End::Interrupted => ExitCode::from(EXIT_CODE_INTERRUPTED),
        _ if is_complete(copied, mode) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Whether the target has everything of the source.
fn is_complete(copied: &Copied, mode: WriteMode) -> bool {
    copied.imported.is_complete()
        && copied.other_options.is_empty()
        && copied.compared.iter().all(|one| one.agrees(mode))
}

/// A collection that is not alike on both sides.
fn difference(one: &Compared) -> String {
    let (source, target) = (documents_text(one.source), documents_text(one.target));
    let text = match &one.digests {
        Some(Digests { source: Some(_), target: None }) => {
            format!("{source} at the source; it is not there at the target")
        }
        // A time series has no hash.
        Some(Digests { source: None, target: Some(_) }) if one.source > 0 => {
            format!("{source} at the source, in a time series; {target} at the target, in a plain collection")
        }
        Some(Digests { source: None, target: Some(_) }) => {
            format!("{target} at the target; it is not there at the source")
        }
        Some(Digests { source: Some(_), target: Some(there) }) if there.is_empty() => {
            format!(
                "{source} at the source; it is not there at the target, or empty; the lines above say why"
            )
        }
        Some(Digests { source: Some(here), target: Some(there) }) if here != there => format!(
            "{source} on both sides, and other content: their hash is {here} at the source, {there} at the target"
        ),
        _ => format!("{source} at the source, {target} at the target"),
    };
    let left_out = match one.left_out {
        0 => String::new(),
        some => format!(", and {some} of this copy not brought in"),
    };
    format!("{}: {text}{left_out}", one.namespace)
}

fn documents_text(count: u64) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} document{ending}", count_text(count))
}

/// An engine that keeps documents in a folder.
fn engine_of_name(name: &str) -> Result<EngineName, String> {
    match name.parse()? {
        EngineName::Memory => {
            Err("the engine 'memory' keeps nothing in a folder; choose another one".to_owned())
        }
        engine => Ok(engine),
    }
}

/// The result for scripts: that of an import, and the counts.
fn result_json(copied: &Copied, mode: WriteMode) -> serde_json::Value {
    let mut result = as_json(&copied.imported);
    let collections = copied.compared.iter().map(|one| {
        json!({
            "namespace": one.namespace,
            "source": one.source,
            "target": one.target,
            "leftOut": one.left_out,
            "sourceHash": one.digests.as_ref().and_then(|digests| digests.source.as_ref()),
            "targetHash": one.digests.as_ref().and_then(|digests| digests.target.as_ref()),
            "moreAtTarget": one.more_at_target(),
            "agrees": one.agrees(mode),
        })
    });
    if let Some(fields) = result.as_object_mut() {
        fields.insert("collections".to_owned(), collections.collect());
        let other_options = copied.other_options.iter().map(|one| {
            let names: Vec<&str> = one.options.iter().map(|option| option.name.as_str()).collect();
            json!({ "namespace": one.namespace, "options": names })
        });
        fields.insert("otherOptions".to_owned(), other_options.collect());
        fields.insert("complete".to_owned(), is_complete(copied, mode).into());
    }
    result
}

/// A connection string, the address of a store in a cluster, or a folder.
fn store_of(text: &str) -> Result<TargetChoice, UsageError> {
    if text.starts_with(CLUSTER_SCHEME) {
        return ClusterStore::parse(text).map(TargetChoice::Cluster).map_err(UsageError::new);
    }
    if text.contains("://") {
        return Ok(TargetChoice::Uri(text.to_owned()));
    }
    let port = text.rsplit_once(':').map(|(_, port)| port);
    if port.is_some_and(|port| port.parse::<u16>().is_ok()) && !Path::new(text).exists() {
        return Err(UsageError::new(format!(
            "'{text}' is no folder; if it is a server, write mongodb://{text}"
        )));
    }
    Ok(TargetChoice::Data(DataFolder::from(text)))
}

/// A folder with the keys of its store, or a server with the login to it.
fn opened(
    mut store: TargetChoice,
    (keys, login): (&EncryptionArguments, &LoginArguments),
    reading: Reading,
    matches: &ArgMatches,
) -> Result<TargetChoice, Box<dyn Error>> {
    match &mut store {
        TargetChoice::Uri(uri) => {
            keys.refuse_for_server(matches)?;
            *uri = login.completed(uri, matches)?;
        }
        TargetChoice::Data(folder) => {
            if reading == Reading::Yes
                && let Some(server) = login_to_holder(folder, login, matches)?
            {
                keys.refuse_for_server(matches)?;
                return Ok(server);
            }
            login.refuse_for_folder(matches)?;
            folder.encryption = keys.load(matches)?;
        }
        TargetChoice::Cluster(_) => {
            keys.refuse_for_server(matches)?;
            login.refuse_for_folder(matches)?;
        }
    }
    Ok(store)
}

/// The server that has a folder open, with the login to it; `None` where there is none, or no login.
fn login_to_holder(
    folder: &DataFolder,
    login: &LoginArguments,
    matches: &ArgMatches,
) -> Result<Option<TargetChoice>, UsageError> {
    let socket = folder.join(SOCKET_NAME);
    // A socket that nobody listens on is left over from a server that was killed.
    if !login.is_given(matches) || UnixStream::connect(&socket).is_err() {
        return Ok(None);
    }
    Ok(Some(TargetChoice::Uri(login.completed(&socket_uri(&socket), matches)?)))
}

/// The database to copy. Collections keep their names, so that the target's connection string names no other.
fn database(
    matches: &ArgMatches,
    from: &TargetChoice,
    to: &TargetChoice,
) -> Result<Option<String>, UsageError> {
    let of_uri = |choice: &TargetChoice| match choice {
        TargetChoice::Uri(uri) => database_of(uri),
        TargetChoice::Data(_) | TargetChoice::Cluster(_) => None,
    };
    let chosen = matches.get_one::<String>("db").cloned().or_else(|| of_uri(from));
    if chosen.is_none() && matches.contains_id("collection") {
        return Err(UsageError::new("name the database of the collection with --db"));
    }
    match of_uri(to) {
        Some(other) if chosen.as_ref() != Some(&other) => Err(UsageError::new(format!(
            "--to names the database {other}, and collections keep the database that they have: leave the name out, or \
             choose this database with --db {other}"
        ))),
        _ => Ok(chosen),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(arguments: &[&str]) -> Result<Option<String>, String> {
        let matches = command().try_get_matches_from([&["copy"], arguments].concat()).unwrap();
        let [from, to] = ["from", "to"].map(|name| store_of(&required(&matches, name)).unwrap());
        database(&matches, &from, &to).map_err(|error| error.to_string())
    }

    #[test]
    fn a_difference_says_on_which_side_a_collection_is_missing() {
        let compared = |source, target, left_out, digests: [Option<&str>; 2]| Compared {
            namespace: "shop.orders".to_owned(),
            source,
            target,
            left_out,
            digests: digests.iter().any(Option::is_some).then(|| Digests {
                source: digests[0].map(str::to_owned),
                target: digests[1].map(str::to_owned),
            }),
        };
        let told =
            |source, target, left_out, digests| difference(&compared(source, target, left_out, digests));
        assert_eq!(
            told(0, 0, 0, [Some("5a"), None]),
            "shop.orders: 0 documents at the source; it is not there at the target"
        );
        assert_eq!(
            told(1, 2000, 1, [None, None]),
            "shop.orders: 1 document at the source, 2,000 documents at the target, and 1 of this copy not brought in"
        );
        assert!(told(2, 2, 0, [Some("5a"), Some("5b")]).contains("other content"));
        assert_eq!(
            told(2, 2, 0, [None, Some("5b")]),
            "shop.orders: 2 documents at the source, in a time series; 2 documents at the target, in a plain collection"
        );
    }

    #[test]
    fn a_store_is_a_connection_string_or_a_folder_and_a_bare_address_is_neither() {
        assert!(matches!(store_of("mongodb://a"), Ok(TargetChoice::Uri(_))));
        assert!(matches!(store_of("./data"), Ok(TargetChoice::Data(_))));
        assert!(matches!(store_of("tikv://a:2379/shop"), Ok(TargetChoice::Cluster(_))));
        assert!(store_of("tikv://a:2379").unwrap_err().to_string().contains("KEYSPACE"));
        let error = store_of("localhost:27017").unwrap_err().to_string();
        assert!(error.contains("mongodb://localhost:27017"), "{error}");
    }

    #[test]
    fn the_database_is_that_of_the_flag_or_of_the_source_and_the_target_names_no_other() {
        assert_eq!(chosen(&["--from", "mongodb://a", "--to", "d"]), Ok(None));
        assert_eq!(chosen(&["--from", "mongodb://a/shop", "--to", "d"]), Ok(Some("shop".to_owned())));
        let both = ["--from", "mongodb://a/shop", "--to", "mongodb://b/shop"];
        assert_eq!(chosen(&both), Ok(Some("shop".to_owned())));
        assert!(chosen(&["--from", "mongodb://a", "--to", "mongodb://b/shop"]).is_err());
        assert!(chosen(&["--from", "x", "--to", "d", "-c", "orders"]).unwrap_err().contains("--db"));
    }
}
