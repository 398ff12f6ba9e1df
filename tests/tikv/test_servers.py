"""Two servers with one store in a TiKV cluster: collections, indexes and users of one are those of both, and a driver with both
addresses goes on when one of them dies.

`make test-tikv` starts the cluster and runs these tests. PANDO_TIKV_PD names its placement driver. ROUNDS is the number of schema changes
that writers on the other server race (10), RACES the number of collections over which they are spread, all at once (1).
"""

import datetime
import os
import pathlib
import random
import signal
import sys
import threading
import time
import uuid

import pytest
from bson.int64 import Int64
from bson.timestamp import Timestamp
from pymongo import MongoClient, UpdateOne, WriteConcern
from pymongo.errors import AutoReconnect, DuplicateKeyError, OperationFailure, PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import Secondary

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))
from server import Server  # noqa: E402
from test_failures import Transfers, check_bank, cluster, open_bank  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "10"))
RACES = int(os.environ.get("RACES", "1"))
# The time within which a server knows what another one has changed.
SOON = 5


class Pair:
    """Two servers of one store, each with a folder of its own."""

    def __init__(self, folder, *arguments):
        self.keyspace = uuid.uuid4().hex[:16]
        self.servers = [self.add(folder / name, *arguments) for name in ("one", "other")]

    def add(self, folder, *arguments):
        server = Server(folder, "--engine-option", "servers=several", *arguments, engine="tikv")
        server.arguments[server.arguments.index("--keyspace") + 1] = self.keyspace
        return server.start()

    @property
    def uri(self):
        return "mongodb://" + ",".join(f"127.0.0.1:{server.port}" for server in self.servers)

    def clients(self, **options):
        return [server.client(**options) for server in self.servers]


@pytest.fixture
def pair(tmp_path):
    pair = Pair(tmp_path)
    yield pair
    end(pair)


def end(pair):
    for server in pair.servers:
        if server.is_running():
            assert server.terminate() == 0, server.log()
        assert "panic" not in server.whole_log(), server.log()


def eventually(what, is_so, seconds=SOON):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.02)


def through_lapses(operation):
    """The result of an operation that is tried again where its server has not reached the cluster for 12 s. On a busy machine the placement
    driver loses its lease now and then, and is away for as long."""
    deadline = time.monotonic() + 120
    while True:
        try:
            return operation()
        except OperationFailure as lost:
            assert lost.code == 6 and time.monotonic() < deadline, lost
            time.sleep(0.1)


def indexes(client, name="c"):
    return sorted(client.test[name].index_information())


def check_sound(client, name="c"):
    report = client.test.command("validate", name, full=True)
    assert report["valid"], report
    assert client.test[name].count_documents({}) == client.test[name].estimated_document_count()


def test_collections_and_indexes_of_one_server_are_those_of_both(pair):
    one, other = pair.clients()
    assert one.admin.command("hello")["msg"] == "isdbgrid"
    # Drivers go to each address of their connection string, so the log needs no advice about the one that `hello` lists.
    assert all("for a mongos" in server.whole_log() and "--advertise" not in server.whole_log() for server in pair.servers)
    one.test.c.insert_one({"_id": 1, "a": 1})
    assert other.test.c.find_one() == {"_id": 1, "a": 1}
    other.test.c.create_index("a")
    one.test.c.insert_many([{"_id": number, "a": number} for number in range(2, 50)])
    # A change holds on all servers when it is answered.
    assert indexes(one) == ["_id_", "a_1"]
    assert other.test.c.count_documents({"a": {"$gt": 1}}, hint="a_1") == 48
    check_sound(one)
    check_sound(other)
    one.test.c.rename("d")
    assert other.test.list_collection_names() == ["d"]
    other.test.d.drop()
    assert one.test.list_collection_names() == []
    one.test.create_collection("v", viewOn="d", pipeline=[])
    assert "v" in other.test.list_collection_names()
    for number in range(20):
        other.test.e.insert_one({"a": number})
        one.test.e.create_index("a")
        assert other.test.e.count_documents({"a": number}, hint="a_1") == 1
        one.test.e.drop_index("a_1")
        with pytest.raises(OperationFailure):
            other.test.e.count_documents({"a": number}, hint="a_1")


def test_a_store_of_several_servers_refuses_what_lives_in_the_memory_of_one(pair):
    one, _ = pair.clients()
    for options in ({"capped": True, "size": 4096}, {"partitioned": True}):
        with pytest.raises(OperationFailure, match="several servers"):
            one.test.create_collection("special", **options)


def test_a_lock_against_writes_is_refused_since_it_would_be_one_of_a_single_server(pair):
    one, two = pair.clients()
    with pytest.raises(OperationFailure, match="of this server alone") as refused:
        one.admin.command("fsync", 1, lock=True)
    assert refused.value.code == 72
    assert one.admin.command("fsync")["ok"] == 1
    two.shop.c.insert_one({"_id": 1})


def test_a_store_with_a_capped_collection_stays_that_of_one_server(tmp_path):
    alone = Server(tmp_path / "alone", engine="tikv").start()
    with alone.client() as client:
        client.test.create_collection("log", capped=True, size=4096)
        client.test.c.insert_one({"_id": 1})
    assert alone.stop() == 0, alone.log()
    arguments = list(alone.arguments)
    alone.arguments += ["--engine-option", "servers=several"]
    with pytest.raises(RuntimeError, match="several servers cannot share it"):
        alone.start()
    alone.arguments = arguments
    with alone.start().client() as client:
        client.test.log.drop()
    assert alone.stop() == 0, alone.log()
    alone.arguments += ["--engine-option", "servers=several"]
    with alone.start().client() as client:
        assert client.test.c.find_one() == {"_id": 1}
    assert alone.stop() == 0, alone.log()


def test_a_value_of_a_unique_index_goes_to_one_server(pair):
    clients = pair.clients()
    clients[0].test.c.create_index("u", unique=True)
    eventually("the index is there", lambda: indexes(clients[1]) == ["_id_", "u_1"])
    won = [0, 0]

    def insert(at):
        for number in range(100):
            try:
                clients[at].test.c.insert_one({"_id": f"{at}-{number}", "u": number})
                won[at] += 1
            except DuplicateKeyError:
                pass

    side_by_side([lambda: insert(0), lambda: insert(1)])
    assert sum(won) == 100 and clients[0].test.c.count_documents({}) == 100, won
    check_sound(clients[1])


def side_by_side(works):
    failures = []

    def guarded(work):
        try:
            work()
        except BaseException as error:  # noqa: BLE001
            failures.append(error)
            raise

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_schema_changes_raced_by_writers_on_the_other_server_leave_sound_indexes(pair):
    failed = threading.Event()
    side_by_side([lambda at=at: race_schema_changes(pair, at, failed) for at in range(RACES)])


def race_schema_changes(pair, race, failed):
    """Indexes of one collection are made and dropped at either server, while both write into it. Ends early where another race has failed."""
    one, other = pair.clients()
    name = f"race{race}"
    one.test[name].insert_one({"_id": 0})
    eventually("the collection is there", lambda: name in other.test.list_collection_names())
    rounds, ended, written = ROUNDS // RACES, threading.Event(), [0, 0]

    def write(at, collection):
        chance = random.Random(2 * race + at)
        while not ended.is_set():
            number = chance.randrange(300)
            document = {"a": chance.choice([number, [number, 7], "x" * 2000]), "b": chance.randrange(9)}
            if chance.random() < 0.5:
                document["s"] = number
            if chance.random() < 0.25:
                through_lapses(lambda: collection.delete_one({"_id": number}))
            else:
                through_lapses(lambda: collection.replace_one({"_id": number}, document, upsert=True))
            written[at] += 1
            # Several races share the machine: their writes leave room for their changes.
            time.sleep(chance.random() * 0.08 * (RACES - 1))

    def change():
        try:
            for number in range(rounds):
                if failed.is_set():
                    return
                maker, dropper = [client.test[name] for client in ((one, other) if number % 2 else (other, one))]
                through_lapses(lambda: maker.create_index("a"))
                through_lapses(lambda: maker.create_index([("b", -1), ("a", 1)]))
                through_lapses(lambda: maker.create_index("s", sparse=True))
                before = list(written)
                eventually("both write", lambda: all(now > then for now, then in zip(written, before)), 120)
                report = through_lapses(lambda: dropper.database.command("validate", name))
                if not report["valid"]:
                    again = [collection.database.command("validate", name) for collection in (dropper, maker)]
                    print(f"{name}, round {number}: {report['errors']}, and then {[(told['valid'], told['errors']) for told in again]}", flush=True)
                assert report["valid"], f"{name}, round {number}: {report['errors']}"
                if (number + 1) % 25 == 0:
                    print(f"{name}: {number + 1} of {rounds} rounds, {written} writes", flush=True)
                if number + 1 < rounds:
                    through_lapses(dropper.drop_indexes)
        except BaseException:
            failed.set()
            raise
        finally:
            ended.set()

    side_by_side([lambda: write(0, one.test[name]), lambda: write(1, other.test[name]), change])
    if failed.is_set():
        return
    print(f"{name}: {rounds} rounds, {written} writes", flush=True)
    for client in (one, other):
        eventually("the indexes are there", lambda: len(indexes(client, name)) == 4)
        check_sound(client, name)


def test_an_index_build_of_a_killed_server_is_ended_and_begun_again_by_the_other(pair):
    one, other = pair.clients()
    for first in range(0, 30_000, 5_000):
        one.test.c.insert_many([{"_id": first + number, "a": number % 97} for number in range(5_000)])

    def build():
        with pytest.raises(PyMongoError):
            one.test.c.create_index("a")

    thread = threading.Thread(target=build)
    thread.start()
    eventually("the build has begun", lambda: "a_1" in one.test.c.index_information() or is_building(one), 30)
    pair.servers[0].kill()
    thread.join()
    # The other server holds it for dead after half a minute, and makes the index.
    begun = time.monotonic()
    while True:
        try:
            other.test.c.create_index("a")
            break
        except OperationFailure as error:
            assert time.monotonic() - begun < 80, error
            time.sleep(0.5)
    other.test.c.insert_one({"_id": -1, "a": 5})
    assert indexes(other) == ["_id_", "a_1"]
    check_sound(other)
    pair.servers[0].start()
    with pair.servers[0].client() as again:
        assert indexes(again) == ["_id_", "a_1"]
        check_sound(again)


def test_a_server_that_stands_still_is_taken_out_and_comes_back(pair):
    one, other = pair.clients()
    one.test.c.insert_many([{"_id": number, "a": number} for number in range(100)])
    eventually("the collection is there", lambda: other.test.list_collection_names() == ["c"])
    cursor = other.test.c.find(batch_size=2)
    assert next(cursor)["_id"] == 0
    os.kill(pair.servers[1].process.pid, signal.SIGSTOP)
    try:
        # It may still write by its old description, until it is held for dead.
        begun = time.monotonic()
        one.test.c.create_index("a")
        assert time.monotonic() - begun > 10
        one.test.c.insert_one({"_id": 100, "a": 1})
        # The engine's own record of it is taken out, too.
        time.sleep(3)
    finally:
        os.kill(pair.servers[1].process.pid, signal.SIGCONT)
    began = time.monotonic()
    while True:
        try:
            other.test.c.insert_one({"_id": 101, "a": 1})
            break
        except OperationFailure as refused:
            assert refused.code == 6 and time.monotonic() - began < 20, refused
            time.sleep(0.1)
    eventually("the index is there", lambda: indexes(other) == ["_id_", "a_1"])
    with pytest.raises(OperationFailure, match="begin the transaction or the query again"):
        list(cursor)
    check_sound(one)
    check_sound(other)


def is_building(client):
    operations = client.admin.command("currentOp")["inprog"]
    return any("createIndexes" in operation.get("command", {}) for operation in operations)


def test_a_driver_with_both_addresses_goes_on_when_a_server_is_killed(pair):
    told = []
    with MongoClient(pair.uri, serverSelectionTimeoutMS=20_000, timeoutMS=60_000) as client:
        collection = client.test.get_collection("c", write_concern=WriteConcern("majority"))
        ended = threading.Event()

        def insert(first):
            number = first
            while not ended.is_set():
                try:
                    collection.insert_one({"_id": number, "a": number})
                except AutoReconnect:
                    # The retry has lost its server, too: nobody knows.
                    number += 2
                    continue
                told.append(number)
                number += 2

        def kill():
            time.sleep(3)
            pair.servers[0].kill()
            before = len(told)
            try:
                eventually("writes go on", lambda: len(told) > before + 50, 60)
            finally:
                ended.set()

        side_by_side([lambda: insert(0), lambda: insert(1), kill])
        found = [row["_id"] for row in client.test.c.find()]
        assert len(found) == len(set(found)) and set(told) <= set(found)


def test_money_is_kept_by_two_servers_while_a_node_dies_and_one_server_is_killed(pair):
    one, other = pair.clients()
    open_bank(one)
    eventually("the bank is there", lambda: "balance_1" in other.bank.accounts.index_information())
    with Transfers(pair.servers[0], clients=2) as first, Transfers(pair.servers[1], clients=2) as second:
        time.sleep(3)
        check_bank(other)
        cluster("kill", 2)
        time.sleep(6)
        cluster("restart", 2)
        time.sleep(4)
        before = second.moved
        assert first.moved > 0
        first.ends.set()
        pair.servers[0].kill()
        eventually("transfers go on", lambda: second.moved > before + 5, 30)
    check_bank(other)
    print(f"{first.moved} and {second.moved} transfers")


def test_a_retry_at_the_other_server_is_not_carried_out_twice(pair):
    one, other = pair.clients()
    one.test.c.insert_one({"_id": 1, "n": 0})
    eventually("the collection is there", lambda: other.test.list_collection_names() == ["c"])
    sessions = dict(zip((one, other), same_session(one, other)))

    def raise_it(client, number):
        statement = {"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}
        return client.test.command("update", "c", updates=[statement], session=sessions[client], txnNumber=Int64(number))

    for number in range(101, 120, 2):
        raise_it(one, number)
        assert raise_it(other, number)["n"] == 1
        raise_it(other, number + 1)
        assert raise_it(one, number + 1)["n"] == 1
    assert one.test.c.find_one()["n"] == 20


def same_session(one, other):
    """A session of each client, with one identity, as after a change of the server."""
    sessions = [one.start_session(), other.start_session()]
    identity = sessions[0].session_id
    assert sessions[1].session_id != identity
    sessions[1]._server_session.session_id = identity
    return sessions


def test_cursors_and_transactions_belong_to_their_server(pair):
    one, other = pair.clients()
    one.test.c.insert_many([{"_id": number} for number in range(10)])
    eventually("the collection is there", lambda: other.test.list_collection_names() == ["c"])
    reply = one.test.command("find", "c", batchSize=2)
    with pytest.raises(OperationFailure) as missing:
        other.test.command("getMore", reply["cursor"]["id"], collection="c")
    assert missing.value.code == 43
    with one.start_session() as session, session.start_transaction():
        one.test.c.update_one({"_id": 1}, {"$set": {"a": 1}}, session=session)
        elsewhere = other.start_session()
        assert elsewhere.session_id != session.session_id
        elsewhere._server_session.session_id = session.session_id
        with pytest.raises(OperationFailure) as missing:
            other.test.command("find", "c", session=elsewhere, txnNumber=Int64(101), autocommit=False)
        assert missing.value.code == 251


def test_a_causal_session_sees_at_the_other_server_what_it_has_done_at_the_first(pair):
    one, other = pair.clients()
    for number in range(20):
        writer, reader = (one, other) if number % 2 else (other, one)
        name, late = f"c{number}", f"d{number}"
        with writer.start_session() as session, reader.start_session() as follows:

            def goes_on():
                follows.advance_cluster_time(session.cluster_time)
                follows.advance_operation_time(session.operation_time)

            writer.test[name].insert_one({"_id": 1, "a": [1, 2]}, session=session)
            goes_on()
            assert reader.test[name].find_one(session=follows) == {"_id": 1, "a": [1, 2]}, name
            writer.test[name].create_index("a", session=session)
            goes_on()
            assert reader.test[name].find_one({"a": 2}, hint="a_1", session=follows), name
            writer.test[name].rename(late, session=session)
            goes_on()
            assert reader.test[name].find_one(session=follows) is None, name
            assert reader.test[late].count_documents({}, session=follows) == 1, late
            with follows.start_transaction():
                assert reader.test[late].find_one(session=follows) is not None, late
            writer.test[late].drop(session=session)
            goes_on()
            assert reader.test[late].find_one(session=follows) is None, late
            assert late not in reader.test.list_collection_names(session=follows)


def test_a_client_of_both_servers_finds_a_collection_that_it_has_just_made(pair):
    with MongoClient(pair.uri, serverSelectionTimeoutMS=20_000) as client:
        for number in range(40):
            collection = client.test[f"c{number}"]
            collection.insert_one({"_id": 1, "n": 0})
            assert collection.find_one() == {"_id": 1, "n": 0}, number
            assert collection.update_one({"_id": 1}, {"$inc": {"n": 1}}).matched_count == 1, number


def test_a_client_of_one_server_finds_what_a_client_of_the_other_has_just_made(pair):
    # The times that a driver sends lead to no look here: neither client has seen those of the other.
    first, second = pair.clients()
    for number in range(40):
        name = f"fresh{number}"
        first.test[name].insert_one({"_id": 1, "n": 0})
        step = number % 4
        if step == 0:
            assert second.test[name].update_one({"_id": 1}, {"$inc": {"n": 1}}).matched_count == 1, number
        elif step == 1:
            assert second.test[name].delete_many({}).deleted_count == 1, number
        elif step == 2:
            assert name in second.test.list_collection_names(), number
        else:
            models = [UpdateOne({"_id": 1}, {"$inc": {"n": 1}}, namespace=f"test.{name}")]
            assert second.bulk_write(models).matched_count == 1, number
        own = first[f"{name}-database"]
        own.c.insert_one({})
        if step == 0:
            assert own.name in second.list_database_names(), number
        elif step == 1:
            explained = second[own.name].command("explain", {"count": "c"})
            assert "EOF" not in str(explained["queryPlanner"]["winningPlan"]), number
        elif step == 2:
            second[own.name].c.rename("d")
            assert first[own.name].d.count_documents({}) == 1, number
        else:
            assert second[own.name].command("dbStats")["collections"] == 1, number
            second.drop_database(own.name)
            assert first[own.name].list_collection_names() == [], number


def test_stages_find_a_collection_that_the_client_has_just_made_at_the_other_server(pair):
    with MongoClient(pair.uri, serverSelectionTimeoutMS=20_000) as client:
        database = client.test
        database.orders.insert_one({"_id": 1})
        join = {"localField": "_id", "foreignField": "_id", "as": "found"}
        walk = {"startWith": "$_id", "connectFromField": "_id", "connectToField": "_id", "as": "found"}
        for number in range(40):
            name = f"other{number}"
            database[name].insert_one({"_id": 1})
            for stage in [{"$lookup": {"from": name} | join}, {"$graphLookup": {"from": name} | walk}]:
                found = list(database.orders.aggregate([{"$facet": {"part": [stage]}}, {"$unwind": "$part"}]))
                assert found[0]["part"]["found"] == [{"_id": 1}], (number, stage)
            assert len(list(database.orders.aggregate([{"$unionWith": name}]))) == 2, number


def test_a_snapshot_of_one_server_is_read_at_the_other_until_the_catalog_changes(pair):
    one, other = pair.clients()
    one.test.c.insert_many([{"_id": number, "n": 0} for number in range(200)])
    eventually("the collection is there", lambda: other.test.c.count_documents({}) == 200)
    time.sleep(0.5)
    first = one.test.command("find", "c", readConcern={"level": "snapshot"}, batchSize=0)
    at = first["cursor"]["atClusterTime"]
    for client in (one, other):
        client.test.c.update_many({"_id": {"$lt": 100}}, {"$inc": {"n": 1}})
        client.test.c.delete_one({"_id": 150 if client is one else 151})

    def sums(client):
        concern = {"level": "snapshot", "atClusterTime": at}
        reply = client.test.command("aggregate", "c", pipeline=[{"$group": {"_id": None, "n": {"$sum": "$n"}, "count": {"$sum": 1}}}], cursor={}, readConcern=concern)
        found = reply["cursor"]["firstBatch"][0]
        return found["n"], found["count"]

    assert sums(one) == (0, 200) and sums(other) == (0, 200)
    with one.start_session() as session, session.start_transaction(read_concern=ReadConcern("snapshot")):
        assert one.test.c.count_documents({}, session=session) == 198
    one.test.c.create_index("n")
    assert sums(one) == (0, 200), "it holds the snapshot"
    assert sums(other) == (0, 200), "it holds the snapshot since it was asked"
    later = one.test.command("find", "c", readConcern={"level": "snapshot"}, batchSize=0)["cursor"]["atClusterTime"]
    other.test.c.drop_index("n_1")
    eventually("the index is gone", lambda: indexes(one) == ["_id_"])
    with pytest.raises(OperationFailure) as refused:
        other.test.command("find", "c", readConcern={"level": "snapshot", "atClusterTime": later})
    assert refused.value.code == 239
    for time_of_others in (Timestamp(1, 1), Timestamp(at.time - 3600, 1)):
        with pytest.raises(OperationFailure) as refused:
            other.test.command("find", "c", readConcern={"level": "snapshot", "atClusterTime": time_of_others})
        assert refused.value.code == 239


def test_large_batches_of_one_server_are_not_carried_out_twice_by_the_other(pair):
    """They go in several commits, each of which has the statements so far in the record of the session."""
    one, other = pair.clients()
    one.test.c.create_index("n")
    eventually("the collection is there", lambda: other.test.list_collection_names() == ["c"])
    # 1.6 MB in documents alone, where a commit is large from 512 KB on.
    numbers, change = range(4000), {"$inc": {"n": 1}, "$set": {"text": "y" * 400}}
    steps = [
        ({"insert": "c", "documents": [{"_id": number, "n": 0, "text": "x" * 400} for number in numbers]}, len(numbers), {0}),
        ({"update": "c", "updates": [{"q": {"_id": number}, "u": change} for number in numbers]}, len(numbers), {1}),
        ({"delete": "c", "deletes": [{"q": {"_id": number}, "limit": 1} for number in numbers]}, 0, set()),
    ]
    sessions = same_session(one, other)
    for number, (request, left, values) in enumerate(steps, 1):
        for client, session in zip((one, other), sessions):
            told = client.test.command({**request, "txnNumber": Int64(number)}, session=session)
            assert told["n"] == len(numbers) and "writeErrors" not in told
            assert client.test.c.count_documents({}) == left
            assert {document["n"] for document in client.test.c.find()} == values
        check_sound(other)


@pytest.mark.parametrize("asked", [{"read_preference": Secondary(max_staleness=120)}, {"read_concern": ReadConcern("available")}])
def test_reads_of_secondaries_and_available_reads_lag_by_a_second_at_most(pair, asked):
    one, other = pair.clients()
    one.test.c.insert_one({"_id": 1, "n": 0})
    eventually("the collection is there", lambda: other.test.list_collection_names() == ["c"])
    own, near = [client.get_database("test", **asked).c for client in (one, other)]
    seen = 0
    for number in range(200):
        one.test.c.update_one({"_id": 1}, {"$set": {"n": number}})
        # The server of the write sees it at once; the other one goes forward only, and a causal session sees it there, too.
        assert own.find_one() == {"_id": 1, "n": number}
        found = near.find_one()["n"]
        assert seen <= found <= number
        seen = found
        if number % 50 == 0:
            time.sleep(1)
            assert near.find_one() == {"_id": 1, "n": number}
    # No causal session reads with `available`.
    near = other.get_database("test", read_preference=Secondary()).c
    with one.start_session() as first, other.start_session() as second:
        one.test.c.update_one({"_id": 1}, {"$set": {"n": -1}}, session=first)
        second.advance_cluster_time(first.cluster_time)
        second.advance_operation_time(first.operation_time)
        assert near.find_one(session=second) == {"_id": 1, "n": -1}


def test_a_session_that_names_a_time_of_the_future_is_refused(pair):
    one, _ = pair.clients()
    time = one.test.command("ping")["operationTime"].time + 10 * 24 * 3600
    with pytest.raises(OperationFailure) as refused:
        one.test.command("find", "c", readConcern={"afterClusterTime": Timestamp(time, 1)})
    assert refused.value.code == 72


def test_the_times_of_answers_grow_over_both_servers(pair):
    clients = pair.clients()
    clients[0].test.c.insert_one({"_id": "first"})
    eventually("the collection is there", lambda: clients[1].test.list_collection_names() == ["c"])
    turn, latest, counts = threading.Lock(), [Timestamp(0, 0)], [0, 0]

    def work(at):
        client, chance = clients[at], random.Random(at)
        for number in range(200):
            with turn:
                before = latest[0]
            writes = chance.random() < 0.5
            reply = client.test.command("insert", "c", documents=[{"_id": f"{at}-{number}"}]) if writes else client.test.command("find", "c", limit=1)
            told = reply["operationTime"]
            assert reply["$clusterTime"]["clusterTime"] >= told
            # An answer that was given before this operation began had an earlier time.
            assert told > before, (at, number, told, before)
            with turn:
                latest[0] = max(latest[0], told)
            counts[at] += 1

    side_by_side([lambda: work(0), lambda: work(1)])
    assert counts == [200, 200]


class Waiter:
    """An update that waits for the transaction of another client, until it is ended."""

    def __init__(self, client, of=None):
        self.client, self.failure = client, None
        self.holder = of or client
        self.session = self.holder.start_session()
        self.session.start_transaction()
        self.holder.test.c.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=self.session)
        self.thread = threading.Thread(target=self.wait)
        self.thread.start()

    def wait(self):
        try:
            self.client.test.c.update_one({"_id": 1}, {"$set": {"waits": 1}})
        except PyMongoError as error:
            self.failure = error

    def end(self):
        self.session.abort_transaction()
        self.session.end_session()
        self.thread.join()


def waiting(operations):
    def is_it(operation):
        return operation.get("op") == "update" and "waitingFor" in operation

    return [operation for operation in operations if is_it(operation)]


def test_operations_of_both_servers_are_listed_and_ended_at_any_of_them(pair):
    one, other = pair.clients()
    names = [f"127.0.0.1:{server.port}" for server in pair.servers]
    one.test.c.insert_one({"_id": 1, "n": 0})
    eventually("the collection is there", lambda: other.test.list_collection_names() == ["c"])
    waiter = Waiter(one)
    try:
        eventually("it waits", lambda: waiting(other.admin.command("currentOp")["inprog"]))
        operation = waiting(other.admin.command("currentOp")["inprog"])[0]
        assert operation["host"] == names[0] and operation["opid"].startswith(names[0] + ":")
        hosts = {found["host"] for found in other.admin.aggregate([{"$currentOp": {"allUsers": True, "idleConnections": True}}])}
        assert hosts == set(names)
        local = list(other.admin.aggregate([{"$currentOp": {"allUsers": True, "idleConnections": True, "localOps": True}}]))
        assert {found["host"] for found in local} == {names[1]} and not waiting(local)
        began = time.monotonic()
        assert other.admin.command("killOp", op=operation["opid"])["info"] == "attempting to kill op"
        waiter.thread.join(timeout=5)
        took = time.monotonic() - began
        assert not waiter.thread.is_alive() and took < 2, took
        assert waiter.failure.code == 11601, waiter.failure
    finally:
        waiter.end()
    # One that is not there is no error. A server that is not there is one.
    assert other.admin.command("killOp", op=operation["opid"])["ok"] == 1
    for name, code in ((f"127.0.0.1:1:{operation['opid'].rpartition(':')[2]}", 2), ("nonsense", 28625)):
        with pytest.raises(OperationFailure, match="server") as refused:
            other.admin.command("killOp", op=name)
        assert refused.value.code == code


def test_a_server_that_does_not_answer_is_named_and_the_others_are_listed(pair):
    one, other = pair.clients()
    names = [f"127.0.0.1:{server.port}" for server in pair.servers]
    one.admin.command("ping")
    os.kill(pair.servers[0].process.pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        listed = other.admin.command("currentOp")["inprog"]
        assert time.monotonic() - began < 5
        assert [found["host"] for found in listed if found["type"] == "incomplete"] == [names[0]]
        assert any(found["type"] == "op" and found["host"] == names[1] for found in listed)
        with pytest.raises(OperationFailure, match="has not answered") as refused:
            other.admin.command("killOp", op=names[0] + ":1")
        assert refused.value.code == 6
    finally:
        os.kill(pair.servers[0].process.pid, signal.SIGCONT)
    eventually("it answers again", lambda: all(found["type"] == "op" for found in other.admin.command("currentOp")["inprog"]), 30)


def test_a_user_lists_and_ends_the_own_operations_of_another_server_only(tmp_path):
    pair = Pair(tmp_path, "--auth")
    one, other = pair.servers
    with one.client() as client:
        client.admin.command("createUser", "root", pwd="secret", roles=["root"])
    with one.client(username="root", password="secret") as root:
        root.test.c.insert_one({"_id": 1, "n": 0})
        for name in ("ada", "bob"):
            root.admin.command("createUser", name, pwd="secret", roles=[{"role": "readWrite", "db": "test"}])
        with one.client(username="ada", password="secret") as ada, other.client(username="bob", password="secret") as bob:
            eventually("bob knows the collection", lambda: bob.test.list_collection_names() == ["c"])
            waiter = Waiter(ada, of=root)
            try:
                with other.client(username="ada", password="secret") as elsewhere:
                    own = [{"$currentOp": {}}]
                    eventually("it waits", lambda: waiting(elsewhere.admin.aggregate(own)))
                    name = waiting(elsewhere.admin.aggregate(own))[0]["opid"]
                    assert not waiting(bob.admin.aggregate(own))
                    with pytest.raises(OperationFailure) as refused:
                        bob.admin.command("killOp", op=name)
                    assert refused.value.code == 13 and waiter.thread.is_alive()
                    elsewhere.admin.command("killOp", op=name)
                    waiter.thread.join(timeout=5)
                    assert waiter.failure.code == 11601, waiter.failure
            finally:
                waiter.end()
    end(pair)


def test_the_figures_of_the_cluster_are_shown(pair):
    one, _ = pair.clients()
    one.test.c.insert_one({"_id": 1})
    before = one.admin.command("serverStatus")["tikv"]
    for _ in range(20):
        assert one.test.c.find_one({"_id": 1})
    after = one.admin.command("serverStatus")["tikv"]
    assert after["rpc"]["kv_get"] >= before["rpc"]["kv_get"] + 20
    assert after["rpc"]["get_timestamp"] >= before["rpc"]["get_timestamp"] + 20
    assert after["tikv"]["gets"] >= before["tikv"]["gets"] + 20
    assert after["tikv"]["gets_micros"] > before["tikv"]["gets_micros"]
    assert after["tikv"]["gets_micros_max"] * after["tikv"]["gets"] >= after["tikv"]["gets_micros"]
    assert after["rpc"]["get_region"] > 0 and after["rpc"]["kv_commit"] > 0


def test_a_commit_that_is_repeated_at_the_other_server_is_answered_there_and_an_unknown_one_is_ended(pair):
    one, other = pair.clients()
    one.test.c.insert_one({"_id": 1, "n": 0})
    eventually("the collection is there", lambda: other.test.list_collection_names() == ["c"])

    sessions = same_session(one, other)

    def begin(number):
        terms = {"txnNumber": Int64(number), "autocommit": False}
        statement = {"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}
        one.test.command("update", "c", updates=[statement], startTransaction=True, session=sessions[0], **terms)
        return terms

    terms = begin(101)
    one.admin.command("commitTransaction", session=sessions[0], **terms)
    assert other.admin.command("commitTransaction", session=sessions[1], **terms)["ok"] == 1
    terms = begin(102)
    with pytest.raises(OperationFailure) as unknown:
        other.admin.command("commitTransaction", session=sessions[1], **terms)
    assert unknown.value.code == 251 and unknown.value.has_error_label("TransientTransactionError")
    with pytest.raises(OperationFailure) as ended:
        one.admin.command("commitTransaction", session=sessions[0], **terms)
    assert ended.value.code in (112, 251), ended.value.details
    assert one.test.c.find_one()["n"] == 1


def test_expired_documents_are_removed_by_one_server_and_by_the_next_one_when_it_is_gone(tmp_path):
    pair = Pair(tmp_path, "--test-commands", "on")
    clients = pair.clients()
    for client in clients:
        client.admin.command("setParameter", 1, ttlMonitorSleepSecs=1)
    clients[0].test.c.create_index("at", expireAfterSeconds=0)

    def expires():
        clients[1].test.c.insert_one({"at": datetime.datetime(2020, 1, 1)})
        return lambda: clients[1].test.c.count_documents({}) == 0

    eventually("it is removed", expires(), 30)
    removed = [client.admin.command("serverStatus")["metrics"]["ttl"] for client in clients]
    assert removed[0]["deletedDocuments"] == 1 and removed[1]["deletedDocuments"] == 0, removed
    assert removed[1]["passes"] == 0, removed
    assert pair.servers[0].terminate() == 0
    eventually("it is removed by the other", expires(), 30)
    end(pair)


def test_users_and_roles_of_one_server_are_those_of_both(tmp_path):
    pair = Pair(tmp_path, "--auth")
    one, other = pair.servers
    with one.client() as client:
        client.admin.command("createUser", "root", pwd="secret", roles=["root"])
    with one.client(username="root", password="secret") as root:
        root.test.command("createUser", "ada", pwd="secret", roles=["read"])
        root.test.c.insert_one({"_id": 1})
        with other.client(username="ada", password="secret", authSource="test") as ada:
            eventually("the collection is there", lambda: ada.test.c.find_one() == {"_id": 1})
            with pytest.raises(OperationFailure) as refused:
                ada.test.c.insert_one({"_id": 2})
            assert refused.value.code == 13
            root.test.command("grantRolesToUser", "ada", roles=["readWrite"])
            eventually("it may write", lambda: may_write(ada))
            root.test.command("dropUser", "ada")
            eventually("it may not any more", lambda: not may_write(ada))
    end(pair)


def may_write(client):
    try:
        client.test.c.insert_one({})
        return True
    except OperationFailure as error:
        assert error.code in (13, 11, 18), error
        return False
