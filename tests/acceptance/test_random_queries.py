"""Random documents and random requests from a grammar: both servers answer alike, whatever indexes Pando has.

Each test has a seed, which is in its name; what differs is made small and shown as one insert and one request. The seeds start at
PANDO_ACCEPTANCE_SEED (1 unless told otherwise), to try others; PANDO_ACCEPTANCE_ROUNDS makes as many seeds of each test
that asks MongoDB (`make acceptance-queries`, `make acceptance-pipelines`). MongoDB has indexes only where they can refuse
documents: else a scan is the definition.
"""

import contextlib
import enum
import os

import bson
import pytest
from bson.errors import BSONError, InvalidBSON
from pymongo.errors import PyMongoError

from both import Both, Difference, Order, readable
from grammar import Grammar
from pipelines import Pipelines
from shrink import shrink

SEED = int(os.environ.get("PANDO_ACCEPTANCE_SEED", "1"))
ROUNDS = int(os.environ.get("PANDO_ACCEPTANCE_ROUNDS", "0"))
SHOWN = 6
INDEXES = {
    "no index": [],
    "single": [{"a": 1}, {"b": -1}, {"c": 1}],
    "compound": [{"a": 1, "d": -1}, {"d": 1, "b": 1}],
    "nested": [{"a.b": 1}, {"b.a": -1, "d": 1}, {"a.0": 1}],
    "with _id": [{"d": 1, "_id": -1}, {"a": 1, "_id": 1}],
    "sparse": [{"a": 1}, {"c": 1}, {"a.b": 1, "d": 1}],
    "multikey": [{"a.b": 1, "a.c": -1, "d": 1}, {"d": -1, "a": 1, "_id": 1}, {"b": 1, "c": 1}, {"b.a": 1, "b.b": 1}, {"c": -1}],
    "unique": [{"a": 1, "_id": 1}, {"_id": -1, "b": 1}, {"d": 1, "_id": 1, "c": -1}],
    "all": [{"a": 1}, {"b": 1}, {"d": 1, "a": 1}, {"a.b": 1}, {"c": -1, "d": -1}, {"_id": 1, "a": 1}],
}


def seeds(usual):
    """The seeds of a test that asks MongoDB."""
    return range(SEED, SEED + (ROUNDS or usual))


class On(enum.Enum):
    """Which servers have the indexes."""

    PANDO = 0
    BOTH = 1


def create_indexes(both, collection, configuration, where):
    options = {configuration: True} if configuration in ("sparse", "unique") else {}
    specs = [{"key": key, "name": str(at), **options} for at, key in enumerate(INDEXES[configuration])]
    for client in [both.pando] + [both.oracle] * (where is On.BOTH):
        if specs:
            reply = client[both.name].command({"createIndexes": collection, "indexes": specs})
            assert reply["numIndexesAfter"] == len(specs) + 1


def refill(both, collection, documents):
    # Not compared: a request before may have left different documents.
    both.same({"delete": collection, "deletes": [{"q": {}, "limit": 0}]}, ignore=["n"])
    if documents:
        # A unique or compound index may refuse some, on both servers if both have it.
        both.same({"insert": collection, "documents": documents, "ordered": False})


def order_of(request):
    return Order.DEFINED if "sort" in request else Order.FREE


class Search:
    """Asks requests about documents, and keeps what differs."""

    def __init__(self, both, configuration, ask, where=On.PANDO):
        self.both, self.ask, self.found = both, ask, []
        create_indexes(both, "c", configuration, where)
        create_indexes(both, "small", configuration, where)

    def difference(self, collection, request):
        try:
            self.ask(self.both, collection, request)
        except Difference as difference:
            return difference
        except InvalidBSON:
            # MongoDB's parser of dates quotes single bytes of what it cannot read. Pando's text has to be text.
            both = Both(self.both.pando, self.both.pando, self.both.name)
            self.ask(both, collection, request)
        return None

    def run(self, documents, requests):
        refill(self.both, "c", documents)
        for request in requests:
            difference = self.difference("c", request)
            if difference and len(self.found) < SHOWN:
                self.keep(documents, request, difference)

    def keep(self, documents, request, difference):
        """Keeps the text of the smallest case with this difference, as long as its order is defined.

        A request with two faults may be refused for either. So two codes are no difference if both servers refuse a part of the
        request with the one, and another part with the other.
        """
        alike = set()

        def still_fails(some_documents, part):
            if not has_order(part.get("pipeline", [])):
                return False
            found = self.on_small(some_documents, part)
            alike.add(None if found else self.both.refused_with)
            return found is not None and found.codes == difference.codes

        documents, request = shrink(documents, request, still_fails)
        last = self.on_small(documents, request)
        if last is None or last.codes is None or not alike.issuperset(last.codes):
            self.found.append(f"insert {[readable(document) for document in documents]}{last or difference}")

    def on_small(self, documents, request):
        """The difference on a collection of these documents only."""
        try:
            refill(self.both, "small", documents)
            return self.difference("small", request)
        except (Difference, PyMongoError, BSONError, KeyError, IndexError, StopIteration, TypeError):
            return None

    def report(self, seed):
        assert not self.found, f"seed {seed}: {len(self.found)} or more requests differ\n" + "\n\n".join(self.found)


# Stages behind which a sort has to stand, so that the order of what they give is defined.
OPEN = {"$group", "$bucket", "$sortByCount", "$graphLookup"}


class End(enum.Enum):
    """Where the documents of a pipeline go: into an answer, whose order is not compared, or into an array."""

    ANSWER = 0
    ARRAY = 1


def has_order(pipeline, end=End.ANSWER):
    """Whether a sort, or the stage that sorts a found array, stands behind each stage without an order of its own, in inner pipelines too."""
    stages = [next(iter(stage.items()), ("", None)) for stage in pipeline if isinstance(stage, dict)]
    for at, (name, argument) in enumerate(stages):
        behind = stages[at + 1][0] if at + 1 < len(stages) else None
        # Of documents with equal keys a limit may leave any.
        if name == "$sort" and behind == "$limit" and "_id" not in argument:
            return False
        may_stay_open = behind is None and end is End.ANSWER
        if name in OPEN and behind not in ("$sort", "$set") and not may_stay_open:
            return False
        inner = argument.values() if isinstance(argument, dict) and name in ("$facet", "$lookup", "$unionWith") else ()
        inner_end = end if name == "$unionWith" else End.ARRAY
        if not all(has_order(part, inner_end) for part in inner if isinstance(part, list)):
            return False
    return True


def ask_find(both, collection, request):
    both.rows({"find": collection, **request}, order=order_of(request))


def ask_count(both, collection, request):
    both.same({"count": collection, **request})


def naming(value, collection):
    """The value with the collection in the place of `c` where a stage names one."""
    if isinstance(value, dict):
        return {name: collection if name in ("coll", "from") and inner == "c" else naming(inner, collection) for name, inner in value.items()}
    return [naming(inner, collection) for inner in value] if isinstance(value, list) else value


def ask_pipeline(both, collection, request):
    both.rows({"aggregate": collection, **naming(request, collection)}, order=Order.FREE)


@pytest.mark.parametrize("configuration", INDEXES)
@pytest.mark.parametrize("seed", seeds(3))
def test_random_finds(both, configuration, seed):
    grammar = Grammar(f"find {seed}")
    search = Search(both, configuration, ask_find, On.BOTH if configuration in ("multikey", "unique") else On.PANDO)
    for _ in range(3):
        search.run(grammar.documents(40), [grammar.find() for _ in range(120)])
    search.report(seed)


@pytest.mark.parametrize("configuration", ["no index", "single", "all"])
@pytest.mark.parametrize("seed", seeds(1))
def test_random_counts(both, configuration, seed):
    grammar = Grammar(f"count {seed}")
    search = Search(both, configuration, ask_count)
    search.run(grammar.documents(60), [{"query": grammar.filter()} for _ in range(200)])
    search.report(seed)


@pytest.mark.parametrize("configuration", ["no index", "all"])
@pytest.mark.parametrize("seed", seeds(2))
def test_random_pipelines(both, configuration, seed):
    grammar = Grammar(f"pipeline {seed}")
    search = Search(both, configuration, ask_pipeline)
    for _ in range(2):
        search.run(grammar.documents(25), [{"pipeline": grammar.pipeline()} for _ in range(150)])
    search.report(seed)


@pytest.mark.parametrize("configuration", ["no index", "all"])
@pytest.mark.parametrize("seed", seeds(2))
def test_random_pipelines_of_all_stages(both, configuration, seed):
    grammar = Grammar(f"stages {seed}")
    pipelines, search = Pipelines(grammar), Search(both, configuration, ask_pipeline)
    for _ in range(2):
        search.run(grammar.documents(20), [{"pipeline": pipelines.pipeline()} for _ in range(150)])
    search.report(seed)


@pytest.mark.parametrize("seed", seeds(2))
def test_random_expressions(both, seed):
    """All operators, in pipelines and as a condition."""
    grammar = Grammar(f"expressions {seed}")
    search = Search(both, "no index", ask_pipeline)
    for _ in range(2):
        search.run(grammar.documents(12), [{"pipeline": [{"$sort": {"_id": 1}}, grammar.computing_stage()]} for _ in range(150)])
    search.report(seed)


# ---- updates: indexes can refuse what is updated (parallel arrays), so both servers have them


@contextlib.contextmanager
def after(request):
    """Shows the update after which a document differs."""
    try:
        yield
    except Difference as difference:
        difference.args = (f"\n  after:   {readable(request)}{difference}",)
        raise


def ask_update(both, collection, request):
    both.same({"update": collection, "updates": [request]})
    refused_with = both.refused_with
    with after(request):
        both.rows({"find": collection, "filter": {"_id": request["q"]["_id"]}})
    both.refused_with = refused_with


@pytest.mark.parametrize("configuration", ["no index", "all"])
@pytest.mark.parametrize("seed", seeds(2))
def test_random_updates(both, configuration, seed):
    grammar = Grammar(f"update {seed}")
    search = Search(both, configuration, ask_update, On.BOTH)
    for _ in range(300):
        document = grammar.document(grammar.random.randint(1, 3))
        search.run([document], [{"q": grammar.selecting(document["_id"]), **grammar.update()}])
    search.report(seed)


def ask_upsert(both, collection, request):
    both.same({"update": collection, "updates": [request]}, ignore=["upserted.*._id"])
    refused_with = both.refused_with
    with after(request):
        both.same({"find": collection}, ignore=["cursor.firstBatch.*._id"])
    both.refused_with = refused_with


@pytest.mark.parametrize("seed", seeds(1))
def test_random_upserts(both, seed):
    grammar = Grammar(f"upsert {seed}")
    search = Search(both, "no index", ask_upsert)
    for _ in range(200):
        search.run([], [{"q": grammar.filter(), **grammar.update(), "upsert": True}])
    search.report(seed)


# ---- Pando alone: whichever way it takes, it finds the same


@pytest.mark.parametrize("configuration", [name for name in INDEXES if INDEXES[name]])
@pytest.mark.parametrize("seed", [SEED, SEED + 1])
def test_every_index_gives_what_a_scan_gives(both, configuration, seed):
    """The same documents by every index, and with a sort the same order up to equal keys."""
    grammar = Grammar(f"ways {seed}")
    create_indexes(both, "c", configuration, On.BOTH)
    refill(both, "c", grammar.documents(60))
    for _ in range(250):
        query = grammar.filter_without_expressions()
        pattern = grammar.pattern(INDEXES[configuration]) if grammar.chance(0.6) else None
        classes = classes_of_scan(both, query, pattern)
        if classes is None:
            continue
        for hint in [None, {"$natural": -1}, *map(str, range(len(INDEXES[configuration])))]:
            if hint and configuration == "sparse":
                continue  # A hint on a sparse index leaves documents out, in MongoDB as here.
            found = iter(ids(both, query, pattern, hint))
            for known in classes:
                assert {next(found, None) for _ in known} == known, f"seed {seed}: {readable(query)} {pattern} by {hint} of {configuration}"
            assert next(found, None) is None


def ids(both, query, pattern, hint):
    request = {"find": "c", "filter": query, "projection": {"_id": 1}, "batchSize": 1000, **({"sort": pattern} if pattern else {}),
               **({"hint": hint} if hint else {})}
    reply = bson.decode(both.ask_pando(request))
    assert reply["ok"], reply
    return [document["_id"] for document in reply["cursor"]["firstBatch"]]


def classes_of_scan(both, query, pattern):
    """The ids that a scan finds, as sets of equal sort keys: ids whose order changes when ties are broken the other way.
    None if the request is refused."""
    scan = {"$natural": 1}
    try:
        if pattern is None:
            return [set(ids(both, query, None, scan))]
        forwards, backwards = (ids(both, query, {**pattern, "_id": tie}, scan) for tie in (1, -1))
    except AssertionError:
        return None
    place = {found: at for at, found in enumerate(backwards)}
    classes = []
    for found in forwards:
        if classes and place[found] < min(place[known] for known in classes[-1]):
            classes[-1].add(found)
        else:
            classes.append({found})
    return classes


@pytest.mark.parametrize("configuration", ["single", "all"])
def test_indexes_are_right_after_many_updates(both, configuration):
    """After random updates, replacements and deletes every index of Pando still finds what a scan finds."""
    grammar = Grammar(f"index {SEED}")
    create_indexes(both, "c", configuration, On.BOTH)
    both.same({"insert": "c", "documents": grammar.documents(60)})
    for _ in range(200):
        query = {"_id": grammar.random.randrange(60)}
        if grammar.chance(0.1):
            both.ask_pando({"delete": "c", "deletes": [{"q": query, "limit": 1}]})
        else:
            both.ask_pando({"update": "c", "updates": [{"q": query, **grammar.update(), "upsert": grammar.chance(0.2)}]})
    assert both.pando[both.name].c.count_documents({}) > 20
    for _ in range(150):
        filter = grammar.filter_without_expressions()
        request = {"find": "c", "filter": filter, "sort": {"_id": 1}, "batchSize": 1000}
        scanned = both.ask_pando({**request, "hint": {"$natural": 1}})
        for at, key in enumerate(INDEXES[configuration]):
            assert both.ask_pando({**request, "hint": str(at)}) == scanned, f"seed {SEED}: {readable(filter)} by index {key}"
