//! Buckets, columns and filters of buckets: what goes in comes out, and hostile bytes are errors.

use pando_document::{Document, ObjectId, RawBinary, RawDocument, RawDocumentBuf, RawValue, Value, doc};

use super::column::{self, Column};
use super::{ROWS_MAX, Series, TimeSpan, bucket_filter};
use crate::{ErrorCode, QueryError};

fn series() -> Series {
    Series { time_field: "t".to_owned(), meta_field: Some("m".to_owned()), span_seconds: 3600 }
}

fn unpacked(bucket: &RawDocument) -> Vec<Document> {
    let series = series();
    let unpacked = series.unpack(bucket, None).unwrap();
    let rows = (0..unpacked.len()).map(|at| {
        let mut bytes = Vec::new();
        unpacked.write(at, &mut bytes);
        Document::from_raw(RawDocument::from_bytes(&bytes).unwrap()).unwrap()
    });
    rows.collect()
}

#[test]
fn measurements_come_out_of_a_bucket_as_they_went_in() {
    let rows: Vec<Document> = (0..300_i64)
        .map(|at| {
            let mut row = doc! { "t": (Value::DateTime(1_700_000_000_000 + at * 1_013)), "m": { "a": 1 } };
            row.push("i", Value::Int32(at as i32 * 7 - 900));
            row.push("l", Value::Int64(i64::MIN.wrapping_add(at * at)));
            row.push("d", Value::Double(at as f64 / 10.0));
            row.push("x", Value::Double((at as f64).sqrt()));
            if at % 3 == 0 {
                row.push("s", Value::from(format!("text {}", at % 5)));
            }
            let id = ObjectId::from_parts(at as u32, [7; 5], at as u32);
            row.push("_id", RawValue::ObjectId(id).to_owned());
            row.push("mixed", if at % 2 == 0 { Value::Int32(1) } else { Value::Null });
            row
        })
        .collect();
    let raw: Vec<RawDocumentBuf> = rows.iter().map(Document::to_raw).collect();
    let series = series();
    let id = series.bucket_id(series.window_of(1_700_000_000_000), ObjectId::from_parts(0, [1; 5], 2));
    let bucket = series.pack(id, series.meta_of(&raw[0]).unwrap(), &raw).unwrap();
    assert_eq!(unpacked(&bucket), rows);
    let whole: usize = raw.iter().map(|row| row.as_bytes().len()).sum();
    assert!(bucket.as_bytes().len() * 5 < whole * 2, "{} of {whole}", bucket.as_bytes().len());
    let Ok(Some(RawValue::Document(control))) = bucket.get("control") else { panic!("a bucket has control") };
    let Ok(Some(RawValue::Document(max))) = control.get("max") else { panic!("control has max") };
    assert!(matches!(max.get("i"), Ok(Some(RawValue::Int32(1193)))));
}

fn column_of<'v>(values: &[Option<RawValue<'v>>]) -> Column<'v> {
    let mut column = Column::growing();
    for (place, value) in (0..).zip(values) {
        value.iter().for_each(|value| column.push(place, *value));
    }
    column
}

#[test]
fn columns_of_all_kinds_keep_their_values() {
    let values = [
        vec![Some(RawValue::Double(f64::NAN)), Some(RawValue::Double(-0.0)), None],
        vec![Some(RawValue::Double(0.1)), Some(RawValue::Double(1e300))],
        vec![Some(RawValue::Int64(i64::MAX)), Some(RawValue::Int64(i64::MIN)), Some(RawValue::Int64(0))],
        vec![None, None],
        ["a", "b", "a", "c", "a", "b"].map(|text| Some(RawValue::String(text))).to_vec(),
        vec![Some(RawValue::Null); 9],
        vec![Some(RawValue::String("a")), None, Some(RawValue::Boolean(true))],
        vec![Some(RawValue::Int32(1)), Some(RawValue::Int64(1))],
    ];
    for values in values {
        let bytes = column::encode(&column_of(&values), values.len());
        let decoded = column::decode(&bytes, values.len()).unwrap();
        let decoded: Vec<_> = (0..values.len()).map(|place| decoded.get(place)).collect();
        assert_eq!(format!("{decoded:?}"), format!("{values:?}"));
        for cut in 0..bytes.len() {
            // A cut column is an error or, at worst, other values: never a panic.
            let _decoded = column::decode(&bytes[..cut], values.len());
        }
    }
    for bytes in [
        &[][..],
        &[9],
        &[1],
        &[1, 7, 0],
        &[2, 99, 0],
        &[0x81, 0xFF],
        &[1, 0x12, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
    ] {
        assert!(column::decode(bytes, 1).is_err(), "{bytes:?}");
    }
}

#[test]
fn buckets_of_mongodb_without_compression_are_read() {
    let bucket = doc! {
        "control": { "version": 1 }, "meta": 5,
        "data": { "t": { "0": (Value::DateTime(1)), "1": (Value::DateTime(2)) }, "v": { "1": "x" } }
    };
    let rows = unpacked(&bucket.to_raw());
    let expected =
        [doc! { "t": (Value::DateTime(1)), "m": 5 }, doc! { "t": (Value::DateTime(2)), "m": 5, "v": "x" }];
    assert_eq!(rows, expected);
    for damaged in [doc! {}, doc! { "control": {}, "data": 5 }, doc! { "control": {}, "data": { "t": 1 } }] {
        assert!(series().unpack(&damaged.to_raw(), None).is_err());
    }
}

#[test]
fn measurements_of_many_different_fields_come_out_as_they_went_in() {
    let rows: Vec<Document> = (0..400_i32)
        .map(|at| {
            let mut row = doc! { "t": (Value::DateTime(1_700_000_000_000)), "m": 1 };
            (0..25).for_each(|field| row.push(format!("field {at} {field}"), field));
            row
        })
        .collect();
    let raw: Vec<RawDocumentBuf> = rows.iter().map(Document::to_raw).collect();
    let id = ObjectId::from_parts(0, [1; 5], 2);
    let bucket = series().pack(id, Some(RawValue::Int32(1)), &raw).unwrap();
    assert_eq!(unpacked(&bucket), rows);
    let mut held = 0;
    let mut hold = |bytes| {
        held = bytes;
        Ok(())
    };
    series().unpack_within(&bucket, None, &mut hold).unwrap();
    assert!(held < 10_000 * 200, "{held} bytes for 10,000 values");
}

/// A bucket of so many measurements and of 5,000 columns that are all this one.
fn bucket_of(count: i32, column: &Value) -> RawDocumentBuf {
    let mut data = doc! { "t": {} };
    (0..5_000).for_each(|at| data.push(format!("c{at}"), column.clone()));
    doc! { "control": { "version": 1, "count": count }, "meta": 5, "data": data }.to_raw()
}

#[test]
fn the_values_of_hostile_buckets_take_little_memory_or_are_refused() {
    const HELD_MAX: usize = 1 << 20;
    let unpack = |bucket: &RawDocument| {
        let mut hold = |bytes| match bytes {
            ..=HELD_MAX => Ok(()),
            _ => Err(QueryError::new(ErrorCode::ExceededMemoryLimit, "too many".to_owned())),
        };
        series().unpack_within(bucket, None, &mut hold).map(|unpacked| unpacked.len())
    };
    let empty = Value::Document(doc! {});
    assert_eq!(unpack(&bucket_of(1000, &empty)).unwrap(), ROWS_MAX);
    assert!(unpack(&bucket_of(1001, &empty)).is_err(), "no bucket has so many measurements");
    let nulls = column::encode(&column_of(&[Some(RawValue::Null); 1000]), 1000);
    assert!(nulls.len() < 20, "{} bytes stand for 1,000 values", nulls.len());
    let nulls = RawValue::Binary(RawBinary { subtype: 0x80, bytes: &nulls }).to_owned();
    let error = unpack(&bucket_of(1000, &nulls)).unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::ExceededMemoryLimit));
}

#[test]
fn a_filter_of_meta_and_time_becomes_one_of_buckets() {
    let filter = |filter: Document| bucket_filter(&series(), &filter.to_raw()).unwrap();
    assert_eq!(filter(doc! { "v": 1, "mm": 2, "t": { "$exists": true } }), None);
    let of_meta =
        filter(doc! { "$and": (Value::Array(vec![Value::Document(doc! { "m.a": { "$gt": 1 } })])) });
    let expected = vec![Value::Document(doc! { "meta.a": { "$gt": 1 } })];
    assert_eq!(of_meta, Some(doc! { "$and": (Value::Array(expected)) }.to_raw()));
    let of_time = filter(doc! { "t": { "$gte": (Value::DateTime(7_200_000)) } }).unwrap();
    let text = crate::shell_text::document_text(&of_time);
    assert!(text.contains("control.max.t") && text.contains("00000e10"), "{text}");
}

#[test]
fn the_span_of_a_filter_has_every_time_that_may_match() {
    let date = |millis| Value::DateTime(millis);
    let span_of = |filter: Document| TimeSpan::of_filter(&series(), &filter.to_raw()).unwrap();
    for (filter, within, outside) in [
        (doc! { "t": { "$gte": (date(5)), "$lt": (date(8)) } }, vec![5, 7], vec![4, 8]),
        (doc! { "t": { "$gt": (date(5)), "$lte": (date(8)) } }, vec![6, 8], vec![5, 9]),
        (doc! { "t": (date(5)) }, vec![5], vec![4, 6]),
        (
            doc! { "$and": [{ "t": { "$gt": (date(5)) } }, { "m": 1, "t": { "$eq": (date(7)) } }] },
            vec![7],
            vec![6],
        ),
        (doc! { "$or": [{ "t": (date(5)) }] }, vec![i64::MIN, i64::MAX], vec![]),
        (
            doc! { "t": { "$gte": 5, "$ne": (date(5)), "$not": { "$gt": (date(3)) } } },
            vec![i64::MIN, 5],
            vec![],
        ),
        (doc! { "t": { "$lt": (date(i64::MIN)), "$gt": (date(i64::MIN)) } }, vec![], vec![0]),
        (doc! { "other": (date(5)) }, vec![i64::MIN, i64::MAX], vec![]),
    ] {
        let span = span_of(filter.clone());
        let mut bytes = Vec::new();
        let mut argument = pando_document::DocumentWriter::begin(&mut bytes);
        span.write(&mut argument);
        argument.finish();
        assert_eq!(TimeSpan::of_argument(RawDocument::from_bytes(&bytes).unwrap()), span, "{filter:?}");
        for time in within {
            assert!(span.has(Some(RawValue::DateTime(time))), "{filter:?} may match {time}");
        }
        for time in outside {
            assert!(!span.has(Some(RawValue::DateTime(time))), "{filter:?} does not match {time}");
        }
        assert!(
            span.has(None) && span.has(Some(RawValue::Int32(1))),
            "what is no date is left to the filter"
        );
    }
}
