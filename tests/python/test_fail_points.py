"""The fail point failCommand, by which tests of drivers make requests fail."""

import functools
import time

import pytest
from pymongo import InsertOne, UpdateOne
from pymongo.errors import AutoReconnect, NotPrimaryError, OperationFailure, WriteConcernError

from server import Server


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("store") / "data", "--persona", "replica-set", "--test-commands", "on").start()
    # A driver asks a server that says that it goes away again by its next heartbeat, 10 seconds later unless told otherwise.
    server.client = functools.partial(server.client, heartbeatFrequencyMS=500)
    yield server
    assert server.stop() == 0, server.log()


@pytest.fixture
def fail(own):
    """Sets the fail point for some commands, and takes it away after the test."""
    with own.client() as control:
        def fail(*commands, mode="alwaysOn", **data):
            return control.admin.command("configureFailPoint", "failCommand", mode=mode, data={"failCommands": list(commands), **data})

        yield fail
        control.admin.command("configureFailPoint", "failCommand", mode="off")
        control.drop_database("t")


@pytest.fixture
def t(own):
    with own.client(retryWrites=False, retryReads=False) as client:
        yield client.t


def refused(call, *arguments, code, **more):
    with pytest.raises((OperationFailure, NotPrimaryError)) as told:
        call(*arguments, **more)
    assert told.value.details["code"] == code, told.value.details
    return told.value


def test_it_needs_the_option(client):
    refused(client.admin.command, "configureFailPoint", "failCommand", mode="off", code=59)
    assert client.admin.command("getParameter", "*")["enableTestCommands"] is False


def test_modes(fail, t, own):
    with own.client() as control:
        assert control.admin.command("getParameter", "*")["enableTestCommands"] is True
    fail("find", mode={"times": 2}, errorCode=8)
    for _ in range(2):
        refused(t.c.find_one, code=8)
    assert t.c.find_one() is None
    fail("find", mode={"skip": 1}, errorCode=8)
    assert t.c.find_one() is None
    refused(t.c.find_one, code=8)
    refused(t.c.find_one, code=8)
    fail("find", errorCode=8)
    refused(t.c.find_one, code=8)
    t.c.insert_one({"_id": 1})
    fail(mode="off")
    assert t.c.find_one()


def test_time_limits_and_get_more_fail_by_points_of_their_own(own, t):
    t.c.insert_many([{"_id": number} for number in range(5)])
    with own.client() as control:
        def point(name, mode, **options):
            return control.admin.command("configureFailPoint", name, mode=mode, **options)

        point("maxTimeAlwaysTimeOut", {"times": 1})
        assert t.c.count_documents({}) == 5
        refused(list, t.c.find(max_time_ms=60_000), code=50)
        assert len(list(t.c.find(max_time_ms=60_000))) == 5
        point("failGetMoreAfterCursorCheckout", "alwaysOn", data={"errorCode": 8})
        refused(list, t.c.find(batch_size=2), code=8)
        point("failGetMoreAfterCursorCheckout", "off")
        assert len(list(t.c.find(batch_size=2))) == 5
        control.drop_database("t")


@pytest.mark.parametrize("mode,data", [("x", {}), ({}, {}), ({"times": -1}, {}), ({"times": "x"}, {}), ("alwaysOn", {"failCommands": 1}),
                                       ("alwaysOn", {"errorCode": "x"}), ("alwaysOn", {"blockConnection": True}), ("alwaysOn", {"bogus": 1})])
def test_wrong_fields(own, mode, data):
    with own.client() as control:
        refused(control.admin.command, "configureFailPoint", "failCommand", mode=mode, data=data, code=2)
        refused(control.admin.command, "configureFailPoint", "other", mode="off", code=2)


def test_names_labels_and_applications(fail, t, own):
    fail("insert", errorCode=91, errorLabels=["Mine"])
    told = refused(t.c.insert_one, {}, code=91)
    assert told.has_error_label("Mine") and told.details["codeName"] == "ShutdownInProgress"
    assert "failCommand" in str(told)
    fail("find", errorCode=8, appName="chosen")
    assert t.c.find_one() is None
    with own.client(appname="chosen", retryReads=False) as other:
        refused(other.t.c.find_one, code=8)


def test_a_driver_sends_a_write_again(fail, own):
    with own.client() as client:
        for code in (6, 7, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436):
            fail("insert", mode={"times": 1}, errorCode=code)
            client.t.c.insert_one({"_id": code})
        fail("insert", mode={"times": 1}, closeConnection=True)
        client.t.c.insert_one({"_id": "closed"})
        assert client.t.c.count_documents({}) == 13
        fail("insert", mode={"times": 1}, errorCode=11601)
        assert not refused(client.t.c.insert_one, {}, code=11601).has_error_label("RetryableWriteError")
        fail("insert", mode={"times": 1}, errorCode=91, errorLabels=[])
        refused(client.t.c.insert_one, {}, code=91)


@pytest.mark.parametrize("code", [189, 10107, 11602, 13435, 13436])
def test_a_member_that_is_no_primary_tells_the_version_of_its_topology(fail, own, code):
    """By it a driver knows that its picture of the server is the newest, and sends the request again without a heartbeat."""
    with own.client(heartbeatFrequencyMS=10_000) as client:
        version = client.admin.command("hello")["topologyVersion"]
        fail("find", mode={"times": 1}, errorCode=code)
        began = time.monotonic()
        assert client.t.c.find_one() is None
        assert time.monotonic() - began < 5
    with own.client(retryReads=False) as client:
        fail("find", mode={"times": 1}, errorCode=code)
        assert refused(client.t.c.find_one, code=code).details["topologyVersion"] == version
        fail("insert", mode={"times": 1}, writeConcernError={"code": code, "errmsg": "not primary any more"})
        assert client.t.command("insert", "c", documents=[{}], check=False)["topologyVersion"] == version


@pytest.mark.parametrize("code", [91, 11600, 10058, 112])
def test_other_errors_tell_no_version_of_the_topology(fail, t, code):
    fail("find", mode={"times": 1}, errorCode=code)
    assert "topologyVersion" not in refused(t.c.find_one, code=code).details


def test_transactions_get_their_labels(fail, own):
    with own.client() as client, client.start_session() as session:
        client.t.create_collection("c")
        session.start_transaction()
        fail("insert", mode={"times": 1}, errorCode=91)
        assert refused(client.t.c.insert_one, {}, session=session, code=91).has_error_label("TransientTransactionError")
        session.abort_transaction()
        fail("commitTransaction", mode={"times": 1}, errorCode=91)
        with session.start_transaction():
            client.t.c.insert_one({"_id": 1}, session=session)
        assert client.t.c.count_documents({}) == 1

        def write(session):
            client.t.c.insert_one({"_id": 2}, session=session)

        fail("commitTransaction", mode={"times": 1}, errorCode=251, errorLabels=["TransientTransactionError"])
        session.with_transaction(write)
        assert client.t.c.count_documents({}) == 2


def test_a_closed_connection(fail, t):
    fail("insert", mode={"times": 1}, closeConnection=True)
    with pytest.raises(AutoReconnect):
        t.c.insert_one({"_id": 1})
    assert t.c.count_documents({}) == 0


def test_a_wait(fail, t):
    fail("find", mode={"times": 1}, blockConnection=True, blockTimeMS=300)
    began = time.monotonic()
    assert t.c.find_one() is None
    assert time.monotonic() - began >= 0.3
    fail("find", mode={"times": 1}, blockConnection=True, blockTimeMS=20, errorCode=8)
    refused(t.c.find_one, code=8)


def test_a_write_concern_error(fail, t):
    fail("insert", mode={"times": 1}, writeConcernError={"code": 64, "errmsg": "waiting for replication timed out"})
    with pytest.raises(WriteConcernError) as told:
        t.c.insert_one({"_id": 1})
    assert told.value.code == 64 and told.value.details["codeName"] == "WriteConcernFailed"
    assert t.c.count_documents({}) == 1


@pytest.fixture
def fail_write(own):
    """Sets the fail point of writes that drivers retry, and takes it away after the test."""
    with own.client() as control:
        def fail_write(mode, **data):
            return control.admin.command("configureFailPoint", "onPrimaryTransactionalWrite", mode=mode, data=data)

        yield fail_write
        control.admin.command("configureFailPoint", "onPrimaryTransactionalWrite", mode="off")
        control.drop_database("t")


def test_a_write_that_lost_its_connection_is_retried_and_counts_once(fail_write, own):
    with own.client() as client:
        c = client.t.c
        c.insert_one({"_id": 0, "n": 0})
        for data in ({}, {"failBeforeCommitExceptionCode": 1}):
            fail_write({"times": 1}, **data)
            assert c.update_one({"_id": 0}, {"$inc": {"n": 1}}).modified_count == 1
        assert c.find_one()["n"] == 2
        fail_write({"times": 1})
        assert c.insert_many([{"_id": 1}, {"_id": 2}]).inserted_ids == [1, 2]
        fail_write({"times": 2}, failBeforeCommitExceptionCode=1)
        with pytest.raises(AutoReconnect):
            c.delete_one({"_id": 1})
        assert c.count_documents({}) == 3
        fail_write({"skip": 2}, failBeforeCommitExceptionCode=1)
        with pytest.raises(AutoReconnect):
            c.bulk_write([UpdateOne({"_id": 0}, {"$inc": {"n": 1}}), InsertOne({"_id": 4, "n": 1}), UpdateOne({"_id": 4}, {"$inc": {"n": 1}})])
        assert c.find_one({"_id": 0})["n"] == 3 and c.find_one({"_id": 4})["n"] == 1


def test_without_a_retry_the_write_is_done_or_not_as_it_was_asked(fail_write, t, own):
    fail_write({"times": 1}, failBeforeCommitExceptionCode=8, closeConnection=False)
    # Not a write that may be retried, so that the fail point waits for the next one.
    t.c.insert_one({"_id": 1})
    with own.client() as client:
        refused(client.t.c.insert_one, {"_id": 2}, code=8)
        client.t.c.insert_one({"_id": 3})
        fail_write({"times": 1}, closeConnection=False)
        client.t.c.insert_one({"_id": 4})
    assert [row["_id"] for row in t.c.find().sort("_id")] == [1, 3, 4]
    with own.client() as control:
        for data in ({"other": 1}, {"failBeforeCommitExceptionCode": "x"}):
            refused(control.admin.command, {"configureFailPoint": "onPrimaryTransactionalWrite", "mode": "alwaysOn", "data": data}, code=2)
