//! Formats, one by one: the documents of a text, and the reported faults.

use bson::{Bson, doc};

use super::address::ServerAddress;
use super::connection_string::ConnectionString;
use super::csv_rows::{CsvRows, Delimiter};
use super::format::InputFormat;
use super::json_array::JsonArray;
use super::json_lines::JsonLines;
use super::record::RecordReader;
use super::*;

/// Everything that a reader gives: `(line, document or complaint)`.
fn read(
    mut reader: impl RecordReader,
) -> (Vec<(u64, Result<bson::Document, String>)>, Result<(), TransferError>) {
    let mut records = Vec::new();
    let end = reader.read_all(&mut |record| {
        let content = record.content.map(|raw| bson::Document::try_from(&raw).unwrap());
        records.push((record.line, content.map_err(|error| error.to_string())));
        Ok(())
    });
    (records, end)
}

fn rows(text: &str) -> CsvRows<&[u8]> {
    CsvRows::new(text.as_bytes(), "test".into(), Delimiter::Comma, RowOptions::default())
}

fn lines(text: &str) -> Vec<(u64, Result<bson::Document, String>)> {
    let (records, end) = read(JsonLines::new(text.as_bytes(), "test".into()));
    end.expect("lines can always be read on");
    records
}

#[test]
fn json_lines_give_a_document_each_and_bad_lines_are_told_by_number() {
    let records = lines(
        "\u{FEFF}{\"a\": 1}\n\n  {\"b\": 2}  \r\n{oops}\n[1]\n{\"_id\": {\"$oid\": \"short\"}}\n{\"c\": 3}",
    );
    let good: Vec<_> =
        records.iter().filter_map(|(line, record)| Some((*line, record.as_ref().ok()?))).collect();
    assert_eq!(good, [(1, &doc! { "a": 1 }), (3, &doc! { "b": 2 }), (7, &doc! { "c": 3 })]);
    let bad: Vec<_> = records.iter().filter(|(_, record)| record.is_err()).map(|(line, _)| *line).collect();
    assert_eq!(bad, [4, 5, 6]);
}

#[test]
fn fields_keep_their_order_and_numbers_their_types() {
    let text = r#"{"z": 2147483648, "a": -2147483648, "m": 0.1, "d": {"$date": "2020-01-02T03:04:05Z"}, "i": {"$numberLong": "7"}}"#;
    let (_, record) = lines(text).remove(0);
    let document = record.unwrap();
    assert_eq!(document.keys().collect::<Vec<_>>(), ["z", "a", "m", "d", "i"]);
    assert_eq!(document.get("z"), Some(&Bson::Int64(2_147_483_648)));
    assert_eq!(document.get("a"), Some(&Bson::Int32(-2_147_483_648)));
    assert_eq!(document.get("m"), Some(&Bson::Double(0.1)));
    assert_eq!(document.get("i"), Some(&Bson::Int64(7)));
    assert!(matches!(document.get("d"), Some(Bson::DateTime(_))));
}

#[test]
fn an_object_may_be_spread_over_lines_and_a_line_may_hold_several() {
    let records = lines(
        "{\n  \"a\": \"}{\",\n  \"b\": {\n    \"c\": [\n      {\"d\": 1}\n    ]\n  }\n}\n{\"e\": 1} {\"f\":\n2}\n",
    );
    let expected = [
        (1, Ok(doc! { "a": "}{", "b": { "c": [{ "d": 1 }] } })),
        (9, Ok(doc! { "e": 1 })),
        (9, Ok(doc! { "f": 2 })),
    ];
    assert_eq!(records, expected);
}

#[test]
fn a_line_that_is_cut_takes_no_other_with_it() {
    let records = lines("{\"a\": 1}\n{\"b\": \"x\n{\"c\": 3}\n{\"d\": {\n");
    let shape: Vec<_> = records.iter().map(|(line, record)| (*line, record.is_ok())).collect();
    assert_eq!(shape, [(1, true), (2, false), (3, true), (4, false)]);
    assert!(records[3].1.as_ref().unwrap_err().contains("the input ends"));
}

#[test]
fn a_json_array_gives_its_elements_with_their_lines() {
    let (records, end) =
        read(JsonArray::new("[\n{\"a\": 1},\n5, {\"b\":\n 2}\n]\n".as_bytes(), "test".into()));
    end.unwrap();
    let lines: Vec<u64> = records.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [2, 3, 3]);
    assert_eq!(records[0].1, Ok(doc! { "a": 1 }));
    assert!(records[1].1.is_err());
    assert_eq!(records[2].1, Ok(doc! { "b": 2 }));
}

#[test]
fn a_json_array_that_breaks_off_gives_what_came_before_and_the_place() {
    let (records, end) = read(JsonArray::new("[{\"a\": 1},\n{\"b\": ".as_bytes(), "test".into()));
    assert_eq!(records.len(), 1);
    assert!(matches!(end, Err(TransferError::Array { line: 2, .. })));
}

#[test]
fn csv_rows_become_documents_with_numbers_where_they_are_numbers() {
    let text = "name,zip,people,height,big,place.lat,place.lon,none\nUtrecht,0350,374238,5.5,5000000000,52.1,-5,\n\"a,b\",x,+1,1e3,-0,1.,nan,7\n";
    let (records, end) = read(rows(text));
    end.unwrap();
    let first = doc! {
        "name": "Utrecht", "zip": "0350", "people": 374_238, "height": 5.5, "big": 5_000_000_000_i64,
        "place": { "lat": 52.1, "lon": -5 }, "none": "",
    };
    assert_eq!(records[0], (2, Ok(first)));
    let (line, second) = &records[1];
    assert_eq!(*line, 3);
    let second = second.as_ref().unwrap();
    assert_eq!(second.get_str("name").unwrap(), "a,b");
    assert_eq!(second.get_str("people").unwrap(), "+1");
    assert_eq!(second.get_f64("height").unwrap(), 1000.0);
}

#[test]
fn a_csv_row_of_another_length_is_reported_and_the_next_one_read() {
    let (records, end) = read(rows("a,b\n1,2\n3\n4,5\n"));
    end.unwrap();
    let outcome: Vec<_> = records.iter().map(|(line, record)| (*line, record.is_ok())).collect();
    assert_eq!(outcome, [(2, true), (3, false), (4, true)]);
}

#[test]
fn lines_are_counted_alike_whatever_ends_them() {
    for end in ["\n", "\r\n"] {
        let text = ["a,b", "1,2", "3", "4,\"x", "y\"", "5", ""].join(end);
        let (found, _) = read(rows(&text));
        let told: Vec<(u64, bool)> = found.iter().map(|(line, content)| (*line, content.is_ok())).collect();
        assert_eq!(told, [(2, true), (3, false), (4, true), (6, false)], "{end:?}");
    }
}

#[test]
fn columns_of_which_one_is_a_part_of_the_other_are_refused() {
    for header in ["a.b,a", "a,a.b", "x.y.z,c,x.y"] {
        let refused = read(rows(&format!("{header}\n"))).1.unwrap_err().to_string();
        assert!(refused.contains("do not fit into one document"), "{refused}");
    }
    let (beside, _) = read(rows("a.b,a.c,ab,a.bc\n1,2,3,4\n"));
    assert_eq!(beside[0].1, Ok(bson::doc! { "a": { "b": 1, "c": 2, "bc": 4 }, "ab": 3 }));
}

#[test]
fn a_quote_that_is_never_closed_is_told_with_its_line() {
    let fault = |text: &str| {
        let (records, end) = read(rows(text));
        assert!(end.is_ok(), "{text}: {end:?}");
        let (line, content) = records.into_iter().next_back().unwrap();
        (line, content.map(|_| ()))
    };
    let told = |line, lines| {
        let text =
            format!("the quote opened on line {line} is never closed; {lines} lines were read as one value");
        Err(text)
    };
    assert_eq!(fault("a,b\n1,2\n\"3,4\n5,6\n7,8\n"), (3, told(3, 3)));
    assert_eq!(fault("a,b\n1,\"2\n5,6"), (2, told(2, 2)), "even where the row has all its values");
    assert_eq!(fault("a,b\n\"1\n1\",\"2\n3\n"), (2, told(3, 2)), "the first value of the row is a sound one");
    for sound in ["a,b\n1,\"2\n3\"\n", "a,b\n1,\"2\n3\"", "a,b\n1,\"2\n\"\r\n", "a,b\n1,5\" pipe\n"] {
        assert_eq!(fault(sound).1, Ok(()), "{sound}");
    }
    let (records, end) = read(rows("\"a,b\n1,2\n"));
    assert!(records.is_empty());
    let error = end.unwrap_err().to_string();
    assert!(error.contains("the quote opened on line 1 is never closed; 2 lines"), "{error}");
}

#[test]
fn a_column_without_the_type_that_its_name_should_have_is_told_how_to_write_it() {
    let options = RowOptions { typed_names: super::TypedNames::Yes, ..RowOptions::default() };
    let (_, end) = read(CsvRows::new("name,n.int32()\n".as_bytes(), "x".into(), Delimiter::Comma, options));
    let error = end.unwrap_err().to_string();
    assert_eq!(error, "column 'name': it has no type, such as name.string()");
}

#[test]
fn a_csv_header_that_names_a_column_twice_or_not_is_refused() {
    for text in ["a,a\n1,2\n", "a,\n1,2\n", "a..b\n1\n"] {
        assert!(matches!(read(rows(text)).1, Err(TransferError::CsvHeader { .. })), "{text}");
    }
}

#[test]
fn a_column_keeps_its_type_and_one_without_a_type_is_remarked_on_if_it_is_mixed() {
    let text = "zip,n\n00123,1\n99,x\n";
    let mut untyped = rows(text);
    untyped.read_all(&mut |_| Ok(())).unwrap();
    let remarks = untyped.remarks();
    assert_eq!(remarks.len(), 2);
    assert!(remarks[0].contains("--types zip=string") && remarks[0].contains("line 2"), "{remarks:?}");

    let types = [("zip", ColumnType::Text), ("n", ColumnType::Int64)]
        .map(|(name, column_type)| TypedColumn { name: name.to_owned(), column_type });
    let options = RowOptions { types: types.to_vec(), ..RowOptions::default() };
    let (records, end) =
        read(CsvRows::new(text.as_bytes(), "test".into(), Delimiter::Comma, options.clone()));
    end.unwrap();
    assert_eq!(records[0], (2, Ok(doc! { "zip": "00123", "n": 1_i64 })));
    assert!(records[1].1.as_ref().unwrap_err().contains("column n: 'x'"), "{records:?}");

    let skipped = RowOptions { mismatch: TypeMismatch::SkipField, ..options.clone() };
    let (records, _) = read(CsvRows::new(text.as_bytes(), "test".into(), Delimiter::Comma, skipped));
    assert_eq!(records[1].1, Ok(doc! { "zip": "99" }));

    let (_, end) = read(CsvRows::new("a\n1\n".as_bytes(), "test".into(), Delimiter::Comma, options));
    assert!(matches!(end, Err(TransferError::NoColumn { column, .. }) if column == "zip"));
    for (field, is_there) in [("a", true), ("a.b", true), ("nmae", false), ("a.b.c", false)] {
        let options = RowOptions { key_fields: vec![field.to_owned()], ..RowOptions::default() };
        let (_, end) = read(CsvRows::new(&b"a.b,n\n1,2\n"[..], "test".into(), Delimiter::Comma, options));
        assert_eq!(end.is_ok(), is_there, "{field}");
    }
}

#[test]
fn tabs_separate_as_commas_do_and_names_may_come_from_the_command_line() {
    let names = Some(vec!["a.string()".to_owned(), "b.auto()".to_owned()]);
    let options = RowOptions { names, typed_names: TypedNames::Yes, ..RowOptions::default() };
    let (records, end) = read(CsvRows::new("1\t\"2\n".as_bytes(), "test".into(), Delimiter::Tab, options));
    end.unwrap();
    assert_eq!(records, [(1, Ok(doc! { "a": "1", "b": "\"2" }))]);
}

#[test]
fn the_format_follows_from_the_content_where_the_name_says_nothing() {
    let detect = |bytes: &[u8]| InputFormat::detect("x".as_ref(), bytes);
    assert_eq!(detect(b"name,people\nUtrecht,1\n"), Ok(InputFormat::Csv));
    assert_eq!(detect(b"name\tpeople, all\n"), Ok(InputFormat::Tsv));
    assert_eq!(detect(b" {\n"), Ok(InputFormat::JsonLines));
    assert_eq!(detect(&doc! { "a": 1 }.to_vec().unwrap()), Ok(InputFormat::Bson));
    assert_eq!(detect(&doc! {}.to_vec().unwrap()), Ok(InputFormat::Bson));
    assert_eq!(detect(&[0x6D, 0xE2, 0x99, 0x81, 1]), Err(FormatError::Archive));
    assert_eq!(detect(b"\x7FELF\x02\x01\x01\0"), Err(FormatError::Unknown));
    let marks: [&[u8]; 4] =
        [b"\xFF\xFE{\0\"\0", b"\xFE\xFF\0{\0\"", b"\xFF\xFE{\0\r\0\n\0", b"\xFF\xFE[\0\n\0 \0"];
    for mark in marks {
        assert_eq!(InputFormat::check_text(mark), Err(FormatError::Utf16));
        assert_eq!(InputFormat::detect("x.json".as_ref(), mark), Err(FormatError::Utf16));
        assert_eq!(InputFormat::detect("x.csv".as_ref(), mark), Err(FormatError::Utf16));
    }
    assert_eq!(detect(b"just words"), Err(FormatError::Unknown));
}

#[test]
fn the_format_follows_from_name_and_first_byte() {
    let detect = |name: &str, text: &str| InputFormat::detect(name.as_ref(), text.as_bytes()).unwrap();
    assert_eq!(detect("x.jsonl", "{\"a\":1}"), InputFormat::JsonLines);
    assert_eq!(detect("x.json", " \n [ {"), InputFormat::JsonArray);
    assert_eq!(detect("x", "\u{FEFF}["), InputFormat::JsonArray);
    assert_eq!(detect("x.csv.gz", "[a],b"), InputFormat::Csv);
    assert_eq!(detect("empty", ""), InputFormat::JsonLines);
}

#[test]
fn connection_strings_name_one_server_or_are_refused_with_a_reason() {
    let tcp = |place: &str| ServerAddress::Tcp(place.to_owned());
    for (uri, address) in [
        ("mongodb://localhost", tcp("localhost:27017")),
        ("mongodb://127.0.0.1:5/db?w=1", tcp("127.0.0.1:5")),
        ("mongodb://[::1]", tcp("[::1]:27017")),
        ("mongodb://[::1]:5", tcp("[::1]:5")),
        ("mongodb://%2Ftmp%2Fa.sock/x", ServerAddress::Unix("/tmp/a.sock".into())),
    ] {
        assert_eq!(ConnectionString::parse(uri).unwrap().address, address, "{uri}");
    }
    for uri in
        ["http://x", "mongodb://", "mongodb://a,b", "mongodb://h:x", "mongodb://%zz", "mongodb://::1:5"]
    {
        assert!(matches!(ConnectionString::parse(uri), Err(TransferError::Uri { .. })), "{uri}");
    }
}

#[test]
fn a_connection_string_is_shown_without_its_password() {
    let shown = super::address::without_password;
    assert_eq!(shown("mongodb://ada:s3cret@host/db"), "mongodb://ada:…@host/db");
    assert_eq!(shown("mongodb://host/db"), "mongodb://host/db");
    let refused = ConnectionString::parse("mongodb://ada:s3@cret@host").unwrap_err().to_string();
    assert!(!refused.contains("cret"), "{refused}");
}
