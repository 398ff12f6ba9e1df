"""Random documents, filters, sorts, projections, updates and pipelines, small enough to be read, and made to hit each other:
few field names, few values, but the nasty ones of every type. The same seed gives the same requests."""

import datetime
import random
import re

from bson import Binary, Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Timestamp

import sort_order
from expressions import Expressions

NUMBERS = [0, 1, 2, 3, -1, 7, Int64(1), Int64(2**53 + 1), Int64(2**63 - 1), Int64(-(2**63)), 2**31 - 1, 1.0, 1.5, -0.0, 0.1, 2.0**53,
           float("nan"), float("inf"), float("-inf"), 1e308, Decimal128("1"), Decimal128("1.50"), Decimal128("0.1"), Decimal128("NaN"),
           Decimal128("-Infinity"), Decimal128("9007199254740993"), Decimal128("-0E-5")]
STRINGS = ["", "a", "b", "ab", "A", "aa", "é", "a\0b", "1", "$a", "a.b", "😀"]
OTHERS = [None, None, None, True, False, ObjectId("5f0000000000000000000001"), ObjectId("5f0000000000000000000002"),
          datetime.datetime(2020, 1, 1), datetime.datetime(1960, 1, 1), Timestamp(5, 1), Binary(b"ab", 128), b"", b"abc",
          re.compile("a"), re.compile("^a", re.I), MinKey(), MaxKey(), Code("x"), Code("x", {"a": 1}),
          sort_order.Value(14, sort_order.string("a"), None), sort_order.Value(6, b"", None)]
FIELDS = ["a", "b", "c"]
PATHS = ["a", "a", "b", "b", "c", "d", "_id", "a.b", "a.b", "b.a", "a.0", "b.1", "a.b.c", "a.0.b", "a.b.0", "c.a.b", "z", "z.a"]
TYPES = ["double", "string", "object", "array", "binData", "undefined", "objectId", "bool", "date", "null", "regex", "symbol", "int",
         "timestamp", "long", "decimal", "minKey", "maxKey", "number", 1, 2, 3, 4, 10, 16, 18, 19, -1, 127, "bogus", 99]
COMPARISONS = ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]


class Grammar:
    """One stream of random requests."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def one_of(self, *choices):
        return self.random.choice(choices)()

    def chance(self, probability):
        return self.random.random() < probability

    def several(self, make, most, least=0):
        return [make() for _ in range(self.random.randint(least, most))]

    # ---- values and documents

    def scalar(self):
        return self.random.choice(self.random.choice([NUMBERS, NUMBERS, STRINGS, OTHERS]))

    def value(self, depth=0):
        if depth < 3 and self.chance(0.35):
            return self.one_of(lambda: self.several(lambda: self.value(depth + 1), 3), lambda: self.object(depth + 1))
        return self.scalar()

    def object(self, depth=0):
        names = self.random.sample(FIELDS, self.random.randint(0, 2))
        return {name: self.value(depth) for name in names}

    def document(self, number):
        made = {"_id": number}
        for name in FIELDS:
            if self.chance(0.8):
                made[name] = self.value()
        if self.chance(0.9):
            made["d"] = self.random.choice([0, 1, 2, "x", "y", None])
        return made

    def documents(self, count):
        return [self.document(number) for number in range(count)]

    def path(self):
        return self.random.choice(PATHS)

    # ---- filters

    def filter(self, depth=0):
        if depth < 2 and self.chance(0.25):
            operator = self.random.choice(["$and", "$or", "$or", "$nor"])
            return {operator: self.several(lambda: self.filter(depth + 1), 3, 1)}
        # Alone only: beside other conditions it is the plan that decides whether an expression that fails is evaluated at all.
        if depth == 0 and self.chance(0.1):
            return {"$expr": self.expression()}
        count = self.random.choice([0, 1, 1, 1, 1, 1, 2, 3])
        return {self.path(): self.condition(depth) for _ in range(count)}

    def filter_without_expressions(self):
        """Which document an expression fails on first depends on the order."""
        return next(filter for filter in iter(self.filter, None) if "$expr" not in filter)

    def condition(self, depth=0):
        if self.chance(0.3):
            return self.value()
        operators = {}
        for _ in range(self.random.choice([1, 1, 1, 2])):
            operators.update(self.operator(depth))
        return operators

    def operator(self, depth):
        simple = [
            lambda: {self.random.choice(COMPARISONS): self.value()},
            lambda: {self.random.choice(COMPARISONS): self.value()},
            lambda: {self.random.choice(COMPARISONS): self.value()},
            lambda: {self.random.choice(["$in", "$nin"]): self.several(self.value, 4)},
            lambda: {"$exists": self.random.choice([True, False, 1, 0, None, "x"])},
            lambda: {"$type": self.one_of(lambda: self.random.choice(TYPES), lambda: self.several(lambda: self.random.choice(TYPES), 2, 1))},
            lambda: {"$size": self.random.choice([0, 1, 2, 3, 1.0, Int64(2), 1.5, -1, "1"])},
            lambda: {"$mod": self.random.choice([[2, 0], [2, 1], [3.7, 1], [-2, 1], [2, 0.5], [0, 1], [2], [Int64(5), Decimal128("2")], []])},
            lambda: {"$regex": self.random.choice(["a", "^a", "b$", "", "^$", "A", "a.b", "[", "é"]), **self.random.choice(
                [{}, {}, {"$options": "i"}, {"$options": "s"}, {"$options": "q"}])},
            lambda: {"$all": self.several(self.value, 3)},
            lambda: {self.random.choice(["$bitsAllSet", "$bitsAnySet", "$bitsAllClear", "$bitsAnyClear"]):
                     self.random.choice([1, 3, [0], [0, 1], Int64(2**40), b"\1", -1, 1.0, 1.5, [70], "x"])},
            lambda: {self.random.choice(["$foo", "$near"]): 1},
        ]
        nested = [
            lambda: {"$not": self.operator(depth + 1)},
            lambda: {"$not": self.random.choice([re.compile("a"), re.compile("B", re.I), 1, {}])},
            lambda: {"$elemMatch": self.filter(depth + 2)},
            lambda: {"$elemMatch": self.operator(depth + 1)},
            lambda: {"$all": [{"$elemMatch": self.operator(depth + 1)}]},
        ]
        usual = simple[:8] if self.chance(0.7) else simple
        return self.random.choice(usual if depth > 2 or self.chance(0.75) else nested)()

    # ---- expressions

    def expression(self, depth=0):
        if depth > 2 or self.chance(0.35):
            return self.one_of(lambda: "$" + self.path(), lambda: "$" + self.path(), lambda: {"$literal": self.value()},
                               lambda: self.random.choice(NUMBERS), lambda: self.random.choice(["a", "", "$$ROOT.a", "$$missing"]))
        inner = lambda: self.expression(depth + 1)
        return self.one_of(
            lambda: {self.random.choice(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$cmp"]): [inner(), inner()]},
            lambda: {self.random.choice(["$and", "$or", "$add", "$multiply"]): self.several(inner, 3)},
            lambda: {self.random.choice(["$subtract", "$divide", "$mod"]): [inner(), inner()]},
            lambda: {self.random.choice(["$not", "$isArray", "$type", "$size", "$abs"]): inner()},
            lambda: {"$cond": self.random.choice([[inner(), inner(), inner()], {"if": inner(), "then": inner(), "else": inner()}])},
            lambda: {"$ifNull": [inner(), inner()]},
            lambda: {"$arrayElemAt": [inner(), self.random.choice([0, 1, -1, 5, 1.5, None])]},
            lambda: {"$in": [inner(), inner()]},
            lambda: {"$concat": self.several(inner, 2, 1)},
            lambda: self.several(inner, 2),
            lambda: {"x": inner(), "y": inner()})

    # ---- sorts and projections

    def pattern(self, indexes):
        """A sort that an index may give: its fields from the first on, in its order or the opposite; or any other sort."""
        if self.chance(0.4):
            return {self.path(): self.random.choice([1, -1]) for _ in range(self.random.randint(1, 3))}
        fields = list(self.random.choice(indexes).items())
        sign = self.random.choice([1, -1])
        return {path: sign * direction for path, direction in fields[: self.random.randint(1, len(fields))]}

    def sort(self):
        pattern = {self.path(): self.random.choice([1, -1]) for _ in range(self.random.randint(1, 2))}
        pattern.setdefault("_id", 1)
        return pattern

    def projection(self):
        kind = self.random.choice(["in", "out", "mixed"])
        made = {}
        for _ in range(self.random.randint(1, 3)):
            path = self.path()
            if kind != "mixed":
                made[path] = {"in": self.random.choice([1, True, 2.5]), "out": self.random.choice([0, False])}[kind]
            else:
                made[path] = self.one_of(
                    lambda: 1, lambda: 0, lambda: {"$slice": self.random.choice([1, -1, 0, [0, 1], [-2, 1], [1, 0]])},
                    lambda: {"$elemMatch": self.filter(2)}, self.expression, lambda: self.random.choice(["$a", "x", {}, None]))
        if self.chance(0.3):
            made["_id"] = self.random.choice([0, 1])
        if self.chance(0.03):
            made["a.$"] = 1
        return made

    def find(self):
        request = {"filter": self.filter()}
        if self.chance(0.4):
            request["sort"] = self.sort()
            if self.chance(0.5):
                request["limit"] = self.random.randint(1, 6)
            if self.chance(0.3):
                request["skip"] = self.random.randint(0, 5)
        if self.chance(0.3):
            request["projection"] = self.projection()
        return request

    # ---- updates

    def selecting(self, number):
        """The filter that chooses the document of an update: its `_id`, and often an element that the positional `$` then stands for."""
        query = {"_id": number}
        if self.chance(0.4):
            query[self.random.choice(["a", "b", "a.b", "b.a", "c.a"])] = self.condition(1)
        return query

    def update_pipeline(self):
        stage = lambda: self.one_of(
            lambda: {self.random.choice(["$set", "$addFields"]): {self.path(): self.expression() for _ in range(self.random.randint(1, 2))}},
            lambda: {"$unset": self.several(self.path, 2, 1)}, lambda: {"$project": self.projection()},
            lambda: {self.random.choice(["$replaceWith", "$replaceRoot"]): self.random.choice(
                ["$a", "$$ROOT", {"newRoot": "$b"}, {"$mergeObjects": ["$$ROOT", {"n": 1}]}, {"p": "$b", "q": "$a"}])})
        # One stage only: MongoDB keeps the place of a field that a stage before has removed.
        return {"u": [stage()]}

    def update(self):
        if self.chance(0.06):
            return {"u": self.object()}
        if self.chance(0.1):
            return self.update_pipeline()
        made = {}
        for _ in range(self.random.choice([1, 1, 1, 2])):
            operator = self.random.choice(list(UPDATES))
            paths = {self.update_path(): UPDATES[operator](self) for _ in range(self.random.choice([1, 1, 2]))}
            made.setdefault(operator, {}).update(paths)
        if any("$[e]" in path for paths in made.values() for path in paths):
            # Which of two faults is reported depends on the order, and the filter has to be used.
            made = {operator: {path: value for path, value in paths.items() if not path.startswith("_id")} for operator, paths in made.items()}
        statement = {"u": made}
        if any("$[e]" in path for paths in made.values() for path in paths):
            statement["arrayFilters"] = [self.one_of(
                lambda: {"e": self.condition(2)}, lambda: {"e.b": self.condition(2)},
                lambda: {"$or": [{"e": self.condition(2)}, {"e.b": self.condition(2)}]},
                lambda: {"e.a": self.condition(2), "e.b": self.condition(2)})]
        return statement

    def update_path(self):
        if self.chance(0.15):
            return self.random.choice(["a.$[]", "a.$[e]", "b.$[].a", "b.$[e].b", "a.$", "a.$.b", "b.$", "b.$.a", "c.a.$", "a.b.$", "a.b.$[]",
                                       "a.$[].b.$[e]", "a.-1", "a.5", "_id", "_id.a", "a..b", ""])
        return self.path()

    def pushed(self):
        if self.chance(0.5):
            return self.value()
        made = {"$each": self.several(self.value, 3)}
        if self.chance(0.4):
            made["$position"] = self.random.choice([0, 1, -1, 100])
        if self.chance(0.4):
            made["$slice"] = self.random.choice([0, 1, 2, -2, 100])
        if self.chance(0.4):
            made["$sort"] = self.random.choice([1, -1, {"a": 1}, {"b": -1, "a": 1}])
        return made

    # ---- pipelines

    def pipeline(self):
        """Sorted at first, so that everything that depends on the order is defined."""
        stages = [{"$sort": {"_id": 1}}]
        for stage in self.several(self.stage, 3, 1):
            # Groups come in no order.
            stages += [stage, {"$sort": {"_id": 1}}] if "$group" in stage else [stage]
        return stages

    def stage(self):
        return self.one_of(
            # Several stages are one to MongoDB, and its plan decides whether an expression that fails is evaluated at all.
            lambda: {"$match": self.filter_without_expressions()}, lambda: {"$match": self.filter_without_expressions()},
            self.group, self.group,
            lambda: {"$project": self.projection()},
            lambda: {"$unwind": "$" + self.random.choice(FIELDS)},
            lambda: {"$unwind": {"path": "$" + self.path(), "preserveNullAndEmptyArrays": self.chance(0.5),
                                 **self.random.choice([{}, {"includeArrayIndex": "i"}])}},
            lambda: {"$redact": {"$cond": [{"$eq": ["$" + self.path(), self.scalar()]}, "$$PRUNE", self.random.choice(["$$DESCEND", "$$KEEP"])]}},
            lambda: {"$unionWith": {"coll": "c", "pipeline": [{"$sort": {"_id": 1}}, {"$match": self.filter_without_expressions()}]}},
            lambda: {"$count": "n"})

    def computing_stage(self):
        """A stage that computes something, of any type."""
        made = Expressions(self)
        return self.one_of(
            lambda: {"$project": {"r": made.of("any"), "s": made.of("any")}}, lambda: {"$project": {"r": made.of("any"), "s": made.of("any")}},
            lambda: {"$addFields": {"a": made.of("any"), "b.x": made.of("any")}}, lambda: {"$match": {"$expr": made.of("boolean")}},
            lambda: {"$group": {"_id": made.of("any"), "n": {"$sum": made.of("number")}, "most": {"$max": made.of("any")}}},
            lambda: {"$replaceWith": made.of("object")})

    def group(self):
        made = {"_id": self.one_of(lambda: "$" + self.path(), lambda: None, lambda: {"x": "$a", "y": "$d"}, self.expression)}
        for name in ("r", "s")[: self.random.randint(0, 2)]:
            operator = self.random.choice(["$sum", "$avg", "$min", "$max", "$first", "$last", "$push"])
            made[name] = {operator: self.one_of(lambda: "$" + self.path(), lambda: 1, self.expression)}
        return {"$group": made}


UPDATES = {
    "$set": Grammar.value, "$unset": Grammar.scalar, "$inc": lambda grammar: grammar.random.choice(NUMBERS + ["x"]),
    "$mul": lambda grammar: grammar.random.choice(NUMBERS + [None]), "$min": Grammar.value, "$max": Grammar.value,
    "$rename": lambda grammar: grammar.random.choice(["a", "b", "n", "n.m", "c.a", "_id", "", 1]),
    "$setOnInsert": Grammar.value, "$push": Grammar.pushed, "$pull": lambda grammar: grammar.condition(1),
    "$pullAll": lambda grammar: grammar.several(grammar.value, 3), "$pop": lambda grammar: grammar.random.choice([1, -1, 1.0, 2, "x"]),
    "$addToSet": lambda grammar: grammar.random.choice([grammar.value(), {"$each": grammar.several(grammar.value, 3)}]),
    "$bit": lambda grammar: {grammar.random.choice(["and", "or", "xor"]): grammar.random.choice([1, 6, Int64(3), 1.0])},
}
