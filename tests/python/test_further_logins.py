"""Logins beside SCRAM: PLAIN where the password is protected, and the user of a process through the unix socket. Encrypted keys of
the server, and the figures of logins in serverStatus.
"""

import json
import os
import pwd
import shutil
import struct
import subprocess
import sys
import tempfile
import uuid
from urllib.parse import quote_plus

import bson
import pytest
from bson import Binary
from cryptography.hazmat.primitives import serialization
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from certificates import Certificates
from raw_connection import Raw
from scram_client import log_in, start, stored_user
from server import Server

OWN = pwd.getpwuid(os.geteuid()).pw_name
PLAIN = "PLAIN"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


def external(name, roles):
    return {"_id": f"$external.{name}", "userId": Binary(uuid.uuid4().bytes, 4), "user": name, "db": "$external",
            "credentials": {"external": True}, "roles": [{"role": role, "db": "admin"} for role in roles]}


@pytest.fixture(scope="module")
def make(certificates, tmp_path_factory):
    """Makes guarded servers with the users ada, by password, and the one of this process, by the unix socket."""
    started, places = [], []

    def make(*flags):
        folder = tmp_path_factory.mktemp("s") / "data"
        server = Server(folder).start()
        with server.client() as client:
            client.admin["system.users"].insert_many([
                stored_user("ada", "admin", "secret", ["root"]), stored_user("old", "admin", "secret", ["root"], ["SCRAM-SHA-1"]),
                external(OWN, ["readWriteAnyDatabase"])])
        assert server.stop() == 0
        # The folders of pytest are for its user only.
        place = tempfile.mkdtemp(prefix="pando-socket-")
        os.chmod(place, 0o755)
        places.append(place)
        path = f"{place}/s.sock"
        server = Server(folder, "--auth", "--audit-destination", "file", "--tls-mode", "preferTLS", "--tls-certificate-key-file",
                        certificates.issue("server.pem", "CN=server"), "--unix-socket", path, *flags).start()
        started.append(server)
        server.socket = path
        return server

    yield make
    for server in started:
        assert server.terminate() == 0, server.log()
        assert "panic" not in server.whole_log()
    for place in places:
        shutil.rmtree(place)


@pytest.fixture(scope="module")
def open_doors(make):
    return make("--auth-plain", "--auth-unix-peer")


@pytest.fixture(scope="module")
def shut(make):
    return make()


def client(server, certificates, user="ada", password="secret", tls=True, source="admin", mechanism=PLAIN):
    encrypted = {"tls": True, "tlsCAFile": certificates.ca} if tls else {}
    return MongoClient("127.0.0.1", server.port, directConnection=True, username=user, password=password, authMechanism=mechanism,
                       authSource=source, **encrypted)


def at(server):
    """The address of its unix socket."""
    return f"mongodb://{quote_plus(server.socket)}"


def users(of):
    return of.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"]


def events(server, kind="authenticate"):
    lines = map(json.loads, (server.folder / "audit.json").read_text().splitlines())
    return [event for event in lines if event["atype"] == kind]


@pytest.mark.parametrize("user", ["ada", "old"])
def test_a_password_goes_over_tls(open_doors, certificates, user):
    with client(open_doors, certificates, user) as mongo:
        mongo.test.c.insert_one({})
        assert users(mongo) == [{"user": user, "db": "admin"}]
    assert events(open_doors)[-1]["param"] == {"user": user, "db": "admin", "mechanism": PLAIN}


@pytest.mark.parametrize("changes, code", [
    ({"password": "wrong"}, 18), ({"user": "nobody"}, 18), ({"source": "test"}, 18), ({"tls": False}, 334),
    ({"source": "$external", "password": "wrong"}, 18), ({"source": "$external", "user": OWN}, 18), ({"source": "$external", "tls": False}, 334),
])
def test_other_passwords_and_unprotected_ones_are_refused(open_doors, certificates, changes, code):
    with client(open_doors, certificates, **changes) as mongo:
        with pytest.raises(OperationFailure) as refused:
            mongo.test.c.find_one()
    assert refused.value.code == code and "secret" not in str(refused.value)
    assert "secret" not in open_doors.whole_log()


def test_a_password_for_the_external_database_is_that_of_a_user_of_admin(open_doors, certificates):
    """Some clients take PLAIN for `$external` only. No user of that database is logged in by a password."""
    with client(open_doors, certificates, source="$external") as mongo:
        mongo.test.c.insert_one({})
        assert users(mongo) == [{"user": "ada", "db": "admin"}]
    assert events(open_doors)[-1]["param"] == {"user": "ada", "db": "admin", "mechanism": PLAIN}
    # A user of admin with the name of an external one is himself, and not that one.
    with client(open_doors, certificates, mechanism="SCRAM-SHA-256") as root:
        root.admin.command("createUser", OWN, pwd="secret", roles=[])
        try:
            with client(open_doors, certificates, user=OWN, source="$external") as mongo:
                assert users(mongo) == [{"user": OWN, "db": "admin"}]
                with pytest.raises(OperationFailure) as refused:
                    mongo.test.c.find_one()
                assert refused.value.code == 13
        finally:
            root.admin.command("dropUser", OWN)


def test_plain_is_not_offered_unless_it_is_asked_for(shut, certificates):
    with client(shut, certificates) as mongo:
        with pytest.raises(OperationFailure) as refused:
            mongo.test.c.find_one()
    assert refused.value.code == 334


def test_the_user_of_a_process_is_logged_in_through_the_socket(open_doors):
    with MongoClient(at(open_doors), directConnection=True) as mongo:
        # Also where nothing that needs a right was asked before.
        assert users(mongo) == [{"user": OWN, "db": "$external"}]
        mongo.test.c.insert_one({"text": "x" * 100_000})
        with pytest.raises(OperationFailure) as refused:
            mongo.admin.command("createUser", "x", pwd="x", roles=["root"])
        assert refused.value.code == 13
    assert events(open_doors)[-1]["param"] == {"user": OWN, "db": "$external", "mechanism": "UNIX-PEER"}
    # One who logs in first is that user, also by PLAIN.
    for mechanism in ("SCRAM-SHA-256", PLAIN):
        with MongoClient(at(open_doors), directConnection=True, username="ada", password="secret", authSource="admin",
                         authMechanism=mechanism) as mongo:
            mongo.test.c.find_one()
            assert users(mongo) == [{"user": "ada", "db": "admin"}]
    # Whoever comes by TCP is a stranger.
    with Raw(open_doors.port) as raw:
        assert raw.ask("test", {"find": "c"})["code"] == 13
    assert os.stat(open_doors.socket).st_mode & 0o777 == 0o777


def test_the_socket_is_closed_to_others_unless_it_is_asked_for(shut):
    assert os.stat(shut.socket).st_mode & 0o777 == 0o700
    with MongoClient(at(shut), directConnection=True) as mongo:
        with pytest.raises(OperationFailure) as refused:
            mongo.test.c.find_one()
    assert refused.value.code == 13


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_the_process_of_another_user_is_a_stranger_until_there_is_such_a_user(open_doors):
    body = struct.pack("<IB", 0, 0) + bson.encode({"count": "c", "$db": "test"})
    message = struct.pack("<iiii", 16 + len(body), 1, 0, 2013) + body
    program = ("import os, socket; s = socket.socket(socket.AF_UNIX); os.setgid(65534); os.setuid(65534); "
               f"s.connect({open_doors.socket!r}); s.sendall({message!r}); print(s.recv(65536).hex())")

    def code():
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        return bson.decode(bytes.fromhex(ended.stdout)[21:]).get("code", 0)

    assert code() == 13
    with Raw(open_doors.port) as raw:
        log_in(raw, "admin", "ada", "secret")
        raw.command("$external", {"createUser": pwd.getpwuid(65534).pw_name, "roles": [{"role": "read", "db": "test"}]})
    assert code() == 0


def test_a_connection_logs_in_again(open_doors):
    with Raw(open_doors.port) as raw:
        for _ in range(2):
            assert log_in(raw, "admin", "ada", "secret", skipEmptyExchange=True)["done"]
        # A failure leaves the login as it is.
        assert log_in(raw, "admin", "ada", "wrong")["code"] == 18
        assert raw.command("admin", {"connectionStatus": 1})["authInfo"]["authenticatedUsers"] == [{"user": "ada", "db": "admin"}]
        assert raw.ask("admin", start(b"n,,n=ada,r=x", options={"skipEmptyExchange": 1}))["code"] == 2
        assert raw.command("test", {"find": "c"})["ok"] == 1


def test_the_figures_of_logins(make, certificates):
    server = make("--auth-plain")
    with client(server, certificates, mechanism="SCRAM-SHA-256") as mongo:
        before = mongo.admin.command("serverStatus")
        with client(server, certificates) as other:
            other.test.c.find_one()
        with client(server, certificates, password="wrong", mechanism="SCRAM-SHA-1") as other:
            with pytest.raises(OperationFailure):
                other.test.c.find_one()
        after = mongo.admin.command("serverStatus")
    assert before["security"]["SSLServerSubjectName"] == "CN=server" and before["security"]["SSLServerCertificateExpirationDate"]
    assert before["transportSecurity"]["1.3"] >= 1 and after["transportSecurity"]["1.3"] > before["transportSecurity"]["1.3"]
    scram = before["security"]["authentication"]["mechanisms"]["SCRAM-SHA-256"]
    assert scram["authenticate"]["successful"] >= 1 and scram["speculativeAuthenticate"]["successful"] >= 1
    figures = after["security"]["authentication"]["mechanisms"]
    assert figures["PLAIN"]["authenticate"] == {"received": 1, "successful": 1}
    assert figures["SCRAM-SHA-1"]["authenticate"]["received"] >= 1 and figures["SCRAM-SHA-1"]["authenticate"]["successful"] == 0


def test_an_encrypted_key_is_read_with_its_password(tmp_path, certificates):
    whole = certificates.issue("plain.pem", "CN=sealed")
    text = open(whole, "rb").read()
    begin = text.index(b"-----BEGIN PRIVATE KEY")
    key = serialization.load_pem_private_key(text[begin:], None)
    sealed, password = tmp_path / "sealed.pem", tmp_path / "password"
    sealed.write_bytes(text[:begin] + certificates.key_pem(key, serialization.BestAvailableEncryption("pässword".encode())))
    password.write_text("pässword\nsecond line\n")
    flags = ["--tls-mode", "requireTLS", "--tls-certificate-key-file", str(sealed), "--tls-certificate-key-file-password-file", str(password)]
    server = Server(tmp_path / "data", *flags, engine="memory").start()
    try:
        with MongoClient("127.0.0.1", server.port, directConnection=True, tls=True, tlsCAFile=certificates.ca) as mongo:
            assert mongo.admin.command("ping")["ok"] == 1
            # A key that cannot be read leaves the former one in use.
            password.write_text("other\n")
            with pytest.raises(OperationFailure) as refused:
                mongo.admin.command("rotateCertificates", 1)
            assert "cannot decrypt" in str(refused.value)
        with MongoClient("127.0.0.1", server.port, directConnection=True, tls=True, tlsCAFile=certificates.ca) as mongo:
            assert mongo.admin.command("ping")["ok"] == 1
        shown = open(f"/proc/{server.process.pid}/cmdline", "rb").read() + server.whole_log().encode()
        assert "pässword".encode() not in shown
    finally:
        assert server.terminate() == 0
    with pytest.raises(RuntimeError) as refused:
        Server(tmp_path / "other", *flags, engine="memory").start()
    assert "cannot decrypt the private key" in str(refused.value) and str(sealed) in str(refused.value)


def test_a_new_store_begins_its_audit_trail(tmp_path):
    server = Server(tmp_path / "data", "--audit-destination", "file").start()
    with server.client() as mongo:
        mongo.test.create_collection("c")
    assert server.stop() == 0
    assert [event["param"] for event in events(server, "createCollection")] == [{"ns": "test.c"}]
