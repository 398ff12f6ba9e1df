"""Every durable engine of the build, as a person who runs a server meets it: options, figures, checks, backups, kills, its folder.

`make test-engines` builds a server with all engines; a plain build has betree alone.
"""

import json
import re
import subprocess

import pytest
from pymongo.errors import OperationFailure

from server import PANDO, Server, flags_of_engine


def built_engines():
    said = subprocess.run([PANDO, "serve", "--engine", "none"], capture_output=True, text=True).stderr
    names = re.search(r"engine of this build: ([a-z, ]+)", said)
    return [name for name in names[1].split(", ") if name != "memory"]


ENGINES = built_engines()
# A section for the tree of a collection that each engine takes.
SECTIONS = {
    "betree": {"compression": "lz4", "pageSize": "8KB"},
    "rocksdb": {"compression": "zlib", "compaction": "universal", "filterBits": 12},
}
START_OPTIONS = {
    "betree": ["logBudget=64MB"],
    "lmdb": ["readahead=off", "readersMax=500"],
    "rocksdb": ["cacheType=lru", "logBudget=64MB", "backgroundJobs=2", "compression=zstd"],
}


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


def filled(client, documents=2000):
    collection = client.test.c
    collection.insert_many([{"_id": at, "n": at % 97, "text": "x" * 200} for at in range(documents)])
    collection.create_index("n")
    collection.update_many({"n": 5}, {"$inc": {"n": 1000}})
    collection.delete_many({"n": 6})
    return collection


def run(*arguments):
    return subprocess.run([PANDO, *map(str, arguments)], capture_output=True, text=True, timeout=120)


def state(client):
    rows = list(client.test.c.find().sort("_id"))
    indexed = list(client.test.c.find({"n": {"$gte": 0}}).hint("n_1").sort("_id"))
    assert rows == indexed and client.test.c.count_documents({}) == len(rows)
    return rows


def test_options_at_the_start_and_of_collections(engine, tmp_path):
    flags = [flag for option in START_OPTIONS.get(engine, []) for flag in ("--engine-option", option)]
    server = Server(tmp_path / "data", *flags, engine=engine).start()
    with server.client() as client:
        with pytest.raises(OperationFailure) as told:
            client.test.create_collection("d", storageEngine={engine: {"bogus": 1}})
        assert "bogus" in told.value.details["errmsg"]
        assert "d" not in client.test.list_collection_names()
        if engine in SECTIONS:
            client.test.create_collection("c", storageEngine={engine: SECTIONS[engine]})
            client.test.c.create_index("m", storageEngine={engine: {"compression": "none"}})
            kept = client.test.command("listCollections")["cursor"]["firstBatch"][0]["options"]["storageEngine"]
            assert kept == {engine: SECTIONS[engine]}
        rows = state(filled(client).database.client)
    assert server.stop() == 0, server.log()
    with pytest.raises(RuntimeError) as refused:
        Server(tmp_path / "data", "--engine-option", "bogus=1", engine=engine).start()
    assert "bogus" in str(refused.value)
    server.start()
    with server.client() as client:
        assert state(client) == rows
    assert server.stop() == 0, server.log()


def test_figures_and_housekeeping(engine, tmp_path):
    server = Server(tmp_path / "data", engine=engine).start()
    with server.client() as client:
        filled(client)
        status = client.admin.command("serverStatus")
        assert status["storageEngine"]["name"] == engine and status[engine] and status["pando"]["engine"]
        stats = client.test.command("collStats", "c")
        assert stats["count"] == client.test.c.count_documents({}) and stats["storageSize"] >= 0
        assert client.test.command("validate", "c", full=True)["valid"]
        assert client.admin.command("pandoVerify")["problems"] == []
        assert client.test.command("compact", "c")["ok"] == 1
        assert client.admin.command("fsync")["ok"] == 1
        assert client.test.command("collStats", "c")["storageSize"] > 0
        state(client)
        client.test.drop_collection("c")
        filled(client, 100)
        state(client)
    assert server.stop() == 0, server.log()


def test_the_cache_of_rocksdb_is_set_and_shown(tmp_path):
    if "rocksdb" not in ENGINES:
        return
    server = Server(tmp_path / "data", engine="rocksdb").start()
    with server.client() as client:
        client.admin.command("setParameter", 1, rocksdbCache="512MB")
        assert client.admin.command("getParameter", 1, rocksdbCache=1)["rocksdbCache"] == 512 << 20
        assert client.admin.command("serverStatus")["rocksdb"]["cache"]["limit_bytes"] == 512 << 20
        filled(client)
        figures = client.test.command("collStats", "c")["rocksdb"]
        assert figures["entries"] > 0 and figures["page_bytes"] == 16384
    assert server.stop() == 0, server.log()


def options_of_engine(engine, folder):
    """The flags of a server as options of a tool that makes a store: `--pd A` is `--engine-option pd=A`."""
    flags = flags_of_engine(engine, folder)
    return [word for name, value in zip(flags[::2], flags[1::2]) for word in ("--engine-option", f"{name[2:]}={value}")]


def test_a_backup_is_restored_and_both_are_sound(engine, tmp_path):
    server = Server(tmp_path / "data", engine=engine).start()
    with server.client() as client:
        filled(client)
        rows = state(client)
        made = run("backup", "--uri", server.uri, "--to", tmp_path / "backup", "--json")
        assert made.returncode == 0, made.stderr
        assert json.loads(made.stdout)["extent"] == "full"
        client.test.c.delete_many({})
    assert server.stop() == 0, server.log()
    restored = run("restore", tmp_path / "backup", "--to", tmp_path / "restored", "--engine", engine, *options_of_engine(engine, tmp_path / "restored"))
    assert restored.returncode == 0, restored.stderr
    for folder in ("data", "restored"):
        checked = run("verify", tmp_path / folder, "--collections", "--json")
        assert checked.returncode == 0, checked.stdout + checked.stderr
        report = json.loads(checked.stdout)
        assert report["sound"] and report["trees"] > 2, report
        assert "test.c" in [one["namespace"] for one in report["collections"]]
    again = run("restore", tmp_path / "backup", "--to", tmp_path / "restored", "--engine", engine)
    assert again.returncode != 0 and "restore" in again.stderr
    server = Server(tmp_path / "restored", engine=engine).start()
    with server.client() as client:
        assert state(client) == rows
        client.test.c.insert_one({"_id": "after", "n": 1})
    assert server.stop() == 0, server.log()


def test_kills_lose_nothing_that_was_acknowledged(engine, tmp_path):
    server = Server(tmp_path / "data", engine=engine)
    inserted = []
    for round_number in range(4):
        server.start()
        with server.client() as client:
            if round_number == 0:
                client.test.c.create_index("n")
            assert [row["_id"] for row in state(client)] == inserted
            for at in range(300):
                client.test.c.insert_one({"_id": 1000 * round_number + at, "n": at})
                inserted.append(1000 * round_number + at)
        server.kill()
    checked = run("verify", tmp_path / "data", "--collections")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_store_remembers_its_engine(engine, tmp_path):
    server = Server(tmp_path / "data", engine=engine).start()
    with server.client() as client:
        client.test.c.insert_one({"_id": 1})
    assert server.stop() == 0, server.log()
    before = sorted(path.name for path in (tmp_path / "data").iterdir())
    for other in ENGINES:
        if other == engine:
            continue
        with pytest.raises(RuntimeError) as refused:
            Server(tmp_path / "data", engine=other).start()
        assert f"--engine {engine}" in str(refused.value)
        assert sorted(path.name for path in (tmp_path / "data").iterdir()) == before
    server.start()
    with server.client() as client:
        assert client.test.c.count_documents({}) == 1
    assert server.stop() == 0, server.log()


def test_tools_open_a_folder_with_the_engine_that_made_it(engine, tmp_path):
    server = Server(tmp_path / "data", engine=engine).start()
    with server.client() as client:
        client.test.c.insert_many([{"_id": at} for at in range(50)])
    assert server.stop() == 0, server.log()
    exported = run("export", "--data", tmp_path / "data", "-d", "test", "-c", "c", "--out", tmp_path / "c.json")
    assert exported.returncode == 0, exported.stderr
    assert len((tmp_path / "c.json").read_text().splitlines()) == 50


def test_a_store_is_copied_into_this_engine_and_back(engine, tmp_path):
    if engine == "memory":
        return
    server = Server(tmp_path / "data").start()
    with server.client() as client:
        filled(client)
        rows = state(client)
    assert server.stop() == 0, server.log()
    there = run("copy", "--from", tmp_path / "data", "--to", tmp_path / "there", "--engine", engine, *options_of_engine(engine, tmp_path / "there"))
    assert there.returncode == 0 and "hashed on both sides" in there.stdout, there.stdout + there.stderr
    server = Server(tmp_path / "there", engine=engine).start()
    with server.client() as client:
        assert state(client) == rows
    assert server.stop() == 0, server.log()
    back = run("copy", "--from", tmp_path / "there", "--to", tmp_path / "back")
    assert back.returncode == 0 and "hashed on both sides" in back.stdout, back.stdout + back.stderr
