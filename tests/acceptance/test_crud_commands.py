"""The answers of commands that read and write documents, in all shapes: counts, errors of statements, upserts, cursors."""

import re

import pytest
from bson import Decimal128, Int64, ObjectId, Timestamp

from both import Order, Texts, compare
from exact import assemble, exactly
from wire import Wire

TEN = [{"_id": at, "x": at, "even": at % 2 == 0} for at in range(10)]


@pytest.fixture
def ten(both):
    both.same({"insert": "c", "documents": TEN})
    return both


def everything(both):
    return both.rows({"find": "c", "sort": {"_id": 1}})


# ---- insert


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("ids", [[1, 2, 3], [1, 1, 2], [5, 0, 6, 1, 7], [0, 1, 2], [9, 9, 9]])
def test_insert_counts_and_reports_every_duplicate(ten, ids, ordered):
    documents = [{"_id": number, "at": at} for at, number in enumerate(ids)]
    ten.same({"insert": "c", "documents": documents, "ordered": ordered}, texts=Texts.COMPARED)
    everything(ten)


REFUSED_IDS = [[1], [], re.compile("a"), re.compile("", re.I)]
STRANGE_DOCUMENTS = [
    {"$a": 1}, {"a": {"$b": 1}}, {"a.b": 1}, {"": 1}, {"_id": {"$a": 1}}, {"_id": {"a": 1, "b": {"$c": 1}}}, {"_id": {}},
    {"_id": {"a.b": 1}}, {"_id": None}, {"_id": ""}, {"x": 1, "_id": 77}, {"_id": {"x": [1, {"y": None}]}}, {"a": {"": {"": 1}}},
    {"_id": 1.5}, {"_id": Int64(99)}, {"_id": True}, {"$set": {"a": 1}}, {"a": [{"$b": 1}]}, {"_id": [1, 2]},
]


@pytest.mark.parametrize("identity", REFUSED_IDS, ids=repr)
def test_arrays_and_patterns_are_no_ids(both, identity):
    both.same({"insert": "c", "documents": [{"_id": 1}, {"_id": identity}, {"_id": 2}]}, texts=Texts.COMPARED)
    both.same({"insert": "c", "documents": [{"_id": 1}, {"_id": identity}, {"_id": 2}], "ordered": False})
    both.same({"update": "c", "updates": [{"q": {"_id": 50}, "u": {"_id": identity}, "upsert": True}]})
    both.same({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"_id": identity}}}]})
    everything(both)


@pytest.mark.parametrize("document", STRANGE_DOCUMENTS, ids=repr)
def test_strange_names_are_kept_or_refused(both, document):
    if "_id" not in document:
        document = {"_id": 1, **document}
    both.same({"insert": "c", "documents": [document]})
    both.same({"update": "c", "updates": [{"q": {"z": 1}, "u": document, "upsert": True}]})
    everything(both)


def test_the_same_number_of_another_type_is_a_duplicate_id(ten):
    for number in (1.0, Int64(1), True, "1"):
        ten.same({"insert": "c", "documents": [{"_id": number}]}, texts=Texts.COMPARED)


def test_an_absent_id_is_made_by_the_server_and_stands_first(both):
    both.same({"update": "c", "updates": [{"q": {"a": 1}, "u": {"$set": {"b": 2}}, "upsert": True}]},
              ignore=["upserted.*._id"])
    both.same({"find": "c"}, ignore=["cursor.firstBatch.*._id"])
    made = both.pando[both.name].c.find_one()
    assert list(made) == ["_id", "a", "b"] and isinstance(made["_id"], ObjectId)


def test_too_many_and_no_documents_are_refused(both):
    both.fails({"insert": "c", "documents": []}, 16, texts=Texts.COMPARED)
    both.fails({"update": "c", "updates": []}, 16, texts=Texts.COMPARED)
    both.fails({"delete": "c", "deletes": []}, 16, texts=Texts.COMPARED)
    both.fails({"insert": "c", "documents": [{}] * 100_001}, 16, texts=Texts.COMPARED)


def test_documents_over_16_megabytes_are_refused(both):
    both.same({"insert": "c", "documents": [{"_id": 1, "s": "x" * (16 * 1024 * 1024 - 100)}]})
    both.same({"insert": "c", "documents": [{"_id": 2, "s": "x" * (16 * 1024 * 1024 + 100)}]})
    both.same({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"t": "y" * 1000}}}]})
    both.same({"count": "c"})


def nested(depth):
    value = {"x": 1}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize("depth", [99, 100, 150, 178, 179, 180, 181, 182, 199, 200, 201, 250])
def test_nesting_is_limited(both, depth):
    both.same({"insert": "c", "documents": [{"_id": 1, "n": nested(depth)}]})
    both.same({"count": "c"})


def test_an_empty_timestamp_at_the_top_becomes_the_time(both):
    empty = Timestamp(0, 0)
    both.same({"insert": "c", "documents": [{"_id": 1, "t": empty, "in": {"t": empty}, "list": [empty]}, {"_id": empty}]})
    both.same({"update": "c", "updates": [{"q": {"_id": 2}, "u": {"t": empty}, "upsert": True}]})
    both.same({"update": "c", "updates": [{"q": {"_id": 3}, "u": {"$set": {"t": empty}}, "upsert": True}]})
    both.same({"find": "c"}, ignore=["cursor.firstBatch.*.t"], order=Order.FREE)
    kept = [{document["_id"]: document.get("t") == empty for document in client[both.name].c.find()} for client in (both.oracle, both.pando)]
    assert kept[0] == kept[1]
    assert both.pando[both.name].c.find_one({"_id": 1})["t"].time > 1_700_000_000


@pytest.mark.parametrize("bypass", [True, False, 1, "x"])
def test_a_request_may_keep_empty_timestamps(both, bypass):
    empty, option = Timestamp(0, 0), {"bypassEmptyTsReplacement": bypass}
    both.same({"insert": "c", "documents": [{"_id": 1, "t": empty}, {"_id": 2}, {"t": empty, "_id": 3}], **option})
    both.same({"update": "c", "updates": [{"q": {"_id": 2}, "u": {"t": empty}}, {"q": {"_id": 4}, "u": {"t": empty}, "upsert": True}], **option})
    both.same({"update": "c", "updates": [{"q": {"_id": 5}, "u": {"$set": {"t": empty}}, "upsert": True}], **option})
    both.same({"findAndModify": "c", "query": {"_id": 6}, "update": {"t": empty}, "upsert": True, **option})
    both.same({"delete": "c", "deletes": [{"q": {"_id": 99}, "limit": 1}], **option})
    both.same({"aggregate": "c", "pipeline": [], "cursor": {}, **option}, ignore=["cursor.firstBatch.*.t"], order=Order.FREE)
    both.same({"aggregate": "c", "pipeline": [{"$documents": [{"_id": 7, "t": empty}]}, {"$merge": "c"}], "cursor": {}})
    both.same({"aggregate": "c", "pipeline": [{"$match": {"_id": 1}}, {"$set": {"_id": 8, "t": empty}}, {"$merge": "c"}], "cursor": {}})
    kept = [{document["_id"]: document.get("t") == empty for document in client[both.name].c.find()} for client in (both.oracle, both.pando)]
    assert kept[0] == kept[1]


# ---- update


UPDATES = {
    "one": [{"q": {"even": True}, "u": {"$set": {"y": 1}}}],
    "many": [{"q": {"even": True}, "u": {"$set": {"y": 1}}, "multi": True}],
    "no effect": [{"q": {"_id": 1}, "u": {"$set": {"x": 1}}}],
    "half without effect": [{"q": {"_id": {"$in": [1, 2]}}, "u": {"$set": {"x": 1}}, "multi": True}],
    "nothing found": [{"q": {"_id": 100}, "u": {"$set": {"y": 1}}}],
    "upsert finds": [{"q": {"_id": 3}, "u": {"$set": {"y": 1}}, "upsert": True}],
    "upsert inserts": [{"q": {"_id": 100, "x": {"$gt": 5}, "z.q": 7}, "u": {"$set": {"y": 1}}, "upsert": True}],
    "upsert multi": [{"q": {"_id": 100}, "u": {"$inc": {"y": 1}}, "upsert": True, "multi": True}],
    "two upserts": [{"q": {"_id": 101}, "u": {"$set": {"y": 1}}, "upsert": True},
                    {"q": {"_id": 102}, "u": {"y": 2}, "upsert": True}],
    "upsert of an equal": [{"q": {"_id": 3, "x": 99}, "u": {"$set": {"y": 1}}, "upsert": True}],
    "upsert with and": [{"q": {"$and": [{"_id": 103}, {"e": 5}], "f": {"$eq": 6}, "g": {"$in": [4]}}, "u": {"$set": {"y": 1}}, "upsert": True}],
    "upsert with or": [{"q": {"_id": 104, "$or": [{"a": 1}]}, "u": {"$setOnInsert": {"y": 1}}, "upsert": True}],
    "upsert conflicting equalities": [{"q": {"$and": [{"a": 1}, {"a": 2}]}, "u": {"$set": {"y": 1}}, "upsert": True}],
    "upsert replacement with other id": [{"q": {"_id": 105}, "u": {"_id": 106}, "upsert": True}],
    "replacement": [{"q": {"_id": 3}, "u": {"z": 1}}],
    "replacement with id": [{"q": {"x": 3}, "u": {"z": 1, "_id": 3}}],
    "replacement with other id": [{"q": {"_id": 3}, "u": {"_id": 4}}],
    "replacement by an equal": [{"q": {"_id": 3}, "u": {"z": 1}}] * 2,
    "replacement by an equal with id": [{"q": {"_id": 3}, "u": {"_id": 3, "z": 1}}] * 2,
    "replacement by an equal with id last": [{"q": {"_id": 3}, "u": {"z": 1, "_id": 3}}] * 2,
    "replacement of many": [{"q": {}, "u": {"z": 1}, "multi": True}],
    "mixed operators and fields": [{"q": {}, "u": {"$set": {"a": 1}, "b": 2}}],
    "mixed fields and operators": [{"q": {}, "u": {"b": 2, "$set": {"a": 1}}}],
    "unknown operator": [{"q": {}, "u": {"$foo": {"a": 1}}}],
    "operator without object": [{"q": {}, "u": {"$set": 1}}],
    "empty operator": [{"q": {}, "u": {"$set": {}}}],
    "empty update": [{"q": {"_id": 1}, "u": {}}],
    "bad query": [{"q": {"$foo": 1}, "u": {"$set": {"a": 1}}}],
    "inc of a string": [{"q": {"_id": 1}, "u": {"$inc": {"s": "x"}}}],
    "inc of a boolean field": [{"q": {"_id": 1}, "u": {"$inc": {"even": 1}}}],
    "push on a number": [{"q": {"_id": 1}, "u": {"$push": {"x": 1}}}],
    "conflict": [{"q": {"_id": 1}, "u": {"$set": {"a": 1, "a.b": 1}}}],
    "conflict of operators": [{"q": {"_id": 1}, "u": {"$set": {"a": 1}, "$inc": {"a": 1}}}],
    "field of a number": [{"q": {"_id": 1}, "u": {"$set": {"x.y": 1}}}],
    "id changed": [{"q": {"_id": 1}, "u": {"$set": {"_id": 2}}}],
    "id set to itself": [{"q": {"_id": 1}, "u": {"$set": {"_id": 1, "y": 1}}}],
    "id incremented": [{"q": {"_id": 1}, "u": {"$inc": {"_id": 1}}}],
    "error stops": [{"q": {"_id": 1}, "u": {"$set": {"y": 1}}}, {"q": {"_id": 2}, "u": {"$inc": {"even": 1}}},
                    {"q": {"_id": 3}, "u": {"$set": {"y": 1}}}],
    "positional": [{"q": {"_id": 1, "a": 1}, "u": {"$set": {"a.$": 5}}}],
    "bad positional": [{"q": {"_id": 1}, "u": {"$set": {"a.$": 5}}}],
    "array filter missing": [{"q": {"_id": 1}, "u": {"$set": {"a.$[e]": 5}}}],
    "array filter unused": [{"q": {"_id": 1}, "u": {"$set": {"a": 5}}, "arrayFilters": [{"e": 1}]}],
    "sets several in order": [{"q": {"_id": 1}, "u": {"$set": {"b.c": 1, "10": 1, "2": 1, "a": 1}}}],
    "hint": [{"q": {"_id": 1}, "u": {"$set": {"y": 1}}, "hint": {"_id": 1}}],
    "bad hint": [{"q": {"_id": 1}, "u": {"$set": {"y": 1}}, "hint": "nothing"}],
    "rename": [{"q": {}, "u": {"$rename": {"x": "n.x"}}, "multi": True}],
    "unset": [{"q": {}, "u": {"$unset": {"x": ""}}, "multi": True}],
    "min and max": [{"q": {}, "u": {"$min": {"x": 5}, "$max": {"m": 3}}, "multi": True}],
}


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("updates", UPDATES.values(), ids=UPDATES)
def test_update_replies_and_effects(ten, updates, ordered):
    ten.same({"update": "c", "updates": updates, "ordered": ordered}, ignore=["upserted.*._id"] if "conf" in str(updates) else [])
    everything(ten)


def test_updates_that_break_a_unique_index_are_reported(ten):
    ten.same({"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x", "unique": True}]})
    updates = [{"q": {"_id": 1}, "u": {"$set": {"x": 2}}}, {"q": {"_id": 2}, "u": {"$set": {"x": 20}}},
               {"q": {"x": 50}, "u": {"$set": {"_id": 3}}, "upsert": True}]
    for ordered in (True, False):
        ten.same({"update": "c", "updates": updates, "ordered": ordered}, texts=Texts.COMPARED)
        everything(ten)


# ---- delete


DELETES = {
    "one": [{"q": {"even": True}, "limit": 1}],
    "many": [{"q": {"even": True}, "limit": 0}],
    "all": [{"q": {}, "limit": 0}],
    "none": [{"q": {"_id": 100}, "limit": 0}],
    "several": [{"q": {"_id": 1}, "limit": 1}, {"q": {"_id": 1}, "limit": 1}, {"q": {"x": {"$gt": 7}}, "limit": 0}],
    "limit two": [{"q": {}, "limit": 2}],
    "bad query": [{"q": {"_id": 1}, "limit": 1}, {"q": {"$foo": 1}, "limit": 1}, {"q": {"_id": 2}, "limit": 1}],
    "bad hint": [{"q": {"_id": 1}, "limit": 1, "hint": "nothing"}],
    "hint": [{"q": {"_id": 1}, "limit": 1, "hint": "_id_"}],
}


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("deletes", DELETES.values(), ids=DELETES)
def test_delete_replies_and_effects(ten, deletes, ordered):
    ten.same({"delete": "c", "deletes": deletes, "ordered": ordered})
    everything(ten)


# ---- findAndModify


MODIFICATIONS = {
    "old": {"query": {"_id": 1}, "update": {"$set": {"x": 5}}},
    "new": {"query": {"_id": 1}, "update": {"$set": {"x": 5}}, "new": True},
    "nothing": {"query": {"_id": 100}, "update": {"$set": {"x": 5}}},
    "nothing, new": {"query": {"_id": 100}, "update": {"$set": {"x": 5}}, "new": True},
    "upsert old": {"query": {"_id": 100}, "update": {"$set": {"x": 5}}, "upsert": True},
    "upsert new": {"query": {"_id": 100}, "update": {"$set": {"x": 5}}, "upsert": True, "new": True},
    "upsert found": {"query": {"_id": 1}, "update": {"$set": {"x": 5}}, "upsert": True},
    "remove": {"query": {"_id": 1}, "remove": True},
    "remove nothing": {"query": {"_id": 100}, "remove": True},
    "remove sorted": {"query": {"even": True}, "sort": {"x": -1}, "remove": True},
    "sorted": {"query": {}, "sort": {"even": 1, "x": -1}, "update": {"$inc": {"x": 100}}, "new": True},
    "fields": {"query": {"_id": 1}, "update": {"$set": {"x": 5}}, "fields": {"x": 1, "_id": 0}},
    "fields excluded": {"query": {"_id": 1}, "update": {"$set": {"x": 5}}, "new": True, "fields": {"even": 0}},
    "replacement": {"query": {"_id": 1}, "update": {"z": 1}, "new": True},
    "replacement with other id": {"query": {"_id": 1}, "update": {"_id": 2}},
    "no effect": {"query": {"_id": 1}, "update": {"$set": {"x": 1}}},
    "neither": {"query": {"_id": 1}},
    "update and remove": {"query": {"_id": 1}, "update": {"$set": {"x": 5}}, "remove": True},
    "remove and new": {"query": {"_id": 1}, "remove": True, "new": True},
    "remove and upsert": {"query": {"_id": 1}, "remove": True, "upsert": True},
    "bad update": {"query": {"_id": 1}, "update": {"$inc": {"even": 1}}},
    "bad query": {"query": {"$foo": 1}, "update": {"$set": {"x": 1}}},
    "bad sort": {"query": {}, "sort": {"x": 5}, "update": {"$set": {"x": 1}}},
    "array filters": {"query": {"_id": 1}, "update": {"$set": {"a.$[e]": 1}}, "arrayFilters": [{"e": 1}], "new": True},
    "hint": {"query": {"_id": 1}, "update": {"$set": {"x": 5}}, "hint": "_id_"},
    "bad hint": {"query": {"_id": 1}, "update": {"$set": {"x": 5}}, "hint": {"nothing": 1}},
}


@pytest.mark.parametrize("modification", MODIFICATIONS.values(), ids=MODIFICATIONS)
def test_find_and_modify_replies_and_effects(ten, modification):
    ten.same({"findAndModify": "c", **modification})
    everything(ten)
    ten.same({"findAndModify": "missing", **modification})


def test_find_and_modify_reports_a_duplicate_key(ten):
    ten.same({"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x", "unique": True}]})
    ten.same({"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"x": 2}}}, texts=Texts.COMPARED)
    ten.same({"findAndModify": "c", "query": {"_id": 50}, "update": {"$set": {"x": 2}}, "upsert": True}, texts=Texts.COMPARED)


# ---- cursors


@pytest.mark.parametrize("rate", [0, 1, 0.0, 1.0, Int64(1), Decimal128("0"), Decimal128("1.0"), -0.1, 1.1, 2, -1, float("nan"), "x", None, True, [], {}, [0.5], {"a": 1}],
                         ids=repr)
@pytest.mark.parametrize("shape", [
    lambda rate: {"$sampleRate": rate}, lambda rate: {"x": {"$gt": 3}, "$sampleRate": rate}, lambda rate: {"$nor": [{"$sampleRate": rate}]},
    lambda rate: {"$or": [{"x": 3}, {"$sampleRate": rate}]}, lambda rate: {"x": {"$elemMatch": {"$sampleRate": rate}}},
], ids=["alone", "beside", "nor", "or", "element"])
def test_a_sample_rate_of_nothing_or_all_or_a_wrong_one(ten, shape, rate):
    ten.rows({"find": "c", "filter": shape(rate), "sort": {"_id": 1}})
    ten.rows({"aggregate": "c", "pipeline": [{"$match": shape(rate)}, {"$sort": {"_id": 1}}]})
    ten.same({"find": "c", "filter": shape(rate), "sort": {"_id": 1}}, texts=Texts.COMPARED)


@pytest.mark.parametrize("rate", [0, 0.5, 1])
def test_a_sample_rate_in_writes(ten, rate):
    change = {"q": {"_id": 77, "$sampleRate": rate}, "u": {"$set": {"a": 1}}}
    ten.same({"update": "c", "updates": [change]})
    ten.same({"update": "c", "updates": [{**change, "upsert": True}]}, texts=Texts.COMPARED)
    ten.same({"delete": "c", "deletes": [{"q": {"_id": 78, "$sampleRate": rate}, "limit": 1}]})
    everything(ten)


@pytest.mark.parametrize("options", [
    {}, {"batchSize": 0}, {"batchSize": 1}, {"batchSize": 3}, {"batchSize": 10}, {"batchSize": 11}, {"limit": 3},
    {"limit": 3, "batchSize": 2}, {"limit": 3, "batchSize": 3}, {"limit": 0}, {"limit": 10}, {"singleBatch": True, "batchSize": 3},
    {"singleBatch": True}, {"singleBatch": True, "limit": 2}, {"filter": {"_id": 3}, "batchSize": 1}, {"filter": {"_id": 3}, "batchSize": 0}, {"filter": {"_id": 33}, "batchSize": 1}, {"skip": 8}, {"skip": 10}, {"skip": 100}, {"batchSize": 4, "skip": 2},
    {"sort": {"x": -1}, "batchSize": 4}, {"sort": {"x": -1}, "limit": 5, "batchSize": 4}, {"noCursorTimeout": True, "batchSize": 5},
], ids=repr)
@pytest.mark.parametrize("more", [None, 0, 1, 4, 100], ids=lambda more: f"more {more}")
def test_a_cursor_is_open_as_long_and_no_longer(ten, options, more):
    replies = ten.same({"find": "c", **options})
    size = {} if more is None else {"batchSize": more}
    for _ in range(20):
        if not replies.is_open():
            return
        last = replies.cursor
        replies = ten.same({"getMore": last, "collection": "c", **size})
    raise AssertionError("a cursor that does not end")


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11])
def test_aggregates_have_cursors_too(ten, size):
    replies = ten.same({"aggregate": "c", "pipeline": [{"$match": {}}, {"$sort": {"x": -1}}], "cursor": {"batchSize": size}})
    while replies.is_open():
        replies = ten.same({"getMore": replies.cursor, "collection": "c", "batchSize": 4})


def test_an_exhausted_or_killed_or_foreign_cursor_is_not_found(ten):
    replies = ten.same({"find": "c", "batchSize": 4})
    cursor = replies.cursor
    ten.same({"getMore": cursor, "collection": "other"})
    ten.same({"getMore": cursor, "collection": "c", "batchSize": 5})
    ten.same({"getMore": cursor, "collection": "c"})
    ten.fails({"getMore": cursor, "collection": "c"}, 43)
    killed = ten.same({"find": "c", "batchSize": 4}).cursor
    kill = {"killCursors": "c", "cursors": [killed]}
    for name in ("cursorsKilled", "cursorsNotFound", "cursorsAlive", "cursorsUnknown"):
        replies = ten.same(kill, ignore=["cursorsKilled", "cursorsNotFound"])
        assert name in replies
    ten.same(kill, ignore=["cursorsNotFound"])
    ten.fails({"getMore": killed, "collection": "c"}, 43)


def test_a_cursor_survives_the_deletion_of_what_it_has_not_read(ten):
    cursor = ten.same({"find": "c", "batchSize": 2}).cursor
    ten.same({"insert": "other", "documents": [{"_id": 1}]})
    ten.same({"getMore": cursor, "collection": "c", "batchSize": 2})


def test_missing_collections_and_databases_are_empty(both):
    both.same({"find": "missing"})
    both.same({"find": "missing", "filter": {"$foo": 1}})
    both.same({"count": "missing"})
    both.same({"distinct": "missing", "key": "a"})
    both.same({"aggregate": "missing", "pipeline": [], "cursor": {}})
    both.same({"aggregate": "missing", "pipeline": [{"$count": "n"}], "cursor": {}})
    both.same({"update": "missing", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]})
    both.same({"delete": "missing", "deletes": [{"q": {}, "limit": 0}]})
    both.same({"listIndexes": "missing"})
    both.same({"listCollections": 1})


@pytest.mark.parametrize("name", ["", "$x", "a$b", "a..b", ".a", "a.", "system.x", "a b", "ä", "a\0b", "x" * 250, "oplog.$main", "a/b",
                                  "x" * 230, "system.js", "system.users", "system.indexes", "system", "$cmd", "local.x"])
def test_names_of_collections_are_checked_by_every_command(both, name):
    requests = [
        {"insert": name, "documents": [{"_id": 1}]}, {"find": name}, {"count": name}, {"create": name}, {"drop": name},
        {"update": name, "updates": [{"q": {}, "u": {"$set": {"a": 1}}, "upsert": True}]},
        {"aggregate": name, "pipeline": [], "cursor": {}}, {"distinct": name, "key": "a"},
        {"delete": name, "deletes": [{"q": {}, "limit": 0}]},
        {"createIndexes": name, "indexes": [{"key": {"a": 1}, "name": "a"}]}, {"listIndexes": name}, {"dropIndexes": name, "index": "*"},
        {"findAndModify": name, "query": {}, "update": {"$set": {"a": 1}}, "upsert": True}, {"collMod": name},
        {"getMore": Int64(5), "collection": name}, {"killCursors": name, "cursors": []}, {"drop": name},
    ]
    for request in requests:
        both.same(request, ignore=["upserted.*._id", "cursor.firstBatch.*._id", "lastErrorObject.upserted"])


# ---- write concern


@pytest.mark.parametrize("concern", [
    {}, {"w": 1}, {"w": 1, "j": True}, {"w": 1, "j": False}, {"w": "majority"}, {"w": "majority", "wtimeout": 100}, {"j": True},
    {"w": 2}, {"w": 3, "wtimeout": 10}, {"w": "other"}, {"w": -1}, {"w": 51}, {"w": 50}, {"w": 1.5}, {"w": True}, {"w": None},
    {"fsync": True}, {"fsync": True, "j": True}, {"w": 1, "bogus": 1}, {"wtimeout": -1}, {"wtimeout": "x"}, {"j": 1}, {"j": "x"},
    {"w": ""}, {"w": {"a": 1}}, {"w": []}, {"w": {}}, {"w": {"a": "x"}}, {"w": 0}, {"w": 0, "j": True}, {"w": 0.5}, {"w": 50.5},
    {"wtimeout": 2**40}, {"j": None}, {"provenance": "x"}, {"provenance": "clientSupplied"}, {"getLastError": 1}, {"fsync": False}, {"w": Int64(1)}, {"w": 1.0}, {"wtimeout": 1.5},
], ids=repr)
def test_write_concerns_are_met_or_refused(both, concern):
    both.same({"insert": "c", "documents": [{"_id": 1}], "writeConcern": concern})
    both.same({"insert": "c", "documents": [{"_id": 1}, {"_id": 2}], "writeConcern": concern})
    both.same({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 1}}}], "writeConcern": concern})
    both.same({"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 1}], "writeConcern": concern})
    both.same({"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"a": 2}}, "writeConcern": concern})
    both.same({"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}], "writeConcern": concern})
    both.same({"drop": "c", "writeConcern": concern})


@pytest.mark.parametrize("concern", [
    {}, {"level": "local"}, {"level": "majority"}, {"level": "available"}, {"level": "linearizable"}, {"level": "snapshot"},
    {"level": "bogus"}, {"level": 1}, {"bogus": 1}, {"level": "local", "bogus": 1}, {"level": None},
], ids=repr)
def test_read_concerns_are_met_or_refused(ten, concern):
    for request in ({"find": "c"}, {"count": "c"}, {"aggregate": "c", "pipeline": [], "cursor": {}}, {"distinct": "c", "key": "x"},
                    {"insert": "c", "documents": [{"_id": 200}]}):
        ten.same({**request, "readConcern": concern})


@pytest.mark.parametrize("fields", [
    ["find", "filter", "filter", "$db"], ["find", "bogus", "bogus", "$db"], ["find", "$db"], ["ping", "ping", "$db"], ["find"],
    ["find", "comment", "comment", "$db"], ["find", "filter", "filter"], ["missing", "a", "a", "$db"],
], ids=repr)
def test_fields_that_stand_twice_and_missing_databases_are_refused(ten, fields):
    """Requests that no driver sends: documents that name a field twice, or no database."""
    pairs = [(name, exactly({} if name == "filter" else "c" if name == "find" else "x")) for name in fields]
    replies = [raw_command(client, pairs) for client in (ten.oracle, ten.pando)]
    compare({"find": "c"}, *replies, texts=Texts.COMPARED)


def raw_command(client, pairs):
    connection = Wire(*client.address)
    try:
        return connection.send(assemble(pairs))
    finally:
        connection.close()
