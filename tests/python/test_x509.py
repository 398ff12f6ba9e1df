"""Logins by the certificate of a client (MONGODB-X509), and logins in the audit trail."""

import json
import uuid

import pytest
from bson import Binary
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from certificates import Certificates
from scram_client import stored_user
from server import Server

APP = "CN=app\\, 1,OU=apps,O=org"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def guarded(certificates, tmp_path_factory):
    """A server with access control; its users are ada, by password, and app, by certificate."""
    folder = tmp_path_factory.mktemp("guarded") / "data"
    server = Server(folder).start()
    with server.client() as client:
        external = {"_id": f"$external.{APP}", "userId": Binary(uuid.uuid4().bytes, 4), "user": APP, "db": "$external",
                    "credentials": {"external": True}, "roles": [{"role": "root", "db": "admin"}]}
        client.admin["system.users"].insert_many([stored_user("ada", "admin", "secret", ["root"]), external])
    assert server.stop() == 0
    server = Server(folder, "--auth", "--tls-mode", "requireTLS", "--tls-certificate-key-file", certificates.issue("server.pem", "CN=server"),
                    "--tls-ca-file", certificates.ca, "--tls-allow-connections-without-certificates", "--audit-destination", "file").start()
    yield server
    assert server.terminate() == 0, server.log()
    assert "panic" not in server.whole_log()


def over_tls(server, certificates, key=None, **options):
    key = {"tlsCertificateKeyFile": key} if key else {}
    return MongoClient("127.0.0.1", server.port, directConnection=True, tls=True, tlsCAFile=certificates.ca, serverSelectionTimeoutMS=10_000,
                       **key, **options)


@pytest.fixture(scope="module")
def app(certificates):
    return certificates.issue("app.pem", [("O", "org"), ("OU", "apps"), ("CN", "app, 1")])


def events(server, kind):
    lines = (server.folder / "audit.json").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["atype"] == kind]


def test_the_subject_of_a_certificate_is_the_user(guarded, certificates, app):
    for options in ({}, {"username": APP}):
        with over_tls(guarded, certificates, app, authMechanism="MONGODB-X509", **options) as client:
            client.test.things.insert_one({"a": 1})
            status = client.admin.command("connectionStatus")["authInfo"]
            assert status["authenticatedUsers"] == [{"user": APP, "db": "$external"}]
            assert status["authenticatedUserRoles"] == [{"role": "root", "db": "admin"}]
    reached = events(guarded, "authenticate")[-1]
    assert reached["param"] == {"user": APP, "db": "$external", "mechanism": "MONGODB-X509"} and reached["result"] == 0
    assert reached["users"] == [{"user": APP, "db": "$external"}] and reached["roles"] == [{"role": "root", "db": "admin"}]


def test_other_certificates_and_none_are_refused(guarded, certificates, app):
    stranger = certificates.issue("stranger.pem", "O=org,CN=stranger")
    for key, options, code in [(stranger, {}, 11), (app, {"username": "CN=other"}, 18)]:
        with over_tls(guarded, certificates, key, authMechanism="MONGODB-X509", **options) as client:
            with pytest.raises(OperationFailure) as refused:
                client.test.things.find_one()
            assert refused.value.code == code
    with over_tls(guarded, certificates) as client:
        for database, code in (("$external", 18), ("admin", 17)):
            with pytest.raises(OperationFailure) as refused:
                client[database].command("authenticate", 1, mechanism="MONGODB-X509")
            assert refused.value.code == code


# Subjects that somebody could take for `CN=app\\, 1,OU=apps,O=org`, each with its own name.
LOOK_ALIKES = {
    "a value that ends like a part": ([("O", "org"), ("CN", "app, 1,OU=apps")], "CN=app\\, 1\\,OU=apps,O=org"),
    "a zero behind": ([("O", "org"), ("OU", "apps"), ("CN", "app, 1\0")], "CN=app\\, 1\\00,OU=apps,O=org"),
    "a zero and more behind": ([("O", "org"), ("OU", "apps"), ("CN", "app, 1\0.example.org")], "CN=app\\, 1\\00.example.org,OU=apps,O=org"),
    "two common names": ([("O", "org"), ("OU", "apps"), ("CN", "app, 1"), ("CN", "other")], "CN=other,CN=app\\, 1,OU=apps,O=org"),
    "two common names, the other way": ([("CN", "other"), ("O", "org"), ("OU", "apps"), ("CN", "app, 1")], "CN=app\\, 1,OU=apps,O=org,CN=other"),
    "two attributes in one part": ([("O", "org"), [("OU", "apps"), ("CN", "app, 1")]], None),
    "another order": ([("OU", "apps"), ("O", "org"), ("CN", "app, 1")], "CN=app\\, 1,O=org,OU=apps"),
    "a space behind": ([("O", "org"), ("OU", "apps"), ("CN", "app, 1 ")], "CN=app\\, 1\\ ,OU=apps,O=org"),
    "another letter": ([("O", "org"), ("OU", "apps"), ("CN", "\u0430pp, 1")], "CN=\\D0\\B0pp\\, 1,OU=apps,O=org"),
    "a capital letter": ([("O", "org"), ("OU", "apps"), ("CN", "App, 1")], "CN=App\\, 1,OU=apps,O=org"),
    "an escape that stands there": ([("O", "org"), ("OU", "apps"), ("CN", "app\\, 1")], "CN=app\\\\\\, 1,OU=apps,O=org"),
    "a line break": ([("O", "org"), ("OU", "apps"), ("CN", "app, 1\n")], "CN=app\\, 1\\0A,OU=apps,O=org"),
}


@pytest.mark.parametrize("place", LOOK_ALIKES)
def test_a_subject_that_looks_alike_is_another_user(guarded, certificates, place):
    subject, name = LOOK_ALIKES[place]
    key = certificates.issue("alike.pem", subject)
    for options, code in (({}, 11), ({"username": APP}, 18)):
        with over_tls(guarded, certificates, key, authMechanism="MONGODB-X509", **options) as client:
            with pytest.raises(OperationFailure) as refused:
                client.test.things.find_one()
            assert refused.value.code == code
            if code == 11 and name:
                assert refused.value.details["errmsg"] == f'Could not find user "{name}" for db "$external"'


def test_logins_and_refusals_are_in_the_audit_trail(guarded, certificates):
    with over_tls(guarded, certificates, username="ada", password="secret") as client:
        client.test.things.find_one()
    reached = events(guarded, "authenticate")[-1]
    assert reached["param"] == {"user": "ada", "db": "admin", "mechanism": "SCRAM-SHA-256"} and reached["result"] == 0
    with over_tls(guarded, certificates, username="ada", password="wrong") as client:
        with pytest.raises(OperationFailure):
            client.test.things.find_one()
    failed = events(guarded, "authenticate")[-1]
    assert failed["param"]["user"] == "ada" and failed["result"] == 18 and failed["users"] == []
    with over_tls(guarded, certificates) as client:
        with pytest.raises(OperationFailure) as refused:
            client.test.things.insert_one({"a": 1})
        assert refused.value.code == 13
    checks = [check["param"] for check in events(guarded, "authCheck") if check["result"] == 13]
    assert ("insert", "test.things") in [(check["command"], check["ns"]) for check in checks]


def test_a_stranger_sends_no_large_message(guarded, certificates):
    with over_tls(guarded, certificates, retryWrites=False) as client:
        with pytest.raises(Exception) as refused:
            client.test.things.insert_one({"text": "x" * 20_000})
        assert "closed" in str(refused.value) or "reset" in str(refused.value), refused.value
    with over_tls(guarded, certificates, username="ada", password="secret") as client:
        client.test.things.insert_one({"text": "x" * 20_000})
