//! The calls of a collection: results, options, refusals, errors that a person can read.

use std::time::Duration;

use pandodb::bson::{Bson, Document};
use pandodb::{
    Collection, DeleteManyModel, DeleteOneModel, EngineName, Error, IndexModel, IndexOptions, Options, Pando,
    ReplaceOneModel, ReturnDocument, UpdateManyModel, UpdateOneModel, WriteModel, doc,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct City {
    #[serde(rename = "_id")]
    name: String,
    country: String,
    people: i64,
}

fn city(name: &str, country: &str, people: i64) -> City {
    City { name: name.to_owned(), country: country.to_owned(), people }
}

fn cities() -> (Pando, Collection<City>) {
    let pando = Pando::open_in_memory().unwrap();
    let cities = pando.database("atlas").collection::<City>("cities");
    let all = [
        city("Utrecht", "NL", 374),
        city("Groningen", "NL", 244),
        city("Reykjavík", "IS", 139),
        city("Akureyri", "IS", 19),
    ];
    cities.insert_many(&all).run().unwrap();
    (pando, cities)
}

fn names(found: impl Iterator<Item = Result<City, Error>>) -> Vec<String> {
    found.map(|city| city.unwrap().name).collect()
}

#[test]
fn inserts_give_the_ids() {
    let pando = Pando::open_in_memory().unwrap();
    let notes = pando.database("d").collection::<Document>("notes");
    let id = notes.insert_one(doc! { "text": "a" }).run().unwrap().inserted_id;
    assert!(matches!(id, Bson::ObjectId(_)), "{id}");
    assert_eq!(
        notes.find_one(doc! { "_id": id }).run().unwrap().unwrap().get("text"),
        Some(&Bson::from("a"))
    );
    assert_eq!(notes.insert_one(&doc! { "_id": 7 }).run().unwrap().inserted_id, Bson::Int32(7));
    let many = notes.insert_many([doc! { "_id": 8 }, doc! { "text": "b" }]).run().unwrap();
    assert_eq!(many.inserted_ids[&0], Bson::Int32(8));
    let second = notes.find_one(doc! { "_id": &many.inserted_ids[&1] }).run().unwrap().unwrap();
    assert_eq!(second.keys().collect::<Vec<_>>(), ["_id", "text"]);
}

#[test]
fn a_value_has_one_form_whichever_call_writes_it() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Host {
        // Two forms: one for people, and one for programs, in which it is stored.
        #[serde(rename = "_id")]
        address: std::net::IpAddr,
    }
    let host = Host { address: [10, 0, 0, 1].into() };
    let pando = Pando::open_in_memory().unwrap();
    let hosts = pando.database("d").collection::<Host>("hosts");
    let raw = hosts.clone_with_type::<Document>();
    hosts.insert_one(&host).run().unwrap();
    let stored = raw.find_one(doc! {}).run().unwrap().unwrap();
    assert_eq!(hosts.replace_one(stored.clone(), &host).run().unwrap().matched_count, 1);
    assert_eq!(hosts.find_one_and_replace(stored.clone(), &host).run().unwrap(), Some(host));
    let host = hosts.find_one_and_delete(stored.clone()).run().unwrap().unwrap();
    pando.bulk_write([hosts.insert_one_model(&host).unwrap()]).run().unwrap();
    assert_eq!(raw.find_one(doc! {}).run().unwrap(), Some(stored.clone()));
    assert_eq!(hosts.find_one(stored).run().unwrap(), Some(host));
}

#[test]
fn a_build_of_an_index_has_a_time_limit() {
    let (pando, cities) = cities();
    let atlas = pando.database("atlas");
    atlas.run_command(doc! { "profile": 2 }).run().unwrap();
    let by = |field: &str| IndexModel::builder().keys(doc! { field: 1 }).build();
    cities.create_index(by("country")).max_time(Duration::from_secs(60)).run().unwrap();
    cities.create_indexes([by("people")]).max_time(Duration::from_secs(70)).run().unwrap();
    let profile = atlas.collection::<Document>("system.profile");
    let limits = profile.distinct("command.maxTimeMS", doc! { "command.createIndexes": "cities" }).run();
    assert_eq!(limits.unwrap(), [Bson::Int32(60_000), Bson::Int32(70_000)]);
}

#[test]
fn a_failed_insert_names_its_place_beyond_the_first_batch_too() {
    let pando = Pando::open_in_memory().unwrap();
    let notes = pando.database("d").collection::<Document>("notes");
    let documents = |last: i32| (0..2_500).map(move |n| doc! { "_id": if n == 2_300 { last } else { n } });
    match notes.insert_many(documents(5)).run() {
        Err(Error::InsertMany { errors, inserted_ids }) => {
            assert_eq!((errors.len(), errors[0].index, errors[0].code), (1, 2_300, 11_000));
            assert_eq!((inserted_ids.len(), inserted_ids.get(&2_299)), (2_300, Some(&Bson::Int32(2_299))));
        }
        other => panic!("a duplicate was not refused: {other:?}"),
    }
    assert_eq!(notes.count_documents(doc! {}).run().unwrap(), 2_300);
    notes.drop().run().unwrap();
    let refused = notes.insert_many(documents(5)).ordered(false).run().unwrap_err();
    assert!(refused.is_duplicate_key());
    assert_eq!(refused.code(), Some(11_000));
    let Error::InsertMany { inserted_ids, .. } = &refused else { panic!("{refused:?}") };
    assert!(inserted_ids.len() == 2_499 && !inserted_ids.contains_key(&2_300));
    assert!(
        refused.to_string().starts_with("the write at index 2300 of the list failed: E11000"),
        "{refused}"
    );
    assert_eq!(notes.count_documents(doc! {}).run().unwrap(), 2_499);
}

#[test]
fn an_update_without_an_operator_is_refused_and_changes_no_document() {
    let (pando, cities) = cities();
    let filter = || doc! { "_id": "Utrecht" };
    let forgotten = doc! { "people": 1 };
    let refusals = [
        cities.update_one(filter(), forgotten.clone()).run().unwrap_err(),
        cities.update_many(filter(), forgotten.clone()).run().unwrap_err(),
        cities.find_one_and_update(filter(), forgotten.clone()).run().unwrap_err(),
        cities.update_one(filter(), Document::new()).run().unwrap_err(),
        pando
            .bulk_write([UpdateOneModel::builder()
                .namespace(cities.namespace())
                .filter(filter())
                .update(forgotten)
                .build()])
            .run()
            .unwrap_err(),
    ];
    for refused in &refusals {
        assert!(matches!(refused, Error::InvalidArgument(_)), "{refused}");
    }
    assert!(refusals[0].to_string().contains("$set") && refusals[0].to_string().contains("replace_one"));
    assert_eq!(cities.find_one(filter()).run().unwrap(), Some(city("Utrecht", "NL", 374)));
    let documents = cities.clone_with_type::<Document>();
    let refused = documents.replace_one(filter(), doc! { "$set": { "people": 1 } }).run().unwrap_err();
    assert!(refused.to_string().contains("update_one"), "{refused}");
}

#[test]
fn updates_take_operators_pipelines_and_options() {
    let (_pando, cities) = cities();
    let changed =
        cities.update_many(doc! { "country": "NL" }, doc! { "$inc": { "people": 1 } }).run().unwrap();
    assert_eq!((changed.matched_count, changed.modified_count, changed.upserted_id), (2, 2, None));
    let pipeline = vec![doc! { "$set": { "people": { "$multiply": ["$people", 2] } } }];
    cities.update_one(doc! { "_id": "Akureyri" }, pipeline).run().unwrap();
    assert_eq!(cities.find_one(doc! { "_id": "Akureyri" }).run().unwrap().unwrap().people, 38);
    let set = doc! { "$set": { "country": "NO", "people": 1 } };
    let upserted = cities.update_one(doc! { "_id": "Oslo" }, set).upsert(true).run().unwrap();
    assert_eq!((upserted.matched_count, upserted.upserted_id), (0, Some(Bson::from("Oslo"))));
    let replaced = cities.replace_one(doc! { "_id": "Oslo" }, city("Oslo", "NO", 700)).run().unwrap();
    assert_eq!((replaced.matched_count, replaced.modified_count), (1, 1));
    let rows = cities.clone_with_type::<Document>();
    rows.insert_one(doc! { "_id": "rows", "marks": [1, 5, 9] }).run().unwrap();
    rows.update_one(doc! { "_id": "rows" }, doc! { "$set": { "marks.$[large]": 0 } })
        .array_filters(vec![doc! { "large": { "$gt": 4 } }])
        .run()
        .unwrap();
    let row = rows.find_one(doc! { "_id": "rows" }).run().unwrap().unwrap();
    assert_eq!(row.get_array("marks").unwrap(), &vec![Bson::Int32(1), Bson::Int32(0), Bson::Int32(0)]);
}

#[test]
fn searches_take_sort_limit_skip_projection_and_hint() {
    let (_pando, cities) = cities();
    let all = || cities.find(doc! {}).sort(doc! { "people": -1 });
    assert_eq!(names(all().run().unwrap()), ["Utrecht", "Groningen", "Reykjavík", "Akureyri"]);
    assert_eq!(names(all().skip(1).limit(2).batch_size(1).run().unwrap()), ["Groningen", "Reykjavík"]);
    assert_eq!(names(all().limit(-3).run().unwrap()).len(), 3);
    for no_limit in [Duration::ZERO, Duration::from_secs(1 << 40), Duration::MAX] {
        assert_eq!(names(all().max_time(no_limit).run().unwrap()).len(), 4, "{no_limit:?}");
    }
    let index = cities.create_index(doc! { "people": 1 }).run().unwrap().index_name;
    assert_eq!(names(cities.find(doc! {}).hint(index.as_str()).run().unwrap())[0], "Akureyri");
    assert_eq!(names(cities.find(doc! {}).hint(doc! { "people": 1 }).limit(1).run().unwrap()), ["Akureyri"]);
    assert!(cities.find(doc! {}).hint("no_such_index").run().is_err());
    let names_only = cities.clone_with_type::<Document>();
    let found = names_only.find_one(doc! {}).sort(doc! { "people": 1 }).projection(doc! { "people": 1 });
    assert_eq!(found.run().unwrap(), Some(doc! { "_id": "Akureyri", "people": 19_i64 }));
    assert_eq!(cities.find_one(doc! { "_id": "Oslo" }).run().unwrap(), None);
}

#[test]
fn the_changed_document_is_given_before_or_after_the_change() {
    let (_pando, cities) = cities();
    let grow = || doc! { "$inc": { "people": 1 } };
    let smallest = doc! { "people": 1 };
    let before = cities.find_one_and_update(doc! {}, grow()).sort(smallest.clone()).run().unwrap();
    assert_eq!(before.unwrap(), city("Akureyri", "IS", 19));
    let after = cities
        .find_one_and_update(doc! { "_id": "Akureyri" }, grow())
        .return_document(ReturnDocument::After)
        .run()
        .unwrap();
    assert_eq!(after.unwrap().people, 21);
    let none = cities.find_one_and_update(doc! { "_id": "Oslo" }, grow()).run().unwrap();
    assert_eq!(none, None);
    let new = cities
        .find_one_and_replace(doc! { "_id": "Oslo" }, city("Oslo", "NO", 700))
        .upsert(true)
        .return_document(ReturnDocument::After)
        .run()
        .unwrap();
    assert_eq!(new.unwrap().people, 700);
    let gone = cities.find_one_and_delete(doc! { "country": "NL" }).sort(smallest).run().unwrap();
    assert_eq!(gone.unwrap().name, "Groningen");
    assert_eq!(cities.delete_one(doc! { "_id": "Groningen" }).run().unwrap().deleted_count, 0);
}

#[test]
fn distinct_values_counts_and_aggregates() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Total {
        #[serde(rename = "_id")]
        country: String,
        people: i64,
    }
    let (pando, cities) = cities();
    let mut countries = cities.distinct("country", doc! {}).run().unwrap();
    countries.sort_by_key(ToString::to_string);
    assert_eq!(countries, [Bson::from("IS"), Bson::from("NL")]);
    assert_eq!(cities.count_documents(doc! { "country": "NL" }).limit(1).run().unwrap(), 1);
    assert_eq!(cities.estimated_document_count().run().unwrap(), 4);
    let stages = [
        doc! { "$group": { "_id": "$country", "people": { "$sum": "$people" } } },
        doc! { "$sort": { "_id": 1 } },
    ];
    let totals = cities.aggregate(stages.clone()).with_type::<Total>().batch_size(1).run().unwrap();
    let totals: Vec<Total> = totals.map(Result::unwrap).collect();
    assert_eq!(totals[0], Total { country: "IS".into(), people: 158 });
    assert_eq!(cities.aggregate(stages).run().unwrap().count(), 2, "documents unless a type is said");
    let made = [doc! { "$documents": [{ "n": 1 }, { "n": 2 }, { "n": 3 }] }];
    let made = pando.database("atlas").aggregate(made).batch_size(1).run().unwrap();
    let numbers: Vec<i32> = made.map(|one| one.unwrap().get_i32("n").unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3]);
}

#[test]
fn indexes_are_built_listed_and_dropped() {
    let (_pando, cities) = cities();
    assert_eq!(cities.create_index(doc! { "people": -1 }).run().unwrap().index_name, "people_-1");
    let unique = IndexOptions::builder().unique(true).name("by_country".to_owned()).build();
    let refused =
        cities.create_index(IndexModel::builder().keys(doc! { "country": 1 }).options(unique).build());
    assert!(refused.run().unwrap_err().is_duplicate_key());
    let options = IndexOptions::builder().unique(true).sparse(true).build();
    let model = IndexModel::builder().keys(doc! { "country": 1, "people": 1 }).options(options).build();
    cities.create_indexes([model, doc! { "country": 1 }.into()]).run().unwrap();
    let listed: Vec<IndexModel> = cities.list_indexes().run().unwrap().map(Result::unwrap).collect();
    let wide = listed.iter().find(|index| index.keys.len() == 2).unwrap();
    let options = wide.options.as_ref().unwrap();
    assert_eq!((options.unique, options.sparse, options.hidden), (Some(true), Some(true), None));
    let names = || cities.list_index_names().run().unwrap();
    assert_eq!(names(), ["_id_", "people_-1", "country_1_people_1", "country_1"]);
    cities.drop_index("country_1").run().unwrap();
    assert!(cities.drop_index("country_1").run().is_err());
    assert!(matches!(cities.drop_index("*").run(), Err(Error::InvalidArgument(_))));
    assert_eq!(names().len(), 3);
    cities.drop_indexes().run().unwrap();
    assert_eq!(names(), ["_id_"]);
}

#[test]
fn a_listed_index_can_be_built_again_with_all_its_options() {
    let (_pando, cities) = cities();
    let index = |keys: Document, further: Document| {
        IndexModel::builder().keys(keys).options(IndexOptions::builder().further(further).build()).build()
    };
    let flat = doc! { "bits": 20, "min": -500.0, "max": 500.0 };
    let indexes = [
        index(doc! { "at": "2d" }, flat.clone()),
        index(doc! { "place": "2dsphere" }, doc! { "2dsphereIndexVersion": 3 }),
        index(doc! { "people": 1 }, doc! { "prepareUnique": true }),
    ];
    cities.create_indexes(indexes).run().unwrap();
    let list = || cities.list_indexes().run().unwrap().map(Result::unwrap).collect::<Vec<_>>();
    let listed = list();
    let further = |place: usize| listed[place].options.as_ref().unwrap().further.clone();
    for (name, value) in &flat {
        assert_eq!(further(1).get(name), Some(value));
    }
    assert_eq!(further(2).get_i32("2dsphereIndexVersion").unwrap(), 3);
    assert!(further(3).get_bool("prepareUnique").unwrap());
    cities.drop_indexes().run().unwrap();
    cities.create_indexes(listed[1..].to_vec()).run().unwrap();
    assert_eq!(list(), listed);
}

#[test]
fn writes_of_several_kinds_go_in_one_call() {
    let (pando, cities) = cities();
    let at = cities.namespace();
    let filter = |name: &str| doc! { "_id": name };
    let grow = doc! { "$inc": { "people": 1 } };
    let models: Vec<WriteModel> = vec![
        cities.insert_one_model(city("Oslo", "NO", 700)).unwrap().into(),
        cities.insert_one_model(city("Bergen", "NO", 290)).unwrap().into(),
        UpdateManyModel::builder()
            .namespace(at.clone())
            .filter(doc! { "country": "NO" })
            .update(grow.clone())
            .build()
            .into(),
        UpdateOneModel::builder()
            .namespace(at.clone())
            .filter(filter("Turku"))
            .update(grow)
            .upsert(true)
            .build()
            .into(),
        ReplaceOneModel::builder()
            .namespace(at.clone())
            .filter(filter("Turku"))
            .replacement(doc! { "country": "FI", "people": 200_i64 })
            .build()
            .into(),
        DeleteOneModel::builder().namespace(at.clone()).filter(filter("Oslo")).build().into(),
        DeleteManyModel::builder().namespace(at).filter(doc! { "country": "IS" }).build().into(),
    ];
    let done = pando.bulk_write(models).run().unwrap();
    assert_eq!((done.inserted_count, done.upserted_count, done.deleted_count), (2, 1, 3));
    assert_eq!((done.matched_count, done.modified_count), (3, 3));
    assert_eq!(cities.find_one(filter("Turku")).run().unwrap(), Some(city("Turku", "FI", 200)));

    let twice = |name: &str| cities.insert_one_model(city(name, "X", 0)).unwrap();
    let models = || ["A", "B", "A", "C"].map(twice);
    match pando.bulk_write(models()).run() {
        Err(Error::BulkWrite { errors, done }) => {
            assert_eq!((errors.len(), errors[0].index, done.inserted_count), (1, 2, 2));
        }
        other => panic!("a duplicate was not refused: {other:?}"),
    }
    match pando.bulk_write(models()).ordered(false).run() {
        Err(Error::BulkWrite { errors, done }) => {
            let places: Vec<usize> = errors.iter().map(|error| error.index).collect();
            assert_eq!((places, done.inserted_count), (vec![0, 1, 2], 1));
        }
        other => panic!("duplicates were not refused: {other:?}"),
    }
    let nowhere = DeleteOneModel::builder().filter(doc! {}).build();
    assert!(matches!(pando.bulk_write([nowhere]).run(), Err(Error::InvalidArgument(_))));
}

#[test]
fn every_batch_is_as_large_as_the_search_says() {
    let pando = Pando::open_in_memory().unwrap();
    let database = pando.database("d");
    let notes = database.collection::<Document>("notes");
    notes.insert_many((0..7).map(|n| doc! { "_id": n })).run().unwrap();
    database.run_command(doc! { "profile": 2 }).run().unwrap();
    assert_eq!(notes.find(doc! {}).batch_size(2).run().unwrap().count(), 7);
    assert_eq!(notes.aggregate([]).batch_size(3).run().unwrap().count(), 7);
    database.run_command(doc! { "profile": 0 }).run().unwrap();
    let profile = database.collection::<Document>("system.profile");
    let batches = profile.find(doc! { "op": "getmore" }).sort(doc! { "$natural": 1 }).run().unwrap();
    let sizes: Vec<i32> = batches.map(|batch| batch.unwrap().get_i32("nreturned").unwrap()).collect();
    assert_eq!(sizes, [2, 2, 1, 3, 1]);
}

#[test]
fn a_closed_store_answers_with_an_error_and_its_folder_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let pando = Pando::open(folder.path()).unwrap();
    let notes = pando.database("d").collection::<Document>("notes");
    notes.insert_many((0..500).map(|n| doc! { "_id": n })).run().unwrap();
    let mut open_cursor = notes.find(doc! {}).batch_size(2).run().unwrap();
    let other = pando.clone();
    pando.close().unwrap();
    assert!(matches!(notes.insert_one(doc! {}).run(), Err(Error::Closed)));
    assert!(matches!(notes.find_one(doc! {}).run(), Err(Error::Closed)));
    assert!(matches!(notes.count_documents(doc! {}).run(), Err(Error::Closed)));
    assert!(matches!(open_cursor.nth(2), Some(Err(Error::Closed))));
    assert!(open_cursor.next().is_none());
    assert!(matches!(other.raw_session().handle(&request(), &mut Vec::new()), Err(Error::Closed)));
    other.close().unwrap();
    // Handles of the closed store are still there.
    let again = Pando::open(folder.path()).unwrap();
    assert_eq!(
        again.database("d").collection::<Document>("notes").count_documents(doc! {}).run().unwrap(),
        500
    );
}

fn request() -> pandodb::Request<'static> {
    let body = Box::leak(Box::new(pando_document::doc! { "ping": 1, "$db": "d" }.to_raw()));
    pandodb::Request::of(body)
}

#[test]
fn a_close_ends_the_calls_of_other_threads() {
    let folder = tempfile::tempdir().unwrap();
    let pando = Pando::open(folder.path()).unwrap();
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let notes = pando.database("d").collection::<Document>("notes");
            std::thread::spawn(move || {
                for n in 0.. {
                    let id = format!("{thread} {n}");
                    if let Err(error) = notes.insert_one(doc! { "_id": id }).run() {
                        return (n, error);
                    }
                }
                unreachable!("the store is closed before")
            })
        })
        .collect();
    let notes = pando.database("d").collection::<Document>("notes");
    while notes.estimated_document_count().run().unwrap() < 20 {
        std::thread::yield_now();
    }
    pando.close().unwrap();
    let mut acknowledged = 0;
    for thread in threads {
        let (inserted, error) = thread.join().unwrap();
        assert!(matches!(error, Error::Closed | Error::Write(_)), "{error:?}");
        acknowledged += inserted;
    }
    let pando = Pando::open(folder.path()).unwrap();
    let notes = pando.database("d").collection::<Document>("notes");
    assert!(notes.count_documents(doc! {}).run().unwrap() >= acknowledged, "an acknowledged insert is lost");
}

#[test]
fn errors_say_what_is_the_case() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { engine: EngineName::Memory, ..Options::default() };
    let pando = Pando::open_with(folder.path(), &options).unwrap();
    let cities = pando.database("atlas").collection::<City>("cities");
    cities.clone_with_type::<Document>().insert_one(doc! { "_id": "Oslo", "country": 7 }).run().unwrap();
    let misfit = cities.find_one(doc! {}).run().unwrap_err().to_string();
    assert!(
        misfit.starts_with("a document of atlas.cities (_id: \"Oslo\") does not fit the type "),
        "{misfit}"
    );
    assert!(misfit.contains("City") && misfit.contains("string"), "{misfit}");
    let duplicate = cities.insert_one(city("Oslo", "NO", 1)).run().unwrap_err();
    assert!(duplicate.is_duplicate_key() && duplicate.to_string().contains("Oslo"), "{duplicate}");
    let no_document = pando.database("d").collection::<i32>("c").insert_one(7).run().unwrap_err();
    assert!(matches!(no_document, Error::Bson(_)), "{no_document}");
    cities.clone_with_type::<Document>().drop().run().unwrap();
    cities.drop().run().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let refused = Pando::open(&file).map(drop).unwrap_err().to_string();
    assert!(refused.contains("cannot open the store: ") && refused.contains("is a file"), "{refused}");
    let empty = cities.insert_many(Vec::<City>::new()).run().unwrap_err();
    assert!(matches!(empty, Error::InvalidArgument(_)), "{empty}");
}

#[test]
fn a_document_that_does_not_fit_names_the_field() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only the fit counts")]
    struct Total {
        name: String,
        sum: Option<i32>,
        tags: Vec<String>,
    }
    let pando = Pando::open_in_memory().unwrap();
    let documents = pando.database("d").collection::<Document>("totals");
    let totals = documents.clone_with_type::<Total>();
    let misfit = |document: Document| {
        documents.delete_many(doc! {}).run().unwrap();
        documents.insert_one(document).run().unwrap();
        match totals.find_one(doc! {}).run() {
            Err(error @ Error::Misfit { .. }) => {
                let text = error.to_string();
                let Error::Misfit { field, .. } = error else { unreachable!("it is one") };
                (field, text)
            }
            other => panic!("it fits: {other:?}"),
        }
    };
    let (field, text) = misfit(doc! { "name": "a", "sum": 1, "note": Bson::Null, "tags": ["b", 7] });
    assert_eq!(field.as_deref(), Some("tags"));
    assert!(text.contains("Total in the field 'tags': "), "{text}");
    // Two of the same kind: the first counts.
    let (field, _) = misfit(doc! { "note": 1, "sum": "x", "name": Bson::Null, "tags": [] });
    assert_eq!(field.as_deref(), Some("sum"));
    let (field, _) = misfit(doc! { "name": Bson::Null, "sum": 1, "tags": Bson::Null });
    assert_eq!(field.as_deref(), Some("name"));
    // serde names a field that is missing itself.
    let (field, text) = misfit(doc! { "name": "a", "sum": 1 });
    assert!(field.is_none() && text.contains("`tags`"), "{field:?}: {text}");
}

#[test]
fn a_collection_is_made_with_its_options() {
    let pando = Pando::open_in_memory().unwrap();
    let database = pando.database("d");
    database.create_collection("log").capped(true).size(1 << 20).max(2).run().unwrap();
    let again = database.create_collection("log").capped(true).size(1 << 20).max(2).run().unwrap_err();
    assert!(matches!(again, Error::Command { code: 48, .. }), "{again:?}");
    let log = database.collection::<Document>("log");
    log.insert_many((0..5).map(|id| doc! { "_id": id })).run().unwrap();
    assert_eq!(log.count_documents(doc! {}).run().unwrap(), 2);
    let positive = doc! { "sum": { "$gt": 0 } };
    let strict = doc! { "validationLevel": "strict" };
    database.create_collection("orders").validator(positive).further_options(strict).run().unwrap();
    let orders = database.collection::<Document>("orders");
    assert!(orders.insert_one(doc! { "sum": 0 }).run().is_err());
    let large = [doc! { "$match": { "sum": { "$gt": 9 } } }];
    database.create_collection("large").view_on("orders").pipeline(large).run().unwrap();
    orders.insert_many([doc! { "sum": 1 }, doc! { "sum": 10 }]).run().unwrap();
    assert_eq!(database.collection::<Document>("large").count_documents(doc! {}).run().unwrap(), 1);
    assert!(database.create_collection("odd").further_options(doc! { "noSuchOption": 1 }).run().is_err());
}

#[test]
fn each_call_takes_a_collation() {
    let (pando, cities) = cities();
    let rules = || doc! { "locale": "en", "strength": 1 };
    let name = || doc! { "_id": "utrecht" };
    let more = || doc! { "$inc": { "people": 1 } };
    let by_country = [doc! { "$match": { "country": "nl" } }];
    let bulk = UpdateOneModel::builder()
        .namespace(cities.namespace())
        .filter(name())
        .update(more())
        .collation(rules())
        .build();
    let outcomes = [
        cities.find(name()).collation(rules()).run().map(|found| found.count() as u64),
        cities.find_one(name()).collation(rules()).run().map(|found| found.map_or(0, |_| 1)),
        cities.count_documents(name()).collation(rules()).run(),
        cities.aggregate(by_country).collation(rules()).run().map(|found| found.count() as u64 / 2),
        cities.distinct("people", name()).collation(rules()).run().map(|found| found.len() as u64),
        cities.update_one(name(), more()).collation(rules()).run().map(|done| done.matched_count),
        cities
            .replace_one(name(), city("Utrecht", "NL", 9))
            .collation(rules())
            .run()
            .map(|done| done.matched_count),
        cities
            .find_one_and_update(name(), more())
            .collation(rules())
            .run()
            .map(|found| found.map_or(0, |_| 1)),
        pando.bulk_write([bulk]).run().map(|done| done.matched_count),
        cities.delete_one(name()).collation(rules()).run().map(|done| done.deleted_count),
    ];
    for (place, outcome) in outcomes.into_iter().enumerate() {
        if cfg!(feature = "collation") {
            assert_eq!(outcome.unwrap(), 1, "call {place}");
        } else {
            let refused = outcome.unwrap_err().to_string();
            assert!(refused.contains("the feature 'collation'"), "call {place}: {refused}");
        }
    }
    let options = IndexOptions::builder().collation(rules()).unique(true).build();
    let model = IndexModel::builder().keys(doc! { "country": 1, "people": 1 }).options(options).build();
    assert_eq!(cities.create_index(model).run().is_ok(), cfg!(feature = "collation"));
}

#[test]
fn a_text_index_takes_weights_and_languages() {
    let (_pando, cities) = cities();
    let options = IndexOptions::builder()
        .weights(doc! { "country": 3 })
        .default_language("none".to_owned())
        .language_override("idiom".to_owned())
        .build();
    let model = IndexModel::builder().keys(doc! { "country": "text" }).options(options).build();
    let made = cities.create_index(model).run();
    if cfg!(not(feature = "text")) {
        let refused = made.unwrap_err().to_string();
        assert!(refused.contains("the feature 'text'"), "{refused}");
        return;
    }
    made.unwrap();
    let listed = cities.list_indexes().run().unwrap().nth(1).unwrap().unwrap().options.unwrap();
    assert_eq!(listed.weights, Some(doc! { "country": 3 }));
    assert_eq!(listed.default_language.as_deref(), Some("none"));
    assert_eq!(listed.language_override.as_deref(), Some("idiom"));
}
