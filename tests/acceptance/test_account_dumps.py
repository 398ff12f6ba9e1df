"""Users and roles go from MongoDB to Pando and back in files, as mongodump writes them and mongorestore reads them.

The tools themselves cannot be had from a registry. So their requests are made here one by one: mongodump reads the three
collections of `admin` with their options and indexes into BSON and `metadata.json` files; mongorestore compares the versions
of the schema, inserts into `admin.tempusers` and `admin.temproles`, has `_mergeAuthzCollections` take them over, and drops them.
"""

import pathlib

import bson
import pytest
from bson import json_util
from pymongo import MongoClient

from oracle import Oracle
from raw_connection import Raw
from scram_client import log_in
from server import Server

PASSWORD = "p\u00e4ss"
MECHANISMS = ["SCRAM-SHA-1", "SCRAM-SHA-256"]
COLLECTIONS = ["system.users", "system.roles", "system.version"]
# The user who carries accounts. Those of both sides have names of their own.
CARRIERS = {"MongoDB": "carrier of MongoDB", "Pando": "carrier of Pando"}


def make_accounts(root):
    """Users and roles of several databases, of each kind."""
    root.shop.command("createRole", "clerk", privileges=[
        {"resource": {"db": "shop", "collection": "orders"}, "actions": ["find", "insert"]}], roles=[])
    root.shop.command("createRole", "head", privileges=[], roles=["clerk"])
    root.admin.command("createRole", "watch", privileges=[{"resource": {"cluster": True}, "actions": ["inprog"]}], roles=[])
    root.shop.command("createUser", "ada", pwd=PASSWORD, roles=["head", {"role": "read", "db": "stock"}], customData={"desk": 7})
    root.shop.command("createUser", "old", pwd=PASSWORD, roles=["clerk"], mechanisms=["SCRAM-SHA-1"])
    root.stock.command("createUser", "bob", pwd=PASSWORD, roles=["readWrite"],
                       authenticationRestrictions=[{"clientSource": ["127.0.0.1"]}])
    root["$external"].command("createUser", "CN=app,O=org", roles=[{"role": "watch", "db": "admin"}])
    root.shop.orders.insert_one({"_id": 1})
    root.stock.parts.insert_one({"_id": 1})


class Carrier:
    """A client with the roles that the tools need, and no more."""

    def __init__(self, side, port):
        self.client = MongoClient("127.0.0.1", port, username=CARRIERS[side], password=PASSWORD, directConnection=True)
        self.port = port

    def dump(self, folder):
        """The files of mongodump for the accounts of all databases."""
        folder = pathlib.Path(folder, "admin")
        folder.mkdir(parents=True)
        infos = {info["name"]: info for info in self.client.admin.list_collections()}
        for name in filter(infos.get, COLLECTIONS):
            info, collection = infos[name], self.client.admin[name]
            metadata = {"indexes": [dict(index) for index in collection.list_indexes()], "uuid": bytes(info["info"]["uuid"]).hex(),
                        "collectionName": name, "type": info["type"]}
            if info["options"]:
                metadata["options"] = info["options"]
            folder.joinpath(f"{name}.metadata.json").write_text(json_util.dumps(metadata, json_options=json_util.CANONICAL_JSON_OPTIONS))
            documents = collection.find_raw_batches({}, sort=[("_id", 1)])
            folder.joinpath(f"{name}.bson").write_bytes(b"".join(documents))
        return folder

    def restore(self, folder, database="", **options):
        """The requests of mongorestore for the accounts of a dump: of one database, or of all."""
        admin = self.client.admin
        versions = bson.decode_all(folder.joinpath("system.version.bson").read_bytes())
        dumped = next(version["currentVersion"] for version in versions if version["_id"] == "authSchema")
        assert (dumped, admin.command("getParameter", 1, authSchemaVersion=1)["authSchemaVersion"]) == (5, 5)
        there, merge = [info["name"] for info in admin.list_collections()], {}
        for kind in ("users", "roles"):
            temporary = f"temp{kind}"
            if temporary in there:
                admin.drop_collection(temporary)
            documents = bson.decode_all(folder.joinpath(f"system.{kind}.bson").read_bytes())
            admin.command({"insert": temporary, "documents": documents, "ordered": False, "writeConcern": {"w": "majority"}})
            merge[f"temp{kind.capitalize()}Collection"] = f"admin.{temporary}"
        reply = admin.command({"_mergeAuthzCollections": 1, **merge, "drop": options.get("drop", False), "db": database,
                               "writeConcern": {"w": "majority"}})
        for kind in ("users", "roles"):
            admin.drop_collection(f"temp{kind}")
        assert not [info for info in admin.list_collections() if info["name"].startswith("temp")]
        return reply

    def accounts(self, folder):
        """Users and roles as they are dumped, by `_id`."""
        folder = self.dump(folder)
        files = {name: folder.joinpath(f"{name}.bson") for name in COLLECTIONS[:2]}
        return {name: {document["_id"]: document for document in bson.decode_all(file.read_bytes() if file.exists() else b"")}
                for name, file in files.items()}


class Sides:
    """Both servers with access control, and a user of each who carries accounts."""

    def __init__(self, folder):
        self.oracle = Oracle().start_guarded()
        self.server = Server(folder / "data", "--persona", "standalone", "--auth").start()
        self.carriers = {}
        for side, port in (("MongoDB", self.oracle.port), ("Pando", self.server.port)):
            with MongoClient("127.0.0.1", port, directConnection=True) as first:
                first.admin.command("createUser", "root", pwd=PASSWORD, roles=["root"])
            with MongoClient("127.0.0.1", port, username="root", password=PASSWORD, directConnection=True) as root:
                root.admin.command("createUser", CARRIERS[side], pwd=PASSWORD, roles=["backup", "restore"])
            self.carriers[side] = Carrier(side, port)

    def root(self, side):
        return MongoClient("127.0.0.1", self.carriers[side].port, username="root", password=PASSWORD, directConnection=True)

    def stop(self):
        for carrier in self.carriers.values():
            carrier.client.close()
        self.oracle.stop()
        assert self.server.terminate() == 0, self.server.log()
        assert "panic" not in self.server.whole_log()


@pytest.fixture
def sides(tmp_path):
    sides = Sides(tmp_path)
    yield sides
    sides.stop()


def check_logins(port):
    """The users log in by the mechanisms that they have, and have their rights."""
    for user, database, mechanisms, readable in (
        ("ada", "shop", MECHANISMS, [("shop", "orders"), ("stock", "parts")]), ("old", "shop", ["SCRAM-SHA-1"], [("shop", "orders")]),
        ("bob", "stock", MECHANISMS, [("stock", "parts")]),
    ):
        for mechanism in MECHANISMS:
            with Raw(port) as raw:
                outcome = log_in(raw, database, user, PASSWORD, mechanism)
                assert outcome.get("ok") == float(mechanism in mechanisms), (user, mechanism, outcome)
                for place, collection in (("shop", "orders"), ("stock", "parts")):
                    reply = raw.ask(place, {"find": collection})
                    assert (reply["ok"] == 1) == (mechanism in mechanisms and (place, collection) in readable), (user, place, reply)
        with Raw(port) as raw:
            assert log_in(raw, database, user, "wrong")["ok"] == 0


@pytest.mark.parametrize("source, target", [("MongoDB", "Pando"), ("Pando", "MongoDB")])
def test_accounts_are_carried_whole(sides, tmp_path, source, target):
    with sides.root(source) as root:
        make_accounts(root)
    with sides.root(target) as root:
        root.shop.orders.insert_one({"_id": 1})
        root.stock.parts.insert_one({"_id": 1})
    dump = sides.carriers[source].dump(tmp_path / "dump")
    there = sides.carriers[target].accounts(tmp_path / "before")
    assert sides.carriers[target].restore(dump)["ok"] == 1
    came = sides.carriers[target].accounts(tmp_path / "after")
    dumped = sides.carriers[source].accounts(tmp_path / "again")
    for name in COLLECTIONS[:2]:
        # Accounts that are there stay as they are.
        assert came[name] == {**dumped[name], **there[name]}
    check_logins(sides.carriers[target].port)
    # And back, where only the other carrier is new.
    back = sides.carriers[target].dump(tmp_path / "back")
    assert sides.carriers[source].restore(back)["ok"] == 1
    last = sides.carriers[source].accounts(tmp_path / "last")
    assert last == {name: {**came[name], **dumped[name]} for name in came}
    check_logins(sides.carriers[source].port)


@pytest.mark.parametrize("target", ["MongoDB", "Pando"])
def test_the_accounts_of_one_database_replace_those_that_are_there(sides, tmp_path, target):
    source = {"MongoDB": "Pando", "Pando": "MongoDB"}[target]
    for side in (source, target):
        with sides.root(side) as root:
            make_accounts(root)
    with sides.root(target) as root:
        root.shop.command("createUser", "late", pwd=PASSWORD, roles=[])
        root.stock.command("createUser", "late", pwd=PASSWORD, roles=[])
        root.shop.command("createRole", "late", privileges=[], roles=[])
    before = sides.carriers[target].accounts(tmp_path / "before")
    dump = sides.carriers[source].dump(tmp_path / "dump")
    assert sides.carriers[target].restore(dump, database="shop", drop=True)["ok"] == 1
    after, dumped = sides.carriers[target].accounts(tmp_path / "after"), sides.carriers[source].accounts(tmp_path / "again")
    for name in COLLECTIONS[:2]:
        of_shop = {name: document for name, document in dumped[name].items() if document["db"] == "shop"}
        others = {name: document for name, document in before[name].items() if document["db"] != "shop"}
        assert after[name] == {**others, **of_shop}
    check_logins(sides.carriers[target].port)


def test_both_servers_make_the_same_files(sides, tmp_path):
    files = {}
    for side, carrier in sides.carriers.items():
        with sides.root(side) as root:
            make_accounts(root)
        folder = carrier.dump(tmp_path / side)
        files[side] = {path.name: path for path in folder.iterdir()}
    assert files["MongoDB"].keys() == files["Pando"].keys()
    for name in filter(lambda name: name.endswith(".json"), files["Pando"]):
        metadata = [json_util.loads(files[side][name].read_text()) for side in files]
        for found in metadata:
            assert len(found.pop("uuid")) == 32
        assert metadata[0] == metadata[1], name
    versions = [bson.decode_all(files[side]["system.version.bson"].read_bytes()) for side in files]
    # Both have the version of the schema; other documents are of features that a server has.
    assert all({"_id": "authSchema", "currentVersion": 5} in found for found in versions)
    users = [bson.decode_all(files[side]["system.users.bson"].read_bytes()) for side in files]
    def shape(user):
        roles = sorted(f"{role['db']}.{role['role']}" for role in user["roles"])
        return list(user), user["_id"], roles, list(user["credentials"])

    shapes = [[shape(user) for user in found if not user["user"].startswith("carrier")] for found in users]
    assert shapes[0] == shapes[1]
    roles = [bson.decode_all(files[side]["system.roles.bson"].read_bytes()) for side in files]
    assert roles[0] == roles[1]
