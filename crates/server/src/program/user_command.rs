//! `pando user`: users of a data folder, for everybody who may read it, or of a running server.

use std::error::Error;
use std::io::{BufRead, ErrorKind, IsTerminal, Stdin, Write};
use std::process::ExitCode;

use bson::{Bson, Document, doc};
use clap::{Arg, ArgAction, ArgMatches, Command};
use pandodb::MissingStore;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use serde_json::json;

use super::encryption_arguments::OF_STORE;
use super::failure::UsageError;
use super::login_arguments;
use super::output::print_line;
use super::target_arguments::{json_argument, required, store_arguments, target_of};
use crate::transfer::{run_command, run_command_in};

const EXAMPLES: &str = "Examples:
  pando user add ada --data ./data
      a user of the database admin, who may do everything; the password is the first line of standard input
  pando user add bob --db shop --role readWrite --role read@stock --data ./data < password.txt
      a user of the database shop with two roles
  pando user add eve --role readWrite@shop --uri mongodb://127.0.0.1:27017 --username ada --password-file ada.txt < eve.txt
      of a running server, which ada logs in to
  pando user list --data ./data
  pando user remove ada --data ./data

No server may have the folder open. With --uri, or createUser in a shell, a running server has its users changed.

Exit codes: 0 done; 1 an error, and the message says what; 2 a wrong command line.";

/// The database in which no user can be made.
const NO_USERS: &str = "local";

/// The role of a user of `admin` that is given none.
const ROLE_DEFAULT: &str = "root";

pub(super) fn command() -> Command {
    Command::new("user")
        .about("Add, list and remove users of a data folder or a running server")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("add")
                .about("Add a user; the password is the first line of standard input")
                .arg(name())
                .arg(database())
                .arg(
                    Arg::new("role")
                        .long("role")
                        .value_name("ROLE[@DATABASE]")
                        .action(ArgAction::Append)
                        .help("A role; several are possible [default: root, for a user of admin]"),
                )
                .args(store_arguments())
                .args(OF_STORE.arguments("the data folder")),
        )
        .subcommand(
            Command::new("list")
                .about("List all users")
                .args(store_arguments())
                .args(OF_STORE.arguments("the data folder"))
                .arg(json_argument()),
        )
        .subcommand(
            Command::new("remove")
                .about("Remove a user")
                .arg(name())
                .arg(database())
                .args(store_arguments())
                .args(OF_STORE.arguments("the data folder")),
        )
        .after_help(EXAMPLES)
}

fn name() -> Arg {
    Arg::new("name").value_name("NAME").required(true).help("The name of the user")
}

fn database() -> Arg {
    Arg::new("db")
        .long("db")
        .short('d')
        .value_name("DATABASE")
        .default_value("admin")
        .help("The database that the user logs in to")
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    match matches.subcommand() {
        Some(("add", matches)) => add(matches),
        Some(("list", matches)) => list(matches),
        Some(("remove", matches)) => remove(matches),
        other => unreachable!("clap lets no other subcommand through: {other:?}"),
    }
}

fn add(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    let (name, database) = (required(matches, "name"), required(matches, "db"));
    if login_arguments::OF_STORE.is_from_standard_input(matches) {
        return Err(UsageError::new(
            "--password-file -: standard input has the password of the new user; name a file",
        )
        .into());
    }
    let target = target_of(matches)?;
    if database == NO_USERS {
        return Err(UsageError::new(format!(
            "--db {NO_USERS}: this database has no users; name the one that the user logs in to, such as admin"
        ))
        .into());
    }
    let roles = roles(matches, &database)?;
    let password = password()?;
    let command = doc! { "createUser": &name, "pwd": password, "roles": roles };
    run_command_in(&target, MissingStore::Create, &database, command)?;
    print_line!("added {name}@{database}");
    Ok(ExitCode::SUCCESS)
}

fn roles(matches: &ArgMatches, database: &str) -> Result<Vec<Bson>, UsageError> {
    let given: Vec<&String> = matches.get_many::<String>("role").into_iter().flatten().collect();
    if given.is_empty() && database != "admin" {
        return Err(UsageError::new(format!(
            "say what the user may do, such as --role readWrite for the database {database}"
        )));
    }
    if given.is_empty() {
        return Ok(vec![role(ROLE_DEFAULT, database)?]);
    }
    given.into_iter().map(|text| role(text, database)).collect()
}

/// A role as the command line writes it, of this database unless it names one.
fn role(text: &str, database: &str) -> Result<Bson, UsageError> {
    let (role, of) = text.rsplit_once('@').unwrap_or((text, database));
    if role.is_empty() || of.is_empty() {
        return Err(UsageError::new(format!(
            "--role {text}: expected ROLE or ROLE@DATABASE, such as readWrite@shop"
        )));
    }
    Ok(Bson::Document(doc! { "role": role, "db": of }))
}

/// The first line of standard input, not shown where a person types it. An argument would stand in the list
/// of processes.
fn password() -> Result<String, Box<dyn Error>> {
    let input = std::io::stdin();
    let line = if input.is_terminal() { typed(&input)? } else { line_of(&input)? };
    let password = line.trim_end_matches(['\n', '\r']);
    if password.is_empty() {
        return Err(UsageError::new(
            "no password: write it to standard input, as in 'pando user add ada --data ./data < password.txt'",
        )
        .into());
    }
    Ok(password.to_owned())
}

fn typed(input: &Stdin) -> Result<String, Box<dyn Error>> {
    let _ = write!(std::io::stderr(), "password: ");
    let before = tcgetattr(input)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(input, OptionalActions::Flush, &silent)?;
    let line = line_of(input);
    tcsetattr(input, OptionalActions::Now, &before)?;
    let _ = writeln!(std::io::stderr());
    line
}

fn line_of(input: &Stdin) -> Result<String, Box<dyn Error>> {
    let mut line = String::new();
    input.lock().read_line(&mut line).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => UsageError::new("the password on standard input is not UTF-8: write it so"),
        _ => UsageError::new(format!("cannot read the password on standard input: {error}")),
    })?;
    Ok(line)
}

fn list(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    let reply = run_command(&target_of(matches)?, "admin", doc! { "usersInfo": { "forAllDBs": true } })?;
    let users = reply.get_array("users").map(Vec::as_slice).unwrap_or_default();
    let users: Vec<&Document> = users.iter().filter_map(Bson::as_document).collect();
    let named = |document: &Document, name: &str| {
        format!(
            "{}@{}",
            document.get_str(name).unwrap_or_default(),
            document.get_str("db").unwrap_or_default()
        )
    };
    let roles_of = |user: &Document| -> Vec<String> {
        let roles = user.get_array("roles").map(Vec::as_slice).unwrap_or_default();
        roles.iter().filter_map(Bson::as_document).map(|role| named(role, "role")).collect()
    };
    if matches.get_flag("json") {
        let users = users.iter().map(|user| {
            json!({ "user": user.get_str("user").unwrap_or_default(), "db": user.get_str("db").unwrap_or_default(), "roles": roles_of(user) })
        });
        print_line!("{}", json!({ "users": users.collect::<Vec<_>>() }));
    } else {
        for user in users {
            print_line!("{}  {}", named(user, "user"), roles_of(user).join(" "));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn remove(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    let (name, database) = (required(matches, "name"), required(matches, "db"));
    run_command(&target_of(matches)?, &database, doc! { "dropUser": &name })?;
    print_line!("removed {name}@{database}");
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_has_a_name_and_a_database() {
        assert_eq!(role("read", "shop").unwrap(), Bson::from(doc! { "role": "read", "db": "shop" }));
        assert_eq!(role("read@stock", "shop").unwrap(), Bson::from(doc! { "role": "read", "db": "stock" }));
        for wrong in ["read@", "@stock", "@", ""] {
            let error = role(wrong, "shop").unwrap_err().to_string();
            assert!(error.contains("ROLE@DATABASE"), "{error}");
        }
    }
}
