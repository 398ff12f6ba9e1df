//! `$fill`: fields without a value get one. It is short for `$setWindowFields`, for methods that look at
//! other documents, and `$addFields`, for values.

use pando_document::{DocumentWriter, RawDocument, RawDocumentBuf, RawValue};

use crate::error::{ErrorCode, QueryError};
use crate::pipeline::PipelineFault;

/// The parsed arguments.
#[derive(Default)]
struct Fill<'v> {
    /// `partitionBy` of the windows.
    partition: Option<RawDocumentBuf>,
    order: Option<&'v RawDocument>,
    /// Fields with their window functions.
    methods: Vec<(&'v str, &'static str)>,
    values: Vec<(&'v str, RawValue<'v>)>,
}

/// The stages that `$fill` is short for.
pub(super) fn written_out(argument: RawValue<'_>) -> Result<Vec<RawDocumentBuf>, QueryError> {
    let RawValue::Document(specification) = argument else {
        return Err(QueryError::failed_to_parse(format!(
            "The $fill stage specification must be an object, found {}",
            argument.element_type().alias()
        )));
    };
    let fill = Fill::parse(specification)?;
    let mut stages = Vec::new();
    if !fill.methods.is_empty() {
        stages.push(fill.windows()?);
    }
    if !fill.values.is_empty() {
        stages.push(fill.added_fields()?);
    }
    Ok(stages)
}

fn wrong_type(path: &str, value: RawValue<'_>, wanted: &str) -> QueryError {
    QueryError::type_mismatch(format!(
        "BSON field '$fill.{path}' is the wrong type '{}', expected type '{wanted}'",
        value.element_type().alias()
    ))
}

fn unknown_field(name: &str) -> QueryError {
    QueryError::new(ErrorCode::IdlUnknownField, format!("BSON field '$fill.{name}' is an unknown field."))
}

fn document<'v>(name: &str, value: RawValue<'v>) -> Result<&'v RawDocument, QueryError> {
    value.as_document().ok_or_else(|| wrong_type(name, value, "object"))
}

impl<'v> Fill<'v> {
    fn parse(specification: &'v RawDocument) -> Result<Fill<'v>, QueryError> {
        let mut fill = Fill::default();
        let (mut output, mut by_fields) = (None, None);
        for field in specification.iter() {
            match field? {
                ("partitionBy", value) => fill.partition = Some(document("partitionBy", value)?.to_owned()),
                ("partitionByFields", value) => by_fields = Some(partition_of_fields(value)?),
                ("sortBy", value) => fill.order = Some(document("sortBy", value)?),
                ("output", value) => output = Some(document("output", value)?),
                (other, _) => return Err(unknown_field(other)),
            }
        }
        let Some(output) = output else {
            return Err(QueryError::new(
                ErrorCode::IdlFailedToParse,
                "BSON field '$fill.output' is missing but a required field",
            ));
        };
        if output.is_empty() {
            return Err(PipelineFault::FillEmpty
                .error("The output field in '$fill' must contain an object with at least one element"));
        }
        if fill.partition.is_some() && by_fields.is_some() {
            return Err(PipelineFault::FillTwoPartitions
                .error("Maximum one of 'partitionBy' and 'partitionByFields' can be specified in '$fill'"));
        }
        fill.partition = fill.partition.or(by_fields.flatten());
        for field in output.iter() {
            let (path, rule) = field?;
            fill.add(path, rule)?;
        }
        Ok(fill)
    }

    fn add(&mut self, path: &'v str, rule: RawValue<'v>) -> Result<(), QueryError> {
        let RawValue::Document(rule) = rule else {
            return Err(PipelineFault::FillNotObject
                .error("Each fill output specification must be an object with exactly one field"));
        };
        let (mut value, mut method) = (None, None);
        for option in rule.iter() {
            match option? {
                ("value", given) => value = Some(given),
                ("method", RawValue::String(name)) => method = Some(name),
                ("method", other) => return Err(wrong_type("method", other, "string")),
                (other, _) => return Err(unknown_field(other)),
            }
        }
        match (value, method) {
            (Some(_), Some(_)) => Err(PipelineFault::FillMethodAndValue.error(
                "Each fill output specification must have exactly one of 'method' or 'value' fields, not both",
            )),
            (None, Some("linear")) => {
                self.methods.push((path, "$linearFill"));
                Ok(())
            }
            (None, Some("locf")) => {
                self.methods.push((path, "$locf"));
                Ok(())
            }
            (None, Some(_)) => {
                Err(PipelineFault::FillUnknownMethod.error("Method must be either locf or linear"))
            }
            (Some(value), None) => {
                self.values.push((path, value));
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    /// `{$setWindowFields: {partitionBy, sortBy, output: {path: {$method: "$path"}}}}`.
    fn windows(&self) -> Result<RawDocumentBuf, QueryError> {
        let mut bytes = Vec::new();
        let mut stage = DocumentWriter::begin(&mut bytes);
        let mut windows = stage.document("$setWindowFields");
        if let Some(partition) = &self.partition {
            windows.append("partitionBy", RawValue::Document(partition));
        }
        if let Some(order) = self.order {
            windows.append("sortBy", RawValue::Document(order));
        }
        let mut output = windows.document("output");
        for (path, method) in &self.methods {
            let mut rule = output.document(path);
            rule.append(method, RawValue::String(&format!("${path}")));
            rule.finish();
        }
        output.finish();
        windows.finish();
        stage.finish();
        Ok(RawDocumentBuf::from_vec(bytes)?)
    }

    /// `{$addFields: {path: {$ifNull: ["$path", value]}}}`.
    fn added_fields(&self) -> Result<RawDocumentBuf, QueryError> {
        let mut bytes = Vec::new();
        let mut stage = DocumentWriter::begin(&mut bytes);
        let mut fields = stage.document("$addFields");
        for (path, value) in &self.values {
            let mut rule = fields.document(path);
            let mut arguments = rule.array("$ifNull");
            arguments.push(RawValue::String(&format!("${path}")));
            arguments.push(*value);
            arguments.finish();
            rule.finish();
        }
        fields.finish();
        stage.finish();
        Ok(RawDocumentBuf::from_vec(bytes)?)
    }
}

/// `{field: "$field"}` of a list of fields; `None` of an empty list.
fn partition_of_fields(value: RawValue<'_>) -> Result<Option<RawDocumentBuf>, QueryError> {
    let RawValue::Array(names) = value else { return Err(wrong_type("partitionByFields", value, "array")) };
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    for (at, name) in names.iter().enumerate() {
        let name = name?;
        let RawValue::String(name) = name else {
            return Err(wrong_type(&format!("partitionByFields.{at}"), name, "string"));
        };
        writer.append(name, RawValue::String(&format!("${name}")));
    }
    writer.finish();
    let partition = RawDocumentBuf::from_vec(bytes)?;
    Ok(Some(partition).filter(|partition| !partition.is_empty()))
}
