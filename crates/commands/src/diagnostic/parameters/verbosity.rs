//! The changes that `logLevel` and `logComponentVerbosity` ask for.

use pando_document::{JsonFormat, RawDocument, RawValue, to_json};

use super::value::whole_number;
use crate::arguments::whole;
use crate::log_verbosity::{LEVEL_MAX, LogComponent};
use crate::{CommandError, ErrorCode};

/// A level for a component.
type LevelChange = (LogComponent, i32);

/// The change of the level of all components that have none of their own: a number from 0, its fraction cut
/// off. One above 5 is 5.
pub(super) fn change_of_all(name: &str, value: RawValue<'_>) -> Result<LevelChange, CommandError> {
    let level = match value {
        number if number.is_number() => whole_number::<i32>(name, number).ok().filter(|level| *level >= 0),
        _ => None,
    };
    let level = level.filter(|_| !matches!(value, RawValue::Double(double) if double.is_nan()));
    let level = level.ok_or_else(|| {
        let text = to_json(value, JsonFormat::Relaxed);
        let sentence = format!("Invalid value for {name}: {name}: {text}");
        CommandError::failed(ErrorCode::BadValue, sentence)
    })?;
    Ok((LogComponent::Whole, level))
}

/// The changes of a document of components.
pub(super) fn changes(name: &str, value: RawValue<'_>) -> Result<Vec<LevelChange>, CommandError> {
    let RawValue::Document(document) = value else {
        let text = to_json(value, JsonFormat::Relaxed);
        let sentence = format!("log component verbosity is not a BSON object: {name}: {text}");
        return Err(CommandError::failed(ErrorCode::TypeMismatch, sentence));
    };
    let mut changes = Vec::new();
    collect(LogComponent::Whole, document, &mut changes)?;
    Ok(changes)
}

/// Collects the changes of the document of a component: its own level, and those of the components within.
fn collect(
    component: LogComponent,
    document: &RawDocument,
    changes: &mut Vec<LevelChange>,
) -> Result<(), CommandError> {
    let refused = |sentence: String| Err(CommandError::failed(ErrorCode::BadValue, sentence));
    for field in document.iter() {
        let (name, value) = field?;
        let path = format!("{}.{name}", component.path());
        let found = value.element_type().alias();
        match (name, component.part(name), value) {
            ("verbosity", _, number) if number.is_number() => changes.push((component, level_of(number))),
            ("verbosity", ..) => {
                return refused(format!("Expected {path} to be a number, but found {found}"));
            }
            (_, None, _) => return refused(format!("Invalid component name {path}")),
            (_, Some(part), RawValue::Document(inner)) => collect(part, inner, changes)?,
            (_, Some(part), number) if number.is_number() => changes.push((part, level_of(number))),
            (_, Some(_), _) => return refused(format!("Invalid type {found} for component {path}")),
        }
    }
    Ok(())
}

/// The level of a number, its fraction cut off.
fn level_of(number: RawValue<'_>) -> i32 {
    i32::try_from(whole(number).clamp(-1, i64::from(LEVEL_MAX))).unwrap_or(LEVEL_MAX)
}

#[cfg(test)]
mod tests {
    use pando_document::{Document, doc};

    use super::*;

    fn asked(document: Document) -> Result<Vec<(&'static str, i32)>, String> {
        let raw = document.to_raw();
        let changes = changes("logComponentVerbosity", RawValue::Document(&raw));
        let changes = changes.map_err(|error| error.to_string())?;
        Ok(changes.into_iter().map(|(component, level)| (component.path(), level)).collect())
    }

    #[test]
    fn components_have_numbers_or_documents() {
        let nested = doc! { "storage": { "journal": { "verbosity": 2 }, "verbosity": 1.5 }, "verbosity": 9 };
        assert_eq!(asked(nested).unwrap(), [("storage.journal", 2), ("storage", 1), ("default", LEVEL_MAX)]);
        assert_eq!(asked(doc! { "query": -4 }).unwrap(), [("query", -1)]);
        for (wrong, sentence) in [
            (doc! { "nope": 1 }, "Invalid component name default.nope"),
            (doc! { "network": { "asio": { "x": 1 } } }, "Invalid component name network.asio.x"),
            (doc! { "query": "x" }, "Invalid type string for component default.query"),
            (
                doc! { "query": { "verbosity": true } },
                "Expected query.verbosity to be a number, but found bool",
            ),
        ] {
            assert!(asked(wrong).unwrap_err().contains(sentence), "{sentence}");
        }
    }

    #[test]
    fn the_level_of_all_is_a_number_from_0() {
        let level = |value| change_of_all("logLevel", value).map(|(_, level)| level).ok();
        assert_eq!(level(RawValue::Double(-0.5)), Some(0));
        assert_eq!(level(RawValue::Int64(100)), Some(100), "it is 5 where it is kept");
        for wrong in [RawValue::Int32(-1), RawValue::Boolean(true), RawValue::Double(f64::NAN)] {
            assert_eq!(level(wrong), None, "{wrong:?}");
        }
        assert_eq!(level(RawValue::Double(1e10)), None);
    }
}
