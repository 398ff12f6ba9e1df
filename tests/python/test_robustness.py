"""The server under wrong bytes, documents and folders. Each time, another connection must go on undisturbed."""

import random
import socket
import struct
import subprocess

import bson
import pytest

from server import PANDO, Server, free_port


def message(body, opcode=2013, length=None):
    header = struct.pack("<iiii", len(body) + 16 if length is None else length, 1, 0, opcode)
    return header + body


def op_msg(document, flags=0, kind=0):
    return message(struct.pack("<IB", flags, kind) + document)


def exchange(server, raw):
    """Sends bytes, gives what comes back until the server closes or is silent for a moment."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=2) as connection:
        connection.sendall(raw)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        try:
            while chunk := connection.recv(65536):
                received += chunk
        except (TimeoutError, ConnectionResetError):
            pass
        return received


def reply_of(received):
    length = struct.unpack_from("<i", received)[0]
    return bson.decode(received[21:length])


HOSTILE_DOCUMENTS = {
    "not BSON at all": b"\x05\x00\x00\x00\x01",
    "a length beyond the end": b"\xff\x00\x00\x00\x00",
    "an unknown type": b"\x0c\x00\x00\x00\x66a\x00\x01\x00\x00\x00\x00",
    "a string without its end": b"\x10\x00\x00\x00\x02a\x00\x08\x00\x00\x00abc\x00",
}


@pytest.mark.parametrize("name", HOSTILE_DOCUMENTS)
def test_a_body_that_is_not_bson_is_answered_or_the_connection_closed(server, client, name):
    received = exchange(server, op_msg(HOSTILE_DOCUMENTS[name]))
    if received:
        assert reply_of(received)["ok"] == 0
    assert client.admin.command("ping")["ok"] == 1


def test_random_bytes_close_the_connection_and_nothing_else(server, client):
    chance = random.Random(7)
    for _ in range(200):
        size = chance.randrange(1, 300)
        raw = bytes(chance.randrange(256) for _ in range(size))
        if chance.random() < 0.5:
            raw = message(raw, chance.choice([1, 2004, 2012, 2013, 9999]))
        exchange(server, raw)
    assert client.admin.command("ping")["ok"] == 1


def test_mutated_requests_never_harm_another_connection(server, client, db):
    db.c.insert_one({"_id": 1, "x": 1})
    chance = random.Random(11)
    requests = [
        {"find": "c", "filter": {"x": 1}, "$db": db.name},
        {"insert": "c", "documents": [{"_id": 5, "a": [1, {"b": 2}]}], "$db": db.name + "x"},
        {"update": "c", "updates": [{"q": {"x": 1}, "u": {"$set": {"a.b": 1}}}], "$db": db.name + "x"},
        {"aggregate": "c", "pipeline": [{"$group": {"_id": "$x", "n": {"$sum": 1}}}], "cursor": {}, "$db": db.name},
        {"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x_1"}], "$db": db.name + "x"},
    ]
    for _ in range(400):
        raw = bytearray(op_msg(bson.encode(chance.choice(requests))))
        for _ in range(chance.randrange(1, 4)):
            raw[chance.randrange(16, len(raw))] = chance.randrange(256)
        exchange(server, bytes(raw))
    assert db.c.find_one() == {"_id": 1, "x": 1}
    client.drop_database(db.name + "x")


def test_oversized_and_truncated_messages_close_the_connection(server, client):
    for length in [-1, 0, 15, 48_000_001, 2**31 - 1]:
        exchange(server, message(b"\x00" * 30, length=length))
    exchange(server, op_msg(bson.encode({"ping": 1, "$db": "admin"}))[:-3])
    assert client.admin.command("ping")["ok"] == 1


def test_a_wrong_checksum_is_noticed(server, client):
    body = struct.pack("<IB", 1, 0) + bson.encode({"ping": 1, "$db": "admin"}) + b"\x01\x02\x03\x04"
    received = exchange(server, message(body))
    assert not received or reply_of(received)["ok"] == 0
    assert client.admin.command("ping")["ok"] == 1


def nested(levels):
    """The fields of a document that nests this deep."""
    inner = b""
    for _ in range(levels):
        inner = b"\x03x\x00" + struct.pack("<i", len(inner) + 5) + inner + b"\x00"
    return inner


@pytest.mark.parametrize("document, codes", [
    (b"\x02x\x00\x03\x00\x00\x00\xff\xfe\x00", {22, 2, 9}),
    (nested(250), {22, 15, 2, 9}),
], ids=["invalid UTF-8", "nested too deeply"])
def test_invalid_documents_are_refused_with_a_code(server, db, document, codes):
    whole = struct.pack("<i", len(document) + 5) + document + b"\x00"
    array = b"\x030\x00" + whole
    array = struct.pack("<i", len(array) + 5) + array + b"\x00"
    command = bson.encode({"insert": "c"})[4:-1] + b"\x04documents\x00" + array + bson.encode({"$db": db.name})[4:-1]
    received = exchange(server, op_msg(struct.pack("<i", len(command) + 5) + command + b"\x00"))
    if received:
        reply = reply_of(received)
        found = reply.get("code") or reply["writeErrors"][0]["code"]
        assert found in codes, reply
    assert db.c.count_documents({}) == 0


def nested_calls(levels):
    """An expression of so many calls in one another, as the fields of a document."""
    lengths = range(5 + 11 * (levels - 1), 4, -11)
    return b"".join(b"\x03$abs\x00" + struct.pack("<i", length) for length in lengths) + b"\x00" * levels


def with_length(fields):
    return struct.pack("<i", len(fields) + 5) + fields + b"\x00"


@pytest.mark.parametrize("levels", [250, 10_000, 500_000])
def test_a_request_nested_too_deeply_ends_no_server(server, client, db, levels):
    deep = b"\x03v\x00" + with_length(nested_calls(levels))
    stage = b"\x030\x00" + with_length(b"\x03$set\x00" + with_length(deep))
    rest = bson.encode({"cursor": {}, "$db": db.name})[4:-1]
    aggregate = with_length(bson.encode({"aggregate": "c"})[4:-1] + b"\x04pipeline\x00" + with_length(stage) + rest)
    find = with_length(bson.encode({"find": "c"})[4:-1] + b"\x03filter\x00" + with_length(b"\x03$expr\x00" + with_length(nested_calls(levels))) + bson.encode({"$db": db.name})[4:-1])
    updates = b"updates\x00" + with_length(b"\x03q\x00" + with_length(b"") + b"\x04u\x00" + with_length(stage))
    update = b"\x00" + bson.encode({"update": "c", "$db": db.name}) + b"\x01" + struct.pack("<i", len(updates) + 4) + updates
    db.c.insert_one({"_id": 1})
    for request in (op_msg(aggregate), op_msg(find), message(struct.pack("<I", 0) + update)):
        reply = reply_of(exchange(server, request))
        assert (reply["ok"], reply["code"]) == (0, 15), reply
    assert client.admin.command("ping")["ok"] == 1


def test_names_with_nul_or_dollar_are_refused(db):
    for name in ["a\0b", "$a", ""]:
        with pytest.raises(Exception):
            db.command("insert", name, documents=[{}])


def refused(*arguments):
    ended = subprocess.run([PANDO, "serve", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    assert ended.returncode != 0
    assert "panicked" not in ended.stderr
    return ended.stderr + ended.stdout


def test_a_folder_in_use_is_refused(tmp_path):
    server = Server(tmp_path / "data").start()
    said = refused("--data", str(server.folder), "--listen", f"127.0.0.1:{free_port()}")
    assert "use" in said and str(server.folder) in said
    assert server.stop() == 0


def test_a_folder_of_another_format_is_refused(tmp_path):
    server = Server(tmp_path / "data").start()
    assert server.stop() == 0
    file = next(server.folder.glob("data.*"))
    content = bytearray(file.read_bytes()[:131072])
    for at in range(0, len(content), 4096):
        if content[at:at + 8].strip(b"\0"):
            content[at:at + 8] = b"SOMEONES"
    with open(file, "r+b") as opened:
        opened.write(content)
    said = refused("--data", str(server.folder), "--listen", f"127.0.0.1:{free_port()}")
    assert file.name in said or str(server.folder) in said


def test_addresses_beyond_this_machine_want_a_flag(tmp_path):
    said = refused("--data", str(tmp_path / "data"), "--listen", f"0.0.0.0:{free_port()}")
    assert "--allow-unauthenticated" in said


def test_a_port_in_use_is_refused(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = refused("--data", str(tmp_path / "data"), "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert "127.0.0.1" in said


def open_to_others(folder):
    """The files and folders that others than their owner could reach."""
    found = [folder, *folder.rglob("*")]
    return [str(path) for path in found if path.lstat().st_mode & 0o077 and not path.is_symlink()]


def test_files_are_for_their_user_only_whatever_the_umask(tmp_path):
    freely = ["sh", "-c", 'umask 0; exec "$@"', "sh", PANDO]
    server = Server(tmp_path / "data", "--audit-destination", "file", "--unix-socket", str(tmp_path / "s.sock"))
    server.program = freely
    server.start()
    with server.client() as client:
        client.d.c.insert_many({"_id": number, "text": "x" * 1000} for number in range(3000))
        client.admin.command("pandoBackup", 1, to=str(tmp_path / "backup"))
        client.admin.command("logRotate", "audit")
        made = ["data", "backup", "s.sock"]
        assert [open_to_others(tmp_path / name) for name in made] == [[], [], []]
    assert server.stop() == 0

    def tool(*arguments, given=""):
        ended = subprocess.run([*freely, *map(str, arguments)], input=given, capture_output=True, text=True, timeout=120)
        assert ended.returncode == 0, ended.stderr

    (tmp_path / "lines.json").write_text('{"_id": 1}\n')
    tool("user", "add", "ada", "--data", tmp_path / "users", given="secret\n")
    tool("import", tmp_path / "lines.json", "--data", tmp_path / "imported", "--db", "d", "--collection", "c")
    tool("restore", tmp_path / "backup", "--to", tmp_path / "restored")
    tool("copy", "--from", tmp_path / "data", "--to", tmp_path / "copied")
    tool("backup", "--data", tmp_path / "data", "--to", tmp_path / "backup2")
    tool("export", "--data", tmp_path / "data", "--db", "d", "--collection", "c", "--out", tmp_path / "exported.json")
    made = ["data", "users", "imported", "restored", "copied", "backup2", "exported.json"]
    assert {name: open_to_others(tmp_path / name) for name in made} == {name: [] for name in made}


def test_an_unknown_setting_is_named(tmp_path):
    config = tmp_path / "pando.toml"
    config.write_text("lisen = '127.0.0.1:1'\n")
    said = refused("--data", str(tmp_path / "data"), "--config", str(config))
    assert "lisen" in said
