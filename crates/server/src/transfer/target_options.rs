//! The options of collections that the target of a copy has already, compared with those of the source.
//!
//! A copy changes no option of a collection that is there:
//!
//! | the target has | the copy |
//! |---|---|
//! | a collection of another kind, such as a view | is refused before anything is copied |
//! | other options | names them, brings the documents in, and ends with exit code 1 |
//! | the same options | goes on |
//!
//! An import of a dump only tells which options its collections do not get.
//!
//! # Not a difference
//! - A default, whether it is written out or not.
//! - An option of the target alone that only says how documents are stored, such as the layout. People choose
//!   it when they create the collection ahead of the copy, or by `--default-layout`.

use std::collections::BTreeMap;
use std::fmt;

use bson::{Bson, Document, doc};

use super::dump::forget_rules_version;
use super::error::TransferError;
use super::import_plan::{ImportPlan, Unit};
use super::shared_store::SharedStore;
use super::target::Target;

/// Options that only say how documents are stored.
const OF_STORAGE: [&str; 6] =
    ["clusteredIndex", "indexOptionDefaults", "layout", "partitioned", "primaryKey", "storageEngine"];
/// Options that have no effect.
const WITHOUT_EFFECT: [&str; 3] = ["autoIndexId", "flags", "temp"];
/// Options whose fields have no order.
const WITHOUT_ORDER: [&str; 3] = ["clusteredIndex", "collation", "timeseries"];
/// Characters of a value that a message shows.
const VALUE_CHARACTERS_MAX: usize = 60;
/// Collections that the error names one by one.
const NAMES_SHOWN: usize = 5;

/// A collection that keeps options of its own at the target.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherOptions {
    /// `database.collection`.
    pub namespace: String,
    /// The options that differ.
    pub options: Vec<OtherOption>,
}

/// An option that differs. A side on which it is not set has no value.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherOption {
    /// Its name.
    pub name: String,
    /// The value at the source.
    pub source: Option<Bson>,
    /// The value at the target.
    pub target: Option<Bson>,
}

impl OtherOptions {
    /// Whether this option differs.
    pub(super) fn has(&self, name: &str) -> bool {
        self.options.iter().any(|option| option.name == name)
    }
}

impl fmt::Display for OtherOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options: Vec<String> = self.options.iter().map(OtherOption::to_string).collect();
        write!(
            f,
            "{}: the collection at the target keeps its own options; these differ: {}",
            self.namespace,
            options.join(", ")
        )
    }
}

impl fmt::Display for OtherOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, target) = (value_text(self.source.as_ref()), value_text(self.target.as_ref()));
        write!(f, "{} ({source} at the source, {target} at the target)", self.name)
    }
}

fn value_text(value: Option<&Bson>) -> String {
    let Some(value) = value else { return "not set".to_owned() };
    let text = value.clone().into_relaxed_extjson().to_string();
    match text.char_indices().nth(VALUE_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The kinds of collections, as `listCollections` names them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    TimeSeries,
    View,
}

impl Kind {
    fn of_unit(unit: &Unit) -> Kind {
        match unit.content {
            None => Kind::View,
            Some(_) if unit.is_time_series() => Kind::TimeSeries,
            Some(_) => Kind::Plain,
        }
    }

    fn of_listed(listed: &Document) -> Kind {
        match listed.get_str("type") {
            Ok("view") => Kind::View,
            Ok("timeseries") => Kind::TimeSeries,
            _ => Kind::Plain,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Kind::Plain => "a plain collection",
            Kind::TimeSeries => "a time series",
            Kind::View => "a view",
        }
    }
}

/// The collections of a plan that the target has with other options.
///
/// # Errors
/// [`TransferError::OtherKind`] for collections that are of another kind at the target, and the errors of the
/// target.
pub(super) fn compare_options(
    plan: &ImportPlan,
    target: &SharedStore,
) -> Result<Vec<OtherOptions>, TransferError> {
    let (mut others, mut of_other_kind) = (Vec::new(), Vec::new());
    for unit in &plan.units {
        let Some(listed) = listed(unit, &mut target.clone())? else { continue };
        let (here, there) = (Kind::of_unit(unit), Kind::of_listed(&listed));
        if here != there {
            of_other_kind.push(format!(
                "{} is {} at the source and {} at the target",
                unit.namespace(),
                here.text(),
                there.text()
            ));
            continue;
        }
        let of_target = listed.get_document("options").cloned().unwrap_or_default();
        let options = differences(&unit.description.options, &of_target);
        if !options.is_empty() {
            others.push(OtherOptions { namespace: unit.namespace(), options });
        }
    }
    if of_other_kind.is_empty() {
        return Ok(others);
    }
    let more = of_other_kind.len().saturating_sub(NAMES_SHOWN);
    of_other_kind.truncate(NAMES_SHOWN);
    let more = if more > 0 { format!(", and {more} more are of another kind") } else { String::new() };
    Err(TransferError::OtherKind { collections: format!("{}{more}", of_other_kind.join(", ")) })
}

/// A remark on the options of a dump that its collections do not get, because the target has them already.
/// There is none for a user who may not look at them.
///
/// # Errors
/// Those of the target, but no refusal.
pub(super) fn options_not_taken(
    plan: &ImportPlan,
    target: &mut dyn Target,
) -> Result<Vec<String>, TransferError> {
    let mut remarks = Vec::new();
    for unit in plan.units.iter().filter(|unit| !unit.description.options.is_empty()) {
        let listed = match listed(unit, target) {
            Ok(Some(listed)) => listed,
            Ok(None) | Err(TransferError::Refused { .. }) => continue,
            Err(error) => return Err(error),
        };
        let of_target = listed.get_document("options").cloned().unwrap_or_default();
        let lost = differences(&unit.description.options, &of_target);
        let lost: Vec<String> =
            lost.into_iter().filter(|option| option.source.is_some()).map(|option| option.name).collect();
        if !lost.is_empty() {
            remarks.push(format!(
                "{} was there already and keeps its own options, without these of the dump: {}; --drop makes it anew",
                unit.namespace(),
                lost.join(", ")
            ));
        }
    }
    Ok(remarks)
}

/// The description of a collection at the target, if it is there.
fn listed(unit: &Unit, target: &mut dyn Target) -> Result<Option<Document>, TransferError> {
    let command = doc! { "listCollections": 1, "filter": { "name": &unit.collection } };
    let reply = target.run(&unit.database, command, None)?;
    let batch = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
    Ok(batch.ok().and_then(|batch| batch.first()).and_then(Bson::as_document).cloned())
}

/// The options that differ, by name.
fn differences(source: &Document, target: &Document) -> Vec<OtherOption> {
    let (mut source, mut target) = (effective(source), effective(target));
    target.retain(|name, _| source.contains_key(name) || !OF_STORAGE.contains(&name.as_str()));
    source.retain(|name, value| match target.get(name) {
        Some(other) if is_same(value, other) => {
            target.remove(name);
            false
        }
        _ => true,
    });
    let mut names: Vec<String> = source.keys().chain(target.keys()).cloned().collect();
    names.sort();
    names.dedup();
    let option = |name: String| OtherOption {
        source: source.get(&name).cloned(),
        target: target.get(&name).cloned(),
        name,
    };
    names.into_iter().map(option).collect()
}

/// Options in one form, without defaults.
fn effective(options: &Document) -> BTreeMap<String, Bson> {
    let mut options = options.clone();
    forget_rules_version(&mut options);
    let mut kept = BTreeMap::new();
    for (name, mut value) in options {
        if let (Bson::Document(fields), true) = (&mut value, WITHOUT_ORDER.contains(&name.as_str())) {
            if name == "timeseries" {
                complete_granularity(fields);
            }
            let sorted: BTreeMap<String, Bson> = std::mem::take(fields).into_iter().collect();
            fields.extend(sorted);
        }
        if !is_default(&name, &value) {
            kept.insert(name, value);
        }
    }
    kept
}

/// The span of the buckets follows from the granularity, which is seconds where neither is named.
fn complete_granularity(series: &mut Document) {
    let has_span = series.contains_key("bucketMaxSpanSeconds");
    if !series.contains_key("granularity") && !has_span {
        series.insert("granularity", "seconds");
    }
    if series.contains_key("granularity") {
        series.remove("bucketMaxSpanSeconds");
    }
}

fn is_default(name: &str, value: &Bson) -> bool {
    match (name, value) {
        ("capped", Bson::Boolean(capped)) => !capped,
        ("collation", Bson::Document(collation)) => {
            collation.is_empty() || collation.get_str("locale").is_ok_and(|locale| locale == "simple")
        }
        ("validator" | "storageEngine" | "indexOptionDefaults", Bson::Document(fields)) => fields.is_empty(),
        ("validationLevel", Bson::String(level)) => level == "strict",
        ("validationAction", Bson::String(action)) => action == "error",
        ("changeStreamPreAndPostImages", Bson::Document(images)) => {
            !images.get_bool("enabled").unwrap_or(true)
        }
        (name, _) => WITHOUT_EFFECT.contains(&name),
    }
}

/// Whether two values mean the same. The type of a number means nothing in an option.
fn is_same(one: &Bson, other: &Bson) -> bool {
    match (one, other) {
        (Bson::Document(one), Bson::Document(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| one.0 == other.0 && is_same(one.1, other.1))
        }
        (Bson::Array(one), Bson::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        _ => one == other || number(one).is_some_and(|number_of_one| Some(number_of_one) == number(other)),
    }
}

fn number(value: &Bson) -> Option<f64> {
    match value {
        Bson::Int32(number) => Some(f64::from(*number)),
        Bson::Int64(number) => Some(*number as f64),
        Bson::Double(number) => Some(*number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &Document, target: &Document) -> Vec<String> {
        differences(source, target).into_iter().map(|option| option.name).collect()
    }

    #[test]
    fn options_differ_by_what_they_do_and_not_by_how_they_are_written() {
        let (none, capped) = (Document::new(), doc! { "capped": true, "size": 4096 });
        assert_eq!(names(&capped, &none), ["capped", "size"]);
        assert_eq!(names(&none, &capped), ["capped", "size"]);
        assert!(names(&capped, &doc! { "size": 4096.0, "capped": true, "autoIndexId": true }).is_empty());
        assert_eq!(names(&capped, &doc! { "capped": true, "size": 4097_i64 }), ["size"]);

        let defaults = doc! {
            "capped": false, "validator": {}, "validationLevel": "strict", "validationAction": "error",
            "collation": { "locale": "simple" }, "changeStreamPreAndPostImages": { "enabled": false },
        };
        assert!(names(&defaults, &none).is_empty() && names(&none, &defaults).is_empty());
        let of = |version, strength| {
            doc! { "collation": { "locale": "de", "strength": strength, "version": version } }
        };
        assert!(names(&of("57.1", 1), &of("153.80", 1)).is_empty());
        assert_eq!(names(&of("57.1", 1), &of("57.1", 2)), ["collation"]);

        // The order of stages and of sort fields counts.
        let view = |sort: Document| doc! { "viewOn": "a", "pipeline": [{ "$sort": sort }] };
        assert_eq!(names(&view(doc! { "a": 1, "b": 1 }), &view(doc! { "b": 1, "a": 1 })), ["pipeline"]);
        let series = doc! { "timeseries": { "timeField": "t", "granularity": "seconds", "bucketMaxSpanSeconds": 3600 } };
        assert!(names(&series, &doc! { "timeseries": { "timeField": "t" } }).is_empty());
    }

    #[test]
    fn a_layout_of_the_target_alone_is_no_difference_and_one_that_it_lacks_is() {
        let heap = doc! { "layout": "heap", "storageEngine": { "betree": { "compression": "lz4" } } };
        assert!(names(&Document::new(), &heap).is_empty());
        assert_eq!(names(&heap, &Document::new()), ["layout", "storageEngine"]);
    }

    #[test]
    fn a_difference_shows_both_values_and_cuts_long_ones() {
        let validator = doc! { "validator": { "name": { "$regex": "x".repeat(100) } } };
        let options = differences(&doc! { "capped": true }, &validator);
        let text = OtherOptions { namespace: "shop.c".to_owned(), options }.to_string();
        assert!(text.contains("shop.c: ") && text.contains("capped (true at the source, not set at the"));
        assert!(text.contains("xxx… at the target)"), "{text}");
    }
}
