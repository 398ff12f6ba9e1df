//! The one expression evaluator that `$expr`, pipeline updates, projections and pipelines share.
//!
//! Terms: an *expression* is the parsed form of `"$a.b"`, `{$add: ["$x", 1]}`, `{sum: …, list: […]}` or a
//! literal. It is *evaluated* against one document (the *root*) and gives an [`Evaluated`]: a value or
//! nothing at all (*missing*, which is not null). A *slot* holds the value of a variable (`$$this`) while its
//! expression runs.
//!
//! 1. [`Expression::parse`] turns BSON into a tree once. It resolves names of operators and variables, so
//!    that unknown ones are refused before any document is read.
//! 2. [`Expression::evaluate`] walks the tree. Values that stand in the root are borrowed from its bytes.
//!    Only computed strings, arrays and documents are allocated, as bytes that are ready to be written out.
//!
//! Invariants: an expression is immutable, `Send` and `Sync`; evaluating it changes nothing but its own
//! frame. The tree is no deeper than the BSON that it was parsed from, so recursion is bounded by the
//! document limits.
//!
//! Not here: filters (`crate::filter`), accumulators (`crate::pipeline`).

pub(crate) mod accumulator;
mod array_table;
mod call;
mod compared_field;
mod decimal_function;
mod dice;
mod evaluated;
mod fault;
mod field_path;
mod fold;
mod frame;
mod integer;
mod operator;
mod scope;
mod user_roles;
mod watch;

use pando_document::{RawArray, RawDocument, RawValue};

pub(crate) use self::compared_field::{ComparedField, Comparing};
pub(crate) use self::decimal_function::pow as decimal_power;
pub use self::dice::Dice;
pub use self::evaluated::Evaluated;
pub(crate) use self::evaluated::{array_of, document_of};
pub use self::fault::ExpressionFault;
pub use self::field_path::FieldPath;
pub(crate) use self::fold::FAILED_TO_FOLD;
pub use self::frame::Frame;
pub(crate) use self::integer::{narrowed, truncated};
pub(crate) use self::operator::interval_of;
pub(crate) use self::operator::{PercentileArguments, TimeUnit};
pub(crate) use self::operator::{is_known, parse_meta};
pub(crate) use self::scope::{Conditions, check_user_name};
pub use self::scope::{Optimisation, ParseScope};
pub use self::user_roles::{UserRole, UserRoles};
pub use self::watch::EvaluationWatch;

use self::call::Call;
use crate::error::QueryError;
use crate::literal::Literal;
use crate::metadata::{Metadata, without_hidden};
use crate::needs::Needs;

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct Expression {
    node: Node,
}

#[derive(Clone, Debug)]
enum Node {
    Constant(Literal),
    /// `$a.b`, `$$ROOT.a`.
    Path(FieldPath),
    /// `$$this.a`: a slot, and a path below its value.
    Variable {
        slot: usize,
        path: Option<FieldPath>,
    },
    /// `$$REMOVE`.
    Remove,
    /// `$$ROOT`.
    Root,
    /// `$$ROOT` of a document that comes with metadata.
    RootFields,
    Object(Vec<(String, Expression)>),
    Array(Vec<Expression>),
    Call(Box<Call>),
}

impl Expression {
    /// Parses an expression; `scope` knows the variables that it may name.
    pub fn parse(value: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
        let node = match value {
            RawValue::String(text) => return parse_string(text, scope),
            RawValue::Document(document) => return parse_document(document, scope),
            RawValue::Array(array) => Node::Array(parse_each(array, scope)?),
            other => Node::Constant(Literal::new(other)),
        };
        Ok(Expression { node })
    }

    /// The value at a path of the root.
    pub(crate) fn of_path(path: FieldPath) -> Expression {
        Expression { node: Node::Path(path) }
    }

    /// An expression that is always this value.
    pub fn constant(value: RawValue<'_>) -> Expression {
        Expression { node: Node::Constant(Literal::new(value)) }
    }

    /// The value on one document.
    pub fn evaluate<'a>(&'a self, root: &'a RawDocument) -> Result<Evaluated<'a>, QueryError> {
        match &self.node {
            // One look-up needs no tables.
            Node::Path(path) => path.evaluate(root),
            _ => self.run(&mut Frame::new(root)),
        }
    }

    /// The constant that this is, if it is one as written, without computing.
    pub fn as_constant(&self) -> Option<RawValue<'_>> {
        match &self.node {
            Node::Constant(literal) => Some(literal.raw()),
            _ => None,
        }
    }

    /// The path of the root that this is, if it is one.
    pub fn as_field_path(&self) -> Option<&FieldPath> {
        match &self.node {
            // No filter can name a hidden field, so nobody may put its path in the place of a field.
            Node::Path(path) if Metadata::of_field(path.first()).is_none() => Some(path),
            _ => None,
        }
    }

    /// Whether this is a path of the root or a constant.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(&self.node, Node::Path(_) | Node::Constant(_))
    }

    /// Whether this is the root, a path of it or a constant: an evaluation never fails.
    pub(crate) fn never_fails(&self) -> bool {
        matches!(&self.node, Node::Path(_) | Node::Constant(_) | Node::Root | Node::Remove)
    }

    /// Whether the root is read by paths only, never as a whole.
    pub(crate) fn reads_paths_only(&self) -> bool {
        let mut fields = Vec::new();
        self.collect_fields(&mut fields);
        fields.iter().all(Option::is_some)
    }

    /// Whether the root or anything in it is read.
    pub(crate) fn reads_root(&self) -> bool {
        let mut fields = Vec::new();
        self.collect_fields(&mut fields);
        !fields.is_empty()
    }

    /// Whether a top-level field of the root, or the root, is read.
    pub(crate) fn reads_field(&self, name: &str) -> bool {
        let mut fields = Vec::new();
        self.collect_fields(&mut fields);
        fields.iter().any(|field| field.is_none_or(|field| field == name))
    }

    /// Collects the top-level fields of the root that are read; `None` stands for the whole root.
    pub fn collect_fields<'e>(&'e self, fields: &mut Vec<Option<&'e str>>) {
        match &self.node {
            Node::Path(path) => fields.push(Some(path.first())),
            Node::Root | Node::RootFields => fields.push(None),
            Node::Object(members) => members.iter().for_each(|(_, member)| member.collect_fields(fields)),
            Node::Array(elements) => elements.iter().for_each(|element| element.collect_fields(fields)),
            Node::Call(call) => call.arguments().for_each(|argument| argument.collect_fields(fields)),
            Node::Constant(_) | Node::Variable { .. } | Node::Remove => {}
        }
    }

    /// The top-level fields of a document that consists of them, or the only one. Of such values two are
    /// equal if and only if all fields are.
    pub(crate) fn top_level_fields(&self) -> Vec<&str> {
        let paths: Vec<&Expression> = match &self.node {
            Node::Object(members) => members.iter().map(|(_, member)| member).collect(),
            _ => vec![self],
        };
        let mut names = Vec::new();
        for path in paths {
            if let Node::Path(path) = &path.node
                && let [name] = path.names()
            {
                names.push(name.as_str());
            }
        }
        names
    }

    /// Adds the fields of the root that are read.
    pub(crate) fn add_needs(&self, needs: &mut Needs) {
        match &self.node {
            Node::Path(path) => needs.add(&path.text()),
            Node::Root | Node::RootFields => needs.add_everything(),
            Node::Object(members) => members.iter().for_each(|(_, member)| member.add_needs(needs)),
            Node::Array(elements) => elements.iter().for_each(|element| element.add_needs(needs)),
            Node::Call(call) => call.arguments().for_each(|argument| argument.add_needs(needs)),
            Node::Constant(_) | Node::Variable { .. } | Node::Remove => {}
        }
    }

    /// Evaluates within a frame whose slots are set.
    pub(crate) fn run<'a>(&'a self, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
        match &self.node {
            Node::Constant(literal) => Ok(Evaluated::Raw(literal.raw())),
            Node::Path(path) => frame.at_path(path),
            Node::Root => Ok(Evaluated::Raw(RawValue::Document(frame.root()))),
            Node::RootFields => Ok(Evaluated::owned(RawValue::Document(&without_hidden(frame.root())?))),
            Node::Remove => Ok(Evaluated::Missing),
            Node::Variable { slot, path } => frame.read(*slot, path.as_ref()),
            Node::Object(members) => run_object(members, frame),
            Node::Array(elements) => run_array(elements, frame),
            Node::Call(call) => call.run(frame),
        }
    }

    fn from_call(call: Call) -> Expression {
        Expression { node: Node::Call(Box::new(call)) }
    }

    /// The same expression; if it is a call, the scope's watch may end its evaluation, and it compares
    /// strings in the scope's order.
    fn within(self, scope: &ParseScope) -> Expression {
        let Node::Call(call) = self.node else { return self };
        let call = if scope.text_order().is_simple() { *call } else { call.collated_by(scope.text_order()) };
        Expression::from_call(match scope.watch() {
            Some(watch) => call.watched_by(watch),
            None => call,
        })
    }
}

/// Parses every element of an argument list.
pub(crate) fn parse_each(array: &RawArray, scope: &ParseScope) -> Result<Vec<Expression>, QueryError> {
    let mut expressions = Vec::new();
    for element in array.iter() {
        expressions.push(Expression::parse(element?, scope)?);
    }
    Ok(expressions)
}

fn parse_string(text: &str, scope: &ParseScope) -> Result<Expression, QueryError> {
    let node = if let Some(variable) = text.strip_prefix("$$") {
        parse_variable(variable, scope)?
    } else if let Some(path) = text.strip_prefix('$') {
        if path.is_empty() {
            return Err(ExpressionFault::EmptyFieldPath.error("'$' by itself is not a valid FieldPath"));
        }
        let path = FieldPath::parse(path)?;
        if scope.has_own_current() { scope.resolve("CURRENT", Some(path))? } else { Node::Path(path) }
    } else {
        Node::Constant(Literal::new(RawValue::String(text)))
    };
    Ok(Expression { node })
}

fn parse_variable(text: &str, scope: &ParseScope) -> Result<Node, QueryError> {
    let (name, path) = match text.split_once('.') {
        Some((name, path)) => (name, Some(FieldPath::parse(path)?)),
        None => (text, None),
    };
    if name.is_empty() {
        return Err(QueryError::failed_to_parse("empty variable names are not allowed"));
    }
    Ok(match (name, path) {
        ("ROOT", path) if scope.has_own_root() => scope.resolve(name, path)?,
        ("CURRENT", path) if scope.has_own_current() => scope.resolve(name, path)?,
        ("ROOT" | "CURRENT", Some(path)) => Node::Path(path),
        ("ROOT" | "CURRENT", None) if !scope.metadata().is_empty() => Node::RootFields,
        ("ROOT" | "CURRENT", None) => Node::Root,
        ("NOW", None) => Node::Constant(Literal::new(RawValue::DateTime(scope.now_millis()))),
        ("CLUSTER_TIME", path) => match (scope.cluster_time(), path) {
            (Some(time), None) => Node::Constant(Literal::new(RawValue::Timestamp(time))),
            (Some(_), Some(_)) => Node::Remove,
            (None, _) => {
                return Err(ExpressionFault::VariableNotAvailable
                    .error("Builtin variable '$$CLUSTER_TIME' is not available"));
            }
        },
        // A date has no fields.
        ("NOW" | "REMOVE", _) => Node::Remove,
        ("USER_ROLES", path) => match scope.user_roles().literal() {
            Some(roles) => scope::constant_below(roles, path)?,
            // An empty array has no fields but those of its elements.
            None => Node::Array(Vec::new()),
        },
        ("SEARCH_META", _) => {
            return Err(ExpressionFault::SearchMetaNotAvailable
                .error("Can't access $$SEARCH_META without a $search stage earlier in the pipeline"));
        }
        (name, path) => scope.resolve(name, path)?,
    })
}

fn parse_document(document: &RawDocument, scope: &ParseScope) -> Result<Expression, QueryError> {
    let mut members = Vec::new();
    for (position, element) in document.iter().enumerate() {
        let (name, value) = element?;
        if !name.starts_with('$') {
            check_member_name(name)?;
            members.push((name.to_owned(), Expression::parse(value, scope)?));
            continue;
        }
        if position > 0 {
            return Err(ExpressionFault::DollarInPath.error(
                "FieldPath field names may not start with '$'. Consider using $getField or $setField.",
            ));
        }
        if document.iter().count() > 1 {
            return Err(ExpressionFault::OperatorAmongFields.error(format!(
                    "an expression specification must contain exactly one field, the name of the expression. Found {} \
                     fields in {}",
                    document.iter().count(),
                    crate::shell_text::document_text(document)
                ),
            ));
        }
        return operator::parse(name, value, scope);
    }
    Ok(Expression { node: Node::Object(members) })
}

/// The name of one field, as object literals and facets have it: no `$` in front, no dot.
pub(crate) fn check_field_name(name: &str) -> Result<(), QueryError> {
    check_member_name(name)?;
    FieldPath::parse(name).map(|_| ())
}

pub(crate) fn check_member_name(name: &str) -> Result<(), QueryError> {
    if name.is_empty() {
        return Err(ExpressionFault::EmptyPathPart.error("FieldPath field names may not be empty strings."));
    }
    if name.contains('.') {
        return Err(ExpressionFault::DottedMember
            .error("FieldPath field names may not contain '.'. Consider using $getField or $setField."));
    }
    Ok(())
}

fn run_object<'a>(
    members: &'a [(String, Expression)],
    frame: &mut Frame<'a>,
) -> Result<Evaluated<'a>, QueryError> {
    let held = frame.held();
    evaluated::document_of(|writer| {
        for (name, member) in members {
            // A missing member is left out.
            if let Some(value) = member.run(frame)?.raw() {
                writer.append(name, value);
                evaluated::check_computed_bytes(writer.bytes_so_far())?;
                frame.hold_besides(held, writer.bytes_so_far())?;
            }
        }
        frame.give_back(held);
        Ok(())
    })
}

fn run_array<'a>(elements: &'a [Expression], frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let held = frame.held();
    evaluated::array_of(|writer| {
        for element in elements {
            // An array has no holes: a missing element is null.
            writer.push(element.run(frame)?.raw_or_null());
            evaluated::check_computed_bytes(writer.bytes_so_far())?;
            frame.hold_besides(held, writer.bytes_so_far())?;
        }
        frame.give_back(held);
        Ok(())
    })
}
