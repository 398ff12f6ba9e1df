"""`pando copy` between two Pando servers: everything that PyMongo sees on one is on the other."""

import datetime
import json
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


def test_a_time_series_is_in_once_however_often_the_copy_is_repeated(tmp_path):
    source, target = Server(tmp_path / "source").start(), Server(tmp_path / "target").start()
    try:
        with source.client() as here, target.client() as there:
            here.shop.create_collection("readings", timeseries={"timeField": "at", "metaField": "of"})
            begin = datetime.datetime(2026, 1, 1)
            here.shop.readings.insert_many(
                {"at": begin + datetime.timedelta(seconds=at), "of": at % 3, "value": at} for at in range(3000)
            )
            here.shop.plain.insert_many({"_id": at} for at in range(10))
            ends = "--from", source.uri, "--to", target.uri
            done = copy(*ends)
            assert done.returncode == 0, done.stdout + done.stderr
            assert "2 collections (1 of them hashed), 3,010 documents" in done.stdout
            for again in (["--resume"], ["--mode", "upsert"]):
                done = copy(*ends, *again)
                assert done.returncode == 0, done.stdout + done.stderr
                assert there.shop.readings.count_documents({}) == 3000

            refused = copy(*ends, "--db", "shop", "--collection", "readings")
            assert refused.returncode == 1 and "--mode upsert" not in refused.stderr, refused.stderr

            # The target has a part of it, as after a kill.
            there.shop.readings.delete_many({"of": 1})
            for again in (["--resume"], ["--mode", "upsert"]):
                done = copy(*ends, *again, "--json")
                assert done.returncode == 1, done.stdout + done.stderr
                assert there.shop.readings.count_documents({}) == 2000
                agrees = {one["namespace"]: one["agrees"] for one in json.loads(done.stdout)["collections"]}
                assert agrees == {"shop.plain": True, "shop.readings": False}
                assert "--db shop --collection readings --drop" in done.stderr + done.stdout
            done = copy(*ends, "--db", "shop", "--collection", "readings", "--drop")
            assert done.returncode == 0, done.stdout + done.stderr
            assert there.shop.readings.count_documents({}) == 3000
    finally:
        for server in (source, target):
            assert server.stop() == 0


def test_an_upsert_tells_other_content_and_refused_documents(tmp_path):
    source, target = Server(tmp_path / "source").start(), Server(tmp_path / "target").start()
    try:
        with source.client() as here, target.client() as there:
            here.shop.c.insert_many([{"_id": 1, "name": "a"}, {"_id": 2, "name": "b"}])
            there.shop.c.create_index("name", unique=True)
            there.shop.c.insert_many([{"_id": at, "name": "b" if at == 7 else at} for at in range(3, 8)])
            done = copy("--from", source.uri, "--to", target.uri, "--mode", "upsert", "--json")
            assert done.returncode == 1
            [compared] = json.loads(done.stdout)["collections"]
            assert (compared["source"], compared["target"], compared["leftOut"]) == (2, 6, 1)
            assert not compared["agrees"]
    finally:
        for server in (source, target):
            assert server.stop() == 0
