"""Views: their definitions, the reads that go through them, and all that is refused."""

import bson
import pytest

from both import Order, Texts

DOCUMENTS = [{"_id": at, "a": at % 3, "x": [at, at + 1], "d": {"e": at}} for at in range(12)]


@pytest.fixture
def viewed(both):
    both.same({"insert": "c", "documents": DOCUMENTS})
    both.same({"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]})
    both.same({"create": "v", "viewOn": "c", "pipeline": [{"$match": {"a": 1}}]})
    both.same({"create": "w", "viewOn": "v", "pipeline": [{"$addFields": {"y": {"$add": ["$_id", 1]}}}]})
    both.same({"create": "empty", "viewOn": "nothing", "pipeline": [{"$match": {"a": 1}}]})
    return both


@pytest.mark.parametrize("request_", [
    {"create": "v", "viewOn": "c", "pipeline": [{"$match": {"a": 1}}]}, {"create": "v", "viewOn": "c"}, {"create": "v"}, {"create": "c", "viewOn": "c"},
    {"create": "n", "viewOn": "v", "capped": True, "size": 1000}, {"create": "n", "viewOn": "v", "idIndex": {"key": {"_id": 1}, "name": "_id_"}},
    {"create": "n", "viewOn": "v", "pipeline": {"a": 1}}, {"create": "n", "viewOn": "v", "pipeline": [1]}, {"create": "n", "viewOn": "a$b"},
    {"create": "n", "viewOn": ""}, {"create": "n", "viewOn": 1}, {"create": "n", "pipeline": []}, {"create": "n", "viewOn": "n"},
    {"create": "n", "viewOn": "c", "clusteredIndex": {"key": {"_id": 1}, "unique": True}}, {"create": "n", "viewOn": "c", "expireAfterSeconds": 1},
    {"create": "n", "viewOn": "c", "size": 100}, {"create": "n", "viewOn": "c", "autoIndexId": True}, {"create": "n", "viewOn": "c", "validationLevel": "strict"},
    *({"create": "n", "viewOn": "c", "pipeline": [stage]} for stage in (
        {"$bogus": 1}, {"$out": "z"}, {"$merge": "z"}, {"$facet": {"a": [{"$out": "z"}]}}, {"$currentOp": {}}, {"$collStats": {"count": {}}},
        {"$project": {}}, {"$documents": [{"a": 1}]}, {"$lookup": {"from": "zz", "pipeline": [{"$out": "q"}], "as": "x"}},
        {"$lookup": {"from": "n", "as": "z", "localField": "a", "foreignField": "b"}}, {"$unionWith": "n"}, {"$unionWith": {"coll": "n"}},
        {"$facet": {"f": [{"$unionWith": "n"}]}},
        {"$graphLookup": {"from": "n", "startWith": "$a", "connectFromField": "a", "connectToField": "a", "as": "z"}})),
], ids=repr)
def test_definitions(viewed, request_):
    viewed.same(request_, texts=Texts.IGNORED if "autoIndexId" in request_ else Texts.COMPARED, ignore=["note"])
    viewed.same({"listCollections": 1}, order=Order.FREE)
    viewed.rows({"find": "system.views", "sort": {"_id": 1}})


def test_views_over_one_another_have_a_limit_and_no_cycles(viewed):
    viewed.same({"create": "far", "viewOn": "near"})
    viewed.fails({"create": "near", "viewOn": "far"}, 5, texts=Texts.COMPARED)
    for at in range(22):
        viewed.same({"create": f"n{at}", "viewOn": f"n{at - 1}" if at else "c"}, texts=Texts.COMPARED)
    viewed.same({"find": "n18", "filter": {"_id": 3}})
    viewed.fails({"find": "n19"}, 165, texts=Texts.COMPARED)


@pytest.mark.parametrize("fields", [
    {}, {"filter": {"_id": {"$gt": 1}}, "projection": {"_id": 1}, "sort": {"_id": -1}, "limit": 1}, {"skip": 1, "limit": 2}, {"batchSize": 1},
    {"singleBatch": True}, {"singleBatch": True, "limit": 1}, {"min": {"a": 1}, "hint": {"a": 1}}, {"max": {"a": 1}}, {"noCursorTimeout": True},
    {"allowPartialResults": True}, {"projection": {"x": {"$slice": 1}}}, {"projection": {"x": {"$elemMatch": {"$gt": 1}}}},
    {"filter": {"x": 4}, "projection": {"x.$": 1}}, {"sort": {"$natural": -1}}, {"sort": {"$natural": 1}}, {"hint": {"$natural": 1}},
    {"hint": "nope"}, {"hint": "a_1"}, {"filter": {"$bogus": 1}}, {"projection": {"d.e": 1}}, {"let": {"q": 4}, "filter": {"$expr": {"$eq": ["$_id", "$$q"]}}},
    {"sort": {"d.e": -1}}, {"filter": {"y": 5}}, {"projection": {"a": 0}},
], ids=repr)
@pytest.mark.parametrize("name", ["v", "w", "empty"])
def test_finds(viewed, name, fields):
    viewed.same({"find": name, **fields})


@pytest.mark.parametrize("request_", [
    {"count": "v"}, {"count": "w", "query": {"y": 5}}, {"count": "v", "limit": -1}, {"count": "v", "skip": 1, "limit": 5}, {"count": "v", "query": {"_id": 99}},
    {"count": "empty"}, {"count": "v", "hint": "a_1"}, {"distinct": "empty", "key": "a"},
    {"aggregate": "v", "pipeline": [{"$group": {"_id": "$a", "n": {"$sum": 1}}}], "cursor": {}}, {"aggregate": "w", "pipeline": [{"$match": {"y": {"$gt": 5}}}], "cursor": {}},
    {"aggregate": "empty", "pipeline": [{"$facet": {"a": []}}], "cursor": {}}, {"aggregate": "v", "pipeline": [{"$collStats": {"count": {}}}], "cursor": {}},
    {"aggregate": "v", "pipeline": [{"$collStats": {"storageStats": {}}}], "cursor": {}}, {"aggregate": "v", "pipeline": [{"$out": "v"}], "cursor": {}},
    {"aggregate": "c", "pipeline": [{"$out": "v"}], "cursor": {}}, {"aggregate": "c", "pipeline": [{"$merge": "v"}], "cursor": {}},
    {"aggregate": "v", "pipeline": [{"$out": "new"}], "cursor": {}},
    {"aggregate": "c", "pipeline": [{"$lookup": {"from": "w", "localField": "_id", "foreignField": "y", "as": "z"}}], "cursor": {}},
    {"aggregate": "c", "pipeline": [{"$lookup": {"from": "w", "let": {"i": "$_id"}, "pipeline": [{"$match": {"$expr": {"$lt": ["$y", "$$i"]}}}], "as": "z"}}], "cursor": {}},
    {"aggregate": "c", "pipeline": [{"$lookup": {"from": "v", "localField": "a", "foreignField": "a", "pipeline": [{"$limit": 1}], "as": "z"}}], "cursor": {}},
    {"aggregate": "c", "pipeline": [{"$limit": 1}, {"$unionWith": "w"}], "cursor": {}},
    {"aggregate": "v", "pipeline": [{"$unionWith": {"coll": "w", "pipeline": [{"$match": {"y": {"$lt": 6}}}]}}, {"$sort": {"_id": 1, "y": 1}}], "cursor": {}},
    {"aggregate": "c", "pipeline": [{"$limit": 2}, {"$graphLookup": {"from": "v", "startWith": "$a", "connectFromField": "_id", "connectToField": "_id", "as": "z"}}], "cursor": {}},
    {"aggregate": "empty", "pipeline": [{"$unionWith": "empty"}], "cursor": {}},
], ids=repr)
def test_other_reads(viewed, request_):
    # MongoDB's `ok` of a count and a distinct over a view is an integer.
    viewed.same(request_, ignore=["ok"] if "aggregate" not in request_ else [])
    if any("$out" in stage or "$merge" in stage for stage in request_.get("pipeline", ())):
        viewed.rows({"find": "new", "sort": {"_id": 1}})


def test_the_distinct_values_of_a_view(viewed):
    for key in ("x", "x.0", "a", "d.e", "missing"):
        for query in ({}, {"_id": {"$lt": 6}}):
            replies = [ask({"distinct": "w", "key": key, "query": query}) for ask in (viewed.ask_oracle, viewed.ask_pando)]
            oracle, pando = (sorted(bson.decode(reply)["values"]) for reply in replies)
            assert oracle == pando


@pytest.mark.parametrize("request_", [
    {"insert": "v", "documents": [{"a": 1}]}, {"insert": "v", "documents": [{"a": 1}, {"a": 2}], "ordered": False},
    {"update": "v", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]}, {"update": "v", "updates": [{"q": {"_id": 100}, "u": {"$set": {"a": 1}}, "upsert": True}]},
    {"update": "v", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}] * 2, "ordered": False}, {"delete": "v", "deletes": [{"q": {}, "limit": 1}]},
    {"findAndModify": "v", "query": {}, "remove": True}, {"findAndModify": "v", "query": {"_id": 100}, "update": {"$set": {"a": 1}}, "upsert": True},
    {"insert": "system.views", "documents": [{"_id": "x.zz", "viewOn": "c", "pipeline": []}]},
    {"createIndexes": "v", "indexes": [{"key": {"a": 1}, "name": "a_1"}]}, {"dropIndexes": "v", "index": "*"}, {"listIndexes": "v"}, {"collStats": "v"},
    {"validate": "v"}, {"compact": "v"}, {"collMod": "v", "validator": {}}, {"collMod": "v", "index": {"name": "a_1", "hidden": True}},
    {"collMod": "c", "viewOn": "v", "pipeline": []}, {"collMod": "c", "viewOn": "v"}, {"collMod": "v", "viewOn": ""}, {"collMod": "v", "viewOn": "w", "pipeline": []},
    {"collMod": "v", "viewOn": "c", "pipeline": [{"$out": "x"}]}, {"explain": {"update": "v", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]}},
    {"explain": {"delete": "v", "deletes": [{"q": {}, "limit": 1}]}},
], ids=repr)
def test_refusals(viewed, request_):
    viewed.same(request_, texts=Texts.COMPARED)
    viewed.rows({"find": "c", "sort": {"_id": 1}})
    viewed.same({"listCollections": 1}, order=Order.FREE)


def test_a_view_is_not_renamed_and_takes_no_name_away(viewed):
    admin = viewed.on("admin")
    for source, target, options in (("v", "v2", {}), ("c", "v", {}), ("c", "v", {"dropTarget": True})):
        admin.same({"renameCollection": f"{viewed.name}.{source}", "to": f"{viewed.name}.{target}", **options})
    viewed.same({"listCollections": 1}, order=Order.FREE)


@pytest.mark.parametrize("fields", [{"viewOn": "c", "pipeline": [{"$match": {"a": 2}}]}, {"viewOn": "d"}, {"pipeline": []}, {}], ids=repr)
def test_changes(viewed, fields):
    viewed.same({"collMod": "v", **fields})
    viewed.same({"listCollections": 1}, order=Order.FREE)
    viewed.rows({"find": "w"})


def test_drops(viewed):
    viewed.same({"dbStats": 1}, ignore=["avgObjSize", "dataSize"])
    viewed.same({"drop": "v"})
    viewed.fails({"drop": "v"}, 26)
    viewed.rows({"find": "w"})
    viewed.same({"create": "v"})
    viewed.same({"insert": "v", "documents": [{"_id": 1}]})
    viewed.rows({"find": "w"})
    viewed.same({"drop": "system.views"})
    viewed.same({"listCollections": 1}, order=Order.FREE)
    viewed.same({"dropDatabase": 1})
    viewed.same({"listCollections": 1})


@pytest.mark.parametrize("request_", [
    {"find": "v", "filter": {"_id": 4}}, {"find": "v", "sort": {"a": 1}}, {"aggregate": "v", "pipeline": [{"$limit": 1}], "cursor": {}},
    {"aggregate": "w", "pipeline": [{"$match": {"d.e": 4}}, {"$limit": 1}], "cursor": {}}, {"find": "v", "hint": "_id_"},
], ids=repr)
def test_plans_use_the_indexes_below(viewed, request_):
    viewed.plan(request_)
