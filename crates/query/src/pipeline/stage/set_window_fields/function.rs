//! The functions of windows: their parsing, and what each computes.

use pando_collation::TextOrder;
use pando_document::{DocumentWriter, Number, RawArray, RawDocument, RawDocumentBuf, RawValue};

use super::bounds::{Bounds, SortField, parse_unit};
use crate::error::QueryError;
use crate::expression::accumulator::{Deviation, Wanted};
use crate::expression::{Expression, FieldPath, ParseScope};
use crate::needs::Needs;
use crate::pipeline::PipelineFault;
use crate::pipeline::accumulator::AccumulatorCall;
use crate::shell_text;

/// A parsed function of an output field.
#[derive(Clone, Debug)]
pub(super) enum Function {
    Accumulate(AccumulatorCall, Bounds),
    Derivative(Derivative),
    MinMaxScaler(Box<MinMaxScaler>),
    Rank(RankKind, FieldPath, TextOrder),
    Shift { output: Expression, by: i64, default: RawDocumentBuf },
    ExpMovingAvg { input: Expression, alpha: Number },
    LinearFill { input: Expression, along: FieldPath },
    LastObservation(Expression),
}

#[derive(Clone, Debug)]
pub(super) struct Derivative {
    pub(super) input: Expression,
    pub(super) along: FieldPath,
    pub(super) unit_millis: Option<i64>,
    pub(super) bounds: Bounds,
}

/// Scales a value from the range of its window to another range.
#[derive(Clone, Debug)]
pub(super) struct MinMaxScaler {
    pub(super) input: Expression,
    pub(super) least: AccumulatorCall,
    pub(super) greatest: AccumulatorCall,
    pub(super) to_min: Number,
    pub(super) to_max: Number,
    pub(super) bounds: Bounds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RankKind {
    Rank,
    DenseRank,
    DocumentNumber,
}

/// The parts of `{$function: argument, window: {…}}`, and the surroundings.
#[derive(Clone, Copy)]
struct Parts<'p> {
    name: &'p str,
    argument: RawValue<'p>,
    window: Option<RawValue<'p>>,
    sort: SortField<'p>,
    scope: &'p ParseScope,
}

impl Function {
    /// Parses the rule for an output field.
    pub(super) fn parse(
        field: &str,
        rule: RawValue<'_>,
        sort: SortField<'_>,
        scope: &ParseScope,
    ) -> Result<Function, QueryError> {
        let RawValue::Document(rule) = rule else {
            return Err(QueryError::failed_to_parse(format!("The field '{field}' must be an object")));
        };
        let (mut function, mut window, mut unknown) = (None, None, None);
        for element in rule.iter() {
            match element? {
                (name, argument) if name.starts_with('$') => {
                    if function.replace((name, argument)).is_some() {
                        return Err(QueryError::failed_to_parse(
                            "Cannot specify two functions in window function spec",
                        ));
                    }
                }
                ("window", value) => window = Some(value),
                (other, _) => unknown = unknown.or(Some(other)),
            }
        }
        let Some((name, argument)) = function else {
            let first =
                rule.iter().next().transpose()?.map_or(String::new(), |(name, _)| format!(", {name}"));
            return Err(QueryError::failed_to_parse(format!("Expected a $-prefixed window function{first}")));
        };
        let parts = Parts { name, argument, window, sort, scope };
        match unknown {
            Some(_) if matches!(name, "$rank" | "$denseRank" | "$documentNumber") => Err(other_argument()),
            Some(other) => Err(QueryError::failed_to_parse(format!(
                "Window function found an unknown argument: {other}"
            ))),
            None => parts.parse(),
        }
    }

    /// Adds the fields that it reads.
    pub(super) fn add_needs(&self, needs: &mut Needs) {
        match self {
            Function::Accumulate(call, bounds) => {
                call.add_needs(needs);
                bounds.add_needs(needs);
            }
            Function::Derivative(derivative) => {
                derivative.input.add_needs(needs);
                needs.add(&derivative.along.text());
                derivative.bounds.add_needs(needs);
            }
            Function::MinMaxScaler(scaler) => {
                scaler.input.add_needs(needs);
                scaler.bounds.add_needs(needs);
            }
            Function::Rank(RankKind::DocumentNumber, ..) => {}
            Function::Rank(_, path, _) => needs.add(&path.text()),
            Function::LinearFill { input, along } => {
                input.add_needs(needs);
                needs.add(&along.text());
            }
            Function::Shift { output: input, .. }
            | Function::ExpMovingAvg { input, .. }
            | Function::LastObservation(input) => input.add_needs(needs),
        }
    }
}

fn other_argument() -> QueryError {
    PipelineFault::RankOtherArgument.error("Rank style window functions take no other arguments")
}

impl<'p> Parts<'p> {
    fn parse(self) -> Result<Function, QueryError> {
        match self.name {
            "$rank" => self.rank(RankKind::Rank),
            "$denseRank" => self.rank(RankKind::DenseRank),
            "$documentNumber" => self.rank(RankKind::DocumentNumber),
            "$shift" => self.shift(),
            "$derivative" => self.derivative(),
            "$integral" => self.integral(),
            "$expMovingAvg" => self.exp_moving_avg(),
            "$covariancePop" => self.covariance(Deviation::Population),
            "$covarianceSamp" => self.covariance(Deviation::Sample),
            "$linearFill" => self.linear_fill(),
            "$locf" => {
                self.refuse_window()?;
                Ok(Function::LastObservation(self.expression(self.argument)?))
            }
            "$minMaxScaler" => self.min_max_scaler(),
            "$count" if !matches!(self.argument, RawValue::Document(nothing) if nothing.is_empty()) => {
                Err(QueryError::failed_to_parse("$count only accepts an empty object as input"))
            }
            name => match AccumulatorCall::parse_known(name, self.argument, self.scope) {
                Some(call) => {
                    let call = call?.folded_in(self.scope)?;
                    Ok(Function::Accumulate(call, self.bounds()?))
                }
                None => Err(QueryError::failed_to_parse(format!("Unrecognized window function, {name}"))),
            },
        }
    }

    fn bounds(self) -> Result<Bounds, QueryError> {
        self.window.map_or(Ok(Bounds::WHOLE), |window| Bounds::parse(window, self.sort, self.scope))
    }

    fn expression(self, value: RawValue<'_>) -> Result<Expression, QueryError> {
        Expression::of_pipeline(value, self.scope)
    }

    fn refuse_window(self) -> Result<(), QueryError> {
        match self.window {
            None => Ok(()),
            Some(_) => {
                Err(QueryError::failed_to_parse(format!("'window' field is not allowed in {}", self.name)))
            }
        }
    }

    fn rank(self, kind: RankKind) -> Result<Function, QueryError> {
        if self.window.is_some() {
            return Err(other_argument());
        }
        if !matches!(self.argument, RawValue::Document(nothing) if nothing.is_empty()) {
            return Err(PipelineFault::RankNotEmpty.error("(None) must be specified with '{}' as the value"));
        }
        match self.sort.single {
            Some(path) => Ok(Function::Rank(kind, path.clone(), self.scope.text_order().clone())),
            None => Err(PipelineFault::RankWithoutSort.error(format!(
                "{} must be specified with a top level sortBy expression with exactly one element",
                self.name
            ))),
        }
    }

    fn shift(self) -> Result<Function, QueryError> {
        let bad = |message: &str| QueryError::failed_to_parse(message);
        if !self.sort.is_given {
            return Err(bad("'$shift' requires a sortBy"));
        }
        if self.window.is_some() {
            return Err(bad("$shift does not accept a 'window' field"));
        }
        let RawValue::Document(options) = self.argument else {
            return Err(bad("Argument to $shift must be an object"));
        };
        let (mut output, mut by, mut default) = (None, None, RawDocumentBuf::new());
        for option in options.iter() {
            match option? {
                ("output", value) => output = Some(self.expression(value)?),
                ("by", value) => {
                    let whole = value.as_i64_exact().filter(|whole| i32::try_from(*whole).is_ok());
                    by = Some(whole.ok_or_else(|| {
                        let text = shell_text::value_text(value);
                        QueryError::failed_to_parse(format!(
                            "'$shift:by' field must be an integer, but found  by: {text}"
                        ))
                    })?);
                }
                ("default", value) => {
                    let value = self.expression(value)?;
                    if !value.is_constant() {
                        return Err(bad("'$shift:default' expression must yield a constant value."));
                    }
                    default = one_field(value.evaluate(RawDocument::empty())?.raw_or_null())?;
                }
                _ => return Err(bad("Unknown argument in $shift")),
            }
        }
        let by = by.ok_or_else(|| bad("$shift requires 'by' as an integer value."))?;
        let output = output.ok_or_else(|| bad("$shift requires an 'output' expression."))?;
        Ok(Function::Shift { output, by, default })
    }

    /// The arguments of `$derivative` and `$integral`: input, and the unit in milliseconds.
    fn slope_arguments(self) -> Result<(RawValue<'p>, Option<i64>), QueryError> {
        let name = self.name;
        let RawValue::Document(options) = self.argument else {
            return Err(QueryError::failed_to_parse(format!(
                "{name} expects an object, but got a {}: {name}: {}",
                self.argument.element_type().alias(),
                shell_text::value_text(self.argument)
            )));
        };
        let (mut input, mut unit_millis) = (None, None);
        for option in options.iter() {
            match option? {
                ("input", value) => input = Some(value),
                ("unit", RawValue::String(unit)) => {
                    let millis = parse_unit(unit)?.millis();
                    unit_millis =
                        Some(millis.ok_or_else(|| {
                            PipelineFault::UnitTooLong.error("unit must be 'week' or smaller")
                        })?);
                }
                ("unit", other) => {
                    return Err(QueryError::failed_to_parse(format!(
                        "unit' must be a string, but got {}",
                        other.element_type().alias()
                    )));
                }
                (other, _) => {
                    return Err(QueryError::failed_to_parse(format!(
                        "{name} got unexpected argument: {other}"
                    )));
                }
            }
        }
        let input = input
            .ok_or_else(|| QueryError::failed_to_parse(format!("{name} requires an 'input' expression")))?;
        Ok((input, unit_millis))
    }

    /// The one sort field of `$derivative` and `$integral`.
    fn along(self) -> Result<&'p FieldPath, QueryError> {
        let wanted = if self.sort.is_given { "a non-compound sortBy" } else { "a sortBy" };
        self.sort
            .single
            .ok_or_else(|| QueryError::failed_to_parse(format!("{} requires {wanted}", self.name)))
    }

    fn derivative(self) -> Result<Function, QueryError> {
        let along = self.along()?.clone();
        let (input, unit_millis) = self.slope_arguments()?;
        if self.window.is_none() {
            return Err(QueryError::failed_to_parse("$derivative requires explicit window bounds"));
        }
        let input = self.expression(input)?;
        Ok(Function::Derivative(Derivative { input, along, unit_millis, bounds: self.bounds()? }))
    }

    fn integral(self) -> Result<Function, QueryError> {
        let along = format!("${}", self.along()?.text());
        let (input, unit_millis) = self.slope_arguments()?;
        let point = crate::array_build::build_array([RawValue::String(&along), input]);
        let points = self.expression(RawValue::Array(RawArray::from_document(&point)))?;
        Ok(Function::Accumulate(AccumulatorCall::integral(unit_millis, points), self.bounds()?))
    }

    fn covariance(self, deviation: Deviation) -> Result<Function, QueryError> {
        let pairs = self.expression(self.argument)?;
        Ok(Function::Accumulate(AccumulatorCall::covariance(deviation, pairs), self.bounds()?))
    }

    fn exp_moving_avg(self) -> Result<Function, QueryError> {
        const TWO_FIELDS: &str = "$expMovingAvg sub object must have exactly two fields: An 'input' field, and either \
                                  an 'N' field or an 'alpha' field";
        let bad = |message: &str| QueryError::failed_to_parse(message);
        if !self.sort.is_given {
            return Err(bad("$expMovingAvg requires an explicit 'sortBy'"));
        }
        let (RawValue::Document(options), None) = (self.argument, self.window) else {
            return Err(bad("$expMovingAvg must have exactly one argument that is an object"));
        };
        let (input, n, alpha) = (options.get("input")?, options.get("N")?, options.get("alpha")?);
        if options.iter().count() != 2 {
            return Err(bad(TWO_FIELDS));
        }
        let alpha = match (input, n, alpha) {
            (Some(_), Some(n), None) => alpha_of_n(n)?,
            (Some(_), None, Some(alpha)) => checked_alpha(alpha)?,
            (Some(_), None, None) => {
                return Err(bad(&format!("Got unrecognized field in $expMovingAvg{TWO_FIELDS}")));
            }
            _ => return Err(bad(TWO_FIELDS)),
        };
        let input = self.expression(input.unwrap_or(RawValue::Null))?;
        Ok(Function::ExpMovingAvg { input, alpha })
    }

    fn linear_fill(self) -> Result<Function, QueryError> {
        self.refuse_window()?;
        let Some(along) = self.sort.single else {
            return Err(PipelineFault::LinearFillWithoutSort.error(
                "$linearFill must be specified with a top level sortBy expression with exactly one element",
            ));
        };
        Ok(Function::LinearFill { input: self.expression(self.argument)?, along: along.clone() })
    }

    fn min_max_scaler(self) -> Result<Function, QueryError> {
        let RawValue::Document(options) = self.argument else {
            return Err(QueryError::failed_to_parse("$minMaxScaler expects an object with 'input'"));
        };
        let (mut input, mut min, mut max) = (None, Number::Int32(0), Number::Int32(1));
        for option in options.iter() {
            let (name, value) = option?;
            match name {
                "input" => input = Some(self.expression(value)?),
                "min" | "max" => {
                    let constant = self.expression(value)?;
                    let number = constant.as_constant().and_then(Number::from_value);
                    let number = number.ok_or_else(|| {
                        QueryError::failed_to_parse(format!("'{name}' of $minMaxScaler must be a number"))
                    })?;
                    *(if name == "min" { &mut min } else { &mut max }) = number;
                }
                other => {
                    return Err(QueryError::failed_to_parse(format!(
                        "$minMaxScaler got unexpected argument: {other}"
                    )));
                }
            }
        }
        let input = input
            .ok_or_else(|| QueryError::failed_to_parse("$minMaxScaler requires an 'input' expression"))?;
        if min.to_f64() >= max.to_f64() {
            return Err(
                PipelineFault::MinMaxScalerBadRange.error("'min' of $minMaxScaler must be less than 'max'")
            );
        }
        Ok(Function::MinMaxScaler(Box::new(MinMaxScaler {
            least: AccumulatorCall::extreme(Wanted::Least, input.clone()),
            greatest: AccumulatorCall::extreme(Wanted::Greatest, input.clone()),
            input,
            to_min: min,
            to_max: max,
            bounds: self.bounds()?,
        })))
    }
}

/// The weight of the newest value where the last `n` values have the most of it.
fn alpha_of_n(n: RawValue<'_>) -> Result<Number, QueryError> {
    if !n.is_number() {
        return Err(QueryError::failed_to_parse(format!(
            "'N' field must be an integer, but found type {}",
            n.element_type().alias()
        )));
    }
    let Some(whole) = n.as_i64_exact() else {
        return Err(QueryError::failed_to_parse(format!(
            "'N' field must be an integer, but found  N: {}. To use a non-integer, use the 'alpha' argument instead",
            shell_text::value_text(n)
        )));
    };
    if whole <= 0 {
        return Err(QueryError::failed_to_parse(format!("'N' must be greater than zero. Got {whole}")));
    }
    let divisor = pando_document::Decimal128::from(whole.saturating_add(1));
    Ok(Number::Decimal128(pando_document::Decimal128::from(2).divide(divisor)))
}

fn checked_alpha(alpha: RawValue<'_>) -> Result<Number, QueryError> {
    let Some(number) = Number::from_value(alpha) else {
        return Err(QueryError::failed_to_parse("'alpha' must be a number"));
    };
    let double = number.to_f64();
    if double > 0.0 && double < 1.0 {
        return Ok(Number::Decimal128(number.to_decimal(pando_document::DoubleDigits::Fifteen)));
    }
    Err(QueryError::failed_to_parse(format!(
        "'alpha' must be between 0 and 1 (exclusive), found alpha: {}",
        shell_text::value_text(alpha)
    )))
}

/// A document with a value as its only field.
fn one_field(value: RawValue<'_>) -> Result<RawDocumentBuf, QueryError> {
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    writer.append("", value);
    writer.finish();
    Ok(RawDocumentBuf::from_vec(bytes)?)
}
