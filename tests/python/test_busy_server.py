"""A server whose blocking threads are all taken by long requests still serves logins and its operator."""

import threading
import time

import pytest
from pymongo.errors import OperationFailure

from server import Server

THREADS = 2
# A thousand million documents of one.
LONG = [{"$unwind": "$a"}, {"$unwind": "$b"}, {"$unwind": "$c"}, {"$match": {"c": -1}}]


@pytest.fixture
def busy(tmp_path):
    """A server with access control, the user ada, and a document that an aggregation works on for long."""
    server = Server(tmp_path / "data", "--auth", "--blocking-threads", str(THREADS)).start()
    with server.client() as client:
        client.admin.command("createUser", "ada", pwd="secret", roles=["root"])
    with login(server) as client:
        client.t.wide.insert_one({"_id": 1, **{name: list(range(1000)) for name in "abc"}})
    yield server
    assert server.terminate() == 0, server.log()
    assert "panic" not in server.log()


def login(server):
    return server.client(username="ada", password="secret", retryReads=False)


def under_way(client):
    return [operation for operation in client.admin.command("currentOp")["inprog"] if operation.get("command", {}).get("aggregate") == "wide"]


def test_logins_and_the_commands_of_an_operator_do_not_queue_behind_long_requests(busy):
    ends = []

    def work():
        with login(busy) as client:
            try:
                ends.append(list(client.t.wide.aggregate(LONG)))
            except OperationFailure as error:
                ends.append(error.code)

    # One more than there are threads, which waits for one.
    workers = [threading.Thread(target=work, daemon=True) for _ in range(THREADS + 1)]
    for worker in workers:
        worker.start()
    deadline = time.monotonic() + 60
    with login(busy) as operator:
        while len(under_way(operator)) < THREADS:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert operator.admin.command("serverStatus")["ok"] == 1
        assert operator.admin.command("getParameter", 1, logLevel=1)["ok"] == 1
        assert len(list(operator.admin.aggregate([{"$currentOp": {}}, {"$match": {"command.aggregate": "wide"}}]))) >= THREADS
        with login(busy) as second:
            assert second.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"] == [{"user": "ada", "db": "admin"}]
        assert not ends, "the requests have ended by themselves"
        while any(worker.is_alive() for worker in workers):
            for operation in under_way(operator):
                operator.admin.command("killOp", op=operation["opid"])
            time.sleep(0.02)
            assert time.monotonic() < deadline
    assert ends == [11601] * (THREADS + 1)
