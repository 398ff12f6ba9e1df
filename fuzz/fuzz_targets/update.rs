//! Updates of strangers: parsing, applying and upserting never panic, and what they make is a sound document that keeps its `_id`.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use pando_document::{ObjectId, RawArray, Timestamp};
use pando_fuzz::check::assert_sound;
use pando_fuzz::requests::{FilterDocument, Stored, UpdateText};
use pando_query::expression::ParseScope;
use pando_query::update::{Applied, ApplyKind, Update, UpdateContext};

#[derive(Arbitrary, Debug)]
struct Input {
    update: UpdateText,
    document: Stored,
    matched_index: Option<u8>,
    array_filters: Option<FilterDocument>,
    filter: FilterDocument,
}

fuzz_target!(|input: Input| {
    let array_filters = input.array_filters.as_deref().map(RawArray::from_document);
    let Ok(update) = Update::parse(input.update.value(), array_filters, &ParseScope::at(0)) else { return };
    let context = UpdateContext {
        matched_index: input.matched_index.map(usize::from),
        now_millis: 0,
        timestamp: Timestamp { time: 1, increment: 1 },
        kind: ApplyKind::Update,
    };
    if let Ok(Applied::Changed(changed)) = update.apply(&input.document, &context) {
        assert_sound(&changed);
        assert_ne!(changed.as_bytes(), input.document.as_bytes(), "equal bytes are no change");
    }
    let context = UpdateContext { kind: ApplyKind::Insert, ..context };
    if let Ok(inserted) = update.insert(&input.filter, &context, ObjectId::from_bytes([7; 12])) {
        assert_sound(&inserted);
        let first = inserted.iter().next().expect("there is an _id").expect("it is sound");
        assert_eq!(first.0, "_id");
    }
});
