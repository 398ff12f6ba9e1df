"""Groups that need only their ends, and values of `distinct`: the same as MongoDB's, with each index and with none.

Sorts end with a unique field, so that each group has one first and one last document. Where MongoDB itself gives another answer
with an index than without one, the answer without counts: those are named.
"""

import random

import bson
import pytest

from both import Order

VALUES = [None, 0, 1, 2, 3, 2.5, "", "a", "b", True, {"x": 1}, bson.MinKey(), bson.MaxKey()]
INDEXES = [
    {"a": 1, "b": 1, "u": 1}, {"a": -1, "b": 1, "u": -1}, {"b": 1, "u": 1}, {"c": 1, "a": 1, "b": 1, "u": 1}, {"c": 1, "b": -1, "u": -1}, {"a": 1},
    {"b": -1}, {"a.x": 1, "b": 1, "u": 1},
]


def documents(chance, arrays):
    for at in range(200):
        document = {"_id": at, "u": at * 7 % 211, "c": chance.randrange(3)}
        for name in ("a", "b"):
            if chance.random() < 0.85:
                value = chance.choice(VALUES)
                document[name] = [value, chance.choice(VALUES)] if name == arrays and chance.random() < 0.1 else value
        yield document


def order(chance):
    way = chance.choice([1, -1])
    fields = {chance.choice(["a", "c"]): chance.choice([1, -1])} if chance.random() < 0.5 else {}
    return {**fields, **({"b": way} if chance.random() < 0.8 else {}), "u": way}


def accumulators(chance):
    output = lambda: chance.choice(["$u", "$b", "$$ROOT"])
    kinds = [
        lambda: {chance.choice(["$first", "$last"]): output()}, lambda: {chance.choice(["$min", "$max"]): chance.choice(["$b", "$u", "$a"])},
        lambda: {chance.choice(["$top", "$bottom"]): {"sortBy": order(chance), "output": output()}},
    ]
    kind = chance.choice(kinds)
    return {name: kind() for name in chance.choice([["x"], ["x", "y"], ["x"], []])}


def pipeline(chance):
    match = chance.choice([{}, {}, {"c": 1}, {"a": {"$gte": 1}}, {"b": {"$gt": 0}}, {"a": {"$in": [1, 2, "a"]}}, {"c": 2, "b": {"$lt": "b"}}])
    group = {"_id": chance.choice([None, "$a", "$a", "$a.x", {"k": "$a"}]), **accumulators(chance)}
    return [{"$match": match}, *([{"$sort": order(chance)}] if chance.random() < 0.8 else []), {"$group": group}]


def needs_a_sort(stages):
    return any(name in accumulator for accumulator in stages[-1]["$group"].values() if isinstance(accumulator, dict) for name in ("$first", "$last"))


@pytest.mark.parametrize("arrays", [None, "a", "b"])
def test_groups_give_the_same_with_each_index_and_with_none(both, arrays):
    chance = random.Random(f"{arrays}")
    both.fill("c", list(documents(chance, arrays)))
    stages = [one for one in (pipeline(chance) for _ in range(60)) if len(one) == 3 or not needs_a_sort(one)]
    wanted = []
    for one in stages:
        both.rows({"aggregate": "c", "pipeline": one, "cursor": {}}, order=Order.FREE)
        wanted.append(answer(both, one))
    for index in INDEXES:
        both.pando[both.name].c.create_index(list(index.items()), name="i")
        for one, expected in zip(stages, wanted):
            assert answer(both, one) == expected, (one, index)
        both.pando[both.name].c.drop_index("i")
    for index in INDEXES:
        both.pando[both.name].c.create_index(list(index.items()))
    for one, expected in zip(stages, wanted):
        assert answer(both, one) == expected, one


def answer(both, stages):
    return sorted(bson.encode(row) for row in both.pando[both.name].c.aggregate(stages))


def stage_names(plan):
    names = [plan["stage"]]
    for inner in [plan["inputStage"]] if "inputStage" in plan else plan.get("inputStages", []):
        names += stage_names(inner)
    return names


@pytest.mark.parametrize("stages", [
    [{"$sort": {"a": 1, "b": 1}}, {"$group": {"_id": "$a", "x": {"$first": "$b"}}}],
    [{"$sort": {"a": 1, "b": 1}}, {"$group": {"_id": "$a", "x": {"$first": "$c"}}}],
    [{"$group": {"_id": "$a"}}],
    [{"$match": {"a": {"$gt": 3}}}, {"$sort": {"a": -1, "b": -1}}, {"$group": {"_id": "$a", "x": {"$first": "$$ROOT"}}}],
], ids=repr)
def test_plans_have_the_stages_of_mongodb_and_examine_one_entry_a_group(both, stages):
    both.fill("c", [{"_id": at, "a": at % 10, "b": at, "c": -at} for at in range(1000)])
    both.same({"createIndexes": "c", "indexes": [{"key": {"a": 1, "b": 1}, "name": "ab"}]})
    explained = [
        client[both.name].command("explain", {"aggregate": "c", "pipeline": stages, "cursor": {}}, verbosity="executionStats")
        for client in (both.oracle, both.pando)
    ]
    cursors = [one["stages"][0]["$cursor"] if "stages" in one else one for one in explained]
    plans = [stage_names(cursor["queryPlanner"]["winningPlan"]) for cursor in cursors]
    assert plans[0] == plans[1]
    assert "DISTINCT_SCAN" in plans[1]
    # MongoDB looks at one entry beyond a range.
    for figure in ("totalKeysExamined", "totalDocsExamined"):
        assert cursors[0]["executionStats"][figure] - 1 <= cursors[1]["executionStats"][figure] <= cursors[0]["executionStats"][figure], figure
    assert answer(both, stages) == sorted(bson.encode(row) for row in both.oracle[both.name].c.aggregate(stages))


def test_a_distinct_with_a_filter_examines_one_entry_a_value(both):
    both.fill("c", [{"_id": at, "a": at % 10, "b": at % 3, "c": at} for at in range(1000)])
    both.same({"createIndexes": "c", "indexes": [{"key": {"a": 1, "b": 1}, "name": "ab"}, {"key": {"b": 1, "c": 1}, "name": "bc"}]})
    for key, query in [("a", {}), ("a", {"a": {"$gt": 4}}), ("b", {"a": 3}), ("a", {"a": {"$in": [1, 5]}}), ("b", {"a": {"$in": [1, 5]}}), ("a", {"a": {"$gt": 2}, "b": 1})]:
        command = {"distinct": "c", "key": key, "query": query}
        both.same(command)
        statistics = both.pando[both.name].command("explain", command, verbosity="executionStats")["executionStats"]
        assert statistics["totalDocsExamined"] == 0 and statistics["totalKeysExamined"] <= 40, (command, statistics)
