"""Attacks on rights by users who have some: names that stand twice, keys of others, rights that have ended, older operations."""

import json
import time
import uuid

import bson
import pytest

from legacy_wire import OP_DELETE, OP_INSERT, OP_KILL_CURSORS, OP_UPDATE, LegacyWire, cstring, int32
from raw_connection import Raw, fields
from scram_client import log_in, stored_user
from server import Server

PASSWORD = "x"
UNAUTHORIZED, BAD_VALUE, DUPLICATE = 13, 2, 40413
SECRETS = [{"_id": number, "secret": True} for number in range(5)]


def on(collection, *actions, database="shop"):
    return {"resource": {"db": database, "collection": collection}, "actions": list(actions)}


ROLES = {
    "reader": [on("orders", "find")],
    "writer": [on("", "find", "insert", "update", "remove", database="mine")],
    "inserter": [on("kept", "insert"), on("orders", "find")],
    "updater": [on("kept", "update"), on("orders", "find")],
    "granter": [on("", "createUser", "grantRole", "revokeRole", "viewUser", "createRole", "viewRole", database="mine")],
    "nothing": [],
    "killer": [{"resource": {"cluster": True}, "actions": ["killAnyCursor"]}],
    "shaper": [on("own", "find", "collMod", "createCollection", "dropCollection"), on("orders", "find")],
    "merger": [{"resource": {"db": "", "collection": ""}, "actions": ["find", "insert", "update"]}],
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server with access control and an audit trail, a user for each role, and what they must not reach."""
    folder = tmp_path_factory.mktemp("guarded") / "data"
    server = Server(folder).start()
    with server.client() as client:
        client.admin["system.roles"].insert_many(
            {"_id": f"admin.{name}", "role": name, "db": "admin", "privileges": privileges, "roles": []} for name, privileges in ROLES.items())
        client.admin["system.users"].insert_many(stored_user(name, "admin", PASSWORD, [name]) for name in [*ROLES, "root"])
        client.admin["system.users"].insert_one(stored_user("eve", "mine", PASSWORD, []))
        client.shop.orders.insert_many({"_id": number} for number in range(300))
        client.shop.secrets.insert_many(SECRETS)
        client.shop.kept.insert_one({"_id": 1, "text": "old"})
    assert server.stop() == 0
    server = Server(folder, "--auth", "--audit-destination", "file").start()
    yield server
    assert server.terminate() == 0
    assert "panic" not in server.whole_log()


@pytest.fixture
def connect(guarded):
    """Makes connections of users."""
    opened = []

    def connect(user=None, database="admin"):
        raw = Raw(guarded.port)
        opened.append(raw)
        if user:
            assert log_in(raw, database, user, PASSWORD, skipEmptyExchange=True)["ok"] == 1
        return raw

    yield connect
    for raw in opened:
        raw.socket.close()


def stored(connect, collection, key):
    found = connect("root").command("admin", {"find": collection, "filter": {"_id": key}})["cursor"]["firstBatch"]
    return found[0] if found else None


# The role of another database, told by two databases: the own one first or last.
TWICE = [fields(("role", "root"), ("db", "admin"), ("db", "mine")), fields(("role", "root"), ("db", "mine"), ("db", "admin")),
         fields(("db", "mine"), ("role", "read"), ("role", "root"), ("db", "admin"))]


@pytest.mark.parametrize("role", TWICE)
def test_a_role_whose_database_stands_twice_is_given_to_nobody(connect, role):
    granter = connect("granter")
    assert granter.ask("mine", {"createRole": "own", "privileges": [], "roles": []}).get("code") in (None, 51002)
    for request in [
        {"grantRolesToUser": "eve", "roles": [role]}, {"revokeRolesFromUser": "eve", "roles": [role]},
        {"createUser": "mallory", "pwd": "p", "roles": [role]}, {"grantRolesToRole": "own", "roles": [role]},
        {"createRole": "more", "privileges": [], "roles": [role]}, {"updateRole": "own", "roles": [role]},
    ]:
        assert granter.ask("mine", request)["code"] in (BAD_VALUE, UNAUTHORIZED), request
    assert stored(connect, "system.users", "mine.eve")["roles"] == []
    assert stored(connect, "system.users", "mine.mallory") is None
    assert stored(connect, "system.roles", "mine.more") is None
    assert stored(connect, "system.roles", "mine.own")["roles"] == []


@pytest.mark.parametrize("order", [1, -1])
def test_a_user_whose_name_stands_twice_is_told_to_nobody(connect, order):
    nothing = connect("nothing")
    own, other = [("user", "nothing"), ("db", "admin")], [("user", "root"), ("db", "admin")]
    for named in [fields(*(own + other)[::order]), fields(*(own + [("user", "root")])[::order]), [fields(*(own + other)[::order])]]:
        for more in ({}, {"showCredentials": True}, {"showPrivileges": True}):
            reply = nothing.ask("admin", {"usersInfo": named, **more})
            assert reply.get("code") in (BAD_VALUE, UNAUTHORIZED), reply
    roles = [("role", "nothing"), ("db", "admin"), ("role", "killer"), ("db", "admin")][::order]
    assert nothing.ask("admin", {"rolesInfo": fields(*roles), "showPrivileges": True}).get("code") in (BAD_VALUE, UNAUTHORIZED)
    assert nothing.ask("admin", {"usersInfo": {"forAllDBs": False}})["ok"] == 0


def test_a_namespace_of_a_bulk_write_that_stands_twice_is_refused(connect):
    writer = connect("writer")
    root = stored_user("mallory", "admin", PASSWORD, ["root"])
    for names in [["mine.c", "admin.system.users"], ["admin.system.users", "mine.c"]]:
        request = {"bulkWrite": 1, "ops": [{"insert": 0, "document": root}], "nsInfo": [fields(*(("ns", name) for name in names))]}
        assert writer.ask("admin", request)["code"] in (DUPLICATE, UNAUTHORIZED)
    operation = fields(("insert", 1), ("insert", 0), ("document", root))
    request = {"bulkWrite": 1, "ops": [operation], "nsInfo": [{"ns": "mine.c"}, {"ns": "admin.system.users"}]}
    assert writer.ask("admin", request)["code"] == UNAUTHORIZED
    assert stored(connect, "system.users", "admin.mallory") is None


def merge(*options):
    return {"aggregate": "orders", "pipeline": [{"$match": {"_id": {"$lte": 2}}}, {"$merge": fields(*options)}], "cursor": {}}


def test_a_mode_or_a_target_of_merge_that_stands_twice_is_refused(connect):
    into, replace, insert = ("into", "kept"), ("whenMatched", "replace"), ("whenNotMatched", "insert")
    fail, discard = ("whenMatched", "fail"), ("whenNotMatched", "discard")
    for user, options in [
        ("inserter", [into, fail, replace, insert]), ("inserter", [into, replace, insert, fail]),
        ("updater", [into, replace, discard, insert]), ("updater", [into, replace, insert, discard]),
        ("inserter", [("into", "kept"), ("into", "orders"), fail]),
        ("merger", [("into", fields(("db", "shop"), ("coll", "kept"), ("db", "")))]),
        ("merger", [("into", fields(("coll", "orders"), ("coll", "kept")))]),
    ]:
        reply = connect(user).ask("shop", merge(*options))
        assert reply["code"] in (DUPLICATE, UNAUTHORIZED), (user, options, reply)
    for database in ("admin", "config", "local"):
        for place in ({"db": "", "coll": "kept"}, "kept"):
            reply = connect("merger").ask(database, {"aggregate": 1, "pipeline": [{"$documents": [{"a": 1}]}, {"$merge": {"into": place}}], "cursor": {}})
            assert reply["ok"] == 0
    found = connect("root").command("shop", {"find": "kept"})["cursor"]["firstBatch"]
    assert found == [{"_id": 1, "text": "old"}]


def test_a_user_does_not_take_the_keys_of_another(connect):
    nothing = connect("nothing")
    for request in [
        {"updateUser": "root", "mechanisms": ["SCRAM-SHA-1"]}, {"updateUser": "root", "mechanisms": ["SCRAM-SHA-1"], "digestPassword": True},
        {"updateUser": "root", "pwd": "p"}, {"updateUser": "root", "roles": []}, {"updateUser": "root", "customData": {}},
        {"updateUser": "root", "authenticationRestrictions": [{"clientSource": ["10.0.0.1"]}]}, {"updateUser": "nothing", "mechanisms": ["SCRAM-SHA-1"]},
    ]:
        assert nothing.ask("admin", request)["code"] == UNAUTHORIZED, request
    for user in ("root", "nothing"):
        assert set(stored(connect, "system.users", f"admin.{user}")["credentials"]) == {"SCRAM-SHA-1", "SCRAM-SHA-256"}


def test_a_view_does_not_come_to_show_more_than_its_maker_may_read(connect):
    shaper = connect("shaper")
    shaper.command("shop", {"create": "own", "viewOn": "orders", "pipeline": []})
    union = [{"$match": {"_id": -1}}, {"$unionWith": "secrets"}]
    for change in [{"pipeline": union}, {"pipeline": union, "viewOn": None}, {"viewOn": "secrets"}, {"viewOn": "secrets", "pipeline": None}]:
        assert shaper.ask("shop", {"collMod": "own", **change})["code"] == 72, change
    for change in [{"viewOn": "orders", "pipeline": union}, {"viewOn": "secrets", "pipeline": []}]:
        assert shaper.ask("shop", {"collMod": "own", **change})["code"] == UNAUTHORIZED, change
    assert "secret" not in str(shaper.command("shop", {"find": "own"})["cursor"])
    shaper.command("shop", {"collMod": "own", "viewOn": "orders", "pipeline": [{"$limit": 1}]})
    assert shaper.command("shop", {"find": "own"})["cursor"]["firstBatch"] == [{"_id": 0}]
    shaper.command("shop", {"drop": "own"})


def test_a_view_that_leads_to_itself_by_a_name_that_stands_twice_is_refused(connect):
    root = connect("root")
    for name, options in [("$lookup", [("from", "orders"), ("from", "loop"), ("pipeline", []), ("as", "x")]),
                          ("$lookup", [("from", "loop"), ("from", "orders"), ("pipeline", []), ("as", "x")]),
                          ("$unionWith", [("coll", "orders"), ("coll", "loop")]),
                          ("$unionWith", [("coll", "orders"), ("pipeline", []), ("pipeline", [{"$unionWith": "loop"}])])]:
        request = {"create": "loop", "viewOn": "orders", "pipeline": [{name: fields(*options)}]}
        assert root.ask("shop", request)["code"] in (5, DUPLICATE), options
    assert root.ask("shop", {"find": "loop"})["cursor"]["firstBatch"] == []


def lookup(**options):
    return {"$lookup": {"as": "x", **options}}


@pytest.mark.parametrize("stage", [
    lookup(**{"from": "secrets", "localField": "_id", "foreignField": "_id"}),
    lookup(**{"from": "secrets", "pipeline": []}),
    lookup(**{"from": "secrets", "pipeline": [{"$match": {}}]}),
    lookup(**{"from": {"db": "shop", "coll": "secrets"}, "pipeline": []}),
    lookup(**{"from": "orders", "pipeline": [{"$unionWith": "secrets"}]}),
    lookup(**{"pipeline": [{"$documents": [{"a": 1}]}, {"$unionWith": {"coll": "secrets"}}]}),
    {"$graphLookup": {"from": "secrets", "startWith": "$_id", "connectFromField": "_id", "connectToField": "_id", "as": "x"}},
    {"$unionWith": "secrets"}, {"$unionWith": {"coll": "secrets", "pipeline": [{"$match": {}}]}},
    {"$facet": {"a": [{"$unionWith": "secrets"}]}},
    {"$unionWith": {"coll": "orders", "pipeline": [{"$facet": {"a": [{"$lookup": {"from": "secrets", "pipeline": [], "as": "x"}}]}}]}},
])
def test_a_pipeline_reads_no_other_collection(connect, stage):
    reader = connect("reader")
    pipeline = [{"$limit": 2}, stage]
    for request in [
        {"aggregate": "orders", "pipeline": pipeline, "cursor": {}}, {"explain": {"aggregate": "orders", "pipeline": pipeline, "cursor": {}}},
        {"aggregate": "orders", "pipeline": pipeline, "explain": True},
        {"explain": {"explain": {"aggregate": "orders", "pipeline": pipeline, "cursor": {}}}},
    ]:
        reply = reader.ask("shop", request)
        assert reply.get("code") in (UNAUTHORIZED, 9, 14) and "secret" not in str(reply.get("cursor")), reply


def test_a_stage_that_makes_documents_shows_nothing_of_the_collection_beside_it(connect):
    """A pipeline that makes its documents needs no right on the collection that it names, and tells nothing of it."""
    reader = connect("reader")
    made = [{"$documents": [{"_id": 1, "made": True}]}]
    for options in ({"from": "secrets"}, {"from": "secrets", "localField": "_id", "foreignField": "_id"}, {}):
        reply = reader.ask("shop", {"aggregate": "orders", "pipeline": [{"$limit": 2}, lookup(pipeline=made, **options)], "cursor": {}})
        assert "secret" not in str(reply.get("cursor")), reply
    for first in [{"$documents": [{"a": 1}]}, {"$currentOp": {}}, {"$listLocalSessions": {}}, {"$listSessions": {}}]:
        reply = reader.ask("shop", {"aggregate": "secrets", "pipeline": [first, {"$match": {}}], "cursor": {}})
        assert "secret" not in str(reply.get("cursor")), reply


def test_a_collection_is_not_reached_by_its_number_or_by_another_type(connect):
    root, reader = connect("root"), connect("reader")
    listed = root.command("shop", {"listCollections": 1, "filter": {"name": "secrets"}})["cursor"]["firstBatch"][0]
    number = listed["info"]["uuid"]
    for value in (number, bson.Binary(uuid.UUID(bytes=bytes(number)).bytes, 3), 1, None, True, {"a": 1}, ["secrets"], bson.Regex("secrets"), bson.Code("secrets")):
        for name, more in [("find", {}), ("count", {}), ("distinct", {"key": "_id"}), ("listIndexes", {}), ("aggregate", {"pipeline": [], "cursor": {}}),
                           ("collStats", {}), ("insert", {"documents": [{}]}), ("delete", {"deletes": [{"q": {}, "limit": 0}]}), ("drop", {}),
                           ("getMore", {"collection": "secrets"})]:
            reply = reader.ask("shop", {name: value, **more})
            assert not reply["ok"] and "secret" not in str(reply.get("cursor")), (name, value, reply)
    assert root.command("shop", {"count": "secrets"})["n"] == len(SECRETS)


LOOK_ALIKES = ["System.users", "system\u200b.users", "system.user\u0455", "ѕystem.users", "system.users\u00a0", " system.users", "system%2Eusers"]


def test_a_name_that_looks_like_a_system_collection_is_another_one(connect):
    """Whoever may write to a database writes to none of its system collections, and other names have no effect."""
    writer, root = connect("writer"), connect("root")
    mallory = stored_user("mallory", "admin", PASSWORD, ["root"])
    for name in ["system.users", "system.roles", "system.views", "system.profile", "system.js", "system.buckets.x", "system.", "system.indexes"]:
        assert writer.ask("mine", {"insert": name, "documents": [mallory]})["code"] in (UNAUTHORIZED, 73), name
        assert writer.ask("mine", {"update": name, "updates": [{"q": {}, "u": {"$set": {"a": 1}}, "multi": True}]})["code"] in (UNAUTHORIZED, 73), name
        assert writer.ask("mine", {"delete": name, "deletes": [{"q": {}, "limit": 0}]})["code"] in (UNAUTHORIZED, 73), name
    root.command("admin", {"createRole": "everywhere", "privileges": [on("", "find", "insert", database="admin")], "roles": []})
    root.command("admin", {"createUser": "admins", "pwd": PASSWORD, "roles": ["everywhere"]})
    admins = connect("admins")
    for name in ["system.users", "system.roles", "system.new_users", "system.backup_users", "system.version"]:
        assert admins.ask("admin", {"insert": name, "documents": [mallory]})["code"] == UNAUTHORIZED, name
    for name in LOOK_ALIKES:
        reply = admins.ask("admin", {"insert": name, "documents": [mallory]})
        assert reply["ok"] in (0, 1)
        with Raw(root.socket.getpeername()[1]) as raw:
            assert log_in(raw, "admin", "mallory", PASSWORD)["code"] == 18, name
        root.ask("admin", {"drop": name})
    root.command("admin", {"dropUser": "admins"})
    root.command("admin", {"dropRole": "everywhere"})


def refuses(reply):
    return reply.get("code") == UNAUTHORIZED


def test_a_role_that_is_taken_away_ends_every_way_to_go_on(guarded, connect):
    root = connect("root")
    root.command("admin", {"createUser": "short", "pwd": PASSWORD, "roles": ["reader", "killer"]})
    short, victim = connect("short"), connect("reader")
    number = {"id": bson.Binary(bytes(16), 4)}
    plain = short.command("shop", {"find": "orders", "batchSize": 2})["cursor"]["id"]
    in_session = short.command("shop", {"find": "orders", "batchSize": 2, "lsid": number})["cursor"]["id"]
    transaction = {"lsid": {"id": bson.Binary(b"1" * 16, 4)}, "txnNumber": bson.Int64(1), "autocommit": False}
    short.command("shop", {"find": "orders", "startTransaction": True, **transaction})
    of_victim = victim.command("shop", {"find": "orders", "batchSize": 2})["cursor"]["id"]
    root.command("admin", {"revokeRolesFromUser": "short", "roles": ["reader", "killer"]})
    # Not renewed yet: the first that comes is an operation without a reply.
    short.socket.sendall(legacy_frame(OP_KILL_CURSORS, int32(0, 1) + of_victim.to_bytes(8, "little", signed=True)))
    assert len(victim.command("shop", {"getMore": of_victim, "collection": "orders", "batchSize": 2})["cursor"]["nextBatch"]) == 2
    assert refuses(short.ask("shop", {"getMore": plain, "collection": "orders", "batchSize": 2}))
    assert refuses(short.ask("shop", {"getMore": in_session, "collection": "orders", "batchSize": 2, "lsid": number}))
    assert refuses(short.ask("shop", {"find": "orders", **transaction}))
    assert refuses(short.ask("shop", {"killCursors": "orders", "cursors": [of_victim]}))
    # A user that is dropped is a stranger, also if there is another one of the name.
    root.command("admin", {"dropUser": "short"})
    root.command("admin", {"createUser": "short", "pwd": PASSWORD, "roles": ["root"]})
    assert short.ask("shop", {"find": "orders"})["errmsg"] == "command find requires authentication"
    assert refuses(connect("short").ask("shop", {"find": "orders", **transaction})) is False
    root.command("admin", {"dropUser": "short"})


def legacy_frame(op_code, content):
    return int32(16 + len(content), 1, 0, op_code) + content


def test_older_writes_without_a_reply_change_nothing_without_the_right(guarded, connect):
    mallory = bson.encode(stored_user("mallory", "admin", PASSWORD, ["root"]))
    everything = bson.encode({})
    attacks = [
        legacy_frame(OP_INSERT, int32(0) + cstring("admin.system.users") + mallory),
        legacy_frame(OP_INSERT, int32(0) + cstring("shop.secrets") + bson.encode({"_id": 99})),
        legacy_frame(OP_INSERT, int32(0) + cstring("shop.system.indexes") + bson.encode({"ns": "shop.secrets", "key": {"a": 1}, "name": "a_1"})),
        legacy_frame(OP_UPDATE, int32(0) + cstring("shop.secrets") + int32(3) + everything + bson.encode({"$set": {"taken": True}})),
        legacy_frame(OP_DELETE, int32(0) + cstring("shop.secrets") + int32(0) + everything),
    ]
    root = connect("root")
    cursor = root.command("shop", {"find": "orders", "batchSize": 2})["cursor"]["id"]
    attacks.append(legacy_frame(OP_KILL_CURSORS, int32(0, 1) + cursor.to_bytes(8, "little", signed=True)))
    for user in (None, "nothing", "reader"):
        raw = connect(user)
        for attack in attacks:
            raw.socket.sendall(attack)
        assert raw.command("admin", {"ping": 1})["ok"] == 1
    with LegacyWire(guarded.port) as wire:
        for namespace in ("shop.secrets", "shop.$cmd.sys.inprog", "shop.$cmd.sys.killop", "shop.$cmd.sys.unlock", "admin.system.users"):
            assert wire.query(namespace, {"op": 1}, number=-1).documents[0].get("code") == UNAUTHORIZED, namespace
        assert refuses(wire.command("shop", {"$query": {"find": "secrets"}}))
        assert refuses(wire.command("shop", {"find": "secrets", "$db": "admin"}))
    assert root.command("shop", {"find": "secrets"})["cursor"]["firstBatch"] == SECRETS
    assert len(root.command("shop", {"listIndexes": "secrets"})["cursor"]["firstBatch"]) == 1
    assert len(root.command("shop", {"getMore": cursor, "collection": "orders", "batchSize": 2})["cursor"]["nextBatch"]) == 2
    assert stored(connect, "system.users", "admin.mallory") is None


def test_users_that_are_taken_over_are_an_event(guarded, connect):
    root = connect("root")
    taken = stored_user("taken", "admin", PASSWORD, ["read"])
    root.command("admin", {"insert": "tempusers", "documents": [taken]})
    root.command("admin", {"_mergeAuthzCollections": 1, "tempUsersCollection": "admin.tempusers", "db": "admin", "drop": False})
    assert stored(connect, "system.users", "admin.taken") is not None
    deadline = time.monotonic() + 10
    while True:
        events = [json.loads(line) for line in (guarded.folder / "audit.json").read_text().splitlines()]
        found = [event for event in events if event["atype"] == "directAuthMutation"]
        if found or time.monotonic() > deadline:
            break
    assert found[-1]["param"] == {"ns": "admin.system.users", "operation": "_mergeAuthzCollections"} and found[-1]["result"] == 0
    assert taken["credentials"]["SCRAM-SHA-1"]["storedKey"] not in str(events)
