//! Golden plans: the plan of a find over given indexes; index bounds equal MongoDB's.
//!
//! The files in `tests/plans` hold indexes, finds and plans. With `PANDO_REWRITE=1` the plans are written
//! anew, so that a change of the planner is reviewed as a change of these files. Bounds come from a real
//! MongoDB, by the script there. Where a file tells the `entries` of indexes, the plans that lost are
//! written, too.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use pando_catalog::{EntryContents, IndexDescription, Multikey};
use pando_collation::TextOrder;
use pando_document::{ArrayWriter, Document, RawArray, RawDocument, RawDocumentBuf, RawValue, Value, doc};
use pando_query::explain::{ExplainedProjection, winning_plan};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::metadata::MetadataSet;
use pando_query::needs::Needs;
use pando_query::pipeline::Pipeline;
use pando_query::plan::{
    Consumer, Estimates, FindSpecification, Hint, Intervals, PlanChoice, ProjectionNeeds, choose,
};
use pando_query::projection::Projection;
use pando_query::shell_text::document_text;
use pando_query::sort::Sort;

use crate::extended_json;

fn index(line: &str) -> IndexDescription {
    let (specification, arrays) = line.split_once(" arrays ").unwrap_or((line, ""));
    let mut index = IndexDescription::from_specification(&extended_json::document(specification)).unwrap();
    for array in arrays.split_whitespace() {
        // `a.b@a`: only the prefix `a` is an array.
        let (path, multikey) = match array.split_once('@') {
            Some((path, prefix)) => (path, Multikey::at(prefix.split('.').count() - 1)),
            None => (array, Multikey::anywhere(array)),
        };
        if index.is_wildcard() {
            let ends = array.match_indices('.').map(|(at, _)| at).chain([array.len()]);
            let met = ends.map(|end| Multikey::of_array_path(&array[..end]));
            index.multikey[0] = met.fold(index.multikey[0], Multikey::union);
            continue;
        }
        let at =
            index.fields.iter().position(|field| field.path == path).expect("an array is on an indexed path");
        index.multikey[at] = index.multikey[at].union(multikey);
    }
    index
}

fn primary() -> IndexDescription {
    let specification = doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_", "unique": true };
    let description = IndexDescription::from_specification(&specification.to_raw()).unwrap();
    IndexDescription { contents: EntryContents::Document, ..description }
}

fn field<'d>(find: &'d RawDocument, name: &str) -> Option<RawValue<'d>> {
    find.get(name).unwrap()
}

fn document<'d>(find: &'d RawDocument, name: &str) -> Option<&'d RawDocument> {
    field(find, name).map(|value| value.as_document().unwrap())
}

/// Entries that each index is said to have within any bounds, and the documents of the collection.
#[derive(Default)]
struct Told(RawDocumentBuf);

impl Told {
    fn number(&self, name: &str) -> Option<u64> {
        u64::try_from(self.0.get(name).unwrap()?.as_i64_exact()?).ok()
    }
}

impl Estimates for Told {
    fn entries(&self, index: &IndexDescription, _: &[Intervals]) -> Option<u64> {
        self.number(&index.name)
    }

    fn documents(&self) -> Option<u64> {
        self.number("documents")
    }
}

/// The pipeline of one `$group`.
fn pipeline(group: &RawDocument, scope: &ParseScope) -> Pipeline {
    let mut bytes = Vec::new();
    let mut writer = ArrayWriter::begin(&mut bytes);
    writer.push_document(&doc! { "$group": (RawValue::Document(group).to_owned()) }.to_raw());
    writer.finish();
    let stages = RawDocumentBuf::from_vec(bytes).unwrap();
    Pipeline::parse(RawArray::from_document(&stages), scope).unwrap()
}

/// The winning plan of a find, or the error; and those that it rejects. With `group` it is the plan for that
/// stage, with `distinct` the one for the values of a path.
fn planned(
    find: &RawDocument,
    indexes: &[IndexDescription],
    told: &Told,
) -> Result<(Document, Vec<Document>), String> {
    let order = document(find, "collation")
        .map_or(TextOrder::SIMPLE, |collation| TextOrder::parse(collation, "collation").unwrap());
    let scope = ParseScope::default().collated_by(&order);
    let empty = RawDocumentBuf::new();
    let shown = |error: pando_query::QueryError| error.to_string();
    let filter = Filter::parse(document(find, "filter").unwrap_or(&empty), &scope).map_err(shown)?;
    let sort = Sort::parse(document(find, "sort").unwrap_or(&empty)).map_err(shown)?.collated_by(&order);
    let hint = field(find, "hint").map(Hint::parse).transpose().map_err(shown)?.flatten();
    let projection = document(find, "projection");
    let paths =
        projection.and_then(|projection| Projection::parse(projection, &scope).unwrap().needed_paths());
    let grouping = document(find, "group").map(|group| pipeline(group, &scope));
    let ends = grouping.as_ref().and_then(|grouping| grouping.group_ends(sort.pattern()));
    let paths = match grouping.as_ref().map(Pipeline::needs) {
        Some(Needs::Paths(paths)) => Some(paths.into_iter().collect()),
        Some(Needs::Everything) => None,
        None => paths,
    };
    let distinct = field(find, "distinct").map(|path| path.as_str().unwrap());
    let paths = distinct.map(|path| vec![path.to_owned()]).or(paths);
    let number = |name| field(find, name).map(|value| u64::try_from(value.as_i64_exact().unwrap()).unwrap());
    let specification = FindSpecification {
        filter: &filter,
        sort: &sort,
        needs: paths.as_deref().map_or(ProjectionNeeds::Everything, ProjectionNeeds::Paths),
        consumer: match (&ends, distinct) {
            (Some(ends), _) => Consumer::Ends(ends),
            (None, Some(path)) => Consumer::Values(path),
            (None, None) => Consumer::Documents,
        },
        skip: number("skip").unwrap_or(0),
        limit: number("limit"),
        metadata: MetadataSet::EMPTY,
        hint: hint.as_ref(),
        min: document(find, "min"),
        max: document(find, "max"),
        order: &order,
    };
    let PlanChoice { plan, rejected, .. } = choose(&specification, indexes, told).map_err(shown)?;
    let shown = match projection {
        Some(projection) => ExplainedProjection::Simple(projection),
        None => ExplainedProjection::Whole,
    };
    Ok((winning_plan(&plan, shown), rejected.iter().map(|plan| winning_plan(plan, shown)).collect()))
}

/// A plan without what every plan repeats.
fn pruned(stage: &Document) -> Document {
    const NOISE: [&str; 9] = [
        "collation",
        "keyPattern",
        "multiKeyPaths",
        "isUnique",
        "isSparse",
        "isPartial",
        "indexVersion",
        "memLimit",
        "type",
    ];
    let mut pruned = Document::new();
    for (name, value) in stage.iter().filter(|(name, _)| !NOISE.contains(name)) {
        match value {
            Value::Document(inner) if name == "inputStage" => pruned.push(name, self::pruned(inner)),
            Value::Array(inner) if name == "inputStages" => {
                let stages = inner.iter().map(|stage| match stage {
                    Value::Document(stage) => Value::Document(self::pruned(stage)),
                    other => other.clone(),
                });
                pruned.push(name, Value::Array(stages.collect()));
            }
            other => pruned.push(name, other.clone()),
        }
    }
    pruned
}

fn bounds_of(stage: &Document) -> Option<String> {
    match (stage.get("indexBounds"), stage.get("inputStage")) {
        (Some(Value::Document(bounds)), _) => Some(document_text(&bounds.to_raw())),
        (_, Some(Value::Document(inner))) => bounds_of(inner),
        _ => None,
    }
}

/// The file with its plans written anew, and where bounds differ from MongoDB's.
fn rewritten(text: &str) -> (String, Vec<String>) {
    let mut out = String::new();
    let mut indexes = vec![primary()];
    let mut told = Told::default();
    let mut planned_last: Option<Result<Document, String>> = None;
    let mut differences = Vec::new();
    for line in text.lines() {
        if line.starts_with("plan ") || line.starts_with("rejected ") {
            continue;
        }
        writeln!(out, "{line}").unwrap();
        if let Some(specification) = line.strip_prefix("index ") {
            if planned_last.take().is_some() {
                indexes = vec![primary()];
                told = Told::default();
            }
            indexes.push(index(specification));
        } else if let Some(entries) = line.strip_prefix("entries ") {
            told = Told(extended_json::document(entries));
        } else if let Some(find) = line.strip_prefix("find ") {
            let (answer, rejected) = match planned(&extended_json::document(find), &indexes, &told) {
                Ok((stage, rejected)) => (Ok(stage), rejected),
                Err(error) => (Err(error), Vec::new()),
            };
            match &answer {
                Ok(stage) => writeln!(out, "plan {}", document_text(&pruned(stage).to_raw())).unwrap(),
                Err(error) => writeln!(out, "plan error {error}").unwrap(),
            }
            for stage in rejected.iter().filter(|_| told.number("documents").is_some()) {
                writeln!(out, "rejected {}", document_text(&pruned(stage).to_raw())).unwrap();
            }
            planned_last = Some(answer);
        } else if let Some(theirs) = line.strip_prefix("bounds ") {
            let ours = planned_last.as_ref().and_then(|plan| bounds_of(plan.as_ref().ok()?));
            if ours.as_deref() != Some(theirs) {
                differences.push(format!("MongoDB: {theirs}\nPando:   {}", ours.unwrap_or_default()));
            }
        }
    }
    (out, differences)
}

/// Compares or rewrites one file; gives the differences of bounds.
fn check(path: &Path, rewrites: bool) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let (now, differences) = rewritten(&text);
    // The script writes bounds before the test writes plans, so both orders are read; plans stand right
    // behind finds.
    if rewrites {
        std::fs::write(path, &now).unwrap();
    } else {
        for (had, has) in text.lines().zip(now.lines()) {
            assert_eq!(has, had, "{}: PANDO_REWRITE=1 writes plans anew", path.display());
        }
        assert_eq!(now.lines().count(), text.lines().count());
    }
    differences
}

#[test]
fn plans_are_as_written_down_and_bounds_are_those_of_mongodb() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/plans");
    let rewrites = std::env::var_os("PANDO_REWRITE").is_some();
    let mut files = 0;
    let mut differences = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            differences.extend(check(&path, rewrites));
            files += 1;
        }
    }
    assert!(files >= 4, "the golden plans are gone");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn a_scan_of_a_partial_index_says_that_it_is_partial() {
    let partial = index(r#"{"key": {"a": 1}, "name": "p", "partialFilterExpression": {"b": {"$gt": 3}}}"#);
    let plain = index(r#"{"key": {"a": 1}, "name": "a_1"}"#);
    for (index, is_partial) in [(partial, true), (plain, false)] {
        let find = extended_json::document(r#"{"filter": {"a": 1, "b": {"$gt": 3}}}"#);
        let (stage, _) = planned(&find, &[primary(), index], &Told::default()).unwrap();
        let Some(Value::Document(scan)) = stage.get("inputStage") else { panic!("{stage:?}") };
        assert_eq!(scan.get("isPartial"), Some(&Value::Boolean(is_partial)), "{scan:?}");
    }
}
