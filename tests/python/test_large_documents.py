"""Documents up to 16 MB through a driver: inserted, read, updated, deleted, before and after the store is closed and opened again."""

import random

import pytest
from bson import BSON, Binary
from pymongo import WriteConcern

from raw_connection import Raw
from server import Server

LARGEST = 16 * 1024 * 1024
SIZES = [1_000, 15_000, 17_000, 40_000, 1024 * 1024, 5 * 1024 * 1024]


def document(number, size):
    """A document of exactly so many bytes that do not compress."""
    rest = {"_id": number, "size": size, "data": Binary(b"")}
    data = random.Random(number * 31 + size).randbytes(size - len(BSON.encode(rest)))
    return {**rest, "data": Binary(data)}


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path / "data").start()
    yield server
    if server.is_running():
        server.kill()


def same(found, expected):
    # Not with assert: pytest would show both, which are long.
    return BSON.encode(found) == BSON.encode(expected)


def test_documents_of_every_size_are_kept_updated_and_found_again_after_a_restart_and_a_kill(server):
    expected = {number: document(number, size) for number, size in enumerate([*SIZES, LARGEST])}
    with server.client() as client:
        collection = client.large.get_collection("c", write_concern=WriteConcern(w=1, j=True))
        for whole in expected.values():
            collection.insert_one(whole)
        collection.create_index("size")
        assert all(same(found, expected[found["_id"]]) for found in collection.find())
    assert server.stop() == 0, server.log()
    server.start()
    with server.client() as client:
        collection = client.large.get_collection("c", write_concern=WriteConcern(w=1, j=True))
        assert all(same(collection.find_one({"size": whole["size"]}), whole) for whole in expected.values())
        # Another field changes, and with it the whole document is written.
        for number in expected:
            updated = collection.update_one({"_id": number}, {"$set": {"size": number}})
            assert updated.modified_count == 1
            expected[number]["size"] = number
        replaced = document(3, 2 * 1024 * 1024)
        collection.replace_one({"_id": 3}, replaced)
        expected[3] = replaced
        assert collection.delete_one({"_id": 4}).deleted_count == 1
        del expected[4]
    server.kill()
    server.start()
    with server.client() as client:
        collection = client.large.c
        found = list(collection.find().sort("_id", 1))
        assert [one["_id"] for one in found] == sorted(expected)
        assert all(same(one, expected[one["_id"]]) for one in found)
        assert client.large.command("collStats", "c")["size"] >= sum(len(BSON.encode(one)) for one in expected.values()) * 0.9
        assert client.large.command("validate", "c", full=True)["valid"]
        client.drop_database("large")
    assert server.stop() == 0, server.log()
    assert "panic" not in server.log()


def test_a_document_beyond_the_allowance_fails_the_whole_insert(server):
    """As in MongoDB: between 16 MiB and 16 KiB more only its own write fails."""
    with Raw(server.port) as raw:
        for more, code in ((16_000, None), (20_000, 10334)):
            documents = [{"_id": more}, {"_id": 1, "x": "x" * (LARGEST + more)}]
            reply = raw.ask("d", {"insert": "c", "documents": documents})
            assert reply.get("code") == code, reply
            assert code or (reply["n"], reply["writeErrors"][0]["code"]) == (1, 2), reply
    with server.client() as client:
        assert list(client.d.c.find()) == [{"_id": 16_000}]
