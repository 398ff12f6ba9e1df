"""Random pipelines of all stages that one collection is enough for, joins with itself among them.

    Pipelines(grammar).pipeline()

Where MongoDB leaves the order of documents or of an array's elements open, the next stage sorts them. Where its plan decides whether
an expression is evaluated at all, the expression cannot fail: paths are asked for their types first. The last stage may be any.
Sums that slide are of whole numbers: MongoDB subtracts what leaves a window, so that its sums of fractions drift.
"""

from bson import Decimal128, Int64

from expressions import Expressions

FIELDS = ["a", "b", "c", "d"]
WHOLE = {"$cond": [{"$in": [{"$type": "$d"}, ["int", "long"]]}, "$d", None]}
BY_ID = {"$sort": {"_id": 1}}
# An array sorts as its least element, so that it has the place of another `_id`: within a document it has one of its own.
BY_GROUP = [{"$set": {"_id": {"$cond": [{"$isArray": "$_id"}, {"array": "$_id"}, "$_id"]}}}, BY_ID]
WINDOWS = [
    {"documents": ["unbounded", "current"]}, {"documents": [-1, 1]}, {"documents": [-2, 0]}, {"documents": ["current", "unbounded"]}, {"documents": [0, 0]},
    {"documents": [1, 3]}, {"documents": [-4, -2]}, {"documents": [-3, "current"]}, {"documents": ["unbounded", "unbounded"]}, {"documents": [-7, 7]},
    {"range": [-1, 1]}, {"range": [-3, 0]}, {"range": ["current", 2]}, {"range": ["unbounded", 1]}, {"range": [-2.5, "unbounded"]}, {"range": [2, Int64(5)]},
]


def sorted_array(path):
    """A stage that sorts the array at a path by `_id`, where there is one."""
    return {"$set": {path: {"$cond": [{"$isArray": f"${path}"}, {"$sortArray": {"input": f"${path}", "sortBy": {"_id": 1}}}, f"${path}"]}}}


class Pipelines:
    """Makes pipelines with the chance of a grammar. The collection is `c` wherever one is named."""

    def __init__(self, grammar):
        self.grammar, self.random, self.made = grammar, grammar.random, Expressions(grammar)

    def pipeline(self):
        stages = [BY_ID]
        for _ in range(self.random.randint(1, 4)):
            stages += self.stages()
        if self.chance(0.15):
            stages.append(self.grammar.computing_stage())
        return stages

    def chance(self, probability):
        return self.random.random() < probability

    def one(self, *choices):
        return self.random.choice(choices)

    def path(self):
        return "$" + self.grammar.path()

    def field(self):
        return self.random.choice(FIELDS)

    def object_at(self, path):
        return {"$cond": [{"$eq": [{"$type": path}, "object"]}, path, {}]}

    def safe(self, depth=0):
        """An expression that never fails."""
        if depth > 1 or self.chance(0.5):
            return self.one(self.path(), self.path(), {"$literal": self.grammar.value()}, 1, "$$ROOT._id")
        inner = self.safe(depth + 1)
        return self.one(
            inner, {"$type": inner}, {"$isArray": [inner]}, {"$ifNull": [inner, self.safe(depth + 1)]}, [inner, self.path()], {"x": inner, "y": self.path()},
            {"$cond": [inner, self.path(), self.safe(depth + 1)]}, {"$eq": [inner, self.path()]}, {"$gt": [inner, self.safe(depth + 1)]},
            {"$cond": [{"$isArray": [inner]}, {"$size": {"$cond": [{"$isArray": [inner]}, inner, []]}}, -1]}, {"$mergeObjects": [self.object_at(self.path()), {"m": inner}]},
            {"$and": [inner, self.path()]}, {"$cmp": [inner, self.path()]}, WHOLE, {"$let": {"vars": {"v": inner}, "in": ["$$v", "$$v"]}},
            {"$switch": {"branches": [{"case": inner, "then": self.path()}], "default": "none"}}, {"$bsonSize": self.object_at(self.path())})

    def condition(self):
        """A filter of a `$match`."""
        if self.chance(0.2):
            return {"$expr": {self.one("$eq", "$ne", "$gt", "$lte"): [self.path(), self.safe(1)]}}
        return self.grammar.filter_without_expressions()

    # ---- stages

    def stages(self, depth=0):
        """One stage, and those that sort what it leaves open."""
        makers = [
            self.match, self.match, self.project, self.computed, self.computed, self.group, self.group, self.unwind, self.unwind, self.sort, self.cut,
            self.unset, self.root, self.redact, self.buckets, self.automatic_buckets, self.by_count, self.windows, self.windows, self.windows,
            self.dense, self.filled, self.filled, self.count,
        ]
        if depth == 0:
            makers += [self.lookup, self.lookup, self.lookup, self.graph, self.union, self.facet]
        return self.random.choice(makers)()

    def match(self):
        return [{"$match": self.condition()}]

    def project(self):
        return [{"$project": self.grammar.projection()}]

    def computed(self):
        fields = {self.one("a", "b", "c", "d", "a.b", "b.a", "n"): self.safe() for _ in range(self.random.randint(1, 2))}
        return [{self.one("$set", "$addFields"): {path: value for path, value in fields.items() if not any(other != path and other.startswith(f"{path}.") for other in fields)}}]

    def unset(self):
        return [{"$unset": self.one(self.field(), self.grammar.path(), ["a.b", "d"])}]

    def root(self):
        return [{"$replaceWith": {"$mergeObjects": [self.object_at(self.path()), {"_id": "$_id", "d": "$d"}, {self.field(): self.safe()}]}}]

    def redact(self):
        test = self.one({"$eq": [self.path(), self.grammar.scalar()]}, {"$isNumber": self.path()})
        return [{"$redact": {"$cond": [test, self.one("$$PRUNE", "$$KEEP"), self.one("$$DESCEND", "$$DESCEND", "$$KEEP")]}}]

    def unwind(self):
        options = {"path": self.one("$a", "$b", "$c", self.path()), "preserveNullAndEmptyArrays": self.chance(0.5)}
        return [{"$unwind": {**options, "includeArrayIndex": self.one("i", "d")} if self.chance(0.3) else options}]

    def sort(self):
        stages = [{"$sort": self.grammar.sort()}]
        return stages + [{"$limit": self.random.randint(1, 9)}] if self.chance(0.4) else stages

    def cut(self):
        return [self.one({"$limit": self.random.randint(1, 15)}, {"$skip": self.random.randint(0, 5)})]

    def count(self):
        return [{"$count": "n"}] if self.chance(0.3) else self.match()

    def order(self):
        return {**{self.field(): self.one(1, -1) for _ in range(self.random.randint(0, 1))}, "_id": self.one(1, 1, -1)}

    def accumulator(self):
        several = {"n": self.random.randint(1, 3)}
        return self.one(
            {"$sum": self.one(1, WHOLE, self.path())}, {"$avg": self.one(WHOLE, self.path())}, {"$min": self.safe()}, {"$max": self.safe()},
            {"$first": self.safe()}, {"$last": self.safe()}, {"$push": self.safe()}, {"$count": {}}, {"$mergeObjects": self.object_at(self.path())},
            {self.one("$firstN", "$lastN", "$minN", "$maxN"): {"input": self.safe(1), **several}},
            {self.one("$top", "$bottom"): {"output": self.safe(1), "sortBy": self.order()}},
            {self.one("$topN", "$bottomN"): {"output": self.safe(1), "sortBy": self.order(), **several}})

    def group(self):
        made = {"_id": self.one(self.path(), None, {"x": self.path(), "y": "$d"}, self.safe())}
        for name in ("a", "b", "r")[: self.random.randint(0, 3)]:
            made[name] = self.accumulator()
        stages = [{"$group": made}, *BY_GROUP]
        if self.chance(0.2):
            made["s"] = {"$addToSet": self.path()}
            stages.append({"$set": {"s": {"$sortArray": {"input": "$s", "sortBy": 1}}}})
        return stages

    def buckets(self):
        boundaries = self.one([0, 1, 2, 3], [-1, 1.5, Int64(5)], ["a", "b"], [Decimal128("-1"), 0, 2])
        options = {"groupBy": self.path(), "boundaries": boundaries, "default": "others"}
        return [{"$bucket": {**options, "output": {"a": self.accumulator(), "b": self.accumulator()}} if self.chance(0.7) else options}, BY_ID]

    def automatic_buckets(self):
        options = {"groupBy": self.one(self.path(), WHOLE), "buckets": self.random.randint(1, 5)}
        return [{"$bucketAuto": {**options, "output": {"a": self.accumulator(), "b": self.accumulator()}} if self.chance(0.7) else options}]

    def by_count(self):
        return [{"$sortByCount": self.one(self.path(), self.safe())}, *BY_GROUP]

    # ---- windows and gaps

    def partition(self):
        return self.one({}, {"partitionBy": "$d"}, {"partitionBy": {"x": "$d"}}, {"partitionBy": {"$type": self.path()}})

    def window_function(self):
        if self.chance(0.4):
            return self.one(
                {"$rank": {}}, {"$denseRank": {}}, {"$documentNumber": {}}, {"$shift": {"output": self.safe(1), "by": self.random.randint(-3, 3), "default": "none"}},
                {"$shift": {"output": self.path(), "by": self.one(-1, 1)}}, {"$locf": self.safe(1)}, {"$expMovingAvg": {"input": WHOLE, "N": 3}}, {"$linearFill": WHOLE},
                {"$derivative": {"input": {"$ifNull": [WHOLE, 0]}}, "window": {"documents": [-1, 1]}},
                {"$integral": {"input": {"$ifNull": [WHOLE, 0]}}, "window": {"documents": [-2, 0]}})
        return self.one(
            {"$sum": self.one(1, WHOLE)}, {"$avg": WHOLE}, {"$count": {}}, {"$min": self.safe(1)}, {"$max": self.safe(1)}, {"$first": self.safe(1)}, {"$last": self.safe(1)},
            {"$push": self.safe(1)}, {self.one("$firstN", "$lastN", "$minN", "$maxN"): {"input": self.safe(1), "n": 2}},
            {self.one("$top", "$bottom"): {"output": self.safe(1), "sortBy": {"_id": self.one(1, -1)}}}) | {"window": self.random.choice(WINDOWS)}

    def windows(self):
        sort = self.one({"_id": 1}, {"_id": 1}, {"d": self.one(1, -1), "_id": 1}, {"_id": -1})
        output = {self.one("w", "a", "b.x"): self.window_function() for _ in range(self.random.randint(1, 2))}
        return [{"$setWindowFields": {**self.partition(), "sortBy": sort, "output": output}}]

    def dense(self):
        span = self.one("full", [0, 3], [-1, 2])
        return [{"$set": {"n": WHOLE}}, {"$densify": {"field": "n", "range": {"step": self.one(1, 0.5, 2), "bounds": span}}}]

    def filled(self):
        value = self.one({"method": "locf"}, {"value": self.safe(1)}, {"method": "linear"})
        fields = {"n": value} if value == {"method": "linear"} else {self.one("a", "n", "c", "a.b"): value}
        if self.chance(0.4):
            fields["b"] = self.one({"method": "locf"}, {"value": 5})
        partition = self.one({}, {}, {"partitionByFields": ["d"]}, {"partitionBy": {"x": "$d"}})
        return [{"$set": {"n": WHOLE}}, {"$fill": {**partition, "sortBy": {"_id": 1}, "output": fields}}]

    # ---- joins

    def lookup(self):
        name = self.one("j", "j", "a", "b.j")
        join = {"from": "c", "as": name}
        if self.chance(0.8):
            join |= {"localField": self.grammar.path(), "foreignField": self.grammar.path()}
        inner = [BY_ID]
        if "localField" not in join or self.chance(0.3):
            inner += self.one([{"$match": self.condition()}], [{"$limit": 2}], [{"$project": {"a": 1}}], self.group(), [{"$match": {"$expr": {"$eq": ["$d", "$$v"]}}}])
        join |= {"let": {"v": "$d"}, "pipeline": inner}
        stages = [{"$lookup": join}]
        if self.chance(0.4):
            stages.append({"$unwind": self.one(f"${name}", {"path": f"${name}", "preserveNullAndEmptyArrays": True, "includeArrayIndex": "i"})})
            if self.chance(0.5):
                stages.append({"$match": {f"{name}.{self.field()}": self.grammar.condition(1)}})
        return stages

    def graph(self):
        search = {"from": "c", "startWith": self.one(self.path(), self.safe(1)), "connectFromField": self.grammar.path()}
        search |= {"connectToField": self.one("a", "b", "d", "_id", "a.b"), "as": "g"}
        search |= self.one({}, {"maxDepth": self.random.randint(0, 2)}, {"depthField": "depth"})
        if self.chance(0.3):
            search["restrictSearchWithMatch"] = self.grammar.filter_without_expressions()
        return [{"$graphLookup": search}, sorted_array("g")]

    def union(self):
        if self.chance(0.2):
            return [{"$unionWith": {"pipeline": [{"$documents": [{"_id": 100, "a": 1}, {"_id": 101, "a": [1, 2], "d": 1}]}, *self.stages(1)]}}]
        return [{"$unionWith": {"coll": "c", "pipeline": [BY_ID, *self.stages(1)]}}]

    def facet(self):
        return [{"$facet": {"a": self.stages(1), "b": [*self.stages(1), *self.stages(1)]}}]
