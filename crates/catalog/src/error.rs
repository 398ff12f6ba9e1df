//! Errors of the catalog: names, collections and indexes, documents. `commands` chooses
//! MongoDB's code for each.

use pando_document::{DocumentError, RawDocumentBuf};
use pando_storage::{ErrorKind, Interruption, StorageError};

use crate::expansion::ExpansionError;
use crate::stamps::StampKind;

/// A name that cannot be a namespace.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NameError {
    /// The database part.
    #[error("Invalid database name: '{name}'")]
    Database {
        /// As given.
        name: String,
    },
    /// There is no collection part.
    #[error("Invalid namespace specified '{namespace}'")]
    Empty {
        /// As given.
        namespace: String,
    },
    /// The collection part begins with a dot.
    #[error("Collection names cannot start with '.': {collection}")]
    LeadingDot {
        /// As given.
        collection: String,
    },
    /// There is a zero byte in it.
    #[error("namespaces cannot have embedded null characters")]
    Nul,
    /// A `$` stands in the name of a collection that is to be read.
    #[error("Invalid collection name specified '{namespace}")]
    NotReadable {
        /// As given.
        namespace: String,
    },
    /// A `$` stands in the database part of a collection that is to be written.
    #[error("Invalid namespace: {namespace}")]
    DollarInDatabase {
        /// As given.
        namespace: String,
    },
    /// A `$` stands in the collection part of a collection that is to be written.
    #[error("Invalid collection name: {collection}")]
    DollarInCollection {
        /// As given.
        collection: String,
    },
    /// The server alone writes this collection.
    #[error("cannot write to {namespace}")]
    KeptByServer {
        /// As given.
        namespace: String,
    },
    /// Begins with `system.` and has no meaning.
    #[error("Invalid system namespace: {namespace}")]
    System {
        /// As given.
        namespace: String,
    },
    /// Both together.
    #[error("Fully qualified namespace is too long. Namespace: {namespace} Max: 255")]
    TooLong {
        /// As given.
        namespace: String,
        /// Its length.
        bytes: usize,
    },
}

/// Why a collection or an index could not be created, changed or dropped.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The name is not allowed.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A collection of this name is there, with other options or another identity.
    #[error("Collection {namespace} already exists.")]
    CollectionExists {
        /// Its name.
        namespace: String,
    },
    /// There is a database whose name differs in upper and lower case only.
    #[error("db already exists with different case already have: [{existing}] trying to create [{wanted}]")]
    DatabaseDiffersInCase {
        /// The one that is there.
        existing: String,
        /// The one asked for.
        wanted: String,
    },
    /// The snapshot of a transaction saw another state of the collection than there is now.
    #[error(
        "Unable to read from a snapshot due to pending collection catalog changes to {namespace}; please retry the operation."
    )]
    CollectionChanged {
        /// The collection.
        namespace: String,
    },
    /// An index may be created in a transaction only as long as its collection is empty.
    #[error("Cannot create new indexes on non-empty collection {namespace} in a multi-document transaction.")]
    CollectionNotEmpty {
        /// The collection.
        namespace: String,
    },
    /// A collection that was loaded for a transaction can be used when that has committed.
    #[error("Collection {namespace} was loaded in this transaction: commit that before you use it.")]
    LoadUncommitted {
        /// The collection.
        namespace: String,
    },
    /// Writers of a capped collection take turns, which no transaction of several statements does.
    #[error(
        "Collection '{namespace}' is a capped collection. Writes in transactions are not allowed on capped collections."
    )]
    CappedInTransaction {
        /// The collection.
        namespace: String,
    },
    /// There is no such collection.
    #[error("ns not found")]
    CollectionNotFound {
        /// The name asked for.
        namespace: String,
    },
    /// There is no such index.
    #[error("index not found with name [{name}]")]
    IndexNotFound {
        /// The name asked for.
        name: String,
    },
    /// The statement is not possible while an index of the collection is built.
    #[error("cannot perform operation: an index build is currently running for collection '{namespace}'")]
    IndexBuildRunning {
        /// The collection.
        namespace: String,
    },
    /// The build was ended from outside.
    #[error("{reason}")]
    IndexBuildEnded {
        /// By what.
        reason: BuildEnd,
    },
    /// Building the index met a document that it cannot hold.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The collection has no partitions.
    #[error("collection {namespace} is not partitioned")]
    NotPartitioned {
        /// The collection.
        namespace: String,
    },
    /// A change of partitions is refused.
    #[error("{reason}")]
    Partitions {
        /// The kind of fault.
        fault: PartitionFault,
        /// The fault.
        reason: String,
    },
    /// The options of a collection are refused.
    #[error("{reason}")]
    CollectionOptions {
        /// The fault.
        reason: String,
    },
    /// The index factory refuses a specification.
    #[error("index {name}: {reason}")]
    IndexSpecification {
        /// The index.
        name: String,
        /// The fault.
        reason: String,
    },
    /// A catalog entry cannot be read: it is damaged, or needs a feature that this build has not.
    #[error("the catalog entry of {namespace} cannot be read: {reason}")]
    DamagedEntry {
        /// Whose entry.
        namespace: String,
        /// The fault.
        reason: String,
    },
    /// The operation has to end.
    #[error("{0}")]
    Interrupted(Interruption),
    /// The engine said no.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Why a change of partitions is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionFault {
    /// The bound would be that of the last partition, which is empty.
    Empty,
    /// The collection would have no partition.
    Only,
    /// There is no such partition.
    Unknown,
    /// The bound is not one of the collection, or not above all documents.
    Bound,
    /// There are as many as there can be.
    TooMany,
    /// An index would be unique, and its keys lie in several partitions.
    UniqueIndex,
}

/// Why a build was ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildEnd {
    /// Its collection is gone.
    CollectionDropped,
    /// One of its indexes was dropped.
    IndexDropped,
}

impl std::fmt::Display for BuildEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            BuildEnd::CollectionDropped => "collection dropped",
            BuildEnd::IndexDropped => "dropIndexes command",
        })
    }
}

/// Why an index of geometries cannot hold a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeometryFault {
    /// A value is no geometry on the sphere.
    NotOnSphere,
    /// A value is no pair of numbers.
    NoPair,
    /// A value has one coordinate only.
    OneCoordinate,
    /// An element of a list of pairs is no pair.
    NoListOfPairs,
    /// A point lies outside of the index's bounds.
    OutOfBounds,
}

/// Why a document could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A unique index, or the primary key, has this key already.
    #[error("duplicate key in index {index}")]
    DuplicateKey {
        /// The index's name (`_id_` for the primary key).
        index: String,
        /// Its key pattern.
        key_pattern: RawDocumentBuf,
        /// The offending key, by field. In the place of a string under a collation stand the hexadecimal
        /// digits of its sort key.
        key: RawDocumentBuf,
        /// The collation of the index; `None` for the simple one.
        collation: Option<RawDocumentBuf>,
    },
    /// Two fields of one compound index are arrays.
    #[error("cannot index parallel arrays [{second}] [{first}]")]
    ParallelArrays {
        /// One field.
        first: String,
        /// The other.
        second: String,
    },
    /// A number in an indexed path is both an index into an array and a field of one of its documents.
    #[error("{0}")]
    AmbiguousField(ExpansionError),
    /// A field of the primary key is an array, or lies in one.
    #[error("the primary key cannot hold an array: {path}")]
    ArrayInPrimaryKey {
        /// The field.
        path: String,
    },
    /// The primary key of a document of a partitioned collection is too long.
    #[error("the primary key of a document in a partitioned collection has at most {bytes_max} bytes")]
    KeyTooLongForPartitions {
        /// The limit.
        bytes_max: usize,
    },
    /// A document of a collection whose partitions follow the time has no time.
    #[error("a collection with 'partitionBy' needs {} in the field '{path}' of each document, and this one has none", kind.name())]
    NoStamp {
        /// The field.
        path: String,
        /// The type of its value.
        kind: StampKind,
    },
    /// A hashed index cannot hold the document.
    #[error("Error: hashed indexes do not currently support array values. Found array at path: {path}")]
    ArrayInHashedIndex {
        /// The path of the array.
        path: String,
    },
    /// A compound wildcard index cannot hold the document.
    #[error(
        "Error extracting keys for a compound wildcard index: the regular field {path} is or lies in an array"
    )]
    ArrayBesideWildcard {
        /// The path of the field.
        path: String,
    },
    /// The document names a language that a text index does not know, or something that is no name.
    #[error("{}", match language {
        Some(name) => format!("language override unsupported: {name}"),
        None => "found language override field in document with non-string type".to_owned(),
    })]
    TextLanguage {
        /// The name, if it is one.
        language: Option<String>,
    },
    /// A text index cannot hold the document.
    #[error("Field '{path}' of text index contains an array in document")]
    ArrayBesideText {
        /// The path of the field.
        path: String,
    },
    /// The keys of one document are too many.
    #[error("the keys of the document in index {index} take more than {bytes_max} bytes")]
    KeysTooLarge {
        /// The index's name.
        index: String,
        /// The limit.
        bytes_max: usize,
    },
    /// An index of geometries cannot hold the document.
    #[error("{reason}")]
    Geometry {
        /// The kind of fault.
        fault: GeometryFault,
        /// The document and the fault.
        reason: String,
    },
    /// The filter of a partial index gives no answer for the document.
    #[error("the filter of the partial index {index} fails: {reason}")]
    PartialFilter {
        /// The index's name.
        index: String,
        /// The fault.
        reason: String,
    },
    /// The document has no `_id`. Callers add one before they insert.
    #[error("the document has no _id")]
    NoId,
    /// The bytes are not a document.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// An index entry on disk does not decode.
    #[error("an entry of index {index} is damaged: {reason}")]
    DamagedEntry {
        /// The index's name.
        index: String,
        /// The fault.
        reason: String,
    },
    /// The operation has to end.
    #[error("{0}")]
    Interrupted(Interruption),
    /// The engine said no.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<Interruption> for WriteError {
    fn from(interruption: Interruption) -> WriteError {
        WriteError::Interrupted(interruption)
    }
}

impl WriteError {
    /// Whether the same statement, run again on a newer snapshot, may succeed.
    pub fn is_conflict(&self) -> bool {
        matches!(self, WriteError::Storage(error) if error.is_conflict())
    }

    /// Whether the statement asks to be run again where waiting for the device is allowed.
    pub fn is_would_block(&self) -> bool {
        matches!(self, WriteError::Storage(error) if error.is_would_block())
    }
}

impl From<ExpansionError> for WriteError {
    fn from(error: ExpansionError) -> WriteError {
        match error {
            ExpansionError::ParallelArrays { first, second } => WriteError::ParallelArrays { first, second },
            ExpansionError::AmbiguousField { .. } => WriteError::AmbiguousField(error),
            ExpansionError::Document(error) => WriteError::Document(error),
        }
    }
}

impl CatalogError {
    /// Whether a commit may have happened or not.
    pub(crate) fn is_undetermined(&self) -> bool {
        match self {
            CatalogError::Storage(error) | CatalogError::Write(WriteError::Storage(error)) => {
                error.kind() == ErrorKind::Undetermined
            }
            _ => false,
        }
    }
}

impl From<Interruption> for CatalogError {
    fn from(interruption: Interruption) -> CatalogError {
        CatalogError::Interrupted(interruption)
    }
}
