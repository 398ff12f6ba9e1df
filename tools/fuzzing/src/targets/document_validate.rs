//! Documents of strangers: no bytes make a walk panic. Documents that `validate` accepts can be walked,
//! copied into owned values and written again.

use crate::check::walk;
use pando_document::{
    Document, JsonFormat, Limits, NESTING_MAX, RawDocument, RawValue, compare_documents, parse_json_line,
    to_json, validate,
};

/// Inputs that are sound: documents with values of many types.
pub fn examples() -> Vec<Vec<u8>> {
    const TEXTS: [&str; 3] = [
        r#"{"a": 1, "b": {"c": [1, {"d": null}, "text"]}, "_id": {"$oid": "0123456789abcdef01234567"}}"#,
        r#"{"r": {"$regularExpression": {"pattern": "^a", "options": "im"}}, "d": {"$date": {"$numberLong": "-1"}},
            "t": {"$timestamp": {"t": 1, "i": 2}}, "n": {"$numberDecimal": "1.5E+7"}, "m": {"$minKey": 1}}"#,
        r#"{"c": {"$code": "f()", "$scope": {"a": {"$numberDouble": "NaN"}}}, "y": {"$symbol": "s"},
            "b": {"$binary": {"base64": "AAEC", "subType": "02"}}, "u": {"$undefined": true}, "l": {"$numberLong": "5"}}"#,
    ];
    let document = |text: &&str| parse_json_line(text).expect("the text is Extended JSON").to_raw();
    TEXTS.iter().map(|text| document(text).as_bytes().to_vec()).collect()
}

/// See the module.
pub fn run(bytes: &[u8]) {
    check(bytes);
    // Most of the fuzzer's bytes say a wrong length; these do not.
    let mut document = bytes.to_vec();
    document.push(0);
    if let (Ok(length), Some(prefix)) = (u32::try_from(document.len()), document.first_chunk_mut::<4>()) {
        *prefix = length.to_le_bytes();
        check(&document);
    }
}

fn check(bytes: &[u8]) {
    let valid = validate(bytes, &Limits::MESSAGE);
    let Ok(raw) = RawDocument::from_bytes(bytes) else {
        valid.expect_err("validate looks at the ends first");
        return;
    };
    // None of these may panic, sound or not.
    let json = to_json(raw, JsonFormat::Canonical);
    assert!(compare_documents(raw, raw).is_eq());
    let _ = raw.get("no such name");
    let owned = Document::from_raw(raw);
    if valid.is_err() {
        // The copy may take it nevertheless: it does not read the names within arrays.
        return;
    }
    let owned = owned.expect("what is valid can be copied");
    walk(raw);
    let rewritten = owned.to_raw();
    validate(rewritten.as_bytes(), &Limits { bytes_max: usize::MAX, nesting_max: NESTING_MAX })
        .expect("what was written from a sound document is sound");
    assert!(compare_documents(raw, &rewritten).is_eq(), "{json}");
    assert_eq!(to_json(&*rewritten, JsonFormat::Canonical), json);
    // Only the names within arrays may be written anew.
    if !has_array(raw) {
        assert_eq!(rewritten.as_bytes(), bytes);
    }
}

fn has_array(document: &RawDocument) -> bool {
    document.iter().any(|field| match field.expect("it was validated").1 {
        RawValue::Array(_) => true,
        RawValue::Document(inner) => has_array(inner),
        RawValue::JavaScriptWithScope(code) => has_array(code.scope),
        _ => false,
    })
}
