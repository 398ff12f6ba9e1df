//! Hostile updates, projections, pipelines and expressions are carried out or refused: no call panics, and no
//! answer is malformed.
//!
//! The specifications are random documents over the names that mean something and the values that are
//! awkward. Most are refused at once; many get as far as the documents.

use pando_catalog::Bytes;
use pando_document::{
    ArrayWriter, Decimal128, DocumentWriter, Limits, ObjectId, RawDocument, RawDocumentBuf, RawRegex,
    RawValue, Timestamp, validate,
};
use pando_query::QueryError;
use pando_query::expression::{Expression, ParseScope};
use pando_query::filter::Filter;
use pando_query::memory::{DiskUse, StageMemory};
use pando_query::pipeline::{Pipeline, RunOptions, Source, Take};
use pando_query::projection::Projection;
use pando_query::update::{Applied, ApplyKind, EmptyTimestamps, Update, UpdateContext};

const NAMES: [&str; 92] = [
    "a",
    "b",
    "a.b",
    "a.0",
    "a.$",
    "a.$[]",
    "a.$[x]",
    "a.1500001",
    "_id",
    "_id.a",
    "$",
    "",
    ".",
    "a.",
    "a..b",
    "$a",
    "x",
    "$set",
    "$unset",
    "$inc",
    "$mul",
    "$min",
    "$max",
    "$rename",
    "$push",
    "$each",
    "$slice",
    "$sort",
    "$position",
    "$pull",
    "$pullAll",
    "$addToSet",
    "$pop",
    "$bit",
    "and",
    "$currentDate",
    "$setOnInsert",
    "$elemMatch",
    "$meta",
    "$literal",
    "$add",
    "$concat",
    "$concatArrays",
    "$filter",
    "input",
    "cond",
    "as",
    "in",
    "$map",
    "$reduce",
    "initialValue",
    "$let",
    "vars",
    "$switch",
    "branches",
    "case",
    "then",
    "default",
    "$cond",
    "if",
    "else",
    "$convert",
    "to",
    "onError",
    "$dateTrunc",
    "date",
    "unit",
    "binSize",
    "$dateAdd",
    "startDate",
    "amount",
    "$zip",
    "inputs",
    "$arrayToObject",
    "$setField",
    "field",
    "value",
    "$regexFindAll",
    "regex",
    "$match",
    "$group",
    "$unwind",
    "path",
    "$facet",
    "$bucket",
    "groupBy",
    "boundaries",
    "$lookup",
    "from",
    "$project",
    "$replaceWith",
    "$round",
];

const TEXTS: [&str; 18] = [
    "",
    "$a",
    "$a.b",
    "$$this",
    "$$value",
    "$$ROOT",
    "$$REMOVE",
    "$$NOW",
    "$",
    "$$",
    "a",
    "day",
    "int",
    "(",
    "\0",
    "é$",
    "c",
    "America/New_York",
];

/// A small generator of random numbers (SplitMix64), so that a failure comes back with its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn pick<'t>(&mut self, choices: &[&'t str]) -> &'t str {
        choices[self.below(choices.len() as u64) as usize]
    }

    fn scalar(&mut self) -> RawValue<'static> {
        match self.below(22) {
            0 => RawValue::Int32(self.below(5) as i32 - 2),
            1 => RawValue::Int32(i32::MAX),
            2 => RawValue::Int64(i64::MIN),
            3 => RawValue::Int64(i64::MAX),
            4 => RawValue::Double(f64::NAN),
            5 => RawValue::Double(1e300),
            6 => RawValue::Double(-0.5),
            7 => RawValue::Decimal128(Decimal128::NAN),
            8 => RawValue::Decimal128(Decimal128::from_le_bytes([0xFF; 16])),
            9 => RawValue::Null,
            10 => RawValue::Undefined,
            11 => RawValue::Boolean(true),
            12 => RawValue::DateTime(i64::MAX),
            13 => RawValue::DateTime(i64::MIN),
            14 => RawValue::DateTime(1_600_000_000_000),
            15 => RawValue::Timestamp(Timestamp { time: u32::MAX, increment: 1 }),
            16 => RawValue::ObjectId(ObjectId::from_parts(1, [2; 5], 3)),
            17 => RawValue::Regex(RawRegex { pattern: "^a(b)?", options: "i" }),
            18 => RawValue::MinKey,
            19 => RawValue::MaxKey,
            _ => RawValue::String(self.pick(&TEXTS)),
        }
    }

    fn document(&mut self, depth: u64) -> RawDocumentBuf {
        let mut bytes = Vec::new();
        let mut writer = DocumentWriter::begin(&mut bytes);
        for _ in 0..1 + self.below(3) {
            let name = self.pick(&NAMES);
            match self.below(10) {
                0..=4 if depth > 0 => writer.append_raw_document(name, &self.document(depth - 1)),
                5..=6 if depth > 0 => {
                    let array = self.array(depth - 1);
                    let array = pando_document::RawArray::from_document(&array);
                    writer.append(name, RawValue::Array(array));
                }
                _ => writer.append(name, self.scalar()),
            }
        }
        writer.finish();
        RawDocumentBuf::from_vec(bytes).expect("just written")
    }

    fn array(&mut self, depth: u64) -> RawDocumentBuf {
        let mut bytes = Vec::new();
        let mut writer = ArrayWriter::begin(&mut bytes);
        for _ in 0..self.below(4) {
            match self.below(3) {
                0 if depth > 0 => writer.push_document(&self.document(depth - 1)),
                1 if depth > 0 => {
                    let array = self.array(depth - 1);
                    writer.push(RawValue::Array(pando_document::RawArray::from_document(&array)));
                }
                _ => writer.push(self.scalar()),
            }
        }
        writer.finish();
        RawDocumentBuf::from_vec(bytes).expect("just written")
    }
}

/// One document, then the end.
struct Once(Option<Bytes>);

impl Source for Once {
    fn next(&mut self) -> Result<Option<Bytes>, QueryError> {
        Ok(self.0.take())
    }

    fn find_in(&mut self, _: &str, _: &Filter, _: Take<'_>) -> Result<(), QueryError> {
        Ok(())
    }

    fn check(&self) -> Result<(), QueryError> {
        Ok(())
    }
}

fn check(bytes: &[u8], what: &str, seed: u64) {
    validate(bytes, &Limits::MESSAGE)
        .unwrap_or_else(|error| panic!("{what} of seed {seed} is malformed: {error}"));
}

#[test]
fn random_updates_are_carried_out_or_refused() {
    let context = UpdateContext {
        matched_index: Some(1),
        now_millis: 0,
        timestamp: Timestamp { time: 1, increment: 1 },
        kind: ApplyKind::Update,
        empty_timestamps: EmptyTimestamps::Filled,
    };
    let mut carried_out = 0;
    for seed in 0..40_000 {
        let mut random = Random(seed);
        let (specification, document) = (random.document(3), random.document(3));
        let stages = random.array(3);
        let update = match seed % 4 {
            0 => RawValue::Array(pando_document::RawArray::from_document(&stages)),
            _ => RawValue::Document(&specification),
        };
        let Ok(update) = Update::parse(update, None, &ParseScope::at(0)) else { continue };
        if let Ok(Applied::Changed(new)) = update.apply(&document, &context) {
            check(new.as_bytes(), "the updated document", seed);
            carried_out += 1;
        }
        let insert = UpdateContext { kind: ApplyKind::Insert, ..context };
        if let Ok(new) = update.insert(&document, &insert, ObjectId::from_parts(1, [0; 5], 1)) {
            check(new.as_bytes(), "the inserted document", seed);
            assert!(matches!(new.iter().next(), Some(Ok(("_id", _)))), "_id comes first, seed {seed}");
        }
    }
    assert!(carried_out > 1000, "only {carried_out} updates got as far as a document");
}

#[test]
fn random_projections_are_carried_out_or_refused() {
    let mut carried_out = 0;
    for seed in 0..40_000 {
        let mut random = Random(seed);
        let (specification, document) = (random.document(3), random.document(3));
        for parse in [Projection::parse, Projection::parse_stage, Projection::add_fields] {
            let Ok(projection) = parse(&specification, &ParseScope::at(0)) else { continue };
            let mut out = vec![7];
            if projection.apply(&document, Some(0), &mut out).is_ok() {
                check(&out[1..], "the projected document", seed);
                carried_out += 1;
            } else {
                assert_eq!(out, [7], "a refused projection leaves the buffer as it was, seed {seed}");
            }
        }
    }
    assert!(carried_out > 1000, "only {carried_out} projections got as far as a document");
}

#[test]
fn random_expressions_are_evaluated_or_refused() {
    let mut evaluated = 0;
    for seed in 0..60_000 {
        let mut random = Random(seed);
        let (specification, document) = (random.document(4), random.document(3));
        let Ok(expression) = Expression::parse(RawValue::Document(&specification), &ParseScope::at(0)) else {
            continue;
        };
        let Ok(value) = expression.evaluate(&document) else { continue };
        if let Some(value) = value.raw() {
            let mut bytes = Vec::new();
            let mut writer = DocumentWriter::begin(&mut bytes);
            writer.append("v", value);
            writer.finish();
            check(&bytes, "the value", seed);
            evaluated += 1;
        }
    }
    assert!(evaluated > 1000, "only {evaluated} expressions gave a value");
}

#[test]
fn random_pipelines_are_run_or_refused() {
    let mut given = 0;
    for seed in 0..60_000 {
        let mut random = Random(seed);
        let (stages, document) = (random.array(4), random.document(3));
        let stages = pando_document::RawArray::from_document(&stages);
        let Ok(pipeline) = Pipeline::parse(stages, &ParseScope::at(0)) else { continue };
        let mut source = Once(Some(Bytes::copy_from_slice(document.as_bytes())));
        let mut run = pipeline.start(&RunOptions::new(StageMemory::unlimited(DiskUse::Forbidden), seed));
        while let Ok(Some(bytes)) = run.next(&mut source) {
            check(&bytes, "the given document", seed);
            given += 1;
        }
    }
    assert!(given > 1000, "only {given} documents were given");
}

#[test]
fn a_value_that_doubles_with_each_step_is_refused_before_it_fills_the_memory() {
    let text = RawValue::String("0123456789abcdef");
    assert_eq!(error_of_doubling("$concat", text), Some(pando_query::ErrorCode::Location(16_493)));
    let mut bytes = Vec::new();
    let mut array = ArrayWriter::begin(&mut bytes);
    array.push(text);
    array.finish();
    let array =
        pando_document::RawArray::from_document(RawDocument::from_bytes(&bytes).expect("just written"));
    let error = error_of_doubling("$concatArrays", RawValue::Array(array));
    assert_eq!(error, Some(pando_query::ErrorCode::ExceededMemoryLimit));
}

/// The error of a value that an operator joins with itself sixty times.
fn error_of_doubling(operator: &str, first: RawValue<'_>) -> Option<pando_query::ErrorCode> {
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    let mut reduce = writer.document("$reduce");
    let mut range = reduce.document("input");
    let mut bounds = range.array("$range");
    bounds.push(RawValue::Int32(0));
    bounds.push(RawValue::Int32(60));
    bounds.finish();
    range.finish();
    reduce.append("initialValue", first);
    let mut each = reduce.document("in");
    let mut parts = each.array(operator);
    parts.push(RawValue::String("$$value"));
    parts.push(RawValue::String("$$value"));
    parts.finish();
    each.finish();
    reduce.finish();
    writer.finish();
    let specification = RawDocumentBuf::from_vec(bytes).expect("just written");
    let expression =
        Expression::parse(RawValue::Document(&specification), &ParseScope::at(0)).expect("it parses");
    expression.evaluate(RawDocument::empty()).expect_err("it is refused").code()
}
