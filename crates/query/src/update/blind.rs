//! Blind updates: which updates can go down as a [patch](pando_document::patch), unread, and which indexes
//! are in the way.
//!
//! The operators of a patch are written anew on bytes, in the crate `document`: a tree applies them long
//! after the request, and must mean the same in every later program. A random test compares both.
//!
//! # Refused
//! Everything whose effect needs more than the document, or that would cost much code below: replacements,
//! pipelines, positions in arrays, `$rename`, `$pull` and the like. The caller carries them out as usual.

use pando_catalog::{EntryContents, FieldKind, Index};
use pando_document::patch::{PATCH_BYTES_MAX, PatchChange, PatchOperator, Unencodable, encode};
use pando_document::{RawDocument, RawValue, Timestamp};

use crate::needs::Needs;
use crate::partial_index::{self, PARTIAL_FILTER};

/// The reason why an update needs the document, as a clause for a message.
pub type Obstacle = String;

/// The moment of an update, for `$currentDate`.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// In milliseconds since 1970 UTC.
    pub millis: i64,
    /// As a timestamp.
    pub timestamp: Timestamp,
}

/// An update as a patch.
#[derive(Clone, Debug)]
pub struct BlindUpdate {
    /// The encoding.
    pub patch: Vec<u8>,
    paths: Vec<String>,
}

impl BlindUpdate {
    /// The patch of an update.
    ///
    /// # Errors
    /// It is none. An update with a fault is one of these.
    pub fn of(update: RawValue<'_>, moment: Moment) -> Result<BlindUpdate, Obstacle> {
        let RawValue::Document(operators) = update else {
            return Err("the update is a pipeline".to_owned());
        };
        let mut changes = Vec::new();
        for operator in operators {
            let (name, fields) = operator.map_err(|error| error.to_string())?;
            if !name.starts_with('$') {
                return Err("the update replaces the document".to_owned());
            }
            let RawValue::Document(fields) = fields else {
                return Err(format!("{name} has no fields"));
            };
            for field in fields {
                let (path, argument) = field.map_err(|error| error.to_string())?;
                let (operator, operand) = change_of(name, argument, moment)?;
                changes.push(PatchChange { operator, path, operand });
            }
        }
        let paths = changes.iter().map(|change| change.path.to_owned()).collect();
        match encode(changes) {
            Ok(patch) => Ok(BlindUpdate { patch, paths }),
            Err(Unencodable::TooLong { bytes }) => {
                Err(format!("it is {bytes} bytes long, of {PATCH_BYTES_MAX} that are possible"))
            }
            Err(Unencodable::Unfit) => {
                Err("a path names _id, an element of an array or nothing, or an argument does not fit"
                    .to_owned())
            }
        }
    }

    /// The reason why an index needs the document before the update; `None` if its entries stay as they are.
    pub fn obstacle_in(&self, index: &Index) -> Option<Obstacle> {
        let name = index.name();
        if index.contents() == EntryContents::Copy {
            return Some(format!("index {name} has copies of the documents"));
        }
        for field in index.fields() {
            let is_plain = matches!(
                field.kind,
                FieldKind::Value | FieldKind::Hashed | FieldKind::Sphere | FieldKind::Plane
            );
            if !is_plain {
                return Some(format!("index {name} may have any field"));
            }
            if self.meets(&field.path) {
                return Some(format!("index {name} has the field {}", field.path));
            }
        }
        let filter = match index.specification().get(PARTIAL_FILTER) {
            Ok(None) => return None,
            Ok(Some(RawValue::Document(filter))) => partial_index::parse(filter, index.text_order()).ok(),
            _ => None,
        };
        let mut needs = Needs::nothing();
        match filter {
            Some(filter) => filter.add_needs(&mut needs),
            None => needs.add_everything(),
        }
        let is_met = match needs {
            Needs::Everything => true,
            Needs::Paths(paths) => paths.iter().any(|path| self.meets(path)),
        };
        is_met.then(|| format!("the filter of index {name} looks at a field of it"))
    }

    /// Whether a changed path is this one, or leads to it, or lies below it. Positions in arrays stand for
    /// all elements.
    fn meets(&self, path: &str) -> bool {
        let names = |path: &str| -> Vec<String> {
            let is_name = |step: &&str| !step.bytes().all(|byte| byte.is_ascii_digit());
            path.split('.').filter(is_name).map(str::to_owned).collect()
        };
        let wanted = names(path);
        self.paths.iter().any(|changed| {
            let changed = names(changed);
            let shorter = wanted.len().min(changed.len());
            wanted[..shorter] == changed[..shorter]
        })
    }
}

/// The operator of a patch for one of an update.
fn change_of<'a>(
    name: &str,
    argument: RawValue<'a>,
    moment: Moment,
) -> Result<(PatchOperator, RawValue<'a>), Obstacle> {
    let operator = match name {
        "$set" => PatchOperator::Set,
        "$unset" => PatchOperator::Unset,
        "$inc" => PatchOperator::Add,
        "$mul" => PatchOperator::Multiply,
        "$min" => PatchOperator::Least,
        "$max" => PatchOperator::Greatest,
        "$bit" => PatchOperator::Bits,
        "$push" if has_modifiers(argument) => return Err("$push has modifiers".to_owned()),
        "$push" => PatchOperator::Push,
        "$currentDate" => return Ok((PatchOperator::Set, current_date(argument, moment)?)),
        _ => return Err(format!("it has the operator {name}")),
    };
    Ok((operator, argument))
}

fn has_modifiers(argument: RawValue<'_>) -> bool {
    argument.as_document().is_some_and(|clauses| !matches!(clauses.get("$each"), Ok(None)))
}

fn current_date(argument: RawValue<'_>, moment: Moment) -> Result<RawValue<'static>, Obstacle> {
    let kind = match argument {
        RawValue::Boolean(_) => "date",
        RawValue::Document(options) => only_type(options).unwrap_or_default(),
        _ => "",
    };
    match kind {
        "date" => Ok(RawValue::DateTime(moment.millis)),
        "timestamp" => Ok(RawValue::Timestamp(moment.timestamp)),
        _ => Err("the argument of $currentDate does not fit".to_owned()),
    }
}

/// The text of `$type`, if there is no other option.
fn only_type(options: &RawDocument) -> Option<&str> {
    let mut fields = options.iter();
    let (name, value) = fields.next()?.ok()?;
    (name == "$type" && fields.next().is_none()).then(|| value.as_str())?
}

#[cfg(test)]
mod tests {
    use pando_document::patch::Patch;
    use pando_document::{Document, RawDocumentBuf, Value, doc};

    use super::*;
    use crate::expression::ParseScope;
    use crate::update::chance::Chance;
    use crate::update::{Applied, ApplyKind, EmptyTimestamps, Update, UpdateContext};

    const MOMENT: Moment = Moment { millis: 7_000, timestamp: Timestamp { time: 7, increment: 1 } };

    /// Documents and updates by chance.
    struct Drawn(Chance);

    impl Drawn {
        fn number(&mut self) -> Value {
            match self.0.below(9) {
                0 => Value::Int32(i32::MAX),
                1 => Value::Int64(i64::MAX - 1),
                2 => Value::Double(-0.0),
                3 => Value::Double(f64::NAN),
                4 => Value::Double(1.5),
                5 => Value::Decimal128("1.50".parse().unwrap()),
                6 => Value::Int64(self.0.below(5) as i64 - 2),
                _ => Value::Int32(self.0.below(5) as i32 - 2),
            }
        }

        fn value(&mut self, depth: u64) -> Value {
            match self.0.below(10) {
                0 => Value::Null,
                1 => Value::from("text"),
                2 => Value::Boolean(true),
                3 => Value::Array((0..self.0.below(3)).map(|_| self.number()).collect()),
                4..=6 if depth > 0 => Value::Document(self.document(depth - 1)),
                _ => self.number(),
            }
        }

        fn name(&mut self) -> &'static str {
            ["a", "b", "c", "10x", "9x", "z"][self.0.below(6) as usize]
        }

        /// Fields in any order; names may come twice.
        fn document(&mut self, depth: u64) -> Document {
            let mut document = Document::new();
            for _ in 0..self.0.below(5) {
                let (name, value) = (self.name(), self.value(depth));
                document.push(name, value);
            }
            document
        }

        fn path(&mut self) -> String {
            let names: Vec<&str> = (0..1 + self.0.below(3)).map(|_| self.name()).collect();
            match self.0.below(12) {
                0 => format!("{}.0", names.join(".")),
                _ => names.join("."),
            }
        }

        fn update(&mut self) -> Document {
            let mut update = Document::new();
            for _ in 0..1 + self.0.below(3) {
                let mut fields = Document::new();
                let names =
                    ["$set", "$unset", "$inc", "$mul", "$min", "$max", "$bit", "$currentDate", "$push"];
                let name = names[self.0.below(names.len() as u64) as usize];
                for _ in 0..1 + self.0.below(2) {
                    let argument = match name {
                        "$inc" | "$mul" => self.number(),
                        "$bit" => {
                            let mut steps = Document::new();
                            steps.push(["and", "or", "xor"][self.0.below(3) as usize], self.number());
                            steps.push(["and", "or", "xor"][self.0.below(3) as usize], 5);
                            Value::Document(steps)
                        }
                        "$currentDate" if self.0.below(2) == 0 => {
                            Value::Document(doc! { "$type": "timestamp" })
                        }
                        "$currentDate" => Value::Boolean(true),
                        _ => self.value(2),
                    };
                    fields.push(self.path().as_str(), argument);
                }
                update.push(name, Value::Document(fields));
            }
            update
        }
    }

    /// The document after the update in its ordinary form; `None` where it fails or changes nothing.
    fn ordinary(update: &RawDocument, document: &RawDocument) -> Result<Option<RawDocumentBuf>, String> {
        let update = Update::parse(RawValue::Document(update), None, &ParseScope::at(0));
        let update = update.map_err(|error| error.to_string())?;
        let context = UpdateContext {
            matched_index: None,
            now_millis: MOMENT.millis,
            timestamp: MOMENT.timestamp,
            kind: ApplyKind::Update,
            empty_timestamps: EmptyTimestamps::Filled,
        };
        Ok(match update.apply(document, &context) {
            Ok(Applied::Changed(new)) => Some(new),
            Ok(Applied::Unchanged) | Err(_) => None,
        })
    }

    #[test]
    fn a_patch_makes_of_every_document_what_the_update_makes_of_it() {
        let mut chance = Drawn(Chance(0x9E37_79B9_7F4A_7C15));
        let (mut blind, mut changed) = (0, 0);
        for turn in 0..60_000 {
            let (update, document) = (chance.update().to_raw(), chance.document(2).to_raw());
            let Ok(patch) = BlindUpdate::of(RawValue::Document(&update), MOMENT) else { continue };
            let expected = ordinary(&update, &document)
                .unwrap_or_else(|error| panic!("turn {turn}: {update:?} is refused: {error}"));
            blind += 1;
            changed += usize::from(expected.is_some());
            let expected = expected.as_deref().unwrap_or(&document);
            let patched = Patch::decode(&patch.patch).expect("it was encoded").apply(document.as_bytes());
            let patched = patched.as_deref().unwrap_or(document.as_bytes());
            assert_eq!(
                patched,
                expected.as_bytes(),
                "turn {turn}: {update:?} of {document:?}: {:?}, not {expected:?}",
                RawDocument::from_bytes(patched)
            );
        }
        assert!(blind > 10_000 && changed > 5_000, "{blind} updates are patches, {changed} of them change");
    }

    #[test]
    fn updates_that_need_the_document_are_refused_with_the_reason() {
        for (update, reason) in [
            (doc! { "a": 1 }, "replaces"),
            (doc! { "$set": { "_id": 1 } }, "_id"),
            (doc! { "$set": { "a.0": 1 } }, "element"),
            (doc! { "$set": { "a.$[]": 1 } }, "element"),
            (doc! { "$push": { "a": { "$each": [1] } } }, "modifiers"),
            (doc! { "$rename": { "a": "b" } }, "$rename"),
            (doc! { "$setOnInsert": { "a": 1 } }, "$setOnInsert"),
            (doc! { "$set": { "a": ("x".repeat(2_000)) } }, "bytes long"),
            (doc! { "$set": 1 }, "no fields"),
        ] {
            let update = update.to_raw();
            let refused = BlindUpdate::of(RawValue::Document(&update), MOMENT).expect_err("it is refused");
            assert!(refused.contains(reason), "{update:?}: {refused}");
        }
    }

    #[test]
    fn a_path_meets_those_above_and_below_it_and_positions_stand_for_all_elements() {
        let update = doc! { "$set": { "a.b": 1 } }.to_raw();
        let update = BlindUpdate::of(RawValue::Document(&update), MOMENT).unwrap();
        for (path, is_met) in
            [("a", true), ("a.b", true), ("a.b.c", true), ("a.0.b", true), ("a.c", false), ("ab", false)]
        {
            assert_eq!(update.meets(path), is_met, "{path}");
        }
    }
}
