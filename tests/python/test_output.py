"""What a server and the tools do where nobody reads what they write, or where it cannot be written."""

import contextlib
import datetime
import json
import os
import pathlib
import resource
import shutil
import signal
import socket as network_socket
import subprocess
import tempfile
import time
import uuid
from urllib.parse import quote_plus

import bson
import pytest
from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError

from raw_connection import Raw
from server import PANDO, Server

FULL = "/dev/full"
needs_full = pytest.mark.skipif(not os.path.exists(FULL), reason=f"the system has no {FULL}")


@pytest.fixture
def socket():
    """A socket with a short path: the system takes 107 bytes."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield pathlib.Path(folder) / "pando.sock"


@contextlib.contextmanager
def started(folder, stdout, stderr, socket):
    """A server that has to stop cleanly."""
    arguments = ["serve", "--data", str(folder), "--listen", "127.0.0.1:0", "--unix-socket", str(socket)]
    process = subprocess.Popen([PANDO, *arguments], stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.wait()


def wait_for(socket, process):
    deadline = time.monotonic() + 60
    while not os.path.exists(socket):
        assert process.poll() is None, process.returncode
        assert time.monotonic() < deadline
        time.sleep(0.01)


def ask(socket, command):
    """A command through the unix socket, whose name needs no banner."""
    with MongoClient(f"mongodb://{quote_plus(str(socket))}", serverSelectionTimeoutMS=20_000) as client:
        return client.admin.command(command)


def works(socket):
    """Whether the server answers after it has had something to log."""
    ask(socket, {"profile": 0, "slowms": -1})
    return ask(socket, "ping")["ok"] == 1


@needs_full
@pytest.mark.parametrize("where", ["log", "banner"])
def test_a_server_that_cannot_write_its_lines_serves(tmp_path, socket, where):
    with open(FULL, "w") as full:
        files = (subprocess.DEVNULL, full) if where == "log" else (full, subprocess.DEVNULL)
        with started(tmp_path / "data", *files, socket) as process:
            wait_for(socket, process)
            assert works(socket)
            # getLog has what the log has not.
            assert ask(socket, {"getLog": "global"})["totalLinesWritten"] > 0


def test_a_server_whose_readers_have_gone_serves(tmp_path, socket):
    with started(tmp_path / "data", subprocess.PIPE, subprocess.PIPE, socket) as process:
        process.stdout.close()
        process.stderr.close()
        wait_for(socket, process)
        assert works(socket)


def test_two_stop_signals_at_once_are_one(tmp_path):
    server = Server(tmp_path / "data").start()
    server.process.send_signal(signal.SIGINT)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(timeout=60) == 0, server.log()


@needs_full
def test_lost_lines_of_a_tool_are_an_error_and_a_reader_that_has_gone_is_none(tmp_path):
    Server(tmp_path / "data").start().stop()
    verify = [PANDO, "verify", str(tmp_path / "data")]
    with open(FULL, "w") as full:
        done = subprocess.run(verify, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "standard output cannot be written" in done.stderr
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(verify, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_a_low_limit_of_open_files_and_a_misspelt_variable_are_warned_of(tmp_path):
    server = Server(tmp_path / "data")
    server.program = ["sh", "-c", 'ulimit -n 300; PANDO_CACH=64MB exec "$0" "$@"', PANDO]
    server.start()
    with server.client() as client:
        figures = client.admin.command("serverStatus")["connections"]
        assert figures["current"] + figures["available"] == 150, figures
    assert server.stop() == 0
    log = server.whole_log()
    assert "the limit of open files is 300, below --max-connections 20000" in log, log
    assert "PANDO_CACH has no effect" in log and "PANDO_CACHE is the nearest" in log, log


def test_connections_leave_open_files_for_the_store(tmp_path):
    server = Server(tmp_path / "data", "--io-threads", "2")
    server.program = ["sh", "-c", 'ulimit -n 200; exec "$0" "$@"', PANDO]
    server.start()
    with server.client() as client, contextlib.ExitStack() as opened:
        client.t.c.insert_one({"_id": 0})
        for _ in range(250):
            opened.enter_context(contextlib.closing(network_socket.create_connection(("127.0.0.1", server.port))))
        # Each of these needs further files: a log segment, an index build, a backup.
        client.t.c.insert_many([{"s": os.urandom(30_000)} for _ in range(200)])
        client.t.c.create_index("s")
        client.admin.command("pandoBackup", 1, to=str(tmp_path / "backup"))
        figures = client.admin.command("serverStatus")["connections"]
        assert figures["rejected"] >= 150 and figures["current"] <= 100, figures
    assert server.stop() == 0
    log = server.whole_log()
    assert "the server takes 100 connections at the same time" in log, log
    assert "cannot accept a connection" not in log and "100 are open, which is the limit" in log, log


def test_a_store_that_wants_logins_and_has_no_users_says_how_to_begin(tmp_path):
    server = Server(tmp_path / "data", "--auth").start()
    assert server.stop() == 0
    assert "there are no users yet" in server.whole_log()


# ---- a limit of the size of files


def limited(kibibytes):
    """The program with a limit of the size of its files."""
    return ["bash", "-c", f'ulimit -f {kibibytes}; exec "$0" "$@"', PANDO]


def test_a_server_at_the_file_size_limit_refuses_writes_and_goes_on(tmp_path):
    server = Server(tmp_path / "data")
    server.program = limited(24_000)
    server.start()
    with server.client() as client:
        refused = None
        for number in range(400):
            try:
                client.t.c.insert_one({"_id": number, "s": os.urandom(300_000)})
            except OperationFailure as error:
                refused = error
                break
        assert refused is not None and refused.code == 14031, refused
        assert "the file size limit of this process (ulimit -f)" in refused.details["errmsg"], refused.details
        assert client.t.c.count_documents({}) == number and client.t.c.find_one({"_id": 0})
        # A full device is no damage, for a check by the server and for one of the folder.
        with pytest.raises(OperationFailure) as unchecked:
            client.admin.command("pandoVerify")
        assert unchecked.value.code == 14031 and "nothing was checked" in str(unchecked.value), unchecked.value.details
    checked = subprocess.run([PANDO, "verify", "--uri", server.uri], capture_output=True, text=True, timeout=120)
    assert checked.returncode == 1 and "nothing was checked" in checked.stderr and "damage" not in checked.stdout + checked.stderr, checked
    server.terminate()
    assert "panic" not in server.whole_log()
    checked = subprocess.run([*limited(24_000), "verify", tmp_path / "data", "--collections"], capture_output=True, text=True, timeout=120)
    assert checked.returncode == 1 and "may be lost" not in checked.stderr and "has every write" in checked.stderr, checked
    again = Server(tmp_path / "data").start()
    with again.client() as client:
        assert client.t.c.count_documents({}) == number
    assert again.stop() == 0


def test_a_tool_at_the_file_size_limit_says_so(tmp_path):
    server = Server(tmp_path / "data").start()
    with server.client() as client:
        client.t.c.insert_many([{"_id": i, "s": "x" * 1000} for i in range(3000)])
    ended = subprocess.run([*limited(1000), "export", "--uri", server.uri, "--db", "t", "--collection", "c", "--out", tmp_path / "c.json"],
        capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1 and "File too large" in ended.stderr and "ulimit -f" in ended.stderr, ended
    assert server.stop() == 0


def test_a_server_whose_log_cannot_be_written_ends_with_an_error_and_the_next_start_recovers(tmp_path):
    server = Server(tmp_path / "data").start()
    kept = 0
    with server.client(retryWrites=False) as client:
        for kept in range(1, 301):
            client.t.c.insert_one({"_id": kept, "s": os.urandom(1000)})
        # The log is 300 kB long and the file has room for more, so that its next write is refused as a broken device refuses it.
        # The lines of the server are shorter.
        _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (1 << 16, hard))
        with pytest.raises(PyMongoError):
            for number in range(kept + 1, kept + 1000):
                client.t.c.insert_one({"_id": number, "s": os.urandom(1000)})
                kept = number
        assert server.process.wait(timeout=30) == 1, server.log()
    log = server.whole_log()
    assert log.count("the server ends, because the engine takes no write any more") == 1, log
    assert "tries again" not in log and "panic" not in log, log
    again = Server(tmp_path / "data").start()
    with again.client() as client:
        # The write that was refused may be there or not.
        assert client.t.c.count_documents({}) in (kept, kept + 1)
    assert again.stop() == 0


# ---- a clean stop


@pytest.mark.parametrize("flags", [0, 1 << 16], ids=["one reply", "a stream of replies"])
def test_a_monitor_that_waits_is_refused_by_a_server_that_stops(tmp_path, flags):
    """A driver that is told of a primary sends requests here again, until each retry is used up."""
    server = Server(tmp_path / "data").start()
    with Raw(server.port) as monitor:
        version = monitor.command("admin", {"hello": 1})["topologyVersion"]
        monitor.send("admin", {"hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 30_000}, flags=flags)
        time.sleep(0.2)
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        reply = monitor.receive()
        assert (reply["ok"], reply["code"], reply["codeName"]) == (0, 11600, "InterruptedAtShutdown")
        assert monitor.socket.recv(1) == b"", "the server has sent a further reply"
        assert time.monotonic() - began < 10
        assert server.process.wait(timeout=60) == 0


# ---- a service manager


@pytest.mark.parametrize("kind", ["a path", "an abstract name"])
def test_a_service_manager_is_told_of_the_start_and_of_the_stop(tmp_path, monkeypatch, kind):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, network_socket.socket(network_socket.AF_UNIX, network_socket.SOCK_DGRAM) as manager:
        name = f"{folder}/notify" if kind == "a path" else f"@pando-{uuid.uuid4().hex}"
        manager.bind(name.replace("@", "\0"))
        manager.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        server = Server(tmp_path / "data").start()
        assert manager.recv(4096) == b"READY=1"
        with server.client() as client:
            assert client.admin.command("ping")["ok"] == 1
        assert server.stop() == 0
        assert manager.recv(4096) == b"STOPPING=1"


# ---- dumps with a time series


def dump_of_series(folder):
    (folder / "d").mkdir(parents=True)
    (folder / "d" / "system.buckets.ts.bson").write_bytes(bson.encode({"_id": 1, "control": {"version": 1}, "data": {}}))
    (folder / "d" / "ts.metadata.json").write_text('{"options":{"timeseries":{"timeField":"t"}},"indexes":[],"type":"timeseries"}')
    (folder / "d" / "other.bson").write_bytes(bson.encode({"_id": 1}))
    return folder


def imported(source, data, *arguments):
    return subprocess.run([PANDO, "import", str(source), "--data", str(data), *arguments], capture_output=True, text=True, timeout=60)


def test_buckets_of_a_dump_are_no_complete_import(tmp_path):
    dump = dump_of_series(tmp_path / "dump")
    done = imported(dump, tmp_path / "data")
    assert done.returncode == 1 and "d.ts: not brought in: it is a time series" in done.stderr and "pando copy --from" in done.stderr
    assert "1 document" in done.stdout
    done = imported(dump / "d" / "system.buckets.ts.bson", tmp_path / "data")
    assert done.returncode != 0 and "pando copy --from" in done.stderr


def test_a_time_series_of_a_dump_is_not_brought_in_twice(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "ts.bson").write_bytes(bson.encode({"t": datetime.datetime(2026, 1, 1), "v": 1}))
    (tmp_path / "d" / "ts.metadata.json").write_text('{"options":{"timeseries":{"timeField":"t"}},"indexes":[]}')
    assert imported(tmp_path / "d", tmp_path / "data").returncode == 0
    again = imported(tmp_path / "d", tmp_path / "data")
    assert again.returncode == 1 and "d.ts" in again.stderr and "--drop" in again.stderr
    assert imported(tmp_path / "d", tmp_path / "data", "--drop").returncode == 0


def test_an_array_stops_at_a_document_and_indexes_are_counted_once(tmp_path):
    cut = tmp_path / "cut.json"
    cut.write_text('[{"a":1},{"a":2}')
    done = imported(cut, tmp_path / "data", "--db", "d")
    assert done.returncode == 1 and "stopped at document 3 of" in done.stderr, done.stderr
    dump = tmp_path / "dump" / "d"
    dump.mkdir(parents=True)
    (dump / "c.bson").write_bytes(bson.encode({"_id": 1}))
    (dump / "c.metadata.json").write_text('{"options":{},"indexes":[{"v":2,"key":{"a":1},"name":"a_1"}]}')
    assert "1 index built" in imported(dump, tmp_path / "data").stdout
    assert "built" not in imported(dump, tmp_path / "data", "--mode", "upsert").stdout


# ---- what the tools say of servers and copies


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has the rights of root")
def test_root_is_warned_in_the_folder_of_another_user(tmp_path):
    Server(tmp_path / "data").start().stop()
    verify = lambda *more: subprocess.run([PANDO, "verify", str(tmp_path / "data"), *more], capture_output=True, text=True, timeout=60)
    assert "runs as root" not in verify("--collections").stderr
    os.chown(tmp_path / "data", 4711, 4711)
    (tmp_path / "data" / "LOCK").unlink()
    done = verify()
    assert done.returncode == 0 and done.stderr == "" and not (tmp_path / "data" / "LOCK").exists(), done
    done = verify("--collections")
    assert done.returncode == 0 and len(done.stderr.splitlines()) == 1, done
    assert "belongs to user 4711" in done.stderr and "sudo -u '#4711' pando" in done.stderr, done.stderr


def test_a_check_says_whether_a_damaged_store_still_opens(tmp_path):
    server = Server(tmp_path / "data").start()
    with server.client() as client:
        client.d.c.insert_many([{"_id": i, "s": os.urandom(3000)} for i in range(20)])
    assert server.stop() == 0
    whole = (tmp_path / "data" / "data.0000").read_bytes()

    def checked(bytes_of_data=whole, has_log=True):
        """What the check says of a copy with this data file, in JSON and for people, and whether the copy opens."""
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(tmp_path / "data", copy)
        (copy / "data.0000").write_bytes(bytes_of_data)
        for segment in [] if has_log else (copy / "wal").iterdir():
            segment.unlink()
        run = lambda *arguments: subprocess.run([PANDO, *arguments], capture_output=True, text=True, timeout=60)
        report, told = run("verify", str(copy), "--json"), run("verify", str(copy))
        assert report.returncode == told.returncode
        opens = run("export", "--data", str(copy), "--db", "d", "--collection", "none").returncode == 0
        return json.loads(report.stdout), told.stdout, opens

    report, _, opens = checked()
    assert report["sound"] and report["opens"] and opens and report["remarks"] == [], report
    damaged = set()
    for place in range(128 << 10, len(whole), 4096):
        if not any(whole[place : place + 4096]):
            continue
        changed = bytes(byte ^ 0xFF for byte in whole[place : place + 32])
        report, told, opens = checked(whole[:place] + changed + whole[place + 32 :])
        # A map of the space that cannot be read is an error, and no problem of a report.
        if problems := report.get("problems"):
            assert report["opens"] == opens, (place, problems)
            assert ("the rest stays readable" in told, "the store does not open as it is" in told) == (opens, not opens), told
            damaged.update(name for name in ["(catalog)", "(counters)", "(Catalog,", "d.c:"] if any(name in problem for problem in problems))
    assert len(damaged) == 4, damaged
    report, told, opens = checked(has_log=False)
    assert (report["opens"], opens) == (False, False) and "restore a backup into another folder" in told, told


def test_a_folder_in_use_is_told_with_the_socket_of_its_server(socket):
    data = socket.parent / "data"
    server = Server(data).start()
    try:
        done = subprocess.run([PANDO, "export", "--data", str(data), "--db", "d", "--collection", "c"], capture_output=True, text=True, timeout=60)
        uri = done.stderr.split("--uri ")[-1].strip()
        assert done.returncode == 1 and uri.startswith("mongodb://%2F"), done.stderr
        with MongoClient(uri, serverSelectionTimeoutMS=20_000) as client:
            assert client.admin.command("ping")["ok"] == 1
    finally:
        server.stop()


def test_a_copy_tells_what_the_target_has_more(tmp_path):
    for folder, lines in (("from", '{"_id":1}\n'), ("to", '{"_id":1}\n{"_id":2}\n')):
        subprocess.run([PANDO, "import", "-", "--data", str(tmp_path / folder), "-d", "d", "-c", "c"], input=lines, text=True, check=True, capture_output=True, timeout=60)
    copied = [PANDO, "copy", "--from", str(tmp_path / "from"), "--to", str(tmp_path / "to"), "--mode", "upsert", "--json"]
    done = subprocess.run(copied, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "1 document more at the target" in done.stderr.replace("documents", "document"), done.stderr
    assert '"moreAtTarget":1' in done.stdout.replace(" ", "")


def test_the_log_tells_an_unknown_user(tmp_path):
    server = Server(tmp_path / "data", "--auth").start()
    try:
        with MongoClient(f"mongodb://ada:pw@127.0.0.1:{server.port}/?directConnection=true", serverSelectionTimeoutMS=20_000) as client, pytest.raises(OperationFailure, match="Authentication failed"):
            client.admin.command("ping")
        assert "there is no such user" in server.whole_log()
    finally:
        server.stop()
