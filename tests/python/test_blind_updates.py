"""Updates that go down without a read of their document: `w: 0`, and `blind: true`."""

import os
import random
import threading
import time

import pytest
from bson import Int64
from pymongo import UpdateOne, WriteConcern

from server import Server

pytestmark = pytest.mark.needs("one server")

# Those whose stores outlive their servers.
DURABLE_ENGINES = [name for name in os.environ.get("ENGINES", "betree").split(",") if name != "memory"]


def blind(collection, *updates, **more):
    """Updates as (id, update); the reply."""
    statements = [{"q": {"_id": id}, "u": update, "blind": True} for id, update in updates]
    return collection.database.command("update", collection.name, updates=statements, **more)


def performed(client):
    return client.admin.command("serverStatus")["metrics"]["blindUpdates"]


def refusal(collection, statement):
    statement = {"q": {"_id": 1}, "u": {"$inc": {"n": 1}}, "blind": True} | statement
    reply = collection.database.command("update", collection.name, updates=[statement])
    assert "n" in reply and reply["n"] == 0 and reply["nModified"] == 0, reply
    error = reply["writeErrors"][0]
    assert error["code"] == 72 and "cannot be blind" in error["errmsg"], error
    return error["errmsg"]


def wait_for(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_reply_of_a_blind_update_has_no_counts(client, db):
    db.c.insert_many([{"_id": 1, "n": 1}, {"_id": 2, "n": "text"}])
    before = performed(client)["performed"]
    reply = blind(db.c, (1, {"$inc": {"n": 1}}), (2, {"$inc": {"n": 1}}), (3, {"$set": {"n": 1}}))
    assert reply["blind"] == 3 and reply["ok"] == 1
    assert "n" not in reply and "nModified" not in reply and "writeErrors" not in reply
    # An operator that fails leaves its document alone, and an absent document stays absent.
    assert list(db.c.find().sort("_id")) == [{"_id": 1, "n": 2}, {"_id": 2, "n": "text"}]
    assert performed(client)["performed"] == before + 3
    assert db.c.count_documents({}) == 2 and db.c.estimated_document_count() == 2


def test_a_batch_with_other_statements_has_their_effects_and_no_counts(db):
    db.c.insert_one({"_id": 1})
    reply = db.command(
        "update",
        "c",
        ordered=False,
        updates=[
            {"q": {"_id": 1}, "u": {"$set": {"a": 1}}, "blind": True},
            {"q": {"_id": 2}, "u": {"$set": {"a": 2}}, "upsert": True},
            {"q": {"_id": 1}, "u": {"$rename": {"a": "b"}}, "blind": True},
        ],
    )
    assert reply["blind"] == 1 and "n" not in reply and "nModified" not in reply
    assert reply["upserted"] == [{"index": 1, "_id": 2}]
    assert [error["index"] for error in reply["writeErrors"]] == [2]
    assert list(db.c.find().sort("_id")) == [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}]


def test_every_operator_of_a_patch_does_what_it_does_elsewhere(db):
    update = {
        "$set": {"new.deep": [1, {"x": 2}], "s": "t"},
        "$unset": {"gone": "", "absent": ""},
        "$inc": {"i": Int64(5), "started": 2},
        "$mul": {"m": 2.5},
        "$min": {"low": 3},
        "$max": {"high": 9},
        "$bit": {"bits": {"or": 4, "xor": 1}},
        "$push": {"list": {"k": 1}},
        "$currentDate": {"at": True, "stamp": {"$type": "timestamp"}},
    }
    document = {"s": 1, "gone": 1, "i": 1, "m": 4, "low": 7, "high": 7, "bits": 1, "list": [0], "new": {"x": 1}}
    db.c.insert_many([{"_id": 1} | document, {"_id": 2} | document])
    assert blind(db.c, (1, update))["blind"] == 1
    db.c.update_one({"_id": 2}, update)
    one, two = db.c.find_one({"_id": 1}), db.c.find_one({"_id": 2})
    assert list(one) == list(two)
    assert abs(one.pop("at") - two.pop("at")).total_seconds() < 60
    assert abs(one.pop("stamp").time - two.pop("stamp").time) < 60
    del one["_id"], two["_id"]
    assert one == two


def test_statements_that_cannot_be_blind_are_refused_with_the_reason(client, db):
    db.c.insert_one({"_id": 1, "n": 1})
    for statement, reason in [
        ({"multi": True}, "multi"),
        ({"upsert": True}, "upsert"),
        ({"hint": "_id_"}, "hint"),
        ({"collation": {"locale": "de"}}, "collation"),
        ({"q": {"n": 1}}, "equality with _id alone"),
        ({"q": {"_id": 1, "n": 1}}, "equality with _id alone"),
        ({"q": {"_id": {"$gt": 0}}}, "equality with _id alone"),
        ({"q": {"_id": "x" * 3000}}, "too long"),
        ({"u": {"n": 2}}, "replaces"),
        ({"u": [{"$set": {"n": 2}}]}, "pipeline"),
        ({"u": {"$set": {"a.0": 1}}}, "element"),
        ({"u": {"$pull": {"a": 1}}}, "$pull"),
        ({"u": {"$push": {"a": {"$each": [1]}}}}, "modifiers"),
        ({"u": {"$set": {"a": "x" * 2000}}}, "bytes long"),
    ]:
        assert reason in refusal(db.c, statement), statement
    with client.start_session() as session, session.start_transaction():
        statement = {"q": {"_id": 1}, "u": {"$inc": {"n": 1}}, "blind": True}
        reply = db.command("update", "c", updates=[statement], session=session)
        assert "transaction" in reply["writeErrors"][0]["errmsg"]
        session.abort_transaction()
    assert "multi" in refusal(db.absent, {"multi": True})
    assert blind(db.absent, (1, {"$inc": {"n": 1}}))["blind"] == 1 and "absent" not in db.list_collection_names()
    # Faults that any update has are told as ever.
    reply = db.command("update", "c", updates=[{"q": {"_id": 1}, "u": {"$inc": {"n": "x"}}, "blind": True}])
    assert reply["writeErrors"][0]["code"] == 14
    assert list(db.c.find()) == [{"_id": 1, "n": 1}]


def test_collections_of_other_kinds_are_refused_with_the_reason(db):
    db.create_collection("capped", capped=True, size=4096)
    db.create_collection("ruled", validator={"n": {"$gt": 0}})
    db.create_collection("german", collation={"locale": "de"})
    for name, reason in [("capped", "capped"), ("ruled", "validator"), ("german", "collation")]:
        db[name].insert_one({"_id": 1, "n": 1})
        assert reason in refusal(db[name], {}), name


@pytest.mark.parametrize(
    "keys, options, reason",
    [
        ([("n", 1)], {}, "has the field n"),
        ([("a.b", 1), ("c", -1)], {}, "has the field a.b"),
        ([("n", "hashed")], {}, "has the field n"),
        ([("n", "text")], {}, "any field"),
        ([("$**", 1)], {}, "any field"),
        ([("other", 1)], {"partialFilterExpression": {"n": {"$gt": 5}}}, "looks at a field"),
        ([("n", 1)], {"sparse": True, "expireAfterSeconds": 10**6}, "has the field n"),
    ],
)
def test_an_index_on_a_path_needs_the_document(db, keys, options, reason):
    db.c.create_index(keys, name="i", **options)
    db.c.insert_many([{"_id": id, "n": 0, "a": {"b": 0}} for id in range(20)])
    update = {"$inc": {"n": 10, "a.b": 1}}
    assert reason in refusal(db.c, {"u": update})
    explained = db.command("explain", {"update": "c", "updates": [{"q": {"_id": 1}, "u": update, "blind": True}]})
    assert explained["blindUpdate"]["possible"] is False and reason in explained["blindUpdate"]["reason"]
    # Without an answer it is an ordinary update, which keeps the index.
    db.c.with_options(write_concern=WriteConcern(w=0)).update_one({"_id": 1}, update)
    wait_for(lambda: db.c.find_one({"_id": 1})["n"] == 10)
    assert db.command("validate", "c", full=True)["valid"]


def test_an_index_on_other_paths_stays_right_beside_blind_updates(db):
    db.c.create_index([("a.b", 1)])
    db.c.create_index([("k", 1)], unique=True)
    db.c.create_index([("p", 1)], partialFilterExpression={"q": {"$exists": True}})
    db.c.insert_many([{"_id": id, "k": id, "a": {"b": id}, "p": id, "q": 1} for id in range(50)])
    for _ in range(3):
        reply = blind(db.c, *[(id, {"$inc": {"n": 1, "a.c": 1}, "$set": {"text": "x" * id}}) for id in range(60)])
        assert reply["blind"] == 60
    assert db.c.count_documents({"a.b": 7, "a.c": 3, "n": 3, "text": "x" * 7}) == 1
    checked = db.command("validate", "c", full=True)
    assert checked["valid"] and checked["nrecords"] == 50, checked
    explained = db.command(
        "explain", {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}, "blind": True}]}
    )
    assert explained["blindUpdate"] == {"possible": True}
    ordinary = db.command("explain", {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]})
    assert "blindUpdate" not in ordinary


def test_sizes_are_estimates_until_all_documents_are_gone(db):
    db.c.insert_many([{"_id": id, "text": "x" * 100} for id in range(300)])
    blind(db.c, *[(id, {"$set": {"text": "x" * 500}}) for id in range(300)])
    assert db.command("validate", "c", full=True)["valid"]
    assert db.c.count_documents({"text": "x" * 500}) == 300
    assert db.command("collStats", "c")["count"] == 300
    for _ in range(100):
        db.c.delete_one({})
    assert db.command("collStats", "c")["count"] == 200 and db.command("validate", "c")["valid"]
    db.c.delete_many({})
    stats = db.command("collStats", "c")
    assert stats["count"] == 0 and stats["size"] == 0
    db.c.insert_one({"_id": 1})
    assert db.command("validate", "c", full=True)["valid"]


def test_a_client_without_answers_updates_blindly_and_otherwise_as_usual(client, db):
    db.c.insert_many([{"_id": id, "n": 0} for id in range(10)])
    unheard = db.c.with_options(write_concern=WriteConcern(w=0))
    before = performed(client)
    for id in range(10):
        unheard.update_one({"_id": id}, {"$inc": {"n": 1}})
        unheard.update_one({"n": {"$gte": 0}, "_id": id}, {"$inc": {"usual": 1}})
    wait_for(lambda: db.c.count_documents({"n": 1, "usual": 1}) == 10)
    after = performed(client)
    assert (after["performed"] - before["performed"], after["read"] - before["read"]) == (10, 10)
    unheard.bulk_write([UpdateOne({"_id": id}, {"$set": {"n": 7}}) for id in range(10)], ordered=False)
    wait_for(lambda: db.c.count_documents({"n": 7}) == 10)
    # The default has an answer, and never is blind.
    assert db.c.update_one({"_id": 1}, {"$inc": {"n": 1}}).modified_count == 1
    assert performed(client)["performed"] == after["performed"] + 10


def test_a_repeated_blind_update_counts_once(server, db):
    db.c.insert_one({"_id": 1, "n": 0})
    # A client of its own, because the number of the statement is not one that the driver has counted.
    with server.client() as client, client.start_session() as session:
        command = {
            "update": "c",
            "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}, "blind": True}],
            "lsid": session.session_id,
            "txnNumber": Int64(1),
        }
        replies = [client[db.name].command(command) for _ in range(3)]
    assert all(reply["blind"] == 1 and "n" not in reply for reply in replies), replies
    assert replies[2]["retriedStmtIds"] == [0]
    assert db.c.find_one() == {"_id": 1, "n": 1}


def test_blind_updates_wait_for_a_transaction_and_lose_nothing(client, db):
    db.c.insert_one({"_id": 1, "n": 0})
    with client.start_session() as session:
        with session.start_transaction():
            db.c.update_one({"_id": 1}, {"$inc": {"n": 100}}, session=session)
            writer = threading.Thread(target=blind, args=(db.c, (1, {"$inc": {"n": 1}})))
            writer.start()
            time.sleep(0.3)
            assert writer.is_alive()
        writer.join(20)
    assert db.c.find_one() == {"_id": 1, "n": 101}

    surprises = []

    def work(seed):
        chance = random.Random(seed)
        for _ in range(100):
            if chance.random() < 0.5:
                reply = blind(db.c, (1, {"$inc": {"n": 1}}))
                if "writeErrors" in reply or reply.get("blind") != 1:
                    surprises.append(reply)
            elif db.c.update_one({"_id": 1}, {"$inc": {"n": 1}}).modified_count != 1:
                surprises.append("not modified")

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    assert surprises == [] and db.c.find_one() == {"_id": 1, "n": 501}


@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize("engine", DURABLE_ENGINES)
def test_blind_updates_agree_with_a_model_across_ends_of_the_server(tmp_path, engine, end):
    """Random updates, blind and usual, against documents of Python; the journal has each before its reply."""
    server = Server(tmp_path / "data", engine=engine).start()
    chance = random.Random(17)
    model = {}
    for round in range(4):
        with server.client() as client:
            collection = client.test.c
            journaled = {"writeConcern": {"w": 1, "j": True}}
            for step in range(150):
                id = chance.randrange(40)
                field, number = chance.choice("abc"), chance.randrange(100)
                action = chance.random()
                if action < 0.1:
                    collection.replace_one({"_id": id}, {"_id": id, "a": number}, upsert=True)
                    model[id] = {"_id": id, "a": number}
                elif action < 0.15:
                    collection.delete_one({"_id": id})
                    model.pop(id, None)
                else:
                    operator = chance.choice(["$inc", "$set", "$unset", "$max"])
                    statement = {"q": {"_id": id}, "u": {operator: {field: number}}, "blind": action < 0.8}
                    reply = client.test.command("update", "c", updates=[statement], **journaled)
                    assert "writeErrors" not in reply and ("n" in reply) == (action >= 0.8)
                    if id in model:
                        old = model[id].get(field)
                        if operator == "$unset":
                            model[id].pop(field, None)
                        elif operator == "$inc":
                            model[id][field] = number + (old or 0)
                        elif operator == "$set" or old is None or old < number:
                            model[id][field] = number
                if step % 50 == 20:
                    client.admin.command("fsync")
            assert {document["_id"]: document for document in collection.find()} == model
            assert client.test.command("validate", "c", full=True)["valid"]
        if end == "kill":
            server.kill()
        else:
            assert server.stop() == 0
        server = Server(tmp_path / "data", engine=engine).start()
    with server.client() as client:
        assert {document["_id"]: document for document in client.test.c.find()} == model
        assert client.test.command("validate", "c", full=True)["valid"]
    assert server.stop() == 0
