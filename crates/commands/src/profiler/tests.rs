//! Tests of the profiler: which requests are recorded, and the form of their entries.

use pando_document::{Document, Value, doc};
use pando_environment::SeededRandom;

use super::*;
use crate::Request;
use crate::operations::ConnectionRecord;
use crate::request_notes::RequestNotes;

fn observed(profiler: &Profiler, command: &Document, took_ms: u64) -> usize {
    let record = ConnectionRecord::new(1, "127.0.0.1:4711", std::sync::Arc::default());
    let (body, notes) = (command.to_raw(), RequestNotes::of_point_lookup());
    let request = Request::of(&body);
    let request = ObservedRequest {
        request: &request,
        database: "shop",
        record: &record,
        took: Duration::from_millis(took_ms),
        now_ms: 0,
        reads: pando_catalog::DeviceReads { pages: 3, bytes: 12_288, time: Duration::from_micros(250) },
        usage: pando_catalog::UsageFigures::default(),
        notes: &notes,
        failure: None,
        reply_bytes: 100,
    };
    if profiler.is_of_interest(request.took) {
        profiler.observe(&request, &SeededRandom::new(1));
    }
    profiler.queue.len()
}

#[test]
fn the_level_of_a_database_says_which_requests_are_recorded() {
    let find = doc! { "find": "c", "filter": { "_id": 1 } };
    let at_level = |level, took_ms| {
        let profiler = Profiler::new(ProfilerOptions::default());
        profiler.settings.change("shop", |settings| settings.level = level);
        observed(&profiler, &find, took_ms)
    };
    assert_eq!([at_level(0, 0), at_level(0, 500)], [0, 0]);
    assert_eq!([at_level(1, 0), at_level(1, 100), at_level(1, 101)], [0, 0, 1]);
    assert_eq!([at_level(2, 0), at_level(2, 500)], [1, 1]);
    let other = Profiler::new(ProfilerOptions::default());
    other.settings.change("other", |settings| settings.level = 2);
    assert_eq!(observed(&other, &find, 0), 0);
    let all = Profiler::new(ProfilerOptions::default());
    all.settings.change("shop", |settings| settings.level = 2);
    assert_eq!(observed(&all, &doc! { "ping": 1 }, 0), 0, "it works on no database");
}

#[test]
fn a_sample_rate_takes_a_part_and_a_filter_decides_alone() {
    let find = doc! { "find": "c", "filter": { "_id": 1 } };
    let profiler = Profiler::new(ProfilerOptions::default());
    profiler.settings.change("shop", |settings| settings.level = 1);
    profiler.settings.set_sample_rate(0.0);
    assert_eq!(observed(&profiler, &find, 500), 0);
    let filter =
        std::sync::Arc::new(FilterSettings::parse(&doc! { "planSummary": "IDHACK" }.to_raw(), 0).unwrap());
    profiler.settings.change("shop", |settings| settings.filter = Some(filter));
    assert_eq!(observed(&profiler, &find, 0), 1, "neither slow nor sampled");
    let scans = FilterSettings::parse(&doc! { "planSummary": "COLLSCAN" }.to_raw(), 0).unwrap();
    profiler.settings.change("shop", |settings| settings.filter = Some(std::sync::Arc::new(scans)));
    assert_eq!(observed(&profiler, &find, 0), 1, "that of before");
    profiler.settings.change("shop", |settings| settings.level = 2);
    assert_eq!(observed(&profiler, &find, 0), 2, "level 2 records all, and the filter is for the log");
}

#[test]
fn an_entry_has_the_fields_of_mongodb_in_its_order() {
    let record = ConnectionRecord::new(1, "127.0.0.1:4711", std::sync::Arc::default());
    let body = doc! { "find": "c", "filter": { "_id": 1 }, "$db": "shop" }.to_raw();
    let request = Request::of(&body);
    let notes = RequestNotes { returned: Some(1), ..RequestNotes::of_point_lookup() };
    let request = ObservedRequest {
        request: &request,
        database: "shop",
        record: &record,
        took: Duration::from_millis(7),
        now_ms: 1,
        reads: pando_catalog::DeviceReads { pages: 3, bytes: 12_288, time: Duration::from_micros(250) },
        usage: pando_catalog::UsageFigures { keys_examined: 1, ..Default::default() },
        notes: &notes,
        failure: None,
        reply_bytes: 100,
    };
    let raw = request.entry();
    let entry = Document::from_raw(&raw).unwrap();
    let names: Vec<&str> = entry.names().collect();
    let wanted = "op ns command keysExamined docsExamined nBatches cursorExhausted numYield nreturned locks \
                  flowControl storage responseLength protocol millis planSummary execStats ts client allUsers user";
    assert_eq!(names.join(" "), wanted);
    assert_eq!(entry.get("client"), Some(&Value::String("127.0.0.1".to_owned())));
    let line = json(&request.log_document(&raw).unwrap());
    assert!(line.starts_with(r#"{"type":"query","ns":"shop.c","command":{"find":"c""#), "{line}");
    assert!(line.ends_with(r#""durationMillis":7}"#), "{line}");
}
