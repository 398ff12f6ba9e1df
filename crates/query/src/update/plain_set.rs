//! The `$set` of plain top-level fields, carried out on bytes without a parsed update.
//!
//! A statement of a `$merge` sets all fields of one document in another. A parsed update would hold a path, a
//! leaf and a copy of the value for each of them, to be used once.
//!
//! A field is *plain* if its name is a path of one component, and no other field has it. What is not plain,
//! and every fault, is left to the parsed update, which knows the words of the errors.

use pando_document::{DOCUMENT_BYTES_MAX, DocumentWriter, RawDocument, RawDocumentBuf};

use super::Applied;
use super::tree::compare_names;
use crate::error::QueryError;
use crate::nesting;

/// So many fields have a bit each in a word.
const FIELDS_MAX: usize = 64;

/// The fields of a document, all of them plain.
#[derive(Debug)]
pub struct PlainFields<'f> {
    fields: Vec<PlainField<'f>>,
}

#[derive(Clone, Copy, Debug)]
struct PlainField<'f> {
    name: &'f str,
    /// Type, name and value.
    bytes: &'f [u8],
}

impl<'f> PlainFields<'f> {
    /// The fields of a document; `None` where one is not plain, or there are many.
    ///
    /// # Errors
    /// The document is malformed.
    pub fn of(document: &'f RawDocument) -> Result<Option<PlainFields<'f>>, QueryError> {
        let bytes = document.as_bytes();
        let mut fields: Vec<PlainField<'f>> = Vec::with_capacity(16);
        let mut known_marks = 0_u64;
        let mut elements = document.iter();
        loop {
            let start = elements.offset();
            let Some(element) = elements.next() else { break };
            let (name, _) = element?;
            let mark = mark_of(name);
            let is_repeated = known_marks & mark != 0 && fields.iter().any(|field| field.name == name);
            if !is_path_of_one(name) || is_repeated || fields.len() == FIELDS_MAX {
                return Ok(None);
            }
            known_marks |= mark;
            fields.push(PlainField { name, bytes: &bytes[start..elements.offset()] });
        }
        Ok(Some(PlainFields { fields }))
    }

    /// The document in which these fields are set; `None` where a parsed update has to tell.
    ///
    /// # Errors
    /// The document is malformed.
    pub fn set_in(&self, document: &RawDocument) -> Result<Option<Applied>, QueryError> {
        let mut found = 0_u64;
        let mut is_same = true;
        self.walk(document, &mut |old, place| {
            if let Some(place) = place {
                found |= 1 << place;
                is_same &= self.fields[place].bytes == old;
            }
        })?;
        let all_found = found.count_ones() as usize == self.fields.len();
        match is_same && all_found {
            true => Ok(Some(Applied::Unchanged)),
            false => self.rewrite(document, found),
        }
    }

    /// Writes the new document. `found` has the bits of the fields that the old one has.
    fn rewrite(&self, document: &RawDocument, found: u64) -> Result<Option<Applied>, QueryError> {
        let set_bytes: usize = self.fields.iter().map(|field| field.bytes.len()).sum();
        let mut bytes = Vec::with_capacity(document.as_bytes().len() + set_bytes);
        let mut writer = DocumentWriter::begin(&mut bytes);
        let mut keeps_id = true;
        self.walk(document, &mut |old, place| {
            let new = place.map(|place| &self.fields[place]);
            keeps_id &= new.is_none_or(|new| new.name != "_id" || new.bytes == old);
            writer.append_raw_fields(new.map_or(old, |new| new.bytes));
        })?;
        let mut added: Vec<&PlainField<'_>> = Vec::new();
        added.extend((0..self.fields.len()).filter(|at| found & (1 << at) == 0).map(|at| &self.fields[at]));
        keeps_id &= added.iter().all(|new| new.name != "_id");
        // In the order in which operators create fields.
        added.sort_by(|a, b| compare_names(a.name, b.name));
        added.iter().for_each(|new| writer.append_raw_fields(new.bytes));
        writer.finish();
        if !keeps_id || bytes.len() > DOCUMENT_BYTES_MAX {
            return Ok(None);
        }
        let new = RawDocumentBuf::from_vec(bytes)?;
        Ok(nesting::check_stored(&new).is_ok().then_some(Applied::Changed(new)))
    }

    /// Calls `visit` with each field of a document, and the place of the one that is set instead. Of two
    /// fields with one name the first is the one that counts.
    fn walk(
        &self,
        document: &RawDocument,
        visit: &mut dyn FnMut(&[u8], Option<usize>),
    ) -> Result<(), QueryError> {
        let bytes = document.as_bytes();
        let mut used = 0_u64;
        // Both documents mostly have their fields in one order.
        let mut expected = 0;
        let mut elements = document.iter();
        loop {
            let start = elements.offset();
            let Some(element) = elements.next() else { return Ok(()) };
            let (name, _) = element?;
            let is_expected = self.fields.get(expected).is_some_and(|field| field.name == name);
            let place = match is_expected {
                true => Some(expected),
                false => self.fields.iter().position(|field| field.name == name),
            };
            let place = place.filter(|place| used & (1 << place) == 0);
            if let Some(place) = place {
                used |= 1 << place;
                expected = place + 1;
            }
            visit(&bytes[start..elements.offset()], place);
        }
    }
}

/// Whether a name is a path of one component that `$set` takes.
fn is_path_of_one(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('$') && !name.contains('.')
}

/// One of 64 bits, by which most names that differ are told apart.
fn mark_of(name: &str) -> u64 {
    let sum = name.bytes().fold(name.len() as u32, |sum, byte| sum.wrapping_mul(31) + u32::from(byte));
    1 << (sum % 64)
}

#[cfg(test)]
mod tests {
    use pando_document::{Document, RawValue, Timestamp, Value, doc};

    use super::*;
    use crate::expression::ParseScope;
    use crate::update::chance::Chance;
    use crate::update::{ApplyKind, EmptyTimestamps, Update, UpdateContext};

    /// Documents and updates by chance.
    struct Drawn(Chance);

    impl Drawn {
        fn value(&mut self) -> Value {
            match self.0.below(7) {
                0 => Value::Double(1.0),
                1 => Value::Null,
                2 => Value::from("text"),
                3 => Value::Array(vec![Value::Int32(1), Value::from("x")]),
                4 => Value::Document(doc! { "x": 1, "$y": { "z.z": 2 } }),
                _ => Value::Int32(self.0.below(3) as i32),
            }
        }

        /// Fields in any order, some of them with names that are not plain or come twice.
        fn document(&mut self) -> RawDocumentBuf {
            const NAMES: [&str; 12] = ["a", "b", "c", "10", "9", "09", "z", "ab", "", "a.b", "$d", "b"];
            let mut document = Document::new();
            document.push("_id", Value::Int32(if self.0.below(16) == 0 { 2 } else { 1 }));
            let odd = if self.0.below(3) == 0 { NAMES.len() } else { 8 };
            for _ in 0..self.0.below(8) {
                let name = NAMES[self.0.below(odd as u64) as usize];
                if odd > 8 || document.get(name).is_none() {
                    document.push(name, self.value());
                }
            }
            document.to_raw()
        }
    }

    fn parsed(document: &RawDocument, fields: &RawDocument) -> Result<Applied, QueryError> {
        let mut update = Document::new();
        update.push("$set", RawValue::Document(fields).to_owned());
        let update = Update::parse(RawValue::Document(&update.to_raw()), None, &ParseScope::at(0))?;
        let context = UpdateContext {
            matched_index: None,
            now_millis: 0,
            timestamp: Timestamp { time: 1, increment: 1 },
            kind: ApplyKind::Update,
            empty_timestamps: EmptyTimestamps::Filled,
        };
        update.apply(document, &context)
    }

    #[test]
    fn plain_fields_are_set_as_a_parsed_update_sets_them() {
        let mut chance = Drawn(Chance(0x9E37_79B9_7F4A_7C15));
        let mut plain = 0;
        for turn in 0..20_000 {
            let (document, fields) = (chance.document(), chance.document());
            let expected = parsed(&document, &fields);
            let set = PlainFields::of(&fields).unwrap().map(|plain| plain.set_in(&document).unwrap());
            if let Some(Some(applied)) = set {
                plain += 1;
                assert_eq!(applied, expected.unwrap(), "turn {turn}: {fields:?} in {document:?}");
            }
        }
        assert!(plain > 5_000, "{plain} of the updates are plain");
    }

    #[test]
    fn a_document_that_has_all_fields_already_stays_as_it_is() {
        let document = doc! { "_id": 1, "b": 2, "a": "x", "c": [1, 2] }.to_raw();
        for fields in [doc! { "_id": 1, "a": "x" }, doc! { "_id": 1, "b": 2, "a": "x", "c": [1, 2] }] {
            let fields = fields.to_raw();
            let plain = PlainFields::of(&fields).unwrap().expect("their names are plain");
            assert_eq!(plain.set_in(&document).unwrap(), Some(Applied::Unchanged));
        }
    }

    #[test]
    fn faults_are_left_to_the_parsed_update() {
        let document = doc! { "_id": 1, "a": 1 }.to_raw();
        // With the field's own document these are 181 levels, one more than a stored document may have.
        let mut deep = Value::Int32(1);
        (0..180).for_each(|_| deep = Value::Array(vec![deep.clone()]));
        let mut nested = doc! { "_id": 1 };
        nested.push("a", Value::Document(doc! { "b": (deep) }));
        // It fits by itself, and not beside the other field.
        let large = doc! { "_id": 1, "b": ("x".repeat(DOCUMENT_BYTES_MAX - 24)) };
        for fields in [doc! { "_id": 1.0, "a": 2 }, nested, large] {
            let fields = fields.to_raw();
            let plain = PlainFields::of(&fields).unwrap().expect("their names are plain");
            assert_eq!(plain.set_in(&document).unwrap(), None);
            assert!(parsed(&document, &fields).is_err());
        }
    }
}
