"""Index filters: queries of a shape use the indexes that its filter allows, and no other."""

import pymongo
import pytest

from server import Server

pytestmark = pytest.mark.needs("one server")


@pytest.fixture
def filled(db):
    db.c.insert_many([{"_id": at, "a": at % 4, "b": at, "s": f"x{at % 3}"} for at in range(60)])
    for keys in ("a", "b", "s"):
        db.c.create_index(keys)
    db.c.create_index([("a", 1), ("b", 1)])
    return db


def planner(db, command, verbosity="queryPlanner"):
    told = db.command({"explain": command, "verbosity": verbosity})
    return told["queryPlanner"] if "queryPlanner" in told else told["stages"][0]["$cursor"]["queryPlanner"]


def names(plan):
    """The indexes of a plan; COLLSCAN where it reads the collection."""
    if "indexName" in plan:
        return [plan["indexName"]]
    below = [plan["inputStage"]] if "inputStage" in plan else plan.get("inputStages", [])
    return [name for inner in below for name in names(inner)] or [plan["stage"]]


def told(db, **find):
    shown = planner(db, {"find": "c", **find})
    return shown["indexFilterSet"], names(shown["winningPlan"])


def set_filter(db, query, indexes, **shape):
    db.command({"planCacheSetFilter": "c", "query": query, "indexes": indexes, **shape})


def test_only_the_allowed_indexes_are_candidates_also_against_a_hint(filled):
    set_filter(filled, {"a": 1, "s": "x"}, ["s_1"])
    for find in [{}, {"hint": "a_1"}, {"hint": "no such"}, {"limit": 3}, {"projection": {"b": 0}}]:
        assert told(filled, filter={"s": "x2", "a": 3}, **find) == (True, ["s_1"]), find
    assert filled.c.count_documents({"a": 1, "s": "x1"}) == 5
    assert len(list(filled.c.find({"a": 1, "s": "x1"}).hint("a_1"))) == 5
    # Another operator, sort or projection is another shape.
    for find in [{"filter": {"a": 1, "s": {"$gt": "x"}}}, {"filter": {"a": 1, "s": "x"}, "sort": {"b": 1}},
                 {"filter": {"a": 1, "s": "x"}, "projection": {"a": 1}}]:
        assert not told(filled, **find)[0], find


def test_an_index_by_its_pattern_and_indexes_that_do_not_serve(filled):
    set_filter(filled, {"a": 1}, [{"a": 1, "b": 1}])
    assert told(filled, filter={"a": 2}) == (True, ["a_1_b_1"])
    set_filter(filled, {"a": 1}, ["no such", "s_1"])
    assert told(filled, filter={"a": 2}) == (True, ["COLLSCAN"])
    assert told(filled, filter={"a": {"$in": [2]}}) == (True, ["COLLSCAN"])
    assert told(filled, filter={"a": 2}, sort={"$natural": -1}) == (True, ["COLLSCAN"])


@pytest.mark.parametrize("command", [
    {"count": "c", "query": {"a": 1}}, {"distinct": "c", "key": "s", "query": {"a": 1}},
    {"update": "c", "updates": [{"q": {"a": 1}, "u": {"$set": {"q": 1}}, "hint": "a_1"}]}, {"delete": "c", "deletes": [{"q": {"a": 1}, "limit": 0}]},
    {"findAndModify": "c", "query": {"a": 1}, "remove": True}, {"aggregate": "c", "pipeline": [{"$match": {"a": 1}}], "cursor": {}},
    {"aggregate": "c", "pipeline": [{"$match": {"a": 1}}, {"$unwind": "$s"}], "cursor": {}, "hint": "a_1"},
], ids=lambda command: next(iter(command)))
def test_every_command_keeps_to_the_filter(filled, command):
    set_filter(filled, {"a": 1}, ["a_1_b_1"])
    shown = planner(filled, command)
    assert shown["indexFilterSet"] and names(shown["winningPlan"]) == ["a_1_b_1"]


def test_the_search_of_an_update_keeps_to_the_filter(filled):
    def uses():
        [stats] = filled.c.aggregate([{"$indexStats": {}}, {"$match": {"name": "s_1"}}])
        return stats["accesses"]["ops"]

    set_filter(filled, {"a": 1, "s": "x"}, ["s_1"])
    before = uses()
    assert filled.c.update_many({"a": 1, "s": "x1"}, {"$set": {"q": 1}}, hint="a_1").modified_count == 5
    assert filled.c.delete_many({"a": 1, "s": "x1"}).deleted_count == 5
    assert uses() == before + 2


def test_lookups_by_id_and_counts_of_all_pass_by_filters(filled):
    for query in [{"_id": 1}, {}, {"_id": 1, "a": 1}]:
        set_filter(filled, query, ["s_1"])
    assert told(filled, filter={"_id": 3}) == (True, ["IDHACK"])
    assert told(filled, filter={"_id": 3}, skip=1)[0]
    assert told(filled, filter={"_id": 3, "a": 3}) == (True, ["COLLSCAN"])
    assert filled.c.find_one({"_id": 3, "a": 3})["b"] == 3
    assert not planner(filled, {"count": "c"})["indexFilterSet"]
    assert not planner(filled, {"distinct": "c", "key": "a"})["indexFilterSet"]
    assert filled.c.count_documents({}) == 60 and sorted(filled.c.distinct("a")) == [0, 1, 2, 3]


def test_filters_are_listed_replaced_and_cleared(filled):
    set_filter(filled, {"a": 1}, ["z", {"b": 1}, "a", {"a": 1}, {"b": 1}])
    set_filter(filled, {"a": 1}, ["a_1"], sort={"b": 1}, projection={"a": 1, "_id": 0}, collation={"locale": "de"})
    first, second = filled.command({"planCacheListFilters": "c"})["filters"]
    assert first == {"query": {"a": 1}, "sort": {}, "projection": {}, "indexes": [{"a": 1}, {"b": 1}, "a", "z"]}
    assert second["collation"]["locale"] == "de" and list(second) == ["query", "sort", "projection", "collation", "indexes"]
    set_filter(filled, {"a": 7}, ["b_1"])
    listed = filled.command({"planCacheListFilters": "c"})["filters"]
    assert sorted(filter["indexes"] for filter in listed) == [["a_1"], ["b_1"]]
    filled.command({"planCacheClear": "c", "query": {"a": 1}})
    filled.command({"planCacheClearFilters": "c", "query": {"a": None}})
    [left] = filled.command({"planCacheListFilters": "c"})["filters"]
    assert left["indexes"] == ["a_1"]
    filled.command({"planCacheClearFilters": "c"})
    assert filled.command({"planCacheListFilters": "c"})["filters"] == []
    assert told(filled, filter={"a": 2})[0] is False


def test_filters_outlive_index_changes_and_a_rename_but_no_drop(filled):
    set_filter(filled, {"a": 1}, ["a_1_b_1"])
    filled.c.create_index("q")
    filled.c.drop_index("a_1_b_1")
    filled.command({"collMod": "c", "validationLevel": "strict"})
    filled.c.rename("d")
    assert len(filled.command({"planCacheListFilters": "d"})["filters"]) == 1
    filled.d.rename("c")
    assert told(filled, filter={"a": 1}) == (True, ["COLLSCAN"])
    filled.c.drop()
    filled.c.insert_one({"a": 1})
    assert filled.command({"planCacheListFilters": "c"})["filters"] == []


def test_a_filter_with_the_collation_of_a_request(filled):
    swedish = {"locale": "sv"}
    filled.c.create_index("a", name="sv", collation=swedish)
    set_filter(filled, {"a": "x"}, ["sv"], collation=swedish)
    assert told(filled, filter={"a": "y"}, collation=swedish) == (True, ["sv"])
    assert told(filled, filter={"a": "y"})[0] is False


def test_rights_of_the_commands(tmp_path):
    server = Server(tmp_path / "data", "--auth").start()
    try:
        with server.client() as client:
            client.admin.command({"createUser": "root", "pwd": "root", "roles": ["root"]})
        with server.client(username="root", password="root") as root:
            root.test.c.insert_one({"a": 1})
            for action in ("planCacheRead", "planCacheWrite", "planCacheIndexFilter"):
                resource = {"db": "test", "collection": "c"}
                root.test.command({"createRole": action, "privileges": [{"resource": resource, "actions": [action]}], "roles": []})
                root.test.command({"createUser": action, "pwd": "x", "roles": [action]})
        commands = {
            "planCacheRead": [{"aggregate": "c", "pipeline": [{"$planCacheStats": {}}], "cursor": {}}],
            "planCacheWrite": [{"planCacheClear": "c"}],
            "planCacheIndexFilter": [{"planCacheListFilters": "c"}, {"planCacheClearFilters": "c"},
                                     {"planCacheSetFilter": "c", "query": {"a": 1}, "indexes": ["x"]}],
        }
        for user in commands:
            with server.client(username=user, password="x", authSource="test") as client:
                for action, requests in commands.items():
                    for request in requests:
                        reply = client.test.command(request, check=False)
                        assert reply.get("code") == (None if action == user else 13), (user, request)
                for request in requests:
                    other = {name: "d" if value == "c" else value for name, value in request.items()}
                    assert client.test.command(other, check=False)["code"] == 13
    finally:
        server.stop()


def test_none_of_them_runs_in_a_transaction(client):
    if not client.admin.command("hello").get("setName"):
        pytest.skip("a server without transactions")
    with client.start_session() as session:
        session.start_transaction()
        with pytest.raises(pymongo.errors.OperationFailure) as refused:
            client.test.command({"planCacheClear": "c"}, session=session)
        assert refused.value.code == 263
        session.abort_transaction()
