"""`$let` and the other places that give names to values, malformed in every way: the codes are those of MongoDB."""

import pytest
from bson.raw_bson import RawBSONDocument

from exact import encode

NO_VARIABLES = [5, None, "x", True, [], [1], ["$k"], [{"a": 1}], [[], 1]]
NAMES = ["", "A", "Ab", "_a", "1", "1a", "0", "a.b", ".a", "a-b", "a b", "a$", "$a", "$$a", "é", "aé", "É", "a\u00a0", "this", "a1_", "CURRENT", "ROOT",
         "NOW", "REMOVE", "USER_ROLES", "DESCEND", "current", "x" * 300]
VALUES = [{"$bogus": 1}, "$$nosuch", "$$b", "$", "$a.", {"a.b": 1}, {"$add": 1, "b": 2}, {"$literal": "$x"}, "$k", "$$ROOT.k", "$$REMOVE"]
METADATA = ["textScore", "randVal", "sortKey", "geoNearDistance", "geoNearPoint", "indexKey", "recordId", "searchScore", "searchHighlights",
            "timeseriesBucketMinTime", "bogus"]


def expression(argument):
    return {"aggregate": "c", "pipeline": [{"$project": {"x": {"$let": argument}}}], "cursor": {}}


@pytest.fixture
def filled(both):
    both.fill("c", [{"_id": 1, "k": 1}])
    return both


@pytest.mark.parametrize("argument", [5, None, "x", "$k", True, [], [1], [{"vars": {}, "in": 1}], {}, {"vars": {}}, {"in": 1}, {"var": {}, "in": 1},
                                      {"vars": {}, "in": 1, "x": 1}, {"vars": 5}, {"vars": 5, "x": 1}, {"vars": {"A": 1}}, {"in": "$$nosuch"},
                                      {"in": "$$a", "vars": {"a": 2}}, {"vars": {"A": 1}, "in": "$$nosuch"}, {"vars": {}, "in": {}}, {"vars": {}, "in": []},
                                      {"vars": {"a": 1}, "in": {"a": "$$a", "b": ["$$a.b"]}}], ids=repr)
def test_its_argument(filled, argument):
    filled.same(expression(argument))


@pytest.mark.parametrize("variables", NO_VARIABLES, ids=repr)
def test_its_variables_are_no_object(filled, variables):
    filled.same(expression({"vars": variables, "in": 1}))
    filled.same(expression({"in": {"$bogus": 1}, "vars": variables}))


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_the_name_of_a_variable(filled, name):
    filled.same(expression({"vars": {name: 5}, "in": 1}))
    filled.same(expression({"vars": {name: 5}, "in": f"$${name}"}))
    filled.same(expression({"vars": {"a": {"$bogus": 1}, name: 5}, "in": 1}))


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_the_value_of_a_variable_and_the_result(filled, value):
    filled.same(expression({"vars": {"b": 1, "v": value}, "in": "$$v"}))
    filled.same(expression({"vars": {"v": value}, "in": 1}))
    filled.same(expression({"vars": {"v": 1}, "in": value}))


TWICE = [({"vars": {"a": 1, "z": 2}, "in": "$$a"}, "z", "a"), ({"vars": {"a": 1, "z": {"$bogus": 1}}, "in": "$$a"}, "z", "a"),
         ({"vars": {"a": 1}, "varz": {"a": 2}, "in": "$$a"}, "varz", "vars"), ({"vars": 5, "varz": {"a": 2}, "in": "$$a"}, "varz", "vars"),
         ({"vars": {"a": 1}, "in": "$$a", "iz": ["$$a"]}, "iz", "in")]


@pytest.mark.parametrize("argument, name, other", TWICE, ids=repr)
def test_a_name_that_stands_there_twice(filled, argument, name, other):
    # A dictionary cannot say it, so the name is changed in the bytes.
    filled.same(expression(RawBSONDocument(encode(argument).raw.replace(name.encode() + b"\0", other.encode() + b"\0"))))


@pytest.mark.parametrize("variables", [*NO_VARIABLES, {"A": 1}, {"": 1}, {"a.b": 1}, {"a": {"$bogus": 1}}, {"a": "$k"}, {"a": "$$b"}, {"a": "$$ROOT"}, {"a": "$$CURRENT.k"},
                                       {"a": {"$cond": [True, 1, "$k"]}}, {"a": ["$k"]}, {"a": {"x": "$k"}}, {"a": {"$getField": "k"}},
                                       {"a": {"$literal": "$k"}}, {"a": {"$map": {"input": [1], "in": "$$this"}}}, {"a": {"$let": {"vars": {"b": "$k"}, "in": 1}}},
                                       {"a": {"$divide": [1, 0]}}, {"a": "$$REMOVE"}, {"a": 1},
                                       *({"a": {"$meta": kind}} for kind in METADATA), {"a": {"$add": [1, {"$meta": "indexKey"}]}},
                                       {"a": {"$cond": [True, 1, {"$meta": "textScore"}]}}, {"a": {"$meta": 1}}], ids=repr)
def test_the_variables_of_commands_and_stages(filled, variables):
    lookup = {"from": "c", "let": variables, "pipeline": [], "as": "x"}
    filled.same({"aggregate": "c", "pipeline": [{"$lookup": lookup}], "cursor": {}})
    filled.same({"aggregate": "c", "pipeline": [], "cursor": {}, "let": variables})
    filled.same({"find": "c", "let": variables})
    filled.same({"count": "c", "query": {}, "let": variables})
    for ordered in (True, False):
        for name in ("c", "nosuch"):
            filled.same({"delete": name, "deletes": [{"q": {"_id": number}, "limit": 1} for number in (8, 9)], "let": variables, "ordered": ordered})
            updates = [{"q": {"_id": number}, "u": {"$set": {"a": 1}}} for number in (8, 9)]
            filled.same({"update": name, "updates": updates, "let": variables, "ordered": ordered})
    filled.same({"findAndModify": "c", "query": {"_id": 9}, "update": {"$set": {"a": 1}}, "let": variables})
    merge = {"into": "d", "let": variables, "whenMatched": [{"$set": {"a": 1}}]}
    filled.same({"aggregate": "c", "pipeline": [{"$merge": merge}], "cursor": {}})


@pytest.mark.parametrize("variables", [{"a": {"$meta": "textScore"}, "b": {"$bogus": 1}}, {"a": {"$add": [{"$meta": "textScore"}, {"$bogus": 1}]}}], ids=repr)
def test_metadata_beside_another_fault(filled, variables):
    filled.same({"find": "c", "let": variables})
    filled.same({"aggregate": "c", "pipeline": [], "cursor": {}, "let": variables})


@pytest.mark.parametrize("constants", [*NO_VARIABLES, *({name: 5} for name in NAMES if name != "USER_ROLES"), {"a": 1, "": 2}, {"a": {"$bogus": 1}}, {"a": "$k"}, {"a": "$$b"},
                                       {"a": {"$meta": "textScore"}}, {"CLUSTER_TIME": 1}, {"JS_SCOPE": 1}, {"IS_MR": 1}, {"SEARCH_META": 1}], ids=repr)
def test_the_constants_of_an_update(filled, constants):
    # MongoDB 6.0 has no $$USER_ROLES, and so lets a constant have this name.
    for update in ([{"$set": {"a": 1}}], [{"$set": {"a": "$$a"}}], [{"$bogus": 1}], {"$set": {"a": 1}}, {"a": 1}):
        for name in ("c", "nosuch"):
            filled.same({"update": name, "updates": [{"q": {"_id": 1}, "u": update, "c": constants}]})
    if isinstance(constants, dict):
        for name in constants:
            filled.same({"update": "c", "updates": [{"q": {"_id": 1}, "u": [{"$set": {"a": f"$${name}"}}], "c": constants, "upsert": True}]})
    filled.same({"find": "c"})
