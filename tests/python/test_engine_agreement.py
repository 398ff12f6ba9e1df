"""Every engine of the build, under every layout: the same operations, the same answers, the same documents, copies included.

`make test-engines` builds a server with all engines; a plain build compares betree with memory.
"""

import contextlib
import itertools
import os
import subprocess

import pytest

from engine_agreement import LAYOUTS, Agreement, Store
from server import PANDO, Server
from test_engines import ENGINES, options_of_engine

SEED = int(os.environ.get("AGREEMENT_SEED", "1"))
OPERATIONS = int(os.environ.get("AGREEMENT_OPERATIONS", "160"))
# TiKV is a cluster: `make test-tikv` has one.
LOCAL = [engine for engine in ENGINES if engine != "tikv"]


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A server of each engine, and a store for each layout on it."""
    folder = tmp_path_factory.mktemp("agreement")
    with contextlib.ExitStack() as clients:
        servers = [(engine, Server(folder / engine, engine=engine).start()) for engine in [*LOCAL, "memory"]]
        made = []
        for engine, server in servers:
            client = clients.enter_context(server.client())
            made += [Store(f"{engine} {layout}", client, layout) for layout in LAYOUTS]
        yield made
    for _, server in servers:
        assert server.stop() == 0, server.log()
        assert "panic" not in server.log()


@pytest.mark.parametrize("seed", range(SEED, SEED + 4))
def test_all_engines_and_layouts_answer_alike(stores, seed):
    Agreement(seed, stores).run(OPERATIONS)


def digests(folder, engine):
    """The digests of all databases and the options of all collections in a folder."""
    server = Server(folder, engine=engine).start()
    with server.client() as client:
        names = sorted(name for name in client.list_database_names() if name.startswith("agreement"))
        found = {name: client[name].command("dbHash")["collections"] for name in names}
        options = {name: [dict(one["options"]) for one in client[name].list_collections()] for name in names}
        indexes = {name: client[name].c.index_information() for name in names}
        for name in names:
            assert client[name].command("validate", "c", full=True)["valid"]
    assert server.stop() == 0, server.log()
    return found, options, indexes


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A folder of each engine with the same documents under each layout, and what is in it."""
    folder = tmp_path_factory.mktemp("filled")
    for engine in LOCAL:
        server = Server(folder / engine, engine=engine).start()
        with server.client() as client:
            Agreement(SEED, [Store(f"{engine} {layout}", client, layout) for layout in LAYOUTS]).run(OPERATIONS)
        assert server.stop() == 0, server.log()
    found = {engine: digests(folder / engine, engine) for engine in LOCAL}
    assert all(one == found[LOCAL[0]] for one in found.values()), found
    return folder, found


@pytest.mark.parametrize("here, there", list(itertools.permutations(LOCAL, 2)) if len(LOCAL) > 1 else [(LOCAL[0], LOCAL[0])])
def test_a_copy_between_two_engines_has_the_same_digests(filled, tmp_path, here, there):
    folder, found = filled
    to = tmp_path / "there"
    done = subprocess.run(
        [PANDO, "copy", "--from", str(folder / here), "--to", str(to), "--engine", there, *options_of_engine(there, to)],
        capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert digests(to, there) == found[here]
