//! The details of a document that a filter does not match, as the error of a validation shows them.
//!
//! # Steps
//! 1. The text of the filter is taken apart into *clauses*: a logical operator with its clauses, or one
//!    operator of one path. The details show each clause as it was written, which the parsed filter no longer
//!    knows.
//! 2. A clause is asked of the document by itself. The details of a failed conjunction are those of the
//!    clauses that fail, those of a failed negation those of the clause that holds.
//!
//! # Not here
//! The details of `$jsonSchema` (`schema`), the error around them (`commands`).

use pando_document::{Document, RawArray, RawDocument, RawValue, Value};

use super::comparison::is_operator_document;
use super::{Filter, Node};
use crate::QueryError;
use crate::expression::ParseScope;

/// Values that are shown of one clause.
const VALUES_MAX: usize = 10;

/// The side of a clause that the details tell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    /// Why it does not hold.
    Failure,
    /// Why it holds, where it must not.
    Success,
}

impl Told {
    fn negated(self) -> Told {
        match self {
            Told::Failure => Told::Success,
            Told::Success => Told::Failure,
        }
    }

    /// The name of a list of clauses.
    fn list_name(self) -> &'static str {
        match self {
            Told::Failure => "clausesNotSatisfied",
            Told::Success => "clausesSatisfied",
        }
    }
}

/// A part of a filter as it was written.
enum Clause {
    All(Vec<Clause>),
    Any(Vec<Clause>),
    None(Vec<Clause>),
    Not(Box<Clause>),
    Schema(Document),
    Expression(Document),
    /// One operator of one path.
    Leaf {
        path: String,
        operator: String,
        text: Document,
    },
}

/// The reasons why a document does not match a filter, which is given as its text.
///
/// # Errors
/// The filter or the document is malformed.
pub fn failure_details(
    filter: &RawDocument,
    document: &RawDocument,
    scope: &ParseScope,
) -> Result<Document, QueryError> {
    let subject = Subject { document, scope };
    subject.details(&clause_of(filter)?, Told::Failure)
}

fn clause_of(filter: &RawDocument) -> Result<Clause, QueryError> {
    let mut clauses = Vec::new();
    for field in filter.iter() {
        let (name, value) = field?;
        match (name, value) {
            ("$comment" | "$alwaysTrue", _) => {}
            ("$and", RawValue::Array(list)) => clauses.push(Clause::All(clauses_of(list)?)),
            ("$or", RawValue::Array(list)) => clauses.push(Clause::Any(clauses_of(list)?)),
            ("$nor", RawValue::Array(list)) => clauses.push(Clause::None(clauses_of(list)?)),
            ("$jsonSchema", value) => clauses.push(Clause::Schema(single(name, value))),
            (name, value) if name.starts_with('$') => clauses.push(Clause::Expression(single(name, value))),
            (path, RawValue::Document(operators)) if is_operator_document(operators)? => {
                add_operators(path, operators, &mut clauses)?;
            }
            (path, value) => clauses.push(Clause::Leaf {
                path: path.to_owned(),
                operator: "$eq".to_owned(),
                text: single(path, value),
            }),
        }
    }
    Ok(conjunction(clauses))
}

fn conjunction(mut clauses: Vec<Clause>) -> Clause {
    if clauses.len() == 1 { clauses.swap_remove(0) } else { Clause::All(clauses) }
}

fn clauses_of(list: &RawArray) -> Result<Vec<Clause>, QueryError> {
    let mut clauses = Vec::new();
    for filter in list.iter() {
        if let RawValue::Document(filter) = filter? {
            clauses.push(clause_of(filter)?);
        }
    }
    Ok(clauses)
}

fn add_operators(path: &str, operators: &RawDocument, clauses: &mut Vec<Clause>) -> Result<(), QueryError> {
    let mut regex = Document::new();
    for operator in operators.iter() {
        let (name, argument) = operator?;
        match (name, argument) {
            ("$regex" | "$options", argument) => regex.push(name, argument.to_owned()),
            ("$not", RawValue::Document(inner)) => {
                let mut within = Vec::new();
                add_operators(path, inner, &mut within)?;
                clauses.push(Clause::Not(Box::new(conjunction(within))));
            }
            ("$not", pattern) => {
                let leaf = Clause::Leaf {
                    path: path.into(),
                    operator: "$regex".into(),
                    text: single(path, pattern),
                };
                clauses.push(Clause::Not(Box::new(leaf)));
            }
            _ => {
                let mut text = Document::new();
                text.push(path, single(name, argument));
                clauses.push(Clause::Leaf { path: path.into(), operator: name.into(), text });
            }
        }
    }
    if !regex.is_empty() {
        let mut text = Document::new();
        text.push(path, regex);
        clauses.push(Clause::Leaf { path: path.into(), operator: "$regex".into(), text });
    }
    Ok(())
}

fn single(name: &str, value: RawValue<'_>) -> Document {
    let mut document = Document::new();
    document.push(name, value.to_owned());
    document
}

/// The document in question.
struct Subject<'s> {
    document: &'s RawDocument,
    scope: &'s ParseScope,
}

impl Subject<'_> {
    fn holds(&self, clause: &Clause) -> Result<bool, QueryError> {
        Ok(match clause {
            Clause::All(clauses) => self.count(clauses)? == clauses.len(),
            Clause::Any(clauses) => self.count(clauses)? > 0,
            Clause::None(clauses) => self.count(clauses)? == 0,
            Clause::Not(clause) => !self.holds(clause)?,
            Clause::Schema(text) | Clause::Expression(text) | Clause::Leaf { text, .. } => {
                Filter::parse(&text.to_raw(), self.scope)?.matches(self.document)?
            }
        })
    }

    /// The number of clauses that hold.
    fn count(&self, clauses: &[Clause]) -> Result<usize, QueryError> {
        let mut holding = 0;
        for clause in clauses {
            holding += usize::from(self.holds(clause)?);
        }
        Ok(holding)
    }

    fn details(&self, clause: &Clause, told: Told) -> Result<Document, QueryError> {
        match clause {
            Clause::All(clauses) => self.of_list("$and", clauses, told),
            Clause::Any(clauses) => self.of_list("$or", clauses, told),
            Clause::None(clauses) => self.of_list("$nor", clauses, told.negated()),
            Clause::Not(clause) => {
                let mut details = Document::new();
                details.push("operatorName", "$not");
                details.push("details", self.details(clause, told.negated())?);
                Ok(details)
            }
            Clause::Schema(text) => self.of_schema(text, told),
            Clause::Expression(text) => {
                let mut details = Document::new();
                details.push("operatorName", text.names().next().unwrap_or_default());
                details.push("specifiedAs", text.clone());
                let (reason, result) = match told {
                    Told::Failure => ("expression did not match", false),
                    Told::Success => ("expression did match", true),
                };
                details.push("reason", reason);
                details.push("expressionResult", result);
                Ok(details)
            }
            Clause::Leaf { path, operator, text } => self.of_leaf(path, operator, text, told),
        }
    }

    /// Of a logical operator those clauses are shown that are as they are told.
    fn of_list(&self, name: &str, clauses: &[Clause], told: Told) -> Result<Document, QueryError> {
        let mut shown = Vec::new();
        for (at, clause) in clauses.iter().enumerate() {
            if self.holds(clause)? == (told == Told::Success) {
                let mut one = Document::new();
                one.push("index", Value::Int32(i32::try_from(at).unwrap_or(i32::MAX)));
                one.push("details", self.details(clause, told)?);
                shown.push(Value::Document(one));
            }
        }
        let mut details = Document::new();
        details.push("operatorName", name);
        details.push(told.list_name(), Value::Array(shown));
        Ok(details)
    }

    fn of_schema(&self, text: &Document, told: Told) -> Result<Document, QueryError> {
        let filter = Filter::parse(&text.to_raw(), self.scope)?;
        match filter.root() {
            Node::Schema(schema) if told == Told::Failure => schema.details(self.document),
            _ => {
                let mut details = Document::new();
                details.push("operatorName", "$jsonSchema");
                details.push("reason", "schema matched");
                Ok(details)
            }
        }
    }

    fn of_leaf(
        &self,
        path: &str,
        operator: &str,
        text: &Document,
        told: Told,
    ) -> Result<Document, QueryError> {
        let mut details = Document::new();
        let shown = operator_shown(operator, text);
        details.push("operatorName", shown);
        details.push("specifiedAs", text.clone());
        if operator == "$exists" {
            let wanted = match text.get(path) {
                Some(Value::Document(argument)) => argument.get("$exists").is_some_and(Value::to_bool),
                _ => true,
            };
            let is_there = wanted == (told == Told::Success);
            details.push("reason", if is_there { "path does exist" } else { "path does not exist" });
            return Ok(details);
        }
        let mut values = Vec::new();
        let depth = if is_about_arrays(operator) { Depth::Whole } else { Depth::Elements };
        collect(RawValue::Document(self.document), path, depth, &mut values)?;
        if values.is_empty() {
            details.push("reason", "field was missing");
            return Ok(details);
        }
        let expected = expected_types(shown);
        let is_of_type =
            |value: &RawValue<'_>| expected.is_empty() || expected.contains(&value.element_type().alias());
        if told == Told::Failure && !values.iter().any(is_of_type) {
            details.push("reason", "type did not match");
            push_types(&values, &mut details);
            match expected {
                [only] => details.push("expectedType", *only),
                several => {
                    let names = several.iter().map(|name| Value::from(*name)).collect();
                    details.push("expectedTypes", Value::Array(names));
                }
            }
            push_values(&values, &mut details);
            return Ok(details);
        }
        let (failure, success) = reasons(shown);
        details.push("reason", if told == Told::Failure { failure } else { success });
        push_values(&values, &mut details);
        if operator == "$type" {
            push_types(&values, &mut details);
        }
        Ok(details)
    }
}

/// The name under which an operator is shown: a pattern in the place of a value is `$regex`.
fn operator_shown<'o>(operator: &'o str, text: &Document) -> &'o str {
    match text.iter().next() {
        Some((_, Value::Regex(_))) => "$regex",
        _ => operator,
    }
}

/// The reasons of failure and of success.
fn reasons(operator: &str) -> (&'static str, &'static str) {
    match operator {
        "$ne" => ("comparison succeeded", "comparison failed"),
        "$in" => ("no matching value found in array", "matching value found in array"),
        "$nin" => ("matching value found in array", "no matching value found in array"),
        "$type" => ("type did not match", "type did match"),
        "$regex" => ("regular expression did not match", "regular expression did match"),
        "$mod" => ("$mod did not evaluate to expected remainder", "$mod did evaluate to expected remainder"),
        "$size" => ("array length was not equal to given size", "array length was equal to given size"),
        "$all" => ("array did not contain all specified values", "array did contain all specified values"),
        "$elemMatch" => {
            ("array did not satisfy the child predicate", "array did satisfy the child predicate")
        }
        "$bitsAllSet" | "$bitsAnySet" | "$bitsAllClear" | "$bitsAnyClear" => {
            ("bitwise operator failed to match", "bitwise operator matched successfully")
        }
        _ => ("comparison failed", "comparison succeeded"),
    }
}

/// The types to which an operator applies; none where it applies to all.
fn expected_types(operator: &str) -> &'static [&'static str] {
    match operator {
        "$regex" => &["regex", "string", "symbol"],
        "$mod" => &["decimal", "double", "int", "long"],
        "$size" | "$elemMatch" => &["array"],
        "$bitsAllSet" | "$bitsAnySet" | "$bitsAllClear" | "$bitsAnyClear" => {
            &["binData", "decimal", "double", "int", "long"]
        }
        _ => &[],
    }
}

fn is_about_arrays(operator: &str) -> bool {
    matches!(operator, "$size" | "$elemMatch" | "$all")
}

/// How an array at the end of a path is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// As a value.
    Whole,
    /// Each of its elements.
    Elements,
}

/// The values at a path. The nesting of documents is bounded.
fn collect<'d>(
    value: RawValue<'d>,
    path: &str,
    depth: Depth,
    values: &mut Vec<RawValue<'d>>,
) -> Result<(), QueryError> {
    if values.len() > VALUES_MAX {
        return Ok(());
    }
    let (name, rest) = path.split_once('.').unwrap_or((path, ""));
    match value {
        RawValue::Document(document) => {
            let Some(found) = document.get(name)? else { return Ok(()) };
            at_end(found, rest, depth, values)
        }
        RawValue::Array(items) => {
            if let Ok(place) = name.parse::<usize>()
                && let Some(item) = items.iter().nth(place).transpose()?
            {
                at_end(item, rest, depth, values)?;
            }
            for item in items.iter() {
                if let item @ RawValue::Document(_) = item? {
                    collect(item, path, depth, values)?;
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn at_end<'d>(
    found: RawValue<'d>,
    rest: &str,
    depth: Depth,
    values: &mut Vec<RawValue<'d>>,
) -> Result<(), QueryError> {
    if !rest.is_empty() {
        return collect(found, rest, depth, values);
    }
    match found {
        RawValue::Array(items) if depth == Depth::Elements && !items.is_empty() => {
            for item in items.iter().take(VALUES_MAX + 1) {
                values.push(item?);
            }
        }
        found => values.push(found),
    }
    Ok(())
}

fn push_values(values: &[RawValue<'_>], details: &mut Document) {
    match values {
        [only] => details.push("consideredValue", only.to_owned()),
        several => {
            let shown = several.iter().take(VALUES_MAX).map(RawValue::to_owned).collect();
            details.push("consideredValues", Value::Array(shown));
            if several.len() > VALUES_MAX {
                details.push("consideredValuesTruncated", true);
            }
        }
    }
}

fn push_types(values: &[RawValue<'_>], details: &mut Document) {
    let mut types: Vec<&str> = values.iter().map(|value| value.element_type().alias()).collect();
    types.sort_unstable();
    types.dedup();
    match types.as_slice() {
        [only] => details.push("consideredType", *only),
        several => {
            let names = several.iter().map(|name| Value::from(*name)).collect();
            details.push("consideredTypes", Value::Array(names));
        }
    }
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    fn details(filter: Document, document: Document) -> Document {
        failure_details(&filter.to_raw(), &document.to_raw(), &ParseScope::at(0)).unwrap()
    }

    #[test]
    fn a_conjunction_shows_the_clauses_that_fail() {
        let shown = details(doc! { "a": { "$gt": 1, "$lt": 5 }, "b": 1 }, doc! { "a": 7, "b": 2 });
        let Some(Value::Array(clauses)) = shown.get("clausesNotSatisfied") else { panic!("{shown:?}") };
        let places: Vec<_> =
            clauses.iter().map(|clause| clause.as_document().unwrap().get("index")).collect();
        assert_eq!(places, [Some(&Value::Int32(1)), Some(&Value::Int32(2))]);
    }

    #[test]
    fn a_negation_shows_the_clause_that_holds() {
        let shown = details(doc! { "a": { "$not": { "$gt": 1 } } }, doc! { "a": [2, 3] });
        let inner = shown.get("details").and_then(Value::as_document).unwrap();
        assert_eq!(inner.get("reason").and_then(Value::as_str), Some("comparison succeeded"));
        assert_eq!(inner.get("consideredValues"), doc! { "v": [2, 3] }.get("v"));
    }

    #[test]
    fn few_of_many_values_are_shown() {
        let many: Vec<Value> = (0..50).map(Value::Int32).collect();
        let mut document = Document::new();
        document.push("a", Value::Array(many));
        let shown = details(doc! { "a": { "$gt": 90 } }, document);
        let Some(Value::Array(values)) = shown.get("consideredValues") else { panic!("{shown:?}") };
        assert_eq!(values.len(), VALUES_MAX);
        assert!(shown.contains("consideredValuesTruncated"));
    }
}
