//! `$dateToParts`: a document of year, month, day and time, or of the ISO week.

use pando_document::{Number, RawValue};

use super::date::{required_moment, zone_or_utc};
use super::named::Names;
use super::{
    Arity, Call, Definition, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError,
    document_of, narrowed,
};
use crate::date::calendar::{MILLIS_PER_DAY, Moment, iso_week, weekday};

/// Arguments: date, timezone, iso8601.
static DATE_TO_PARTS: Definition = Definition { name: "$dateToParts", arity: Arity::Any, run };

static NAMES: Names = Names {
    operator: "$dateToParts",
    names: &["date", "timezone", "iso8601"],
    required: &[("date", ExpressionFault::DateToPartsWithoutDate.code())],
    not_object: ExpressionFault::DateToPartsNotObject.code(),
    unknown: ExpressionFault::DateToPartsUnknownArgument.code(),
};

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    NAMES.call(&DATE_TO_PARTS, argument, scope)
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let (date, zone, iso) = (call.argument(0, frame)?, call.argument(1, frame)?, call.argument(2, frame)?);
    let is_null = |index, value: &Evaluated<'_>| call.has(index) && value.is_nullish();
    if date.is_nullish() || is_null(1, &zone) || is_null(2, &iso) {
        return Ok(Evaluated::NULL);
    }
    let moment = required_moment(&date)?;
    let zone = zone_or_utc(call, 1, &zone)?;
    let local = zone.to_local(moment);
    let days = local.div_euclid(MILLIS_PER_DAY);
    let parts = Moment::from_millis(local);
    let date_parts = match (call.has(2), iso.raw()) {
        (true, Some(RawValue::Boolean(true))) => {
            let (year, week) = iso_week(days);
            let day = (weekday(days) + 6) % 7 + 1;
            [("isoWeekYear", year), ("isoWeek", week), ("isoDayOfWeek", day)]
        }
        (false, _) | (true, Some(RawValue::Boolean(false))) => {
            [("year", parts.year), ("month", parts.month), ("day", parts.day)]
        }
        _ => {
            return Err(ExpressionFault::DateToPartsIsoNotBoolean
                .error(format!("iso8601 must evaluate to a bool, found {}", iso.type_name())));
        }
    };
    let time_parts = [
        ("hour", parts.hour),
        ("minute", parts.minute),
        ("second", parts.second),
        ("millisecond", parts.millisecond),
    ];
    document_of(|writer| {
        for (name, part) in date_parts.into_iter().chain(time_parts) {
            let number: Number = narrowed(part);
            writer.append(name, number.to_raw());
        }
        Ok(())
    })
}
