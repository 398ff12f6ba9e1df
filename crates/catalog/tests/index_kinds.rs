//! Indexes of kinds that the catalog knows nothing of: their predicate and generator rule inserts,
//! replacements, removals, builds, counts and checks, also after the catalog was opened again.

use std::sync::Arc;

use pando_catalog::index_keys::{GeneratedKeys, IndexKey};
use pando_catalog::index_kind::{
    IndexDefinition, IndexFactory, IndexMethods, IndexPredicate, KeyGenerator, KeysWithoutArrays,
    OrdinaryIndexes,
};
use pando_catalog::{
    BlockingMode, Caller, Catalog, CatalogError, Direction, Durability, IndexDescription, KeyRange, Multikey,
    Operation, PrimaryKey, QueryMemory, SharedEngine, WriteError,
};
use pando_document::{RawDocument, RawDocumentBuf, RawValue, doc};
use pando_environment::{Environment, SeededRandom};
use pando_keyorder::TypeBits;
use pando_memory::MemoryEngine;

use crate::things::{assert_sound, insert, namespace};

/// Ordinary indexes, partial ones (`where: n`: documents whose `b` is below n), and indexes of words
/// (`words: "path"`: a key of two parts, path and word, for each word of a text).
struct Kinds;

#[derive(Debug)]
struct Below(i64);

impl IndexPredicate for Below {
    fn has(&self, document: &RawDocument) -> Result<bool, WriteError> {
        Ok(document.get("b")?.and_then(|b| b.as_i64_exact()).is_some_and(|b| b < self.0))
    }
}

#[derive(Debug)]
struct Words {
    path: String,
}

const TWO_PARTS: &[pando_keyorder::Direction] = &[pando_keyorder::Direction::Ascending; 2];

impl KeyGenerator for Words {
    fn keys(&self, document: &RawDocument) -> Result<GeneratedKeys, WriteError> {
        let text = document.get(&self.path)?.and_then(|text| text.as_str()).unwrap_or_default();
        let mut keys: Vec<IndexKey> = text.split_whitespace().map(|word| key(&[&self.path, word])).collect();
        keys.sort_unstable();
        keys.dedup();
        Ok(GeneratedKeys { keys, multikey: Vec::new() })
    }

    fn directions(&self) -> &[pando_keyorder::Direction] {
        TWO_PARTS
    }

    fn without_arrays(&self) -> KeysWithoutArrays {
        KeysWithoutArrays::Any
    }
}

fn key(parts: &[&str]) -> IndexKey {
    let (mut fields, mut type_bits) = (Vec::new(), TypeBits::new());
    for part in parts {
        let ascending = pando_keyorder::Direction::Ascending;
        pando_keyorder::encode(RawValue::String(part), ascending, &mut fields, &mut type_bits);
    }
    IndexKey { fields, type_bits: type_bits.as_bytes().to_vec() }
}

impl IndexFactory for Kinds {
    fn define(&self, specification: &RawDocument) -> Result<IndexDefinition, String> {
        let IndexDefinition { description, mut methods } = OrdinaryIndexes.define(specification)?;
        match specification.get("words") {
            Ok(None) => {}
            Ok(Some(RawValue::String(path))) => {
                methods =
                    IndexMethods { predicate: None, generator: Arc::new(Words { path: path.to_owned() }) };
            }
            _ => return Err("words is a path".to_owned()),
        }
        if let Ok(Some(below)) = specification.get("where") {
            methods.predicate = Some(Arc::new(Below(below.as_i64_exact().ok_or("where is a number")?)));
        }
        Ok(IndexDefinition { description, methods })
    }
}

fn wanted(catalog: &Catalog) -> Vec<IndexDescription> {
    [
        doc! { "v": 2, "key": doc! { "a": 1 }, "name": "partial", "where": 5 },
        doc! { "v": 2, "key": doc! { "u": 1 }, "name": "unique", "unique": true, "where": 3 },
        doc! { "v": 2, "key": doc! { "text": 1 }, "name": "words", "words": "text" },
        doc! { "v": 2, "key": doc! { "text": 1 }, "name": "some words", "words": "text", "where": 7 },
    ]
    .map(|specification| catalog.describe_index(&specification.to_raw()).unwrap())
    .to_vec()
}

fn open(engine: &SharedEngine) -> Catalog {
    Catalog::open_with(Arc::clone(engine), QueryMemory::new(engine, usize::MAX, None), Arc::new(Kinds))
        .unwrap()
}

fn engine_with_collection() -> (SharedEngine, Catalog) {
    let engine: SharedEngine = Arc::new(MemoryEngine::new(&Environment::real()));
    let catalog = open(&engine);
    catalog.create_collection(&namespace(), RawDocumentBuf::new(), [7; 16]).unwrap();
    (engine, catalog)
}

fn some_document(chance: &SeededRandom, id: i32) -> RawDocumentBuf {
    let words = ["one", "two", "three", "four"];
    let text: Vec<&str> = (0..chance.below(6)).map(|_| words[chance.below(4) as usize]).collect();
    let a = (chance.below(3) as i32, chance.below(3) as i32);
    doc! { "_id": id, "a": [a.0, a.1], "b": chance.below(9) as i32, "u": id, "text": (text.join(" ")) }
        .to_raw()
}

/// Inserts, replaces or removes the document of this `_id`.
fn write(catalog: &Catalog, chance: &SeededRandom, id: i32) {
    let lease = catalog.lease("test", "things", Caller::may_block(&Operation::default())).unwrap().unwrap();
    let mut transaction = catalog.begin_write().unwrap();
    let blocking = BlockingMode::MayBlock;
    let key = lease.locate(&*transaction, &lease.id_key(RawValue::Int32(id)), blocking).unwrap();
    let key = key.unwrap_or_default();
    let old = lease.fetch(&*transaction, &key, blocking).unwrap();
    let new = some_document(chance, id);
    match old.as_deref().map(|bytes| RawDocument::from_bytes(bytes).unwrap()) {
        None => lease.insert(&mut transaction, &new, blocking).unwrap(),
        Some(old) if chance.below(3) == 0 => lease.remove(&mut transaction, &key, old, blocking).unwrap(),
        Some(old) => lease.replace(&mut transaction, &key, old, &new, blocking).unwrap(),
    }
    transaction.commit(Durability::None).unwrap();
}

/// The entries of each index, by the counters.
fn entries(catalog: &Catalog) -> Vec<(String, u64)> {
    let collection = catalog.collection("test", "things").unwrap();
    catalog.counts(&collection, &Operation::default()).unwrap().index_entries
}

#[test]
fn every_statement_a_build_and_the_check_ask_the_methods_of_an_index() {
    let (engine, catalog) = engine_with_collection();
    let chance = SeededRandom::new(1);
    for id in 0..50 {
        write(&catalog, &chance, id);
    }
    catalog.create_indexes(&namespace(), wanted(&catalog), &Operation::default()).unwrap();
    assert_sound(&catalog);
    for _ in 0..300 {
        write(&catalog, &chance, chance.below(60) as i32);
        assert_sound(&catalog);
    }
    // The catalog that is opened again has the same indexes.
    let again = open(&engine);
    for _ in 0..100 {
        write(&again, &chance, chance.below(60) as i32);
        assert_sound(&again);
    }
    let counted = entries(&again);
    assert_eq!(counted.len(), 4);
    // A count of all documents finds the same.
    let trees = engine.list_trees().unwrap();
    engine.drop_tree(trees.iter().find(|tree| tree.name == "counters").unwrap().id).unwrap();
    assert_eq!(entries(&open(&engine)), counted);
}

#[test]
fn a_document_enters_and_leaves_a_partial_index_and_is_unique_only_within() {
    let (_, catalog) = engine_with_collection();
    catalog.create_indexes(&namespace(), wanted(&catalog), &Operation::default()).unwrap();
    insert(&catalog, &doc! { "_id": 1, "b": 1, "u": 7 }).unwrap();
    insert(&catalog, &doc! { "_id": 2, "b": 8, "u": 7 }).unwrap();
    let refused = insert(&catalog, &doc! { "_id": 3, "b": 2, "u": 7 });
    assert!(matches!(refused, Err(WriteError::DuplicateKey { .. })));
    let count = |name: &str| entries(&catalog).into_iter().find(|(index, _)| index == name).unwrap().1;
    assert_eq!((count("partial"), count("unique")), (1, 1));
    assert_sound(&catalog);
}

#[test]
fn the_reader_of_an_entry_finds_the_primary_key_behind_the_parts_of_the_generator() {
    let (_, catalog) = engine_with_collection();
    catalog.create_indexes(&namespace(), wanted(&catalog), &Operation::default()).unwrap();
    insert(&catalog, &doc! { "_id": 5, "text": "two one two" }).unwrap();
    let collection = catalog.collection("test", "things").unwrap();
    let reader = catalog.begin(pando_catalog::Begin::READ).unwrap();
    let index = collection.index("words").unwrap();
    let mut scan = collection.scan_index(index, KeyRange::all(), Direction::Forward);
    let mut found = Vec::new();
    while let Some(entry) = scan.next(&*reader, BlockingMode::MayBlock).unwrap() {
        assert_eq!(entry.primary_key, PrimaryKey::of(RawValue::Int32(5)).as_bytes());
        found.push(entry.fields.to_vec());
    }
    assert_eq!(found, [key(&["text", "one"]).fields, key(&["text", "two"]).fields]);
}

#[test]
fn a_specification_that_the_factory_refuses_builds_nothing_and_a_store_with_it_does_not_open() {
    let (engine, catalog) = engine_with_collection();
    let bad = doc! { "v": 2, "key": doc! { "a": 1 }, "name": "bad", "words": 7 }.to_raw();
    let refused = catalog.describe_index(&bad);
    assert!(matches!(refused, Err(CatalogError::IndexSpecification { .. })), "{refused:?}");
    let description = IndexDescription::from_specification(&bad).unwrap();
    let trees = engine.list_trees().unwrap().len();
    let refused = catalog.create_indexes(&namespace(), vec![description.clone()], &Operation::default());
    assert!(matches!(refused, Err(CatalogError::IndexSpecification { .. })), "{refused:?}");
    assert_eq!(engine.list_trees().unwrap().len(), trees);
    // A program whose factory takes it for an ordinary index.
    Catalog::open(Arc::clone(&engine))
        .unwrap()
        .create_indexes(&namespace(), vec![description], &Operation::default())
        .unwrap();
    let refused =
        Catalog::open_with(Arc::clone(&engine), QueryMemory::new(&engine, usize::MAX, None), Arc::new(Kinds))
            .map(drop);
    assert!(matches!(refused, Err(CatalogError::DamagedEntry { .. })), "{refused:?}");
}

#[test]
fn an_entry_of_a_program_that_knew_no_components_means_arrays_anywhere_on_the_path() {
    let (engine, catalog) = engine_with_collection();
    let index = catalog
        .describe_index(&doc! { "v": 2, "key": doc! { "a.b.c": 1, "d": 1 }, "name": "i" }.to_raw())
        .unwrap();
    catalog.create_indexes(&namespace(), vec![index], &Operation::default()).unwrap();
    insert(&catalog, &doc! { "_id": 1, "a": doc! { "b": [doc! { "c": 1 }] } }).unwrap();
    let flags = |catalog: &Catalog| {
        catalog.collection("test", "things").unwrap().describe_indexes()[1].multikey.clone()
    };
    assert_eq!(flags(&catalog), [Multikey::at(1), Multikey::NO]);
    assert_eq!(flags(&open(&engine)), [Multikey::at(1), Multikey::NO]);
    // The entry as an older program writes it.
    let tree = engine.list_trees().unwrap().into_iter().find(|tree| tree.name == "catalog").unwrap().id;
    let key = pando_catalog::catalog_entry::key_of("test.things");
    let mut transaction = engine.begin(pando_catalog::Begin::WRITE).unwrap();
    let bytes = transaction.get(tree, &key, BlockingMode::MayBlock).unwrap().unwrap();
    let older = without(RawDocument::from_bytes(&bytes).unwrap(), "multikeyComponents");
    transaction.put(tree, &key, older.as_bytes()).unwrap();
    transaction.commit(Durability::None).unwrap();
    let again = open(&engine);
    assert_eq!(flags(&again), [Multikey::anywhere("a.b.c"), Multikey::NO]);
    insert(&again, &doc! { "_id": 2, "d": [1] }).unwrap();
    assert_eq!(flags(&open(&engine)), [Multikey::anywhere("a.b.c"), Multikey::at(0)]);
}

/// The document without a field, also within its arrays of documents.
fn without(document: &RawDocument, name: &str) -> RawDocumentBuf {
    let mut made = pando_document::Document::new();
    for field in document.iter() {
        let (field, value) = field.unwrap();
        if field == name {
            continue;
        }
        match value {
            RawValue::Array(array) if field == "indexes" => {
                let inner = array.iter().map(|one| match one.unwrap() {
                    RawValue::Document(one) => RawValue::Document(&without(one, name)).to_owned(),
                    other => other.to_owned(),
                });
                made.push(field, pando_document::Value::Array(inner.collect()));
            }
            other => made.push(field, other.to_owned()),
        }
    }
    made.to_raw()
}
