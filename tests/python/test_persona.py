"""The deployment that drivers take the server for: their topology, and what tools ask about it."""

import datetime
import socket
import struct
import threading
import time

import bson
import pymongo.monitoring
import pytest
from bson import Int64, ObjectId, Timestamp
from pymongo import CursorType, MongoClient
from pymongo.errors import OperationFailure, ServerSelectionTimeoutError
from pymongo.topology_description import TOPOLOGY_TYPE

from legacy_wire import LegacyWire
from raw_connection import HEADER, Raw, read_exactly
from server import PANDO, Server

MORE_TO_COME = 1 << 1
EXHAUST_ALLOWED = 1 << 16


@pytest.fixture(scope="module")
def replica_set(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("set") / "data", "--persona", "replica-set", engine="memory").start()
    yield server
    assert server.stop() == 0, server.log()


@pytest.fixture
def client(replica_set):
    # The tests of sessions and retryable writes are elsewhere.
    with MongoClient("127.0.0.1", replica_set.port, retryWrites=False, serverSelectionTimeoutMS=20000) as client:
        yield client


def topology(uri, patience=5000):
    with MongoClient(uri, serverSelectionTimeoutMS=patience) as client:
        client.admin.command("ping")
        return TOPOLOGY_TYPE._fields[client.topology_description.topology_type]


def test_a_replica_set_is_found_by_every_form_of_connection(replica_set):
    address = f"mongodb://127.0.0.1:{replica_set.port}/"
    assert topology(address) == "ReplicaSetWithPrimary"
    assert topology(address + "?replicaSet=rs0") == "ReplicaSetWithPrimary"
    assert topology(address + "?directConnection=true") == "Single"
    assert topology(f"mongodb://localhost:{replica_set.port}/?replicaSet=rs0") == "ReplicaSetWithPrimary"


def test_a_set_of_another_name_is_not_found(replica_set):
    with pytest.raises(ServerSelectionTimeoutError, match="rs0|other"):
        topology(f"mongodb://127.0.0.1:{replica_set.port}/?replicaSet=other", patience=500)


def test_hello_shows_the_only_member(replica_set, client):
    hello = client.admin.command("hello")
    address = f"127.0.0.1:{replica_set.port}"
    assert (hello["hosts"], hello["primary"], hello["me"]) == ([address], address, address)
    assert (hello["setName"], hello["setVersion"], hello["secondary"]) == ("rs0", 1, False)
    assert hello["isWritablePrimary"] is True and isinstance(hello["electionId"], ObjectId)
    assert hello["topologyVersion"]["counter"] == 0
    last_write = hello["lastWrite"]
    assert last_write["opTime"] == last_write["majorityOpTime"] == {"ts": hello["operationTime"], "t": 1}
    assert isinstance(last_write["lastWriteDate"], datetime.datetime)
    assert client.admin.command("isMaster")["ismaster"] is True
    with LegacyWire(replica_set.port) as wire:
        older = wire.query("admin.$cmd", {"ismaster": 1}, number=-1).only
        assert (older["ismaster"], older["setName"]) == (True, "rs0")
        assert "operationTime" in older and "operationTime" in wire.query("admin.$cmd", {"nosuch": 1}, number=-1).only


def test_names_are_those_of_the_options(tmp_path):
    server = Server(tmp_path / "data", "--persona", "replica-set", "--replica-set", "mine", "--advertise", "db.example:4711",
                    engine="memory").start()
    with server.client() as client:
        hello = client.admin.command("hello")
        assert (hello["setName"], hello["hosts"], hello["me"]) == ("mine", ["db.example:4711"], "db.example:4711")
        assert client.admin.command("replSetGetStatus")["members"][0]["name"] == "db.example:4711"
    # A driver that is to find the set itself goes to the advertised address, which is not there.
    with pytest.raises(ServerSelectionTimeoutError, match="db.example:4711"):
        topology(f"mongodb://127.0.0.1:{server.port}/?replicaSet=mine", patience=500)
    assert server.stop() == 0


def test_a_client_of_the_unix_socket_learns_the_address(replica_set, tmp_path):
    server = Server(tmp_path / "data", "--persona", "replica-set").start()
    path = str(server.folder / "pando.sock")
    with MongoClient(path.replace("/", "%2F").join(("mongodb://", "/?directConnection=true"))) as client:
        assert client.admin.command("hello")["hosts"] == [f"127.0.0.1:{server.port}"]
    assert server.stop() == 0


class Relay:
    """Translates an address: a port of this machine leads to the unix socket of a server in a network of its own."""

    def __init__(self, path, port=0):
        self.path = str(path)
        self.listener = socket.create_server(("127.0.0.1", port), backlog=100)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self.path)
            except OSError:
                return
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self.copy, args=(one, other), daemon=True).start()

    @staticmethod
    def copy(one, other):
        try:
            while part := one.recv(1 << 16):
                other.sendall(part)
        except OSError:
            pass
        for end in (one, other):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # closed already


class TranslatedServer(Server):
    """A server with a loopback network of its own, which nobody else can reach. A relay leads to it."""

    def __init__(self, tmp_path, *arguments):
        super().__init__(tmp_path / "data", "--unix-socket", str(tmp_path / "pando.sock"), *arguments, engine="memory")
        self.path = tmp_path / "pando.sock"

    def start(self):
        # The program joins a new network first, whose loopback is down until someone sets it up. Needs user namespaces.
        self.program = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$0" "$@"', PANDO]
        return super().start()


def test_a_client_behind_a_translated_address_is_told_of_advertise(tmp_path):
    server = TranslatedServer(tmp_path).start()
    relay = Relay(server.path)
    with pytest.raises(ServerSelectionTimeoutError) as refused:
        topology(f"mongodb://127.0.0.1:{relay.port}/?appName=shop", 2000)
    # The driver names the address that the server gave it.
    assert f"127.0.0.1:{server.port}" in str(refused.value)
    deadline = time.monotonic() + 30
    while not (told := [line for line in server.whole_log().splitlines() if "left after its first hello" in line]):
        assert time.monotonic() < deadline, server.log()
        time.sleep(0.1)
    assert "--advertise" in told[0] and f"127.0.0.1:{server.port}" in told[0] and "application shop" in told[0], told
    assert topology(f"mongodb://127.0.0.1:{relay.port}/?directConnection=true") == "Single"
    assert server.stop() == 0


def test_an_advertised_address_leads_through_the_translation(tmp_path):
    reserved = socket.socket()
    reserved.bind(("127.0.0.1", 0))
    port = reserved.getsockname()[1]
    reserved.close()
    server = TranslatedServer(tmp_path, "--advertise", f"localhost:{port}").start()
    relay = Relay(server.path, port)
    for options in ("", "?replicaSet=rs0", "?directConnection=true"):
        with MongoClient(f"mongodb://127.0.0.1:{relay.port}/{options}", serverSelectionTimeoutMS=5000) as client:
            client.through.c.insert_one({"options": options})
            assert client.through.c.count_documents({"options": options}) == 1
    time.sleep(7)
    assert "left after its first hello" not in server.whole_log()
    assert server.stop() == 0


def test_a_mongos_and_a_standalone_server(tmp_path):
    for persona, kind, message in [("mongos", "Sharded", "isdbgrid"), ("standalone", "Single", None)]:
        server = Server(tmp_path / persona, "--persona", persona, engine="memory").start()
        assert topology(f"mongodb://127.0.0.1:{server.port}/?directConnection=false") == kind
        with server.client() as client:
            hello = client.admin.command("hello")
            assert (hello.get("msg"), "setName" in hello) == (message, False)
            assert ("$clusterTime" in hello) == (persona == "mongos")
            client.t.c.insert_many({"_id": at} for at in range(500))
            assert len(list(client.t.c.find({}, cursor_type=CursorType.EXHAUST, batch_size=50))) == 500
            with pytest.raises(OperationFailure) as refused:
                client.admin.command("replSetGetStatus")
            assert refused.value.code == 76
        assert server.stop() == 0


def test_status_and_configuration(replica_set, client):
    status = client.admin.command("replSetGetStatus")
    assert (status["set"], status["myState"], status["term"]) == ("rs0", 1, 1)
    (member,) = status["members"]
    assert (member["stateStr"], member["self"], member["health"]) == ("PRIMARY", True, 1.0)
    assert status["optimes"]["appliedOpTime"] == member["optime"]
    configuration = client.admin.command("replSetGetConfig")["config"]
    assert (configuration["_id"], configuration["members"][0]["host"]) == ("rs0", f"127.0.0.1:{replica_set.port}")
    defaults = client.admin.command("getDefaultRWConcern")
    assert defaults["defaultWriteConcern"] == {"w": 1, "wtimeout": 0}
    for collection in (client.local["system.replset"], client.local["oplog.rs"], client.config.transactions):
        assert collection.find_one() is None


def test_a_set_that_is_there_takes_no_other_members(replica_set, client):
    def refused(command, **options):
        with pytest.raises(OperationFailure) as error:
            client.admin.command(*command, **options)
        return error.value.code

    with pytest.raises(OperationFailure, match="^already initialized") as initiated:
        client.admin.command("replSetInitiate", {"_id": "rs0", "members": [{"_id": 0, "host": "localhost:1"}]})
    assert initiated.value.code == 23
    # Test runners pass over that error: a set of several members must not become several sets.
    with pytest.raises(OperationFailure, match="one server holds the data") as initiated:
        client.admin.command("replSetInitiate", {"_id": "rs0", "members": [{"_id": n, "host": f"localhost:{n}"} for n in (1, 2)]})
    assert initiated.value.code == 103
    configuration = client.admin.command("replSetGetConfig")["config"]
    assert client.admin.command("replSetReconfig", configuration, force=True)["ok"] == 1
    assert client.admin.command("replSetReconfig", {**configuration, "version": 2})["ok"] == 1
    assert refused(("replSetReconfig", configuration)) == 103
    assert refused(("replSetReconfig", {**configuration, "members": [{"_id": 0, "host": "localhost:1"}]}), force=True) == 103
    assert refused(("replSetReconfig", {**configuration, "members": configuration["members"] * 2}), force=True) == 103
    for wrong in ({}, {"_id": "other"}, 1):
        assert refused(("replSetReconfig", wrong)) == 93
    assert client.admin.command("replSetGetConfig")["config"] == configuration


def test_writes_move_the_operation_time(client):
    database = client.persona
    times = [client.admin.command("ping")["operationTime"]]
    for number in range(20):
        times.append(database.command("insert", "c", documents=[{"_id": number}])["operationTime"])
    assert times == sorted(set(times))
    reply = client.admin.command("ping")
    assert reply["operationTime"] == reply["$clusterTime"]["clusterTime"] == times[-1]
    with pytest.raises(OperationFailure) as refused:
        database.command("nosuch")
    assert refused.value.details["operationTime"] >= times[-1]
    assert database.command("find", "c", filter={"_id": 3})["operationTime"] >= times[-1]


def test_a_causally_consistent_session_reads_its_writes(client):
    with client.start_session(causal_consistency=True) as session:
        for number in range(10):
            client.persona.causal.insert_one({"_id": number}, session=session)
            assert client.persona.causal.find_one({"_id": number}, session=session) == {"_id": number}
        assert session.operation_time is not None


def test_the_clock_never_goes_back_over_restarts(tmp_path):
    server = Server(tmp_path / "data", "--persona", "replica-set")
    last = Timestamp(0, 0)
    for end in ("stop", "kill", "stop"):
        server.start()
        with server.client(retryWrites=False) as client:
            for _ in range(30):
                now = client.test.command("insert", "c", documents=[{}])["operationTime"]
                assert now > last
                last = now
        getattr(server, end)()


def test_a_stored_clock_that_is_ahead_is_kept(tmp_path):
    server = Server(tmp_path / "data", "--persona", "replica-set").start()
    with server.client(retryWrites=False) as client:
        client.test.command("insert", "c", documents=[{}])
        (stored,) = client.local["system.clusterClock"].find()
    server.stop()
    server.start()
    with server.client() as client:
        assert client.admin.command("ping")["operationTime"] >= Timestamp(stored["time"].time + 10, 1)
    server.stop()


# ---- awaitable hello

def waited(client, **fields):
    begun = time.monotonic()
    reply = client.admin.command("hello", **fields)
    return time.monotonic() - begun, reply


def test_a_monitor_that_knows_the_version_waits(client):
    version = client.admin.command("hello")["topologyVersion"]
    took, reply = waited(client, topologyVersion=version, maxAwaitTimeMS=500)
    assert took >= 0.5 and reply["topologyVersion"] == version
    other = {"processId": ObjectId(), "counter": Int64(0)}
    assert waited(client, topologyVersion=other, maxAwaitTimeMS=10_000)[0] < 5
    with pytest.raises(OperationFailure) as refused:
        waited(client, topologyVersion=version)
    assert refused.value.code == 31368


def test_many_monitors_wait_without_threads(replica_set, client):
    version = client.admin.command("hello")["topologyVersion"]
    threads = len(list(replica_set.threads()))
    others = [MongoClient(replica_set.uri) for _ in range(30)]
    try:
        for other in others:
            other.admin.command("ping")
        assert len(list(replica_set.threads())) <= threads + 2
    finally:
        for other in others:
            other.close()
    assert version == client.admin.command("hello")["topologyVersion"]


def test_a_monitor_that_allows_it_gets_a_stream_of_replies(replica_set, client):
    version = client.admin.command("hello")["topologyVersion"]
    body = struct.pack("<IB", EXHAUST_ALLOWED, 0) + bson.encode(
        {"hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 200, "$db": "admin"})
    with Raw(replica_set.port) as raw:
        raw.socket.sendall(HEADER.pack(HEADER.size + len(body), 77, 0, 2013) + body)
        expected = 77
        for _ in range(4):
            begun = time.monotonic()
            length, number, response_to, _ = HEADER.unpack(read_exactly(raw.socket, HEADER.size))
            payload = read_exactly(raw.socket, length - HEADER.size)
            assert time.monotonic() - begun > 0.15
            assert response_to == expected and struct.unpack("<I", payload[:4]) == (MORE_TO_COME,)
            reply = bson.decode(payload[5:])
            assert reply["isWritablePrimary"] and reply["topologyVersion"] == version
            expected = number


def test_monitors_of_drivers_take_the_stream(replica_set):
    beats = []

    class Listener(pymongo.monitoring.ServerHeartbeatListener):
        def started(self, event):
            pass

        def succeeded(self, event):
            beats.append(event.awaited)

        def failed(self, event):
            beats.append(event.reply)

    with replica_set.client(heartbeatFrequencyMS=500, event_listeners=[Listener()]) as client:
        before = client.admin.command("serverStatus")["network"]["numRequests"]
        deadline = time.monotonic() + 20
        while len(beats) < 6:
            assert time.monotonic() < deadline, beats
            time.sleep(0.05)
        assert beats[0] is False and all(beat is True for beat in beats[1:]), beats
        assert client.admin.command("serverStatus")["network"]["numRequests"] > before


def test_an_exhaust_cursor_gets_all_batches_for_one_request(client):
    db = client.exhaust
    db.c.insert_many([{"_id": i, "s": "x" * 100} for i in range(5000)])
    before = client.admin.command("serverStatus")["opcounters"]["getmore"]
    found = list(db.c.find({}, batch_size=100, cursor_type=CursorType.EXHAUST).sort("_id"))
    assert [document["_id"] for document in found] == list(range(5000))
    # Each batch counts, as with MongoDB.
    assert client.admin.command("serverStatus")["opcounters"]["getmore"] - before >= 49
    # A client that goes away within the stream leaves nothing.
    cursor = db.c.find({}, batch_size=100, cursor_type=CursorType.EXHAUST)
    assert next(cursor)["_id"] == 0
    for _ in range(150):
        next(cursor)
    cursor.close()
    deadline = time.monotonic() + 20
    while client.admin.command("serverStatus")["metrics"]["cursor"]["open"]["total"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    client.drop_database("exhaust")


def test_a_server_with_monitors_stops_at_once(tmp_path):
    server = Server(tmp_path / "data", "--persona", "replica-set", engine="memory").start()
    with server.client(heartbeatFrequencyMS=60_000, serverSelectionTimeoutMS=1000) as client:
        client.admin.command("ping")
        # The monitor's second hello waits for a minute.
        time.sleep(1)
        begun = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - begun < 5


def test_a_monitor_that_hangs_up_leaves_nothing(replica_set, client):
    version = client.admin.command("hello")["topologyVersion"]
    before = client.admin.command("serverStatus")["connections"]["current"]
    with LegacyWire(replica_set.port) as wire:
        wire.send(2004, b"\0\0\0\0admin.$cmd\0\0\0\0\0\xff\xff\xff\xff" + bson.encode(
            {"hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 300}))
        wire.socket.shutdown(socket.SHUT_RDWR)
    deadline = time.monotonic() + 20
    while client.admin.command("serverStatus")["connections"]["current"] > before:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_tools_find_the_parameter_for_tests(client):
    assert client.admin.command("getParameter", "*")["enableTestCommands"] is False
    assert client.admin.command("getParameter", 1, enableTestCommands=1)["enableTestCommands"] is False
