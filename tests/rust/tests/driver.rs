//! The Rust driver against a real `pando serve` process.

mod server;

use mongodb::IndexModel;
use mongodb::Namespace;
use mongodb::bson::{Document, doc};
use mongodb::error::{ErrorKind, PartialBulkWriteResult};
use mongodb::options::{
    DeleteManyModel, IndexOptions, InsertOneModel, ReplaceOneModel, UpdateManyModel, UpdateOneModel,
    WriteConcern, WriteModel,
};
use mongodb::sync::Collection;
use serde::{Deserialize, Serialize};

use server::Server;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Book {
    #[serde(rename = "_id")]
    id: i32,
    title: String,
    tags: Vec<String>,
}

fn book(id: i32) -> Book {
    Book { id, title: format!("Volume {id}"), tags: vec![format!("t{}", id % 3), "all".to_owned()] }
}

#[test]
fn typed_documents_are_inserted_found_updated_and_deleted() {
    let server = Server::start(&[]);
    let books: Collection<Book> = server.client("").database("library").collection("books");
    books.insert_many((0..1000).map(book)).run().unwrap();
    assert_eq!(books.find_one(doc! { "_id": 7 }).run().unwrap(), Some(book(7)));
    let found: Vec<Book> = books
        .find(doc! { "tags": "t1" })
        .sort(doc! { "_id": -1 })
        .batch_size(50)
        .run()
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(
        found.iter().map(|book| book.id).collect::<Vec<_>>(),
        (0..1000).rev().filter(|id| id % 3 == 1).collect::<Vec<_>>()
    );
    let updated = books
        .update_many(doc! { "_id": { "$lt": 10 } }, doc! { "$push": { "tags": "early" } })
        .run()
        .unwrap();
    assert_eq!((updated.matched_count, updated.modified_count), (10, 10));
    assert_eq!(books.count_documents(doc! { "tags": "early" }).run().unwrap(), 10);
    assert_eq!(books.delete_many(doc! { "_id": { "$gte": 500 } }).run().unwrap().deleted_count, 500);
}

#[test]
fn unique_indexes_and_aggregates_work_through_compressed_connections() {
    let server = Server::start(&[]);
    let client = server.client("&compressors=zstd");
    let people: Collection<Document> = client.database("d").collection("people");
    let unique = IndexOptions::builder().unique(true).build();
    people
        .create_index(IndexModel::builder().keys(doc! { "email": 1 }).options(unique).build())
        .run()
        .unwrap();
    people.insert_one(doc! { "email": "a", "n": 1 }).run().unwrap();
    let refused = people.insert_one(doc! { "email": "a", "n": 2 }).run().unwrap_err();
    assert!(
        matches!(*refused.kind, ErrorKind::Write(mongodb::error::WriteFailure::WriteError(ref error)) if error.code == 11000)
    );
    people.insert_one(doc! { "email": "b", "n": 5 }).run().unwrap();
    let sums: Vec<Document> = people
        .aggregate([doc! { "$group": { "_id": null, "n": { "$sum": "$n" } } }])
        .run()
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(sums, vec![doc! { "_id": null, "n": 6 }]);
}

#[test]
fn every_write_concern_is_acknowledged_and_errors_have_names() {
    let server = Server::start(&[]);
    let database = server.client("").database("d");
    let things: Collection<Document> = database.collection("things");
    for concern in [
        WriteConcern::majority(),
        WriteConcern::builder().w(mongodb::options::Acknowledgment::Nodes(1)).journal(true).build(),
    ] {
        things.insert_one(doc! {}).write_concern(concern).run().unwrap();
    }
    let refused = database.run_command(doc! { "nonsense": 1 }).run().unwrap_err();
    assert!(
        matches!(*refused.kind, ErrorKind::Command(ref error) if error.code == 59 && error.code_name == "CommandNotFound")
    );
    assert_eq!(database.list_collection_names().run().unwrap(), vec!["things".to_owned()]);
}

fn insert(collection: &str, id: i32) -> WriteModel {
    let namespace = Namespace::new("d", collection);
    WriteModel::InsertOne(InsertOneModel::builder().namespace(namespace).document(doc! { "_id": id }).build())
}

#[test]
fn a_bulk_write_of_the_client_reaches_two_collections() {
    let server = Server::start(&[]);
    let client = server.client("");
    let (a, b) = (Namespace::new("d", "a"), Namespace::new("d", "b"));
    let last = UpdateOneModel::builder()
        .namespace(a.clone())
        .filter(doc! {})
        .update(doc! { "$set": { "last": true } });
    let all =
        UpdateManyModel::builder().namespace(a.clone()).filter(doc! {}).update(doc! { "$inc": { "x": 1 } });
    let new = ReplaceOneModel::builder()
        .namespace(b.clone())
        .filter(doc! { "_id": 7 })
        .replacement(doc! { "y": 1 });
    let models = [
        insert("a", 1),
        insert("a", 2),
        insert("b", 1),
        WriteModel::UpdateOne(last.sort(doc! { "_id": -1 }).build()),
        WriteModel::UpdateMany(all.build()),
        WriteModel::ReplaceOne(new.upsert(true).build()),
        WriteModel::DeleteMany(
            DeleteManyModel::builder().namespace(b).filter(doc! { "_id": { "$lt": 7 } }).build(),
        ),
    ];
    let result = client.bulk_write(models).verbose_results().run().unwrap();
    let sums = &result.summary;
    assert_eq!((sums.inserted_count, sums.matched_count, sums.modified_count), (3, 3, 3));
    assert_eq!((sums.upserted_count, sums.deleted_count), (1, 1));
    assert_eq!(result.insert_results[&1].inserted_id.as_i32(), Some(2));
    assert_eq!(result.update_results[&4].modified_count, 2);
    assert_eq!(result.update_results[&5].upserted_id.as_ref().and_then(|id| id.as_i32()), Some(7));
    assert_eq!(result.delete_results[&6].deleted_count, 1);
    let found = client.database("d").collection::<Document>("a").find_one(doc! { "_id": 2 }).run().unwrap();
    assert_eq!(found, Some(doc! { "_id": 2, "last": true, "x": 1 }));
}

#[test]
fn failures_of_a_bulk_write_have_their_places() {
    let server = Server::start(&[]);
    let client = server.client("");
    let models = || [insert("a", 1), insert("a", 1), insert("a", 2)];
    for (ordered, inserted) in [(true, 1), (false, 2)] {
        let refused = client.bulk_write(models()).ordered(ordered).run().unwrap_err();
        let ErrorKind::BulkWrite(error) = *refused.kind else { panic!("{refused}") };
        assert_eq!(
            error.write_errors.iter().map(|(at, error)| (*at, error.code)).collect::<Vec<_>>(),
            [(1, 11000)]
        );
        let Some(PartialBulkWriteResult::Summary(sums)) = error.partial_result else {
            panic!("no partial result")
        };
        assert_eq!(sums.inserted_count, inserted);
        client.database("d").drop().run().unwrap();
    }
}

#[test]
fn a_bulk_write_in_a_transaction_commits_and_its_results_come_in_batches() {
    let server = Server::start(&[]);
    let client = server.client("");
    client.database("d").create_collection("a").run().unwrap();
    let upsert = |letter: &str| {
        let model = UpdateOneModel::builder().namespace(Namespace::new("d", "a"));
        let filter = doc! { "_id": letter.repeat(8 * 1024 * 1024) };
        WriteModel::UpdateOne(model.filter(filter).update(doc! { "$set": { "x": 1 } }).upsert(true).build())
    };
    let mut session = client.start_session().run().unwrap();
    session.start_transaction().run().unwrap();
    let result =
        client.bulk_write([upsert("a"), upsert("b")]).verbose_results().session(&mut session).run().unwrap();
    assert_eq!((result.summary.upserted_count, result.update_results.len()), (2, 2));
    let documents: Collection<Document> = client.database("d").collection("a");
    assert_eq!(documents.count_documents(doc! {}).run().unwrap(), 0);
    session.commit_transaction().run().unwrap();
    assert_eq!(documents.count_documents(doc! {}).run().unwrap(), 2);
}
