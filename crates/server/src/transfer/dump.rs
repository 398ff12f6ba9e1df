//! A dump of mongodump: folders of databases, with a BSON file and a description for each collection.
//!
//! ```text
//! dump/
//!   atlas/
//!     cities.bson.gz             the documents; gzip or not
//!     cities.metadata.json.gz    options and indexes
//!     capitals.metadata.json     a view has no documents
//! ```
//!
//! # Not here
//! Users and roles (`admin`), settings of a cluster (`config`, `local`), and collections of the server itself
//! (`system.…`) are left out, with a remark.
//!
//! Other files of the folder are passed over, with a remark that names them ([`passed_over`]).
//!
//! A time series is refused: mongodump writes its buckets (`system.buckets.NAME.bson`), in which MongoDB
//! packs the documents in a form of its own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bson::{Bson, Document};

use super::csv_rows::RowOptions;
use super::error::TransferError;
use super::import_plan::{BytesContent, Content, Creation, ImportPlan, PlanOrigin, Unit};
use super::input::{Source, read_whole};
use super::passed_over;

/// Databases that belong to a server and not to its user.
pub(super) const SERVER_DATABASES: [&str; 3] = ["admin", "config", "local"];
pub(super) const DOCUMENTS: &str = ".bson";
const DESCRIPTION: &str = ".metadata.json";
pub(super) const PACKED: &str = ".gz";
/// Stands in front of the name of a time series in that of its buckets.
const BUCKETS: &str = "system.buckets.";

/// The description of a collection.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Description {
    /// The options with which it was created.
    pub(super) options: Document,
    /// Its indexes, without that on `_id`.
    pub(super) indexes: Vec<Document>,
    /// Its name, which a file's name has in an escaped form.
    pub(super) name: Option<String>,
}

/// A name that the caller wants instead of the dump's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Renamed<'n> {
    pub(super) database: Option<&'n str>,
    pub(super) collection: Option<&'n str>,
}

/// The imports that bring a dump in: of all its databases, or of one of them.
pub(super) fn plan_of(folder: &Path, renamed: Renamed<'_>) -> Result<ImportPlan, TransferError> {
    let origin = PlanOrigin::Folder(folder.to_owned());
    let mut plan = ImportPlan { origin, ..ImportPlan::default() };
    let entries = entries(folder)?;
    if entries.iter().any(|path| base_name(path).is_some()) {
        let own = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let database = renamed.database.map(str::to_owned).or(own).unwrap_or_default();
        add_database(&mut plan, folder, &database, renamed)?;
    } else {
        let files = entries.iter().filter(|path| !path.is_dir());
        plan.remarks.extend(passed_over::remark(folder, files));
        for database_folder in entries.iter().filter(|path| path.is_dir()) {
            let name = database_folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if SERVER_DATABASES.contains(&name.as_str()) {
                plan.remarks.push(format!(
                    "left out: the database {name}, which belongs to the server that was dumped"
                ));
                continue;
            }
            add_database(&mut plan, database_folder, renamed.database.unwrap_or(&name), renamed)?;
        }
    }
    // A view may be over a collection that comes later in the alphabet.
    plan.units.sort_by_key(|unit| unit.content.is_none());
    match (plan.units.len(), renamed.collection) {
        (0, _) if !plan.refused.is_empty() => Ok(plan),
        (0, _) => Err(TransferError::Dump {
            path: folder.to_owned(),
            reason: "it has no .bson file of mongodump; name a file".to_owned(),
        }),
        (2.., Some(_)) => Err(TransferError::Dump {
            path: folder.to_owned(),
            reason: "it has several collections: leave out --collection, or name one .bson file".to_owned(),
        }),
        _ => refuse_one_name_for_two(&plan, folder).map(|()| plan),
    }
}

/// Refuses collections of several databases that would become one: with `--drop` the second would replace the
/// first, and without it both would mix.
fn refuse_one_name_for_two(plan: &ImportPlan, folder: &Path) -> Result<(), TransferError> {
    let mut namespaces = BTreeSet::new();
    match plan.units.iter().map(Unit::namespace).find(|namespace| !namespaces.insert(namespace.clone())) {
        Some(namespace) => Err(TransferError::Dump {
            path: folder.to_owned(),
            reason: format!(
                "it has several databases, and a collection of two of them would become {namespace}: leave out --db and a \
                 database in --uri, or name the folder of one database"
            ),
        }),
        None => Ok(()),
    }
}

fn add_database(
    plan: &mut ImportPlan,
    folder: &Path,
    database: &str,
    renamed: Renamed<'_>,
) -> Result<(), TransferError> {
    let paths = entries(folder)?;
    plan.remarks.extend(passed_over::remark(folder, paths.iter().filter(|path| is_passed_over(path))));
    let names: BTreeSet<String> = paths.iter().filter_map(|path| base_name(path)).collect();
    let series: BTreeSet<String> =
        names.iter().filter_map(|name| Some(name.strip_prefix(BUCKETS)?.to_owned())).collect();
    for name in names {
        let description = description_of(folder, &name)?;
        let whole_name = description.name.clone().unwrap_or_else(|| unescaped(&name));
        if let Some(of) = whole_name.strip_prefix(BUCKETS) {
            plan.refused.push((format!("{database}.{of}"), reason_against_buckets(database, of)));
            continue;
        }
        if series.contains(&name) {
            continue;
        }
        if whole_name.starts_with("system.") {
            plan.remarks.push(format!("left out: {database}.{whole_name}, which the server makes itself"));
            continue;
        }
        let documents = [format!("{name}{DOCUMENTS}"), format!("{name}{DOCUMENTS}{PACKED}")];
        let source = documents.iter().map(|name| folder.join(name)).find(|path| path.is_file());
        if source.is_none() && !description.options.contains_key("viewOn") {
            plan.remarks.push(format!(
                "{}: there is no {name}{DOCUMENTS} beside its description, so that {database}.{whole_name} comes without \
                 documents",
                folder.display()
            ));
        }
        plan.units.push(Unit {
            content: source.map(|path| {
                Content::Bytes(BytesContent {
                    source: Source::File(path),
                    format: None,
                    rows: RowOptions::default(),
                })
            }),
            database: database.to_owned(),
            collection: renamed.collection.map_or(whole_name, str::to_owned),
            description,
            creation: Creation::First,
            ..Unit::default()
        });
    }
    Ok(())
}

fn reason_against_buckets(database: &str, collection: &str) -> String {
    format!(
        "not brought in: it is a time series, and a dump has its documents in buckets of MongoDB's own form; copy it from \
         the server instead: pando copy --from mongodb://… --to … --db {database} --collection {collection}"
    )
}

/// The description beside a BSON file, empty if there is none.
pub(super) fn description_beside(documents: &Path) -> Result<Description, TransferError> {
    match (documents.parent(), base_name(documents)) {
        (Some(folder), Some(name)) => description_of(folder, &name),
        _ => Ok(Description::default()),
    }
}

/// Refuses a description in the place of the documents that it describes.
pub(super) fn refuse_description(path: &Path) -> Result<(), TransferError> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(base) = name.strip_suffix(PACKED).unwrap_or(name).strip_suffix(DESCRIPTION) else {
        return Ok(());
    };
    let documents = [format!("{base}{DOCUMENTS}"), format!("{base}{DOCUMENTS}{PACKED}")];
    match documents.iter().find(|file| path.with_file_name(file).is_file()) {
        Some(documents) => Err(TransferError::Dump {
            path: path.to_owned(),
            reason: format!(
                "it is the description of a collection in a dump; name {documents}, which is read with it"
            ),
        }),
        None => Ok(()),
    }
}

/// Refuses the buckets of a time series.
pub(super) fn refuse_buckets(path: &Path) -> Result<(), TransferError> {
    let Some(series) = base_name(path).and_then(|name| Some(name.strip_prefix(BUCKETS)?.to_owned())) else {
        return Ok(());
    };
    let database = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    let reason = reason_against_buckets(&database, &unescaped(&series));
    Err(TransferError::Dump { path: path.to_owned(), reason })
}

fn description_of(folder: &Path, name: &str) -> Result<Description, TransferError> {
    let files = [format!("{name}{DESCRIPTION}"), format!("{name}{DESCRIPTION}{PACKED}")];
    let Some(path) = files.iter().map(|file| folder.join(file)).find(|path| path.is_file()) else {
        return Ok(Description::default());
    };
    let content = read_whole(&path)?;
    let parsed = serde_json::from_slice::<serde_json::Map<_, _>>(&content).map_err(|error| error.to_string());
    let parsed = parsed.and_then(|json| Document::try_from(json).map_err(|error| error.to_string()));
    let mut parsed = parsed.map_err(|reason| TransferError::Dump {
        path,
        reason: format!(
            "it is no description of a collection ({reason}); mend it, or remove it: the collection then comes without \
             options and indexes"
        ),
    })?;
    let indexes = match parsed.remove("indexes") {
        Some(Bson::Array(indexes)) => indexes.into_iter().filter_map(index).collect(),
        _ => Vec::new(),
    };
    let mut options = match parsed.remove("options") {
        Some(Bson::Document(options)) => options,
        _ => Document::new(),
    };
    forget_rules_version(&mut options);
    Ok(Description { options, indexes, name: parsed.get_str("collectionName").ok().map(str::to_owned) })
}

/// An index as `createIndexes` takes it; `None` for that on `_id`, which each collection has.
pub(super) fn index(specification: Bson) -> Option<Document> {
    let Bson::Document(mut specification) = specification else { return None };
    // Written by servers before 4.4.
    specification.remove("ns");
    forget_rules_version(&mut specification);
    let is_of_id = specification.get_str("name").is_ok_and(|name| name == "_id_");
    (!is_of_id).then_some(specification)
}

/// Leaves out the version of the rules by which a server compares texts: another server has others, and
/// refuses a collation with a version that is not its own.
pub(super) fn forget_rules_version(specification: &mut Document) {
    if let Ok(collation) = specification.get_document_mut("collation") {
        collation.remove("version");
    }
}

/// The name of a collection's files without their suffixes; `None` for other files.
fn base_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(PACKED).unwrap_or(name);
    let base = name.strip_suffix(DESCRIPTION).or_else(|| name.strip_suffix(DOCUMENTS))?;
    (!base.is_empty() && base != "oplog").then(|| base.to_owned())
}

/// Whether a file or folder within a folder of mongodump is none of its collections. Of two files of one
/// collection, that without gzip is read.
fn is_passed_over(path: &Path) -> bool {
    let plain = path.with_extension("");
    let is_second = path.extension().is_some_and(|extension| extension == "gz") && plain.is_file();
    base_name(path).is_none() || is_second
}

/// The name of a collection out of that of its file, in which some characters are written `%24`.
fn unescaped(name: &str) -> String {
    super::address::unescape(name).unwrap_or_else(|| name.to_owned())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, TransferError> {
    let read = |source| TransferError::Read { path: folder.to_owned(), source };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(read)? {
        paths.push(entry.map_err(read)?.path());
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;

    #[test]
    fn a_description_is_no_collection_and_a_damaged_one_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.metadata.json");
        std::fs::write(&path, "{").unwrap();
        // Any program may have such a file.
        assert!(refuse_description(&path).is_ok());
        std::fs::write(folder.path().join("a.bson.gz"), "").unwrap();
        let refused = refuse_description(&path).unwrap_err().to_string();
        assert!(refused.contains("name a.bson.gz"), "{refused}");
        let damaged = plan_of(folder.path(), Renamed::default()).unwrap_err().to_string();
        assert!(damaged.contains("a.metadata.json") && damaged.contains("remove it"), "{damaged}");
    }

    #[test]
    fn a_collation_comes_without_the_version_of_its_rules() {
        let collation = doc! { "locale": "de", "version": "icu4x-2.4" };
        let found = index(Bson::Document(doc! { "key": { "n": 1 }, "name": "n_1", "collation": collation }));
        let wanted = doc! { "key": { "n": 1 }, "name": "n_1", "collation": { "locale": "de" } };
        assert_eq!(found, Some(wanted));
    }

    #[test]
    fn a_dump_is_its_collections_with_options_and_indexes_and_views_come_last() {
        let folder = tempfile::tempdir().unwrap();
        let place = |path: &str, content: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        };
        place("atlas/a%24b.bson", "");
        place("atlas/a.metadata.json", r#"{"options":{"viewOn":"z"},"indexes":[],"collectionName":"a"}"#);
        place("atlas/z.bson", "");
        let indexes =
            r#"[{"v":2,"key":{"_id":1},"name":"_id_"},{"v":2,"key":{"n":1},"name":"n_1","ns":"atlas.z"}]"#;
        place("atlas/z.metadata.json", &format!(r#"{{"options":{{}},"indexes":{indexes}}}"#));
        place("atlas/system.profile.bson", "");
        place("admin/system.users.bson", "");
        place("atlas/system.buckets.r.bson", "");
        place(
            "atlas/r.metadata.json",
            r#"{"options":{"timeseries":{"timeField":"t"}},"indexes":[],"type":"timeseries"}"#,
        );
        place("prelude.json", "{}");
        let plan = plan_of(folder.path(), Renamed::default()).unwrap();
        let names: Vec<_> = plan.units.iter().map(|unit| unit.namespace()).collect();
        assert_eq!(names, ["atlas.a$b", "atlas.z", "atlas.a"]);
        assert_eq!(plan.units[1].description.indexes, [doc! { "v": 2, "key": { "n": 1 }, "name": "n_1" }]);
        assert_eq!(plan.remarks.len(), 2, "{:?}", plan.remarks);
        assert_eq!(plan.refused.len(), 1, "{:?}", plan.refused);
        assert!(plan.refused[0].0 == "atlas.r" && plan.refused[0].1.contains("--db atlas --collection r"));
        let other = Renamed { database: Some("other"), collection: None };
        let plan = plan_of(&folder.path().join("atlas"), other).unwrap();
        assert_eq!(plan.units[1].namespace(), "other.z");
        let one = Renamed { database: None, collection: Some("one") };
        assert!(matches!(plan_of(folder.path(), one), Err(TransferError::Dump { .. })));
        assert!(matches!(plan_of(&folder.path().join("none"), other), Err(TransferError::Read { .. })));
    }
}
