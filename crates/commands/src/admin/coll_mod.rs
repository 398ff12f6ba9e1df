//! `collMod`: changes an index's visibility. Other changes that MongoDB knows are refused until they are carried out.

use pando_document::{Document, DocumentWriter, RawDocument, RawValue, Value};

use super::index_specification::same_key;
use crate::arguments::{Arguments, collection_name};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Changes the index.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_patience()?;
    let name = collection_name(request.command()?.1)?;
    let namespace = context.namespace(name)?;
    let Some(collection) = context.catalog().collection(context.database, name) else {
        return Err(CommandError::failed(ErrorCode::NamespaceNotFound, "ns does not exist"));
    };
    for argument in Arguments::new("collMod", request.body) {
        let argument = argument?;
        match argument.name {
            "index" => {
                let wanted = argument.document()?;
                let index = collection
                    .indexes()
                    .iter()
                    .find(|index| is_meant(index.specification(), wanted))
                    .ok_or_else(|| {
                        CommandError::failed(ErrorCode::IndexNotFound, "cannot find index for ns")
                    })?;
                let Some(hidden) = wanted.get("hidden")? else {
                    return Err(CommandError::failed(
                        ErrorCode::InvalidOptions,
                        "no expireAfterSeconds, hidden, unique, or prepareUnique field",
                    ));
                };
                let was = matches!(index.specification().get("hidden")?, Some(value) if value.to_bool());
                let mut specification = Document::from_raw(index.specification())?;
                specification.remove("hidden");
                if hidden.to_bool() {
                    specification.push("hidden", Value::Boolean(true));
                }
                context.catalog().set_index_specification(
                    &namespace,
                    index.name(),
                    specification.to_raw(),
                )?;
                reply.append("hidden_old", RawValue::Boolean(was));
                reply.append("hidden_new", RawValue::Boolean(hidden.to_bool()));
            }
            "validator"
            | "validationLevel"
            | "validationAction"
            | "viewOn"
            | "pipeline"
            | "expireAfterSeconds"
            | "timeseries"
            | "changeStreamPreAndPostImages"
            | "cappedSize"
            | "cappedMax" => {
                return Err(CommandError::failed(
                    ErrorCode::CommandNotSupported,
                    format!("the option '{}' of collMod is not supported yet", argument.name),
                ));
            }
            _ => return Err(argument.unknown()),
        }
    }
    Ok(())
}

/// Whether a request means this index, by name or by key.
fn is_meant(specification: &RawDocument, wanted: &RawDocument) -> bool {
    if let Ok(Some(RawValue::String(name))) = wanted.get("name") {
        return matches!(specification.get("name"), Ok(Some(RawValue::String(have))) if have == name);
    }
    match (specification.get("key"), wanted.get("keyPattern")) {
        (Ok(Some(RawValue::Document(have))), Ok(Some(RawValue::Document(wanted)))) => same_key(have, wanted),
        _ => false,
    }
}
