//! `$dateAdd` and `$dateSubtract`: a date some units later or earlier.
//!
//! Years to days are those of the wall clock in the time zone; a month later than January 31 is the last day
//! of February. Hours and less are real time.

use pando_document::RawValue;

use super::date::{Span, Unit, moment_of, unless_null, zone_or_utc};
use super::named::Names;
use super::{
    Arity, Call, Definition, ErrorCode, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError,
};
use crate::date::calendar::{MILLIS_PER_DAY, Moment, days_in_month};
use crate::date::time_zone::Zone;

/// Arguments: startDate, unit, amount, timezone.
static DATE_ADD: Definition = Definition { name: "$dateAdd", arity: Arity::Any, run: run_add };
static DATE_SUBTRACT: Definition = Definition { name: "$dateSubtract", arity: Arity::Any, run: run_subtract };

const fn names(operator: &'static str) -> Names {
    const MISSING: ErrorCode = ExpressionFault::DateArithmeticArgumentMissing.code();
    Names {
        operator,
        names: &["startDate", "unit", "amount", "timezone"],
        required: &[("startDate", MISSING), ("unit", MISSING), ("amount", MISSING)],
        not_object: ExpressionFault::DateArithmeticNotObject.code(),
        unknown: ExpressionFault::DateArithmeticUnknownArgument.code(),
    }
}

pub(super) fn parse_add(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    names("$dateAdd").call(&DATE_ADD, argument, scope)
}

pub(super) fn parse_subtract(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    names("$dateSubtract").call(&DATE_SUBTRACT, argument, scope)
}

fn run_add<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run(call, frame, Some)
}

fn run_subtract<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run(call, frame, i64::checked_neg)
}

fn run<'a>(
    call: &'a Call,
    frame: &mut Frame<'a>,
    direct: fn(i64) -> Option<i64>,
) -> Result<Evaluated<'a>, QueryError> {
    let Some([start, unit, amount, zone]) = unless_null(call, frame, [0, 1, 2, 3])? else {
        return Ok(Evaluated::NULL);
    };
    let name = call.name();
    let Some(moment) = moment_of(&start) else {
        return Err(ExpressionFault::DateArithmeticNotDate
            .error(format!("{name} requires startDate to be convertible to a date")));
    };
    let Some(unit_name) = unit.as_str() else {
        return Err(ExpressionFault::DateArithmeticUnitNotString
            .error(format!("{name} expects string defining the time unit")));
    };
    let Some(unit) = Unit::parse(unit_name) else {
        return Err(QueryError::failed_to_parse(format!("unknown time unit value: {unit_name}")));
    };
    let Some(amount) = amount.as_number().and_then(|number| number.to_i64_exact()) else {
        return Err(ExpressionFault::DateArithmeticAmountNotInteger
            .error(format!("{name} expects integer amount of time units")));
    };
    let zone = zone_or_utc(call, 3, &zone)?;
    let Some(amount) = direct(amount) else {
        return Err(ExpressionFault::DateArithmeticAmountWithoutOpposite
            .error(format!("invalid {name} 'amount' parameter value: {amount}")));
    };
    if !is_within_dates(unit, amount) {
        return Err(ExpressionFault::DateArithmeticAmountTooLarge
            .error(format!("invalid dateAdd 'amount' parameter value: {amount} {unit_name}")));
    }
    match shifted(moment, unit, amount, &zone) {
        Some(later) => Ok(Evaluated::Raw(RawValue::DateTime(later))),
        None if unit == Unit::Millisecond => Err(QueryError::new(
            ErrorCode::DurationOverflow,
            format!("Overflow while adding {amount}ms to {moment}"),
        )),
        None => Err(ExpressionFault::DateArithmeticOverflow.error("dateAdd overflowed")),
    }
}

/// Whether there are two dates so far apart, as MongoDB reckons it: in whole years or days.
pub(super) fn is_within_dates(unit: Unit, amount: i64) -> bool {
    const YEARS: i128 = 584_942_418;
    const DAYS: i128 = 213_503_982_335;
    let (length, most) = match unit.span() {
        Span::Months(months) => (months, YEARS * 12),
        Span::Days(days) => (days, DAYS),
        Span::Millis(millis) => (millis, DAYS * i128::from(MILLIS_PER_DAY)),
    };
    (i128::from(amount) * i128::from(length)).abs() < most
}

/// To a part of a second before 1970 MongoDB adds a second too few, unless it adds milliseconds. Answers are
/// to be the same.
pub(super) fn shifted(moment: i64, unit: Unit, amount: i64, zone: &Zone) -> Option<i64> {
    let later = shifted_exactly(moment, unit, amount, zone)?;
    let is_short = moment < 0 && moment % 1000 != 0 && unit != Unit::Millisecond;
    later.checked_sub(if is_short { 1000 } else { 0 })
}

fn shifted_exactly(moment: i64, unit: Unit, amount: i64, zone: &Zone) -> Option<i64> {
    match unit.span() {
        Span::Millis(length) => moment.checked_add(amount.checked_mul(length)?),
        Span::Days(length) => {
            let shift = amount.checked_mul(length)?.checked_mul(MILLIS_PER_DAY)?;
            Some(zone.to_utc(zone.to_local(moment).checked_add(shift)?))
        }
        Span::Months(length) => {
            let local = Moment::from_millis(zone.to_local(moment));
            let months = local.year.checked_mul(12)?.checked_add(local.month - 1)?;
            let months = months.checked_add(amount.checked_mul(length)?)?;
            let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
            let day = local.day.min(days_in_month(year, month));
            Some(zone.to_utc(Moment { year, month, day, ..local }.to_millis()?))
        }
    }
}
