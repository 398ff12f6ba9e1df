"""`pando copy` between two Pando servers: everything that PyMongo sees on one is on the other."""

import subprocess

import bson
from pymongo import IndexModel

from server import PANDO, Server


def copy(*arguments):
    return subprocess.run([PANDO, "copy", *arguments], capture_output=True, text=True, timeout=120)


def documents(collection):
    """As bytes: types and the order of fields count."""
    return [bson.encode(document) for document in collection.find().sort("_id", 1)]


def test_a_copy_has_the_databases_documents_and_indexes_of_its_source(tmp_path):
    source, target = Server(tmp_path / "source").start(), Server(tmp_path / "target").start()
    try:
        with source.client() as here, target.client() as there:
            here.shop.orders.insert_many({"_id": at, "total": at / 4, "lines": [{"n": at % 3}]} for at in range(5000))
            here.shop.orders.create_indexes([IndexModel([("lines.n", 1), ("total", -1)]), IndexModel("total", unique=True)])
            here.atlas.cities.insert_many([{"name": "Utrecht"}, {"_id": "Vila", "area": bson.Int64(1)}])
            here.atlas.create_collection("empty")
            done = copy("--from", source.uri, "--to", target.uri)
            assert done.returncode == 0, done.stdout + done.stderr
            assert "5002 documents copied" in done.stdout and "2 indexes built" in done.stdout
            assert sorted(there.list_database_names()) == sorted(here.list_database_names())
            for database in ("shop", "atlas"):
                assert sorted(there[database].list_collection_names()) == sorted(here[database].list_collection_names())
                for name in here[database].list_collection_names():
                    assert documents(there[database][name]) == documents(here[database][name])
                    assert there[database][name].index_information() == here[database][name].index_information()

            # Later changes come over, and others at the target stay.
            here.shop.orders.update_one({"_id": 7}, {"$set": {"total": -1}})
            there.shop.orders.insert_one({"_id": "own", "total": -2})
            done = copy("--from", source.uri, "--to", target.uri, "--db", "shop", "--mode", "upsert")
            assert done.returncode == 0 and "(0 new, 1 changed, 4999 as before)" in done.stdout, done.stdout + done.stderr
            assert there.shop.orders.find_one({"_id": 7})["total"] == -1
            assert there.shop.orders.count_documents({}) == 5001
    finally:
        for server in (source, target):
            assert server.stop() == 0
