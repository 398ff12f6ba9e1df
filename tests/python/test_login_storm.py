"""A storm of logins: hundreds of wrong ones, half-open handshakes and drips. A client that has logged in is served as before."""

import pathlib
import subprocess
import sys
import time

import pytest

from certificates import Certificates
from raw_connection import Raw
from scram_client import log_in, stored_user
from server import Server
from test_tls import resident_bytes

ATTACKER = pathlib.Path(__file__).with_name("login_attacker.py")
CONNECTIONS = 200
QUERIES = 1500


@pytest.fixture
def guarded(tmp_path):
    folder = tmp_path / "data"
    server = Server(folder).start()
    with server.client() as client:
        client.admin["system.users"].insert_one(stored_user("ada", "admin", "secret", ["root"], ["SCRAM-SHA-256"]))
        client.shop.c.insert_many({"_id": number} for number in range(100))
    assert server.stop() == 0
    certificate = Certificates(tmp_path / "certificates").issue("server.pem", "CN=server")
    server = Server(folder, "--auth", "--tls-mode", "preferTLS", "--tls-certificate-key-file", certificate, "--core-dumps", "on").start()
    yield server
    assert server.terminate() == 0
    assert "panic" not in server.whole_log()


def test_a_client_that_has_logged_in_is_served_through_a_storm_of_logins(guarded):
    """How long it waits is measured elsewhere: `make measure MEASURES=security`."""
    with Raw(guarded.port) as raw:
        assert log_in(raw, "admin", "ada", "secret")["ok"] == 1
        before = resident_bytes(guarded)
        attacker = subprocess.Popen([sys.executable, ATTACKER, str(guarded.port), str(CONNECTIONS)], stdout=subprocess.PIPE)
        try:
            assert attacker.stdout.readline() == b"attacking\n"
            time.sleep(1)
            for number in range(QUERIES):
                assert raw.command("shop", {"find": "c", "filter": {"_id": number % 100}})["cursor"]["firstBatch"] == [{"_id": number % 100}]
            assert resident_bytes(guarded) - before < 64 << 20
        finally:
            attacker.kill()
            attacker.wait()
        figures = raw.command("admin", {"serverStatus": 1})["security"]["authentication"]["mechanisms"]["SCRAM-SHA-256"]["authenticate"]
        assert figures["received"] > CONNECTIONS and figures["successful"] == 1
