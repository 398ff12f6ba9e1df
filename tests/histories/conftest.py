"""Servers for the tests of this folder that need one: each engine for scenarios, the default one for workloads.

HISTORIES_PEER=oracle takes a real MongoDB, to check the tests themselves.
"""

import contextlib
import os
import pathlib
import sys

import pytest

FOLDER = pathlib.Path(__file__).parent
for folder in (FOLDER.parent / "acceptance", FOLDER.parent / "python", FOLDER):
    sys.path.insert(0, str(folder))

from servers import MongoDB, Pando, client_of, require_transactions  # noqa: E402

PEER = MongoDB if os.environ.get("HISTORIES_PEER") == "oracle" else Pando
ENGINES = os.environ.get("ENGINES", "betree,memory").split(",") if PEER is Pando else ["oracle"]


@contextlib.contextmanager
def running(engine):
    server = (Pando(engine) if PEER is Pando else MongoDB()).start()
    try:
        with client_of(server.port) as client:
            require_transactions(client)
        yield server
    finally:
        faults = server.stop()
    assert faults == []


@pytest.fixture(scope="module")
def server():
    with running(ENGINES[0]) as server:
        yield server


@pytest.fixture(scope="module", params=ENGINES)
def server_of_each_engine(request):
    with running(request.param) as server:
        yield server
