//! The table of commands: one row each, sorted by name, aliases included.

use pando_access::Action;
use pando_catalog::ActivityKind;

use crate::command_name::{CommandName, Scope};
use crate::context::Run;
use crate::generic_arguments::{
    GenericSupport, ReadConcernSupport, ReadConcernWords, TimeLimit, TransactionSupport, WriteConcernSupport,
};
use crate::operation_counters::OperationKind;
use crate::rights::Access;
use crate::{CommandError, ErrorCode, Request, admin, crud, diagnostic, rights, session, users};

/// A command.
pub(crate) struct CommandRow {
    pub name: &'static str,
    pub scope: Scope,
    /// The rights that a request needs.
    pub access: Access,
    pub run: Run,
    pub generic: GenericSupport,
    /// The counter of a request; `None` where the command counts itself.
    pub counted: Option<OperationKind>,
    /// The use that a request makes of the collection that it names.
    pub activity: ActivityKind,
    pub gate: GatePassage,
    pub priority: Priority,
}

/// The threads that a request takes where it has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Those of all requests.
    Normal,
    /// A few that are kept for logins and for what an operator needs on a busy server: to see and to end what
    /// runs, to change a parameter, to stop. Such a request is short.
    High,
}

/// Whether a request waits in front of the gate of writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GatePassage {
    /// It writes, and waits.
    Writer,
    /// It does not.
    Free,
}

impl CommandRow {
    const fn reads(self, reads: ReadConcernSupport) -> CommandRow {
        CommandRow { generic: GenericSupport { reads, ..self.generic }, ..self }
    }

    /// The command takes a write concern.
    const fn writes(self) -> CommandRow {
        let generic = GenericSupport { writes: WriteConcernSupport::Accepted, ..self.generic };
        CommandRow { generic, gate: GatePassage::Writer, ..self }
    }

    /// The command takes a write concern, and writes nothing.
    const fn writes_nothing(self) -> CommandRow {
        CommandRow { gate: GatePassage::Free, ..self.writes() }
    }

    /// The command checks the type of its read concern itself.
    const fn own_read_words(self) -> CommandRow {
        let generic = GenericSupport { read_words: ReadConcernWords::Own, ..self.generic };
        CommandRow { generic, ..self }
    }

    /// A request is counted as this.
    const fn counted(self, counted: OperationKind) -> CommandRow {
        CommandRow { counted: Some(counted), ..self }
    }

    /// The command counts its statements itself.
    const fn counts_itself(self) -> CommandRow {
        CommandRow { counted: None, ..self }
    }

    /// How the command goes together with transactions.
    const fn transactions(self, transactions: TransactionSupport) -> CommandRow {
        CommandRow { generic: GenericSupport { transactions, ..self.generic }, ..self }
    }

    /// A request does this with the collection that it names.
    const fn active(self, activity: ActivityKind) -> CommandRow {
        CommandRow { activity, ..self }
    }

    /// The command does not queue behind the long work of others.
    const fn urgent(self) -> CommandRow {
        CommandRow { priority: Priority::High, ..self }
    }

    const fn time_limit(self, time_limit: TimeLimit) -> CommandRow {
        CommandRow { generic: GenericSupport { time_limit, ..self.generic }, ..self }
    }
}

const fn any(name: &'static str, access: Access, run: Run) -> CommandRow {
    CommandRow {
        name,
        scope: Scope::Any,
        access,
        run,
        generic: GenericSupport {
            reads: ReadConcernSupport::Local,
            read_words: ReadConcernWords::Shared,
            writes: WriteConcernSupport::Refused,
            time_limit: TimeLimit::Untyped,
            transactions: TransactionSupport::Refused,
        },
        counted: Some(OperationKind::Command),
        activity: ActivityKind::OtherCommand,
        gate: GatePassage::Free,
        priority: Priority::Normal,
    }
}

const fn on_admin(name: &'static str, access: Access, run: Run) -> CommandRow {
    CommandRow { scope: Scope::Admin, ..any(name, access, run) }
}

/// All commands, sorted by name in byte order.
pub(crate) static COMMANDS: &[CommandRow] = &[
    on_admin(
        "_mergeAuthzCollections",
        Access::Request(rights::accounts::merge),
        users::merge_authz_collections::run,
    )
    .writes(),
    any("abortLoad", Access::LoggedIn, admin::load::run_abort).transactions(TransactionSupport::Statement),
    on_admin("abortTransaction", Access::LoggedIn, session::transactions::run_abort)
        .writes_nothing()
        .transactions(TransactionSupport::End),
    any("addPartition", Access::Collection(Action::CreateCollection), admin::add_partition::run).writes(),
    any("aggregate", Access::Request(rights::aggregate), crud::aggregate::run)
        .reads(ReadConcernSupport::All)
        .own_read_words()
        .writes_nothing()
        .time_limit(TimeLimit::Natural)
        .transactions(TransactionSupport::Statement)
        .active(ActivityKind::ReadCommand),
    any("authenticate", Access::Anyone, session::authenticate::run).urgent(),
    any("beginLoad", Access::Request(rights::begin_load), admin::load::run_begin)
        .writes()
        .transactions(TransactionSupport::Statement),
    any("beginTransaction", Access::LoggedIn, session::begin_transaction::run),
    any("buildInfo", Access::Anyone, diagnostic::build_info::run)
        .transactions(TransactionSupport::WithoutSession)
        .urgent(),
    any("buildinfo", Access::Anyone, diagnostic::build_info::run)
        .transactions(TransactionSupport::WithoutSession)
        .urgent(),
    on_admin("bulkWrite", Access::Request(rights::bulk_write), crud::bulk_write::run)
        .writes()
        .transactions(TransactionSupport::RetryableWrite)
        .counts_itself()
        .active(ActivityKind::WriteCommand),
    on_admin("checkpoint", Access::Cluster(Action::Fsync), admin::fsync::run_checkpoint),
    any("cloneCollectionAsCapped", Access::Request(rights::clone_as_capped), admin::capped_copy::run_clone)
        .writes(),
    any("collMod", Access::Request(rights::change_collection), admin::coll_mod::run).writes(),
    any("collStats", Access::Collection(Action::CollStats), diagnostic::coll_stats::run),
    any("collstats", Access::Collection(Action::CollStats), diagnostic::coll_stats::run),
    any("commitLoad", Access::LoggedIn, admin::load::run_commit)
        .writes()
        .transactions(TransactionSupport::Statement),
    on_admin("commitTransaction", Access::LoggedIn, session::transactions::run_commit)
        .writes()
        .transactions(TransactionSupport::End),
    any("compact", Access::Collection(Action::Compact), admin::compact::run),
    on_admin("configureFailPoint", Access::Cluster(Action::SetParameter), admin::configure_fail_point::run)
        .urgent(),
    any("connPoolStats", Access::Cluster(Action::ConnPoolStats), diagnostic::cluster::run_connection_pools),
    any("connectionStatus", Access::Anyone, diagnostic::connection_status::run).urgent(),
    any("convertToCapped", Access::Collection(Action::ConvertToCapped), admin::capped_copy::run_convert)
        .writes(),
    any(
        "convertToPartitioned",
        Access::Collection(Action::ConvertToCapped),
        admin::convert_to_partitioned::run,
    )
    .writes(),
    any("count", Access::Collection(Action::Find), crud::count::run)
        .reads(ReadConcernSupport::NoSnapshot)
        .active(ActivityKind::ReadCommand),
    any("create", Access::Request(rights::create), admin::create::run)
        .writes()
        .transactions(TransactionSupport::Statement),
    any("createIndexes", Access::Collection(Action::CreateIndex), admin::create_indexes::run)
        .writes()
        .transactions(TransactionSupport::Statement),
    any("createRole", Access::Request(rights::accounts::create_role), users::create_role::run).writes(),
    any("createUser", Access::Request(rights::accounts::create_user), users::create_user::run).writes(),
    on_admin("currentOp", Access::Request(rights::current_op), diagnostic::current_op::run).urgent(),
    any("dataSize", Access::Request(rights::data_size), diagnostic::data_size::run),
    any("datasize", Access::Request(rights::data_size), diagnostic::data_size::run),
    any("dbHash", Access::Database(Action::DbHash), diagnostic::db_hash::run),
    any("dbStats", Access::Database(Action::DbStats), diagnostic::db_stats::run),
    any("dbhash", Access::Database(Action::DbHash), diagnostic::db_hash::run),
    any("dbstats", Access::Database(Action::DbStats), diagnostic::db_stats::run),
    any("delete", Access::Request(rights::delete), crud::delete::run)
        .writes()
        .transactions(TransactionSupport::RetryableWrite)
        .counts_itself()
        .active(ActivityKind::Remove),
    any("deleteIndexes", Access::Collection(Action::DropIndex), admin::drop_indexes::run).writes(),
    any("distinct", Access::Collection(Action::Find), crud::distinct::run)
        .reads(ReadConcernSupport::All)
        .transactions(TransactionSupport::Statement)
        .active(ActivityKind::ReadCommand),
    any("drop", Access::Collection(Action::DropCollection), admin::drop::run).writes(),
    any("dropAllRolesFromDatabase", Access::Database(Action::DropRole), users::drop_all_roles::run).writes(),
    any("dropAllUsersFromDatabase", Access::Database(Action::DropUser), users::drop_all_users::run).writes(),
    any("dropDatabase", Access::Database(Action::DropDatabase), admin::drop_database::run).writes(),
    any("dropIndexes", Access::Collection(Action::DropIndex), admin::drop_indexes::run).writes(),
    any("dropPartition", Access::Collection(Action::DropCollection), admin::drop_partition::run).writes(),
    any("dropRole", Access::Database(Action::DropRole), users::drop_role::run).writes(),
    any("dropUser", Access::Database(Action::DropUser), users::drop_user::run).writes(),
    any("endSessions", Access::LoggedIn, session::end_sessions::run),
    on_admin("engineStatus", Access::Cluster(Action::ServerStatus), diagnostic::engine_status::run).urgent(),
    any("explain", Access::Explained, crud::explain::run),
    any("features", Access::LoggedIn, diagnostic::features::run),
    any("filemd5", Access::Request(rights::file_md5), diagnostic::file_md5::run),
    any("find", Access::Collection(Action::Find), crud::find::run)
        .reads(ReadConcernSupport::All)
        .transactions(TransactionSupport::Statement)
        .counted(OperationKind::Query)
        .active(ActivityKind::Query),
    any("findAndModify", Access::Request(rights::find_and_modify), crud::find_and_modify::run)
        .writes()
        .transactions(TransactionSupport::RetryableWrite)
        .active(ActivityKind::WriteCommand),
    any("findandmodify", Access::Request(rights::find_and_modify), crud::find_and_modify::run)
        .writes()
        .transactions(TransactionSupport::RetryableWrite)
        .active(ActivityKind::WriteCommand),
    on_admin("fsync", Access::Cluster(Action::Fsync), admin::fsync::run),
    on_admin("fsyncUnlock", Access::Cluster(Action::Unlock), admin::fsync::run_unlock).urgent(),
    on_admin("getCmdLineOpts", Access::Cluster(Action::GetCmdLineOpts), diagnostic::get_cmd_line_opts::run)
        .urgent(),
    on_admin(
        "getDefaultRWConcern",
        Access::Cluster(Action::GetDefaultRwConcern),
        admin::default_rw_concern::run_get,
    ),
    on_admin(
        "getDiagnosticData",
        Access::Request(rights::diagnostic_data),
        diagnostic::get_diagnostic_data::run,
    ),
    any("getLastError", Access::Anyone, diagnostic::get_last_error::run),
    on_admin("getLog", Access::Cluster(Action::GetLog), diagnostic::get_log::run).urgent(),
    any("getMore", Access::LoggedIn, crud::get_more::run)
        .reads(ReadConcernSupport::All)
        .time_limit(TimeLimit::Number)
        .transactions(TransactionSupport::Statement)
        .counted(OperationKind::GetMore)
        .active(ActivityKind::GetMore),
    on_admin("getParameter", Access::Cluster(Action::GetParameter), diagnostic::get_parameter::run).urgent(),
    any("getPartitionInfo", Access::Collection(Action::CollStats), admin::get_partition_info::run),
    on_admin("getShardMap", Access::Cluster(Action::GetShardMap), diagnostic::cluster::run_shard_map),
    any("getlasterror", Access::Anyone, diagnostic::get_last_error::run),
    any("getnonce", Access::Anyone, diagnostic::get_nonce::run).urgent(),
    any(
        "grantPrivilegesToRole",
        Access::Request(rights::accounts::grant_privileges),
        users::role_privileges::run_grant,
    )
    .writes(),
    any("grantRolesToRole", Access::Request(rights::accounts::grant_roles), users::role_roles::run_grant)
        .writes(),
    any("grantRolesToUser", Access::Request(rights::accounts::grant_roles), users::user_roles::run_grant)
        .writes(),
    any("hello", Access::Anyone, diagnostic::hello::run_hello)
        .transactions(TransactionSupport::WithoutSession)
        .urgent(),
    any("hostInfo", Access::Cluster(Action::HostInfo), diagnostic::host_info::run).urgent(),
    any("insert", Access::Request(rights::insert), crud::insert::run)
        .writes()
        .transactions(TransactionSupport::RetryableWrite)
        .counts_itself()
        .active(ActivityKind::Insert),
    any(
        "invalidateUserCache",
        Access::Cluster(Action::InvalidateUserCache),
        users::invalidate_user_cache::run,
    ),
    any("isMaster", Access::Anyone, diagnostic::hello::run_is_master)
        .transactions(TransactionSupport::WithoutSession)
        .urgent(),
    any("ismaster", Access::Anyone, diagnostic::hello::run_is_master)
        .transactions(TransactionSupport::WithoutSession)
        .urgent(),
    any("killAllSessions", Access::Cluster(Action::KillAnySession), session::kill_sessions::run_all).urgent(),
    any(
        "killAllSessionsByPattern",
        Access::Request(rights::kill_sessions_by_pattern),
        session::kill_sessions::run_by_pattern,
    )
    .urgent(),
    any("killCursors", Access::LoggedIn, crud::kill_cursors::run)
        .transactions(TransactionSupport::LaterStatement),
    on_admin("killOp", Access::LoggedIn, admin::kill_op::run).urgent(),
    any("killSessions", Access::LoggedIn, session::kill_sessions::run).urgent(),
    any("listCollections", Access::Request(rights::list_collections), admin::list_collections::run),
    any("listCommands", Access::Anyone, diagnostic::list_commands::run),
    on_admin("listDatabases", Access::Request(rights::list_databases), admin::list_databases::run),
    any("listIndexes", Access::Collection(Action::ListIndexes), admin::list_indexes::run),
    on_admin("lockInfo", Access::Cluster(Action::ServerStatus), diagnostic::lock_info::run).urgent(),
    on_admin("logRotate", Access::Cluster(Action::LogRotate), admin::log_rotate::run).urgent(),
    any("logout", Access::LoggedIn, session::logout::run).urgent(),
    on_admin("pandoBackup", Access::Request(rights::backup), admin::pando_backup::run),
    on_admin("pandoVerify", Access::Request(rights::verify), diagnostic::pando_verify::run),
    any("ping", Access::Anyone, diagnostic::ping::run)
        .transactions(TransactionSupport::WithoutSession)
        .urgent(),
    any("planCacheClear", Access::Collection(Action::PlanCacheWrite), admin::plan_cache_clear::run),
    any(
        "planCacheClearFilters",
        Access::Collection(Action::PlanCacheIndexFilter),
        admin::plan_cache_clear_filters::run,
    ),
    any(
        "planCacheListFilters",
        Access::Collection(Action::PlanCacheIndexFilter),
        admin::plan_cache_list_filters::run,
    ),
    any(
        "planCacheSetFilter",
        Access::Collection(Action::PlanCacheIndexFilter),
        admin::plan_cache_set_filter::run,
    ),
    any("profile", Access::Request(rights::profile), diagnostic::profile::run),
    any("reIndex", Access::Collection(Action::ReIndex), admin::re_index::run).writes(),
    any("refreshSessions", Access::LoggedIn, session::end_sessions::run_refresh),
    on_admin("renameCollection", Access::Request(rights::rename_collection), admin::rename_collection::run)
        .writes(),
    on_admin(
        "replSetGetConfig",
        Access::Cluster(Action::ReplSetGetConfig),
        diagnostic::replica_set::run_configuration,
    ),
    on_admin("replSetGetRBID", Access::Cluster(Action::Internal), diagnostic::replica_set::run_rollback_id),
    on_admin(
        "replSetGetStatus",
        Access::Cluster(Action::ReplSetGetStatus),
        diagnostic::replica_set::run_status,
    )
    .urgent(),
    on_admin(
        "replSetInitiate",
        Access::Cluster(Action::ReplSetConfigure),
        diagnostic::replica_set_changes::run_initiate,
    ),
    on_admin(
        "replSetReconfig",
        Access::Cluster(Action::ReplSetConfigure),
        diagnostic::replica_set_changes::run_reconfigure,
    ),
    any("resetError", Access::LoggedIn, diagnostic::get_last_error::run_reset),
    any("reseterror", Access::LoggedIn, diagnostic::get_last_error::run_reset),
    any(
        "revokePrivilegesFromRole",
        Access::Request(rights::accounts::revoke_privileges),
        users::role_privileges::run_revoke,
    )
    .writes(),
    any(
        "revokeRolesFromRole",
        Access::Request(rights::accounts::revoke_roles),
        users::role_roles::run_revoke,
    )
    .writes(),
    any(
        "revokeRolesFromUser",
        Access::Request(rights::accounts::revoke_roles),
        users::user_roles::run_revoke,
    )
    .writes(),
    any("rolesInfo", Access::Request(rights::accounts::roles_info), users::roles_info::run),
    any("rollbackTransaction", Access::LoggedIn, session::begin_transaction::run_rollback)
        .transactions(TransactionSupport::End),
    on_admin(
        "rotateCertificates",
        Access::Cluster(Action::RotateCertificates),
        admin::rotate_certificates::run,
    )
    .urgent(),
    any("saslContinue", Access::Anyone, session::sasl_continue::run).urgent(),
    any("saslStart", Access::Anyone, session::sasl_start::run).urgent(),
    any("serverStatus", Access::Cluster(Action::ServerStatus), diagnostic::server_status::run).urgent(),
    any("setClientLockTimeout", Access::LoggedIn, session::set_client_lock_timeout::run),
    on_admin(
        "setDefaultRWConcern",
        Access::Cluster(Action::SetDefaultRwConcern),
        admin::default_rw_concern::run_set,
    )
    .writes(),
    on_admin("setParameter", Access::Cluster(Action::SetParameter), diagnostic::set_parameter::run).urgent(),
    on_admin(
        "shardingState",
        Access::Cluster(Action::ShardingState),
        diagnostic::cluster::run_sharding_state,
    ),
    any(
        "showLiveTransactions",
        Access::Cluster(Action::Inprog),
        diagnostic::transaction_locks::run_transactions,
    )
    .urgent(),
    any(
        "showPendingLockRequests",
        Access::Cluster(Action::Inprog),
        diagnostic::transaction_locks::run_requests,
    )
    .urgent(),
    on_admin("shutdown", Access::Cluster(Action::Shutdown), admin::shutdown::run).urgent(),
    any("startSession", Access::LoggedIn, session::start_session::run),
    on_admin("top", Access::Cluster(Action::Top), diagnostic::top::run).urgent(),
    any("update", Access::Request(rights::update), crud::update::run)
        .writes()
        .transactions(TransactionSupport::RetryableWrite)
        .counts_itself()
        .active(ActivityKind::Update),
    any("updateRole", Access::Request(rights::accounts::update_role), users::update_role::run).writes(),
    any("updateUser", Access::Request(rights::accounts::update_user), users::update_user::run).writes(),
    any("usersInfo", Access::Request(rights::accounts::users_info), users::users_info::run),
    any("validate", Access::Collection(Action::Validate), diagnostic::validate::run),
    any("whatsmyuri", Access::Anyone, diagnostic::whatsmyuri::run).urgent(),
];

/// The command of this name.
#[cfg(test)]
pub(crate) fn find(name: &str) -> Option<&'static CommandRow> {
    position(name).map(|at| &COMMANDS[at])
}

/// The place of the command of this name among all of them.
pub(crate) fn position(name: &str) -> Option<usize> {
    COMMANDS.binary_search_by(|row| row.name.cmp(name)).ok()
}

/// The place of the command of a request among all of them.
pub(crate) fn position_of(request: &Request<'_>) -> Option<usize> {
    position(request.command().ok()?.0)
}

/// The error for a name that is none of them.
pub(crate) fn unknown(name: &str) -> CommandError {
    let instead = match name {
        "mapReduce" | "mapreduce" => ": Pando runs no JavaScript; say it with the command aggregate",
        "createSearchIndexes" | "dropSearchIndex" | "listSearchIndexes" | "updateSearchIndex" => {
            ": search indexes are a service of MongoDB Atlas; Pando searches by indexes of the type 'text'"
        }
        "replSetStepDown" | "replSetFreeze" => {
            ": one server holds the data, as the primary of a replica set of one member from its first start; --replica-set names the set"
        }
        "getClusterParameter" | "setClusterParameter" => ": give requests maxTimeMS",
        "setFeatureCompatibilityVersion" => ": the version of the program is that of its features",
        _ => "",
    };
    CommandError::failed(ErrorCode::CommandNotFound, format!("no such command: '{name}'{instead}"))
}

/// The name and scope of every command, for the commands that list or name them.
pub(crate) fn command_names() -> Vec<CommandName> {
    COMMANDS.iter().map(|row| CommandName { name: row.name, scope: row.scope }).collect()
}

#[cfg(test)]
mod tests {
    use pando_document::{Binary, Document, RawDocumentBuf, RawValue, Value, doc};

    use super::*;
    use crate::generic_arguments::{GenericArguments, ReadConcern, Recency};
    use crate::session_id::SessionOwner;

    #[test]
    fn the_error_for_an_unknown_name_says_what_to_do_instead() {
        for (name, advice) in [
            ("replSetStepDown", "--replica-set"),
            ("mapReduce", "aggregate"),
            ("setClusterParameter", "maxTimeMS"),
        ] {
            let text = unknown(name).to_string();
            assert!(text.contains(name) && text.contains(advice), "{text}");
        }
        let CommandError::Failed(failure) = unknown("frobnicate") else { panic!("it is refused") };
        assert_eq!(failure.message, "no such command: 'frobnicate'");
    }

    #[test]
    fn the_rows_are_sorted_so_that_a_name_is_found_by_halving() {
        assert!(COMMANDS.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(find("find").is_some() && find("foo").is_none());
    }

    fn code_of<T: std::fmt::Debug>(outcome: Result<T, CommandError>) -> i32 {
        match outcome {
            Err(CommandError::Failed(failure)) => failure.code.code(),
            other => panic!("not refused: {other:?}"),
        }
    }

    fn checked(body: &Document, command: &str) -> Result<ReadConcern, CommandError> {
        let body = body.to_raw();
        let row = find(command).expect("the command is there");
        let generic = GenericArguments::read(&Request::of(&body), SessionOwner::NOBODY)?;
        Ok(generic.check(row.name, "c", &row.generic)?.read)
    }

    #[test]
    fn reads_of_secondaries_may_lag_unless_they_are_of_a_transaction() {
        let recency = |further: Document| {
            let mut body = doc! { "find": "c", "$db": "d" };
            for (name, value) in further.iter() {
                body.push(name, value.clone());
            }
            checked(&body, "find").unwrap().recency
        };
        for (mode, expected) in [
            ("secondary", Recency::MayLag),
            ("secondaryPreferred", Recency::MayLag),
            ("nearest", Recency::MayLag),
            ("primary", Recency::Newest),
            ("primaryPreferred", Recency::Newest),
            ("bogus", Recency::Newest),
        ] {
            assert_eq!(recency(doc! { "$readPreference": { "mode": mode } }), expected, "{mode}");
        }
        assert_eq!(recency(doc! {}), Recency::Newest);
        assert_eq!(recency(doc! { "readConcern": { "level": "available" } }), Recency::MayLag);
        let (secondary, majority) = (doc! { "mode": "secondary" }, doc! { "level": "majority" });
        let of_majority = doc! { "$readPreference": (secondary.clone()), "readConcern": (majority) };
        assert_eq!(recency(of_majority), Recency::MayLag);
        let id = Value::Binary(Binary { subtype: 4, bytes: vec![7; 16] });
        let in_transaction = doc! {
            "$readPreference": (secondary), "lsid": { "id": (id) }, "txnNumber": 1_i64, "autocommit": false,
            "startTransaction": true
        };
        assert_eq!(recency(in_transaction), Recency::Newest);
    }

    #[test]
    fn a_field_that_stands_twice_is_refused_wherever_the_names_fall() {
        for name in ["filter", "bogus", "$db", "comment"] {
            let mut bytes = Vec::new();
            let mut writer = pando_document::DocumentWriter::begin(&mut bytes);
            for field in ["find", "$db", name, "other", name] {
                writer.append(field, RawValue::String("x"));
            }
            writer.finish();
            let body = RawDocumentBuf::from_vec(bytes).unwrap();
            let generic = GenericArguments::read(&Request::of(&body), SessionOwner::NOBODY).unwrap();
            assert_eq!(code_of(generic.check("find", "c", &find("find").unwrap().generic)), 40_413, "{name}");
        }
        assert!(checked(&doc! { "find": "c", "a": 1, "aa": 1, "ba": 1, "$db": "d" }, "find").is_ok());
    }

    #[test]
    fn a_field_that_stands_twice_among_very_many_is_refused_without_a_search_for_each() {
        let numbers = (0..500_000).chain([499_000]).map(|number| format!("{number:06}"));
        let mut bytes = Vec::new();
        let mut writer = pando_document::DocumentWriter::begin(&mut bytes);
        writer.append_str("find", "c");
        writer.append_str("$db", "d");
        numbers.for_each(|name| writer.append(&name, RawValue::Null));
        writer.finish();
        let body = RawDocumentBuf::from_vec(bytes).unwrap();
        let generic = GenericArguments::read(&Request::of(&body), SessionOwner::NOBODY).unwrap();
        assert_eq!(code_of(generic.check("find", "c", &find("find").unwrap().generic)), 40_413);
    }

    #[test]
    fn a_command_takes_the_concerns_that_its_row_says() {
        let with = |name: &str, value: Document| doc! { "x": 1, "$db": "d", name: value };
        assert!(checked(&with("readConcern", doc! { "level": "majority" }), "find").is_ok());
        assert_eq!(code_of(checked(&with("readConcern", doc! { "level": "majority" }), "insert")), 72);
        assert_eq!(code_of(checked(&with("readConcern", doc! { "level": "snapshot" }), "find")), 123);
        assert_eq!(code_of(checked(&with("readConcern", doc! { "level": "snapshot" }), "count")), 72);
        assert_eq!(code_of(checked(&with("readConcern", doc! { "bogus": 1 }), "find")), 72);
        assert_eq!(code_of(checked(&with("writeConcern", doc! { "w": 1 }), "find")), 72);
        assert!(checked(&with("writeConcern", doc! { "w": 1 }), "insert").is_ok());
    }

    #[test]
    fn time_limits_databases_and_sessions_are_checked() {
        assert_eq!(code_of(checked(&doc! { "find": "c", "$db": "d", "maxTimeMS": "x" }, "find")), 2);
        assert_eq!(code_of(checked(&doc! { "find": "c", "$db": "d", "maxTimeMS": -1 }, "aggregate")), 51_024);
        assert_eq!(code_of(checked(&doc! { "find": "c", "$db": "d", "lsid": { "id": 1 } }, "find")), 14);
        assert_eq!(code_of(checked(&doc! { "find": "c", "$db": "d", "txnNumber": 1 }, "find")), 14);
        assert_eq!(code_of(checked(&doc! { "find": "c" }, "find")), 40_571);
        assert_eq!(code_of(checked(&doc! { "find": "c", "$db": 1 }, "find")), 13_111);
    }
}
