"""Operations with operands of 1,000, 10,000 and 100,000 elements: both servers answer alike, and Pando's time does not grow
as a square does.

1. Each operation has documents of its own on both servers, one for each run.
2. Its answer, and for writes the document that it leaves, are compared. Some operations of MongoDB take the square of their
   operands: where it is slow with 10,000 elements it is not asked with 100,000.
3. The least of several times of Pando counts. Times are shown with `-s`; MongoDB's are not judged.

`crates/query/tests/slopes.rs` judges more operations, without a server.
"""

import time

import bson
import pytest
from bson.raw_bson import RawBSONDocument

SIZES = (1_000, 10_000, 100_000)
RUNS = 3
RETRIALS = 4
# A square grows 100-fold and 10,000-fold.
STEP_MAX, GROWTH_MAX = 80, 1600
# Shorter times say nothing, and a round trip is part of them.
FLOOR = 0.05
# Where MongoDB takes longer than this with a tenth of the elements it is not asked.
ORACLE_PATIENCE = 0.1


def numbers(start, count):
    return list(range(start, start + count))


def wide(count, value, prefix="f"):
    return {f"{prefix}{at}": value(at) for at in range(count)}


def nested(count, value):
    return {f"d.f{at}": value(at) for at in range(count)}


def path(at):
    return f"$f{at}"


def one(at):
    return 1


def itself(at):
    return at


def arrays(n):
    return {"a": numbers(0, n), "b": numbers(n // 2, n)}


class Update:
    """An update of a document of each run."""

    def __init__(self, document, update, filters=None, upsert=False):
        self.document, self.update, self.filters, self.upsert = document, update, filters, upsert

    def documents(self, n):
        return [] if self.upsert else [{"_id": run, **self.document(n)} for run in range(RUNS)]

    def request(self, n, run):
        query = {"_id": run, **self.document(n)} if self.upsert else {"_id": run}
        statement = {"q": query, "u": self.update(n), "upsert": self.upsert}
        if self.filters:
            statement["arrayFilters"] = self.filters(n)
        return {"update": "c", "updates": [statement]}

    def leaves(self):
        return {"find": "c", "filter": {"_id": 0}}


class Insert:
    """An insert of a document with a long array in an index."""

    def documents(self, n):
        return [{"_id": -1, "a": [0], "x": 1}]

    def request(self, n, run):
        return {"insert": "c", "documents": [{"_id": run, **wide(n, itself), "a": numbers(0, n)}]}

    def leaves(self):
        return {"find": "c", "filter": {"a": 7, "_id": 0}}


class Read:
    """A request that changes nothing."""

    def __init__(self, document, request):
        self.document, self.of_size = document, request

    def documents(self, n):
        documents = self.document(n)
        return documents if isinstance(documents, list) else [{"_id": 0, **documents}]

    def request(self, n, run):
        return self.of_size(n)

    def leaves(self):
        return None


def find(document, filter, **options):
    return Read(document, lambda n: {"find": "c", "filter": filter(n), **{name: of(n) for name, of in options.items()}})


def project(document, expression):
    pipeline = lambda n: [{"$project": {"_id": 1, "result": expression(n)}}]
    return Read(document, lambda n: {"aggregate": "c", "pipeline": pipeline(n), "cursor": {}})


def aggregate(document, *stages):
    pipeline = lambda n: [stage(n) for stage in stages]
    return Read(document, lambda n: {"aggregate": "c", "pipeline": pipeline(n), "cursor": {}})


def hundred(n):
    return [{"_id": at, "a": 7 * at, "b": 3 * at, "c": at, "m": [at, at + 1]} for at in range(100)]


def many(n):
    return [{"_id": at, "x": at} for at in range(n)]


def array(n):
    return {"a": numbers(0, n)}


OPERATIONS = {
    "$addToSet": Update(array, lambda n: {"$addToSet": {"a": {"$each": numbers(n // 2, n)}}}),
    "$pullAll": Update(array, lambda n: {"$pullAll": {"a": numbers(n // 2, n)}}),
    "$pull $in": Update(array, lambda n: {"$pull": {"a": {"$in": numbers(n // 2, n)}}}),
    "$push $sort": Update(array, lambda n: {"$push": {"a": {"$each": numbers(n // 2, n), "$sort": -1}}}),
    "$inc": Update(lambda n: wide(n, itself), lambda n: {"$inc": wide(n, one)}),
    "$inc that fails": Update(lambda n: {**wide(n, itself), "z": "text"}, lambda n: {"$inc": {**wide(n, one), "z": 1}}),
    "$set": Update(lambda n: {}, lambda n: {"$set": wide(n, itself)}),
    "$unset": Update(lambda n: wide(n, itself), lambda n: {"$unset": wide(n, one)}),
    "$rename": Update(lambda n: wide(n, itself), lambda n: {"$rename": wide(n, lambda at: f"g{at}")}),
    "$set by index": Update(array, lambda n: {"$set": {f"a.{at}": at + 1 for at in range(n)}}),
    "arrayFilters": Update(
        lambda n: wide(n // 10, lambda at: [0, 1]), lambda n: {"$set": {f"f{at}.$[x{at}]": 5 for at in range(n // 10)}},
        filters=lambda n: [{f"x{at}": 1} for at in range(n // 10)]),
    "a pipeline": Update(lambda n: wide(n, itself), lambda n: [{"$set": wide(n, path, "g")}]),
    "an upsert": Update(lambda n: wide(n, itself), lambda n: {"$set": {"z": 1}}, upsert=True),
    "an insert": Insert(),
    "$all": find(array, lambda n: {"a": {"$all": numbers(0, n)}}),
    "$in": find(array, lambda n: {"a": {"$in": numbers(n, n)}}),
    "$nin": find(array, lambda n: {"a": {"$nin": numbers(n, n)}}),
    "$and of $gt": find(array, lambda n: {"$and": [{"a": {"$gt": max(at - 1, 0)}} for at in range(n)]}),
    "$or of equalities": find(array, lambda n: {"$or": [{"a": n + at} for at in range(n)]}),
    "$nor of equalities": find(array, lambda n: {"$nor": [{"a": n + at} for at in range(n)]}),
    "a test of each field": find(lambda n: wide(n, itself), lambda n: wide(n, itself)),
    "$elemMatch": find(lambda n: {"a": [wide(n, itself)]}, lambda n: {"a": {"$elemMatch": wide(n, itself)}}),
    "an inclusion": find(lambda n: wide(n, itself), lambda n: {}, projection=lambda n: wide(n, one)),
    "an exclusion": find(lambda n: wide(n, itself), lambda n: {}, projection=lambda n: wide(n, lambda at: 0)),
    # Thousands of them end the process of MongoDB 6.0.27.
    "$slice": find(lambda n: wide(n // 100, lambda at: [0, 1, 2]), lambda n: {},
                   projection=lambda n: wide(n // 100, lambda at: {"$slice": 1})),
    "$project": aggregate(lambda n: wide(n, itself), lambda n: {"$project": wide(n, lambda at: path(n - 1 - at), "g")}),
    "$setDifference": project(arrays, lambda n: {"$setDifference": ["$a", "$b"]}),
    "$setUnion": project(arrays, lambda n: {"$setUnion": ["$a", "$b"]}),
    "$setIntersection": project(arrays, lambda n: {"$setIntersection": ["$b", "$a"]}),
    "$in in a $filter": project(arrays, lambda n: {"$filter": {"input": "$a", "cond": {"$in": ["$$this", "$b"]}}}),
    "$arrayElemAt in a $map": project(arrays, lambda n: {"$map": {"input": "$a", "in": {"$arrayElemAt": ["$b", "$$this"]}}}),
    "$indexOfArray in a $map": project(arrays, lambda n: {"$map": {"input": "$b", "in": {"$indexOfArray": ["$a", "$$this"]}}}),
    "$mergeObjects": project(lambda n: {"a": wide(n, itself), "b": wide(n, one)}, lambda n: {"$mergeObjects": ["$a", "$b"]}),
    "$arrayToObject": project(lambda n: {"a": [[f"f{at}", at] for at in range(n)]}, lambda n: {"$arrayToObject": "$a"}),
    "$regexFindAll": project(lambda n: {"t": "ab" * n}, lambda n: {"$size": {"$regexFindAll": {"input": "$t", "regex": "a"}}}),
    "$indexOfBytes": project(lambda n: {"t": "a" * n}, lambda n: {"$indexOfBytes": ["$t", "a" * (n // 2) + "b"]}),
    "$trim": project(lambda n: {"t": "é" * n}, lambda n: {
        "$trim": {"input": "$t", "chars": "".join(map(chr, range(0x100, 0x100 + min(n, 50_000)))) + "é"}}),
    "$let": project(lambda n: wide(n, itself), lambda n: {
        "$let": {"vars": wide(n, path, "v"), "in": {"$add": [f"$$v{at}" for at in range(n)]}}}),
    "$group with many accumulators": aggregate(
        lambda n: wide(n, itself), lambda n: {"$group": {"_id": None, **wide(n, lambda at: {"$sum": path(at)})}}),
    "$group with $lastN": aggregate(many, lambda n: {"$group": {"_id": None, "l": {"$lastN": {"n": n, "input": "$x"}}}}),
    "$group with $maxN": aggregate(many, lambda n: {"$group": {"_id": None, "l": {"$maxN": {"n": n // 2, "input": "$x"}}}}),
    "$bucket": aggregate(many, lambda n: {"$bucket": {"groupBy": "$x", "boundaries": numbers(0, n // 2), "default": -1}}),
    "distinct": Read(array, lambda n: {"distinct": "c", "key": "a"}),
    "three $in on an index": find(hundred, lambda n: {
        "a": {"$in": numbers(0, n)}, "b": {"$in": numbers(0, n)}, "c": {"$in": numbers(0, n)}},
        sort=lambda n: {"_id": 1}, hint=lambda n: "compound"),
    "$ne on an index": find(hundred, lambda n: {"$and": [{"a": {"$ne": at}} for at in range(n)]},
                            sort=lambda n: {"_id": 1}, hint=lambda n: "compound"),
    "$all on an index": find(hundred, lambda n: {"m": {"$all": numbers(0, n)}}),
    "$or on an index": find(hundred, lambda n: {"$or": [{"a": at, "b": at} for at in range(n // 10)]}),
}

INDEXES = [{"key": {"a": 1, "b": 1, "c": 1}, "name": "compound"}, {"key": {"m": 1}, "name": "arrays"}]


@pytest.mark.parametrize("name", OPERATIONS)
def test_long_operands(both, name):
    operation = OPERATIONS[name]
    pando, oracle = [], []
    for n in SIZES:
        fill(both, operation, n, indexed=name.endswith("index") or isinstance(operation, Insert))
        if not oracle or oracle[-1] < ORACLE_PATIENCE:
            oracle.append(compare(both, operation, n))
        pando.append(least_time(both, operation, n, pando))
    show = lambda times: " ".join(f"{seconds * 1000:9.1f}" for seconds in times)
    print(f"\n{name:<32} Pando {show(pando)} ms   MongoDB {show(oracle)} ms")
    assert not any(too_long(pando[:at], pando[at]) for at in range(len(SIZES))), pando


def test_paths_and_patterns_have_limits(both):
    both.fill("c", [{"_id": 1, "a": [{"b": 1}]}])
    longest = ".".join("a" * 180)
    both.rows({"find": "c", "filter": {longest: 1}})
    both.same({"update": "c", "updates": [{"q": {longest: 1}, "u": {"$set": {"z": 1}}, "upsert": True}]},
              ignore=["upserted.*._id"])
    for filter in ({f"{longest}.a": 1}, {"a": {"$elemMatch": {f"{longest}.a": {"$gt": 1}}}}):
        both.fails({"find": "c", "filter": filter}, 5729100)
        both.fails({"aggregate": "c", "pipeline": [{"$match": filter}], "cursor": {}}, 5729100)
        both.fails({"update": "c", "updates": [{"q": filter, "u": {"$set": {"z": 1}}, "upsert": True}]}, 5729100)
        both.fails({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$pull": {"a": filter}}}]}, 5729100)
    both.fails({"find": "c", "filter": {"s": {"$regex": "a" * 40_000}}}, 51091)


def test_equalities_of_one_field_in_or_find_the_first_element_that_meets_any(both):
    both.fill("c", [{"_id": at, "a": [3, 5, 7, "x"]} for at in range(3)])
    for at, filter in enumerate(([{"a": 5}, {"a": 3}], [{"a": 7}, {"a": {"$eq": 5}}], [{"a": "x"}, {"a": 9}])):
        update = {"q": {"_id": at, "$or": filter}, "u": {"$set": {"a.$": 0}}}
        both.same({"update": "c", "updates": [update]})
    both.rows({"find": "c", "sort": {"_id": 1}})


def fill(both, operation, n, *, indexed):
    both.same({"drop": "c"})
    both.same({"create": "c"})
    if indexed:
        both.same({"createIndexes": "c", "indexes": INDEXES})
    both.fill("c", [raw(document) for document in operation.documents(n)])


def compare(both, operation, n):
    """Compares the answers to the first run; gives MongoDB's time."""
    request = encoded(operation.request(n, 0))
    start = time.perf_counter()
    if "find" in request or "aggregate" in request:
        both._drain("oracle", request)
        seconds = time.perf_counter() - start
        both.rows(request)
        return seconds
    both.same(request)
    seconds = time.perf_counter() - start
    if operation.leaves():
        both.rows(operation.leaves())
    return seconds


def least_time(both, operation, n, before):
    """Pando's least time. The first run of a write was made already."""
    runs = range(RUNS) if operation.leaves() is None else range(1, RUNS)
    seconds = min(timed(both, operation.request(n, run)) for run in runs)
    for _ in range(RETRIALS):
        if operation.leaves() is not None or not too_long(before, seconds):
            break
        seconds = min(seconds, timed(both, operation.request(n, 0)))
    return seconds


def timed(both, request):
    request = encoded(request)
    start = time.perf_counter()
    both.ask_pando(request)
    return time.perf_counter() - start


def encoded(request):
    """A request with its documents encoded, so that only the server takes time."""
    return {name: [raw(item) for item in value] if isinstance(value, list) else raw(value) for name, value in request.items()}


def raw(part):
    return RawBSONDocument(bson.encode(part)) if isinstance(part, dict) else part


def too_long(before, seconds):
    grows = lambda since, most: seconds > most * max(since, 0.001)
    is_last = len(before) + 1 == len(SIZES)
    return bool(before) and seconds > FLOOR and (grows(before[-1], STEP_MAX) or is_last and grows(before[0], GROWTH_MAX))
