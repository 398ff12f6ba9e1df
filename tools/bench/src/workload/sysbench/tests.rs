//! Loads and transactions against a server that says yes to everything, and one that does not.

use super::mix::{KINDS, Mix};
use super::mongo::AfterFailure;
use super::workload::Sysbench;
use crate::client::{Judgement, Listening, Misses, Next, NullServer, Pace, Script, Turn, Verdict};
use crate::error::BenchError;
use crate::run::{Counting, Measured, Plan, run};
use crate::target::Target;
use crate::workload::linkbench::store::Transactions as TransactionLevel;
use crate::workload::load::load_measured;
use crate::workload::load::{Durability, Loading};
use crate::workload::tests::load;
use crate::workload::{RunNumber, Workload};
use pando_document::{Document, doc};
use pando_measuring::counters::{ProcessId, Sources};
use pando_wire::{Body, Message};

/// With as many documents per collection as per batch, one reply suits both insert and count.
const DOCUMENTS: u32 = 10;

fn load_into(reply: &Document) -> Result<Measured, BenchError> {
    let server = NullServer::start(reply).expect("loopback is there");
    let target = Target::parse(&format!("mongodb://{}", server.address())).expect("an address");
    let mut sources = Sources::find(ProcessId::behind_port(server.address()), None);
    load_measured(&load(3, DOCUMENTS), &target, &mut sources).map(|(measured, _)| measured)
}

#[test]
fn every_collection_is_loaded_once_and_its_documents_are_counted() {
    let loaded = load_into(&doc! { "n": 10, "ok": 1.0 }).expect("the server says yes");
    assert_eq!((loaded.tally.done(), loaded.tally.operations()), (3, 30));
    assert!(loaded.seconds < 10.0, "it ends when all is in");
}

#[test]
fn a_batch_that_is_not_wholly_inserted_ends_the_load_with_an_error() {
    let error = load_into(&doc! { "n": 9, "ok": 1.0 }).expect_err("a document is missing");
    assert!(matches!(&error, BenchError::Load { message, .. } if message.contains("9 of 10")), "{error}");
    let duplicate = doc! { "n": 10, "writeErrors": [{ "code": 11000, "errmsg": "duplicate" }], "ok": 1.0 };
    let error = load_into(&duplicate).expect_err("a write was refused");
    assert!(error.to_string().contains("code 11000"), "{error}");
}

#[test]
fn documents_that_are_not_what_the_run_needs_are_an_error() {
    let server = NullServer::start(&doc! { "n": 11, "ok": 1.0 }).expect("loopback is there");
    let target = Target::parse(&format!("mongodb://{}", server.address())).expect("an address");
    let error = load(3, DOCUMENTS).check(&target).expect_err("there is one too many");
    assert!(matches!(error, BenchError::DataSet { found: 11, expected: 10, .. }), "{error}");
}

fn sysbench(mix: Mix) -> Sysbench {
    Sysbench {
        load: load(3, 1000),
        mix,
        durability: Durability::W1,
        after_failure: AfterFailure::NextTransaction,
        transactions: TransactionLevel::None,
    }
}

fn script(workload: &Sysbench) -> Box<dyn Script> {
    let target = Target::parse("mongodb://127.0.0.1:1").expect("an address");
    workload.clients(&target, 1, RunNumber::FIRST).expect("it is all there").scripts.remove(0)
}

/// The script's next request, as a document.
fn request(script: &mut dyn Script) -> Document {
    let mut frame = Vec::new();
    assert_eq!(script.request(1, &mut frame), Turn::Request);
    let message = Message::decode(&frame).expect("a message");
    let Body::Msg(body) = message.body else { panic!("an OP_MSG") };
    Document::from_raw(pando_document::RawDocument::from_bytes(body.body()).expect("a document"))
        .expect("sound")
}

fn judge(script: &mut dyn Script, reply: &Document) -> Judgement {
    script.judge(&reply.to_raw())
}

#[test]
fn a_transaction_sends_the_commands_of_the_original() {
    let workload = sysbench(Mix::DEFAULT);
    let (mut script, reply) = (script(&workload), workload.null_reply().expect("there is one"));
    let mut names = Vec::new();
    loop {
        let command = request(script.as_mut());
        names.push(command.names().next().unwrap_or_default().to_owned());
        let judgement = judge(script.as_mut(), &reply);
        assert_eq!(judgement.verdict, Verdict::Done, "{command:?}");
        if judgement.next == (Next::Unit { operations: 1 }) {
            break;
        }
    }
    let finds = ["find"; 11].into_iter();
    let others = ["aggregate", "find", "distinct", "update", "update", "delete", "insert"];
    assert_eq!(names, finds.chain(others).collect::<Vec<_>>());
}

#[test]
fn a_range_longer_than_a_batch_is_read_to_its_end() {
    let mix = Mix { points: 0, range_size: 300, ..Mix::DEFAULT };
    let mut script = script(&sysbench(mix));
    let batch = |name: &'static str, id: i64| {
        doc! { "cursor": { (name): [{ "c": pando_measuring::random::mask::C }], "id": id, "ns": "a.b" }, "ok": 1.0 }
    };
    assert!(request(script.as_mut()).contains("find"));
    assert_eq!(judge(script.as_mut(), &batch("firstBatch", 77)), Judgement::more());
    let more = request(script.as_mut());
    assert_eq!(more.get("getMore").and_then(|id| id.as_i64_exact()), Some(77));
    let end = judge(script.as_mut(), &batch("nextBatch", 0));
    assert_eq!(end.statement.map(|kind| KINDS[kind.index()]), Some("simple range"));
}

#[test]
fn a_document_that_another_client_deleted_is_a_miss_and_a_double_insert_too() {
    let mix = Mix {
        points: 1,
        simple_ranges: 0,
        sum_ranges: 0,
        order_ranges: 0,
        distinct_ranges: 0,
        ..Mix::DEFAULT
    };
    let mut script = script(&sysbench(mix));
    let empty = doc! { "cursor": { "firstBatch": [], "id": 0_i64 }, "n": 0, "ok": 1.0 };
    for _ in ["point", "index update", "non-index update", "delete"] {
        request(script.as_mut());
        assert_eq!(judge(script.as_mut(), &empty).verdict, Verdict::Missed);
    }
    request(script.as_mut());
    let duplicate =
        doc! { "n": 0, "writeErrors": [{ "index": 0, "code": 11000, "errmsg": "duplicate" }], "ok": 1.0 };
    let end = judge(script.as_mut(), &duplicate);
    assert_eq!((end.verdict, end.next), (Verdict::Missed, Next::Unit { operations: 1 }));
    assert_eq!(script.notes()[0].count, 1);
}

#[test]
fn a_conflict_is_tried_again_and_a_refusal_ends_the_transaction() {
    let mut script = script(&sysbench(Mix::DEFAULT));
    let first = request(script.as_mut());
    let conflict = doc! { "ok": 0.0, "errmsg": "conflict", "code": 112 };
    assert_eq!(judge(script.as_mut(), &conflict).next, Next::Again);
    assert_eq!(request(script.as_mut()), first, "the same statement");
    let refusal = judge(script.as_mut(), &doc! { "ok": 0.0, "errmsg": "no", "code": 13 });
    assert!(matches!(refusal.verdict, Verdict::Failed(_)));
    assert_eq!(refusal.next, Next::Unit { operations: 1 });
}

/// The names of the commands of one transaction, and what each carries of these fields, answered by `reply`
/// of their place.
fn conversation(
    script: &mut dyn Script,
    fields: &[&str],
    mut reply: impl FnMut(usize) -> Document,
) -> (Vec<String>, Judgement) {
    let mut said = Vec::new();
    loop {
        let command = request(script);
        let name = command.names().next().unwrap_or_default().to_owned();
        let carried: Vec<&str> = fields.iter().copied().filter(|field| command.contains(field)).collect();
        said.push(std::iter::once(name.as_str()).chain(carried).collect::<Vec<_>>().join(" "));
        let judgement = judge(script, &reply(said.len() - 1));
        if matches!(judgement.next, Next::Unit { .. }) {
            return (said, judgement);
        }
        assert!(said.len() < 100, "it ends: {said:?}");
    }
}

fn wrapped(level: TransactionLevel) -> (Box<dyn Script>, Document) {
    let mix = Mix {
        points: 2,
        simple_ranges: 0,
        sum_ranges: 0,
        order_ranges: 0,
        distinct_ranges: 0,
        delete_inserts: 0,
        ..Mix::DEFAULT
    };
    let workload = Sysbench { transactions: level, ..sysbench(mix) };
    (script(&workload), workload.null_reply().expect("there is one"))
}

#[test]
fn a_sessions_transaction_is_numbered_begun_once_and_committed_with_the_write_concern() {
    let (mut script, reply) = wrapped(TransactionLevel::Session);
    let fields = ["startTransaction", "writeConcern", "autocommit"];
    let (said, end) = conversation(script.as_mut(), &fields, |_| reply.clone());
    assert_eq!(
        said,
        [
            "find startTransaction autocommit",
            "find autocommit",
            "update autocommit",
            "update autocommit",
            "commitTransaction writeConcern autocommit"
        ]
    );
    assert_eq!((end.verdict, end.next), (Verdict::Done, Next::Unit { operations: 1 }));
    let (first, second) = (request(script.as_mut()), {
        judge(script.as_mut(), &reply);
        request(script.as_mut())
    });
    let number = |command: &Document| command.get("txnNumber").and_then(|number| number.as_i64_exact());
    assert_eq!((number(&first), number(&second)), (Some(2), Some(2)), "the next transaction");
}

#[test]
fn after_a_conflict_all_statements_are_done_again_and_after_a_refusal_none() {
    let conflict = doc! { "ok": 0.0, "errmsg": "conflict", "code": 112 };
    let (mut script, reply) = wrapped(TransactionLevel::Session);
    let (said, end) = conversation(script.as_mut(), &["startTransaction"], |place| {
        if place == 2 { conflict.clone() } else { reply.clone() }
    });
    let whole = ["find startTransaction", "find", "update", "update", "commitTransaction"];
    assert_eq!(said, [&whole[..3], &whole[..]].concat());
    assert_eq!(end.verdict, Verdict::Done);
    let (mut script, reply) = wrapped(TransactionLevel::Session);
    let (said, end) = conversation(script.as_mut(), &[], |place| {
        if place == 1 {
            doc! { "ok": 0.0, "errmsg": "no", "code": 13 }
        } else {
            reply.clone()
        }
    });
    assert_eq!(said, ["find", "find", "abortTransaction"]);
    assert_eq!(end.verdict, Verdict::Failed("no (code 13)".into()));
}

#[test]
fn tokumxs_transaction_is_the_connections_and_commits_also_what_was_done_before_a_failure() {
    let (mut script, reply) = wrapped(TransactionLevel::TokuMx);
    let (said, _) = conversation(script.as_mut(), &["isolation", "lsid"], |_| reply.clone());
    assert_eq!(said, ["beginTransaction isolation", "find", "find", "update", "update", "commitTransaction"]);
    let (said, end) = conversation(script.as_mut(), &[], |place| {
        if place == 2 {
            doc! { "ok": 0.0, "errmsg": "no", "code": 13 }
        } else {
            reply.clone()
        }
    });
    assert_eq!(said, ["beginTransaction", "find", "find", "commitTransaction"]);
    assert_eq!(end.verdict, Verdict::Failed("no (code 13)".into()));
    let lock = doc! { "ok": 0.0, "errmsg": "Lock not granted", "code": 16_759 };
    let (said, end) =
        conversation(script.as_mut(), &[], |place| if place == 1 { lock.clone() } else { reply.clone() });
    let whole = ["beginTransaction", "find", "find", "update", "update", "commitTransaction"];
    assert_eq!(said, [&whole[..2], &["rollbackTransaction"], &whole[..]].concat());
    assert_eq!(end.verdict, Verdict::Done);
    let refused = doc! { "ok": 0.0, "errmsg": "no such command", "code": 59 };
    let (said, end) = conversation(script.as_mut(), &[], |_| refused.clone());
    assert_eq!(said, ["beginTransaction"], "nothing is done outside of a transaction");
    assert!(matches!(end.verdict, Verdict::Failed(_)));
    assert_eq!(request(script.as_mut()).names().next(), Some("beginTransaction"));
}

#[test]
fn in_the_originals_way_a_failure_ends_the_client() {
    let workload = Sysbench { after_failure: AfterFailure::End, ..sysbench(Mix::DEFAULT) };
    let mut script = script(&workload);
    request(script.as_mut());
    judge(script.as_mut(), &doc! { "ok": 0.0, "errmsg": "no", "code": 13 });
    assert_eq!(script.request(2, &mut Vec::new()), Turn::Over);
}

#[test]
fn a_run_counts_transactions_and_their_statements_apart() {
    let workload = sysbench(Mix::DEFAULT);
    let server = NullServer::start(&workload.null_reply().expect("there is one")).expect("loopback");
    let target = Target::parse(&format!("mongodb://{}", server.address())).expect("an address");
    let clients = workload.clients(&target, 4, RunNumber::FIRST).expect("it is all there");
    let plan =
        Plan { clients: 4, threads: 2, warmup_s: 0, duration_s: 1, pace: Pace::Closed, interval_s: 10 };
    let counting = Counting { kinds: KINDS.len(), misses: Misses::AreExpected };
    let measured = run(plan, server.address(), clients, counting, None).expect("the server answers");
    let transactions = measured.tally.done() as f64;
    assert!(transactions > 10.0 && measured.tally.failed == 0, "{:?}", measured.tally.failures);
    let points = measured.tally.kinds[0].latencies.count() as f64;
    // At the window's edges each client may be in the middle of a transaction.
    assert!(
        (points - transactions * 10.0).abs() <= 4.0 * 10.0,
        "{points} points in {transactions} transactions"
    );
    assert!(measured.tally.latencies.mean_us() > measured.tally.kinds[0].latencies.mean_us() * 5.0);
}
