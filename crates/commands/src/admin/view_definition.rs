//! Definitions of views: their check, and their place in `system.views`.
//!
//! # Steps of the check
//! 1. The name below is one of a collection, and every stage parses. No stage writes.
//! 2. The views that the definition refers to, by `viewOn` or within a stage, are followed. They have its
//!    collation. The new view is none of them, and no chain of views is longer than [`DEPTH_MAX`].

use std::collections::HashMap;

use pando_catalog::{CatalogError, Namespace, ViewChange};
use pando_collation::TextOrder;
use pando_document::{RawArray, RawDocument};
use pando_query::pipeline::Pipeline;

use crate::context::Context;
use crate::pipeline_references::add_references;
use crate::views::{DEPTH_MAX, View};
use crate::{CommandError, ErrorCode};

/// Creates a view.
pub(super) fn create(
    context: &mut Context<'_>,
    namespace: &Namespace,
    view: &View,
) -> Result<(), CommandError> {
    if context.open_transaction().is_some() {
        return Err(CommandError::failed(
            ErrorCode::OperationNotSupportedInTransaction,
            "Cannot create a view in a multi-document transaction.",
        ));
    }
    let exists = |reason: String| Err(CommandError::failed(ErrorCode::NamespaceExists, reason));
    if context.catalog().collection(namespace.database(), namespace.collection()).is_some() {
        return exists(format!("Cannot create collection {namespace} - collection already exists."));
    }
    if context.is_view(namespace)? {
        return exists("Namespace already exists".to_owned());
    }
    replace(context, namespace, view)
}

/// Writes the definition of a view in the place of the one that it has.
pub(super) fn replace(
    context: &mut Context<'_>,
    namespace: &Namespace,
    view: &View,
) -> Result<(), CommandError> {
    check(context, namespace, view)?;
    let definition = view.to_document(&namespace.to_string());
    change(context, namespace, Some(&definition)).map(|_| ())
}

/// Removes a view. Tells whether there was one.
pub(super) fn remove(context: &mut Context<'_>, namespace: &Namespace) -> Result<bool, CommandError> {
    change(context, namespace, None)
}

fn change(
    context: &mut Context<'_>,
    namespace: &Namespace,
    definition: Option<&RawDocument>,
) -> Result<bool, CommandError> {
    let change = ViewChange {
        view: namespace,
        definition,
        new_uuid: context.shared.new_uuid(),
        durability: context.concern.durability,
    };
    let receipt = match context.catalog().change_view(&change, context.operation) {
        Err(CatalogError::CollectionExists { .. }) => {
            return Err(CommandError::failed(
                ErrorCode::NamespaceExists,
                format!("Cannot create collection {namespace} - collection already exists."),
            ));
        }
        other => other?,
    };
    if let Some(receipt) = receipt {
        context.wait_for(receipt);
    }
    Ok(receipt.is_some())
}

fn check(context: &Context<'_>, namespace: &Namespace, view: &View) -> Result<(), CommandError> {
    let below = Namespace::new(namespace.database(), &view.on);
    if below.is_err() || view.on.contains('$') {
        return Err(CommandError::failed(
            ErrorCode::InvalidNamespace,
            format!("invalid name for 'viewOn': {}", view.on),
        ));
    }
    check_stages(context, namespace, view)?;
    let mut graph = Graph { context, namespace, order: &view.order, heights: HashMap::new() };
    let mut path = vec![namespace.collection().to_owned()];
    let height = graph.height(&references(view)?, &mut path)?;
    if height > DEPTH_MAX { Err(too_deep()) } else { Ok(()) }
}

fn check_stages(context: &Context<'_>, namespace: &Namespace, view: &View) -> Result<(), CommandError> {
    let stages = RawArray::from_document(&view.pipeline);
    let invalid = |code, reason: &str| {
        CommandError::failed(code, format!("Invalid pipeline for view {namespace} :: caused by :: {reason}"))
    };
    for (at, stage) in stages.iter().enumerate() {
        let Some(Ok((name, _))) = stage?.as_document().and_then(|stage| stage.iter().next()) else {
            continue;
        };
        let refused = match name {
            "$out" | "$merge" => format!(
                "The aggregation stage {name} in location {at} of the pipeline cannot be used in the view definition of {namespace} because it writes to disk"
            ),
            "$changeStream" => format!("{name} cannot be used in a view definition"),
            _ => continue,
        };
        return Err(invalid(ErrorCode::OptionNotSupportedOnView, &refused));
    }
    let first = stages.iter().next().transpose()?.and_then(|stage| stage.as_document());
    let first = first.and_then(|stage| stage.iter().next()).transpose()?.map(|(name, _)| name);
    match first {
        Some("$documents") => {
            let reason = "'$documents' cannot be used in a view definition";
            return Err(invalid(ErrorCode::InvalidNamespace, reason));
        }
        Some("$currentOp") => {
            let reason = "$currentOp must be run against the 'admin' database with {aggregate: 1}";
            return Err(invalid(ErrorCode::InvalidNamespace, reason));
        }
        // They read figures of a collection, and `aggregate` alone knows them.
        Some("$collStats" | "$indexStats" | "$planCacheStats") => return Ok(()),
        _ => {}
    }
    match Pipeline::parse(stages, &context.parse_scope().collated_by(&view.order)) {
        Ok(_) => Ok(()),
        Err(error) => Err(match CommandError::from(error) {
            CommandError::Failed(failure) if failure.message.starts_with("Unrecognized pipeline stage") => {
                CommandError::Failed(failure)
            }
            CommandError::Failed(failure) => invalid(failure.code, &failure.message),
            other => other,
        }),
    }
}

/// The collections and views that a definition refers to.
fn references(view: &View) -> Result<Vec<String>, CommandError> {
    let mut found = vec![view.on.clone()];
    add_references(RawArray::from_document(&view.pipeline), &mut found)?;
    Ok(found)
}

/// The views of a database and the references between them.
struct Graph<'a> {
    context: &'a Context<'a>,
    /// The view that is defined.
    namespace: &'a Namespace,
    /// Its order of strings, which all views have that it refers to.
    order: &'a TextOrder,
    /// Views that were followed, with the length of their longest chains.
    heights: HashMap<String, usize>,
}

impl Graph<'_> {
    /// The length of the longest chain of views that begins with the last view of `path`.
    fn height(&mut self, references: &[String], path: &mut Vec<String>) -> Result<usize, CommandError> {
        if path.len() > DEPTH_MAX {
            return Err(too_deep());
        }
        let mut highest = 0;
        for name in references {
            if name == self.namespace.collection() {
                path.push(name.clone());
                return Err(self.cycle(path));
            }
            let height = match self.heights.get(name) {
                Some(height) => *height,
                None => {
                    let height = match self.view(name)? {
                        Some(view) => {
                            self.check_collation(name, &view)?;
                            path.push(name.clone());
                            let height = self.height(&self::references(&view)?, path)?;
                            path.pop();
                            height
                        }
                        None => 0,
                    };
                    self.heights.insert(name.clone(), height);
                    height
                }
            };
            highest = highest.max(height);
        }
        Ok(highest + 1)
    }

    fn check_collation(&self, name: &str, view: &View) -> Result<(), CommandError> {
        if view.order == *self.order {
            return Ok(());
        }
        let database = self.namespace.database();
        Err(CommandError::failed(
            ErrorCode::OptionNotSupportedOnView,
            format!("View {} has conflicting collation with view {database}.{name}", self.namespace),
        ))
    }

    fn view(&self, name: &str) -> Result<Option<View>, CommandError> {
        match self.context.catalog().collection(self.namespace.database(), name) {
            Some(_) => Ok(None),
            None => self.context.view(name),
        }
    }

    fn cycle(&self, path: &[String]) -> CommandError {
        let database = self.namespace.database();
        let mut shown = self.namespace.to_string();
        for name in path {
            shown.push_str(&format!(" => {database}.{name}"));
        }
        CommandError::failed(ErrorCode::GraphContainsCycle, format!("View cycle detected: {shown}"))
    }
}

fn too_deep() -> CommandError {
    CommandError::failed(
        ErrorCode::ViewDepthLimitExceeded,
        format!("View depth limit exceeded; maximum depth is {DEPTH_MAX}"),
    )
}
