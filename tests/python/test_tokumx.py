"""What TokuMX's programs and administrators ask for: reIndex with options, short options, atomic statements, figures."""

import hashlib
import threading
import time

import bson
import pytest
from pymongo.errors import BulkWriteError, OperationFailure


def refused(call, *arguments, code, **more):
    with pytest.raises(OperationFailure) as told:
        call(*arguments, **more)
    assert told.value.code == code, told.value.details
    return told.value


def layout(db, collection="c"):
    return db.command("listCollections", filter={"name": collection})["cursor"]["firstBatch"][0]["options"].get("storageEngine")


@pytest.fixture
def betree(server):
    """Whether the engine has settings of a tree; the others refuse them."""
    return server.engine == "betree"


def test_short_options_of_collections_and_indexes(db, server, betree):
    if not betree:
        refused(db.create_collection, "c", compression="none", code=115)
        return
    db.create_collection("c", compression="quicklz", pageSize="1MB", readPageSize=65536, fanout=16)
    assert layout(db) == {"betree": {"compression": "lz4", "leafSize": 1 << 20, "pageSize": 65536, "fanout": 16}}
    db.c.create_index("x", compression="lzma", readPageSize="16K")
    assert db.c.index_information()["x_1"]["storageEngine"] == {"betree": {"compression": "zstd-12", "pageSize": 16384}}
    db.c.insert_many([{"x": at} for at in range(100)])
    assert db.c.count_documents({"x": {"$gte": 50}}) == 50
    db.create_collection("e", defaultCompression="quicklz", defaultFanout=8, defaultReadPageSize="16K", fastUpdates=True)
    assert layout(db, "e") == {"betree": {"compression": "lz4", "fanout": 8, "pageSize": 16384}}
    db.e.create_index("x", defaultCompression="quicklz", fastUpdates=True)
    assert db.e.index_information()["x_1"]["storageEngine"] == {"betree": {"compression": "lz4"}}
    said = server.whole_log()
    assert "defaultCompression: \"quicklz\" became storageEngine.betree.compression: \"lz4\"" in said
    assert "fastUpdates has no effect" in said
    refused(db.create_collection, "d", defaultCompresion="lz4", code=40415)
    for wrong in ({"compression": 1}, {"compression": "gzip"}, {"pageSize": "x"}, {"pageSize": -1}, {"fanout": "1TB"}):
        refused(db.create_collection, "d", **wrong, code=2)
    assert "d" not in db.list_collection_names()


def test_defaults_of_new_collections_are_parameters(client, server, betree):
    def default(name):
        return client.admin.command("getParameter", 1, **{name: 1})[name]

    if not betree:
        refused(client.admin.command, "setParameter", 1, defaultCompression="lzma", code=115)
        return
    before = {name: default(name) for name in ("defaultCompression", "defaultFanout", "defaultPageSize", "defaultReadPageSize")}
    assert before == {"defaultCompression": "zstd-1", "defaultFanout": 32, "defaultPageSize": 512 << 10, "defaultReadPageSize": 16 << 10}
    assert client.admin.command("setParameter", 1, defaultCompression="lzma")["was"] == "zstd-1"
    client.admin.command("setParameter", 1, defaultPageSize="1M", defaultReadPageSize=65536, defaultFanout=16)
    shown = client.admin.command("getParameter", "*")
    assert [shown[name] for name in before] == ["zstd-12", 16, 1 << 20, 65536]
    assert [shown[name] for name in ("betreeCompression", "betreeFanout", "betreeLeafSize", "betreePageSize")] == ["zstd-12", 16, 1 << 20, 65536]
    assert "defaultCompression: \"lzma\" became the setting compression of new trees: \"zstd-12\"" in server.whole_log()
    for name, wrong in (("defaultCompression", "gzip"), ("defaultCompression", 1), ("defaultFanout", 1), ("defaultReadPageSize", "x")):
        refused(client.admin.command, "setParameter", 1, **{name: wrong}, code=2)
    client.admin.command("setParameter", 1, **before)
    assert {name: default(name) for name in before} == before


def test_re_index_changes_layouts_or_rewrites_trees(db, betree):
    db.c.insert_many([{"_id": at, "x": at % 7, "filler": "x" * 200} for at in range(5000)])
    db.c.create_index("x")
    told = db.command("reIndex", "c")
    assert told["nIndexes"] == told["nIndexesWas"] == 2 and [one["name"] for one in told["indexes"]] == ["_id_", "x_1"]
    assert db.command("reIndex", "c", index={"x": 1})["ok"] == 1
    refused(db.command, "reIndex", "c", index="none", code=27)
    refused(db.command, "reIndex", "none", code=26)
    refused(db.command, "reIndex", "c", bogus=1, code=40415)
    if not betree:
        refused(db.command, "reIndex", "c", options={"compression": "none"}, code=115)
        return
    db.command("reIndex", "c", index="x_1", options={"compression": "none", "fanout": 64})
    assert db.c.index_information()["x_1"]["storageEngine"] == {"betree": {"compression": "none", "fanout": 64}}
    assert layout(db) is None
    db.command("reIndex", "c", index="*", options={"readPageSize": "32KB"})
    assert layout(db) == {"betree": {"pageSize": 32768}}
    refused(db.command, "reIndex", "c", options={"bogus": 1}, code=2)
    assert db.c.count_documents({"x": 3}) == len([at for at in range(5000) if at % 7 == 3])


def test_writes_go_on_while_trees_are_rewritten(db):
    db.c.insert_many([{"_id": at, "x": at} for at in range(3000)])
    db.c.create_index("x")
    stop, written = threading.Event(), []

    def write():
        while not stop.is_set():
            db.c.insert_one({"_id": 3000 + len(written), "x": -1})
            written.append(1)

    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(5):
        db.command("reIndex", "c")
    stop.set()
    writer.join()
    assert db.c.count_documents({}) == 3000 + len(written) and db.c.count_documents({"x": -1}) == len(written)
    assert db.client.admin.command("pandoVerify")["ok"] == 1


@pytest.mark.needs("one server")
def test_atomic_statements(db):
    admin = db.client.admin
    db.c.insert_one({"_id": 5, "x": 1})
    admin.command("setParameter", 1, atomicStatements=True)
    try:
        assert admin.command("getParameter", 1, atomicStatements=1)["atomicStatements"] is True
        with pytest.raises(BulkWriteError) as told:
            db.c.insert_many([{"_id": at} for at in (1, 2, 5, 6)])
        assert told.value.details["nInserted"] == 0 and told.value.details["writeErrors"][0]["index"] == 2
        with pytest.raises(BulkWriteError):
            db.c.insert_many([{"_id": at} for at in (1, 5, 6)], ordered=False)
        assert db.c.count_documents({}) == 1
        # A large multi-update that fails in its last document.
        db.d.insert_many([{"_id": at, "x": 1} for at in range(25_000)])
        db.d.insert_one({"_id": 25_000, "x": "no number"})
        refused(db.d.update_many, {}, {"$inc": {"x": 1}}, code=14)
        assert db.d.count_documents({"x": 1}) == 25_000
        assert db.d.update_many({"x": {"$type": "number"}}, {"$inc": {"x": 1}}).modified_count == 25_000
        reply = db.command("update", "c", updates=[{"q": {"_id": 5}, "u": {"$inc": {"x": 1}}}, {"q": {"_id": 5}, "u": {"$bogus": {}}}], check=False)
        assert reply["n"] == 0 and reply["writeErrors"][0]["index"] == 1 and db.c.find_one()["x"] == 1
    finally:
        admin.command("setParameter", 1, atomicStatements=False)
    with pytest.raises(BulkWriteError):
        db.c.insert_many([{"_id": at} for at in (1, 5)])
    assert db.c.count_documents({}) == 2
    refused(admin.command, "setParameter", 1, atomicStatements=1, code=2)


def test_digests(db):
    documents = {"a": [{"_id": 1, "x": "y"}, {"_id": 2}], "b": []}
    for name, content in documents.items():
        db.create_collection(name)
        db[name].insert_many(content[::-1]) if content else None
    told = db.command("dbHash")
    expected = {name: hashlib.md5(b"".join(bson.encode(one) for one in content)).hexdigest() for name, content in documents.items()}
    assert told["collections"] == expected and set(told["uuids"]) == {"a", "b"} and told["capped"] == []
    assert told["md5"] == hashlib.md5((expected["a"] + expected["b"]).encode()).hexdigest()
    assert db.command("dbhash", collections=["a"])["collections"] == {"a": expected["a"]}


def test_figures_of_the_engine(db, server):
    db.c.insert_one({"x": 1})
    status = db.client.admin.command("engineStatus")
    assert status["engine"] == server.engine and len(status) > 2
    assert db.client.admin.command("checkpoint")["ok"] == 1
    assert db.client.admin.command("serverStatus")[server.engine]
    assert "indexDetails" in db.command("collStats", "c")


@pytest.mark.needs("one server")
def test_a_statement_shows_its_transaction(db, server):
    db.c.insert_many([{"_id": at} for at in range(2000)])
    with server.client(maxPoolSize=1) as other:
        other.admin.command("beginTransaction")

        def work():
            other[db.name].command("aggregate", "c", cursor={}, pipeline=[
                # The inner pipeline depends on the document, so that it runs once for each.
                {"$lookup": {"from": "c", "let": {"at": "$_id"}, "as": "m",
                             "pipeline": [{"$match": {"$expr": {"$gt": [{"$add": ["$_id", 1]}, {"$subtract": ["$$at", 5000]}]}}}, {"$count": "n"}]}}])

        worker = threading.Thread(target=work)
        worker.start()
        shown, deadline = None, time.monotonic() + 20
        while shown is None and worker.is_alive() and time.monotonic() < deadline:
            for one in db.client.admin.command("currentOp")["inprog"]:
                if one.get("type") == "op" and "aggregate" in one.get("command", {}) and one["ns"] == f"{db.name}.c":
                    shown = one
        worker.join()
    assert shown["transaction"]["parameters"] == {"txnNumber": 1, "autocommit": False, "readConcern": {"level": "snapshot"}}
    assert shown["transaction"]["timeOpenMicros"] >= shown["transaction"]["timeActiveMicros"] > 0
