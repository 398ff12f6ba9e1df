//! The variables that an expression may name, known while it is parsed.

use std::collections::HashMap;
use std::sync::Arc;

use pando_collation::TextOrder;
use pando_document::{RawDocument, Timestamp};

use super::dice::Dice;
use super::fault::ExpressionFault;
use super::field_path::FieldPath;
use super::{EvaluationWatch, Expression, Node, UserRoles};
use crate::error::{ErrorCode, QueryError};
use crate::field_tables::Direct;
use crate::literal::Literal;
use crate::metadata::MetadataSet;

/// Variables by name, inner ones before outer ones, and the moment that `$$NOW` stands for.
///
/// The default has no variables and 1970 for now: enough where neither can be named.
#[derive(Clone, Debug, Default)]
pub struct ParseScope {
    /// The innermost variables; scopes within this one share them.
    variables: Option<Arc<Layer>>,
    slots: usize,
    now_millis: i64,
    folding: Folding,
    conditions: Conditions,
    /// `None`: evaluations are not interrupted.
    watch: Option<EvaluationWatch>,
    /// `None`: `$rand` has a series of its own, always the same.
    dice: Option<Dice>,
    /// `None` on a server without a cluster.
    cluster_time: Option<Timestamp>,
    user_roles: UserRoles,
    /// The metadata that documents come with.
    metadata: MetadataSet,
    absent_metadata: AbsentMetadata,
    /// The order of strings in comparisons.
    text_order: TextOrder,
    /// Pipelines around this one, in which it stands as a part of a stage.
    outer_pipelines: usize,
    optimisation: Optimisation,
}

/// Variables that nobody may define, as in MongoDB. The last three are of parts that Pando does not have.
const SYSTEM_VARIABLES: [&str; 8] =
    ["ROOT", "REMOVE", "NOW", "CLUSTER_TIME", "USER_ROLES", "SEARCH_META", "JS_SCOPE", "IS_MR"];

/// Most pipelines within one another, as in MongoDB.
const OUTER_PIPELINES_MAX: usize = 20;

/// Whether the stages of pipelines are moved and merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Optimisation {
    #[default]
    /// They are.
    On,
    /// They are carried out as they are written: for tests.
    Off,
}

/// Whether a filter may hold `$expr`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Conditions {
    #[default]
    Any,
    /// Filters of upserts: their equalities are inserted, and an expression has none.
    OfUpsert,
    /// Filters beside a positional projection, which asks for the element that matched.
    BesidePositional,
}

/// The meaning of metadata that documents do not come with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AbsentMetadata {
    #[default]
    /// It is missing: in filters and updates.
    Missing,
    /// A score or distance is an error: in projections and pipelines.
    Checked,
    /// All kinds are errors, those that documents come with as well: in the filter of `$match`.
    Refused,
    /// All kinds count as fields: in the `let` of a command, which reads no document.
    Field,
}

/// Whether what needs no document is computed at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Folding {
    #[default]
    Folded,
    /// The pipelines of updates: a failure in them concerns one document.
    AsWritten,
}

/// The variables that were bound together, and those around them.
#[derive(Debug)]
struct Layer {
    bindings: HashMap<String, Binding>,
    outer: Option<Arc<Layer>>,
}

#[derive(Clone, Debug)]
enum Binding {
    /// None stands for a missing value.
    Constant(Option<Literal>),
    Slot(usize),
}

impl ParseScope {
    /// A scope without variables; `now_millis` counts from 1970 UTC.
    pub fn at(now_millis: i64) -> ParseScope {
        ParseScope { now_millis, ..ParseScope::default() }
    }

    /// The same scope, in which this watch may end evaluations.
    #[must_use]
    pub fn watched_by(self, watch: &EvaluationWatch) -> ParseScope {
        ParseScope { watch: Some(watch.clone()), ..self }
    }

    /// The same scope, whose `$rand` draws from these dice.
    #[must_use]
    pub fn with_dice(self, dice: &Dice) -> ParseScope {
        ParseScope { dice: Some(dice.clone()), ..self }
    }

    /// The same scope, whose pipelines are optimised or not.
    #[must_use]
    pub fn optimised(self, optimisation: Optimisation) -> ParseScope {
        ParseScope { optimisation, ..self }
    }

    /// Whether pipelines are optimised.
    pub fn optimisation(&self) -> Optimisation {
        self.optimisation
    }

    /// The dice of `$rand`.
    pub(super) fn dice(&self) -> Dice {
        self.dice.clone().unwrap_or_else(|| Dice::new(0))
    }

    /// The same scope, in which `$$CLUSTER_TIME` is this time.
    #[must_use]
    pub fn at_cluster_time(self, time: Option<Timestamp>) -> ParseScope {
        ParseScope { cluster_time: time, ..self }
    }

    /// The time of the cluster.
    pub(super) fn cluster_time(&self) -> Option<Timestamp> {
        self.cluster_time
    }

    /// The same scope, in which `$$USER_ROLES` is this list.
    #[must_use]
    pub fn of_user(self, roles: UserRoles) -> ParseScope {
        ParseScope { user_roles: roles, ..self }
    }

    /// The roles of the user.
    pub(super) fn user_roles(&self) -> &UserRoles {
        &self.user_roles
    }

    /// The scope of a view that the query reads beside its collection: the same moment, user and order of
    /// strings, and no variables, because a view does not see those of the query.
    #[must_use]
    pub fn of_view(&self) -> ParseScope {
        ParseScope {
            now_millis: self.now_millis,
            watch: self.watch.clone(),
            dice: self.dice.clone(),
            cluster_time: self.cluster_time,
            user_roles: self.user_roles.clone(),
            text_order: self.text_order.clone(),
            optimisation: self.optimisation,
            ..ParseScope::default()
        }
    }

    /// The same scope, in which strings compare in this order.
    #[must_use]
    pub fn collated_by(self, text_order: &TextOrder) -> ParseScope {
        ParseScope { text_order: text_order.clone(), ..self }
    }

    /// The order of strings in comparisons.
    pub fn text_order(&self) -> &TextOrder {
        &self.text_order
    }

    /// The watch of evaluations.
    pub(super) fn watch(&self) -> Option<&EvaluationWatch> {
        self.watch.as_ref()
    }

    /// This scope with the variables of a command's `let`, whose values are expressions without fields.
    pub fn with_let(&self, variables: &RawDocument) -> Result<ParseScope, QueryError> {
        // As it is written: a field counts also where the expression would not come to it.
        let without_document = ParseScope { absent_metadata: AbsentMetadata::Field, ..self.as_written() };
        let mut constants = Vec::new();
        for variable in variables.iter() {
            let (name, value) = variable?;
            check_user_name(name)?;
            let expression = Expression::parse(value, &without_document)?;
            if expression.reads_root() {
                return Err(ExpressionFault::FieldInCommandLet.error(format!(
                    "the variable '{name}' of 'let' reads a field, but it is computed before any document is read"
                )));
            }
            let value = expression.evaluate(RawDocument::empty())?;
            constants.push((name, value.raw().map(Literal::new)));
        }
        Ok(self.with_constants(constants))
    }

    /// This scope with the constants of an update (`c`), whose values are no expressions. As in MongoDB their
    /// names may be those of the system, but not of a variable that the system has.
    pub fn with_update_constants(&self, constants: &RawDocument) -> Result<ParseScope, QueryError> {
        let mut variables = Vec::new();
        for constant in constants.iter() {
            let (name, value) = constant?;
            check_variable_name(name, |first| first.is_ascii_alphabetic() || !first.is_ascii())?;
            if SYSTEM_VARIABLES.contains(&name) {
                return Err(ExpressionFault::SystemVariableRedefined
                    .error(format!("the constant '{name}' has the name of a variable of the system")));
            }
            variables.push((name, Some(Literal::new(value))));
        }
        Ok(self.with_constants(variables))
    }

    /// A scope in which `names` are variables as well; gives the slot of the first, the others follow.
    pub(crate) fn with_slots(&self, names: &[&str]) -> (ParseScope, usize) {
        let first = self.slots;
        let bindings =
            names.iter().zip(first..).map(|(name, slot)| ((*name).to_owned(), Binding::Slot(slot)));
        let mut scope = self.with_layer(bindings.collect());
        scope.slots += names.len();
        (scope, first)
    }

    /// Refuses a name that a user may not give to a variable.
    pub fn check_user_name(name: &str) -> Result<(), QueryError> {
        check_user_name(name)
    }

    /// A scope in which `$$ROOT` is a variable of its own, beside the document that fields are read from;
    /// gives its slot.
    pub(crate) fn with_root(&self) -> (ParseScope, usize) {
        self.with_slots(&["ROOT"])
    }

    /// Whether `$$ROOT` is a variable of its own.
    pub(super) fn has_own_root(&self) -> bool {
        self.binding("ROOT").is_some()
    }

    /// Whether `$$CURRENT`, from which fields are read, has been bound to another value than the document.
    pub(super) fn has_own_current(&self) -> bool {
        self.binding("CURRENT").is_some()
    }

    /// The scope of a pipeline that stands within a stage. Its documents are others.
    ///
    /// # Errors
    /// It would stand too deep.
    pub(crate) fn within_stage(&self) -> Result<ParseScope, QueryError> {
        if self.outer_pipelines == OUTER_PIPELINES_MAX {
            return Err(QueryError::new(
                ErrorCode::MaxSubPipelineDepthExceeded,
                format!("Maximum number of nested sub-pipelines exceeded. Limit is {OUTER_PIPELINES_MAX}"),
            ));
        }
        let outer_pipelines = self.outer_pipelines + 1;
        Ok(ParseScope { outer_pipelines, metadata: MetadataSet::EMPTY, ..self.clone() })
    }

    /// A scope in which each name stands for a constant, or for a missing value.
    pub fn with_constants<N: Into<String>>(
        &self,
        constants: impl IntoIterator<Item = (N, Option<Literal>)>,
    ) -> ParseScope {
        let constants = constants.into_iter();
        self.with_layer(constants.map(|(name, value)| (name.into(), Binding::Constant(value))).collect())
    }

    /// The scope with more variables; of two with one name the later counts.
    fn with_layer(&self, bindings: HashMap<String, Binding>) -> ParseScope {
        if bindings.is_empty() {
            return self.clone();
        }
        let layer = Layer { bindings, outer: self.variables.clone() };
        ParseScope { variables: Some(Arc::new(layer)), ..self.clone() }
    }

    fn binding(&self, name: &str) -> Option<&Binding> {
        let mut layer = self.variables.as_ref();
        while let Some(here) = layer {
            if let Some(binding) = here.bindings.get(name) {
                return Some(binding);
            }
            layer = here.outer.as_ref();
        }
        None
    }

    /// The same scope for the filter of an upsert, which may not hold `$expr`.
    pub fn of_upsert(&self) -> ParseScope {
        ParseScope { conditions: Conditions::OfUpsert, ..self.clone() }
    }

    /// The same scope for a filter beside a positional projection, which may not hold `$expr` either.
    pub fn beside_positional(&self) -> ParseScope {
        ParseScope { conditions: Conditions::BesidePositional, ..self.clone() }
    }

    /// Whether a filter may hold `$expr`.
    pub(crate) fn conditions(&self) -> Conditions {
        self.conditions
    }

    /// The same scope, in which expressions stay as they are written.
    pub(crate) fn as_written(&self) -> ParseScope {
        ParseScope { folding: Folding::AsWritten, ..self.clone() }
    }

    /// Whether expressions stay as they are written, as in the pipeline of an update.
    pub(crate) fn is_as_written(&self) -> bool {
        self.folding == Folding::AsWritten
    }

    /// Whether expressions are folded.
    pub(super) fn folding(&self) -> Folding {
        self.folding
    }

    /// The same scope for documents that come with this metadata. A projection or pipeline that asks for a
    /// score or distance beside it is refused.
    #[must_use]
    pub fn with_metadata(&self, metadata: MetadataSet) -> ParseScope {
        ParseScope { metadata, absent_metadata: AbsentMetadata::Checked, ..self.clone() }
    }

    /// The same scope for documents that may come with this metadata.
    #[must_use]
    pub fn with_possible_metadata(&self, metadata: MetadataSet) -> ParseScope {
        ParseScope { metadata, absent_metadata: AbsentMetadata::Missing, ..self.clone() }
    }

    /// The same scope for the filter of `$match`, which may not ask for metadata.
    pub(crate) fn refusing_metadata(&self) -> ParseScope {
        ParseScope { absent_metadata: AbsentMetadata::Refused, ..self.clone() }
    }

    /// The metadata that documents come with.
    pub(crate) fn metadata(&self) -> MetadataSet {
        self.metadata
    }

    /// The meaning of other metadata.
    pub(super) fn absent_metadata(&self) -> AbsentMetadata {
        self.absent_metadata
    }

    /// Whether it is that of a pipeline within a stage.
    pub(crate) fn is_within_stage(&self) -> bool {
        self.outer_pipelines > 0
    }

    /// Milliseconds since 1970 UTC.
    pub fn now_millis(&self) -> i64 {
        self.now_millis
    }

    /// The node that reads a variable.
    pub(super) fn resolve(&self, name: &str, path: Option<FieldPath>) -> Result<Node, QueryError> {
        let Some(binding) = self.binding(name) else {
            check_name(name)?;
            return Err(
                ExpressionFault::UndefinedVariable.error(format!("Use of undefined variable: {name}"))
            );
        };
        match (binding, path) {
            (Binding::Slot(slot), path) => Ok(Node::Variable { slot: *slot, path }),
            (Binding::Constant(None), _) => Ok(Node::Remove),
            (Binding::Constant(Some(value)), path) => constant_below(value, path),
        }
    }
}

/// The node of a constant, or of what stands at a path below it.
pub(super) fn constant_below(value: &Literal, path: Option<FieldPath>) -> Result<Node, QueryError> {
    let Some(path) = path else { return Ok(Node::Constant(value.clone())) };
    Ok(match path.evaluate_below(value.raw(), Direct)?.raw() {
        Some(value) => Node::Constant(Literal::new(value)),
        None => Node::Remove,
    })
}

fn check_name(name: &str) -> Result<(), QueryError> {
    let is_sound = name.starts_with(|c: char| c.is_ascii_alphabetic() || !c.is_ascii())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii());
    if is_sound {
        return Ok(());
    }
    Err(QueryError::failed_to_parse(format!("'{name}' starts with an invalid character for a variable name")))
}

/// A name that a user may give to a variable: it begins with a lowercase letter, or is that of the value from
/// which fields are read.
pub(crate) fn check_user_name(name: &str) -> Result<(), QueryError> {
    if name == "CURRENT" {
        return Ok(());
    }
    check_variable_name(name, |first| first.is_ascii_lowercase() || !first.is_ascii())
}

/// Refuses a name that cannot be one of a variable, or begins otherwise.
fn check_variable_name(name: &str, may_begin: fn(char) -> bool) -> Result<(), QueryError> {
    if name.is_empty() {
        return Err(QueryError::failed_to_parse("empty variable names are not allowed"));
    }
    if !name.starts_with(may_begin) {
        return Err(QueryError::failed_to_parse(format!(
            "'{name}' starts with an invalid character for a user variable name"
        )));
    }
    if let Some(bad) = name.chars().find(|c| !(c.is_ascii_alphanumeric() || *c == '_' || !c.is_ascii())) {
        return Err(QueryError::failed_to_parse(format!(
            "'{name}' contains an invalid character for a variable name: '{bad}'"
        )));
    }
    Ok(())
}
