//! `create`: an empty collection.

use pando_catalog::CatalogError;
use pando_document::{Document, DocumentWriter};

use crate::arguments::{Arguments, collection_name};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Options that collections of MongoDB may have and that Pando does not carry out yet: refused, rather than ignored.
const NOT_YET: [&str; 12] = [
    "capped",
    "size",
    "max",
    "validator",
    "validationLevel",
    "validationAction",
    "viewOn",
    "pipeline",
    "timeseries",
    "collation",
    "expireAfterSeconds",
    "encryptedFields",
];

/// Creates the collection.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_patience()?;
    let name = collection_name(request.command()?.1)?;
    let mut options = Document::new();
    for argument in Arguments::new("create", request.body) {
        let argument = argument?;
        match argument.name {
            "storageEngine" | "indexOptionDefaults" => {
                argument.document()?;
                options.push(argument.name, argument.value.to_owned());
            }
            "autoIndexId" | "idIndex" | "temp" | "flags" => {}
            "capped" | "changeStreamPreAndPostImages" if !argument.value.to_bool() => {}
            name if NOT_YET.contains(&name)
                || name == "clusteredIndex"
                || name == "changeStreamPreAndPostImages" =>
            {
                return Err(CommandError::failed(
                    ErrorCode::CommandNotSupported,
                    format!("the option '{name}' of create is not supported yet"),
                ));
            }
            _ => return Err(argument.unknown()),
        }
    }
    let namespace = context.namespace(name)?;
    let options = options.to_raw();
    match context.catalog().create_collection(&namespace, options.clone(), context.shared.new_uuid()) {
        Ok(_) => Ok(()),
        Err(CatalogError::CollectionExists { namespace: full }) => {
            // The same collection again is no error.
            let same = context
                .catalog()
                .collection(namespace.database(), namespace.collection())
                .is_some_and(|have| have.options().as_bytes() == options.as_bytes());
            if same && !options.is_empty() {
                return Ok(());
            }
            Err(CommandError::failed(
                ErrorCode::NamespaceExists,
                format!("Collection {full} already exists."),
            ))
        }
        Err(error) => Err(error.into()),
    }
}
