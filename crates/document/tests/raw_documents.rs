//! Raw documents: reads give the written values, and unsound bytes are refused wherever the fault is.

use proptest::prelude::*;

use pando_document::{
    Binary, Decimal128, Document, DocumentError, JavaScriptWithScope, Limits, ObjectId, RawDocument,
    RawDocumentBuf, Regex, Timestamp, Value, doc, validate,
};

/// One field of every type, and two levels of nesting.
fn every_type() -> Document {
    doc! {
        "double": 1.5, "string": "a\0é", "document": { "inner": [1, { "deep": true }] }, "array": [null, 2i64],
        "binary": Binary { subtype: 5, bytes: vec![0, 1, 255] }, "undefined": Value::Undefined,
        "objectId": ObjectId::from_bytes([7; 12]), "bool": false, "date": Value::DateTime(-1), "null": null,
        "regex": Regex { pattern: "^a".to_owned(), options: "im".to_owned() },
        "pointer": pando_document::DbPointer { namespace: "a.b".to_owned(), id: ObjectId::from_bytes([8; 12]) },
        "code": Value::JavaScript("f()".to_owned()), "symbol": Value::Symbol("s".to_owned()),
        "scope": JavaScriptWithScope { code: "g".to_owned(), scope: doc! { "x": 1 } },
        "int": 3, "timestamp": Timestamp { time: 4, increment: 5 }, "long": -6i64,
        "decimal": Decimal128::from(17i64), "min": Value::MinKey, "max": Value::MaxKey,
    }
}

/// The field as a walk over all finds it.
fn found_by_walk<'d>(
    document: &'d RawDocument,
    wanted: &str,
) -> Result<Option<pando_document::RawValue<'d>>, DocumentError> {
    for field in document {
        let (name, value) = field?;
        if name == wanted {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

#[test]
fn a_field_is_found_by_its_name_whatever_the_lengths_of_names_are() {
    let mut document = every_type();
    for length in 0..12 {
        document.push("n".repeat(length), i32::try_from(length).unwrap());
    }
    let raw = document.to_raw();
    for (name, _) in document.iter() {
        for name in [name.to_owned(), format!("{name}n"), format!("{name}\0"), name.chars().skip(1).collect()]
        {
            let (found, walked) = (raw.get(&name).unwrap(), found_by_walk(&raw, &name).unwrap());
            assert_eq!(found.map(|value| value.to_owned()), walked.map(|value| value.to_owned()), "{name:?}");
        }
    }
    // A changed byte may be a fault that only the walk looks at; but a found value is the same one.
    for at in 4..raw.as_bytes().len() - 1 {
        for byte in [0, 1, 2, 3, 4, 8, 16, 127, 255] {
            let mut bytes = raw.as_bytes().to_vec();
            bytes[at] = byte;
            let changed = RawDocument::from_bytes(&bytes).unwrap();
            for name in ["", "int", "nnnnnnn", "nnnnnnnn", "nnnnnnnnn", "max", "document"] {
                if let (Ok(found), Ok(walked)) = (changed.get(name), found_by_walk(changed, name)) {
                    assert_eq!(found.is_some(), walked.is_some(), "{name} after {byte} at {at}");
                }
            }
        }
    }
}

#[test]
fn every_type_survives_the_way_to_bytes_and_back() {
    let document = every_type();
    let raw = document.to_raw();
    validate(raw.as_bytes(), &Limits::STORED).unwrap();
    assert_eq!(Document::from_raw(&raw).unwrap(), document);
    for (name, value) in document.iter() {
        let found = raw.get(name).unwrap().unwrap();
        assert_eq!(&found.to_owned(), value);
        assert_eq!(found.element_type(), value.element_type());
    }
    assert!(raw.get("absent").unwrap().is_none());
    assert!(raw.get("double\0").unwrap().is_none());
}

#[test]
fn every_cut_and_every_changed_byte_gives_an_error_or_a_sound_document() {
    let raw = every_type().to_raw().into_vec();
    for end in 0..raw.len() {
        assert!(validate(&raw[..end], &Limits::STORED).is_err());
    }
    for place in 0..raw.len() {
        for byte in 0..=255 {
            let mut bytes = raw.clone();
            bytes[place] = byte;
            let Ok(document) = RawDocument::from_bytes(&bytes) else { continue };
            let accepted = validate(&bytes, &Limits::STORED).is_ok();
            assert!(Document::from_raw(document).is_ok() || !accepted, "byte {place} as {byte}");
            let _ = document.get("max");
        }
    }
}

#[test]
fn the_ends_of_a_document_are_checked_without_looking_inside() {
    let error = |bytes: &[u8]| RawDocument::from_bytes(bytes).unwrap_err();
    assert_eq!(error(&[5, 0, 0, 0]), DocumentError::TooShort { bytes: 4 });
    assert_eq!(error(&[6, 0, 0, 0, 0]), DocumentError::LengthMismatch { declared: 6, bytes: 5 });
    assert_eq!(error(&[5, 0, 0, 0, 1]), DocumentError::NotTerminated);
    assert!(error(&[255; 5]).to_string().contains("-1"));
    assert!(RawDocument::from_bytes(&[5, 0, 0, 0, 0]).unwrap().is_empty());
    assert_eq!(RawDocumentBuf::new().as_bytes(), [5, 0, 0, 0, 0]);
}

#[test]
fn nesting_is_limited_without_recursion() {
    let mut document = Document::new();
    for _ in 0..50 {
        document = doc! { "a": document };
    }
    let raw = document.to_raw();
    let limits = |nesting_max| Limits { nesting_max, ..Limits::STORED };
    assert_eq!(validate(raw.as_bytes(), &limits(50)), Ok(()));
    assert_eq!(validate(raw.as_bytes(), &limits(49)), Err(DocumentError::TooDeep { nesting_max: 49 }));
    let mut bytes = vec![5, 0, 0, 0, 0];
    for _ in 0..20_000 {
        let length = i32::try_from(bytes.len() + 8).unwrap();
        bytes = [&length.to_le_bytes()[..], &[3, b'a', 0], &bytes, &[0]].concat();
    }
    assert!(matches!(validate(&bytes, &Limits::MESSAGE), Err(DocumentError::TooDeep { .. })));
    let raw = RawDocument::from_bytes(&bytes).unwrap();
    assert!(matches!(Document::from_raw(raw), Err(DocumentError::TooDeep { .. })));
    let limits = Limits { bytes_max: 4, nesting_max: 1 };
    assert_eq!(validate(&[5, 0, 0, 0, 0], &limits), Err(DocumentError::TooLarge { bytes: 5, bytes_max: 4 }));
}

#[test]
fn fields_can_be_copied_by_their_offsets() {
    let raw = doc! { "a": 1, "b": "two", "c": 3 }.to_raw();
    let mut out = Vec::new();
    let mut writer = pando_document::DocumentWriter::begin(&mut out);
    let mut fields = raw.iter();
    let mut start = fields.offset();
    while let Some(field) = fields.next() {
        if field.unwrap().0 != "b" {
            writer.append_raw_fields(&raw.as_bytes()[start..fields.offset()]);
        }
        start = fields.offset();
    }
    writer.finish();
    assert_eq!(out, doc! { "a": 1, "c": 3 }.to_raw().into_vec());
}

#[test]
fn fields_are_set_in_place_and_removed_in_order() {
    let mut document = doc! { "a": 1, "b": 2 };
    assert_eq!(document.insert("a", "x"), Some(Value::Int32(1)));
    assert_eq!(document.insert("c", 3), None);
    assert_eq!(document.remove("b"), Some(Value::Int32(2)));
    assert_eq!(document, doc! { "a": "x", "c": 3 });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn noise_in_the_frame_of_a_document_is_read_or_refused_and_never_panics(
        content in proptest::collection::vec(prop_oneof![0..0x14u8, Just(0u8), Just(5), any::<u8>()], 0..60),
    ) {
        let length = i32::try_from(content.len() + 5).unwrap();
        let bytes = [&length.to_le_bytes()[..], &content, &[0]].concat();
        let document = RawDocument::from_bytes(&bytes).unwrap();
        let accepted = validate(&bytes, &Limits::STORED).is_ok();
        assert_eq!(Document::from_raw(document).is_ok(), accepted, "a copy reads all that is validated");
        let _ = (document.get("a"), format!("{document:?} {document}"));
        assert!(pando_document::compare_documents(document, document).is_eq());
        let owned = pando_document::RawValue::Document(document).to_owned();
        if accepted {
            let owned = owned.as_document().unwrap();
            assert_eq!(&Document::from_raw(&owned.to_raw()).unwrap(), owned);
        }
    }
}
