"""Bulk writes of a whole client, which PyMongo sends as `bulkWrite` from wire version 25 on."""

import time

import pytest
from pymongo import DeleteMany, DeleteOne, InsertOne, ReplaceOne, UpdateMany, UpdateOne, WriteConcern
from pymongo.errors import AutoReconnect, ClientBulkWriteException, OperationFailure
from pymongo.monitoring import CommandListener

from server import Server

BATCH_MAX = 100_000
MEGABYTE = 1024 * 1024


class Sent(CommandListener):
    """The commands that a client has sent, by their names."""

    def __init__(self):
        self.commands = []

    def started(self, event):
        self.commands.append((event.command_name, event.command))

    def succeeded(self, event):
        pass

    def failed(self, event):
        pass

    def named(self, name):
        return [command for sent, command in self.commands if sent == name]


@pytest.fixture(scope="module", params=["betree", "memory"])
def own(request, tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("store") / "data", "--persona", "replica-set", "--test-commands", "on", engine=request.param).start()
    yield server
    assert server.stop() == 0, server.log()
    assert "panic" not in server.whole_log()


@pytest.fixture
def sent():
    return Sent()


@pytest.fixture
def mongo(own, sent):
    with own.client(event_listeners=[sent]) as mongo:
        yield mongo
    with own.client() as control:
        control.admin.command("configureFailPoint", "failCommand", mode="off")
        control.drop_database("t")


@pytest.fixture
def fail(own):
    def fail(*commands, **data):
        with own.client() as control:
            control.admin.command("configureFailPoint", "failCommand", mode={"times": 1}, data={"failCommands": list(commands), **data})

    return fail


def sums(result):
    return [result.inserted_count, result.matched_count, result.modified_count, result.upserted_count, result.deleted_count]


def inserts(numbers, namespace="t.a", **more):
    return [InsertOne({"_id": number, **more}, namespace=namespace) for number in numbers]


def failed(mongo, models, **options):
    with pytest.raises(ClientBulkWriteException) as told:
        mongo.bulk_write(models, **options)
    return told.value


def appears(collection, query):
    """Waits for the effect of an unacknowledged write, which may come through another connection."""
    deadline = time.monotonic() + 10
    while not collection.count_documents(query):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_server_announces_mongodb_8(mongo):
    assert mongo.admin.command("hello")["maxWireVersion"] == 25
    assert mongo.server_info()["versionArray"][:2] == [8, 0]
    assert mongo.admin.command("getParameter", 1, featureCompatibilityVersion=1)["featureCompatibilityVersion"] == {"version": "8.0"}
    assert mongo.t.command("explain", {"find": "a"})["serverInfo"]["version"] == mongo.server_info()["version"]


def test_operations_of_all_kinds_on_two_collections(mongo):
    models = [
        *inserts([1, 2, 3], x=1), *inserts([1], "t.b"),
        UpdateOne({"x": 1}, {"$set": {"last": True}}, sort={"_id": -1}, namespace="t.a"),
        UpdateMany({"x": 1}, {"$inc": {"x": 1}}, namespace="t.a"),
        UpdateOne({"_id": 9}, {"$set": {"y": 1}}, upsert=True, namespace="t.b"),
        ReplaceOne({"y": 1}, {"z": [1, 5]}, hint="_id_", namespace="t.b"),
        UpdateOne({"_id": 9}, {"$set": {"z.$[big]": 0}}, array_filters=[{"big": {"$gt": 2}}], namespace="t.b"),
        ReplaceOne({"x": 2}, {"first": True}, sort={"_id": 1}, namespace="t.a"),
        UpdateOne({"$expr": {"$eq": ["$_id", "$$two"]}}, [{"$set": {"let": "$$two"}}], namespace="t.a"),
        DeleteOne({"_id": 1}, namespace="t.b"), DeleteMany({"_id": {"$gte": 77}}, namespace="t.a"),
    ]
    result = mongo.bulk_write(models, let={"two": 2}, verbose_results=True, comment="all kinds")
    assert sums(result) == [4, 8, 8, 1, 1] and result.acknowledged
    assert {at: one.inserted_id for at, one in result.insert_results.items()} == {0: 1, 1: 2, 2: 3, 3: 1}
    assert {at: (one.matched_count, one.modified_count, one.upserted_id) for at, one in result.update_results.items()} == {
        4: (1, 1, None), 5: (3, 3, None), 6: (1, 0, 9), 7: (1, 1, None), 8: (1, 1, None), 9: (1, 1, None), 10: (1, 1, None)}
    assert {at: one.deleted_count for at, one in result.delete_results.items()} == {11: 1, 12: 0}
    assert list(mongo.t.a.find().sort("_id")) == [{"_id": 1, "first": True}, {"_id": 2, "x": 2, "let": 2}, {"_id": 3, "x": 2, "last": True}]
    assert list(mongo.t.b.find()) == [{"_id": 9, "z": [1, 0]}]


def test_an_update_by_its_sort_order(mongo):
    mongo.t.a.insert_many([{"_id": at, "x": at % 3} for at in range(9)])
    assert mongo.t.a.update_one({"x": 1}, {"$set": {"y": 1}}, sort={"_id": -1}).modified_count == 1
    assert mongo.t.a.replace_one({"x": 2}, {"y": 2}, sort={"x": 1, "_id": -1}).modified_count == 1
    unacknowledged = mongo.t.a.with_options(write_concern=WriteConcern(w=0))
    unacknowledged.update_one({"x": 0}, {"$set": {"y": 3}}, sort={"_id": -1})
    appears(mongo.t.a, {"y": 3})
    assert [(found["_id"], found["y"]) for found in mongo.t.a.find({"y": {"$gt": 0}}).sort("_id")] == [(6, 3), (7, 1), (8, 2)]


def test_an_order_is_for_one_document(mongo):
    mongo.t.a.insert_many([{"_id": at} for at in range(3)])
    change = {"q": {}, "u": {"$set": {"y": 1}}, "multi": True, "sort": {"_id": 1}}
    reply = mongo.t.command("update", "a", updates=[change, {**change, "sort": {}}], ordered=False)
    assert [(one["index"], one["code"]) for one in reply["writeErrors"]] == [(0, 9)] and reply["nModified"] == 3
    operation = {"update": 0, "filter": {}, "updateMods": {"$set": {"y": 2}}, "multi": True, "sort": {"_id": 1}}
    reply = mongo.admin.command({"bulkWrite": 1, "ops": [operation], "nsInfo": [{"ns": "t.a"}]})
    assert reply["cursor"]["firstBatch"][0]["code"] == 9 and mongo.t.a.count_documents({"y": 2}) == 0


def test_failures_of_ordered_and_unordered_writes(mongo):
    models = [*inserts([1, 1, 2]), UpdateOne({"_id": 1}, {"$bogus": {"x": 1}}, namespace="t.a"), DeleteOne({"_id": 1}, namespace="t.a")]
    error = failed(mongo, models, verbose_results=True)
    assert [(one["idx"], one["code"]) for one in error.write_errors] == [(1, 11000)] and error.error is None
    assert sums(error.partial_result) == [1, 0, 0, 0, 0] and list(error.partial_result.insert_results) == [0]
    mongo.t.a.delete_many({})
    error = failed(mongo, models, ordered=False, verbose_results=True)
    assert [(one["idx"], one["code"]) for one in error.write_errors] == [(1, 11000), (3, 9)]
    assert sums(error.partial_result) == [2, 0, 0, 0, 1] and list(error.partial_result.delete_results) == [4]
    mongo.t.a.delete_many({})
    assert [one["idx"] for one in failed(mongo, models, ordered=False).write_errors] == [1, 3]
    assert failed(mongo, inserts([2, 2])[1:]).partial_result is None


def test_a_malformed_request_is_an_error_of_the_whole(mongo):
    with pytest.raises(ClientBulkWriteException) as told:
        mongo.bulk_write([InsertOne({"_id": 1}, namespace="t.a"), InsertOne({"_id": 1}, namespace="t")])
    assert isinstance(told.value.error, OperationFailure) and told.value.error.code == 73
    assert mongo.t.a.count_documents({}) == 0


def test_more_operations_than_a_batch_holds(mongo, sent):
    """The driver splits them; places of results and failures count through all batches."""
    numbers = [*range(BATCH_MAX), BATCH_MAX - 1, BATCH_MAX + 1]
    error = failed(mongo, inserts(numbers), ordered=False)
    assert [len(command["ops"]) for command in sent.named("bulkWrite")] == [BATCH_MAX, 2]
    assert [(one["idx"], one["code"]) for one in error.write_errors] == [(BATCH_MAX, 11000)]
    assert error.partial_result.inserted_count == BATCH_MAX + 1
    assert mongo.t.a.estimated_document_count() == BATCH_MAX + 1


def test_more_bytes_than_a_message_holds(mongo, sent):
    text = "b" * (16 * MEGABYTE - 500)
    result = mongo.bulk_write(inserts(range(4), text=text), verbose_results=True)
    assert [len(command["ops"]) for command in sent.named("bulkWrite")] == [2, 2]
    assert result.inserted_count == 4 and {at: one.inserted_id for at, one in result.insert_results.items()} == {at: at for at in range(4)}
    assert mongo.t.a.estimated_document_count() == 4


def long_upserts():
    """Their results have the `_id` of the new document, so two of them are more than one batch of a cursor."""
    return [UpdateOne({"_id": letter * (8 * MEGABYTE)}, {"$set": {"x": 1}}, upsert=True, namespace="t.a") for letter in "ab"]


def test_results_of_more_than_one_batch(mongo, sent):
    result = mongo.bulk_write(long_upserts(), verbose_results=True)
    assert result.upserted_count == 2 and [one.upserted_id[:1] for one in result.update_results.values()] == ["a", "b"]
    assert len(sent.named("getMore")) == 1


def test_results_of_more_than_one_batch_in_a_transaction(mongo, sent):
    mongo.t.create_collection("a")
    with mongo.start_session() as session, session.start_transaction():
        result = mongo.bulk_write(long_upserts(), session=session, verbose_results=True)
        assert len(result.update_results) == 2 and len(sent.named("getMore")) == 1
        assert mongo.t.a.estimated_document_count() == 0
    assert mongo.t.a.estimated_document_count() == 2


def test_results_that_cannot_be_fetched(mongo, sent, fail):
    fail("getMore", errorCode=8)
    error = failed(mongo, long_upserts(), verbose_results=True)
    assert error.error["code"] == 8 and error.partial_result.upserted_count == 2 and len(error.partial_result.update_results) == 1
    assert len(sent.named("killCursors")) == 1


def test_a_transaction_commits_and_aborts(mongo):
    with mongo.start_session() as session:
        with session.start_transaction():
            result = mongo.bulk_write([*inserts([1]), *inserts([1], "t.b")], session=session)
            assert result.inserted_count == 2 and mongo.t.b.count_documents({}) == 0
        assert mongo.t.a.count_documents({}) == mongo.t.b.count_documents({}) == 1
        session.start_transaction()
        mongo.bulk_write([DeleteMany({}, namespace="t.a"), DeleteMany({}, namespace="t.b")], session=session)
        session.abort_transaction()
        assert mongo.t.a.count_documents({}) == mongo.t.b.count_documents({}) == 1


def test_a_conflict_in_a_transaction_has_its_label(mongo):
    mongo.t.a.insert_one({"_id": 1})
    change = [UpdateOne({"_id": 1}, {"$inc": {"x": 1}}, namespace="t.a")]
    with mongo.start_session() as first, mongo.start_session() as second:
        first.start_transaction()
        second.start_transaction()
        mongo.bulk_write(change, session=first)
        with pytest.raises(ClientBulkWriteException) as told:
            mongo.bulk_write(change, session=second)
        assert told.value.error.code == 112 and told.value.error.has_error_label("TransientTransactionError")
        first.commit_transaction()
    assert mongo.t.a.find_one() == {"_id": 1, "x": 1}


def test_retries(mongo, sent, fail):
    """A bulk write has a transaction number, and is repeated, unless one of its operations changes many documents."""
    mongo.t.a.insert_one({"_id": 1, "x": 0})
    change = UpdateOne({"_id": 1}, {"$inc": {"x": 1}}, namespace="t.a")
    fail("bulkWrite", closeConnection=True)
    assert mongo.bulk_write([change, *inserts([2])]).modified_count == 1
    first, again = sent.named("bulkWrite")
    assert first["txnNumber"] == again["txnNumber"]
    fail("bulkWrite", errorCode=91, errorLabels=["RetryableWriteError"])
    assert mongo.bulk_write([change]).modified_count == 1 and mongo.t.a.find_one({"_id": 1})["x"] == 2
    fail("bulkWrite", closeConnection=True)
    error = failed(mongo, [UpdateMany({"_id": 1}, {"$inc": {"x": 1}}, namespace="t.a")])
    assert isinstance(error.error, AutoReconnect) and "txnNumber" not in sent.named("bulkWrite")[-1]
    assert mongo.t.a.find_one({"_id": 1})["x"] == 2


def test_write_concerns(mongo, fail):
    assert mongo.bulk_write(inserts([1]), write_concern=WriteConcern(w="majority", j=True)).inserted_count == 1
    fail("bulkWrite", writeConcernError={"code": 64, "errmsg": "waiting for replication timed out"})
    error = failed(mongo, inserts([2]), ordered=False, write_concern=WriteConcern(w="majority"))
    assert [one["code"] for one in error.write_concern_errors] == [64] and sums(error.partial_result) == [1, 0, 0, 0, 0]
    result = mongo.bulk_write(inserts([3, 3, 4]), ordered=False, write_concern=WriteConcern(w=0))
    assert not result.acknowledged
    appears(mongo.t.a, {"_id": 4})
    assert {found["_id"] for found in mongo.t.a.find()} == {1, 2, 3, 4}


def test_the_counters_count_each_operation(mongo):
    count = lambda: mongo.admin.command("serverStatus")["opcounters"]
    before = count()
    mongo.bulk_write([*inserts([1, 2]), *inserts([1], "t.b"), UpdateMany({}, {"$set": {"x": 1}}, namespace="t.a"), DeleteMany({}, namespace="t.b")])
    after = count()
    assert {name: after[name] - before[name] for name in ("insert", "update", "delete")} == {"insert": 3, "update": 1, "delete": 1}


def test_fields_of_encryption_are_refused(mongo):
    """Queryable encryption keeps lists of its own on the server; a server without them may not take its documents."""
    info = [{"ns": "t.a", "encryptionInformation": {"type": 1, "schema": {}}}]
    with pytest.raises(OperationFailure) as told:
        mongo.admin.command({"bulkWrite": 1, "ops": [{"insert": 0, "document": {}}], "nsInfo": info})
    assert "encryptionInformation" in str(told.value) and mongo.t.a.count_documents({}) == 0
    with pytest.raises(OperationFailure) as told:
        mongo.t.command("create", "e", encryptedFields={"fields": []})
    assert "encryptedFields" in str(told.value)
