"""Waits for keys that another transaction has claimed: their order, their ends, and what a client sees of them."""

import threading
import time
import uuid

import pytest
from bson import Binary, Int64
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from raw_connection import Raw
from server import Server

pytestmark = pytest.mark.needs("one server")

CONFLICT, TIME_OVER, INTERRUPTED, NO_SUCH_TRANSACTION = 112, 50, 11601, 251
WAIT = "maxTransactionLockRequestTimeoutMillis"
CLIENTS = 32
# The age of a transaction when a limit ends it, and by which another one is younger.
OLDER_SECONDS = 10


def figures(client):
    return client.admin.command("serverStatus")["metrics"]["intentWaits"]


def waiting(client, collection=None):
    found = client.admin.aggregate([{"$currentOp": {}}, {"$match": {"waitingFor": "intent"}}])
    return [one for one in found if collection is None or one["ns"] == collection.full_name]


def until(found, seconds=30):
    end = time.monotonic() + seconds
    while not (got := found()):
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.002)
    return got


def at_once(calls):
    """Runs all calls at the same time, and gives their outcomes or errors."""
    outcomes = [None] * len(calls)

    def run(at):
        try:
            outcomes[at] = calls[at]()
        except OperationFailure as error:
            outcomes[at] = error

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(calls))]
    for thread in threads:
        thread.start()
    return threads, outcomes


def join(threads):
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a client does not end"


@pytest.fixture
def short_wait(client):
    """Sets the wait of statements in transactions, and puts it back."""
    was = client.admin.command("getParameter", 1, **{WAIT: 1})[WAIT]
    yield lambda milliseconds: client.admin.command("setParameter", 1, **{WAIT: milliseconds})
    client.admin.command("setParameter", 1, **{WAIT: was})


@pytest.fixture
def held(client, db):
    """A document that an open transaction has updated, and its session."""
    db.c.insert_many([{"_id": 1, "n": 0}, {"_id": 2, "n": 0}])
    with client.start_session() as session:
        session.start_transaction()
        db.c.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)
        yield session
        if session.in_transaction:
            session.abort_transaction()
    until(lambda: not waiting(client, db.c))


@pytest.mark.parametrize("milliseconds", [5, 2000])
def test_clients_that_increment_one_counter_in_transactions_all_end(server, client, db, short_wait, milliseconds):
    short_wait(milliseconds)
    db.c.insert_one({"_id": 1, "n": 0})
    rounds = 5

    def increment():
        with MongoClient(port=server.port, directConnection=True) as own, own.start_session() as session:
            collection = own[db.name].c
            for _ in range(rounds):
                session.with_transaction(
                    lambda session: collection.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session))

    threads, outcomes = at_once([increment] * CLIENTS)
    join(threads)
    assert outcomes == [None] * CLIENTS
    assert db.c.find_one()["n"] == CLIENTS * rounds
    assert figures(client)["waits"] > 0 and figures(client)["waiting"] == 0


def test_with_enough_time_no_transaction_on_one_counter_has_to_be_repeated(server, client, db, short_wait):
    short_wait(30_000)
    db.c.insert_one({"_id": 1, "n": 0})

    def increment():
        with MongoClient(port=server.port, directConnection=True) as own, own.start_session() as session:
            for _ in range(5):
                session.start_transaction()
                own[db.name].c.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)
                session.commit_transaction()

    threads, outcomes = at_once([increment] * CLIENTS)
    join(threads)
    assert outcomes == [None] * CLIENTS
    assert db.c.find_one()["n"] == CLIENTS * 5


def test_clients_that_increment_one_counter_outside_of_transactions_all_end(client, db):
    db.c.insert_one({"_id": 1, "n": 0})

    def increment():
        for _ in range(30):
            db.c.update_one({"_id": 1}, {"$inc": {"n": 1}})

    threads, outcomes = at_once([increment] * CLIENTS)
    join(threads)
    assert outcomes == [None] * CLIENTS
    assert db.c.find_one()["n"] == CLIENTS * 30


@pytest.mark.parametrize("commits", [True, False])
def test_statements_outside_get_a_key_in_the_order_in_which_they_came(client, db, held, commits):
    done, threads = [], []

    def push(number):
        db.c.update_one({"_id": 1}, {"$push": {"order": number}})
        done.append(number)

    for number in range(12):
        threads.append(threading.Thread(target=push, args=(number,)))
        threads[-1].start()
        until(lambda: len(waiting(client, db.c)) == number + 1)
    assert not done
    listed = waiting(client, db.c)
    assert all(one["waitingForLock"] and one["op"] == "update" for one in listed)
    shown = sorted(one["command"]["u"]["$push"]["order"] for one in listed)
    assert shown == list(range(12)) and all(one["command"]["q"] == {"_id": 1} for one in listed)
    held.commit_transaction() if commits else held.abort_transaction()
    join(threads)
    document = db.c.find_one({"_id": 1})
    assert document["order"] == list(range(12)) and document["n"] == int(commits)


def test_many_that_wait_hold_no_threads(server, client, db, held):
    def count(name):
        return client.admin.command("serverStatus")["pando"].get(name)

    many = 200
    sockets = [Raw(server.port) for _ in range(many)]
    increment = {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]}
    threads, outcomes = at_once([lambda socket=socket: socket.ask(db.name, increment) for socket in sockets])
    until(lambda: len(waiting(client, db.c)) == many)
    # A batch of more than 16 documents runs on a thread that may wait.
    assert db.d.insert_many([{} for _ in range(100)]).acknowledged
    held.commit_transaction()
    join(threads)
    assert all(outcome["nModified"] == 1 for outcome in outcomes)
    assert db.c.find_one({"_id": 1})["n"] == many + 1


def test_a_wait_ends_with_the_time_limit_of_its_operation(client, db, held):
    begun = time.monotonic()
    with pytest.raises(OperationFailure) as failure:
        db.command({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}], "maxTimeMS": 150})
    assert failure.value.code == TIME_OVER
    assert 0.1 < time.monotonic() - begun < 10


def test_a_wait_is_killed(client, db, held):
    threads, outcomes = at_once([lambda: db.c.update_one({"_id": 1}, {"$inc": {"n": 1}})])
    number = until(lambda: waiting(client, db.c))[0]["opid"]
    client.admin.command("killOp", 1, op=number)
    join(threads)
    assert outcomes[0].code == INTERRUPTED


def test_a_dropped_collection_ends_the_waits_for_its_documents(client, db, held):
    threads, outcomes = at_once([lambda: db.c.update_one({"_id": 1}, {"$inc": {"n": 1}})])
    until(lambda: waiting(client, db.c))
    db.c.drop()
    join(threads)
    assert isinstance(outcomes[0], OperationFailure) or outcomes[0].matched_count == 0


def test_a_client_that_vanishes_gives_its_place_to_the_next(server, client, db, held):
    gone = Raw(server.port)
    increment = {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 10}}}]}
    lost = threading.Thread(target=lambda: pytest.raises(Exception, gone.ask, db.name, increment))
    lost.start()
    until(lambda: waiting(client, db.c))
    threads, _ = at_once([lambda: db.c.update_one({"_id": 1}, {"$inc": {"n": 100}})])
    until(lambda: len(waiting(client, db.c)) == 2)
    gone.socket.shutdown(2)
    until(lambda: len(waiting(client, db.c)) == 1)
    held.commit_transaction()
    join([*threads, lost])
    assert db.c.find_one({"_id": 1})["n"] == 101


def test_a_holder_that_vanishes_or_is_ended_gives_its_key_back(client, db, held):
    threads, outcomes = at_once([lambda: db.c.update_one({"_id": 1}, {"$inc": {"n": 5}})])
    until(lambda: waiting(client, db.c))
    client.admin.command("killSessions", [held.session_id])
    join(threads)
    assert outcomes[0].modified_count == 1 and db.c.find_one({"_id": 1})["n"] == 5


def test_a_transaction_waits_for_the_time_of_the_parameter(client, db, held, short_wait):
    short_wait(300)
    before = figures(client)
    with client.start_session() as session:
        session.start_transaction()
        begun = time.monotonic()
        with pytest.raises(OperationFailure) as failure:
            db.c.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)
        assert failure.value.code == CONFLICT and failure.value.has_error_label("TransientTransactionError")
        assert 0.25 < time.monotonic() - begun < 10
    after = figures(client)
    assert after["timedOut"] == before["timedOut"] + 1 and after["waitMicros"] - before["waitMicros"] > 250_000
    assert after["conflicts"] > before["conflicts"] and after["waits"] > before["waits"]


@pytest.mark.parametrize("commits", [True, False])
def test_a_later_statement_goes_on_only_if_the_holder_aborts(client, db, held, short_wait, commits):
    short_wait(20_000)
    with client.start_session() as session:
        session.start_transaction()
        db.c.update_one({"_id": 2}, {"$inc": {"n": 1}}, session=session)
        threads, outcomes = at_once([lambda: db.c.update_one({"_id": 1}, {"$inc": {"n": 7}}, session=session)])
        until(lambda: waiting(client, db.c))
        held.commit_transaction() if commits else held.abort_transaction()
        join(threads)
        if commits:
            assert outcomes[0].code == CONFLICT and outcomes[0].has_error_label("TransientTransactionError")
            assert db.c.find_one({"_id": 1})["n"] == 1 and db.c.find_one({"_id": 2})["n"] == 0
        else:
            assert outcomes[0].modified_count == 1
            session.commit_transaction()
            assert db.c.find_one({"_id": 1})["n"] == 7 and db.c.find_one({"_id": 2})["n"] == 1


def test_a_first_statement_takes_its_snapshot_after_the_wait(client, db, held, short_wait):
    short_wait(20_000)
    with client.start_session() as session:
        session.start_transaction()
        threads, outcomes = at_once(
            [lambda: db.c.find_one_and_update({"_id": 1}, {"$inc": {"n": 1}}, session=session)])
        until(lambda: waiting(client, db.c))
        db.c.insert_one({"_id": 3})
        held.commit_transaction()
        join(threads)
        assert outcomes[0] == {"_id": 1, "n": 1}
        assert db.c.count_documents({}, session=session) == 3
        session.commit_transaction()
    assert db.c.find_one({"_id": 1})["n"] == 2


def test_two_transactions_that_wait_for_each_other_both_end(client, db, short_wait):
    short_wait(100)
    db.c.insert_many([{"_id": 1, "n": 0}, {"_id": 2, "n": 0}])
    with client.start_session() as one, client.start_session() as other:
        for session, key in ((one, 1), (other, 2)):
            session.start_transaction()
            db.c.update_one({"_id": key}, {"$inc": {"n": 1}}, session=session)
        threads, outcomes = at_once([
            lambda: db.c.update_one({"_id": 2}, {"$inc": {"n": 1}}, session=one),
            lambda: db.c.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=other)])
        join(threads)
        lost = [outcome for outcome in outcomes if isinstance(outcome, OperationFailure)]
        assert lost and all(outcome.code == CONFLICT for outcome in lost)


def test_crossing_statements_outside_of_transactions_all_end(client, db):
    db.c.insert_many([{"_id": at, "n": 0} for at in range(4)])
    forth = {"update": "c", "updates": [{"q": {"_id": at}, "u": {"$inc": {"n": 1}}} for at in range(4)]}
    back = {**forth, "updates": forth["updates"][::-1]}
    rounds = 60

    def run(command):
        for _ in range(rounds):
            assert db.command(command)["nModified"] == 4

    threads, outcomes = at_once([lambda: run(forth), lambda: run(back)] * 4)
    join(threads)
    assert outcomes == [None] * 8
    assert all(document["n"] == 8 * rounds for document in db.c.find())


def test_a_batch_and_an_insert_wait_as_well(client, db, held):
    db.c.create_index("u", unique=True, sparse=True)
    with client.start_session() as session:
        session.start_transaction()
        db.c.insert_one({"_id": 9, "u": 1}, session=session)
        threads, outcomes = at_once([
            lambda: db.c.insert_one({"_id": 9}),
            lambda: db.c.insert_one({"_id": 10, "u": 1}),
            lambda: db.c.insert_many([{"_id": 100 + at, "u": at} for at in range(40)])])
        until(lambda: len(waiting(client, db.c)) == 3)
        session.abort_transaction()
    join(threads)
    failed = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert len(failed) == 1 and db.c.count_documents({"u": 1}) == 1
    assert db.c.count_documents({"_id": 9}) == 1


def session_fields(number=1, **more):
    return {"lsid": {"id": Binary(uuid.uuid4().bytes, 4)}, "txnNumber": Int64(number), "autocommit": False, **more}


@pytest.mark.parametrize("seconds", [0, 0.2])
def test_clients_that_vanish_before_they_get_a_key_leave_no_transaction_that_has_it(
        server, client, db, held, short_wait, seconds):
    short_wait(-1)
    update = {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 10}}}]}
    gone = [Raw(server.port) for _ in range(8)]
    for raw in gone:
        raw.send(db.name, {**update, **session_fields(startTransaction=True)})
    until(lambda: len(waiting(client, db.c)) == len(gone))
    for raw in gone:
        raw.socket.close()
    time.sleep(seconds)
    held.abort_transaction()
    begun = time.monotonic()
    db.c.update_one({"_id": 1}, {"$inc": {"n": 1}})
    assert time.monotonic() - begun < 1
    assert db.c.find_one({"_id": 1})["n"] == 1


def test_a_transaction_that_is_aborted_while_its_first_statement_waits_does_not_begin(
        server, client, db, held, short_wait):
    short_wait(-1)
    raw, other = Raw(server.port), Raw(server.port)
    fields = session_fields()
    update = {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 10}}}]}
    threads, outcomes = at_once([lambda: raw.ask(db.name, {**update, **fields, "startTransaction": True})])
    until(lambda: waiting(client, db.c))
    assert other.ask("admin", {"abortTransaction": 1, **fields})["code"] == NO_SUCH_TRANSACTION
    held.abort_transaction()
    join(threads)
    assert outcomes[0]["code"] == NO_SUCH_TRANSACTION
    assert "TransientTransactionError" in outcomes[0]["errorLabels"]
    db.command("update", "c", updates=[{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}], maxTimeMS=5000)
    assert db.c.find_one({"_id": 1})["n"] == 1


def test_the_lifetime_of_a_transaction_ends_the_wait_of_its_statement(server, client, db, short_wait):
    short_wait(-1)
    db.c.insert_many([{"_id": 1, "n": 0}, {"_id": 2, "n": 0}])
    raw, fields = Raw(server.port), session_fields()
    one, two = ({"update": "c", "updates": [{"q": {"_id": at}, "u": {"$inc": {"n": 1}}}]} for at in (1, 2))
    raw.command(db.name, {**two, **fields, "startTransaction": True})
    # The holder is so much younger that the limit does not end it first.
    time.sleep(OLDER_SECONDS)
    holder, holders = Raw(server.port), session_fields()
    holder.command(db.name, {**one, **holders, "startTransaction": True})
    threads, outcomes = at_once([lambda: raw.ask(db.name, {**one, **fields})])
    until(lambda: waiting(client, db.c))
    counts = client.admin.command("serverStatus")["transactions"]
    assert counts["currentInactive"] == 1 and counts["currentActive"] == 1
    seconds = client.admin.command("getParameter", 1, transactionLifetimeLimitSeconds=1)
    client.admin.command("setParameter", 1, transactionLifetimeLimitSeconds=OLDER_SECONDS)
    try:
        join(threads)
    finally:
        seconds = seconds["transactionLifetimeLimitSeconds"]
        client.admin.command("setParameter", 1, transactionLifetimeLimitSeconds=seconds)
    assert outcomes[0]["code"] in (INTERRUPTED, NO_SUCH_TRANSACTION)
    assert holder.ask("admin", {"abortTransaction": 1, **holders})["ok"] == 1, "the younger one lives"


def test_each_step_of_a_long_update_has_its_own_time_to_wait(server, client, db):
    db.c.insert_many([{"_id": at, "n": 0} for at in range(25_000)])
    with client.start_session() as first, client.start_session() as last:
        for session, key in ((first, 5), (last, 24_000)):
            session.start_transaction()
            db.c.update_one({"_id": key}, {"$inc": {"n": 1}}, session=session)
        raw = Raw(server.port)
        raw.command("admin", {"setClientLockTimeout": 4000})
        update = {"update": "c", "updates": [{"q": {}, "u": {"$inc": {"n": 1}}, "multi": True}]}
        threads, outcomes = at_once([lambda: raw.ask(db.name, update)])
        until(lambda: waiting(client, db.c))
        time.sleep(2.5)
        first.abort_transaction()
        time.sleep(2.5)
        last.abort_transaction()
        join(threads)
    assert outcomes[0]["ok"] and outcomes[0]["nModified"] == 25_000


def test_a_server_that_stops_ends_the_waits(tmp_path):
    server = Server(tmp_path / "data").start()
    with server.client() as client:
        db = client.waits
        db.c.insert_one({"_id": 1})
        session = client.start_session()
        session.start_transaction()
        db.c.update_one({"_id": 1}, {"$set": {"a": 1}}, session=session)
        raw = Raw(server.port)
        update = {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]}
        threads, outcomes = at_once([lambda: raw.ask("waits", update)])
        until(lambda: waiting(client, db.c))
        begun = time.monotonic()
        server.stop()
        join(threads)
        assert not outcomes[0]["ok"] or outcomes[0]["n"] == 1
        assert time.monotonic() - begun < 30


def test_live_transactions_and_pending_requests_are_listed(client, db):
    db.c.create_index([("u", 1), ("v", -1)], unique=True)
    db.c.insert_one({"_id": 1})
    with client.start_session() as session:
        session.start_transaction()
        db.c.update_one({"_id": 1}, {"$set": {"n": 1}}, session=session)
        db.c.insert_one({"_id": "a long text for an _id", "u": 1, "v": 2}, session=session)
        threads, _ = at_once([lambda: db.c.update_one({"_id": 1}, {"$inc": {"n": 1}})])
        until(lambda: waiting(client, db.c))
        live = client.admin.command("showLiveTransactions")["transactions"]
        mine = [one for one in live if one.get("lsid", {}).get("id") == session.session_id["id"]]
        assert len(mine) == 1 and mine[0]["txnNumber"] >= 1 and mine[0]["client"]
        locks = mine[0]["rowLocks"]
        assert {"index": f"{db.name}.c.$_id_", "bounds": [{"_id": 1}, {"_id": 1}]} in locks
        assert {"index": f"{db.name}.c.$u_1_v_-1", "bounds": [{"u": 1, "v": 2}] * 2} in locks
        assert any(lock.get("truncated") and lock["index"].endswith("$_id_") for lock in locks)
        requests = client.admin.command("showPendingLockRequests")["requests"]
        request = next(one for one in requests if one["index"] == f"{db.name}.c.$_id_")
        assert request["bounds"] == [{"_id": 1}, {"_id": 1}] and request["started"]
        assert request["blockingTxnid"] == mine[0]["txnid"] != request["requestingTxnid"]
        for command in ("showLiveTransactions", "showPendingLockRequests"):
            cursor = client.admin.command(command, cursor={})["cursor"]
            assert cursor["id"] == 0 and cursor["firstBatch"]
            with pytest.raises(OperationFailure):
                client.admin.command(command, unknown=1)
    join(threads)
    assert client.admin.command("showPendingLockRequests")["requests"] == []


def test_a_client_sets_the_time_for_its_connection(server, client, db, held):
    raw, other = Raw(server.port), Raw(server.port)
    update = {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]}
    assert raw.command("admin", {"setClientLockTimeout": 200})["was"] == -1
    begun = time.monotonic()
    assert raw.ask(db.name, update)["code"] == CONFLICT and 0.15 < time.monotonic() - begun < 10
    assert raw.command("admin", {"setClientLockTimeout": 0})["was"] == 200
    assert raw.ask(db.name, update)["code"] == CONFLICT
    threads, outcomes = at_once([lambda: other.ask(db.name, update)])
    until(lambda: waiting(client, db.c))
    assert raw.command("admin", {"setClientLockTimeout": -1})["was"] == 0
    assert raw.command("admin", {"setClientLockTimeout": 50.0})["was"] == -1
    for wrong in ("x", None, 1 << 40):
        assert raw.ask("admin", {"setClientLockTimeout": wrong})["code"] == 2
    held.abort_transaction()
    join(threads)
    assert outcomes[0]["nModified"] == 1


def test_the_parameter_takes_what_mongodb_takes(client, short_wait):
    for value, now in ((0, 0), (-1, -1), (1.9, 1), (True, 1), (7, 7)):
        short_wait(value)
        assert client.admin.command("getParameter", 1, **{WAIT: 1})[WAIT] == now
    for value in ("x", None, 1 << 31):
        with pytest.raises(OperationFailure) as failure:
            short_wait(value)
        assert failure.value.code == 2
