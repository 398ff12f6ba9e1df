"""Time series: options and errors, and queries of measurements. The order of their other fields is the server's own."""

import datetime
import random

import pytest

from both import Order, Texts

START = datetime.datetime(2026, 1, 1)


def series(**fields):
    return {"timeField": "t", **fields}


@pytest.mark.parametrize("fields", [
    *({"timeseries": given} for given in (
        {}, {"timeField": 1}, series(), series(metaField="m"), series(metaField="t"), series(metaField="_id"), {"timeField": "a.b"}, series(metaField="a.b"),
        series(metaField=1), series(granularity="seconds"), series(granularity="minutes"), series(granularity="hours"), series(granularity="days"),
        series(granularity=1), series(bucketMaxSpanSeconds=3600), series(granularity="minutes", bucketMaxSpanSeconds=86400), series(bucketMaxSpanSeconds=100),
        series(bucketMaxSpanSeconds=0), series(foo=1), "x", None)),
    *({"timeseries": series(), **beside} for beside in (
        {"expireAfterSeconds": 100}, {"expireAfterSeconds": -1}, {"expireAfterSeconds": 2**40}, {"expireAfterSeconds": "off"}, {"validator": {"a": 1}},
        {"validationLevel": "off"}, {"viewOn": "x"}, {"idIndex": {"key": {"_id": 1}, "name": "_id_"}}, {"autoIndexId": True},
        {"clusteredIndex": {"key": {"_id": 1}, "unique": True}}, {"capped": True, "size": 10}, {"capped": False}, {"size": 10}, {"pipeline": []})),
], ids=repr)
def test_creates(both, fields):
    both.same({"create": "s", **fields}, texts=Texts.COMPARED)
    both.same({"listCollections": 1, "filter": {"name": "s"}}, order=Order.FREE)


@pytest.mark.parametrize("seed", range(3))
def test_queries(both, seed):
    chance = random.Random(seed)
    both.same({"create": "s", "timeseries": series(metaField="m", granularity=chance.choice(["seconds", "minutes"]))})
    at = lambda: START + datetime.timedelta(seconds=chance.randint(0, 100_000))
    rows = [{"_id": n, "t": at(), "m": chance.choice([1, "x", {"a": n % 3, "b": 1}, None]), "v": chance.choice([n, n / 7, f"text {n % 4}", None]), "w": n % 10}
            for n in range(400)]
    for begin in range(0, 400, 40):
        both.same({"insert": "s", "documents": rows[begin:begin + 40]})
    both.same({"insert": "s", "documents": [{"_id": 1000}, {"t": 5}], "ordered": False}, texts=Texts.COMPARED)
    for filter_ in ({}, {"t": {"$gte": at()}}, {"t": {"$lt": at()}}, {"t": {"$gt": START, "$lte": at()}}, {"m": 1}, {"m.a": 2}, {"m": None}, {"m": {"a": 1, "b": 1}},
                    {"v": {"$gt": 50}}, {"t": rows[3]["t"]}, {"t": {"$ne": rows[3]["t"]}}, {"$or": [{"m": "x"}, {"w": 3}]}, {"m": {"$exists": False}}, {"m": {"$type": "object"}},
                    {"$and": [{"m.a": {"$in": [0, 1]}}, {"t": {"$gte": at()}}]}, {"t": {"$gt": 5}}, {"t": {"$in": [rows[5]["t"], rows[6]["t"]]}}):
        project = {"$project": {"_id": 0, "a": "$_id", "b": "$t", "c": "$m", "d": "$v"}}
        both.rows({"aggregate": "s", "pipeline": [{"$match": filter_}, project, {"$sort": {"a": 1}}]})
        both.rows({"aggregate": "s", "pipeline": [{"$match": filter_}, {"$group": {"_id": "$m", "n": {"$sum": 1}, "max": {"$max": "$v"}}}]}, order=Order.FREE)
        both.same({"count": "s", "query": filter_}, ignore=["ok"])
        both.same({"distinct": "s", "key": "w", "query": filter_}, order=Order.FREE, ignore=["ok", "values"])
    both.rows({"find": "s", "filter": {"w": 3}, "projection": {"_id": 1}, "sort": {"_id": 1}})
    both.rows({"find": "s", "projection": {"t": 1}, "sort": {"_id": -1}, "limit": 5, "skip": 2})


QUERIES = [
    {"m.a": 1}, {"m": {"b": 1, "a": 1}}, {"m": {"a": 1, "b": 1}}, {}, {"v": 1}, {"t": {"$lt": START}}, {"m.a": 1, "v": 1}, {"$and": [{"m.a": 1}, {"m.b": 1}]},
    {"$or": [{"m.a": 1}, {"m.a": 2}]}, {"$or": [{"m.a": 1}, {"v": 2}]}, {"$nor": [{"m.a": 1}]}, {"$expr": {"$eq": ["$m.a", 1]}}, {"_id": 1}, {"mm": 1},
    {"m.a": {"$not": {"$eq": 1}}}, {"$where": "1"}, {"$comment": "x", "m.a": 1}, {"m": {"$exists": True}}, {"m": {"$foo": 1}}, {"v": {"$foo": 1}}, {"$foo": 1},
    {"m.a": {"$in": [0, 2]}}, {"$and": []}, {"$or": 1},
]


@pytest.fixture
def measured(both):
    both.same({"create": "s", "timeseries": series(metaField="m")})
    both.same({"create": "n", "timeseries": series()})
    at = lambda n: START + datetime.timedelta(seconds=n)
    both.same({"insert": "s", "documents": [{"_id": n, "t": at(n), "m": {"b": 1, "a": n % 3}, "v": n} for n in range(12)]})
    both.same({"insert": "n", "documents": [{"_id": n, "t": at(n), "v": n} for n in range(3)]})
    return both


def look(both):
    for name in ("s", "n"):
        both.rows({"aggregate": name, "pipeline": [{"$project": {"_id": 0, "a": "$_id", "b": "$m", "c": "$v"}}, {"$sort": {"a": 1}}]})


def is_of_meta_values(query):
    return not any(f"'{name}'" in repr(query) for name in ("v", "t", "_id", "mm", "$expr", "$where"))


# MongoDB 6.0 refuses the other deletes. They are those of 7.0, which tests/python/test_time_series.py has.
@pytest.mark.parametrize("query", [*filter(is_of_meta_values, QUERIES)], ids=repr)
def test_deletes(measured, query):
    measured.same({"delete": "s", "deletes": [{"q": query, "limit": 0}]}, texts=Texts.COMPARED)
    measured.same({"delete": "n", "deletes": [{"q": {}, "limit": 0}]}, texts=Texts.COMPARED)
    look(measured)


@pytest.mark.parametrize("query", QUERIES, ids=repr)
def test_updates_by_their_filters(measured, query):
    for name in ("s", "n"):
        measured.same({"update": name, "updates": [{"q": query, "u": {"$set": {"m.z": 1}}, "multi": True}]}, texts=Texts.COMPARED)
    look(measured)


@pytest.mark.parametrize("update", [
    {"$set": {"m": {"q": 1}}}, {"$set": {"v": 1}}, {"$set": {"m.a": 9, "v": 1}}, {"$unset": {"m": 1}}, {"$unset": {"m.b": 1}}, {"$rename": {"m.a": "m.r"}},
    {"$rename": {"m.a": "r"}}, {"$rename": {"v": "m.r"}}, [{"$set": {"m.a": 9}}], {"m": 1}, {"$inc": {"m.a": 5}}, {"$set": {"m.a": 1}}, {"$set": {"_id": 9}},
    {"$set": {"t": START}}, {}, {"$setOnInsert": {"m.d": True}}, {"$set": {"m.b.z": 1}}, {"$foo": {"m": 1}}, {"$foo": {"v": 1}}, {"$set": 3}, {"$set": {}},
    {"$mul": {"m.a": 2}, "$max": {"m.b": 7}},
], ids=repr)
@pytest.mark.parametrize("options", [{}, {"multi": True}, {"multi": True, "upsert": True}, {"upsert": True}], ids=repr)
def test_updates(measured, update, options):
    measured.same({"update": "s", "updates": [{"q": {"m.a": 1}, "u": update, **options}]}, texts=Texts.COMPARED)
    measured.same({"update": "n", "updates": [{"q": {}, "u": update, **options}]}, texts=Texts.COMPARED)
    look(measured)


@pytest.mark.parametrize("ordered", [True, False])
def test_batches_of_deletes_and_updates(measured, ordered):
    set_ = lambda query, value: {"q": query, "u": {"$set": {"m.a": value}}, "multi": True}
    measured.same({"update": "s", "updates": [set_({"m.a": 1}, 8), set_({"v": 1}, 9), set_({"m.a": 8}, 10)], "ordered": ordered}, texts=Texts.COMPARED)
    measured.same({"delete": "s", "deletes": [{"q": {"$or": 1}, "limit": 0}, {"q": {"m.a": 2}, "limit": 0}], "ordered": ordered}, texts=Texts.COMPARED)
    look(measured)


@pytest.mark.parametrize("name", ["s", "c", "k", "v", "missing"])
@pytest.mark.parametrize("fields", [
    *({"expireAfterSeconds": seconds} for seconds in (100, "off", "x", -1, 2**31 - 1, 2**40, 5.7, None, True, 0)),
    *({"timeseries": given} for given in (
        {}, {"granularity": "minutes"}, {"granularity": "hours"}, {"granularity": "seconds"}, {"granularity": None}, {"granularity": 1}, {"granularity": "x"},
        {"timeField": "x"}, None, "x")),
    {"validator": {}}, {"validationLevel": "off"}, {"viewOn": "c"}, {"dryRun": True}, {"expireAfterSeconds": 9, "validator": {}},
    {"index": {"name": "zz", "hidden": True}}, {"expireAfterSeconds": 50, "timeseries": {"granularity": "minutes"}},
], ids=repr)
def test_changes_of_collections(both, name, fields):
    both.same({"create": "c"})
    both.same({"create": "k", "clusteredIndex": {"key": {"_id": 1}, "unique": True}})
    both.same({"create": "v", "viewOn": "c", "pipeline": []})
    both.same({"create": "s", "timeseries": series(metaField="m")})
    # Two faults at once: MongoDB tells of the validator of a view first.
    texts = Texts.IGNORED if name == "v" else Texts.COMPARED
    both.same({"collMod": name, **fields}, texts=texts)
    if name == "s" or (name == "k" and "expireAfterSeconds" in fields and len(fields) == 1):
        both.same({"listCollections": 1, "filter": {"name": name}}, order=Order.FREE, ignore=["cursor.firstBatch.0.idIndex"])


def test_granularity_only_grows(both):
    both.same({"create": "s", "timeseries": series(metaField="m")})
    for granularity in ("minutes", "seconds", "minutes", "hours", "minutes", "hours"):
        both.same({"collMod": "s", "timeseries": {"granularity": granularity}}, texts=Texts.COMPARED)
        both.same({"listCollections": 1, "filter": {"name": "s"}}, order=Order.FREE)


def test_a_series_is_validated_by_its_buckets(measured):
    measured.same({"validate": "s"}, ignore=["nIndexes", "keysPerIndex", "indexDetails"])


# Keys with options: indexes of the meta field, of the time, of measurements, and those that are refused.
INDEXES = [
    ({"m": 1}, {}), ({"m": -1}, {}), ({"m.a": 1}, {}), ({"t": 1}, {}), ({"t": -1}, {}), ({"m": 1, "t": -1}, {}), ({"v": 1}, {}), ({"v": -1}, {}), ({"m.a": 1, "v": 1}, {}),
    ({"v.x": 1}, {}), ({"t": 1, "m.a": -1, "v": 1}, {}), ({"mm": 1}, {}), ({"m.a": 1}, {"unique": True}), ({"m.a": 1}, {"sparse": True}), ({"v": 1}, {"sparse": True}),
    ({"t": 1}, {"expireAfterSeconds": 10}), ({"m.a": 1}, {"expireAfterSeconds": 10}), ({"m.a": 1}, {"partialFilterExpression": {"m.a": {"$gt": 1}}}), ({"m.a": "hashed"}, {}),
    ({"v": "hashed"}, {}), ({"m.b": "text"}, {}), ({"v": "text"}, {}), ({"$**": 1}, {}), ({"v.$**": 1}, {}), ({"m.g": "2d"}, {}), ({"m.g": "2dsphere"}, {}),
    ({"m.a": 1}, {"hidden": True}), ({"m.a": 0}, {}),
]


@pytest.mark.parametrize("key, options", INDEXES, ids=repr)
def test_indexes(measured, key, options):
    measured.same({"createIndexes": "s", "indexes": [{"key": key, "name": "i", **options}]}, ignore=["commitQuorum"])
    measured.same({"listIndexes": "s"})
    measured.same({"createIndexes": "s", "indexes": [{"key": key, "name": "i", **options}]}, ignore=["commitQuorum"])
    measured.same({"createIndexes": "s", "indexes": [{"key": key, "name": "other", **options}]}, ignore=["commitQuorum"])
    for filter_ in ({"m.a": 1}, {"t": {"$gte": START + datetime.timedelta(seconds=5)}}, {"v": {"$lt": 4}}, {"m": {"b": 1, "a": 2}}, {"m.a": {"$gt": 1}, "v": {"$ne": 5}}):
        measured.rows({"find": "s", "filter": filter_, "projection": {"_id": 1}, "sort": {"_id": 1}})
        measured.rows({"find": "s", "filter": filter_, "projection": {"_id": 1}, "sort": {"_id": 1}, "hint": key})
        measured.same({"count": "s", "query": filter_, "hint": "i"}, ignore=["ok"])
    measured.same({"collMod": "s", "index": {"keyPattern": key, "hidden": True}})
    measured.same({"collMod": "s", "index": {"name": "i", "hidden": False}}, texts=Texts.COMPARED)
    measured.same({"collMod": "s", "index": {"name": "i", "unique": True}}, texts=Texts.COMPARED)
    measured.same({"collMod": "s", "index": {"name": "i", "prepareUnique": True}}, texts=Texts.COMPARED)
    measured.same({"listIndexes": "s"})
    measured.same({"dropIndexes": "s", "index": key})
    measured.same({"dropIndexes": "s", "index": "i"})
    measured.same({"listIndexes": "s"})


def test_several_indexes_and_none(measured):
    measured.same({"createIndexes": "s", "indexes": [{"key": {"m.a": 1}, "name": "a"}, {"key": {"m": 1}, "name": "u", "unique": True}]})
    measured.same({"listIndexes": "s"})
    measured.same({"createIndexes": "n", "indexes": [{"key": {"t": 1}, "name": "t"}, {"key": {"meta": 1}, "name": "m"}]}, ignore=["commitQuorum"])
    measured.same({"listIndexes": "n"})
    measured.same({"dropIndexes": "n", "index": "*"})
    measured.same({"dropIndexes": "s", "index": "_id_"})
    measured.same({"dropIndexes": "s", "index": ["zz"]})
    for command in ({"find": "s", "filter": {"m.a": 1}}, {"aggregate": "s", "pipeline": [{"$match": {"m.a": 1}}], "cursor": {}}, {"count": "s", "query": {"m.a": 1}}):
        measured.same({**command, "hint": {"m.q": 1}}, ignore=["ok"])
    for stage in ({"$out": "s"}, {"$merge": "s"}, {"$out": "system.buckets.s"}, {"$merge": "system.buckets.s"}):
        measured.same({"aggregate": "n", "pipeline": [stage], "cursor": {}})


def test_the_buckets_keep_a_name_of_buckets(both):
    both.same({"create": "s", "timeseries": series(metaField="m")})
    both.same({"insert": "s", "documents": [{"_id": 1, "t": START, "m": 1}]})
    both.same({"create": "c"})
    admin = both.on("admin")
    for source, target in (("system.buckets.s", "q"), ("system.buckets.none", "q"), ("s", "q"), ("c", "s"), ("none", "s")):
        admin.same({"renameCollection": f"{both.name}.{source}", "to": f"{both.name}.{target}"})
    both.same({"compact": "s", "force": True}, ignore=["bytesFreed"])
    both.same({"compact": "system.buckets.s", "force": True}, ignore=["bytesFreed"])
    both.same({"count": "s"}, ignore=["ok"])


def test_figures_are_those_of_the_buckets(both):
    both.same({"create": "s", "timeseries": series(metaField="m")})
    both.same({"insert": "s", "documents": [{"_id": n, "t": START + datetime.timedelta(seconds=n), "m": n % 2} for n in range(10)]})
    both.same({"createIndexes": "s", "indexes": [{"key": {"m": 1, "t": -1}, "name": "by_m"}]})
    for stage in ({"$collStats": {"count": {}}}, {"$collStats": {"queryExecStats": {}}}):
        both.same({"aggregate": "s", "pipeline": [stage, {"$project": {"host": 0, "localTime": 0}}], "cursor": {}})
    # MongoDB puts the field key last here, and second of other collections.
    for field in ("spec", "key"):
        both.same({"aggregate": "s", "pipeline": [{"$indexStats": {}}, {"$project": {"name": 1, field: 1}}], "cursor": {}})
    kept = {"ns": 1, "storageStats.timeseries": {"bucketsNs": 1, "bucketCount": 1}, "storageStats.capped": 1}
    both.same({"aggregate": "s", "pipeline": [{"$collStats": {"storageStats": {}}}, {"$project": kept}], "cursor": {}})
