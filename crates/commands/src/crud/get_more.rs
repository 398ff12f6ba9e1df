//! `getMore`: the next batch of an open cursor.

use std::sync::Arc;
use std::time::Duration;

use pando_access::{Action, Target};
use pando_catalog::{BlockingMode, Interruption};
use pando_document::{DocumentWriter, RawValue};
use pando_query::QueryError;
use pando_query::expression::EvaluationWatch;

use crate::arguments::{Arguments, missing, whole, wrong_type};
use crate::connection::FurtherReplies;
use crate::context::{Context, Suspension};
use crate::cursor_reply::{self, BatchEnd, CursorPlace};
use crate::cursor_source::{BatchPlace, Tailing};
use crate::cursors::OpenCursor;
use crate::error::{Execution, Failure};
use crate::request_notes::ProfiledExecution;
use crate::session_id::SessionId;
use crate::tail_wait::TailWait;
use crate::{CommandError, ErrorCode, Request};

/// The time for which a request that does not say waits at the end of a capped collection.
const WAIT_DEFAULT: Duration = Duration::from_secs(1);

/// Answers the next batch; the cursor is gone when it is exhausted.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let id = match request.command()?.1 {
        RawValue::Int64(id) => id,
        RawValue::Null | RawValue::Undefined => return Err(missing("getMore", "getMore")),
        other => return Err(wrong_type("getMore.getMore", other, "type 'long'")),
    };
    let mut collection = None;
    let mut batch_size = None;
    for argument in Arguments::of_command("getMore", request.body) {
        let argument = argument?;
        match argument.name {
            "collection" => collection = argument.string()?,
            "batchSize" => batch_size = argument.natural()?,
            "term" | "lastKnownCommittedOpTime" => {}
            _ => argument.refuse_unless_generic()?,
        }
    }
    let collection = collection.ok_or_else(|| missing("getMore", "collection"))?;
    check_name(collection)?;
    let cursor = context.cursors().take(id, context.record)?;
    match check_request(context, request, collection, &cursor) {
        Ok(()) => {
            let limits = BatchLimits { batch_size, wait: wait_limit(request) };
            if advance(context, id, limits, cursor, reply)? == BatchEnd::Full {
                context.connection.announce(FurtherReplies::Batches { cursor: id });
            }
            Ok(())
        }
        // A request that is refused does no harm to the cursor.
        Err(failure) => {
            context.cursors().put_back(id, cursor, context.shared.now_ms());
            Err(failure.into())
        }
    }
}

/// Refuses a request that does not fit the cursor.
fn check_request(
    context: &Context<'_>,
    request: &Request<'_>,
    collection: &str,
    cursor: &OpenCursor,
) -> Result<(), Failure> {
    let namespace = format!("{}.{collection}", context.database);
    if namespace != cursor.facts.namespace {
        return Err(Failure::new(
            ErrorCode::Unauthorized,
            format!(
                "Requested getMore on namespace '{namespace}', but cursor belongs to a different namespace {}",
                cursor.facts.namespace
            ),
        ));
    }
    if let Some(failure) = wrong_user(context, cursor) {
        return Err(failure);
    }
    if let Some(failure) = wrong_session(context, cursor) {
        return Err(failure);
    }
    if let Some(failure) = context.shared.fail_points.get_more_failure() {
        return Err(failure);
    }
    match request.body.get("maxTimeMS") {
        Ok(Some(limit)) if !limit.is_null() && !awaits(cursor) => Err(Failure::new(
            ErrorCode::BadValue,
            "cannot set maxTimeMS on getMore command for a non-awaitData cursor",
        )),
        _ => Ok(()),
    }
}

/// Whether the cursor waits at the end of its collection.
fn awaits(cursor: &OpenCursor) -> bool {
    cursor.supply.source.tail().is_some_and(|tail| tail.tailing == Tailing::Waits)
}

/// The failure of a request whose client may not use the cursor: it is of another user, or of a session that
/// is not the request's.
fn wrong_user(context: &Context<'_>, cursor: &OpenCursor) -> Option<Failure> {
    let login = context.limiting_login()?;
    let facts = &cursor.facts;
    let id = facts.figures().id;
    if !facts.is_of(&login.user) {
        let sentence = format!("cursor id {id} was not created by the authenticated user");
        return Some(Failure::new(ErrorCode::Unauthorized, sentence));
    }
    if facts.session == context.session {
        return None;
    }
    if login.authority.allows(Action::Impersonate, Target::Cluster) {
        return None;
    }
    let shown =
        |session: Option<SessionId>| session.map_or_else(|| "none".to_owned(), |session| session.text());
    let sentence = format!(
        "Cursor session id ({}) is not the same as the operation context's session id ({})",
        shown(facts.session),
        shown(context.session)
    );
    Some(Failure::new(ErrorCode::Unauthorized, sentence))
}

/// The failure of a request whose session or transaction is not that of the cursor. A cursor that was opened
/// without a session serves requests without one.
fn wrong_session(context: &Context<'_>, cursor: &OpenCursor) -> Option<Failure> {
    let facts = &cursor.facts;
    let wanted = context.open_transaction().map(|open| open.number);
    let id = facts.figures().id;
    let shown = |session: SessionId| session.text();
    let (code, reason) = match (facts.session, context.session) {
        (None, Some(session)) => {
            (50_736, format!("which was not created in a session, in session {}", shown(session)))
        }
        (Some(owner), None) => {
            (50_737, format!("which was created in session {}, without an lsid", shown(owner)))
        }
        (Some(owner), Some(session)) if owner != session => {
            (50_738, format!("which was created in session {}, in session {}", shown(owner), shown(session)))
        }
        _ => match (facts.transaction, wanted) {
            (None, Some(number)) => {
                (50_739, format!("which was not created in a transaction, in transaction {number}"))
            }
            (Some(owner), None) => {
                (50_740, format!("which was created in transaction {owner}, without a txnNumber"))
            }
            (Some(owner), Some(number)) if owner != number => {
                (50_741, format!("which was created in transaction {owner}, in transaction {number}"))
            }
            _ => return None,
        },
    };
    Some(Failure::new(ErrorCode::Location(code), format!("Cannot run getMore on cursor {id}, {reason}")))
}

/// The limits that a request sets.
#[derive(Clone, Copy)]
struct BatchLimits {
    batch_size: Option<u64>,
    /// The time for which it waits at the end of the collection.
    wait: Duration,
}

/// The time for which a request waits at the end of the collection: a second, as in MongoDB, if it does not
/// say.
fn wait_limit(request: &Request<'_>) -> Duration {
    let given = request.body.get("maxTimeMS").ok().flatten().filter(|limit| limit.is_number()).map(whole);
    given.map_or(WAIT_DEFAULT, |limit| Duration::from_millis(u64::try_from(limit).unwrap_or(0)))
}

/// Answers the next batch within the time that the command of the cursor has left.
fn advance(
    context: &mut Context<'_>,
    id: i64,
    limits: BatchLimits,
    mut cursor: OpenCursor,
    reply: &mut DocumentWriter<'_>,
) -> Result<BatchEnd, CommandError> {
    context.list_change(|listed| {
        listed.cursor = Some(Arc::clone(&cursor.facts));
        listed.plan.clone_from(&cursor.facts.plan);
    });
    if context.cursors().is_killed(id) {
        context.operation.interrupt(Interruption::CursorKilled);
    }
    if let Some(watch) = &cursor.supply.watch {
        watch.follow(context.record.operation());
    }
    if let Some(left) = cursor.time_left {
        context.operation.limit_time(context.began, left);
    }
    let answer = answer(context, id, limits, &mut cursor, reply);
    if cursor.supply.source.tail().is_none() {
        cursor.time_left = context.operation.time_left();
    }
    cursor.supply.hold_memory();
    match answer {
        Ok(BatchEnd::Full) | Err(CommandError::WouldBlock(_)) => {
            context.cursors().put_back(id, cursor, context.shared.now_ms());
        }
        Ok(BatchEnd::Exhausted) | Err(CommandError::Failed(_)) => context.cursors().close(id),
    }
    answer
}

fn check_name(collection: &str) -> Result<(), CommandError> {
    let reason = match collection {
        "" => "Collection names cannot be empty".to_owned(),
        name if name.contains('\0') => "Collection names cannot have embedded null characters".to_owned(),
        name if name.starts_with('.') => format!("Collection names cannot start with '.': {name}"),
        _ => return Ok(()),
    };
    Err(CommandError::failed(ErrorCode::InvalidNamespace, reason))
}

fn answer(
    context: &mut Context<'_>,
    id: i64,
    limits: BatchLimits,
    cursor: &mut OpenCursor,
    reply: &mut DocumentWriter<'_>,
) -> Result<BatchEnd, CommandError> {
    // Neither stages nor a projection can repeat a step, so that an evaluation cannot give its thread back on
    // the way. A thread that may take long runs them from the begin of the batch.
    let evaluates = || cursor.supply.watch.as_ref().is_some_and(EvaluationWatch::is_kept);
    if context.blocking == BlockingMode::CachedOnly && (cursor.supply.source.has_stages() || evaluates()) {
        context.check()?;
        return Err(CommandError::WouldBlock(None));
    }
    let count_max = limits.batch_size.filter(|size| *size > 0).unwrap_or(u64::MAX);
    let (batch, end) = loop {
        let fetched = cursor_reply::fetch(&mut cursor.supply, count_max, BatchPlace::Later, context.caller());
        let fetched = fetched.map_err(|error| Execution::GetMore.fault(error))?;
        let is_empty = fetched.0.len() == 0 && fetched.1 == BatchEnd::Exhausted;
        if !is_empty || !await_tail(context, cursor, limits.wait)? {
            break fetched;
        }
    };
    let end = cursor_reply::open_end(&cursor.supply, end);
    if cursor.facts.figures().batches == 1 {
        context.cursors().count_second_batch();
    }
    cursor.facts.add_batch(batch.len());
    context.note(|notes| {
        notes.plan.clone_from(&cursor.facts.plan);
        notes.cursor_facts = Some(Arc::clone(&cursor.facts));
        notes.returned = Some(batch.len() as u64);
        notes.is_cursor_exhausted = end == BatchEnd::Exhausted;
        notes.cursor = Some(id);
        notes.has_sort_stage = cursor.supply.source.figures().is_some_and(|figures| figures.sorted > 0);
        notes.execution =
            cursor.facts.stages.clone().map(|stages| {
                Box::new(ProfiledExecution { stages, figures: cursor.supply.source.figures() })
            });
    });
    let id = if end == BatchEnd::Exhausted { 0 } else { id };
    let (namespace, read_time) = (cursor.facts.namespace.as_str(), cursor.facts.read_time);
    cursor_reply::write(reply, "nextBatch", &batch, CursorPlace { id, namespace, read_time })?;
    Ok(end)
}

/// Waits for the next commit at the end of the collection; false where the cursor does not wait, or its time
/// is over. Answers `WouldBlock` where the request is handled again after the wait.
fn await_tail(
    context: &mut Context<'_>,
    cursor: &mut OpenCursor,
    limit: Duration,
) -> Result<bool, CommandError> {
    let deadline = context.began.plus(limit);
    let now = context.shared.environment.clock().monotonic();
    let Some(tail) = cursor.supply.source.tail() else { return Ok(false) };
    if tail.tailing != Tailing::Waits || !tail.has_position || deadline <= now {
        return Ok(false);
    }
    context.operation.check_now().map_err(QueryError::from)?;
    if !context.waits_without_thread() {
        context.require_may_block()?;
    }
    let wait = TailWait::new(context.shared, context.record, &cursor.facts, deadline);
    tail.collection.when_tail_changes(tail.version, wait.signal());
    if context.waits_without_thread() {
        context.suspend(Suspension::Tail(wait));
        return Err(CommandError::WouldBlock(None));
    }
    cursor.supply.source.rest();
    wait.wait_here();
    context.operation.check_now().map_err(QueryError::from)?;
    if context.cursors().is_lost(cursor.facts.figures().id) {
        return Err(CommandError::failed(ErrorCode::CursorKilled, "operation was interrupted"));
    }
    Ok(true)
}
