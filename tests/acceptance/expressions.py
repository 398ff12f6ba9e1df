"""Random expressions that mostly fit their operators: each is made for a type, so that most of them come to a value.

`Expressions(grammar).of("number")` gives an expression whose value is most often a number; the types are number, text, array,
object, date, boolean, and any. What does not fit (one in ten paths is not asked for its type first) is an error on both sides.
"""

import datetime
import re

from bson import Decimal128, Int64, ObjectId, Timestamp

SOME_NUMBERS = [0, 1, 2, 3, -1, 5, 10, 1.5, -2.5, 0.1, 100, Int64(3), Int64(2**40), Decimal128("1.5"), Decimal128("-3"), 2**31 - 1, None]
SOME_TEXTS = ["", "a", "abc", "Abc", " ab ", "a,b,c", "éa", "😀x", "12", "-1.5", "2020-02-03", "xxaxx", "aXbX", None]
SOME_DATES = [datetime.datetime(2020, 1, 1), datetime.datetime(1969, 12, 31, 23, 59, 59, 999000), datetime.datetime(2021, 3, 28, 1, 30),
              datetime.datetime(2024, 2, 29, 12, 0, 0, 1000), Timestamp(1600000000, 1), ObjectId("5f0000000000000000000001"), None]
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "+05:30", "-08", "Asia/Kathmandu"]
UNITS = ["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond"]
SMALL = [0, 1, 2, 3, -1, -2]
TYPES = ["double", "string", "objectId", "bool", "date", "int", "long", "decimal", 1, 2, 16, 18]


class Expressions:
    """Makes expressions with the chance of a grammar."""

    def __init__(self, grammar):
        self.grammar, self.random = grammar, grammar.random

    def of(self, kind, depth=0):
        """An expression that most often comes to a value of this kind."""
        if kind == "any":
            kind = self.random.choice(["number", "number", "text", "array", "array", "object", "date", "boolean"])
        leaf = depth > 2 or self.random.random() < 0.25
        makers = (ATOMS if leaf else OPERATORS)[kind]
        return self.random.choice(makers)(self, depth + 1)

    def path(self, type_name, fallback):
        path = "$" + self.grammar.path()
        if self.random.random() < 0.1:
            return path
        test = {"$isNumber": path} if type_name == "number" else {"$eq": [{"$type": path}, type_name]}
        return {"$cond": [test, path, fallback]}

    def choice(self, values):
        return self.random.choice(values)

    def several(self, kind, depth, most=3, least=0):
        return [self.of(kind, depth) for _ in range(self.random.randint(least, most))]

    def some(self, **members):
        """A part of the optional arguments."""
        return {name: value for name, value in members.items() if self.random.random() < 0.4}


def listed(operator, *kinds):
    """`{$operator: [one of each kind]}`."""
    return lambda self, depth: {operator: [self.of(kind, depth) for kind in kinds]}


def single(operator, kind):
    return lambda self, depth: {operator: self.of(kind, depth)}


def variadic(operator, kind, least=0):
    return lambda self, depth: {operator: self.several(kind, depth, 3, least)}


def named(operator, **kinds):
    """`{$operator: {name: …}}`; a kind is the name of one or a function."""
    def make(self, depth):
        return {operator: {name: kind(self, depth) if callable(kind) else self.of(kind, depth) for name, kind in kinds.items()}}
    return make


def constant(values):
    return lambda self, _: self.choice(values)


def literal(values):
    return lambda self, _: {"$literal": self.choice(values)}


def mapped(self, depth):
    return {"$map": {"input": self.of("array", depth), "as": "x", "in": self.choice(
        ["$$x", {"$type": "$$x"}, ["$$x", 1], {"v": "$$x"}, "$$x.b", {"$eq": ["$$x", self.of("any", depth)]}])}}


def filtered(self, depth):
    return {"$filter": {"input": self.of("array", depth), "as": "x", "cond": self.choice(
        [{"$gt": ["$$x", self.of("number", depth)]}, {"$isNumber": "$$x"}, "$$x", {"$ne": ["$$x.b", None]}]), **self.some(limit=self.choice([1, 2]))}}


def reduced(self, depth):
    return {"$reduce": {"input": self.of("array", depth), "initialValue": 0, "in": self.choice(
        [{"$cond": [{"$isNumber": "$$this"}, {"$add": ["$$value", "$$this"]}, "$$value"]}, {"$add": ["$$value", 1]}])}}


def let_in(kind):
    return lambda self, depth: {"$let": {"vars": {"v": self.of(kind, depth), "w": "$b"}, "in": self.choice(["$$v", {"$ifNull": ["$$v", "$$w"]}])}}


def conditional(kind):
    return lambda self, depth: self.choice([
        {"$cond": [self.of("boolean", depth), self.of(kind, depth), self.of(kind, depth)]},
        {"$ifNull": [self.of(kind, depth), self.of(kind, depth)]},
        {"$switch": {"branches": [{"case": self.of("boolean", depth), "then": self.of(kind, depth)}], "default": self.of(kind, depth)}},
    ])


def sliced(self, depth):
    return {"$slice": [self.of("array", depth), self.choice(SMALL), *([self.choice([1, 2, 3])] if self.random.random() < 0.4 else [])]}


def ranged(self, _):
    return {"$range": [self.choice(SMALL), self.choice([0, 3, 5, 6.0]), *([self.choice([1, 2, -1])] if self.random.random() < 0.5 else [])]}


def zipped(self, depth):
    return {"$zip": {"inputs": self.several("array", depth, 3, 1), **self.some(useLongestLength=True)}}


def pattern(operator):
    return lambda self, depth: {operator: {"input": self.of("text", depth), "regex": self.choice(
        ["a", "^a", "b$", "(a)(x)?", "[a-c]+", ".", re.compile("A", re.I), re.compile("x+")]), **self.some(options=self.choice(["i", "x", ""]))}}


def trimmed(operator):
    return lambda self, depth: {operator: {"input": self.of("text", depth), **self.some(chars=self.choice(["a", "x ", " ", ""]))}}


def substring(operator):
    return lambda self, depth: {operator: [self.of("text", depth), self.choice([0, 1, 2]), self.choice([0, 1, 2, -1, 10])]}


def index_of(operator, kind):
    return lambda self, depth: {operator: [self.of(kind, depth), self.of("any" if kind == "array" else kind, depth),
                                           *([self.choice([0, 1, 3])] if self.random.random() < 0.4 else [])]}


def zoned(operator):
    return lambda self, depth: {operator: self.choice([self.of("date", depth), {"date": self.of("date", depth), "timezone": self.choice(ZONES)}])}


def of_date(operator, **extra):
    def make(self, depth):
        more = {name: self.choice(values) for name, values in extra.items()}
        return {operator: {"date": self.of("date", depth), **more, **self.some(timezone=self.choice(ZONES))}}
    return make


def shifted(operator):
    return lambda self, depth: {operator: {"startDate": self.of("date", depth), "unit": self.choice(UNITS), "amount": self.choice([0, 1, -1, 13, 100]),
                                           **self.some(timezone=self.choice(ZONES))}}


def date_difference(self, depth):
    return {"$dateDiff": {"startDate": self.of("date", depth), "endDate": self.of("date", depth), "unit": self.choice(UNITS),
                          **self.some(timezone=self.choice(ZONES), startOfWeek=self.choice(["monday", "sun", "Friday"]))}}


def truncated(self, depth):
    return {"$dateTrunc": {"date": self.of("date", depth), "unit": self.choice(UNITS), **self.some(
        binSize=self.choice([1, 2, 5]), timezone=self.choice(ZONES), startOfWeek=self.choice(["monday", "sat"]))}}


def converted(self, depth):
    return {"$convert": {"input": self.of("any", depth), "to": self.choice(TYPES), **self.some(onError="bad", onNull="none")}}


def rounded(operator):
    return lambda self, depth: {operator: [self.of("number", depth), *([self.choice([0, 1, 2, -1])] if self.random.random() < 0.6 else [])]}


def first_n(operator):
    return lambda self, depth: {operator: {"n": self.choice([1, 2, 5]), "input": self.of("array", depth)}}


ATOMS = {
    "number": [constant(SOME_NUMBERS), constant(SOME_NUMBERS), lambda self, _: self.path("number", self.choice(SOME_NUMBERS))],
    "text": [literal(SOME_TEXTS), lambda self, _: self.path("string", self.choice(["ab", "x"]))],
    "array": [lambda self, _: self.path("array", [1, 2]), lambda self, _: {"$literal": self.grammar.several(self.grammar.value, 3)},
              lambda self, _: self.grammar.several(lambda: "$" + self.grammar.path(), 3)],
    "object": [lambda self, _: self.path("object", {}), lambda self, _: {"$literal": self.grammar.object()}, constant(["$$ROOT"])],
    "date": [literal(SOME_DATES), lambda self, _: self.path("date", datetime.datetime(2020, 1, 1))],
    "boolean": [constant([True, False]), lambda self, _: "$" + self.grammar.path()],
}

COMPARISONS = [listed(operator, "any", "any") for operator in ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte")]
CALENDAR = ["$year", "$month", "$dayOfMonth", "$hour", "$minute", "$second", "$millisecond", "$dayOfWeek", "$dayOfYear", "$week",
            "$isoWeek", "$isoWeekYear", "$isoDayOfWeek"]

OPERATORS = {
    "number": [
        variadic("$add", "number"), variadic("$multiply", "number"), listed("$subtract", "number", "number"),
        listed("$divide", "number", "number"), listed("$mod", "number", "number"), single("$abs", "number"), single("$ceil", "number"),
        single("$floor", "number"), single("$sqrt", "number"), lambda self, depth: {"$pow": [self.of("number", depth), self.choice([0, 1])]}, rounded("$round"), rounded("$trunc"),
        single("$size", "array"), single("$strLenCP", "text"), single("$strLenBytes", "text"), index_of("$indexOfCP", "text"),
        index_of("$indexOfBytes", "text"), index_of("$indexOfArray", "array"), listed("$strcasecmp", "text", "text"),
        listed("$cmp", "any", "any"), variadic("$sum", "any"), single("$sum", "array"), variadic("$avg", "any"), single("$avg", "array"),
        variadic("$max", "any"), single("$min", "array"), single("$bsonSize", "object"), reduced, conditional("number"), let_in("number"),
        date_difference, single("$toInt", "any"), single("$toLong", "number"), single("$toDouble", "any"), single("$toDecimal", "number"),
        listed("$subtract", "date", "date"), *[zoned(operator) for operator in CALENDAR],
    ],
    "text": [
        variadic("$concat", "text"), single("$toLower", "text"), single("$toUpper", "text"), substring("$substrCP"), substring("$substrBytes"),
        trimmed("$trim"), trimmed("$ltrim"), trimmed("$rtrim"),
        # MongoDB replaces nothing between any two bytes, also of one character.
        *[named(operator, input="text", find=constant(["a", "x", "b,", "X"]), replacement="text") for operator in ("$replaceOne", "$replaceAll")],
        single("$type", "any"), single("$toString", "any"),
        of_date("$dateToString"), of_date("$dateToString", format=["%Y-%m-%d", "%H:%M:%S.%L %z", "%j %u %U %V %G %Z%%", "%d/%m"]),
        conditional("text"), let_in("text"),
    ],
    "array": [
        mapped, filtered, zipped, sliced, ranged, variadic("$concatArrays", "array"), single("$reverseArray", "array"),
        single("$objectToArray", "object"), listed("$split", "text", "text"), pattern("$regexFindAll"),
        named("$sortArray", input="array", sortBy=constant([1, -1, {"b": 1}, {"a": -1, "b": 1}])),
        *[first_n(operator) for operator in ("$firstN", "$lastN", "$minN", "$maxN")],
        lambda self, depth: self.several("any", depth), conditional("array"), let_in("array"),
        # What order the sets of MongoDB have is not defined.
        *[lambda self, depth, operator=operator: {"$sortArray": {"input": {operator: self.several("array", depth, 2, 2)}, "sortBy": 1}}
          for operator in ("$setUnion", "$setIntersection", "$setDifference")],
    ],
    "object": [
        variadic("$mergeObjects", "object"), of_date("$dateToParts"), of_date("$dateToParts", iso8601=[True, False]), pattern("$regexFind"),
        lambda self, depth: {"x": self.of("any", depth), "y": self.of("any", depth)},
        lambda self, depth: {"$arrayToObject": [[["k", self.of("any", depth)], ["j", self.of("any", depth)]]]},
        lambda self, depth: {"$arrayToObject": {"$objectToArray": self.of("object", depth)}},
        # MongoDB keeps the place of a field that goes for one of the same name that comes, so their names differ here.
        lambda self, depth: {"$setField": {"field": self.choice(["a", "n"]), "input": self.of("object", depth), "value": self.of("any", depth)}},
        lambda self, depth: {"$unsetField": {"field": self.choice(["b", "c"]), "input": self.of("object", depth)}},
        conditional("object"),
    ],
    "date": [
        shifted("$dateAdd"), shifted("$dateSubtract"), truncated, single("$toDate", "any"), listed("$add", "date", "number"),
        listed("$subtract", "date", "number"),
        named("$dateFromParts", year=constant([1, 1970, 2020, 9999]), month=constant([1, 2, 12, 13, 0, -5]), day=constant([1, 31, 0, 400])),
        named("$dateFromParts", isoWeekYear=constant([1970, 2020]), isoWeek=constant([1, 53, 0]), isoDayOfWeek=constant([1, 7, 9]),
              timezone=constant(ZONES)),
        named("$dateFromString", dateString=constant(
            ["2020-02-03", "2020-02-03T04:05:06Z", "2020-02-03T04:05:06.789+02:00", "03/02/2020", "Feb 3, 2020 10:11 pm", "nonsense", ""]),
              onError=constant([None, "bad"])),
        named("$dateFromString", dateString=constant(["03/02/2020", "2020-034", "x"]), format=constant(["%d/%m/%Y", "%Y-%m", "%G %V", "%Y-%j"]),
              onError=constant(["bad"])),
        conditional("date"),
    ],
    "boolean": [
        *COMPARISONS, variadic("$and", "boolean"), variadic("$or", "boolean"), single("$not", "boolean"), listed("$in", "any", "array"),
        single("$isArray", "any"), single("$isNumber", "any"), pattern("$regexMatch"), single("$toBool", "any"),
        listed("$setIsSubset", "array", "array"), variadic("$setEquals", "array", 2), single("$allElementsTrue", "any"),
        lambda self, depth: {"$anyElementTrue": [self.of("array", depth)]}, lambda self, depth: {"$allElementsTrue": [self.of("array", depth)]},
        lambda self, depth: {"$eq": [converted(self, depth), self.of("any", depth)]}, conditional("boolean"),
        lambda self, depth: {"$eq": [{"$arrayElemAt": [self.of("array", depth), self.choice(SMALL)]}, {"$first": self.of("array", depth)}]},
        lambda self, depth: {"$gt": [{"$getField": {"field": "b", "input": self.of("object", depth)}}, {"$last": self.of("array", depth)}]},
    ],
}
