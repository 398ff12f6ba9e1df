//! Several servers with one store open: collections and indexes that one of them changes are changed for all,
//! and no document is written by an old description.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pando_catalog::index_kind::OrdinaryIndexes;
use pando_catalog::{
    Answer, Answers, Asked, Begin, BlockingMode, Caller, Catalog, CatalogError, Cursor, Direction,
    Durability, Engine, IndexDescription, KeyRange, Multikey, Namespace, Operation, QueryMemory, SharedTime,
    WriteError,
};
use pando_document::{Document, RawDocument, RawDocumentBuf, RawValue, Value, doc};
use pando_environment::{Clock, MockClock, SeededRandom};

use crate::hooked_engine::{HookedEngine, Refusal};
use crate::things::{assert_sound, index, insert, namespace};

const BLOCK: BlockingMode = BlockingMode::MayBlock;

/// Rounds of the tests in which servers race.
const ROUNDS: usize = 25;

/// A store, and the clock of all servers that have it open.
struct Store {
    engine: Arc<HookedEngine>,
    clock: Arc<MockClock>,
}

/// A server: its catalog, and the thread that follows the other servers.
struct Server {
    catalog: Arc<Catalog>,
    pace: Arc<Pace>,
    follower: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Pace {
    stands_still: AtomicBool,
    has_ended: AtomicBool,
}

impl Store {
    fn new() -> Store {
        Store { engine: HookedEngine::of_several_servers(), clock: Arc::default() }
    }

    fn open(&self) -> Server {
        self.open_as("a server", |_| None)
    }

    /// Opens it as a server of a name, which answers questions in this way.
    fn open_as(&self, name: &str, answer_to: fn(&[u8]) -> Option<Vec<u8>>) -> Server {
        let engine = self.engine.as_engine();
        let memory = QueryMemory::new(&engine, usize::MAX, None);
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let catalog =
            Arc::new(Catalog::open_shared(engine, memory, Arc::new(OrdinaryIndexes), clock, name).unwrap());
        let pace = Arc::<Pace>::default();
        let (followed, paced) = (Arc::clone(&catalog), Arc::clone(&pace));
        let follower = std::thread::spawn(move || {
            while !paced.has_ended.load(Ordering::SeqCst) {
                if !paced.stands_still.load(Ordering::SeqCst) {
                    followed.follow().unwrap();
                    for question in followed.questions() {
                        if let Some(answer) = answer_to(&question.text) {
                            followed.answer(&question, &answer).unwrap();
                        }
                    }
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Server { catalog, pace, follower: Some(follower) }
    }

    /// A store with the collection of the tests, and so many servers that know it.
    fn with_things(servers: usize) -> (Store, Vec<Server>) {
        let store = Store::new();
        let servers: Vec<Server> = (0..servers).map(|_| store.open()).collect();
        servers[0].catalog.create_collection(&namespace(), RawDocumentBuf::new(), [7; 16]).unwrap();
        for server in &servers {
            eventually("the collection is there", || server.catalog.collection("test", "things").is_some());
        }
        (store, servers)
    }

    /// The records of the tree of servers that begin with these bytes.
    fn records_of(&self, kinds: &[u8]) -> usize {
        let trees = self.engine.list_trees().unwrap();
        let tree = trees.iter().find(|tree| tree.name == "servers").unwrap().id;
        let reader = self.engine.begin(Begin::READ).unwrap();
        let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
        let mut count = 0;
        while let Some((key, _)) = cursor.next(&*reader, BLOCK).unwrap() {
            count += usize::from(kinds.contains(&key[0]));
        }
        reader.rollback();
        count
    }

    /// Lets time pass, in steps that servers can follow.
    fn pass(&self, seconds: u64) {
        for _ in 0..seconds {
            self.clock.advance(Duration::from_secs(1));
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Server {
    fn stand_still(&self) {
        self.pace.stands_still.store(true, Ordering::SeqCst);
        // A look that has begun ends meanwhile.
        std::thread::sleep(Duration::from_millis(50));
    }

    fn go_on(&self) {
        self.pace.stands_still.store(false, Ordering::SeqCst);
    }

    fn indexes(&self) -> Vec<String> {
        let collection = self.catalog.collection("test", "things").unwrap();
        collection.indexes().iter().map(|index| index.name().to_owned()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.pace.has_ended.store(true, Ordering::SeqCst);
        let followed = self.follower.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            followed.unwrap().unwrap();
        }
    }
}

fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn one_index() -> Vec<IndexDescription> {
    vec![index(doc! { "a": 1 }, "a_1", &[])]
}

fn several_indexes() -> Vec<IndexDescription> {
    vec![
        index(doc! { "a": 1 }, "a_1", &[]),
        index(doc! { "a": -1, "b": 1 }, "a_-1_b_1", &[]),
        index(doc! { "s": 1 }, "s_1", &["sparse"]),
        index(doc! { "u": 1 }, "u_1", &["unique"]),
    ]
}

fn random_document(chance: &SeededRandom, id: i32) -> Document {
    let mut document = doc! { "_id": id, "u": id };
    match chance.below(4) {
        0 => document.push("a", Value::Array(vec![Value::Int32(1), Value::Int32(chance.below(9) as i32)])),
        1 => document.push("a", Value::from("x".repeat(2_000))),
        _ => document.push("a", Value::Int32(chance.below(97) as i32)),
    }
    if chance.below(2) == 0 {
        document.push("s", Value::Int32(chance.below(50) as i32));
    }
    document
}

/// Replaces the document of this `_id`, or removes it; inserts it where it is not there. Every other one
/// begins its transaction before it has the lease.
fn change(catalog: &Catalog, id: i32, new: Option<&Document>) -> Result<(), WriteError> {
    let early = if id % 2 == 0 { Some(catalog.begin_early()?) } else { None };
    let lease = catalog.lease("test", "things", Caller::may_block(&Operation::default())).unwrap().unwrap();
    let mut transaction = match early.and_then(|early| catalog.write_of(early)) {
        Some(transaction) => transaction,
        None => catalog.begin_write()?,
    };
    let key = lease.locate(&*transaction, &lease.id_key(RawValue::Int32(id)), BLOCK)?.unwrap_or_default();
    let old = lease.fetch(&*transaction, &key, BLOCK)?;
    let new = new.map(Document::to_raw);
    match (old.as_deref().map(|bytes| RawDocument::from_bytes(bytes).unwrap()), &new) {
        (None, None) => {}
        (None, Some(new)) => lease.insert(&mut transaction, new, BLOCK)?,
        (Some(old), None) => lease.remove(&mut transaction, &key, old, BLOCK)?,
        (Some(old), Some(new)) => lease.replace(&mut transaction, &key, old, new, BLOCK)?,
    }
    transaction.commit(Durability::None)?;
    Ok(())
}

fn is_conflict(outcome: &Result<(), WriteError>) -> bool {
    matches!(outcome, Err(WriteError::Storage(error)) if error.is_conflict())
}

#[test]
fn collections_and_indexes_of_one_server_are_those_of_all() {
    let (_store, servers) = Store::with_things(3);
    servers[1].catalog.create_indexes(&namespace(), several_indexes(), &Operation::default()).unwrap();
    // A change holds on all servers when it is answered.
    for server in &servers {
        assert_eq!(server.indexes().len(), 4);
    }
    insert(&servers[2].catalog, &doc! { "_id": 1, "a": [1, 2], "s": 3, "u": 4 }).unwrap();
    assert_eq!(assert_sound(&servers[0].catalog), 1);
    servers[0].catalog.drop_index(&namespace(), "s_1", &Operation::default()).unwrap();
    let to = Namespace::new("test", "renamed").unwrap();
    servers[2].catalog.rename_collection(&namespace(), &to, &Operation::default()).unwrap();
    for server in &servers {
        let renamed = server.catalog.collection("test", "renamed").unwrap();
        assert_eq!((renamed.indexes().len(), renamed.uuid()), (3, [7; 16]));
        assert!(server.catalog.collection("test", "things").is_none());
    }
    servers[1].catalog.drop_collection(&to, &Operation::default(), &|_| {}).unwrap();
    for server in &servers {
        assert!(server.catalog.databases().is_empty());
    }
}

#[test]
fn writers_of_several_servers_keep_the_indexes_that_others_make_and_drop() {
    let (store, servers) = Store::with_things(3);
    let (has_ended, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let writers: Vec<JoinHandle<()>> = servers
        .iter()
        .enumerate()
        .map(|(at, server)| {
            let (catalog, has_ended) = (Arc::clone(&server.catalog), Arc::clone(&has_ended));
            let written = Arc::clone(&written);
            std::thread::spawn(move || {
                let chance = SeededRandom::new(at as u64);
                while !has_ended.load(Ordering::SeqCst) {
                    let id = chance.below(300) as i32;
                    let document = (chance.below(4) > 0).then(|| random_document(&chance, id));
                    let outcome = change(&catalog, id, document.as_ref());
                    assert!(outcome.is_ok() || is_conflict(&outcome), "{outcome:?}");
                    written.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    let operation = Operation::default();
    for round in 0..ROUNDS {
        let catalog = &servers[round % 3].catalog;
        catalog.create_indexes(&namespace(), several_indexes(), &operation).unwrap();
        let before = written.load(Ordering::SeqCst);
        eventually("writers go on", || written.load(Ordering::SeqCst) > before + 100);
        let collection = catalog.collection("test", "things").unwrap();
        let reader = catalog.begin(Begin::READ).unwrap();
        let report = pando_catalog::verify_collection(&collection, &*reader, &operation).unwrap();
        assert_eq!(report.problems, Vec::<String>::new(), "round {round}");
        reader.rollback();
        let other = &servers[(round + 1) % 3].catalog;
        if round + 1 < ROUNDS {
            for description in several_indexes() {
                other.drop_index(&namespace(), &description.name, &operation).unwrap();
            }
        }
    }
    has_ended.store(true, Ordering::SeqCst);
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    for server in &servers {
        eventually("the indexes are there", || server.indexes().len() == 4);
        assert_sound(&server.catalog);
    }
    // The collection and its four indexes.
    assert_eq!(store.engine.tree_names().len(), 5, "{:?}", store.engine.tree_names());
}

#[test]
fn a_build_of_whose_changes_one_has_an_unknown_outcome_leaves_nothing_that_the_catalog_names() {
    let (store, servers) = Store::with_things(2);
    for id in 0..20 {
        insert(&servers[0].catalog, &doc! { "_id": id, "a": id }).unwrap();
    }
    let lost_ones = [Refusal::AnswerLost, Refusal::RequestLost, Refusal::AnswerLost, Refusal::RequestLost];
    for (round, lost) in lost_ones.into_iter().enumerate() {
        let engine = Arc::clone(&store.engine);
        let lose = move || engine.lose_the_next_change_of_the_catalog(lost);
        match round {
            0 | 1 => lose(),
            // Behind the announcement.
            _ => store.engine.during_the_next_build(lose),
        }
        let built = servers[0].catalog.create_indexes(&namespace(), one_index(), &Operation::default());
        assert!(built.is_err() && !store.engine.refuses(), "{built:?}");
        insert(&servers[1].catalog, &doc! { "_id": 100, "a": 100 }).unwrap();
        change(&servers[0].catalog, 100, None).unwrap();
        // The catalog opens only where all trees that it names are there.
        let third = store.open();
        assert_eq!(assert_sound(&third.catalog), 20);
        third.catalog.leave().unwrap();
    }
    servers[1].catalog.create_indexes(&namespace(), one_index(), &Operation::default()).unwrap();
    eventually("the index is there", || servers[0].indexes().len() == 1);
    assert_eq!(assert_sound(&servers[0].catalog), 20);
}

#[test]
fn a_transaction_that_has_begun_before_its_lease_is_taken_unless_a_description_has_changed() {
    let (_store, servers) = Store::with_things(2);
    let catalog = &servers[0].catalog;
    let early = catalog.begin_early().unwrap();
    let snapshot = early.snapshot();
    let taken = catalog.write_of(early).expect("nothing has changed");
    assert_eq!(taken.snapshot(), snapshot);
    let early = catalog.begin_early().unwrap();
    servers[1].catalog.create_indexes(&namespace(), one_index(), &Operation::default()).unwrap();
    eventually("the index is there", || servers[0].indexes().len() == 1);
    assert!(catalog.write_of(early).is_none());
}

#[test]
fn a_server_plans_by_a_flag_before_it_can_see_the_array() {
    let (_store, servers) = Store::with_things(2);
    let indexes = (0..ROUNDS).map(|at| {
        let field = format!("f{at}");
        let keys = [(field.clone(), Value::Int32(1))].into_iter().collect();
        index(keys, &field, &[])
    });
    servers[0].catalog.create_indexes(&namespace(), indexes.collect(), &Operation::default()).unwrap();
    eventually("the indexes are there", || servers[1].indexes().len() == ROUNDS);
    let catalog = Arc::clone(&servers[1].catalog);
    let reader = std::thread::spawn(move || {
        let mut seen = 0;
        while seen < ROUNDS {
            let snapshot = catalog.begin(Begin::READ).unwrap();
            let collection = catalog.collection("test", "things").unwrap();
            let id = collection.id_key(RawValue::Int32(seen as i32));
            if collection.fetch_by_id(&*snapshot, &id, BLOCK).unwrap().is_some() {
                let description = collection.index(&format!("f{seen}")).unwrap().describe();
                assert_ne!(description.multikey[0], Multikey::NO, "f{seen}");
                seen += 1;
            }
            snapshot.rollback();
        }
    });
    for at in 0..ROUNDS {
        let mut document = doc! { "_id": at as i32 };
        document.push(format!("f{at}"), Value::Array(vec![Value::Int32(1), Value::Int32(2)]));
        insert(&servers[0].catalog, &document).unwrap();
    }
    reader.join().unwrap();
    assert_eq!(assert_sound(&servers[1].catalog), ROUNDS as u64);
}

#[test]
fn a_server_that_stands_still_is_taken_out_and_commits_nothing_by_its_old_description() {
    let (store, servers) = Store::with_things(2);
    let [one, other] = &servers[..] else { unreachable!("there are two") };
    insert(&one.catalog, &doc! { "_id": 1, "a": 1 }).unwrap();
    let lease =
        other.catalog.lease("test", "things", Caller::may_block(&Operation::default())).unwrap().unwrap();
    let mut transaction = other.catalog.begin_write().unwrap();
    lease.insert(&mut transaction, &doc! { "_id": 2, "a": 2 }.to_raw(), BLOCK).unwrap();
    other.stand_still();
    let catalog = Arc::clone(&one.catalog);
    let build =
        std::thread::spawn(move || catalog.create_indexes(&namespace(), one_index(), &Operation::default()));
    store.pass(13);
    assert!(matches!(other.catalog.begin(Begin::READ), Err(error) if !error.is_conflict()));
    // It begins no commit any more. One that it has begun before takes the engine's 16 seconds.
    store.pass(15);
    assert!(!build.is_finished(), "a commit of the other server may still be under way");
    store.pass(10);
    build.join().unwrap().unwrap();
    assert_eq!(one.indexes(), ["a_1"]);

    // It is back. But a statement of before holds the old description.
    other.go_on();
    eventually("it knows the index", || other.indexes() == ["a_1"]);
    std::thread::sleep(Duration::from_millis(100));
    assert!(other.catalog.begin(Begin::READ).is_err());
    assert!(transaction.commit(Durability::None).is_err());
    drop(lease);
    eventually("it works again", || other.catalog.begin(Begin::READ).is_ok());
    insert(&other.catalog, &doc! { "_id": 3, "a": 3 }).unwrap();
    assert_eq!(assert_sound(&one.catalog), 2);
}

#[test]
fn the_build_of_a_server_that_is_gone_is_ended_and_begun_again_by_another() {
    let (store, servers) = Store::with_things(2);
    let [builder, other] = &servers[..] else { unreachable!("there are two") };
    for id in 0..100 {
        insert(&builder.catalog, &doc! { "_id": id, "a": id }).unwrap();
    }
    let (inside, is_inside) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    store.engine.during_the_next_build(move || {
        inside.send(()).unwrap();
        may_go_on.recv().unwrap();
    });
    let catalog = Arc::clone(&builder.catalog);
    let build =
        std::thread::spawn(move || catalog.create_indexes(&namespace(), one_index(), &Operation::default()));
    is_inside.recv().unwrap();
    insert(&other.catalog, &doc! { "_id": 100, "a": 1 }).unwrap();
    let names = |server: &Server| {
        let collection = server.catalog.collection("test", "things").unwrap();
        collection.names_being_built().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(other), ["a_1"]);
    assert_eq!(other.catalog.end_abandoned_builds(&Operation::default()).unwrap(), 0, "the builder is alive");

    builder.stand_still();
    store.pass(40);
    assert_eq!(other.catalog.end_abandoned_builds(&Operation::default()).unwrap(), 1);
    assert_eq!(names(other), Vec::<String>::new());
    other.catalog.create_indexes(&namespace(), one_index(), &Operation::default()).unwrap();
    insert(&other.catalog, &doc! { "_id": 101, "a": 2 }).unwrap();

    go_on.send(()).unwrap();
    builder.go_on();
    assert!(build.join().unwrap().is_err());
    eventually("it knows the index of the other", || builder.indexes() == ["a_1"]);
    eventually("it works again", || builder.catalog.begin(Begin::READ).is_ok());
    insert(&builder.catalog, &doc! { "_id": 102, "a": 3 }).unwrap();
    assert_eq!(assert_sound(&other.catalog), 103);
    eventually("nothing is left of the first build", || store.engine.tree_names().len() == 2);
}

#[test]
fn one_of_two_servers_creates_a_collection_that_both_want() {
    let (_store, servers) = Store::with_things(2);
    for round in 0..ROUNDS {
        let name = Namespace::new("test", &format!("c{round}")).unwrap();
        let create = |at: usize| {
            let (catalog, name) = (Arc::clone(&servers[at].catalog), name.clone());
            std::thread::spawn(move || {
                catalog.create_collection(&name, RawDocumentBuf::new(), [at as u8; 16])
            })
        };
        let outcomes: Vec<_> = [create(0), create(1)].map(|thread| thread.join().unwrap()).into();
        let won = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        assert_eq!(won, 1, "{outcomes:?}");
        let lost =
            |outcome: &Result<_, CatalogError>| matches!(outcome, Err(CatalogError::CollectionExists { .. }));
        assert!(outcomes.iter().any(lost), "{outcomes:?}");
        let uuid_at = |at: usize| {
            let found = servers[at].catalog.collection("test", name.collection());
            found.map(|collection| collection.uuid())
        };
        eventually("both know it", || uuid_at(0).is_some() && uuid_at(0) == uuid_at(1));
    }
}

#[test]
fn a_transaction_of_a_session_conflicts_with_a_change_by_another_server() {
    let (_store, servers) = Store::with_things(2);
    let [one, other] = &servers[..] else { unreachable!("there are two") };
    let operation = Operation::default();
    let caller = Caller::may_block(&operation);
    let mut transaction = other.catalog.begin_session_transaction().unwrap();
    let lease = transaction.lease(&other.catalog, &namespace(), caller).unwrap().unwrap();
    lease.insert(transaction.writer(), &doc! { "_id": 1, "a": 1 }.to_raw(), BLOCK).unwrap();
    drop(lease);
    one.catalog.create_indexes(&namespace(), one_index(), &operation).unwrap();
    let leases = transaction.commit_leases(&other.catalog, caller);
    assert!(matches!(leases, Err(CatalogError::Storage(error)) if error.is_conflict()));
    drop(transaction);
    assert_eq!(assert_sound(&one.catalog), 0);
}

#[test]
fn one_server_keeps_house_and_the_next_one_does_when_it_is_gone() {
    let (_store, mut servers) = Store::with_things(2);
    eventually("the first one does", || servers[0].catalog.keeps_house());
    assert!(!servers[1].catalog.keeps_house());
    let first = servers.remove(0);
    first.stand_still();
    first.catalog.leave().unwrap();
    assert!(!first.catalog.keeps_house() && first.catalog.begin(Begin::READ).is_err());
    eventually("the second one does", || servers[0].catalog.keeps_house());
    servers[0].catalog.create_indexes(&namespace(), one_index(), &Operation::default()).unwrap();
}

#[test]
fn a_store_that_is_opened_again_has_what_its_servers_made() {
    let (store, servers) = Store::with_things(2);
    servers[1].catalog.create_indexes(&namespace(), several_indexes(), &Operation::default()).unwrap();
    insert(&servers[0].catalog, &doc! { "_id": 1, "a": [1, 2], "u": 1 }).unwrap();
    for server in servers {
        server.catalog.leave().unwrap_or_default();
    }
    let server = store.open();
    assert_eq!(server.indexes().len(), 4);
    assert_eq!(assert_sound(&server.catalog), 1);
    assert!(server.catalog.keeps_house());
}

#[test]
fn a_server_that_catches_up_knows_what_another_one_has_changed_before_a_moment() {
    let (_store, servers) = Store::with_things(2);
    let [one, other] = &servers[..] else { unreachable!("there are two") };
    other.stand_still();
    for round in 0..ROUNDS {
        let name = Namespace::new("test", &format!("c{round}")).unwrap();
        one.catalog.create_collection(&name, RawDocumentBuf::new(), [1; 16]).unwrap();
        let moment = one.catalog.shared_time().unwrap();
        let is_known = || other.catalog.collection("test", name.collection()).is_some();
        assert!(other.catalog.is_behind(moment) && !is_known());
        other.catalog.catch_up().unwrap();
        assert!(!other.catalog.is_behind(moment) && is_known());
        insert_into(&one.catalog, &name, &doc! { "_id": 1 });
        let now = one.catalog.shared_time().unwrap();
        assert!(other.catalog.is_behind(now), "one may have changed something meanwhile");
        other.catalog.catch_up().unwrap();
        assert!(!other.catalog.is_behind(now), "there was nothing");
    }
}

fn insert_into(catalog: &Catalog, name: &Namespace, document: &Document) {
    let caller = Operation::default();
    let lease =
        catalog.lease(name.database(), name.collection(), Caller::may_block(&caller)).unwrap().unwrap();
    let mut transaction = catalog.begin_write().unwrap();
    lease.insert(&mut transaction, &document.to_raw(), BLOCK).unwrap();
    transaction.commit(Durability::None).unwrap();
}

#[test]
fn a_moment_of_another_server_is_read_unless_the_catalog_has_changed_since() {
    let (store, servers) = Store::with_things(2);
    let [one, other] = &servers[..] else { unreachable!("there are two") };
    insert(&one.catalog, &doc! { "_id": 1 }).unwrap();
    // This engine keeps a past snapshot only while somebody holds it.
    let holder = store.engine.begin(Begin::READ).unwrap();
    let moment = SharedTime::of_snapshot(holder.snapshot());
    assert!(one.catalog.shared_time() >= Some(moment));
    let (reader, names) = other.catalog.begin_at(moment).unwrap().unwrap();
    insert(&one.catalog, &doc! { "_id": 2 }).unwrap();
    let things = names.collection(&other.catalog, "test", "things").unwrap();
    let found = |id: i32| things.fetch_by_id(&*reader, &things.id_key(RawValue::Int32(id)), BLOCK).unwrap();
    assert!(found(1).is_some() && found(2).is_none());
    one.catalog.create_indexes(&namespace(), one_index(), &Operation::default()).unwrap();
    for server in &servers {
        eventually("the index is there", || server.indexes().len() == 1);
        assert!(server.catalog.begin_at(moment).unwrap().is_none(), "the collection had no index then");
    }
    holder.rollback();
    assert!(one.catalog.begin_at(SharedTime::new(u64::MAX >> 1)).unwrap().is_none(), "it is still to come");
}

#[test]
fn questions_are_answered_by_the_servers_that_they_name_and_none_is_left() {
    let store = Store::new();
    let answer = |text: &[u8]| Some([b"to ", text].concat());
    let one = store.open_as("one:1", answer);
    let others = [store.open_as("two:2", answer), store.open_as("three:3", |_| None)];
    let operation = Operation::default();
    let asker = Arc::clone(&one.catalog);
    let asked = std::thread::spawn(move || asker.ask(Asked::Others, b"all", &operation).unwrap());
    std::thread::sleep(Duration::from_millis(200));
    assert!(!asked.is_finished(), "the third server may still answer");
    store.pass(3);
    let answers = asked.join().unwrap();
    let given = |server: &str, text: &[u8]| Answer { server: server.to_owned(), text: text.to_vec() };
    assert_eq!(
        answers,
        Answers { given: vec![given("two:2", b"to all")], silent: vec!["three:3".to_owned()] }
    );

    let operation = Operation::default();
    let large = vec![7; 2 << 20];
    let answers = others[1].catalog.ask(Asked::Named("one:1"), &large, &operation).unwrap();
    assert_eq!(answers.silent, Vec::<String>::new());
    assert_eq!(answers.given, [given("one:1", &[&b"to "[..], &large].concat())]);
    assert_eq!(one.catalog.ask(Asked::Named("four:4"), b"?", &operation).unwrap(), Answers::default());
    assert_eq!(one.catalog.ask(Asked::Named("one:1"), b"?", &operation).unwrap(), Answers::default());
    eventually("no server knows a question any more", || {
        std::iter::once(&one).chain(&others).all(|server| server.catalog.questions().is_empty())
    });
    assert_eq!(store.records_of(b"qw"), 0);
}

#[test]
fn an_asker_that_is_interrupted_and_an_answer_that_is_late_leave_nothing_behind() {
    let store = Store::new();
    let servers = [store.open_as("one:1", |_| None), store.open_as("two:2", |_| None)];
    let operation = Arc::new(Operation::default());
    let (asker, asking) = (Arc::clone(&servers[1].catalog), Arc::clone(&operation));
    let asked = std::thread::spawn(move || asker.ask(Asked::Others, b"?", &asking));
    eventually("it is asked", || servers[0].catalog.questions().len() == 1);
    operation.interrupt(pando_catalog::Interruption::Killed);
    assert!(matches!(asked.join().unwrap(), Err(CatalogError::Interrupted(_))));
    assert_eq!(store.records_of(b"qw"), 0);
    eventually("the question is forgotten", || servers[0].catalog.questions().is_empty());

    let asker = Arc::clone(&servers[1].catalog);
    let asked = std::thread::spawn(move || asker.ask(Asked::Others, b"?", &Operation::default()));
    eventually("it is asked", || servers[0].catalog.questions().len() == 1);
    let question = servers[0].catalog.questions().remove(0);
    servers[0].catalog.answer(&question, b"!").unwrap();
    assert_eq!(asked.join().unwrap().unwrap().given.len(), 1);
    servers[0].catalog.answer(&question, b"late").unwrap();
    assert_eq!(store.records_of(b"qw"), 0, "a late answer is written nowhere");
}

#[test]
fn a_change_of_documents_that_is_announced_moves_the_version_of_all_servers() {
    let (_store, servers) = Store::with_things(2);
    for round in 0..ROUNDS {
        let announcer = &servers[round % 2].catalog;
        let before = servers.iter().filter_map(|server| server.catalog.version()).max();
        announcer.announce_change().unwrap();
        for server in &servers {
            eventually("the version has moved", || server.catalog.version() > before);
        }
    }
}

#[test]
fn a_store_of_several_servers_refuses_collections_that_live_in_the_memory_of_one() {
    let (store, servers) = Store::with_things(1);
    let capped = doc! { "capped": true, "size": 4_096 }.to_raw();
    let partitioned = doc! { "partitioned": true }.to_raw();
    for options in [capped, partitioned] {
        let name = Namespace::new("test", "special").unwrap();
        let refused = servers[0].catalog.create_collection(&name, options, [1; 16]);
        assert!(matches!(refused, Err(CatalogError::CollectionOptions { .. })), "{refused:?}");
    }
    assert!(Catalog::open(store.engine.as_engine()).is_err());
}
