"""Indexes with PyMongo: building, uniqueness, plans that use them, answers that do not depend on them."""

import random

import pytest
from bson import Decimal128, Int64, MaxKey, MinKey
from pymongo import ASCENDING, DESCENDING, IndexModel
from pymongo.errors import DuplicateKeyError, OperationFailure


def stages(plan):
    while plan:
        yield plan["stage"]
        plan = plan.get("inputStage") or (plan.get("inputStages") or [None])[0]


def plan_of(cursor):
    return list(stages(cursor.explain()["queryPlanner"]["winningPlan"]))


def test_indexes_are_listed_as_they_were_made(db):
    db.c.create_indexes([IndexModel([("a", ASCENDING), ("b", DESCENDING)]), IndexModel("u", unique=True, sparse=True)])
    assert db.c.index_information() == {
        "_id_": {"v": 2, "key": [("_id", 1)]},
        "a_1_b_-1": {"v": 2, "key": [("a", 1), ("b", -1)]},
        "u_1": {"v": 2, "key": [("u", 1)], "unique": True, "sparse": True},
    }
    db.c.drop_index("u_1")
    db.c.drop_indexes()
    assert list(db.c.index_information()) == ["_id_"]


def test_a_unique_index_refuses_the_second_and_names_the_key(db):
    db.c.create_index("k", unique=True)
    db.c.insert_one({"_id": 1, "k": 1})
    with pytest.raises(DuplicateKeyError) as refused:
        db.c.insert_one({"_id": 2, "k": 1.0})
    assert refused.value.details["keyValue"] == {"k": 1.0}
    assert "index: k_1 dup key: { k: 1.0 }" in refused.value.details["errmsg"]
    db.c.insert_one({"_id": 3})
    with pytest.raises(DuplicateKeyError):
        db.c.insert_one({"_id": 4})
    db.c.insert_one({"_id": 5, "k": [7, 7]})
    with pytest.raises(DuplicateKeyError):
        db.c.update_one({"_id": 1}, {"$set": {"k": 7}})
    db.c.delete_one({"_id": 5})
    db.c.update_one({"_id": 1}, {"$set": {"k": 7}})


def test_building_a_unique_index_over_duplicates_fails_and_leaves_no_index(db):
    db.c.insert_many([{"k": 1}, {"k": 1}])
    with pytest.raises(DuplicateKeyError):
        db.c.create_index("k", unique=True)
    assert list(db.c.index_information()) == ["_id_"]


def test_parallel_arrays_are_refused(db):
    db.c.create_index([("a", 1), ("b", 1)])
    with pytest.raises(OperationFailure) as refused:
        db.c.insert_one({"a": [1], "b": [2]})
    assert refused.value.code == 171


def test_plans_use_indexes_for_equality_ranges_sorts_and_covered_queries(db):
    db.c.insert_many([{"_id": i, "a": i % 10, "b": i, "c": "x"} for i in range(100)])
    db.c.create_index([("a", 1), ("b", -1)])
    assert plan_of(db.c.find({"_id": 5})) == ["IDHACK"]
    assert plan_of(db.c.find({"c": "x"})) == ["COLLSCAN"]
    assert plan_of(db.c.find({"a": 3})) == ["FETCH", "IXSCAN"]
    assert plan_of(db.c.find({"a": 3, "b": {"$gt": 50}})) == ["FETCH", "IXSCAN"]
    assert "SORT" not in plan_of(db.c.find({"a": 3}).sort("b", -1))
    assert "SORT" not in plan_of(db.c.find({"a": 3}).sort("b", 1))
    assert "SORT" in plan_of(db.c.find({"a": 3}).sort("c", 1))
    covered = plan_of(db.c.find({"a": 3}, {"_id": 0, "b": 1}))
    assert "FETCH" not in covered and "IXSCAN" in covered
    assert [d["b"] for d in db.c.find({"a": 3}, {"_id": 0, "b": 1}).sort("b", 1)] == list(range(3, 100, 10))


def test_a_covered_query_gives_back_the_exact_types(db):
    values = [1, Int64(1), 1.0, Decimal128("1.00"), "x", None, -0.0, Decimal128("0.10"), 2.5, Int64(2**60)]
    db.c.insert_many([{"_id": i, "v": value} for i, value in enumerate(values)])
    db.c.create_index("v")
    found = list(db.c.find({"v": {"$gte": -10**9}}, {"_id": 0, "v": 1}).hint("v_1"))
    shown = sorted((type(d["v"]).__name__, str(d["v"])) for d in found)
    expected = sorted((type(v).__name__, str(v)) for v in values if v is not None and v != "x")
    assert shown == expected


def test_answers_are_the_same_with_and_without_indexes(db):
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    values = [None, 0, 1, 2.5, "a", "b", [], [1], [1, 5], [[1]], {"y": 1}, [{"y": 1}, {"y": 2}], True, -3, 10]

    def document(i):
        made = {"_id": i}
        for field in "ab":
            if chance.random() < 0.8:
                made[field] = chance.choice(values)
        if isinstance(made.get("a"), list):
            made["b"] = i
        return made

    documents = [document(i) for i in range(400)]
    db.plain.insert_many(documents)
    db.indexed.create_indexes([IndexModel([("a", 1)]), IndexModel([("b", -1)]), IndexModel([("a", 1), ("b", 1)]), IndexModel([("a.y", 1)])])
    db.indexed.insert_many(documents)
    db.built.insert_many(documents)
    db.built.create_indexes([IndexModel([("b", 1), ("a", -1)]), IndexModel([("a", -1)], sparse=True)])
    operators = ["$eq", "$gt", "$gte", "$lt", "$lte", "$ne"]
    for _ in range(300):
        path = chance.choice(["a", "b", "a.y"])
        query = {path: {chance.choice(operators): chance.choice(values)}}
        if chance.random() < 0.5:
            query[chance.choice(["b", "a"])] = {"$in": chance.sample(values, 3)}
        if chance.random() < 0.3:
            query[path] = {"$exists": chance.random() < 0.5}
        expected = [d["_id"] for d in db.plain.find(query).sort("_id", 1)]
        for name in ("indexed", "built"):
            found = [d["_id"] for d in db[name].find(query).sort("_id", 1)]
            assert found == expected, (seed, name, query)


def test_index_entries_follow_updates_and_deletes(db):
    db.c.create_index("tags")
    db.c.insert_many([{"_id": i, "tags": [i, i + 1]} for i in range(50)])
    db.c.update_many({"_id": {"$lt": 25}}, {"$push": {"tags": 1000}})
    db.c.delete_many({"_id": {"$gte": 40}})
    assert db.c.count_documents({"tags": 1000}) == 25
    assert db.c.count_documents({"tags": 45}) == 0
    assert [d["_id"] for d in db.c.find({"tags": 10}).sort("_id", 1)] == [9, 10]
    db.c.update_many({}, {"$pull": {"tags": 1000}})
    assert db.c.count_documents({"tags": 1000}) == 0


def test_conflicting_specifications_are_refused(db):
    db.c.create_index("a", name="n")
    for keys, options, code in [("a", {"name": "m"}, 85), ("b", {"name": "n"}, 86), ("a", {"name": "n", "unique": True}, 86)]:
        with pytest.raises(OperationFailure) as refused:
            db.c.create_index(keys, **options)
        assert refused.value.code == code, refused.value
    db.c.create_index("a", name="n")


@pytest.mark.parametrize("keys, document, paths", [
    (["a.b"], {"a": [{"b": 1}]}, {"a.b": ["a"]}),
    (["a.b"], {"a": {"b": [1]}}, {"a.b": ["a.b"]}),
    (["a.b"], {"a": [{"b": [1]}]}, {"a.b": ["a", "a.b"]}),
    (["a.b.c"], {"a": [{"b": {"c": [1, 2]}}]}, {"a.b.c": ["a", "a.b.c"]}),
    (["a.b", "a.c"], {"a": {"b": [1]}}, {"a.b": ["a.b"], "a.c": []}),
    (["a.0"], {"a": [1, 2]}, {"a.0": []}),
    (["a.0.b"], {"a": [[{"b": 1}]]}, {"a.0.b": ["a.0"]}),
    (["a.b"], {"a": []}, {"a.b": ["a"]}),
])
def test_explain_says_at_which_components_of_a_path_arrays_stood(db, keys, document, paths):
    db.c.create_index([(key, 1) for key in keys], name="i")
    db.c.insert_one(document)
    stage = db.c.find({}).hint("i").explain()["queryPlanner"]["winningPlan"]
    while stage["stage"] != "IXSCAN":
        stage = stage["inputStage"]
    assert stage["multiKeyPaths"] == paths
    assert stage["isMultiKey"] == any(paths.values())


def test_an_index_with_arrays_covers_counts_and_the_fields_beside_them(db):
    c = db.c
    c.create_index([("tags", 1), ("n", 1)])
    c.insert_many([{"_id": i, "tags": [i % 3, 5, i % 7], "n": i % 10} for i in range(100)])
    count = {"count": "c", "query": {"tags": {"$gte": 0}}}
    explained = db.command("explain", count, verbosity="executionStats")
    assert explained["queryPlanner"]["winningPlan"]["inputStage"]["stage"] == "COUNT_SCAN"
    assert explained["executionStats"]["totalDocsExamined"] == 0
    assert db.command(count)["n"] == 100 and c.count_documents({"tags": {"$gte": 0}}) == 100
    found = c.find({"tags": 5, "n": {"$gt": 7}}, {"n": 1, "_id": 0})
    assert found.explain()["executionStats"]["totalDocsExamined"] == 0
    assert sorted(d["n"] for d in found) == [8] * 10 + [9] * 10
    assert c.distinct("n", {"tags": 5}) == list(range(10))
    assert next(c.find({"tags": 2, "n": 3}, {"tags": 1, "_id": 0}))["tags"][1] == 5


def test_one_element_of_an_outer_array_is_met_by_two_of_an_inner_one(db):
    c = db.c
    c.create_index([("a.x.b", 1), ("a.x.c", 1)])
    c.insert_many([{"_id": 1, "a": [{"x": [{"b": 1, "c": 9}, {"b": 9, "c": 2}]}]}, {"_id": 2, "a": [{"x": [{"b": 1, "c": 2}]}]}])
    found = lambda filter: [d["_id"] for d in c.find(filter).sort("_id", 1)]
    assert found({"a": {"$elemMatch": {"x.b": 1, "x.c": 2}}}) == [1, 2]
    assert found({"a.x": {"$elemMatch": {"b": 1, "c": 2}}}) == [2]


@pytest.mark.parametrize("operator", ["$gt", "$gte", "$lt", "$lte", "$eq"])
@pytest.mark.parametrize("key", [MinKey(), MaxKey()], ids=["least", "greatest"])
def test_a_comparison_with_an_end_of_all_keys_finds_what_a_scan_finds(db, operator, key):
    db.c.insert_many([{"_id": 0}, {"_id": 1, "a": []}, {"_id": 2, "a": [1]}, {"_id": 3, "a": [{}]}, {"_id": 4, "a": {"b": []}}, {"_id": 5, "a": {"b": 1}},
                      {"_id": 6, "a": [[]]}, {"_id": 7, "a": [{"b": []}]}, {"_id": 8, "a": 5}, {"_id": 9, "a": {"b": MinKey()}}, {"_id": 10, "a": {"b": MaxKey()}}])
    db.c.create_index("a.b")
    for condition in ({operator: key}, {"$not": {operator: key}}):
        scanned = {document["_id"] for document in db.c.find({"a.b": condition}, hint={"$natural": 1})}
        for options in ({}, {"hint": "a.b_1"}):
            assert {document["_id"] for document in db.c.find({"a.b": condition}, **options)} == scanned, (condition, options)
