//! The refusal of searches that would read a whole collection, under the parameter `notablescan`.
//!
//! As in MongoDB, a search without a filter reads what it wants, and so does one of a collection of the
//! system, or of a database of the server's own. The stages of a pipeline that look into other collections
//! are not checked.

use std::sync::atomic::Ordering;

use pando_catalog::Collection;
use pando_query::filter::Filter;
use pando_query::plan::{Access, Plan};

use crate::context::Context;
use crate::{CommandError, ErrorCode};

/// Refuses a plan that reads the whole collection for a filter, where the parameter says so.
pub(super) fn check(
    context: &Context<'_>,
    collection: &Collection,
    filter: &Filter,
    plan: &Plan,
) -> Result<(), CommandError> {
    if !context.shared.no_table_scan.load(Ordering::Relaxed)
        || !matches!(plan.access, Access::Collection(_))
        || filter.is_everything()
    {
        return Ok(());
    }
    let namespace = collection.namespace();
    let is_own = matches!(namespace.database(), "admin" | "config" | "local");
    if is_own || namespace.collection().starts_with("system.") {
        return Ok(());
    }
    let name = collection.full_name();
    let sentence = format!(
        "error processing query: ns={name} planner returned error :: caused by :: No indexed plans available, and \
         running with 'notablescan'"
    );
    Err(CommandError::failed(ErrorCode::NoQueryExecutionPlans, sentence))
}
