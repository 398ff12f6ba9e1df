"""Index filters and the commands of the plan cache: replies, refusals, and which queries have a filter's shape."""

import pytest

from both import Texts

DOCUMENTS = [{"_id": at, "a": at % 4, "b": at, "s": f"x{at % 3}", "m": [at, at + 1]} for at in range(50)]
KEYS = [{"a": 1}, {"b": 1}, {"s": 1}, {"m": 1}, {"a": 1, "b": 1}]


@pytest.fixture
def filtered(both):
    both.same({"insert": "c", "documents": DOCUMENTS})
    both.same({"createIndexes": "c", "indexes": [{"key": key, "name": "_".join(key)} for key in KEYS]})
    both.same({"create": "v", "viewOn": "c", "pipeline": []})
    return both


@pytest.mark.parametrize("request_", [
    *({"planCacheSetFilter": name, **rest} for name in ("c", "nope", "v") for rest in (
        {}, {"query": 1}, {"query": {"a": 1}}, {"query": {"a": 1}, "indexes": 1}, {"query": {"a": 1}, "indexes": []}, {"indexes": ["a"]},
        {"query": {"a": 1}, "indexes": [1]}, {"query": {"a": 1}, "indexes": [""]}, {"query": {"a": 1}, "indexes": [{}]},
        {"query": {"a": 1}, "indexes": [["a"]]}, {"query": {"a": 1}, "indexes": [None]}, {"query": 1, "indexes": ["a"]},
        {"query": {"$bad": 1}, "indexes": ["a"]}, {"query": {"a": 1}, "indexes": ["a"], "unknown": 1})),
    *({"planCacheSetFilter": "c", "query": {"a": 1}, "indexes": ["a"], **shape} for shape in (
        {"sort": 1}, {"sort": {"a": "x"}}, {"sort": {"$natural": 1}}, {"projection": 1}, {"projection": {"a": 1, "b": 0}}, {"collation": 1},
        {"collation": {}}, {"collation": {"locale": "zz"}}, {"collation": {"locale": "de"}}, {"writeConcern": {"w": 1}},
        {"readConcern": {"level": "majority"}}, {"comment": "why"})),
    *({"planCacheSetFilter": "c", "query": query, "indexes": ["a"]} for query in (
        {"$text": {"$search": "x"}}, {"$expr": {"$eq": ["$$x", 1]}}, {"a": {"$near": [0, 0]}}, {})),
    *({name: value, **shape} for name in ("planCacheClear", "planCacheClearFilters") for value in ("c", "nope", "v", 1, "") for shape in (
        {}, {"query": 1}, {"query": {"z": 1}}, {"query": {"$bad": 1}}, {"sort": {"z": 1}}, {"projection": {"z": 1}}, {"collation": {"locale": "de"}},
        {"query": {"a": 1}, "sort": 1}, {"query": {"a": 1}, "collation": {}}, {"unknown": 1})),
    *({"planCacheListFilters": value} for value in ("c", "nope", "v", 1, "a$b")), {"planCacheListFilters": "c", "unknown": 1},
    {"planCacheSetFilter": 1, "query": {"a": 1}, "indexes": ["a"]},
], ids=repr)
def test_requests(filtered, request_):
    filtered.same(request_, texts=Texts.COMPARED)


def plan_of(client, name, find):
    """Whether a filter was applied, and the indexes of the plan."""
    told = client[name].command({"explain": {"find": "c", **find}, "verbosity": "queryPlanner"})["queryPlanner"]
    plan, indexes = told["winningPlan"], set()
    below = [plan]
    while below:
        stage = below.pop()
        below += [stage["inputStage"]] if "inputStage" in stage else stage.get("inputStages", [])
        indexes |= {stage["indexName"]} if "indexName" in stage else set()
    return told["indexFilterSet"], indexes if told["indexFilterSet"] else None


BASES = [
    ({"a": 1}, {}), ({"a": {"$in": [1, 2]}}, {}), ({"a": 1}, {"projection": {"a": 1, "_id": 0}}), ({"a": 1}, {"sort": {"b": 1}}),
    ({"a": 1, "b": {"$gt": 1}}, {}), ({"$or": [{"a": 1, "b": 2}, {"s": "x"}]}, {}), ({"a": {"$not": {"$gt": 1}}}, {}),
    ({"a": {"$elemMatch": {"x": 1}}}, {}), ({"a": {"$regex": "x"}}, {}), ({}, {}), ({"_id": 1, "a": 1}, {}),
    ({"_id": 1}, {}), ({"a": 1}, {"collation": {"locale": "de"}}),
]
FINDS = [
    *({"filter": {"a": value}} for value in (2, None, [1], {"x": 1}, {"$eq": 1}, {"$in": [1]}, {"$in": [1, 2]}, {"$in": []}, {"$nin": [1, 2]},
      {"$gte": 1}, {"$regex": "y"}, {"$regex": "y", "$options": "i"}, {"$exists": True}, {"$exists": False}, {"$type": "int"}, {"$mod": [2, 0]},
      {"$not": {"$gt": 2}}, {"$not": {"$lt": 2}}, {"$ne": 1}, {"$elemMatch": {"x": 2}}, {"$elemMatch": {"y": 2}}, {"$elemMatch": {"$gt": 2}})),
    *({"filter": {"a": 2}, **rest} for rest in (
        {"limit": 1}, {"skip": 1}, {"projection": {"a": 1}}, {"projection": {"_id": 0, "a": 1}}, {"projection": {"a": 0}}, {"projection": {"b": 1}},
        {"projection": {"m": {"$slice": 1}}}, {"sort": {"b": 1}}, {"sort": {"b": -1}}, {"sort": {"b": 1, "s": 1}}, {"sort": {"$natural": 1}},
        {"hint": {"$natural": 1}}, {"hint": "a"}, {"collation": {"locale": "de"}}, {"collation": {"locale": "fr"}}, {"collation": {"locale": "simple"}})),
    *({"filter": filter} for filter in (
        {}, {"a": 1, "b": 1}, {"b": {"$gt": 5}, "a": 7}, {"$and": [{"b": {"$gt": 5}}, {"a": 7}]}, {"$and": [{"a": 1}]}, {"$or": [{"a": 1}]},
        {"$or": [{"a": 1}, {"a": 2}]}, {"$or": [{"s": "y"}, {"b": 1, "a": 2}]}, {"$or": [{"s": "y"}, {"a": 2}]}, {"_id": 1}, {"_id": 2, "a": 5})),
    {"filter": {"_id": 2}, "skip": 1}, {"filter": {"_id": 2}, "hint": "_id_"}, {"filter": {"_id": 2}, "sort": {"a": 1}},
]


@pytest.mark.parametrize("query, shape", BASES, ids=repr)
@pytest.mark.parametrize("indexes", [["s"], ["a_b", {"b": 1}]], ids=repr)
def test_shapes(filtered, query, shape, indexes):
    filtered.same({"planCacheSetFilter": "c", "query": query, "indexes": indexes, **shape})
    for find in FINDS:
        oracle, pando = (plan_of(client, filtered.name, find) for client in (filtered.oracle, filtered.pando))
        assert pando == oracle, find
        filtered.rows({"find": "c", **find, "sort": find.get("sort", {"_id": 1})} if "hint" not in find else {"find": "c", **find})
