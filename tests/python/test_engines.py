"""Every durable engine of the build, as a person who runs a server meets it: options, figures, checks, backups, kills, its folder.

`make test-engines` builds a server with all engines; a plain build has betree alone.
"""

import json
import re
import subprocess

import pytest
from pymongo.errors import OperationFailure
from pymongo.read_concern import ReadConcern

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
    "wiredtiger": {"blockCompressor": "zlib", "type": "lsm", "configString": "lsm=(chunk_size=1MB)"},
}
INDEX_SECTIONS = {"betree": {"compression": "none"}, "rocksdb": {"compression": "none"}, "wiredtiger": {"prefixCompression": "off"}}
# Figures that an engine has under the name of all engines, if it has them: those of engines without a cache or a log are less.
STORE_FIGURES = {"transactions.live", "trees.count", "data.file_bytes"}
CACHE_FIGURES = {"cache.limit_bytes", "cache.page_bytes", "cache.misses", "log.write_bytes", "log.syncs"}
FIGURES = {
    "betree": STORE_FIGURES | CACHE_FIGURES | {"checkpoints.count", "checkpoints.nanos"},
    "lmdb": STORE_FIGURES | {"map.bytes", "readers.stale_cleared"},
    "rocksdb": STORE_FIGURES | CACHE_FIGURES,
    # Its files are those of the cluster's nodes.
    "tikv": STORE_FIGURES - {"data.file_bytes"},
    "wiredtiger": STORE_FIGURES | CACHE_FIGURES | {"checkpoints.count", "checkpoints.nanos"},
}
# A setting of the server with a value for it, and the figure that shows it.
SETTINGS = {
    "lmdb": ("lmdbMapSize", 2 << 40, "map.bytes"),
    "rocksdb": ("rocksdbCache", 512 << 20, "cache.limit_bytes"),
    "wiredtiger": ("wiredtigerCache", 512 << 20, "cache.limit_bytes"),
}
START_OPTIONS = {
    "betree": ["logBudget=64MB"],
    "lmdb": ["readahead=off", "readersMax=500"],
    "rocksdb": ["cacheType=lru", "logBudget=64MB", "backgroundJobs=2", "compression=zstd"],
    "wiredtiger": ["indexType=lsm", "checkpointPeriod=2", "journalFileSize=1MB", "configString=eviction=(threads_max=2)"],
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
            client.test.c.create_index("m", storageEngine={engine: INDEX_SECTIONS[engine]})
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


def figure(status, name):
    for part in name.split("."):
        status = status[part]
    return status


def test_figures_have_one_name_in_all_engines(engine, tmp_path):
    server = Server(tmp_path / "data", engine=engine).start()
    with server.client() as client:
        filled(client)
        client.admin.command("fsync")
        status = client.admin.command("serverStatus")[engine]
        for name in FIGURES.get(engine, STORE_FIGURES):
            assert figure(status, name) >= 0, name
        figures = client.test.command("collStats", "c")[engine]
        assert figures["entries"] > 0 and figures["content_bytes"] > 100_000, figures
    assert server.stop() == 0, server.log()


def test_a_setting_changes_while_the_server_runs_and_impossible_ones_are_refused(engine, tmp_path):
    if engine not in SETTINGS:
        return
    name, value, shown = SETTINGS[engine]
    # LMDB's map is as large as the system allows unless it is told; here it is to grow.
    flags = ["--engine-option", "mapSize=64MB"] if engine == "lmdb" else []
    value = 256 << 20 if engine == "lmdb" else value
    server = Server(tmp_path / "data", *flags, engine=engine).start()
    with server.client() as client:
        filled(client)
        client.admin.command({"setParameter": 1, name: str(value)})
        assert int(client.admin.command({"getParameter": 1, name: 1})[name]) == value
        assert figure(client.admin.command("serverStatus")[engine], shown) == value
        for wrong in ("much", "1KB"):
            with pytest.raises(OperationFailure):
                client.admin.command({"setParameter": 1, name: wrong})
        with pytest.raises(OperationFailure):
            client.admin.command({"setParameter": 1, f"{engine}Bogus": 1})
        state(client)
    assert server.stop() == 0, server.log()


def test_compact_gives_the_room_of_lmdb_back(tmp_path):
    if "lmdb" not in ENGINES:
        return
    server = Server(tmp_path / "data", engine="lmdb").start()
    file = tmp_path / "data" / "data.mdb"
    with server.client() as client:
        c = client.test.c
        c.create_index("n")
        c.insert_many([{"_id": at, "n": at, "pad": "x" * 1000} for at in range(20_000)])
        c.delete_many({"_id": {"$gte": 2_000}})
        before = file.stat().st_size
        with c.find(batch_size=10) as cursor:
            next(cursor)
            with pytest.raises(OperationFailure, match="open cursors"):
                client.test.command("compact", "c")
            assert file.stat().st_size == before
        freed = client.test.command("compact", "c")["bytesFreed"]
        assert freed > before / 2 and file.stat().st_size == before - freed
        c.insert_one({"_id": -1, "n": 20_000})
        rows = state(client)
        assert len(rows) == 2_001
        assert client.test.command("validate", "c")["valid"]
    server.kill()
    server.start()
    with server.client() as client:
        assert state(client) == rows
    assert server.stop() == 0, server.log()


def test_lmdb_refuses_reads_of_the_past_and_serializable_transactions(tmp_path):
    if "lmdb" not in ENGINES:
        return
    server = Server(tmp_path / "data", engine="lmdb").start()
    with server.client() as client:
        c = client.test.c
        c.insert_one({"_id": 1})
        with client.start_session(snapshot=True) as session, pytest.raises(OperationFailure, match="reads at no past snapshot"):
            c.find_one({}, session=session)
            c.insert_one({"_id": 2})
            c.find_one({}, session=session)
        with client.start_session() as session, pytest.raises(OperationFailure, match="no serializable transactions"):
            session.start_transaction(read_concern=ReadConcern("serializable"))
            c.find_one({}, session=session)
        with client.start_session() as session:
            session.start_transaction(read_concern=ReadConcern("snapshot"))
            assert c.find_one({}, session=session) == {"_id": 1}
    assert server.stop() == 0, server.log()


def test_a_full_map_of_lmdb_grows_under_open_cursors(tmp_path):
    if "lmdb" not in ENGINES:
        return
    server = Server(tmp_path / "data", "--engine-option", "mapSize=4MB", engine="lmdb").start()
    with server.client() as client:
        rows = [{"_id": at, "n": at, "text": "x" * 2000} for at in range(500)]
        client.test.c.insert_many(rows)
        cursor = client.test.c.find(batch_size=10).sort("_id")
        first = [next(cursor) for _ in range(10)]
        client.test.other.insert_many([{"_id": at, "text": "y" * 2000} for at in range(10_000)])
        assert first + list(cursor) == rows
        assert client.admin.command("serverStatus")["lmdb"]["map"]["bytes"] >= 32 << 20
        assert client.test.other.count_documents({}) == 10_000
    assert server.stop() == 0, server.log()


@pytest.mark.parametrize("switch, became", [
    ("--defaultCompression=quicklz", {"betree": "compression=lz4", "rocksdb": "compression=lz4", "wiredtiger": "blockCompressor=snappy"}),
    ("--defaultReadPageSize=32KB", {"betree": "pageSize=32KB", "rocksdb": "pageSize=32KB"}),
    ("--syncdelay=30", {"betree": "checkpointPeriod=30", "wiredtiger": "checkpointPeriod=30"}),
    ("--defaultFanout=8", {"betree": "fanout=8"}),
])
def test_familiar_switches_mean_options_of_the_engine_or_nothing(engine, switch, became, tmp_path):
    server = Server(tmp_path / "data", switch, engine=engine).start()
    with server.client() as client:
        filled(client, 100)
    told = server.whole_log()
    assert (f"--engine-option {became[engine]}" if engine in became else "became nothing") in told, told
    assert server.stop() == 0, server.log()


def test_settings_of_mongodb_are_honoured_by_its_engine_and_noted_by_others(engine, tmp_path):
    server = Server(tmp_path / "data", engine=engine).start()
    with server.client() as client:
        asked = {"wiredTiger": {"configString": "block_compressor=zlib,leaf_page_max=8KB"}}
        reply = client.test.command({"create": "c", "storageEngine": asked})
        assert ("note" in reply) == (engine != "wiredtiger"), reply
        kept = client.test.command("listCollections")["cursor"]["firstBatch"][0]["options"]["storageEngine"]
        assert kept == asked
        if engine == "wiredtiger":
            for wrong in ("block_compressor=zstd", "log=(enabled=false)"):
                with pytest.raises(OperationFailure) as refused:
                    client.test.command({"create": "d", "storageEngine": {"wiredTiger": {"configString": wrong}}})
                assert wrong.split("=")[0] in str(refused.value) or "zstd" in str(refused.value)
    assert server.stop() == 0, server.log()


def test_a_damaged_file_is_told_with_its_cure(engine, tmp_path):
    server = Server(tmp_path / "data", engine=engine).start()
    with server.client() as client:
        filled(client)
    assert server.stop() == 0, server.log()
    name = {"betree": "data.0000", "lmdb": "data.mdb", "rocksdb": "rocksdb/CURRENT", "wiredtiger": "wiredtiger/WiredTiger.turtle"}.get(engine)
    if name is None:
        return
    path = tmp_path / "data" / name
    length = min(path.stat().st_size, 1 << 20)
    with open(path, "r+b") as file:
        file.write(b"\xa5" * length)
    with pytest.raises(RuntimeError) as refused:
        server.start()
    told = str(refused.value)
    assert "panicked" not in told and "backtrace" not in told, told
    assert "restore the store from a backup" in told or "is not a data file of Pando" in told, told


def test_damage_that_requests_meet_is_logged_and_counted(tmp_path):
    server = Server(tmp_path / "data", "--engine-option", "compression=none").start()
    with server.client() as client:
        client.test.c.insert_many([{"_id": at, "text": f"{at:06}" * 500} for at in range(2_000)])
        client.test.command("compact", "c")
    assert server.stop() == 0, server.log()
    path = tmp_path / "data" / "data.0000"
    # Each copy: an earlier one may lie in a block that is free.
    content, text = path.read_bytes(), b"001000" * 500
    assert text in content
    content = content.replace(text, b"damage" * 500)
    path.write_bytes(content)
    server.start()
    with server.client(retryReads=False, retryWrites=False) as client:
        for ask in (lambda: client.test.c.find_one({"_id": 1_000}),
                    lambda: client.test.c.update_one({"_id": 1_000}, {"$set": {"x": 1}}),
                    lambda: list(client.test.c.find())):
            with pytest.raises(OperationFailure) as refused:
                ask()
            assert refused.value.code == 300
        assert client.test.c.find_one({"_id": 1})["_id"] == 1
        assert client.admin.command("serverStatus")["metrics"]["damage"] == {"requests": 3}
        assert not client.test.command("validate", "c", full=True)["valid"]
        said = server.whole_log()
    assert "ERROR" in said and "damage on the device" in said and 'namespace="test.c"' in said, said
    assert "validate has found problems" in said, said
    server.stop()


def options_of_engine(engine, folder):
    """The flags of a server as options of a tool that makes a store: `--pd A` is `--engine-option pd=A`."""
    flags = flags_of_engine(engine, folder)
    return [word for name, value in zip(flags[::2], flags[1::2]) for word in ("--engine-option", f"{name[2:]}={value}")]


def test_a_backup_is_restored_and_both_are_sound(engine, tmp_path):
    server = Server(tmp_path / "data", engine=engine).start()
    with server.client() as client:
        if engine in SECTIONS:
            client.test.create_collection("c", storageEngine={engine: SECTIONS[engine]})
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
        if engine == "wiredtiger":
            assert client.test.command("collStats", "c")["wiredtiger"]["lsm"]["chunks"] > 0, "the tree keeps its type"
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
