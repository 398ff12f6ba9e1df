"""Hashed indexes: equality by the hash of a value, arrays refused, and no answer that differs from a scan."""

import datetime
import random

import pytest
from bson import Decimal128, Int64, ObjectId
from pymongo.errors import OperationFailure


def stages(plan):
    yield plan["stage"]
    for below in ([plan["inputStage"]] if "inputStage" in plan else plan.get("inputStages", [])):
        yield from stages(below)


def uses_index(cursor):
    return "IXSCAN" in stages(cursor.explain()["queryPlanner"]["winningPlan"])


@pytest.mark.parametrize("key", [[("a", "hashed")], [("a", "hashed"), ("b", 1)], [("b", -1), ("a", "hashed")]], ids=repr)
def test_a_hashed_index_is_listed_and_serves_equality_alone(db, key):
    db.c.insert_many([{"_id": at, "a": at % 50, "b": 1} for at in range(200)])
    db.c.create_index(key, name="h")
    assert db.c.index_information()["h"]["key"] == key
    for query, is_used in [({"a": 7}, True), ({"a": {"$in": [7, "x"]}}, True), ({"a": None}, True), ({"a": {"$gt": 7}}, False),
                           ({"a": {"$ne": 7}}, False), ({"a": 7.5}, False)]:
        assert uses_index(db.c.find({"b": 1, **query})) == (is_used or key[0][0] == "b"), query
    assert [found["a"] for found in db.c.find({"a": {"$gte": 48}}).sort("a", -1)] == [49] * 4 + [48] * 4
    assert db.command("validate", "c")["valid"]


@pytest.mark.parametrize("document,path", [({"a": [1]}, "a"), ({"a": []}, "a"), ({"a": 1, "b": [1]}, "b")], ids=repr)
def test_arrays_are_refused(db, document, path):
    db.c.create_index([("a", "hashed"), ("b", 1)])
    db.c.insert_one({"_id": 1, "a": 1})
    for write in (lambda: db.c.insert_one(dict(document)), lambda: db.c.update_one({"_id": 1}, {"$set": document})):
        with pytest.raises(OperationFailure) as refused:
            write()
        assert refused.value.code == 16766 and refused.value.details["errmsg"].endswith(f"path: {path}")
    assert list(db.c.find()) == [{"_id": 1, "a": 1}]
    db.d.insert_one({"a": {"b": [1]}})
    with pytest.raises(OperationFailure) as refused:
        db.d.create_index([("a.b", "hashed")])
    assert refused.value.code == 16766 and "a.b" in str(refused.value)
    db.d.create_index([("a.b", "hashed")], name="some", partialFilterExpression={"c": 1})


@pytest.mark.parametrize("specification,code", [
    ({"key": {"a": "hashed", "b": "hashed"}}, 31303), ({"key": {"a": "hashed"}, "unique": True}, 16764), ({"key": {"a": "hash"}}, 67),
], ids=repr)
def test_hashed_indexes_that_there_cannot_be(db, specification, code):
    with pytest.raises(OperationFailure) as refused:
        db.command("createIndexes", "c", indexes=[{"name": "h", **specification}])
    assert refused.value.code == code


VALUES = [
    None, 0, 1, 1.0, Int64(1), Decimal128("1"), 1.5, Decimal128("1.5"), 2, Decimal128("2.0"), -0.0, float("nan"), float("inf"), 1e300, 2**53 + 1,
    2.0**63, -2**63, "", "a", "b", True, False, {}, {"y": 1}, {"y": 1.0}, {"y": 1.5}, {"y": Decimal128("1.5")}, {"y": {"z": "a"}}, ObjectId(b"0" * 12),
    datetime.datetime(2020, 1, 1), b"ab",
]


@pytest.mark.parametrize("options", [{}, {"sparse": True}], ids=repr)
def test_no_hashed_index_changes_an_answer(db, options):
    chance = random.Random(3)
    values = VALUES * 4
    chance.shuffle(values)
    db.c.insert_many([{"_id": at, "b": at % 3, "a": value} for at, value in enumerate(values)] + [{"_id": 1000 + at, "b": at} for at in range(3)])
    queries = [{"a": value} for value in VALUES] + [{"a": {"$in": [chance.choice(VALUES), chance.choice(VALUES)]}, "b": 1} for _ in range(60)]
    queries += [{"a.y": value} for value in (1, 1.5, None)] + [{"a": {"$ne": value}} for value in VALUES]
    queries += [{"a": value, "b": {"$gte": 1}} for value in VALUES] + [{"$or": [{"a": 1, "b": 1}, {"a": "a"}]}, {"a": {"$exists": False}}, {"a": {"$gt": 1}}]

    def answers():
        return [([found["_id"] for found in db.c.find(query).sort([("b", 1), ("_id", 1)])], db.c.count_documents(query), len(db.c.distinct("a", query)))
                for query in queries]

    expected = answers()
    for key in ([("a", "hashed")], [("a", "hashed"), ("b", 1)], [("b", 1), ("a", "hashed")], [("a.y", "hashed")]):
        db.c.create_index(key, name="h", **options)
        for query, found, wanted in zip(queries, answers(), expected):
            assert found == wanted, (query, key)
        assert db.command("validate", "c")["valid"]
        db.c.drop_index("h")
