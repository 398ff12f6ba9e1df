"""Joins that outgrow their memory, figures of a collection within pipelines, the value from which fields are read, and hashes."""

import hashlib

import pytest
from bson.binary import Binary
from pymongo.errors import OperationFailure

from server import Server

PAD = "x" * 400


@pytest.fixture(scope="module")
def little(tmp_path_factory):
    """A server whose queries have a megabyte together."""
    server = Server(tmp_path_factory.mktemp("little") / "data", "--cache", "64MB", "--query-memory", "1MiB").start()
    yield server
    assert server.stop() == 0, server.log()


@pytest.fixture(scope="module")
def ample(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("ample") / "data").start()
    yield server
    assert server.stop() == 0, server.log()


def fill(server):
    client = server.client()
    db = client.inner
    client.drop_database("inner")
    db.few.insert_many([{"_id": at, "k": at % 50 if at % 7 else [at % 50, at % 11], "v": at % 3} for at in range(400)])
    db.many.insert_many([{"_id": at, "k": at % 700, "w": at % 5, "pad": PAD} for at in range(4000)])
    db.many.insert_many([{"_id": 4000 + at, "k": [at, at + 1], "pad": PAD} for at in range(50)])
    return db


@pytest.mark.parametrize("rest", [
    [],
    [{"$unwind": "$j"}, {"$match": {"j.w": {"$ne": 3}}}],
    [{"$limit": 3}],
], ids=["array", "unwound", "limited"])
@pytest.mark.parametrize("inner", [
    {},
    {"pipeline": [{"$match": {"w": {"$gt": 1}}}, {"$project": {"w": 1}}]},
    {"let": {"v": "$v"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$w", "$$v"]}}}, {"$project": {"w": 1}}]},
], ids=["fields", "pipeline", "variables"])
def test_a_join_that_spills_gives_the_same(little, ample, rest, inner):
    pipeline = [{"$lookup": {"from": "many", "localField": "k", "foreignField": "k", "as": "j", **inner}}, *rest]
    pipeline += [{"$project": {"v": 1, "j": {"$cond": [{"$isArray": "$j"}, "$j._id", "$j._id"]}}}]
    expected = list(fill(ample).few.aggregate(pipeline))
    db = fill(little)
    assert list(db.few.aggregate(pipeline)) == expected
    assert len(expected) >= 3 and any(row["j"] for row in expected)


def test_a_join_that_spills_scans_its_collection_a_few_times(little):
    db = fill(little)
    join = {"$lookup": {"from": "many", "localField": "k", "foreignField": "k", "as": "j"}}
    command = {"aggregate": "few", "pipeline": [join], "cursor": {}}
    explained = db.command("explain", command, verbosity="executionStats")["stages"][-1]
    assert explained["strategy"] == "HashJoin" and explained["nReturned"] == 400
    assert explained["totalDocsExamined"] < 12 * 4050, "not once for each of 400 documents"
    # As in MongoDB a join without disk use searches for each document, and does not fail.
    few = [{"$limit": 20}, join]
    command = {**command, "pipeline": few, "allowDiskUse": False}
    forbidden = db.command("explain", command, verbosity="executionStats")["stages"][-1]
    assert forbidden["strategy"] == "NestedLoopJoin" and forbidden["totalDocsExamined"] >= 20 * 4050
    assert list(db.few.aggregate(few, allowDiskUse=False)) == list(db.few.aggregate(few))


def test_a_comparison_with_a_variable_searches_by_an_index(ample):
    db = fill(ample)
    pipeline = [{"$match": {"$expr": {"$eq": ["$w", "$$v"]}}}, {"$sort": {"_id": 1}}, {"$project": {"_id": 1}}]
    stages = [{"$limit": 5}, {"$lookup": {"from": "many", "let": {"v": "$v"}, "pipeline": pipeline, "as": "j"}}]

    def examined():
        command = {"aggregate": "few", "pipeline": stages, "cursor": {}}
        return db.command("explain", command, verbosity="executionStats")["stages"][-1]["totalDocsExamined"]

    scanned = list(db.few.aggregate(stages))
    assert [len(row["j"]) for row in scanned] == [800] * 5 and examined() == 5 * 4050
    db.many.create_index("w")
    assert list(db.few.aggregate(stages)) == scanned and examined() == 5 * 800


def test_a_planned_join_tells_its_strategy(ample):
    db = fill(ample)
    db.many.create_index("w")

    def strategy(foreign, **options):
        join = {"$lookup": {"from": "many", "localField": "k", "foreignField": foreign, "as": "j"}}
        command = {"aggregate": "few", "pipeline": [join], "cursor": {}, **options}
        return db.command("explain", command, verbosity="queryPlanner")["stages"][-1]["strategy"]

    assert strategy("k") == "HashJoin"
    assert strategy("w") == "IndexedLoopJoin"
    # An index of another collation has no bounds for strings.
    assert strategy("w", collation={"locale": "en", "strength": 1}) == strategy("k", collation={"locale": "en", "strength": 1}) == "HashJoin"


def test_a_join_under_a_collation_hashes_and_spills_as_others_do(little, ample):
    """Strings that the collation holds equal belong together, by a table, in blocks and by a search for each document."""
    joins = {"array": [], "unwound": [{"$unwind": "$j"}]}
    words = ["straße", "STRASSE", "Äpfel", "apfel", "Zebra", "zebra", "x", None, 5]

    def filled(server):
        db = fill(server)
        db.words.drop(), db.texts.drop()
        db.words.insert_many([{"_id": at, "k": words[at % 9], "l": [words[at % 7], at % 3]} for at in range(60)])
        db.texts.insert_many([{"_id": at, "k": words[at * 7 % 9].upper() if at % 2 and isinstance(words[at * 7 % 9], str) else words[at * 7 % 9],
                               "pad": "x" * 3000} for at in range(1500)])  # fmt: skip
        return db

    def joined(db, rest, local, strength, **options):
        join = {"$lookup": {"from": "texts", "localField": local, "foreignField": "k", "as": "j"}}
        stages = [{"$match": {"_id": {"$lt": 6 if options else 60}}}, join, *rest, {"$project": {"j": {"$cond": [{"$isArray": "$j"}, "$j._id", "$j._id"]}}}]
        return list(db.words.aggregate(stages, collation={"locale": "en", "strength": strength}, **options))

    roomy, narrow = filled(ample), filled(little)
    for rest in joins.values():
        for local in ("k", "l"):
            for strength in (1, 2, 3):
                whole = joined(roomy, rest, local, strength)
                assert joined(narrow, rest, local, strength) == whole and len(whole) >= 50
                searched = joined(narrow, rest, local, strength, allowDiskUse=False)
                assert searched == [row for row in whole if row["_id"] < 6]
    # 1 holds all spellings of a word equal, 3 none.
    sizes = [sum(len(row["j"]) for row in joined(roomy, [], "k", strength)) for strength in (1, 2, 3)]
    assert sizes[0] > sizes[1] > sizes[2]


def code_of(run):
    with pytest.raises(OperationFailure) as caught:
        list(run())
    return caught.value.code


def test_figures_of_a_collection_within_a_pipeline(ample):
    db = fill(ample)
    db.many.create_index("w")
    db.one.drop()
    db.one.insert_one({"_id": 1, "k": 1})

    def joined(stage, **options):
        return db.one.aggregate([{"$lookup": {"from": "many", "pipeline": [stage, {"$match": {}}], "as": "j", **options}}])

    [row] = joined({"$indexStats": {}})
    assert sorted(index["name"] for index in row["j"]) == ["_id_", "w_1"]
    [row] = joined({"$collStats": {"count": {}}}, let={"v": "$k"})
    assert [found["count"] for found in row["j"]] == [4050]
    [row] = joined({"$planCacheStats": {}})
    assert row["j"] == []
    names = db.one.aggregate([{"$unionWith": {"coll": "many", "pipeline": [{"$indexStats": {}}, {"$project": {"_id": "$name"}}]}}])
    assert sorted(map(str, (row["_id"] for row in names))) == ["1", "_id_", "w_1"]
    nested = [{"$lookup": {"from": "few", "pipeline": [{"$limit": 1}, {"$lookup": {"from": "many", "pipeline": [{"$indexStats": {}}], "as": "i"}}], "as": "j"}}]
    assert len(next(db.one.aggregate(nested))["j"][0]["i"]) == 2
    assert code_of(lambda: joined({"$collStats": {"count": {}}}, **{"from": "missing"})) == 26
    assert code_of(lambda: joined({"$planCacheStats": {}}, **{"from": "missing"})) == 50933
    assert code_of(lambda: joined({"$indexStats": {}}, localField="k", foreignField="k")) == 40602
    assert code_of(lambda: db.one.aggregate([{"$lookup": {"from": "many", "pipeline": [{"$match": {}}, {"$indexStats": {}}], "as": "j"}}])) == 40602
    for stage, code in [("$indexStats", 40600), ("$collStats", 40600), ("$planCacheStats", 40600),
                        ("$currentOp", 73), ("$listSessions", 73), ("$listLocalSessions", 73)]:
        assert code_of(lambda: db.one.aggregate([{"$facet": {"f": [{stage: {}}]}}])) == code, stage
        inner = {"$lookup": {"from": "many", "pipeline": [{stage: {}}], "as": "j"}}
        assert code_of(lambda: db.one.aggregate([{"$facet": {"f": [inner]}}])) == code, stage
        if code == 73:
            assert code_of(lambda: db.one.aggregate([inner])) == 73, stage


def test_fields_are_read_from_the_value_that_current_is_bound_to(ample):
    db = fill(ample)
    db.one.drop()
    db.one.insert_one({"_id": 1, "a": 1, "b": {"x": 2}})

    def value(expression, **options):
        return next(db.one.aggregate([{"$project": {"v": expression}}], **options)).get("v")

    bound = {"vars": {"CURRENT": "$b"}}
    assert value({"$let": {**bound, "in": ["$x", "$$CURRENT", "$$CURRENT.x", "$$ROOT.a", "$b"]}}) == [2, {"x": 2}, 2, 1, None]
    assert value({"$let": {**bound, "in": {"$let": {"vars": {"CURRENT": "$$ROOT"}, "in": "$a"}}}}) == 1
    assert value({"$let": {"vars": {"CURRENT": {"x": 7}}, "in": "$x"}}) == 7
    assert value({"$let": {"vars": {"CURRENT": "$b", "y": "$a"}, "in": ["$$y", "$x"]}}) == [1, 2]
    assert value({"$map": {"input": [{"x": 1}, {"x": 5}], "as": "CURRENT", "in": "$x"}}) == [1, 5]
    assert value({"$filter": {"input": [{"x": 1}, {"x": 5}], "as": "CURRENT", "cond": {"$gt": ["$x", 2]}}}) == [{"x": 5}]
    assert value(["$x", "$$CURRENT"], let={"CURRENT": {"x": 9}}) == [9, {"x": 9}]
    assert list(db.one.find({"$expr": {"$eq": ["$x", 9]}}, {"_id": 1}, let={"CURRENT": {"x": 9}})) == [{"_id": 1}]
    join = {"$lookup": {"from": "one", "let": {"CURRENT": "$b"}, "pipeline": [{"$project": {"q": "$x", "w": "$$CURRENT", "a": 1}}], "as": "j"}}
    assert next(db.one.aggregate([join]))["j"] == [{"_id": 1, "a": 1, "q": 2, "w": {"x": 2}}]
    for name in ("ROOT", "NOW"):
        assert code_of(lambda: db.one.aggregate([{"$project": {"v": {"$let": {"vars": {name: "$b"}, "in": "$x"}}}}])) == 9


def test_hashes(ample):
    db = fill(ample)
    db.one.drop()
    db.one.insert_one({"_id": 1, "text": "Hello World", "bytes": Binary(b"hey", 4), "number": 3})

    def value(operator, input, algorithm):
        return next(db.one.aggregate([{"$project": {"v": {operator: {"input": input, "algorithm": algorithm}}}}]))["v"]

    for name in ("md5", "sha256"):
        assert value("$hexHash", "$text", name) == hashlib.new(name, b"Hello World").hexdigest().upper()
        assert value("$hash", "$bytes", name) == hashlib.new(name, b"hey").digest()
    assert value("$hexHash", "$text", {"$concat": ["xxh", "64"]}) == "6334D20719245BC2"
    assert value("$hash", "", "xxh64") == bytes.fromhex("EF46DB3751D8E999")
    assert value("$hash", "$missing", "md5") is None
    for input, algorithm, code in [("$number", "md5", 10754000), ("$text", 5, 10754001), ("$text", None, 10754001), ("$text", "XXH64", 10754002)]:
        assert code_of(lambda: [value("$hash", input, algorithm)]) == code
    for argument in ({}, {"input": "a"}, {"algorithm": "md5"}, {"input": "a", "algorithm": "md5", "more": 1}, "a"):
        assert code_of(lambda: db.one.aggregate([{"$project": {"v": {"$hexHash": argument}}}])) == 9
