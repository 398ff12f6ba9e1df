"""A limit of open files that large transactions reach: further ones are refused, and the store takes no harm."""

import os
import re

import pytest
from pymongo.errors import OperationFailure

from raw_connection import Raw
from server import PANDO, Server


def test_a_transaction_without_a_file_for_its_writes_is_refused_and_the_log_goes_on(tmp_path):
    server = Server(tmp_path / "data", "--cache", "32MB", "--engine-option", "logBudget=4MB")
    server.program = ["sh", "-c", 'ulimit -n 128; exec "$0" "$@"', PANDO]
    server.start()
    with server.client() as client:
        client.d.large.insert_one({"_id": 0})
        sessions = []
        with pytest.raises(OperationFailure) as refused:
            for _ in range(128):
                sessions.append(client.start_session())
                sessions[-1].start_transaction()
                # Each keeps a file with its writes until it ends.
                client.d.large.insert_many([{"x": os.urandom(200_000)} for _ in range(6)], session=sessions[-1])
        assert refused.value.code == 264 and "ulimit -n" in refused.value.details["errmsg"], refused.value.details
        assert len(sessions) > 16
        # The log begins segments, and the store writes checkpoints, with the files that are left.
        for _ in range(200):
            client.d.plain.insert_one({"x": os.urandom(100_000)})
        client.admin.command("fsync")
        for session in sessions:
            session.end_session()
        with client.start_session() as session, session.start_transaction():
            client.d.large.insert_many([{"x": os.urandom(200_000)} for _ in range(6)], session=session)
        assert (client.d.plain.count_documents({}), client.d.large.count_documents({})) == (200, 7)
        assert client.admin.command("serverStatus")["metrics"]["damage"]["requests"] == 0
    assert server.terminate() == 0
    assert not [line for line in server.whole_log().splitlines() if "ERROR" in line], server.whole_log()


def test_a_limit_that_leaves_no_client_a_file_is_refused(tmp_path):
    server = Server(tmp_path / "data")
    server.program = ["sh", "-c", 'ulimit -n 40; exec "$0" "$@"', PANDO]
    with pytest.raises(RuntimeError, match="the limit of open files is 40, and the server needs 64.*ulimit -n"):
        server.start()
    assert server.process.returncode == 1
    # With the fewest all connections that it announces are served, and the next one is closed.
    server.program = ["sh", "-c", 'ulimit -n 64; exec "$0" "$@"', PANDO]
    server.start()
    room = int(re.search(r"takes (\d+) connections", server.whole_log())[1])
    connections = []
    for _ in range(room):
        connections.append(Raw(server.port))
        connections[-1].command("admin", {"ping": 1})
    with pytest.raises((ConnectionError, AssertionError)):
        Raw(server.port).ask("admin", {"ping": 1})
    for connection in connections:
        connection.socket.close()
    assert server.stop() == 0
