"""`pando copy` into a TiKV cluster and out of it, by the address of the store.

`make test-tikv` starts the cluster and runs these tests. PANDO_TIKV_PD names its placement driver.
"""

import os
import pathlib
import subprocess
import sys
import uuid

import bson
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))
from server import PANDO, Server  # noqa: E402

DRIVER = os.environ["PANDO_TIKV_PD"]


def copy(source, target, *more):
    command = [PANDO, "copy", "--from", source, "--to", target, *more]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)


@pytest.fixture
def keyspace():
    return f"tikv://{DRIVER}/{uuid.uuid4().hex[:16]}"


@pytest.fixture
def folder(tmp_path):
    """A store of the default engine."""
    server = Server(tmp_path / "folder").start()
    with server.client() as client:
        client.shop.orders.insert_many({"_id": at, "total": at / 4, "lines": [{"n": at % 3}]} for at in range(2000))
        client.shop.orders.create_index("total", unique=True)
        client.shop.create_collection("empty")
        client.atlas.cities.insert_one({"_id": "Vila", "area": bson.Int64(1)})
    assert server.stop() == 0
    return tmp_path / "folder"


def content(folder):
    server = Server(folder).start()
    try:
        with server.client() as client:
            return {
                (database, name): ([bson.encode(one) for one in client[database][name].find().sort("_id", 1)],
                                   client[database][name].index_information())
                for database in ("shop", "atlas")
                for name in client[database].list_collection_names()
            }
    finally:
        assert server.stop() == 0


def test_a_store_goes_into_a_cluster_and_comes_out_of_it_as_it_was(folder, keyspace, tmp_path):
    into = copy(folder, keyspace)
    assert into.returncode == 0 and "counted and hashed on both sides" in into.stdout, into.stdout + into.stderr
    again = copy(folder, keyspace)
    assert again.returncode == 1 and "shop.orders" in again.stderr, again.stdout + again.stderr
    out = copy(keyspace, tmp_path / "out")
    assert out.returncode == 0 and "counted and hashed on both sides" in out.stdout, out.stdout + out.stderr
    assert content(tmp_path / "out") == content(folder)


def test_a_store_that_several_servers_have_open_is_copied_as_one_more_of_them(keyspace, tmp_path):
    server = Server(tmp_path / "one", "--engine-option", "servers=several", engine="tikv")
    server.arguments[server.arguments.index("--keyspace") + 1] = keyspace.rpartition("/")[2]
    server.start()
    with server.client() as client:
        client.shop.orders.insert_many({"_id": at} for at in range(100))
        alone = copy(keyspace, tmp_path / "refused")
        assert alone.returncode == 1 and "servers" in alone.stderr, alone.stdout + alone.stderr
        assert not (tmp_path / "refused").exists(), "nothing is made"
        out = copy(f"{keyspace}?servers=several", tmp_path / "out")
        assert out.returncode == 0 and "100 documents" in out.stdout, out.stdout + out.stderr
        client.shop.orders.insert_one({"_id": "later"})
    assert server.stop() == 0


def test_a_keyspace_without_a_store_and_a_faulty_address_are_refused(keyspace, folder, tmp_path):
    empty = copy(keyspace, tmp_path / "out")
    assert empty.returncode == 1 and "no collections to copy" in empty.stderr, empty.stderr
    assert not (tmp_path / "out").exists(), "nothing is made"
    same = copy(f"{keyspace}?servers=several", keyspace)
    assert same.returncode == 1 and "same" in same.stderr, same.stderr
    for address, fault in (
        (f"tikv://{DRIVER}", "no keyspace"),
        (f"{keyspace}?pd=127.0.0.1:1", "twice"),
    ):
        refused = copy(folder, address)
        assert refused.returncode == 2 and fault in refused.stderr and "HOST:PORT/KEYSPACE" in refused.stderr, refused.stderr
    other = copy(folder, keyspace, "--engine", "betree")
    assert other.returncode == 2 and "engine tikv" in other.stderr, other.stderr
    unreachable = copy(folder, "tikv://127.0.0.1:1/shop?patience=1s")
    assert unreachable.returncode == 1 and "127.0.0.1:1" in unreachable.stderr, unreachable.stderr
