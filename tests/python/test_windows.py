"""Windows, gaps, ranked and approximate accumulators, and the expressions of MongoDB 7 and 8, with PyMongo."""

import datetime
import uuid

import pytest
from bson import Binary, Decimal128, Int64
from pymongo.errors import OperationFailure


def values(db, output, documents=None, **options):
    """The value of a window function for each document, by `_id`."""
    db.c.drop()
    db.c.insert_many([{"_id": i, "x": i, "v": i * i} for i in range(6)] if documents is None else documents)
    options = {"sortBy": {"_id": 1}, **options, "output": {"r": output}}
    return [d.get("r") for d in db.c.aggregate([{"$setWindowFields": options}, {"$sort": {"_id": 1}}])]


def computed(db, expression):
    db.c.drop()
    db.c.insert_one({"_id": 1, "a": [5, 1, 3, "x", None]})
    return next(db.c.aggregate([{"$project": {"r": expression}}])).get("r")


def grouped(db, accumulator, documents):
    db.c.drop()
    db.c.insert_many(documents)
    return next(db.c.aggregate([{"$sort": {"_id": 1}}, {"$group": {"_id": None, "r": accumulator}}]))["r"]


def test_running_totals_and_moving_averages(db):
    assert values(db, {"$sum": "$v", "window": {"documents": ["unbounded", "current"]}}) == [0, 1, 5, 14, 30, 55]
    assert values(db, {"$avg": "$v", "window": {"documents": [-1, 1]}}) == [0.5, 5 / 3, 14 / 3, 29 / 3, 50 / 3, 20.5]
    assert values(db, {"$max": "$v", "window": {"range": [-2, 0]}}) == [0, 1, 4, 9, 16, 25]
    assert values(db, {"$rank": {}}, [{"_id": i, "k": k} for i, k in enumerate([1, 1, 2])], sortBy={"k": 1}) == [1, 1, 3]


@pytest.mark.parametrize("function", ["$sum", "$avg", "$min", "$max", "$stdDevPop", "$push", "$median"])
@pytest.mark.parametrize("bounds", [(-3, 0), (0, 4), (-2, 2), (2, 5), (-5, -2), (-40, 40)])
def test_sliding_windows_are_those_of_a_group(db, function, bounds):
    """A window gives what a group of its documents gives."""
    numbers = [(i * 7919 % 101) - 50 for i in range(120)]
    argument = {"input": "$n", "method": "approximate"} if function == "$median" else "$n"
    found = values(db, {function: argument, "window": {"documents": list(bounds)}}, [{"_id": i, "n": n} for i, n in enumerate(numbers)])
    for at in range(0, len(numbers), 7):
        window = list(range(max(at + bounds[0], 0), max(min(at + bounds[1] + 1, len(numbers)), 0)))
        group = list(db.c.aggregate([{"$match": {"_id": {"$in": window}}}, {"$sort": {"_id": 1}}, {"$group": {"_id": None, "r": {function: argument}}}]))
        if group and isinstance(group[0]["r"], float):
            assert found[at] == pytest.approx(group[0]["r"])
        elif group:
            assert found[at] == group[0]["r"]
        else:
            assert found[at] in (None, 0, [])


def test_a_running_total_over_many_documents_holds_few_of_them(db):
    db.c.insert_many([{"_id": i, "text": "x" * 2000} for i in range(5000)])
    stage = {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {
        "r": {"$sum": 1, "window": {"documents": ["unbounded", "current"]}}, "before": {"$shift": {"output": "$_id", "by": -1}}}}}
    last = list(db.c.aggregate([stage, {"$project": {"text": 0}}, {"$skip": 4999}]))
    assert last == [{"_id": 4999, "r": 5000, "before": 4998}]


def test_scaled_values(db):
    assert values(db, {"$minMaxScaler": {"input": "$x"}}) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert values(db, {"$minMaxScaler": {"input": "$x", "min": 10, "max": 20}, "window": {"documents": [-1, 0]}}) == [10, 20, 20, 20, 20, 20]
    with pytest.raises(OperationFailure):
        values(db, {"$minMaxScaler": {"input": "$x", "min": 2, "max": 1}})


def test_gaps_are_filled(db):
    days = [datetime.datetime(2024, 2, day) for day in range(28, 30)] + [datetime.datetime(2024, 3, 2)]
    db.c.insert_many([{"_id": i, "day": day, "v": v} for i, (day, v) in enumerate(zip(days, [1, 2, 4]))])
    dense = {"$densify": {"field": "day", "range": {"step": 1, "unit": "day", "bounds": "full"}}}
    fill = {"$fill": {"sortBy": {"day": 1}, "output": {"v": {"method": "linear"}, "kind": {"value": "made"}}}}
    found = [(d["day"].strftime("%m-%d"), d["v"], d["kind"]) for d in db.c.aggregate([dense, fill])]
    assert found == [("02-28", 1, "made"), ("02-29", 2, "made"), ("03-01", 3.0, "made"), ("03-02", 4, "made")]


def test_medians_and_percentiles(db):
    documents = [{"_id": i, "n": n} for i, n in enumerate([5, 1, 3, "x", None, float("nan"), Decimal128("2.5")])]
    assert grouped(db, {"$median": {"input": "$n", "method": "approximate"}}, documents) == 2.5
    assert grouped(db, {"$percentile": {"input": "$n", "p": [0, 0.5, 1.0], "method": "approximate"}}, documents) == [1, 2.5, 5]
    assert grouped(db, {"$percentile": {"input": "$zz", "p": [0.5], "method": "approximate"}}, documents) == [None]
    assert grouped(db, {"$median": {"input": "$zz", "method": "approximate"}}, documents) is None
    assert computed(db, {"$median": {"input": "$a", "method": "approximate"}}) == 3
    assert computed(db, {"$percentile": {"input": [1, 2, 3, 4], "p": [0.25, 0.75], "method": "approximate"}}) == [1, 3]
    many = grouped(db, {"$median": {"input": "$n", "method": "approximate"}}, [{"_id": i, "n": i * 7919 % 30000} for i in range(30000)])
    assert many == pytest.approx(15000, rel=0.01)


@pytest.mark.parametrize("argument, code", [
    ({"input": "$n"}, 40414), ({"method": "approximate"}, 40414), ({"input": "$n", "method": "exact"}, 2),
    ({"input": "$n", "method": "approximate", "zz": 1}, 40415), (5, 7436100),
])
def test_arguments_of_medians(db, argument, code):
    for ask in (lambda: grouped(db, {"$median": argument}, [{"_id": 1}]), lambda: computed(db, {"$median": argument})):
        with pytest.raises(OperationFailure) as refused:
            ask()
        assert refused.value.code == code


@pytest.mark.parametrize("ranks, code", [("x", 7750301), ([], 7750301), (["x"], 7750302), ([1.5], 7750303), (["$n"], 7750300)])
def test_ranks_of_percentiles(db, ranks, code):
    with pytest.raises(OperationFailure) as refused:
        grouped(db, {"$percentile": {"input": "$n", "p": ranks, "method": "approximate"}}, [{"_id": 1}])
    assert refused.value.code == code


def test_arrays_of_groups(db):
    documents = [{"_id": 1, "a": [1, 2]}, {"_id": 2}, {"_id": 3, "a": [2, [3]]}]
    assert grouped(db, {"$concatArrays": "$a"}, documents) == [1, 2, 2, [3]]
    assert sorted(grouped(db, {"$setUnion": "$a"}, documents[:2] + [{"_id": 3, "a": [2, 3.0]}])) == [1, 2, 3]
    assert values(db, {"$concatArrays": "$a", "window": {"documents": [-1, 0]}}, documents) == [[1, 2], [1, 2], [2, [3]]]
    for operator in ("$concatArrays", "$setUnion"):
        with pytest.raises(OperationFailure) as refused:
            grouped(db, {operator: "$_id"}, documents)
        assert refused.value.code == 14


def test_operators_of_bits(db):
    assert computed(db, {"$bitAnd": [12, 10]}) == 8
    assert computed(db, {"$bitOr": [12, Int64(3)]}) == 15
    assert computed(db, {"$bitXor": [12, -1]}) == -13
    assert computed(db, {"$bitNot": 5}) == -6
    assert [computed(db, {operator: []}) for operator in ("$bitAnd", "$bitOr", "$bitXor")] == [-1, 0, 0]
    assert computed(db, {"$bitAnd": [1, None]}) is None
    for expression, code in (({"$bitAnd": [1, 1.5]}, 14), ({"$bitNot": 1.5}, 14), ({"$bitNot": "x"}, 28765), ({"$bitNot": [1, 2]}, 16020)):
        with pytest.raises(OperationFailure) as refused:
            computed(db, expression)
        assert refused.value.code == code


def test_random_numbers_differ(db):
    db.c.insert_many([{"_id": i} for i in range(50)])
    rolls = [d["r"] for d in db.c.aggregate([{"$project": {"r": {"$rand": {}}}}])]
    assert all(0 <= roll < 1 for roll in rolls) and len(set(rolls)) == 50


def test_uuids_and_sigmoids(db):
    known = uuid.UUID("0e3b9063-8abd-4eb3-9f9f-f4c59fd30a60")
    assert computed(db, {"$toUUID": str(known)}) == Binary(known.bytes, 4)
    assert computed(db, {"$toUUID": None}) is None
    for bad in ("0e3b9063", "0e3b90638abd-4eb3-9f9f-f4c59fd30a60-", 5):
        with pytest.raises(OperationFailure) as refused:
            computed(db, {"$toUUID": bad})
        assert refused.value.code == 241
    assert computed(db, {"$sigmoid": 0}) == 0.5
    assert computed(db, {"$sigmoid": {"input": {"$literal": None}, "onNull": "none"}}) == "none"


def test_the_time_of_the_cluster(db):
    first = computed(db, "$$CLUSTER_TIME")
    assert first.time > 1_600_000_000 and computed(db, "$$CLUSTER_TIME") >= first
