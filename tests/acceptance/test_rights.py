"""Who may do what: each question of rights_questions.py as each user, to MongoDB and to Pando, both with access control.

MongoDB makes the users, one for each built-in role and one for each role of rights_questions.py. Pando gets the same stored
documents. Of each answer only one bit is compared: whether it is a refusal for lack of rights.
"""

import contextlib
import hashlib
import threading

import bson
import pytest
from pymongo import MongoClient

import rights_questions
from oracle import Oracle
from raw_connection import Raw
from rights_questions import OTHER, OWN, ROLES, questions
from scram_client import log_in
from server import Server

PASSWORD = "x"
ROOT = ("root", "admin")
UNAUTHORIZED = 13
OF_EVERY_DATABASE = ["dbAdmin", "dbOwner", "enableSharding", "read", "readWrite", "userAdmin"]


def built_in(root):
    """The users with one built-in role each: their names and databases. Those of every database have it on OWN."""
    roles = root.admin.command("rolesInfo", 1, showBuiltinRoles=True)["roles"]
    of_admin = [role["role"] for role in roles if role["isBuiltin"] and role["role"] not in OF_EVERY_DATABASE]
    return [(role, OWN) for role in OF_EVERY_DATABASE] + [(role, "admin") for role in sorted(of_admin)]


def make_users(root):
    """Makes the users on MongoDB; gives the names and databases of those with built-in roles and of the others."""
    with_built_in = built_in(root)
    for role, database in with_built_in:
        root[database].command("createUser", f"with {role}", pwd=PASSWORD, roles=[role], mechanisms=["SCRAM-SHA-1"])
    root[OWN].command("createUser", "with none", pwd=PASSWORD, roles=[], mechanisms=["SCRAM-SHA-1"])
    root[OWN].command("createRole", "custom", privileges=[], roles=[])
    for name, privileges in ROLES.items():
        root.admin.command("createRole", f"role {name}", privileges=privileges, roles=[])
        root.admin.command("createUser", f"of {name}", pwd=PASSWORD, roles=[f"role {name}"], mechanisms=["SCRAM-SHA-1"])
    of_built_in = [(f"with {role}", database) for role, database in with_built_in] + [("with none", OWN)]
    return of_built_in, [(f"of {name}", "admin") for name in ROLES]


class Guarded:
    """Two servers with the same users."""

    def __init__(self, oracle, pando, built_in, others):
        self.ports = {"MongoDB": oracle.port, "Pando": pando.port}
        self.built_in, self.others = built_in, others

    def ask(self, users, questions):
        """The users that each server refuses for lack of rights, by the name of the question."""
        refused = {}
        threads = [threading.Thread(target=self._ask_one, args=(side, users, questions, refused)) for side in self.ports]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return refused["MongoDB"], refused["Pando"]

    def _ask_one(self, side, users, questions, refused):
        found = {}
        with contextlib.ExitStack() as stack:
            clients = {user: stack.enter_context(self.connect(side, user)) for user in users}
            for name, database, request in questions:
                codes = {user: raw.ask(database, request).get("code") for user, raw in clients.items()}
                found[name] = sorted(user for (user, _), code in codes.items() if code == UNAUTHORIZED)
        refused[side] = found

    def connect(self, side, user):
        raw = Raw(self.ports[side])
        log_in(raw, user[1], user[0], PASSWORD, "SCRAM-SHA-1", skipEmptyExchange=True)
        return raw


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    oracle = Oracle().start_guarded()
    with MongoClient(oracle.uri) as first:
        first.admin.command("createUser", "root", pwd=PASSWORD, roles=["root"])
    with MongoClient(oracle.uri, username="root", password=PASSWORD) as root:
        root[OWN].c.insert_many({"_id": number} for number in range(10))
        root[OTHER].c.insert_one({"_id": 1})
        users = make_users(root)
        accounts = {name: list(root.admin[name].find()) for name in ("system.users", "system.roles")}
    folder = tmp_path_factory.mktemp("guarded") / "data"
    pando = Server(folder, "--persona", "standalone").start()
    with pando.client() as client:
        for name, documents in accounts.items():
            client.admin[name].insert_many(documents)
        client[OWN].c.insert_many({"_id": number} for number in range(10))
        client[OTHER].c.insert_one({"_id": 1})
    assert pando.stop() == 0
    pando = Server(folder, "--persona", "standalone", "--auth").start()
    yield Guarded(oracle, pando, *users)
    oracle.stop()
    assert pando.is_running(), pando.log()
    assert pando.terminate() == 0
    assert "panic" not in pando.whole_log()


def compare(guarded, users, questions):
    with guarded.connect("Pando", ROOT) as root:
        known = root.command("admin", {"listCommands": 1})["commands"]
    # A command that a server has not is an error of its own, whoever asks.
    mongodb, pando = guarded.ask(users, [question for question in questions if next(iter(question[2])) in known])
    different = []
    for name, refused in mongodb.items():
        more, fewer = set(pando[name]) - set(refused), set(refused) - set(pando[name])
        if more or fewer:
            different.append(f"{name}: Pando refuses also {sorted(more)} and does not refuse {sorted(fewer)}")
    assert not different, f"{len(different)} questions:\n" + "\n".join(different)


def alike(guarded, scenario):
    """Runs a scenario on both servers. It gives what they have to have in common."""
    mongodb, pando = (scenario(lambda user, side=side: guarded.connect(side, user)) for side in guarded.ports)
    assert mongodb == pando


READER, OTHER_READER = ("of find", "admin"), ("of find insert", "admin")
KILLER, KILLER_OF_OWN = ("of kill", "admin"), ("of killAnyCursor", "admin")


def code(reply):
    return reply.get("code", 0)


def session(number, **more):
    return {"id": bson.Binary(bytes([number] * 16), 4), **more}


def digest(user):
    return bson.Binary(hashlib.sha256("@".join(user).encode()).digest())


def test_a_cursor_belongs_to_its_user(guarded):
    def scenario(connect):
        def opened(raw, **more):
            return raw.command(OWN, {"find": "c", "batchSize": 1, **more})["cursor"]["id"]

        def more(raw, cursor, **fields):
            return code(raw.ask(OWN, {"getMore": cursor, "collection": "c", "batchSize": 1, **fields}))

        def kill(raw, cursor, database=OWN, collection="c"):
            reply = raw.ask(database, {"killCursors": collection, "cursors": [cursor]})
            return code(reply), len(reply.get("cursorsKilled", []))

        with connect(READER) as reader, connect(READER) as again, connect(OTHER_READER) as other, connect(("with root", "admin")) as root:
            cursor = opened(reader)
            yield [more(raw, cursor) for raw in (reader, again, other, root)]
            yield [more(raw, cursor, lsid=session(9)) for raw in (reader, other)]
            yield [kill(raw, cursor) for raw in (other, root, root)]
            for killer in (KILLER, KILLER_OF_OWN):
                with connect(killer) as raw:
                    yield kill(raw, opened(reader))
            yield [kill(again, opened(reader)), kill(reader, 77)]
            # The same number of a session is another session for another user.
            cursor = opened(reader, lsid=session(1))
            yield [more(reader, cursor), more(again, cursor, lsid=session(1)), more(other, cursor, lsid=session(1))]
            yield kill(reader, cursor)

    alike(guarded, lambda connect: list(scenario(connect)))


def test_a_session_belongs_to_its_user(guarded):
    def scenario(connect):
        with connect(READER) as reader, connect(OTHER_READER) as other, connect(("of impersonate", "admin")) as impostor:
            find = {"find": "c", "batchSize": 1}
            yield code(reader.ask(OWN, {**find, "lsid": session(2, uid=digest(READER))}))
            yield code(reader.ask(OWN, {**find, "lsid": session(2, uid=digest(OTHER_READER))}))
            for command in ("endSessions", "refreshSessions", "killSessions"):
                yield [code(reader.ask("admin", {command: [session(2, uid=digest(user))]})) for user in (READER, OTHER_READER)]
                yield code(impostor.ask("admin", {command: [session(2, uid=digest(READER))]}))
            # The cursors of the others stay.
            own = [raw.command(OWN, {**find, "lsid": session(3)})["cursor"]["id"] for raw in (reader, other)]
            reader.command("admin", {"killSessions": [session(3)]})
            more = lambda raw, cursor: code(raw.ask(OWN, {"getMore": cursor, "collection": "c", "batchSize": 1, "lsid": session(3)}))
            yield [more(reader, own[0]), more(other, own[1])]
            reader.command("admin", {"killSessions": []})
            yield more(other, own[1])
            impostor.command("admin", {"killAllSessions": [{"user": READER[0], "db": READER[1]}]})
            yield more(other, own[1])
            impostor.command("admin", {"killAllSessions": [{"user": OTHER_READER[0], "db": OTHER_READER[1]}]})
            yield more(other, own[1])

    alike(guarded, lambda connect: list(scenario(connect)))


def test_a_user_sees_the_own_operations(guarded):
    def scenario(connect):
        def seen(raw, options):
            found = raw.command("admin", {"aggregate": 1, "pipeline": [{"$currentOp": options}], "cursor": {"batchSize": 1000}})
            return found["cursor"]["firstBatch"]

        def users(found):
            listed = [document["effectiveUsers"] for document in found if "effectiveUsers" in document]
            return sorted({(user["user"], user["db"]) for users in listed for user in users})

        with connect(READER) as reader, connect(("of cluster", "admin")) as observer, connect(OTHER_READER) as other:
            cursors = [raw.command(OWN, {"find": "c", "batchSize": 1, "lsid": session(4)})["cursor"]["id"] for raw in (reader, other)]
            yield users(seen(reader, {"idleConnections": True}))
            yield users(seen(observer, {"allUsers": True}))
            yield users(reader.command("admin", {"currentOp": 1, "$ownOps": True})["inprog"])
            for raw, options in [(reader, {}), (observer, {}), (observer, {"allUsers": True})]:
                listed = seen(raw, {"idleCursors": True, **options})
                listed = [document for document in listed if document["type"] == "idleCursor"]
                ids = {document["cursor"]["cursorId"] for document in listed}
                yield [cursor in ids for cursor in cursors], sorted(document["lsid"]["uid"] for document in listed if "lsid" in document)
            # Of the own operations only one is there, and it is over when the answer comes.
            operation = seen(reader, {})[0]["opid"]
            yield [code(raw.ask("admin", {"killOp": 1, "op": operation})) for raw in (reader, observer)]
            for raw, cursor in zip((reader, other), cursors):
                raw.command(OWN, {"killCursors": "c", "cursors": [cursor]})

    alike(guarded, lambda connect: list(scenario(connect)))


@pytest.mark.parametrize("user", ["of find", "of one collection", "of one name", "of buckets", "of cluster", "of everything", "of dbStats", "with read",
                                  "with root", "with readAnyDatabase", "with userAdmin", "with none", "with backup"])
def test_a_user_sees_the_databases_and_collections_that_he_may_use(guarded, user):
    user = (user, OWN if user in {"with read", "with userAdmin", "with none"} else "admin")

    def scenario(connect):
        with connect(user) as raw:
            for options in ({}, {"authorizedDatabases": True}):
                listed = raw.command("admin", {"listDatabases": 1, "nameOnly": True, **options})["databases"]
                yield {database["name"] for database in listed} & {OWN, OTHER, "admin"}
            for database in (OWN, OTHER):
                request = {"listCollections": 1, "nameOnly": True, "authorizedCollections": True, "filter": {"name": {"$in": ["c", "seen"]}}}
                reply = raw.ask(database, request)
                yield reply["ok"] and sorted(found["name"] for found in reply["cursor"]["firstBatch"])

    alike(guarded, lambda connect: list(scenario(connect)))


def test_a_refusal_has_the_words_of_mongodb(guarded):
    def scenario(connect):
        with connect(READER) as reader:
            for database, request in [
                (OTHER, {"find": "c", "filter": {"a": {"$in": [1, "x"]}}, "lsid": session(5)}),
                (OWN, {"insert": "c", "documents": [{"a": 1}], "ordered": False}), (OWN, {"drop": "c"}), ("admin", {"currentOp": 1}), (OTHER, {"currentOp": 1}),
                (OWN, {"aggregate": "c", "pipeline": [{"$out": "d"}], "cursor": {}}),
            ]:
                reply = reader.ask(database, request)
                yield reply["code"], reply["codeName"], reply["errmsg"]

    alike(guarded, lambda connect: list(scenario(connect)))


@pytest.mark.parametrize("database", ["admin", OWN, "local", "config"])
def test_built_in_roles_have_the_privileges_of_mongodb(guarded, database):
    def scenario(connect):
        with connect(("with root", "admin")) as root:
            roles = root.command(database, {"rolesInfo": 1, "showBuiltinRoles": True, "showPrivileges": True})["roles"]
            return {role["role"]: role for role in roles}

    alike(guarded, scenario)


# `logout` ends the login with which the next question is asked; test_rights.py of PyMongo's tests has it. `shutdown` ends the server:
# test_start_options.py has the rights that it needs.
NOT_ASKED = {"logout", "shutdown"}
# The stages of MongoDB 6.0 that a client may write.
STAGES = {
    "$addFields", "$bucket", "$bucketAuto", "$changeStream", "$collStats", "$count", "$currentOp", "$densify", "$documents", "$facet", "$fill",
    "$geoNear", "$graphLookup", "$group", "$indexStats", "$limit", "$listLocalSessions", "$listSessions", "$lookup", "$match", "$merge", "$out",
    "$planCacheStats", "$project", "$redact", "$replaceRoot", "$replaceWith", "$sample", "$set", "$setWindowFields", "$skip", "$sort",
    "$sortByCount", "$unionWith", "$unset", "$unwind",
}


def test_every_command_of_both_and_every_stage_is_asked(guarded):
    known = []
    for side in guarded.ports:
        with guarded.connect(side, ROOT) as root:
            known.append(set(root.command("admin", {"listCommands": 1})["commands"]))
    requests = [request for _, _, request in questions()]
    asked = {next(iter(request)) for request in requests}
    assert known[0] & known[1] <= asked | NOT_ASKED, known[0] & known[1] - asked - NOT_ASKED
    stages = {next(iter(stage)) for request in requests if "aggregate" in request for stage in request["pipeline"]}
    assert STAGES <= stages, STAGES - stages


def test_built_in_roles_may_do_what_they_may_with_mongodb(guarded):
    compare(guarded, guarded.built_in, list(rights_questions.questions()))


def test_roles_of_users_may_do_what_they_may_with_mongodb(guarded):
    compare(guarded, guarded.others, list(rights_questions.questions_of_roles()))
