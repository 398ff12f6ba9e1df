"""Stages that read other collections or none, that write, and those that look into documents: answers and errors."""

import random

import pytest
from bson import Decimal128, Int64, Regex

import sort_order
from both import Order

NODES = [
    {"_id": 1, "name": "Dev"}, {"_id": 2, "name": "Eliot", "to": "Dev"}, {"_id": 3, "name": "Ron", "to": "Eliot"},
    {"_id": 4, "name": "Andrew", "to": ["Eliot", "Ron"]}, {"_id": 5, "name": "Asya", "to": [{"k": "Ron"}, {"k": None}]},
    {"_id": 6, "name": "Loop", "to": "Loop"}, {"_id": 7, "name": None}, {"_id": 8, "to": None}, {"_id": 9, "name": [3, [4]], "to": [[4], 3.0]},
]
LEVELS = [
    {"_id": 1, "l": 1, "a": {"l": 2, "b": {"l": 1}}, "c": [{"l": 1}, {"l": 3}, 5, [{"l": 3}, {"l": 1}]]}, {"_id": 2, "l": 5}, {"_id": 3},
]


@pytest.fixture
def filled(both):
    both.fill("nodes", NODES)
    both.fill("levels", LEVELS)
    return both


def aggregate(collection, *stages, **more):
    return {"aggregate": collection, "pipeline": list(stages), "cursor": {}, **more}


UNIONS = [
    "levels", {"coll": "levels"}, {"coll": "levels", "pipeline": [{"$match": {"l": {"$gt": 1}}}]}, {"pipeline": []}, {}, {"coll": 1},
    {"coll": "levels", "pipeline": 1}, {"coll": "levels", "pipeline": [1]}, {"coll": "levels", "foo": 1}, 5, None, [], "", {"coll": "missing"},
    {"coll": "levels", "pipeline": [{"$out": "z"}]}, {"coll": "levels", "pipeline": [{"$merge": "z"}]}, {"coll": ".b"}, {"coll": "$b"},
    {"pipeline": [{"$documents": [{"q": 1}]}]}, {"coll": "levels", "pipeline": [{"$documents": [{"q": 1}]}, {"$match": {"q": 2}}]},
    {"coll": None, "pipeline": [{"$documents": []}]}, {"pipeline": [{"$match": {}}]}, {"coll": "levels", "pipeline": [{"$foo": {}}]},
    {"coll": "levels", "pipeline": [{"$group": {"_id": None, "n": {"$sum": "$l"}}}, {"$unionWith": "nodes"}]},
    {"coll": "levels", "pipeline": [{"$sort": {"l": -1}}, {"$skip": 1}, {"$limit": 1}]}, {"coll": "levels", "pipeline": [{"$set": {"v": "$$v"}}]},
]


@pytest.mark.parametrize("union", UNIONS, ids=repr)
def test_unions(filled, union):
    filled.same(aggregate("nodes", {"$sort": {"_id": 1}}, {"$unionWith": union}, let={"v": 4}))
    filled.same(aggregate("missing", {"$unionWith": union}, {"$sort": {"_id": 1}}, let={"v": 4}))
    if "$documents" not in repr(union):
        # MongoDB refuses such a union in a facet.
        filled.same(aggregate("nodes", {"$facet": {"f": [{"$unionWith": union}, {"$count": "n"}]}}, let={"v": 4}))


@pytest.mark.parametrize("depth", [18, 19, 20])
@pytest.mark.parametrize("stage", ["$unionWith", "$lookup"])
def test_pipelines_within_one_another(filled, stage, depth):
    rest = []
    for _ in range(depth + 1):
        options = {"coll": "levels"} if stage == "$unionWith" else {"from": "missing", "as": "r"}
        rest = [{stage: {**options, "pipeline": rest}}]
    filled.same(aggregate("missing", *rest), order=Order.FREE)


# ---- Where joins look for values, and where they put what they have found

NESTED = [
    [5, 6], [{"x": 5}, {"x": [7]}], {"0": 9}, [[1, 2], [3]], [], None, [{"0": "z"}, 8], [{"x": []}], [{"x": [[7]]}], {"x": [[7], 8]}, [[{"x": 5}]], [8, {"1": "q"}],
    [8, {"0": "q"}], [[[1, 2]]], Regex("x"), [Regex("x"), 1], {"x": Regex("x")},
]
WANTED = [5, 6, 7, 9, 1, 2, 3, None, [5, 7], "z", 8, [1, 2], [3], {"x": 5}, {"0": "z"}, [7], [], {}, "q", Regex("x"), "x", [Regex("x")], {"1": "q"}]


@pytest.mark.parametrize("local", ["a", "a.0", "a.1", "a.x", "a.0.x", "a.x.0", "a.0.0", "a.1.0", "a.01", "a.-1", "a.+1", "a.0.1", "a.x.0.0", "a.9"])
def test_the_values_that_joins_look_for(both, local):
    both.fill("c", [{"_id": 50}, *({"_id": at, "a": value} for at, value in enumerate(NESTED))])
    both.fill("d", [{"_id": 50}, *({"_id": at, "k": value} for at, value in enumerate(WANTED))])
    join = {"from": "d", "localField": local, "foreignField": "k", "as": "j"}
    for more in ({"pipeline": [{"$sort": {"_id": 1}}]}, {"pipeline": [{"$match": {"_id": {"$gte": 0}}}, {"$sort": {"_id": 1}}]}):
        both.rows(aggregate("c", {"$sort": {"_id": 1}}, {"$lookup": {**join, **more}}))
    both.rows(aggregate("c", {"$sort": {"_id": 1}}, {"$lookup": join}, {"$unwind": "$j"}, {"$sort": {"_id": 1, "j._id": 1}}))
    graph = {"from": "c", "startWith": "$_id", "connectFromField": local, "connectToField": "_id", "as": "g"}
    sorted_graph = {"$set": {"g": {"$sortArray": {"input": "$g", "sortBy": {"_id": 1}}}}}
    both.rows(aggregate("c", {"$sort": {"_id": 1}}, {"$graphLookup": graph}, sorted_graph))
    found = {**graph, "from": "d", "startWith": f"${local}", "connectToField": "k"}
    # MongoDB matches by a regular expression that is searched for alone, and compares one beside other values.
    alone = {"$match": {"_id": {"$ne": NESTED.index([Regex("x"), 1])}}}
    both.rows(aggregate("c", {"$sort": {"_id": 1}}, alone, {"$graphLookup": found}, sorted_graph))


@pytest.mark.parametrize("index", [{}, {"includeArrayIndex": "b.i"}, {"includeArrayIndex": "z.y"}], ids=repr)
def test_what_joins_find_replaces_arrays_on_the_way(both, index):
    values = [[], [{"x": 1}], 5, {"x": 1, "j": 7}, None, {"j": {"k": 1}}, {}, [1, [{"y": 1}]]]
    both.fill("c", [{"_id": 50}, *({"_id": at, "b": value} for at, value in enumerate(values))])
    order = {"$sort": {"_id": 1}}
    for target in ("b", "b.j", "b.j.k", "b.0"):
        by_id = {"localField": "_id", "foreignField": "_id"}
        for join in ({"from": "c", **by_id}, {"from": "missing", **by_id}, {"from": "missing", "pipeline": []}):
            both.rows(aggregate("c", order, {"$lookup": {**join, "as": target}}))
            for preserve in (False, True):
                unwind = {"path": f"${target}", "preserveNullAndEmptyArrays": preserve, **index}
                if target != "b" or not index.get("includeArrayIndex", "").startswith("b"):
                    both.rows(aggregate("c", order, {"$lookup": {**join, "as": target}}, {"$unwind": unwind}))
        graph = {"from": "c", "startWith": "$_id", "connectFromField": "none", "connectToField": "_id", "as": target}
        both.rows(aggregate("c", order, {"$graphLookup": graph}))
        both.rows(aggregate("c", order, {"$graphLookup": {**graph, "as": "g", "depthField": target}}))


UNDEFINED = sort_order.Value(6, b"", None)


@pytest.mark.parametrize("value", [UNDEFINED, [UNDEFINED], [1, UNDEFINED]], ids=["alone", "in an array", "beside a number"])
def test_joins_by_undefined(both, value):
    both.fill("c", [{"_id": 1, "a": value}])
    both.fill("d", [{"_id": 1, "k": None}, {"_id": 2}, {"_id": 3, "k": 1}])
    join = {"from": "d", "localField": "a", "foreignField": "k", "as": "j"}
    for more in ([], [{"$unwind": "$j"}]):
        both.same(aggregate("c", {"$lookup": join}, *more))
    both.same(aggregate("c", {"$lookup": {**join, "pipeline": []}}))
    for depth in ({}, {"maxDepth": 0}):
        both.same(aggregate("c", {"$graphLookup": {"from": "d", "startWith": "$a", "connectFromField": "k", "connectToField": "k", "as": "g", **depth}}))
        both.same(aggregate("d", {"$graphLookup": {"from": "c", "startWith": 1, "connectFromField": "a", "connectToField": "_id", "as": "g", **depth}}, {"$count": "n"}))


@pytest.mark.parametrize("field", ["b", "b.x"])
@pytest.mark.parametrize("start", [None, [None, 3], 3], ids=repr)
def test_a_walk_from_null_passes_undefined_values(both, field, start):
    values = [UNDEFINED, None, [UNDEFINED, 3], [None, 3], [], 3, {"x": UNDEFINED}, {"x": None}, [{"x": None}, {}], {}, [{"x": UNDEFINED}, {"x": None}]]
    both.fill("c", [{"_id": 50}, *({"_id": at, "b": value} for at, value in enumerate(values))])
    walk = {"from": "c", "startWith": start, "connectFromField": "none", "connectToField": field, "as": "g"}
    ordered = {"$project": {"found": {"$sortArray": {"input": "$g._id", "sortBy": 1}}}}
    replies = both.same(aggregate("c", {"$match": {"_id": 50}}, {"$graphLookup": walk}, ordered))
    assert len(replies.documents) == 1


@pytest.mark.parametrize("given", ["$none", "$null", "$number", "$object"])
def test_the_value_of_a_field_is_computed_for_objects_only(both, given):
    both.fill("c", [{"_id": 1, "null": None, "number": 5, "object": {"x": 1}, "text": "a"}])
    for value in ("$text", {"$divide": ["$text", "$text"]}):
        both.same(aggregate("c", {"$project": {"r": {"$setField": {"field": "y", "input": given, "value": value}}}}))


def test_variables_of_a_join_need_a_pipeline(both):
    both.fill("c", [{"_id": 1}])
    join = {"from": "c", "localField": "_id", "foreignField": "_id", "as": "j"}
    for variables in ({}, {"v": 1}):
        both.same(aggregate("c", {"$lookup": {**join, "let": variables}}))
        both.same(aggregate("c", {"$lookup": {**join, "let": variables, "pipeline": []}}))


@pytest.mark.parametrize("stages", [
    [{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"n": {"$documentNumber": {}}}}}],
    [{"$setWindowFields": {"partitionBy": "$none", "sortBy": {"_id": 1}, "output": {"n": {"$documentNumber": {}}}}}],
    [{"$setWindowFields": {"partitionBy": "$none", "sortBy": {"_id": -1}, "output": {"n": {"$documentNumber": {}}}}}],
    [{"$sort": {"none": 1, "_id": 1}}], [{"$sort": {"_id": -1}}], [{"$group": {"_id": None, "t": {"$top": {"output": "$_id", "sortBy": {"_id": 1}}}}}],
    [{"$group": {"_id": None, "t": {"$bottomN": {"n": 9, "output": "$_id", "sortBy": {"_id": 1}}}}}],
], ids=repr)
def test_arrays_at_the_ids_of_groups_in_orders(both, stages):
    both.fill("c", [{"v": value} for value in ([], None, [[1]], [1], 5, [7, 0])])
    both.rows(aggregate("c", {"$group": {"_id": "$v"}}, {"$sort": {"_id": 1}}, *stages))


DOCUMENTS = [
    [{"a": 1}, {"a": 2}], {"$map": {"input": [1, 2], "in": {"q": "$$this"}}}, [], 1, [1], None, "x", "$x", [{"a": "$x"}], "$$ROOT", {"a": 1},
    [{"a": {"$add": [1, 2]}}, {"_id": 1}], {"$literal": [{"z": 1}]}, [None], [[]], [{"a": "$$v"}], [{"a": "$$w"}],
]


@pytest.mark.parametrize("documents", DOCUMENTS, ids=repr)
def test_documents_without_a_collection(filled, documents):
    stage = {"$documents": documents}
    filled.same(aggregate(1, stage, let={"v": 7}))
    filled.same(aggregate(1, stage, {"$match": {"a": {"$gt": 1}}}, {"$count": "n"}, let={"v": 7}))
    filled.same(aggregate("nodes", {"$lookup": {"pipeline": [stage], "as": "r"}}, {"$sort": {"_id": 1}}, let={"v": 7}))
    filled.same(aggregate("nodes", stage))
    filled.same(aggregate("nodes", {"$match": {}}, stage))
    filled.same(aggregate(1, stage, stage))


def test_documents_that_belong_by_fields(filled):
    for local in ("_id", "to", "missing"):
        filled.rows(aggregate("nodes", {"$sort": {"_id": 1}}, {"$lookup": {
            "localField": local, "foreignField": "a", "pipeline": [{"$documents": [{"a": 1}, {"a": "Dev"}, {}]}], "as": "r"}}))


GRAPH = {"from": "nodes", "startWith": "$to", "connectFromField": "to", "connectToField": "name", "as": "h"}
GRAPHS = [
    {}, {"depthField": "d"}, {"maxDepth": 0, "depthField": "d"}, {"maxDepth": 1}, {"maxDepth": 1.0}, {"startWith": "Ron"}, {"startWith": ["$to", "Dev"]},
    {"startWith": {"$literal": None}}, {"startWith": "$to.k", "connectFromField": "to.k"}, {"connectFromField": "to.0"}, {"connectToField": "to"},
    {"restrictSearchWithMatch": {"name": {"$ne": "Dev"}}}, {"restrictSearchWithMatch": {"$expr": {"$eq": ["$name", "$$v"]}}}, {"depthField": "a.b"},
    {"depthField": "name"}, {"startWith": "$$v"}, {"from": "missing"}, {"as": "a.b", "maxDepth": 0}, {"maxDepth": -1}, {"maxDepth": 1.5}, {"maxDepth": "x"},
    {"maxDepth": None}, {"depthField": 1}, {"depthField": "$a"}, {"depthField": ""}, {"restrictSearchWithMatch": 1},
    {"restrictSearchWithMatch": {"$foo": 1}}, {"foo": 1}, {"connectFromField": "$x"}, {"as": "$x"}, {"connectToField": ""}, {"from": 1}, {"as": 1},
    {"connectFromField": 1}, {"connectToField": 1}, {"maxDepth": float("inf")},
]


@pytest.mark.parametrize("change", GRAPHS, ids=repr)
def test_graphs(filled, change):
    # The order of what is found is any.
    ordered = {"$set": {"h": {"$sortArray": {"input": "$h", "sortBy": {"_id": 1}}}}}
    ordered = ordered if change.get("as", "h") == "h" else {"$project": {"n": {"$size": {"$ifNull": ["$a.b", []]}}}}
    filled.same(aggregate("nodes", {"$sort": {"_id": 1}}, {"$graphLookup": {**GRAPH, **change}}, ordered, let={"v": "Ron"}))


@pytest.mark.parametrize("name", list(GRAPH))
def test_a_graph_lacks_a_field(filled, name):
    filled.same(aggregate("nodes", {"$graphLookup": {key: value for key, value in GRAPH.items() if key != name}}))


REDACTIONS = [
    {"$cond": [{"$lte": ["$l", 2]}, "$$DESCEND", "$$PRUNE"]}, "$$KEEP", "$$PRUNE", "$$DESCEND", 1, "x", None,
    {"$cond": [{"$eq": ["$l", 1]}, "$$KEEP", "$$PRUNE"]}, {"$literal": "keep"}, "$l", {"$cond": [{"$gt": ["$$ROOT.l", 4]}, "$$PRUNE", "$$DESCEND"]},
    {"$switch": {"branches": [{"case": {"$eq": ["$l", 3]}, "then": "$$PRUNE"}], "default": "$$DESCEND"}}, "$$foo", {}, [],
    {"$let": {"vars": {"a": "$$KEEP"}, "in": "$$a"}}, "$$CURRENT", {"$cond": [{"$eq": ["$$CURRENT.l", 3]}, "$$PRUNE", "$$DESCEND"]}, {"$foo": 1},
]


@pytest.mark.parametrize("expression", REDACTIONS, ids=repr)
def test_redactions(filled, expression):
    filled.same(aggregate("levels", {"$sort": {"_id": 1}}, {"$redact": expression}))
    filled.same(aggregate("levels", {"$project": {"x": expression}}, {"$sort": {"_id": 1}}))


TARGETS = [
    "o", {}, {"coll": "o"}, {"db": "t2"}, {"db": "t", "coll": "o", "x": 1}, 5, None, "", {"db": 1, "coll": "o"}, "system.users", "$o", "a.$b",
    {"db": "admin", "coll": "o"}, {"db": "config", "coll": "o"}, {"db": "local", "coll": "o"}, ["o"], "nodes", {"db": "", "coll": "o"},
    {"db": "x.y", "coll": "o"}, "system.profile",
]


@pytest.mark.parametrize("target", TARGETS, ids=repr)
def test_out(filled, target):
    filled.same(aggregate("levels", {"$limit": 2}, {"$out": target}))
    for collection in ("o", "nodes"):
        filled.rows({"find": collection, "sort": {"_id": 1}})
    filled.same(aggregate("levels", {"$out": target}, {"$match": {}}))
    filled.same(aggregate("levels", {"$facet": {"a": [{"$out": "o"}]}}))


MATCHED = ["replace", "keepExisting", "merge", "fail", [{"$set": {"q": "$$new.l", "v": "$$v"}}], [], "foo", 1, [1], [{"$match": {}}],
           [{"$set": {"_id": 7}}], [{"$set": {"q": "$$nope"}}]]


@pytest.mark.parametrize("not_matched", ["insert", "discard", "fail", "foo", 1, None], ids=repr)
@pytest.mark.parametrize("matched", MATCHED, ids=repr)
def test_merge_modes(filled, matched, not_matched):
    filled.same({"insert": "m", "documents": [{"_id": 0, "x": "old"}, {"_id": 1, "y": "old", "a": 1}]})
    merge = {"into": "m", "whenMatched": matched, "whenNotMatched": not_matched}
    filled.same(aggregate("levels", {"$match": {"_id": {"$lt": 3}}}, {"$merge": merge}, let={"v": 4}))
    filled.rows({"find": "m", "sort": {"_id": 1}})


@pytest.mark.parametrize("not_matched", ["insert", "discard"])
@pytest.mark.parametrize("matched", ["replace", "keepExisting", "merge", [{"$set": {"q": "$$new.l", "n": {"$add": ["$n", 1]}}}]], ids=repr)
def test_a_merge_of_documents_with_one_key(filled, matched, not_matched):
    merge = {"into": "m", "whenMatched": matched, "whenNotMatched": not_matched}
    two_keys = {"$project": {"_id": {"$mod": ["$_id", 2]}, "l": 1, "n": {"$literal": 1}}}
    filled.same(aggregate("levels", {"$sort": {"_id": 1}}, two_keys, {"$merge": merge}))
    filled.rows({"find": "m", "sort": {"_id": 1}})


MERGES = [
    {"into": {"coll": "m"}}, {"into": {"db": "t"}}, {"into": {}}, {"into": 1}, {}, 5, None, "", {"into": ""}, {"into": "m", "foo": 1},
    {"into": {"coll": "m", "z": 1}}, {"into": "m", "on": "_id"}, {"into": "m", "on": ["_id"]}, {"into": "m", "on": []}, {"into": "m", "on": 1},
    {"into": "m", "on": [1]}, {"into": "m", "on": "x"}, {"into": "m", "on": ["x", "x"]}, {"into": "m", "on": ""}, {"into": "m", "on": "$x"},
    {"into": "m", "on": "k"}, {"into": "m", "on": "k", "whenMatched": "fail"}, {"into": "m", "on": "k", "whenMatched": "replace"},
    {"into": "m", "let": {"a": 1}}, {"into": "m", "whenMatched": [{"$set": {"q": "$$a"}}], "let": {"a": "$l"}},
    {"into": "m", "whenMatched": [{"$set": {"q": "$$new"}}], "let": {"new": "$l"}}, {"into": "m", "let": {"A": 1}, "whenMatched": []},
    {"into": "m", "whenMatched": [{"$set": {"q": "$$new"}}], "let": {"new": "$$ROOT"}}, {"into": "m", "let": 1, "whenMatched": []},
    {"into": "m", "let": None}, {"into": {"db": "admin", "coll": "x"}}, {"into": {"db": "config", "coll": "x"}}, {"into": "system.foo"},
    {"into": {"db": 1, "coll": "x"}}, {"into": {"coll": 1}}, {"into": "$x"},
]


@pytest.mark.parametrize("merge", MERGES, ids=repr)
def test_merges(filled, merge):
    filled.same({"createIndexes": "m", "indexes": [{"key": {"k": 1}, "name": "k", "unique": True}]})
    filled.same({"insert": "m", "documents": [{"_id": 0, "k": 0}, {"_id": 1, "k": 5}]})
    for stages in ([{"$match": {"_id": {"$lt": 3}}}], [{"$match": {"_id": {"$lt": 3}}}, {"$set": {"k": {"$add": ["$_id", 4]}}}],
                   [{"$match": {"_id": 1}}, {"$project": {"_id": 0, "k": "$l"}}, {"$set": {"k": 5}}], [{"$match": {"_id": 1}}, {"$set": {"k": [1]}}]):
        filled.same(aggregate("levels", *stages, {"$merge": merge}))
        filled.rows(aggregate("m", {"$match": {"_id": {"$not": {"$type": "objectId"}}}}, {"$sort": {"_id": 1}}))
    filled.same(aggregate("levels", {"$merge": "m"}, {"$match": {}}))


def test_a_merge_into_its_own_source(filled):
    filled.same(aggregate("levels", {"$set": {"w": 2}}, {"$merge": "levels"}))
    filled.rows({"find": "levels", "sort": {"_id": 1}})


# ---- $bucketAuto

BUCKET_AUTO = [
    1, {}, {"groupBy": "$a"}, {"buckets": 2}, {"groupBy": "$a", "buckets": "x"}, {"groupBy": "$a", "buckets": 0}, {"groupBy": "$a", "buckets": -1},
    {"groupBy": "$a", "buckets": 2.5}, {"groupBy": "$a", "buckets": 1 << 40}, {"groupBy": "a", "buckets": 2}, {"groupBy": 5, "buckets": 2},
    {"groupBy": {"a": "$a"}, "buckets": 2}, {"groupBy": "$a", "buckets": 2, "foo": 1}, {"groupBy": "$a", "buckets": 2, "output": 1},
    {"groupBy": "$a", "buckets": 2, "output": {}}, {"groupBy": "$a", "buckets": 2, "output": {"x": {"$sum": 1}, "y": {"$push": "$s"}}},
    {"groupBy": "$a", "buckets": 2, "output": {"x.y": {"$sum": 1}}}, {"groupBy": "$a", "buckets": 2, "output": {"x": 1}},
    {"groupBy": "$a", "buckets": 2, "output": {"x": {"$push": "$a"}, "_id": {"$sum": 1}}}, {"groupBy": "$a", "buckets": 2, "granularity": 1},
    {"groupBy": "$a", "buckets": 2, "granularity": "foo"}, {"groupBy": "$s", "buckets": 2, "granularity": "R5"}, {"groupBy": "$none", "buckets": 2},
    {"groupBy": "$none", "buckets": 2, "granularity": "R5"}, {"groupBy": {"$subtract": ["$a", 5]}, "buckets": 3, "granularity": "R5"},
    {"groupBy": "$nan", "buckets": 3, "granularity": "R5"}, {"groupBy": "$$ROOT", "buckets": 2}, {"groupBy": "$m", "buckets": 3},
    {"groupBy": "$a", "buckets": Decimal128("3")}, {"groupBy": "$a", "buckets": {"$add": [1, 1]}},
]
GRANULARITIES = "R5 R10 R20 R40 R80 1-2-5 E6 E12 E24 E48 E96 E192 POWERSOF2".split()


@pytest.mark.parametrize("argument", BUCKET_AUTO, ids=repr)
def test_automatic_buckets(both, argument):
    both.fill("c", [{"_id": at, "a": at, "s": f"x{at % 3}", "m": [at, at + 1], "nan": float("nan")} for at in range(10)])
    both.same(aggregate("c", {"$bucketAuto": argument}))
    both.same(aggregate("missing", {"$bucketAuto": argument}))
    both.same(aggregate("c", {"$facet": {"f": [{"$bucketAuto": argument}]}}))


@pytest.mark.parametrize("granularity", [None, *GRANULARITIES])
def test_boundaries_of_automatic_buckets(both, granularity):
    chance = random.Random(str(granularity))
    kinds = [
        lambda: chance.randint(0, 50), lambda: chance.random(), lambda: chance.random() * 10 ** chance.randint(-12, 12),
        lambda: Int64(chance.randint(0, 2**40)), lambda: Decimal128(str(chance.randint(1, 10**6) / 1000)), lambda: chance.choice([0, 1, 10, 16, 25, 100]),
    ]
    for number in range(40):
        kind, size = chance.choice(kinds), chance.choice([1, 2, 3, 5, 17, 40])
        both.fill(f"c{number}", [{"_id": at, "v": kind()} for at in range(size)])
        for buckets in (1, 2, 3, 5, 20):
            stage = {"groupBy": "$v", "buckets": buckets, "output": {"n": {"$sum": 1}, "all": {"$push": "$v"}}}
            both.rows(aggregate(f"c{number}", {"$sort": {"_id": 1}}, {"$bucketAuto": {**stage, **({"granularity": granularity} if granularity else {})}}))


# ---- Stages that tell figures of the server


@pytest.mark.parametrize("stages", [
    [{"$indexStats": 1}], [{"$indexStats": {"a": 1}}], [{"$limit": 1}, {"$indexStats": {}}], [{"$facet": {"f": [{"$indexStats": {}}]}}],
    [{"$planCacheStats": {}}], [{"$planCacheStats": {"a": 1}}], [{"$planCacheStats": 1}], [{"$limit": 1}, {"$planCacheStats": {}}],
    [{"$listSessions": {}}], [{"$listLocalSessions": {}}],
], ids=repr)
def test_figures_of_the_server(both, stages):
    both.fill("nodes", NODES)
    both.same(aggregate("nodes", *stages))
    both.same(aggregate("missing", *stages))
    if stages in ([{"$indexStats": {}}], [{"$planCacheStats": {}}], [{"$listSessions": {}}]):
        both.same(aggregate(1, *stages))


SESSIONS = [
    {"allUsers": True}, {"users": []}, {"users": [{"user": "a", "db": "b"}]}, {"allUsers": 1}, {"x": 1}, 1, {"allUsers": True, "users": []},
    {"allUsers": True, "users": [{"user": "a", "db": "b"}]}, {"users": [{"user": "a"}]}, {"users": 1},
]


@pytest.mark.parametrize("options", SESSIONS, ids=repr)
def test_lists_of_sessions(both, options):
    both.on("config").same(aggregate("system.sessions", {"$listSessions": options}, {"$match": {"_id": None}}))
    both.same(aggregate(1, {"$listLocalSessions": options}, {"$match": {"_id": None}}))


def test_uses_of_indexes(both):
    both.fill("c", [{"_id": at, "a": at, "b": [at, at]} for at in range(20)])
    both.same({"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}, {"key": {"b": -1}, "name": "bb", "partialFilterExpression": {"a": {"$gt": 5}}}]})
    for request in [
        {"find": "c", "filter": {"_id": 5}}, {"find": "c", "filter": {"_id": {"$gt": 5}}}, {"find": "c", "filter": {"a": 5}}, {"find": "c", "sort": {"a": 1}},
        {"update": "c", "updates": [{"q": {"a": 5}, "u": {"$set": {"z": 1}}}]}, {"delete": "c", "deletes": [{"q": {"a": 19}, "limit": 1}]},
        {"find": "c", "filter": {"$or": [{"a": 5}, {"a": 7}]}}, {"distinct": "c", "key": "a"}, {"aggregate": "c", "pipeline": [{"$match": {"a": 3}}], "cursor": {}},
        {"findAndModify": "c", "query": {"a": 3}, "update": {"$set": {"y": 1}}}, {"insert": "c", "documents": [{"_id": 100, "a": 1}]},
    ]:
        both.same(request)
        both.rows(aggregate("c", {"$indexStats": {}}, {"$project": {"host": 0, "accesses.since": 0}}, {"$sort": {"name": 1}}))
    assert both.pando[both.name].command({"aggregate": "missing", "pipeline": [{"$indexStats": {}}], "cursor": {}})["cursor"]["firstBatch"] == []


ELEMENTS = [None, 1, 1.0, Int64(2), "x", [], [1, 2.0, "x"], [[1], {"x": 1}], {"x": 2}, [{"x": 1}, {"x": None}, {"y": [1]}, {"x": [3, 4]}], [None]]


@pytest.fixture
def elements(both):
    chance = random.Random(31)
    rows = []
    for at in range(90):
        row = {"_id": at, "k": at % 4, "w": chance.choice([3, 1, 2.0, None, "a", [5, 0], {"z": 1}]) if at % 9 else None}
        if chance.random() < 0.85:
            row["t"] = chance.choice(ELEMENTS)
        rows.append({**row, "v": at})
    both.fill("elements", rows)
    return both


@pytest.mark.parametrize("preserve", [False, True])
@pytest.mark.parametrize("key", ["$t", "$t.x", "$k", {"k": "$k", "x": "$t.x"}, {"$type": "$t"}, None], ids=repr)
def test_groups_of_elements(elements, key, preserve):
    unwind = {"$unwind": {"path": "$t", "preserveNullAndEmptyArrays": preserve}}
    fields = {"n": {"$sum": 1}, "sum": {"$sum": "$t"}, "v": {"$avg": "$v"}, "x": {"$push": "$t.x"}, "most": {"$max": "$t"}, "first": {"$first": "$v"}, "last": {"$last": "$t"}}
    elements.rows(aggregate("elements", {"$sort": {"_id": 1}}, unwind, {"$group": {"_id": key, **fields}}), order=Order.FREE)


@pytest.mark.parametrize("front", [[], [{"$match": {"v": {"$gt": 20}}}], [{"$unwind": "$w"}], [{"$set": {"v": {"$mod": ["$v", 7]}}}]], ids=repr)
@pytest.mark.parametrize("order", [{"w": 1, "_id": 1}, {"w": -1, "_id": -1}, {"v": -1, "_id": 1}, {"k": 1, "w": 1, "_id": 1}], ids=repr)
def test_ends_of_orders(elements, front, order):
    ends = {"first": {"$first": "$_id"}, "last": {"$last": "$$ROOT"}, "n": {"$sum": 1}, "missing": {"$first": "$t.x"}}
    elements.rows(aggregate("elements", *front, {"$sort": order}, {"$group": {"_id": "$k", **ends}}), order=Order.FREE)
    elements.same(aggregate("elements", *front, {"$sort": {"w": 1, "t": 1}}, {"$group": {"_id": "$k", "v": {"$last": "$v"}}}, {"$count": "n"}))


@pytest.mark.parametrize("levels", [1, 150, 197, 198, 199, 200, 201, 400])
def test_values_nested_deep(elements, levels):
    nested = {"$reduce": {"input": {"$range": [0, levels]}, "initialValue": "$k", "in": ["$$value"]}}
    elements.same(aggregate("elements", {"$match": {"_id": 1}}, {"$project": {"v": nested}}))
    elements.same(aggregate("elements", {"$match": {"_id": 1}}, *[{"$set": {"v": {"a": "$v"}}}] * levels))
    elements.same(aggregate("elements", {"$match": {"_id": 1}}, {"$group": {"_id": 1, "v": {"$push": nested}}}))
