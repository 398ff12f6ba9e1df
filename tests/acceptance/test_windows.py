"""Windows, gaps and ranked accumulators: the same answers, and the same errors, as those of a real MongoDB."""

import datetime

import bson
import pytest
from bson import Decimal128, Int64

NUMBERS = [
    {"_id": 1, "x": 1, "g": "a", "v": 10}, {"_id": 2, "x": 2, "g": "a", "v": 20}, {"_id": 3, "x": 2, "g": "b", "v": None},
    {"_id": 4, "x": 4, "g": "b", "v": 7.5}, {"_id": 5, "x": 7, "g": "a", "v": 1}, {"_id": 6, "x": 8.5, "g": "c", "w": [1, 2]},
    {"_id": 7, "x": Int64(9), "g": "a", "v": Int64(4), "n": {"p": None}}, {"_id": 8, "x": Decimal128("10"), "g": "b", "v": 3},
]
DISTINCT = [{**document, "x": place} for place, document in enumerate(NUMBERS)]
DAYS = [{**document, "x": day} for document, day in zip(NUMBERS, [
    datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 2), datetime.datetime(2020, 1, 2), datetime.datetime(2020, 1, 4, 12),
    datetime.datetime(2020, 1, 31), datetime.datetime(2020, 2, 29), datetime.datetime(2020, 3, 31), datetime.datetime(2020, 3, 31, 1)])]
STRANGE = [{"_id": 1, "x": None}, {"_id": 2}, {"_id": 3, "x": 1}, {"_id": 4, "x": 1.0}, {"_id": 5, "x": [1, 2]}, {"_id": 6, "x": 3}]
COLLECTIONS = {"numbers": NUMBERS, "distinct": DISTINCT, "days": DAYS, "strange": STRANGE, "empty": []}

ACCUMULATORS = [
    {"$sum": "$v"}, {"$avg": "$v"}, {"$min": "$v"}, {"$max": "$v"}, {"$first": "$v"}, {"$last": "$v"}, {"$push": "$_id"}, {"$count": {}},
    {"$sum": 1}, {"$sum": "$zz"}, {"$avg": "$zz"}, {"$push": "$zz"}, {"$firstN": {"n": 2, "input": "$v"}}, {"$lastN": {"n": 2, "input": "$v"}},
    {"$minN": {"n": 2, "input": "$v"}}, {"$maxN": {"n": 2, "input": "$v"}}, {"$top": {"output": "$_id", "sortBy": {"v": 1}}},
    {"$bottom": {"output": "$_id", "sortBy": {"v": -1, "_id": 1}}}, {"$topN": {"n": 2, "output": ["$_id", "$v"], "sortBy": {"v": 1, "_id": 1}}},
    {"$bottomN": {"n": 2, "output": "$_id", "sortBy": {"v": 1, "_id": 1}}}, {"$sum": ["$v", 1]}, {"$integral": {"input": "$_id"}},
]
ROUNDED = [{"$stdDevPop": "$v"}, {"$stdDevSamp": "$v"}, {"$covariancePop": ["$_id", "$v"]}, {"$covarianceSamp": ["$_id", "$v"]}]
WINDOWS = [
    {"documents": ["unbounded", "unbounded"]}, {"documents": ["unbounded", "current"]}, {"documents": [-1, 1]}, {"documents": [0, 0]},
    {"documents": ["current", 1]}, {"documents": [1, 2]}, {"documents": [-2, -1]}, {"documents": ["current", "unbounded"]},
    {"documents": ["unbounded", -1]}, {"documents": [1, "unbounded"]}, {"documents": [20, 30]}, {},
]
RANGES = [
    {"range": [-1, 1]}, {"range": [0, 0]}, {"range": ["current", "current"]}, {"range": ["unbounded", "current"]},
    {"range": ["current", "unbounded"]}, {"range": [-2, 0]}, {"range": [1, 3]}, {"range": [-1.5, "current"]},
    {"range": ["unbounded", "unbounded"]}, {"range": ["unbounded", 2]}, {"range": [Decimal128("-1"), 1]},
]
UNITS = [
    {"range": [-1, 0], "unit": unit} for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")
] + [{"range": ["unbounded", 2], "unit": "day"}, {"range": [-3, 3], "unit": "day"}, {"range": ["current", "unbounded"], "unit": "day"}]


@pytest.fixture
def filled(both):
    for name, documents in COLLECTIONS.items():
        both.same({"create": name})
        if documents:
            both.same({"insert": name, "documents": documents})
    return both


def ask(both, collection, *stages):
    return both.same({"aggregate": collection, "pipeline": list(stages), "cursor": {}})


def window(both, collection, output, sort=None, **options):
    options |= {} if sort is None else {"sortBy": sort}
    ask(both, collection, {"$setWindowFields": {**options, "output": output}})


@pytest.mark.parametrize("partition", [None, "$g"])
@pytest.mark.parametrize("function", ACCUMULATORS, ids=str)
def test_accumulators_over_windows(filled, function, partition):
    options = {"partitionBy": partition} if partition else {}
    for bounds in WINDOWS:
        if "$integral" not in function or bounds:
            window(filled, "distinct", {"r": {**function, "window": bounds}}, {"x": 1}, **options)
    if "$integral" not in function:
        window(filled, "distinct", {"r": {**function, "window": {"documents": [-1, 1]}}}, {"x": -1}, **options)
    for bounds in RANGES:
        window(filled, "numbers", {"r": {**function, "window": bounds}}, {"x": 1}, **options)
    for bounds in UNITS:
        if "$integral" not in function:
            window(filled, "days", {"r": {**function, "window": bounds}}, {"x": 1}, **options)


@pytest.mark.parametrize("function", ROUNDED, ids=str)
def test_deviations_over_windows(filled, function):
    """MongoDB subtracts what leaves a window, which changes the last digits."""
    rounded = {"$addFields": {"r": {"$cond": [{"$isNumber": "$r"}, {"$round": ["$r", 9]}, "$r"]}}}
    for bounds in WINDOWS:
        stage = {"$setWindowFields": {"sortBy": {"x": 1}, "output": {"r": {**function, "window": bounds}}}}
        ask(filled, "distinct", stage, rounded, {"$addFields": {"r": {"$add": ["$r", 0.0]}}})


@pytest.mark.parametrize("function", [
    {"$rank": {}}, {"$denseRank": {}}, {"$documentNumber": {}}, {"$shift": {"output": "$v", "by": 1}},
    {"$shift": {"output": "$v", "by": -1, "default": "none"}}, {"$shift": {"output": "$zz", "by": 0}}, {"$shift": {"output": "$$ROOT", "by": -2}},
    {"$shift": {"output": "$v", "by": 1, "default": {"$add": [1, 2]}}}, {"$expMovingAvg": {"input": "$v", "N": 2}},
    {"$expMovingAvg": {"input": "$v", "alpha": 0.3}}, {"$expMovingAvg": {"input": {"$toDecimal": "$v"}, "N": 3}},
    {"$expMovingAvg": {"input": "$zz", "alpha": Decimal128("0.3")}}, {"$linearFill": "$v"}, {"$locf": "$v"}, {"$locf": ["$v"]}, {"$locf": "$zz"},
    {"$linearFill": "$w"}, {"$linearFill": {"$toDecimal": "$v"}}, {"$derivative": {"input": "$_id"}, "window": {"documents": [-1, 0]}},
    {"$derivative": {"input": "$v"}, "window": {"documents": [-1, 0]}}, {"$derivative": {"input": "$_id"}, "window": {"range": [-2, 0]}},
    {"$derivative": {"input": "$_id", "unit": "hour"}, "window": {"documents": [-1, 0]}},
    {"$derivative": {"input": "$_id", "unit": "week"}, "window": {"range": [-2, 0], "unit": "day"}},
    {"$integral": {"input": "$_id", "unit": "day"}},
    {"$integral": {"input": "$_id", "unit": "hour"}, "window": {"range": [-3, 0], "unit": "day"}}, {"$integral": {"input": "$v"}},
], ids=str)
def test_window_functions(filled, function):
    for collection in COLLECTIONS:
        for sort in ({"x": 1}, {"x": -1}, {"v": 1}, {"_id": 1}, {"x": 1, "_id": -1}, {}, None):
            if sort is None and "$locf" not in function:
                continue
            window(filled, collection, {"r": function}, sort)
            window(filled, collection, {"r": function}, sort, partitionBy="$g")


@pytest.mark.parametrize("options", [
    {}, {"output": {}}, 5, {"output": 5}, {"sortBy": 5, "output": {}}, {"sortBy": {"x": 1}, "output": {"r": 5}}, {"output": {}, "zz": 1},
    {"sortBy": {"x": 1}, "output": {"r": {}}}, {"sortBy": {"x": 1}, "output": {"r": {"window": {}}}}, {"sortBy": {"x": "a"}, "output": {"r": {"$rank": {}}}},
    {"sortBy": {"$x": 1}, "output": {"r": {"$rank": {}}}}, {"partitionBy": "g", "output": {"r": {"$push": "$_id"}}},
    {"partitionBy": ["$g"], "output": {"r": {"$push": "$_id"}}}, {"partitionBy": {"$literal": [1]}, "output": {"r": {"$push": "$_id"}}},
    {"partitionBy": {"a": "$g"}, "output": {"r": {"$push": "$_id"}}}, {"partitionBy": "$v", "sortBy": {"_id": 1}, "output": {"r": {"$push": "$_id"}}},
    {"sortBy": {"_id": 1}, "output": {"a.b": {"$sum": "$v"}, "v": {"$sum": 1}, "n.q": {"$push": "$v", "window": {"documents": [-1, 0]}}}},
    {"sortBy": {"_id": 1}, "output": {"w.b": {"$sum": "$x"}}}, {"output": {"v.b": {"$sum": "$v"}, "v": {"$sum": 1}}}, {"output": {"_id": {"$sum": 1}}},
    {"output": {"": {"$sum": 1}}}, {"output": {"a.": {"$sum": 1}}}, {"output": {"$k": {"$sum": 1}}}, {"output": {"r": {"$rank": {}}}},
], ids=str)
def test_stages_of_windows(filled, options):
    ask(filled, "numbers", {"$setWindowFields": options})


@pytest.mark.parametrize("bounds", [
    {"documents": [1, 0]}, {"documents": [2, -2]}, {"documents": [1.0, 2]}, {"documents": [1.5, 2]}, {"documents": ["x", 1]}, {"documents": [1]},
    {"documents": 5}, {"documents": ["unbounded", 1, 2]}, {"documents": [0, 1], "range": [0, 1]}, {"documents": [0, 1], "unit": "day"},
    {"unit": "day"}, 5, {"zz": 1}, {"range": [1, -1]}, {"range": ["x", 1]}, {"range": [0, 1], "unit": "day"}, {"range": [0, 1], "unit": "zz"},
    {"range": [0, 1], "unit": 5}, {"range": [0]}, {"documents": [None, 1]}, {"documents": [1, "current"]}, {"range": [True, 1]},
    {"documents": [2**40, 2**41]}, {"documents": [-1, {"$add": [1, 1]}]}, {"range": [{"$add": [1, 1]}, 4]}, {"range": [-1.5, 0], "unit": "day"},
    {"range": [-1, 0]}, {"documents": [0, 1]}, {"range": ["unbounded", "unbounded"]},
], ids=str)
def test_bounds_of_windows(filled, bounds):
    for collection in ("numbers", "days", "strange"):
        for sort in ({"x": 1}, {"x": -1}, {"x": 1, "_id": 1}, None):
            # Which document of several with one value stands at a bound is not defined.
            if collection == "strange" or sort != {"x": -1} or "documents" not in (bounds if isinstance(bounds, dict) else {}):
                window(filled, collection, {"r": {"$count": {}, "window": bounds}}, sort)


@pytest.mark.parametrize("function", [
    {"$sum": "$v", "$avg": "$v"}, {"$zz": 1}, {"$count": 1}, {"a": 1}, {"$sum": "$v", "x": 1}, {"x": 1, "$sum": "$v"}, {"$mergeObjects": "$n"},
    {"$rank": 1}, {"$rank": {"a": 1}}, {"$rank": {}, "window": {"documents": [0, 1]}}, {"$rank": {}, "window": 5}, {"$shift": {"by": 1}},
    {"$shift": {"output": "$v"}}, {"$shift": {"output": "$v", "by": 1.5}}, {"$shift": {"output": "$v", "by": "x"}},
    {"$shift": {"output": "$v", "by": 1, "q": 1}}, {"$shift": 5}, {"$shift": {"output": "$v", "by": 1, "default": "$x"}},
    {"$shift": {"output": "$v", "by": 1.0}}, {"$shift": {"output": "$v", "by": 1}, "window": {"documents": [0, 1]}}, {"$shift": {"output": "$v", "by": 2**40}},
    {"$derivative": {"input": "$x"}}, {"$derivative": {}, "window": {"documents": [-1, 0]}}, {"$derivative": 5, "window": {"documents": [-1, 0]}},
    {"$derivative": {"input": "$x", "zz": 1}, "window": {"documents": [-1, 0]}}, {"$derivative": {"input": "$x", "unit": "month"}, "window": {"documents": [-1, 0]}},
    {"$derivative": {"input": "$x", "unit": "zz"}, "window": {"documents": [-1, 0]}}, {"$derivative": {"input": "$x", "unit": 5}, "window": {"documents": [-1, 0]}},
    {"$integral": {}}, {"$integral": 5}, {"$integral": {"input": "$x", "q": 1}}, {"$integral": {"input": "$x", "unit": "month"}},
    {"$integral": {"input": "$x", "unit": "hour"}}, {"$integral": {"input": "$g"}}, {"$expMovingAvg": {"input": "$x", "alpha": 1}},
    {"$expMovingAvg": {"input": "$x", "alpha": 0}}, {"$expMovingAvg": {"input": "$x", "alpha": "x"}}, {"$expMovingAvg": {"input": "$x", "N": 0}},
    {"$expMovingAvg": {"input": "$x", "N": 1.5}}, {"$expMovingAvg": {"input": "$x", "N": "x"}}, {"$expMovingAvg": {"input": "$x", "N": 1, "alpha": 0.5}},
    {"$expMovingAvg": {"input": "$x"}}, {"$expMovingAvg": {"N": 2}}, {"$expMovingAvg": 5}, {"$expMovingAvg": {"input": "$x", "q": 2}},
    {"$expMovingAvg": {"input": "$x", "N": 2}, "window": {"documents": [0, 1]}}, {"$expMovingAvg": {"input": "$x", "N": -1}},
    {"$covarianceSamp": ["$x"]}, {"$covarianceSamp": "$x"}, {"$covarianceSamp": ["$x", "$v", 1]}, {"$covariancePop": ["$x", 3]},
    {"$linearFill": {"a": 1}}, {"$linearFill": "$v", "window": {"documents": [0, 1]}}, {"$locf": "$v", "window": {"documents": [0, 1]}},
    {"$firstN": {"n": 0, "input": "$v"}}, {"$firstN": {"n": "$x", "input": "$v"}}, {"$topN": {"n": "x", "output": "$v", "sortBy": {"v": 1}}},
    {"$firstN": {"input": "$v"}}, {"$top": {"output": "$v"}}, {"$firstN": {"n": 1.5, "input": "$v"}}, {"$firstN": 5},
    {"$top": {"output": "$v", "sortBy": {"v": 1}, "n": 3}}, {"$accumulator": {}},
], ids=str)
def test_arguments_of_window_functions(filled, function):
    for sort in ({"x": 1}, None):
        window(filled, "distinct", {"r": function}, sort)


@pytest.mark.parametrize("bounds", [{"documents": [-1, 0]}, {"documents": ["current", "unbounded"]}, {"documents": [-1, 1]}, {"range": [-1, 0]}, {}], ids=str)
def test_windows_of_an_empty_order_and_of_one_document(filled, bounds):
    filled.fill("one", [{"_id": 1, "v": {"a": 1}, "d": datetime.datetime(2020, 1, 1), "n": 5}])
    for function in ({"$sum": "$_id"}, {"$push": "$_id"}, {"$derivative": {"input": "$_id"}}):
        window(filled, "distinct", {"r": {**function, "window": bounds}}, {})
    for value in ("$v", "$d", "$n", "$zz"):
        for place in ("_id", "d", "v"):
            for unit in ({}, {"unit": "hour"}):
                window(filled, "one", {"r": {"$derivative": {"input": value, **unit}, "window": bounds}}, {place: 1})


def ranked(operator, **arguments):
    return {operator: arguments}


@pytest.mark.parametrize("accumulator", [
    ranked(operator, output=output, sortBy=sort, **({"n": n} if n else {}))
    for operator, n in (("$top", None), ("$bottom", None), ("$topN", 2), ("$bottomN", 2), ("$bottomN", 3), ("$topN", 10))
    for output, sort in (("$_id", {"v": 1}), ("$_id", {"v": -1}), (["$_id", "$zz"], {"w": 1, "g": -1}), ("$zz", {"x": 1}), ("$_id", {}))
] + [
    {"$top": {"output": "$_id"}}, {"$top": {"sortBy": {"a": 1}}}, {"$top": {"output": "$_id", "sortBy": 5}}, {"$top": {"output": "$_id", "sortBy": {"a": "x"}}},
    {"$top": {"output": "$_id", "sortBy": {"a": 1}, "q": 1}}, {"$top": 5}, {"$topN": {"output": "$_id", "sortBy": {"a": 1}}},
    {"$topN": {"n": 0, "output": "$_id", "sortBy": {"a": 1}}}, {"$topN": {"n": "x", "output": "$_id", "sortBy": {"a": 1}}},
    {"$topN": {"n": "$a", "output": "$_id", "sortBy": {"a": 1}}}, {"$topN": {"n": 1.5, "output": "$_id", "sortBy": {"a": 1}}},
    {"$top": {"n": 1, "output": "$_id", "sortBy": {"a": 1}}}, {"$top": []}, {"$top": {}}, {"$topN": {}}, {"$topN": 1},
    {"$top": {"output": "$_id", "sortBy": {"$a": 1}}}, {"$topN": {"n": None, "output": "$_id", "sortBy": {"a": 1}}},
    {"$firstN": {"n": {"$cond": [True, 2, 3]}, "input": "$v"}}, {"$minN": {"n": {"$size": {"$ifNull": ["$many", [1]]}}, "input": "$v"}},
], ids=str)
def test_ranked_accumulators_of_groups(filled, accumulator):
    for group in (None, "$g", {"many": "$w"}):
        ask(filled, "distinct", {"$group": {"_id": group, "r": accumulator}}, {"$sort": {"_id": 1}})


@pytest.mark.parametrize("options", [
    {"output": {"v": {"value": 5}}}, {"output": {"v": {"value": "$x"}}}, {"sortBy": {"x": 1}, "output": {"v": {"method": "linear"}}},
    {"output": {"v": {"method": "locf"}}}, {"sortBy": {"x": 1}, "output": {"v": {"method": "locf"}}}, {"output": {"v": {"method": "zz"}}},
    {"sortBy": {"x": 1}, "partitionBy": "$g", "output": {"v": {"method": "linear"}}}, {"output": {"v": {}}}, {"output": {}}, {}, 5, {"output": 5},
    {"sortBy": {"x": 1}, "partitionByFields": ["g"], "output": {"v": {"method": "locf"}}}, {"output": {"v": 5}}, {"output": {"v": {"value": 1, "q": 1}}},
    {"output": {"v": {"value": 1, "method": "locf"}}}, {"output": {"v": {"value": 1}}, "zz": 1}, {"sortBy": {}, "output": {"v": {"value": 1}}},
    {"sortBy": 5, "output": {"v": {"value": 1}}}, {"output": {"v": {"method": "linear"}}}, {"partitionByFields": ["$g"], "output": {"v": {"method": "locf"}}},
    {"partitionByFields": [], "sortBy": {"x": 1}, "output": {"v": {"method": "locf"}}}, {"partitionByFields": "g", "output": {"v": {"method": "locf"}}},
    {"sortBy": {"x": 1}, "output": {"v": {"method": "locf"}, "n.p": {"value": 3}, "q": {"value": "$x"}}}, {"output": {"": {"value": 1}}},
    {"sortBy": {"x": 1, "g": 1}, "output": {"v": {"method": "linear"}}}, {"output": {"$v": {"value": 1}}}, {"output": {"v": {"method": 5}}},
    {"sortBy": {"x": -1}, "output": {"v": {"method": "locf"}}}, {"sortBy": {"x": 1}, "partitionBy": {"a": "$g"}, "output": {"v": {"method": "locf"}}},
    {"sortBy": {"g": 1}, "output": {"v": {"method": "linear"}}}, {"partitionByFields": ["g.h"], "output": {"v": {"method": "locf"}}},
    {"partitionByFields": [5], "output": {"v": {"method": "locf"}}}, {"output": {"v": {"method": "locf"}, "v.a": {"value": 2}}},
    {"partitionBy": {"a": "$g"}, "partitionByFields": ["g"], "sortBy": {"x": 1}, "output": {"v": {"method": "locf"}}},
], ids=str)
def test_filled_fields(filled, options):
    ask(filled, "distinct", {"$fill": options})


def grid(field="x", partition=None, **options):
    return {"field": field, "range": options, **({"partitionByFields": partition} if partition is not None else {})}


@pytest.mark.parametrize("options", [
    grid(step=1, bounds="full"), grid(step=1, bounds="partition", partition=["g"]), grid(step=1, bounds=[0, 3]), grid(step=2, bounds=[2, 12]),
    grid(step=2, bounds=[0, 5], partition=["g"]), grid(step=0, bounds="full"), grid(step=-1, bounds="full"), grid(step="x", bounds="full"),
    grid(step=1.5, bounds="full"), grid(bounds="full"), grid(step=1), grid(step=1, bounds="zz"), grid(step=1, bounds=[1]), grid(step=1, bounds=[3, 1]),
    grid(step=1, bounds=[1, 1]), grid(step=1, bounds=["a", 2]), grid(step=1, bounds="partition"), grid(step=1, bounds="full", unit="day"),
    grid(step=1, bounds="full", unit="zz"), grid(step=1, bounds="full", zz=1), {"field": "x"}, {"range": {"step": 1, "bounds": "full"}}, 5, {},
    grid("$x", step=1, bounds="full"), grid(5, step=1, bounds="full"), {"field": "x", "range": 5}, {**grid(step=1, bounds="full"), "zz": 1},
    grid(step=1, bounds="full", partition="g"), grid(step=1, bounds="full", partition=["$g"]), grid(step=1, bounds="full", partition=["x"]),
    grid(step=1, bounds="full", partition=[5]), grid(step=1, bounds="full", partition=[]), grid(step=1, bounds=5), grid(step=1, bounds=[1, 2, 3]),
    grid(step=1, bounds=[datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 2)]), grid(step=Decimal128("1.5"), bounds="full"),
    grid(step=1, bounds=[datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 2)], unit="day"), grid(step=Int64(2), bounds="full"),
    grid(step=0.5, bounds=[1, 2]), grid(step=1, bounds=[Int64(1), 3]), grid(step=1, bounds="full", unit=5), grid("a.b", step=1, bounds=[1, 3]),
    grid("g.b", step=1, bounds=[1, 3]), grid("", step=1, bounds=[1, 3]), grid(step=1, bounds=[1, 3], partition=["g.y"]),
    grid(step=1, bounds=[0, 3], partition=["g", "h.i"]), grid("g", step=1, bounds="full"), grid("w", step=1, bounds="full"),
    grid(step=1, bounds="full", unit="month"), grid(step=20, bounds="full", unit="day"), grid(step=10, bounds="partition", unit="day", partition=["g"]),
    grid(step=1.5, bounds="full", unit="day"), grid(step=1, bounds=[datetime.datetime(2020, 1, 31), datetime.datetime(2020, 5, 31)], unit="month"),
    grid(step=1, bounds=[datetime.datetime(2020, 1, 31), datetime.datetime(2021, 5, 31)], unit="quarter"), grid(step=1, bounds=[1, 2], unit="day"),
    grid(step=1, bounds=[datetime.datetime(2020, 1, 3), datetime.datetime(2020, 2, 3)], unit="week"), grid(step=1, bounds=[-3, 0]),
    grid(step=1, bounds=[0, 600_000], partition=["g.y"]),
], ids=lambda options: str(options)[:100])
def test_dense_fields(filled, options):
    for collection in ("numbers", "days", "strange", "empty"):
        # MongoDB judges the type of a value behind an empty range.
        if collection == "strange" and options == grid(step=1, bounds=[1, 1]):
            continue
        ask(filled, collection, {"$densify": options}, {"$project": {"_id": 0, "x": 1, "g": 1, "h": 1, "a": 1}}, {"$limit": 200})


def test_dense_fields_of_all_partitions(filled):
    """In what order the values behind the last document of a partition come is not defined.

    MongoDB takes them as sorted, so that the sort is by copies.
    """
    copied = [{"$set": {"k": "$x", "p": "$g"}}, {"$sort": {"k": 1, "p": 1}}]
    for step in (1, 1.5):
        ask(filled, "distinct", {"$densify": grid(step=step, bounds="full", partition=["g"])}, *copied, {"$project": {"_id": 0, "x": 1, "g": 1}})
    ask(filled, "distinct", {"$densify": grid(step=1, bounds=[-2, 12], partition=["g"])}, *copied, {"$project": {"_id": 0, "x": 1, "g": 1}})


def test_random_numbers_and_cluster_times(filled):
    for argument in (1, [1], {"a": 1}):
        ask(filled, "numbers", {"$project": {"r": {"$rand": argument}}})
    ask(filled, "numbers", {"$project": {"r": {"$and": [{"$gte": [{"$rand": {}}, 0]}, {"$lt": [{"$rand": []}, 1]}]}}})
    # MongoDB knows a time once it has filled in a Timestamp(0, 0), which an earlier test may have inserted.
    request = {"aggregate": "numbers", "pipeline": [{"$project": {"r": "$$CLUSTER_TIME"}}], "cursor": {}}
    oracle, pando = bson.decode(filled.ask_oracle(request)), bson.decode(filled.ask_pando(request))
    assert oracle.get("code", 51144) == pando["code"] == 51144, (oracle, pando)


EQUAL = [1, 1.0, Int64(1), Decimal128("1"), Decimal128("1.0"), 2, 2.0]


@pytest.mark.parametrize("window", [*WINDOWS, {"documents": [-2, 0]}, {"documents": [0, 2]}], ids=str)
def test_which_of_equal_values_is_given(both, window):
    both.same({"insert": "equal", "documents": [{"_id": place, "v": value} for place, value in enumerate(EQUAL)]})
    several = {"n": 2, "input": "$v"}
    output = {"a": {"$max": "$v"}, "b": {"$min": "$v"}, "c": {"$maxN": several}, "d": {"$minN": several}}
    ask(both, "equal", {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {name: {**call, "window": window} for name, call in output.items()}}})
    ask(both, "equal", {"$group": {"_id": None, **output}})
    ask(both, "equal", {"$limit": 1}, {"$set": {"e": EQUAL}}, {"$project": {"f": {"$maxN": {"n": 3, "input": "$e"}}, "g": {"$minN": {"n": 3, "input": "$e"}}}})


@pytest.mark.parametrize("sort", [{"g": -1}, {"g": 1}, {"_id": -1, "g": -1}, {"g": -1, "_id": 1}, {"x": -1}], ids=str)
@pytest.mark.parametrize("partition", ["$g", "$$ROOT.g", {"$toUpper": "$g"}], ids=str)
def test_partitions_ascend_whatever_the_sort(filled, partition, sort):
    # MongoDB's planner carries the sort of a first stage out by itself, with the partitions in the direction of the sort's field.
    output = {"r": {"$sum": "$_id", "window": {"documents": ["unbounded", "current"]}}}
    ask(filled, "numbers", {"$limit": 1000}, {"$setWindowFields": {"partitionBy": partition, "sortBy": sort, "output": output}})
