//! The arguments of `$densify`: `{field, partitionByFields, range: {step, bounds, unit}}`.

use std::cmp::Ordering;

use pando_document::{DocumentWriter, Number, RawDocument, RawDocumentBuf, RawValue, compare_values};

use crate::error::{ErrorCode, QueryError};
use crate::expression::{FieldPath, ParseScope, TimeUnit};
use crate::pipeline::PipelineFault;
use crate::projection::Projection;
use crate::sort::SortPattern;

/// A parsed `$densify`.
#[derive(Debug)]
pub(super) struct Densify {
    pub(super) field: FieldPath,
    /// By the field alone.
    pub(super) order: SortPattern,
    pub(super) partition: Vec<FieldPath>,
    pub(super) step: Number,
    pub(super) unit: Option<TimeUnit>,
    pub(super) bounds: Bounds,
    /// Puts the fields of the partition and the field into a new document; `None` where they collide.
    pub(super) template: Option<Projection>,
    /// Puts the field alone into a new document.
    pub(super) alone: Projection,
}

/// Which values are filled in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bounds {
    /// From the least value of all documents to the greatest.
    Full,
    /// The same of each partition.
    Partition,
    /// From one value up to another, which is left out.
    Given(RawValue<'static>, RawValue<'static>),
}

fn wrong_type(path: &str, value: RawValue<'_>, wanted: &str) -> QueryError {
    QueryError::type_mismatch(format!(
        "BSON field '$densify{path}' is the wrong type '{}', expected {wanted}",
        value.element_type().alias()
    ))
}

fn unknown_field(path: &str) -> QueryError {
    QueryError::new(ErrorCode::IdlUnknownField, format!("BSON field '$densify{path}' is an unknown field."))
}

fn required<T>(value: Option<T>, path: &str) -> Result<T, QueryError> {
    value.ok_or_else(|| {
        QueryError::new(
            ErrorCode::IdlFailedToParse,
            format!("BSON field '$densify{path}' is missing but a required field"),
        )
    })
}

impl Densify {
    pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Densify, QueryError> {
        let RawValue::Document(specification) = argument else {
            return Err(QueryError::failed_to_parse(format!(
                "The $densify stage specification must be an object, found {}",
                argument.element_type().alias()
            )));
        };
        let (mut field, mut partition, mut range) = (None, Vec::new(), None);
        for option in specification.iter() {
            match option? {
                ("field", RawValue::String(path)) => field = Some(path),
                ("field", other) => return Err(wrong_type(".field", other, "type 'string'")),
                ("partitionByFields", value) => partition = parse_partition(value)?,
                ("range", RawValue::Document(given)) => range = Some(Range::parse(given)?),
                ("range", other) => return Err(wrong_type(".range", other, "type 'object'")),
                (other, _) => return Err(unknown_field(&format!(".{other}"))),
            }
        }
        let field = required(field, ".field")?;
        let range = required(range, ".range")?;
        let path = FieldPath::parse(field)?;
        let bounds = range.bounds(partition.is_empty())?;
        let texts: Vec<String> = partition.iter().map(FieldPath::text).collect();
        let mut paths: Vec<&str> = texts.iter().map(String::as_str).collect();
        paths.push(field);
        Ok(Densify {
            order: SortPattern::parse(&ascending(field)?)?.collated_by(scope.text_order()),
            field: path,
            step: range.step,
            unit: range.unit,
            bounds,
            template: Projection::of_slots(&paths).ok(),
            alone: Projection::of_slots(&[field])?,
            partition,
        })
    }
}

/// `{field: 1}`.
fn ascending(field: &str) -> Result<RawDocumentBuf, QueryError> {
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    writer.append(field, RawValue::Int32(1));
    writer.finish();
    Ok(RawDocumentBuf::from_vec(bytes)?)
}

fn parse_partition(value: RawValue<'_>) -> Result<Vec<FieldPath>, QueryError> {
    let RawValue::Array(paths) = value else {
        return Err(wrong_type(".partitionByFields", value, "type 'array'"));
    };
    let mut parsed = Vec::new();
    for (at, path) in paths.iter().enumerate() {
        let path = path?;
        let RawValue::String(text) = path else {
            return Err(wrong_type(&format!(".partitionByFields.{at}"), path, "type 'string'"));
        };
        parsed.push(FieldPath::parse(text)?);
    }
    Ok(parsed)
}

/// The argument `range`.
struct Range<'v> {
    step: Number,
    bounds: RawValue<'v>,
    unit: Option<TimeUnit>,
}

impl<'v> Range<'v> {
    fn parse(range: &'v RawDocument) -> Result<Range<'v>, QueryError> {
        let (mut step, mut bounds, mut unit) = (None, None, None);
        for option in range.iter() {
            match option? {
                ("step", value) => {
                    step = Some(Number::from_value(value).ok_or_else(|| {
                        wrong_type(".range.step", value, "types '[int, decimal, double, long']")
                    })?);
                }
                ("bounds", value) => bounds = Some(value),
                ("unit", RawValue::String(name)) => {
                    unit = Some(TimeUnit::parse(name).ok_or_else(|| {
                        QueryError::failed_to_parse(format!("unknown time unit value: {name}"))
                    })?);
                }
                ("unit", other) => return Err(wrong_type(".range.unit", other, "type 'string'")),
                (other, _) => return Err(unknown_field(&format!(".range.{other}"))),
            }
        }
        let step = required(step, ".range.step")?;
        let bounds = required(bounds, ".range.bounds")?;
        if compare_values(step.to_raw(), RawValue::Int32(0)) != Ordering::Greater {
            return Err(PipelineFault::DensifyStepNotPositive
                .error("The step parameter in a range statement must be a strictly positive numeric value"));
        }
        if unit.is_some() && step.to_i64_exact().is_none() {
            return Err(PipelineFault::DensifyStepNotWhole.error(
                "The step parameter in a range statement must be a whole number when densifying a date range",
            ));
        }
        Ok(Range { step, bounds, unit })
    }

    fn bounds(&self, is_one_partition: bool) -> Result<Bounds, QueryError> {
        match self.bounds {
            RawValue::String("full") => Ok(Bounds::Full),
            RawValue::String("partition") if is_one_partition => {
                Err(PipelineFault::DensifyWithoutPartition.error(
                    "One cannot specify the bounds as 'partition' without specifying a non-empty array of \
                     partitionByFields. You may have meant to specify 'full' bounds.",
                ))
            }
            RawValue::String("partition") => Ok(Bounds::Partition),
            RawValue::String(_) => Err(PipelineFault::DensifyUnknownBounds
                .error("Bounds string must either be 'full' or 'partition'")),
            RawValue::Array(pair) => {
                let mut ends = pair.iter();
                match (ends.next(), ends.next(), ends.next()) {
                    (Some(lower), Some(upper), None) => self.given(lower?, upper?),
                    _ => Err(PipelineFault::DensifyBoundsLength
                        .error("A bounding array in a range statement must have exactly two elements")),
                }
            }
            _ => Err(PipelineFault::DensifyBadBounds.error(
                "The bounds in a range statement must be the string 'full', 'partition', or an ascending array of two \
                 numbers or two dates",
            )),
        }
    }

    fn given(&self, lower: RawValue<'_>, upper: RawValue<'_>) -> Result<Bounds, QueryError> {
        let not_ascending = || {
            PipelineFault::DensifyBoundsNotAscending
                .error("A bounding array must be an ascending array of either two dates or two numbers")
        };
        let (lower, upper) = match (lower, upper) {
            (RawValue::DateTime(lower), RawValue::DateTime(upper)) => {
                if self.unit.is_none() {
                    return Err(PipelineFault::DensifyWithoutUnit
                        .error("A bounding array of dates must specify a unit"));
                }
                (RawValue::DateTime(lower), RawValue::DateTime(upper))
            }
            _ => {
                let numbers = Number::from_value(lower).zip(Number::from_value(upper));
                let (lower, upper) = numbers.ok_or_else(not_ascending)?;
                if self.unit.is_some() {
                    return Err(PipelineFault::DensifyUnitOfNumbers
                        .error("Numeric bounds may not have unit parameter"));
                }
                let kind = |number: Number| number.to_raw().element_type();
                if kind(lower) != kind(upper) || kind(lower) != kind(self.step) {
                    return Err(PipelineFault::DensifyMixedTypes
                        .error("Upper bound, lower bound, and step must all have the same type"));
                }
                (lower.to_raw(), upper.to_raw())
            }
        };
        match compare_values(lower, upper) {
            Ordering::Greater => Err(not_ascending()),
            Ordering::Less | Ordering::Equal => Ok(Bounds::Given(lower, upper)),
        }
    }
}
