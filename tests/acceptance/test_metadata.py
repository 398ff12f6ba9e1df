"""`$meta` in finds, pipelines, sorts and findAndModify, and `$geoNear` in the pipelines of other stages."""

import pytest

from both import Order

KINDS = ["textScore", "geoNearDistance", "geoNearPoint", "sortKey", "randVal", "indexKey", "recordId", "searchScore", "foo", 3]
TEXT = {"$text": {"$search": "cat"}}
NEAR = {"g": {"$near": {"$geometry": {"type": "Point", "coordinates": [1, 1]}}}}
POINT = {"type": "Point", "coordinates": [1, 1]}
GEO = {"$geoNear": {"near": POINT, "distanceField": "d", "key": "g"}}


@pytest.fixture
def filled(both):
    both.fill("p", [{"_id": n, "g": {"type": "Point", "coordinates": [n * n, n]}, "a": n % 3, "t": "cat dog " + "cat " * n} for n in range(6)])
    both.fill("o", [{"_id": 1, "pt": {"type": "Point", "coordinates": [2, 2]}, "a": 1}, {"_id": 2, "pt": {"type": "Point", "coordinates": [8, 4]}, "a": 2}])
    keys = [{"g": "2dsphere"}, {"t": "text"}, {"a": 1}]
    both.same({"createIndexes": "p", "indexes": [{"key": key, "name": f"i{at}"} for at, key in enumerate(keys)]}, ignore=["commitQuorum"])
    return both




@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "recordId"], ids=repr)
@pytest.mark.parametrize("query", [{}, NEAR, TEXT, {"a": 1}], ids=["all", "near", "text", "index"])
def test_finds(filled, kind, query):
    meta = {"$meta": kind}
    # The order of a search by words is not defined.
    order = Order.FREE if query is TEXT else Order.DEFINED
    for projection in ({"_id": 1, "m": meta}, {"t": 0, "m": meta}, {"m": {"$ifNull": [meta, "none"]}}, {"a": 1, "x.y": meta}):
        filled.same({"find": "p", "filter": query, "projection": projection}, order=order)
        filled.same({"find": "p", "filter": query, "projection": projection, "sort": {"a": 1, "_id": -1}})
        filled.same({"find": "p", "filter": {"_id": 3}, "projection": projection})
    if kind != "randVal":
        filled.same({"find": "p", "filter": query, "projection": {"_id": 1}, "sort": {"m": meta}})
        filled.same({"find": "p", "filter": query, "sort": {"a": 1, "m": meta}, "limit": 3})
    filled.same({"find": "p", "filter": {"$expr": {"$gt": [meta, 1]}}, "projection": {"_id": 1}})


BY_A_AND_ID = [{"$sort": {"a": 1, "_id": -1}}]
# Of two sorts MongoDB makes one, and by another index than here.
NO_COMPARISON = [("sortKey", BY_A_AND_ID, True), ("indexKey", BY_A_AND_ID, True), ("indexKey", [{"$match": {"a": 1}}], True)]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "randVal"], ids=repr)
@pytest.mark.parametrize("first", [[], [GEO], [{"$match": TEXT}], [{"$match": {"a": 1}}], BY_A_AND_ID], ids=["all", "geo", "text", "index", "sort"])
def test_pipelines(filled, kind, first):
    meta = {"$meta": kind}
    for stages in (
        [{"$project": {"m": meta}}], [{"$addFields": {"m": meta}}], [{"$group": {"_id": "$a", "m": {"$max": meta}}}],
        [{"$group": {"_id": "$_id"}}, {"$project": {"m": meta}}], [{"$match": {"$expr": {"$gte": [meta, 0]}}}],
        [{"$sort": {"_id": -1}}, {"$project": {"m": meta}}],
    ):
        if (kind, first, "$sort" in stages[0]) in NO_COMPARISON:
            continue
        # With nothing behind it MongoDB makes the projection a part of its find, which shows record ids.
        filled.rows({"aggregate": "p", "pipeline": [*first, *stages, {"$limit": 100}], "cursor": {}}, order=Order.FREE)
    filled.same({"aggregate": "p", "pipeline": [*first, {"$sort": {"m": meta, "_id": 1}}], "cursor": {}})


# The stages that hand metadata on, and those that lose it.
CARRIED = {
    "unwind": {"$unwind": "$a"}, "lookup": {"$lookup": {"from": "o", "localField": "a", "foreignField": "a", "as": "x"}},
    "replaceRoot": {"$replaceRoot": {"newRoot": {"_id": "$_id", "q": 1}}}, "root": {"$replaceWith": {"r": "$$ROOT", "_id": "$_id"}},
    "project": {"$project": {"a": 1}}, "exclude": {"$project": {"t": 0}}, "unset": {"$unset": "t"}, "addFields": {"$addFields": {"q": "$$ROOT"}},
    "redact": {"$redact": "$$KEEP"}, "descend": {"$redact": "$$DESCEND"}, "graphLookup": {
        "$graphLookup": {"from": "o", "startWith": "$a", "connectFromField": "a", "connectToField": "a", "as": "x"}},
    "bucketAuto": {"$bucketAuto": {"groupBy": "$a", "buckets": 2}}, "count": {"$count": "n"}, "fill": {"$fill": {"output": {"zz": {"value": 1}}}},
    "limit": {"$limit": 10}, "windows": {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"r": {"$sum": 1}}}}, "push": {"$group": {"_id": None, "n": {"$sum": 1}}},
}


BEGINNINGS = {
    "textScore": {"$match": TEXT}, "geoNearDistance": GEO, "geoNearPoint": GEO, "indexKey": {"$match": {"a": 1}}, "sortKey": {"$sort": {"a": 1, "_id": -1}},
}


# Behind a sort MongoDB shows the key of the sort that it puts in front of the windows.
@pytest.mark.parametrize("kind, name", [(kind, name) for kind in BEGINNINGS for name in CARRIED if (kind, name) != ("sortKey", "windows")])
def test_stages_between(filled, kind, name):
    pipeline = [BEGINNINGS[kind], CARRIED[name], {"$addFields": {"M": {"$meta": kind}}}]
    filled.rows({"aggregate": "p", "pipeline": pipeline, "cursor": {}}, order=Order.FREE)


@pytest.mark.parametrize("kind", ["textScore", "geoNearDistance"])
def test_parts_of_stages(filled, kind):
    first = {"textScore": {"$match": TEXT}, "geoNearDistance": GEO}[kind]
    meta = {"$meta": kind}
    for stage in (
        {"$sortByCount": meta}, {"$bucket": {"groupBy": "$a", "boundaries": [0, 5], "output": {"m": {"$max": meta}}}},
        {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"m": {"$first": meta}}}},
        {"$lookup": {"from": "o", "let": {"v": meta}, "pipeline": [{"$project": {"v": "$$v"}}], "as": "x"}},
    ):
        filled.rows({"aggregate": "p", "pipeline": [first, stage], "cursor": {}}, order=Order.FREE)
    filled.same({"aggregate": "p", "pipeline": [first, {"$facet": {"f": [{"$sort": {"_id": 1}}, {"$project": {"m": meta}}], "g": [{"$count": "n"}]}}], "cursor": {}})
    # A pipeline within another one has other documents.
    filled.same({"aggregate": "p", "pipeline": [first, {"$lookup": {"from": "o", "pipeline": [{"$project": {"v": meta}}], "as": "x"}}], "cursor": {}})


def test_random_values(filled):
    pipeline = [{"$sample": {"size": 6}}, {"$addFields": {"m": {"$meta": "randVal"}}}, {"$group": {"_id": None, "n": {"$sum": {"$cond": [{"$and": [{"$gte": ["$m", 0]}, {"$lt": ["$m", 1]}]}, 1, 0]}}}}]
    filled.rows({"aggregate": "p", "pipeline": pipeline, "cursor": {}})


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_find_and_modify(filled, kind):
    meta = {"$meta": kind}
    base = {"findAndModify": "p", "update": {"$set": {"z": 1}}, "fields": {"_id": 1, "m": meta}}
    filled.same({**base, "query": {"_id": 1}})
    filled.same({**base, "query": NEAR})
    filled.same({**base, "query": {}, "sort": {"_id": -1}})
    filled.same({**base, "query": {"a": 1}, "sort": {"a": 1}, "new": True}, ignore=["value._id"])
    filled.same({**base, "query": {"$text": {"$search": "cat"}, "_id": 4}, "new": True})
    filled.same({**base, "query": NEAR, "fields": {"_id": 1}, "sort": {"m": meta}})
    if kind != "randVal":
        filled.same({**base, "query": TEXT, "sort": {"m": meta}})
    filled.same({"findAndModify": "p", "remove": True, "query": {"_id": 5}, "fields": {"_id": 1, "m": meta}})
    filled.same({"findAndModify": "nothing", "remove": True, "query": {}, "fields": {"m": meta}})
    filled.same({"update": "p", "updates": [{"q": {}, "u": [{"$set": {"z": meta}}], "multi": True}]})
    filled.same({"count": "p", "query": {"$expr": {"$gt": [meta, 0]}}})
    filled.rows({"find": "p", "sort": {"_id": 1}})


def near(**fields):
    return {"$geoNear": {"near": POINT, "distanceField": "d", **fields}}


INNER = {
    "plain": [near()], "key": [near(key="g")], "other key": [near(key="zz")], "min": [near(minDistance=100_000)], "max": [near(maxDistance=400_000)],
    "place": [near(includeLocs="L")], "query": [near(query={"a": 1})], "sphere": [near(spherical=True)], "factor": [near(distanceMultiplier=0.5)],
    "dotted": [near(distanceField="x.y", includeLocs="x.z")], "legacy": [near(near=[1, 1], spherical=True), {"$unset": "d"}], "variable": [near(near="$$v")],
    "variable of the query": [near(query={"$expr": {"$eq": ["$a", "$$a"]}})], "no point": [{"$geoNear": {"distanceField": "d"}}], "text": [near(near="x")],
    "number": [near(near=7)], "object": [near(near={"x": 1})], "least of a variable": [near(minDistance="$$a")], "no field": [{"$geoNear": {"near": [1, 1]}}],
    "sorted": [near(), {"$sort": {"_id": -1}}], "meta": [near(), {"$project": {"m": {"$meta": "geoNearDistance"}, "p": {"$meta": "geoNearPoint"}}}],
    "limited": [near(), {"$limit": 2}], "counted": [near(), {"$count": "n"}], "field": [near(near="$pt")],
}


@pytest.mark.parametrize("name", INNER)
def test_searches_in_other_pipelines(filled, name):
    stages, variables = INNER[name], {"v": {"type": "Point", "coordinates": [3, 3]}, "a": 1}
    filled.same({"aggregate": "p", "pipeline": stages, "cursor": {}, "let": variables})
    # MongoDB takes the variables of the first document for those of all in the query.
    only = [{"$match": {"_id": 1}}]
    filled.same({"aggregate": "o", "pipeline": only + [{"$lookup": {"from": "p", "let": {"v": "$pt", "a": "$a"}, "pipeline": stages, "as": "x"}}], "cursor": {}})
    filled.same({"aggregate": "o", "pipeline": [{"$unionWith": {"coll": "p", "pipeline": stages}}], "cursor": {}, "let": variables})


def test_searches_that_have_no_place(filled):
    stages = [near()]
    filled.fails({"aggregate": "p", "pipeline": [{"$facet": {"f": stages}}], "cursor": {}}, 40600)
    filled.same({"aggregate": "o", "pipeline": [{"$lookup": {"from": "p", "localField": "a", "foreignField": "a", "pipeline": stages, "as": "x"}}], "cursor": {}})
    filled.same({"aggregate": "p", "pipeline": [{"$match": {"a": 1}}, near()], "cursor": {}})


def test_searches_without_an_index(filled):
    for stage in ({"$lookup": {"from": "nothing", "pipeline": [near()], "as": "x"}}, {"$unionWith": {"coll": "nothing", "pipeline": [near()]}},
                  {"$lookup": {"from": "o", "pipeline": [near()], "as": "x"}}, near()):
        filled.same({"aggregate": "o", "pipeline": [stage], "cursor": {}})
    filled.same({"aggregate": "nothing", "pipeline": [near()], "cursor": {}})
    filled.same({"find": "p", "filter": {**NEAR, **TEXT}})
    filled.same({"find": "p", "filter": NEAR, "sort": {"m": {"$meta": "textScore"}}, "projection": {"m": {"$meta": "textScore"}}})
