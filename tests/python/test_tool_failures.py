"""What the tools and the server say where a command fails early."""

import json
import signal
import subprocess
import time

import pytest

from server import PANDO, Server


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("failures") / "data").start()
    with server.client() as client:
        client.t.c.insert_many([{"_id": i, "name": f"n{i}"} for i in range(3)])
    yield server
    assert server.stop() == 0, server.log()


def pando(*arguments):
    return subprocess.run([PANDO, *map(str, arguments)], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("command", ["import -", "backup", "user list"])
def test_a_command_that_fails_early_prints_its_error_as_json(tmp_path, command):
    name, *more = command.split()
    more += ["--to", tmp_path / "backup"] if name == "backup" else ["-c", "c"] if name == "import" else []
    ended = pando(name, *more, "--uri", "mongodb://127.0.0.1:1", "--json")
    assert ended.returncode == 1 and "127.0.0.1:1" in json.loads(ended.stdout)["error"], ended
    assert ended.stderr.startswith("pando: ")


def test_an_export_prints_its_error_beside_its_documents():
    ended = pando("export", "--uri", "mongodb://127.0.0.1:1", "-d", "t", "-c", "c", "--json")
    assert ended.returncode == 1 and ended.stdout == "" and "127.0.0.1:1" in json.loads(ended.stderr)["error"], ended


def test_a_start_that_fails_is_told_in_the_format_of_the_log(own, tmp_path):
    ended = pando("serve", "--data", tmp_path / "other", "--listen", f"127.0.0.1:{own.port}", "--log-format", "json")
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert ended.returncode == 1 and lines[-1]["level"] == "ERROR" and "is in use" in lines[-1]["message"], ended


def test_a_configuration_of_mongod_is_told_as_such(tmp_path):
    (tmp_path / "mongod.conf").write_text("net:\n  port: 27017\nstorage:\n  dbPath: /var/lib/mongodb\n")
    ended = pando("serve", "--config", tmp_path / "mongod.conf")
    assert ended.returncode != 0 and "configuration file of mongod, in YAML" in ended.stderr and "TOML" in ended.stderr, ended
    (tmp_path / "broken.toml").write_text("listen = \n")
    assert "not a valid TOML file" in pando("serve", "--config", tmp_path / "broken.toml").stderr


def test_a_server_without_tls_is_told_as_such(own):
    ended = pando("export", "--uri", f"mongodb://127.0.0.1:{own.port}/?tls=true", "-d", "t", "-c", "c")
    assert ended.returncode == 1 and "speaks no TLS" in ended.stderr and "tlsCAFile" not in ended.stderr, ended


def test_the_ending_of_a_name_chooses_the_format_of_an_export(own, tmp_path):
    place = ["export", "--uri", own.uri, "-d", "t", "-c", "c"]
    assert pando(*place, "--out", tmp_path / "x.csv", "--fields", "name").returncode == 0
    assert (tmp_path / "x.csv").read_text() == "name\nn0\nn1\nn2\n"
    ended = pando(*place, "--out", tmp_path / "y.CSV.gz")
    assert ended.returncode == 2 and "--fields" in ended.stderr and "--format jsonl" in ended.stderr, ended
    assert pando(*place, "--out", tmp_path / "z.csv", "--format", "jsonl").returncode == 0
    assert json.loads((tmp_path / "z.csv").read_text().splitlines()[0])["name"] == "n0"


def test_a_key_that_is_no_column_is_refused(own, tmp_path):
    (tmp_path / "x.csv").write_text("name,country\na,b\n")
    ended = pando("import", tmp_path / "x.csv", "--uri", own.uri, "-d", "t", "-c", "keyed", "--upsert-fields", "nmae")
    assert ended.returncode == 1 and "--upsert-fields names the column nmae" in ended.stderr and "name, country" in ended.stderr, ended
    with own.client() as client:
        assert client.t.keyed.count_documents({}) == 0


def test_an_interrupted_backup_says_what_it_leaves(own, tmp_path):
    own.process.send_signal(signal.SIGSTOP)
    try:
        tool = subprocess.Popen([PANDO, "backup", "--uri", own.uri, "--to", tmp_path / "backup"], stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        tool.send_signal(signal.SIGINT)
        said = tool.communicate(timeout=60)[1]
    finally:
        own.process.send_signal(signal.SIGCONT)
    assert tool.returncode == 130 and said.startswith("pando: interrupted; ") and "backup" in said, said
