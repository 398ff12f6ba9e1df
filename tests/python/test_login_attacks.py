"""Attacks on logins: downgrades by a middleman, messages that come byte by byte, and messages that are made to cost much."""

import base64
import socket
import ssl
import time

import bson
import pytest
from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError

from certificates import Certificates
from login_attacker import message
from middleman import Middleman
from raw_connection import Raw, fresh_origin, read_exactly
from scram_client import Attempt, going_on, log_in, start, stored_user
from server import Server
from test_tls import resident_bytes

SHA_1, SHA_256 = "SCRAM-SHA-1", "SCRAM-SHA-256"
HANDSHAKE_SECONDS = 2
MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server with access control and TLS, which gives strangers little time. Core dumps are on, so that its memory is told."""
    folder = tmp_path_factory.mktemp("guarded") / "data"
    server = Server(folder).start()
    with server.client() as client:
        client.admin["system.users"].insert_many([
            stored_user("ada", "admin", "secret", ["root"]), stored_user("new", "admin", "secret", ["root"], [SHA_256])])
    assert server.stop() == 0
    certificate = Certificates(tmp_path_factory.mktemp("certificates")).issue("server.pem", "CN=server")
    server = Server(folder, "--auth", "--tls-mode", "preferTLS", "--tls-certificate-key-file", certificate, "--core-dumps", "on",
                    "--handshake-timeout", f"{HANDSHAKE_SECONDS}s").start()
    yield server
    assert server.terminate() == 0
    assert "panic" not in server.whole_log()


def users_of(raw):
    return raw.command("admin", {"connectionStatus": 1})["authInfo"]["authenticatedUsers"]


def through(middleman, user, **options):
    return MongoClient("127.0.0.1", middleman.port, directConnection=True, username=user, password="secret", serverSelectionTimeoutMS=10_000,
                       **options)


def code_of(client):
    try:
        client.test.c.find_one()
        return 0
    except OperationFailure as refused:
        return refused.code


def hide_sha_256(reply):
    if SHA_256 in reply.get("saslSupportedMechs", []):
        reply["saslSupportedMechs"] = [SHA_1]
    # A client that has begun speculatively shall begin once more.
    reply.pop("speculativeAuthenticate", None)


def begun_mechanisms(heard):
    return [request["mechanism"] for request in heard if "saslStart" in request]


def test_a_middleman_that_hides_sha_256_logs_nobody_in_who_has_it_alone(guarded):
    with Middleman(guarded.port, hide_sha_256) as middleman:
        with through(middleman, "new") as client:
            assert code_of(client) == 18
        assert set(begun_mechanisms(middleman.heard)) == {SHA_1}
        # A client that names the mechanism is not led astray.
        with through(middleman, "new", authMechanism=SHA_256) as client:
            assert code_of(client) == 0


def test_a_middleman_that_hides_sha_256_hears_nothing_that_logs_him_in(guarded):
    with Middleman(guarded.port, hide_sha_256) as middleman:
        with through(middleman, "ada") as client:
            assert code_of(client) == 0
        heard = [request for request in middleman.heard if "saslStart" in request or "saslContinue" in request]
    assert begun_mechanisms(heard)[0] == SHA_1
    assert b"secret" not in b"".join(bytes(request["payload"]) for request in heard)
    first, proof = (bytes(request["payload"]) for request in heard[:2])
    for mechanism in (SHA_1, SHA_256):
        with Raw(guarded.port, fresh_origin()) as raw:
            reply = raw.command("admin", start(first, mechanism))
            assert raw.ask("admin", going_on(proof))["code"] == 18
            assert raw.ask("admin", going_on(b"", reply["conversationId"]))["code"] == 17
            assert users_of(raw) == []


def test_a_user_of_sha_256_alone_is_refused_by_sha_1_in_every_way(guarded):
    begun = start(Attempt("new", "secret", SHA_1).first, SHA_1)
    with Raw(guarded.port, fresh_origin()) as raw:
        assert raw.ask("admin", begun)["code"] == 18
        hello = raw.command("admin", {"hello": 1, "saslSupportedMechs": "admin.new", "speculativeAuthenticate": {**begun, "db": "admin"}})
        assert hello["saslSupportedMechs"] == [SHA_256] and "speculativeAuthenticate" not in hello
        # The exchange of one mechanism, the proof of the other.
        attempt = Attempt("ada", "secret", SHA_256)
        given = raw.command("admin", start(attempt.first, SHA_1))["payload"]
        assert raw.ask("admin", going_on(attempt.final(given)))["code"] == 18
        assert users_of(raw) == []
    with guarded.client(username="new", password="secret", authMechanism=SHA_1) as client:
        assert code_of(client) == 18


@pytest.mark.parametrize("flag", ["y,,", "p=tls-unique,,", "p=tls-server-end-point,,", "p=,,", ",,", "N,,", "n,a=ada,"])
def test_a_login_has_no_channel_binding(guarded, flag):
    """Neither in the first message, nor by a last message that says so."""
    for mechanism in (SHA_1, SHA_256):
        with Raw(guarded.port, fresh_origin()) as raw:
            attempt = Attempt("ada", "secret", mechanism)
            assert raw.ask("admin", start(flag.encode() + attempt.bare.encode(), mechanism))["code"] == 18
            given = raw.command("admin", start(attempt.first, mechanism))["payload"]
            bound = b"c=" + base64.b64encode(flag.encode())
            assert raw.ask("admin", going_on(attempt.final(given).replace(b"c=biws", bound)))["code"] == 18
            assert users_of(raw) == []


@pytest.mark.parametrize("mechanism", [SHA_1, SHA_256])
@pytest.mark.parametrize("rounds", [1, 4096, 14_999])
def test_a_middleman_that_changes_the_rounds_gets_no_proof_that_the_server_takes(guarded, mechanism, rounds):
    def fewer(reply):
        payload = reply.get("payload", b"")
        if b",i=" in payload:
            reply["payload"] = payload.split(b",i=")[0] + f",i={rounds}".encode()

    def dearer(reply):
        reply.pop("speculativeAuthenticate", None)
        fewer(reply)

    with Middleman(guarded.port, dearer) as middleman:
        with through(middleman, "ada", authMechanism=mechanism) as client, pytest.raises(PyMongoError) as refused:
            client.test.c.find_one()
        # PyMongo itself refuses fewer rounds than the standard has.
        if isinstance(refused.value, OperationFailure) and refused.value.code is not None:
            assert refused.value.code == 18
        answered = [request for request in middleman.heard if "saslContinue" in request]
        assert bool(answered) == (rounds >= 4096)


def secure(connection):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(connection)


class Drip:
    """A stranger who sends a message a byte at a time, after some that are whole, until he is shut out."""

    def __init__(self, port, secured, greets):
        self.ended_after = None
        self.socket = socket.create_connection(("127.0.0.1", port))
        if secured:
            self.socket = secure(self.socket)
        if greets:
            self.socket.sendall(message("admin", {"hello": 1}))
            length = int.from_bytes(read_exactly(self.socket, 4), "little")
            read_exactly(self.socket, length - 4)
        self.whole = message("admin", start(Attempt("ada", "x" * 10_000).first, SHA_256))
        self.begun, self.at = time.monotonic(), 0

    def go_on(self):
        try:
            self.socket.sendall(self.whole[self.at:self.at + 1])
            self.at += 1
            self.socket.settimeout(0)
            try:
                if self.socket.recv(1) == b"":
                    raise ConnectionResetError
            except (BlockingIOError, ssl.SSLWantReadError):
                pass
            self.socket.settimeout(10)
        except OSError:
            self.ended_after = time.monotonic() - self.begun
            self.socket.close()


def test_messages_that_come_byte_by_byte_before_the_login_end_at_the_timeout(guarded):
    with Raw(guarded.port, fresh_origin()) as raw:
        assert log_in(raw, "admin", "ada", "secret")["ok"] == 1
        raw.command("shop", {"insert": "c", "documents": [{"_id": 1}]})
        before = resident_bytes(guarded)
        drips = [Drip(guarded.port, secured=number % 2 == 1, greets=number % 4 > 1) for number in range(200)]
        highest, deadline = 0, time.monotonic() + 60
        while any(drip.ended_after is None for drip in drips):
            assert time.monotonic() < deadline
            for drip in drips:
                if drip.ended_after is None:
                    drip.go_on()
            highest = max(highest, resident_bytes(guarded))
            # One who has logged in is served meanwhile.
            assert raw.command("shop", {"find": "c", "filter": {"_id": 1}})["cursor"]["firstBatch"] == [{"_id": 1}]
            time.sleep(0.02)
        assert highest - before < 64 * MEGABYTE
        # The server looks once a second, and 200 connections take their time to open.
        assert all(HANDSHAKE_SECONDS - 1 < drip.ended_after for drip in drips)
        assert all(drip.at < len(drip.whole) for drip in drips)
        assert raw.command("admin", {"serverStatus": 1})["connections"]["current"] < len(drips) // 2


def test_a_client_that_has_logged_in_may_take_its_time(guarded):
    with Raw(guarded.port, fresh_origin()) as raw:
        assert log_in(raw, "admin", "ada", "secret")["ok"] == 1
        whole = message("shop", {"find": "c", "filter": {"_id": 1}})
        for at in range(8):
            raw.socket.sendall(whole[at:at + 1])
            time.sleep(HANDSHAKE_SECONDS / 4)
        raw.socket.sendall(whole[8:])
        length = int.from_bytes(read_exactly(raw.socket, 4), "little")
        assert bson.decode(read_exactly(raw.socket, length - 4)[17:])["ok"] == 1


def test_malformed_messages_of_strangers_do_not_fill_the_log(guarded):
    """Each of them is answered, so that one connection could write lines without end."""
    # The lines of the tests before are those of another second.
    time.sleep(1.1)
    before = len(guarded.whole_log().splitlines())
    broken = message("admin", {"hello": 1})
    broken = broken[:20] + b"\x07" + broken[21:]
    with Raw(guarded.port, fresh_origin()) as raw:
        begun = time.monotonic()
        for _ in range(2000):
            raw.socket.sendall(broken)
            length = int.from_bytes(read_exactly(raw.socket, 4), "little")
            read_exactly(raw.socket, length - 4)
        seconds = time.monotonic() - begun
    for _ in range(200):
        with socket.create_connection(("127.0.0.1", guarded.port)) as connection:
            connection.sendall(b"\x07\0\0\0" + bytes(12))
            while connection.recv(100):
                pass
    lines = guarded.whole_log().splitlines()[before:]
    # Ten lines a second of each thread, and the last ones count those that were left out.
    assert len(lines) < 40 * (seconds + 10), len(lines)
    assert any("malformed message" in line for line in lines)


def test_a_command_with_very_many_fields_holds_no_thread(guarded):
    """Neither by one who has logged in: each field was once looked for among all before it."""
    with Raw(guarded.port, fresh_origin()) as raw, Raw(guarded.port, fresh_origin()) as other:
        for connection in (raw, other):
            assert log_in(connection, "admin", "ada", "secret")["ok"] == 1
        raw.send("admin", {"ping": 1, **{f"{number:06}": None for number in range(200_000)}})
        begun = time.monotonic()
        assert other.command("admin", {"ping": 1})["ok"] == 1
        length = int.from_bytes(read_exactly(raw.socket, 4), "little")
        assert bson.decode(read_exactly(raw.socket, length - 4)[17:])["code"] == 40415
        assert time.monotonic() - begun < 60


def test_a_user_who_asks_for_himself_very_often_is_refused_before_memory_is_taken(guarded):
    with Raw(guarded.port, fresh_origin()) as raw:
        assert log_in(raw, "admin", "ada", "secret")["ok"] == 1
        before = resident_bytes(guarded)
        reply = raw.ask("admin", {"usersInfo": ["ada"] * 100_000, "showPrivileges": True})
        assert reply["code"] == 10334, reply
        assert resident_bytes(guarded) - before < 128 * MEGABYTE
        assert len(raw.command("admin", {"usersInfo": ["ada", "new"], "showPrivileges": True})["users"]) == 2


@pytest.mark.parametrize("name", ["a\0b", "ada\0", "\0ada"])
def test_a_name_with_a_zero_is_nobody(guarded, name):
    with Raw(guarded.port, fresh_origin()) as raw:
        for mechanism in (SHA_1, SHA_256):
            assert log_in(raw, "admin", name, "secret", mechanism)["code"] == 18
        hello = raw.ask("admin", {"hello": 1, "saslSupportedMechs": f"admin.{name}"})
        assert hello["ok"] == 1 and hello["saslSupportedMechs"] == [SHA_256, SHA_1]
        assert log_in(raw, "admin", "ada", "secret")["ok"] == 1
        assert raw.ask("admin", {"createUser": name, "pwd": "p", "roles": []})["ok"] == 0
        assert raw.command("admin", {"usersInfo": name})["users"] == []
