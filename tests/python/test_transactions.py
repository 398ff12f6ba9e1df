"""Transactions over sessions, and retryable writes: what a client sees of them, beside DDL, index builds and kill -9."""

import itertools
import random
import threading
import time
import uuid

import pytest
from bson import Binary, Int64
from pymongo import ReadPreference, WriteConcern
from pymongo.errors import DuplicateKeyError, OperationFailure, PyMongoError
from pymongo.read_concern import ReadConcern

from raw_connection import Raw
from server import Server

CONFLICT, ABORTED, TOO_OLD = 112, 251, 225
TRANSIENT = "TransientTransactionError"


def lsid():
    return {"id": Binary(uuid.uuid4().bytes, 4)}


def refused(call, code, label=None):
    with pytest.raises(OperationFailure) as failure:
        call()
    assert failure.value.code == code, failure.value
    assert label is None or failure.value.has_error_label(label), failure.value
    return failure.value


def assert_sound(db):
    """Documents, index entries and counters agree."""
    for name in db.list_collection_names():
        report = db.command("validate", name)
        assert report["valid"] and not report["errors"], report


def test_a_transaction_is_seen_as_a_whole_or_not_at_all(client, db):
    db.a.insert_one({"_id": 1, "n": 0})
    db.create_collection("b")

    def move(session):
        db.a.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)
        db.b.insert_many([{"_id": at} for at in range(3)], session=session)
        assert db.a.find_one({"_id": 1}, session=session) == {"_id": 1, "n": 1}
        assert db.b.count_documents({}, session=session) == 3
        assert db.b.distinct("_id", session=session) == [0, 1, 2]
        assert db.a.find_one() == {"_id": 1, "n": 0} and db.b.count_documents({}) == 0
        return "moved"

    with client.start_session() as session:
        assert session.with_transaction(move) == "moved"
    assert db.a.find_one() == {"_id": 1, "n": 1} and db.b.count_documents({}) == 3
    with client.start_session() as session, session.start_transaction():
        db.a.delete_many({}, session=session)
        assert db.a.find_one_and_delete({"_id": 1}, session=session) is None
        session.abort_transaction()
    assert db.a.count_documents({}) == 1
    assert_sound(db)


def test_reads_keep_the_snapshot_of_the_first_statement(client, db):
    db.c.insert_many([{"_id": at, "n": 0} for at in range(500)])
    db.c.create_index("n")
    with client.start_session() as session:
        session.start_transaction(ReadConcern("snapshot"), WriteConcern("majority"), ReadPreference.PRIMARY)
        cursor = db.c.find({}, session=session, batch_size=10)
        assert next(cursor)["n"] == 0
        db.c.update_many({}, {"$set": {"n": 1}})
        db.c.delete_one({"_id": 499})
        db.c.insert_one({"_id": 1000, "n": 0})
        assert [found["n"] for found in cursor] == [0] * 499
        assert db.c.count_documents({"n": 0}, session=session) == 500
        [joined] = db.c.aggregate([{"$match": {"_id": 7}}, {"$lookup": {"from": "c", "localField": "_id", "foreignField": "_id", "as": "self"}}],
                                  session=session)
        assert joined["self"] == [{"_id": 7, "n": 0}]
        assert db.c.find_one({"_id": 1000}, session=session) is None
        session.commit_transaction()
        session.commit_transaction()  # again
    assert db.c.count_documents({"n": 0}) == 1


def test_a_lookup_sees_the_writes_of_its_transaction(client, db):
    db.a.insert_one({"_id": 1})
    db.create_collection("b")
    with client.start_session() as session, session.start_transaction():
        db.b.insert_one({"_id": 1, "x": 5}, session=session)
        stage = {"$lookup": {"from": "b", "localField": "_id", "foreignField": "_id", "as": "b"}}
        assert list(db.a.aggregate([stage], session=session)) == [{"_id": 1, "b": [{"_id": 1, "x": 5}]}]
        assert list(db.a.aggregate([stage])) == [{"_id": 1, "b": []}]


@pytest.mark.needs("one server")
def test_the_first_updater_wins_and_the_loser_is_told_to_try_again(client, db):
    db.c.insert_many([{"_id": 1, "n": 0}, {"_id": 2, "n": 0}])
    with client.start_session() as first, client.start_session() as second:
        first.start_transaction()
        second.start_transaction()
        db.c.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=first)
        db.c.update_one({"_id": 2}, {"$inc": {"n": 1}}, session=second)
        refused(lambda: db.c.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=second), CONFLICT, TRANSIENT)
        refused(second.commit_transaction, ABORTED, TRANSIENT)
        first.commit_transaction()
        # A commit after the snapshot conflicts as well.
        second.start_transaction()
        db.c.find_one({"_id": 2}, session=second)
        db.c.update_one({"_id": 2}, {"$inc": {"n": 10}})
        refused(lambda: db.c.find_one_and_update({"_id": 2}, {"$inc": {"n": 1}}, session=second), CONFLICT, TRANSIENT)
    assert list(db.c.find()) == [{"_id": 1, "n": 1}, {"_id": 2, "n": 10}]


def test_a_failed_statement_ends_its_transaction(client, db):
    db.c.insert_one({"_id": 1})
    with client.start_session() as session:
        session.start_transaction()
        db.c.insert_one({"_id": 2}, session=session)
        with pytest.raises(DuplicateKeyError):
            db.c.insert_one({"_id": 1}, session=session)
        refused(lambda: db.c.find_one({}, session=session), ABORTED, TRANSIENT)
        session.abort_transaction()
    assert db.c.count_documents({}) == 1


@pytest.mark.needs("one server")
def test_a_statement_outside_waits_for_an_open_transaction(client, db):
    db.c.insert_one({"_id": 1, "n": 0})
    with client.start_session() as session:
        session.start_transaction()
        db.c.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)
        refused(lambda: db.command("update", "c", updates=[{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}], maxTimeMS=200), 50)
        writer = threading.Thread(target=lambda: db.c.update_one({"_id": 1}, {"$inc": {"n": 1}}))
        writer.start()
        time.sleep(0.2)
        assert writer.is_alive()
        session.commit_transaction()
        writer.join(timeout=20)
    assert db.c.find_one() == {"_id": 1, "n": 2}


def test_collections_and_indexes_come_with_the_commit(client, db):
    db.c.insert_one({"_id": 1})
    with client.start_session() as session:
        session.start_transaction()
        db.create_collection("made", session=session)
        db.made.create_index("u", unique=True, session=session)
        db.made.insert_one({"u": 1}, session=session)
        db.implicit.insert_one({"_id": 1}, session=session)
        assert db.list_collection_names() == ["c"]
        session.commit_transaction()
        assert sorted(db.list_collection_names()) == ["c", "implicit", "made"]
        assert sorted(db.made.index_information()) == ["_id_", "u_1"]
        with pytest.raises(DuplicateKeyError):
            db.made.insert_one({"u": 1})
        session.start_transaction()
        db.gone.insert_one({"_id": 1}, session=session)
        session.abort_transaction()
        assert "gone" not in db.list_collection_names()
        session.start_transaction()
        refused(lambda: db.c.create_index("x", session=session), 263)
        session.abort_transaction()
        # Two transactions that create one name: the second to commit is too late.
        with client.start_session() as other:
            session.start_transaction()
            other.start_transaction()
            db.both.insert_one({"_id": 1}, session=session)
            db.both.insert_one({"_id": 2}, session=other)
            other.commit_transaction()
            refused(session.commit_transaction, CONFLICT, TRANSIENT)
    assert list(db.both.find()) == [{"_id": 2}]
    assert_sound(db)


def test_ddl_does_not_wait_for_an_open_transaction(client, db):
    db.c.insert_many([{"_id": at, "k": at} for at in range(100)])
    db.d.insert_one({"_id": 1})
    with client.start_session() as session:
        session.start_transaction()
        db.c.insert_one({"_id": 1000, "k": 1000}, session=session)
        db.command("createIndexes", "c", indexes=[{"key": {"k": 1}, "name": "k", "unique": True}], maxTimeMS=10_000)
        refused(lambda: db.c.insert_one({"_id": 1001, "k": 5}, session=session), CONFLICT, TRANSIENT)
        session.abort_transaction()
        session.start_transaction()
        db.c.insert_one({"_id": 1000, "k": 1000}, session=session)
        assert db.c.count_documents({"k": {"$gte": 99}}, session=session) == 2
        db.c.drop_index("k")
        refused(session.commit_transaction, CONFLICT, TRANSIENT)
        session.start_transaction()
        db.c.insert_one({"_id": 1000, "k": 1000}, session=session)
        db.d.find_one(session=session)
        db.d.drop()
        db.c.drop()
        refused(session.commit_transaction, CONFLICT, TRANSIENT)
    assert db.list_collection_names() == []


def test_transactions_beside_index_builds_lose_no_entry(client, db):
    db.c.insert_many([{"_id": at, "k": at % 50, "u": at} for at in range(3_000)])
    ended, commits, surprises = threading.Event(), itertools.count(), []

    def write(seed):
        chance = random.Random(seed)
        with client.start_session() as session:
            while not ended.is_set():
                def some(session):
                    for _ in range(3):
                        at = chance.randrange(3_000) * 4 + seed
                        db.c.update_one({"_id": at}, {"$set": {"k": chance.randrange(50), "u": at, "a": [1, at]}}, upsert=True, session=session)
                        if chance.random() < 0.3:
                            db.c.delete_one({"_id": chance.randrange(3_000)}, session=session)
                try:
                    session.with_transaction(some)
                    next(commits)
                except PyMongoError as error:
                    surprises.append(error)
                    return

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(3)]
    for writer in writers:
        writer.start()
    for _ in range(4):
        db.c.create_index("k")
        db.c.create_index("a")
        db.c.create_index("u", unique=True)
        time.sleep(0.1)
        db.c.drop_indexes()
    db.c.create_index([("k", 1), ("a", -1)])
    ended.set()
    for writer in writers:
        writer.join()
    assert not surprises and next(commits) > 10
    assert_sound(db)
    db.c.create_index("k")
    assert_sound(db)


@pytest.mark.needs("one server")
def test_a_transaction_ends_with_its_time_limit_and_with_its_session(server, client, db):
    db.c.insert_one({"_id": 1, "n": 0})
    was = client.admin.command("setParameter", 1, transactionLifetimeLimitSeconds=1)["was"]
    assert was == 60 and client.admin.command("getParameter", 1, transactionLifetimeLimitSeconds=1)["transactionLifetimeLimitSeconds"] == 1
    try:
        with client.start_session() as session:
            session.start_transaction()
            db.c.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)
            db.c.update_one({"_id": 1}, {"$inc": {"n": 10}})  # waits for the end of the other
            refused(lambda: db.c.find_one({}, session=session), ABORTED, TRANSIENT)
            session.abort_transaction()
    finally:
        client.admin.command("setParameter", 1, transactionLifetimeLimitSeconds=60)
    with Raw(server.port) as raw:
        for end in ("endSessions", "killSessions"):
            transaction = {"lsid": lsid(), "txnNumber": Int64(1), "autocommit": False}
            update = {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 100}}}], "startTransaction": True}
            raw.command(db.name, {**update, **transaction})
            raw.command("admin", {end: [transaction["lsid"]]})
            refused(lambda: raw.command("admin", {"commitTransaction": 1, **transaction}), ABORTED, TRANSIENT)
    assert db.c.find_one() == {"_id": 1, "n": 10}


@pytest.mark.needs("one server")
def test_status_and_current_operations_show_transactions(client, db):
    db.c.insert_one({"_id": 1})
    figures = lambda: client.admin.command("serverStatus")["transactions"]
    before = figures()
    with client.start_session() as session:
        session.start_transaction()
        db.c.update_one({"_id": 1}, {"$set": {"a": 1}}, session=session)
        during = figures()
        assert during["totalStarted"] == before["totalStarted"] + 1 and during["currentOpen"] == before["currentOpen"] + 1
        listed = [found for found in client.admin.aggregate([{"$currentOp": {"idleSessions": True}}]) if found["type"] == "idleSession"]
        [found] = [found for found in listed if found["lsid"]["id"] == session.session_id["id"]]
        assert found["transaction"]["parameters"]["txnNumber"] >= 1 and found["transaction"]["timeOpenMicros"] > 0
        session.commit_transaction()
    after = figures()
    assert after["totalCommitted"] == before["totalCommitted"] + 1 and after["currentOpen"] == before["currentOpen"]


def test_a_large_update_is_one_transaction(client, db):
    db.c.insert_many([{"_id": at, "n": 0} for at in range(25_000)])
    with client.start_session() as session:
        session.start_transaction()
        assert db.c.update_many({}, {"$inc": {"n": 1}}, session=session).modified_count == 25_000
        assert db.c.count_documents({"n": 1}) == 0 and db.c.count_documents({"n": 1}, session=session) == 25_000
        session.commit_transaction()
        session.start_transaction()
        assert db.c.delete_many({"n": 1}, session=session).deleted_count == 25_000
        session.abort_transaction()
    assert db.c.count_documents({"n": 1}) == 25_000


@pytest.fixture
def raw(server):
    with Raw(server.port) as raw:
        yield raw


def write(raw, database, request, id_, number):
    return raw.command(database, {**request, "lsid": id_, "txnNumber": Int64(number)})


WRITES = [
    ({"insert": "c", "documents": [{"_id": "a"}, {"_id": "b"}]}, {"n": 2}),
    ({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}, {"q": {"_id": "up"}, "u": {"$set": {"x": 1}}, "upsert": True}]},
     {"n": 2, "nModified": 1, "upserted": [{"index": 1, "_id": "up"}]}),
    ({"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 1}]}, {"n": 1}),
    ({"findAndModify": "c", "query": {"_id": 3}, "update": {"$inc": {"n": 1}}}, {"value": {"_id": 3, "n": 0}}),
    ({"findAndModify": "c", "query": {"_id": 3}, "update": {"$inc": {"n": 1}}, "new": True, "fields": {"n": 1, "_id": 0}}, {"value": {"n": 2}}),
    ({"findAndModify": "c", "query": {"_id": 4}, "remove": True}, {"value": {"_id": 4, "n": 0}}),
    ({"findAndModify": "c", "query": {"_id": "new"}, "update": {"$set": {"n": 9}}, "upsert": True, "new": True}, {"value": {"_id": "new", "n": 9}}),
]


def same_answer(first, again):
    assert "retriedStmtId" in again or "retriedStmtIds" in again, again
    for name in ("n", "nModified", "upserted", "value", "lastErrorObject"):
        assert first.get(name) == again.get(name), (first, again)


def test_a_repeated_write_is_carried_out_once(raw, db):
    db.c.insert_many([{"_id": at, "n": 0} for at in range(10)])
    id_ = lsid()
    for number, (request, expected) in enumerate(WRITES):
        first = write(raw, db.name, request, id_, number)
        content = list(db.c.find().sort("_id"))
        assert {name: first[name] for name in expected} == expected
        same_answer(first, write(raw, db.name, request, id_, number))
        assert list(db.c.find().sort("_id")) == content
        if number:
            refused(lambda: write(raw, db.name, request, id_, number - 1), TOO_OLD)
    assert_sound(db)


def test_only_the_statements_that_have_not_run_are_carried_out(raw, db):
    id_, documents = lsid(), [{"_id": at} for at in range(3000)]
    assert write(raw, db.name, {"insert": "c", "documents": documents[:2000]}, id_, 1)["n"] == 2000
    again = write(raw, db.name, {"insert": "c", "documents": documents}, id_, 1)
    assert again["n"] == 3000 and again["retriedStmtIds"] == list(range(2000)) and db.c.count_documents({}) == 3000
    refused(lambda: write(raw, db.name, {"update": "c", "updates": []}, id_, 2), 16)
    for request in ({"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}, "multi": True}]}, {"delete": "c", "deletes": [{"q": {}, "limit": 0}]}):
        reply = raw.ask(db.name, {**request, "lsid": lsid(), "txnNumber": Int64(1)})
        assert reply["writeErrors"][0]["code"] == 72 and reply["n"] == 0, reply
    assert db.c.count_documents({}) == 3000


def test_config_transactions_has_a_record_of_each_session(raw, client, db):
    id_ = lsid()
    write(raw, db.name, {"insert": "c", "documents": [{"_id": 1}]}, id_, 7)
    records = client.config.transactions
    record = records.find_one({"_id.id": id_["id"]})
    assert record["txnNum"] == 7 and "lastWriteDate" in record
    assert records.count_documents({"_id.id": id_["id"]}) == 1 and client.config.command("count", "transactions")["n"] >= 1
    refused(lambda: records.insert_one({"_id": 1}), 73)
    transaction = {"lsid": id_, "txnNumber": Int64(8), "autocommit": False}
    raw.command(db.name, {"insert": "c", "documents": [{"_id": 2}], "startTransaction": True, **transaction})
    raw.command("admin", {"commitTransaction": 1, **transaction})
    assert records.find_one({"_id.id": id_["id"]})["state"] == "committed"


def test_after_kill_9_a_repeated_write_or_commit_gives_the_stored_answer(tmp_path):
    server = Server(tmp_path / "data").start()
    id_, replies = lsid(), []
    try:
        with server.client() as client:
            client.d.c.insert_many([{"_id": at, "n": 0} for at in range(10)])
        for number, (request, _) in enumerate(WRITES):
            with Raw(server.port) as raw:
                replies.append(write(raw, "d", request, id_, number))
            server.kill()
            server.start()
            with Raw(server.port) as raw:
                same_answer(replies[-1], write(raw, "d", request, id_, number))
        transaction = {"lsid": id_, "txnNumber": Int64(100), "autocommit": False}
        open_ = {"lsid": lsid(), "txnNumber": Int64(1), "autocommit": False}
        commit = {"commitTransaction": 1, **transaction}
        with Raw(server.port) as raw:
            raw.command("d", {"insert": "c", "documents": [{"_id": "t"}], "startTransaction": True, **transaction})
            raw.command("admin", commit)
            raw.command("d", {"insert": "c", "documents": [{"_id": "lost"}], "startTransaction": True, **open_})
        server.kill()
        server.start()
        with Raw(server.port) as raw:
            raw.command("admin", commit)
            raw.command("admin", {**commit, "writeConcern": {"w": "majority"}})
            refused(lambda: raw.command("admin", {"abortTransaction": 1, **transaction}), 256)
            refused(lambda: raw.command("admin", {"commitTransaction": 1, **open_}), ABORTED, TRANSIENT)
        with server.client() as client:
            assert client.d.c.count_documents({"_id": "t"}) == 1 and client.d.c.count_documents({"_id": "lost"}) == 0
            assert_sound(client.d)
    finally:
        if server.is_running():
            server.kill()


ACCOUNTS = 20


def test_the_sum_of_a_bank_always_holds(server, client, db):
    db.accounts.insert_many([{"_id": at, "balance": 100, "tags": [at]} for at in range(ACCOUNTS)])
    db.accounts.create_index("balance")
    db.accounts.create_index("tags")
    deadline, surprises, moves = time.monotonic() + 4, [], itertools.count()

    def move(seed):
        chance = random.Random(seed)
        with server.client() as own, own.start_session() as session:
            accounts, log = own[db.name].accounts, own[db.name].log

            def transfer(session):
                source, target = chance.sample(range(ACCOUNTS), 2)
                amount = chance.randrange(1, 20)
                found = accounts.find_one_and_update({"_id": source, "balance": {"$gte": amount}}, {"$inc": {"balance": -amount}}, session=session)
                if found is None:
                    return
                accounts.update_one({"_id": target}, {"$inc": {"balance": amount}, "$set": {"tags": [target, amount]}}, session=session)
                log.insert_one({"amount": amount}, session=session)

            while time.monotonic() < deadline:
                try:
                    session.with_transaction(transfer)
                    next(moves)
                except PyMongoError as error:
                    surprises.append(error)
                    return

    def audit():
        with server.client() as own, own.start_session() as session:
            accounts = own[db.name].accounts
            while time.monotonic() < deadline:
                with session.start_transaction():
                    total = sum(found["balance"] for found in accounts.find({}, session=session, batch_size=3))
                    [by_group] = accounts.aggregate([{"$group": {"_id": None, "sum": {"$sum": "$balance"}}}], session=session)
                    by_index = sum(found["balance"] for found in accounts.find({"balance": {"$gte": 0}}, session=session).sort("balance", 1))
                if not total == by_group["sum"] == by_index == 100 * ACCOUNTS:
                    surprises.append((total, by_group, by_index))
                    return

    threads = [threading.Thread(target=move, args=(seed,)) for seed in range(6)] + [threading.Thread(target=audit)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not surprises, surprises[0]
    assert next(moves) > 20
    assert sum(found["balance"] for found in db.accounts.find()) == 100 * ACCOUNTS
    assert all(found["balance"] >= 0 for found in db.accounts.find())
    assert_sound(db)


def test_writes_that_are_repeated_over_kill_9_count_once(tmp_path):
    """Each writer sends its increment until it is answered. The counter is the number of answers, never more or less."""
    server = Server(tmp_path / "data").start()
    rounds, writers, stop = 4, 4, threading.Event()
    answered, surprises = [0] * writers, []

    def answer(request):
        while True:
            try:
                with Raw(server.port) as raw:
                    return raw.ask("d", request)
            except (OSError, AssertionError):
                time.sleep(0.02)  # killed meanwhile: the same request again

    def count(writer):
        id_ = lsid()
        for number in itertools.count(1):
            if stop.is_set():
                return
            reply = answer({"update": "c", "updates": [{"q": {"_id": writer}, "u": {"$inc": {"n": 1}}, "upsert": True}],
                            "lsid": id_, "txnNumber": Int64(number), "writeConcern": {"w": 1, "j": number % 2 == 0}})
            if reply.get("n") != 1:
                surprises.append(reply)
                return
            answered[writer] += 1

    threads = [threading.Thread(target=count, args=(writer,)) for writer in range(writers)]
    try:
        for thread in threads:
            thread.start()
        for _ in range(rounds):
            time.sleep(random.uniform(0.2, 0.6))
            server.kill()
            server.start()
        time.sleep(0.3)
        stop.set()
        for thread in threads:
            thread.join()
        assert not surprises, surprises
        with server.client() as client:
            assert {found["_id"]: found["n"] for found in client.d.c.find()} == dict(enumerate(answered))
            assert_sound(client.d)
    finally:
        stop.set()
        if server.is_running():
            server.kill()
