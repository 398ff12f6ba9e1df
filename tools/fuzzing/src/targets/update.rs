//! Updates of strangers: parsing, applying and upserting never panic, and the result is a sound document that
//! keeps its `_id`. A blind update does as a patch what it does otherwise.

use crate::check::assert_sound;
use crate::requests::{FilterDocument, Stored, UpdateText};
use arbitrary::Arbitrary;
use pando_document::patch::Patch;
use pando_document::{ObjectId, RawArray, Timestamp};
use pando_query::expression::ParseScope;
use pando_query::update::{Applied, ApplyKind, BlindUpdate, EmptyTimestamps, Moment, Update, UpdateContext};

/// Chance makes as good decisions as any.
pub fn examples() -> Vec<Vec<u8>> {
    crate::targets::by_chance()
}

/// The grown input.
#[derive(Arbitrary, Debug)]
pub struct Input {
    update: UpdateText,
    document: Stored,
    matched_index: Option<u8>,
    array_filters: Option<FilterDocument>,
    filter: FilterDocument,
}

/// See the module.
pub fn run(input: Input) {
    let array_filters = input.array_filters.as_deref().map(RawArray::from_document);
    let Ok(update) = Update::parse(input.update.value(), array_filters, &ParseScope::at(0)) else { return };
    let context = UpdateContext {
        matched_index: input.matched_index.map(usize::from),
        now_millis: 0,
        timestamp: Timestamp { time: 1, increment: 1 },
        kind: ApplyKind::Update,
        empty_timestamps: EmptyTimestamps::Filled,
    };
    let applied = update.apply(&input.document, &context);
    if let Ok(Applied::Changed(changed)) = &applied {
        assert_sound(changed);
        assert_ne!(changed.as_bytes(), input.document.as_bytes(), "equal bytes are no change");
    }
    let moment = Moment { millis: context.now_millis, timestamp: context.timestamp };
    if let Ok(blind) = BlindUpdate::of(input.update.value(), moment) {
        let expected = match &applied {
            Ok(Applied::Changed(changed)) => changed.as_bytes(),
            Ok(Applied::Unchanged) | Err(_) => input.document.as_bytes(),
        };
        let patch = Patch::decode(&blind.patch).expect("it was encoded");
        let patched = patch.apply(input.document.as_bytes());
        assert_eq!(patched.as_deref().unwrap_or(input.document.as_bytes()), expected, "as a patch");
    }
    let context = UpdateContext { kind: ApplyKind::Insert, ..context };
    if let Ok(inserted) = update.insert(&input.filter, &context, ObjectId::from_bytes([7; 12])) {
        assert_sound(&inserted);
        let first = inserted.iter().next().expect("there is an _id").expect("it is sound");
        assert_eq!(first.0, "_id");
    }
}
