"""Databases, collections, and what shells and tools ask of a server."""

import pathlib

import pytest
from pymongo.errors import CollectionInvalid, OperationFailure


def test_collections_come_go_and_change_names(client, db):
    db.create_collection("made")
    with pytest.raises(CollectionInvalid):
        db.create_collection("made")
    with pytest.raises(OperationFailure) as refused:
        db.command("create", "made")
    assert refused.value.code == 48
    db.inserted.insert_one({"_id": 1})
    assert sorted(db.list_collection_names()) == ["inserted", "made"]
    db.inserted.rename("renamed")
    assert db.renamed.find_one() == {"_id": 1}
    with pytest.raises(OperationFailure) as refused:
        db.renamed.rename("made")
    assert refused.value.code == 48
    db.renamed.rename("made", dropTarget=True)
    assert db.list_collection_names() == ["made"]
    assert db.name in client.list_database_names()
    client.drop_database(db.name)
    assert db.name not in client.list_database_names()


def test_a_dropped_collection_is_empty_when_it_comes_back(db):
    db.c.insert_many([{"_id": i} for i in range(10)])
    db.c.create_index("x")
    db.c.drop()
    db.c.insert_one({"_id": 1})
    assert db.c.count_documents({}) == 1 and list(db.c.index_information()) == ["_id_"]


def test_the_handshake_says_what_drivers_need(client):
    hello = client.admin.command("hello")
    assert hello["maxWireVersion"] >= 9 and hello["maxBsonObjectSize"] == 16 * 1024 * 1024
    assert hello["logicalSessionTimeoutMinutes"] == 30
    assert client.admin.command("isMaster")["ismaster"] is True
    assert client.server_info()["versionArray"][0] >= 6


def test_probes_of_tools_are_answered(client, db):
    db.c.insert_one({"x": 1})
    for command in ["ping", "buildInfo", "connectionStatus", "hostInfo", "serverStatus", "whatsmyuri", "listCommands", "getCmdLineOpts"]:
        assert client.admin.command(command)["ok"] == 1
    assert client.admin.command("getParameter", 1, featureCompatibilityVersion=1)["featureCompatibilityVersion"]["version"]
    warnings = client.admin.command("getLog", "startupWarnings")["log"]
    known = ("Access control is off", "the server runs as root")
    assert [warning for warning in warnings if not any(words in warning for words in known)] == []
    assert db.command("collStats", "c")["count"] == 1
    assert db.command("dbStats")["collections"] == 1
    with pytest.raises(OperationFailure) as refused:
        client.admin.command("atlasVersion")
    assert refused.value.code == 59


@pytest.mark.needs("one server")
def test_settings_have_the_names_that_tools_read(client):
    parsed = client.admin.command("getCmdLineOpts")["parsed"]
    assert (parsed["net"]["bindIp"], parsed["net"]["port"]) == client.address
    assert parsed["storage"]["engine"] == client.admin.command("serverStatus")["storageEngine"]["name"]
    # The engine in memory has no folder.
    folder = parsed["storage"].get("dbPath")
    assert pathlib.Path(folder).is_dir() if folder else parsed["storage"]["engine"] == "memory"


@pytest.mark.parametrize("compressors", ["zlib", "zstd", "snappy"])
def test_compressed_messages_are_understood(server, db, compressors):
    with server.client(compressors=compressors) as client:
        collection = client[db.name].c
        collection.insert_many([{"_id": i, "text": "abc" * 100} for i in range(100)])
        assert collection.count_documents({"text": "abc" * 100}) == 100


@pytest.mark.parametrize("mechanism", [None, "SCRAM-SHA-1", "SCRAM-SHA-256", "PLAIN"])
def test_a_login_before_there_are_users_is_refused(server, mechanism):
    options = {"username": "ada", "password": "secret"} | ({"authMechanism": mechanism} if mechanism else {})
    with server.client(**options) as client, pytest.raises(OperationFailure) as refused:
        client.admin.command("ping")
    assert refused.value.code == (334 if mechanism == "PLAIN" else 18)


def test_an_estimate_of_compact_is_refused_and_compacts_nothing(db):
    db.c.insert_one({"_id": 1})
    with pytest.raises(OperationFailure) as told:
        db.command("compact", "c", dryRun=True)
    assert told.value.code == 115
    assert db.command("compact", "c", dryRun=False)["bytesFreed"] >= 0


def test_a_check_counts_what_was_written_just_before(client, db):
    before = client.admin.command("pandoVerify")["entries"]
    db.c.insert_many([{"_id": at} for at in range(500)])
    after = client.admin.command("pandoVerify")
    assert after["valid"] and after["problems"] == [] and after["entries"] >= before + 500
