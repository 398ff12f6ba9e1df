"""Random operations over every engine of the build and every layout, with MongoDB as one more store: all answer alike."""

import contextlib
import os

import pytest

from engine_agreement import LAYOUTS, Agreement, Store
from server import Server
from test_engine_agreement import LOCAL

SEED = int(os.environ.get("PANDO_ACCEPTANCE_SEED", "1"))
OPERATIONS = int(os.environ.get("AGREEMENT_OPERATIONS", "160"))


@pytest.fixture(scope="module")
def stores(oracle_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("engines")
    with contextlib.ExitStack() as clients:
        made = [Store("MongoDB", clients.enter_context(oracle_server.client()), None)]
        servers = [(engine, Server(folder / engine, "--persona", "standalone", engine=engine).start()) for engine in [*LOCAL, "memory"]]
        for engine, server in servers:
            client = clients.enter_context(server.client())
            made += [Store(f"{engine} {layout}", client, layout) for layout in LAYOUTS]
        yield made
    for _, server in servers:
        assert server.stop() == 0, server.log()
        assert "panic" not in server.log()


@pytest.mark.parametrize("seed", range(SEED, SEED + 3))
def test_all_engines_and_layouts_answer_as_mongodb(stores, seed):
    # The oracle stands alone, and has no transactions then.
    Agreement(f"oracle {seed}", stores, transactions=False).run(OPERATIONS)
