//! Stages move as far as their rules let them, and no further.

use pando_document::{ArrayWriter, Document, RawArray, RawDocumentBuf, Value, doc};

use crate::expression::{Optimisation, ParseScope};
use crate::pipeline::Pipeline;
use crate::shell_text::document_text;

fn pipeline_of(stages: &[Document]) -> Pipeline {
    let mut bytes = Vec::new();
    let mut writer = ArrayWriter::begin(&mut bytes);
    stages.iter().for_each(|stage| writer.push_document(&stage.to_raw()));
    writer.finish();
    let stages = RawDocumentBuf::from_vec(bytes).expect("an array");
    Pipeline::parse(RawArray::from_document(&stages), &ParseScope::at(0)).expect("it parses")
}

/// The stages after rewriting, one a line.
fn rewritten(stages: &[Document]) -> Vec<String> {
    pipeline_of(stages).stages().map(document_text).collect()
}

fn check(stages: &[Document], expected: &[Document]) {
    let expected: Vec<String> = expected.iter().map(|stage| document_text(&stage.to_raw())).collect();
    assert_eq!(rewritten(stages), expected);
}

#[test]
fn a_filter_passes_stages_that_leave_its_fields_alone() {
    let filter = doc! { "$match": { "a": 2 } };
    for before in [
        doc! { "$project": { "a": 1, "b": 1 } },
        doc! { "$project": { "b": 0 } },
        doc! { "$addFields": { "z": 1 } },
        doc! { "$unset": "b" },
        doc! { "$unwind": "$t" },
        doc! { "$sort": { "zz": 1 } },
        doc! { "$lookup": { "from": "d", "localField": "a", "foreignField": "_id", "as": "l" } },
    ] {
        check(&[before.clone(), filter.clone()], &[filter.clone(), before]);
    }
}

#[test]
fn a_filter_stays_behind_a_stage_that_changes_its_fields_or_the_number_of_documents() {
    let filter = doc! { "$match": { "a.b": 2 } };
    for before in [
        doc! { "$project": { "b": 1 } },
        doc! { "$project": { "a.c": 1 } },
        doc! { "$project": { "a": 0 } },
        doc! { "$addFields": { "a.b.c": 1 } },
        doc! { "$addFields": { "a": 1 } },
        doc! { "$unset": "a.b" },
        doc! { "$unwind": "$a" },
        doc! { "$unwind": { "path": "$t", "includeArrayIndex": "a.b" } },
        doc! { "$lookup": { "from": "d", "localField": "a", "foreignField": "_id", "as": "a" } },
        // Where `a` is an array, all of it makes way.
        doc! { "$lookup": { "from": "d", "localField": "a", "foreignField": "_id", "as": "a.z" } },
        doc! { "$unwind": { "path": "$t", "includeArrayIndex": "a.z" } },
        doc! { "$limit": 3 },
        doc! { "$skip": 3 },
        doc! { "$group": { "_id": "$a" } },
        doc! { "$replaceRoot": { "newRoot": { "x": "$a" } } },
        doc! { "$sample": { "size": 3 } },
        doc! { "$count": "a" },
    ] {
        check(&[before.clone(), filter.clone()], &[before, filter.clone()]);
    }
}

#[test]
fn the_parts_of_a_filter_move_one_by_one() {
    let unwind = doc! { "$unwind": "$t" };
    check(
        &[unwind.clone(), doc! { "$match": { "t": 1, "a": 2, "$expr": { "$gt": ["$c", "$d"] } } }],
        &[
            doc! { "$match": { "a": 2, "$expr": { "$gt": ["$c", "$d"] } } },
            unwind,
            doc! { "$match": { "t": 1 } },
        ],
    );
    let whole = doc! { "$match": { "$expr": { "$eq": ["$$ROOT", 1] } } };
    let project = doc! { "$project": { "a": 1 } };
    check(&[project.clone(), whole.clone()], &[project, whole]);
}

#[test]
fn skips_and_limits_pass_stages_of_one_document_each() {
    let (sort, project) = (doc! { "$sort": { "z": 1 } }, doc! { "$project": { "a": 1 } });
    let (skip, limit) = (doc! { "$skip": 2 }, doc! { "$limit": 3 });
    check(
        &[sort.clone(), project.clone(), skip.clone(), limit.clone()],
        &[sort.clone(), skip.clone(), limit.clone(), project],
    );
    let unwind = doc! { "$unwind": "$t" };
    check(&[unwind.clone(), limit.clone()], &[unwind.clone(), limit.clone()]);
    check(&[unwind.clone(), sort.clone()], &[sort, unwind.clone()]);
    let by_element = doc! { "$sort": { "t": 1 } };
    check(&[unwind.clone(), by_element.clone()], &[unwind, by_element]);
}

#[test]
fn the_front_of_a_pipeline_takes_all_its_skips_and_limits() {
    for (stages, skip, limit) in [
        (vec![doc! { "$limit": 3 }, doc! { "$limit": 2 }], 0, Some(2)),
        (
            vec![doc! { "$skip": 3 }, doc! { "$skip": 2 }, doc! { "$limit": 4 }, doc! { "$limit": 2 }],
            5,
            Some(2),
        ),
        (vec![doc! { "$limit": 9 }, doc! { "$skip": 2 }], 2, Some(7)),
        (vec![doc! { "$limit": 2 }, doc! { "$skip": 9 }], 9, Some(0)),
    ] {
        let pushdown = pipeline_of(&stages).split_pushdown();
        assert_eq!((pushdown.skip, pushdown.limit, pushdown.rest.is_empty()), (skip, limit, true));
    }
}

/// The stages as `explain` shows them.
fn check_shown(stages: &[Document], expected: &[Document]) {
    let text = |document: &Document| document_text(&document.to_raw());
    let shown: Vec<String> = pipeline_of(stages).explain(None).iter().map(text).collect();
    assert_eq!(shown, expected.iter().map(text).collect::<Vec<_>>());
}

#[test]
fn a_filter_follows_renames() {
    for before in [
        doc! { "$project": { "b": "$a" } },
        doc! { "$addFields": { "b": "$a" } },
        doc! { "$project": { "b": "$$ROOT.a", "a": 1 } },
    ] {
        check(
            &[before.clone(), doc! { "$match": { "b.c": { "$gt": 2 } } }],
            &[doc! { "$match": { "a.c": { "$gt": 2 } } }, before],
        );
    }
    let project = doc! { "$project": { "b": "$a", "c": 1 } };
    let any = doc! { "$match": { "$or": [{ "b": 1 }, { "c": { "$exists": false } }] } };
    check(
        &[project.clone(), any],
        &[doc! { "$match": { "$or": [{ "a": 1 }, { "c": { "$exists": false } }] } }, project.clone()],
    );
    // An array on the way has other values for a filter than for an expression.
    let deep = doc! { "$project": { "b": "$a.d" } };
    let filter = doc! { "$match": { "b": 1 } };
    check(&[deep.clone(), filter.clone()], &[deep, filter]);
    let computed = doc! { "$match": { "$expr": { "$eq": ["$b", 1] } } };
    check(&[project.clone(), computed.clone()], &[project, computed]);
}

#[test]
fn a_filter_of_the_key_passes_a_group() {
    let group = doc! { "$group": { "_id": "$k", "n": { "$sum": 1 } } };
    check(
        &[group.clone(), doc! { "$match": { "_id": { "$in": [1, null] }, "n": 2 } }],
        &[doc! { "$match": { "k": { "$in": [1, null] } } }, group.clone(), doc! { "$match": { "n": 2 } }],
    );
    let members = doc! { "$group": { "_id": { "x": "$k", "y": "$l" } } };
    check(
        &[members.clone(), doc! { "$match": { "_id.y.z": 3 } }],
        &[doc! { "$match": { "l.z": 3 } }, members.clone()],
    );
    // A group makes null of a missing value.
    for stays in [
        doc! { "$match": { "_id": { "$exists": true } } },
        doc! { "$match": { "_id": { "$not": { "$type": "null" } } } },
    ] {
        check(&[group.clone(), stays.clone()], &[group.clone(), stays]);
    }
    let whole = doc! { "$match": { "_id": { "x": 1 } } };
    check(&[members.clone(), whole.clone()], &[members, whole]);
}

#[test]
fn a_filter_behind_a_new_root_lets_its_errors_through() {
    let root = doc! { "$replaceRoot": { "newRoot": "$a" } };
    let is_other = doc! { "a": { "$not": { "$type": "object" } } };
    let clauses = Value::Array(vec![
        Value::Document(doc! { "a.x": 3 }),
        Value::Document(doc! { "a": { "$type": "array" } }),
        Value::Document(is_other),
    ]);
    let mut filter = Document::new();
    filter.push("$or", clauses);
    check(&[root.clone(), doc! { "$match": { "x": 3 } }], &[doc! { "$match": (filter) }, root]);
}

#[test]
fn a_filter_goes_into_both_collections_of_a_union() {
    let filter = doc! { "$match": { "a": 1 } };
    check(
        &[doc! { "$unionWith": "d" }, filter.clone()],
        &[filter.clone(), doc! { "$unionWith": { "coll": "d", "pipeline": [{ "$match": { "a": 1 } }] } }],
    );
}

#[test]
fn a_filter_of_the_partition_passes_a_window() {
    let output = doc! { "n": { "$sum": "$v" } };
    let windows = doc! { "$setWindowFields": { "partitionBy": "$k", "output": (output.clone()) } };
    check(
        &[windows.clone(), doc! { "$match": { "k": { "$gt": 1 }, "n": 2 } }],
        &[doc! { "$match": { "k": { "$gt": 1 } } }, windows.clone(), doc! { "$match": { "n": 2 } }],
    );
    let two =
        doc! { "$setWindowFields": { "partitionBy": { "x": "$k", "y": "$l" }, "output": (output.clone()) } };
    let within = doc! { "$match": { "l.z": 3 } };
    check(&[two.clone(), within.clone()], &[within, two]);
    let whole = doc! { "$setWindowFields": { "output": (output) } };
    let filter = doc! { "$match": { "k": 1 } };
    check(&[whole.clone(), filter.clone()], &[whole, filter]);
    // One partition has documents without the field and documents with null, or numbers of two types.
    for stays in [
        doc! { "$match": { "k": { "$exists": true } } },
        doc! { "$match": { "k": { "$type": "int" } } },
        doc! { "$match": { "v": 1 } },
    ] {
        check(&[windows.clone(), stays.clone()], &[windows.clone(), stays]);
    }
}

#[test]
fn filters_side_by_side_become_one_and_those_of_everything_go() {
    let unwind = doc! { "$unwind": "$t" };
    check(
        &[
            unwind.clone(),
            doc! { "$match": {} },
            doc! { "$match": { "t": 1 } },
            doc! { "$match": { "t.u": 2 } },
            doc! { "$match": { "t": 3 } },
        ],
        &[unwind, doc! { "$match": { "$and": [{ "t": 1 }, { "t.u": 2 }, { "t": 3 }] } }],
    );
    check(&[doc! { "$match": {} }], &[]);
}

#[test]
fn counts_side_by_side_become_one() {
    let unwind = doc! { "$unwind": "$t" };
    check(
        &[
            unwind.clone(),
            doc! { "$skip": 2 },
            doc! { "$skip": 3 },
            doc! { "$limit": 5 },
            doc! { "$limit": 4 },
        ],
        &[unwind, doc! { "$skip": 5_i64 }, doc! { "$limit": 4_i64 }],
    );
}

#[test]
fn an_order_passes_stages_that_leave_its_fields_alone() {
    let sort = doc! { "$sort": { "k": 1 } };
    let lookup = doc! { "$lookup": { "from": "d", "localField": "a", "foreignField": "_id", "as": "l" } };
    for before in [lookup.clone(), doc! { "$addFields": { "z": 1 } }, doc! { "$unwind": "$t" }] {
        check(&[before.clone(), sort.clone()], &[sort.clone(), before]);
    }
    let by_joined = doc! { "$sort": { "l.x": 1 } };
    check(&[lookup.clone(), by_joined.clone()], &[lookup, by_joined]);
    let into_k = doc! { "$lookup": { "from": "d", "localField": "a", "foreignField": "_id", "as": "k.l" } };
    let by_other = doc! { "$sort": { "k.a": 1 } };
    check(&[into_k.clone(), by_other.clone()], &[into_k, by_other]);
}

#[test]
fn a_join_takes_in_the_unwinding_of_its_array_and_a_filter_of_it() {
    let options = doc! { "from": "d", "localField": "k", "foreignField": "_id", "as": "l" };
    let lookup = doc! { "$lookup": (options.clone()) };
    let mut unwinding = options.clone();
    unwinding.push("unwinding", doc! { "preserveNullAndEmptyArrays": false });
    check_shown(&[lookup.clone(), doc! { "$unwind": "$l" }], &[doc! { "$lookup": (unwinding) }]);
    let mut matching = options;
    matching.push("pipeline", Value::Array(vec![Value::Document(doc! { "$match": { "x": 3 } })]));
    matching.push("unwinding", doc! { "preserveNullAndEmptyArrays": false });
    check_shown(
        &[
            lookup.clone(),
            doc! { "$unwind": "$l" },
            doc! { "$match": { "l.x": 3, "k": 1, "l": { "$ne": 4 } } },
        ],
        &[
            doc! { "$match": { "k": 1 } },
            doc! { "$lookup": (matching) },
            doc! { "$match": { "l": { "$ne": 4 } } },
        ],
    );
    let other = doc! { "$unwind": "$m" };
    check(&[lookup.clone(), other.clone()], &[lookup.clone(), other]);
    // A document without joined ones goes on, so a filter of them is behind the stage.
    let preserving = doc! { "$unwind": { "path": "$l", "preserveNullAndEmptyArrays": true } };
    let filter = doc! { "$match": { "l.x": 3 } };
    let shown = pipeline_of(&[lookup, preserving, filter]).explain(None);
    assert_eq!(shown.len(), 2);
}

#[test]
fn a_group_of_the_ends_of_an_order_takes_in_the_sort() {
    let ends = doc! { "_id": "$k", "a": { "$first": "$a" }, "z": { "$last": "$$ROOT" }, "n": { "$sum": 1 } };
    let unwind = doc! { "$unwind": { "path": "$t", "includeArrayIndex": "i" } };
    let sort = doc! { "$sort": { "i": -1, "b.c": 1 } };
    let group = doc! { "$group": (ends.clone()) };
    check_shown(
        &[unwind.clone(), sort.clone(), group.clone()],
        &[unwind.clone(), doc! { "$group": (ends), "endsOfSort": { "i": -1, "b.c": 1 } }],
    );
    let shown_sort = doc! { "$sort": { "sortKey": { "i": -1, "b.c": 1 } } };
    for needs_the_order in [
        doc! { "$group": { "_id": "$k", "a": { "$push": "$a" } } },
        doc! { "$group": { "_id": "$k", "a": { "$sum": "$a" } } },
        // On a document between the ends it may fail.
        doc! { "$group": { "_id": "$k", "a": { "$last": { "$divide": [1, "$a"] } } } },
    ] {
        check_shown(
            &[unwind.clone(), sort.clone(), needs_the_order.clone()],
            &[unwind.clone(), shown_sort.clone(), needs_the_order],
        );
    }
}

#[test]
fn a_sort_at_the_front_goes_to_the_plan_and_the_group_can_do_without() {
    let group = doc! { "$group": { "_id": "$k", "a": { "$first": "$a" } } };
    let filter = doc! { "$match": { "x": 1 } };
    let stages = [filter, doc! { "$sort": { "b": -1 } }, group.clone(), doc! { "$limit": 3 }];
    let pushdown = pipeline_of(&stages).split_pushdown();
    assert_eq!(pushdown.sort, Some(doc! { "b": -1 }.to_raw()));
    let shown = |pipeline: &Pipeline| document_text(&pipeline.explain(None)[0].to_raw());
    assert_eq!(shown(&pushdown.rest), document_text(&group.to_raw()));
    let unsorted = pushdown.rest_unsorted.expect("the group has taken in the sort");
    let mut taken_in = group;
    taken_in.push("endsOfSort", doc! { "b": -1 });
    assert_eq!(shown(&unsorted), document_text(&taken_in.to_raw()));
    assert_eq!(unsorted.needs().fields(), Some(["a", "b", "k"].into()));
    let limited = [doc! { "$sort": { "b": -1 } }, doc! { "$limit": 3 }, doc! { "$group": { "_id": 1 } }];
    assert!(pipeline_of(&limited).split_pushdown().rest_unsorted.is_none());
}

#[test]
fn a_group_takes_in_the_unwinding_in_front_of_it() {
    let group = doc! { "_id": "$t.x", "n": { "$sum": "$k" }, "all": { "$push": { "$add": ["$t.y", 1] } } };
    let options = doc! { "path": "$t", "preserveNullAndEmptyArrays": true };
    let unwind = doc! { "$unwind": (options.clone()) };
    let whole = doc! { "$group": (group.clone()) };
    check_shown(&[unwind.clone(), whole.clone()], &[doc! { "$group": (group), "unwinding": (options) }]);
    for reads_the_root in [
        doc! { "$group": { "_id": "$$ROOT" } },
        doc! { "$group": { "_id": "$k", "a": { "$push": "$$ROOT" } } },
        doc! { "$group": { "_id": "$k", "a": { "$top": { "sortBy": { "k": 1 }, "output": 1 } } } },
    ] {
        check_shown(&[unwind.clone(), reads_the_root.clone()], &[unwind.clone(), reads_the_root]);
    }
    for other in [doc! { "$unwind": "$t.x" }, doc! { "$unwind": { "path": "$t", "includeArrayIndex": "i" } }]
    {
        check_shown(&[other.clone(), whole.clone()], &[other, whole.clone()]);
    }
}

#[test]
fn the_stages_stay_as_they_are_written_where_the_optimiser_is_off() {
    let stages = [doc! { "$unwind": "$t" }, doc! { "$match": { "a": 1 } }, doc! { "$match": {} }];
    let mut bytes = Vec::new();
    let mut writer = ArrayWriter::begin(&mut bytes);
    stages.iter().for_each(|stage| writer.push_document(&stage.to_raw()));
    writer.finish();
    let array = RawDocumentBuf::from_vec(bytes).expect("an array");
    let scope = ParseScope::at(0).optimised(Optimisation::Off);
    let pipeline = Pipeline::parse(RawArray::from_document(&array), &scope).expect("it parses");
    let texts: Vec<String> = pipeline.stages().map(document_text).collect();
    let written: Vec<String> = stages.iter().map(|stage| document_text(&stage.to_raw())).collect();
    assert_eq!(texts, written);
}

#[test]
fn a_long_row_of_filters_becomes_one_list() {
    let filters: Vec<Document> =
        (0..999).map(|number| doc! { "$match": { "a": { "$ne": number } } }).collect();
    let pipeline = pipeline_of(&filters);
    let [only] = &pipeline.stages().collect::<Vec<_>>()[..] else { panic!("more than one stage") };
    let parts: Vec<Value> = (0..999).map(|number| Value::from(doc! { "a": { "$ne": number } })).collect();
    assert_eq!(only.as_bytes(), doc! { "$match": { "$and": parts } }.to_raw().as_bytes());
}

#[test]
fn filters_that_hold_for_every_document_go_from_a_row() {
    let all = doc! { "$match": {} };
    let (one, other) = (doc! { "$match": { "a": 1 } }, doc! { "$match": { "b": 1 } });
    let limit = doc! { "$limit": 3 };
    check(&[all.clone(), one.clone(), all.clone(), limit.clone(), all.clone()], &[one.clone(), limit]);
    check(&[all.clone(), one, all, other], &[doc! { "$match": { "a": 1, "b": 1 } }]);
}
