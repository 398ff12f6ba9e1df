"""Sorts, groups and distincts of a collection much larger than memory, 64 at once, in a control group of the cache and 256 MB.

Every answer is known in advance, so each is compared with it: with much memory and with little, where everything spills, with limits and
without, with disk use and, where that can be refused, without. Afterwards nothing is held, and a killed server leaves no scratch file.

MEMORY_DOCUMENTS (5,000,000 by `make test-memory`), MEMORY_CACHE_MB and MEMORY_CLIENTS set the size.
"""

import concurrent.futures
import os
import pathlib
import sys
import threading
import time

import pytest
from pymongo.errors import OperationFailure, PyMongoError

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))

from capped import Group, peak_bytes
from server import Server

DOCUMENTS = int(os.environ.get("MEMORY_DOCUMENTS", "200000"))
CACHE_MB = int(os.environ.get("MEMORY_CACHE_MB", "256"))
CLIENTS = int(os.environ.get("MEMORY_CLIENTS", "64"))
LIMIT_BYTES = (CACHE_MB << 20) + (256 << 20)
GROUPS = DOCUMENTS // 50
LITTLE, MUCH = "1MiB", f"{CACHE_MB}MiB"
# Coprime to every number of documents that is no multiple of it, so that `k` has each number once.
STRIDE = 7919


def document(i):
    return {"_id": i, "k": i * STRIDE % DOCUMENTS, "few": i % 10, "many": i % GROUPS, "text": f"{i % 1000:03}" * 25}


@pytest.fixture(scope="module")
def capped(tmp_path_factory):
    assert DOCUMENTS % STRIDE and DOCUMENTS % 1000 == 0
    group = Group(LIMIT_BYTES)
    server = Server(tmp_path_factory.mktemp("capped") / "data", "--cache", f"{CACHE_MB}MiB").start()
    group.enter(server.process.pid)
    with server.client(maxPoolSize=CLIENTS + 8) as client:
        batches = range(0, DOCUMENTS, 10_000)
        insert = lambda begin: client.capped.c.insert_many([document(i) for i in range(begin, min(begin + 10_000, DOCUMENTS))], ordered=False)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(insert, batches))
        client.capped.c.create_index("many")
        yield server, client, group
    assert group.killed() == 0, "the kernel had to end the server"
    assert server.is_running(), server.log()
    assert peak_bytes(server.process.pid) <= LIMIT_BYTES
    assert server.stop() == 0, server.log()
    assert "panic" not in server.log()
    group.remove()


def memory(client):
    return client.admin.command("serverStatus")["pando"]["queryMemory"]


def set_memory(client, size):
    client.admin.command("setParameter", 1, queryMemory=size)


def scratch_files(server):
    folder = server.folder / "scratch"
    return list(folder.iterdir()) if folder.exists() else []


def is_released(server, client):
    deadline = time.monotonic() + 10
    while (figures := memory(client))["heldBytes"] and time.monotonic() < deadline:
        time.sleep(0.05)
    left = scratch_files(server)
    assert (figures["heldBytes"], figures["scratchFiles"], figures["scratchBytes"], left) == (0, 0, 0, []), figures
    return True


def sorted_page(c, begin, **options):
    """A hundred documents from somewhere in the order of `k`, all of which is sorted up to there."""
    return [d["k"] for d in c.aggregate([{"$sort": {"k": 1}}, {"$skip": begin}, {"$limit": 100}], **options)]


def sorted_by_text(c, **options):
    """All documents in an order of long keys; the last ones, so that none is left out before."""
    found = c.aggregate([{"$sort": {"text": 1, "_id": -1}}, {"$skip": DOCUMENTS - 50}], **options)
    return [(d["text"][:3], d["_id"]) for d in found]


def groups(c, **options):
    """Groups with all ids, and what they have in all."""
    [found] = c.aggregate([
        {"$group": {"_id": "$many", "n": {"$sum": 1}, "k": {"$sum": "$k"}, "ids": {"$push": "$_id"}, "few": {"$addToSet": "$few"}}},
        {"$group": {"_id": None, "groups": {"$sum": 1}, "n": {"$sum": "$n"}, "k": {"$sum": "$k"}, "ids": {"$max": {"$size": "$ids"}},
                    "few": {"$max": {"$size": "$few"}}}}], **options)
    return found


def one_document_a_group(c, **options):
    [found] = c.aggregate([{"$group": {"_id": "$k", "ids": {"$push": "$_id"}, "set": {"$addToSet": "$few"}}},
                           {"$match": {"set": {"$size": 1}, "ids": {"$size": 1}}}, {"$count": "n"}], **options)
    return found["n"]


def distincts(c, **_):
    return len(c.distinct("many")), sorted(c.distinct("few"))


PAGES = [0, DOCUMENTS // 3, DOCUMENTS - 100]
# By name: the question, and its answer.
QUESTIONS = {
    **{f"sorted from {begin}": (lambda c, begin=begin, **options: sorted_page(c, begin, **options), list(range(begin, begin + 100))) for begin in PAGES},
    # The last 50: the greatest text, and of that the least ids, descending.
    "sorted by text": (sorted_by_text, [("999", 999 + 1000 * at) for at in range(49, -1, -1)]),
    "groups": (groups, {"_id": None, "groups": GROUPS, "n": DOCUMENTS, "k": DOCUMENTS * (DOCUMENTS - 1) // 2, "ids": 50,
                        "few": len({i % 10 for i in range(0, DOCUMENTS, GROUPS)})}),
    "one document a group": (one_document_a_group, DOCUMENTS),
    "distincts": (distincts, (GROUPS, list(range(10)))),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_answer_is_the_same_with_much_memory_and_with_little(capped, name):
    server, client, _ = capped
    ask, expected = QUESTIONS[name]
    for size in (MUCH, LITTLE):
        set_memory(client, size)
        before = memory(client)["spills"]
        assert ask(client.capped.c) == expected, size
        if size == LITTLE and name in ("sorted by text", "groups", "one document a group"):
            assert memory(client)["spills"] > before
    try:
        assert ask(client.capped.c, allowDiskUse=False) == expected
    except OperationFailure as error:
        assert error.code == 292, error
    assert is_released(server, client)


def test_many_at_once_finish_with_right_answers(capped):
    server, client, group = capped
    names = list(QUESTIONS)
    for size in (LITTLE, f"{CACHE_MB // 4}MiB"):
        set_memory(client, size)

        def run(number):
            ask, expected = QUESTIONS[names[number % len(names)]]
            return names[number % len(names)] if ask(client.capped.c) != expected else None

        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            wrong = [name for name in pool.map(run, range(CLIENTS)) if name]
        assert wrong == []
        assert group.killed() == 0 and peak_bytes(server.process.pid) <= LIMIT_BYTES
        assert is_released(server, client)


def test_queries_that_are_left_in_the_middle_hold_nothing(capped):
    server, client, _ = capped
    set_memory(client, LITTLE)
    cursors = [client.capped.c.find({}, {"k": 1}).sort("k", 1).batch_size(100) for _ in range(8)]
    assert [next(cursor)["k"] for cursor in cursors] == [0] * 8
    assert memory(client)["scratchFiles"] >= 8
    for cursor in cursors:
        cursor.close()
    with pytest.raises(OperationFailure) as refused:
        list(client.capped.c.aggregate([{"$group": {"_id": "$k", "ids": {"$push": "$_id"}}}, {"$sort": {"ids": 1}}], maxTimeMS=50))
    assert refused.value.code == 50
    assert is_released(server, client)


def test_a_killed_server_leaves_no_scratch_file(capped):
    server, client, group = capped
    set_memory(client, LITTLE)

    def ask(number):
        try:
            one_document_a_group(client.capped.c)
        except PyMongoError:
            pass  # The server is gone, as planned.

    threads = [threading.Thread(target=ask, args=(number,), daemon=True) for number in range(8)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 60
    while memory(client)["scratchBytes"] == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert memory(client)["scratchBytes"] > 0
    server.kill()
    assert scratch_files(server) == []
    server.start()
    group.enter(server.process.pid)
    with server.client() as again:
        set_memory(again, LITTLE)
        assert sorted_page(again.capped.c, DOCUMENTS // 2) == list(range(DOCUMENTS // 2, DOCUMENTS // 2 + 100))
        assert is_released(server, again)
