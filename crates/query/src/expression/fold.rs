//! Constant folding: a part of an expression that needs no document is computed once, when it is parsed.
//!
//! This is part of an expression's meaning, not only of its speed. `{$divide: [1, "x"]}` is refused before
//! any document is read, even in the branch of a `$cond` that is never taken. `$add` with two constants adds
//! those first, which rounds differently. The rules were read off MongoDB 6.0's explained pipelines:
//!
//! 1. Arguments are folded first. A call whose arguments are all constant becomes its value; so do objects
//!    and arrays.
//! 2. Of an associative operator, arguments that are calls of the same operator are spliced in. Constants
//!    that stand side by side become one; if the operator is commutative as well, all constants become one,
//!    and go to the end.
//! 3. `$and`, `$or`, `$cond`, `$switch` and `$ifNull` lose the arguments that constants decide about.
//! 4. Operators with variables, regular expressions, replacements, `$zip`, `$sortArray` and `$setEquals` stay
//!    calls (`STAYS`); of some not even the arguments are folded (`UNTOUCHED`).

use pando_document::{RawDocument, RawValue};

use super::call::Call;
use super::evaluated::Evaluated;
use super::fault::ExpressionFault;
use super::frame::Frame;
use super::scope::Folding;
use super::{Expression, Node, ParseScope};
use crate::QueryError;
use crate::literal::Literal;

/// The words before the message of a pipeline's expression that cannot be folded.
pub(crate) const FAILED_TO_FOLD: &str = "Failed to optimize pipeline :: caused by :: ";

/// Calls of these are kept, with folded arguments.
const STAYS: [&str; 12] = [
    "$let",
    "$map",
    "$filter",
    "$reduce",
    "$zip",
    "$regexMatch",
    "$regexFind",
    "$regexFindAll",
    "$replaceOne",
    "$replaceAll",
    "$sortArray",
    "$setEquals",
];
/// Calls of these are kept as they were written.
const UNTOUCHED: [&str; 8] =
    ["$getField", "$setField", "$unsetField", "$firstN", "$lastN", "$minN", "$maxN", "$rand"];
const COMMUTATIVE: [&str; 9] =
    ["$add", "$multiply", "$and", "$or", "$setUnion", "$setIntersection", "$sum", "$min", "$max"];
/// Of these a single argument means something else.
const OF_ONE_ARRAY: [&str; 3] = ["$sum", "$min", "$max"];
const ASSOCIATIVE_ONLY: [&str; 2] = ["$concat", "$concatArrays"];

impl Expression {
    /// Parses an expression of a pipeline and folds it.
    pub(crate) fn of_pipeline(value: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
        Expression::parse(value, scope)?.folded_in(scope)
    }

    /// Folds an expression of a pipeline, if the scope says so.
    pub(crate) fn folded_in(self, scope: &ParseScope) -> Result<Expression, QueryError> {
        if scope.folding() == Folding::AsWritten {
            return Ok(self);
        }
        self.folded().map_err(|error| error.prefixed(FAILED_TO_FOLD))
    }

    /// The expression with everything computed that needs no document.
    pub fn folded(self) -> Result<Expression, QueryError> {
        match self.node {
            Node::Object(members) => {
                let members = members
                    .into_iter()
                    .map(|(name, member)| Ok((name, member.folded()?)))
                    .collect::<Result<Vec<_>, QueryError>>()?;
                let is_constant = members.iter().all(|(_, member)| member.is_constant());
                computed_if(is_constant, Expression { node: Node::Object(members) })
            }
            Node::Array(elements) => {
                let elements = folded_each(elements)?;
                let is_constant = elements.iter().all(Expression::is_constant);
                computed_if(is_constant, Expression { node: Node::Array(elements) })
            }
            Node::Call(call) => fold_call(*call),
            node => Ok(Expression { node }),
        }
    }

    /// Whether the value is known already; `$$REMOVE` is a constant too.
    pub(crate) fn is_constant(&self) -> bool {
        matches!(self.node, Node::Constant(_) | Node::Remove)
    }

    /// The truth value of a constant.
    fn constant_condition(&self) -> Option<bool> {
        match &self.node {
            Node::Constant(literal) => Some(literal.raw().to_bool()),
            Node::Remove => Some(false),
            _ => None,
        }
    }

    fn is_constant_null(&self) -> bool {
        match &self.node {
            Node::Constant(literal) => literal.raw().is_null(),
            node => matches!(node, Node::Remove),
        }
    }
}

fn folded_each(expressions: Vec<Expression>) -> Result<Vec<Expression>, QueryError> {
    expressions.into_iter().map(Expression::folded).collect()
}

fn computed_if(is_constant: bool, expression: Expression) -> Result<Expression, QueryError> {
    if is_constant { computed(&expression) } else { Ok(expression) }
}

/// The value of an expression that reads no document.
fn computed(expression: &Expression) -> Result<Expression, QueryError> {
    let node = match expression.run(&mut Frame::new(RawDocument::empty()))? {
        Evaluated::Missing => Node::Remove,
        value => Node::Constant(Literal::new(value.raw_or_null())),
    };
    Ok(Expression { node })
}

fn fold_call(call: Call) -> Result<Expression, QueryError> {
    let name = call.name();
    if UNTOUCHED.contains(&name) {
        return Ok(Expression::from_call(call));
    }
    if name == "$switch" {
        return fold_switch(call);
    }
    let call = call.map_arguments(Expression::folded)?;
    if name == "$setEquals" {
        check_equal_sets(&call)?;
    }
    if name.starts_with("$regex") {
        return super::operator::with_compiled_pattern(call).map(Expression::from_call);
    }
    if STAYS.contains(&name) {
        return Ok(without_variables(call));
    }
    if call.arguments().all(Expression::is_constant) {
        return computed(&Expression::from_call(call));
    }
    match name {
        "$setIsSubset" => check_superset(call),
        "$cond" => Ok(fold_cond(call)),
        "$ifNull" => Ok(fold_if_null(call)),
        _ if COMMUTATIVE.contains(&name) || ASSOCIATIVE_ONLY.contains(&name) => fold_associative(call),
        _ => Ok(Expression::from_call(call)),
    }
}

/// Constants among the arguments of `$setEquals` are judged before all else.
fn check_equal_sets(call: &Call) -> Result<(), QueryError> {
    for (at, argument) in call.arguments().enumerate() {
        match argument.as_constant() {
            None | Some(RawValue::Array(_)) => {}
            Some(other) => {
                return Err(ExpressionFault::SetEqualsConstantNotArray.error(format!(
                    "All operands of $setEquals must be arrays. {}-th argument is of type: {}",
                    at + 1,
                    other.element_type().alias()
                )));
            }
        }
    }
    Ok(())
}

/// A constant as the second argument of `$setIsSubset` has to be an array.
fn check_superset(call: Call) -> Result<Expression, QueryError> {
    match call.expression(1).and_then(Expression::as_constant) {
        None | Some(RawValue::Array(_)) => Ok(Expression::from_call(call)),
        Some(other) => Err(ExpressionFault::SetIsSubsetConstantNotArray.error(format!(
            "both operands of $setIsSubset must be arrays. Second argument is of type: {}",
            other.element_type().alias()
        ))),
    }
}

/// `$let` without variables is its body.
fn without_variables(call: Call) -> Expression {
    if call.name() == "$let" && call.len() == 1 {
        let body = call.into_arguments().pop().flatten();
        return body.expect("$let has a body, which its parser asked for");
    }
    Expression::from_call(call)
}

fn fold_cond(call: Call) -> Expression {
    let condition = call.expression(0).and_then(Expression::constant_condition);
    let Some(condition) = condition else { return Expression::from_call(call) };
    let taken = call.into_arguments().swap_remove(if condition { 1 } else { 2 });
    taken.expect("$cond has three arguments, which its parser counted")
}

/// Constant nulls go, but for the last argument. Arguments behind another constant are never reached.
fn fold_if_null(call: Call) -> Expression {
    let last = call.len() - 1;
    let mut kept = Vec::with_capacity(call.len());
    let template = call.without_arguments();
    for (at, argument) in call.into_arguments().into_iter().flatten().enumerate() {
        if at != last && argument.is_constant_null() {
            continue;
        }
        let decides = argument.is_constant();
        kept.push(argument);
        if decides {
            break;
        }
    }
    if kept.len() == 1 {
        return kept.remove(0);
    }
    Expression::from_call(template.with_arguments(kept.into_iter().map(Some).collect()))
}

/// Arguments: the default, then case and expression of each branch. A branch behind one that is always taken
/// is not folded.
fn fold_switch(call: Call) -> Result<Expression, QueryError> {
    let template = call.without_arguments();
    let mut arguments = call.into_arguments().into_iter();
    let default = arguments.next().flatten().map(Expression::folded).transpose()?;
    let mut kept = vec![default];
    while let (Some(case), Some(then)) = (arguments.next().flatten(), arguments.next().flatten()) {
        let case = case.folded()?;
        match case.constant_condition() {
            Some(false) => {}
            Some(true) => {
                kept[0] = Some(then.folded()?);
                break;
            }
            None => kept.extend([Some(case), Some(then.folded()?)]),
        }
    }
    if kept.len() > 1 {
        return Ok(Expression::from_call(template.with_arguments(kept)));
    }
    kept.pop().flatten().ok_or_else(|| {
        ExpressionFault::SwitchNeverMatches.error(
            "Cannot execute a switch statement where all the cases evaluate to false without a default",
        )
    })
}

/// Rule 2, and for `$and` and `$or` rule 3.
fn fold_associative(call: Call) -> Result<Expression, QueryError> {
    // The single argument may be an array, and is looked into.
    if call.len() == 1 && OF_ONE_ARRAY.contains(&call.name()) {
        return Ok(Expression::from_call(call));
    }
    let template = call.without_arguments();
    let commutes = COMMUTATIVE.contains(&call.name());
    let (mut constants, mut others) = (Vec::new(), Vec::new());
    for argument in spliced(call) {
        if argument.is_constant() {
            constants.push(argument);
            continue;
        }
        if !commutes {
            others.extend(one_constant(&template, &mut constants)?);
        }
        others.push(argument);
    }
    others.extend(one_constant(&template, &mut constants)?);
    let decided = match template.name() {
        "$and" => others.last().and_then(Expression::constant_condition).map(|last| (last, false)),
        "$or" => others.last().and_then(Expression::constant_condition).map(|last| (last, true)),
        _ => None,
    };
    match decided {
        Some((last, absorbing)) if last == absorbing => {
            return Ok(Expression::constant(RawValue::Boolean(absorbing)));
        }
        Some(_) => drop(others.pop()),
        None => {}
    }
    Ok(Expression::from_call(template.with_arguments(others.into_iter().map(Some).collect())))
}

/// The arguments, with those of inner calls of the same operator in their place. Inner calls are folded, so
/// that none of them holds another.
fn spliced(call: Call) -> Vec<Expression> {
    let name = call.name();
    let mut arguments = Vec::with_capacity(call.len());
    for argument in call.into_arguments().into_iter().flatten() {
        match argument.node {
            // An accumulator of one argument looks into an array.
            Node::Call(inner)
                if inner.name() == name && (inner.len() > 1 || !OF_ONE_ARRAY.contains(&name)) =>
            {
                arguments.extend(inner.into_arguments().into_iter().flatten());
            }
            node => arguments.push(Expression { node }),
        }
    }
    arguments
}

/// Several constants as one; a single one as it is.
fn one_constant(template: &Call, constants: &mut Vec<Expression>) -> Result<Option<Expression>, QueryError> {
    if constants.len() < 2 {
        return Ok(constants.pop());
    }
    let arguments = constants.drain(..).map(Some).collect();
    computed(&Expression::from_call(template.without_arguments().with_arguments(arguments))).map(Some)
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    /// The folded form of an expression, shown as its debug text is; or the message of its error.
    fn folded(value: pando_document::Value) -> Result<Expression, String> {
        let document = doc! { "e": value }.to_raw();
        let value = document.get("e").unwrap().unwrap();
        Expression::parse(value, &ParseScope::default())
            .unwrap()
            .folded()
            .map_err(|error| error.message().to_owned())
    }

    fn constant(value: pando_document::Value) -> Option<String> {
        folded(value).unwrap().as_constant().map(crate::shell_text::value_text)
    }

    fn arguments(value: pando_document::Value) -> Vec<String> {
        let Node::Call(call) = folded(value).unwrap().node else { panic!("not a call") };
        call.arguments()
            .map(|argument| match (argument.as_constant(), argument.as_field_path()) {
                (Some(value), _) => crate::shell_text::value_text(value),
                (None, Some(path)) => format!("${}", path.text()),
                (None, None) => "…".to_owned(),
            })
            .collect()
    }

    #[test]
    fn calls_of_constants_are_computed_and_refused_when_they_are_parsed() {
        assert_eq!(constant(doc! { "$add": [1, { "$multiply": [2, 3] }] }.into()).unwrap(), "7");
        let refused = folded(doc! { "$cond": [true, 1, { "$divide": [1, "x"] }] }.into()).unwrap_err();
        assert_eq!(refused, "$divide only supports numeric types, not int and string");
        assert!(
            folded(doc! { "$getField": { "field": "a", "input": { "$divide": [1, "x"] } } }.into()).is_ok()
        );
    }

    #[test]
    fn constants_of_commutative_operators_are_gathered_at_the_end() {
        assert_eq!(arguments(doc! { "$add": [1, "$a", { "$add": [2, "$b", 3] }] }.into()), ["$a", "$b", "6"]);
        assert_eq!(arguments(doc! { "$concat": ["a", "b", "$a", "c"] }.into()), ["\"ab\"", "$a", "\"c\""]);
    }

    #[test]
    fn a_single_argument_that_may_be_an_array_stays_a_call() {
        assert_eq!(arguments(doc! { "$max": { "$max": ["$a", "$b"] } }.into()), ["…"]);
        assert_eq!(arguments(doc! { "$max": [{ "$max": ["$a", "$b"] }, "$c"] }.into()), ["$a", "$b", "$c"]);
        assert_eq!(arguments(doc! { "$add": [{ "$add": ["$a", "$b"] }] }.into()), ["$a", "$b"]);
    }

    #[test]
    fn constants_decide_conditions() {
        assert_eq!(constant(doc! { "$and": ["$a", 0, "$b"] }.into()).unwrap(), "false");
        assert_eq!(arguments(doc! { "$and": [1, "$a", "$b"] }.into()), ["$a", "$b"]);
        assert_eq!(constant(doc! { "$or": ["$a", 1] }.into()).unwrap(), "true");
        assert_eq!(constant(doc! { "$cond": [{ "$eq": [1, 1] }, 5, "$b"] }.into()).unwrap(), "5");
        assert_eq!(constant(doc! { "$ifNull": [null, 4, "$b"] }.into()).unwrap(), "4");
        assert_eq!(arguments(doc! { "$ifNull": ["$a", null, "$b", 1, 2] }.into()), ["$a", "$b", "1"]);
    }

    #[test]
    fn branches_that_are_never_taken_go() {
        let branches = [doc! { "case": false, "then": 1 }, doc! { "case": true, "then": 2 }];
        let with = |branches: &[pando_document::Document]| {
            let branches: Vec<pando_document::Value> = branches.iter().cloned().map(Into::into).collect();
            doc! { "$switch": { "branches": branches } }
        };
        assert_eq!(constant(with(&branches).into()).unwrap(), "2");
        assert!(folded(with(&branches[..1]).into()).unwrap_err().contains("all the cases evaluate to false"));
    }
}
