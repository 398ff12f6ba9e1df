"""Validation: `$jsonSchema` as a filter, the rules of collections, and what the errors of broken ones tell."""

import pytest
from bson import Regex

from both import Texts

# A rule, and documents of which some break it.
SCHEMAS = [
    ({"required":["a","b"]},{"a":1}),
    ({"title":"T","description":"D","required":["a","b"]},{"a":1}),
    ({"bsonType":"object","properties":{"a":{"bsonType":"string","description":"must be str"},"b":{"type":"number","title":"tt"}}},{"a":1,"b":"x"}),
    ({"properties":{"a":{"bsonType":["string","int"]},"b":{"type":["string","null"]}}},{"a":1.5,"b":1}),
    ({"properties":{"a":{"enum":[1,"x",None]}}},{"a":2},{"a":1.0},{}),
    ({"properties":{"a":{"minimum":5}}},{"a":2},{"a":"x"},{"a":5}),
    ({"properties":{"a":{"minimum":5,"exclusiveMinimum":True}}},{"a":5}),
    ({"properties":{"a":{"minimum":5,"exclusiveMinimum":False}}},{"a":4}),
    ({"properties":{"a":{"maximum":5,"exclusiveMaximum":True}}},{"a":5}),
    ({"properties":{"a":{"maximum":5}}},{"a":6}),
    ({"properties":{"a":{"multipleOf":2}}},{"a":3},{"a":4.0}),
    ({"properties":{"a":{"minLength":3,"maxLength":1}}},{"a":"xy"},{"a":"éé"}),
    ({"properties":{"a":{"pattern":"^x"}}},{"a":"y"},{"a":1}),
    ({"properties":{"a":{"minItems":3}}},{"a":[1]},{"a":1}),
    ({"properties":{"a":{"maxItems":1}}},{"a":[1,2]}),
    ({"properties":{"a":{"uniqueItems":True}}},{"a":[1,2,1.0,2]},{"a":[1,2]}),
    ({"properties":{"a":{"items":{"bsonType":"int"}}}},{"a":[1,"x","y"]},{"a":1}),
    ({"properties":{"a":{"items":[{"bsonType":"int"},{"bsonType":"string"}],"additionalItems":False}}},{"a":[1,"x",3]},{"a":[1]},{"a":["q",2]}),
    ({"properties":{"a":{"items":[{"bsonType":"int"}],"additionalItems":{"bsonType":"string"}}}},{"a":[1,"x",3]}),
    ({"properties":{"a":{"items":[{"bsonType":"int"}],"additionalItems":True}}},{"a":[1,"x",3]}),
    ({"properties":{"a":{}},"additionalProperties":False},{"a":1,"b":2,"c":3}),
    ({"properties":{"_id":{},"a":{}},"additionalProperties":False},{"a":1,"b":2,"c":3}),
    ({"properties":{"_id":{},"a":{}},"additionalProperties":{"bsonType":"string"}},{"a":1,"b":2,"c":"x"}),
    ({"patternProperties":{"^a":{"bsonType":"string"},"^b":{"minimum":3}}},{"a1":1,"b1":2,"c":1}),
    ({"patternProperties":{"^a":{"bsonType":"string"}},"properties":{"_id":{}},"additionalProperties":False},{"a1":"x","c":1}),
    ({"patternProperties":{"^a":{"bsonType":"string","title":"pt","description":"pd"}}},{"a1":1}),
    ({"minProperties":3},{"a":1}),
    ({"maxProperties":1},{"a":1}),
    ({"properties":{"a":{"minProperties":3}}},{"a":{"x":1}},{"a":1}),
    ({"dependencies":{"a":["b","c"]}},{"a":1,"b":1},{"b":1}),
    # The order of reasons, and the rules of other types than the one that is allowed.
    ({"properties":{"a":{"minLength":5,"maxLength":1,"pattern":"^x","enum":["q"]}}},{"a":"abc"}),
    ({"properties":{"b":{"bsonType":"int"}},"additionalProperties":False,"patternProperties":{"^x":{"bsonType":"int"}},"required":["zz"],"minProperties":9,"maxProperties":1,"dependencies":{"x1":["no"]}},{"b":"s","x1":"q","other":1}),
    *[({"properties":{"a":{"multipleOf":5,"maximum":1,"minimum":99,"minLength":50,"pattern":"^z","minItems":9,"uniqueItems":True,"properties":{"b":{"bsonType":"int"}},"required":["zz"],"maxProperties":0,"enum":[12],"bsonType":types}}},
       {"a":7},{"a":"abc"},{"a":[1,1]},{"a":{"b":"x"}},{"a":None}) for types in ("int","string","array","object","number",["int","string"],["object"])],
    ({"dependencies":{"a":{"properties":{"b":{"bsonType":"string"}}}}},{"a":1,"b":1}),
    ({"dependencies":{"a":{"required":["z"]},"q":["r"]}},{"a":1,"q":1}),
    ({"allOf":[{"required":["a"]},{"required":["b"]}]},{"a":1}),
    ({"anyOf":[{"required":["x"]},{"required":["y"]}]},{"a":1}),
    ({"oneOf":[{"required":["x"]},{"required":["y"]}]},{"a":1},{"x":1,"y":1}),
    ({"not":{"required":["a"]}},{"a":1}),
    ({"properties":{"a":{"not":{"bsonType":"int"}}}},{"a":1}),
    ({"properties":{"a":{"anyOf":[{"bsonType":"string"},{"minimum":5}]}}},{"a":1}),
    ({"properties":{"a":{"oneOf":[{"bsonType":"int"},{"minimum":0}]}}},{"a":1},{"a":-1.5}),
    ({"properties":{"a":{"allOf":[{"bsonType":"string"},{"minimum":5}]}}},{"a":1}),
    ({"properties":{"a":{"bsonType":"object","required":["x"],"properties":{"x":{"bsonType":"int"}}}}},{"a":{}},{"a":{"x":"s"}},{"a":1}),
    ({"properties":{"a":{"bsonType":"array","items":{"bsonType":"object","required":["q"]}}}},{"a":[{"q":1},{}]}),
    ({"type":"string"},{"a":1}),
    ({"enum":[1]},{"a":1}),
    ({"bsonType":"object","required":["a"]},{"b":1}),
    ({"allOf":[{"title":"in","description":"d","required":["b"]}]},{"a":1}),
    ({"properties":{"a":{"minimum":1,"maximum":0,"multipleOf":7}}},{"a":3}),
    ({"properties":{"a":{"properties":{"b":{"properties":{"c":{"bsonType":"int"}}}}}}},{"a":{"b":{"c":"x"}}}),
    ({"properties":{"a":{"type":"string","description":"d1","title":"t1"}}},{"a":3}),
    ({"properties":{"a":{"not":{"required":["x"]}}}},{"a":{"x":1}}),
    ({"not":{"properties":{"a":{"bsonType":"int"}}}},{"a":1},{}),
    ({"not":{"anyOf":[{"required":["a"]},{"required":["b"]}]}},{"a":1}),
]
FILTERS = [
    ({"a":{"$gt":5}},{"a":1},{},{"a":[1,2]},{"a":"x"}),
    ({"a":5},{"a":1},{}),
    ({"a":{"$eq":None}},{"a":1}),
    ({"a":{"$ne":5}},{"a":5},{"a":[5,6]}),
    ({"a":{"$gt":1,"$lt":5}},{"a":7},{"a":0}),
    ({"a":1,"b":2},{"a":1},{}),
    ({"$and":[{"a":1},{"b":{"$gt":3}}]},{"a":2,"b":1}),
    ({"$or":[{"a":1},{"b":{"$gt":3}}]},{"a":2,"b":1}),
    ({"$nor":[{"a":2},{"b":{"$gt":3}}]},{"a":2,"b":1}),
    ({"a":{"$not":{"$gt":1}}},{"a":2},{"a":[2,3]}),
    ({"a":{"$in":[1,2]}},{"a":3},{"a":[3,4]},{}),
    ({"a":{"$nin":[1,2]}},{"a":1}),
    ({"a":{"$exists":True}},{}),
    ({"a":{"$exists":False}},{"a":1}),
    ({"a":{"$type":"string"}},{"a":1},{"a":[1,"x"]},{"a":[1]},{}),
    ({"a":{"$type":["string","int"]}},{"a":1.5}),
    ({"a":{"$regex":"^x"}},{"a":"y"},{"a":1},{}),
    ({"a":{"$regex":"^x","$options":"i"}},{"a":"y"},{"a":["y",1]}),
    ({"a":Regex("^x")},{"a":"y"},{"a":1},{"a":["y"]},{}),
    ({"$or":[{"a":Regex("^x")}]},{"a":"y"}),
    ({"$nor":[{"a":Regex("^x")}]},{"a":"x"}),
    ({"a":{"$mod":[3,1]}},{"a":3},{"a":"x"},{"a":[1.5,3]}),
    ({"a":{"$size":2}},{"a":[1]},{"a":1}),
    ({"a":{"$all":[1,2]}},{"a":[1]}),
    ({"a":{"$elemMatch":{"$gt":5}}},{"a":[1,2]},{"a":1}),
    ({"a":{"$elemMatch":{"b":1,"c":{"$gt":5}}}},{"a":[{"b":1,"c":2}]}),
    ({"a":{"$bitsAllSet":[1]}},{"a":1},{"a":"x"}),
    ({"$expr":{"$gt":["$a",5]}},{"a":1}),
    ({"$expr":{"$and":[{"$gt":["$a",5]}]}},{"a":1}),
    ({"a.b":{"$gt":5}},{"a":{"b":1}},{"a":[{"b":1},{"b":2}]},{}),
    ({"$and":[{"$jsonSchema":{"required":["x"]}},{"a":5}]},{"a":1}),
    ({"$nor":[{"$jsonSchema":{"required":["a"]}}]},{"a":1}),
    ({"$nor":[{"$and":[{"a":1},{"b":2}]},{"c":4}]},{"a":1,"b":2,"c":4}),
    ({"a":{"$gt":5},"$jsonSchema":{"required":["x"]}},{"a":1}),
    ({"a":{"$lte":None}},{"a":5}),
    ({"a":{"$nin":[1,2,None]}},{}),
    ({"a":{"$not":{"$exists":True}}},{"a":1}),
    ({"a":{"$not":{"$gt":1,"$lt":5}}},{"a":2}),
    ({"$comment":"x","a":1},{"a":2}),
    ({"a":{"$near":[1,1]}},{}),
    ({"$text":{"$search":"x"}},{}),
    ({"$where":"1"},{}),
    ({"$expr":{"$function":{"body":"function(){}","args":[],"lang":"js"}}},{}),
    ({"a":{"$gt":5,"$bogus":1}},{}),
]
MALFORMED = [
    1,
    {'bogus': 1},
    {'type': 'integer'},
    {'type': 1},
    {'type': ['string', 'integer']},
    {'type': []},
    {'bsonType': 'foo'},
    {'bsonType': []},
    {'bsonType': ['string', 'string']},
    {'type': 'string', 'bsonType': 'string'},
    {'enum': []},
    {'enum': 1},
    {'enum': [1, 1]},
    {'properties': 1},
    {'properties': {'a': 1}},
    {'required': []},
    {'required': 1},
    {'required': ['a', 'a']},
    {'required': [1]},
    {'minimum': 'a'},
    {'exclusiveMinimum': True},
    {'exclusiveMinimum': 1, 'minimum': 2},
    {'exclusiveMaximum': True},
    {'multipleOf': 0},
    {'multipleOf': -1},
    {'multipleOf': 'a'},
    {'minLength': -1},
    {'minLength': 1.5},
    {'minLength': 'a'},
    {'pattern': 1},
    {'minItems': -1},
    {'uniqueItems': 1},
    {'items': 1},
    {'items': [1]},
    {'additionalItems': 1},
    {'additionalProperties': 1},
    {'patternProperties': 1},
    {'patternProperties': {'(': {}}},
    {'patternProperties': {'a': 1}},
    {'allOf': 1},
    {'allOf': []},
    {'allOf': [1]},
    {'not': 1},
    {'dependencies': 1},
    {'dependencies': {'a': 1}},
    {'dependencies': {'a': []}},
    {'dependencies': {'a': [1]}},
    {'dependencies': {'a': ['b', 'b']}},
    {'title': 1},
    {'description': 1},
    {'$schema': 'x'},
    {'$ref': 'x'},
    {'default': 1},
    {'definitions': {}},
    {'format': 'x'},
    {'id': 'x'},
    {'minProperties': -1},
    {'maxProperties': 'a'},
    {'$id': 'x'},
    {'const': 1},
    {'minimum': 1},
    {'exclusiveMinimum': 1},
    {'minLength': {'$numberLong': 1}},
    {'anyOf': 'x'},
    {'oneOf': []},
    {'maxLength': 1e+20},
    {'minItems': None},
    {'additionalProperties': {'bogus': 1}},
    {'minLength': 2147483648},
    {'properties': {'a': {'properties': {'b': {'bogus': 2}}}}},
    {'type': 'number'},
    {'type': 'bool'},
    {'bsonType': 'number'},
    {'enum': [1, 1.0]},
    {'bsonType': 1},
    {'type': ['object', 'object']},
]


def validated(both, rule, documents):
    if "ok" in both.same({"create": "c", "validator": rule}, texts=Texts.COMPARED) and both.refused_with:
        return
    for document in documents:
        both.same({"insert": "c", "documents": [{"_id": 1, **document}]}, texts=Texts.COMPARED)
        both.same({"delete": "c", "deletes": [{"q": {}, "limit": 0}]})


@pytest.mark.parametrize("schema,documents", [(row[0], row[1:]) for row in SCHEMAS], ids=repr)
def test_schemas(both, schema, documents):
    validated(both, {"$jsonSchema": schema}, documents)
    both.same({"insert": "d", "documents": [{"_id": at, **document} for at, document in enumerate(documents)] or [{"_id": 0}]})
    both.rows({"find": "d", "filter": {"$jsonSchema": schema}, "sort": {"_id": 1}})
    both.rows({"find": "d", "filter": {"$nor": [{"$jsonSchema": schema}]}, "sort": {"_id": 1}})


@pytest.mark.parametrize("rule,documents", [(row[0], row[1:]) for row in FILTERS], ids=repr)
def test_rules_that_are_filters(both, rule, documents):
    validated(both, rule, documents)


@pytest.mark.parametrize("schema", MALFORMED, ids=repr)
def test_malformed_schemas(both, schema):
    both.same({"insert": "c", "documents": [{"_id": 1, "a": 1}]})
    both.same({"find": "c", "filter": {"$jsonSchema": schema}}, texts=Texts.COMPARED)


RULE = {"a": {"$gt": 0}}
WRITES = [
    {"insert": "c", "documents": [{"_id": 10, "a": 1}, {"_id": 11, "a": 0}, {"_id": 12, "a": 3}]},
    {"insert": "c", "documents": [{"_id": 10, "a": 0}, {"_id": 11, "a": 0}, {"_id": 12, "a": 3}], "ordered": False},
    {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": -1}}}]},
    {"update": "c", "updates": [{"q": {"_id": 2}, "u": {"$set": {"b": -1}}}]},
    {"update": "c", "updates": [{"q": {"_id": 2}, "u": {"$set": {"a": 0}}}]},
    {"update": "c", "updates": [{"q": {"a": {"$gt": 0}}, "u": {"$set": {"b": 1}}, "multi": True}]},
    {"update": "c", "updates": [{"q": {"_id": 77}, "u": {"$set": {"b": -1}}, "upsert": True}]},
    {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"a": "x"}}]},
    {"update": "c", "updates": [{"q": {"_id": 1}, "u": [{"$set": {"a": 0}}]}]},
    {"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"a": -3}}},
    {"findAndModify": "c", "query": {"_id": 80}, "update": {"$set": {"a": -3}}, "upsert": True},
    {"aggregate": "source", "pipeline": [{"$out": "c"}], "cursor": {}},
    {"aggregate": "source", "pipeline": [{"$merge": "c"}], "cursor": {}},
]


@pytest.mark.parametrize("bypass", [False, True])
@pytest.mark.parametrize("options", [
    {}, {"validationLevel": "moderate"}, {"validationLevel": "off"}, {"validationAction": "warn"}, {"validationLevel": "strict", "validationAction": "error"},
], ids=repr)
@pytest.mark.parametrize("write", WRITES, ids=repr)
def test_writes(both, write, options, bypass):
    both.same({"insert": "source", "documents": [{"_id": 1, "a": 5}, {"_id": 90, "a": 0}]})
    both.same({"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 0}]})
    both.same({"collMod": "c", "validator": RULE, **options})
    both.same({**write, "bypassDocumentValidation": bypass} if bypass else write, texts=Texts.COMPARED)
    both.rows({"find": "c", "sort": {"_id": 1}})
    both.same({"validate": "c"})


@pytest.mark.parametrize("change", [
    {"validator": RULE}, {"validationLevel": "moderate"}, {"validationAction": "warn"}, {"validator": {}}, {"validator": None}, {"validationLevel": "x"},
    {"validator": {"$jsonSchema": {"bogus": 1}}}, {"validator": {"$near": 1}}, {"validator": {"a": {"$near": [1, 1]}}}, {"validator": {"$text": {"$search": "a"}}},
    {"validator": {"$where": "1"}}, {"validator": {"a": {"$bogus": 1}}}, {"validator": {"$expr": {"$eq": ["$a", "$$foo"]}}}, {"validator": 1},
    {"validator": {"$sampleRate": 0.5}}, {"validator": {"$expr": {"$function": {"body": "function(){}", "args": [], "lang": "js"}}}},
], ids=repr)
@pytest.mark.parametrize("before", [{}, {"validator": {"b": 1}, "validationLevel": "off"}], ids=repr)
def test_changes(both, change, before):
    both.same({"create": "c", **before})
    both.same({"collMod": "c", **change}, texts=Texts.COMPARED)
    both.same({"listCollections": 1})
    both.same({"create": "new", **change}, texts=Texts.COMPARED)
    both.same({"listCollections": 1, "filter": {"name": "new"}})
