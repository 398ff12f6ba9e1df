"""The differences from MongoDB 6.0 that are decisions, each with its reason. Whatever is not in these tables is a fault.

* `IGNORED`: fields whose values cannot be equal on two servers, or that only describe the server, by command.
* `NOT_YET`: requests that Pando refuses with a clear error where MongoDB has the feature. A row counts only while Pando does
  refuse, and with one of the two codes; as soon as it answers otherwise, its answer is compared.
* `EXCUSED`: the remaining ones, each with the answers that it covers.
"""

import math
import re
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from typing import Callable

from bson import DatetimeMS, Decimal128, Int64, MaxKey, MinKey

COMMAND_NOT_SUPPORTED = 115
NOT_IMPLEMENTED = 238
ANY = "*"
UNIQUE_BY_SERVER = ["operationTime", "$clusterTime", "electionId", "localTime", "connectionId", "topologyVersion"]

# Command -> paths that are left out of the comparison; the first row holds for all commands.
IGNORED = {
    ANY: UNIQUE_BY_SERVER,
    # Wire version 25: Pando answers as 8.0; topologyVersion would make drivers wait for changes that never come.
    "hello": ["maxWireVersion", "minWireVersion"],
    "isMaster": ["maxWireVersion", "minWireVersion"],
    "ismaster": ["maxWireVersion", "minWireVersion"],
    # Collections have random ids.
    "listCollections": ["cursor.firstBatch.*.info.uuid"],
    # How large files are is the engine's affair, and so is what it tells about itself.
    "collStats": ["storageSize", "freeStorageSize", "totalIndexSize", "totalSize", "indexSizes", "wiredTiger", "betree", "indexDetails",
                  "numOrphanDocs"],
    "dbStats": ["storageSize", "indexSize", "totalSize", "fsUsedSize", "fsTotalSize", "freeStorageSize", "indexFreeStorageSize",
                "totalFreeStorageSize"],
    "listDatabases": ["databases.*.sizeOnDisk", "totalSize", "totalSizeMb"],
    "createIndexes": ["note"],
    # Pando answers as 8.0.
    "getParameter": ["featureCompatibilityVersion.version"],
}


@dataclass(frozen=True)
class NotYet:
    """A feature that is refused until a later release: how to recognise a request that needs it."""

    reason: str
    needs: Callable[[dict], bool]


def _of_collection(field):
    return lambda request: field in request and next(iter(request)) in ("create", "collMod")


def _nests(name, value, within=False):
    """Whether a field of this name stands within another one of it."""
    if isinstance(value, dict):
        return any((within and field == name) or _nests(name, inner, within or field == name) for field, inner in value.items())
    return isinstance(value, list) and any(_nests(name, inner, within) for inner in value)


def _holds(name):
    """Whether a field of this name stands anywhere in the request."""

    def search(value):
        if isinstance(value, dict):
            return name in value or any(map(search, value.values()))
        return isinstance(value, list) and any(map(search, value))

    return search


NOT_YET = [
    NotYet("clustered collections are what all collections are", _of_collection("clusteredIndex")),
    NotYet("TTL of collections comes later", _of_collection("expireAfterSeconds")),
    NotYet("transactions come with a replica set, which MongoDB is not here", _holds("autocommit")),
]


@dataclass(frozen=True)
class Excuse:
    """A difference that is a decision: on which request, with which pair of answers (decoded replies)."""

    reason: str
    covers: Callable[[dict, dict, dict], bool]


def _is_reparsed_all(request, oracle, pando):
    """An empty list of `$all` is `$alwaysFalse` to MongoDB, which it refuses where it parses its own filter again."""
    failed = "Failed to optimize pipeline :: caused by :: unknown "
    made = ("top level operator: $", "operator: $")
    return any(failed + name in str(oracle.get("errmsg")) for name in made) and pando.get("ok") == 1 and _holds("$all")(request)


def _lets_nothing_pass(request, oracle, pando):
    """MongoDB carries nothing out where a filter lets nothing pass, and so meets no error of a stage in front of it."""
    filters = [stage["$match"] for stage in request.get("pipeline", ()) if isinstance(stage, dict) and isinstance(stage.get("$match"), dict)]

    def is_never(filter):
        """Whether a filter, or a part of it that all must pass, lets nothing pass."""
        if not isinstance(filter, dict):
            return False
        nor, parts = filter.get("$nor", ()), filter.get("$and", ())
        return isinstance(nor, list) and {} in nor or isinstance(parts, list) and any(map(is_never, parts))

    never = any(map(is_never, filters))
    failed = str(pando.get("errmsg")).startswith("PlanExecutor error during aggregation")
    return never and failed and oracle.get("ok") == 1 and (oracle.get("documents") == 0 or oracle.get("cursor", {}).get("firstBatch") == [])


def _evaluates_before_unwinding(request, oracle, pando):
    """MongoDB evaluates the $expr of a $match in front of an $unwind whose field it does not look at, and so meets errors at documents that
    the $unwind leaves out."""
    stages = [next(iter(stage.items())) for stage in request.get("pipeline", ()) if isinstance(stage, dict) and stage]
    names = [name for name, _ in stages]
    behind = stages[names.index("$unwind") :] if "$unwind" in names else []
    has_expression = any(name == "$match" and isinstance(filter, dict) and "$expr" in filter for name, filter in behind)
    failed = str(oracle.get("errmsg")).startswith("PlanExecutor error during aggregation")
    return has_expression and failed and pando.get("ok") == 1


def _repeats_at_a_border(request, oracle, pando):
    """MongoDB compares the sort values of $linearFill across the border of two partitions, where they may be equal."""
    repeated = oracle.get("code") == 6050106 and pando.get("ok") == 1
    return repeated and any(_holds(name)(request) for name in ("partitionBy", "partitionByFields"))


def _fails_at_one_of_several_fields(request, oracle, pando):
    """MongoDB computes the constants of a stage's fields in the order of a hash table, which differs from process to process: where
    several cannot be computed, each of their errors may be the one."""
    failed = "Failed to optimize pipeline :: caused by :: "
    stages = [fields for stage in request.get("pipeline", ()) if isinstance(stage, dict) for fields in stage.values()]
    several = any(isinstance(fields, dict) and len(fields) > 1 for fields in stages)
    return several and all(str(reply.get("errmsg")).startswith(failed) for reply in (oracle, pando))


def _is_inverted_by_an_index(request, oracle, pando):
    """The negation of a comparison whose bounds in an index are not exact, as those of symbols."""
    negated = any(_holds(name)(request) for name in ("$not", "$nor", "$ne", "$nin"))
    return oracle.get("code") == 4457011 and negated and pando.get("ok") == 1


def _finds_more_than_a_scan(request, oracle, pando):
    """By an index MongoDB finds documents that compare with the least or the greatest key, whose path leads through an array without
    documents; its scan does not find them, and neither does Pando."""

    def extreme(value):
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return isinstance(value, MinKey | MaxKey) or any(map(extreme, inner))

    def has_array(value):
        return isinstance(value, list) or isinstance(value, dict) and any(map(has_array, value.values()))

    if next(iter(request)) != "find" or not extreme(request.get("filter", {})) or not oracle.get("ok") or not pando.get("ok"):
        return False
    found, wanted = (reply["cursor"]["firstBatch"] for reply in (pando, oracle))
    if "projection" in request or not all("_id" in row for row in found + wanted):
        return False
    ids = [row["_id"] for row in found]
    lost = [row for row in wanted if row["_id"] not in ids]
    return bool(lost) and all(map(has_array, lost)) and len(found) + len(lost) == len(wanted)


def _lists_databases(request, oracle, pando):
    """MongoDB has databases of its own as soon as it has started; Pando's tell nothing until somebody writes to them."""
    if next(iter(request)) != "listDatabases" or not oracle.get("ok") or not pando.get("ok"):
        return False
    names = [[entry["name"] for entry in reply["databases"]] for reply in (oracle, pando)]
    return [name for name in names[0] if name not in ("admin", "config", "local")] == names[1]


def _shows_places(request, oracle, pando):
    """The place of a document is its key, as in a clustered collection of MongoDB; in its other collections it is a number."""
    if not request.get("showRecordId") or not oracle.get("ok") or not pando.get("ok"):
        return False
    without = [[{name: value for name, value in row.items() if name != "$recordId"} for row in reply["cursor"]["firstBatch"]] for reply in (oracle, pando)]
    return without[0] == without[1] and all("$recordId" in row for row in pando["cursor"]["firstBatch"])


def _has_other_rules(request, oracle, pando):
    """The rules of languages are of another collection, whose name stands in the specification of a collation."""
    if next(iter(request)) != "listIndexes" or not oracle.get("ok") or not pando.get("ok"):
        return False

    def without_version(index):
        return {**index, "collation": {**index["collation"], "version": None}} if "collation" in index else index

    listed = [list(map(without_version, reply["cursor"]["firstBatch"])) for reply in (oracle, pando)]
    return listed[0] == listed[1]


def _has_an_option_of_another_kind(request, oracle, pando):
    """An option that the kind of index does not have is left out, and an index with it is the one that is there."""
    options = {"bits", "min", "max", "bucketSize", "finestIndexedLevel", "coarsestIndexedLevel"}
    given = [spec for spec in request.get("indexes", ()) if isinstance(spec, dict)]
    return oracle.get("code") == 85 and pando.get("ok") == 1 and any(options & set(spec) for spec in given)


def _unwinds_holes(request, oracle, pando):
    """Behind a $redact, MongoDB's inclusion of a path through an array leaves a hole for each element that is no document. Only an $unwind
    behind it sees the holes, and makes a document of each; without the $redact it gives what Pando gives."""
    stages = [next(iter(stage.items())) for stage in request.get("pipeline", ()) if isinstance(stage, dict) and stage]
    names = [name for name, _ in stages]
    if "$redact" not in names or not oracle.get("ok") or not pando.get("ok"):
        return False
    rest = stages[names.index("$redact") :]
    paths = [path for name, fields in rest if name == "$project" and isinstance(fields, dict) for path in fields if "." in path]
    unwound = [fields["path"] if isinstance(fields, dict) else fields for name, fields in rest if name == "$unwind"]
    fields = [path[1:] for path in unwound if any(projected.startswith(f"{path[1:]}.") for projected in paths)]
    more = list(oracle["cursor"]["firstBatch"])
    for row in pando["cursor"]["firstBatch"]:
        if row not in more:
            return False
        more.remove(row)

    def has(row, field):
        name, _, rest = field.partition(".")
        return isinstance(row, dict) and name in row and (not rest or has(row[name], rest))

    return bool(fields) and all(any(not has(row, field) for field in fields) for row in more)


def _groups_holes(request, oracle, pando):
    """In a pipeline that its plan does not carry out, MongoDB's inclusion of a path through an array leaves a hole for each element that is
    no document. An array with a hole is another group than an empty one, though both are shown alike."""

    def groups_projected(stages):
        projected = {path.split(".")[0] for name, fields in stages if name == "$project" and isinstance(fields, dict) for path in fields if "." in path}
        grouped = [str(fields) for name, fields in stages if name in ("$group", "$sortByCount", "$bucket", "$bucketAuto", "$setWindowFields")]
        return any(f"'${field}'" in text or text == f"${field}" for field in projected for text in grouped)

    both_answer = oracle.get("ok") == 1 and pando.get("ok") == 1
    return both_answer and any(map(groups_projected, _pipelines_in(request.get("pipeline", ()))))


def _joins_by_a_position(request, oracle, pando):
    """MongoDB reads only the paths that a pipeline needs. With a position in the path by which a $lookup joins it takes the elements out of an
    array that have no such field, and finds another value there, or none. With a later stage that needs the whole document it gives what
    Pando gives."""

    def joins_so(stages):
        return any(name == "$lookup" and any(part.isdigit() for part in str(fields.get("localField", "")).split(".")) for name, fields in stages)

    both_answer = oracle.get("ok") == 1 and pando.get("ok") == 1
    return both_answer and any(map(joins_so, _pipelines_in(request.get("pipeline", ()))))


def _forgets_documents_of_a_walk(request, oracle, pando):
    """MongoDB keeps what a $graphLookup has found for the walks of the next documents, and then does not find a document by an array."""
    if not _holds("$graphLookup")(request) or not all(reply.get("ok") and "firstBatch" in reply.get("cursor", ()) for reply in (oracle, pando)):
        return False

    def is_part(less, more):
        """Whether the one value is the other without some elements of its arrays."""
        if isinstance(less, dict) and isinstance(more, dict):
            return list(less) == list(more) and all(is_part(less[name], more[name]) for name in less)
        if isinstance(less, list) and isinstance(more, list):
            rest = iter(more)
            return all(any(is_part(one, other) for other in rest) for one in less)
        return _canonical(less) == _canonical(more)

    rows = [reply["cursor"]["firstBatch"] for reply in (oracle, pando)]
    if len(rows[0]) != len(rows[1]):
        return False
    left = list(rows[1])
    for row in rows[0]:
        match = next((other for other in left if is_part(row, other)), None)
        if match is None:
            return False
        left.remove(match)
    return True


def _has_a_match_of(request, operators):
    """Whether a $match of the pipeline, or of one within it, has one of these operators."""
    pipeline = request.get("pipeline")
    stages = (stage for inner in _pipelines_in(pipeline) for stage in inner) if isinstance(pipeline, list) else ()
    return any(name == "$match" and re.search(operators, str(argument)) for name, argument in stages)


def _fails_before_an_array_is_matched(request, oracle, pando):
    """MongoDB moves a $match in front of a $project that fails; an $elemMatch and a $size stay behind it, also of a field that it keeps."""
    failed = str(oracle.get("errmsg")).startswith("PlanExecutor error during aggregation") and pando.get("ok") == 1
    empty = pando.get("documents") == 0 or pando.get("cursor", {}).get("firstBatch") == []
    return failed and empty and _has_a_match_of(request, r"'\$elemMatch'|'\$size'")


def _adds_fractions_first(request, oracle, pando):
    """MongoDB makes one sum of an $add in an $add, so that fractions of milliseconds that are added to a date are rounded once and not
    twice."""

    def nests(value):
        if isinstance(value, dict):
            return any(name == "$add" and isinstance(inner, list) and any(isinstance(part, dict) and "$add" in part for part in inner) for name, inner in value.items()) or any(map(nests, value.values()))
        return isinstance(value, list) and any(map(nests, value))

    def is_near(one, other):
        if type(one) is not type(other):
            return False
        if isinstance(one, dict):
            return list(one) == list(other) and all(is_near(one[name], other[name]) for name in one)
        if isinstance(one, list):
            return len(one) == len(other) and all(map(is_near, one, other))
        if isinstance(one, DatetimeMS):
            return abs(int(one) - int(other)) <= 2
        # A sum of so many documents as the collections have.
        if isinstance(one, int) and _holds("$millisecond")(request):
            return abs(one - other) <= 50
        # Only milliseconds of dates that were made a double: other doubles are compared as they are.
        if isinstance(one, Int64) or isinstance(one, float) and abs(one) > 1e9:
            return abs(one - other) <= 2
        return _canonical(one) == _canonical(other)

    if not nests(request) or not all(reply.get("ok") and "firstBatch" in reply.get("cursor", ()) for reply in (oracle, pando)):
        return False
    return is_near(oracle["cursor"]["firstBatch"], pando["cursor"]["firstBatch"])


def _computes_inexactly(request, oracle, pando):
    """Powers and sums of MongoDB may be wrong in the last digits: 1E+10 to the power of 1 is 9999999999.999…, 10 to the power of 0 is 0E-6176,
    the mean of the least and the greatest Int64 is 0, and so is their sum with 0.1. Five times 1.6 and 0.1 are 8.100000000000001 in a $group. 9007199254740997 as longs, 0.1 and
    the decimal 1.5 are 9007199254740998.600000000000000089, whose distance from the sum is 2^-106 of it. The decimal 9007199254740993 to the power of 1
    is above itself, and becomes the next double, whose remainder is another one."""

    def raises_to_zero(value):
        if isinstance(value, dict):
            return any((name == "$pow" and isinstance(inner, list) and inner[1:] == [0] and "10" in str(inner[0])) or raises_to_zero(inner) for name, inner in value.items())
        return isinstance(value, list) and any(map(raises_to_zero, value))

    to_zero = raises_to_zero(request)
    sums = _holds("$sum")(request) or _holds("$avg")(request)
    converts_a_power = _holds("$pow")(request) and (_holds("$toDouble")(request) or _holds("$convert")(request))
    # 2^63 that comes and goes leaves 2^-43 of what was added to it.
    extremes = Decimal(2) ** -43
    rounds_a_power = _holds("$pow")(request) and any(_holds(name)(request) for name in ("$ceil", "$floor", "$trunc", "$round"))

    def as_decimal(value):
        try:
            return Decimal128(value).to_decimal() if isinstance(value, str) else value.to_decimal()
        except (DecimalException, ValueError):
            return None

    def is_near(one, other):
        if isinstance(one, dict) and isinstance(other, dict):
            return list(one) == list(other) and all(is_near(one[name], other[name]) for name in one)
        if isinstance(one, list) and isinstance(other, list):
            return len(one) == len(other) and all(map(is_near, one, other))
        if type(one) is type(other) and isinstance(one, Decimal128 | str):
            left, right = as_decimal(one), as_decimal(other)
            if left is not None and right is not None and not left.is_nan():
                return to_zero or left == right or left.is_finite() and abs(left - right) <= (1 if rounds_a_power else max(abs(left).scaleb(-31), extremes) if sums else abs(left).scaleb(-32))
        if isinstance(one, float) and isinstance(other, float) and one == 0:
            return abs(other) <= 1 and sums
        if isinstance(one, float) and isinstance(other, float) and (sums or converts_a_power):
            return one == other or abs(one - other) <= math.ulp(other) or converts_a_power and _holds("$mod")(request)
        return _canonical(one) == _canonical(other)

    computes = any(_holds(name)(request) for name in ("$pow", "$sum", "$avg"))
    if not computes or not all(reply.get("ok") and "firstBatch" in reply.get("cursor", ()) for reply in (oracle, pando)):
        return False
    return is_near(oracle["cursor"]["firstBatch"], pando["cursor"]["firstBatch"])


def _keeps_a_match_behind_a_sort(request, oracle, pando):
    """MongoDB moves a $match in front of a $sort, which may fail; a $size, an $elemMatch and an $all of nothing or of an $elemMatch stay behind it."""
    stays = _has_a_match_of(request, r"'\$all': \[\]|'\$elemMatch'|'\$size'|'\$alwaysFalse'")
    return oracle.get("code") == 2 and "parallel arrays" in str(oracle) and pando.get("ok") and stays


def _has_no_later_wall_clock(request, oracle, pando):
    """The wall clock of a zone stands still within the hours before the last moment that a date can have; MongoDB's goes on."""
    return _holds("timezone")(request) and "07:12:55.807" in str(pando) and "07:12:55.807" not in str(oracle)


def _canonical(value, fields=lambda pairs: pairs):
    """A value as text that tells types apart; `fields` puts the fields of documents in order."""
    if isinstance(value, dict):
        return str(fields([(name, _canonical(inner, fields)) for name, inner in value.items()]))
    if isinstance(value, list):
        return str([_canonical(inner, fields) for inner in value])
    return f"{type(value).__name__} {value!r}"


def _same_rows(oracle, pando, fields):
    """Whether both answers have the same rows, as text."""
    if not all(reply.get("ok") and "firstBatch" in reply.get("cursor", ()) for reply in (oracle, pando)):
        return False
    left, right = (sorted(_canonical(row, fields) for row in reply["cursor"]["firstBatch"]) for reply in (oracle, pando))
    return left == right


def _has_another_sign_of_nan(request, oracle, pando):
    """No operator asks for the sign of a number that is none."""
    return "nan" in str(pando).lower() and _same_rows(oracle, pando, lambda pairs: pairs)


def _knows_a_constant_operand(request, oracle, pando):
    """MongoDB has a code of its own for the first operand of $setIsSubset where its plan has kept that the second is constant."""
    return {oracle.get("code"), pando.get("code")} == {17046, 17310}


REMOVING = {"$unset", "$unwind", "$project", "$redact", "$lookup", "$setWindowFields", "$fill", "$set", "$addFields"}
ADDING = {"$set", "$addFields", "$project", "$setWindowFields", "$fill", "$unwind", "$lookup", "$graphLookup", "$replaceWith"}


def _stage_names(stages):
    """The names of all stages, those of inner pipelines behind the stage that has them."""
    for stage in stages:
        for name, argument in stage.items() if isinstance(stage, dict) else ():
            yield name
            inner = argument.values() if isinstance(argument, dict) else ()
            for pipeline in inner:
                if isinstance(pipeline, list) and all(isinstance(part, dict) for part in pipeline):
                    yield from _stage_names(pipeline)


def _keeps_the_place_of_a_removed_field(request, oracle, pando):
    """In a document of MongoDB a field that one stage, or one $setField, has removed keeps its place for one of its name that a later one
    adds."""
    names = list(_stage_names(request.get("pipeline", ())))
    removes = next((at for at, name in enumerate(names) if name in REMOVING), len(names))
    adds = any(name in ADDING for name in names[removes + 1 :]) or _nests("$setField", request)
    return adds and _same_rows(oracle, pando, sorted)


def _pipelines_in(stages):
    """The pipeline, and those within its stages, as lists of names with arguments."""
    yield [next(iter(stage.items())) for stage in stages if isinstance(stage, dict) and stage]
    for stage in stages:
        for argument in stage.values() if isinstance(stage, dict) else ():
            for inner in argument.values() if isinstance(argument, dict) else ():
                if isinstance(inner, list) and all(isinstance(part, dict) for part in inner):
                    yield from _pipelines_in(inner)


def _drops_a_sort(request, oracle, pando):
    """MongoDB leaves out a $sort in front of a stage that sorts anew, and so does not meet its error. Pando sorts, so that documents of
    equal keys keep the order of the first $sort."""

    def sorts_anew(name, argument):
        if name == "$setWindowFields":
            return bool({"sortBy", "partitionBy"} & set(argument))
        return name in ("$sort", "$densify", "$fill")

    def has_needless(stages):
        # A filter moves to the front of a sort.
        moved = [stage for stage in stages if stage[0] != "$match"]
        return any(one[0] == "$sort" and sorts_anew(*other) for one, other in zip(moved, moved[1:], strict=False))

    refused = "parallel arrays" in str(pando.get("errmsg"))
    return refused and oracle.get("ok") == 1 and any(map(has_needless, _pipelines_in(request.get("pipeline", ()))))


def _is_behind(stages, first, second):
    """Whether one of the second stages comes somewhere behind one of the first ones."""
    names = [name for name, _ in stages]
    at = next((at for at, name in enumerate(names) if name in first), len(names))
    return any(name in second for name in names[at + 1 :])


def _sorts_before_unwinding(request, oracle, pando):
    """MongoDB moves a $sort in front of an $unwind that does not change its keys, and so meets parallel arrays of documents that the $unwind
    leaves out."""
    refused = "parallel arrays" in str(oracle.get("errmsg"))
    unwinds = any(_is_behind(stages, {"$unwind"}, {"$sort"}) for stages in _pipelines_in(request.get("pipeline", ())))
    return refused and pando.get("ok") == 1 and unwinds


def _filters_partitions_first(request, oracle, pando):
    """MongoDB computes windows of all partitions and then filters by the field that tells them apart; Pando the other way round, so that it
    does not meet the errors of the others."""

    def fields_of(name, argument):
        """The top-level fields that tell the partitions of a stage apart."""
        if name not in ("$setWindowFields", "$fill") or not isinstance(argument, dict):
            return set()
        by = re.findall(r"'\$([^'.$]+)", repr(argument.get("partitionBy")))
        return {*by, *(field.split(".")[0] for field in argument.get("partitionByFields", ()))}

    def filters(stages):
        at = next((at for at, stage in enumerate(stages) if fields_of(*stage)), len(stages))
        fields = fields_of(*stages[at]) if at < len(stages) else ()
        behind = [str(argument) for name, argument in stages[at + 1 :] if name == "$match"]
        return any(f"'{field}{end}" in text for text in behind for field in fields for end in ("'", "."))

    failed = str(oracle.get("errmsg")).startswith("PlanExecutor error during aggregation")
    return failed and pando.get("ok") == 1 and any(map(filters, _pipelines_in(request.get("pipeline", ()))))


def _ids_in(value):
    """The values of all fields `_id` within, as text."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from [_canonical(inner)] if name == "_id" else _ids_in(inner)
    if isinstance(value, list):
        for inner in value:
            yield from _ids_in(inner)


def _orders_repeated_documents(request, oracle, pando):
    """The order of documents with equal keys is left open. A sort by `_id` has such where a stage has given a document several times; a limit
    behind it then takes some of them, and a window has them in some order."""
    several = {"$unwind", "$unionWith", "$lookup", "$graphLookup"}

    def orders(name, argument):
        by = argument if name == "$sort" else argument.get("sortBy", {}) if name in ("$setWindowFields", "$fill") else {}
        return "_id" in by

    def repeats(stages):
        first = next((at for at, (name, _) in enumerate(stages) if name in several), len(stages))
        ordered = next((at for at, stage in enumerate(stages) if at > first and orders(*stage)), None)
        if ordered is None:
            return False
        return stages[ordered][0] != "$sort" or any(name in ("$limit", "$skip") for name, _ in stages[ordered + 1 :])

    if not all(reply.get("ok") and "firstBatch" in reply.get("cursor", ()) for reply in (oracle, pando)):
        return False
    rows = [reply["cursor"]["firstBatch"] for reply in (oracle, pando)]
    have_ids = all("_id" in row for side in rows for row in side)
    ids = [sorted([_canonical(row["_id"]) for row in side] if have_ids else _ids_in(side)) for side in rows]
    return ids[0] == ids[1] and len(rows[0]) == len(rows[1]) and any(map(repeats, _pipelines_in(request.get("pipeline", ()))))


def _reads_its_own_rewriting(request, oracle, pando):
    """MongoDB leaves constants that are null out of an $ifNull, and refuses what is left where it reads its own pipeline again."""
    return oracle.get("code") == 5868001 and "$ifNull needs at least two arguments" in str(oracle.get("errmsg")) and _holds("$ifNull")(request)


def _filters_before_a_renamed_part(request, oracle, pando):
    """MongoDB moves a filter of a field in front of a $set that makes a part of this field from another path, and so does not see the
    part. With `$_internalInhibitOptimization` between the two it gives what Pando gives."""

    def parts(stages):
        """The fields of which a stage makes a part, by a copy or a join."""
        for name, argument in stages:
            if name in ("$set", "$addFields") and isinstance(argument, dict):
                yield from (path for path, value in argument.items() if isinstance(value, str) and value.startswith("$"))
            if name in ("$lookup", "$graphLookup") and isinstance(argument, dict):
                yield str(argument.get("as"))

    pipelines = list(_pipelines_in(request.get("pipeline", ())))
    made = {path.split(".")[0] for stages in pipelines for path in parts(stages) if "." in path}
    filters = [str(argument) for stages in pipelines for name, argument in stages if name == "$match"]
    looks_at = any(f"'{mark}{field}{end}" in text for text in filters for field in made for mark in ("", "$") for end in ("'", "."))
    return oracle.get("ok") == 1 and pando.get("ok") == 1 and looks_at


def _joins_by_undefined(request, oracle, pando):
    """A join by an undefined value fails on both servers, if a plan does not leave the document out before."""
    failed = [reply for reply in (oracle, pando) if "undefined" in str(reply.get("errmsg"))]
    return len(failed) == 1 and any(_holds(name)(request) for name in ("$lookup", "$graphLookup"))


def _evaluates_a_filter_first(request, oracle, pando):
    """MongoDB puts the parts of several filters in an order of its own, by which it evaluates an $expr that may fail for documents that
    another part leaves out, or the other way round."""
    stages = [stage for stages in _pipelines_in(request.get("pipeline", ())) for stage in stages]
    filters = [argument for name, argument in stages if name == "$match"]
    failed = [str(reply.get("errmsg")).startswith("PlanExecutor error during aggregation") for reply in (oracle, pando)]
    return len(filters) > 1 and any("$expr" in filter for filter in filters if isinstance(filter, dict)) and failed.count(True) == 1


def _has_fine_steps(request, oracle, pando):
    """A step of $densify that changes nothing, beside a double of this size, ends the grid; MongoDB goes on to its limit."""
    return oracle.get("code") == 5897900 and pando.get("ok") == 1


EXCUSED = [
    Excuse("MongoDB sorts before it unwinds", _sorts_before_unwinding),
    Excuse("a filter of the partition's field comes before the windows", _filters_partitions_first),
    Excuse("the order of documents with equal keys is left open", _orders_repeated_documents),
    Excuse("MongoDB fails on what its own rewriting makes of an $ifNull", _reads_its_own_rewriting),
    Excuse("a join by undefined fails only for documents that a plan has not left out before", _joins_by_undefined),
    Excuse("MongoDB evaluates the parts of filters in an order of its own", _evaluates_a_filter_first),
    Excuse("a step of $densify that changes nothing ends the grid", _has_fine_steps),
    Excuse("a number that is none has a sign that no operator asks for", _has_another_sign_of_nan),
    Excuse("the code of a first operand of $setIsSubset beside a constant depends on MongoDB's plan", _knows_a_constant_operand),
    Excuse("to MongoDB an array with holes is another group than an empty one", _groups_holes),
    Excuse("MongoDB reads only the paths that it needs, by which a position in an array is another one", _joins_by_a_position),
    Excuse("a walk of MongoDB forgets documents that one before has found", _forgets_documents_of_a_walk),
    Excuse("MongoDB rounds nested sums of a date and fractions once", _adds_fractions_first),
    Excuse("MongoDB leaves out a $sort that a later stage makes needless, with its error", _drops_a_sort),
    Excuse("MongoDB filters by a field before a $set copies a value into it", _filters_before_a_renamed_part),
    Excuse("powers and sums are exact to the last digit", _computes_inexactly),
    Excuse("MongoDB leaves some kinds of $match behind a stage that fails", _fails_before_an_array_is_matched),
    Excuse("MongoDB leaves some kinds of $match behind a $sort that fails", _keeps_a_match_behind_a_sort),
    Excuse("no wall clock goes beyond the last moment of dates", _has_no_later_wall_clock),
    Excuse("MongoDB keeps the place of a field that one stage removes and another adds", _keeps_the_place_of_a_removed_field),
    Excuse("only behind a $redact MongoDB unwinds what an inclusion has taken out of an array", _unwinds_holes),
    Excuse("documents have no record ids, their keys are their places", _shows_places),
    Excuse("collations are those of ICU4X", _has_other_rules),
    Excuse("an option of another kind of index is no difference", _has_an_option_of_another_kind),
    Excuse("MongoDB fails on what its own rewriting makes of an $all in an $elemMatch of a $match", _is_reparsed_all),
    Excuse("MongoDB evaluates the $expr of a $match before an $unwind leaves documents out", _evaluates_before_unwinding),
    Excuse("MongoDB takes the end of one partition of $linearFill and the beginning of the next for a repetition", _repeats_at_a_border),
    Excuse("MongoDB carries nothing out where a $match lets nothing pass", _lets_nothing_pass),
    Excuse("which of several constants that cannot be computed is reported is left open by MongoDB", _fails_at_one_of_several_fields),
    Excuse("MongoDB refuses what its planner cannot invert", _is_inverted_by_an_index),
    Excuse("the same documents are found by an index and by a scan", _finds_more_than_a_scan),
    Excuse("databases are there when somebody has written to them", _lists_databases),
]


def ignored_paths(request):
    """The paths that are left out when the replies to this request are compared."""
    return IGNORED[ANY] + IGNORED.get(next(iter(request)), [])


def reason_for(request, oracle, pando):
    """Why these two replies may differ, or None."""
    codes = {pando.get("code")} | {error.get("code") for error in pando.get("writeErrors", ())}
    if codes & {COMMAND_NOT_SUPPORTED, NOT_IMPLEMENTED}:
        for row in NOT_YET:
            if row.needs(request):
                return row.reason
    for row in EXCUSED:
        if row.covers(request, oracle, pando):
            return row.reason
    return None
