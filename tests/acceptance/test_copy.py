"""`pando copy` from a real MongoDB: 20,000 documents of all types of BSON, indexes, and what Pando does not have."""

import datetime
import json
import re
import subprocess

import bson
import pytest
from bson import Binary, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.raw_bson import RawBSONDocument

from server import PANDO, Server

DOCUMENTS = 20_000


def document(at):
    """Of each type one value, other than that of the document before it."""
    return {
        "_id": at,
        "double": at / 8,
        "special": [float("nan"), float("inf"), -0.0][at % 3],
        "string": f"Zürich {at}\0",
        "object": {"a": {"b": at}},
        "array": [at, str(at), None, [], {}],
        "binary": Binary(at.to_bytes(4, "big") * 4, [0, 3, 4, 5, 128][at % 5]),
        "id": ObjectId(at.to_bytes(12, "big")),
        "bool": at % 2 == 0,
        "date": datetime.datetime(1960, 1, 1) + datetime.timedelta(minutes=at),
        "null": None,
        "regex": Regex(f"^a{at}", "im"),
        "reference": DBRef("other", at),
        "code": Code(f"f({at})"),
        "scope": Code("f", {"x": at}),
        "int": at,
        "timestamp": Timestamp(at, at % 7),
        "long": Int64(at << 33),
        "decimal": Decimal128(f"{at}.50"),
        "least": MinKey(),
        "most": MaxKey(),
    }


def copy(*arguments):
    return subprocess.run([PANDO, "copy", *arguments], capture_output=True, text=True, timeout=300)


@pytest.fixture
def target(tmp_path):
    server = Server(tmp_path / "copy").start()
    yield server
    assert server.stop() == 0, server.log()


def raw(collection):
    return [found.raw for found in collection.with_options(bson.CodecOptions(document_class=RawBSONDocument)).find().sort("_id", 1)]


def test_a_database_of_mongodb_is_copied_and_what_cannot_come_is_told(oracle_server, target):
    with oracle_server.client() as mongodb, target.client() as pando:
        mongodb.drop_database("moving")
        source = mongodb.moving
        source.kinds.insert_many(document(at) for at in range(DOCUMENTS))
        source.kinds.create_index([("int", 1), ("string", -1)], name="two")
        source.kinds.create_index("array")
        source.kinds.create_index("id", unique=True)
        source.kinds.create_index("decimal", sparse=True)
        source.create_collection("log", capped=True, size=1 << 20)
        source.log.insert_many({"_id": 100 - at} for at in range(50))
        source.create_collection("empty")
        source.create_collection("above", viewOn="kinds", pipeline=[{"$match": {"int": {"$gt": 10}}}])
        done = copy("--from", oracle_server.uri, "--to", target.uri, "--db", "moving", "--json")
        result = json.loads(done.stdout)
        assert result["inserted"] == DOCUMENTS + 50 and result["refused"] == 0, done.stderr
        assert result["indexes"] == 4, done.stderr
        assert {one["namespace"]: (one["source"], one["target"]) for one in result["collections"]} == {
            "moving.empty": (0, 0), "moving.kinds": (DOCUMENTS, DOCUMENTS), "moving.log": (50, 50)}
        # Each thing that Pando does not have is named, and makes the copy incomplete.
        told = set(re.findall(r"^(moving\.\w+): not created with its options", done.stderr, re.MULTILINE))
        with_options = {f"moving.{one['name']}" for one in pando.moving.list_collections() if one["options"]}
        missing = {"moving.log", "moving.above"} - with_options
        assert told == missing and result["notCreated"] == len(told)
        assert done.returncode == (1 if told else 0)

        assert raw(pando.moving.kinds) == raw(source.kinds)
        assert pando.moving.kinds.index_information() == source.kinds.index_information()
        assert raw(pando.moving.log) == raw(source.log)
        assert "empty" in pando.moving.list_collection_names()

        # The way back, into the same server: its own collections are not touched unless that is said.
        done = copy("--from", target.uri, "--to", oracle_server.uri, "--db", "moving", "--collection", "kinds")
        assert done.returncode == 1 and "documents in moving.kinds already" in done.stderr
        source.kinds.drop()
        done = copy("--from", target.uri, "--to", oracle_server.uri, "--db", "moving", "--collection", "kinds")
        assert done.returncode == 0, done.stdout + done.stderr
        assert raw(source.kinds) == raw(pando.moving.kinds)
        mongodb.drop_database("moving")


def test_a_whole_mongodb_is_copied_without_what_is_its_own(oracle_server, target):
    with oracle_server.client() as mongodb, target.client() as pando:
        mongodb.first_of_two.a.insert_one({"_id": 1})
        mongodb.second_of_two.b.insert_one({"_id": 2})
        # As a server has it once it has written its sessions.
        mongodb.config.written.insert_one({"_id": 3})
        before = {name: pando[name].list_collection_names() for name in ("admin", "config", "local")}
        done = copy("--from", oracle_server.uri, "--to", target.uri)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "left out: admin, config, local" in done.stderr, done.stderr
        assert set(pando.list_database_names()) >= {"first_of_two", "second_of_two"}
        assert {name: pando[name].list_collection_names() for name in ("admin", "config", "local")} == before
        mongodb.config.written.drop()
        for name in ("first_of_two", "second_of_two"):
            mongodb.drop_database(name)


def test_collations_go_back_to_mongodb(oracle_server, target):
    with oracle_server.client() as mongodb, target.client() as pando:
        mongodb.drop_database("back")
        german = {"locale": "de", "strength": 2}
        source = pando.back
        source.create_collection("people", collation=german)
        source.people.insert_many([{"_id": 1, "n": "a"}, {"_id": 2, "n": "B"}])
        source.people.create_index("n", name="as its collection")
        source.people.create_index("n", name="french", collation={"locale": "fr"})
        source.create_collection("above", viewOn="people", pipeline=[], collation=german)
        done = copy("--from", target.uri, "--to", oracle_server.uri, "--db", "back")
        assert done.returncode == 0, done.stderr
        assert [found["_id"] for found in mongodb.back.people.find({"n": "A"})] == [1]
        assert [found["_id"] for found in mongodb.back.above.find({"n": "b"})] == [2]
        locales = {index["name"]: index.get("collation", {}).get("locale") for index in mongodb.back.people.list_indexes()}
        assert locales == {"_id_": "de", "as its collection": "de", "french": "fr"}
        mongodb.drop_database("back")


def test_options_of_mongodb_are_no_difference_in_a_second_copy_and_those_that_are_missing_are_named(oracle_server, target):
    with oracle_server.client() as mongodb, target.client() as pando:
        mongodb.drop_database("opted")
        source = mongodb.opted
        source.create_collection("capped", capped=True, size=5000, max=7)
        source.create_collection("german", collation={"locale": "de", "strength": 1})
        source.create_collection("ruled", validator={"n": {"$gt": 0}}, validationLevel="moderate", validationAction="warn")
        source.create_collection("clustered", clusteredIndex={"key": {"_id": 1}, "unique": True})
        source.create_collection("tuned", storageEngine={"wiredTiger": {"configString": "block_compressor=zlib"}})
        source.create_collection("series", timeseries={"timeField": "t", "metaField": "m", "granularity": "minutes"})
        source.create_collection("plain_series", timeseries={"timeField": "t"}, expireAfterSeconds=1 << 30)
        source.create_collection("above", viewOn="ruled", pipeline=[{"$sort": {"n": 1, "_id": -1}}])
        for name in ("capped", "german", "ruled", "clustered", "tuned"):
            source[name].insert_one({"_id": 1, "n": 1})
        source.command("collMod", "german", validator={"$jsonSchema": {"required": ["n"]}})
        places = ("--from", oracle_server.uri, "--to", target.uri, "--db", "opted")
        for mode in ("insert", "upsert"):
            done = copy(*places, "--mode", mode)
            assert done.returncode == 0 and "own options" not in done.stderr, done.stdout + done.stderr
        # The way back into the collections from which they came.
        done = copy("--from", target.uri, "--to", oracle_server.uri, "--db", "opted", "--mode", "upsert")
        assert done.returncode == 0 and "own options" not in done.stderr, done.stdout + done.stderr

        for name in ("capped", "german", "ruled"):
            pando.opted[name].drop()
            pando.opted.create_collection(name)
        done = copy(*places, "--mode", "upsert", "--json")
        assert done.returncode == 1, done.stdout + done.stderr
        assert json.loads(done.stdout)["otherOptions"] == [
            {"namespace": "opted.capped", "options": ["capped", "max", "size"]},
            {"namespace": "opted.german", "options": ["collation", "validator"]},
            {"namespace": "opted.ruled", "options": ["validationAction", "validationLevel", "validator"]},
        ]
        pando.opted.series.drop()
        pando.opted.create_collection("series")
        done = copy(*places, "--mode", "upsert")
        assert done.returncode == 1 and "opted.series is a time series at the source and a plain" in done.stderr, done.stderr
        mongodb.drop_database("opted")


def test_documents_older_than_their_validator_go_both_ways(oracle_server, target):
    with oracle_server.client() as mongodb, target.client() as pando:
        mongodb.drop_database("older")
        mongodb.older.ruled.insert_many([{"_id": 1, "n": -1}, {"_id": 2, "n": 1}])
        mongodb.older.command("collMod", "ruled", validator={"n": {"$gt": 0}})
        there = ("--from", oracle_server.uri, "--to", target.uri, "--db", "older")
        back = ("--from", target.uri, "--to", oracle_server.uri, "--db", "older")
        for arguments in (there, (*there, "--mode", "upsert"), (*back, "--drop"), (*back, "--mode", "merge")):
            done = copy(*arguments)
            assert done.returncode == 0, done.stdout + done.stderr
        assert raw(mongodb.older.ruled) == raw(pando.older.ruled)
        assert "validator" in mongodb.older.ruled.options() and "validator" in pando.older.ruled.options()
        mongodb.drop_database("older")
