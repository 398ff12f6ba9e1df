"""Exact counters: `count` without a filter, `collStats`, `$collStats`, `dbStats` and `dataSize` show what a scan finds."""

import random
import threading

import pytest
from bson import encode
from pymongo import DeleteOne, InsertOne, ReplaceOne, UpdateOne
from pymongo.errors import BulkWriteError, DuplicateKeyError


def shown(db, name):
    """Documents and bytes as each command shows them."""
    stage = next(db[name].aggregate([{"$collStats": {"count": {}, "storageStats": {}}}]))
    assert stage["count"] == stage["storageStats"]["count"]
    stats = db.command("collStats", name)
    size = db.command("dataSize", f"{db.name}.{name}")
    return {
        "collStats": (stats["count"], stats["size"]),
        "$collStats": (stage["count"], stage["storageStats"]["size"]),
        "dataSize": (size["numObjects"], size["size"]),
    }


def assert_exact(db, names):
    documents_of_all, bytes_of_all = 0, 0
    for name in names:
        documents = list(db[name].find())
        expected = (len(documents), sum(len(encode(document)) for document in documents))
        assert db[name].estimated_document_count() == len(documents)
        assert db.command("count", name)["n"] == len(documents)
        for command, figures in shown(db, name).items():
            assert figures == expected, (name, command)
        average = db.command("collStats", name).get("avgObjSize")
        assert average == (expected[1] // expected[0] if expected[0] else None)
        report = db.command("validate", name)
        assert report["valid"], report["errors"]
        documents_of_all += expected[0]
        bytes_of_all += expected[1]
    stats = db.command("dbStats")
    assert (stats["objects"], stats["dataSize"]) == (documents_of_all, bytes_of_all)


def test_counts_follow_every_statement(db):
    c = db.c
    c.create_index("a")
    c.create_index("s", sparse=True)
    c.create_index("u", unique=True, sparse=True)
    c.insert_many([{"_id": n, "a": list(range(n % 4)), "u": n} for n in range(1500)])
    assert_exact(db, ["c"])
    c.update_many({"_id": {"$lt": 300}}, {"$set": {"a": "x" * 40, "s": 1}})
    assert_exact(db, ["c"])
    c.update_one({"_id": 5000}, {"$set": {"a": [1, 2]}}, upsert=True)
    c.delete_many({"_id": {"$gte": 1000, "$lt": 1200}})
    c.find_one_and_delete({"_id": 3})
    c.find_one_and_replace({"_id": 4}, {"a": None})
    assert_exact(db, ["c"])
    assert c.estimated_document_count() == 1500 + 1 - 200 - 1


def test_a_statement_that_fails_inside_a_batch_counts_nothing(db):
    c = db.c
    c.create_index("u", unique=True)
    c.insert_one({"_id": 1, "u": 1})
    with pytest.raises(BulkWriteError):
        c.insert_many([{"_id": n, "u": n // 2, "pad": "x" * n} for n in range(2, 40)], ordered=False)
    assert_exact(db, ["c"])
    with pytest.raises(BulkWriteError):
        c.bulk_write([InsertOne({"_id": 100, "u": 100}), InsertOne({"_id": 101, "u": 1}), InsertOne({"_id": 102, "u": 102})])
    with pytest.raises(BulkWriteError):
        c.bulk_write([
            UpdateOne({"_id": 100}, {"$set": {"longer": "x" * 99}}), UpdateOne({"_id": 100}, {"$set": {"u": 1, "pad": "x"}}),
            ReplaceOne({"_id": 1}, {"u": 1}), DeleteOne({"_id": 100}),
        ], ordered=False)
    with pytest.raises(DuplicateKeyError):
        c.insert_one({"_id": 1, "u": 7})
    assert_exact(db, ["c"])


def test_count_without_a_filter_keeps_skip_limit_and_hint(db):
    c = db.c
    c.create_index("s", sparse=True)
    c.insert_many([{"_id": n, **({"s": n} if n % 3 == 0 else {})} for n in range(30)])
    for arguments, expected in [
        ({}, 30), ({"query": {}}, 30), ({"skip": 7}, 23), ({"limit": 7}, 7), ({"limit": -7}, 7), ({"limit": 0}, 30),
        ({"skip": 28, "limit": 7}, 2), ({"skip": 40}, 0), ({"skip": 3, "limit": 4}, 4), ({"hint": "_id_"}, 30), ({"hint": "s_1"}, 10),
        ({"limit": 100}, 30), ({"query": {"s": {"$exists": True}}}, 10),
    ]:
        assert db.command("count", "c", **arguments)["n"] == expected, arguments
    assert db.command("count", "nothing")["n"] == 0


def test_a_pipeline_that_only_counts_asks_the_counter(db):
    c = db.c
    c.create_index("s")
    c.insert_many([{"_id": n, "s": n % 3} for n in range(30)])
    number = {"$group": {"_id": 1, "n": {"$sum": 1}}}

    def explained(pipeline, **options):
        command = {"aggregate": "c", "pipeline": pipeline, "cursor": {}, **options}
        stages = db.command("explain", command, verbosity="executionStats")["stages"][0]["$cursor"]
        return stages["queryPlanner"]["winningPlan"]["stage"], stages["executionStats"]["totalDocsExamined"]

    for pipeline, expected in [
        ([number], [{"_id": 1, "n": 30}]),
        ([{"$match": {}}, number], [{"_id": 1, "n": 30}]),
        ([{"$count": "all"}], [{"all": 30}]),
        ([{"$group": {"_id": None, "n": {"$sum": 2}, "m": {"$count": {}}, "a": {"$avg": 4}}}], [{"_id": None, "n": 60, "m": 30, "a": 4.0}]),
    ]:
        assert list(c.aggregate(pipeline)) == expected
        assert explained(pipeline) == ("RECORD_STORE_FAST_COUNT", 0), pipeline
    for pipeline, expected, stage in [
        ([{"$skip": 25}, number], [{"_id": 1, "n": 5}], "SKIP"),
        ([{"$skip": 5}, {"$limit": 7}, {"$count": "n"}], [{"n": 7}], "LIMIT"),
        ([{"$skip": 40}, {"$count": "n"}], [], "SKIP"),
    ]:
        assert list(c.aggregate(pipeline)) == expected
        assert explained(pipeline) == (stage, 0), pipeline
    assert explained([number], hint={"$natural": 1}) == ("COLLSCAN", 30)
    assert explained([{"$group": {"_id": None, "all": {"$push": 1}}}]) == ("COLLSCAN", 30)
    assert list(c.aggregate([{"$group": {"_id": None, "all": {"$push": 1}}}])) == [{"_id": None, "all": [1] * 30}]
    assert [c.count_documents({}), c.count_documents({}, skip=4), c.count_documents({}, skip=4, limit=3)] == [30, 26, 3]
    assert db.nothing.count_documents({}) == 0
    c.delete_many({"s": 1})
    assert c.count_documents({}) == 20 and list(c.aggregate([number])) == [{"_id": 1, "n": 20}]
    c.drop()
    assert c.count_documents({}) == 0


def test_a_count_is_explained_as_mongodb_does(db):
    db.c.insert_many([{"_id": n, "a": n} for n in range(50)])
    winning = lambda **command: db.command("explain", {"count": "c", **command}, verbosity="executionStats")
    for command in ({}, {"query": {}}, {"skip": 5, "limit": 7}):
        explained = winning(**command)
        assert explained["queryPlanner"]["winningPlan"] == {"stage": "RECORD_STORE_FAST_COUNT"}
        figures = explained["executionStats"]
        assert (figures["nReturned"], figures["totalKeysExamined"], figures["totalDocsExamined"]) == (0, 0, 0)
    explained = winning(hint={"$natural": 1})
    assert explained["queryPlanner"]["winningPlan"]["stage"] == "COUNT"
    assert explained["executionStats"]["totalDocsExamined"] == 50


def test_counts_go_with_a_collection_that_is_renamed_and_end_with_one_that_is_dropped(db):
    db.c.insert_many([{"_id": n} for n in range(10)])
    db.d.insert_many([{"_id": n, "a": n} for n in range(3)])
    db.c.rename("e")
    assert_exact(db, ["d", "e"])
    db.e.rename("d", dropTarget=True)
    assert_exact(db, ["d"])
    db.d.drop()
    db.d.insert_one({"_id": 1})
    assert_exact(db, ["d"])
    db.create_collection("empty")
    assert_exact(db, ["d", "empty"])


def test_counts_are_exact_beside_clients_that_write_and_build_indexes(db):
    names, failures = ["c", "d"], []

    def write(seed):
        chance = random.Random(seed)
        try:
            for _ in range(150):
                c = db[chance.choice(names)]
                ids = [chance.randrange(200) for _ in range(chance.randrange(1, 6))]
                if chance.random() < 0.6:
                    c.bulk_write([ReplaceOne({"_id": n}, {"t": list(range(chance.randrange(4))), "pad": "x" * chance.randrange(60)}, upsert=True)
                                  for n in ids])
                else:
                    c.delete_many({"_id": {"$in": ids}})
        except Exception as error:
            failures.append(error)

    for name in names:
        db.create_collection(name)
    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        db.c.create_index("t")
        db.c.drop_index("t_1")
    for thread in threads:
        thread.join()
    assert not failures, failures
    db.d.create_index("t")
    assert_exact(db, names)
