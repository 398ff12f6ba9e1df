"""The rights of users where there is no MongoDB to compare with: Pando's own commands, older operations, transactions, and
views. The comparison for each command and role is tests/acceptance/test_rights.py.
"""

import time

import bson
import pytest

from legacy_wire import LegacyWire
from raw_connection import HEADER, Raw, read_exactly
from scram_client import log_in, stored_user
from server import Server

PASSWORD = "x"
UNAUTHORIZED = 13


def privilege(collection, *actions, database="shop"):
    return {"resource": {"db": database, "collection": collection}, "actions": list(actions)}


ROLES = {
    "reader": [privilege("", "find")],
    "writer": [privilege("", "find", "insert", "update", "remove")],
    "inserter": [privilege("", "insert")],
    "loader": [privilege("", "createCollection", "createIndex", "insert")],
    "viewer": [privilege("shown", "find")],
    "maker": [privilege("", "createCollection", "collMod", "dropCollection"), privilege("orders", "find"), privilege("own", "find")],
    "lister": [privilege("", "listCollections", "listIndexes")],
    "killer": [{"resource": {"cluster": True}, "actions": ["killAnyCursor", "killop", "inprog"]}],
    "impostor": [{"resource": {"cluster": True}, "actions": ["impersonate"]}, privilege("", "find", "insert")],
}
BUILT_IN = ["root", "backup", "hostManager", "clusterMonitor", "readAnyDatabase", "dbAdminAnyDatabase", "readWriteAnyDatabase"]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server with access control, a user for each role, and the database `shop`."""
    folder = tmp_path_factory.mktemp("guarded") / "data"
    server = Server(folder).start()
    with server.client() as client:
        client.admin["system.roles"].insert_many(
            {"_id": f"admin.{name}", "role": name, "db": "admin", "privileges": privileges, "roles": []} for name, privileges in ROLES.items())
        client.admin["system.users"].insert_many(
            stored_user(name, "admin", PASSWORD, [name], ["SCRAM-SHA-1"]) for name in [*ROLES, *BUILT_IN])
        client.admin["system.users"].insert_one(stored_user("short", "admin", PASSWORD, ["reader"], ["SCRAM-SHA-1"]))
        client.shop.orders.insert_many({"_id": number} for number in range(300))
        client.shop.secrets.insert_one({"_id": "secret"})
        client.shop.command("create", "shown", viewOn="secrets", pipeline=[])
    assert server.stop() == 0
    server = Server(folder, "--auth").start()
    yield server
    assert server.terminate() == 0
    assert "panic" not in server.log()


@pytest.fixture
def connect(guarded):
    """Makes connections of users."""
    opened = []

    def connect(user=None):
        raw = Raw(guarded.port)
        opened.append(raw)
        if user:
            assert log_in(raw, "admin", user, PASSWORD, "SCRAM-SHA-1", skipEmptyExchange=True)["ok"] == 1
        return raw

    yield connect
    for raw in opened:
        raw.socket.close()


def refuses(raw, database, request):
    return raw.ask(database, request).get("code") == UNAUTHORIZED


def those_who_may(connect, users, database, request):
    return [user for user in users if not refuses(connect(user), database, request)]


def test_a_client_has_to_log_in_and_to_have_the_right(connect):
    stranger, reader = connect(), connect("reader")
    reply = stranger.ask("shop", {"find": "orders"})
    assert (reply["code"], reply["codeName"], reply["errmsg"]) == (13, "Unauthorized", "command find requires authentication")
    reply = reader.ask("shop", {"createUser": "x", "pwd": "secret", "roles": []})
    assert reply["ok"] == 0 and "secret" not in str(reply)
    reply = reader.ask("shop", {"drop": "orders"})
    assert (reply["code"], reply["errmsg"]) == (13, 'not authorized on shop to execute command { drop: "orders", $db: "shop" }')
    assert reader.command("shop", {"count": "orders"})["n"] == 300
    assert refuses(reader, "other", {"find": "orders"})
    assert stranger.ask("shop", {"nosuch": 1})["code"] == 59


def test_a_cursor_needs_the_rights_that_opened_it_until_its_end(connect):
    short, root = connect("short"), connect("root")
    users = {"update": "system.users", "updates": [{"q": {"user": "short"}, "u": {"$set": {"roles": []}}}]}
    cursor = short.command("shop", {"find": "orders", "batchSize": 2})["cursor"]["id"]
    more = {"getMore": cursor, "collection": "orders", "batchSize": 2}
    assert len(short.command("shop", more)["cursor"]["nextBatch"]) == 2
    # A change that does not concern the user.
    root.command("admin", {"update": "system.users", "updates": [{"q": {"user": "lister"}, "u": {"$set": {"customData": {"a": 1}}}}]})
    assert len(short.command("shop", more)["cursor"]["nextBatch"]) == 2
    root.command("admin", users)
    assert refuses(short, "shop", more)
    assert refuses(short, "shop", {"find": "orders"})


def test_a_right_ends_with_the_logout(connect):
    reader = connect("reader")
    assert reader.command("admin", {"logout": 1})["ok"] == 1
    assert refuses(reader, "shop", {"find": "orders"})


def test_the_commands_of_pando_alone_need_rights(connect, tmp_path):
    users = [*ROLES, *BUILT_IN]
    load = {"beginLoad": 1, "ns": "loaded", "indexes": []}
    assert those_who_may(connect, users, "shop", load) == ["loader", "root", "readWriteAnyDatabase"]
    assert those_who_may(connect, users, "admin", {"engineStatus": 1}) == ["root", "backup", "clusterMonitor"]
    assert those_who_may(connect, users, "admin", {"checkpoint": 1}) == ["root", "hostManager"]
    assert those_who_may(connect, users, "admin", {"pandoVerify": 1}) == ["root", "dbAdminAnyDatabase"]
    assert those_who_may(connect, users, "admin", {"showLiveTransactions": 1}) == ["killer", "root", "clusterMonitor"]
    backup = {"pandoBackup": str(tmp_path / "backup")}
    assert those_who_may(connect, users, "admin", backup) == ["root", "backup"]


def test_a_bulk_write_needs_the_rights_on_each_collection(connect):
    def bulk(*operations, namespaces=("shop.bulk",), **more):
        return {"bulkWrite": 1, "ops": list(operations), "nsInfo": [{"ns": name} for name in namespaces], **more}

    insert = {"insert": 0, "document": {}}
    update = {"update": 0, "filter": {"_id": 1}, "updateMods": {"$set": {"a": 1}}}
    writer, inserter = connect("writer"), connect("inserter")
    assert not refuses(inserter, "admin", bulk(insert)) and refuses(inserter, "admin", bulk(insert, update))
    assert not refuses(writer, "admin", bulk(insert, {**update, "upsert": True}, {"delete": 0, "filter": {"_id": 1}}))
    assert refuses(writer, "admin", bulk(insert, {**insert, "insert": 1}, namespaces=("shop.bulk", "other.bulk")))
    assert refuses(writer, "admin", bulk(insert, bypassDocumentValidation=True))
    # Its first operation was not carried out.
    assert writer.command("shop", {"count": "bulk", "query": {"a": 1}})["n"] <= 1


def test_a_view_is_read_by_its_own_right(connect):
    viewer, reader, maker = connect("viewer"), connect("reader"), connect("maker")
    assert [found["_id"] for found in viewer.command("shop", {"find": "shown"})["cursor"]["firstBatch"]] == ["secret"]
    assert viewer.command("shop", {"count": "shown"})["n"] == 1
    assert refuses(viewer, "shop", {"find": "secrets"})
    assert refuses(viewer, "shop", {"aggregate": "shown", "pipeline": [{"$lookup": {"from": "orders", "pipeline": [], "as": "x"}}], "cursor": {}})
    assert not refuses(reader, "shop", {"find": "shown"})
    # A view that its maker can read shows nothing else than he may read.
    assert refuses(maker, "shop", {"create": "own", "viewOn": "secrets", "pipeline": []})
    assert refuses(maker, "shop", {"create": "own", "viewOn": "orders", "pipeline": [{"$unionWith": "secrets"}]})
    maker.command("shop", {"create": "own", "viewOn": "orders", "pipeline": []})
    assert refuses(maker, "shop", {"collMod": "own", "viewOn": "secrets", "pipeline": []})
    maker.command("shop", {"create": "unseen", "viewOn": "secrets", "pipeline": []})
    assert refuses(maker, "shop", {"find": "unseen"})
    for view in ("own", "unseen"):
        maker.command("shop", {"drop": view})


def test_the_roles_of_the_user_are_a_variable(guarded, connect):
    root = connect("root")
    root.command("shop", {"createRole": "inner", "privileges": [], "roles": []})
    root.command("admin", {"createRole": "outer", "privileges": [privilege("", "find", "insert", "update")],
                           "roles": [{"role": "inner", "db": "shop"}, "reader"]})
    root.command("admin", {"createUser": "both", "pwd": PASSWORD, "roles": ["outer", "viewer"], "mechanisms": ["SCRAM-SHA-1"]})
    roles = [{"_id": f"{db}.{role}", "role": role, "db": db} for db, role in
             [("admin", "outer"), ("admin", "reader"), ("admin", "viewer"), ("shop", "inner")]]
    both, reader = connect("both"), connect("reader")

    def first(raw, database, request):
        return raw.command(database, request)["cursor"]["firstBatch"]

    one = {"aggregate": "orders", "pipeline": [{"$limit": 1}, {"$project": {"_id": 0, "r": "$$USER_ROLES", "n": "$$USER_ROLES.role", "x": "$$USER_ROLES.x"}}],
           "cursor": {}}
    assert first(both, "shop", one) == [{"r": roles, "n": [role["role"] for role in roles], "x": []}]
    assert first(reader, "shop", one) == [{"r": roles[1:2], "n": ["reader"], "x": []}]
    assert first(root, "shop", one)[0]["n"] == ["root"]
    # Finds, and statements that write.
    may = {"$expr": {"$in": ["shop.inner", "$$USER_ROLES._id"]}}
    assert both.command("shop", {"count": "orders", "query": may})["n"] == 300
    assert reader.command("shop", {"count": "orders", "query": may})["n"] == 0
    assert len(first(both, "shop", {"find": "orders", "filter": may, "limit": 5})) == 5
    changed = both.command("shop", {"update": "orders", "updates": [{"q": {"_id": 1, **may}, "u": [{"$set": {"by": "$$USER_ROLES.db"}}]}]})
    assert (changed["n"], changed["nModified"]) == (1, 1)
    assert first(both, "shop", {"find": "orders", "filter": {"_id": 1}}) == [{"_id": 1, "by": ["admin", "admin", "admin", "shop"]}]
    # A view shows each user his documents, also where a stage of another pipeline searches it.
    root.command("shop", {"insert": "notes", "documents": [{"_id": 1, "for": "outer"}, {"_id": 2, "for": "reader"}, {"_id": 3, "for": "nobody"}]})
    root.command("shop", {"create": "mine", "viewOn": "notes", "pipeline": [{"$match": {"$expr": {"$in": ["$for", "$$USER_ROLES.role"]}}}]})
    join = {"aggregate": "orders", "pipeline": [{"$limit": 1}, {"$lookup": {"from": "mine", "pipeline": [], "as": "mine"}}], "cursor": {}}
    union = {"aggregate": "nothing", "pipeline": [{"$unionWith": "mine"}], "cursor": {}}
    for raw, ids in ((both, [1, 2]), (reader, [2]), (root, [])):
        assert [note["_id"] for note in first(raw, "shop", {"find": "mine"})] == ids
        assert [note["_id"] for note in first(raw, "shop", join)[0]["mine"]] == ids
        assert [note["_id"] for note in first(raw, "shop", union)] == ids
        assert raw.command("shop", {"count": "mine"})["n"] == len(ids)
    # A role that is taken away is gone with the next request.
    root.command("admin", {"revokeRolesFromUser": "both", "roles": ["viewer"]})
    assert first(both, "shop", one)[0]["n"] == ["outer", "reader", "inner"]
    root.command("admin", {"revokeRolesFromRole": "outer", "roles": [{"role": "inner", "db": "shop"}]})
    assert first(both, "shop", one)[0]["n"] == ["outer", "reader"]


def session(number, **more):
    return {"id": bson.Binary(bytes([number] * 16), 4), **more}


def test_a_transaction_belongs_to_its_user(connect):
    writer, impostor, root = connect("writer"), connect("impostor"), connect("root")
    number = {"lsid": session(1), "txnNumber": bson.Int64(1), "autocommit": False}
    writer.command("shop", {"insert": "kept", "documents": [{"_id": 1}], "startTransaction": True, **number})
    # The same number of another user is another session, without a transaction.
    for other in (impostor, root):
        assert other.ask("admin", {"commitTransaction": 1, **number})["code"] == 251
        assert other.ask("admin", {"abortTransaction": 1, **number})["code"] == 251
    digest = root.command("admin", {"aggregate": 1, "pipeline": [
        {"$currentOp": {"allUsers": True}}, {"$match": {"type": "idleSession"}}], "cursor": {}})["cursor"]["firstBatch"][0]["lsid"]["uid"]
    named = {**number, "lsid": session(1, uid=digest)}
    assert root.ask("admin", {"commitTransaction": 1, **named})["code"] == UNAUTHORIZED
    assert not refuses(connect("reader"), "shop", {"find": "orders", "lsid": session(2)})
    # Statements of a transaction need their rights, and one that is refused leaves it open.
    assert refuses(writer, "other", {"insert": "c", "documents": [{}], **number})
    assert impostor.command("shop", {"find": "kept", **named})["cursor"]["firstBatch"] == [{"_id": 1}]
    writer.command("admin", {"commitTransaction": 1, **number})
    assert writer.command("shop", {"count": "kept"})["n"] == 1
    writer.command("shop", {"delete": "kept", "deletes": [{"q": {}, "limit": 0}]})


def test_a_transaction_of_a_connection_ends_with_the_logout(connect):
    writer = connect("writer")
    writer.command("shop", {"insert": "bound", "documents": [{"_id": 0}]})
    writer.command("shop", {"beginTransaction": 1})
    writer.command("shop", {"insert": "bound", "documents": [{"_id": 1}]})
    writer.command("admin", {"logout": 1})
    log_in(writer, "admin", "writer", PASSWORD, "SCRAM-SHA-1", skipEmptyExchange=True)
    assert writer.ask("admin", {"rollbackTransaction": 1})["code"] != 0
    assert writer.command("shop", {"count": "bound"})["n"] == 1


def test_older_operations_need_the_same_rights(guarded, connect):
    def log_in_by_query(wire, user):
        class AsRaw:
            ask = staticmethod(lambda database, request: wire.command(database, request))

        assert log_in(AsRaw, "admin", user, PASSWORD, "SCRAM-SHA-1", skipEmptyExchange=True)["ok"] == 1

    with LegacyWire(guarded.port) as wire:
        for namespace in ("shop.orders", "shop.system.indexes", "shop.system.namespaces", "shop.$cmd.sys.inprog"):
            refused = wire.query(namespace, {}).documents[0]
            assert refused.get("code") == UNAUTHORIZED, (namespace, refused)
    with LegacyWire(guarded.port) as wire, LegacyWire(guarded.port) as lister, LegacyWire(guarded.port) as other:
        log_in_by_query(wire, "reader")
        log_in_by_query(lister, "lister")
        log_in_by_query(other, "writer")
        first = wire.query("shop.orders", {}, number=2)
        assert [document["_id"] for document in first.documents] == [0, 1]
        assert wire.query("shop.system.indexes", {}).documents[0]["code"] == UNAUTHORIZED
        assert {found["name"] for found in lister.query("shop.system.namespaces", {}).documents} >= {"shop.orders"}
        assert lister.query("shop.system.indexes", {}).documents[0]["name"] == "_id_"
        assert lister.query("shop.orders", {}).documents[0]["code"] == UNAUTHORIZED
        # Another user can neither read nor kill the cursor.
        refused = other.get_more("shop.orders", first.cursor, 2)
        assert refused.documents[0]["code"] == UNAUTHORIZED
        other.kill_cursors(first.cursor)
        assert other.command("admin", {"ping": 1})["ok"] == 1
        assert [document["_id"] for document in wire.get_more("shop.orders", first.cursor, 2).documents] == [2, 3]
        wire.kill_cursors(first.cursor)
        assert wire.get_more("shop.orders", first.cursor, 2).documents == []
        # A write has no answer; getLastError tells.
        wire.insert("shop.orders", {"_id": "x"})
        assert wire.last_error("shop")["code"] == UNAUTHORIZED
    assert connect("reader").command("shop", {"count": "orders"})["n"] == 300


def reply_of(raw):
    """The reply to a request that was sent before."""
    length, *_ = HEADER.unpack(read_exactly(raw.socket, HEADER.size))
    return bson.decode(read_exactly(raw.socket, length - HEADER.size)[5:])


def test_an_operation_is_killed_by_its_user_or_by_the_right(guarded, connect):
    endless = {"aggregate": 1, "pipeline": [{"$documents": [{"a": [*range(1000)]}]}, *[{"$unwind": "$a"}, {"$set": {"a": [*range(1000)]}}] * 3,
                                            {"$unwind": "$a"}, {"$match": {"a": -1}}], "cursor": {}}
    for killer in ("reader", "killer"):
        busy = connect("reader")
        busy.send("shop", endless)
        watch, deadline = connect("root"), time.monotonic() + 30
        found = []
        while not found and time.monotonic() < deadline:
            found = watch.command("admin", {"currentOp": 1, "ns": "shop.$cmd.aggregate"})["inprog"]
        assert found[0]["effectiveUsers"] == [{"user": "reader", "db": "admin"}]
        number = found[0]["opid"]
        assert refuses(connect("writer"), "admin", {"killOp": 1, "op": number})
        assert connect(killer).command("admin", {"killOp": 1, "op": number})["ok"] == 1
        assert reply_of(busy)["code"] == 11601
