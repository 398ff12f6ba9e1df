"""Logins of the Go and the Java driver over TLS: by both SCRAMs and by certificate. The programs are those of test_clients.py."""

import os
import pathlib
import subprocess
import sys
from urllib.parse import quote_plus

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))
from certificates import Certificates  # noqa: E402
from scram_client import stored_user  # noqa: E402
from server import Server  # noqa: E402

APP = "CN=app,O=org"
PASSWORD = "sécret"
# The mechanisms, with the user of each.
LOGINS = {"SCRAM-SHA-1": "ada", "SCRAM-SHA-256": "ada", "MONGODB-X509": APP, "": "ada"}
STORE_PASSWORD = b"changeit"


class Guarded:
    """A server with access control and TLS, and the files of its clients."""

    def __init__(self, folder):
        self.certificates = Certificates(folder / "certificates")
        self.app = self.certificates.issue("app.pem", "O=org,CN=app")
        data = folder / "data"
        server = Server(data).start()
        with server.client() as client:
            external = {"_id": f"$external.{APP}", "user": APP, "db": "$external", "credentials": {"external": True},
                        "roles": [{"role": "root", "db": "admin"}]}
            client.admin["system.users"].insert_many([stored_user("ada", "admin", PASSWORD, ["root"]), external])
        assert server.stop() == 0
        self.server = Server(data, "--auth", "--tls-mode", "requireTLS", "--tls-certificate-key-file",
                             self.certificates.issue("server.pem", "CN=server"), "--tls-ca-file", self.certificates.ca,
                             "--tls-allow-connections-without-certificates").start()

    def address(self, mechanism, password=PASSWORD, **files):
        options = {"directConnection": "true", "tls": "true", "serverSelectionTimeoutMS": "10000", **files}
        if mechanism:
            options["authMechanism"] = mechanism
        if mechanism == "MONGODB-X509":
            options["authSource"] = "%24external"
            user = ""
        else:
            user = f"ada:{quote_plus(password)}@"
        return f"mongodb://{user}127.0.0.1:{self.server.port}/?" + "&".join(f"{name}={value}" for name, value in options.items())


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    guarded = Guarded(tmp_path_factory.mktemp("guarded"))
    yield guarded
    assert guarded.server.terminate() == 0, guarded.server.log()
    assert "panic" not in guarded.server.whole_log()


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120)


def succeeds(ended):
    assert ended.returncode == 0 and ended.stdout.endswith("done\n"), ended.stdout[-2000:] + ended.stderr[-4000:]


def go(guarded, mechanism, user, password=PASSWORD):
    files = {"tlsCAFile": quote_plus(guarded.certificates.ca)}
    if mechanism == "MONGODB-X509":
        files["tlsCertificateKeyFile"] = quote_plus(guarded.app)
    return run(os.environ["GO_CLIENT"], guarded.address(mechanism, password, **files), user)


def java(guarded, mechanism, user, password=PASSWORD):
    """Java reads certificates from stores of its own."""
    folder, certificates = pathlib.Path(os.environ["JAVA_CLIENT"]), guarded.certificates
    trusted, own = pathlib.Path(certificates.folder, "trusted.p12"), pathlib.Path(certificates.folder, "own.p12")
    encryption = serialization.BestAvailableEncryption(STORE_PASSWORD)
    if not trusted.exists():
        imported = run("keytool", "-importcert", "-noprompt", "-alias", "issuer", "-file", certificates.ca, "-keystore", trusted,
                       "-storetype", "PKCS12", "-storepass", STORE_PASSWORD.decode())
        assert imported.returncode == 0, imported.stdout + imported.stderr
        pem = pathlib.Path(guarded.app).read_bytes()
        key = serialization.load_pem_private_key(pem[pem.index(b"-----BEGIN PRIVATE KEY"):], None)
        own.write_bytes(pkcs12.serialize_key_and_certificates(b"app", key, x509.load_pem_x509_certificate(pem), None, encryption))
    stores = {"trustStore": trusted, "keyStore": own} if mechanism == "MONGODB-X509" else {"trustStore": trusted}
    properties = [f"-Djavax.net.ssl.{name}{what}" for name, path in stores.items()
                  for what in (f"={path}", f"Password={STORE_PASSWORD.decode()}", "Type=PKCS12")]
    return run("java", *properties, "-cp", f"{folder}:{folder}/*", "Program", guarded.address(mechanism, password), user)


@pytest.mark.parametrize("mechanism", LOGINS)
@pytest.mark.parametrize("client", [go, java])
def test_a_user_logs_in(guarded, client, mechanism):
    succeeds(client(guarded, mechanism, LOGINS[mechanism]))


@pytest.mark.parametrize("client", [go, java])
def test_a_wrong_password_is_refused(guarded, client):
    ended = client(guarded, "SCRAM-SHA-256", "ada", password="wrong")
    assert ended.returncode != 0 and "uthenticat" in ended.stdout + ended.stderr
