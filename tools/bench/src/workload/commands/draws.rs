//! Draws in a command: places that get another value in each request.
//!
//! | place | value |
//! |---|---|
//! | `{"$draw": [low, high]}` | a whole number, both ends included |
//! | `{"$draw": [low, high], "as": "name"}` | the same, and it is remembered within this request |
//! | `{"$drawDate": [low, high]}` | a date, its ends in milliseconds since 1970; may have an `as` |
//! | `{"$drawn": "name", "plus": n}` | a number or date that was remembered, and `n` more; `plus` may be absent |
//! | `{"$drawMany": [count, low, high]}` | an array of whole numbers |
//! | `{"$drawDouble": [low, high]}` | a double, the upper end excluded |
//! | `{"$drawText": ["prefix", low, high]}` | the prefix and a whole number behind it |
//!
//! All draws are even. A whole number is an Int32 if both ends are, otherwise an Int64.

use pando_document::{Document, Value};
use pando_measuring::random::Random;

/// The most numbers of a `$drawMany`.
const MANY_MAX: i64 = 100_000;

/// A command with its draws.
#[derive(Clone, Debug)]
pub struct Template {
    root: Vec<(String, Part)>,
}

#[derive(Clone, Debug)]
enum Part {
    Fixed(Value),
    Document(Vec<(String, Part)>),
    Array(Vec<Part>),
    Draw { range: Range, name: Option<String> },
    Drawn { name: String, plus: i64 },
    Many { count: u32, range: Range },
    Double { low: f64, width: f64 },
    Text { prefix: String, range: Range },
}

/// Whole numbers from `low`, `width` of them.
#[derive(Clone, Copy, Debug)]
struct Range {
    low: i64,
    width: u32,
    kind: NumberKind,
}

/// The type that a number gets.
#[derive(Clone, Copy, Debug)]
enum NumberKind {
    Int32,
    Int64,
    Date,
}

impl Template {
    /// The template of a command.
    ///
    /// # Errors
    /// The cause, in words, of a place that is malformed or names a draw that does not stand before it.
    pub fn of(command: &Document) -> Result<Template, String> {
        let mut names = Vec::new();
        let root = fields_of(command, &mut names)?;
        Ok(Template { root })
    }

    /// The command with values drawn from `random`.
    pub fn fill(&self, random: &mut Random) -> Document {
        let mut remembered = Vec::new();
        fill_fields(&self.root, random, &mut remembered)
    }
}

fn fields_of(document: &Document, names: &mut Vec<String>) -> Result<Vec<(String, Part)>, String> {
    document.iter().map(|(name, value)| Ok((name.to_owned(), Part::of(value, names)?))).collect()
}

impl Part {
    fn of(value: &Value, names: &mut Vec<String>) -> Result<Part, String> {
        match value {
            Value::Document(document) => match document.iter().next() {
                Some((place, argument)) if place.starts_with("$draw") => {
                    Part::of_place(place, argument, document, names)
                }
                _ => Ok(Part::Document(fields_of(document, names)?)),
            },
            Value::Array(values) => {
                let parts: Result<Vec<Part>, String> =
                    values.iter().map(|value| Part::of(value, names)).collect();
                Ok(Part::Array(parts?))
            }
            fixed => Ok(Part::Fixed(fixed.clone())),
        }
    }

    fn of_place(
        place: &str,
        argument: &Value,
        document: &Document,
        names: &mut Vec<String>,
    ) -> Result<Part, String> {
        let further = match place {
            "$draw" | "$drawDate" => "as",
            "$drawn" => "plus",
            _ => "",
        };
        if let Some(unknown) = document.names().skip(1).find(|name| *name != further) {
            return Err(format!("{place} has no `{unknown}`"));
        }
        let values = argument.as_array().unwrap_or_default();
        let part = match (place, values) {
            ("$draw", [low, high]) => {
                Range::of(low, high).map(|range| Part::Draw { range, name: remember(document, names) })
            }
            ("$drawDate", [low, high]) => Range::of(low, high).map(|range| {
                let range = Range { kind: NumberKind::Date, ..range };
                Part::Draw { range, name: remember(document, names) }
            }),
            ("$drawn", _) => Part::remembered(argument, document, names),
            ("$drawMany", [count, low, high]) => {
                let count = count.as_i64_exact().filter(|count| (0..=MANY_MAX).contains(count));
                let count = count.and_then(|count| u32::try_from(count).ok());
                count.zip(Range::of(low, high)).map(|(count, range)| Part::Many { count, range })
            }
            ("$drawDouble", [low, high]) => double(low).zip(double(high)).and_then(|(low, high)| {
                (low < high && (high - low).is_finite()).then_some(Part::Double { low, width: high - low })
            }),
            ("$drawText", [prefix, low, high]) => prefix
                .as_str()
                .zip(Range::of(low, high))
                .map(|(prefix, range)| Part::Text { prefix: prefix.to_owned(), range }),
            _ => None,
        };
        part.ok_or_else(|| {
            format!("{place} cannot be used like this; `pando-bench commands --help` shows how")
        })
    }

    fn remembered(argument: &Value, document: &Document, names: &[String]) -> Option<Part> {
        let name = argument.as_str().filter(|name| names.iter().any(|known| known == name))?;
        let plus = document.get("plus").map_or(Some(0), Value::as_i64_exact)?;
        Some(Part::Drawn { name: name.to_owned(), plus })
    }

    fn fill(&self, random: &mut Random, remembered: &mut Vec<(String, i64, Range)>) -> Value {
        match self {
            Part::Fixed(value) => value.clone(),
            Part::Document(fields) => Value::Document(fill_fields(fields, random, remembered)),
            Part::Array(parts) => {
                Value::Array(parts.iter().map(|part| part.fill(random, remembered)).collect())
            }
            Part::Draw { range, name } => {
                let number = range.draw(random);
                remembered.extend(name.clone().map(|name| (name, number, *range)));
                range.value(number)
            }
            Part::Drawn { name, plus } => {
                let found = remembered.iter().rev().find(|drawn| &drawn.0 == name);
                let (_, number, range) = found.expect("the template knows names that stand before only");
                range.value(number.saturating_add(*plus))
            }
            Part::Many { count, range } => {
                Value::Array((0..*count).map(|_| range.value(range.draw(random))).collect())
            }
            Part::Double { low, width } => Value::Double(low + width * random.unit()),
            Part::Text { prefix, range } => Value::String(format!("{prefix}{}", range.draw(random))),
        }
    }
}

fn fill_fields(
    fields: &[(String, Part)],
    random: &mut Random,
    remembered: &mut Vec<(String, i64, Range)>,
) -> Document {
    let mut document = Document::new();
    for (name, part) in fields {
        document.push(name.as_str(), part.fill(random, remembered));
    }
    document
}

/// The name under which a draw is remembered, if it has one.
fn remember(document: &Document, names: &mut Vec<String>) -> Option<String> {
    let name = document.get("as").and_then(Value::as_str).map(str::to_owned);
    names.extend(name.clone());
    name
}

fn double(value: &Value) -> Option<f64> {
    match value {
        Value::Double(double) => Some(*double),
        #[expect(clippy::cast_precision_loss, reason = "ends of ranges are small")]
        other => other.as_i64_exact().map(|whole| whole as f64),
    }
}

impl Range {
    fn of(low: &Value, high: &Value) -> Option<Range> {
        let (low, high) = (low.as_i64_exact()?, high.as_i64_exact()?);
        let width = u32::try_from(high.checked_sub(low)?.checked_add(1)?).ok().filter(|width| *width > 0)?;
        let is_small = i32::try_from(low).is_ok() && i32::try_from(high).is_ok();
        Some(Range { low, width, kind: if is_small { NumberKind::Int32 } else { NumberKind::Int64 } })
    }

    fn draw(self, random: &mut Random) -> i64 {
        self.low + i64::from(random.below(self.width))
    }

    fn value(self, number: i64) -> Value {
        match (self.kind, i32::try_from(number)) {
            (NumberKind::Date, _) => Value::DateTime(number),
            (NumberKind::Int32, Ok(small)) => Value::Int32(small),
            _ => Value::Int64(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_document::{doc, parse_json_line};
    use pando_measuring::random::Generator;

    fn random() -> Random {
        Random::for_client(Generator::Xoshiro, 1, 0)
    }

    fn template(json: &str) -> Result<Template, String> {
        Template::of(&parse_json_line(json).expect("JSON"))
    }

    #[test]
    fn a_command_without_draws_stays_as_it_is() {
        let command = doc! { "find": "a", "filter": { "x": [1, { "y": "z" }] } };
        assert_eq!(Template::of(&command).expect("no place").fill(&mut random()), command);
    }

    #[test]
    fn draws_stay_within_their_ends_and_reach_them() {
        let template = template(r#"{"a": {"$draw": [3, 5]}, "b": [{"$draw": [3000000000, 3000000001]}]}"#);
        let (template, mut random) = (template.expect("sound"), random());
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let command = template.fill(&mut random);
            let Some(Value::Int32(a)) = command.get("a") else { panic!("an Int32") };
            let Some([Value::Int64(b)]) = command.get("b").and_then(Value::as_array) else {
                panic!("an Int64")
            };
            seen.insert((*a, *b - 3_000_000_000));
        }
        let all: Vec<(i32, i64)> = (3..=5).flat_map(|a| [(a, 0), (a, 1)]).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), all);
    }

    #[test]
    fn a_remembered_number_is_the_one_of_this_request() {
        let json =
            r#"{"f": {"$gte": {"$draw": [0, 900], "as": "low"}, "$lt": {"$drawn": "low", "plus": 100}}}"#;
        let (template, mut random) = (template(json).expect("sound"), random());
        for _ in 0..50 {
            let command = template.fill(&mut random);
            let filter = command.get("f").and_then(Value::as_document).expect("a filter");
            let end = |name| filter.get(name).and_then(Value::as_i64_exact).expect("a number");
            assert_eq!(end("$lt") - end("$gte"), 100);
        }
    }

    #[test]
    fn dates_stay_dates_when_they_are_remembered() {
        let json = r#"{"a": {"$drawDate": [1700000000000, 1700000000000], "as": "day"}, "b": {"$drawn": "day", "plus": 5}}"#;
        let command = template(json).expect("sound").fill(&mut random());
        assert_eq!(
            command,
            doc! { "a": Value::DateTime(1_700_000_000_000), "b": Value::DateTime(1_700_000_000_005) }
        );
    }

    #[test]
    fn arrays_doubles_and_texts() {
        let json = r#"{"many": {"$drawMany": [4, 1, 9]}, "at": {"$drawDouble": [-1, 1]}, "name": {"$drawText": ["item ", 7, 7]}}"#;
        let command = template(json).expect("sound").fill(&mut random());
        assert_eq!(command.get("many").and_then(Value::as_array).map(<[Value]>::len), Some(4));
        assert!(matches!(command.get("at"), Some(Value::Double(at)) if (-1.0..1.0).contains(at)));
        assert_eq!(command.get("name").and_then(Value::as_str), Some("item 7"));
    }

    #[test]
    fn malformed_places_are_refused() {
        for json in [
            r#"{"a": {"$draw": 5}}"#,
            r#"{"a": {"$draw": [5, 4]}}"#,
            r#"{"a": {"$draw": [0, 5000000000]}}"#,
            r#"{"a": {"$draw": [0, 5], "like": "x"}}"#,
            r#"{"a": {"$drawn": "later"}, "b": {"$draw": [0, 1], "as": "later"}}"#,
            r#"{"a": {"$drawMany": [-1, 0, 1]}}"#,
            r#"{"a": {"$drawDouble": [1, 1]}}"#,
            r#"{"a": {"$drawText": [1, 1, 1]}}"#,
            r#"{"a": {"$drawNothing": [1, 1]}}"#,
        ] {
            assert!(template(json).is_err(), "{json}");
        }
    }
}
