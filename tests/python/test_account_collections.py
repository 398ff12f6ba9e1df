"""`admin.system.users` and `admin.system.roles`, written by plain commands: open connections feel it, and no list, log or audit trail
shows the keys of a user.
"""

import datetime
import json
import time

import bson
import pytest
from pymongo.errors import OperationFailure

from legacy_wire import LegacyWire
from raw_connection import Raw
from scram_client import log_in, stored_user
from server import Server

PASSWORD = "x"
UNAUTHORIZED = 13


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guarded") / "data"
    server = Server(folder).start()
    with server.client() as client:
        client.admin["system.users"].insert_many([
            stored_user("ada", "admin", PASSWORD, ["root"]), stored_user("bob", "admin", PASSWORD, ["readAnyDatabase"])])
        client.shop.c.insert_one({"_id": 1})
    assert server.stop() == 0
    server = Server(folder, "--auth", "--audit-destination", "file").start()
    yield server
    assert server.terminate() == 0, server.log()
    assert "panic" not in server.whole_log()


@pytest.fixture
def root(guarded):
    with Raw(guarded.port) as raw:
        assert log_in(raw, "admin", "ada", PASSWORD)["ok"] == 1
        yield raw


@pytest.fixture
def bob(guarded):
    with Raw(guarded.port) as raw:
        assert log_in(raw, "admin", "bob", PASSWORD)["ok"] == 1
        yield raw


BOB = {"user": "bob"}
READER = [{"role": "readAnyDatabase", "db": "admin"}]
MERGE = {"$merge": {"into": {"db": "admin", "coll": "system.users"}, "whenMatched": "merge", "whenNotMatched": "discard"}}


def events(server):
    return [json.loads(line) for line in (server.folder / "audit.json").read_text().splitlines()]


@pytest.mark.parametrize("name, database, request_", [
    ("update", "admin", {"update": "system.users", "updates": [{"q": BOB, "u": {"$set": {"roles": []}}}]}),
    ("findAndModify", "admin", {"findAndModify": "system.users", "query": BOB, "update": {"$set": {"roles": []}}}),
    ("bulkWrite", "admin", {"bulkWrite": 1, "ops": [{"update": 0, "filter": BOB, "updateMods": {"$set": {"roles": []}}}],
                            "nsInfo": [{"ns": "admin.system.users"}]}),
    ("delete", "admin", {"delete": "system.users", "deletes": [{"q": BOB, "limit": 1}]}),
])
def test_each_way_of_writing_takes_effect_and_is_an_event(guarded, root, bob, name, database, request_):
    before = root.command("admin", {"find": "system.users", "filter": BOB})["cursor"]["firstBatch"][0]
    assert bob.command("shop", {"count": "c"})["n"] == 1
    root.command(database, request_)
    assert bob.ask("shop", {"count": "c"})["code"] == UNAUTHORIZED
    event = events(guarded)[-2]
    assert (event["atype"], event["param"]) == ("directAuthMutation", {"ns": "admin.system.users", "operation": name})
    assert event["users"] == [{"user": "ada", "db": "admin"}] and event["result"] == 0
    root.command("admin", {"update": "system.users", "updates": [{"q": {"_id": before["_id"]}, "u": before, "upsert": True}]})
    again = bob.ask("shop", {"count": "c"})
    # A user that was dropped has been logged out.
    assert again.get("n") == 1 or name == "delete"


def test_a_user_that_expires_loses_the_rights_of_open_connections(guarded, root):
    index = {"key": {"until": 1}, "name": "until_1", "expireAfterSeconds": 0}
    root.command("admin", {"createIndexes": "system.users", "indexes": [index]})
    try:
        eve = {**stored_user("eve", "admin", PASSWORD, ["readAnyDatabase"]), "until": datetime.datetime(2030, 1, 1)}
        root.command("admin", {"insert": "system.users", "documents": [eve]})
        with Raw(guarded.port) as raw:
            assert log_in(raw, "admin", "eve", PASSWORD)["ok"] == 1
            assert raw.command("shop", {"count": "c"})["n"] == 1
            root.command("admin", {"setParameter": 1, "ttlMonitorSleepSecs": 1})
            past = {"$set": {"until": datetime.datetime(2020, 1, 1)}}
            root.command("admin", {"update": "system.users", "updates": [{"q": {"user": "eve"}, "u": past}]})
            deadline = time.monotonic() + 60
            while root.command("admin", {"count": "system.users", "query": {"user": "eve"}})["n"]:
                assert time.monotonic() < deadline, "the user does not expire"
                time.sleep(0.1)
            assert raw.ask("shop", {"count": "c"})["code"] == UNAUTHORIZED
            assert log_in(raw, "admin", "eve", PASSWORD)["ok"] == 0
    finally:
        root.command("admin", {"dropIndexes": "system.users", "index": "until_1"})
        root.command("admin", {"setParameter": 1, "ttlMonitorSleepSecs": 60})


def test_older_operations_take_effect(guarded, root, bob):
    class AsRaw:
        def __init__(self, wire):
            self.ask = lambda database, request: wire.command(database, request)

    with LegacyWire(guarded.port) as wire:
        assert log_in(AsRaw(wire), "admin", "ada", PASSWORD)["ok"] == 1
        wire.update("admin.system.users", BOB, {"$set": {"roles": []}})
        assert wire.last_error("admin")["n"] == 1
    assert bob.ask("shop", {"count": "c"})["code"] == UNAUTHORIZED
    root.command("admin", {"update": "system.users", "updates": [{"q": BOB, "u": {"$set": {"roles": READER}}}]})
    assert bob.command("shop", {"count": "c"})["n"] == 1


def test_transactions_cannot_write_them(guarded, root):
    number = {"lsid": {"id": bson.Binary(bytes([7] * 16), 4)}, "txnNumber": bson.Int64(1), "autocommit": False, "startTransaction": True}
    update = {"update": "system.users", "updates": [{"q": BOB, "u": {"$set": {"roles": []}}}]}
    assert root.ask("admin", {**update, **number})["ok"] == 0
    root.command("admin", {"beginTransaction": 1})
    assert root.ask("admin", update)["ok"] == 0
    root.ask("admin", {"rollbackTransaction": 1})


KEY = "bm90IGZvciB5b3VyIGV5ZXM="
CREDENTIALS = {"SCRAM-SHA-256": {"iterationCount": 15000, "salt": KEY, "storedKey": KEY, "serverKey": KEY}}


def writes(user):
    """Requests that have the keys of a user in them: database and request."""
    path = {"$set": {"credentials.SCRAM-SHA-256.storedKey": KEY}}
    stored = {"_id": f"admin.{user}", "user": user, "db": "admin", "credentials": CREDENTIALS, "roles": []}
    yield "admin", {"insert": "system.users", "documents": [stored]}
    yield "admin", {"insert": "tempusers", "documents": [stored]}
    yield "admin", {"update": "system.users", "updates": [{"q": {"user": user}, "u": path}]}
    yield "admin", {"update": "system.users", "updates": [{"q": {"user": user}, "u": {"$set": {"credentials": CREDENTIALS, "long": "x" * 2000}}}]}
    yield "admin", {"update": "system.users", "updates": [{"q": {"user": user}, "u": [{"$set": {"credentials": CREDENTIALS}}]}]}
    yield "admin", {"update": "system.users", "updates": [{"q": {"user": user}, "u": path}, {"q": {"user": user}, "u": path}]}
    yield "admin", {"findAndModify": "system.users", "query": {"user": user}, "update": {"$set": {"credentials": CREDENTIALS}}}
    yield "admin", {"find": "system.users", "filter": {"credentials.SCRAM-SHA-256.storedKey": KEY}}
    yield "admin", {"explain": {"update": "system.users", "updates": [{"q": {"user": user}, "u": path}]}}
    yield "admin", {"explain": {"createUser": "x", "pwd": KEY, "roles": []}}
    yield "admin", {"bulkWrite": 1, "ops": [{"update": 0, "filter": {"user": user}, "updateMods": path}], "nsInfo": [{"ns": "admin.system.users"}]}
    yield "shop", {"aggregate": 1, "pipeline": [{"$documents": [{"_id": f"admin.{user}", "credentials": CREDENTIALS}]}, MERGE], "cursor": {}}
    yield "admin", {"delete": "system.users", "deletes": [{"q": {"credentials.SCRAM-SHA-256.storedKey": KEY}, "limit": 1}]}


def test_keys_of_users_stand_in_no_list_log_or_trail(guarded, root, bob):
    for database in ("admin", "shop"):
        root.command(database, {"profile": 2, "slowms": 0})
    for database, request in writes("eve"):
        root.ask(database, request)
        # As one who may not, which is an event as well.
        bob.ask(database, request)
    # Open cursors show the command that has opened them.
    root.command("admin", {"find": "system.users", "filter": {"credentials.SCRAM-SHA-256.storedKey": {"$ne": KEY}}, "batchSize": 1})
    cursors = root.command("admin", {"aggregate": 1, "pipeline": [{"$currentOp": {"idleCursors": True, "allUsers": True}}],
                                     "cursor": {"batchSize": 1000}})["cursor"]["firstBatch"]
    for database in ("admin", "shop"):
        root.command(database, {"profile": 0})
    profiled = [entry for database in ("admin", "shop")
                for entry in root.command(database, {"find": "system.profile", "batchSize": 1000})["cursor"]["firstBatch"]]
    assert any("xxx" in str(entry) for entry in profiled) and any(entry["op"] == "update" for entry in profiled)
    refused = [event for event in events(guarded) if event["atype"] == "authCheck"]
    assert {"insert", "update", "findAndModify", "aggregate"} <= {event["param"]["command"] for event in refused}
    logged = root.command("admin", {"getLog": "global"})["log"]
    for shown in (profiled, cursors, events(guarded), logged, guarded.whole_log()):
        assert KEY not in str(shown)


def test_a_refusal_of_a_list_names_no_password(guarded, bob):
    with pytest.raises(OperationFailure) as refused:
        bob.command("admin", {"createUser": "x", "pwd": KEY, "roles": []})
    assert KEY not in str(refused.value)
