"""The program's own client over TLS: import, export and copy, with certificates that are right and wrong."""

import json
import subprocess

import pytest

from certificates import Certificates
from server import PANDO, Server


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def server(certificates, tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("store") / "data", "--tls-mode", "requireTLS", "--tls-certificate-key-file",
                    certificates.issue("server.pem", "CN=server"), "--tls-ca-file", certificates.ca, engine="memory").start()
    yield server
    assert server.terminate() == 0, server.log()
    assert "panic" not in server.whole_log()


def run(*arguments, given=None):
    return subprocess.run([PANDO, *map(str, arguments)], capture_output=True, text=True, timeout=60, input=given)


def test_documents_go_in_and_out_over_tls(server, certificates, tmp_path):
    own = certificates.issue("tool.pem", "CN=tool")
    uri = f"mongodb://127.0.0.1:{server.port}/?tls=true&tlsCAFile={certificates.ca}&tlsCertificateKeyFile={own}"
    lines = "".join(json.dumps({"_id": number, "text": "x" * 500}) + "\n" for number in range(20_000))
    (tmp_path / "things.jsonl").write_text(lines)
    done = run("import", "--uri", uri, "--db", "shop", "--collection", "things", tmp_path / "things.jsonl")
    assert done.returncode == 0, done.stderr
    host = ["--host", "127.0.0.1", "--port", server.port, "--tls", "--tlsCAFile", certificates.ca, "--tlsCertificateKeyFile", own]
    done = run("export", *host, "--db", "shop", "--collection", "things", "--out", tmp_path / "out.jsonl")
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 20_000
    copied = run("copy", "--from", uri, "--to", tmp_path / "copy")
    assert copied.returncode == 0, copied.stderr


def test_a_server_or_client_that_is_not_trusted_is_told(server, certificates, tmp_path):
    own = certificates.issue("tool.pem", "CN=tool")
    stranger = Certificates(tmp_path / "stranger", "CN=stranger")
    base = ["export", "--db", "shop", "--collection", "things", "--uri", f"mongodb://localhost:{server.port}"]
    for arguments, part in [
        (["--tls", "--tlsCAFile", stranger.ca, "--tlsCertificateKeyFile", own], "tlsCAFile"),
        (["--tls", "--tlsCAFile", tmp_path / "missing.pem"], "missing.pem"),
        ([], "closed the connection"),
        (["--username", "ada", "--password", "secret"], "--password-file"),
    ]:
        refused = run(*base, *arguments)
        assert refused.returncode != 0 and part in refused.stderr, refused.stderr
    trusting = run(*base, "--tls", "--tlsInsecure", "--tlsCertificateKeyFile", own)
    assert trusting.returncode == 0, trusting.stderr
