"""Collations through PyMongo: of requests, of collections, of indexes and of views."""

import random

import pytest
from pymongo import DeleteMany, UpdateOne
from pymongo.collation import Collation
from pymongo.errors import DuplicateKeyError, OperationFailure, WriteError

WORDS = ["x", "X", "y", "é", "e", "É", "Z", "a10", "a2", "A-2", "a 2", "", "ß", "ss", "æ", "ae", "ö", "o", "zz"]
NO_CASE = {"locale": "en", "strength": 2}
NO_ACCENTS = {"locale": "en", "strength": 1}
SIMPLE = {"locale": "simple"}


@pytest.fixture
def words(db):
    db.words.insert_many({"_id": at, "s": word, "n": at % 3, "o": {"s": word}, "l": [word, at]} for at, word in enumerate(WORDS))
    return db.words


@pytest.fixture
def folded(db):
    """A collection whose strings compare without case."""
    folded = db.create_collection("folded", collation=NO_CASE)
    folded.insert_many([{"_id": 1, "a": "x"}, {"_id": 2, "a": "X"}, {"_id": 3, "a": "y"}])
    return folded


def ids(cursor):
    return sorted(found["_id"] for found in cursor)


def plan_of(collection, **command):
    answer = collection.database.command({"explain": {**command}, "verbosity": "queryPlanner"})
    return answer["queryPlanner"]


def refusal(action):
    with pytest.raises(OperationFailure) as refused:
        action()
    return refused.value.code


def test_filters_compare_by_the_collation_of_the_request(words):
    def find(filter, collation=NO_CASE):
        return ids(words.find(filter).collation(Collation(**collation)))

    assert find({"s": "X"}) == [0, 1]
    assert ids(words.find({"s": "X"})) == [1]
    assert find({"s": "X"}, SIMPLE) == [1]
    assert find({"s": {"$in": ["É", "Y"]}}) == [2, 3, 5]
    assert find({"s": "e"}, NO_ACCENTS) == [3, 4, 5]
    assert find({"s": {"$gt": "y"}}) == [6, 18]
    assert find({"s": {"$ne": "X"}}) == [at for at in range(len(WORDS)) if at > 1]
    assert find({"o": {"s": "X"}}) == [0, 1]
    assert find({"l": {"$elemMatch": {"$eq": "X"}}}) == [0, 1]
    assert find({"l": {"$all": ["X"]}}) == [0, 1]
    assert find({"l": ["X", 0]}) == [0]
    assert find({"$expr": {"$eq": ["$s", "X"]}}) == [0, 1]
    assert find({"s": {"$regex": "^X"}}) == [1]
    assert find({"s": {"$not": {"$eq": "X"}}}) == find({"s": {"$nin": ["x"]}})


def test_sorts_and_distinct_values_follow_the_collation(words):
    by = lambda collation: [found["s"] for found in words.find({"n": {"$gte": 0}}).sort([("s", 1), ("_id", 1)]).collation(collation)]
    numeric = by(Collation("en", numericOrdering=True))
    assert numeric.index("a2") < numeric.index("a10")
    plain = by(Collation("en"))
    assert plain.index("a10") < plain.index("a2")
    assert by(Collation("sv"))[-2:] == ["æ", "ö"]
    backwards = [found["s"] for found in words.find().sort([("s", -1)]).collation(Collation("en"))]
    assert backwards == list(reversed(plain))
    assert words.distinct("s", {"s": {"$in": ["x", "é"]}}, collation=Collation("en", strength=1)) == ["é", "x"]
    assert words.count_documents({"s": "SS"}, collation=Collation("de", strength=1)) == 2


def test_groups_and_expressions_follow_the_collation(folded):
    groups = list(folded.aggregate([{"$group": {"_id": "$a", "n": {"$sum": 1}, "all": {"$addToSet": "$a"}}}, {"$sort": {"_id": 1}}]))
    assert [(group["n"], len(group["all"])) for group in groups] == [(2, 1), (1, 1)]
    assert [row["count"] for row in folded.aggregate([{"$sortByCount": "$a"}])] == [2, 1]
    expressions = {
        "eq": {"$eq": ["A", "a"]}, "cmp": {"$cmp": ["a", "A"]}, "in": {"$in": ["A", ["a"]]}, "at": {"$indexOfArray": [["q", "A"], "a"]},
        "union": {"$setUnion": [["a", "A", "b"]]}, "less": {"$setDifference": [["a", "b"], ["A"]]}, "same": {"$setEquals": [["a"], ["A"]]},
        "part": {"$setIsSubset": [["a"], ["A"]]}, "max": {"$max": ["B", "a"]}, "sorted": {"$sortArray": {"input": ["b", "A", "a", "B"], "sortBy": 1}},
        "first": {"$minN": {"n": 2, "input": ["B", "a", "C"]}}, "text": {"$indexOfCP": ["A", "a"]}, "kept": {"$filter": {"input": ["a", "A", "b"], "cond": {"$eq": ["$$this", "A"]}}},
        "long": {"$in": ["Q", {"$concatArrays": [[f"p{at}" for at in range(300)], ["q"]]}]},
    }
    assert next(folded.aggregate([{"$limit": 1}, {"$project": {"_id": 0, **expressions}}])) == {
        "eq": True, "cmp": 0, "in": True, "at": 1, "union": ["a", "b"], "less": ["b"], "same": True, "part": True, "max": "B",
        "sorted": ["A", "a", "b", "B"], "first": ["a", "B"], "text": -1, "kept": ["a", "A"], "long": True,
    }
    ranks = folded.aggregate([{"$setWindowFields": {"partitionBy": None, "sortBy": {"a": 1}, "output": {"rank": {"$rank": {}}}}}])
    assert [row["rank"] for row in ranks] == [1, 1, 3]
    assert next(folded.aggregate([{"$bucket": {"groupBy": "$a", "boundaries": ["A", "Y", "z"]}}]))["count"] == 2


def test_joins_follow_the_collation_of_the_pipeline(db, folded):
    db.plain.insert_many([{"_id": 1, "a": "x"}, {"_id": 2, "a": "X"}, {"_id": 3, "a": "y"}])
    lookup = lambda name: {"$lookup": {"from": name, "localField": "a", "foreignField": "a", "as": "found"}}
    numbers = lambda cursor: [len(row["found"]) for row in cursor]
    assert numbers(folded.aggregate([lookup("plain")])) == [2, 2, 1]
    assert numbers(db.plain.aggregate([lookup("folded")])) == [1, 1, 1]
    graph = {"$graphLookup": {"from": "plain", "startWith": "$a", "connectFromField": "a", "connectToField": "a", "as": "found"}}
    assert numbers(folded.aggregate([graph])) == [2, 2, 1]
    union = {"$unionWith": {"coll": "plain", "pipeline": [{"$match": {"a": "x"}}]}}
    assert len(list(folded.aggregate([union]))) == 5


def test_updates_follow_the_collation(folded):
    folded.insert_one({"_id": 10, "t": ["a", "B"], "m": "b"})
    after = lambda update, **options: folded.find_one_and_update({"_id": 10}, update, return_document=True, **options)
    assert after({"$addToSet": {"t": {"$each": ["A", "c"]}}})["t"] == ["a", "B", "c"]
    assert after({"$pull": {"t": "b"}})["t"] == ["a", "c"]
    assert after({"$pullAll": {"t": ["A"]}})["t"] == ["c"]
    assert after({"$min": {"m": "B"}})["m"] == "b"
    assert after({"$max": {"m": "C"}})["m"] == "C"
    assert after({"$push": {"t": {"$each": ["b", "A", "a"], "$sort": 1}}})["t"] == ["A", "a", "b", "c"]
    assert after({"$set": {"t.$[e]": "Z"}}, array_filters=[{"e": "a"}])["t"] == ["Z", "Z", "b", "c"]
    assert folded.find_one_and_update({"t": "C"}, {"$set": {"t.$": "q"}}, return_document=True)["t"] == ["Z", "Z", "b", "q"]
    assert folded.update_many({"a": "X"}, {"$set": {"seen": 1}}).modified_count == 2
    assert folded.update_many({"a": "X"}, {"$set": {"seen": 2}}, collation=Collation("simple")).modified_count == 1
    done = folded.bulk_write([UpdateOne({"a": "Y"}, {"$set": {"y": 1}}), DeleteMany({"a": "X"}, collation=Collation("simple"))])
    assert (done.modified_count, done.deleted_count) == (1, 1)
    assert folded.delete_many({"a": "X"}).deleted_count == 1


def test_a_collection_keeps_its_collation_and_gives_it_to_its_indexes(db, folded):
    options = next(db.list_collections(filter={"name": "folded"}))["options"]["collation"]
    assert options.pop("version") and options == {
        "locale": "en", "caseLevel": False, "caseFirst": "off", "strength": 2, "numericOrdering": False, "alternate": "non-ignorable",
        "maxVariable": "punct", "normalization": False, "backwards": False}
    folded.create_index("a")
    folded.create_index("a", name="simple", collation=SIMPLE)
    folded.create_index("a", name="french", collation={"locale": "fr"})
    listed = {index["name"]: index.get("collation", {}).get("locale") for index in folded.list_indexes()}
    assert listed == {"_id_": "en", "a_1": "en", "simple": None, "french": "fr"}
    assert ids(folded.find({"a": "X"})) == [1, 2]
    assert ids(folded.find({"a": "X"}).collation(SIMPLE)) == [2]
    assert folded.count_documents({"a": "X"}) == 2
    assert "a_1" in str(plan_of(folded, find="folded", filter={"a": "X"}))
    assert "simple" in str(plan_of(folded, find="folded", filter={"a": "X"}, collation=SIMPLE)["winningPlan"])
    assert "COLLSCAN" in str(plan_of(folded, find="folded", filter={"a": "X"}, collation={"locale": "it"}))
    assert "IXSCAN" in str(plan_of(folded, find="folded", filter={"a": 1}, collation={"locale": "it"}))
    shown = plan_of(folded, find="folded", filter={"a": "X"})
    assert shown["collation"]["strength"] == 2
    assert "CollationKey(0x" in str(shown["winningPlan"]) and "'collation': {'locale': 'en'" in str(shown["winningPlan"])


def test_keys_are_unique_by_the_collation_of_their_index(db, folded):
    folded.insert_one({"_id": "a"})
    with pytest.raises(DuplicateKeyError) as taken:
        folded.insert_one({"_id": "A"})
    details = taken.value.details
    assert details["keyPattern"] == {"_id": 1} and details["hexEncoded"] == [True] and details["collation"]["locale"] == "en"
    assert "index: _id_ collation: { locale: \"en\"" in details["errmsg"] and f"dup key: {{ _id: \"0x{details['keyValue']['_id']}\" }}" in details["errmsg"]
    assert folded.find_one({"_id": "A"}) == {"_id": "a"}
    assert folded.find_one({"_id": "A"}, collation=SIMPLE) is None
    assert folded.find_one({"_id": "a"}, collation=SIMPLE) == {"_id": "a"}
    assert folded.update_one({"_id": "A"}, {"$set": {"seen": 1}}).modified_count == 1
    assert folded.delete_one({"_id": "A"}).deleted_count == 1
    db.plain.create_index("u", unique=True, collation=NO_ACCENTS)
    db.plain.insert_many([{"u": "e"}, {"u": "f"}, {"u": 1}])
    with pytest.raises(DuplicateKeyError):
        db.plain.insert_one({"u": "É"})
    db.plain.insert_many([{"_id": 1, "w": "q"}, {"_id": 2, "w": "Q", "u": 2}])
    assert refusal(lambda: db.plain.create_index("w", unique=True, collation=NO_CASE)) == 11000


@pytest.mark.needs("unshared collections")
def test_layouts_keep_ids_by_the_collation(db):
    for name, options in {"heap": {"layout": "heap"}, "keyed": {"primaryKey": {"a": 1, "_id": 1}}, "clustered": {"clusteredIndex": {"key": {"_id": 1}, "unique": True}}}.items():
        db.command({"create": name, "collation": NO_CASE, **options})
        db[name].insert_many([{"_id": "b", "a": "q"}, {"_id": "C", "a": "Q"}])
        with pytest.raises(DuplicateKeyError):
            db[name].insert_one({"_id": "B", "a": "q"})
        assert db[name].find_one({"_id": "B"})["_id"] == "b"
        assert [found["_id"] for found in db[name].find().sort("_id", 1)] == ["b", "C"]
        assert ids(db[name].find({"a": "Q"})) == ["C", "b"]
        assert db.command("validate", name)["valid"]


def test_views_have_a_collation_of_their_own(db, folded):
    db.create_collection("plain_view", viewOn="folded", pipeline=[])
    db.create_collection("folded_view", viewOn="folded", pipeline=[{"$match": {"a": "X"}}], collation=NO_CASE)
    assert ids(db.plain_view.find({"a": "X"})) == [2]
    assert ids(db.folded_view.find()) == [1, 2]
    assert db.folded_view.distinct("a") == ["x"] and db.plain_view.distinct("a") == ["X", "x", "y"]
    assert db.folded_view.count_documents({"a": "x"}) == 2
    for read in (lambda: list(db.plain_view.find().collation(NO_CASE)), lambda: db.folded_view.distinct("a", collation=SIMPLE),
                 lambda: list(db.folded_view.aggregate([], collation={"locale": "fr"})),
                 lambda: db.create_collection("mixed", viewOn="folded_view", pipeline=[]),
                 lambda: list(folded.aggregate([{"$unionWith": "plain_view"}]))):
        assert refusal(read) == 167
    assert len(list(folded.aggregate([{"$unionWith": "folded_view"}]))) == 5
    assert next(db.list_collections(filter={"name": "folded_view"}))["options"]["collation"]["strength"] == 2


@pytest.mark.parametrize("collation,code", [
    ({"strength": 2}, 40414), ({"foo": 1}, 40415), ({"locale": "xx"}, 2), ({"locale": "en_GB"}, 2), ({"locale": "en", "strength": 9}, 51024),
    ({"locale": "en", "strength": 0}, 2), ({"locale": 1}, 14), ({"locale": "en", "caseLevel": 1}, 14), ({"locale": "en", "alternate": "x"}, 2),
    ({"locale": "en", "caseFirst": "upper", "strength": 1}, 2), ({"locale": "en", "backwards": True, "strength": 1}, 2),
    ({"locale": "en", "version": "58"}, 161), ({"locale": "en@collation=search"}, 115), ({"locale": "zh@collation=gb2312han"}, 115),
], ids=repr)
def test_wrong_specifications_are_refused(db, collation, code):
    db.c.insert_one({"_id": 1})
    for command in ({"find": "c"}, {"count": "c"}, {"distinct": "c", "key": "a"}, {"aggregate": "c", "pipeline": [], "cursor": {}},
                    {"findAndModify": "c", "remove": True}, {"explain": {"find": "c", "collation": collation}}, {"create": "d"},
                    {"create": "v", "viewOn": "c"}):
        assert refusal(lambda: db.command({**command, **({} if "explain" in command else {"collation": collation})})) == code
    assert refusal(lambda: db.c.create_index("a", collation=collation)) == code
    with pytest.raises(WriteError) as refused:
        db.c.update_one({}, {"$set": {"a": 1}}, collation=collation)
    assert refused.value.code == code
    assert db.c.find_one() == {"_id": 1}


def test_options_that_do_not_go_together_are_refused(db, folded):
    for kind in ("text", "2d"):
        assert refusal(lambda: folded.create_index([("k", kind)])) == 67
        folded.create_index([("k", kind)], collation=SIMPLE)
    folded.create_index([("a", "hashed")], collation=SIMPLE)
    assert ids(folded.find({"a": "X"})) == [1, 2]
    assert refusal(lambda: db.command({"createIndexes": "folded", "indexes": [{"key": {"_id": 1}, "name": "_id_", "collation": SIMPLE}]})) == 2
    assert refusal(lambda: db.command({"create": "e", "collation": NO_CASE, "idIndex": {"key": {"_id": 1}, "name": "_id_", "collation": {"locale": "fr"}}})) == 2
    folded.create_index("n")
    folded.create_index("n", name="n_simple", collation=SIMPLE)
    assert refusal(lambda: list(folded.find().hint([("n", 1)]))) == 27
    assert refusal(lambda: list(folded.find().hint("n_simple").min([("n", "s")]))) == 51174
    assert list(folded.find({}, {"_id": 1}).hint("n_simple").min([("n", 5)])) == []


def test_partial_indexes_have_documents_by_their_collation(db):
    db.p.create_index("u", unique=True, collation=NO_CASE, partialFilterExpression={"a": "x"})
    db.p.insert_many([{"a": "X", "u": "q"}, {"a": "z", "u": "q"}])
    with pytest.raises(DuplicateKeyError):
        db.p.insert_one({"a": "x", "u": "Q"})
    assert "IXSCAN" in str(plan_of(db.p, find="p", filter={"a": "X", "u": "Q"}, collation=NO_CASE))
    assert "COLLSCAN" in str(plan_of(db.p, find="p", filter={"a": "x", "u": "q"}))


def test_merges_and_replacements_keep_the_collation_of_the_target(db):
    db.source.insert_many([{"_id": 1, "k": "a"}, {"_id": 2, "k": "B"}])
    target = db.create_collection("target", collation=NO_CASE)
    target.create_index("k", unique=True)
    target.insert_one({"_id": 7, "k": "A"})
    stage = {"$merge": {"into": "target", "on": "k", "whenMatched": [{"$set": {"met": "$$new._id"}}]}}
    db.source.aggregate([{"$project": {"k": 1}}, stage], collation=NO_CASE)
    assert list(target.find({}, {"_id": 0}).sort("k", 1)) == [{"k": "A", "met": 1}, {"k": "B"}]
    db.source.aggregate([{"$out": "target"}])
    assert next(db.list_collections(filter={"name": "target"}))["options"]["collation"]["strength"] == 2
    assert target.find_one({"k": "b"})["_id"] == 2


FILTERS = [{"s": "X"}, {"s": {"$gt": "a2"}}, {"s": {"$lte": "Z"}}, {"s": {"$in": ["E", "SS", 3, None]}}, {"s": {"$ne": "ae"}}, {"s": {"$gte": "", "$lt": "y"}},
           {"s": {"$type": "string"}}, {"s": {"$regex": "^a"}}, {"n": 1, "s": "o"}, {"$or": [{"s": "X"}, {"n": 2, "s": {"$gt": "o"}}]}, {"l": "e"}, {"o": {"s": "X"}},
           {"l": {"$elemMatch": {"$gt": "o", "$lt": "y"}}}, {"s": {"$not": {"$gt": "e"}}}, {"o.s": {"$nin": ["X", "é"]}}, {"s": {"$exists": True}}, {"s": {"$gt": 1}}, {"s": 5}, {"_id": {"$in": ["é", "Z"]}}]
SORTS = [[("s", 1), ("_id", 1)], [("n", 1), ("s", -1), ("_id", 1)], [("o.s", 1), ("_id", -1)], [("_id", 1)]]
COLLATIONS = [None, SIMPLE, NO_CASE, NO_ACCENTS, {"locale": "sv"}, {"locale": "en", "numericOrdering": True, "alternate": "shifted", "strength": 1},
              {"locale": "fr_CA"}, {"locale": "de@collation=phonebook", "caseFirst": "upper"}]


@pytest.mark.parametrize("default", [None, NO_CASE, {"locale": "fr_CA"}], ids=repr)
def test_indexes_change_no_answer(db, default):
    """Each query asks a collection without indexes and one with indexes of several collations."""
    chance = random.Random(7)
    documents = []
    for at in range(120):
        word = "".join(chance.choice(WORDS) for _ in range(chance.randint(1, 2)))
        value = chance.choice([word, word, word, at % 7, None, [word, "X", at % 5], {"s": word}])
        documents.append({"_id": at if at % 2 else f"{at}{word}", "s": value, "n": at % 3, "o": {"s": word}, "l": [word, at % 4]})
    options = {} if default is None else {"collation": default}
    for name in ("bare", "indexed"):
        db.create_collection(name, **options).insert_many(documents)
    for at, collation in enumerate(COLLATIONS):
        for key in ([("s", 1)], [("n", 1), ("s", -1)], [("l", 1)], [("o.s", -1), ("n", 1)], [("o", 1)]):
            kept = {} if collation is None else {"collation": collation}
            try:
                db.indexed.create_index(key, name=f"{at}{key}", **kept)
            except OperationFailure as refused:
                # Without a word an index has the collation of its collection.
                assert refused.code == 85
    hints = [name for name in db.indexed.index_information() if name.endswith(("[('s', 1)]", "[('l', 1)]"))][::3]
    assert db.command("validate", "indexed")["valid"]
    for collation in COLLATIONS:
        for filter in FILTERS:
            def found(name, sort=None, hint=None):
                cursor = db[name].find(filter, {"_id": 1})
                cursor = cursor if collation is None else cursor.collation(collation)
                cursor = cursor if sort is None else cursor.sort(sort)
                cursor = cursor if hint is None else cursor.hint(hint)
                return [row["_id"] for row in cursor]

            wanted = sorted(found("bare"), key=str)
            assert sorted(found("indexed"), key=str) == wanted, (collation, filter)
            for hint in chance.sample(hints, 2):
                assert sorted(found("indexed", hint=hint), key=str) == wanted, (collation, filter, hint)
            for sort in chance.sample(SORTS, 2):
                assert found("indexed", sort) == found("bare", sort), (collation, filter, sort)
            kept = {} if collation is None else {"collation": collation}
            assert db.indexed.count_documents(filter, **kept) == len(wanted)
            path = chance.choice(["s", "n", "o.s", "l"])
            assert len(db.indexed.distinct(path, filter, **kept)) == len(db.bare.distinct(path, filter, **kept)), (collation, filter, path)


@pytest.mark.parametrize("key", [[("s", "hashed")], [("o", "hashed")], [("n", 1), ("s", "hashed")], [("s", 1), ("n", "hashed")], [("$**", 1)], [("o.$**", 1)],
                                 [("p", "2dsphere"), ("s", 1)], [("s", 1), ("p", "2dsphere")]], ids=str)
def test_indexes_of_every_kind_follow_their_collation(db, key):
    rows = [{"_id": at, "s": word, "n": at % 3, "o": {"s": word, "n": at % 3}, "p": [at, at]} for at, word in enumerate(WORDS)]
    plain, indexed = (db.create_collection(name, collation=NO_CASE) for name in ("plain", "indexed"))
    indexed.create_index(key, name="k")
    for collection in (plain, indexed):
        collection.insert_many(rows)
    near = {"p": {"$geoWithin": {"$centerSphere": [[5, 5], 0.2]}}}
    used = set()
    for word in WORDS:
        for query in ({"s": word}, {"s": {"$in": [word, "E"]}}, {"s": {"$gt": word}}, {"o.s": word}, {"o": {"s": word, "n": 1}}, {"n": 1, "s": word}, {"s": word, **near}, {"s": {"$lte": word}, **near}):
            for collation in (None, NO_ACCENTS, SIMPLE):
                more = {} if collation is None else {"collation": collation}
                assert ids(plain.find(query, **more)) == ids(indexed.find(query, **more)), (query, collation)
                if "IXSCAN" in str(plan_of(indexed, find="indexed", filter=query, **more)):
                    used.add(str(collation))
    # An index of another collation has bounds for values without text alone.
    assert str(None) in used
    indexed.update_many({"s": "x"}, {"$set": {"s": "Changed", "o.s": "Changed"}})
    indexed.delete_many({"s": "Y"})
    assert indexed.database.command("validate", "indexed")["valid"]
    assert ids(indexed.find({"s": "cHANGED"})) == [0, 1] and ids(indexed.find({"s": "y"})) == []


def test_distinct_values_are_the_same_with_an_index_of_another_collation(db):
    db.c.insert_many([{"_id": 1, "m": "A", "k": {"x": 1}}, {"_id": 2}])
    for name in ("m", "k.x", "none"):
        before = db.c.distinct(name, collation=NO_CASE)
        db.c.create_index(name)
        assert db.c.distinct(name, collation=NO_CASE) == before and None not in before
    # As in MongoDB, an index of the own collation gives a null for documents without the field.
    assert db.c.distinct("m") == [None, "A"]
