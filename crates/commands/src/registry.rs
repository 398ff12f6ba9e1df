//! Which commands there are: one row each, sorted by name, aliases included.

use crate::context::Run;
use crate::operation_counters::OperationKind;
use crate::{admin, crud, diagnostic, session};

/// Where a command may be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// On any database.
    Any,
    /// On `admin` only.
    Admin,
}

/// Which levels of read concern a command takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadConcernSupport {
    /// `local`.
    Local,
    /// All that its server can serve but `snapshot`.
    NoSnapshot,
    /// All that its server can serve.
    All,
}

/// Whether a command takes a write concern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteConcernSupport {
    /// It does.
    Accepted,
    /// It does not.
    Refused,
}

/// How strictly a command checks its `maxTimeMS` before the rule that holds for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeLimit {
    /// Not at all.
    Untyped,
    /// It must be a number.
    Number,
    /// It must be a number that is not negative.
    Natural,
}

/// Which words a command has for a read concern that is no document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadConcernWords {
    /// Those that hold for all of them.
    Shared,
    /// Those for a field of the command's own.
    Own,
}

/// A command.
pub(crate) struct CommandRow {
    pub name: &'static str,
    pub scope: Scope,
    pub run: Run,
    pub reads: ReadConcernSupport,
    pub writes: WriteConcernSupport,
    pub time_limit: TimeLimit,
    pub read_words: ReadConcernWords,
    /// What a request is counted as; `None` where the command counts itself.
    pub counted: Option<OperationKind>,
}

impl CommandRow {
    const fn reads(self, reads: ReadConcernSupport) -> CommandRow {
        CommandRow { reads, ..self }
    }

    /// The command takes a write concern.
    const fn writes(self) -> CommandRow {
        CommandRow { writes: WriteConcernSupport::Accepted, ..self }
    }

    /// The command checks the type of its read concern itself.
    const fn own_read_words(self) -> CommandRow {
        CommandRow { read_words: ReadConcernWords::Own, ..self }
    }

    /// A request is counted as this.
    const fn counted(self, counted: OperationKind) -> CommandRow {
        CommandRow { counted: Some(counted), ..self }
    }

    /// The command counts its statements itself.
    const fn counts_itself(self) -> CommandRow {
        CommandRow { counted: None, ..self }
    }

    const fn time_limit(self, time_limit: TimeLimit) -> CommandRow {
        CommandRow { time_limit, ..self }
    }
}

const fn any(name: &'static str, run: Run) -> CommandRow {
    CommandRow {
        name,
        scope: Scope::Any,
        run,
        reads: ReadConcernSupport::Local,
        writes: WriteConcernSupport::Refused,
        time_limit: TimeLimit::Untyped,
        read_words: ReadConcernWords::Shared,
        counted: Some(OperationKind::Command),
    }
}

const fn on_admin(name: &'static str, run: Run) -> CommandRow {
    CommandRow { scope: Scope::Admin, ..any(name, run) }
}

/// All commands, sorted by name in byte order.
pub(crate) static COMMANDS: &[CommandRow] = &[
    any("abortTransaction", session::transactions::run_abort).writes(),
    any("aggregate", crud::aggregate::run)
        .reads(ReadConcernSupport::All)
        .own_read_words()
        .writes()
        .time_limit(TimeLimit::Natural),
    any("buildInfo", diagnostic::build_info::run),
    any("buildinfo", diagnostic::build_info::run),
    on_admin("checkpoint", admin::fsync::run_checkpoint),
    any("collMod", admin::coll_mod::run).writes(),
    any("collStats", diagnostic::coll_stats::run),
    any("collstats", diagnostic::coll_stats::run),
    any("commitTransaction", session::transactions::run_commit).writes(),
    any("compact", admin::compact::run),
    any("connectionStatus", diagnostic::connection_status::run),
    any("count", crud::count::run).reads(ReadConcernSupport::NoSnapshot),
    any("create", admin::create::run).writes(),
    any("createIndexes", admin::create_indexes::run).writes(),
    any("dataSize", diagnostic::data_size::run),
    any("datasize", diagnostic::data_size::run),
    any("dbStats", diagnostic::db_stats::run),
    any("dbstats", diagnostic::db_stats::run),
    any("delete", crud::delete::run).writes().counts_itself(),
    any("deleteIndexes", admin::drop_indexes::run).writes(),
    any("distinct", crud::distinct::run).reads(ReadConcernSupport::All),
    any("drop", admin::drop::run).writes(),
    any("dropDatabase", admin::drop_database::run).writes(),
    any("dropIndexes", admin::drop_indexes::run).writes(),
    any("endSessions", session::end_sessions::run),
    any("explain", diagnostic::explain::run),
    any("find", crud::find::run).reads(ReadConcernSupport::All).counted(OperationKind::Query),
    any("findAndModify", crud::find_and_modify::run).writes(),
    any("findandmodify", crud::find_and_modify::run).writes(),
    on_admin("fsync", admin::fsync::run),
    on_admin("getCmdLineOpts", diagnostic::get_cmd_line_opts::run),
    on_admin("getDefaultRWConcern", diagnostic::not_replicated::run_default_concern),
    any("getLastError", diagnostic::get_last_error::run),
    on_admin("getLog", diagnostic::get_log::run),
    any("getMore", crud::get_more::run)
        .reads(ReadConcernSupport::All)
        .time_limit(TimeLimit::Number)
        .counted(OperationKind::GetMore),
    on_admin("getParameter", diagnostic::get_parameter::run),
    any("getlasterror", diagnostic::get_last_error::run),
    any("hello", diagnostic::hello::run_hello),
    any("hostInfo", diagnostic::host_info::run),
    any("insert", crud::insert::run).writes().counts_itself(),
    any("isMaster", diagnostic::hello::run_is_master),
    any("ismaster", diagnostic::hello::run_is_master),
    any("killCursors", crud::kill_cursors::run),
    any("listCollections", admin::list_collections::run),
    any("listCommands", diagnostic::list_commands::run),
    on_admin("listDatabases", admin::list_databases::run),
    any("listIndexes", admin::list_indexes::run),
    any("logout", session::logout::run),
    on_admin("pandoBackup", admin::pando_backup::run),
    on_admin("pandoVerify", diagnostic::pando_verify::run),
    any("ping", diagnostic::ping::run),
    any("profile", diagnostic::profile::run),
    any("refreshSessions", session::end_sessions::run_refresh),
    on_admin("renameCollection", admin::rename_collection::run).writes(),
    on_admin("replSetGetConfig", diagnostic::not_replicated::run_status),
    on_admin("replSetGetStatus", diagnostic::not_replicated::run_status),
    any("serverStatus", diagnostic::server_status::run),
    on_admin("setParameter", diagnostic::set_parameter::run),
    any("startSession", session::start_session::run),
    any("update", crud::update::run).writes().counts_itself(),
    any("validate", diagnostic::validate::run),
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
