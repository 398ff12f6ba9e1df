"""Questions whose answers once differed: comparisons with MinKey below arrays, failing $pull beside $set, $bit below scalars, and groups of equal
numbers of several types."""

import itertools

import pytest
from bson import DatetimeMS, Decimal128, Int64, MaxKey, MinKey

from both import Order
from exact import encode
from sort_order import Value


@pytest.mark.parametrize("operator", ["$gt", "$gte", "$lt", "$lte", "$eq", "$ne", "$in", "$nin"])
def test_comparisons_below_arrays(both, operator):
    values = [[], [{"x": 1}], {"x": 1}, [1], [[]], {}, {"x": []}, [{}], [[{"x": 1}]], 5, [{"x": MinKey()}], None, [{"x": None}], [{"x": MaxKey()}, {}], {"x": [[]]}]
    both.fill("c", [{"_id": at, "a": value} for at, value in enumerate(values)] + [{"_id": 100}])
    for value, path in itertools.product([MinKey(), MaxKey(), None, 1, [], {}], ["a", "a.x", "a.0", "a.0.x"]):
        test = {operator: [value] if operator in ("$in", "$nin") else value}
        for filter_ in ({path: test}, {path: {"$not": test}}, {"$nor": [{path: test}]}):
            both.same({"find": "c", "filter": filter_, "projection": {"_id": 1}})


FAILING = [
    {"$pull": {"a": 1}, "$set": {"q": 1}}, {"$set": {"q": 1}, "$pull": {"a": {"$gt": 1}}}, {"$push": {"a": 1}, "$set": {"q": 1}}, {"$inc": {"t": 1}},
    {"$bit": {"s.x": {"or": 1}}}, {"$bit": {"s.x.y": {"and": 1}}}, {"$bit": {"a.0.x": {"or": 1}}}, {"$bit": {"a.x": {"xor": 1}}}, {"$bit": {"s": {"and": 1.5}}},
    {"$bit": {"t.x": {"or": 1}}}, {"$bit": {"t": {"or": 1}}}, {"$bit": {"n.x": {"or": 1}}}, {"$bit": {"s.x": {"foo": 1}}}, {"$bit": {"s.$[].x": {"or": 1}}},
    {"$set": {"q": 1}, "$bit": {"s.x": {"or": 1}}}, {"$mul": {"s.x": 2}}, {"$pop": {"s.x": 1}}, {"$addToSet": {"s.x": 1}}, {"$pullAll": {"s": [1]}}, {"$bit": {"z.x": {"or": 1}}},
]


@pytest.mark.parametrize("update", FAILING, ids=repr)
@pytest.mark.parametrize("ordered", [True, False])
def test_updates_that_fail_at_some_documents(both, update, ordered):
    # The first document is the one that fails: an update of several is undone here, and stops half-way in MongoDB.
    both.fill("c", [{"_id": 1, "a": 5, "s": 5, "t": "x", "n": None}, {"_id": 2, "a": [1, 2], "s": 1}, {"_id": 3, "a": [3], "s": {"x": 4}, "t": {"x": 1}}])
    good = {"q": {}, "u": {"$inc": {"w": 1}}, "multi": True}
    for multi in (True, False):
        both.same({"update": "c", "ordered": ordered, "updates": [good, {"q": {}, "u": update, "multi": multi}, {"q": {"_id": 2}, "u": update}, good]})
        both.rows({"find": "c", "sort": {"_id": 1}})


NUMBERS = [Decimal128("1"), Int64(1), 1, 1.0]


@pytest.mark.parametrize("order", list(itertools.permutations(range(4), 4))[::3], ids=repr)
def test_groups_of_equal_numbers(both, order):
    both.fill("c", [{"_id": at, "k": NUMBERS[which], "v": at} for at, which in enumerate(order)])
    for indexed in (False, True):
        if indexed:
            both.same({"createIndexes": "c", "indexes": [{"key": {"k": 1}, "name": "k"}]}, ignore=["commitQuorum"])
        for stages in ([], [{"$sort": {"k": 1, "_id": 1}}], [{"$sort": {"_id": -1}}], [{"$match": {"_id": {"$gte": 1}}}]):
            for group in ({"_id": "$k", "n": {"$sum": 1}}, {"_id": "$k", "f": {"$first": "$k"}}, {"_id": 1, "s": {"$addToSet": "$k"}}, {"_id": {"a": "$k"}}):
                both.rows({"aggregate": "c", "pipeline": [*stages, {"$group": group}], "cursor": {}}, order=Order.FREE)
        both.same({"distinct": "c", "key": "k"})


@pytest.mark.parametrize("unit", ["hour", "minute", "second", "day"])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kolkata", "America/St_Johns", "Australia/Lord_Howe"])
def test_differences_of_dates_by_wall_clocks_of_old(both, zone, unit):
    both.fill("c", [{"_id": at, "a": DatetimeMS(moment)} for at, moment in enumerate([-62135596800000, -2418728159047, -1401071798243, 587228539554, 1577836800000])])
    ends = [DatetimeMS(1096713100799), DatetimeMS(-2744320425691), DatetimeMS(1603584000000)]
    fields = {f"x{at}": {"$dateDiff": {"startDate": "$a", "endDate": end, "unit": unit, "timezone": zone}} for at, end in enumerate(ends)}
    both.same({"aggregate": "c", "pipeline": [{"$sort": {"_id": 1}}, {"$project": fields}], "cursor": {}})


def test_missing_is_undefined_in_an_array_and_a_constant_set_is_compared_first(both):
    undefined = Value(6, b"", {"$undefined": True})
    both.same({"insert": "c", "documents": [encode({"_id": 1, "a": undefined})]})
    fields = {"x": {"$in": ["$z", ["$a"]]}, "y": {"$indexOfArray": [["$a"], "$z"]}, "z": {"$in": ["$z", [None]]}}
    both.same({"aggregate": "c", "pipeline": [{"$project": fields}], "cursor": {}})
    broken = {"$sortArray": {"input": "$_id", "sortBy": 1}}
    for sets in ([["$_id"], broken, []], [["$_id"], [1], broken], [broken, []], [["$_id"], broken]):
        both.same({"aggregate": "c", "pipeline": [{"$project": {"x": {"$setEquals": sets}}}], "cursor": {}})
