"""Collections, indexes, names, statistics, what the server says about itself, and what explain tells."""

import bson
import pytest
from bson import Decimal128, Int64

import known
from both import Order, Texts

DOCUMENTS = [{"_id": at, "a": at % 5, "b": str(at), "c": [at, at + 1], "d": {"e": at}} for at in range(100)]


def look(both):
    """Everything that can be seen of the collections of this database."""
    names = both.same({"listCollections": 1, "filter": {}}, order=Order.FREE).documents
    for name in sorted(found["name"] for found in names):
        both.same({"listIndexes": name})
        both.rows({"find": name, "sort": {"_id": 1}})


def index(key, **options):
    return {"key": key, "name": options.pop("name", "_".join(f"{field}_{way}" for field, way in key.items())), **options}


@pytest.fixture
def filled(both):
    both.same({"insert": "c", "documents": DOCUMENTS})
    both.same({"createIndexes": "c", "indexes": [index({"a": 1}), index({"b": -1, "a": 1}), index({"c": 1})]})
    return both


# ---- collections


def test_collections_are_made_renamed_and_dropped(both):
    both.same({"create": "c"})
    both.fails({"create": "d", "bogus": 1}, 40415, texts=Texts.COMPARED)
    both.same({"create": "c"}, texts=Texts.COMPARED)
    both.same({"insert": "d", "documents": [{"_id": 1}]})
    both.same({"create": "d"}, texts=Texts.COMPARED)
    look(both)
    both.same({"drop": "c"})
    both.same({"drop": "c"}, texts=Texts.COMPARED)
    both.same({"dropDatabase": 1})
    both.same({"dropDatabase": 1})
    look(both)


@pytest.mark.parametrize("fields", [
    {}, {"lock": False}, {"lock": 0}, {"lock": None}, {"lock": 0.0}, {"async": True}, {"bogus": 1}, {"writeConcern": {"w": 1}}, {"maxTimeMS": "x"},
    {"readConcern": {"level": "local"}}, {"readConcern": {"level": "majority"}},
], ids=repr)
def test_committed_data_can_be_written_to_its_place(filled, fields):
    filled.on("admin").same({"fsync": 1, **fields}, texts=Texts.COMPARED)
    filled.same({"fsync": 1, **fields}, texts=Texts.COMPARED)


@pytest.mark.parametrize("source,target,options", [
    ("c", "new", {}), ("missing", "new", {}), ("c", "other", {}), ("c", "other", {"dropTarget": True}), ("c", "c", {}),
    ("c", "", {}), ("c", "a$b", {}), ("c", "system.x", {}), ("c", "x" * 250, {}), ("c", "c", {"dropTarget": True}),
    ("c", "other", {"dropTarget": False}), ("c", ".x", {}), ("c", "$x", {}), ("$x", "c", {}), ("system.x", "y", {}),
    ("c", "system.users", {}), ("c", "system.views", {}), ("missing", "missing", {}), ("missing", "other", {"dropTarget": True}),
    ("", "x", {}), ("c", "x" * 240, {}), ("c", "a.b", {}),
], ids=lambda value: repr(value)[:20])
def test_renaming(filled, source, target, options):
    filled.same({"insert": "other", "documents": [{"_id": "other"}]})
    admin = filled.on("admin")
    admin.same({"renameCollection": f"{filled.name}.{source}", "to": f"{filled.name}.{target}", **options})
    look(filled)
    admin.fails({"renameCollection": "nodatabase", "to": "a.b"}, 73)
    filled.fails({"renameCollection": f"{filled.name}.c", "to": f"{filled.name}.z"}, 13)


@pytest.mark.parametrize("request_", [
    {"listCollections": 1}, {"listCollections": 1, "nameOnly": True}, {"listCollections": 1, "filter": {"name": "c"}},
    {"listCollections": 1, "filter": {"name": {"$regex": "^o"}}}, {"listCollections": 1, "filter": {"type": "view"}},
    {"listCollections": 1, "filter": {"options": {}}}, {"listCollections": 1, "filter": {"$foo": 1}},
    {"listCollections": 1.0, "nameOnly": True, "filter": {"name": {"$in": ["a", "c"]}}}, {"listCollections": 1, "cursor": {"batchSize": 10}},
    {"listCollections": 1, "authorizedCollections": True, "nameOnly": True}, {"listCollections": 1, "filter": {"idIndex.name": "_id_"}},
], ids=repr)
def test_listing_collections(filled, request_):
    filled.same({"create": "other"})
    filled.same(request_, order=Order.FREE)


def test_databases_appear_and_go(both):
    admin = both.on("admin")
    for name in ("one", "two"):
        both.on(f"{both.name}_{name}").same({"insert": "c", "documents": [{"_id": 1}]})
    own = {"$regex": f"^{both.name}_"}
    for options in ({}, {"nameOnly": True}, {"authorizedDatabases": True}):
        admin.same({"listDatabases": 1, "filter": {"name": own}, **options})
    admin.same({"listDatabases": 1, "filter": {"name": own, "empty": False}})
    both.on(f"{both.name}_one").same({"dropDatabase": 1})
    admin.same({"listDatabases": 1, "filter": {"name": own}})
    both.on(f"{both.name}_two").same({"drop": "c"})
    admin.same({"listDatabases": 1, "filter": {"name": own}})
    both.fails({"listDatabases": 1}, 13)
    admin.fails({"dropDatabase": 1}, 20, texts=Texts.COMPARED)


@pytest.mark.parametrize("name", ["a b", "a.b", "a/b", "a$b", 'a"b', "x" * 63, "x" * 64, "ä", "*", "", "a\0b", "a\\b", "$external"], ids=repr)
def test_names_of_databases_are_checked(servers, name):
    there = servers.on(name)
    # PyMongo refuses such names itself, so the command goes over the wire as it stands.
    for request in ({"insert": "c", "documents": [{"_id": 1}]}, {"find": "c"}, {"dropDatabase": 1}, {"ping": 1}, {"listCollections": 1}):
        there.same(request)


# ---- indexes


SPECIFICATIONS = {
    "plain": [index({"x": 1})],
    "two": [index({"x": 1}), index({"y": -1, "x": 1})],
    "options": [index({"x": 1}, unique=True, sparse=True, background=True, hidden=True, v=2)],
    "false options": [index({"x": 1}, unique=False, sparse=False, background=False, hidden=False)],
    "numbers as directions": [index({"x": 1.5, "y": -2, "z": Int64(7)})],
    "text as direction": [index({"x": "up"})],
    "zero as direction": [index({"x": 0})],
    "boolean as direction": [index({"x": True})],
    "object as direction": [index({"x": {}})],
    "empty key": [{"key": {}, "name": "empty"}],
    "id": [index({"_id": 1})],
    "id with another name": [index({"_id": 1}, name="mine")],
    "id descending": [index({"_id": -1})],
    "id unique": [index({"_id": 1}, unique=True)],
    "id sparse": [index({"_id": 1}, sparse=True)],
    "id hidden": [index({"_id": 1}, hidden=True)],
    "same again": [index({"a": 1})],
    "same key, other name": [index({"a": 1}, name="other")],
    "same name, other key": [index({"z": 1}, name="a_1")],
    "same key, unique": [index({"a": 1}, unique=True)],
    "same key, sparse": [index({"a": 1}, sparse=True)],
    "same key, other name, unique": [index({"a": 1}, name="u", unique=True)],
    "same key as double": [{"key": {"a": 1.0}, "name": "a_1"}],
    "twice in one request": [index({"x": 1}), index({"x": 1})],
    "conflict in one request": [index({"x": 1}), index({"x": 1}, name="second")],
    "no name": [{"key": {"x": 1}}],
    "empty name": [index({"x": 1}, name="")],
    "star as name": [index({"x": 1}, name="*")],
    "_id_ as name": [index({"x": 1}, name="_id_")],
    "no key": [{"name": "x"}],
    "dollar in key": [index({"$x": 1})],
    "dollar inside key": [index({"a.$b": 1})],
    "$** key": [index({"$**": 1})],
    "empty field": [index({"": 1})],
    "dots": [index({"a.": 1})],
    "dots inside": [index({"a..b": 1})],
    "leading dot": [index({".a": 1})],
    "version 1": [index({"x": 1}, v=1)],
    "version 0": [index({"x": 1}, v=0)],
    "version 3": [index({"x": 1}, v=3)],
    "unknown option": [index({"x": 1}, bogus=1)],
    "over duplicates": [index({"a": 1, "z": 1}, unique=True)],
    "text": [index({"x": "text"})],
    "geo": [index({"x": "2dsphere"})],
    "hashed": [index({"x": "hashed"})],
    "hashed, sparse": [index({"x": "hashed"}, sparse=True)],
    "hashed, expiring": [index({"x": "hashed"}, expireAfterSeconds=5)],
    "hashed and more": [index({"x": "hashed", "y": -1}), index({"y": 1, "x": "hashed"}), index({"_id": "hashed"})],
    "hashed beside ascending": [index({"a": "hashed"})],
    "two hashed": [index({"x": "hashed", "y": "hashed"})],
    "hashed and unique": [index({"x": "hashed"}, unique=True)],
    "hashed array": [index({"c": "hashed"})],
    "partial": [index({"x": 1}, partialFilterExpression={"x": {"$gt": 1}})],
    "TTL": [index({"x": 1}, expireAfterSeconds=10)],
    "collation": [index({"x": 1}, collation={"locale": "de"})],
    "32 fields": [index({f"f{at}": 1 for at in range(32)}, name="wide")],
    "33 fields": [index({f"f{at}": 1 for at in range(33)}, name="wide")],
    "64 indexes": [index({f"f{at}": 1}) for at in range(60)],
    "65 indexes": [index({f"f{at}": 1}) for at in range(61)],
    "long name": [index({"x": 1}, name="n" * 500)],
    "same key, hidden, other name": [index({"a": 1}, name="h", hidden=True)],
    "same key and name, hidden": [index({"a": 1}, hidden=True)],
    "same key, sparse, other name": [index({"a": 1}, name="s", sparse=True)],
    "another number as direction": [index({"a": 2}, name="a_2"), index({"a": 1.5}, name="a_15"), index({"a": 3}, name="a_1")],
    "decimal as direction": [index({"x": Decimal128("2")}, name="x"), index({"y": Decimal128("-2")}, name="y")],
    "NaN as direction": [index({"x": float("nan")}, name="x")],
    "empty text as direction": [index({"x": ""}, name="x")],
    "id with version": [index({"_id": 1}, name="_id_", v=1)],
    "id in background": [index({"_id": 1}, name="_id_", background=True)],
    "id with another number": [index({"_id": 2}, name="_id_2")],
    "id and more": [index({"_id": 1, "a": 1}, name="id_a")],
    "numbers as options": [index({"x": 1}, unique=1, sparse=1.5, background=0)],
    "all options in another order": [{"hidden": True, "sparse": True, "background": True, "unique": True, "name": "x", "key": {"x": 1}, "v": 2}],
    "dropDups and ns": [index({"x": 1}, dropDups=True, ns="foo.bar")],
    "options of other kinds": [index({"x": 1}, bits=5, min=1, default_language="x")],
    "options of other kinds, differing": [index({"x": 1}, name="m", bits=5), index({"x": 1}, name="n", min=5)],
    "engine settings": [index({"x": 1}, storageEngine={"wiredTiger": {}})],
    "settings of an unknown engine": [index({"x": 1}, storageEngine={"nosuch": {}})],
    "NUL in name": [index({"x": 1}, name="a\0b")],
    "TTL below zero": [index({"x": 1}, expireAfterSeconds=-1)],
    "TTL of two fields": [index({"x": 1, "y": 1}, expireAfterSeconds=5)],
    "TTL of another type": [index({"x": 1}, expireAfterSeconds="5")],
    "TTL, too long": [index({"x": 1}, expireAfterSeconds=2**31)],
    "TTL with a fraction": [index({"x": -1}, expireAfterSeconds=5.7, sparse=True, hidden=True, background=True)],
    "TTL of _id": [index({"_id": 1}, name="_id_x", expireAfterSeconds=5)],
    "TTL, NaN": [index({"x": 1}, expireAfterSeconds=float("nan"))],
    "TTL where an index has none": [index({"a": 1}, expireAfterSeconds=5)],
    "partial, every permitted operator": [index({"x": 1}, partialFilterExpression={
        "a": {"$gt": 1, "$lte": 5}, "b": {"$exists": True}, "$or": [{"c": {"$in": [1, "x"]}}, {"d": {"$type": ["int", "string"]}}]})],
    "partial, empty": [index({"x": 1}, partialFilterExpression={})],
    "partial, null": [index({"x": 1}, partialFilterExpression={"a": None})],
    "partial and unique": [index({"a": 1}, name="u", unique=True, partialFilterExpression={"_id": {"$lt": 5}})],
    "partial and unique, over duplicates": [index({"a": 1}, name="u", unique=True, partialFilterExpression={"_id": {"$lt": 6}})],
    "partial, listed with other options": [index({"x": 1}, expireAfterSeconds=5, sparse=False, hidden=True, partialFilterExpression={"x": 1})],
    "partial and sparse": [index({"x": 1}, sparse=True, partialFilterExpression={"x": 1})],
    "partial of _id": [index({"_id": 1}, name="_id_", partialFilterExpression={"x": 1})],
    "partial, another type": [index({"x": 1}, partialFilterExpression=5)],
    "partial, same filter in other words": [index({"x": 1}, partialFilterExpression={"a": 1, "b": 2}),
                                            index({"x": 1}, partialFilterExpression={"b": {"$eq": 2.0}, "a": 1}, name="other")],
    "partial, several filters": [index({"x": 1}, partialFilterExpression={"a": 1}), index({"x": 1}, name="y", partialFilterExpression={"a": 2}),
                                 index({"x": 1}, name="z")],
    "partial, name taken": [index({"a": 1}, partialFilterExpression={"a": 1})],
    "partial, not equal": [index({"x": 1}, partialFilterExpression={"a": {"$ne": 1}})],
    "partial, not there": [index({"x": 1}, partialFilterExpression={"a": {"$exists": False}})],
    "partial, pattern": [index({"x": 1}, partialFilterExpression={"a": {"$regex": "x"}})],
    "partial, none of": [index({"x": 1}, partialFilterExpression={"$nor": [{"a": 1}]})],
    "partial, expression": [index({"x": 1}, partialFilterExpression={"$expr": {"$gt": ["$a", 1]}})],
    "partial, unknown operator": [index({"x": 1}, partialFilterExpression={"a": {"$bogus": 1}})],
    "partial, deep": [index({"x": 1}, partialFilterExpression={"$and": [{"$or": [{"$and": [{"a": 1}]}, {"b": 1}]}]})],
    "partial, too deep": [index({"x": 1}, partialFilterExpression={"$and": [{"$or": [{"$and": [{"a": 1, "c": 2}]}, {"b": 1}]}]})],
    "partial, too deep with a field": [index({"x": 1}, partialFilterExpression={"$and": [{"$or": [{"$and": [{"a": 1}]}, {"b": 1}]}], "z": 1})],
    "one new, one there": [index({"a": 1}), index({"x": 1})],
    "same name twice": [index({"x": 1}, name="n"), index({"y": 1}, name="n")],
    "none": [],
}


@pytest.mark.parametrize("specifications", SPECIFICATIONS.values(), ids=SPECIFICATIONS)
def test_creating_indexes(filled, specifications):
    replies = filled.same({"createIndexes": "c", "indexes": specifications})
    if "code" in replies and replies["code"] == known.COMMAND_NOT_SUPPORTED:
        # A kind of index that comes later, so that there is nothing to list.
        return
    filled.same({"listIndexes": "c"})
    filled.same({"createIndexes": "c", "indexes": specifications})
    filled.same({"createIndexes": "new", "indexes": specifications})
    filled.same({"listIndexes": "new"})


@pytest.mark.parametrize("which", ["*", "a_1", "missing", "_id_", {"a": 1}, {"b": -1, "a": 1}, {"a": -1}, {"_id": 1}, ["a_1"],
                                   ["a_1", "c_1"], ["a_1", "missing"], ["_id_"], [], ["*"], 1, None, {"a": 1.0}, [{"a": 1}],
                                   ["*", "a_1"], [1], {}, "", {"_id": 1.0}, {"a": 2}], ids=repr)
def test_dropping_indexes(filled, which):
    filled.same({"dropIndexes": "c", "index": which}, texts=Texts.COMPARED if isinstance(which, str) else Texts.IGNORED)
    filled.same({"listIndexes": "c"})
    filled.same({"dropIndexes": "missing", "index": which})


@pytest.mark.parametrize("size", [0, 1, 2, 4, 5])
def test_indexes_are_listed_in_batches(filled, size):
    replies = filled.same({"listIndexes": "c", "cursor": {"batchSize": size}})
    while replies.is_open():
        replies = filled.same({"getMore": replies.cursor, "collection": "c"})


def test_an_index_is_hidden_and_shown_again(filled):
    for change in ({"name": "a_1", "hidden": True}, {"name": "a_1", "hidden": True}, {"keyPattern": {"a": 1}, "hidden": False},
                   {"name": "missing", "hidden": True}, {"name": "_id_", "hidden": True}, {"name": "a_1"}, {"hidden": True}, {}):
        filled.same({"collMod": "c", "index": change})
        filled.same({"listIndexes": "c"})
        filled.plan({"find": "c", "filter": {"a": 1}})
    filled.same({"collMod": "missing", "index": {"name": "a_1", "hidden": True}})
    filled.same({"collMod": "c"})


def test_documents_begin_and_cease_to_expire(filled):
    for change in ({"name": "a_1", "expireAfterSeconds": 5}, {"keyPattern": {"a": 1}, "expireAfterSeconds": 5},
                   {"name": "a_1", "expireAfterSeconds": 6, "hidden": True}, {"name": "a_1", "expireAfterSeconds": 2**31 - 1, "hidden": True}):
        filled.same({"collMod": "c", "index": change})
        filled.same({"listIndexes": "c"})
    filled.same({"createIndexes": "c", "indexes": [index({"c": 1}, name="s", sparse=True)]})
    filled.same({"collMod": "c", "index": {"keyPattern": {"c": 1}, "expireAfterSeconds": 5}}, texts=Texts.COMPARED)


@pytest.mark.parametrize("name,value", [
    ("ttlMonitorSleepSecs", 0), ("ttlMonitorSleepSecs", -1), ("ttlMonitorSleepSecs", "x"), ("ttlMonitorSleepSecs", None),
    ("ttlMonitorSleepSecs", 2**40), ("ttlMonitorSleepSecs", False),
], ids=repr)
def test_parameters_of_expiry_are_checked(both, name, value):
    both.on("admin").same({"setParameter": 1, name: value}, texts=Texts.COMPARED)


@pytest.mark.parametrize("wanted", [{}, {"a": {"$gt": 2}}, {"b": {"$exists": True}}, {"d.e": {"$lt": 50}}, {"$or": [{"a": 1}, {"c": 5}]}, {"c": {"$type": "int"}}],
                         ids=repr)
def test_a_partial_index_serves_the_same_queries(filled, wanted):
    filled.same({"dropIndexes": "c", "index": "*"})
    filled.same({"createIndexes": "c", "indexes": [index({"a": 1}, partialFilterExpression=wanted), index({"c": 1}, partialFilterExpression=wanted)]})
    for query in ({"a": 3}, {"a": {"$gt": 2}}, {"a": {"$gte": 2}}, {"a": 3, "b": "3"}, {"c": 5, "b": {"$ne": None}}, {"a": 1, "d.e": {"$in": [6, 11]}},
                  {"a": 1, "d.e": 70}, {"$or": [{"a": 3, "b": "8"}, {"a": 4, "b": "9"}]}, {"c": {"$elemMatch": {"$gt": 7, "$lt": 9}}}):
        filled.rows({"find": "c", "filter": query, "sort": {"_id": 1}})
        filled.rows({"find": "c", "filter": query, "sort": {"_id": 1}, "hint": "a_1"})
        filled.same({"count": "c", "query": query})
    filled.same({"update": "c", "updates": [{"q": {"a": 3}, "u": {"$set": {"a": 1, "d.e": 99}}, "multi": True}, {"q": {"a": 4}, "u": {"$unset": {"b": 1}}}]})
    filled.same({"delete": "c", "deletes": [{"q": {"a": {"$gt": 2}}, "limit": 0}]})
    filled.rows({"find": "c", "filter": {}, "sort": {"_id": 1}, "hint": "a_1"})


# ---- statistics and the server itself


def test_statistics_count_documents_and_indexes(filled):
    for request in ({"collStats": "c"}, {"collStats": "missing"}, {"collStats": "c", "scale": 10}, {"dbStats": 1}, {"dbStats": 1, "scale": 10}):
        filled.same(request)
    filled.same({"delete": "c", "deletes": [{"q": {"a": 1}, "limit": 0}]})
    filled.same({"collStats": "c"})
    filled.same({"count": "c"})
    filled.on(f"{filled.name}_missing").same({"dbStats": 1})


@pytest.mark.parametrize("name", ["foo", "atlasVersion", "isdbgrid", "Find", "FIND", "getFreeMonitoringStatus", "$cmd", "", "features "])
def test_unknown_commands_are_refused(both, name):
    if name == "getFreeMonitoringStatus":
        both.on("admin").ask_pando({name: 1})
        return
    both.same({name: 1}, texts=Texts.COMPARED)
    both.same({name: "c", "bogus": 1})


FIELDS_OF_HELLO = ["maxBsonObjectSize", "maxMessageSizeBytes", "maxWriteBatchSize", "logicalSessionTimeoutMinutes", "readOnly", "ok"]


OPTIONS = [
    {"autoIndexId": True}, {"autoIndexId": False}, {"idIndex": {"key": {"_id": 1}, "name": "x"}}, {"idIndex": {"key": {"_id": -1}, "name": "x"}},
    {"idIndex": {"key": {"a": 1}, "name": "x"}}, {"idIndex": {"key": {"_id": 1}, "name": "_id_", "unique": True}},
    {"idIndex": {"key": {"_id": 1}}}, {"storageEngine": {"wiredTiger": {}}}, {"storageEngine": {"nosuch": {}}}, {"storageEngine": {}},
    {"indexOptionDefaults": {}}, {"indexOptionDefaults": {"storageEngine": {"wiredTiger": {}}}}, {"capped": False},
    {"indexOptionDefaults": {"storageEngine": {"nosuch": {}}}}, {"capped": True}, {"size": 5}, {"max": 5}, {"flags": 1}, {"temp": True},
    {"validationLevel": "off"}, {"validationLevel": "strict", "validationAction": "warn"}, {"viewOn": ""}, {"pipeline": []},
    {"expireAfterSeconds": 5}, {"changeStreamPreAndPostImages": {"enabled": False}}, {"validator": {}}, {"collation": {"locale": "simple"}},
    {"collation": {}}, {"writeConcern": {"w": 1}}, {"comment": "x"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_options_of_new_collections(both, options):
    both.same({"create": "c", **options}, texts=Texts.COMPARED)
    look(both)
    both.same({"create": "c", **options}, texts=Texts.COMPARED)
    both.same({"create": "c"})


@pytest.mark.parametrize("changes", [
    {}, {"index": {"name": "a_1"}}, {"index": {"name": "missing", "hidden": True}}, {"index": {"name": "_id_", "hidden": True}},
    {"index": {"keyPattern": {"a": 1}, "hidden": True}}, {"index": {"keyPattern": {"z": 1}, "hidden": True}}, {"index": {"hidden": True}},
    {"index": {"name": "a_1", "keyPattern": {"a": 1}, "hidden": True}}, {"index": {"name": "a_1", "hidden": False}}, {"validator": {}},
    {"index": {"name": "a_1", "expireAfterSeconds": -7}}, {"viewOn": "x"}, {"pipeline": []}, {"expireAfterSeconds": 5}, {"cappedSize": 5},
    {"timeseries": {}}, {"validationLevel": "x"}, {"index": None}, {"index": {"name": "a_1", "expireAfterSeconds": 7.9, "hidden": True}},
    {"index": {"name": "b_-1_a_1", "expireAfterSeconds": 7}}, {"index": {"name": "_id_", "expireAfterSeconds": 7}},
    {"index": {"name": "a_1", "expireAfterSeconds": 2**31}}, {"index": {"name": "a_1", "expireAfterSeconds": "x"}},
], ids=repr)
def test_changing_collections(filled, changes):
    filled.same({"collMod": "c", **changes}, texts=Texts.COMPARED)
    filled.same({"listIndexes": "c"})
    filled.same({"collMod": "missing", **changes}, texts=Texts.COMPARED)


@pytest.mark.parametrize("command", ["hello", "isMaster", "ismaster"])
def test_hello_says_the_same_limits(both, command):
    replies = both.same({command: 1})
    assert all(name in replies for name in FIELDS_OF_HELLO)
    assert replies["maxWireVersion"] == 25 and "topologyVersion" in replies
    assert ("isWritablePrimary" if command == "hello" else "ismaster") in replies
    both.same({command: 1, "helloOk": True})
    both.same({command: 1, "compression": ["snappy", "nothing", "zlib", "zstd"]}, ignore=["compression"])


@pytest.mark.parametrize("request_,fields", [
    ({"buildInfo": 1}, ["version", "versionArray", "modules", "bits", "maxBsonObjectSize", "storageEngines", "gitVersion", "debug"]),
    ({"connectionStatus": 1}, ["authInfo"]), ({"getCmdLineOpts": 1}, ["argv", "parsed"]), ({"hostInfo": 1}, ["system", "os"]),
    ({"getLog": "startupWarnings"}, ["log", "totalLinesWritten"]), ({"getLog": "*"}, ["names"]), ({"whatsmyuri": 1}, ["you"]),
    ({"getParameter": 1, "featureCompatibilityVersion": 1}, ["featureCompatibilityVersion"]), ({"startSession": 1}, ["id", "timeoutMinutes"]),
    ({"serverStatus": 1}, ["host", "version", "process", "pid", "uptime", "connections", "opcounters", "localTime"]), ({"listCommands": 1}, ["commands"]),
    ({"ping": 1}, []), ({"endSessions": []}, []), ({"refreshSessions": []}, []), ({"logout": 1}, []),
], ids=str)
def test_answers_to_questions_of_tools_are_there(both, request_, fields):
    admin = both.on("admin")
    oracle, pando = bson.decode(admin.ask_oracle(request_)), bson.decode(admin.ask_pando(request_))
    assert oracle["ok"] == pando["ok"] == 1
    for name in fields:
        assert type(oracle[name]) is type(pando[name]), name


def test_collections_are_validated_and_measured(filled):
    filled.same({"validate": "c"})
    filled.same({"validate": "c", "metadata": True, "bogus": 1})
    for option in ("full", "background", "repair", "enforceFastCount", "checkBSONConformance"):
        filled.same({"validate": "c", "metadata": True, option: True})
    filled.same({"validate": "c", "metadata": True, "full": True, "background": True})
    filled.same({"compact": "c"}, ignore=["bytesFreed"])
    filled.same({"compact": "c", "force": "x", "bogus": 1}, ignore=["bytesFreed"])
    filled.same({"dataSize": f"{filled.name}.c"}, ignore=["millis"])
    filled.same({"dataSize": f"{filled.name}.c", "estimate": True}, ignore=["millis"])
    filled.same({"profile": -1})
    filled.same({"profile": 0})


def test_operations_are_counted_by_kind(both):
    def counted(ask):
        return bson.decode(ask({"serverStatus": 1}))["opcounters"]

    before = [counted(ask) for ask in (both.ask_oracle, both.ask_pando)]
    both.same({"insert": "c", "documents": [{"_id": at} for at in range(5)]})
    both.same({"insert": "c", "documents": [{"_id": 7}, {"_id": 7}, {"_id": 8}]})
    both.same({"insert": "c", "documents": [{"_id": 7}, {"_id": 9}], "ordered": False})
    both.same({"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}, "multi": True}, {"q": {"_id": 1}, "u": {"a": 2}}]})
    both.same({"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}]})
    both.same({"getMore": both.same({"find": "c", "batchSize": 2}).cursor, "collection": "c"})
    both.same({"find": "c", "filter": {"$foo": 1}})
    expected = {"insert": 9, "update": 2, "delete": 1, "query": 2, "getmore": 1}
    oracle, pando = (counted(ask) for ask in (both.ask_oracle, both.ask_pando))
    assert {kind: pando[kind] - before[1][kind] for kind in expected} == expected
    # MongoDB counts its own work in the background as well.
    assert all(oracle[kind] - before[0][kind] >= number for kind, number in expected.items())


@pytest.mark.parametrize("request_", [
    {"getLog": "nothing"}, {"getLog": 1}, {"getParameter": 1}, {"getParameter": 1, "noSuchParameter": 1},
    {"commitTransaction": 1}, {"abortTransaction": 1},
    {"getLastError": 1}, {"endSessions": [{"id": 1}]}, {"endSessions": 1}, {"explain": 1}, {"explain": {}}, {"explain": {"foo": 1}},
    {"explain": {"find": "c"}, "verbosity": "bogus"}, {"explain": {"explain": {"find": "c"}}}, {"explain": {"insert": "c", "documents": [{}]}},
    {"explain": {"find": 1}}, {"explain": {"find": "c", "bogus": 1}}, {"killCursors": 1, "cursors": []}, {"renameCollection": "a"},
    {"getMore": 1, "collection": "c"}, {"getMore": Int64(0), "collection": "c"},
    {"replSetGetStatus": 1}, {"replSetGetConfig": 1}, {"replSetInitiate": 1}, {"replSetReconfig": {}}, {"getDefaultRWConcern": 1}, {"getDefaultRWConcern": 1, "bogus": 1}, {"dataSize": 5},
    {"dataSize": "x"}, {"dataSize": "no.such"}, {"validate": "missing"}, {"validate": 5}, {"validate": ""}, {"compact": "missing"},
    {"compact": 5}, {"compact": ""}, {"compact": "c", "writeConcern": {"w": 1}}, {"profile": "x"}, {"profile": None},
], ids=repr)
def test_wrong_requests_are_refused(both, request_):
    both.on("admin").same(request_)


@pytest.mark.parametrize("name", ["getCmdLineOpts", "getLog", "getParameter", "listDatabases", "renameCollection", "hostInfo", "serverStatus"])
def test_some_commands_are_for_admin_only(both, name):
    value = {"getLog": "global", "renameCollection": "a.b"}.get(name, 1)
    request = {name: value, **({"to": "a.c"} if name == "renameCollection" else {})}
    codes = [reply.get("code") for reply in (both.oracle[both.name].command(request, check=False), both.pando[both.name].command(request, check=False))]
    assert codes[0] == codes[1]


# ---- explain


PLANS = {
    "scan": {"find": "c"},
    "scan with filter": {"find": "c", "filter": {"x": 1}},
    "id": {"find": "c", "filter": {"_id": 1}},
    "id with sort": {"find": "c", "filter": {"_id": 1}, "sort": {"b": 1}},
    "id range": {"find": "c", "filter": {"_id": {"$gt": 5}}},
    "id in": {"find": "c", "filter": {"_id": {"$in": [1, 2]}}},
    "id with projection": {"find": "c", "filter": {"_id": 1}, "projection": {"a": 1}},
    "index": {"find": "c", "filter": {"a": 1}},
    "index range": {"find": "c", "filter": {"a": {"$gt": 1, "$lt": 3}}},
    "index covered": {"find": "c", "filter": {"a": 1}, "projection": {"a": 1, "_id": 0}},
    "index not covered": {"find": "c", "filter": {"a": 1}, "projection": {"a": 1}},
    "index multikey": {"find": "c", "filter": {"c": 5}, "projection": {"c": 1, "_id": 0}},
    "index computed": {"find": "c", "filter": {"a": 1}, "projection": {"x": "$a"}},
    "excluded": {"find": "c", "filter": {"a": 1}, "projection": {"b": 0}},
    "index and filter": {"find": "c", "filter": {"a": 1, "x": 2}},
    "compound": {"find": "c", "filter": {"b": "5", "a": 1}, "hint": {"b": -1, "a": 1}},
    "compound covered": {"find": "c", "filter": {"b": "5"}, "projection": {"_id": 0, "a": 1, "b": 1}},
    "compound sorted": {"find": "c", "filter": {"b": "5"}, "sort": {"a": 1}},
    "sort by index": {"find": "c", "sort": {"a": 1}},
    "sort by index backwards": {"find": "c", "sort": {"a": -1}},
    "sort by compound": {"find": "c", "sort": {"b": 1, "a": -1}},
    "sort": {"find": "c", "sort": {"x": 1}},
    "sort with limit and skip": {"find": "c", "sort": {"x": 1}, "limit": 5, "skip": 3},
    "limit": {"find": "c", "limit": 5},
    "skip": {"find": "c", "skip": 5},
    "limit and skip": {"find": "c", "limit": 5, "skip": 2, "filter": {"a": 1}},
    "projection": {"find": "c", "projection": {"a": 1}},
    "dotted projection": {"find": "c", "projection": {"d.e": 1}},
    "hint natural": {"find": "c", "filter": {"a": 1}, "hint": {"$natural": 1}},
    "hint by name": {"find": "c", "filter": {"x": 1}, "hint": "a_1"},
    "missing": {"find": "missing", "filter": {"a": 1}},
    "bad hint": {"find": "c", "hint": "missing"},
    "regex": {"find": "c", "filter": {"b": {"$regex": "^1"}}},
    "null": {"find": "c", "filter": {"a": None}},
    "or": {"find": "c", "filter": {"$or": [{"a": 1}, {"c": 2}]}},
    "or without index": {"find": "c", "filter": {"$or": [{"a": 1}, {"x": 2}]}},
    "count": {"count": "c"},
    "count with skip and limit": {"count": "c", "query": {}, "skip": 3, "limit": 5},
    "count by hint": {"count": "c", "hint": {"$natural": 1}},
    "count by index": {"count": "c", "query": {"a": 1}},
    "count by index range": {"count": "c", "query": {"a": {"$gt": 1}}},
    "count by scan": {"count": "c", "query": {"x": 1}},
    "count by index of arrays": {"count": "c", "query": {"c": 5}},
    "count by index range of arrays": {"count": "c", "query": {"c": {"$gt": 1}}},
    "distinct": {"distinct": "c", "key": "a", "query": {}},
    "distinct of a range": {"distinct": "c", "key": "a", "query": {"a": {"$gt": 1}}},
    "distinct by scan": {"distinct": "c", "key": "x", "query": {}},
    "update": {"update": "c", "updates": [{"q": {"a": 1}, "u": {"$set": {"x": 1}}}]},
    "update by id": {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"x": 1}}}]},
    "delete": {"delete": "c", "deletes": [{"q": {"a": 1}, "limit": 0}]},
    "delete by scan": {"delete": "c", "deletes": [{"q": {"x": 1}, "limit": 1}]},
    "findAndModify": {"findAndModify": "c", "query": {"a": 1}, "update": {"$set": {"x": 1}}},
    "findAndModify remove": {"findAndModify": "c", "query": {"_id": 1}, "remove": True},
    "aggregate match": {"aggregate": "c", "pipeline": [{"$match": {"a": 1}}], "cursor": {}},
    "aggregate empty": {"aggregate": "c", "pipeline": [], "cursor": {}},
    "aggregate sort": {"aggregate": "c", "pipeline": [{"$sort": {"a": 1}}], "cursor": {}},
    "aggregate match sort limit": {"aggregate": "c", "pipeline": [{"$match": {"a": 1}}, {"$sort": {"x": 1}}, {"$limit": 3}], "cursor": {}},
    "aggregate unwind": {"aggregate": "c", "pipeline": [{"$match": {"a": 1}}, {"$unwind": "$c"}, {"$limit": 2}], "cursor": {}},
    "aggregate count": {"aggregate": "c", "pipeline": [{"$match": {"a": {"$gt": 1}}}, {"$group": {"_id": 1, "n": {"$sum": 1}}}], "cursor": {}},
    "aggregate group": {"aggregate": "c", "pipeline": [{"$group": {"_id": "$x", "n": {"$sum": 1}}}], "cursor": {}},
    "aggregate match behind unwind": {"aggregate": "c", "pipeline": [{"$unwind": "$c"}, {"$match": {"a": 1, "c": 5}}], "cursor": {}},
    "aggregate match behind a new field": {"aggregate": "c", "pipeline": [{"$addFields": {"z": 1}}, {"$match": {"a": 2}}], "cursor": {}},
    "aggregate match behind lookup": {
        "aggregate": "c",
        "pipeline": [{"$lookup": {"from": "d", "localField": "a", "foreignField": "_id", "as": "l"}}, {"$match": {"a": 2}}],
        "cursor": {},
    },
    "aggregate match behind sort": {"aggregate": "c", "pipeline": [{"$sort": {"x": 1}}, {"$match": {"a": 2}}, {"$limit": 3}], "cursor": {}},
    "aggregate limits": {"aggregate": "c", "pipeline": [{"$skip": 3}, {"$skip": 2}, {"$limit": 4}, {"$limit": 2}], "cursor": {}},
    "aggregate limit and skip": {"aggregate": "c", "pipeline": [{"$limit": 9}, {"$skip": 2}], "cursor": {}},
    "aggregate sort behind unwind": {"aggregate": "c", "pipeline": [{"$unwind": "$c"}, {"$match": {"a": 1}}, {"$sort": {"a": 1}}], "cursor": {}},
}


# Plans that are other ones in Pando: a scan where an index would not narrow the search, the collection's counter under a pipeline that
# counts, no projection of a pipeline within the plan, groups over an index.
OTHER_PLANS = {
    "not": {"find": "c", "filter": {"a": {"$ne": 1}}},
    "exists": {"find": "c", "filter": {"a": {"$exists": True}}},
    "aggregate count of all": {"aggregate": "c", "pipeline": [{"$group": {"_id": 1, "n": {"$sum": 1}}}], "cursor": {}},
    "aggregate project": {"aggregate": "c", "pipeline": [{"$match": {"a": 1}}, {"$project": {"a": 1, "_id": 0}}], "cursor": {}},
    "aggregate group by an index": {"aggregate": "c", "pipeline": [{"$group": {"_id": "$a", "n": {"$sum": 1}}}], "cursor": {}},
}


@pytest.mark.parametrize("request_", PLANS.values(), ids=PLANS)
def test_plans_have_the_same_stages(filled, request_):
    filled.plan(request_)


@pytest.mark.parametrize("request_", OTHER_PLANS.values(), ids=OTHER_PLANS)
def test_plans_that_are_other_ones_are_explained(filled, request_):
    explain = {"explain": request_, "verbosity": "executionStats"}
    oracle, pando = bson.decode(filled.ask_oracle(explain)), bson.decode(filled.ask_pando(explain))
    assert oracle["ok"] == pando["ok"] == 1
    sections = [reply["stages"][0]["$cursor"] if "stages" in reply else reply for reply in (oracle, pando)]
    oracle, pando = (section["queryPlanner"] for section in sections)
    assert oracle.get("parsedQuery", {}) == pando["parsedQuery"]


@pytest.mark.parametrize("verbosity", ["executionStats", "allPlansExecution"])
@pytest.mark.parametrize("request_", [PLANS[name] for name in ("scan with filter", "id", "index", "index covered", "sort", "limit", "count by index",
                                                               "compound covered")], ids=repr)
def test_execution_is_counted(filled, request_, verbosity):
    explain = {"explain": request_, "verbosity": verbosity}
    oracle, pando = bson.decode(filled.ask_oracle(explain)), bson.decode(filled.ask_pando(explain))
    for name in ("executionSuccess", "nReturned", "totalKeysExamined", "totalDocsExamined"):
        assert oracle["executionStats"][name] == pando["executionStats"][name], (name, oracle["executionStats"], pando["executionStats"])


def test_digests_of_a_database(both):
    both.fill("b", [{"_id": at, "x": at} for at in (3, 1, 2)])
    both.fill("a", [{"_id": "x", "y": [1, None]}, {"_id": 2.5}])
    both.same({"create": "empty"})
    both.same({"create": "ordered", "collation": {"locale": "en", "strength": 2}})
    both.same({"insert": "ordered", "documents": [{"_id": name} for name in ("c", "B", "a", 5, "b2")]})
    unlike = ("host", "uuids", "timeMillis")
    for more in ({}, {"collections": ["a"]}, {"collections": []}, {"collections": ["none"]}, {"collections": "a"}, {"collections": [1]}, {"bogus": 1}):
        both.same({"dbHash": 1, **more}, ignore=unlike)
        both.same({"dbhash": 1, **more}, ignore=unlike)


# ---- indexes that become unique


@pytest.mark.parametrize("options", [
    {"prepareUnique": True}, {"prepareUnique": 1}, {"prepareUnique": "x"}, {"prepareUnique": False}, {"prepareUnique": True, "unique": True},
    {"prepareUnique": True, "sparse": True}, {"prepareUnique": True, "partialFilterExpression": {"a": {"$gt": 2}}},
], ids=repr)
def test_an_index_is_created_for_uniqueness(filled, options):
    wanted = {"key": {"d.e": 1}, "name": "e", **options}
    filled.same({"createIndexes": "c", "indexes": [wanted]}, texts=Texts.COMPARED, ignore=["commitQuorum"])
    filled.same({"insert": "c", "documents": [{"_id": 200, "d": {"e": 3}}]})
    filled.same({"insert": "c", "documents": [{"_id": 201, "a": 9, "d": {"e": 3}}]})
    filled.same({"collMod": "c", "index": {"name": "e", "unique": True}}, texts=Texts.COMPARED)
    look(filled)


@pytest.mark.parametrize("change", [
    {"prepareUnique": True}, {"prepareUnique": True, "hidden": True}, {"unique": True}, {"unique": False}, {"unique": "x"}, {"prepareUnique": "x"},
    {"prepareUnique": None}, {"prepareUnique": False}, {"prepareUnique": True, "unique": True},
], ids=repr)
@pytest.mark.parametrize("dry", [None, True, False, "x"], ids=repr)
def test_an_index_becomes_unique_in_steps(filled, change, dry):
    fields = {} if dry is None else {"dryRun": dry}
    for key in [{"a": 1}, {"c": 1}, {"b": -1, "a": 1}]:
        filled.same({"collMod": "c", "index": {"keyPattern": key, **change}, **fields}, texts=Texts.COMPARED)
        filled.same({"collMod": "c", "index": {"keyPattern": key, "prepareUnique": True}}, texts=Texts.COMPARED)
        filled.same({"collMod": "c", "index": {"keyPattern": key, **change}, **fields}, texts=Texts.COMPARED)
        filled.same({"collMod": "c", "index": {"keyPattern": key, "unique": True}}, texts=Texts.COMPARED)
        filled.same({"collMod": "c", "index": {"keyPattern": key, **change}, **fields}, texts=Texts.COMPARED)
    look(filled)
