"""A server over a TiKV cluster whose nodes and servers die: every acknowledged write is there, and indexes agree.

`make test-tikv` starts the cluster and runs these tests. PANDO_TIKV_PD names its placement driver, PROGRAMS and FOLDER are those of
cluster.sh.
"""

import os
import pathlib
import subprocess
import sys
import threading
import time
import uuid

import pytest
from pymongo.errors import OperationFailure, PyMongoError

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))
from server import PANDO, Server  # noqa: E402

CLUSTER = pathlib.Path(__file__).parent / "cluster.sh"
ACCOUNTS, BALANCE = 50, 100


def cluster(*words):
    subprocess.run(["bash", CLUSTER, *map(str, words)], check=True, timeout=120)


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path / "data", engine="tikv").start()
    yield server
    if server.is_running():
        assert server.terminate() == 0, server.log()
    assert "panic" not in server.whole_log()


def split_at_documents(folder_name):
    """Begins regions within the entries of the first trees of a store."""
    keys = [b"pando/" + folder_name.encode() + b"\0t" + tree.to_bytes(4, "big") for tree in range(1, 9)]
    cluster("split", *(key.hex() for key in keys))


def keyspace_of(server):
    return server.arguments[server.arguments.index("--keyspace") + 1]


def check_bank(client):
    """The sum of all accounts, at one snapshot and by each way to them."""
    with client.start_session(snapshot=True) as session:
        rows = list(client.bank.accounts.find(session=session))
    assert len(rows) == ACCOUNTS
    assert sum(row["balance"] for row in rows) == ACCOUNTS * BALANCE
    by_index = list(client.bank.accounts.find({"balance": {"$gte": -10**9}}).hint("balance_1"))
    assert sum(row["balance"] for row in by_index) == ACCOUNTS * BALANCE


class Transfers:
    """Clients that move money between accounts until they are told to stop."""

    def __init__(self, server, clients=4):
        self.ends = threading.Event()
        self.moved = 0
        self.longest = 0.0
        self.threads = [threading.Thread(target=self.run, args=(server, number)) for number in range(clients)]

    def run(self, server, number):
        last = time.monotonic()
        with server.client(timeoutMS=20_000) as client:
            step = number
            while not self.ends.is_set():
                step = (step * 1_103_515_245 + 12_345) % 2**31
                source, target = step % ACCOUNTS, (step // ACCOUNTS) % ACCOUNTS
                try:
                    with client.start_session() as session, session.start_transaction():
                        accounts = client.bank.accounts
                        accounts.update_one({"_id": source}, {"$inc": {"balance": -1}}, session=session)
                        accounts.update_one({"_id": target}, {"$inc": {"balance": 1}}, session=session)
                    self.moved += 1
                    now = time.monotonic()
                    self.longest, last = max(self.longest, now - last), now
                except PyMongoError:
                    continue

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        for thread in self.threads:
            thread.join()


def open_bank(client):
    client.bank.accounts.create_index("balance")
    client.bank.accounts.insert_many([{"_id": number, "balance": BALANCE} for number in range(ACCOUNTS)])


def test_money_is_kept_while_a_node_dies_and_comes_back(server):
    with server.client() as client:
        open_bank(client)
        split_at_documents(keyspace_of(server))
        with Transfers(server) as transfers:
            time.sleep(3)
            check_bank(client)
            cluster("kill", 2)
            time.sleep(6)
            before = transfers.moved
            cluster("restart", 2)
            time.sleep(6)
            assert transfers.moved > before, "transfers go on"
        check_bank(client)
        print(f"{transfers.moved} transfers, the longest pause {transfers.longest:.1f} s")


def test_writes_stop_without_a_quorum_and_go_on_with_one(server):
    with server.client(timeoutMS=60_000) as client:
        open_bank(client)
        with Transfers(server) as transfers:
            time.sleep(2)
            cluster("kill", 1)
            cluster("kill", 3)
            time.sleep(5)
            cluster("restart", 1)
            cluster("restart", 3)
            time.sleep(15)
            before = transfers.moved
            time.sleep(5)
            assert transfers.moved > before, "transfers go on"
        check_bank(client)


def test_a_paused_node_delays_and_loses_nothing(server):
    with server.client(timeoutMS=60_000) as client:
        open_bank(client)
        with Transfers(server) as transfers:
            time.sleep(2)
            cluster("pause", 3)
            time.sleep(4)
            cluster("resume", 3)
            time.sleep(4)
        assert transfers.moved > 0
        check_bank(client)


def test_a_read_that_waits_for_the_cluster_ends_with_its_time_and_when_it_is_killed(server):
    with server.client(retryReads=False) as client:
        client.test.c.insert_one({"_id": 1})
        for node in (1, 2, 3):
            cluster("pause", node)
        try:
            began = time.monotonic()
            with pytest.raises(OperationFailure) as late:
                client.test.c.find_one({"_id": 1}, max_time_ms=500)
            assert late.value.code == 50 and time.monotonic() - began < 3, late.value
            killed = []

            def read():
                try:
                    client.test.c.find_one({"_id": 1}, comment="it waits")
                except OperationFailure as error:
                    killed.append(error.code)

            thread = threading.Thread(target=read)
            thread.start()
            waiting = []
            while not waiting:
                assert time.monotonic() - began < 6
                operations = client.admin.command("currentOp")["inprog"]
                waiting = [row["opid"] for row in operations if row.get("command", {}).get("comment") == "it waits"]
            client.admin.command("killOp", op=waiting[0])
            thread.join(timeout=2)
            assert killed == [11601]
        finally:
            for node in (1, 2, 3):
                cluster("resume", node)
        assert client.test.c.find_one() == {"_id": 1}


def test_acknowledged_documents_survive_a_killed_server(tmp_path):
    server = Server(tmp_path / "data", engine="tikv").start()
    with server.client() as client:
        client.test.c.create_index("n")
    told = 0
    for _ in range(3):
        lost = threading.Event()

        def insert(first):
            nonlocal told
            with server.client(retryWrites=False, timeoutMS=5_000) as client:
                number = first
                try:
                    while not lost.is_set():
                        client.test.c.insert_one({"_id": number, "n": -number})
                        told = number + 1
                        number += 1
                except PyMongoError:
                    lost.set()

        thread = threading.Thread(target=insert, args=(told + 1,))
        thread.start()
        time.sleep(2)
        server.kill()
        thread.join()
        server.start()
        with server.client() as client:
            ids = {row["_id"] for row in client.test.c.find()}
            by_index = {row["_id"] for row in client.test.c.find({"n": {"$lte": 0}}).hint("n_1")}
            assert told - 1 in ids and ids == by_index
            assert client.test.c.count_documents({}) == len(ids) == client.test.c.estimated_document_count()
    assert server.stop() == 0, server.log()


def test_a_store_is_open_in_one_server(server, tmp_path):
    other = Server(tmp_path / "other", engine="tikv")
    other.arguments[other.arguments.index("--keyspace") + 1] = keyspace_of(server)
    with pytest.raises(RuntimeError, match="open in another server"):
        other.start()
    with server.client() as client:
        client.test.c.insert_one({"_id": 1})
    other.arguments[other.arguments.index("--keyspace") + 1] = uuid.uuid4().hex[:16]
    with pytest.raises(RuntimeError, match="belongs to the keyspace"):
        other.start()
    beside = Server(tmp_path / "beside", engine="tikv").start()
    with beside.client() as client:
        assert client.test.list_collection_names() == []
    assert beside.stop() == 0, beside.log()


def test_wrong_addresses_and_options_are_told(tmp_path):
    def refusal(*flags):
        command = [PANDO, "serve", "--data", tmp_path / "data", "--listen", "127.0.0.1:0", "--engine", "tikv", *flags]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert ended.returncode != 0
        return ended.stderr

    assert "placement drivers of TiKV at 127.0.0.1:1" in refusal("--pd", "127.0.0.1:1", "--engine-option", "patience=2s")
    assert "cannot be" in refusal("--pd", "nowhere")
    assert "cannot be" in refusal("--pd", os.environ["PANDO_TIKV_PD"], "--keyspace", "a/b")
    assert "all three" in refusal("--pd", os.environ["PANDO_TIKV_PD"], "--engine-option", "ca=ca.pem")


def test_a_large_document_comes_back_whole(server):
    with server.client() as client:
        documents = [{"_id": size, "text": "x" * size} for size in (60_000, 70_000, 5_000_000, 15_900_000)]
        for document in documents:
            client.test.c.insert_one(document)
        assert list(client.test.c.find().sort("_id")) == documents
        client.test.c.update_one({"_id": 5_000_000}, {"$set": {"more": 1}})
        assert client.test.c.find_one({"_id": 5_000_000})["more"] == 1
