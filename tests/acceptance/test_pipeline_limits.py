"""Limits of pipelines: their length, their nesting, and documents that become too large."""

import pytest
from bson.son import SON

from both import Order

PART = 1_000_000
TEXT = "x" * PART


def aggregate(collection, *stages, **more):
    return {"aggregate": collection, "pipeline": list(stages), "cursor": {}, **more}


@pytest.fixture
def filled(both):
    both.fill("c", [{"_id": 1, "k": 1}])
    return both


# ---- 1,000 stages

FILLERS = {"$set": {"a": 1}, "$skip": 0, "$limit": 5, "$match": {"k": {"$ne": 3}}}


@pytest.mark.parametrize("name", FILLERS)
@pytest.mark.parametrize("length", [999, 1000, 1001, 5000])
def test_a_pipeline_has_a_thousand_stages_at_most(filled, name, length):
    filled.same(aggregate("c", *[{name: FILLERS[name]}] * length))


@pytest.mark.parametrize("length", [1000, 1001])
def test_so_has_each_pipeline_within_another(filled, length):
    many = [{"$set": {"a": 1}}] * length
    for stage in (
        {"$facet": {"f": many}},
        {"$facet": {"f": many, "g": many}},
        {"$lookup": {"from": "c", "as": "j", "pipeline": many}},
        # MongoDB counts the condition on the fields as a stage.
        {"$lookup": {"from": "c", "localField": "k", "foreignField": "k", "as": "j", "pipeline": many[:-1] if length == 1000 else many}},
        {"$unionWith": {"coll": "c", "pipeline": many}},
        {"$merge": {"into": "target", "whenMatched": many}},
    ):
        filled.same(aggregate("c", stage))
        filled.same(aggregate("missing", stage))


@pytest.mark.parametrize("length", [1000, 1001])
def test_so_has_the_pipeline_of_an_update(filled, length):
    update = [{"$set": {"a": 1}}] * length
    filled.same({"update": "c", "updates": [{"q": {"_id": 1}, "u": update}]})
    filled.same({"findAndModify": "c", "query": {"_id": 1}, "update": update})


def test_the_stages_of_a_view_count_with_those_of_the_request(filled):
    half = [{"$set": {"a": 1}}] * 600
    for length in (1000, 1001):
        filled.same({"create": f"v{length}", "viewOn": "c", "pipeline": [{"$set": {"a": 1}}] * length})
    filled.same({"create": "half", "viewOn": "c", "pipeline": half})
    filled.same(aggregate("half", *half[:400]))
    filled.same(aggregate("half", *half[:401]))
    filled.same({"create": "whole", "viewOn": "half", "pipeline": half})
    filled.same({"find": "whole"})


@pytest.mark.parametrize("length", [900, 1001])
def test_a_pipeline_over_no_collection_has_a_limit(filled, length):
    # MongoDB counts the stages that it writes $documents out as.
    stages = [{"$documents": [{"k": 1}]}, *[{"$set": {"a": 1}}] * length]
    filled.same({"aggregate": 1, "pipeline": stages, "cursor": {}})


# ---- 20 pipelines within one another


def nested(stage, depth):
    rest = []
    for _ in range(depth):
        options = {"$unionWith": {"coll": "c"}, "$lookup": {"from": "c", "as": "r"}}[stage]
        rest = [{stage: {**options, "pipeline": rest}}]
    return rest


@pytest.mark.parametrize("depth", [19, 20, 21])
@pytest.mark.parametrize("stage", ["$unionWith", "$lookup"])
def test_pipelines_over_no_collection_and_in_facets_nest_as_deep_as_others(filled, stage, depth):
    rest = nested(stage, depth)
    filled.same({"aggregate": 1, "pipeline": [{"$documents": [{"k": 1}]}, *rest], "cursor": {}}, order=Order.FREE)
    filled.same(aggregate("missing", {"$facet": {"f": rest}}))


def test_views_upon_views_and_pipelines_within_them_nest_together(filled):
    for depth in (18, 19):
        filled.same({"create": f"v{depth}", "viewOn": "missing", "pipeline": nested("$lookup", depth)})
        filled.same({"find": f"v{depth}"})
        filled.same(aggregate("missing", {"$lookup": {"from": f"v{depth}", "as": "j", "pipeline": []}}))
        filled.same(aggregate("c", {"$lookup": {"from": f"v{depth}", "as": "j", "pipeline": []}}))


# ---- 16 MB

ALL = {"$group": {"_id": None, "all": {"$push": "$text"}}}
JOIN = {"$lookup": {"from": "large", "localField": "k", "foreignField": "k", "as": "j"}}
COUNT = {"$project": {"_id": 0, "n": {"$size": "$all"}}}
LARGE = {
    "pushed": [ALL],
    "pushed and counted": [ALL, COUNT],
    "pushed and sorted": [ALL, {"$sort": {"_id": 1}}, COUNT],
    "pushed and unwound": [ALL, {"$unwind": "$all"}, {"$count": "n"}],
    "the whole documents": [{"$group": {"_id": None, "all": {"$push": "$$ROOT"}}}],
    "in a facet": [{"$facet": {"f": [{"$match": {}}]}}],
    "in a facet and counted": [{"$facet": {"f": [{"$match": {}}]}}, {"$project": {"n": {"$size": "$f"}}}],
    "in a facet and unwound": [{"$facet": {"f": [{"$match": {}}]}}, {"$unwind": "$f"}, {"$project": {"_id": "$f._id"}}],
    "in two facets": [{"$facet": {"f": [{"$limit": 9}], "g": [{"$limit": 9}]}}],
    "pushed in a facet": [{"$facet": {"f": [ALL]}}],
    "pushed and counted in a facet": [{"$facet": {"f": [ALL, COUNT]}}],
    "the length of a text": [{"$limit": 1}, {"$project": {"_id": 0, "s": {"$strLenBytes": {"$concat": ["$text"] * 15}}}}],
    "the longest text": [{"$limit": 1}, {"$project": {"_id": 0, "s": {"$strLenBytes": {"$concat": [*["$text"] * 16, {"$substrBytes": ["$text", 0, 777215]}]}}}}],
    "a text of 16 MB": [{"$limit": 1}, {"$project": {"_id": 0, "s": {"$strLenBytes": {"$concat": [*["$text"] * 16, {"$substrBytes": ["$text", 0, 777216]}]}}}}],
    "a text that grows by its parts": [{"$limit": 1}, {"$project": {"_id": 0, "s": {"$strLenBytes": {"$replaceAll": {"input": "$text", "find": "x", "replacement": "y" * 17}}}}}],
    "an array": [{"$limit": 1}, {"$project": {"a": {"$range": [0, 2_000_000]}}}],
    "the size of an array": [{"$limit": 1}, {"$project": {"_id": 0, "a": {"$size": {"$range": [0, 2_000_000]}}}}],
    "a field beside others": [{"$limit": 1}, {"$set": {f"t{at}": "$text" for at in range(17)}}],
    "joined": [{"$limit": 1}, JOIN],
    "joined and counted": [{"$limit": 1}, JOIN, {"$project": {"_id": 0, "n": {"$size": "$j"}}}],
    "joined and unwound": [{"$limit": 1}, JOIN, {"$unwind": "$j"}, {"$count": "n"}],
    "joined by a graph": [{"$limit": 1}, {"$graphLookup": {"from": "large", "startWith": "$k", "connectFromField": "k", "connectToField": "k", "as": "j"}}],
    "merged objects": [{"$group": {"_id": None, "all": {"$mergeObjects": {"$arrayToObject": [[["$_id", "$text"]]]}}}}],
    "written": [ALL, {"$out": "written"}],
    "united": [{"$limit": 1}, {"$unionWith": {"coll": "large", "pipeline": [ALL]}}],
}  # fmt: skip


@pytest.mark.parametrize("name", LARGE)
def test_documents_that_become_too_large_are_refused_where_mongodb_refuses_them(large, name):
    large.same({"aggregate": "large", "pipeline": LARGE[name], "cursor": {}, "allowDiskUse": True})


@pytest.fixture(scope="module")
def large(servers):
    both = servers.on("pipeline_limits")
    documents = [SON([("_id", str(at)), ("k", 1), ("text", TEXT)]) for at in range(17)]
    for client in (both.oracle, both.pando):
        client.drop_database("pipeline_limits")
        client.pipeline_limits.large.insert_many(documents)
    yield both
    for client in (both.oracle, both.pando):
        client.drop_database("pipeline_limits")
