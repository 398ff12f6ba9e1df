"""Wildcard indexes: they have the fields that documents happen to have, serve the queries on them, and change no answer."""

import itertools
import random

import pytest
from bson import Int64, MaxKey, MinKey
from pymongo.errors import OperationFailure, WriteError


def plan_of(cursor):
    plan = cursor.explain()["queryPlanner"]["winningPlan"]
    stages = []
    while plan:
        stages.append(plan)
        plan = plan.get("inputStage")
    return stages


def names(cursor):
    return [stage["stage"] for stage in plan_of(cursor)]


def entries(db, name):
    return db.command("validate", "c")["keysPerIndex"][name]


def test_an_index_follows_the_fields_of_documents(db):
    db.c.create_index([("$**", 1)])
    db.c.insert_many([{"_id": 1, "a": 1}, {"_id": 2, "b": {"c": [1, 2, {"d": 3}]}}, {"_id": 3}])
    assert entries(db, "$**_1") == 4
    for change, number in [
        (({"_id": 1}, {"$set": {"z": {"y": {}}}}), 5), (({"_id": 2}, {"$push": {"b.c": 9}}), 6), (({"_id": 2}, {"$unset": {"b": 1}}), 2),
        (({"_id": 3}, {"$set": {"n": None}}), 3),
    ]:
        db.c.update_one(*change)
        assert entries(db, "$**_1") == number, change
        assert db.command("validate", "c")["valid"]
    db.c.delete_many({})
    assert entries(db, "$**_1") == 0


def test_plans_show_the_path(db):
    db.c.insert_many([{"a": at, "b": {"c": [at]}} for at in range(20)])
    db.c.create_index([("$**", 1)])
    scan = plan_of(db.c.find({"b.c": {"$gt": 5}}))[-1]
    assert scan["keyPattern"] == {"$_path": 1, "b.c": 1} and scan["indexName"] == "$**_1"
    assert scan["indexBounds"] == {"$_path": ['["b.c", "b.c"]'], "b.c": ["(5, inf.0]"]}
    assert scan["isMultiKey"] and scan["multiKeyPaths"] == {"$_path": [], "b.c": ["b.c"]}
    scan = plan_of(db.c.find({"b": {"$exists": True}}))[-1]
    assert scan["indexBounds"] == {"$_path": ['["b", "b"]', '["b.", "b/")'], "b": ["[MinKey, MaxKey]"]}
    assert names(db.c.find({"a": {"$gt": 5}}).sort("a", -1)) == ["FETCH", "IXSCAN"]
    assert names(db.c.find({"b.c": {"$gt": 5}}).sort("b.c", -1)) == ["SORT", "FETCH", "IXSCAN"]
    assert names(db.c.find({}).sort("a", 1)) == ["SORT", "COLLSCAN"]
    assert names(db.c.find({"a": {"$gt": 5}}, {"a": 1, "_id": 0}))[1:] == ["IXSCAN"]
    assert [found["a"] for found in db.c.find({"a": {"$gt": 16}}, {"a": 1, "_id": 0}).sort("a", -1)] == [19, 18, 17]
    db.c.create_index("a")
    assert plan_of(db.c.find({"a": 5}))[-1]["indexName"] == "a_1"


@pytest.mark.parametrize("query,is_served", [
    ({"a": 1}, True), ({"a": None}, False), ({"a": {"$in": [1, None]}}, False), ({"a": {"$exists": False}}, False), ({"a": {"$ne": 1}}, False),
    ({"a": {"$exists": True}}, True), ({"a": {}}, True), ({"a": {"$type": "object"}}, True), ({"_id": {"$gt": 1}, "a": None}, False),
    ({"$or": [{"a": 1}, {"b.c": 2}]}, True), ({"$or": [{"a": 1}, {"b.c": None}]}, False), ({"a": {"$elemMatch": {"b": 1}}}, True),
], ids=repr)
def test_hints_are_obeyed_only_where_the_index_has_all_that_match(db, query, is_served):
    db.c.insert_many([{"a": 1}, {"a": None}, {}, {"b": {"c": 2}}, {"a": [{"b": 1}]}, {"a": {}}])
    db.c.create_index([("$**", 1)])
    expected = sorted(str(found["_id"]) for found in db.c.find(query).hint([("$natural", 1)]))
    if is_served:
        assert sorted(str(found["_id"]) for found in db.c.find(query).hint("$**_1")) == expected
    else:
        with pytest.raises(OperationFailure) as refused:
            list(db.c.find(query).hint("$**_1"))
        assert refused.value.code == 291
        assert "COLLSCAN" in names(db.c.find(query)) or "_id" in query


def test_min_and_max_do_not_fit(db):
    db.c.create_index([("$**", 1)])
    with pytest.raises(OperationFailure) as refused:
        list(db.c.find({"a": 1}).hint("$**_1").min([("$**", 1)]))
    assert refused.value.code == 51174


@pytest.mark.parametrize("key,options,code", [
    ({"$**": -1}, {}, 67), ({"$**": "hashed"}, {}, 67), ({"$**": 0}, {}, 67), ({"a.$**.b": 1}, {}, 67), ({".$**": 1}, {}, 67),
    ({"$**": 1}, {"unique": True}, 67), ({"$**": 1}, {"sparse": True}, 67), ({"$**": 1}, {"expireAfterSeconds": 5}, 67), ({"$**": 1}, {"v": 1}, 67),
    ({"$**": 1}, {"wildcardProjection": {}}, 9), ({"a.$**": 1}, {"wildcardProjection": {"a": 1}}, 9), ({"a": 1}, {"wildcardProjection": {"a": 1}}, 2),
    ({"$**": 1}, {"wildcardProjection": {"a": 1, "b": 0}}, 31254), ({"$**": 1, "a": 1}, {}, 7246204), ({"$**": 1, "b.$**": 1}, {}, 7246201),
], ids=repr)
def test_indexes_that_there_cannot_be(db, key, options, code):
    with pytest.raises(OperationFailure) as refused:
        db.command("createIndexes", "c", indexes=[{"key": key, "name": "w", **options}])
    assert refused.value.code == code
    assert "c" not in db.list_collection_names()


def test_projections_make_different_indexes(db):
    def add(name, projection):
        return db.command("createIndexes", "c", indexes=[{"key": {"$**": 1}, "name": name, "wildcardProjection": projection}])

    assert add("a", {"a": 1})["numIndexesAfter"] == 2
    assert add("b", {"b": 1, "a": 1})["numIndexesAfter"] == 3
    assert add("a", {"a": True})["numIndexesAfter"] == 3
    for name, projection, code in [("c", {"a": 1.0, "b": 1}, 85), ("a", {"c": 1}, 86)]:
        with pytest.raises(OperationFailure) as refused:
            add(name, projection)
        assert refused.value.code == code
    assert db.c.index_information()["b"]["wildcardProjection"] == {"b": 1, "a": 1}


def test_a_compound_index_refuses_arrays_beside_the_wildcard(db):
    db.c.create_index([("r", 1), ("a.$**", 1)])
    db.c.insert_many([{"_id": 1, "r": 1, "a": {"x": [1, 2]}}, {"_id": 2, "r": 1}, {"_id": 3, "a": {"x": 1}}])
    with pytest.raises(WriteError) as refused:
        db.c.insert_one({"r": [1], "a": {"x": 1}})
    assert refused.value.code == 7246301
    assert [found["_id"] for found in db.c.find({"r": 1, "a.x": 2})] == [1]
    assert plan_of(db.c.find({"r": 1, "a.x": 2}))[-1]["indexBounds"] == {"r": ["[1, 1]"], "$_path": ['["a.x", "a.x"]'], "a.x": ["[2, 2]"]}
    assert sorted(found["_id"] for found in db.c.find({"r": 1})) == [1, 2]
    assert "IXSCAN" in names(db.c.find({"r": 1}))


VALUES = [None, 0, 1, 1.0, Int64(2), 2.5, "a", "b", True, [], [1], [1, "b"], [None], {}, {"y": 1}, {"y": [1, 2]}, [{"y": 1}, {"z": 2}], [[1]], [[{"y": 1}]],
          {"y": {}}, {"y": {"y": 1}}, [{"y": {"y": [1, 2]}}, 5], {"p.q": 1}, [{"p.q": 1}], {"": 1}, {"y": {"": {"y": 1}}}, {"0": 1}, MinKey(), MaxKey(), float("nan")]
INDEXES = [
    ([("$**", 1)], {}), ([("a.$**", 1)], {}), ([("a.y.$**", 1)], {}), ([("$**", 1)], {"wildcardProjection": {"a.y": 0, "b": 0}}),
    ([("$**", 1)], {"wildcardProjection": {"a.y": 1, "x": 1}}), ([("$**", 1)], {"wildcardProjection": {"_id": 1, "x": 0}}),
    ([("$**", 1)], {"partialFilterExpression": {"b": {"$lt": 2}}}), ([("b", 1), ("$**", 1)], {"wildcardProjection": {"b": 0}}),
    ([("a.$**", -1), ("b", -1)], {}), ([("$**", 1), ("b", 1)], {"wildcardProjection": {"x": 1, "a.y": 1}}),
]


def a_test(chance):
    value = chance.choice(VALUES)
    kind = chance.randrange(11)
    if kind < 5:
        return {chance.choice(["$eq", "$gt", "$gte", "$lt", "$lte"]): value}
    return [
        {"$in": [value, chance.choice(VALUES)]}, {"$ne": value}, {"$exists": chance.random() < 0.7},
        {"$type": chance.choice(["number", "int", "string", "object", "array"])}, {"$elemMatch": {"y": chance.choice([1, 2, {"$gt": 0}])}},
        {"$elemMatch": {"$gte": 1, "$lt": chance.choice([2, 9])}},
    ][kind - 5]


def a_filter(chance, depth=2):
    paths = ["a", "x", "x.y", "a.y", "a.y.y", "b", "x.0", "a.", "_id"]
    if depth and chance.random() < 0.3:
        return {chance.choice(["$or", "$and", "$nor"]): [a_filter(chance, depth - 1) for _ in range(2)]}
    return {path: a_test(chance) for path in chance.sample(paths, chance.randint(1, 2))}


def test_no_index_changes_an_answer(db):
    """The same queries with and without each index give the same documents."""
    chance = random.Random(7)
    documents = [{"_id": at, "b": at % 3, **({"a": chance.choice(VALUES)} if chance.random() < 0.9 else {}), **({"x": x} if x != "missing" else {})}
                 for at, x in enumerate(VALUES * 6 + ["missing"] * 6)]
    db.c.insert_many(documents)
    queries = [a_filter(chance) for _ in range(200)]
    sorts = [None, [("a", 1), ("_id", 1)], [("_id", -1)], [("x.y", 1), ("_id", 1)]]

    def answers():
        found = []
        for query, sort in zip(queries, itertools.cycle(sorts)):
            cursor = db.c.find(query)
            ids = [document["_id"] for document in (cursor.sort(sort) if sort else cursor)]
            # One and 1.0 are one value, of which either may come.
            values = sorted(repr(value).replace("1.0", "1") for value in db.c.distinct("a", query))
            covered = sorted(repr(document) for document in db.c.find(query, {"a": 1, "_id": 0}))
            found.append((ids if sort else sorted(ids), db.c.count_documents(query), values, covered))
        return found

    expected = answers()
    for key, options in INDEXES:
        db.c.create_index(key, name="i", **options)
        for at, (found, wanted) in enumerate(zip(answers(), expected)):
            assert found == wanted, (key, options, queries[at])
        assert db.command("validate", "c")["valid"]
        db.c.drop_index("i")


def test_documents_that_come_later_are_found(db):
    """A path that meets its first array, and keys that are too long, after the index was made."""
    db.c.create_index([("$**", 1)])
    db.c.insert_one({"_id": 1, "a": {"b": 5}})
    assert [found["_id"] for found in db.c.find({"a.b": {"$gt": 1, "$lt": 9}})] == [1]
    db.c.insert_one({"_id": 2, "a": {"b": [0, 20]}})
    assert sorted(found["_id"] for found in db.c.find({"a.b": {"$gt": 1, "$lt": 30}})) == [1, 2]
    assert sorted(found["_id"] for found in db.c.find({"a.b": {"$gte": 5, "$lte": 10}})) == [1, 2]
    db.c.insert_many([{"_id": 3, "long": "x" * 5000}, {"_id": 4, "long": "x" * 5000 + "y"}, {"_id": 5, "n" * 3000: {"deep": 1}}])
    assert [found["_id"] for found in db.c.find({"long": "x" * 5000})] == [3]
    assert [found["_id"] for found in db.c.find({"long": {"$gt": "x" * 5000}})] == [4]
    assert [found["_id"] for found in db.c.find({"n" * 3000 + ".deep": 1})] == [5]
    assert sorted(found["_id"] for found in db.c.find({"long": {"$exists": True}}).sort("long", -1)) == [3, 4]
