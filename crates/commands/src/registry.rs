//! Which commands there are: one row each, sorted by name, aliases included.

use crate::context::Run;
use crate::{admin, crud, diagnostic, session};

/// Where a command may be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// On any database.
    Any,
    /// On `admin` only.
    Admin,
}

/// A command.
pub(crate) struct CommandRow {
    pub name: &'static str,
    pub scope: Scope,
    pub run: Run,
}

const fn any(name: &'static str, run: Run) -> CommandRow {
    CommandRow { name, scope: Scope::Any, run }
}

const fn on_admin(name: &'static str, run: Run) -> CommandRow {
    CommandRow { name, scope: Scope::Admin, run }
}

/// All commands, sorted by name in byte order.
pub(crate) static COMMANDS: &[CommandRow] = &[
    any("abortTransaction", session::transactions::run_abort),
    any("aggregate", crud::aggregate::run),
    any("buildInfo", diagnostic::build_info::run),
    any("buildinfo", diagnostic::build_info::run),
    any("collMod", admin::coll_mod::run),
    any("collStats", diagnostic::coll_stats::run),
    any("collstats", diagnostic::coll_stats::run),
    any("commitTransaction", session::transactions::run_commit),
    any("connectionStatus", diagnostic::connection_status::run),
    any("count", crud::count::run),
    any("create", admin::create::run),
    any("createIndexes", admin::create_indexes::run),
    any("dbStats", diagnostic::db_stats::run),
    any("dbstats", diagnostic::db_stats::run),
    any("delete", crud::delete::run),
    any("deleteIndexes", admin::drop_indexes::run),
    any("distinct", crud::distinct::run),
    any("drop", admin::drop::run),
    any("dropDatabase", admin::drop_database::run),
    any("dropIndexes", admin::drop_indexes::run),
    any("endSessions", session::end_sessions::run),
    any("explain", diagnostic::explain::run),
    any("find", crud::find::run),
    any("findAndModify", crud::find_and_modify::run),
    any("findandmodify", crud::find_and_modify::run),
    on_admin("getCmdLineOpts", diagnostic::get_cmd_line_opts::run),
    any("getLastError", diagnostic::get_last_error::run),
    on_admin("getLog", diagnostic::get_log::run),
    any("getMore", crud::get_more::run),
    on_admin("getParameter", diagnostic::get_parameter::run),
    any("getlasterror", diagnostic::get_last_error::run),
    any("hello", diagnostic::hello::run_hello),
    any("hostInfo", diagnostic::host_info::run),
    any("insert", crud::insert::run),
    any("isMaster", diagnostic::hello::run_is_master),
    any("ismaster", diagnostic::hello::run_is_master),
    any("killCursors", crud::kill_cursors::run),
    any("listCollections", admin::list_collections::run),
    any("listCommands", diagnostic::list_commands::run),
    on_admin("listDatabases", admin::list_databases::run),
    any("listIndexes", admin::list_indexes::run),
    any("logout", session::logout::run),
    any("ping", diagnostic::ping::run),
    any("refreshSessions", session::end_sessions::run_refresh),
    on_admin("renameCollection", admin::rename_collection::run),
    any("serverStatus", diagnostic::server_status::run),
    any("startSession", session::start_session::run),
    any("update", crud::update::run),
    any("whatsmyuri", diagnostic::whatsmyuri::run),
];

/// The command of this name.
pub(crate) fn find(name: &str) -> Option<&'static CommandRow> {
    let at = COMMANDS.binary_search_by(|row| row.name.cmp(name)).ok()?;
    Some(&COMMANDS[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_are_sorted_so_that_a_name_is_found_by_halving() {
        assert!(COMMANDS.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(find("find").is_some() && find("foo").is_none());
    }
}
