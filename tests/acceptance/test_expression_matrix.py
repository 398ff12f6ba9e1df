"""Every operator of expressions over values of every type: alone, and in pairs where it takes two.

The operands stand in a stored document, so that they are not folded. One question is one projection of one document; an error ends
the question, not the test, and all differences of an operator are told at once.
"""

import datetime
import decimal
import pathlib
import re

import pytest
from bson import Binary, Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.son import SON

from bson.errors import InvalidBSON

from both import Difference

NAN, INFINITY = float("nan"), float("inf")
WHEN = datetime.datetime(2024, 2, 29, 12, 34, 56, 789000)
MISSING = object()

VALUES = {
    "missing": MISSING, "null": None, "zero": 0, "minus zero": -0.0, "one": 1, "two": 2, "minus one": -1, "int32 max": 2**31 - 1,
    "int32 min": -(2**31), "int64": Int64(3), "int64 max": Int64(2**63 - 1), "int64 min": Int64(-(2**63)), "half": 0.5, "double": 2.75,
    "negative": -2.5, "huge": 1e308, "tiny": 5e-324, "above int64": 2.0**63, "nan": NAN, "infinity": INFINITY, "minus infinity": -INFINITY,
    "decimal": Decimal128("1.25"), "decimal half": Decimal128("0.5"), "decimal -3": Decimal128("-3"), "decimal zero": Decimal128("0E-5"),
    "decimal 10": Decimal128("10"), "decimal max": Decimal128("9.999999999999999999999999999999999E+6144"), "decimal min": Decimal128("1E-6176"),
    "decimal nan": Decimal128("NaN"), "decimal infinity": Decimal128("Infinity"), "decimal -infinity": Decimal128("-Infinity"),
    "text": "abc", "empty text": "", "digits": "12", "wide text": "é😀", "date text": "2024-02-29T12:34:56.789Z", "hex": "5f0000000000000000000001",
    "true": True, "false": False, "date": WHEN, "old date": datetime.datetime(1969, 12, 31, 23, 59, 59, 999000), "id": ObjectId("5f0000000000000000000001"),
    "timestamp": Timestamp(1600000000, 7), "binary": Binary(b"\1\2\3", 0), "uuid": Binary(bytes(range(16)), 4), "regex": Regex("a", "i"),
    "code": Code("f"), "min": MinKey(), "max": MaxKey(), "object": {"a": 1, "b": [1]}, "empty object": {}, "array": [1, "a", None, 2.5],
    "numbers": [3, Int64(1), 2.5, Decimal128("7")], "empty array": [], "nested": [[1], [1, 2]], "pairs": [["k", 1], ["l", 2]],
    "entries": [{"k": "a", "v": 1}, {"k": "b", "v": None}], "truths": [True, 1, "x"], "texts": ["b", "a", "b"],
}
PAIRED = ["missing", "null", "zero", "one", "two", "minus one", "int32 max", "int64", "int64 max", "int64 min", "half", "negative", "huge", "nan",
          "infinity", "decimal", "decimal half", "decimal -3", "decimal nan", "decimal 10", "text", "empty text", "true", "date", "id", "timestamp",
          "regex", "object", "array", "numbers", "empty array", "nested", "texts"]
UNARY = """$abs $ceil $floor $exp $ln $log10 $sqrt $sin $cos $tan $asin $acos $atan $asinh $acosh $atanh $sinh $cosh $tanh
    $degreesToRadians $radiansToDegrees $round $trunc $not $isArray $isNumber $size $reverseArray $arrayToObject $objectToArray $first $last
    $toBool $toDate $toDecimal $toDouble $toInt $toLong $toObjectId $toString $type $toLower $toUpper $strLenBytes $strLenCP $bsonSize $binarySize
    $allElementsTrue $anyElementTrue $dayOfMonth $dayOfWeek $dayOfYear $hour $isoDayOfWeek $isoWeek $isoWeekYear $millisecond $minute $month
    $second $week $year $tsSecond $tsIncrement $avg $max $min $sum $stdDevPop $stdDevSamp $add $multiply $and $or $concat $concatArrays
    $setUnion $setIntersection $mergeObjects $let $literal""".split()
BINARY = """$add $subtract $multiply $divide $mod $pow $log $atan2 $round $trunc $cmp $eq $gt $gte $lt $lte $ne $and $or $ifNull
    $arrayElemAt $in $indexOfArray $concatArrays $slice $range $setDifference $setEquals $setIntersection $setIsSubset $setUnion
    $concat $split $strcasecmp $indexOfBytes $indexOfCP $mergeObjects $avg $max $min $sum $stdDevPop $stdDevSamp""".split()
TYPES = ["double", "string", "objectId", "bool", "date", "int", "long", "decimal", "object", "array", "binData", "null", "missing", "minKey"]
FORMS = {
    "$convert": [{"$convert": {"input": "$a", "to": to}} for to in TYPES]
    + [{"$convert": {"input": "$a", "to": "int", "onError": "error", "onNull": "null"}}, {"$convert": {"input": "1", "to": "$a", "onError": 5}}],
    "$dateToString": [{"$dateToString": {"date": "$a"}}, {"$dateToString": {"date": WHEN, "format": "$a"}}, {"$dateToString": {"date": WHEN, "timezone": "$a"}},
                      {"$dateToString": {"date": "$a", "onNull": 5}}],
    "$dateToParts": [{"$dateToParts": {"date": "$a"}}, {"$dateToParts": {"date": WHEN, "iso8601": "$a"}}],
    "$dateFromParts": [{"$dateFromParts": {"year": "$a"}}, {"$dateFromParts": {"year": 2020, "month": "$a"}}, {"$dateFromParts": {"isoWeekYear": 2020, "isoWeek": "$a"}},
                       {"$dateFromParts": {"year": 2020, "millisecond": "$a"}}, {"$dateFromParts": {"year": 2020, "timezone": "$a"}}],
    "$dateFromString": [{"$dateFromString": {"dateString": "$a"}}, {"$dateFromString": {"dateString": "$a", "onError": 1, "onNull": 2}},
                        {"$dateFromString": {"dateString": "2020-01-02", "format": "$a"}}],
    "$dateAdd": [{"$dateAdd": {"startDate": "$a", "unit": "month", "amount": 1}}, {"$dateAdd": {"startDate": WHEN, "unit": "$a", "amount": 1}},
                 {"$dateAdd": {"startDate": WHEN, "unit": "year", "amount": "$a"}}],
    "$dateSubtract": [{"$dateSubtract": {"startDate": "$a", "unit": "day", "amount": 1}}, {"$dateSubtract": {"startDate": WHEN, "unit": "$a", "amount": 1}},
                      {"$dateSubtract": {"startDate": WHEN, "unit": "quarter", "amount": "$a"}}, {"$dateSubtract": {"startDate": "$a", "unit": "second", "amount": "$a"}}],
    "zones": [{"$dateAdd": {"startDate": WHEN, "unit": "day", "amount": 1, "timezone": "$a"}}, {"$dateDiff": {"startDate": WHEN, "endDate": WHEN, "unit": "day", "timezone": "$a"}},
              {"$dateTrunc": {"date": WHEN, "unit": "week", "timezone": "$a"}}, {"$dateToParts": {"date": WHEN, "timezone": "$a"}},
              {"$hour": {"date": WHEN, "timezone": "$a"}}, {"$dateFromString": {"dateString": "2020-01-02", "timezone": "$a"}}],
    "weeks": [{"$dateDiff": {"startDate": WHEN, "endDate": WHEN, "unit": "week", "startOfWeek": "$a"}}, {"$dateTrunc": {"date": WHEN, "unit": "week", "startOfWeek": "$a"}},
              {"$dateDiff": {"startDate": WHEN, "endDate": WHEN, "unit": "$a"}}, {"$dateTrunc": {"date": WHEN, "unit": "$a"}}],
    "parts of dates": [{"$dateFromParts": {"year": 2020, part: "$a"}} for part in ("day", "hour", "minute", "second")]
    + [{"$dateFromParts": {"isoWeekYear": 2020, part: "$a"}} for part in ("isoDayOfWeek",)],
    "$dateDiff": [{"$dateDiff": {"startDate": "$a", "endDate": WHEN, "unit": "day"}}, {"$dateDiff": {"startDate": WHEN, "endDate": "$a", "unit": "week", "startOfWeek": "mon"}}],
    "$dateTrunc": [{"$dateTrunc": {"date": "$a", "unit": "week"}}, {"$dateTrunc": {"date": WHEN, "unit": "hour", "binSize": "$a"}}],
    "years": [{operator: [{"$dateAdd": {"startDate": "$a", "unit": "year", "amount": amount}}]}
              for operator in ("$toString", "$toLower", "$toLong") for amount in (7975, 7976, -3000)],
    "$substr": [{"$substr": ["$a", 0, 1]}, {"$substrCP": ["$a", 0, 1]}, {"$substrBytes": ["$a", 0, 1]}, {"$substrCP": ["abc", "$a", 1]}, {"$substrBytes": ["abc", 0, "$a"]}],
    "$trim": [{"$trim": {"input": "$a"}}, {"$ltrim": {"input": "abc", "chars": "$a"}}, {"$rtrim": {"input": "$a", "chars": "c"}},
              {"$rtrim": {"input": "abc", "chars": "$a"}}],
    "$replace": [{"$replaceOne": {"input": "$a", "find": "a", "replacement": "b"}}, {"$replaceAll": {"input": "aa", "find": "$a", "replacement": "b"}}],
    "$regex": [{"$regexMatch": {"input": "$a", "regex": "a"}}, {"$regexFind": {"input": "abc", "regex": "$a"}}, {"$regexFindAll": {"input": "$a", "regex": "."}}],
    "$filter": [{"$filter": {"input": "$a", "cond": True}}, {"$filter": {"input": [1, 2], "cond": True, "limit": "$a"}}],
    "$map": [{"$map": {"input": "$a", "in": ["$$this"]}}, {"$reduce": {"input": "$a", "initialValue": [], "in": {"$concatArrays": ["$$value", ["$$this"]]}}}],
    "$zip": [{"$zip": {"inputs": "$a"}}, {"$zip": {"inputs": ["$a", [1, 2]], "useLongestLength": True, "defaults": [0, 9]}}],
    "$sortArray": [{"$sortArray": {"input": "$a", "sortBy": 1}}, {"$sortArray": {"input": "$a", "sortBy": {"k": -1}}}],
    "$n": [{"$firstN": {"input": "$a", "n": 2}}, {"$lastN": {"input": [1, 2, 3], "n": "$a"}}, {"$maxN": {"input": "$a", "n": 2}}, {"$minN": {"input": "$a", "n": 2}}],
    "$slice": [{"$slice": ["$a", 1, 2]}, {"$slice": [[1, 2, 3], "$a", 1]}, {"$slice": [[1, 2, 3], 0, "$a"]}],
    "$range": [{"$range": [0, 5, "$a"]}],
    "$field": [{"$getField": {"field": "a", "input": "$a"}}, {"$setField": {"field": "a", "input": "$a", "value": 1}}, {"$setField": {"field": "a", "input": {}, "value": "$a"}},
               {"$unsetField": {"field": "a", "input": "$a"}}],
    "$switch": [{"$switch": {"branches": [{"case": "$a", "then": 1}], "default": 2}}, {"$cond": ["$a", 1, 2]}, {"$ifNull": ["$a", 7]}],
    "$rounded": [{"$round": [{"$literal": 1234.5678}, "$a"]}, {"$trunc": ["$a", 1]}, {"$round": ["$a", -1]}],
    "third operands": [{"$indexOfArray": [[1, "a", 2], "a", "$a"]}, {"$indexOfArray": [[1, "a", 2], "a", 0, "$a"]}, {"$indexOfBytes": ["abc", "c", "$a"]},
                       {"$indexOfCP": ["abc", "c", 0, "$a"]}, {"$indexOfBytes": ["abc", "c", 0, "$a"]}, {"$indexOfCP": ["abc", "c", "$a"]}],
    "options": [{"$regexMatch": {"input": "abc", "regex": "B", "options": "$a"}}, {"$regexFindAll": {"input": "abc", "regex": "$a", "options": "i"}},
                {"$replaceOne": {"input": "abc", "find": "b", "replacement": "$a"}}, {"$zip": {"inputs": [[1], [2, 3]], "useLongestLength": True, "defaults": "$a"}}],
    "conditions": [{"$filter": {"input": [1, 2], "cond": "$a"}}, {"$reduce": {"input": [1, 2], "initialValue": "$a", "in": {"$add": ["$$value", "$$this"]}}},
                   {"$cond": {"if": True, "then": "$a", "else": 1}}, {"$ifNull": ["$a", "$b", "$a"]}, {"$ifNull": ["$b", "$a"]}],
    "$rand": [{"$type": {"$rand": {}}}, {"$gte": ["$a", {"$multiply": [0, {"$rand": {}}]}]}], "$const": [{"$const": "$a"}],
    "paths": ["$a.b", "$a.0", "$a.a", "$$ROOT.a.k", ["$a"], {"x": "$a"}],
}


# Expressions that are asked about elsewhere.
ELSEWHERE = {
    **dict.fromkeys("$bitAnd $bitOr $bitXor $bitNot $median $percentile $sigmoid $hash $hexHash $toUUID $toHashedIndexKey".split(),
                    "crates/query/tests/newer_expressions.rs"),
    "$meta": "test_metadata.py", "$function": "it is refused", "$accumulator": "it is refused",
}
OPERATORS = pathlib.Path(__file__).parents[2] / "crates/query/src/expression/operator"


def names_in(value):
    """The names of the operators of an expression."""
    if isinstance(value, dict):
        return {name for name in value if name.startswith("$")}.union(*map(names_in, value.values()))
    return set().union(*map(names_in, value)) if isinstance(value, list) else set()


def test_every_expression_is_asked_about():
    tables = [OPERATORS.with_suffix(".rs"), OPERATORS / "date_parts.rs", OPERATORS / "trigonometry.rs"]
    known = {name for table in tables for name in re.findall(r'"(\$[a-zA-Z0-9]+)"', table.read_text())}
    asked = {*UNARY, *BINARY, *ELSEWHERE}.union(*map(names_in, FORMS.values()))
    assert known > {"$add", "$sinh", "$isoWeek", "$zip"} and known - asked == set()
    assert asked - known == set()


def documents():
    return [SON([("_id", name)]) if value is MISSING else SON([("_id", name), ("a", value)]) for name, value in VALUES.items()]


@pytest.fixture(scope="module")
def matrix(servers):
    both = servers.on("expression_matrix")
    both.fill("values", documents())
    pairs = [SON([("_id", f"{left} with {right}"), *([("a", VALUES[left])] if left != "missing" else []), *([("b", VALUES[right])] if right != "missing" else [])])
             for left in PAIRED for right in PAIRED]
    both.fill("pairs", pairs)
    yield both
    for client in (both.oracle, both.pando):
        client.drop_database("expression_matrix")


# The values beside which each value is accumulated.
OTHERS = ["one", "null", "decimal", "text", "int64 max", "object"]

# Differences that are decisions: the operator as it begins the text of the expression, documents, and why.
DECIDED = [
    ("{'$round': ['$a', -1]}", {"int32 min"}, "MongoDB's int32 overflows"),
    ("{'$avg'", {"int64 max with int64 min", "int64 min with int64 max"}, "MongoDB rounds the sum to a double before it divides"),
    ("{'$avg'", {"int64 max beside int64 min", "int64 min beside int64 max"}, "MongoDB rounds the sum to a double before it divides"),
    ("{'$stdDev", {f"decimal max beside {other}" for other in OTHERS}, "MongoDB's deviation of a decimal beyond all doubles is infinite in a window"),
    ("{'$lastN'", {"decimal min"}, "MongoDB cuts a decimal before it asks whether it is whole"),
    ("{'$dateFromParts'", {"int64 max", "int64 min"}, "milliseconds beyond all dates have another code"),
    ("{'$dateTrunc'", {"int64 max"}, "a bin beyond all dates has another code"),
    ("{'$asinh'", {"decimal min"}, "MongoDB's underflows"),
    ("{'$pow'", {"decimal 10 with zero"}, "MongoDB says that ten to the power of nothing is nothing"),
    ("{'$pow'", {"decimal -3 with int32 max", "decimal -3 with int64 max"}, "MongoDB loses the sign of an odd power"),
    ("{'$convert': {'input': '$a', 'to': 'binData'}}", {"binary"}, "MongoDB 8.0 leaves binary data as they are"),
]


def is_decided(expression, name, difference):
    """Whether a difference is in the table, or one of the last digits of a decimal: MongoDB computes them in binary of 113 bits."""
    if any(repr(expression).startswith(begin) and name in names for begin, names, _ in DECIDED):
        return True
    # A number that is none has a sign that no operator asks for, and libraries of functions differ in it.
    if "double(nan) against double(nan)" in difference.path:
        return True
    numbers = re.findall(r"decimal\(([^)]+)\)", difference.path)
    if len(numbers) != 2 or not difference.path.startswith("cursor.firstBatch.0.r: "):
        return False
    left, right = map(decimal.Decimal, numbers)
    with decimal.localcontext() as context:
        context.prec = 60
        return left == right or not left.is_nan() and not left.is_infinite() and abs(left - right) <= abs(left) * decimal.Decimal("1e-30")


def ask(both, collection, expressions):
    """Each expression of each document by itself: an error would end the question for all."""
    differences = []
    for expression in expressions:
        asked = {"aggregate": collection, "cursor": {"batchSize": 5000}}
        stage = {"$project": {"r": expression}}
        names = [document["_id"] for document in both.oracle[both.name][collection].find({}, {"_id": 1})]
        for name in names:
            try:
                both.same({**asked, "pipeline": [{"$match": {"_id": name}}, stage]})
            except InvalidBSON:
                # MongoDB cuts a character in two in the text of an error.
                assert name == "wide text", name
            except Difference as difference:
                if is_decided(expression, name, difference):
                    continue
                differences.append(f"{name}: {difference}")
    assert not differences, f"{len(differences)} differences:" + "".join(differences[:200])


@pytest.mark.parametrize("operator", UNARY)
def test_one_operand(matrix, operator):
    argument = {"vars": {"x": "$a"}, "in": "$$x"} if operator == "$let" else "$a"
    ask(matrix, "values", [{operator: argument if operator in ("$let", "$toDate") else [argument]}])


@pytest.mark.parametrize("operator", BINARY)
def test_two_operands(matrix, operator):
    ask(matrix, "pairs", [{operator: ["$a", "$b"]}])


ACCUMULATORS = [
    *[{operator: "$a"} for operator in "$sum $avg $min $max $first $last $push $addToSet $mergeObjects $stdDevPop $stdDevSamp".split()], {"$count": {}},
    *[{operator: {"input": "$a", "n": 2}} for operator in ("$firstN", "$lastN", "$minN", "$maxN")], {"$firstN": {"input": 1, "n": "$a"}},
    *[{operator: {"output": "$a", "sortBy": {"a": 1}}} for operator in ("$top", "$bottom")],
    *[{operator: {"output": ["$a"], "sortBy": {"a": -1}, "n": 3}} for operator in ("$topN", "$bottomN")],
]


def group(accumulator):
    return [{"$group": {"_id": None, "r": accumulator}}, *sorted_set(accumulator)]


def window(accumulator):
    return [{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"r": {**accumulator, "window": {"documents": [-1, 0]}}}}}, {"$project": {"r": 1}}, *sorted_set(accumulator)]


def sorted_set(accumulator):
    """The order of a set is free."""
    return [{"$set": {"r": {"$sortArray": {"input": "$r", "sortBy": 1}}}}] if "$addToSet" in accumulator else []


@pytest.mark.parametrize("accumulator", ACCUMULATORS, ids=str)
def test_accumulators(matrix, accumulator):
    """Over each value, and over each value beside some others."""
    asked = {"aggregate": "values", "cursor": {"batchSize": 5000}}
    differences = []
    for name in VALUES:
        for other in OTHERS:
            for rest in (group(accumulator), window(accumulator) if "$mergeObjects" not in accumulator else []):
                try:
                    matrix.same({**asked, "pipeline": [{"$match": {"_id": {"$in": [name, other]}}}, {"$sort": {"_id": 1}}, *rest]})
                except InvalidBSON:
                    # MongoDB cuts a character in two in the text of an error.
                    assert "wide text" in name, name
                except Difference as difference:
                    if not is_decided(accumulator, f"{name} beside {other}", difference):
                        differences.append(f"{name} beside {other}: {difference}")
    assert not differences, f"{len(differences)} differences:" + "".join(differences[:200])


@pytest.mark.parametrize("name", FORMS)
def test_named_arguments(matrix, name):
    ask(matrix, "values", FORMS[name])
