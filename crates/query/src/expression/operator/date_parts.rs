//! `$year`, `$month`, `$hour` and the other parts of a date, in UTC or in a time zone.

use pando_document::{Number, RawValue};

use super::date::{required_moment, zone_of};
use super::{Arity, Call, Definition, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError};
use crate::date::calendar::{MILLIS_PER_DAY, Moment, day_of_year, iso_week, week_of_year, weekday};
use crate::shell_text;

macro_rules! parts {
    ($($name:literal $constant:ident $part:expr,)+) => {
        $(
            /// Arguments: date, timezone.
            static $constant: Definition = Definition {
                name: $name,
                arity: Arity::Any,
                run: |call, frame| {
                    let part: fn(i64) -> Number = $part;
                    run(call, frame, part)
                },
            };
        )+

        /// The operator of a name.
        pub(super) fn find(name: &str) -> Option<&'static Definition> {
            match name {
                $($name => Some(&$constant),)+
                _ => None,
            }
        }
    };
}

parts! {
    "$year" YEAR |local| int(Moment::from_millis(local).year),
    "$month" MONTH |local| int(Moment::from_millis(local).month),
    "$dayOfMonth" DAY_OF_MONTH |local| int(Moment::from_millis(local).day),
    "$hour" HOUR |local| int(Moment::from_millis(local).hour),
    "$minute" MINUTE |local| int(Moment::from_millis(local).minute),
    "$second" SECOND |local| int(Moment::from_millis(local).second),
    "$millisecond" MILLISECOND |local| int(Moment::from_millis(local).millisecond),
    "$dayOfWeek" DAY_OF_WEEK |local| int(weekday(days(local)) + 1),
    "$dayOfYear" DAY_OF_YEAR |local| int(day_of_year(days(local)) + 1),
    "$week" WEEK |local| int(week_of_year(days(local))),
    "$isoWeek" ISO_WEEK |local| int(iso_week(days(local)).1),
    "$isoWeekYear" ISO_WEEK_YEAR |local| Number::Int64(iso_week(days(local)).0),
    "$isoDayOfWeek" ISO_DAY_OF_WEEK |local| int((weekday(days(local)) + 6) % 7 + 1),
}

fn days(local: i64) -> i64 {
    local.div_euclid(MILLIS_PER_DAY)
}

fn int(part: i64) -> Number {
    super::narrowed(part)
}

/// The argument is a date, a list of one date, or `{date, timezone}`.
pub(super) fn parse(
    name: &str,
    argument: RawValue<'_>,
    scope: &ParseScope,
) -> Result<Expression, QueryError> {
    let Some(definition) = find(name) else { unreachable!("the caller has found the name") };
    let mut arguments = vec![None, None];
    match argument {
        RawValue::Document(given) if is_named(given)? => {
            for element in given.iter() {
                match element? {
                    ("date", value) => arguments[0] = Some(Expression::parse(value, scope)?),
                    ("timezone", value) => arguments[1] = Some(Expression::parse(value, scope)?),
                    (other, _) => {
                        return Err(ExpressionFault::DateUnknownArgument
                            .error(format!("unrecognized option to {name}: \"{other}\"")));
                    }
                }
            }
            if arguments[0].is_none() {
                return Err(ExpressionFault::DateArgumentMissing.error(format!(
                    "missing 'date' argument to {name}, provided: {name}: {}",
                    shell_text::document_text(given)
                )));
            }
        }
        RawValue::Array(list) => {
            let values = list.iter().collect::<Result<Vec<_>, _>>()?;
            let [only] = values.as_slice() else {
                return Err(ExpressionFault::DateArgumentCount.error(format!(
                    "{name} accepts exactly one argument if given an array, but was given {}",
                    values.len()
                )));
            };
            arguments[0] = Some(Expression::parse(*only, scope)?);
        }
        single => arguments[0] = Some(Expression::parse(single, scope)?),
    }
    Ok(Expression::from_call(Call::named(definition, arguments)))
}

fn is_named(document: &pando_document::RawDocument) -> Result<bool, QueryError> {
    match document.iter().next() {
        Some(first) => Ok(!first?.0.starts_with('$')),
        None => Ok(true),
    }
}

fn run<'a>(
    call: &'a Call,
    frame: &mut Frame<'a>,
    part: fn(i64) -> Number,
) -> Result<Evaluated<'a>, QueryError> {
    let date = call.argument(0, frame)?;
    if date.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let mut local = required_moment(&date)?;
    if call.has(1) {
        let zone = call.argument(1, frame)?;
        if zone.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        local = zone_of(call.name(), &zone, ExpressionFault::TimeZoneNotString)?.to_local(local);
    }
    Ok(Evaluated::number(part(local)))
}
