"""Operations that wait for another one or for the disk end at once when they have to. The table of those that compute is in
`test_operations.py`.

The server has a cache of 64 MB and 1 MiB for queries, so that every blocking stage of the large collection spills.
"""

import random
import socket
import time

import pytest
from pymongo.errors import OperationFailure

from operation_ends import Background, by_closed_socket, by_kill, by_time_limit, every_way, is_over, quickest_end, raw_request, running, wait_for
from server import Server

DOCUMENTS = 120_000
ENDS_WITHIN_S = 0.1
TRIES = 20


def start(folder, *options):
    return Server(folder, "--cache", "64MB", "--query-memory", "1MiB", *options).start()


@pytest.fixture(scope="module")
def spilling(tmp_path_factory):
    server = start(tmp_path_factory.mktemp("interrupted") / "data")
    with server.client(retryReads=False, retryWrites=False) as client:
        db = client.long
        for begin in range(0, DOCUMENTS, 10_000):
            db.a.insert_many([
                {"_id": i, "k": i * 7919 % DOCUMENTS, "few": i % 7, "s": f"{i * 7919 % DOCUMENTS:06}" * 5 + random.randbytes(140).hex(), "tags": [i % 7, 10 + i % 11]}
                for i in range(begin, begin + 10_000)])
        db.a.create_index("tags")
        yield server, client
    assert server.stop() == 0, server.log()
    assert "panic" not in server.log()


def memory(client):
    return client.admin.command("serverStatus")["pando"]["queryMemory"]


def holds_nothing(client):
    figures = memory(client)
    return (figures["heldBytes"], figures["scratchFiles"], figures["scratchBytes"]) == (0, 0, 0)


def aggregate(*stages):
    return {"aggregate": "a", "pipeline": list(stages), "cursor": {}}


# A stage behind that draws all documents of the stage before and gives one.
LAST = {"$group": {"_id": None, "last": {"$last": "$k"}}}

# A group with a mean does not take the sort in.
LAST_AND_MEAN = {"$group": {"_id": None, "last": {"$last": "$_id"}, "mean": {"$avg": "$few"}}}

SPILLING = {
    "sort": {"find": "a", "sort": {"s": 1}, "singleBatch": True, "batchSize": DOCUMENTS},
    "sort in a pipeline": aggregate({"$set": {"z": 1}}, {"$sort": {"s": 1, "z": 1}}, LAST_AND_MEAN),
    "group": aggregate({"$group": {"_id": "$s", "all": {"$push": "$$ROOT"}}}, LAST),
    "group of whole documents": aggregate({"$group": {"_id": "$few", "n": {"$sum": 1}, "all": {"$addToSet": "$k"}}}, LAST),
    "facet": aggregate({"$facet": {"x": [{"$sort": {"s": 1}}, LAST], "y": [{"$group": {"_id": "$s"}}, {"$count": "n"}]}}),
    "distinct": {"distinct": "a", "key": "s"},
    "documents once": {"find": "a", "filter": {"tags": {"$gte": 0}, "s": "none"}, "hint": "tags_1", "singleBatch": True},
    "lookup": aggregate({"$match": {"_id": {"$lt": 50}}}, {"$lookup": {
        "from": "a", "let": {"few": "$few"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$few", "$$few"]}}}, {"$sort": {"s": 1}}, LAST], "as": "x"}}),
}


def has_spilled(operation):
    return operation.get("spills", 0) > 0


def has_read_all(operation):
    """It merges what it has spilled."""
    return has_spilled(operation) and operation["docsExamined"] >= DOCUMENTS


def ended(client, command, end, ready=None):
    run = (lambda: end(client, command)) if end is by_time_limit or ready is None else (lambda: end(client, command, ready=ready))

    def is_released():
        is_over(client)
        wait_for(lambda: holds_nothing(client))
        assert client.long.command("ping")["ok"] == 1

    return quickest_end(TRIES, run, ENDS_WITHIN_S, is_released)


@every_way
@pytest.mark.parametrize("name", SPILLING)
def test_an_operation_that_spills_ends_at_once(spilling, name, end):
    _, client = spilling
    quickest = ended(client, SPILLING[name], end, has_spilled)
    print(f"{name} {end.__name__}: {quickest * 1000:.0f} ms")
    assert quickest < ENDS_WITHIN_S


# The moment of a time limit cannot be chosen.
@pytest.mark.parametrize("end", [by_kill, by_closed_socket], ids=lambda end: end.__name__)
@pytest.mark.parametrize("name", ["sort in a pipeline", "group"])
def test_an_operation_that_merges_its_runs_ends_at_once(spilling, name, end):
    _, client = spilling
    quickest = ended(client, SPILLING[name], end, has_read_all)
    print(f"{name} {end.__name__}: {quickest * 1000:.0f} ms")
    assert quickest < ENDS_WITHIN_S


# ---- memory that another operation holds


@every_way
def test_an_operation_beside_one_that_holds_the_memory_gets_on_and_ends_at_once(spilling, end):
    """No operation waits for memory: it spills sooner."""
    _, client = spilling
    cursors = [client.long.a.find({}, batch_size=2).sort("s", 1) for _ in range(3)]
    for cursor in cursors:
        next(cursor)
    held = memory(client)["heldBytes"]
    assert held > 0
    command = SPILLING["sort in a pipeline"]
    run = (lambda: end(client, command)) if end is by_time_limit else (lambda: end(client, command, ready=has_spilled))
    quickest = quickest_end(TRIES, run, ENDS_WITHIN_S, lambda: is_over(client))
    assert quickest < ENDS_WITHIN_S
    assert len(client.long.a.distinct("few")) == 7
    for cursor in cursors:
        cursor.close()
    wait_for(lambda: holds_nothing(client))


# ---- documents that an open transaction has changed

WRITES = {
    "update": {"update": "w", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]},
    "update of many": {"update": "w", "updates": [{"q": {}, "u": {"$inc": {"n": 1}}, "multi": True}]},
    "replacement by an index": {"update": "w", "updates": [{"q": {"k": 1}, "u": {"k": 1, "n": 7}}]},
    "delete": {"delete": "w", "deletes": [{"q": {"_id": 1}, "limit": 1}]},
    "delete of many": {"delete": "w", "deletes": [{"q": {}, "limit": 0}]},
    "findAndModify": {"findAndModify": "w", "query": {"_id": 1}, "update": {"$inc": {"n": 1}}},
    "insert": {"insert": "w", "documents": [{"_id": 9}]},
    "upsert": {"update": "w", "updates": [{"q": {"_id": 9}, "u": {"$inc": {"n": 1}}, "upsert": True}]},
}


@every_way
@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_waits_for_a_transaction_ends_at_once(spilling, name, end):
    _, client = spilling
    db = client.long
    db.w.drop()
    db.w.insert_many([{"_id": i, "k": i, "n": 0} for i in range(5)])
    db.w.create_index("k")
    waits = lambda operation: operation.get("waitingFor") in ("intent", "conflict")
    with client.start_session() as session:
        session.start_transaction()
        db.w.update_one({"_id": 1}, {"$inc": {"n": 10}}, session=session)
        db.w.insert_one({"_id": 9, "k": 9}, session=session)
        run = (lambda: end(client, WRITES[name])) if end is by_time_limit else (lambda: end(client, WRITES[name], ready=waits))
        quickest = quickest_end(TRIES, run, ENDS_WITHIN_S, lambda: is_over(client))
        session.commit_transaction()
    print(f"{name} {end.__name__}: {quickest * 1000:.0f} ms")
    assert quickest < ENDS_WITHIN_S
    assert db.w.find_one({"_id": 1}) == {"_id": 1, "k": 1, "n": 10}, "a write that ended has changed nothing"
    assert db.w.count_documents({}) == 6


# ---- clients that do not read


class Unread:
    """A connection whose client sends requests for large replies and reads none."""

    def __init__(self, client, requests=1):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(client.address)
        self.socket.sendall(raw_request("long", {"find": "a", "batchSize": 100_000, "singleBatch": True}) * requests)

    def read_all(self):
        """The bytes of all replies."""
        count = 0
        self.socket.settimeout(1)
        try:
            while part := self.socket.recv(1 << 20):
                count += len(part)
        except TimeoutError:
            pass
        return count


def unsent(client):
    """Memory is held, though no operation is under way."""
    return not running(client) and memory(client)["heldBytes"]


def test_replies_that_are_not_read_count_and_are_given_back(spilling):
    _, client = spilling
    unread = [Unread(client, requests=4) for _ in range(3)]
    held = wait_for(lambda: (bytes_ := unsent(client)) > 30_000_000 and bytes_)
    time.sleep(0.2)
    assert unsent(client) <= held + 40_000_000, "one reply each, whatever was asked"
    # Others are served meanwhile, and their sorts spill.
    assert client.long.command(aggregate({"$sort": {"k": 1}}, {"$limit": 3}))["cursor"]["firstBatch"][0]["k"] == 0
    before = unsent(client)
    began = time.monotonic()
    unread[0].socket.close()
    wait_for(lambda: unsent(client) < before)
    assert time.monotonic() - began < 1
    assert unread[1].read_all() > 4 * 15_000_000, "a slow client gets all replies"
    unread[1].socket.close()
    unread[2].socket.close()
    wait_for(lambda: holds_nothing(client))


def test_a_server_stops_though_a_client_does_not_read(tmp_path):
    server = start(tmp_path / "data")
    with server.client() as client:
        client.long.a.insert_many([{"_id": i, "s": "x" * 1000} for i in range(16_000)])
        unread = Unread(client)
        wait_for(lambda: memory(client)["heldBytes"] > 1_000_000)
        began = time.monotonic()
        assert server.terminate() == 0, server.log()
        assert time.monotonic() - began < 5
        unread.socket.close()
    assert "panic" not in server.log()


# ---- a killed process


def test_a_killed_process_leaves_no_scratch_file(tmp_path):
    """It is killed while it spills, and while a cursor has spilled."""
    server = start(tmp_path / "data")
    for command in SPILLING["sort"], SPILLING["group"]:
        with server.client(retryReads=False) as client:
            if client.long.a.estimated_document_count() == 0:
                client.long.a.insert_many([{"_id": i, "k": i, "s": f"{i * 7919 % 40_000:06}" * 50} for i in range(40_000)])
            background = Background(client.long, command)
            wait_for(lambda: [found for found in running(client) if has_spilled(found)] or background.ended)
            server.kill()
            background.join()
        server.start()
        with server.client() as client:
            wait_for(lambda: list((server.folder / "scratch").iterdir()) == [])
            assert holds_nothing(client)
            assert client.long.a.count_documents({"k": {"$gte": 0}}) == 40_000
    assert server.stop() == 0, server.log()


def test_an_error_of_a_spilling_operation_leaves_nothing(spilling):
    _, client = spilling
    with pytest.raises(OperationFailure) as refused:
        client.long.command(aggregate({"$sort": {"s": 1}}, {"$set": {"x": {"$divide": [1, "$few"]}}}))
    assert refused.value.code == 2
    wait_for(lambda: holds_nothing(client))
