//! `$objectToArray`: the fields of a document as objects `{k, v}`.

use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError, array_of};

pub(super) static OBJECT_TO_ARRAY: Definition =
    Definition { name: "$objectToArray", arity: Arity::Exactly(1), run };

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    if value.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let Some(document) = value.as_document() else {
        return Err(ExpressionFault::ToArrayNotObject
            .error(format!("$objectToArray requires a document input, found: {}", value.type_name())));
    };
    array_of(|writer| {
        for field in document.iter() {
            let (name, value) = field?;
            let mut pair = writer.document();
            pair.append_str("k", name);
            pair.append("v", value);
            pair.finish();
        }
        Ok(())
    })
}
