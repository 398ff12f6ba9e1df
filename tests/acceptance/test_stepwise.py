"""Stage by stage MongoDB gives what it gives for the whole, but for the differences that it has with itself."""

import bson
import pytest

from stepwise import Stepwise

DOCUMENTS = [{"_id": at, "a": at % 3, "b": [at, {"c": at}], "d": at / 2} for at in range(12)]
JOIN = {"from": "c", "localField": "a", "foreignField": "_id", "as": "j", "let": {"v": "$d"}, "pipeline": [{"$match": {"$expr": {"$lt": ["$d", "$$v"]}}}, {"$project": {"a": 1}}]}
PIPELINES = [
    [],
    [{"$match": {"a": 1}}, {"$set": {"e": {"$add": ["$a", "$$x"]}}}],
    [{"$group": {"_id": "$a", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}],
    [{"$facet": {"one": [{"$match": {"a": 1}}, {"$count": "n"}], "two": [{"$skip": 20}]}}, {"$unwind": "$one"}],
    [{"$limit": 2}, {"$unionWith": {"coll": "c", "pipeline": [{"$match": {"a": 0}}, {"$unset": "b"}]}}, {"$unionWith": {"pipeline": [{"$documents": [{"_id": 100}]}]}}],
    [{"$unionWith": "c"}, {"$count": "n"}],
    [{"$lookup": JOIN}, {"$unwind": "$j"}],
]


def filled(both):
    both.fill("c", DOCUMENTS)
    return Stepwise(both.ask_oracle)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_answers_are_those_of_the_whole(both, pipeline):
    request = {"aggregate": "c", "pipeline": pipeline, "let": {"x": 5}}
    assert filled(both).answer(request) == [bson.encode(row) for row in both.rows(request)]


def test_a_stage_that_fails_gives_its_error(both):
    reply = filled(both).answer({"aggregate": "c", "pipeline": [{"$match": {}}, {"$set": {"a": {"$divide": [1, "$a"]}}}]})
    assert bson.decode(reply)["code"] == 2


def test_documents_in_between_have_no_holes_and_no_places_of_removed_fields(both):
    pipeline = [{"$match": {"_id": 1}}, {"$project": {"b.c": 1}}, {"$set": {"n": {"$size": "$b"}}}]
    rows = [bson.decode(raw) for raw in filled(both).answer({"aggregate": "c", "pipeline": pipeline})]
    assert rows == [{"_id": 1, "b": [{"c": 1}], "n": 1}]
    pipeline = [{"$match": {"_id": 1}}, {"$unset": "a"}, {"$set": {"a": 5}}]
    [raw] = filled(both).answer({"aggregate": "c", "pipeline": pipeline})
    assert list(bson.decode(raw)) == ["_id", "b", "d", "a"]
