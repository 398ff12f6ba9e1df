"""What a server starts with: parameters and the profiler. And the command that stops it."""

import os
import pathlib
import re
import socket
import subprocess
import time

import pytest
from pymongo import MongoClient
from pymongo.errors import AutoReconnect, OperationFailure

from server import PANDO, Server


@pytest.fixture
def started(tmp_path):
    servers = []

    def start(*arguments):
        server = Server(tmp_path / f"data{len(servers)}", *arguments).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        if server.is_running():
            server.stop()


def refused(tmp_path, *arguments):
    ended = subprocess.run([PANDO, "serve", "--data", str(tmp_path / "none"), "--listen", "127.0.0.1:0", *arguments], capture_output=True, text=True, timeout=60)
    assert ended.returncode != 0
    return ended.stderr


def test_parameters_are_set_at_the_start(started):
    server = started("--set-parameter", "ttlMonitorSleepSecs=7,logComponentVerbosity={\"verbosity\": 1, \"query\": {\"verbosity\": 2}}",
                     "--set-parameter", "betreeCheckpointPeriod=33", "--set-parameter", "notablescan=true", "--set-parameter", "enableTestCommands=1")
    with server.client() as client:
        shown = client.admin.command("getParameter", "*")
    assert (shown["ttlMonitorSleepSecs"], shown["betreeCheckpointPeriod"], shown["notablescan"]) == (7, 33, True)
    assert shown["logComponentVerbosity"]["query"]["verbosity"] == 2 and shown["enableTestCommands"] is True


def test_switches_of_mongod_are_taken(started):
    server = started("--setParameter", "ttlMonitorSleepSecs=8", "--setParameter", "cursorTimeoutMillis=1234", "--slowms", "-1", "--slowOpSampleRate", "0.5")
    with server.client() as client:
        shown = client.admin.command("getParameter", "*")
        assert (shown["ttlMonitorSleepSecs"], shown["cursorTimeoutMillis"]) == (8, 1234)
        settings = client.db.command("profile", -1)
        assert (settings["was"], settings["slowms"], settings["sampleRate"]) == (0, -1, 0.5)
    assert "the switch --slowms -1 became --slow-ms -1" in server.whole_log()


def test_wrong_parameters_are_refused_and_leave_no_folder(tmp_path):
    assert "--set-parameter ttlMonitorSleepSec" in refused(tmp_path, "--set-parameter", "ttlMonitorSleepSec=5")
    assert "a name and a value, such as ttlMonitorSleepSecs=10" in refused(tmp_path, "--set-parameter", "x")
    assert "a whole number, -1 or more" in refused(tmp_path, "--slow-ms", "-2")
    assert "a number from 0 to 1" in refused(tmp_path, "--slow-sample-rate", "2")
    assert "one of: 0, 1, 2" in refused(tmp_path, "--profile", "3")
    assert not (tmp_path / "none").exists()
    # Only the open store knows which values are right.
    assert "the parameter ttlMonitorSleepSecs cannot be 0" in refused(tmp_path, "--set-parameter", "ttlMonitorSleepSecs=0")
    assert "the parameter betreeBogus cannot be 1" in refused(tmp_path, "--set-parameter", "betreeBogus=1")


def test_every_database_is_profiled_from_the_start(started):
    server = started("--profile", "2")
    with server.client() as client:
        client.db.c.insert_one({"_id": 1})
        client.db.c.find_one({"a": 1})
        assert {"insert", "query"} <= {entry["op"] for entry in client.db["system.profile"].find()}
        assert client.db.command("profile", 0)["was"] == 2 and client.admin.command("profile", -1)["was"] == 0
        before = client.db["system.profile"].count_documents({})
        client.db.c.find_one({"a": 1})
        assert client.db["system.profile"].count_documents({}) == before
        # No database is made for the profiler.
        assert client.nothing.c.find_one() is None and list(client.nothing["system.profile"].find()) == []
        assert set(client.list_database_names()) <= {"admin", "config", "db", "local"}
        # A database that is dropped has the level of the start again.
        client.drop_database("db")
        assert client.db.command("profile", -1)["was"] == 2


def test_a_client_stops_the_server(started):
    server = started()
    with server.client() as client:
        client.db.c.insert_one({"_id": 1})
        for wrong, code in (({"bogus": 1}, 40415), ({"force": "x"}, 14), ({"timeoutSecs": "x"}, 14)):
            with pytest.raises(OperationFailure) as failure:
                client.admin.command("shutdown", **wrong)
            assert failure.value.code == code
        with pytest.raises(OperationFailure) as failure:
            client.db.command("shutdown")
        assert failure.value.code == 13
        assert client.admin.command("shutdown", timeoutSecs=5, force=True)["ok"] == 1
        assert server.process.wait(timeout=60) == 0
    assert "asks the server to stop" in server.whole_log() and "stopped" in server.whole_log()
    server.start()
    with server.client() as client:
        assert client.db.c.find_one() == {"_id": 1}


def test_under_access_control_a_stop_needs_the_right(started):
    server = started("--auth")
    with server.client() as client:
        client.admin.command("createUser", "root", pwd="secret", roles=["root"])
    with server.client(username="root", password="secret") as client:
        client.admin.command("createUser", "reader", pwd="secret", roles=["readAnyDatabase"])
        client.admin.command("createUser", "host", pwd="secret", roles=["hostManager"])
    for who in ({}, {"username": "reader", "password": "secret"}):
        with server.client(**who) as client, pytest.raises(OperationFailure) as failure:
            client.admin.command("shutdown")
        assert failure.value.code == 13
    with server.client(username="host", password="secret") as client:
        client.admin.command("shutdown")
        assert server.process.wait(timeout=60) == 0
    with pytest.raises(AutoReconnect), server.client(serverSelectionTimeoutMS=500) as client:
        client.admin.command("ping")


def test_the_first_user_is_made_by_no_client_where_the_exception_is_off(started):
    server = started("--auth", "--setParameter", "enableLocalhostAuthBypass=false")
    with server.client() as client, pytest.raises(OperationFailure) as refused:
        client.admin.command("createUser", "ada", pwd="secret", roles=["root"])
    assert refused.value.code == 13
    assert "pando user add NAME --data" in server.whole_log()
    assert server.terminate() == 0
    added = subprocess.run([PANDO, "user", "add", "ada", "--data", str(server.folder)], input="secret\n", capture_output=True, text=True, timeout=60)
    assert added.returncode == 0, added.stderr
    server.start()
    with server.client(username="ada", password="secret") as client:
        assert client.admin.command("getParameter", 1, enableLocalhostAuthBypass=1)["enableLocalhostAuthBypass"] is False


def test_the_memory_engine_says_that_it_leaves_a_store_alone(tmp_path):
    server = Server(tmp_path / "data").start()
    assert server.stop() == 0
    for folder, said in ((tmp_path / "data", True), (tmp_path / "other", False)):
        memory = Server(folder, engine="memory").start()
        assert memory.stop() == 0
        assert ("stays unopened" in memory.whole_log()) == said


def test_a_store_that_is_removed_under_the_server_is_told(started):
    server = started()
    moved = server.folder.parent / "moved"

    def told(sentence):
        deadline = time.monotonic() + 30
        while sentence not in server.whole_log():
            assert time.monotonic() < deadline, server.log()
            time.sleep(0.1)

    # The watch looks once a second, and what it finds first is what it compares with.
    time.sleep(2)
    server.folder.rename(moved)
    told("the folder of the store was moved or removed")
    with server.client() as client:
        client.db.c.insert_one({"_id": 1})
    moved.rename(server.folder)
    told("the folder of the store is in its place again")
    assert server.stop() == 0


def own_address():
    """The address by which others reach this machine, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # A datagram socket sends nothing when it connects. This address is nobody's.
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
        except OSError:
            return None


@pytest.mark.skipif(own_address() is None, reason="this machine has no address but those of loopback")
def test_a_backup_may_be_asked_for_by_the_machines_own_address(started, tmp_path):
    address = own_address()
    server = started("--listen", f"{address}:0", "--allow-unauthenticated")
    port = re.search(rf"listens on  .*{re.escape(address)}:(\d+)", server.whole_log())[1]
    with MongoClient(f"mongodb://{address}:{port}/?directConnection=true", serverSelectionTimeoutMS=20_000) as client:
        client.db.c.insert_one({"_id": 1})
        assert client.admin.command("pandoBackup", 1, to=str(tmp_path / "backup"))["bytes"] > 0
    log = server.whole_log()
    assert f"a backup into {tmp_path}/backup begins" in log and f"the backup into {tmp_path}/backup is whole" in log


STAND_IN = pathlib.Path(__file__).parents[2] / "packaging/mongod"


def told_by_stand_in(tmp_path, *arguments):
    """The arguments that the stand-in for mongod gives to `pando`, and what it says itself."""
    stub = tmp_path / "pando"
    stub.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    stub.chmod(0o755)
    ended = subprocess.run([STAND_IN, *arguments], env=os.environ | {"PANDO": str(stub)}, capture_output=True, text=True, timeout=30)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split("\n"), ended.stderr


def test_the_stand_in_for_mongod_passes_on_the_switches_that_the_server_takes(tmp_path):
    taken = ["--wiredTigerCacheSizeGB", "0.25", "--syncdelay", "0", "--slowms", "20", "--directoryperdb", "--profile", "2"]
    given, _ = told_by_stand_in(tmp_path, *taken)
    assert given[-len(taken) - 3:-3] == taken and given[-3:-1] == ["--listen", "127.0.0.1:27017"], given
    without_meaning = ["--logpath", "/x/log", "--oplogSize", "50", "--ipv6", "--journal", "--enableMajorityReadConcern"]
    given, said = told_by_stand_in(tmp_path, *without_meaning, "--nounixsocket", "--profile=1")
    assert "/x/log" not in given and ["--unix-socket", "none", "--profile", "1"] == given[-7:-3], given
    assert "the switch --oplogSize became nothing: there is no oplog" in said, said


def test_the_stand_in_for_mongod_has_access_control_with_a_key_file(tmp_path):
    for arguments in (["--keyFile", "/x/key"], ["--auth", "--keyFile=/x/key"]):
        given, _ = told_by_stand_in(tmp_path, *arguments)
        assert given.count("--auth") == 1 and "/x/key" not in given, given


def test_the_stand_in_for_mongod_listens_on_addresses_of_both_kinds(tmp_path):
    given, _ = told_by_stand_in(tmp_path, "--bind_ip", "::1,127.0.0.1,localhost,[::1]", "--port", "4711")
    listen = [value for option, value in zip(given, given[1:]) if option == "--listen"]
    assert listen == ["[::1]:4711", "127.0.0.1:4711", "127.0.0.1:4711", "[::1]:4711"]


def test_the_settings_of_the_start_are_shown(tmp_path, started):
    config = tmp_path / "pando.toml"
    config.write_text('audit-destination = "file"\nauth-plain = true\nslow-ms = 20\nset-parameter = ["ttlMonitorSleepSecs=7"]\n')
    server = started("--config", str(config), "--cache", "32MB", "--profile", "1", "--engine-option", "fanout=8")
    with server.client() as client:
        parsed = client.admin.command("getCmdLineOpts")["parsed"]
    assert list(parsed) == sorted(parsed)
    assert (parsed["config"], parsed["auditLog"]) == (str(config), {"destination": "file"})
    assert parsed["operationProfiling"] == {"mode": "slowOp", "slowOpThresholdMs": 20}
    assert parsed["setParameter"] == {"ttlMonitorSleepSecs": "7"}
    assert parsed["pando"] == {"auth-plain": True, "cache": "32MB", "engine-option": {"fanout": "8"}}
    assert parsed["net"]["port"] == server.port and parsed["storage"]["dbPath"].endswith("data0")


def test_a_set_with_access_control_is_begun_before_its_first_user(started):
    server = started("--auth")
    config = {"_id": "rs0", "members": [{"_id": 0, "host": f"127.0.0.1:{server.port}"}]}
    with server.client() as client:
        assert client.admin.command("replSetInitiate", config)["ok"] == 1
        assert client.admin.command("replSetGetStatus")["set"] == "rs0"
        with pytest.raises(OperationFailure) as refused:
            client.admin.command("serverStatus")
        assert refused.value.code == 13
        client.admin.command("createUser", "ada", pwd="secret", roles=["root"])
        with pytest.raises(OperationFailure) as refused:
            client.admin.command("replSetInitiate", config)
        assert refused.value.code == 13
    with server.client(username="ada", password="secret") as client, pytest.raises(OperationFailure) as refused:
        client.admin.command("replSetInitiate", config)
    assert refused.value.code == 23
