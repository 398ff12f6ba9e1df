"""Two servers for all tests of a run, MongoDB and Pando, and a fresh database on both for each test.

ACCEPTANCE_PEER=oracle puts a second MongoDB in Pando's place, to check the tests themselves: two MongoDBs must agree.
ACCEPTANCE_STORES=lmdb:heap,betree:clustered has each test run with each of these engines and layouts in turn.
"""

import os
import pathlib
import sys
import uuid

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))

from both import Both
from oracle import Oracle
from server import Server


@pytest.fixture(scope="session")
def oracle_server():
    oracle = Oracle().start()
    yield oracle
    oracle.stop()


@pytest.fixture(scope="session", params=os.environ.get("ACCEPTANCE_STORES", "betree:clustered").split(","))
def pando_server(request, tmp_path_factory):
    if os.environ.get("ACCEPTANCE_PEER") == "oracle":
        oracle = Oracle().start()
        yield oracle
        return oracle.stop()
    engine, layout = request.param.split(":")
    flags = ["--persona", "standalone", "--default-layout", layout]
    server = Server(tmp_path_factory.mktemp("store") / "data", *flags, engine=engine).start()
    yield server
    assert server.is_running(), server.log()
    assert server.stop() == 0, server.log()
    assert "panic" not in server.log()


@pytest.fixture(scope="session")
def servers(oracle_server, pando_server):
    with oracle_server.client() as oracle, pando_server.client() as pando:
        yield Both(oracle, pando, "acceptance")


@pytest.fixture
def both(servers):
    both = servers.on(f"test_{uuid.uuid4().hex[:8]}")
    yield both
    for client in (both.oracle, both.pando):
        client.drop_database(both.name)
