"""The cost of access control and of TLS: point queries of the same server with and without them, in turns. And the tail of a
client that has logged in while strangers storm the logins. The cost of encryption at rest: inserts and cold reads.
"""

import secrets
import subprocess
import sys
import time

from rows import ROUNDS, SECONDS, SYSBENCH, add_run
from servers import Pando, bench, client_of

import raw

sys.path.insert(0, str(raw.ROOT / "tests" / "python"))
from certificates import Certificates  # noqa: E402

CACHE_MB = 2000
PASSWORD = "measured"
# The program that storms: the number of connections of each kind.
ATTACKER = raw.ROOT / "tests" / "python" / "login_attacker.py"
ATTACKERS = 200


class Guarded(Pando):
    """With access control, and a client that has logged in."""

    def command(self):
        return [*super().command(), "--auth"]

    def start(self):
        super().start()
        with client_of(self.port) as client:
            client.admin.command("createUser", "ada", pwd=PASSWORD, roles=["root"])
        self.uri = f"mongodb://ada:{PASSWORD}@127.0.0.1:{self.port}/?authSource=admin"
        return self


class Encrypted(Pando):
    """Without access control, and a client that speaks TLS."""

    def __init__(self, name, cache_mb):
        super().__init__(name, cache_mb)
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.certificates = Certificates(self.folder.parent / f"{name}-certificates")

    def command(self):
        key = self.certificates.issue("server.pem", "CN=server")
        return [*super().command(), "--tls-mode", "preferTLS", "--tls-certificate-key-file", key]

    def start(self):
        super().start()
        self.uri = f"mongodb://127.0.0.1:{self.port}/?tls=true&tlsCAFile={self.certificates.ca}"
        return self


KINDS = [("open", Pando), ("auth", Guarded), ("tls", Encrypted)]


def security(record):
    """Point queries by 1 and 32 clients: without a login, with one, and over TLS."""
    for turn in range(ROUNDS):
        started = {}
        try:
            for name, kind in KINDS:
                started[name] = kind(f"security-{name}", CACHE_MB).start()
                bench("load", "--uri", started[name].uri, *SYSBENCH)
            # Each number of clients asks all servers in a row, so that they meet the same machine.
            for clients in (1, 32):
                for name in list(started)[:: -1 if turn % 2 else 1]:
                    point = ("point", "--uri", started[name].uri, *SYSBENCH, "--clients", clients, "--duration", SECONDS)
                    (run,) = bench(*point, "--load", "no", "--no-ceiling")
                    add_run(record, f"{name}.c{clients}", run)
            storm(record, started["auth"])
        finally:
            for server in started.values():
                server.end()
                server.remove()


def storm(record, server):
    """Point queries by one client, without and with a storm of logins, half-open handshakes and drips."""
    point = ("point", "--uri", server.uri, *SYSBENCH, "--clients", 1, "--duration", SECONDS, "--load", "no", "--no-ceiling")
    add_run(record, "storm.quiet", bench(*point)[0])
    attacker = subprocess.Popen([sys.executable, str(ATTACKER), str(server.port), str(ATTACKERS)], stdout=subprocess.PIPE)
    try:
        assert attacker.stdout.readline() == b"attacking\n"
        time.sleep(1)
        add_run(record, "storm.stormy", bench(*point)[0])
    finally:
        attacker.kill()
        attacker.wait()


class EncryptedAtRest(Pando):
    """With a key of its own: blocks, log and spilled files are encrypted."""

    def command(self):
        key = self.folder.with_suffix(".key")
        if not key.exists():
            key.touch(mode=0o600)
            key.write_text(secrets.token_hex(32))
        return [*super().command(), "--encryption-key-file", str(key)]


AT_REST = [("plain", Pando), ("encrypted", EncryptedAtRest)]
# 2 million documents, some ten times the cache of the cold reads.
COLD = ("--collections", 8, "--docs", 250_000)
COLD_CACHE_MB = 40


def encryption(record):
    """Inserts with three indexes, and point queries far beyond the cache: of a plain and of an encrypted store."""
    for turn in range(ROUNDS):
        for name, kind in AT_REST[:: -1 if turn % 2 else 1]:
            server = kind(f"inserts-{name}", 1000).start()
            inserts = ("iibench", "--uri", server.uri, "--docs", 1_000_000, "--clients", 4, "--settle", 0, "--no-ceiling")
            add_run(record, f"{name}.inserts", bench(*inserts)[0])
            server.end()
            server.remove()
    stores = {name: kind(f"cold-{name}", COLD_CACHE_MB).start() for name, kind in AT_REST}
    for server in stores.values():
        bench("load", "--uri", server.uri, *COLD)
        server.end()
    for turn in range(ROUNDS):
        for name in list(stores)[:: -1 if turn % 2 else 1]:
            server = stores[name].start()
            point = ("point", "--uri", server.uri, *COLD, "--clients", 64, "--duration", SECONDS, "--warmup", 5)
            add_run(record, f"{name}.cold", bench(*point, "--load", "no", "--no-ceiling")[0])
            server.end()
    for server in stores.values():
        server.remove()


MEASURES = {"security": security, "encryption": encryption}
