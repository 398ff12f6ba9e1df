"""Partial indexes: they have the documents of their filter, serve the queries that imply it, and change no answer."""

import datetime
import itertools
import random
import re
import time

import pytest
from bson import Int64
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure


def stages(plan):
    yield plan["stage"]
    for below in ([plan["inputStage"]] if "inputStage" in plan else plan.get("inputStages", [])):
        yield from stages(below)


def uses_index(cursor):
    return "IXSCAN" in stages(cursor.explain()["queryPlanner"]["winningPlan"])


def entries(db, name):
    return db.command("validate", "c")["keysPerIndex"][name]


def test_an_index_follows_the_documents_that_begin_and_cease_to_match(db):
    db.c.insert_many([{"_id": at, "a": at, "x": at} for at in range(10)])
    db.c.create_index("a", name="p", partialFilterExpression={"x": {"$gt": 5}})
    assert entries(db, "p") == 4
    for change, number in [
        ((db.c.update_one, {"_id": 1}, {"$set": {"x": 9}}), 5), ((db.c.update_one, {"_id": 9}, {"$unset": {"x": 1}}), 4),
        ((db.c.update_many, {}, {"$inc": {"x": 3}}), 7), ((db.c.replace_one, {"_id": 8}, {"a": 8}), 6),
        ((db.c.delete_many, {"x": {"$gt": 9}}), 4), ((db.c.insert_one, {"_id": 20, "x": [1, 7]}), 5), ((db.c.update_one, {"_id": 20}, {"$set": {"a": [1, 2]}}), 6),
    ]:
        change[0](*change[1:])
        assert entries(db, "p") == number, change
        assert db.command("validate", "c")["valid"]
    assert db.c.index_information()["p"]["partialFilterExpression"] == {"x": {"$gt": 5}}


def test_a_unique_partial_index_refuses_only_what_it_has(db):
    db.c.create_index("a", unique=True, partialFilterExpression={"x": {"$exists": True}})
    db.c.insert_many([{"_id": 1, "a": 1}, {"_id": 2, "a": 1}, {"_id": 3, "a": 1, "x": 1}])
    with pytest.raises(DuplicateKeyError) as refused:
        db.c.update_one({"_id": 1}, {"$set": {"x": None}})
    assert refused.value.details["keyValue"] == {"a": 1}
    with pytest.raises(BulkWriteError):
        db.c.insert_many([{"_id": 4, "a": 1, "x": 1}])
    db.c.update_one({"_id": 3}, {"$unset": {"x": 1}})
    db.c.update_one({"_id": 1}, {"$set": {"x": None}})
    db.d.insert_many([{"a": 1, "x": 1}, {"a": 1, "x": 1}, {"a": 1}])
    with pytest.raises(DuplicateKeyError):
        db.d.create_index("a", unique=True, partialFilterExpression={"x": 1})
    db.d.create_index("a", unique=True, partialFilterExpression={"x": 2})


@pytest.mark.parametrize("wanted,query,is_used", [
    ({"x": {"$gt": 5}}, {"a": 1, "x": {"$gt": 5}}, True), ({"x": {"$gt": 5}}, {"a": 1, "x": {"$gte": 5}}, False),
    ({"x": {"$gt": 5}}, {"a": 1, "x": {"$in": [6, 7]}}, True), ({"x": {"$gt": 5}}, {"a": 1, "x": {"$in": [4, 7]}}, False),
    ({"x": {"$gt": 5}}, {"a": 1}, False), ({"x": {"$exists": True}}, {"a": 1, "x": None}, False), ({"x": {"$exists": True}}, {"a": 1, "x": 5}, True),
    ({"x": {"$exists": True}}, {"a": 1, "x": {"$ne": None}}, True), ({"x": {"$type": "string"}}, {"a": 1, "x": {"$type": "string"}}, True),
    ({"$or": [{"x": 1}, {"y": 1}]}, {"a": 1, "y": 1}, True), ({"x": 1, "y": 1}, {"a": 1, "x": 1}, False), ({}, {"a": 1}, True),
    ({"a": {"$gt": 5}}, {"a": 7}, True), ({"a": {"$gt": 5}}, {"a": 3}, False), ({"x": {"$gt": 5}}, {"$or": [{"a": 7, "x": 6}, {"a": 3, "x": 9}]}, True),
    ({"x": {"$gt": 5}}, {"x": 6, "$or": [{"a": 7}, {"a": 3}]}, True), ({"x": {"$gt": 5}}, {"$or": [{"a": 7, "x": 6}, {"a": 3}]}, False),
    ({"x": {"$gt": 5}}, {"a": 1, "$expr": {"$gt": ["$x", 5]}}, False), ({"x": {"$gt": 5}}, {"a": 1, "x": {"$not": {"$lte": 5}}}, False),
], ids=repr)
def test_an_index_serves_the_queries_that_imply_its_filter(db, wanted, query, is_used):
    db.c.create_index("a", partialFilterExpression=wanted)
    assert uses_index(db.c.find(query)) == is_used


def test_a_hint_gets_the_documents_of_the_index(db):
    db.c.insert_many([{"_id": at, "a": at, "x": at} for at in range(10)])
    db.c.create_index("a", partialFilterExpression={"x": {"$gt": 5}})
    assert [found["_id"] for found in db.c.find({"a": {"$gt": 3}}).hint("a_1")] == [6, 7, 8, 9]
    assert db.c.count_documents({}) == 10 and db.c.estimated_document_count() == 10


@pytest.mark.parametrize("wanted,code", [
    ({"x": {"$ne": 1}}, 67), ({"x": {"$exists": False}}, 67), ({"x": re.compile("a")}, 67), ({"x": {"$size": 1}}, 67), ({"$nor": [{"x": 1}]}, 67),
    ({"$expr": {"$gt": ["$x", 1]}}, 224), ({"$where": "1"}, 2), ({"x": {"$bogus": 1}}, 2), ({"$jsonSchema": {}}, 224), (1, 14),
    ({"$and": [{"$or": [{"$and": [{"$or": [{"x": 1}]}]}]}]}, 67), ({"$alwaysTrue": 1, "x": {"$mod": [2, 1]}}, 67),
], ids=repr)
def test_filters_that_an_index_cannot_have(db, wanted, code):
    with pytest.raises(OperationFailure) as refused:
        db.command("createIndexes", "c", indexes=[{"key": {"a": 1}, "name": "p", "partialFilterExpression": wanted}])
    assert refused.value.code == code
    assert "c" not in db.list_collection_names()


@pytest.mark.needs("one server")
def test_an_index_expires_only_what_it_has(client, db):
    client.admin.command("setParameter", 1, ttlMonitorSleepSecs=1)
    past = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=1)
    db.c.insert_many([{"_id": at, "a": past, "x": at} for at in range(10)])
    db.c.create_index("a", expireAfterSeconds=5, partialFilterExpression={"x": {"$gt": 5}})
    deadline = time.monotonic() + 20
    while db.c.count_documents({}) > 6 and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(2)
    assert sorted(found["_id"] for found in db.c.find()) == [0, 1, 2, 3, 4, 5]
    client.admin.command("setParameter", 1, ttlMonitorSleepSecs=60)


VALUES = [None, 0, 1, 1.0, Int64(2), 2.5, "a", "b", True, [], [1], [1, "b"], [None], {"y": 1}, {"y": [1, 2]}, [{"y": 1}, {"z": 2}], [[1]], float("nan")]
FILTERS = [
    {}, {"x": {"$gt": 0}}, {"x": {"$gte": "a"}}, {"x": {"$exists": True}}, {"x": {"$type": "number"}}, {"x": None}, {"x": {"$in": [1, "a", None]}},
    {"$or": [{"x": 1}, {"a": {"$lt": 2}}]}, {"x.y": {"$gte": 1}}, {"x": {"$lte": 2}, "a": {"$exists": True}}, {"a": {"$gt": 0}}, {"x": []},
]
INDEXES = [{"partialFilterExpression": wanted} for wanted in FILTERS] + [{"sparse": True}, {"unique": False}]


def a_test(chance):
    value = chance.choice(VALUES)
    kind = chance.randrange(9)
    if kind < 5:
        return {chance.choice(["$eq", "$gt", "$gte", "$lt", "$lte"]): value}
    return [{"$in": [value, chance.choice(VALUES)]}, {"$ne": value}, {"$exists": chance.random() < 0.7}, {"$type": chance.choice(["number", "int", "string"])}][kind - 5]


def a_filter(chance, depth=2):
    paths = ["a", "x", "x.y", "a.y", "b"]
    if depth and chance.random() < 0.3:
        return {chance.choice(["$or", "$and", "$nor"]): [a_filter(chance, depth - 1) for _ in range(2)]}
    return {path: a_test(chance) for path in chance.sample(paths, chance.randint(1, 2))}


def test_no_index_changes_an_answer(db):
    """The same queries with and without each index, of every filter, give the same documents."""
    chance = random.Random(5)
    documents = [{"_id": at, "b": at % 3, **({"a": chance.choice(VALUES)} if chance.random() < 0.9 else {}), **({"x": x} if x != "missing" else {})}
                 for at, x in enumerate(VALUES * 6 + ["missing"] * 6)]
    db.c.insert_many(documents)
    queries = [a_filter(chance) for _ in range(150)]
    sorts = [None, [("a", 1), ("_id", 1)], [("_id", -1)]]

    def answers():
        found = []
        for query, sort in zip(queries, itertools.cycle(sorts)):
            cursor = db.c.find(query)
            ids = [document["_id"] for document in (cursor.sort(sort) if sort else cursor)]
            found.append((ids if sort else sorted(ids), db.c.count_documents(query), len(db.c.distinct("a", query))))
        return found

    expected = answers()
    for options in INDEXES:
        for key in ([("a", 1)], [("x", -1), ("b", 1)], [("x.y", 1)]):
            db.c.create_index(key, name="i", **options)
            for at, (found, wanted) in enumerate(zip(answers(), expected)):
                assert found == wanted, (queries[at], sorts[at % 3], key, options)
            assert db.command("validate", "c")["valid"]
            db.c.drop_index("i")
