//! The resources of privileges: which databases and collections a privilege is for.
//!
//! # Terms
//! - *System collection*: its name begins with `system.`, or it is `replset.…` of the database `local`. A
//!   privilege on a database does not reach its system collections.
//! - *Normal*: a database other than `local` and `config`, and its collections without the system ones.
//! - *Buckets*: the collections `system.buckets.…` behind collections of time series.

use pando_document::{DocumentWriter, ElementType, RawDocument, RawValue};

/// The resource of a privilege.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// The whole deployment: `{cluster: true}`.
    Cluster,
    /// Everything, system collections included: `{anyResource: true}`.
    Any,
    /// All normal databases and collections: `{db: "", collection: ""}`.
    Normal,
    /// A database and its collections without the system ones: `{db: "d", collection: ""}`.
    Database(String),
    /// The collections of this name in all databases: `{db: "", collection: "c"}`.
    CollectionName(String),
    /// One collection: `{db: "d", collection: "c"}`.
    Collection {
        /// Its database.
        database: String,
        /// Its name.
        collection: String,
    },
    /// Buckets, of all databases or of one, and of all collections of time series or of one:
    /// `{db: "d", system_buckets: "c"}`.
    Buckets {
        /// Their database; `None` for all.
        database: Option<String>,
        /// Their collection of time series; `None` for all.
        collection: Option<String>,
    },
}

/// The reason for which a document is no privilege.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrivilegeFault {
    /// A field has the wrong type.
    #[error(
        "Unable to parse privilege document: wrong type for '{field}' field, expected {expected}, found {found}"
    )]
    Type {
        /// The field.
        field: &'static str,
        /// The type that it must have.
        expected: &'static str,
        /// The type that it has.
        found: &'static str,
    },
    /// The document is not read to its end.
    #[error("Unable to parse privilege document: {0}")]
    Bytes(#[from] pando_document::DocumentError),
    /// Fields are missing, or do not go together.
    #[error("{0}")]
    Form(String),
    /// These actions are not known.
    #[error("Unrecognized action{}: {}", if .0.len() == 1 { "" } else { "s" }, .0.join(", "))]
    Actions(Vec<String>),
}

impl PrivilegeFault {
    pub(crate) fn of_type(field: &'static str, expected: &'static str, found: ElementType) -> PrivilegeFault {
        PrivilegeFault::Type { field, expected, found: found.alias() }
    }

    fn form(sentence: impl Into<String>) -> PrivilegeFault {
        PrivilegeFault::Form(sentence.into())
    }
}

/// The fields of a resource document.
#[derive(Default)]
struct Fields<'a> {
    database: Option<&'a str>,
    collection: Option<&'a str>,
    buckets: Option<&'a str>,
    cluster: Option<bool>,
    any: Option<bool>,
}

impl<'a> Fields<'a> {
    fn read(document: &'a RawDocument) -> Result<Fields<'a>, PrivilegeFault> {
        let mut fields = Fields::default();
        for field in document.iter() {
            let (name, value) = field?;
            match name {
                "db" => fields.database = Some(text("db", value)?),
                "collection" => fields.collection = Some(text("collection", value)?),
                "system_buckets" => fields.buckets = Some(text("system_buckets", value)?),
                "cluster" => fields.cluster = Some(flag("cluster", value)?),
                "anyResource" => fields.any = Some(flag("anyResource", value)?),
                _ => {}
            }
        }
        Ok(fields)
    }
}

impl Resource {
    /// Reads the document of a resource. Fields that it does not know have no effect, as in MongoDB.
    ///
    /// # Errors
    /// The document is none of a resource.
    pub fn read(document: &RawDocument) -> Result<Resource, PrivilegeFault> {
        let fields = Fields::read(document)?;
        let Fields { database, collection, buckets, cluster, any } = fields;
        if buckets.is_some() && collection.is_some() {
            return Err(PrivilegeFault::form("system_buckets and collection cannot both be set"));
        }
        if buckets.is_none() && database.is_some() != collection.is_some() {
            return Err(PrivilegeFault::form(
                "resource must set both db and collection or neither, but not exactly one.",
            ));
        }
        let places = usize::from(database.is_some() || buckets.is_some());
        if places + usize::from(cluster.is_some()) + usize::from(any.is_some()) != 1 {
            return Err(PrivilegeFault::form(
                "resource must have exactly db and collection set, or have only cluster set  or have only anyResource set",
            ));
        }
        match (cluster, any) {
            (Some(true), _) => return Ok(Resource::Cluster),
            (_, Some(true)) => return Ok(Resource::Any),
            (Some(false), _) => return Err(PrivilegeFault::form("cluster must be true when specified")),
            (_, Some(false)) => return Err(PrivilegeFault::form("anyResource must be true when specified")),
            (None, None) => {}
        }
        let database = database.filter(|name| !name.is_empty());
        let name = collection.or(buckets).filter(|name| !name.is_empty());
        if let Some(database) = database.filter(|name| !is_database_name(name)) {
            return Err(PrivilegeFault::form(format!("{database} is not a valid database name")));
        }
        if let Some(name) = name.filter(|name| !is_collection_name(name)) {
            return Err(PrivilegeFault::form(format!("{name} is not a valid collection name")));
        }
        let (database, name) = (database.map(str::to_owned), name.map(str::to_owned));
        Ok(match (buckets, database, name) {
            (Some(_), database, collection) => Resource::Buckets { database, collection },
            (None, None, None) => Resource::Normal,
            (None, Some(database), None) => Resource::Database(database),
            (None, None, Some(name)) => Resource::CollectionName(name),
            (None, Some(database), Some(collection)) => Resource::Collection { database, collection },
        })
    }

    /// Writes the fields of its document.
    pub fn write(&self, out: &mut DocumentWriter<'_>) {
        let mut place = |database: &str, collection: &str| {
            out.append_str("db", database);
            out.append_str("collection", collection);
        };
        match self {
            Resource::Cluster => out.append_bool("cluster", true),
            Resource::Any => out.append_bool("anyResource", true),
            Resource::Normal => place("", ""),
            Resource::Database(database) => place(database, ""),
            Resource::CollectionName(collection) => place("", collection),
            Resource::Collection { database, collection } => place(database, collection),
            Resource::Buckets { database, collection } => {
                out.append_str("system_buckets", collection.as_deref().unwrap_or(""));
                if let Some(database) = database {
                    out.append_str("db", database);
                }
            }
        }
    }

    /// Whether a role of this database may have privileges on it. Roles of `admin` may have any.
    pub fn is_for_roles_of(&self, database: &str) -> bool {
        database == "admin"
            || match self {
                Resource::Database(own) | Resource::Collection { database: own, .. } => own == database,
                _ => false,
            }
    }
}

fn text<'a>(field: &'static str, value: RawValue<'a>) -> Result<&'a str, PrivilegeFault> {
    match value {
        RawValue::String(text) => Ok(text),
        other => Err(PrivilegeFault::of_type(field, "string", other.element_type())),
    }
}

fn flag(field: &'static str, value: RawValue<'_>) -> Result<bool, PrivilegeFault> {
    match value {
        RawValue::Boolean(flag) => Ok(flag),
        other => Err(PrivilegeFault::of_type(field, "boolean", other.element_type())),
    }
}

/// Whether a database may have this name. The empty one stands for all databases in a privilege.
pub(crate) fn is_database_name(name: &str) -> bool {
    name.len() < 64 && !name.contains(['/', '\\', '.', ' ', '"', '\0'])
}

fn is_collection_name(name: &str) -> bool {
    !name.starts_with('.') && !name.contains(['$', '\0'])
}

#[cfg(test)]
mod tests {
    use pando_document::{Document, doc};

    use super::*;

    fn read(document: Document) -> Result<Resource, PrivilegeFault> {
        Resource::read(&document.to_raw())
    }

    fn sentence(document: Document) -> String {
        read(document).expect_err("it is refused").to_string()
    }

    #[test]
    fn resources_are_written_as_they_are_read() {
        for (document, is_for_test) in [
            (doc! { "cluster": true }, false),
            (doc! { "anyResource": true }, false),
            (doc! { "db": "", "collection": "" }, false),
            (doc! { "db": "test", "collection": "" }, true),
            (doc! { "db": "", "collection": "c" }, false),
            (doc! { "db": "test", "collection": "system.x" }, true),
            (doc! { "system_buckets": "" }, false),
            (doc! { "system_buckets": "c" }, false),
            (doc! { "system_buckets": "c", "db": "test" }, false),
            (doc! { "system_buckets": "", "db": "test" }, false),
        ] {
            let resource = read(document.clone()).unwrap();
            let mut bytes = Vec::new();
            let mut out = DocumentWriter::begin(&mut bytes);
            resource.write(&mut out);
            out.finish();
            assert_eq!(RawDocument::from_bytes(&bytes).unwrap(), &*document.to_raw());
            assert_eq!(resource.is_for_roles_of("test"), is_for_test, "{resource:?}");
            assert!(resource.is_for_roles_of("admin"));
        }
        assert_eq!(read(doc! { "db": "", "system_buckets": "c" }), read(doc! { "system_buckets": "c" }));
        assert_eq!(read(doc! { "cluster": true, "more": 1 }), Ok(Resource::Cluster));
    }

    #[test]
    fn a_document_of_no_resource_is_refused_in_mongodbs_words() {
        let one = "resource must have exactly db and collection set, or have only cluster set  or have only anyResource set";
        let both = "resource must set both db and collection or neither, but not exactly one.";
        assert_eq!(sentence(doc! {}), one);
        assert_eq!(sentence(doc! { "cluster": true, "anyResource": true }), one);
        assert_eq!(sentence(doc! { "cluster": true, "db": "x", "collection": "" }), one);
        assert_eq!(sentence(doc! { "cluster": true, "db": "x" }), both);
        assert_eq!(sentence(doc! { "db": "x" }), both);
        assert_eq!(sentence(doc! { "collection": "x" }), both);
        assert_eq!(sentence(doc! { "cluster": false }), "cluster must be true when specified");
        assert_eq!(sentence(doc! { "anyResource": false }), "anyResource must be true when specified");
        let with = |db: &str, collection: &str| sentence(doc! { "db": db, "collection": collection });
        assert_eq!(with("x.y", "c"), "x.y is not a valid database name");
        assert_eq!(with("x", ".c"), ".c is not a valid collection name");
        assert_eq!(with("x", "a$b"), "a$b is not a valid collection name");
        assert!(sentence(doc! { "cluster": 1 }).contains("wrong type for 'cluster' field"));
        assert_eq!(
            sentence(doc! { "db": "d", "collection": "c", "system_buckets": "c" }),
            "system_buckets and collection cannot both be set"
        );
    }
}
