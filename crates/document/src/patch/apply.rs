//! The application of a patch: it reads the old bytes once and writes the new ones once, as the walk of an
//! update does that has read the document.

use super::{Patch, PatchOperator, Step, is_same_number};
use crate::{
    ArrayWriter, DOCUMENT_BYTES_MAX, DocumentError, DocumentWriter, Number, Overflow, RawDocument, RawValue,
    compare_values,
};

/// The document stays as it is: an operator fails, or the bytes are no document.
struct Unfit;

impl From<DocumentError> for Unfit {
    fn from(_: DocumentError) -> Unfit {
        Unfit
    }
}

/// The effect of an operator on a field.
enum Effect<'v> {
    Remove,
    Put(RawValue<'v>),
    /// The value is put behind the elements of an array.
    Append(RawValue<'v>),
}

impl Patch<'_> {
    /// The document after the patch; `None` where it stays as it is.
    pub fn apply(&self, document: &[u8]) -> Option<Vec<u8>> {
        let root = RawDocument::from_bytes(document).ok()?;
        let mut bytes = Vec::with_capacity(document.len() + 64);
        let mut writer = DocumentWriter::begin(&mut bytes);
        let outcome = rewrite_fields(root, &self.steps, 0, &mut writer);
        writer.finish();
        (outcome.is_ok() && bytes.len() <= DOCUMENT_BYTES_MAX).then_some(bytes)
    }
}

/// The steps below each name at a depth, in their order.
fn children<'s, 'p>(steps: &'s [Step<'p>], depth: usize) -> Vec<&'s [Step<'p>]> {
    steps.chunk_by(|a, b| a.path[depth] == b.path[depth]).collect()
}

/// Writes the fields of a document with the steps below it.
fn rewrite_fields(
    document: &RawDocument,
    steps: &[Step<'_>],
    depth: usize,
    writer: &mut DocumentWriter<'_>,
) -> Result<(), Unfit> {
    let children = children(steps, depth);
    let mut found = vec![false; children.len()];
    let bytes = document.as_bytes();
    let mut fields = document.iter();
    loop {
        let start = fields.offset();
        let Some(field) = fields.next() else { break };
        let (name, value) = field?;
        let place = children.iter().position(|steps| steps[0].path[depth] == name);
        match place.filter(|place| !found[*place]) {
            // Of two fields with one name, the first is the one that counts.
            Some(place) => {
                found[place] = true;
                rewrite_value(name, value, children[place], depth, writer)?;
            }
            None => writer.append_raw_fields(&bytes[start..fields.offset()]),
        }
    }
    let missing = children.iter().zip(found).filter(|(_, found)| !found);
    missing.into_iter().for_each(|(steps, _)| create(steps, depth, writer));
    Ok(())
}

fn rewrite_value(
    name: &str,
    value: RawValue<'_>,
    steps: &[Step<'_>],
    depth: usize,
    writer: &mut DocumentWriter<'_>,
) -> Result<(), Unfit> {
    if let [step] = steps
        && step.path.len() == depth + 1
    {
        match changed(step, value)? {
            Effect::Remove => {}
            Effect::Put(new) => writer.append(name, new),
            Effect::Append(element) => {
                let array = value.as_array().ok_or(Unfit)?;
                let mut elements = writer.array(name);
                copy_elements(array, &mut elements)?;
                elements.push(element);
            }
        }
        return Ok(());
    }
    match value {
        RawValue::Document(document) => {
            rewrite_fields(document, steps, depth + 1, &mut writer.document(name))
        }
        // A scalar has no fields, and an array none with a name.
        _ if steps.iter().any(|step| step.operator.creates()) => Err(Unfit),
        value => {
            writer.append(name, value);
            Ok(())
        }
    }
}

fn copy_elements(array: &crate::RawArray, writer: &mut ArrayWriter<'_>) -> Result<(), Unfit> {
    for element in array.iter() {
        writer.push(element?);
    }
    Ok(())
}

/// The effect of an operator on a value.
fn changed<'v>(step: &Step<'v>, old: RawValue<'v>) -> Result<Effect<'v>, Unfit> {
    let operand = step.operand;
    Ok(match step.operator {
        PatchOperator::Set => Effect::Put(operand),
        PatchOperator::Unset => Effect::Remove,
        PatchOperator::Add | PatchOperator::Multiply => {
            let old_number = Number::from_value(old).ok_or(Unfit)?;
            let new = calculated(step, old_number).ok_or(Unfit)?;
            Effect::Put(if is_same_number(old_number, new) { old } else { new.to_raw() })
        }
        PatchOperator::Least if compare_values(operand, old).is_ge() => Effect::Put(old),
        PatchOperator::Greatest if compare_values(operand, old).is_le() => Effect::Put(old),
        PatchOperator::Least | PatchOperator::Greatest => Effect::Put(operand),
        PatchOperator::Bits => Effect::Put(with_bits(old, operand)?),
        PatchOperator::Push => Effect::Append(operand),
    })
}

/// The sum or the product; `None` if it is too large for its type.
fn calculated(step: &Step<'_>, number: Number) -> Option<Number> {
    let operand = Number::from_value(step.operand).expect("the operand was checked");
    match step.operator {
        PatchOperator::Add => number.add(operand, Overflow::Refuse),
        _ => number.multiply(operand, Overflow::Refuse),
    }
}

fn with_bits<'v>(old: RawValue<'_>, steps: RawValue<'_>) -> Result<RawValue<'v>, Unfit> {
    let RawValue::Document(steps) = steps else { return Err(Unfit) };
    let (mut value, mut is_wide) = integer(old)?;
    for step in steps.iter() {
        let (name, operand) = step?;
        let (operand, operand_is_wide) = integer(operand)?;
        is_wide |= operand_is_wide;
        // Both are sign-extended, so the upper half of a narrow result is the sign of the lower.
        value = match name {
            "and" => value & operand,
            "or" => value | operand,
            _ => value ^ operand,
        };
    }
    Ok(if is_wide { RawValue::Int64(value) } else { RawValue::Int32(value as i32) })
}

/// An integer, and whether it is one of 64 bits.
fn integer(value: RawValue<'_>) -> Result<(i64, bool), Unfit> {
    match value {
        RawValue::Int32(number) => Ok((i64::from(number), false)),
        RawValue::Int64(number) => Ok((number, true)),
        _ => Err(Unfit),
    }
}

/// Writes a field that is not there, if an operator makes it.
fn create(steps: &[Step<'_>], depth: usize, writer: &mut DocumentWriter<'_>) {
    if !steps.iter().any(|step| step.operator.creates()) {
        return;
    }
    let name = steps[0].path[depth];
    let step = match steps {
        [step] if step.path.len() == depth + 1 => step,
        _ => {
            let mut inner = writer.document(name);
            children(steps, depth + 1).into_iter().for_each(|steps| create(steps, depth + 1, &mut inner));
            return;
        }
    };
    match step.operator {
        PatchOperator::Unset => {}
        PatchOperator::Push => writer.array(name).push(step.operand),
        PatchOperator::Multiply => {
            let zero = calculated(step, Number::Int32(0)).expect("zero times anything does not overflow");
            writer.append(name, zero.to_raw());
        }
        PatchOperator::Bits => {
            let Ok(value) = with_bits(RawValue::Int32(0), step.operand) else { return };
            writer.append(name, value);
        }
        PatchOperator::Set | PatchOperator::Add | PatchOperator::Least | PatchOperator::Greatest => {
            writer.append(name, step.operand);
        }
    }
}
