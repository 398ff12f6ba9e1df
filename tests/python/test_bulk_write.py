"""bulkWrite: inserts, updates and deletes of several collections in one request."""

import pytest
from bson import Int64
from pymongo.errors import OperationFailure

from server import Server

SUMS = ("nErrors", "nInserted", "nMatched", "nModified", "nUpserted", "nDeleted")


@pytest.fixture
def bulk(client, db):
    """Sends operations on the collections a and b of the database, which they name by 0 and 1."""

    def bulk(*ops, **more):
        info = [{"ns": f"{db.name}.a"}, {"ns": f"{db.name}.b"}]
        return client.admin.command({"bulkWrite": 1, "ops": list(ops), "nsInfo": info, **more})

    return bulk


def insert(place, identity, **more):
    return {"insert": place, "document": {"_id": identity, **more}}


def update(place, query, change, **more):
    return {"update": place, "filter": query, "updateMods": change, **more}


def delete(place, query, **more):
    return {"delete": place, "filter": query, **more}


def results(reply):
    assert reply["cursor"]["ns"] == "admin.$cmd.bulkWrite"
    return reply["cursor"]["firstBatch"]


def sums(reply):
    return [reply[name] for name in SUMS]


def test_operations_of_all_kinds_and_their_results(bulk, db):
    reply = bulk(insert(0, 1, x=1), insert(0, 2, x=1), insert(1, 1), update(0, {"x": 1}, {"$inc": {"x": 1}}, multi=True),
                 update(1, {"_id": 9}, {"$set": {"y": 1}}, upsert=True), update(1, {"_id": 8}, {"$set": {"y": 1}}), delete(0, {"_id": 2}),
                 delete(1, {}, multi=True), insert(1, 5))
    assert results(reply) == [
        {"ok": 1, "idx": 0, "n": 1}, {"ok": 1, "idx": 1, "n": 1}, {"ok": 1, "idx": 2, "n": 1}, {"ok": 1, "idx": 3, "n": 2, "nModified": 2},
        {"ok": 1, "idx": 4, "n": 1, "nModified": 0, "upserted": {"_id": 9}}, {"ok": 1, "idx": 5, "n": 0, "nModified": 0}, {"ok": 1, "idx": 6, "n": 1},
        {"ok": 1, "idx": 7, "n": 2}, {"ok": 1, "idx": 8, "n": 1}]
    assert sums(reply) == [0, 4, 2, 2, 1, 3] and reply["cursor"]["id"] == 0
    assert list(db.a.find()) == [{"_id": 1, "x": 2}] and list(db.b.find()) == [{"_id": 5}]


def test_an_ordered_request_ends_with_its_first_failure(bulk, db):
    ops = [insert(0, 1), insert(0, 1), insert(0, 2), update(0, {"_id": 1}, {"$bogus": {}}), delete(0, {"_id": 1})]
    reply = bulk(*ops)
    first, second = results(reply)
    assert first == {"ok": 1, "idx": 0, "n": 1} and sums(reply) == [1, 1, 0, 0, 0, 0]
    assert second["ok"] == 0 and second["idx"] == 1 and second["code"] == 11000 and second["keyPattern"] == {"_id": 1}
    assert db.a.count_documents({}) == 1
    db.a.delete_many({})
    reply = bulk(*ops, ordered=False)
    assert [(one["idx"], one.get("code")) for one in results(reply)] == [(0, None), (1, 11000), (2, None), (3, 9), (4, None)]
    assert sums(reply) == [2, 2, 0, 0, 0, 1] and [one["_id"] for one in db.a.find()] == [2]
    reply = bulk(*ops, ordered=False, errorsOnly=True)
    assert [one["idx"] for one in results(reply)] == [1, 2, 3]


@pytest.mark.needs("one server")
def test_results_come_in_batches(bulk, client):
    reply = bulk(*[insert(0, at) for at in range(10)], cursor={"batchSize": 3})
    assert len(results(reply)) == 3 and reply["cursor"]["id"]
    more = client.admin.command("getMore", Int64(reply["cursor"]["id"]), collection="$cmd.bulkWrite")
    assert [one["idx"] for one in more["cursor"]["nextBatch"]] == list(range(3, 10)) and more["cursor"]["id"] == 0


def test_variables_and_options(bulk, db):
    db.a.create_index("x")
    bulk(insert(0, 1, x=[1, 2]), insert(0, 2, x=[5]))
    reply = bulk(update(0, {"$expr": {"$eq": ["$_id", "$$id"]}}, [{"$set": {"y": "$$id"}}]),
                 update(0, {"x": 1}, {"$set": {"x.$[big]": 9}}, arrayFilters=[{"big": {"$gt": 1}}], hint={"x": 1}),
                 update(0, {"_id": 2}, [{"$set": {"c": "$$c"}}], constants={"c": 7}), delete(0, {"_id": 7}, hint="_id_"), let={"id": 1})
    assert sums(reply) == [0, 0, 3, 3, 0, 0]
    assert list(db.a.find()) == [{"_id": 1, "x": [1, 9], "y": 1}, {"_id": 2, "x": [5], "c": 7}]


def test_unacknowledged_and_large_requests(bulk, db):
    reply = bulk(insert(0, 1), writeConcern={"w": 0})
    assert results(reply) == [] and sums(reply) == [0] * 6 and db.a.count_documents({}) == 1
    reply = bulk(*[one for at in range(2000) for one in (insert(0, f"n{at}"), delete(0, {"_id": f"n{at}"}))], errorsOnly=True)
    assert sums(reply) == [0, 2000, 0, 0, 0, 2000] and db.a.count_documents({}) == 1


@pytest.mark.parametrize("change,code", [
    ({"ops": []}, 16), ({"nsInfo": 1}, 14), ({"nsInfo": []}, 2), ({"nsInfo": [{"ns": "x"}, {"ns": "t.b"}]}, 73), ({"nsInfo": [{}]}, 40414),
    ({"nsInfo": [{"ns": "t.a", "x": 1}]}, 40415), ({"ops": [{"insert": 2, "document": {}}]}, 2), ({"ops": [{"insert": -1, "document": {}}]}, 51024),
    ({"ops": [{"insert": 0}]}, 40414), ({"ops": [{"insert": 0, "document": {}, "x": 1}]}, 40415), ({"ops": [{"replace": 0}]}, 9), ({"ops": [{}]}, 9),
    ({"ops": [{"update": 0, "filter": {}}]}, 40414), ({"ops": [{"delete": 0}]}, 40414), ({"x": 1}, 40415), ({"ordered": 1}, 14),
    ({"ops": [{"update": 0, "filter": {}, "updateMods": 1}]}, 9), ({"ops": [{"delete": 0, "filter": {}, "multi": 1}]}, 14),
])
def test_malformed_requests_write_nothing(client, change, code):
    with pytest.raises(OperationFailure) as told:
        client.admin.command({"bulkWrite": 1, "ops": [insert(0, 1)], "nsInfo": [{"ns": "t.a"}, {"ns": "t.b"}], **change})
    assert told.value.code == code, told.value.details
    assert "t" not in client.list_database_names()


def test_only_on_admin_and_not_into_system_collections(client, db, bulk):
    with pytest.raises(OperationFailure) as told:
        db.command("bulkWrite", 1, ops=[insert(0, 1)], nsInfo=[{"ns": "t.a"}])
    assert told.value.code == 13
    reply = client.admin.command({"bulkWrite": 1, "ops": [insert(0, 1), insert(1, 1)], "ordered": False,
                                  "nsInfo": [{"ns": f"{db.name}.system.views"}, {"ns": f"{db.name}.a"}]})
    assert sums(reply)[:2] == [1, 1] and results(reply)[0]["code"] == 73


def test_a_repeat_changes_nothing(tmp_path):
    server = Server(tmp_path / "data").start()
    info = [{"ns": "t.a"}, {"ns": "t.b"}]
    request = {"bulkWrite": 1, "nsInfo": info, "txnNumber": Int64(7), "ops": [
        insert(0, 1, x=0), update(0, {"_id": 1}, {"$inc": {"x": 1}}), update(1, {"_id": 5}, {"$inc": {"x": 1}}, upsert=True), delete(0, {"_id": 77}),
        insert(1, 6), delete(1, {"_id": 6})]}
    with server.client() as client, client.start_session() as session:
        first = client.admin.command(request, session=session)
        again = client.admin.command(request, session=session)
        assert sums(first) == [0, 2, 1, 1, 1, 1] and sums(again) == sums(first)
        assert results(again) == results(first) and again["retriedStmtIds"] == [0, 1, 2, 4, 5]
        assert client.t.a.find_one() == {"_id": 1, "x": 1} and client.t.b.find_one() == {"_id": 5, "x": 1}
        server.kill()
        server.start(server.port)
        assert sums(client.admin.command(request, session=session)) == sums(first)
        assert client.t.a.find_one() == {"_id": 1, "x": 1}
    assert server.stop() == 0


def test_in_a_transaction(tmp_path):
    server = Server(tmp_path / "data", "--persona", "replica-set").start()
    info = [{"ns": "t.a"}, {"ns": "t.b"}]
    with server.client() as client, client.start_session() as session:
        request = {"bulkWrite": 1, "nsInfo": info, "ops": [insert(0, 1), insert(1, 1), update(0, {}, {"$set": {"x": 1}}, multi=True)]}
        with session.start_transaction():
            assert sums(client.admin.command(request, session=session)) == [0, 2, 1, 1, 0, 0]
            assert client.t.a.count_documents({}) == 0
        assert client.t.a.find_one() == {"_id": 1, "x": 1}
        session.start_transaction()
        reply = client.admin.command({**request, "ordered": False, "ops": [insert(0, 2), insert(0, 1), insert(0, 3)]}, session=session)
        assert sums(reply) == [1, 1, 0, 0, 0, 0] and len(results(reply)) == 2
        with pytest.raises(OperationFailure) as told:
            session.commit_transaction()
        assert told.value.code == 251 and client.t.a.count_documents({}) == 1
    assert server.stop() == 0
