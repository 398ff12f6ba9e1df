"""Layouts of collections and clustering indexes: the same answers whatever the layout, and what only they do."""

import random
import threading

import pytest
from bson import SON, Decimal128, Int64
from pymongo import ASCENDING, DESCENDING, InsertOne, MongoClient, ReplaceOne, ReturnDocument
from pymongo.write_concern import WriteConcern
from pymongo.errors import DuplicateKeyError, OperationFailure, WriteError

from server import Server

LAYOUTS = {
    "clustered": {},
    "heap": {"layout": "heap"},
    "fields": {"primaryKey": SON([("ts", 1), ("_id", 1)])},
    "backwards": {"primaryKey": SON([("d.e", -1), ("ts", 1), ("_id", 1)])},
}


def made(db, layout, name="c"):
    db.drop_collection(name)
    return db.create_collection(name, **LAYOUTS[layout])


@pytest.fixture(params=LAYOUTS)
def collection(request, db):
    return made(db, request.param)


def sound(collection):
    report = collection.database.validate_collection(collection.name, full=True)
    assert report["valid"], report
    return report


def stages(plan):
    found = [plan["stage"]]
    while "inputStage" in plan:
        plan = plan["inputStage"]
        found.append(plan["stage"])
    return found


def explained(collection, filter, **more):
    command = {"explain": SON([("find", collection.name), ("filter", filter), *more.items()]),
               "verbosity": "executionStats"}
    reply = collection.database.command(command)
    return stages(reply["queryPlanner"]["winningPlan"]), reply["executionStats"]


def test_a_document_is_found_changed_and_deleted_by_id(collection):
    ids = [1, 2.5, "x", "y" * 3000, None, {"a": 1}, Decimal128("1E+3"), True]
    for number, id in enumerate(ids):
        collection.insert_one({"_id": id, "ts": number % 3, "n": 0})
    for id in ids:
        assert collection.find_one({"_id": id})["_id"] == id
        assert collection.update_one({"_id": id}, {"$inc": {"n": 1}}).modified_count == 1
        assert collection.find_one_and_update(
            {"_id": id}, {"$inc": {"n": 1}}, return_document=ReturnDocument.AFTER)["n"] == 2
        with pytest.raises(DuplicateKeyError) as refused:
            collection.insert_one({"_id": id, "ts": 99})
        assert refused.value.details["keyPattern"] == {"_id": 1}
        assert " index: _id_ " in refused.value.details["errmsg"]
    assert collection.find_one({"_id": 7}) is None
    assert collection.update_one({"_id": 7}, {"$set": {"n": 1}}).matched_count == 0
    assert collection.count_documents({}) == collection.estimated_document_count() == len(ids)
    sound(collection)
    for id in ids:
        assert collection.delete_one({"_id": id}).deleted_count == 1
    assert collection.count_documents({}) == 0
    sound(collection)


def test_id_is_unique_by_value_and_keeps_its_type(collection):
    collection.insert_one({"_id": Int64(5), "ts": 1})
    with pytest.raises(DuplicateKeyError):
        collection.insert_one({"_id": 5.0, "ts": 2})
    assert collection.find_one({"_id": 5})["_id"] == Int64(5)
    assert [d["_id"] for d in collection.find({"_id": {"$gte": 1}}, {"_id": 1})] == [5]
    with pytest.raises(WriteError) as refused:
        collection.update_one({"_id": 5}, {"$set": {"_id": 6}})
    assert refused.value.code == 66


def test_an_upsert_a_bulk_and_a_range_delete(collection):
    collection.create_index("n")
    collection.bulk_write([InsertOne({"_id": n, "ts": n % 5, "n": n}) for n in range(200)])
    collection.update_one({"_id": 500}, {"$set": {"n": 1}}, upsert=True)
    collection.bulk_write([ReplaceOne({"_id": n}, {"n": -n, "ts": 9}, upsert=True) for n in (3, 501)])
    assert collection.find_one({"_id": 3}) == {"_id": 3, "n": -3, "ts": 9}
    assert collection.delete_many({"n": {"$gt": 99}}).deleted_count == 100
    assert sorted(d["_id"] for d in collection.find()) == [*range(100), 500, 501]
    assert [d["_id"] for d in collection.find().sort("_id", -1).limit(3)] == [501, 500, 99]
    sound(collection)


def test_a_failed_statement_leaves_no_document_and_no_entry(collection):
    collection.create_index("u", unique=True)
    collection.insert_one({"_id": 1, "ts": 1, "u": 1})
    with pytest.raises(DuplicateKeyError) as refused:
        collection.insert_one({"_id": 2, "ts": 1, "u": 1})
    assert refused.value.details["keyPattern"] == {"u": 1}
    assert collection.find_one({"_id": 2}) is None
    collection.insert_one({"_id": 2, "ts": 1, "u": 2})
    with pytest.raises(DuplicateKeyError):
        collection.update_one({"_id": 2}, {"$set": {"u": 1, "ts": 7}})
    assert collection.find_one({"_id": 2}) == {"_id": 2, "ts": 1, "u": 2}
    sound(collection)


def test_a_transaction_reads_its_own_writes_and_others_their_snapshot(client, collection):
    collection.insert_many([{"_id": n, "ts": n, "n": 0} for n in range(5)])
    with client.start_session() as session:
        with session.start_transaction():
            collection.insert_one({"_id": 10, "ts": 3, "n": 0}, session=session)
            collection.update_one({"_id": 1}, {"$set": {"ts": 70, "n": 1}}, session=session)
            collection.delete_one({"_id": 2}, session=session)
            assert collection.find_one({"_id": 10}, session=session)["ts"] == 3
            assert collection.find_one({"_id": 1}, session=session) == {"_id": 1, "ts": 70, "n": 1}
            assert collection.find_one({"_id": 2}, session=session) is None
            assert collection.find_one({"_id": 10}) is None
            assert collection.find_one({"_id": 1})["ts"] == 1
            assert collection.count_documents({"_id": {"$gte": 0}}, session=session) == 5
            session.abort_transaction()
        assert collection.find_one({"_id": 10}) is None
        with pytest.raises(OperationFailure) as refused, session.start_transaction():
            collection.insert_one({"_id": 10, "ts": 3}, session=session)
            collection.insert_one({"_id": 10, "ts": 4}, session=session)
        assert refused.value.code == 11000
    with client.start_session() as session, session.start_transaction():
        collection.update_many({"n": 0}, {"$inc": {"ts": 100}}, session=session)
    assert sorted(d["ts"] for d in collection.find()) == [100, 101, 102, 103, 104]
    sound(collection)


def test_one_of_two_inserts_of_an_id_wins(client, collection):
    errors, rounds = [], 40

    def insert(worker):
        for n in range(rounds):
            try:
                collection.insert_one({"_id": n, "ts": worker, "worker": worker})
            except DuplicateKeyError as error:
                errors.append(error)

    threads = [threading.Thread(target=insert, args=(worker,)) for worker in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(errors) == 3 * rounds
    assert collection.count_documents({}) == rounds
    sound(collection)


def test_indexes_are_built_over_documents_and_dropped(collection):
    collection.insert_many([{"_id": n, "ts": n % 7, "a": [n, n + 1], "u": n} for n in range(300)])
    collection.create_index("a")
    collection.create_index("u", unique=True)
    collection.create_index([("u", -1)], name="copies", clustering=True)
    sound(collection)
    assert collection.find({"a": 17}).sort("_id", 1).distinct("_id") == [16, 17]
    names = [index["name"] for index in collection.list_indexes()]
    assert names[0] == "_id_" and names[-3:] == ["a_1", "u_1", "copies"]
    with pytest.raises(OperationFailure):
        collection.drop_index("_id_")
    collection.drop_indexes()
    assert collection.find_one({"_id": 5})["u"] == 5
    with pytest.raises(DuplicateKeyError):
        collection.insert_one({"_id": 5})
    collection.database.command("reIndex", collection.name)
    collection.database.command("compact", collection.name)
    sound(collection)


@pytest.mark.needs("unshared collections")
def test_natural_order_is_that_of_inserts_in_a_heap(db):
    heap = made(db, "heap")
    ids = list(range(500))
    random.Random(7).shuffle(ids)
    heap.insert_many([{"_id": id} for id in ids])
    heap.update_many({"_id": {"$lt": 100}}, {"$set": {"text": "x" * 500}})
    assert [d["_id"] for d in heap.find()] == ids
    assert [d["_id"] for d in heap.find().sort("$natural", -1)] == ids[::-1]
    heap.delete_one({"_id": ids[0]})
    heap.insert_one({"_id": ids[0]})
    assert [d["_id"] for d in heap.find().hint([("$natural", ASCENDING)])] == [*ids[1:], ids[0]]
    assert [d["_id"] for d in heap.find().hint([("$natural", DESCENDING)]).limit(1)] == [ids[0]]


def test_the_order_of_a_primary_key_is_that_of_its_fields_and_a_change_moves_the_document(db):
    collection = made(db, "fields")
    collection.create_index("n")
    for id, ts in enumerate([5, 3, 9, None, "x", 3]):
        collection.insert_one({"_id": id, "ts": ts, "n": id})
    collection.insert_one({"_id": 9, "n": 9})
    assert [d["_id"] for d in collection.find()] == [3, 9, 1, 5, 0, 2, 4]
    collection.update_one({"_id": 1}, {"$set": {"ts": 100}})
    assert [d["_id"] for d in collection.find()] == [3, 9, 5, 0, 2, 1, 4]
    collection.update_many({"ts": {"$type": "number"}}, {"$inc": {"ts": 1000}})
    assert [d["ts"] for d in collection.find({"ts": {"$gt": 0}})] == [1003, 1005, 1009, 1100]
    assert collection.find_one_and_replace({"_id": 5}, {"ts": -1}, return_document=ReturnDocument.AFTER) == {
        "_id": 5, "ts": -1}
    assert [d["_id"] for d in collection.find({"n": {"$gte": 0}}).hint("n_1")] == [0, 1, 2, 3, 4, 9]
    assert [d["_id"] for d in collection.find({"ts": {"$lt": 2000}}).sort([("ts", -1), ("_id", -1)])] == [
        1, 2, 0, 5]
    sound(collection)


def test_plans_use_the_primary_key_and_clustering_indexes_without_a_fetch(db):
    collection = made(db, "fields")
    collection.insert_many([{"_id": n, "ts": n % 10, "n": n % 20, "text": "x" * 50} for n in range(200)])
    collection.create_index("n", clustering=True)
    found, figures = explained(collection, {"ts": 3})
    assert found == ["IXSCAN"] and figures["nReturned"] == figures["totalDocsExamined"] == 20
    found, figures = explained(collection, {"ts": 3, "_id": 13})
    assert found == ["IXSCAN"] and figures["totalDocsExamined"] == figures["totalKeysExamined"] == 1
    assert explained(collection, {"_id": 13})[0] == ["IDHACK"]
    found, figures = explained(collection, {"n": 4})
    assert found == ["IXSCAN"]
    assert (figures["nReturned"], figures["totalKeysExamined"], figures["totalDocsExamined"]) == (10, 10, 0)
    assert figures["executionStages"]["clustering"] is True
    found, figures = explained(collection, {"n": {"$gte": 4, "$lt": 6}, "text": {"$ne": "y"}})
    assert found == ["IXSCAN"] and figures["nReturned"] == 20 and figures["totalDocsExamined"] == 0
    assert sorted(d["_id"] for d in collection.find({"n": 4})) == list(range(4, 200, 20))
    assert len(list(collection.find({"n": 4}).sort("n", 1).skip(2).limit(3))) == 3
    assert explained(collection, {"ts": {"$gte": 3}, "_id": {"$lt": 50}}, sort=SON([("ts", 1)]))[0] == ["IXSCAN"]


@pytest.mark.parametrize("unique", [False, True])
def test_a_clustering_index_has_the_document_of_now(collection, unique):
    collection.create_index("k", clustering=True, unique=unique)
    collection.insert_many([{"_id": n, "ts": n, "k": n, "a": [1]} for n in range(50)])
    collection.update_many({"k": {"$lt": 25}}, {"$push": {"a": 2}})
    collection.update_one({"k": 30}, {"$set": {"k": 1000, "ts": -5}})
    collection.delete_many({"k": {"$gte": 40, "$lt": 50}})
    for document in collection.find({"k": {"$gte": 0}}).hint("k_1"):
        assert document == collection.find_one({"_id": document["_id"]})
    assert collection.count_documents({"k": {"$gte": 0}}) == 40
    assert collection.find_one({"k": 3})["a"] == [1, 2]
    sound(collection)


def test_a_clustering_index_over_arrays_gives_each_document_once(collection):
    collection.create_index("a", clustering=True)
    collection.insert_many([{"_id": n, "ts": 1, "a": [n, n + 1, n + 2]} for n in range(30)])
    assert sorted(d["_id"] for d in collection.find({"a": {"$in": [5, 6]}})) == [3, 4, 5, 6]
    collection.update_many({"a": 6}, {"$push": {"a": "x" * 3000}})
    assert sorted(d["_id"] for d in collection.find({"a": "x" * 3000})) == [4, 5, 6]
    sound(collection)


@pytest.mark.needs("unshared collections")
def test_layouts_are_listed(db):
    assert "layout" not in made(db, "clustered").options()
    heap = made(db, "heap")
    assert heap.options() == {"layout": "heap"}
    heap.insert_one({"_id": 1})
    statistics = db.command("collStats", "c")
    assert (statistics["layout"], statistics["nindexes"]) == ("heap", 1)
    assert statistics["indexSizes"].keys() == {"_id_"}
    assert [dict(index) for index in heap.list_indexes()] == [{"v": 2, "key": {"_id": 1}, "name": "_id_"}]
    fields = made(db, "fields")
    assert fields.options() == {"primaryKey": {"ts": 1, "_id": 1}}
    listed = [dict(index) for index in fields.list_indexes()]
    assert listed == [
        {"v": 2, "key": {"_id": 1}, "name": "_id_"},
        {"v": 2, "key": {"ts": 1, "_id": 1}, "name": "primaryKey", "unique": True, "clustering": True},
    ]
    statistics = db.command("collStats", "c")
    assert (statistics["layout"], statistics["nindexes"]) == ("primaryKey", 2)
    fields.create_index("n", clustering=True)
    assert [dict(index) for index in fields.list_indexes()][2] == {
        "v": 2, "key": {"n": 1}, "name": "n_1", "clustering": True}
    # A restored dump asks for all indexes again.
    db.command("createIndexes", "c", indexes=listed)
    for name in ("_id_", "primaryKey"):
        with pytest.raises(OperationFailure) as refused:
            db.command("dropIndexes", "c", index=name)
        assert refused.value.code == 72
    with pytest.raises(OperationFailure) as refused:
        db.command("collMod", "c", index={"name": "primaryKey", "hidden": True})
    assert refused.value.code == 2
    db.command("dropIndexes", "c", index="*")
    assert [index["name"] for index in fields.list_indexes()] == ["_id_", "primaryKey"]
    fields.rename("d")
    assert db["d"].options() == {"primaryKey": {"ts": 1, "_id": 1}}
    db.drop_collection("d")


@pytest.mark.parametrize("options, code", [
    ({"layout": "cluster"}, 72),
    ({"layout": 1}, 14),
    ({"layout": "heap", "primaryKey": {"a": 1, "_id": 1}}, 72),
    ({"primaryKey": {"a": 1}}, 72),
    ({"primaryKey": {"_id": 1, "a": 1}}, 72),
    ({"primaryKey": {"a": 1, "_id": -1}}, 72),
    ({"primaryKey": 5}, 14),
    ({"primaryKey": {}}, 67),
    ({"primaryKey": {"a": "hashed", "_id": 1}}, None),
    ({"primaryKey": {"a": "text", "_id": 1}}, None),
    ({"primaryKey": {"a": 0, "_id": 1}}, 67),
    ({"primaryKey": {"a..b": 1, "_id": 1}}, 67),
    ({"primaryKey": {"$a": 1, "_id": 1}}, 67),
    ({"primaryKey": {"$**": 1, "_id": 1}}, None),
    ({"primaryKey": {"": 1, "_id": 1}}, 67),
])
def test_wrong_options_are_refused(db, options, code):
    db.drop_collection("c")
    with pytest.raises(OperationFailure) as refused:
        db.create_collection("c", **options)
    assert code is None or refused.value.code == code, refused.value.details
    assert "c" not in db.list_collection_names()


def test_an_index_on_id_cannot_be_clustering_and_a_clustering_index_is_another_index(collection):
    with pytest.raises(OperationFailure) as refused:
        collection.create_index("_id", clustering=True)
    assert refused.value.code == 197
    with pytest.raises(OperationFailure) as refused:
        collection.create_index("k", clustering="yes")
    assert refused.value.code == 14
    collection.create_index("k")
    with pytest.raises(OperationFailure) as refused:
        collection.create_index("k", clustering=True)
    assert refused.value.code == 85
    collection.create_index("m", clustering=False)
    assert "clustering" not in collection.index_information()["m_1"]


@pytest.mark.parametrize("value", [[1, 2], [], [[1]]])
def test_an_array_in_the_primary_key_is_refused(db, value):
    collection = made(db, "fields")
    with pytest.raises(WriteError) as refused:
        collection.insert_one({"_id": 1, "ts": value})
    assert refused.value.code == 2
    collection.insert_one({"_id": 1, "ts": 1})
    for change in ({"$set": {"ts": value}}, {"$set": {"ts": value, "n": 1}}):
        with pytest.raises(WriteError) as refused:
            collection.update_one({"_id": 1}, change)
        assert refused.value.code == 2
    assert collection.find_one() == {"_id": 1, "ts": 1}
    nested = db.create_collection("nested", primaryKey=SON([("a.b", 1), ("_id", 1)]))
    with pytest.raises(WriteError):
        nested.insert_one({"_id": 1, "a": [{"b": 1}]})
    nested.insert_one({"_id": 1, "a": {"b": {"c": [1]}}})
    assert nested.count_documents({}) == 1
    db.drop_collection("nested")
    sound(collection)


def test_primary_keys_longer_than_a_key_are_told_apart(db):
    collection = made(db, "fields")
    texts = ["x" * 2000 + suffix for suffix in "abc"]
    for id, text in enumerate(texts):
        collection.insert_one({"_id": id, "ts": text})
    collection.insert_one({"_id": 9, "ts": "short"})
    for id, text in enumerate(texts):
        assert collection.find_one({"ts": text})["_id"] == id
        assert collection.find_one({"ts": text, "_id": id})["_id"] == id
        assert collection.find_one({"ts": text, "_id": 9}) is None
    assert [d["_id"] for d in collection.find({"ts": {"$gt": texts[0]}}).sort("ts", 1)] == [1, 2]
    assert [d["_id"] for d in collection.find().sort([("ts", 1)])] == [9, 0, 1, 2]
    collection.update_one({"_id": 1}, {"$set": {"ts": "y" * 2000}})
    assert collection.find_one({"ts": "y" * 2000})["_id"] == 1
    sound(collection)


@pytest.mark.needs("unshared collections")
def test_the_hash_of_a_database_does_not_depend_on_layouts(client, db):
    documents = [{"_id": id, "ts": n % 5, "n": n} for n, id in enumerate([7, "x", 3.5, "y" * 3000, "y" * 3001])]
    hashes = set()
    for layout in LAYOUTS:
        collection = made(db, layout)
        for document in random.Random(layout).sample(documents, len(documents)):
            collection.insert_one(document)
        hashes.add(db.command("dbHash", collections=["c"])["collections"]["c"])
    assert len(hashes) == 1


def test_a_clustered_index_of_mongodb_is_the_default_and_listed(db):
    asked = {"key": {"_id": 1}, "unique": True}
    collection = db.create_collection("c", clusteredIndex=asked)
    assert collection.options() == {"clusteredIndex": {"v": 2, "key": {"_id": 1}, "name": "_id_", "unique": True}}
    # As in MongoDB, its documents are no index.
    collection.create_index("a")
    statistics = db.command("collStats", "c")
    assert (statistics["nindexes"], list(statistics["indexSizes"]), list(statistics["indexDetails"])) == (1, ["a_1"], ["a_1"])
    assert [index["name"] for index in collection.aggregate([{"$indexStats": {}}])] == ["a_1"]
    assert db.command("dbStats")["indexes"] == 1
    assert "idIndex" not in next(db.list_collections(filter={"name": "c"}))
    collection.drop_index("a_1")
    assert [dict(index) for index in collection.list_indexes()] == [
        {"v": 2, "key": {"_id": 1}, "name": "_id_", "unique": True, "clustered": True}]
    collection.insert_one({"_id": 1})
    with pytest.raises(DuplicateKeyError):
        collection.insert_one({"_id": 1.0})
    assert explained(collection, {"_id": 1})[0] == ["IDHACK"]
    for wrong, code in [
        ({"key": {"_id": 1}}, 40414), ({"unique": True}, 40414), ({**asked, "unique": False}, 5979700),
        ({**asked, "key": {"a": 1}}, 197), ({**asked, "key": {"_id": -1}}, 197), ({**asked, "x": 1}, 40415),
        ({**asked, "v": 1}, 5979704), (True, 5979703), (1, 5979703), ("x", 14),
    ]:
        with pytest.raises(OperationFailure) as refused:
            db.command("create", "d", clusteredIndex=wrong)
        assert refused.value.code == code, refused.value.details
    for more in ({"layout": "heap"}, {"primaryKey": {"a": 1, "_id": 1}}, {"idIndex": {"key": {"_id": 1}, "name": "_id_"}}):
        with pytest.raises(OperationFailure) as refused:
            db.command("create", "d", clusteredIndex=asked, **more)
        assert refused.value.code == 72
    db.command("create", "d", clusteredIndex=False)
    assert db["d"].options() == {}


def test_a_clustered_index_that_is_there_may_be_asked_for_again(server, db):
    """mongorestore and copies send what `listIndexes` has told."""
    db.create_collection("c", clusteredIndex={"key": {"_id": 1}, "unique": True, "name": "mine"})
    listed = {"v": 2, "key": {"_id": 1}, "name": "mine", "unique": True, "clustered": True}
    create = lambda name, *indexes: db.command("createIndexes", name, indexes=list(indexes))
    assert create("c", listed)["note"] == "all indexes already exist"
    create("c", {**listed, "name": "another"}, {"key": {"a": 1}, "name": "a_1"})
    assert [index["name"] for index in db["c"].list_indexes()] == ["mine", "a_1"]
    db.create_collection("plain")
    for name, wrong, code in [
        ("c", {**listed, "unique": False}, 67), ("c", {**listed, "clustered": False}, 6492800), ("c", {**listed, "key": {"a": 1}}, 6243700),
        ("plain", listed, 6243700), ("absent", listed, 6100900),
    ]:
        with pytest.raises(OperationFailure) as refused:
            create(name, wrong)
        assert refused.value.code == code, refused.value.details


def test_a_clustered_index_has_its_name_and_its_expiry(server, db):
    asked = {"key": {"_id": 1}, "unique": True, "name": "mine"}
    collection = db.create_collection("c", clusteredIndex=asked, expireAfterSeconds=90.5)
    assert collection.options() == {"clusteredIndex": {"v": 2, **asked}, "expireAfterSeconds": 90}
    listed = {"v": 2, **asked, "expireAfterSeconds": 90, "clustered": True}
    assert [dict(index) for index in collection.list_indexes()] == [listed]
    collection.insert_many([{"_id": at} for at in range(9)])
    assert list(collection.find({"_id": 4}, hint="mine")) == [{"_id": 4}]
    assert sound(collection)["keysPerIndex"] == {"mine": 9}
    for name, code in (("mine", 5979800), ("_id_", 27)):
        with pytest.raises(OperationFailure) as refused:
            collection.drop_index(name)
        assert refused.value.code == code, refused.value.details
    for wrong, code in ((-1, 72), (1 << 31, 72), ("off", 14)):
        with pytest.raises(OperationFailure) as refused:
            db.command("create", "d", clusteredIndex=asked, expireAfterSeconds=wrong)
        assert refused.value.code == code, refused.value.details
    with pytest.raises(OperationFailure) as refused:
        db.command("create", "d", expireAfterSeconds=4)
    assert refused.value.code == 72


def test_a_server_may_have_the_heap_as_default_layout(tmp_path):
    server = Server(tmp_path / "data", "--default-layout", "heap").start()
    try:
        db = server.client().t
        db.implicit.insert_one({"_id": 1})
        db.indexed.create_index("x")
        db.create_collection("explicit")
        db.create_collection("own", layout="clustered")
        db.create_collection("keyed", primaryKey=SON([("ts", 1), ("_id", 1)]))
        options = {name: db[name].options() for name in db.list_collection_names()}
        heap = {"layout": "heap"}
        assert options == {"implicit": heap, "indexed": heap, "explicit": heap, "own": {"layout": "clustered"},
                           "keyed": {"primaryKey": {"ts": 1, "_id": 1}}}
        db.implicit.insert_many([{"_id": at} for at in (5, 3, 4)])
        assert [one["_id"] for one in db.implicit.find()] == [1, 5, 3, 4]
    finally:
        server.stop()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.needs("one server")
def test_a_bulk_load_fills_every_layout(server, db, layout):
    with MongoClient(server.uri, maxPoolSize=1, retryWrites=False) as client:
        own = client[db.name]
        indexes = [{"key": {"k": 1}, "name": "k_1", "clustering": True}, {"key": {"u": 1}, "name": "u_1", "unique": True}]
        own.command("beginLoad", 1, ns="c", indexes=indexes, options=LAYOUTS[layout])
        own["c"].insert_many([{"_id": n * 7 % 500, "ts": n % 9, "k": n % 10, "u": n} for n in range(500)])
        own.command("commitLoad", 1)
        own.command("beginLoad", 1, ns="twice", indexes=[], options=LAYOUTS[layout])
        own["twice"].insert_many([{"_id": 1, "ts": 1}, {"_id": 1, "ts": 2}])
        with pytest.raises(OperationFailure) as refused:
            own.command("commitLoad", 1)
        assert refused.value.code == 11000
    collection = db["c"]
    assert collection.count_documents({}) == 500 and collection.find_one({"_id": 7})["u"] == 1
    assert sorted(d["u"] for d in collection.find({"k": 3})) == list(range(3, 500, 10))
    assert collection.insert_one({"_id": 500, "ts": 1, "k": 3, "u": 500}).acknowledged
    with pytest.raises(DuplicateKeyError):
        collection.insert_one({"_id": 5, "ts": 100})
    if layout == "heap":
        assert [d["u"] for d in collection.find()] == list(range(501))
    sound(collection)


def some_filter(chance):
    number = lambda: chance.choice([None, chance.randrange(12), "s%d" % chance.randrange(4)])
    test = lambda: chance.choice([
        number(), {"$gte": chance.randrange(12)}, {"$lt": chance.randrange(12)}, {"$ne": number()},
        {"$in": [number() for _ in range(3)]}, {"$gte": 2, "$lt": 9}, {"$exists": chance.random() < 0.5},
    ])
    fields = chance.sample(["_id", "ts", "k", "a", "d.e"], chance.randrange(1, 4))
    filter = {field: test() for field in fields}
    return {"$or": [filter, {"k": number()}]} if chance.random() < 0.2 else filter


def some_document(chance, id):
    document = {"_id": id, "ts": chance.choice([None, chance.randrange(12), "s%d" % chance.randrange(4)]),
                "k": chance.randrange(12), "d": {"e": chance.randrange(3)}}
    if chance.random() < 0.5:
        document["a"] = [chance.randrange(12) for _ in range(chance.randrange(4))]
    if chance.random() < 0.1:
        document["ts"] = "z" * chance.randrange(400, 2500)
    if chance.random() < 0.2:
        del document["ts"]
    return document


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.needs("unshared collections")
def test_the_same_operations_over_all_layouts_give_the_same_answers(db, seed):
    chance = random.Random(seed)
    collections = [made(db, layout, layout) for layout in LAYOUTS]
    for at, collection in enumerate(collections):
        if seed % 2:
            collection.create_index("k", clustering=at % 2 == 1)
            collection.create_index([("a", 1), ("ts", -1)], clustering=at > 1)
            collection.create_index([("ts", 1), ("k", 1)], sparse=True, clustering=at == 2)

    def same(act):
        def outcome(collection):
            try:
                return act(collection)
            except (OperationFailure, DuplicateKeyError) as error:
                return error.code
        answers = [outcome(collection) for collection in collections]
        assert all(answer == answers[0] for answer in answers), answers
        return answers[0]

    for step in range(350):
        id = chance.choice([chance.randrange(60), "s%d" % chance.randrange(4)])
        document, filter = some_document(chance, id), some_filter(chance)
        kind = chance.randrange(10)
        if kind < 3:
            same(lambda collection: collection.insert_one(dict(document)).inserted_id)
        elif kind < 4:
            same(lambda collection: collection.replace_one({"_id": id}, document, upsert=True).matched_count)
        elif kind < 5:
            change = {"$set": {"ts": document.get("ts"), "k": document["k"]}}
            same(lambda collection: collection.update_many(filter, change).modified_count)
        elif kind < 6 and chance.random() < 0.5:
            same(lambda collection: collection.delete_many(filter).deleted_count)
        else:
            sort = chance.choice([[("_id", 1)], [("ts", 1), ("_id", -1)], [("k", -1), ("_id", 1)]])
            same(lambda collection: list(collection.find(filter).sort(sort)))
            same(lambda collection: collection.count_documents(filter))
            same(lambda collection: sorted(str(d) for d in collection.find(filter, {"ts": 1, "_id": 0})))
            same(lambda collection: sorted(map(str, collection.distinct("ts", filter))))
            same(lambda collection: sorted(map(str, collection.aggregate(
                [{"$match": filter}, {"$group": {"_id": "$k", "n": {"$sum": 1}}}]))))
    assert len({db.command("dbHash")["collections"][layout] for layout in LAYOUTS}) == 1
    for collection in collections:
        sound(collection)
        collection.drop()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_a_store_comes_back_with_its_layouts(tmp_path, layout, ending):
    server = Server(tmp_path / "data").start()
    collection = made(server.client()["test"], layout)
    collection.create_index("k", clustering=True)
    collection.insert_many([{"_id": n, "ts": -n, "k": n % 10} for n in range(1000)])
    collection.delete_many({"_id": {"$gte": 900}})
    collection.with_options(write_concern=WriteConcern(w=1, j=True)).insert_one({"_id": -1, "ts": 5, "k": 3})
    before = server.client()["test"].command("dbHash")["md5"]
    server.stop() if ending == "stop" else server.kill()
    server = Server(tmp_path / "data").start()
    collection = server.client()["test"]["c"]
    assert server.client()["test"].command("dbHash")["md5"] == before
    assert collection.options() == {key: dict(value) if isinstance(value, SON) else value
                                    for key, value in LAYOUTS[layout].items()}
    collection.insert_many([{"_id": n, "ts": -n, "k": n % 10} for n in range(1000, 1100)])
    with pytest.raises(DuplicateKeyError):
        collection.insert_one({"_id": 1050, "ts": 77})
    if layout == "heap":
        assert [d["_id"] for d in collection.find()] == [*range(900), -1, *range(1000, 1100)]
    assert sorted(d["_id"] for d in collection.find({"k": 3})) == [-1, *range(3, 900, 10), *range(1003, 1100, 10)]
    sound(collection)
    server.stop()
