//! `$currentDate`: the moment of the update, as a date (`true`, `{$type: "date"}`) or a timestamp.

use pando_document::{RawValue, Value};

use super::{Effect, Operator, Surroundings, bad_value};
use crate::error::QueryError;
use crate::update::trail::Trail;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CurrentDate {
    Date,
    Timestamp,
}

pub(super) fn parse(argument: RawValue<'_>) -> Result<Box<dyn Operator>, QueryError> {
    let kind = match argument {
        RawValue::Boolean(_) => CurrentDate::Date,
        RawValue::Document(options) => {
            for element in options.iter() {
                let (name, _) = element?;
                if name != "$type" {
                    return Err(bad_value(format!("Unrecognized $currentDate option: {name}")));
                }
            }
            match options.get("$type")? {
                Some(RawValue::String("date")) => CurrentDate::Date,
                Some(RawValue::String("timestamp")) => CurrentDate::Timestamp,
                _ => {
                    return Err(bad_value(
                        "The '$type' string field is required to be 'date' or 'timestamp': \
                         {$currentDate: {field : {$type: 'date'}}}"
                            .to_owned(),
                    ));
                }
            }
        }
        other => {
            return Err(bad_value(format!(
                "{} is not valid type for $currentDate. Please use a boolean ('true') or a $type expression \
                 ({{$type: 'timestamp/date'}}).",
                other.element_type().alias()
            )));
        }
    };
    Ok(Box::new(kind))
}

impl Operator for CurrentDate {
    fn apply<'v>(
        &'v self,
        _: RawValue<'v>,
        surroundings: &Surroundings<'v>,
        trail: &Trail<'_>,
    ) -> Result<Effect<'v>, QueryError> {
        self.create(surroundings, trail)
    }

    fn create<'v>(
        &'v self,
        surroundings: &Surroundings<'v>,
        _: &Trail<'_>,
    ) -> Result<Effect<'v>, QueryError> {
        Ok(Effect::PutValue(match self {
            CurrentDate::Date => Value::DateTime(surroundings.context.now_millis),
            CurrentDate::Timestamp => Value::Timestamp(surroundings.context.timestamp),
        }))
    }

    fn creates(&self, _: &Surroundings<'_>) -> bool {
        true
    }
}
