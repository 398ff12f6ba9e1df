"""The requests to the cluster that an operation takes, counted with one server of a store and with two.

`make test-tikv` starts the cluster and runs these tests. With `-s` they print the rows of docs/distributed.md.
"""

import pathlib
import sys
import time

from pymongo.read_preferences import Secondary

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))
from server import Server  # noqa: E402
from test_servers import Pair, end  # noqa: E402

KINDS = ("get_timestamp", "kv_get", "kv_batch_get", "kv_scan", "kv_prewrite", "kv_commit")
OPERATIONS = 200


class Alone(Pair):
    """One server that has its store for itself."""

    def __init__(self, folder):
        self.servers = [Server(folder / "alone", engine="tikv").start()]


def counts(client):
    requests = client.admin.command("serverStatus")["tikv"]["rpc"]
    return {kind: requests.get(kind, 0) for kind in KINDS}


def difference(before, after):
    return {kind: after[kind] - before[kind] for kind in KINDS}


def requests_of(client, operation, at_rest):
    """The requests of one operation, without those that a server at rest makes."""
    operation(0)
    before, began = counts(client), time.monotonic()
    for number in range(1, OPERATIONS + 1):
        operation(number)
    took = time.monotonic() - began
    found = difference(before, counts(client))
    return {kind: round((found[kind] - at_rest[kind] * took) / OPERATIONS, 1) for kind in KINDS}


def requests_at_rest(client):
    """The requests of a second without an operation."""
    time.sleep(2)
    before, began = counts(client), time.monotonic()
    time.sleep(6)
    took = time.monotonic() - began
    found = difference(before, counts(client))
    return {kind: found[kind] / took for kind in KINDS}


def operations_of(client, plain, name):
    """The operations that are counted: the driver's own, and the same without a number of a retryable write."""
    shop = client.shop[name]

    def insert(collection):
        return lambda number: collection.insert_one({"_id": number + 1000, "a": number, "b": -number, "c": f"x{number}"})

    def transaction(number):
        with client.start_session() as session, session.start_transaction():
            for step in range(4):
                shop.update_one({"_id": step}, {"$inc": {"n": 1}}, session=session)

    def causal(number):
        with client.start_session() as session:
            shop.update_one({"_id": 5}, {"$inc": {"n": 1}}, session=session)
            shop.find_one({"_id": 5}, session=session)

    def blind_update(number):
        statement = {"q": {"_id": number % 100}, "u": {"$inc": {"n": 1}}, "blind": True}
        client.shop.command("update", name, updates=[statement])

    view = client.shop[f"{name}-view"]
    lagging = shop.with_options(read_preference=Secondary())
    return {
        "point read by `_id`": lambda number: shop.find_one({"_id": number % 100}),
        "the same with `readPreference: secondary`": lambda number: lagging.find_one({"_id": number % 100}),
        "insert with three indexes": insert(shop),
        "the same without `retryWrites`": insert(plain.shop[f"{name}-plain"]),
        "update with `blind: true`": blind_update,
        "find of one document through a view": lambda number: view.find_one({"_id": number % 100}),
        "transaction of four updates": transaction,
        "update and read of it in a causal session": causal,
    }


def prepare(client, name):
    for collection in (name, f"{name}-plain"):
        client.shop[collection].insert_many([{"_id": number, "n": 0} for number in range(100)])
        for field in ("a", "b", "c"):
            client.shop[collection].create_index(field)
    client.shop.create_collection(f"{name}-view", viewOn=name, pipeline=[{"$set": {"seen": True}}])


def measured(servers):
    client = servers.servers[0].client()
    plain = servers.servers[0].client(retryWrites=False)
    prepare(client, "c")
    at_rest = requests_at_rest(client)
    found = {"a second at rest": {kind: round(count, 1) for kind, count in at_rest.items()}}
    for name, operation in operations_of(client, plain, "c").items():
        found[name] = requests_of(client, operation, at_rest)
    return found


def print_rows(title, found):
    print(f"\n| {title} | " + " | ".join(KINDS) + " |")
    for name, requests in found.items():
        print(f"| {name} | " + " | ".join(str(requests[kind]) for kind in KINDS) + " |")


def check(found, more_timestamps, more_gets):
    """The bounds, with room for what a server does besides."""
    read = found["point read by `_id`"]
    assert read["kv_get"] <= 1.2 and read["kv_scan"] <= 0.2, read
    # A server that has the store alone has made all commits, and needs no timestamp for a read.
    assert read["get_timestamp"] <= 0.2 + more_timestamps, read
    lagging = found["the same with `readPreference: secondary`"]
    assert lagging["kv_get"] <= 1.2 and lagging["kv_scan"] <= 0.2 and lagging["get_timestamp"] <= 0.3, lagging
    insert = found["the same without `retryWrites`"]
    # Begin and commit take a timestamp each. The prewrite and the commit are the two round trips to nodes behind one another; a second
    # commit, of the keys behind the first one, is sent after the answer.
    assert insert["get_timestamp"] <= 2.2 and insert["kv_prewrite"] <= 1.2 and insert["kv_commit"] <= 2.2, insert
    driver = found["insert with three indexes"]
    # One of several servers reads the record of the session, in the same transaction.
    assert driver["get_timestamp"] <= 2.7 and driver["kv_get"] <= 1.4 + more_gets, driver
    assert driver["kv_prewrite"] <= 1.2 and driver["kv_commit"] <= 2.2, driver
    blind = found["update with `blind: true`"]
    assert blind["get_timestamp"] <= 2.2 and blind["kv_get"] <= 1.2 and blind["kv_prewrite"] <= 1.2, blind
    # The definition of the view takes a timestamp and a get, however often the request needs it. One of several servers asks besides
    # whether another one has made a collection of its name.
    view = found["find of one document through a view"]
    assert view["get_timestamp"] <= 2.2 + more_timestamps, view
    assert view["kv_get"] + view["kv_scan"] <= 2.2 + more_timestamps, view
    four = found["transaction of four updates"]
    # It takes long beside other programs, so that what a server does besides is more.
    assert four["get_timestamp"] <= 2.9 + more_timestamps, four
    assert four["kv_get"] <= 4.5 + more_gets and four["kv_prewrite"] <= 1.2 and four["kv_commit"] <= 2.2, four


def test_operations_take_the_requests_that_the_documentation_says(tmp_path):
    alone = Alone(tmp_path)
    found = measured(alone)
    end(alone)
    print_rows("one server", found)
    check(found, more_timestamps=0, more_gets=0)
    pair = Pair(tmp_path)
    found = measured(pair)
    end(pair)
    print_rows("two servers", found)
    # A transaction reads the record of its session at a timestamp of its own.
    check(found, more_timestamps=1, more_gets=1)


def test_updates_and_deletes_of_many_documents_read_them_with_few_requests(tmp_path):
    alone = Alone(tmp_path)
    shop = alone.servers[0].client().shop
    shop.c.insert_many([{"_id": number, "n": 0} for number in range(12_000)])

    def in_transaction(change):
        with shop.client.start_session() as session, session.start_transaction():
            change(session)

    for change in (
        lambda session: shop.c.update_many({"_id": {"$lt": 5_000}}, {"$inc": {"n": 1}}, session=session),
        lambda session: shop.c.delete_many({"_id": {"$lt": 2_000}}, session=session),
        # More than one transaction of a statement takes: it is carried out in steps.
        lambda session: None if session else shop.c.update_many({"n": {"$gte": 0}}, {"$inc": {"n": 1}}),
    ):
        for run in (in_transaction, lambda change: change(None)):
            before = counts(shop.client)
            run(change)
            found = difference(before, counts(shop.client))
            assert found["kv_get"] + found["kv_batch_get"] < 60, found
    assert shop.c.count_documents({}) == 10_000 and shop.c.count_documents({"n": 3}) == 3_000
    end(alone)


def test_finds_by_an_index_read_many_documents_with_few_requests(tmp_path):
    alone = Alone(tmp_path)
    shop = alone.servers[0].client().shop
    shop.c.create_index("n")
    shop.c.insert_many([{"_id": number, "n": number * 7919 % 10_007, "odd": number % 2} for number in range(5_000)])
    shop.other.insert_many([{"_id": number, "of": number * 3} for number in range(1_600)])
    ids = list(range(0, 5_000, 10))
    by_id = [{"$lookup": {"from": "c", "localField": "of", "foreignField": "_id", "as": "c"}}]
    back = {"$lookup": {"from": "other", "localField": "_id", "foreignField": "_id", "as": "other"}}
    by_index = [{"$limit": 300}, {"$lookup": {"from": "c", "localField": "of", "foreignField": "n", "as": "c"}}]
    # The operation, what it gives, and the gets it may send.
    for read, wanted, most in (
        (lambda: shop.c.find({"n": {"$gte": 0}}).hint({"n": 1}), 5_000, 10),
        (lambda: shop.c.find({}).sort("n", -1), 5_000, 10),
        (lambda: shop.c.find({"n": {"$gte": 0}, "odd": 1}).sort("n", 1), 2_500, 10),
        (lambda: shop.c.find({"n": {"$gte": 0}}).sort("n", 1).limit(100), 100, 3),
        (lambda: shop.c.find({"_id": {"$in": ids}}), 500, 10),
        (lambda: shop.c.aggregate([{"$match": {"n": {"$gte": 0}, "odd": 1}}], hint={"n": 1}), 2_500, 10),
        (lambda: shop.c.find({"n": {"$gte": 0}}).sort("n", 1).limit(1), 1, 1),
        (lambda: shop.other.aggregate(by_id), 1_600, 20),
        (lambda: shop.other.aggregate(by_index), 300, 20),
        # Both sides are read ahead, in turn.
        (lambda: shop.c.aggregate([{"$match": {"n": {"$gte": 0}}}, back], hint={"n": 1}), 5_000, 40),
    ):
        before = counts(shop.client)
        found = list(read())
        sent = difference(before, counts(shop.client))
        assert len(found) == wanted and sent["kv_get"] + sent["kv_batch_get"] <= most, sent
        print(len(found), sent)
    values = [document["n"] for document in shop.c.find({}).sort("n", 1)]
    assert values == sorted(values) and len(values) == 5_000
    for document in shop.other.aggregate(by_id):
        found = [joined["_id"] for joined in document["c"]]
        assert found == [document["of"]] * (document["of"] < 5_000), document
    end(alone)
