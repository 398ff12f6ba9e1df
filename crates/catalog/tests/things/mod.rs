//! A collection `test.things`, its indexes, single statements, and the check that nothing disagrees.

use pando_catalog::{
    Begin, BlockingMode, Caller, Catalog, Durability, IndexDescription, Namespace, Operation, WriteError,
    verify_collection,
};
use pando_document::{Document, Value, doc};

pub fn namespace() -> Namespace {
    Namespace::new("test", "things").unwrap()
}

pub fn index(keys: Document, name: &str, options: &[&str]) -> IndexDescription {
    let mut specification = doc! { "v": 2, "key": keys, "name": name };
    for option in options {
        specification.push(*option, Value::Boolean(true));
    }
    IndexDescription::from_specification(&specification.to_raw()).unwrap()
}

/// One insert in a transaction of its own.
pub fn insert(catalog: &Catalog, document: &Document) -> Result<(), WriteError> {
    let lease = catalog.lease("test", "things", Caller::may_block(&Operation::default())).unwrap().unwrap();
    let mut transaction = catalog.begin_write().unwrap();
    lease.insert(&mut transaction, &document.to_raw(), BlockingMode::MayBlock)?;
    transaction.commit(Durability::None).unwrap();
    Ok(())
}

/// How many documents there are, each with its entries.
pub fn assert_sound(catalog: &Catalog) -> u64 {
    let collection = catalog.collection("test", "things").unwrap();
    let transaction = catalog.begin(Begin::READ).unwrap();
    let report = verify_collection(&collection, &*transaction, &Operation::default()).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    report.documents
}
