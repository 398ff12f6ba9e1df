//! The parser of projections: from the document to the tree.
//!
//! 1. Each field is an inclusion (a number that is not zero, `true`), an exclusion (zero, `false`), or an
//!    expression. It may also be a nested projection, or an operator of projections (`$slice`, `$elemMatch`,
//!    `path.$`, of `find` only).
//! 2. The first inclusion, exclusion or expression decides the *type*; the other kind is then refused, but
//!    for `_id`. `$slice` and `$elemMatch` go with both; alone, `$slice` keeps the other fields, `$elemMatch`
//!    drops them.
//! 3. Paths may not lie on one another.

use pando_document::{RawDocument, RawValue};

use super::fault::ProjectionFault;
use super::finish::{Cut, Finish};
use super::tree::{Child, Collision, Computed, ElementFilter, Fallback, Fields};
use super::{Flavour, Projection};
use crate::error::{ErrorCode, QueryError};
use crate::expression::{self, Expression, FieldPath, ParseScope};
use crate::filter::Filter;
use crate::path::is_reference_name;
use crate::shell_text;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Inclusion,
    Exclusion,
}

/// The projection's rule for `_id` itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdRule {
    Unsaid,
    Included,
    Excluded,
    /// A path below it, or an expression: the tree has it.
    InTree,
}

struct Parser<'s> {
    scope: &'s ParseScope,
    flavour: Flavour,
    kind: Option<Kind>,
    id: IdRule,
    tree: Fields,
    finish: Finish,
    has_element_match: bool,
    has_positional: bool,
    has_meta: bool,
    /// The name of the field that is parsed, as it is written.
    name: String,
}

pub(super) fn parse(
    specification: &RawDocument,
    flavour: Flavour,
    scope: &ParseScope,
) -> Result<Projection, QueryError> {
    if specification.is_empty() && flavour == Flavour::Stage {
        return Err(ProjectionFault::EmptySpecification
            .error("projection specification must have at least one field"));
    }
    let mut parser = Parser {
        scope,
        flavour,
        kind: None,
        id: IdRule::Unsaid,
        tree: Fields::default(),
        finish: Finish::default(),
        has_element_match: false,
        has_positional: false,
        has_meta: false,
        name: String::new(),
    };
    for element in specification.iter() {
        let (name, value) = element?;
        parser.field(name, name, value, 0)?;
    }
    // Everything is parsed before anything is folded: that is the order of MongoDB's errors.
    parser.tree.fold(&|expression| match flavour {
        Flavour::Find => expression.folded(),
        Flavour::Stage => expression.folded_in(scope),
    })?;
    Ok(parser.finish(specification.is_empty()))
}

impl Parser<'_> {
    /// A field, by its whole path and by its name as it is written.
    fn field(&mut self, path: &str, name: &str, value: RawValue<'_>, depth: usize) -> Result<(), QueryError> {
        name.clone_into(&mut self.name);
        if let Some(array) = self.positional_path(path)? {
            return self.positional(&array, value);
        }
        match value {
            number if number.is_number() || matches!(number, RawValue::Boolean(_)) => {
                self.switch(path, if number.to_bool() { Kind::Inclusion } else { Kind::Exclusion })
            }
            RawValue::Document(document) => self.object(path, document, depth),
            other => self.compute(path, other),
        }
    }

    /// `a.b.$` without its end, if the path is positional.
    fn positional_path(&self, path: &str) -> Result<Option<String>, QueryError> {
        if let Some(array) = path.strip_suffix(".$") {
            if self.flavour == Flavour::Stage {
                return Err(ProjectionFault::PositionalInStage
                    .error("Cannot use positional projection in aggregation projection"));
            }
            return Ok(Some(array.to_owned()));
        }
        if path.contains(".$.") {
            return Err(ProjectionFault::PositionalWithinPath.error(
                "As of 4.4, it's illegal to specify positional operator in the middle of a path.Positional projection may \
                 only be used at the end, for example: a.b.$. If the query previously used a form like a.b.$.d, remove the \
                 parts following the '$' and the results will be equivalent.",
            ));
        }
        Ok(None)
    }

    fn positional(&mut self, path: &str, value: RawValue<'_>) -> Result<(), QueryError> {
        if !(value.is_number() || matches!(value, RawValue::Boolean(_))) {
            return Err(ProjectionFault::PositionalLiteral
                .error("positional projection cannot be used with a literal"));
        }
        if !value.to_bool() {
            return Err(ProjectionFault::PositionalExclusion
                .error("positional projection cannot be used with exclusion"));
        }
        if self.has_positional {
            return Err(ProjectionFault::TwoPositionals
                .error("Cannot specify more than one positional projection per query."));
        }
        if self.has_element_match {
            return Err(ProjectionFault::ElemMatchBeforePositional
                .error("Cannot specify positional operator and $elemMatch."));
        }
        self.has_positional = true;
        self.switch(path, Kind::Inclusion)?;
        let path = FieldPath::parse(path)?;
        self.finish.insert(path.names(), Cut::Positional);
        Ok(())
    }

    /// An inclusion or exclusion.
    fn switch(&mut self, path: &str, kind: Kind) -> Result<(), QueryError> {
        if path == "_id" {
            if self.id == IdRule::InTree {
                return Err(ProjectionFault::CollisionAbove.error("Path collision at _id"));
            }
            self.id = if kind == Kind::Inclusion { IdRule::Included } else { IdRule::Excluded };
            return Ok(());
        }
        let parsed = FieldPath::parse(path)?;
        self.insert(&parsed, if kind == Kind::Inclusion { Child::Keep } else { Child::Drop })?;
        self.decide(kind)
    }

    fn decide(&mut self, kind: Kind) -> Result<(), QueryError> {
        let shown = &self.name;
        match (self.kind, kind) {
            (Some(Kind::Inclusion), Kind::Exclusion) => Err(ProjectionFault::ExclusionInInclusion
                .error(format!("Cannot do exclusion on field {shown} in inclusion projection"))),
            (Some(Kind::Exclusion), Kind::Inclusion) => Err(ProjectionFault::InclusionInExclusion
                .error(format!("Cannot do inclusion on field {shown} in exclusion projection"))),
            _ => {
                self.kind = Some(kind);
                Ok(())
            }
        }
    }

    fn object(&mut self, path: &str, document: &RawDocument, depth: usize) -> Result<(), QueryError> {
        let Some(first) = document.iter().next() else {
            return Err(ProjectionFault::EmptySubProjection
                .error("An empty sub-projection is not a valid value. Found empty object at path"));
        };
        let (operator, argument) = first?;
        if operator.starts_with('$') && !is_reference_name(operator) {
            if document.iter().count() > 1 {
                return Err(FieldPath::parse(operator)
                    .err()
                    .unwrap_or_else(|| unreachable!("a name that begins with $ is refused as a path")));
            }
            return self.operator(path, operator, argument, document, depth);
        }
        // Before the fields within: a path that lies on another one is refused first, whatever they hold.
        self.check_below(&FieldPath::parse(path)?)?;
        for element in document.iter() {
            let (name, value) = element?;
            self.field(&format!("{path}.{name}"), name, value, depth + 1)?;
        }
        Ok(())
    }

    fn operator(
        &mut self,
        path: &str,
        operator: &str,
        argument: RawValue<'_>,
        whole: &RawDocument,
        depth: usize,
    ) -> Result<(), QueryError> {
        match (operator, self.flavour) {
            ("$slice", Flavour::Find) => self.slice(path, argument, whole),
            ("$elemMatch", Flavour::Find) => self.element_match(path, argument, depth),
            ("$elemMatch", Flavour::Stage) => Err(QueryError::new(
                ErrorCode::InvalidPipelineOperator,
                "Cannot use $elemMatch in this context",
            )),
            ("$meta", Flavour::Find) => self.meta(path, argument),
            _ if !expression::is_known(operator) => {
                Err(ProjectionFault::UnknownOperator.error(format!("Unknown expression {operator}")))
            }
            _ => self.compute(path, RawValue::Document(whole)),
        }
    }

    /// Metadata beside the fields: it goes with an inclusion and with an exclusion, and decides neither.
    fn meta(&mut self, path: &str, argument: RawValue<'_>) -> Result<(), QueryError> {
        let parsed = FieldPath::parse(path)?;
        let expression = expression::parse_meta(argument, self.scope)?;
        self.has_meta = true;
        self.insert(&parsed, Child::Computed(Computed::Expression(expression)))
    }

    fn slice(&mut self, path: &str, argument: RawValue<'_>, whole: &RawDocument) -> Result<(), QueryError> {
        let cut = match slice_cut(argument)? {
            Some(cut) => cut,
            None => {
                return self.compute(path, RawValue::Document(whole)).map_err(|error| {
                    error.prefixed(format_args!(
                        "Invalid $slice syntax. The given syntax {} did not match the find() syntax :: caused by :: ",
                        shell_text::document_text(whole)
                    ))
                });
            }
        };
        let path = FieldPath::parse(path)?;
        // In an inclusion the field is included, in an exclusion it is kept: `finish` sees to it.
        if self.insert(&path, Child::Keep).is_err() {
            // A `$slice` that is no cut is tried as an expression.
            return self.compute(&path.text(), RawValue::Document(whole));
        }
        self.finish.insert(path.names(), cut);
        Ok(())
    }

    fn element_match(&mut self, path: &str, argument: RawValue<'_>, depth: usize) -> Result<(), QueryError> {
        let RawValue::Document(condition) = argument else {
            return Err(ProjectionFault::ElemMatchNotObject.error(format!(
                "elemMatch: Invalid argument, object required, but got {}",
                argument.element_type().alias()
            )));
        };
        if self.has_positional {
            return Err(ProjectionFault::PositionalWithElemMatch
                .error("Cannot specify positional operator and $elemMatch."));
        }
        if depth > 0 || path.contains('.') {
            return Err(
                ProjectionFault::ElemMatchNested.error("Cannot use $elemMatch projection on a nested field.")
            );
        }
        self.has_element_match = true;
        let test = element_filter(condition, argument, self.scope)?;
        let parsed = FieldPath::parse(path)?;
        self.insert(&parsed, Child::Computed(Computed::ElementMatch { name: path.to_owned(), test }))
    }

    fn compute(&mut self, path: &str, value: RawValue<'_>) -> Result<(), QueryError> {
        let parsed = FieldPath::parse(path)?;
        let is_object = matches!(value, RawValue::Document(_));
        if is_object && self.kind == Some(Kind::Exclusion) {
            return Err(ProjectionFault::ExpressionInExclusion
                .error("Cannot use expression other than $meta in exclusion projection"));
        }
        let expression = Expression::parse(value, self.scope)?;
        self.insert(&parsed, Child::Computed(Computed::Expression(expression)))?;
        if self.kind == Some(Kind::Exclusion) {
            return Err(ProjectionFault::LiteralInExclusion.error(format!(
                "Cannot use an expression {}: {} in an exclusion projection",
                self.name,
                shell_text::value_text(value)
            )));
        }
        self.kind = Some(Kind::Inclusion);
        Ok(())
    }

    fn insert(&mut self, path: &FieldPath, child: Child) -> Result<(), QueryError> {
        if path.first() == "_id" {
            if matches!(self.id, IdRule::Included | IdRule::Excluded) {
                return Err(collision_below(path, 1));
            }
            self.id = IdRule::InTree;
        }
        self.tree.insert(path.names(), child).map_err(|collision| collision_error(path, collision))
    }

    /// Refuses a path that cannot have fields below it.
    fn check_below(&self, path: &FieldPath) -> Result<(), QueryError> {
        if path.first() == "_id" && matches!(self.id, IdRule::Included | IdRule::Excluded) {
            return Err(collision_error(path, Collision { depth: 0 }));
        }
        self.tree.check_below(path.names()).map_err(|collision| collision_error(path, collision))
    }

    fn finish(mut self, is_empty: bool) -> Projection {
        let kind = self.kind.unwrap_or(match self.id {
            IdRule::Included => Kind::Inclusion,
            _ if is_empty || !self.finish.is_empty() => Kind::Exclusion,
            _ if self.has_element_match => Kind::Inclusion,
            // In a stage it includes, in a find all fields stay.
            IdRule::Unsaid | IdRule::InTree if self.has_meta && self.flavour == Flavour::Find => {
                Kind::Exclusion
            }
            IdRule::Excluded => Kind::Exclusion,
            _ => Kind::Inclusion,
        });
        let fallback = match kind {
            Kind::Inclusion => Fallback::Drop,
            Kind::Exclusion => Fallback::Keep,
        };
        match (kind, self.id) {
            (Kind::Inclusion, IdRule::Unsaid | IdRule::Included) => {
                self.tree.prepend("_id", Child::Keep);
            }
            (Kind::Exclusion, IdRule::Excluded) => {
                self.tree.prepend("_id", Child::Drop);
            }
            _ => {}
        }
        for kind_of_metadata in self.scope.metadata().iter() {
            // The stages of a pipeline hand metadata on, the documents of a find show it by name only.
            let field = kind_of_metadata.field();
            match (self.flavour, kind) {
                (Flavour::Stage, Kind::Inclusion) => self.tree.prepend(field, Child::Keep),
                (Flavour::Find, Kind::Exclusion) => self.tree.prepend(field, Child::Drop),
                _ => {}
            }
        }
        Projection::new(self.tree, fallback, self.finish)
    }
}

fn collision_error(path: &FieldPath, collision: Collision) -> QueryError {
    match collision.depth + 1 == path.names().len() {
        true => ProjectionFault::CollisionAbove.error(format!("Path collision at {}", path.text())),
        false => collision_below(path, collision.depth + 1),
    }
}

fn collision_below(path: &FieldPath, depth: usize) -> QueryError {
    ProjectionFault::PathCollision.error(format!(
        "Path collision at {} remaining portion {}",
        path.text(),
        path.names()[depth..].join(".")
    ))
}

/// The name under which a condition on values knows the element.
const ELEMENT_NAME: &str = "element";

/// `$elemMatch` tests values if its condition is made of operators, documents if of fields.
fn element_filter(
    condition: &RawDocument,
    argument: RawValue<'_>,
    scope: &ParseScope,
) -> Result<ElementFilter, QueryError> {
    const LOGICAL: [&str; 5] = ["$and", "$or", "$nor", "$where", "$expr"];
    let tests_values = match condition.iter().next() {
        Some(first) => {
            let (name, _) = first?;
            name.starts_with('$') && !LOGICAL.contains(&name) && !is_reference_name(name)
        }
        None => false,
    };
    if !tests_values {
        if condition.get("$expr")?.is_some() {
            return Err(QueryError::bad_value("$expr can only be applied to the top-level document"));
        }
        return Ok(ElementFilter::Documents(Filter::parse(condition, scope)?));
    }
    let mut bytes = Vec::new();
    let mut writer = pando_document::DocumentWriter::begin(&mut bytes);
    writer.append(ELEMENT_NAME, argument);
    writer.finish();
    let filter = Filter::parse(RawDocument::from_bytes(&bytes)?, scope)?;
    Ok(ElementFilter::Values(filter, ELEMENT_NAME))
}

/// The cut of `find`'s `$slice`; `None` if the argument can only be an expression's.
fn slice_cut(argument: RawValue<'_>) -> Result<Option<Cut>, QueryError> {
    let as_count = |value: RawValue<'_>| {
        let number = pando_document::Number::from_value(value)?;
        let whole =
            expression::truncated(number).unwrap_or(if number.to_f64() < 0.0 { i64::MIN } else { i64::MAX });
        Some(whole.clamp(i64::from(i32::MIN), i64::from(i32::MAX)))
    };
    match argument {
        RawValue::Array(window) => {
            let mut values = window.iter();
            let (Some(skip), Some(limit), None) = (values.next(), values.next(), values.next()) else {
                return Ok(None);
            };
            let (Some(skip), Some(limit)) = (as_count(skip?), as_count(limit?)) else { return Ok(None) };
            Ok((limit > 0).then_some(Cut::Window(skip, limit)))
        }
        number => Ok(as_count(number).map(Cut::Limit)),
    }
}
