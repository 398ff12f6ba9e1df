"""One server of each engine for all tests of this folder that need one.

HISTORIES_PEER=oracle takes a real MongoDB, to check the tests themselves.
"""

import os
import pathlib
import sys

import pytest

FOLDER = pathlib.Path(__file__).parent
for folder in (FOLDER.parent / "acceptance", FOLDER.parent / "python", FOLDER):
    sys.path.insert(0, str(folder))

from servers import MongoDB, Pando, client_of, require_transactions  # noqa: E402

PEER = MongoDB if os.environ.get("HISTORIES_PEER") == "oracle" else Pando


ENGINES = os.environ.get("ENGINES", "betree,memory").split(",")


@pytest.fixture(scope="session", params=ENGINES if PEER is Pando else ["oracle"])
def server(request):
    server = (PEER(request.param) if PEER is Pando else PEER()).start()
    try:
        with client_of(server.port) as client:
            require_transactions(client)
        yield server
    finally:
        faults = server.stop()
    assert faults == []
