"""References to other documents (DBRefs): `$id`, `$ref` and `$db` are the only names with a `$` that paths may have."""

import pytest

from both import Order

PET = {"$ref": "pets", "$id": 7, "$db": "zoo"}
OWNERS = [
    {"_id": 1, "pet": PET, "pets": [{"$ref": "pets", "$id": 7}, {"$ref": "pets", "$id": "a"}]},
    {"_id": 2, "pet": {"$ref": "pets", "$id": 8}, "pets": [], "$id": 5},
    {"_id": 3, "pets": [{"$ref": "Pets", "$id": {"$gt": 1}}]},
]
PETS = [{"_id": 7, "owner": {"$ref": "owners", "$id": 1}}, {"_id": 8}, {"_id": "a"}]


@pytest.fixture
def owners(both):
    both.fill("owners", OWNERS)
    both.fill("pets", PETS)
    return both


def lookup(local, foreign, into):
    return {"$lookup": {"from": "pets", "localField": local, "foreignField": foreign, "as": into}}


def graph(**more):
    return {"$graphLookup": {"from": "pets", "startWith": "$pet.$id", "connectFromField": "owner.$id", "connectToField": "_id", "as": "g", **more}}


STAGES = [
    lookup("pet.$id", "_id", "found"), lookup("pets.$id", "_id", "found"), lookup("_id", "owner.$id", "found"), lookup("_id", "_id", "x.$id"),
    lookup("_id", "_id", "$id"), lookup("$id", "_id", "found"), lookup("pet.$foo", "_id", "found"), graph(), graph(depthField="$id"),
    graph(connectFromField="_id", connectToField="owner.$id"), {"$project": {"a": "$pet.$id", "b": "$pet.$ref", "c": "$pets.$db"}},
    {"$project": {"a": "$pet.$foo"}}, {"$project": {"pet.$id": 1}}, {"$project": {"pet.$id": 0}}, {"$project": {"pet.$foo": 1}}, {"$project": {"$id": 1}},
    {"$project": {"pet": {"$id": 1}}}, {"$project": {"pet": {"$id": 0}}}, {"$project": {"pet": {"$id": 1, "x": 1}}}, {"$project": {"pet": {"x": 1, "$id": 1}}},
    {"$project": {"pet": {"$id": 1, "$foo": 1}}}, {"$project": {"pet": {"$id": {"$add": [1, 2]}}}}, {"$project": {"pet": {"$ref": "$_id"}}},
    {"$addFields": {"pet.$id": 5}}, {"$addFields": {"$id": 5}}, {"$addFields": {"pet.$foo": 5}}, {"$addFields": {"pet": {"$id": 5}}},
    {"$group": {"_id": "$pet.$id"}}, {"$group": {"_id": 1, "$id": {"$sum": 1}}}, {"$sort": {"pet.$id": -1, "_id": 1}}, {"$sort": {"pet.$foo": 1}},
    {"$match": {"pet.$id": 7}}, {"$match": {"$id": 5}}, {"$unwind": "$pets.$id"}, {"$unset": "pet.$id"}, {"$unset": ["$id", "pet.$db"]}, {"$unset": "pet.$foo"},
    {"$replaceRoot": {"newRoot": {"a": "$pet.$id"}}}, {"$replaceRoot": {"newRoot": {"$id": "$pet.$id"}}}, {"$sortByCount": "$pet.$id"},
    {"$project": {"x": {"$map": {"input": "$pets", "as": "e", "in": "$$e.$id"}}}}, {"$project": {"x": {"$let": {"vars": {"p": "$pet"}, "in": "$$p.$ref"}}}},
    {"$facet": {"$id": [{"$count": "n"}]}}, {"$count": "$id"}, {"$count": "a.$id"}, {"$bucketAuto": {"groupBy": "$pet.$id", "buckets": 2}},
    {"$setWindowFields": {"partitionBy": "$pet.$ref", "sortBy": {"pet.$id": 1}, "output": {"pet.$id": {"$sum": 1}}}}, {"$merge": {"into": "m", "on": "pet.$id"}},
]


@pytest.mark.parametrize("stage", STAGES, ids=repr)
def test_stages_follow_references(owners, stage):
    owners.rows({"aggregate": "owners", "pipeline": [{"$sort": {"_id": 1}}, stage]}, order=Order.FREE)


FILTERS = [
    {"$id": 5}, {"$id": {"$gt": 1}}, {"$ref": "x"}, {"$db": 1}, {"$id": None}, {"$foo": 1}, {"$and": [{"$id": 5}]}, {"pet.$id": {"$in": [7, 9]}},
    {"pet": PET}, {"pet": {"$ref": "pets", "$id": 8}}, {"pet": {"$id": 8, "$ref": "pets"}}, {"pet": {"$id": 8}}, {"pet": {"$ref": "pets"}},
    {"pets": {"$elemMatch": {"$id": "A"}}}, {"pets": {"$elemMatch": {"$ref": "pets", "$id": "a"}}}, {"pets": {"$elemMatch": {"$id": {"$gt": 1}}}},
    {"pets": {"$elemMatch": {"$ref": "PETS"}}}, {"pets": {"$in": [{"$ref": "pets", "$id": 7}]}}, {"pets": {"$in": [{"$id": 7}]}},
    {"pets": {"$all": [{"$ref": "pets", "$id": 7}]}}, {"pets": {"$all": [{"$id": 7}]}}, {"pets": {"$all": [{"$gt": 7}]}},
    {"pet": {"$not": {"$ref": "pets", "$id": 8}}}, {"$expr": {"$eq": ["$pet.$id", 7]}},
]


@pytest.mark.parametrize("collation", [{}, {"collation": {"locale": "en", "strength": 2}}], ids=["binary", "of a language"])
@pytest.mark.parametrize("filter", FILTERS, ids=repr)
def test_filters_name_parts_of_references(owners, filter, collation):
    owners.rows({"find": "owners", "filter": filter, "sort": {"_id": 1}, **collation})


@pytest.mark.parametrize("projection", [
    {"pet.$id": 1}, {"pet.$ref": 0}, {"x": "$pet.$id"}, {"pets.$id": 1}, {"pets": {"$elemMatch": {"$id": "a"}}}, {"pet": {"$id": 1}}, {"pet.$foo": 1}, {"$id": 1},
], ids=repr)
def test_projections_show_parts_of_references(owners, projection):
    owners.rows({"find": "owners", "projection": projection, "sort": {"_id": 1}})


@pytest.mark.parametrize("update", [
    {"$set": {"pet.$id": 9}}, {"$unset": {"pet.$db": 1}}, {"$pull": {"pets": {"$id": 7}}}, {"$pull": {"pets": {"$ref": "pets", "$id": 7}}},
    {"$pull": {"pets": {"$ref": "pets"}}}, {"$addToSet": {"pets": {"$ref": "pets", "$id": 7}}}, {"$push": {"pets": {"$ref": "x", "$id": 1}}},
    [{"$set": {"pet.$id": 4}}], [{"$set": {"z": "$pet.$id"}}], [{"$unset": "pet.$db"}],
], ids=repr)
def test_updates_change_parts_of_references(owners, update):
    owners.same({"update": "owners", "updates": [{"q": {"pets.$id": 7}, "u": update, "multi": True}]})
    owners.rows({"find": "owners", "sort": {"_id": 1}})


@pytest.mark.parametrize("index", [
    {"key": {"pet.$id": 1}}, {"key": {"pets.$id": 1, "pet.$ref": -1}}, {"key": {"a.$ref.b": 1}}, {"key": {"pet.$id": "hashed"}}, {"key": {"pet.$id.$**": 1}},
    {"key": {"$**": 1}, "wildcardProjection": {"pet.$id": 1}}, {"key": {"$**": 1}, "wildcardProjection": {"pet.$foo": 1}},
    {"key": {"pet.$foo": 1}}, {"key": {"$id": 1}}, {"key": {"$ref.a": 1}}, {"key": {"pet.$id": 1}, "partialFilterExpression": {"pet.$ref": "pets"}},
], ids=repr)
def test_indexes_hold_parts_of_references(owners, index):
    owners.same({"createIndexes": "owners", "indexes": [{**index, "name": "of_reference"}]})
    owners.same({"listIndexes": "owners"})
    for filter in ({"pet.$id": 7}, {"pet.$id": 8, "pet.$ref": "pets"}, {"pets.$id": "a"}):
        owners.rows({"find": "owners", "filter": filter})
        owners.plan({"find": "owners", "filter": filter})


IDS = [
    {"$ref": "x", "$id": 1}, {"$ref": "x", "$id": 1, "$db": "d"}, {"a": {"$ref": "x", "$id": 1}}, {"$id": 1}, {"$a": 1},
    {"$ref": "x"}, {"$id": 1, "$ref": "x"}, {"$db": "d"}, {"$ref": 1, "$id": 1}, {"$ref": "x", "$id": 1, "$foo": 1},
    {"$ref": "x", "$id": 1, "$db": 5}, {"$ref": "x", "$id": 1, "foo": 1}, {"foo": 1, "$ref": "x", "$id": 1},
    {"a": {"$id": 1}}, {"a": [{"$id": 1}]}, {"a": {"b": {"$ref": "x", "$id": {"$a": 1}}}}, {"$ref": "x", "$id": {"$a": 1}, "b": {"$a": 1}},
    {"$ref": "x", "$db": "d", "$id": 1},
]


@pytest.mark.parametrize("id", IDS, ids=repr)
def test_an_id_is_a_reference_or_holds_one(owners, id):
    document = {"_id": id, "a": 1}
    for command in (
        {"insert": "refs", "documents": [document]},
        {"update": "refs", "updates": [{"q": {"_id": id}, "u": {"a": 2}, "upsert": True}]},
        {"update": "refs", "updates": [{"q": {"_id": {"$eq": id}}, "u": {"$set": {"a": 3}}, "upsert": True}]},
        {"update": "refs", "updates": [{"q": {"a": 7}, "u": document, "upsert": True}]},
    ):
        owners.same({"delete": "refs", "deletes": [{"q": {}, "limit": 0}]})
        owners.same(command)
        owners.rows({"find": "refs", "filter": {"a": {"$lt": 9}}})


def test_an_upsert_takes_a_reference_from_its_filter(owners):
    pet = {"$ref": "pets", "$id": 9}
    owners.same({"delete": "refs", "deletes": [{"q": {}, "limit": 0}]})
    owners.same({"update": "refs", "updates": [{"q": {"_id": 1, "pet": pet}, "u": {"$set": {"a": 1}}, "upsert": True}]})
    owners.rows({"find": "refs"})
