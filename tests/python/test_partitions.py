"""Partitioned collections: the same answers as a plain collection, and drops that keep counters, indexes and snapshots right."""

import datetime
import random
import threading
import time

import bson
import pytest
from bson import SON, MaxKey, MinKey, ObjectId
from pymongo import ASCENDING, DESCENDING, MongoClient
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure

from server import Server

pytestmark = pytest.mark.needs("unshared collections")

KEYS = {"id": None, "ts": SON([("ts", 1), ("_id", 1)]), "backwards": SON([("d.e", -1), ("ts", 1), ("_id", 1)])}


def made(db, name="c", key="ts", **options):
    primary = {} if KEYS[key] is None else {"primaryKey": KEYS[key]}
    return db.create_collection(name, partitioned=True, **primary, **options)


def info(collection):
    reply = collection.database.command("getPartitionInfo", collection.name)
    assert reply["numPartitions"] == len(reply["partitions"])
    return reply["partitions"]


def add(collection, **bound):
    more = {"newMax": SON(bound)} if bound else {}
    collection.database.command("addPartition", collection.name, **more)


def drop(collection, **which):
    collection.database.command("dropPartition", collection.name, **which)


def assert_sound(collection):
    db = collection.database
    found = list(collection.find())
    assert len(found) == collection.estimated_document_count() == db.command("collStats", collection.name)["count"]
    report = db.command("validate", collection.name, full=True)
    assert report["valid"], report


def refused(code, action, *arguments, **more):
    with pytest.raises(OperationFailure) as failure:
        action(*arguments, **more)
    assert failure.value.code == code, failure.value.details


def test_partitions_are_added_listed_and_dropped(db):
    c = made(db)
    assert info(c) == [{"_id": 0, "max": {"ts": MaxKey(), "_id": MaxKey()}, "count": 0, "size": 0}]
    refused(17248, add, c)
    c.insert_many([{"_id": at, "ts": at // 10} for at in range(50)])
    add(c)
    add(c, ts=7, _id=MinKey())
    c.insert_many([{"_id": at, "ts": at // 10} for at in range(50, 100)])
    bounds = [partition["max"] for partition in info(c)]
    assert bounds == [{"ts": 4, "_id": 49}, {"ts": 7, "_id": MinKey()}, {"ts": MaxKey(), "_id": MaxKey()}]
    assert all(isinstance(partition["createTime"], datetime.datetime) for partition in info(c)[1:])
    drop(c, id=1)
    assert [document["_id"] for document in c.find().sort("_id")] == [*range(50), *range(70, 100)]
    assert_sound(c)
    # Documents between the bounds go to the next partition.
    c.insert_one({"_id": "between", "ts": 5})
    drop(c, id=2)
    assert [document["_id"] for document in c.find().sort("_id")] == list(range(50))
    assert [partition["_id"] for partition in info(c)] == [0]
    c.insert_one({"_id": 100, "ts": 100})
    add(c)
    assert [partition["_id"] for partition in info(c)] == [0, 3]
    assert_sound(c)
    refused(2, drop, c, id=1)
    drop(c, max=SON([("ts", 1000), ("_id", MinKey())]))
    refused(17252, drop, c, id=3)
    assert c.count_documents({}) == 0
    assert_sound(c)


def test_partitions_up_to_a_bound_are_dropped(db):
    c = made(db, key="id")
    for at in range(100):
        c.insert_one({"_id": at})
        if at % 10 == 9:
            add(c)
    drop(c, max={"_id": 45})
    assert [document["_id"] for document in c.find()] == list(range(40, 100))
    drop(c, max={"_id": 3})
    assert len(info(c)) == 7
    assert_sound(c)


def test_refusals(db):
    for code, options in [
        (17266, {"capped": True, "size": 1000}), (72, {"clusteredIndex": {"key": {"_id": 1}, "unique": True}}), (72, {"layout": "heap"}),
        (72, {"timeseries": {"timeField": "t"}}), (72, {"viewOn": "x", "pipeline": []}),
    ]:
        with pytest.raises(OperationFailure) as failure:
            db.command(SON([("create", "refused"), ("partitioned", True), *options.items()]))
        assert failure.value.code == code, (options, failure.value.details)
    plain = db.create_collection("plain")
    for command in ("addPartition", "dropPartition", "getPartitionInfo"):
        more = {"id": 0} if command == "dropPartition" else {}
        refused(20, db.command, command, "plain", **more)
        refused(26, db.command, command, "nothing", **more)
    c = made(db)
    c.insert_one({"_id": 1, "ts": 5})
    refused(17351, c.create_index, "u", unique=True)
    refused(17351, c.create_index, "p", prepareUnique=True)
    for bound in [{"ts": 5}, {"_id": 1, "ts": 9}, {"ts": [9], "_id": 1}, {"ts": 9, "_id": 1, "x": 1}, {"ts": 4, "_id": 1}, {}]:
        refused(2, db.command, "addPartition", "c", newMax=SON(bound))
    for which in [{}, {"id": 0, "max": SON([("ts", 1), ("_id", 1)])}, {"max": {"ts": 1}}]:
        refused(2, drop, c, **which)
    refused(17252, drop, c, id=0)
    refused(2, c.insert_one, {"_id": "x" * 600, "ts": 1})
    refused(2, c.update_one, {"_id": 1}, {"$set": {"ts": "x" * 600}})
    assert_sound(c)


def test_sizes_of_partitions_are_told(db):
    c = made(db)
    c.insert_many([{"_id": at, "ts": at, "s": "x" * 100} for at in range(30)])
    add(c)
    c.insert_many([{"_id": at, "ts": at} for at in range(30, 40)])
    c.delete_one({"_id": 3})
    shown = [(partition["count"], partition["size"]) for partition in info(c)]
    sizes = [sum(len(bson.encode(document)) for document in c.find(filter)) for filter in ({"ts": {"$lt": 30}}, {"ts": {"$gte": 30}})]
    assert shown == [(29, sizes[0]), (10, sizes[1])]
    stats = db.command("collStats", "c")
    assert stats["partitioned"] is True
    assert [(partition["_id"], partition["count"], partition["size"]) for partition in stats["partitions"]] == [(0, *shown[0]), (1, *shown[1])]
    scaled = db.command("collStats", "c", scale=100)["partitions"]
    assert [partition["size"] for partition in scaled] == [size // 100 for size in sizes]


def some_document(chance, at):
    document = {"_id": at, "ts": chance.randint(0, 40), "a": chance.randint(0, 5), "d": {"e": chance.randint(0, 3)}}
    if chance.random() < 0.5:
        document["tags"] = [chance.randint(0, 9) for _ in range(chance.randint(0, 3))]
    if chance.random() < 0.3:
        document["s"] = "x" * chance.choice([1, 5, 3000]) + str(chance.randint(0, 3))
    if chance.random() < 0.1:
        del document["ts"]
    return document


def some_filter(chance):
    return chance.choice([
        {}, {"_id": chance.randint(0, 300)}, {"_id": {"$in": [chance.randint(0, 300) for _ in range(5)]}}, {"a": chance.randint(0, 5)},
        {"ts": {"$gte": chance.randint(0, 20), "$lt": chance.randint(15, 40)}}, {"ts": chance.randint(0, 40)}, {"tags": chance.randint(0, 9)},
        {"a": {"$in": [1, 4]}, "ts": {"$gt": chance.randint(0, 40)}}, {"s": {"$exists": True}}, {"s": {"$gte": "x"}}, {"d.e": {"$gt": 1}},
        {"$or": [{"a": 2}, {"tags": 3}]}, {"a": {"$gte": 2}, "tags": {"$gt": 4}}, {"ts": None},
    ])


def answers(collection, chance):
    """What a random reader sees."""
    filter, kind = some_filter(chance), chance.randint(0, 6)
    way = chance.choice([ASCENDING, DESCENDING])
    if kind == 0:
        return sorted(map(repr, collection.find(filter)))
    if kind == 1:
        return list(collection.find(filter).sort([("a", way), ("ts", way), ("_id", 1)]))
    if kind == 2:
        return list(collection.find(filter).sort([("a", way), ("_id", 1)]).skip(chance.randint(0, 5)).limit(chance.randint(1, 9)))
    if kind == 3:
        return collection.count_documents(filter)
    if kind == 4:
        return sorted(map(repr, collection.distinct(chance.choice(["a", "ts", "tags", "d.e"]), filter)))
    if kind == 5:
        return list(collection.aggregate([
            {"$match": filter}, {"$group": {"_id": "$a", "n": {"$sum": 1}, "least": {"$min": "$ts"}, "most": {"$max": "$_id"}}}, {"$sort": {"_id": 1}}]))
    return list(collection.find({}, {"_id": 1, "ts": 1}).sort([("ts", way), ("_id", way)]).limit(20))


def change(collection, chance, at):
    """A random statement and its outcome."""
    kind = chance.randint(0, 7)
    try:
        if kind <= 2:
            documents = [some_document(chance, chance.randint(0, 300) if chance.random() < 0.2 else at + n) for n in range(10)]
            return collection.insert_many(documents, ordered=chance.random() < 0.5).inserted_ids
        if kind == 3:
            return collection.update_many(some_filter(chance), {"$inc": {"ts": chance.randint(-3, 9)}}).matched_count
        if kind == 4:
            return collection.update_many(some_filter(chance), {"$set": {"a": chance.randint(0, 5), "tags": [1, 2]}}).matched_count
        if kind == 5:
            return collection.find_one_and_update({"_id": chance.randint(0, 300)}, {"$set": {"s": "y", "d.e": 9}})
        if kind == 6:
            return collection.delete_many({"a": chance.randint(0, 5), "ts": {"$lt": chance.randint(0, 20)}}).deleted_count
        return collection.replace_one({"_id": chance.randint(0, 300)}, {"ts": chance.randint(0, 40), "a": 3}, upsert=True).matched_count
    except BulkWriteError as error:
        return [(failure["index"], failure["code"], failure.get("keyValue")) for failure in error.details["writeErrors"]]
    except OperationFailure as error:
        return error.code


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("key", KEYS)
def test_a_partitioned_collection_answers_as_a_plain_one(db, key, seed):
    partitioned = made(db, "partitioned", key)
    plain = db.create_collection("plain", **({} if KEYS[key] is None else {"primaryKey": KEYS[key]}))
    both = (partitioned, plain)
    for collection in both:
        collection.create_index([("a", 1), ("ts", -1)])
        collection.create_index("tags")
    chance = random.Random(f"{key}{seed}")
    for step in range(50):
        state = chance.getrandbits(64)
        outcomes = [change(collection, random.Random(state), 1000 + 10 * step) for collection in both]
        assert outcomes[0] == outcomes[1], step
        if step == 20:
            for collection in both:
                collection.create_index("s", sparse=True)
                collection.create_index([("d.e", 1)], clustering=True)
        if step % 6 == 5:
            try:
                add(partitioned)
            except OperationFailure as error:
                assert error.code == 17248
        if step % 16 == 15 and len(info(partitioned)) > 1:
            partition = chance.choice(info(partitioned)[:-1])
            before = {document["_id"] for document in partitioned.find({}, {"_id": 1})}
            drop(partitioned, id=partition["_id"])
            gone = before - {document["_id"] for document in partitioned.find({}, {"_id": 1})}
            plain.delete_many({"_id": {"$in": list(gone)}})
        for _ in range(4):
            state = chance.getrandbits(64)
            assert answers(partitioned, random.Random(state)) == answers(plain, random.Random(state)), step
        if step % 25 == 24:
            assert_sound(partitioned)
    assert_sound(partitioned)
    assert_sound(plain)


def test_an_id_is_unique_over_all_partitions(db):
    c = made(db)
    c.insert_one({"_id": 1, "ts": 1})
    add(c)
    c.insert_one({"_id": 2, "ts": 9})
    for document in ({"_id": 1, "ts": 9}, {"_id": 2, "ts": 0}, {"_id": 1, "ts": 1}):
        with pytest.raises(DuplicateKeyError) as failure:
            c.insert_one(document)
        assert failure.value.details["keyValue"] == {"_id": document["_id"]}
    # Many insert one _id into two partitions at once.
    outcomes = []

    def insert(ts):
        for at in range(10, 60):
            try:
                c.insert_one({"_id": at, "ts": ts})
                outcomes.append(at)
            except DuplicateKeyError:
                pass

    writers = [threading.Thread(target=insert, args=(ts,)) for ts in (0, 9, 0, 9)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(outcomes) == list(range(10, 60))
    assert_sound(c)
    c.update_one({"_id": 2}, {"$set": {"ts": 0}})
    assert c.find_one({"_id": 2})["ts"] == 0
    drop(c, id=0)
    assert c.find_one({"_id": 2}) is None and c.find_one({"_id": 1}) is None
    c.insert_one({"_id": 1, "ts": 0})
    assert_sound(c)


def test_cursors_and_transactions_keep_a_dropped_partition(client, db):
    c = made(db)
    c.create_index("a")
    c.insert_many([{"_id": at, "ts": at, "a": at % 3} for at in range(1000)])
    add(c)
    c.insert_many([{"_id": at, "ts": at, "a": at % 3} for at in range(1000, 2000)])
    by_index = c.find({"a": 1}, batch_size=10).hint("a_1")
    by_key = c.find({}, batch_size=10).sort("ts", 1)
    seen = [next(by_index)["_id"] for _ in range(10)], [next(by_key)["_id"] for _ in range(10)]
    with client.start_session() as session, session.start_transaction():
        assert c.count_documents({"a": 1}, session=session) == 667
        drop(c, id=0)
        assert c.count_documents({"a": 1}, hint="a_1", session=session) == 667
        assert c.find_one({"_id": 5}, session=session)["ts"] == 5
        assert len(list(c.find({}, session=session))) == 2000
    assert sorted(seen[0] + [document["_id"] for document in by_index]) == [at for at in range(2000) if at % 3 == 1]
    assert seen[1] + [document["_id"] for document in by_key] == list(range(2000))
    assert c.count_documents({}) == c.count_documents({"a": {"$gte": 0}}, hint="a_1") == 1000
    assert_sound(c)


def test_a_transaction_that_has_written_conflicts_with_a_change_of_partitions(client, db):
    c = made(db)
    c.insert_many([{"_id": at, "ts": at} for at in range(10)])
    with client.start_session() as session:
        session.start_transaction()
        c.insert_one({"_id": 100, "ts": 100}, session=session)
        add(c)
        refused(112, session.commit_transaction)
        session.start_transaction()
        c.insert_one({"_id": 101, "ts": 1}, session=session)
        drop(c, id=0)
        refused(112, session.commit_transaction)
    assert c.count_documents({}) == 0
    assert_sound(c)


def test_all_documents_are_deleted_and_the_partitions_stay(db):
    c = made(db)
    c.create_index("a")
    for at in range(4):
        c.insert_many([{"_id": 1000 * at + n, "ts": at, "a": n % 5} for n in range(1000)])
        add(c)
    assert c.delete_many({}).deleted_count == 4000
    assert_sound(c)
    c.insert_many([{"_id": at, "ts": at % 5, "a": 1} for at in range(20)])
    drop(c, id=1)
    assert c.count_documents({}) == 16
    assert_sound(c)


def test_it_is_renamed_changed_and_dropped_as_a_whole(db):
    c = made(db, validator={"ts": {"$type": "number"}})
    c.insert_many([{"_id": at, "ts": at, "a": at} for at in range(10)])
    add(c)
    c.create_index("a")
    db.command("collMod", "c", index={"name": "a_1", "hidden": True})
    db.command("collMod", "c", validationLevel="off")
    c.rename("d")
    assert len(info(db.d)) == 2
    listed = next(db.list_collections(filter={"name": "d"}))
    assert listed["options"]["partitioned"] is True
    db.d.insert_one({"_id": 100, "ts": 100, "a": 1})
    assert_sound(db.d)
    db.d.drop_index("a_1")
    drop(db.d, id=0)
    assert [document["_id"] for document in db.d.find()] == [100]
    assert_sound(db.d)
    db.d.drop()
    made(db, "d").insert_one({"_id": 1, "ts": 1})
    assert len(info(db.d)) == 1
    assert_sound(db.d)


def test_scans_of_indexes_keep_to_the_partitions_that_may_match(db):
    c = made(db)
    c.create_index("a")
    for at in range(10):
        c.insert_many([{"_id": 100 * at + n, "ts": at, "a": n % 10} for n in range(100)])
        if at < 9:
            add(c)

    def partitions(filter, **more):
        command = SON([("find", "c"), ("filter", filter), ("hint", "a_1"), *more.items()])
        explained = db.command("explain", command, verbosity="executionStats")
        stage = explained["queryPlanner"]["winningPlan"]
        while stage["stage"] != "PARTITIONS":
            stage = stage["inputStage"]
        assert stage["inputStage"]["stage"] == "IXSCAN"
        return stage["kept"], stage["total"], explained["executionStats"]["totalKeysExamined"]

    assert partitions({"a": 3}) == (10, 10, 100)
    assert partitions({"a": 3, "ts": {"$gte": 8}}) == (2, 10, 20)
    assert partitions({"a": 3, "ts": {"$in": [1, 5]}})[2] <= 40
    assert partitions({"a": 3, "ts": {"$gt": 2, "$lte": 4}}, sort={"a": -1})[2] <= 40
    assert partitions({"a": 3, "ts": "x"}) == (1, 10, 10)
    for filter in ({"a": 3, "ts": {"$gte": 8}}, {"a": {"$lt": 4}, "ts": {"$in": [1, 5]}}, {"a": 3, "ts": {"$lt": 1}}):
        assert list(c.find(filter).hint("a_1").sort("_id", 1)) == list(c.find(filter).hint([("$natural", 1)]).sort("_id", 1))


def test_partitions_outlive_a_crash(tmp_path):
    server = Server(tmp_path / "data").start()
    try:
        with server.client() as client:
            c = made(client.db)
            c.create_index("a")
            for at in range(5):
                c.insert_many([{"_id": 100 * at + n, "ts": at, "a": n} for n in range(100)])
                add(c)
            drop(c, id=2)
            before = info(c)
        server.kill()
        server.start()
        with server.client() as client:
            c = client.db.c
            assert info(c) == before
            assert c.count_documents({}) == 400
            assert_sound(c)
            drop(c, id=0)
            add(c, ts=50, _id=MinKey())
            c.insert_one({"_id": "new", "ts": 60, "a": 1})
            assert sorted(document["_id"] for document in c.find({"a": 1}, {"_id": 1}).hint("a_1") if document["_id"] != "new") == [101, 301, 401]
            assert_sound(c)
        assert server.stop() == 0
        server.start()
        with server.client() as client:
            assert_sound(client.db.c)
            assert [partition["_id"] for partition in info(client.db.c)] == [1, 3, 4, 5, 6]
    finally:
        if server.is_running():
            server.stop()


def test_groups_and_intersections_step_over_the_entries_of_all_partitions(db):
    c, plain = made(db, key="id"), db.plain
    for index in ([("a", 1), ("b", 1)], [("b", -1)], [("s", 1)], [("t", 1)]):
        c.create_index(index)
        plain.create_index(index)
    for partition in range(4):
        if partition:
            add(c)
        documents = [{"_id": at, "a": at % 7, "b": at * 31 % 1009, "s": at % 40, "t": at * 7 % 50} for at in range(partition * 500, partition * 500 + 500)]
        c.insert_many(documents)
        plain.insert_many(documents)
    for stages in (
        [{"$group": {"_id": None, "x": {"$min": "$b"}, "y": {"$max": "$b"}}}],
        [{"$group": {"_id": "$a"}}],
        [{"$group": {"_id": "$a", "x": {"$max": "$b"}}}],
        [{"$sort": {"b": 1, "_id": 1}}, {"$group": {"_id": "$a", "x": {"$first": "$b"}, "y": {"$last": "$b"}}}],
        [{"$sort": {"a": 1, "b": -1}}, {"$group": {"_id": "$a", "x": {"$first": "$b"}}}],
        [{"$match": {"_id": {"$gte": 700}}}, {"$group": {"_id": None, "x": {"$min": "$_id"}}}],
    ):
        key = lambda row: repr(row["_id"])
        assert sorted(c.aggregate(stages), key=key) == sorted(plain.aggregate(stages), key=key), stages
        plan = str(db.command("explain", {"aggregate": "c", "pipeline": stages, "cursor": {}}))
        # Where `_id` takes part, no index has the order of the groups.
        is_served = "$group" in stages[0] or "_id" not in str(stages[0])
        assert ("DISTINCT_SCAN" in plan) == is_served, (stages, plan)
    assert sorted(c.distinct("a")) == list(range(7))
    for s, t in [(1, 7), (3, 21), (5, 5), (39, 23)]:
        query = {"s": s, "t": t}
        assert sorted(row["_id"] for row in c.find(query)) == sorted(row["_id"] for row in plain.find(query))


# Loads


def test_out_replaces_the_documents_of_a_partitioned_collection(db):
    c = made(db)
    c.create_index("a")
    for at in range(4):
        c.insert_many([{"_id": 100 * at + n, "ts": at, "a": n % 5} for n in range(100)])
        if at < 3:
            add(c)
    before = info(c)
    db.plain.insert_many([{"_id": n, "ts": n % 6, "a": n % 7} for n in range(600)])
    db.plain.aggregate([{"$out": "c"}])
    assert list(c.find().sort("_id", 1)) == list(db.plain.find().sort("_id", 1))
    assert [(partition["_id"], partition["max"]) for partition in info(c)] == [(partition["_id"], partition["max"]) for partition in before]
    assert [partition["count"] for partition in info(c)] == [17, 117, 116, 350]
    assert c.count_documents({"a": 3}, hint="a_1") == db.plain.count_documents({"a": 3})
    assert_sound(c)
    drop(c, id=1)
    assert c.count_documents({}) == c.count_documents({"a": {"$gte": 0}}, hint="a_1") == 483
    assert_sound(c)
    # One _id in two partitions is a duplicate, and the collection stays as it was.
    db.twice.insert_many([{"key": at % 2, "ts": 50 * at} for at in range(3)])
    with pytest.raises(OperationFailure) as failure:
        db.twice.aggregate([{"$project": {"_id": "$key", "ts": 1}}, {"$out": "c"}])
    assert failure.value.code == 11000 and failure.value.details["keyValue"] == {"_id": 0}
    assert c.count_documents({}) == 483
    assert_sound(c)


def test_merge_writes_into_partitions(db):
    c = made(db)
    c.insert_many([{"_id": n, "ts": n} for n in range(10)])
    add(c)
    db.plain.insert_many([{"_id": n, "ts": n + (20 if n % 2 else 0), "new": True} for n in range(20)])
    db.plain.aggregate([{"$merge": {"into": "c", "whenMatched": "replace"}}])
    assert list(c.find().sort("_id", 1)) == list(db.plain.find().sort("_id", 1))
    assert [partition["count"] for partition in info(c)] == [5, 15]
    assert_sound(c)


def test_a_load_makes_a_partitioned_collection(server):
    with MongoClient(server.uri, maxPoolSize=1, retryWrites=False) as client:
        db = client.load_partitioned
        db.command("beginLoad", ns="c", indexes=[{"key": {"a": 1}, "name": "a_1"}], options={"partitioned": True, "primaryKey": KEYS["ts"]})
        db.c.insert_many([{"_id": n, "ts": n % 7, "a": n % 3} for n in range(1000)])
        db.command("commitLoad")
        assert [partition["count"] for partition in info(db.c)] == [1000]
        add(db.c)
        db.c.insert_one({"_id": "later", "ts": 9, "a": 1})
        drop(db.c, id=0)
        assert [document["_id"] for document in db.c.find({"a": 1}).hint("a_1")] == ["later"]
        assert_sound(db.c)
        now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
        db.command("beginLoad", ns="t", options={"partitionBy": {"field": "ts", "every": "1d", "keep": "9d"}})
        db.t.insert_many([{"_id": n, "ts": now - datetime.timedelta(days=n)} for n in range(9)])
        refused(2, db.t.insert_one, {"_id": "no date"})
        db.command("commitLoad")
        assert db.t.count_documents({}) == 9 and max(partition["count"] for partition in info(db.t)) == 1
        db.command("beginLoad", ns="u", options={"partitionBy": {"field": "ts", "every": "1d", "keep": "9d"}})
        db.u.insert_many([{"_id": 1, "ts": now - datetime.timedelta(days=n)} for n in range(2)])
        refused(11000, db.command, "commitLoad")
        assert "u" not in db.list_collection_names()
        client.drop_database("load_partitioned")


def test_a_plain_collection_is_converted(db):
    db.create_collection("c", validator={"a": {"$type": "number"}})
    c = db.c
    c.insert_many([{"_id": n, "a": n % 5, "ts": n % 11, "tags": [n, n + 1]} for n in range(500)])
    c.create_index("a")
    c.create_index("tags", sparse=True)
    before = list(c.find().sort("_id", 1))
    db.command("convertToPartitioned", "c")
    assert list(c.find().sort("_id", 1)) == before
    assert [(partition["_id"], partition["count"]) for partition in info(c)] == [(0, 500)]
    assert sorted(index["name"] for index in c.list_indexes()) == ["_id_", "a_1", "tags_1"]
    options = next(db.list_collections(filter={"name": "c"}))["options"]
    assert options["partitioned"] is True and options["validator"] == {"a": {"$type": "number"}}
    assert_sound(c)
    refused(20, db.command, "convertToPartitioned", "c")
    add(c)
    c.insert_one({"_id": 1000, "a": 1, "ts": 1})
    # By another primary key.
    db.command("convertToPartitioned", "c", primaryKey=KEYS["ts"])
    assert list(c.find().hint("primaryKey"))[0]["ts"] == 0
    assert [(partition["_id"], partition["count"]) for partition in info(c)] == [(0, 501)]
    assert c.count_documents({"tags": 7}, hint="tags_1") == 2
    assert_sound(c)


def test_refused_conversions_leave_the_collection_as_it_was(db):
    refused(26, db.command, "convertToPartitioned", "nothing")
    db.create_collection("capped", capped=True, size=4096)
    refused(17266, db.command, "convertToPartitioned", "capped")
    db.create_collection("clustered", clusteredIndex={"key": {"_id": 1}, "unique": True})
    refused(72, db.command, "convertToPartitioned", "clustered")
    db.create_collection("view", viewOn="c", pipeline=[])
    refused(166, db.command, "convertToPartitioned", "view")
    c = db.c
    c.insert_many([{"_id": n, "u": n, "d": [n]} for n in range(10)])
    c.create_index("u", unique=True)
    refused(17351, db.command, "convertToPartitioned", "c")
    c.drop_index("u_1")
    refused(2, db.command, "convertToPartitioned", "c", primaryKey=SON([("d", 1), ("_id", 1)]))
    refused(72, db.command, "convertToPartitioned", "c", primaryKey={"d": 1})
    refused(2, db.command, "convertToPartitioned", "c", partitionBy={"every": "1d"})
    refused(72, db.command, "convertToPartitioned", "c", partitionBy={"every": "1 fortnight"})
    refused(40415, db.command, "convertToPartitioned", "c", bogus=1)
    refused(20, db.command, "getPartitionInfo", "c")
    c.insert_one({"_id": 10})
    assert c.count_documents({}) == 11
    assert_sound(c)


# Partitions by time

HOUR = datetime.timedelta(hours=1)


def until(holds, seconds=40):
    """Waits until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never held"
        time.sleep(0.1)


def ends(collection, field="ts"):
    return [partition["max"][field] for partition in info(collection)[:-1]]


def assert_sound_while_all_is_kept(collection, keep):
    """Nothing is dropped between two looks."""
    collection.database.command("collMod", collection.name, partitionBy={"keep": None})
    assert_sound(collection)
    collection.database.command("collMod", collection.name, partitionBy={"keep": keep})


def hour_of(moment):
    return moment.replace(minute=0, second=0, microsecond=0, tzinfo=None)


def test_a_collection_with_partition_by_has_a_partition_for_each_slot(db):
    before = datetime.datetime.now(datetime.UTC)
    c = db.create_collection("c", partitionBy={"field": "ts", "every": "1h", "keep": "5h"})
    after = datetime.datetime.now(datetime.UTC)
    expected = [[hour_of(now) + hours * HOUR for hours in range(-4, 4)] for now in (before, after)]
    assert ends(c) in expected
    options = next(db.list_collections(filter={"name": "c"}))["options"]
    assert options["partitioned"] is True and options["primaryKey"] == {"ts": 1, "_id": 1}
    assert options["partitionBy"] == {"field": "ts", "every": "1h", "keep": "5h"}
    # The options that are listed make the same collection.
    db.command(SON([("create", "again"), *options.items()]))
    assert ends(db.again) in expected
    c.insert_many([{"_id": hours, "ts": after + hours * HOUR} for hours in range(-4, 5)])
    assert max(partition["count"] for partition in info(c)[:-1]) == 1
    assert_sound(c)
    refused(20, add, c, ts=after + 9 * HOUR, _id=MinKey())
    drop(c, id=info(c)[0]["_id"])
    assert_sound(c)


def test_partitions_by_the_time_in_object_ids(db):
    c = db.create_collection("c", partitionBy={"every": "1d", "keep": "3d"})
    assert all(isinstance(end, ObjectId) and str(end).endswith("0" * 16) for end in ends(c, "_id"))
    c.insert_one({"a": 1})
    refused(2, c.insert_one, {"_id": 1})
    refused(2, c.update_one, {"_id": "x"}, {"$set": {"a": 1}}, upsert=True)
    day = datetime.timedelta(days=1)
    c.insert_many([{"_id": ObjectId.from_datetime(datetime.datetime.now(datetime.UTC) - days * day)} for days in range(3)])
    assert sorted(partition["count"] for partition in info(c)) == [0, 0, 0, 0, 1, 1, 2]
    assert_sound(c)


@pytest.mark.parametrize("options", [
    {"partitionBy": {}}, {"partitionBy": {"every": 1}}, {"partitionBy": {"every": "1y"}}, {"partitionBy": {"every": "0d"}}, {"partitionBy": {"keep": "1d"}},
    {"partitionBy": {"every": "1d", "keep": "1h"}}, {"partitionBy": {"every": "1s", "keep": "1d"}}, {"partitionBy": {"every": "1d", "more": 1}},
    {"partitionBy": {"every": "1d", "field": "a"}, "primaryKey": SON([("b", 1), ("_id", 1)])}, {"partitionBy": {"every": "1d", "field": ""}},
    {"partitionBy": {"every": "1d"}, "primaryKey": SON([("b", -1), ("_id", 1)])}, {"partitionBy": {"every": "1d", "field": "$a"}},
    {"partitionBy": {"every": "1d"}, "layout": "heap"}, {"partitionBy": {"every": "1d"}, "timeseries": {"timeField": "t"}},
    {"partitionBy": {"every": "1d"}, "viewOn": "x"}, {"partitionBy": {"every": "1d"}, "clusteredIndex": {"key": {"_id": 1}, "unique": True}},
    {"partitionBy": {"every": "1d", "field": 7}},
])
def test_schedules_that_cannot_be_kept_are_refused(db, options):
    with pytest.raises(OperationFailure) as failure:
        db.command(SON([("create", "c"), *options.items()]))
    assert failure.value.code in (67, 72, 17266), failure.value.details
    assert db.list_collection_names() == []


def test_documents_without_a_date_are_refused(db):
    c = db.create_collection("c", partitionBy={"every": "1d"}, primaryKey=SON([("d.ts", 1), ("k", 1), ("_id", 1)]))
    now = datetime.datetime.now(datetime.UTC)
    for document in ({}, {"d": {}}, {"d": {"ts": 1}}, {"d": {"ts": None}}, {"d": {"ts": [now]}}, {"d": [{"ts": now}]}, {"d": {"ts": "2026-01-01"}}):
        refused(2, c.insert_one, document)
    c.insert_one({"_id": 1, "d": {"ts": now}})
    refused(2, c.update_one, {"_id": 1}, {"$set": {"d.ts": 5}})
    refused(2, c.update_one, {"_id": 1}, {"$unset": {"d": 1}})
    refused(2, c.replace_one, {"_id": 1}, {"a": 1})
    c.update_one({"_id": 1}, {"$set": {"d.ts": now - datetime.timedelta(days=900)}})
    assert c.count_documents({}) == 1
    assert_sound(c)


def test_new_partitions_are_made_and_old_ones_dropped_as_time_passes(db, client):
    c = db.create_collection("c", partitionBy={"field": "ts", "every": "2s", "keep": "4s"})
    c.create_index("a")
    first, began = ends(c), time.monotonic()
    stop = threading.Event()

    def insert():
        while not stop.wait(0.02):
            c.insert_one({"ts": datetime.datetime.now(datetime.UTC), "a": 1})

    writer = threading.Thread(target=insert)
    writer.start()
    try:
        until(lambda: first[-1] in ends(c) and ends(c)[0] > first[0] and ends(c)[-1] > first[-1])
        until(lambda: time.monotonic() - began > 12 and ends(c)[0] > first[-1])
    finally:
        stop.set()
        writer.join()
    # The partitions are as long as they should be.
    made = ends(c)
    assert len(made) <= 10, made
    assert_sound_while_all_is_kept(c, keep="4s")
    until(lambda: c.count_documents({}) == 0)
    assert c.count_documents({"a": 1}, hint="a_1") == 0
    assert_sound(c)


def test_documents_out_of_their_time_expire_all_the_same(db, client):
    client.admin.command("setParameter", 1, ttlMonitorSleepSecs=1)
    try:
        c = db.create_collection("c", partitionBy={"field": "ts", "every": "2s", "keep": "10s"})
        now = datetime.datetime.now(datetime.UTC)
        at = lambda seconds: now + datetime.timedelta(seconds=seconds)  # noqa: E731
        # Documents from the far future lie on both sides of the next ends.
        c.insert_many([{"_id": seconds, "ts": at(seconds)} for seconds in (-100_000, -13, 0, 12, 15, 18, 10_000_000)])
        until(lambda: sorted(document["_id"] for document in c.find()) == [0, 12, 15, 18, 10_000_000], 15)
        until(lambda: [document["_id"] for document in c.find()] == [10_000_000], 60)
        assert_sound(c)
    finally:
        client.admin.command("setParameter", 1, ttlMonitorSleepSecs=60)


def test_drops_wait_while_the_monitor_is_off(db, client):
    client.admin.command("setParameter", 1, ttlMonitorEnabled=False)
    try:
        c = db.create_collection("c", partitionBy={"field": "ts", "every": "1s", "keep": "1s"})
        first = ends(c)
        until(lambda: ends(c)[-1] > first[-1] + datetime.timedelta(seconds=2))
        assert ends(c)[0] == first[0]
    finally:
        client.admin.command("setParameter", 1, ttlMonitorEnabled=True)
    until(lambda: ends(c)[0] > first[0])


def test_the_schedule_is_changed(db):
    c = db.create_collection("c", partitionBy={"field": "ts", "every": "1s", "keep": "200s"})
    assert len(ends(c)) > 200
    c.insert_many([{"_id": n, "ts": datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=n)} for n in range(100)])
    for change in ({"every": "1 d"}, {"keep": "1d"}, {"field": "x"}, {"bogus": 1}, {"every": None}):
        refused(72, db.command, "collMod", "c", partitionBy=change)
    db.command("collMod", "c", partitionBy={"keep": "20s"})
    assert next(db.list_collections(filter={"name": "c"}))["options"]["partitionBy"] == {"field": "ts", "every": "1s", "keep": "20s"}
    until(lambda: len(ends(c)) < 30, 90)
    assert c.count_documents({}) < 30
    db.command("collMod", "c", partitionBy={"keep": None})
    assert next(db.list_collections(filter={"name": "c"}))["options"]["partitionBy"] == {"field": "ts", "every": "1s"}
    # From now on nothing is dropped between two looks.
    assert_sound(c)
    db.create_collection("plain")
    refused(72, db.command, "collMod", "plain", partitionBy={"every": "1d"})


def test_a_plain_collection_gets_a_schedule_by_conversion(db):
    now = datetime.datetime.now(datetime.UTC)
    db.c.insert_many([{"_id": hours, "at": now - hours * HOUR, "a": hours % 2} for hours in range(20)])
    db.c.create_index("a")
    db.command("convertToPartitioned", "c", partitionBy={"field": "at", "every": "1h", "keep": "40h"})
    counts = [partition["count"] for partition in info(db.c)]
    assert sum(counts) == 20 and max(counts) == 1 and len(counts) == 44
    assert_sound(db.c)


def test_an_expiry_index_on_the_key_drops_whole_partitions(db, client):
    c = made(db)
    old = datetime.datetime(2020, 1, 1)
    c.insert_many([{"_id": n, "ts": old + datetime.timedelta(days=n)} for n in range(10)])
    c.insert_many([{"_id": f"no date {n}", "ts": value} for n, value in enumerate([None, 5, "x"])])
    add(c, ts=old + datetime.timedelta(days=20), _id=MinKey())
    c.insert_many([{"_id": 100 + n, "ts": old + datetime.timedelta(days=20 + n)} for n in range(10)])
    add(c, ts=old + datetime.timedelta(days=40), _id=MinKey())
    c.insert_many([{"_id": 200 + n, "ts": datetime.datetime.now(datetime.UTC) + n * HOUR} for n in range(5)])
    c.create_index("ts", expireAfterSeconds=3600)
    client.admin.command("setParameter", 1, ttlMonitorSleepSecs=1)
    try:
        until(lambda: c.count_documents({}) == 8)
    finally:
        client.admin.command("setParameter", 1, ttlMonitorSleepSecs=60)
    # The first one has documents that never expire, so those that did went one by one.
    assert [(partition["_id"], partition["count"]) for partition in info(c)] == [(0, 3), (2, 5)]
    assert_sound(c)


def test_partitions_by_time_outlive_a_restart(tmp_path):
    server = Server(tmp_path / "data").start()
    try:
        with server.client() as client:
            c = client.db.create_collection("c", partitionBy={"field": "ts", "every": "2s", "keep": "6s"})
            c.create_index("a")
            now = datetime.datetime.now(datetime.UTC)
            c.insert_many([{"ts": now - datetime.timedelta(seconds=n), "a": n} for n in range(6)])
            before = ends(c)
        server.kill()
        time.sleep(5)
        server.start()
        with server.client() as client:
            c = client.db.c
            until(lambda: ends(c)[-1] > before[-1])
            c.insert_one({"ts": datetime.datetime.now(datetime.UTC), "a": 1})
            assert_sound_while_all_is_kept(c, keep="6s")
            until(lambda: c.count_documents({}) == 0)
            assert ends(c)[0] > before[-1] - datetime.timedelta(seconds=6)
            assert_sound(c)
        assert server.stop() == 0
    finally:
        if server.is_running():
            server.stop()
