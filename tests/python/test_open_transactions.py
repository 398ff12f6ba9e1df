"""Expiry, backups and writing pipelines beside a transaction that stays open."""

import datetime
import json
import subprocess
import threading

import pytest
from pymongo.errors import OperationFailure, PyMongoError

from server import PANDO, Server
from test_expiry import PAST, FUTURE, figures, ids, quick, wait_for, wait_for_passes  # noqa: F401
from test_transactions import CONFLICT, TRANSIENT, assert_sound, refused


def run(*arguments):
    return subprocess.run([PANDO, *map(str, arguments)], capture_output=True, text=True, timeout=120)


# ---- expiry


@pytest.mark.needs("one server")
def test_a_transaction_keeps_seeing_what_has_expired_and_loses_a_write_to_it(quick, db):
    db.c.insert_many([{"_id": 1, "at": PAST}, {"_id": 2, "at": FUTURE}])
    with quick.start_session() as session:
        session.start_transaction()
        assert db.c.count_documents({}, session=session) == 2
        db.c.create_index("at", expireAfterSeconds=0)
        wait_for(lambda: ids(db.c) == [2])
        assert [found["_id"] for found in db.c.find(session=session).sort("_id")] == [1, 2]
        refused(lambda: db.c.update_one({"_id": 1}, {"$set": {"at": FUTURE}}, session=session), CONFLICT, TRANSIENT)
        session.abort_transaction()
    assert ids(db.c) == [2]
    assert_sound(db)


@pytest.mark.needs("one server")
def test_a_document_that_a_transaction_holds_expires_after_it(quick, db):
    db.held.insert_many([{"_id": at, "at": PAST} for at in range(5)])
    db.other.insert_many([{"_id": at, "at": PAST} for at in range(5)])
    with quick.start_session() as session:
        session.start_transaction()
        db.held.update_one({"_id": 2}, {"$set": {"n": 1}}, session=session)
        db.held.update_one({"_id": 3}, {"$set": {"at": FUTURE}}, session=session)
        db.held.create_index("n")
        db.held.create_index("at", expireAfterSeconds=0)
        db.other.create_index("at", expireAfterSeconds=0)
        # The collection beside it does not wait for the transaction.
        wait_for(lambda: ids(db.other) == [])
        session.abort_transaction()
        wait_for(lambda: ids(db.held) == [])
    assert_sound(db)


@pytest.mark.needs("one server")
def test_a_date_that_a_transaction_moves_saves_its_document(quick, db):
    # The index comes after the monitor has stopped, so that no pass under way knows it.
    quick.admin.command("setParameter", 1, ttlMonitorEnabled=False)
    db.c.insert_many([{"_id": at, "at": PAST} for at in range(3)])
    db.c.create_index("at", expireAfterSeconds=0)
    with quick.start_session() as session:
        session.start_transaction()
        db.c.update_one({"_id": 1}, {"$set": {"at": FUTURE}}, session=session)
        quick.admin.command("setParameter", 1, ttlMonitorEnabled=True)
        wait_for(lambda: ids(db.c) == [1])
        session.commit_transaction()
    wait_for_passes(quick)
    assert ids(db.c) == [1]
    assert_sound(db)


# ---- backups


def test_a_backup_has_what_is_committed_and_no_part_of_an_open_transaction(tmp_path):
    server = Server(tmp_path / "data").start()
    try:
        with server.client() as client, client.start_session() as session:
            db = client.test
            db.c.insert_many([{"_id": at, "n": 0} for at in range(100)])
            db.c.create_index("n")
            session.start_transaction()
            db.c.update_many({"_id": {"$lt": 50}}, {"$set": {"n": 1}}, session=session)
            db.c.insert_one({"_id": 1000, "n": 1}, session=session)
            db.made.insert_one({"_id": 1}, session=session)
            made = run("backup", "--uri", server.uri, "--to", tmp_path / "backup", "--json")
            assert made.returncode == 0, made.stderr
            assert json.loads(made.stdout)["extent"] == "full"
            session.commit_transaction()
            assert db.c.count_documents({"n": 1}) == 51
        assert server.stop() == 0, server.log()
        restored = run("restore", tmp_path / "backup", "--to", tmp_path / "restored")
        assert restored.returncode == 0, restored.stderr
        again = Server(tmp_path / "restored").start()
        with again.client() as client:
            assert client.test.list_collection_names() == ["c"]
            assert list(client.test.c.find().sort("_id")) == [{"_id": at, "n": 0} for at in range(100)]
            assert client.test.c.count_documents({"n": 1}) == 0
            assert_sound(client.test)
        assert again.stop() == 0, again.log()
    finally:
        if server.is_running():
            server.kill()


def test_a_backup_beside_transfers_has_each_of_them_whole_or_not_at_all(tmp_path):
    server = Server(tmp_path / "data").start()
    ended, failures = threading.Event(), []

    def transfer(seed):
        try:
            with server.client() as client, client.start_session() as session:
                accounts, log, at = client.test.accounts, client.test.log, 0
                while not ended.is_set():
                    at += 1

                    def once(session, at=at):
                        accounts.update_one({"_id": (at * 7 + seed) % 20}, {"$inc": {"sum": -5}}, session=session)
                        log.insert_one({"seed": seed, "at": at}, session=session)
                        accounts.update_one({"_id": (at * 11 + seed + 1) % 20}, {"$inc": {"sum": 5}}, session=session)

                    session.with_transaction(once)
        except PyMongoError as failure:
            failures.append(failure)

    try:
        with server.client() as client:
            client.test.accounts.insert_many([{"_id": at, "sum": 100} for at in range(20)])
            client.test.log.create_index([("seed", 1), ("at", 1)], unique=True)
            clients = [threading.Thread(target=transfer, args=(seed,)) for seed in range(4)]
            for one in clients:
                one.start()
            wait_for(lambda: client.test.log.estimated_document_count() > 50)
            backups = [tmp_path / f"backup{number}" for number in range(3)]
            for folder in backups:
                made = run("backup", "--uri", server.uri, "--to", folder, "--json")
                assert made.returncode == 0, made.stderr
            ended.set()
            for one in clients:
                one.join()
            assert not failures
            transfers = client.test.log.count_documents({})
        assert server.stop() == 0, server.log()
    finally:
        ended.set()
        if server.is_running():
            server.kill()
    counts = []
    for number, folder in enumerate(backups):
        restored = run("restore", folder, "--to", tmp_path / f"restored{number}")
        assert restored.returncode == 0, restored.stderr
        again = Server(tmp_path / f"restored{number}").start()
        with again.client() as client:
            assert sum(account["sum"] for account in client.test.accounts.find()) == 2000
            # The transfers of each client are a prefix of its own.
            for seed in range(4):
                numbers = [entry["at"] for entry in client.test.log.find({"seed": seed}).sort("at")]
                assert numbers == list(range(1, len(numbers) + 1))
            assert_sound(client.test)
            counts.append(client.test.log.count_documents({}))
        assert again.stop() == 0, again.log()
    assert 0 < counts[0] <= counts[1] <= counts[2] <= transfers


# ---- pipelines


@pytest.mark.needs("one server")
def test_pipelines_of_a_transaction_see_its_writes_and_its_snapshot(client, db):
    db.c.insert_many([{"_id": at, "k": at % 3} for at in range(9)])
    db.names.insert_many([{"_id": at, "name": f"n{at}"} for at in range(3)])
    with client.start_session() as session, session.start_transaction():
        db.c.insert_one({"_id": 100, "k": 2}, session=session)
        db.names.update_one({"_id": 2}, {"$set": {"name": "mine"}}, session=session)
        db.c.insert_one({"_id": 200, "k": 1})
        db.names.delete_one({"_id": 1})
        joined = [
            {"$group": {"_id": "$k", "n": {"$sum": 1}}},
            {"$lookup": {"from": "names", "localField": "_id", "foreignField": "_id", "as": "of"}},
            {"$set": {"of": "$of.name"}},
            {"$sort": {"_id": 1}},
        ]
        seen = list(db.c.aggregate(joined, session=session))
        assert seen == [{"_id": 0, "n": 3, "of": ["n0"]}, {"_id": 1, "n": 3, "of": ["n1"]}, {"_id": 2, "n": 4, "of": ["mine"]}]
        both = list(db.c.aggregate([{"$match": {"_id": {"$gte": 100}}}, {"$unionWith": "names"}], session=session))
        assert len(both) == 4
    assert db.c.count_documents({}) == 11


CHANGES_OF_NAMES = {
    "rename": lambda db: db.a.rename("moved"),
    "drop": lambda db: db.a.drop(),
    "drop of the database": lambda db: db.client.drop_database(db.name),
}
WRITES = {
    "update": lambda a, session: a.update_one({"_id": 1}, {"$inc": {"sum": -5}}, session=session),
    "delete": lambda a, session: a.delete_one({"_id": 1}, session=session),
    "find and modify": lambda a, session: a.find_one_and_update({"_id": 1}, {"$inc": {"sum": -5}}, session=session),
    "insert": lambda a, session: a.insert_one({"_id": 2}, session=session),
}


@pytest.mark.parametrize("change", CHANGES_OF_NAMES.values(), ids=CHANGES_OF_NAMES)
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_transaction_whose_collection_goes_writes_no_half_of_its_work(client, db, write, change):
    db.a.insert_one({"_id": 1, "sum": 100})
    db.b.insert_one({"_id": 1, "sum": 0})
    with client.start_session() as session:
        session.start_transaction()
        assert db.a.find_one(session=session)["sum"] == 100
        change(db)
        assert db.a.find_one(session=session)["sum"] == 100
        refused(lambda: write(db.a, session), CONFLICT, TRANSIENT)
        session.abort_transaction()
    moved = list(db.moved.find())
    assert moved in ([], [{"_id": 1, "sum": 100}]) and db.b.count_documents({"sum": {"$ne": 0}}) == 0


@pytest.mark.parametrize("stage", [{"$out": "target"}, {"$merge": {"into": "target"}}], ids=["out", "merge"])
def test_a_pipeline_that_writes_is_not_stopped_by_a_reader_nor_seen_by_it(client, db, stage):
    db.c.insert_many([{"_id": at, "n": at} for at in range(10)])
    db.target.insert_many([{"_id": at, "old": True} for at in range(5)])
    with client.start_session() as session:
        session.start_transaction()
        assert db.target.count_documents({}, session=session) == 5
        db.c.aggregate([stage], maxTimeMS=20_000)
        assert db.target.count_documents({"n": {"$exists": True}}) == 10
        try:
            assert list(db.target.find({}, {"old": 1, "n": 1}, session=session).sort("_id")) == [{"_id": at, "old": True} for at in range(5)]
            session.commit_transaction()
        except OperationFailure as failure:
            # A replaced collection is another one.
            assert "$out" in stage and failure.has_error_label(TRANSIENT), failure
        session.start_transaction()
        db.target.update_one({"_id": 1}, {"$set": {"mine": True}}, session=session)
        refused(lambda: db.c.aggregate([stage], session=session), 263)
    assert_sound(db)


@pytest.mark.needs("one server")
def test_a_pipeline_that_merges_waits_for_the_document_of_a_transaction(client, db):
    db.c.insert_many([{"_id": at, "n": at} for at in range(10)])
    db.target.insert_one({"_id": 3, "mine": 0})
    outcome = []
    with client.start_session() as session:
        session.start_transaction()
        db.target.update_one({"_id": 3}, {"$inc": {"mine": 1}}, session=session)
        merging = threading.Thread(target=lambda: outcome.append(db.c.aggregate([{"$merge": "target"}], maxTimeMS=30_000)))
        merging.start()
        merging.join(0.5)
        assert merging.is_alive()
        session.commit_transaction()
    merging.join()
    assert outcome and db.target.find_one({"_id": 3}) == {"_id": 3, "mine": 1, "n": 3}
    assert db.target.count_documents({}) == 10
    assert_sound(db)
