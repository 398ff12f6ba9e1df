//! Lists of writes of which the store refuses a whole part: what the caller is told of the others.

use pandodb::bson::Document;
use pandodb::{Error, InsertOneModel, Pando, doc};

/// A document with more levels than a request may have.
fn deep() -> Document {
    (0..300).fold(doc! {}, |inner, _| doc! { "a": inner })
}

/// Runs a test with enough stack for such a document in a build that is not optimised.
fn with_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(test).unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn a_part_of_an_insert_that_is_refused_as_a_whole_leaves_the_ids_of_the_others() {
    with_stack(part_of_an_insert);
}

#[test]
fn a_bulk_without_order_goes_on_behind_a_refused_command_and_names_all_of_its_writes() {
    with_stack(part_of_a_bulk);
}

fn part_of_an_insert() {
    let pando = Pando::open_in_memory().unwrap();
    let notes = pando.database("d").collection::<Document>("notes");
    let document = |n: i32| {
        if n == 1_500 {
            doc! { "_id": n, "a": deep() }
        } else {
            doc! { "_id": n }
        }
    };
    match notes.insert_many((0..2_500).map(document)).run() {
        Err(Error::InsertMany { errors, inserted_ids }) => {
            assert_eq!((errors.len(), errors[0].index, inserted_ids.len()), (1, 1_000, 1_000));
            assert!(errors[0].message.contains("depth"), "{}", errors[0].message);
        }
        other => panic!("a part was not refused: {other:?}"),
    }
    assert_eq!(notes.count_documents(doc! {}).run().unwrap(), 1_000);
    notes.drop().run().unwrap();
    match notes.insert_many((0..2_500).map(document)).ordered(false).run() {
        Err(Error::InsertMany { errors, inserted_ids }) => {
            assert_eq!((errors.len(), errors[999].index, inserted_ids.len()), (1_000, 1_999, 1_500));
        }
        other => panic!("a part was not refused: {other:?}"),
    }
    assert_eq!(notes.count_documents(doc! {}).run().unwrap(), 1_500);
    let alone = notes.insert_many([deep()]).run().unwrap_err();
    assert!(matches!(alone, Error::Command { .. }), "{alone:?}");
}

fn part_of_a_bulk() {
    let pando = Pando::open_in_memory().unwrap();
    let [a, b] = ["a", "b"].map(|name| pando.database("d").collection::<Document>(name));
    let in_a = || [deep(), doc! { "_id": 1 }].map(|document| a.insert_one_model(document).unwrap());
    let in_b = || b.insert_one_model(doc! {}).unwrap();
    let outcome = |models: Vec<InsertOneModel>, ordered| match pando.bulk_write(models).ordered(ordered).run()
    {
        Err(Error::BulkWrite { errors, done }) => {
            (errors.iter().map(|error| error.index).collect::<Vec<_>>(), done.inserted_count)
        }
        other => panic!("a command was not refused: {other:?}"),
    };
    let (front, end) = ([&in_a()[..], &[in_b()]].concat(), [&[in_b()][..], &in_a()].concat());
    assert_eq!(outcome(front.clone(), false), (vec![0, 1], 1));
    assert_eq!(outcome(end.clone(), false), (vec![1, 2], 1));
    assert_eq!(outcome(end, true), (vec![1], 1));
    let refused = pando.bulk_write(front).run().unwrap_err();
    assert!(matches!(refused, Error::Command { .. }), "{refused:?}");
}
