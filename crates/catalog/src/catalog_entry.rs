//! The catalog tree's entries: one BSON document for each collection.
//!
//! ```text
//! key    "c/" + database + "." + collection
//! value  { v: 1 to 5, uuid: BinData(4), tree: "collection-1", options: {…}, idTruncated: bool,
//!          indexes: [ { spec: { v: 2, key: {…}, name: … , unique?: true, sparse?: true, hidden?: true },
//!                       tree: "index-2", multikey: [bool, …], multikeyComponents: [i64, …],
//!                       truncated: bool } ],
//!          building: [ { spec, tree, multikey, multikeyComponents, truncated,
//!                        changes: "changes-3", builder: i64 } ],
//!          partitions: { next: i64, live: [ { id: i64, key?: BinData, values?: {…}, created?: Date } ] } }
//! ```
//!
//! `spec` is what the user asked for. The index factory makes the index from it, so no other field repeats
//! it; only the flags stand beside it. `options` are those of the user, and tell the layout (`layout`).
//!
//! Version 2 is that of an entry with a layout in which `_id` is not the primary key, or with a clustering
//! index: a program that knows version 1 alone would read them wrong, and refuses the entry instead. Every
//! other entry has version 1. In such a layout the first of `indexes` is that on `_id`. Version 3 is that of
//! a capped collection, whose limits an older program would pass over. Version 4 is that of an entry with a
//! collation: a program that does not know it would take sort keys for strings. Version 5 is that of a
//! collection with partitions, whose numbers stand before the keys of index entries (`partitions`).
//!
//! `building` is there in a store that several servers share, while one of them (`builder`) builds indexes:
//! the writers of all note their changes in the tree `changes` (`sharing`).
//!
//! `multikey` says of each field whether it met an array, and `multikeyComponents` at which components of the
//! path (a bit for each, see [`Multikey`]). An older program writes and reads only the first. Without the
//! second, a field that met an array may have met one at any component.

use pando_collation::TextOrder;
use pando_document::{Binary, Document, RawArray, RawDocument, RawDocumentBuf, RawValue, Value};

use crate::collection::Collection;
use crate::error::CatalogError;
use crate::index::Index;
use crate::index_description::{EntryContents, RaisedFlags, Truncation};
use crate::index_kind::{IndexDefinition, IndexFactory};
use crate::layout::{ID_INDEX, Layout, is_partitioned};
use crate::multikey::Multikey;
use crate::partitions::{Partition, PartitionBound, PartitionList};

/// Version of an entry whose documents lie by `_id` and in no index.
const VERSION_PLAIN: i32 = 1;
/// Version of an entry in another layout, or with a clustering index.
const VERSION_OF_LAYOUTS: i32 = 2;
/// Version of the entry of a capped collection.
const VERSION_OF_CAPPED: i32 = 3;
/// Version of an entry with a collation, of the collection or of an index.
const VERSION_OF_COLLATIONS: i32 = 4;
/// Version of the entry of a collection with partitions.
const VERSION_OF_PARTITIONS: i32 = 5;

/// The name of the tree that holds the entries.
pub const CATALOG_TREE: &str = "catalog";

/// The key of a collection's entry.
pub fn key_of(namespace: &str) -> Vec<u8> {
    let mut key = b"c/".to_vec();
    key.extend_from_slice(namespace.as_bytes());
    key
}

/// The namespace of an entry's key.
pub fn namespace_of(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key.strip_prefix(b"c/")?).ok()
}

/// An entry, read.
pub(crate) struct Entry {
    pub uuid: [u8; 16],
    pub tree: String,
    pub options: RawDocumentBuf,
    pub layout: Layout,
    pub text_order: TextOrder,
    pub id_truncated: Truncation,
    pub indexes: Vec<(IndexDefinition, String)>,
    pub building: Vec<BuildingEntry>,
    pub partitions: Option<PartitionList>,
}

/// An index under construction in an entry.
pub(crate) struct BuildingEntry {
    pub definition: IndexDefinition,
    pub tree: String,
    pub changes: String,
    pub builder: u64,
}

/// Flags that are about to be raised in the index of this name.
pub(crate) type Raising<'a> = Option<(&'a str, &'a RaisedFlags)>;

/// The entry of a collection as it is now, with flags that are logged before they are raised.
pub(crate) fn encode(
    collection: &Collection,
    id_truncated: Truncation,
    raising: Raising<'_>,
) -> RawDocumentBuf {
    let list = collection.shared_partitions().map(|shared| shared.list());
    encode_with(collection, id_truncated, raising, list.as_ref().map(|list| &***list))
}

/// The same with these partitions.
pub(crate) fn encode_with(
    collection: &Collection,
    id_truncated: Truncation,
    raising: Raising<'_>,
    partitions: Option<&PartitionList>,
) -> RawDocumentBuf {
    let mut entry = Document::new();
    entry.push("v", Value::Int32(version_of(collection)));
    entry.push("uuid", Value::Binary(Binary { subtype: 4, bytes: collection.uuid().to_vec() }));
    entry.push("tree", Value::from(collection.primary_tree_name()));
    entry.push("options", document_value(collection.options()));
    entry.push("idTruncated", Value::Boolean(id_truncated == Truncation::Truncated));
    let indexes = collection.indexes().iter().map(|index| Value::Document(index_value(index, raising)));
    entry.push("indexes", Value::Array(indexes.collect()));
    // In any other store nobody but this process could go on with a build.
    if collection.sharing().is_some() && !collection.building().is_empty() {
        let building = collection.building().iter().map(|building| {
            let mut one = index_value(&building.index, raising);
            one.push("changes", Value::from(building.changes_name.as_str()));
            one.push("builder", Value::Int64(building.builder.cast_signed()));
            Value::Document(one)
        });
        entry.push("building", Value::Array(building.collect()));
    }
    if let Some(partitions) = partitions {
        entry.push("partitions", Value::Document(partitions_value(partitions)));
    }
    entry.to_raw()
}

fn index_value(index: &Index, raising: Raising<'_>) -> Document {
    let mut description = index.describe();
    if let Some((_, flags)) = raising.filter(|(name, _)| *name == description.name) {
        description.raise(flags);
    }
    let mut one = Document::new();
    one.push("spec", document_value(&description.specification));
    one.push("tree", Value::from(index.tree_name()));
    let multikey = description.multikey.iter().map(|flags| Value::Boolean(flags.has_arrays())).collect();
    one.push("multikey", Value::Array(multikey));
    let components = description.multikey.iter().map(|flags| Value::Int64(flags.bits() as i64));
    one.push("multikeyComponents", Value::Array(components.collect()));
    one.push("truncated", Value::Boolean(description.truncated == Truncation::Truncated));
    one
}

fn version_of(collection: &Collection) -> i32 {
    let has_copies = collection.indexes().iter().any(|index| index.contents() == EntryContents::Copy);
    let has_collations = !collection.text_order().is_simple()
        || collection.indexes().iter().any(|index| !index.text_order().is_simple());
    match (collection.capped_limits(), collection.layout().is_by_id() && !has_copies) {
        _ if collection.shared_partitions().is_some() => VERSION_OF_PARTITIONS,
        _ if has_collations => VERSION_OF_COLLATIONS,
        (Some(_), _) => VERSION_OF_CAPPED,
        (None, true) => VERSION_PLAIN,
        (None, false) => VERSION_OF_LAYOUTS,
    }
}

fn partitions_value(partitions: &PartitionList) -> Document {
    let live = partitions.live.iter().map(|partition| {
        let mut one = Document::new();
        one.push("id", Value::Int64(partition.id.into()));
        if let Some(bound) = &partition.bound {
            one.push("key", Value::Binary(Binary { subtype: 0, bytes: bound.key.clone() }));
            one.push("values", document_value(&bound.values));
        }
        if let Some(created) = partition.created_ms {
            one.push("created", Value::DateTime(created));
        }
        Value::Document(one)
    });
    let live = Value::Array(live.collect());
    let mut all = Document::new();
    all.push("next", Value::Int64(partitions.next_id.into()));
    all.push("live", live);
    all
}

fn read_partitions(entry: &RawDocument) -> Result<Option<PartitionList>, String> {
    let Some(all) = entry.get("partitions").map_err(|error| error.to_string())? else { return Ok(None) };
    let RawValue::Document(all) = all else { return Err("partitions is not a document".to_owned()) };
    let number = |document: &RawDocument, name| match field(document, name)? {
        RawValue::Int64(number) => {
            u32::try_from(number).map_err(|_| format!("{name} is no number of a partition"))
        }
        _ => Err(format!("{name} is not a 64-bit integer")),
    };
    let RawValue::Array(live) = field(all, "live")? else { return Err("live is not an array".to_owned()) };
    let mut read = Vec::new();
    for partition in live.iter() {
        let RawValue::Document(partition) = partition.map_err(|error| error.to_string())? else {
            return Err("a partition is not a document".to_owned());
        };
        let bound = match partition.get("key").map_err(|error| error.to_string())? {
            None => None,
            Some(RawValue::Binary(key)) => {
                let values = document(partition, "values")?.to_owned();
                Some(PartitionBound { key: key.bytes.to_vec(), values })
            }
            Some(_) => return Err("the key of a partition is not binary".to_owned()),
        };
        let created_ms = match partition.get("created").map_err(|error| error.to_string())? {
            None => None,
            Some(RawValue::DateTime(created)) => Some(created),
            Some(_) => return Err("created is not a date".to_owned()),
        };
        read.push(Partition { id: number(partition, "id")?, bound, created_ms });
    }
    PartitionList::of_entry(read, number(all, "next")?).map(Some)
}

fn document_value(document: &RawDocument) -> Value {
    RawValue::Document(document).to_owned()
}

/// Reads an entry.
pub(crate) fn decode(
    namespace: &str,
    bytes: &[u8],
    factory: &dyn IndexFactory,
) -> Result<Entry, CatalogError> {
    read(bytes, factory)
        .map_err(|reason| CatalogError::DamagedEntry { namespace: namespace.to_owned(), reason })
}

/// The decoder, for `tools/fuzzing`: an index that it accepts has one multikey flag for each field.
#[cfg(feature = "fuzzing")]
pub fn decode_for_fuzzing(bytes: &[u8]) {
    let Ok(entry) = decode("a.b", bytes, &crate::index_kind::OrdinaryIndexes) else { return };
    for (index, _tree) in &entry.indexes {
        assert_eq!(index.description.fields.len(), index.description.multikey.len());
    }
}

fn read(bytes: &[u8], factory: &dyn IndexFactory) -> Result<Entry, String> {
    let entry = RawDocument::from_bytes(bytes).map_err(|error| error.to_string())?;
    let options = document(entry, "options")?;
    let layout = match field(entry, "v")? {
        RawValue::Int32(VERSION_PLAIN) => Layout::Clustered,
        RawValue::Int32(VERSION_OF_LAYOUTS..=VERSION_OF_PARTITIONS) => Layout::of_options(options)?,
        other => {
            return Err(format!(
                "it has version {other:?}, and this program reads versions {VERSION_PLAIN} to {VERSION_OF_PARTITIONS}"
            ));
        }
    };
    let uuid = match field(entry, "uuid")? {
        RawValue::Binary(binary) => {
            binary.bytes.try_into().map_err(|_| "uuid has not 16 bytes".to_owned())?
        }
        _ => return Err("uuid is not binary".to_owned()),
    };
    let mut indexes = Vec::new();
    let RawValue::Array(array) = field(entry, "indexes")? else {
        return Err("indexes is not an array".to_owned());
    };
    for index in array.iter() {
        let RawValue::Document(index) = index.map_err(|error| error.to_string())? else {
            return Err("an index is not a document".to_owned());
        };
        indexes.push(read_index(index, factory)?);
    }
    let has_id_index =
        indexes.first().is_some_and(|(index, _): &(IndexDefinition, _)| index.description.name == ID_INDEX);
    if has_id_index == layout.is_by_id() {
        return Err(format!("its layout is {}, and its indexes are those of another", layout.name()));
    }
    let building = read_building(entry, factory)?;
    let partitions = read_partitions(entry)?;
    if partitions.is_some() != is_partitioned(options) {
        return Err("its options and its partitions disagree".to_owned());
    }
    Ok(Entry {
        uuid,
        tree: string(entry, "tree")?.to_owned(),
        options: options.to_owned(),
        layout,
        text_order: TextOrder::of_stored(options)?,
        id_truncated: truncation(entry, "idTruncated")?,
        indexes,
        building,
        partitions,
    })
}

fn read_building(entry: &RawDocument, factory: &dyn IndexFactory) -> Result<Vec<BuildingEntry>, String> {
    let Some(all) = entry.get("building").map_err(|error| error.to_string())? else { return Ok(Vec::new()) };
    let RawValue::Array(all) = all else { return Err("building is not an array".to_owned()) };
    let mut building = Vec::new();
    for one in all.iter() {
        let RawValue::Document(one) = one.map_err(|error| error.to_string())? else {
            return Err("an index under construction is not a document".to_owned());
        };
        let (definition, tree) = read_index(one, factory)?;
        let RawValue::Int64(builder) = field(one, "builder")? else {
            return Err("builder is not a 64-bit integer".to_owned());
        };
        let changes = string(one, "changes")?.to_owned();
        building.push(BuildingEntry { definition, tree, changes, builder: builder.cast_unsigned() });
    }
    Ok(building)
}

fn read_index(index: &RawDocument, factory: &dyn IndexFactory) -> Result<(IndexDefinition, String), String> {
    let mut definition = factory.define(document(index, "spec")?)?;
    let description = &mut definition.description;
    let RawValue::Array(flags) = field(index, "multikey")? else {
        return Err("multikey is not an array".to_owned());
    };
    let flags = read_flags(flags)?;
    if flags.len() != description.fields.len() {
        return Err(format!("index {} has {} multikey flags", description.name, flags.len()));
    }
    let components = read_components(index)?;
    let known = components.filter(|components| components.len() == flags.len());
    description.multikey = flags
        .iter()
        .zip(&description.fields)
        .enumerate()
        .map(|(at, (has_arrays, field))| match (has_arrays, known.as_ref().map(|known| known[at])) {
            (false, _) => Multikey::NO,
            (true, Some(components)) if components.has_arrays() => components,
            (true, _) => Multikey::anywhere(&field.path),
        })
        .collect();
    description.truncated = truncation(index, "truncated")?;
    Ok((definition, string(index, "tree")?.to_owned()))
}

/// The components of each field at which arrays were met; `None` in an entry of an older program.
fn read_components(index: &RawDocument) -> Result<Option<Vec<Multikey>>, String> {
    let Some(components) = index.get("multikeyComponents").map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    let RawValue::Array(components) = components else {
        return Err("multikeyComponents is not an array".to_owned());
    };
    let components = components.iter().map(|bits| match bits {
        Ok(RawValue::Int64(bits)) => Ok(Multikey::of_bits(bits as u64)),
        _ => Err("the components of a multikey field are not a 64-bit integer".to_owned()),
    });
    components.collect::<Result<_, _>>().map(Some)
}

fn read_flags(flags: &RawArray) -> Result<Vec<bool>, String> {
    flags
        .iter()
        .map(|flag| match flag {
            Ok(RawValue::Boolean(flag)) => Ok(flag),
            _ => Err("a multikey flag is not a boolean".to_owned()),
        })
        .collect()
}

fn field<'d>(document: &'d RawDocument, name: &str) -> Result<RawValue<'d>, String> {
    document.get(name).map_err(|error| error.to_string())?.ok_or_else(|| format!("{name} is missing"))
}

fn string<'d>(document: &'d RawDocument, name: &str) -> Result<&'d str, String> {
    match field(document, name)? {
        RawValue::String(text) => Ok(text),
        _ => Err(format!("{name} is not a string")),
    }
}

fn document<'d>(parent: &'d RawDocument, name: &str) -> Result<&'d RawDocument, String> {
    match field(parent, name)? {
        RawValue::Document(inner) => Ok(inner),
        _ => Err(format!("{name} is not a document")),
    }
}

fn truncation(document: &RawDocument, name: &str) -> Result<Truncation, String> {
    match field(document, name)? {
        RawValue::Boolean(true) => Ok(Truncation::Truncated),
        RawValue::Boolean(false) => Ok(Truncation::Whole),
        _ => Err(format!("{name} is not a boolean")),
    }
}
