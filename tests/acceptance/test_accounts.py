"""Users, roles and logins, compared with MongoDB: replies, error codes and stored documents."""

import base64
import uuid

import bson
import pytest
from exact import LENIENT

from oracle import Oracle
from pymongo import MongoClient
from raw_connection import Raw
from scram_client import Attempt, going_on, log_in, start
from server import Server

MECHANISMS = ["SCRAM-SHA-1", "SCRAM-SHA-256"]
OF_TIME = ("operationTime", "$clusterTime")


def shape(value, name=""):
    """A reply as it is compared: without numbers of users, with the forms of keys, with sets in one order."""
    if name == "credentials" and "external" not in value:
        keys = lambda stored: {key: len(base64.b64decode(stored[key])) for key in ("salt", "storedKey", "serverKey")}
        return [(mechanism, stored["iterationCount"], keys(stored)) for mechanism, stored in value.items()]
    if isinstance(value, dict):
        kept = [(name, shape(part, name)) for name, part in value.items() if name not in (*OF_TIME, "errmsg")]
        kept = [(name, len(part) if name == "userId" else part) for name, part in kept]
        return sorted(kept) if name == "cursor" else kept
    if isinstance(value, list):
        parts = [shape(part) for part in value]
        return sorted(parts, key=repr) if name in SETS else parts
    return value


SETS = {"roles", "inheritedRoles", "inheritedPrivileges", "authenticatedUserRoles", "authenticatedUserPrivileges", "users"}


class Pair:
    """Both servers, and two databases of the test."""

    def __init__(self, both):
        self.both = both
        self.first, self.second = f"a{uuid.uuid4().hex[:8]}", f"b{uuid.uuid4().hex[:8]}"

    def named(self, value):
        """A request with the names of the databases in their places."""
        if isinstance(value, dict):
            return {name: self.named(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self.named(part) for part in value]
        return {"FIRST": self.first, "SECOND": self.second}.get(value, value) if isinstance(value, str) else value

    def same(self, request, database="FIRST"):
        side, request = self.both.on(self.named(database)), self.named(request)
        oracle, pando = (bson.decode(raw, LENIENT) for raw in (side.ask_oracle(request), side.ask_pando(request)))
        assert shape(pando) == shape(oracle), f"{request}\n MongoDB: {oracle}\n Pando: {pando}"
        return pando

    def stored(self, collection):
        """The documents of both servers are alike."""
        find = {"find": collection, "filter": {"db": {"$in": ["FIRST", "SECOND"]}}, "sort": {"_id": 1}}
        return self.same(find, "admin")["cursor"]["firstBatch"]


@pytest.fixture
def pair(both):
    pair = Pair(both)
    yield pair
    for client in (both.oracle, both.pando):
        for database in (pair.first, pair.second, "config", "$external"):
            client[database].command("dropAllUsersFromDatabase") if database[0] != "$" else None
            client[database].command("dropAllRolesFromDatabase") if database[0] != "$" else None


def user(name, **more):
    return {"createUser": name, "pwd": "p", "roles": [], **more}


RESTRICTION = {"clientSource": ["127.0.0.1"], "serverAddress": ["127.0.0.1", "::1/64"]}
CREATIONS = [
    user("u"), user("u"), user(""), user(1), {"createUser": "x", "roles": []}, {"createUser": "x", "pwd": "p"}, user("x", pwd=""),
    user("x", pwd=1), user("x", roles=1), user("x", roles=[1]), user("x", roles=["nope"]), user("x", roles=["nope", "no"]),
    user("r1", roles=[{"role": "read", "db": "SECOND"}]), user("x", roles=[{"role": "read"}]), user("x", roles=[{"db": "read"}]),
    user("r2", roles=[{"role": "read", "db": "SECOND", "z": 1}]), user("x", roles=[{"role": 1, "db": "x"}]), user("x", roles=[""]),
    user("r3", roles=["read", "read", "dbOwner"], customData={"a": 1}), user("x", customData=1), user("c", customData={}),
    user("x", mechanisms=[]), user("x", mechanisms=["BOGUS"]), user("x", mechanisms="SCRAM-SHA-1"), user("x", mechanisms=[1]),
    user("m1", mechanisms=["SCRAM-SHA-1", "SCRAM-SHA-1"]), user("m2", mechanisms=["SCRAM-SHA-256"]), user("x", digestPassword=False),
    user("m3", digestPassword=False, mechanisms=["SCRAM-SHA-1"]), user("x", digestPassword="x"), user("x", bogus=1),
    user("w", writeConcern={"w": 1, "j": True}), user("x", writeConcern={"w": 5}), user("u.x$y"), user("p1", pwd="p\u00ad"),
    user("x", pwd="\u0007"), user("p2", pwd="\u0007", mechanisms=["SCRAM-SHA-1"]), user("u\u00e9\ufb01"), user("a\0b"),
    user("x", pwd="a\0b"), user("a1", authenticationRestrictions=[]), user("a2", authenticationRestrictions=[RESTRICTION]),
    user("x", authenticationRestrictions=[{}]), user("x", authenticationRestrictions=[{"bogus": 1}]),
    user("x", authenticationRestrictions=[{"clientSource": "127.0.0.1"}]), user("x", authenticationRestrictions=[{"clientSource": [1]}]),
    user("x", authenticationRestrictions=[{"clientSource": ["x"]}]), user("x", authenticationRestrictions=[{"clientSource": ["::1/129"]}]),
    user("x", authenticationRestrictions=1), user("x", authenticationRestrictions=[1]),
    user("a3", authenticationRestrictions=[{"clientSource": []}, RESTRICTION], customData={"b": 1}, roles=["read"]),
    user("x", roles=["root"]),
]


def test_create_user(pair):
    for request in CREATIONS:
        pair.same(request)
    pair.same(user("x"), "local")
    pair.same(user("x"), "$external")
    pair.same({"createUser": "x", "roles": ["no"]}, "FIRST")
    assert len(pair.stored("system.users")) > 10
    pair.same({"listIndexes": "system.users"}, "admin")


def test_update_user(pair):
    pair.same(user("u", customData={"a": 1}))
    for change in [
        {}, {"customData": {"b": 1}}, {"pwd": ""}, {"roles": ["nope"]}, {"roles": ["read"]}, {"roles": []}, {"roles": [1]},
        {"mechanisms": ["SCRAM-SHA-1"]}, {"mechanisms": ["SCRAM-SHA-256"]}, {"mechanisms": ["SCRAM-SHA-256"], "pwd": "x"},
        {"mechanisms": []}, {"pwd": "x", "digestPassword": False}, {"pwd": "x", "digestPassword": True}, {"digestPassword": True},
        {"authenticationRestrictions": []}, {"authenticationRestrictions": [RESTRICTION]}, {"bogus": 1}, {"customData": {}},
        {"pwd": "y", "roles": ["dbAdmin"], "customData": {"z": 1}}, {"writeConcern": {"w": 2}, "roles": []},
        {"authenticationRestrictions": []},
    ]:
        pair.same({"updateUser": "u", **change})
        pair.stored("system.users")
    for request in [
        {"updateUser": "nope", "pwd": "x"}, {"updateUser": "nope"}, {"updateUser": "nope", "roles": ["nope"]}, {"updateUser": 1},
        {"updateUser": "", "pwd": "x"},
    ]:
        pair.same(request)


def test_roles_of_users(pair):
    pair.same(user("u"))
    for verb in ("grantRolesToUser", "revokeRolesFromUser"):
        for request in [
            {verb: "u", "roles": ["read"]}, {verb: "u", "roles": ["read", "dbAdmin"]}, {verb: "u", "roles": []},
            {verb: "u", "roles": ["nope"]}, {verb: "nope", "roles": ["read"]}, {verb: "nope", "roles": ["nope"]}, {verb: "u"},
            {verb: 1, "roles": []}, {verb: "u", "roles": ["read"], "bogus": 1}, {verb: "u", "roles": [{"role": "read", "db": "SECOND"}]},
        ]:
            pair.same(request)
            pair.stored("system.users")


def test_users_info(pair):
    for name, more in [
        ("u", {"roles": ["dbAdmin"]}), ("c", {"customData": {"a": 1}, "roles": ["read"]}),
        ("r", {"authenticationRestrictions": [RESTRICTION]}), ("m", {"mechanisms": ["SCRAM-SHA-256"]}),
    ]:
        pair.same(user(name, **more))
    pair.same(user("t", roles=["read", {"role": "readWrite", "db": "FIRST"}]), "SECOND")
    for request in [
        {"usersInfo": 1}, {"usersInfo": "u"}, {"usersInfo": "nope"}, {"usersInfo": {"user": "t", "db": "SECOND"}},
        {"usersInfo": ["u", {"user": "t", "db": "SECOND"}, "nope", "u"]}, {"usersInfo": {"forAllDBs": False}},
        {"usersInfo": "u", "showCredentials": True}, {"usersInfo": "c", "showCustomData": False}, {"usersInfo": "c", "showPrivileges": True},
        {"usersInfo": 1, "showPrivileges": True}, {"usersInfo": "r", "showAuthenticationRestrictions": True},
        {"usersInfo": ["r", "u"], "showAuthenticationRestrictions": True}, {"usersInfo": 1, "showAuthenticationRestrictions": True},
        {"usersInfo": {"forAllDBs": True}, "showPrivileges": True}, {"usersInfo": 1, "filter": {"user": "u"}},
        {"usersInfo": 1, "filter": {"roles.role": "read"}}, {"usersInfo": 1, "filter": {"mechanisms": "SCRAM-SHA-1"}},
        {"usersInfo": 1, "filter": {"customData.a": 1}}, {"usersInfo": "u", "filter": {"user": "x"}},
        {"usersInfo": "u", "showPrivileges": True, "filter": {"user": "u"}}, {"usersInfo": 1, "filter": 1},
        {"usersInfo": 1, "filter": {"$bad": 1}}, {"usersInfo": 1.0}, {"usersInfo": 2}, {"usersInfo": 0}, {"usersInfo": True},
        {"usersInfo": ""}, {"usersInfo": {}}, {"usersInfo": []}, {"usersInfo": [1]}, {"usersInfo": {"user": "u"}},
        {"usersInfo": {"db": "u"}}, {"usersInfo": {"user": "u", "db": "FIRST", "x": 1}}, {"usersInfo": None},
        {"usersInfo": "u", "bogus": 1}, {"usersInfo": "u", "showCredentials": 1}, {"usersInfo": "u", "showCredentials": "x"},
        {"usersinfo": 1}, {"usersInfo": "u", "showCredentials": True, "showPrivileges": True}, {"usersInfo": 1, "writeConcern": {"w": 1}},
    ]:
        pair.same(request)
    pair.same({"usersInfo": 1}, "nodb")


def test_drop_users(pair):
    for name in ("u", "v", "w"):
        pair.same(user(name))
    for request in [
        {"dropUser": "nope"}, {"dropUser": 1}, {"dropUser": "u"}, {"dropUser": "u"}, {"dropUser": "v", "bogus": 1}, {"dropUser": ""},
        {"dropAllUsersFromDatabase": 1, "bogus": 1}, {"dropAllUsersFromDatabase": 1}, {"dropAllUsersFromDatabase": 1},
        {"invalidateUserCache": 1}, {"invalidateUserCache": 1, "bogus": 1}, {"invalidateUserCache": 1, "writeConcern": {"w": 1}},
    ]:
        pair.same(request)
        pair.stored("system.users")


def on(collection, *actions, database="FIRST"):
    return {"resource": {"db": database, "collection": collection}, "actions": list(actions)}


def role(name, privileges=(), roles=(), **more):
    return {"createRole": name, "privileges": list(privileges), "roles": list(roles), **more}


def raw_privilege(resource, *actions):
    return {"resource": resource, "actions": list(actions)}


def test_create_role(pair):
    for request in [
        role("a"), role("a"), role(""), role(1), {"createRole": "x", "privileges": []}, {"createRole": "x", "roles": []}, role("read"),
        role("root"), role("x", roles=["nope"]), role("x", roles=["nope", "no"]), role("x", roles=[1]), role("a\0b"),
        role("b", [on("c", "find", "insert", "find")], ["a", "read"]), role("x", [on("c", "find", database="SECOND")]),
        role("x", [raw_privilege({"cluster": True}, "serverStatus")]), role("x", [raw_privilege({"db": "", "collection": ""}, "find")]),
        role("x", [raw_privilege({"anyResource": True}, "find")]), role("x", roles=[{"role": "read", "db": "SECOND"}]),
        role("x", [on("c", "bogus")]), role("x", [on("c")]), role("x", [{"resource": {"db": "FIRST", "collection": "c"}}]),
        role("x", [{"actions": ["find"]}]), role("x", [raw_privilege({"db": "FIRST"}, "find")]), role("x", [raw_privilege({"bogus": 1}, "find")]),
        role("x", [raw_privilege({}, "find")]), role("x", [raw_privilege({"db": 1, "collection": "c"}, "find")]),
        role("x", [raw_privilege(1, "find")]), role("x", [{"resource": {"db": "FIRST", "collection": "c"}, "actions": "find"}]),
        role("x", [on("c", 1)]), {"createRole": "x", "privileges": 1, "roles": []}, role("x", [1]), role("y", [{**on("c", "find"), "x": 1}]),
        role("x", [raw_privilege({"db": "FIRST", "collection": "c", "cluster": True}, "find")]),
        role("x", [raw_privilege({"cluster": False}, "find")]), role("d", [on("x", "find"), on("x", "insert"), on("y", "update", "find")]),
        role("x", [raw_privilege({"db": "FIRST", "system_buckets": "x"}, "find")]), role("e", authenticationRestrictions=[RESTRICTION]),
        role("f", authenticationRestrictions=[]), role("x", authenticationRestrictions=[{}]), role("x", bogus=1),
        role("w", writeConcern={"w": 1}),
    ]:
        pair.same(request)
    for database in ("local", "$external"):
        pair.same(role("x"), database)
    pair.same(role("root"), "admin")
    pair.stored("system.roles")
    pair.same({"listIndexes": "system.roles"}, "admin")


def test_inherited_roles_and_cycles(pair):
    for name, inherited in [("a", []), ("b", ["a", "read"]), ("d", [])]:
        pair.same(role(name, roles=inherited))
    for request in [
        {"grantRolesToRole": "a", "roles": ["a"]}, {"grantRolesToRole": "a", "roles": ["b"]}, {"grantRolesToRole": "a", "roles": ["d"]},
        {"grantRolesToRole": "d", "roles": ["b"]}, {"grantRolesToRole": "a", "roles": ["nope"]}, {"grantRolesToRole": "nope", "roles": ["a"]},
        {"grantRolesToRole": "read", "roles": ["a"]}, {"grantRolesToRole": "a", "roles": []}, {"grantRolesToRole": "a"},
        {"grantRolesToRole": "a", "roles": [{"role": "read", "db": "SECOND"}]}, {"grantRolesToRole": "a", "roles": ["d"], "bogus": 1},
        {"revokeRolesFromRole": "a", "roles": ["nope"]}, {"revokeRolesFromRole": "a", "roles": ["d"]},
        {"revokeRolesFromRole": "nope", "roles": ["d"]}, {"revokeRolesFromRole": "read", "roles": ["d"]},
        {"revokeRolesFromRole": "a", "roles": []}, {"updateRole": "a", "roles": ["a"]}, {"updateRole": "a", "roles": ["b"]},
        {"updateRole": "a", "roles": ["nope"]}, {"updateRole": "nope", "roles": []}, {"updateRole": "nope"}, {"updateRole": "read", "roles": []},
    ]:
        pair.same(request)
        pair.stored("system.roles")


def test_privileges_of_roles(pair):
    pair.same(role("a"))
    for request in [
        {"grantPrivilegesToRole": "a", "privileges": [on("z", "find")]}, {"grantPrivilegesToRole": "a", "privileges": [on("z", "insert")]},
        {"grantPrivilegesToRole": "a", "privileges": []}, {"grantPrivilegesToRole": "nope", "privileges": [on("z", "find")]},
        {"grantPrivilegesToRole": "read", "privileges": [on("z", "find")]}, {"grantPrivilegesToRole": "a"},
        {"grantPrivilegesToRole": "a", "privileges": [on("z", "find", database="SECOND")]},
        {"revokePrivilegesFromRole": "a", "privileges": [on("z", "insert", "update")]},
        {"revokePrivilegesFromRole": "a", "privileges": [on("q", "insert")]}, {"revokePrivilegesFromRole": "nope", "privileges": [on("q", "find")]},
        {"revokePrivilegesFromRole": "read", "privileges": [on("q", "find")]}, {"revokePrivilegesFromRole": "a", "privileges": []},
        {"revokePrivilegesFromRole": "a", "privileges": [on("z", "find")]}, {"updateRole": "a"}, {"updateRole": "a", "privileges": []},
        {"updateRole": "a", "roles": ["read"], "privileges": [on("z", "find")]},
        {"updateRole": "a", "authenticationRestrictions": [RESTRICTION]}, {"updateRole": "a", "authenticationRestrictions": []},
        {"updateRole": "a", "bogus": 1}, {"updateRole": "a", "privileges": [on("z", "find", database="SECOND")]},
    ]:
        pair.same(request)
        pair.stored("system.roles")


def test_roles_info(pair):
    for name, privileges, inherited, more in [
        ("d", [on("x", "find", "insert"), on("y", "update")], [], {}), ("a", [on("z", "find")], ["d"], {}), ("b", [on("c", "find")], ["a", "read"], {}),
        ("e", [], ["b", "d"], {"authenticationRestrictions": [RESTRICTION]}), ("f", [], ["e"], {}),
    ]:
        pair.same(role(name, privileges, inherited, **more))
    for request in [
        {"rolesInfo": 1}, {"rolesInfo": "a"}, {"rolesInfo": "e"}, {"rolesInfo": "read"}, {"rolesInfo": "nope"},
        {"rolesInfo": {"role": "a", "db": "FIRST"}}, {"rolesInfo": ["a", "b", {"role": "read", "db": "SECOND"}]},
        {"rolesInfo": "b", "showPrivileges": True}, {"rolesInfo": "read", "showPrivileges": True},
        {"rolesInfo": "b", "showPrivileges": "asUserFragment"}, {"rolesInfo": ["a", "e"], "showPrivileges": "asUserFragment"},
        {"rolesInfo": ["a", "read"], "showPrivileges": "asUserFragment"}, {"rolesInfo": 1, "showPrivileges": "asUserFragment"},
        {"rolesInfo": "b", "showPrivileges": "x"}, {"rolesInfo": 1, "showPrivileges": True}, {"rolesInfo": 1, "showBuiltinRoles": True},
        {"rolesInfo": 1, "showBuiltinRoles": True, "showPrivileges": True}, {"rolesInfo": "e", "showAuthenticationRestrictions": True},
        {"rolesInfo": "e", "showPrivileges": True, "showAuthenticationRestrictions": True},
        {"rolesInfo": "f", "showPrivileges": True, "showAuthenticationRestrictions": True},
        {"rolesInfo": "read", "showAuthenticationRestrictions": True}, {"rolesInfo": 1, "showAuthenticationRestrictions": True},
        {"rolesInfo": ["e", "a"], "showPrivileges": "asUserFragment", "showAuthenticationRestrictions": True},
        {"rolesInfo": {}}, {"rolesInfo": 2}, {"rolesInfo": ""}, {"rolesInfo": []}, {"rolesInfo": {"forAllDBs": True}}, {"rolesInfo": "a", "bogus": 1},
        {"rolesInfo": "a", "showBuiltinRoles": "x"}, {"rolesInfo": None}, {"rolesInfo": "nope", "showPrivileges": "asUserFragment"},
    ]:
        pair.same(request)
    pair.same({"rolesInfo": "readWriteAnyDatabase", "showPrivileges": True}, "admin")


def test_drop_roles(pair):
    for name, inherited in [("a", []), ("b", ["a"]), ("c", ["a", "b"])]:
        pair.same(role(name, roles=inherited))
    pair.same(user("u", roles=["a", "b", "read"]))
    for request in [{"dropRole": "nope"}, {"dropRole": "read"}, {"dropRole": "a"}, {"dropRole": 1}, {"dropRole": "b", "bogus": 1}]:
        pair.same(request)
        pair.stored("system.roles")
        pair.stored("system.users")
    for request in [{"dropAllRolesFromDatabase": 1, "bogus": 1}, {"dropAllRolesFromDatabase": 1}, {"dropAllRolesFromDatabase": 1}]:
        pair.same(request)
        pair.stored("system.roles")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_stored_users_are_carried_from_one_server_to_the_other(pair, oracle_server, pando_server, mechanism):
    """As mongodump and mongorestore do: the documents as they are, by way of a collection of the tool."""
    sides = {"oracle": (pair.both.oracle, oracle_server), "pando": (pair.both.pando, pando_server)}
    for source, target in [("oracle", "pando"), ("pando", "oracle")]:
        database = f"{source}_{uuid.uuid4().hex[:8]}"
        giver, taker = sides[source][0], sides[target][0]
        giver[database].command("createRole", "r", privileges=[], roles=["read"])
        giver[database].command("createUser", "ada", pwd="s\u00e9cret\u2168", roles=["r"], customData={"a": 1})
        for kind in ("users", "roles"):
            taker.admin[f"temp{kind}"].insert_many(list(giver.admin[f"system.{kind}"].find({"db": database})))
        taker.admin.command(
            "_mergeAuthzCollections", tempUsersCollection="admin.tempusers", tempRolesCollection="admin.temproles", db=database, drop=False)
        for kind in ("users", "roles"):
            taker.admin.drop_collection(f"temp{kind}")
            assert list(taker.admin[f"system.{kind}"].find({"db": database})) == list(giver.admin[f"system.{kind}"].find({"db": database}))
        with MongoClient(sides[target][1].uri, username="ada", password="s\u00e9cret\u2168", authSource=database, authMechanism=mechanism) as client:
            status = client.admin.command("connectionStatus")["authInfo"]
            assert status["authenticatedUsers"] == [{"user": "ada", "db": database}]
            assert {named["role"] for named in status["authenticatedUserRoles"]} == {"r", "read"}
        for client in (giver, taker):
            client[database].command("dropAllUsersFromDatabase")
            client[database].command("dropAllRolesFromDatabase")


def test_the_merge_of_users_checks_its_fields(pair):
    complete = {"tempUsersCollection": "", "tempRolesCollection": "", "db": "FIRST", "drop": False}
    for request in [{}, complete, {**complete, "bogus": 1}, {**complete, "drop": "x"}, {**complete, "db": 1}]:
        pair.same({"_mergeAuthzCollections": 1, **request}, "admin")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """Both servers with access control, and the users of `logins`."""
    oracle = Oracle().start_guarded()
    pando = Server(tmp_path_factory.mktemp("guarded") / "data", "--auth", "--persona", "standalone").start()
    for server in (oracle, pando):
        with Raw(server.port) as raw:
            raw.command("admin", user("ada", roles=["root"]))
            log_in(raw, "admin", "ada", "p")
            for more in [user("bob"), user("old", mechanisms=["SCRAM-SHA-1"]), user("new", mechanisms=["SCRAM-SHA-256"])]:
                raw.command("admin", more)
            raw.command("admin", user("far", authenticationRestrictions=[{"clientSource": ["10.0.0.0/8"]}]))
            raw.command("admin", role("distant", authenticationRestrictions=[{"clientSource": ["10.0.0.0/8"]}]))
            raw.command("admin", user("farther", roles=["distant"]))
            raw.command("test", user("tim"))
    yield oracle, pando
    oracle.stop()
    pando.terminate()


def told(reply):
    """A reply without what differs from one exchange to the next."""
    kept = {name: value for name, value in reply.items() if name in ("ok", "code", "codeName", "errmsg", "done", "conversationId", "authInfo")}
    return kept | ({"payload": reply["payload"][:2]} if "payload" in reply else {})


def both_told(guarded, conversation):
    """The replies of a conversation, alike from both servers."""
    replies = []
    for server in guarded:
        with Raw(server.port) as raw:
            replies.append([told(reply) for reply in conversation(raw)])
    assert replies[0] == replies[1]
    return replies[0]


STATUS = {"connectionStatus": 1}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_logins(guarded, mechanism):
    def conversation(raw):
        yield raw.ask("admin", {"logout": 1})
        yield raw.ask("admin", going_on(b""))
        yield log_in(raw, "admin", "ada", "wrong", mechanism)
        yield log_in(raw, "admin", "ada", "p", mechanism)
        yield raw.ask("admin", STATUS)
        yield log_in(raw, "admin", "ada", "p", mechanism, skipEmptyExchange=True)
        yield log_in(raw, "admin", "bob", "p", mechanism)
        yield log_in(raw, "test", "tim", "p", mechanism)
        yield raw.ask("test", {"logout": 1})
        yield raw.ask("admin", STATUS)
        yield raw.ask("admin", {"logout": 1, "bogus": 1})
        yield raw.ask("admin", {"logout": 1})
        yield raw.ask("admin", {"logout": 1})
        yield log_in(raw, "test", "tim", "p", mechanism)
        yield raw.ask("test", STATUS)

    both_told(guarded, conversation)


def test_the_fields_of_logins(guarded):
    first = Attempt("ada", "p").first
    requests = [
        {"saslStart": 1}, {"saslStart": 1, "mechanism": "SCRAM-SHA-256"}, {"saslStart": 1, "payload": b""}, start(first, "BOGUS"),
        start(first, ""), start(first, "PLAIN"), start(first, "GSSAPI"), start(first, "MONGODB-X509"), start(first, "MONGODB-CR"),
        start(first, 1), start("x"), start(1), start(b""), start(first, bogus=1), start(first, autoAuthorize="x"), start(first, options=1),
        start(first, options={"skipEmptyExchange": 1}), start(first, db="x"), start(base64.b64encode(first).decode()), {"saslContinue": 1},
        {"saslContinue": 1, "conversationId": 1}, going_on(b"", "x"), going_on(b"", 1.0), {**going_on(b""), "bogus": 1}, going_on(b"", 2),
        {"authenticate": 1}, {"authenticate": 1, "mechanism": "MONGODB-CR"}, {"authenticate": 1, "mechanism": "SCRAM-SHA-1"},
        {"connectionStatus": 1, "showPrivileges": "x"}, {"connectionStatus": 1, "bogus": 1}, {"connectionStatus": 1, "showPrivileges": 1},
        {"bogus": 1}, {"find": "c"}, {"usersInfo": 1}, {"endSessions": []}, {"getLog": "global"},
        {"hello": 1, "saslSupportedMechs": "ada"}, {"hello": 1, "saslSupportedMechs": 1}, {"hello": 1, "saslSupportedMechs": {"user": "ada"}},
        {"hello": 1, "speculativeAuthenticate": {}}, {"hello": 1, "speculativeAuthenticate": 1}, {"hello": 1, "speculativeAuthenticate": {"bogus": 1}},
    ]

    def conversation(raw):
        for request in requests:
            yield {name: value for name, value in raw.ask("admin", request).items() if request.get("hello") is None or name != "conversationId"}

    both_told(guarded, conversation)


@pytest.mark.parametrize("requests", [
    [start(Attempt("ada", "p").first), going_on(b"", 2), going_on(b"")],
    [start(Attempt("ada", "p").first), start(Attempt("ada", "p").first), going_on(b"")],
    [start(Attempt("ada", "p").first), start(b"", "BOGUS"), going_on(b"")],
    [start(Attempt("ada", "p").first), {"ping": 1}, STATUS, going_on(b""), going_on(b"")],
    [start(Attempt("old", "p").first), start(Attempt("new", "p").first, "SCRAM-SHA-1")],
])
def test_messages_in_a_wrong_order(guarded, requests):
    both_told(guarded, lambda raw: (raw.ask("admin", request) for request in requests))


@pytest.mark.parametrize("name", ["far", "farther"])
def test_restrictions_of_addresses(guarded, name):
    both_told(guarded, lambda raw: [log_in(raw, "admin", name, "p"), raw.ask("admin", STATUS)])


def test_changes_reach_open_connections(guarded):
    replies = []
    for server in guarded:
        with Raw(server.port) as admin, Raw(server.port) as open_one:
            log_in(admin, "admin", "ada", "p")
            admin.command("admin", user("open", roles=["readWrite"]))
            told_of = [log_in(open_one, "admin", "open", "p")]
            for change in [
                {"updateUser": "open", "pwd": "q"}, {"updateUser": "open", "roles": ["read"]},
                {"updateUser": "open", "authenticationRestrictions": [{"clientSource": ["10.0.0.1"]}]}, {"dropUser": "open"},
                user("open", roles=["readWrite"]),
            ]:
                admin.command("admin", change)
                told_of += [open_one.ask("admin", STATUS), {"ok": 1, "code": open_one.ask("admin", {"dbStats": 1}).get("code")}]
            told_of.append(log_in(open_one, "admin", "open", "p"))
            admin.command("admin", {"dropUser": "open"})
            admin.command("admin", user("open"))
            told_of.append(open_one.ask("admin", STATUS))
            admin.command("admin", {"dropUser": "open"})
            replies.append([told(reply) for reply in told_of])
    assert replies[0] == replies[1]
