"""The audit trail: its events in MongoDB's schema, its filter, its chain, and new files."""

import json
import re
import resource
import signal
import stat
import subprocess
import time

import pytest
from pymongo.errors import OperationFailure

import scram_client
from raw_connection import Raw, fresh_origin
from server import PANDO, Server


@pytest.fixture
def start(tmp_path):
    started = []

    def start(*arguments, engine="memory"):
        server = Server(tmp_path / f"store{len(started)}", "--audit-destination", "file", "--audit-path", str(tmp_path / "audit.json"), *arguments,
                        engine=engine).start()
        started.append(server)
        return server

    yield start
    for server in started:
        if server.is_running():
            assert server.terminate() == 0, server.log()
        assert "panic" not in server.whole_log()


def eventually(is_so):
    end = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def events(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def told(path):
    """Each event as its kind, its parameters and its result."""
    return [(event["atype"], event["param"], event["result"]) for event in events(path)]


def test_changes_of_collections_and_indexes_are_events_and_reads_are_none(start, tmp_path):
    path = tmp_path / "audit.json"
    server = start()
    with server.client() as client:
        db = client.shop
        db.orders.insert_one({"_id": 1})
        db.orders.find_one({})
        db.create_collection("made")
        db.made.create_index("a")
        db.fresh.create_index("b")
        db.made.drop_index("a_1")
        db.made.rename("renamed")
        db.renamed.drop()
        with pytest.raises(OperationFailure):
            db.create_collection("orders", check_exists=False)
        client.admin.command("setParameter", 1, ttlMonitorSleepSecs=30)
        client.drop_database("shop")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert server.terminate() == 0

    def index(ns, name):
        return ("createIndex", {"ns": ns, "indexName": f"{name}_1", "indexSpec": {"name": f"{name}_1", "key": {name: 1}},
                                "indexBuildState": "IndexBuildSucceeded"}, 0)

    assert told(path) == [
        ("createCollection", {"ns": "shop.orders"}, 0),
        ("createCollection", {"ns": "shop.made"}, 0),
        index("shop.made", "a"),
        ("createCollection", {"ns": "shop.fresh"}, 0),
        index("shop.fresh", "b"),
        ("dropIndex", {"ns": "shop.made", "indexName": "a_1"}, 0),
        ("renameCollection", {"old": "shop.made", "new": "shop.renamed"}, 0),
        ("dropCollection", {"ns": "shop.renamed"}, 0),
        ("createCollection", {"ns": "shop.orders"}, 48),
        ("setParameter", {"ttlMonitorSleepSecs": 30}, 0),
        ("dropDatabase", {"ns": "shop"}, 0),
        ("shutdown", {}, 0),
    ]
    first = events(path)[0]
    assert set(first) == {"atype", "ts", "uuid", "local", "remote", "users", "roles", "param", "result"}
    assert first["remote"]["ip"] == "127.0.0.1" and first["local"] == {"ip": "127.0.0.1", "port": server.port}
    assert first["ts"]["$date"].endswith("Z") and first["users"] == []


def test_a_filter_keeps_what_it_matches(start, tmp_path):
    server = start("--audit-filter", '{"atype": {"$in": ["dropCollection"]}, "param.ns": {"$regex": "^shop"}}')
    with server.client() as client:
        client.shop.a.insert_one({})
        client.shop.a.drop()
        client.other.a.insert_one({})
        client.other.a.drop()
    assert told(tmp_path / "audit.json") == [("dropCollection", {"ns": "shop.a"}, 0)]
    for faulty in ("{atype", '{"$nothing": 1}'):
        ended = subprocess.run([PANDO, "serve", "--engine", "memory", "--listen", "127.0.0.1:0", "--auditDestination", "file", "--auditPath",
                                str(tmp_path / "other.json"), "--auditFilter", faulty], capture_output=True, text=True, timeout=30)
        assert ended.returncode == 2 and "--audit-filter is no query" in ended.stderr, ended.stderr
    subprocess.run([PANDO, "serve", "--data", str(tmp_path / "unmade"), "--auditDestination", "file", "--auditFilter", "{atype"],
                   capture_output=True, timeout=30)
    assert not (tmp_path / "unmade").exists()


def test_a_signal_rotates_the_trail_and_a_file_that_was_moved_away_is_followed_by_a_new_one(start, tmp_path):
    path = tmp_path / "audit.json"
    server = start("--audit-chain")
    with server.client() as client:
        client.shop.create_collection("a")
        path.rename(tmp_path / "moved.json")
        server.process.send_signal(signal.SIGUSR1)
        eventually(path.exists)
        client.shop.create_collection("b")
        server.process.send_signal(signal.SIGUSR1)
        eventually(lambda: list(tmp_path.glob("audit.json.*")))
        client.shop.create_collection("c")
        path.rename(tmp_path / "last.json")
        client.admin.command("logRotate", "audit")
    files = [tmp_path / "moved.json", *tmp_path.glob("audit.json.*"), tmp_path / "last.json", path]
    kept = [[event["param"]["ns"] for event in events(file) if event["atype"] == "createCollection"] for file in files]
    assert kept == [["shop.a"], ["shop.b"], ["shop.c"], []]
    assert "SIGUSR1: the audit trail goes on in a new file" in server.whole_log()
    chain = []
    for file in files[:3]:
        code, said = verify(file, *chain)
        assert code == 0, said
        chain = ["--previous", said.split()[-1]]


def verify(*arguments):
    ended = subprocess.run([PANDO, "audit", "verify", *map(str, arguments)], capture_output=True, text=True, timeout=30)
    return ended.returncode, ended.stdout + ended.stderr


def test_a_trail_that_was_never_chained_is_told_in_one_sentence(tmp_path):
    path = tmp_path / "audit.json"
    path.write_text('{"atype": "x"}\n' * 3000)
    code, said = verify(path)
    assert code == 1 and said.count("\n") == 1 and "was written without --audit-chain" in said, said
    assert verified_in_json(path, 1)["faults"] == 3000


def verified_in_json(file, code):
    ended = subprocess.run([PANDO, "audit", "verify", str(file), "--json"], capture_output=True, text=True, timeout=30)
    assert ended.returncode == code, ended
    return json.loads(ended.stdout)


def test_a_chain_goes_over_restarts_and_new_files_and_shows_a_change(start, tmp_path):
    path = tmp_path / "audit.json"
    for _ in range(2):
        server = start("--audit-chain")
        with server.client() as client:
            client.shop.create_collection("a")
        assert server.terminate() == 0
    code, said = verify(path)
    assert code == 0 and "4 lines" in said, said
    server = start("--audit-chain")
    with server.client() as client:
        assert client.admin.command("logRotate")["ok"] == 1
        assert client.admin.command("logRotate", "audit")["ok"] == 1
        with pytest.raises(OperationFailure) as refused:
            client.admin.command("logRotate", "other")
        assert refused.value.code == 4
    old = sorted(tmp_path.glob("audit.json.*"))
    assert len(old) == 2
    code, said = verify(old[0])
    assert code == 0, said
    code, said = verify(old[1], "--previous", said.split()[-1])
    assert code == 0, said
    code, said = verify(path, "--previous", said.split()[-1])
    assert code == 0, said
    told = verified_in_json(old[0], 0)
    lines = old[0].read_text().splitlines()
    assert told["sound"] and (told["faults"], told["lines"]) == (0, len(lines)) and told["lastChain"], told
    old[0].write_text("\n".join([lines[0], lines[1].replace("shop", "shed"), *lines[2:]]).replace('"shutdown"', '"started"', 1) + "\n")
    code, said = verify(old[0])
    assert code == 1 and "does not follow" in said, said
    told = verified_in_json(old[0], 1)
    assert not told["sound"] and told["faults"] > 0, told


def test_events_that_could_not_be_written_are_told_and_the_rest_of_the_chain_is_sound(start, tmp_path):
    path = tmp_path / "audit.json"
    server = start("--audit-chain")
    with server.client() as client:
        client.shop.create_collection("a")
        client.shop.create_collection("b")
        # The engine is in memory. The lines of the server's own log are lost as well meanwhile.
        limits = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (path.stat().st_size, limits[1]))
        for name in ("lost", "lost_too"):
            client.shop.create_collection(name)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limits)
        client.shop.create_collection("c")
    code, said = verify(path)
    assert code == 0 and "4 lines" in said, said
    assert [(event["atype"], event["param"]) for event in events(path)][2:] == [
        ("eventsLost", {"count": 2}), ("createCollection", {"ns": "shop.c"})]
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines).replace('"shop.a"', '"shop.x"').replace('"shop.c"', '"shop.y"') + "\n")
    code, said = verify(path)
    assert code == 1 and "line 1 of" in said and "line 4 of" in said and "2 of 4 lines" in said, said


def test_a_storm_of_failed_logins_leaves_few_lines_in_the_log_and_each_event_in_the_trail(start, tmp_path):
    server = start()
    count = 200

    def fail():
        with Raw(server.port, fresh_origin()) as raw:
            assert raw.ask("admin", scram_client.start(b"nothing"))["code"] == 18

    began = time.monotonic()
    for _ in range(count):
        fail()
    periods = 2 + int(time.monotonic() - began)
    time.sleep(1.1)
    fail()
    assert sum(kind == "authenticate" for kind, _, _ in told(tmp_path / "audit.json")) == count + 1
    log = server.whole_log()
    written = log.count("refused a login from")
    assert written <= 10 * periods + 1, log
    assert written + sum(map(int, re.findall(r"left out (\d+) log lines about other refused logins", log))) == count + 1


def test_rotations_within_a_millisecond_keep_each_file(start, tmp_path):
    server = start()
    with server.client() as client:
        for _ in range(30):
            assert client.admin.command("logRotate", "audit")["ok"] == 1
    assert len(list(tmp_path.glob("audit.json.*"))) == 30
