"""TLS by PyMongo: modes, certificates of clients, versions, renewal, and the refusals of a start."""

import os
import signal
import socket
import ssl
import subprocess
import time

import pytest
from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError

from certificates import Certificates
from server import PANDO, Server


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def start(tmp_path):
    """Starts servers in memory with these arguments, and ends them with the test."""
    started = []

    def start(*arguments):
        server = Server(tmp_path / f"store{len(started)}", *arguments, engine="memory").start()
        started.append(server)
        return server

    yield start
    for server in started:
        assert server.terminate() == 0, server.log()
        assert "panic" not in server.whole_log()


def over_tls(server, certificates, **options):
    options = {"tls": True, "tlsCAFile": certificates.ca, "serverSelectionTimeoutMS": 10_000, **options}
    return MongoClient("127.0.0.1", server.port, directConnection=True, **options)


def is_served(client):
    with client:
        try:
            return client.admin.command("ping")["ok"] == 1
        except PyMongoError:
            return False


def wait_until(holds):
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def shown_subject(server, certificates):
    """The subject of the certificate that a server shows."""
    context = ssl.create_default_context(cafile=certificates.ca)
    with socket.create_connection(("127.0.0.1", server.port)) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as secured:
        return dict(part[0] for part in secured.getpeercert()["subject"])["commonName"]


def test_reads_and_writes_of_every_size_go_over_tls(start, certificates):
    key = certificates.issue("server.pem", "O=org,CN=server")
    server = start("--tls-mode", "requireTLS", "--tls-certificate-key-file", key)
    for options in ({}, {"compressors": "zlib"}):
        with over_tls(server, certificates, **options) as client:
            things = client.test.things
            things.drop()
            things.insert_many([{"_id": number, "text": "x" * number} for number in range(0, 300_000, 10_000)])
            things.insert_one({"_id": -1, "text": os.urandom(15_000_000)})
            assert things.count_documents({}) == 31
            assert sorted(len(found["text"]) for found in things.find({"_id": {"$gte": 0}}, batch_size=3)) == list(range(0, 300_000, 10_000))
            assert len(things.find_one({"_id": -1})["text"]) == 15_000_000
            with client.start_session() as session, session.start_transaction():
                things.update_one({"_id": 0}, {"$set": {"text": "y"}}, session=session)
            assert things.find_one({"_id": 0})["text"] == "y"
    assert not is_served(server.client(serverSelectionTimeoutMS=500))


@pytest.mark.parametrize("mode", ["allowTLS", "preferTLS"])
def test_one_port_serves_clients_with_and_without_tls(start, certificates, mode):
    server = start("--tlsMode", mode, "--tlsCertificateKeyFile", certificates.issue("server.pem", "CN=server"))
    assert is_served(server.client())
    assert is_served(over_tls(server, certificates))
    stranger = Certificates(certificates.folder / "stranger")
    assert not is_served(over_tls(server, stranger, serverSelectionTimeoutMS=500))
    # The socket in the folder stays plain; a server in memory has none.


def test_clients_show_a_certificate_where_issuers_are_known(start, certificates):
    own = certificates.issue("app.pem", "O=org,CN=app")
    foreign = Certificates(certificates.folder / "foreign", "CN=foreign").issue("app.pem", "CN=app")
    files = ("--tls-mode", "requireTLS", "--tls-certificate-key-file", certificates.issue("server.pem", "CN=server"), "--tls-ca-file", certificates.ca)
    strict = start(*files)
    lax = start(*files, "--tls-allow-connections-without-certificates")
    for server in (strict, lax):
        assert is_served(over_tls(server, certificates, tlsCertificateKeyFile=own))
        assert not is_served(over_tls(server, certificates, tlsCertificateKeyFile=foreign, serverSelectionTimeoutMS=500))
    assert is_served(over_tls(lax, certificates))
    assert not is_served(over_tls(strict, certificates, serverSelectionTimeoutMS=500))


def test_a_revoked_certificate_is_refused_and_so_is_every_one_under_a_list_that_has_ended(start, certificates):
    good, bad = certificates.issue("good.pem", "CN=good"), certificates.issue("bad.pem", "CN=bad")
    lists = certificates.revoke("revoked.pem", [bad])
    server = start("--tls-mode", "requireTLS", "--tls-certificate-key-file", certificates.issue("server.pem", "CN=server"),
                   "--tls-ca-file", certificates.ca, "--tls-crl-file", lists)
    certificate = lambda file: over_tls(server, certificates, tlsCertificateKeyFile=file, serverSelectionTimeoutMS=500)
    assert is_served(over_tls(server, certificates, tlsCertificateKeyFile=good))
    assert not is_served(certificate(bad))
    with over_tls(server, certificates, tlsCertificateKeyFile=good) as client:
        certificates.revoke("revoked.pem", days=-1)
        assert client.admin.command("rotateCertificates", 1)["ok"] == 1
        assert not is_served(certificate(good))
        assert "expired" in server.whole_log(), server.log()
        certificates.revoke("revoked.pem")
        assert client.admin.command("rotateCertificates", 1)["ok"] == 1
    assert is_served(over_tls(server, certificates, tlsCertificateKeyFile=good))


def test_the_version_is_1_2_at_least_or_1_3(start, certificates):
    key = certificates.issue("server.pem", "CN=server")

    def version(server, newest):
        context = ssl.create_default_context(cafile=certificates.ca)
        context.maximum_version = newest
        with socket.create_connection(("127.0.0.1", server.port)) as plain:
            try:
                with context.wrap_socket(plain, server_hostname="127.0.0.1") as secured:
                    return secured.version()
            except (ssl.SSLError, OSError):
                return None

    server = start("--tls-mode", "requireTLS", "--tls-certificate-key-file", key)
    assert version(server, ssl.TLSVersion.TLSv1_3) == "TLSv1.3"
    assert version(server, ssl.TLSVersion.TLSv1_2) == "TLSv1.2"
    server = start("--tlsMode", "requireTLS", "--tlsCertificateKeyFile", key, "--tlsDisabledProtocols", "TLS1_0,TLS1_1,TLS1_2")
    assert version(server, ssl.TLSVersion.TLSv1_3) == "TLSv1.3"
    assert version(server, ssl.TLSVersion.TLSv1_2) is None


def test_certificates_are_renewed_without_a_restart(start, certificates):
    key = certificates.issue("server.pem", "CN=before")
    server = start("--tls-mode", "requireTLS", "--tls-certificate-key-file", key)
    with over_tls(server, certificates) as client:
        assert shown_subject(server, certificates) == "before"
        certificates.issue("server.pem", "CN=after")
        assert client.admin.command("rotateCertificates", message="a new one")["ok"] == 1
        assert shown_subject(server, certificates) == "after"
        # A fault leaves the former certificate in use.
        good = open(key, "rb").read()
        open(key, "wb").write(b"nothing")
        with pytest.raises(OperationFailure) as refused:
            client.admin.command("rotateCertificates")
        assert refused.value.code == 140 and key in str(refused.value)
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: server.whole_log().count("the former certificates stay in use") >= 2)
        assert shown_subject(server, certificates) == "after"
        open(key, "wb").write(good)
        certificates.issue("server.pem", "CN=at last")
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: shown_subject(server, certificates) == "at last")
        assert client.admin.command("ping")["ok"] == 1


def refusal(tmp_path, *arguments, code=1):
    ended = subprocess.run([PANDO, "serve", "--engine", "memory", "--data", str(tmp_path / "store"), "--listen", "127.0.0.1:0", *arguments],
                           capture_output=True, text=True, timeout=30)
    assert ended.returncode == code, ended.stderr
    return ended.stderr


def test_a_start_with_a_faulty_file_says_which_and_what_to_do(tmp_path, certificates):
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    good = open(certificates.issue("good.pem", "CN=server"), "rb").read()
    certificate = good[: good.index(b"-----BEGIN PRIVATE KEY")]
    other = ec.generate_private_key(ec.SECP256R1())
    cases = [
        (None, "cannot read"),
        (b"", "has no certificate"),
        (certificate, "has no private key"),
        (certificate + certificates.key_pem(other), "does not belong to the first certificate"),
        (certificate + certificates.key_pem(other, serialization.BestAvailableEncryption(b"secret")), "is encrypted"),
    ]
    for number, (content, part) in enumerate(cases):
        path = tmp_path / f"{number}.pem"
        if content is not None:
            path.write_bytes(content)
        # A file that is not there may be on a disk that is mounted later.
        code = 1 if content is None else 2
        said = refusal(tmp_path, "--tls-mode", "requireTLS", "--tls-certificate-key-file", str(path), code=code)
        assert part in said and str(path) in said, said
    assert "--tls-certificate-key-file" in refusal(tmp_path, "--tls-mode", "allowTLS", code=2)
    for option in ("--tls-certificate-key-file", "--tls-ca-file"):
        assert f"{option} has no effect with --tls-mode disabled" in refusal(tmp_path, option, "server.pem", code=2)


def test_a_private_key_that_every_user_can_read_is_a_warning(start, certificates):
    for mode, is_told in ((0o600, False), (0o640, False), (0o644, True)):
        key = certificates.issue("server.pem", "CN=server")
        os.chmod(key, mode)
        server = start("--tls-mode", "requireTLS", "--tls-certificate-key-file", key)
        assert ("lets every user read the private key" in server.log()) == is_told, server.log()
        assert server.stop() == 0


def test_an_ended_certificate_is_a_warning(start, certificates):
    ended = certificates.issue("ended.pem", "CN=ended", days=-2)
    server = start("--tls-mode", "requireTLS", "--tls-certificate-key-file", ended)
    assert "has ended" in server.whole_log()
    assert is_served(over_tls(server, certificates, tlsInsecure=True))
    soon = start("--tls-mode", "requireTLS", "--tls-certificate-key-file", certificates.issue("soon.pem", "CN=soon", days=5))
    assert "ends within 5 days" in soon.whole_log()


def test_a_client_with_tls_at_a_plain_port_is_told_so(start, certificates):
    server = start()
    assert not is_served(over_tls(server, certificates, serverSelectionTimeoutMS=300))
    assert "TLS is off" in server.whole_log()


def resident_bytes(server):
    with open(f"/proc/{server.process.pid}/status") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def test_a_thousand_half_open_handshakes_are_ended_and_others_are_served(start, certificates):
    server = start("--tls-mode", "requireTLS", "--tls-certificate-key-file", certificates.issue("server.pem", "CN=server"),
                   "--handshake-timeout", "3s", "--core-dumps", "on")
    with over_tls(server, certificates) as client:
        client.admin.command("ping")
        before = resident_bytes(server)
        begun = bytes([0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3]) + bytes(200)
        attackers = []
        for number in range(1000):
            attacker = socket.create_connection(("127.0.0.1", server.port))
            if number % 2:
                attacker.sendall(begun)
            attackers.append(attacker)
        for _ in range(20):
            asked = time.monotonic()
            assert client.test.things.insert_one({}).acknowledged
            assert time.monotonic() - asked < 10
        assert resident_bytes(server) - before < 64 << 20
        for attacker in attackers:
            attacker.settimeout(20)
            try:
                # What comes is the farewell of TLS.
                while attacker.recv(100):
                    pass
            except ConnectionResetError:
                pass
            attacker.close()
        assert client.admin.command("serverStatus")["connections"]["current"] < 10
