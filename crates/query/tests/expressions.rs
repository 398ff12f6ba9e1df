//! Expressions give what the oracle gives: the corpora in `tests/expressions`.

use pando_query::QueryError;
use pando_query::expression::{Expression, ParseScope};

use crate::corpus::{self, Case, document_of, value_of};

#[test]
fn expressions_give_what_the_oracle_gives() {
    let cases = corpus::read("expressions");
    let failures = cases.iter().filter_map(check).collect();
    corpus::report(failures, cases.len(), 150);
}

fn check(case: &Case) -> Option<String> {
    let answer = run(case);
    let is_right = match &answer {
        Err(error) => corpus::is_error(error, &case.expected),
        Ok(None) => case.expected == "missing",
        Ok(Some(text)) => {
            case.expected.strip_prefix("value ").is_some_and(|value| corpus::canonical_text(value) == *text)
        }
    };
    if is_right {
        return None;
    }
    let answer = match answer {
        Ok(Some(text)) => format!("value {text}"),
        Ok(None) => "missing".to_owned(),
        Err(error) => format!("{} ({error})", corpus::error_text(&error)),
    };
    Some(corpus::failure(case, "expression", &answer))
}

fn run(case: &Case) -> Result<Option<String>, QueryError> {
    let expression = case.boxed("expression").expect("a case has an expression");
    let expression = Expression::parse(value_of(&expression), &ParseScope::at(0))?.folded()?;
    let document = case.boxed("document").expect("a case has a document");
    let root = document_of(&document);
    let value = expression.evaluate(root)?;
    let Some(raw) = value.raw() else { return Ok(None) };
    Ok(Some(corpus::canonical_value(raw)))
}
