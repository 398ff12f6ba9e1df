"""Time series: their options, measurements into buckets and out of them, filters, lists and expiry."""

import datetime
import random
import re
import time

import bson
import pytest
from bson.raw_bson import RawBSONDocument
from pymongo import DeleteMany, DeleteOne, InsertOne
from pymongo.errors import BulkWriteError, OperationFailure, WriteError

from server import Server

START = datetime.datetime(2026, 1, 1)


def at(seconds):
    return START + datetime.timedelta(seconds=seconds)


@pytest.fixture
def series(db):
    return db.create_collection("s", timeseries={"timeField": "t", "metaField": "m"})


def test_measurements_come_back_as_they_went_in(db, series):
    chance = random.Random(1)
    rows = [{"_id": n, "t": at(chance.randint(0, 20_000)), "m": {"a": n % 5, "b": "x"}, "v": chance.random(), "i": n, **({"s": f"text {n % 3}"} if n % 4 else {})}
            for n in range(1500)]
    for row in rows[:200]:
        series.insert_one(row)
    series.insert_many(rows[200:])
    found = sorted(series.find(), key=lambda row: row["_id"])
    assert found == rows and list(found[0])[:2] == ["t", "m"]
    assert series.count_documents({}) == 1500 and db["system.buckets.s"].count_documents({}) < 200
    for query in ({"t": {"$gte": at(5000), "$lt": at(9000)}}, {"m.a": 3}, {"m": {"a": 1, "b": "x"}}, {"t": rows[7]["t"]}, {"v": {"$gt": 0.5}, "m.a": {"$in": [1, 2]}},
                  {"$and": [{"t": {"$gt": at(100)}}, {"i": {"$lt": 50}}]}, {"$or": [{"m.a": 1}, {"i": 7}]}, {"s": {"$exists": False}}, {"t": {"$not": {"$gt": at(100)}}}):
        copy = db["plain"]
        if not copy.count_documents({}):
            copy.insert_many(rows)
        key = lambda row: row["_id"]
        assert sorted(series.find(query), key=key) == sorted(copy.find(query), key=key), query
        assert series.count_documents(query) == copy.count_documents(query)
    group = [{"$match": {"t": {"$gte": at(3000)}}}, {"$group": {"_id": "$m.a", "n": {"$sum": 1}, "least": {"$min": "$v"}}}, {"$sort": {"_id": 1}}]
    assert list(series.aggregate(group)) == list(db.plain.aggregate(group))
    assert series.distinct("s") == ["text 0", "text 1", "text 2"]
    assert [row["i"] for row in series.find(sort=[("i", -1)], limit=2, skip=1)] == [1498, 1497]


def test_a_filter_of_time_reads_few_buckets(db, series):
    series.insert_many([{"t": at(3600 * n), "m": n % 2, "v": n} for n in range(500)])
    plan = db.command({"explain": {"find": "s", "filter": {"t": {"$gte": at(3600 * 490)}}}, "verbosity": "executionStats"})
    assert "control.max.t" in str(plan)
    examined = [int(number) for number in re.findall(r"'totalDocsExamined': (\d+)", str(plan))]
    assert examined and max(examined) <= 12
    assert len(list(series.find({"t": {"$gte": at(3600 * 490)}}))) == 10


def test_measurements_without_a_time_are_refused(db, series):
    for row in ({"_id": 1}, {"t": 5}, {"t": None}, {"t": [START]}):
        with pytest.raises(WriteError) as error:
            series.insert_one(row)
        assert error.value.code == 2
    with pytest.raises(BulkWriteError) as error:
        series.insert_many([{"t": START}, {"x": 1}, {"t": START}], ordered=False)
    assert error.value.details["nInserted"] == 2
    with pytest.raises(BulkWriteError) as error:
        series.insert_many([{"t": START}, {"x": 1}, {"t": START}])
    assert error.value.details["nInserted"] == 1 and series.count_documents({}) == 3
    assert db.command("insert", "s", documents=[{"t": START, "q": None}])["n"] == 1
    assert list(series.find({"q": None, "_id": {"$exists": False}})) == [{"t": START, "q": None}]
    series.insert_many([{"_id": 7, "t": START}, {"_id": 7, "t": START}])
    assert series.count_documents({"_id": 7}) == 2


@pytest.mark.parametrize("fields,code", [
    ({}, 40414), ({"timeField": 1}, 14), ({"timeField": "a.b"}, 72), ({"timeField": "t", "metaField": "t"}, 72), ({"timeField": "t", "metaField": "_id"}, 72),
    ({"timeField": "t", "granularity": "days"}, 2), ({"timeField": "t", "bucketMaxSpanSeconds": 100}, 5510500), ({"timeField": "t", "foo": 1}, 40415),
])
def test_wrong_options_are_refused(db, fields, code):
    with pytest.raises(OperationFailure) as error:
        db.command("create", "n", timeseries=fields)
    assert error.value.code == code


def test_lists_and_figures(db, series):
    series.insert_many([{"t": START, "m": 1, "v": n} for n in range(10)])
    listed = {one["name"]: one for one in db.list_collections()}
    options = {"timeField": "t", "metaField": "m", "granularity": "seconds", "bucketMaxSpanSeconds": 3600}
    assert set(listed) == {"s", "system.buckets.s", "system.views"}
    assert (listed["s"]["type"], listed["s"]["options"]) == ("timeseries", {"timeseries": options})
    told = db.command("collStats", "s")
    assert told["timeseries"]["bucketsNs"] == f"{db.name}.system.buckets.s" and told["timeseries"]["bucketCount"] == 1
    for again in ({"timeseries": {"timeField": "t"}}, {}):
        with pytest.raises(OperationFailure) as error:
            db.command("create", "s", **again)
        assert error.value.code == 48
    with pytest.raises(OperationFailure) as error:
        db.command({"convertToCapped": "s", "size": 1})
    assert error.value.code == 166
    with pytest.raises(OperationFailure) as error:
        db["system.buckets.s"].insert_one({"a": 1})
    assert error.value.code == 115
    db.drop_collection("s")
    assert [name for name in db.list_collection_names() if name != "system.views"] == []
    db.create_collection("s", timeseries={"timeField": "t"}).insert_one({"t": START})
    db.drop_collection("system.buckets.s")
    assert [name for name in db.list_collection_names() if name != "system.views"] == []


def test_single_inserts_are_merged_and_survive_a_kill(tmp_path):
    server = Server(tmp_path / "data").start()
    with server.client() as client:
        series = client.k.create_collection("s", timeseries={"timeField": "t", "metaField": "m"})
        for n in range(600):
            series.insert_one({"_id": n, "t": at(n), "m": "one"})
        assert client.k["system.buckets.s"].count_documents({}) < 20
    server.kill()
    server.start()
    with server.client() as client:
        assert sorted(row["_id"] for row in client.k.s.find()) == list(range(600))
        client.k.s.insert_one({"_id": 600, "t": at(600), "m": "one"})
        assert client.k.s.count_documents({}) == 601
    server.stop()


@pytest.mark.needs("one server")
def test_measurements_expire(client, db):
    db.create_collection("e", timeseries={"timeField": "t"}, expireAfterSeconds=3600)
    now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None, microsecond=0)
    db.e.insert_many([{"_id": 1, "t": now - datetime.timedelta(days=2)}, {"_id": 2, "t": now}])
    client.admin.command("setParameter", 1, ttlMonitorSleepSecs=1)
    try:
        for _ in range(100):
            if [row["_id"] for row in db.e.find()] == [2]:
                break
            time.sleep(0.2)
        assert [row["_id"] for row in db.e.find()] == [2]
    finally:
        client.admin.command("setParameter", 1, ttlMonitorSleepSecs=60)


def test_measurements_are_deleted_and_updated_by_their_meta_value(db, series):
    rows = [{"_id": n, "t": at(n), "m": {"b": "x", "a": n % 3}, "v": n} for n in range(30)]
    for row in rows:
        series.insert_one(row)
    assert series.update_many({"m.a": 1}, {"$set": {"m.c": 5}}).raw_result["nModified"] == 10
    assert series.update_many({"m.a": 1}, {"$set": {"m.c": 5}}).raw_result["nModified"] == 0
    # The buckets of the old meta value take no more measurements.
    series.insert_many([{"_id": n, "t": at(n), "m": {"a": 1, "b": "x"}, "v": n} for n in range(30, 60)])
    assert sorted(row["_id"] for row in series.find({"m.c": 5})) == [n for n in range(30) if n % 3 == 1]
    assert series.count_documents({"m": {"a": 1, "b": "x"}}) == 30
    assert series.delete_many({"m.c": 5}).deleted_count == 10
    assert series.delete_many({"$or": [{"m.a": 0}, {"m.a": 7}]}).deleted_count == 10
    assert sorted(row["_id"] for row in series.find()) == [n for n in range(60) if n >= 30 or n % 3 == 2]
    series.insert_one({"_id": 100, "t": at(1), "m": {"a": 0, "b": "x"}})
    assert series.delete_many({}).deleted_count == 41
    assert db["system.buckets.s"].count_documents({}) == 0


@pytest.mark.parametrize("command,code,text", [
    ({"update": "s", "updates": [{"q": {"m": 1}, "u": {"$set": {"m": 1}}}]}, 72, "Cannot perform a non-multi update on a time-series collection"),
    ({"update": "s", "updates": [{"q": {}, "u": {"$set": {"v": 1}}, "multi": True}]}, 72, "which updates a field that is not the metaField 'm'"),
    ({"update": "s", "updates": [{"q": {}, "u": [{"$set": {"m": 1}}], "multi": True}]}, 72, "using a pipeline update"),
    ({"update": "s", "updates": [{"q": {}, "u": {"$set": {"m": 1}}, "multi": True, "upsert": True}]}, 72, "Cannot perform an upsert on a time-series collection"),
])
def test_other_updates_are_refused(db, series, command, code, text):
    series.insert_one({"t": START, "m": 1, "v": 1})
    failed = db.command(command)["writeErrors"][0]
    assert failed["code"] == code and text in failed["errmsg"]
    assert series.count_documents({"m": 1, "v": 1}) == 1


def test_a_series_becomes_coarser_and_its_older_buckets_are_found(db, series):
    series.insert_many([{"_id": n, "t": at(1200 * n), "m": 1} for n in range(100)])
    for granularity, span in [("seconds", 3600), ("minutes", 86400), ("minutes", 86400), ("hours", 2592000)]:
        db.command("collMod", "s", timeseries={"granularity": granularity})
        options = next(db.list_collections(filter={"name": "s"}))["options"]["timeseries"]
        assert (options["granularity"], options["bucketMaxSpanSeconds"]) == (granularity, span)
        first = series.count_documents({})
        series.insert_many([{"_id": first + n, "t": at(1200 * n), "m": 1} for n in range(100)])
        assert series.count_documents({"t": {"$gte": at(1200 * 50), "$lt": at(1200 * 60)}}) == (first + 100) // 10
    for wrong in ("seconds", "minutes"):
        with pytest.raises(OperationFailure) as error:
            db.command("collMod", "s", timeseries={"granularity": wrong})
        assert error.value.code == 72
    assert series.delete_many({"m": 1}).deleted_count == 500
    report = db.command("validate", "s")
    assert report["valid"] and report["ns"] == f"{db.name}.system.buckets.s"


@pytest.mark.needs("one server")
def test_the_expiry_of_a_series_changes(client, db, series):
    now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None, microsecond=0)
    series.insert_many([{"_id": 1, "t": now - datetime.timedelta(days=2)}, {"_id": 2, "t": now}])
    db.command("collMod", "s", expireAfterSeconds=3600)
    assert next(db.list_collections(filter={"name": "s"}))["options"]["expireAfterSeconds"] == 3600
    client.admin.command("setParameter", 1, ttlMonitorSleepSecs=1)
    try:
        for _ in range(100):
            if [row["_id"] for row in series.find()] == [2]:
                break
            time.sleep(0.2)
        assert [row["_id"] for row in series.find()] == [2]
    finally:
        client.admin.command("setParameter", 1, ttlMonitorSleepSecs=60)
    db.command("collMod", "s", expireAfterSeconds="off")
    assert "expireAfterSeconds" not in next(db.list_collections(filter={"name": "s"}))["options"]


def test_a_bucket_of_many_bytes_comes_whole_in_small_batches(db, series):
    rows = [{"_id": n, "t": at(n), "m": 1, "i": n, "pad": ("x" if n % 3 else "y") * 2000} for n in range(600)]
    series.insert_many(rows)
    for size in (1, 7, 101, 1000):
        assert sorted(series.find(batch_size=size), key=lambda row: row["_id"]) == [{"t": row["t"], "m": 1, **row} for row in rows], size


@pytest.mark.needs("one server")
def test_a_batch_that_ends_a_window_leaves_one_bucket_of_it(db, series):
    for begin in range(0, 1000, 100):
        series.insert_many([{"t": at(10 * n), "m": 1, "v": n} for n in range(begin, begin + 100)])
    # Two windows of 360 measurements have ended.
    counts = sorted(bucket["control"]["count"] for bucket in db["system.buckets.s"].find({}, {"control.count": 1}))
    assert counts[-2:] == [360, 360] and sum(counts) == 1000
    assert series.count_documents({}) == 1000


def scans(plan):
    """The index scans of an explained pipeline, by the names of their indexes."""
    if isinstance(plan, list):
        return [name for part in plan for name in scans(part)]
    if not isinstance(plan, dict):
        return []
    own = [plan["indexName"]] if plan.get("stage") == "IXSCAN" else []
    return own + [name for part in plan.values() for name in scans(part)]


def test_indexes_of_the_meta_field_are_used(db, series):
    series.insert_many([{"_id": n, "t": at(4000 * (n // 50)), "m": {"a": n % 50, "b": "x"}, "v": n} for n in range(1000)])
    series.create_index("m.a", name="by_a")
    series.create_index([("m.b", 1), ("t", -1)], name="by_b")
    series.create_index("v", name="by_v")
    assert [index["key"] for index in series.list_indexes()] == [{"m.a": 1}, {"m.b": 1, "t": -1}, {"v": 1}]
    explained = db.command("explain", {"aggregate": "s", "pipeline": [{"$match": {"m.a": 7}}], "cursor": {}}, verbosity="executionStats")
    assert set(scans(explained)) == {"by_a"}
    assert explained["stages"][0]["$cursor"]["executionStats"]["totalDocsExamined"] == 20
    assert sorted(row["_id"] for row in series.find({"m.a": 7})) == list(range(7, 1000, 50))
    assert set(scans(db.command("explain", {"find": "s", "filter": {"m.b": "x", "t": at(4000)}, "hint": {"m.b": 1, "t": -1}}))) == {"by_b"}
    assert series.count_documents({"m.b": "x", "t": at(4000)}, hint={"m.b": 1, "t": -1}) == 50
    # An index is kept up by inserts, changes of meta values and deletes.
    series.insert_one({"t": at(0), "m": {"a": 7, "b": "x"}, "v": -1})
    assert series.count_documents({"m.a": 7}, hint="by_a") == 21
    series.update_many({"m.a": 7}, {"$set": {"m.a": 1000}})
    assert series.count_documents({"m.a": 1000}, hint="by_a") == 21
    series.delete_many({"m.a": 1000})
    assert series.count_documents({"m.a": 1000}, hint="by_a") == 0
    series.drop_index("by_b")
    assert db.command("dropIndexes", "s", index={"v": 1})["nIndexesWas"] == 2
    assert [index["name"] for index in series.list_indexes()] == ["by_a"]
    assert db["system.buckets.s"].count_documents({"meta.a": 9}, hint="by_a") > 0


@pytest.mark.parametrize("measurements,bytes_each", [(20, 2_000_000), (600, 40_000), (30, 500_000)])
def test_a_window_takes_large_measurements_without_end(db, series, measurements, bytes_each):
    """Buckets were merged by the number of their measurements alone, and one beyond 16 MB ended all inserts of its window."""
    for n in range(measurements):
        series.insert_one({"_id": n, "t": at(n), "m": 1, "s": chr(97 + n % 26) * bytes_each})
    assert sorted(row["_id"] for row in series.find({}, {"_id": 1})) == list(range(measurements))
    assert all(row["s"] == chr(97 + row["_id"] % 26) * bytes_each for row in series.find({"_id": {"$in": [0, 7, 8, measurements - 1]}}))
    buckets = db["system.buckets.s"].count_documents({})
    assert buckets == measurements if bytes_each > 400_000 else buckets < measurements / 8, buckets
    # The window has ended: what is left of it is merged, as far as it fits.
    series.insert_one({"_id": -1, "t": at(5000), "m": 1})
    assert series.count_documents({}) == measurements + 1


def nested(levels):
    value = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def test_measurements_are_checked_as_documents_are(db, series):
    malformed = bson.encode({"t": START, "v": {"a": "text"}}).replace(b"text\0", b"text!")
    for row in ({"t": START, "v": nested(178)}, {"t": START, "m": nested(190)}, RawBSONDocument(malformed)):
        reply = db.command("insert", "s", documents=[{"t": START}, row, {"t": START}], ordered=False)
        assert reply["n"] == 2 and [error["index"] for error in reply["writeErrors"]] == [1], reply
        assert db.command("insert", "s", documents=[{"t": START}, row, {"t": START}])["n"] == 1
    assert series.count_documents({}) == 9 and series.count_documents({"v": {"$exists": True}}) == 0
    row = {"_id": 1, "t": START, "m": nested(150), "v": nested(150)}
    series.insert_one(row)
    assert series.find_one({"_id": 1}) == row


def test_buckets_of_a_client_take_little_memory(client, db):
    """Columns of a few bytes stand for many values: documents that no server has written must not end it."""
    nulls = bson.Binary(b"\x06\x01" + bson.encode({"0": None}), 0x80)
    unpack = {"$_internalUnpackBucket": {"timeField": "t", "bucketMaxSpanSeconds": 3600}}

    def unpacked(count, column, columns):
        data = {"t": {}, **{f"c{n}": column for n in range(columns)}}
        bucket = {"control": {"version": 1, "count": count}, "data": data}
        return list(db.aggregate([{"$documents": [bucket]}, unpack, {"$limit": 3}]))
    assert unpacked(3, nulls, 2) == [{"c0": None, "c1": None}] * 3
    assert unpacked(1000, {}, 30_000) == [{}] * 3
    for count, column, columns in ((1_000_000, {}, 3), (1001, nulls, 3), (1000, nulls, 30_000)):
        with pytest.raises(OperationFailure) as error:
            unpacked(count, column, columns)
        assert error.value.code == (146 if columns > 3 else 2)
    assert client.admin.command("ping")["ok"] == 1


def measured(db, series, n=1000):
    rows = [{"_id": at_, "t": at(at_ * 20), "m": {"a": at_ % 3}, "v": at_, "w": at_ % 7} for at_ in range(n)]
    series.insert_many(rows)
    return {row["_id"]: row for row in rows}


def test_measurements_are_deleted_by_any_field(db, series):
    left = measured(db, series)

    def gone(condition):
        dead = [key for key, row in left.items() if condition(row)]
        for key in dead:
            del left[key]
        return len(dead)

    def same():
        assert {row["_id"]: row for row in series.find()} == left
    assert series.delete_many({"v": {"$gt": 990}}).deleted_count == gone(lambda row: row["v"] > 990)
    assert series.delete_many({"m.a": 1, "w": 2}).deleted_count == gone(lambda row: row["m"]["a"] == 1 and row["w"] == 2)
    assert series.delete_many({"t": {"$gte": at(5000), "$lt": at(9000)}}).deleted_count == gone(lambda row: at(5000) <= row["t"] < at(9000))
    assert series.delete_many({"$expr": {"$eq": ["$w", "$m.a"]}}).deleted_count == gone(lambda row: row["w"] == row["m"]["a"])
    assert series.delete_many({"$or": [{"v": 3}, {"m.a": 2, "w": 4}]}).deleted_count == gone(
        lambda row: row["v"] == 3 or (row["m"]["a"] == 2 and row["w"] == 4))
    assert series.delete_many({"v": -1}).deleted_count == 0
    same()
    # Later inserts of the same windows go on where the buckets are smaller now, or gone.
    series.delete_many({"w": 6})
    gone(lambda row: row["w"] == 6)
    for n in range(100):
        row = {"_id": 5000 + n, "t": at(n * 100), "m": {"a": 1}, "v": n, "w": 9}
        series.insert_one(row)
        left[row["_id"]] = row
        if n % 10 == 0:
            assert series.delete_one({"v": n, "w": 9}).deleted_count == 1
            del left[row["_id"]]
    same()
    assert db.command("validate", "s")["valid"]
    series.create_index("m.a", name="by_a")
    assert series.delete_many({"m.a": 0, "v": {"$lt": 500}}).deleted_count == gone(lambda row: row["m"]["a"] == 0 and row["v"] < 500)
    assert series.count_documents({"m.a": 0}, hint="by_a") == sum(row["m"]["a"] == 0 for row in left.values())
    same()


def test_one_measurement_is_deleted(client, db, series):
    left = measured(db, series, 50)
    assert series.delete_one({"v": 7}).deleted_count == 1
    assert series.delete_one({"v": 7}).deleted_count == 0
    assert series.delete_one({"m.a": 0}).deleted_count == 1
    found = series.find_one_and_delete({"v": 9}, {"t": 0})
    assert found == {key: value for key, value in left[9].items() if key != "t"}
    assert series.find_one_and_delete({"v": 9}) is None
    result = series.bulk_write([DeleteOne({"v": 10}), DeleteMany({"w": 4}), InsertOne({"t": START, "v": 100}), DeleteOne({"v": 100})])
    assert (result.deleted_count, result.inserted_count) == (2 + sum(row["w"] == 4 for row in left.values()), 1)
    result = client.bulk_write([InsertOne({"t": START, "v": 101}, namespace=series.full_name), DeleteOne({"v": 1}, namespace=series.full_name)])
    assert (result.inserted_count, result.deleted_count) == (1, 1)
    assert series.count_documents({"v": {"$in": [7, 9, 10, 1, 100]}}) == 0
    assert series.count_documents({}) == 50 - 4 - sum(row["w"] == 4 for row in left.values())


def test_the_delete_of_one_measurement_is_repeated_by_its_number(server, db, series):
    series.insert_many([{"t": at(n), "v": 1} for n in range(3)])
    # A client of its own, because the numbers are not those that the driver has counted.
    with server.client() as client, client.start_session() as session:
        own = client[db.name]
        delete = {"delete": "s", "deletes": [{"q": {"v": 1}, "limit": 1}], "lsid": session.session_id, "txnNumber": bson.Int64(1)}
        assert [own.command(delete)["n"] for _ in range(2)] == [1, 1]
        assert series.count_documents({}) == 2
        change = {"findAndModify": "s", "query": {"v": 1}, "remove": True, "lsid": session.session_id, "txnNumber": bson.Int64(2)}
        first, again = (own.command(change)["value"] for _ in range(2))
        assert first == again and first["v"] == 1
    assert series.count_documents({}) == 1


def test_deletes_of_measurements_have_their_limits(client, db, series):
    series.insert_one({"t": START, "m": 1, "v": 1})
    for refused, code in (({"sort": [("v", 1)]}, 72), ({"projection": {"$x": 1}}, None)):
        with pytest.raises(OperationFailure) as error:
            series.find_one_and_delete({"v": 1}, **refused)
        assert code in (None, error.value.code)
    with client.start_session() as session:
        for write in (lambda: series.delete_one({"v": 1}, session=session), lambda: series.find_one_and_delete({"v": 1}, session=session)):
            session.start_transaction()
            with pytest.raises(OperationFailure) as error:
                write()
            assert error.value.code == 263
            session.abort_transaction()
    for wrong in ({"$bad": 1}, {"$text": {"$search": "x"}}, {"m": {"$near": [0, 0]}}):
        with pytest.raises(OperationFailure):
            series.delete_one(wrong)
    assert series.count_documents({}) == 1


def test_many_buckets_are_changed_in_steps(db, series):
    series.insert_many([{"t": at(n * 4000), "m": n, "v": n % 2} for n in range(12_000)])
    assert series.delete_many({"v": 1}).deleted_count == 6_000
    assert series.count_documents({}) == series.count_documents({"v": 0}) == 6_000


def test_documents_become_a_series_by_out(client, db):
    rows = [{"_id": n, "t": at(n * 10), "m": n % 3, "v": n} for n in range(3000)]
    db.plain.insert_many(rows)
    given = {"timeField": "t", "metaField": "m"}
    other = client[db.name + "_other"]
    try:
        for target in (db, other):
            for part in (rows, rows[:100]):
                db.plain.aggregate([{"$match": {"_id": {"$lt": len(part)}}}, {"$out": {"db": target.name, "coll": "x", "timeseries": given}}])
                assert sorted(target.x.find(), key=lambda row: row["_id"]) == part
                listed = next(target.list_collections(filter={"name": "x"}))
                assert listed["type"] == "timeseries" and listed["options"]["timeseries"]["metaField"] == "m"
            target.x.create_index("m", name="by_m")
            assert target["system.buckets.x"].count_documents({}) < 20
            db.plain.aggregate([{"$out": {"db": target.name, "coll": "x", "timeseries": {**given, "granularity": "seconds"}}}])
            assert target.x.count_documents({"m": 1}, hint="by_m") == 1000
            target.x.insert_one({"t": at(1), "m": 1})
            assert target.x.count_documents({}) == 3001
    finally:
        client.drop_database(other.name)
    db.command("create", "view", viewOn="plain", pipeline=[])
    for coll, options, code in (("plain", given, 7268700), ("view", given, 166), ("x", {"timeField": "t"}, 7406103), ("x", {**given, "granularity": "hours"}, 7406103),
                                ("y", {}, 40414), ("y", 1, 14), ("y", {"timeField": "v"}, 2)):
        with pytest.raises(OperationFailure) as error:
            db.plain.aggregate([{"$out": {"db": db.name, "coll": coll, "timeseries": options}}])
        assert error.value.code == code, coll
    with pytest.raises(OperationFailure) as error:
        db.plain.aggregate([{"$out": {"db": db.name, "coll": "x", "timeseries": given, "more": 1}}])
    assert error.value.code == 16994
    # A failure leaves the target as it was.
    assert db.x.count_documents({}) == 3001 and {"y", "system.buckets.y"}.isdisjoint(db.list_collection_names())


def test_a_series_has_windows_of_its_own(db):
    own = {"bucketMaxSpanSeconds": 1000, "bucketRoundingSeconds": 1000}
    w = db.create_collection("w", timeseries={"timeField": "t", "metaField": "m", **own})

    def options():
        return next(db.list_collections(filter={"name": "w"}))["options"]["timeseries"]
    assert options() == {"timeField": "t", "metaField": "m", **own}
    w.insert_many([{"_id": n, "t": at(n * 100), "m": 1} for n in range(100)])
    assert db["system.buckets.w"].count_documents({}) == 11
    for span, expected in ((5000, {"bucketMaxSpanSeconds": 5000, "bucketRoundingSeconds": 5000}), (None, {"granularity": "minutes", "bucketMaxSpanSeconds": 86400})):
        change = {"granularity": "minutes"} if span is None else {"bucketMaxSpanSeconds": span, "bucketRoundingSeconds": span}
        db.command("collMod", "w", timeseries=change)
        db.command("collMod", "w", timeseries=change)
        assert options() == {"timeField": "t", "metaField": "m", **expected}
        before = w.count_documents({})
        w.insert_many([{"_id": before + n, "t": at(n * 100), "m": 1} for n in range(100)])
        assert w.count_documents({"t": {"$gte": at(3000), "$lt": at(4000)}}) == (before + 100) // 10
    for wrong in (own, {"bucketMaxSpanSeconds": 100_000}, {"bucketRoundingSeconds": 100_000}, {"granularity": "seconds"}):
        with pytest.raises(OperationFailure) as error:
            db.command("collMod", "w", timeseries=wrong)
        assert error.value.code == 72
    for wrong, code in (({"bucketRoundingSeconds": 1000}, 72), ({"bucketMaxSpanSeconds": 1000, "bucketRoundingSeconds": 100}, 72),
                        ({**own, "granularity": "seconds"}, 72), ({"bucketMaxSpanSeconds": 31536001, "bucketRoundingSeconds": 31536001}, 51024)):
        with pytest.raises(OperationFailure) as error:
            db.command("create", "n", timeseries={"timeField": "t", **wrong})
        assert error.value.code == code


def test_a_delete_takes_the_pattern_of_an_index_of_measurements_as_its_hint(db, series):
    series.insert_many([{"t": at(n), "m": n % 3, "v": n % 2} for n in range(60)])
    series.create_index([("m", 1)])
    assert series.delete_many({"m": 1, "v": 1}, hint=[("m", 1)]).deleted_count == 10
    assert series.delete_one({"m": 1, "v": 0}, hint=[("m", 1)]).deleted_count == 1
    assert series.delete_many({"m": 2}, hint=[("m", 1)]).deleted_count == 20
    assert series.find_one_and_delete({"m": 0}, hint=[("m", 1)])["m"] == 0
    with pytest.raises(OperationFailure) as error:
        series.delete_many({"m": 0}, hint=[("nothing", 1)])
    assert error.value.code == 2


def test_a_delete_of_one_measurement_is_not_as_large_as_all_with_their_meta_values(db, series):
    series.insert_many([{"t": at(n), "m": "short", "v": n} for n in range(900)])
    series.update_many({"m": "short"}, {"$set": {"m": "long" * 500_000}})
    assert series.delete_one({"v": 5}).deleted_count == 1
    assert series.count_documents({}) == 899 and series.count_documents({"v": 5}) == 0
    assert db.command("serverStatus")["mem"]["resident"] < 1_500
