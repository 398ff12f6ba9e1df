"""One server for all tests of a run, a fresh database for each test.

ENGINES names the engines. `tikv-pair` is the engine `tikv` with two servers of one store, of which a client uses either.
"""

import os
import uuid

import pytest

from server import Server
from server_pair import ServerPair


# What an engine lacks: `docs/engines.md` says so to users, and test_engines.py that it is refused.
# `one server`: parameters, figures, transactions of connections and the like are those of one server, and its own tests in tests/tikv have two.
# `unshared collections`: several servers of a store refuse capped and partitioned collections, and the layout "heap".
LACKS = {
    "lmdb": {"past snapshots", "serializable transactions"},
    "tikv-pair": {"serializable transactions", "one server", "unshared collections"},
}


# Files of few tests that take long, most of it waiting. They come first, lest a run end with waiting for one of them.
SLOW = (
    "test_logins.py", "test_x509.py", "test_partial_indexes.py", "test_operations.py", "test_partitions.py", "test_persona.py",
    "test_kill.py", "test_layouts.py", "test_samples.py", "test_login_storm.py",
)


def pytest_configure(config):
    config.addinivalue_line("markers", "needs(ability): the test is of an ability that some engines lack")


def pytest_collection_modifyitems(config, items):
    def is_lacking(item):
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        needs = {mark.args[0] for mark in item.iter_markers("needs")}
        if any(value in ("heap", {"layout": "heap"}) for name, value in parameters.items() if name != "server"):
            needs.add("unshared collections")
        engine = parameters.get("server", parameters.get("engine"))
        return bool(needs & LACKS.get(engine, set()))

    lacking = [item for item in items if is_lacking(item)]
    items[:] = [item for item in items if item not in lacking]
    items.sort(key=lambda item: SLOW.index(item.path.name) if item.path.name in SLOW else len(SLOW))
    config.hook.pytest_deselected(items=lacking)


# Large batches go in several transactions there, as they do over a cluster.
OPTIONS = {"memory": ["--engine-option", "largeTransaction=16KB"]}


@pytest.fixture(scope="session", params=os.environ.get("ENGINES", "betree,memory").split(","))
def server(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("store") / "data"
    options = OPTIONS.get(request.param, [])
    server = ServerPair(folder).start() if request.param == "tikv-pair" else Server(folder, *options, engine=request.param).start()
    yield server
    assert server.is_running(), server.log()
    assert server.stop() == 0, server.log()
    assert "panic" not in server.log()


@pytest.fixture(scope="session")
def client(server):
    with server.client() as client:
        yield client


@pytest.fixture
def db(client):
    name = f"test_{uuid.uuid4().hex[:12]}"
    yield client[name]
    client.drop_database(name)
