"""A program of the years 2013 to 2021 on PyMongo 3.13. Its argument is a port."""

import sys
import time
import warnings

import gridfs
import pymongo
from bson import SON
from pymongo import MongoClient, WriteConcern
from pymongo.errors import DuplicateKeyError, OperationFailure

warnings.simplefilter("ignore", DeprecationWarning)


def raises(error, action):
    try:
        action()
    except error:
        return True
    return False


def writes_and_reads(people):
    people.insert([{"_id": number, "even": number % 2 == 0, "name": f"p{number}"} for number in range(500)])
    assert people.count() == 500 and people.find({"even": True}).count() == 250
    found = people.find({"even": True}, {"name": 1}).sort("_id", -1).skip(10).limit(120).batch_size(50)
    assert [document["_id"] for document in found] == list(range(478, 238, -2))
    assert people.find_one({"_id": 7})["name"] == "p7" and people.find_one({"_id": -1}) is None
    assert people.update({"_id": 1}, {"$set": {"name": "one"}})["n"] == 1
    assert people.update({"even": True}, {"$inc": {"seen": 1}}, multi=True)["n"] == 250
    assert people.update({"_id": 1000}, {"$set": {"name": "new"}}, upsert=True)["upserted"] == 1000
    people.save({"_id": 1000, "name": "saved"})
    assert people.remove({"_id": 1000})["n"] == 1
    assert people.remove({"even": False})["n"] == 250
    assert people.find_and_modify({"_id": 0}, {"$set": {"name": "zero"}}, new=True)["name"] == "zero"
    assert people.find({"_id": 0}).explain()
    assert sorted(people.distinct("even")) == [True]
    assert list(people.aggregate([{"$group": {"_id": None, "seen": {"$sum": "$seen"}}}]))[0]["seen"] == 250
    bulk = people.initialize_ordered_bulk_op()
    bulk.insert({"_id": 2000})
    bulk.find({"_id": 2000}).update({"$set": {"a": 1}})
    bulk.find({"_id": 2000}).remove_one()
    assert bulk.execute()["nRemoved"] == 1


def errors(collection):
    collection.insert({"_id": 1})
    assert raises(DuplicateKeyError, lambda: collection.insert({"_id": 1}))
    assert raises(OperationFailure, lambda: collection.update({"_id": 1}, {"$nosuch": {"a": 1}}))
    assert raises(OperationFailure, lambda: collection.find_one({"a": {"$nosuch": 1}}))


def concerns(database):
    for concern in ({"w": 0}, {"w": 1}, {"j": True}, {"fsync": True}, {"w": "majority", "wtimeout": 1000}):
        database.get_collection("concerns", write_concern=WriteConcern(**concern)).insert_one({})
    deadline = time.monotonic() + 10
    while database.concerns.count() < 5:
        assert time.monotonic() < deadline
    impossible = database.get_collection("concerns", write_concern=WriteConcern(w=2, wtimeout=100))
    assert raises(OperationFailure, lambda: impossible.insert_one({}))


def indexes(collection):
    collection.ensure_index([("a", 1), ("b", -1)])
    collection.create_index("c", unique=True, background=True)
    assert set(collection.index_information()) == {"_id_", "a_1_b_-1", "c_1"}
    collection.insert({"c": 1})
    assert raises(DuplicateKeyError, lambda: collection.insert({"c": 1}))
    collection.drop_index("c_1")


def files(database):
    content = bytes(number % 251 for number in range(700_000))
    store = gridfs.GridFS(database)
    number = store.put(content, filename="file")
    assert store.get(number).read() == content
    store.delete(number)
    assert not store.exists(number)


def main():
    assert pymongo.version.startswith("3.13")
    client = MongoClient("127.0.0.1", int(sys.argv[1]))
    database = client[f"pymongo_{time.monotonic_ns()}"]
    writes_and_reads(database.people)
    errors(database.errors)
    concerns(database)
    indexes(database.indexes)
    files(database)
    assert "people" in database.collection_names()
    assert database.command(SON([("count", "people")]))["n"] == 250
    client.drop_database(database.name)
    assert database.name not in client.database_names()
    client.close()
    print("done")


main()
