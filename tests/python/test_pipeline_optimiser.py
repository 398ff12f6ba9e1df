"""The optimiser of pipelines and the strategies of joins, as clients see them: explained stages, equal answers, limits."""

import random
import threading
import time

import pytest
from pymongo.errors import OperationFailure, PyMongoError

from server import Server


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("store") / "data", "--test-commands", "on").start()
    yield server
    assert server.stop() == 0, server.log()


@pytest.fixture
def db(own):
    with own.client() as client:
        yield client.optimised
        client.drop_database("optimised")


def stages(db, collection, pipeline, verbosity="queryPlanner"):
    explained = db.command("explain", {"aggregate": collection, "pipeline": pipeline, "cursor": {}}, verbosity=verbosity)
    return [stage for stage in explained.get("stages", ()) if "$cursor" not in stage]


def test_explain_shows_the_optimised_stages_and_a_fail_point_turns_the_optimiser_off(db, own):
    db.c.insert_many([{"_id": at, "k": at % 5, "t": [at, at + 1]} for at in range(20)])
    pipeline = [{"$unwind": "$t"}, {"$match": {}}, {"$match": {"k": 2}}, {"$skip": 1}, {"$skip": 2}]
    assert [list(stage)[0] for stage in stages(db, "c", pipeline)] == ["$unwind", "$skip"]
    optimised = list(db.c.aggregate(pipeline))
    db.client.admin.command("configureFailPoint", "disablePipelineOptimization", mode="alwaysOn")
    try:
        assert [list(stage)[0] for stage in stages(db, "c", pipeline)] == ["$unwind", "$match", "$match", "$skip", "$skip"]
        assert list(db.c.aggregate(pipeline)) == optimised
    finally:
        db.client.admin.command("configureFailPoint", "disablePipelineOptimization", mode="off")
    assert [list(stage)[0] for stage in stages(db, "c", pipeline)] == ["$unwind", "$skip"]


def test_a_projection_at_the_front_is_shown_as_that_of_the_plan(db):
    db.c.insert_many([{"_id": at, "a": at % 5, "b": {"c": at}} for at in range(20)])

    def told(*pipeline, verbosity="executionStats"):
        return db.command("explain", {"aggregate": "c", "pipeline": list(pipeline), "cursor": {}}, verbosity=verbosity)

    whole = told({"$match": {"a": 1}}, {"$project": {"x": "$a", "b.c": 1}})
    plan = whole["queryPlanner"]["winningPlan"]
    assert "stages" not in whole and whole["executionStats"]["nReturned"] == 4 and whole["queryPlanner"]["optimizedPipeline"] is True
    assert (plan["stage"], plan["transformBy"]) == ("PROJECTION_DEFAULT", {"_id": True, "x": "$a", "b": {"c": True}})
    part = told({"$project": {"a": 1, "_id": 0}}, {"$group": {"_id": "$a"}})
    assert [next(iter(stage)) for stage in part["stages"]] == ["$cursor", "$group"]
    assert part["stages"][0]["$cursor"]["queryPlanner"]["winningPlan"]["transformBy"] == {"a": True, "_id": False}
    assert [next(iter(stage)) for stage in told({"$project": {"a": 0}})["stages"]] == ["$cursor", "$project"]


def test_explain_tells_the_strategy_of_a_join(db):
    db.c.insert_many([{"_id": at, "k": at % 7} for at in range(50)])
    db.few.insert_many([{"_id": at, "k": at} for at in range(10)])
    db.many.insert_many([{"_id": at, "k": at % 100} for at in range(5000)])
    db.many.create_index("k")

    def strategy(collection, foreign):
        join = {"$lookup": {"from": collection, "localField": "k", "foreignField": foreign, "as": "j"}}
        return stages(db, "c", [join], "executionStats")[0]["strategy"]

    assert strategy("few", "k") == "HashJoin"
    assert strategy("many", "k") == "IndexedLoopJoin"
    assert strategy("few", "_id") == "HashJoin"
    assert strategy("missing", "k") == "HashJoin"
    joined = stages(db, "c", [{"$lookup": {"from": "few", "localField": "k", "foreignField": "_id", "as": "j"}}, {"$unwind": "$j"}, {"$match": {"j.k": 3}}])
    assert [list(stage) for stage in joined] == [["$lookup", "strategy"]] and joined[0]["strategy"] == "IndexedLoopJoin"
    assert joined[0]["$lookup"]["unwinding"] == {"preserveNullAndEmptyArrays": False}


def test_joins_give_the_same_by_every_strategy(db):
    chance = random.Random(5)
    values = [None, 1, 1.0, 2, "x", [], [1, "x"], [[1], 2], {"b": 1}, {"b": [1, 2]}, [{"b": 1}, {"b": "x"}], [{"c": 1}]]

    def some(count):
        return [{"_id": at, **{name: chance.choice(values) for name in "ab" if chance.random() < 0.8}} for at in range(count)]

    db.c.insert_many(some(60))
    db.d.insert_many(some(60))
    db.indexed.insert_many(list(db.d.find()))
    db.indexed.create_index("a")
    db.indexed.create_index("a.b")
    for local in ("a", "b", "a.b"):
        for foreign in ("a", "a.b", "_id"):
            join = {"localField": local, "foreignField": foreign, "as": "j"}
            for rest in ([], [{"$unwind": "$j"}], [{"$unwind": {"path": "$j", "preserveNullAndEmptyArrays": True, "includeArrayIndex": "n"}}],
                         [{"$unwind": "$j"}, {"$match": {"j.b": {"$ne": 1}}}]):
                def ids(collection, documents):
                    found = db.c.aggregate([{"$match": {"_id": {"$in": documents}}}, {"$sort": {"_id": 1}}, {"$lookup": {"from": collection, **join}}, *rest])
                    return [(row["_id"], sorted(item["_id"] for item in row["j"]) if isinstance(row.get("j"), list) else row.get("j", {}).get("_id"), row.get("n")) for row in found]

                everything = list(range(60))
                by_table = sorted(ids("d", everything), key=repr)
                # The first document of a pipeline is always searched for.
                by_search = sorted((row for at in everything for row in ids("d", [at])), key=repr)
                by_index = sorted(ids("indexed", everything), key=repr)
                if any("n" in str(stage.get("$unwind")) and "includeArrayIndex" in str(stage) for stage in rest):
                    by_table, by_search, by_index = ([(a, b) for a, b, _ in rows] for rows in (by_table, by_search, by_index))
                assert by_table == by_search == by_index, (local, foreign, rest)


def test_a_pipeline_without_variables_is_joined_once(db):
    db.c.insert_many([{"_id": at} for at in range(300)])
    db.d.insert_many([{"_id": at, "v": at % 3} for at in range(1000)])
    join = {"$lookup": {"from": "d", "pipeline": [{"$group": {"_id": "$v", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}], "as": "j"}}
    explained = stages(db, "c", [join], "executionStats")[0]
    assert explained["totalDocsExamined"] == 1000 and explained["nReturned"] == 300
    assert all(row["j"] == [{"_id": 0, "n": 334}, {"_id": 1, "n": 333}, {"_id": 2, "n": 333}] for row in db.c.aggregate([join]))


def test_a_joined_document_may_have_more_than_a_document_holds_where_it_is_unwound(db):
    db.c.insert_one({"_id": 1, "k": 1})
    db.d.insert_many([{"_id": at, "k": 1, "text": "x" * 1_000_000} for at in range(20)])
    join = {"$lookup": {"from": "d", "localField": "k", "foreignField": "k", "as": "j"}}
    assert sum(1 for _ in db.c.aggregate([join, {"$unwind": "$j"}, {"$project": {"n": "$j._id"}}])) == 20
    with pytest.raises(OperationFailure):
        list(db.c.aggregate([join]))


def test_limits_of_pipelines(db):
    db.c.insert_one({"_id": 1})
    assert list(db.c.aggregate([{"$addFields": {"a": 1}}] * 1000)) == [{"_id": 1, "a": 1}]
    with pytest.raises(OperationFailure) as caught:
        db.c.aggregate([{"$addFields": {"a": 1}}] * 1001)
    assert caught.value.code == 9
    db.c.insert_many([{"text": "x" * 1_000_000} for _ in range(20)])
    with pytest.raises(OperationFailure) as caught:
        list(db.c.aggregate([{"$group": {"_id": None, "all": {"$push": "$text"}}}]))
    assert caught.value.code in (10334, 17419, 17420)
    with pytest.raises(OperationFailure) as caught:
        list(db.c.aggregate([{"$facet": {"all": [{"$match": {}}]}}]))
    assert caught.value.code in (10334, 17419, 17420)


@pytest.mark.parametrize("seed", range(6))
def test_kill_minus_nine_leaves_the_target_of_out_old_or_new(tmp_path, seed):
    """The process is killed at a random moment of an `$out`; then the collection is the old one or the new one, whole, with its index."""
    server = Server(tmp_path / "data").start()
    try:
        with server.client() as client:
            client.t.source.insert_many([{"_id": at, "k": at % 97, "text": "x" * 50} for at in range(12_000)])
            client.t.target.insert_many([{"_id": at, "old": True} for at in range(500)])
            client.t.target.create_index("k")

            def replace():
                try:
                    client.t.source.aggregate([{"$set": {"new": True}}, {"$out": "target"}])
                except PyMongoError:
                    pass

            writer = threading.Thread(target=replace, daemon=True)
            writer.start()
            time.sleep(random.Random(seed).uniform(0.01, 0.6))
            server.kill()
            writer.join(60)
        server.start()
        with server.client() as client:
            target = client.t.target
            found = list(target.find({}, {"text": 0}).sort("_id", 1))
            is_old = found == [{"_id": at, "old": True} for at in range(500)]
            is_new = found == [{"_id": at, "k": at % 97, "new": True} for at in range(12_000)]
            assert is_old or is_new, (len(found), found[:2])
            assert [index["name"] for index in target.list_indexes()] == ["_id_", "k_1"]
            assert target.count_documents({"k": 3}, hint="k_1") == sum(document.get("k") == 3 for document in found)
            assert sorted(client.t.list_collection_names()) == ["source", "target"]
            assert client.t.command("validate", "target")["valid"]
        assert server.stop() == 0, server.log()
    finally:
        if server.is_running():
            server.kill()


def without_optimiser(db, collection, pipeline):
    db.client.admin.command("configureFailPoint", "disablePipelineOptimization", mode="alwaysOn")
    try:
        return list(db[collection].aggregate(pipeline))
    finally:
        db.client.admin.command("configureFailPoint", "disablePipelineOptimization", mode="off")


def test_a_group_of_the_ends_of_an_order_sorts_nothing_unless_an_index_has_the_order(db):
    chance = random.Random(9)
    values = [1, 1.0, 2, None, "x", [3, 0], {"b": 1}]
    db.c.insert_many([{"_id": at, "k": at % 7, "v": chance.choice(values), "w": chance.randrange(5)} for at in range(400)])
    ends = {"$group": {"_id": "$k", "first": {"$first": "$$ROOT"}, "last": {"$last": "$_id"}, "n": {"$sum": 1}}}
    for order in ({"v": 1}, {"v": -1, "w": 1}, {"w": 1}):
        for front in ([], [{"$match": {"w": {"$gt": 1}}}], [{"$unwind": "$v"}], [{"$addFields": {"w": {"$add": ["$w", "$k"]}}}]):
            pipeline = [*front, {"$sort": order}, ends, {"$sort": {"_id": 1}}]
            assert list(db.c.aggregate(pipeline)) == without_optimiser(db, "c", pipeline), pipeline
            # Elsewhere the sort passes the stage in front of it, and stands no more before the group.
            if not front or "$match" in front[0]:
                assert stages(db, "c", pipeline)[-2]["endsOfSort"] == order
    db.c.create_index("w")
    sort_and_group = [{"$sort": {"w": 1}}, {"$group": {"_id": "$k", "last": {"$last": "$w"}}}]
    explained = db.command("explain", {"aggregate": "c", "pipeline": sort_and_group, "cursor": {}, "hint": "w_1"})
    assert "endsOfSort" not in str(explained) and "IXSCAN" in str(explained) and "'SORT'" not in str(explained)


def test_a_group_takes_in_the_unwinding_in_front_of_it(db):
    chance = random.Random(4)
    values = [[1, 2, 2], [], None, [[1], {"x": 1}], {"x": 2}, 7, [{"x": 1}, {"x": None}, {"y": 3}]]
    db.c.insert_many([{"_id": at, "k": at % 3, **({"t": value} if (value := chance.choice([*values, 0])) != 0 else {})} for at in range(300)])
    # One array is long enough for checks in between.
    db.c.insert_one({"_id": 300, "k": 1, "t": [{"x": at % 5} for at in range(1000)]})
    for preserve in (False, True):
        for key in ("$t", "$t.x", "$k", {"k": "$k", "x": "$t.x"}, None):
            unwind = {"$unwind": {"path": "$t", "preserveNullAndEmptyArrays": preserve}}
            group = {"$group": {"_id": key, "n": {"$sum": 1}, "k": {"$avg": "$k"}, "x": {"$push": "$t.x"}, "all": {"$addToSet": "$t"}, "last": {"$last": "$_id"}}}
            pipeline = [unwind, group, {"$sort": {"_id": 1}}, {"$set": {"all": {"$size": "$all"}}}]
            assert list(db.c.aggregate(pipeline)) == without_optimiser(db, "c", pipeline), pipeline
            shown = stages(db, "c", [unwind, group])
            assert len(shown) == 1 and shown[0]["unwinding"] == {"path": "$t", "preserveNullAndEmptyArrays": preserve}
    root = [{"$unwind": "$t"}, {"$group": {"_id": "$k", "all": {"$push": "$$ROOT"}}}]
    assert [list(stage)[0] for stage in stages(db, "c", root)] == ["$unwind", "$group"]


def test_values_that_are_nested_too_deep_are_refused_and_end_no_server(db):
    db.c.insert_one({"_id": 1, "k": 1})

    def nested(levels, inner=["$$value"]):
        return {"$reduce": {"input": {"$range": [0, levels]}, "initialValue": 0, "in": inner}}

    def wrapped(levels):
        return [{"$set": {"v": {"a": "$v"}}}] * levels

    assert len(str(list(db.c.aggregate([{"$project": {"v": nested(199)}}])))) > 400
    assert len(str(list(db.c.aggregate(wrapped(199))))) > 1000
    pipelines = [[{"$project": {"v": nested(200)}}], wrapped(200), [*wrapped(199), {"$facet": {"x": []}}], [{"$group": {"_id": 1, "v": {"$push": nested(199)}}}]]
    # Comparisons and keys of such values once exhausted the stack.
    for levels in (5_000, 50_000):
        for inner in (["$$value"], {"a": "$$value"}):
            deep = nested(levels, inner)
            pipelines += [[{"$project": {"v": {"$eq": [deep, deep]}}}], [{"$group": {"_id": deep}}], [{"$match": {"$expr": {"$in": [deep, [1, deep]]}}}],
                          [{"$set": {"v": deep}}, {"$sort": {"v": 1}}], [{"$set": {"v": deep}}, {"$redact": "$$DESCEND"}]]  # fmt: skip
    pipelines.append([{"$set": {".".join(["v"] + ["a"] * 150): "$v"}}] * 100)
    for pipeline in pipelines:
        with pytest.raises(OperationFailure) as caught:
            list(db.c.aggregate(pipeline))
        assert caught.value.code == 15, str(pipeline)[:200]
