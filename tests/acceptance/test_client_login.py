"""The program's own client logs in at a MongoDB with access control, by both SCRAMs and over TLS."""

import subprocess

import pytest

from certificates import Certificates
from oracle import Oracle
from server import PANDO


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def guarded(certificates):
    oracle = Oracle().start_guarded("--tlsMode", "preferTLS", "--tlsCertificateKeyFile", certificates.issue("server.pem", "CN=server"),
                                    "--tlsCAFile", certificates.ca, "--tlsAllowConnectionsWithoutCertificates")
    from pymongo import MongoClient
    with MongoClient("127.0.0.1", oracle.port, directConnection=True) as client:
        client.admin.command("createUser", "ada", pwd="p@ss:w/r€d", roles=["root"])
    yield oracle
    oracle.stop()


def export(uri, *arguments, given=None):
    return subprocess.run([PANDO, "export", "--db", "admin", "--collection", "system.version", "--uri", uri, *arguments],
                          capture_output=True, text=True, timeout=60, input=given)


@pytest.mark.parametrize("mechanism", ["", "authMechanism=SCRAM-SHA-256", "authMechanism=SCRAM-SHA-1"])
@pytest.mark.parametrize("tls", [False, True])
def test_a_user_logs_in(guarded, certificates, mechanism, tls):
    options = "&".join(filter(None, [mechanism, f"tls=true&tlsCAFile={certificates.ca}" if tls else ""]))
    uri = f"mongodb://ada:p%40ss%3Aw%2Fr%E2%82%ACd@127.0.0.1:{guarded.port}/?{options}"
    done = export(uri)
    assert done.returncode == 0 and "authSchema" in done.stdout, done.stderr


def test_a_wrong_password_is_told_and_a_password_comes_from_standard_input(guarded):
    uri = f"mongodb://127.0.0.1:{guarded.port}"
    done = export(uri, "--username", "ada", "--password-file", "-", given="p@ss:w/r€d\n")
    assert done.returncode == 0 and "authSchema" in done.stdout, done.stderr
    refused = export(uri, "--username", "ada", "--password-file", "-", given="wrong\n")
    assert refused.returncode == 1 and "Authentication failed" in refused.stderr and "wrong" not in refused.stderr, refused.stderr
    assert export(uri).returncode == 1
