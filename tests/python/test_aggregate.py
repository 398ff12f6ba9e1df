"""Pipelines with PyMongo."""

import collections

import pytest
from pymongo.errors import OperationFailure


def test_match_group_sort_limit(db):
    db.c.insert_many([{"_id": i, "g": i % 4, "n": i} for i in range(100)])
    found = list(db.c.aggregate([
        {"$match": {"n": {"$gte": 20}}},
        {"$group": {"_id": "$g", "sum": {"$sum": "$n"}, "avg": {"$avg": "$n"}, "min": {"$min": "$n"}, "max": {"$max": "$n"},
                    "first": {"$first": "$n"}, "last": {"$last": "$n"}, "count": {"$sum": 1}}},
        {"$sort": {"_id": -1}},
        {"$limit": 3},
    ]))
    groups = collections.defaultdict(list)
    for i in range(20, 100):
        groups[i % 4].append(i)
    expected = [
        {"_id": g, "sum": sum(groups[g]), "avg": sum(groups[g]) / len(groups[g]), "min": min(groups[g]), "max": max(groups[g]),
         "first": groups[g][0], "last": groups[g][-1], "count": len(groups[g])}
        for g in [3, 2, 1]
    ]
    assert found == expected


def test_unwind_project_push_and_count(db):
    db.c.insert_many([{"_id": i, "tags": ["a", "b"] if i % 2 else ["b"], "n": {"v": i}} for i in range(6)])
    found = list(db.c.aggregate([
        {"$unwind": "$tags"},
        {"$project": {"_id": 0, "tag": "$tags", "v": {"$multiply": ["$n.v", 2]}}},
        {"$group": {"_id": "$tag", "vs": {"$push": "$v"}, "set": {"$addToSet": {"$mod": ["$v", 4]}}}},
        {"$sort": {"_id": 1}},
    ]))
    assert [(d["_id"], d["vs"], sorted(d["set"])) for d in found] == [("a", [2, 6, 10], [2]), ("b", [0, 2, 4, 6, 8, 10], [0, 2])]
    assert list(db.c.aggregate([{"$match": {"tags": "a"}}, {"$count": "n"}])) == [{"n": 3}]
    assert list(db.c.aggregate([{"$skip": 4}, {"$project": {"n": 0}}]))[0] == {"_id": 4, "tags": ["b"]}


def test_a_pipeline_goes_past_one_batch(db):
    db.c.insert_many([{"_id": i} for i in range(1000)])
    assert [d["_id"] for d in db.c.aggregate([{"$sort": {"_id": -1}}], batchSize=10)] == list(reversed(range(1000)))


def test_change_streams_and_javascript_are_refused_with_one_sentence_each(client, db):
    for watched in (db.c, db, client):
        with pytest.raises(OperationFailure, match="there are no change streams yet") as refused:
            watched.watch()
        assert refused.value.code == 238
    program = {"body": "function() { return 1 }", "args": [], "lang": "js"}
    accumulator = {"init": "", "accumulate": "", "accumulateArgs": [], "merge": "", "lang": "js"}
    with pytest.raises(OperationFailure, match="is refused: Pando runs no JavaScript; say it with "):
        db.c.find_one({"$where": "true"})
    for stage in (
        {"$project": {"n": {"$function": program}}},
        {"$group": {"_id": None, "n": {"$accumulator": accumulator}}},
    ):
        with pytest.raises(OperationFailure, match="is refused: Pando runs no JavaScript; say it with ") as refused:
            list(db.c.aggregate([stage]))
        assert refused.value.code == 238
