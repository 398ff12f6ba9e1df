//! Stages move as far as their rules let them, and no further.

use pando_document::{ArrayWriter, Document, RawArray, RawDocumentBuf, doc};

use crate::expression::ParseScope;
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
        doc! { "$limit": 3 },
        doc! { "$skip": 3 },
        doc! { "$group": { "_id": "$a" } },
        doc! { "$replaceRoot": { "newRoot": "$a" } },
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
