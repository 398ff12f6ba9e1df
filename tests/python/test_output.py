"""What a server and the tools do where nobody reads what they write, or where it cannot be written."""

import contextlib
import datetime
import os
import pathlib
import signal
import subprocess
import tempfile
import time
from urllib.parse import quote_plus

import bson
import pytest
from pymongo import MongoClient
from pymongo.errors import OperationFailure

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
    assert server.stop() == 0
    log = server.whole_log()
    assert "the limit of open files is 300, below --max-connections 20000" in log, log
    assert "PANDO_CACH has no effect" in log and "PANDO_CACHE is the nearest" in log, log


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
    server.terminate()
    assert "panic" not in server.whole_log()
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
