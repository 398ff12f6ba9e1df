"""The same command to two servers, MongoDB (the oracle) and Pando, and their replies compared.

    both = Both(oracle_client, pando_client, "some_database")
    both.same({"find": "c", "filter": {"a": 1}})        # raises Difference unless both answer alike
    both.rows({"find": "c", "filter": {"a": 1}})        # reads the cursor to its end, and compares all documents

What "alike" means:

1. Documents are compared byte by byte, types and field order included; only the reply's own fields and those of `cursor`
   may come in another order.
2. Errors are compared by code and code name; of write errors also index, keyPattern and keyValue. Texts are compared only
   with `texts=Texts.COMPARED`, and always for duplicate keys, because people parse them.
3. Of explained plans the names of the stages are compared.
4. Cursor ids count as open or closed. Fields that must differ are left out: see known.py, which also holds the decisions.
5. Where MongoDB's answer to a pipeline is not the one that it gives stage by stage (stepwise.py), either is right.

With PANDO_ACCEPTANCE_TEXTS=1 in the environment all texts of errors are compared.
"""

import enum
import os
import re
from collections.abc import Mapping

import bson
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument

import known
from exact import LENIENT, Exact, assemble, encode, exactly, first_difference, whole, without
from stepwise import Stepwise
from wire import Wire

RAW = CodecOptions(document_class=RawBSONDocument)
DUPLICATE_KEY = 11000
LARGE_BATCH = 1_000_000
# MongoDB tells the build's and the collection's ids, which differ from one server to the next.
BUILD = re.compile("Index build failed: .*? :: caused by :: ")


class Texts(enum.Enum):
    """Whether the texts of errors are compared."""

    IGNORED = 0
    COMPARED = 1


class Order(enum.Enum):
    """Whether the order of a result's documents is compared: without a sort, or among equals, it is not defined."""

    DEFINED = 0
    FREE = 1


class PerSide:
    """A value of a request that differs between the servers, such as the id of a cursor."""

    def __init__(self, oracle, pando):
        self.oracle, self.pando = oracle, pando


class Difference(AssertionError):
    """The two servers answered differently. Shows the request, both replies and the first path that differs.

    `codes` has both codes if both servers refused the request or its first statement."""

    def __init__(self, request, oracle, pando, path, codes=None):
        self.path, self.codes = path, codes
        super().__init__(
            f"\n  request: {shorten(request)}\n  MongoDB: {shorten(oracle)}\n  Pando:   {shorten(pando)}"
            f"\n  differs: {shorten(path)}  (MongoDB against Pando)")


def shorten(value, limit=3000):
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def readable(request):
    """A request as Extended JSON would show it, raw parts included."""
    return repr(whole(encode(request).raw))


class Replies:
    """Both replies, which are alike."""

    def __init__(self, oracle, pando):
        self.oracle, self.pando = oracle, pando

    @property
    def cursor(self):
        """The cursor ids, for the next request."""
        return PerSide(self.oracle["cursor"]["id"], self.pando["cursor"]["id"])

    def is_open(self):
        return self.pando["cursor"]["id"] != 0

    @property
    def documents(self):
        cursor = self.pando["cursor"]
        return cursor["firstBatch"] if "firstBatch" in cursor else cursor["nextBatch"]

    def __getitem__(self, name):
        return self.pando[name]

    def __contains__(self, name):
        return name in self.pando


class Both:
    """Two servers and a database of the same name on both."""

    def __init__(self, oracle, pando, database):
        self.oracle, self.pando, self.name = oracle, pando, database
        # The code with which both servers refused the last request that they answered alike.
        self.refused_with = None

    def on(self, database):
        """The same servers, another database."""
        return Both(self.oracle, self.pando, database)

    def ask_oracle(self, request):
        return self._ask(self.oracle, _for_side(request, "oracle"))

    def ask_pando(self, request):
        return self._ask(self.pando, _for_side(request, "pando"))

    def _ask(self, client, request):
        if _is_beyond_pymongo(request) or not NAME.fullmatch(self.name):
            connection = Wire(*client.address)
            try:
                return connection.command(self.name, request)
            finally:
                connection.close()
        return client[self.name].command(request, check=False, codec_options=RAW).raw

    def same(self, request, *, ignore=(), texts=Texts.IGNORED, order=Order.DEFINED):
        """Sends the request to both servers, raises Difference if they answer differently."""
        oracle, pando = self.ask_oracle(request), self.ask_pando(request)
        compare(request, oracle, pando, ignore, texts, order)
        replies = Replies(bson.decode(oracle, LENIENT), bson.decode(pando, LENIENT))
        self.refused_with = code_of(replies.pando)
        return replies

    def fails(self, request, code, *, texts=Texts.IGNORED):
        """Both servers refuse the request with this code."""
        replies = self.same(request, texts=texts)
        assert self.refused_with == code, f"{request}: both answer {self.refused_with}, not {code}"
        return replies

    def rows(self, request, *, order=Order.DEFINED):
        """Runs a find or an aggregate to its end on both servers and compares all documents; gives them, decoded."""
        oracle, pando = self._drain("oracle", request), self._drain("pando", request)
        if isinstance(oracle, bytes) or isinstance(pando, bytes):
            reply_of = lambda side: side if isinstance(side, bytes) else bson.encode({"documents": len(side), "ok": 1.0})
            try:
                compare(request, reply_of(oracle), reply_of(pando), (), Texts.IGNORED, order)
            except Difference:
                if not self._is_explained_by_stages(request, pando, order):
                    raise
            self.refused_with = code_of(bson.decode(pando, LENIENT)) if isinstance(pando, bytes) else None
            return None
        self.refused_with = None
        if order is Order.FREE:
            oracle, pando = sorted(oracle), sorted(pando)
        if oracle != pando:
            answers = [{"ok": 1.0, "cursor": {"firstBatch": [bson.decode(raw, LENIENT) for raw in side]}} for side in (oracle, pando)]
            if known.reason_for(request, *answers) is None and not self._is_explained_by_stages(request, pando, order):
                raise _rows_differ(request, oracle, pando)
        return [bson.decode(raw, LENIENT) for raw in pando]

    def _is_explained_by_stages(self, request, pando, order):
        """Whether MongoDB answers a pipeline as Pando does once it is carried out stage by stage. `pando` has the documents, or the reply
        with the error."""
        if "aggregate" not in request or not isinstance(request.get("pipeline"), list):
            return False
        answer = Stepwise(self.ask_oracle).answer(request)
        if isinstance(answer, bytes) or isinstance(pando, bytes):
            replies = (answer, pando)
            return all(isinstance(reply, bytes) for reply in replies) and len({bson.decode(reply, LENIENT).get("code") for reply in replies}) == 1
        return sorted(answer) == sorted(pando) if order is Order.FREE else answer == pando

    def _drain(self, side, request):
        """The documents of one side, or its reply if it failed."""
        client = getattr(self, side)
        collection = next(iter(request.values()))
        with_batch = dict(request)
        if "find" in request:
            with_batch.setdefault("batchSize", LARGE_BATCH)
        else:
            with_batch.setdefault("cursor", {"batchSize": LARGE_BATCH})
        raw = self._ask(client, _for_side(with_batch, side))
        reply = bson.decode(raw, RAW)
        if not reply["ok"]:
            return raw
        found = [bytes(document.raw) for document in reply["cursor"]["firstBatch"]]
        while reply["cursor"]["id"]:
            more = {"getMore": bson.Int64(reply["cursor"]["id"]), "collection": collection}
            raw = self._ask(client, more)
            reply = bson.decode(raw, RAW)
            if not reply["ok"]:
                return raw
            found += [bytes(document.raw) for document in reply["cursor"]["nextBatch"]]
        return found

    def plan(self, request):
        """Explains the request on both servers and compares the names of the stages; gives Pando's reply."""
        explain = {"explain": request, "verbosity": "queryPlanner"}
        oracle, pando = (bson.decode(raw, LENIENT) for raw in (self.ask_oracle(explain), self.ask_pando(explain)))
        left, right = stage_names(oracle), stage_names(pando)
        if left != right:
            raise Difference(readable(request), left, right, f"stages (codes {oracle.get('code')}, {pando.get('code')})")
        return pando

    def fill(self, collection, documents):
        """Inserts documents into both servers."""
        for start in range(0, len(documents), 5000):
            self.same({"insert": collection, "documents": documents[start : start + 5000]})


NAME = re.compile("[a-zA-Z0-9_]{1,63}")
BULK_FIELDS = {"insert": "documents", "update": "updates", "delete": "deletes"}


def _is_beyond_pymongo(request):
    """Whether PyMongo cannot send this: it takes only lists of documents as the bulk of a write."""
    bulk = request.get(BULK_FIELDS.get(next(iter(request))), [])
    return not isinstance(bulk, list) or not all(isinstance(item, Mapping) for item in bulk)


def _for_side(request, side):
    """The request to one side, its parts as raw documents: they may hold what PyMongo cannot encode."""
    resolved = {name: _resolved(value, side) for name, value in request.items()}
    return {name: _raw_parts(value) for name, value in resolved.items()}


def _resolved(value, side):
    if isinstance(value, PerSide):
        return getattr(value, side)
    if isinstance(value, list):
        return [_resolved(item, side) for item in value]
    return value


def _raw_parts(value):
    if isinstance(value, dict):
        return encode(value)
    if isinstance(value, list):
        return [_raw_parts(item) for item in value]
    return value


def _rows_differ(request, oracle, pando):
    for at, (left, right) in enumerate(zip(oracle, pando)):
        if left != right:
            path = first_difference(whole(left), whole(right), f"[{at}]")
            return Difference(_shown(request), _some(oracle, at), _some(pando, at), path)
    path = f"{len(oracle)} documents against {len(pando)}"
    at = min(len(oracle), len(pando))
    return Difference(_shown(request), _some(oracle, at), _some(pando, at), path)


def _some(rows, at):
    return f"{len(rows)} documents, from {max(0, at - 1)}: {[whole(raw) for raw in rows[max(0, at - 1) : at + 2]]}"


def _shown(request):
    try:
        return readable(_for_side(request, "pando"))
    except Exception:
        return repr(request)


def compare(request, oracle, pando, ignore=(), texts=Texts.IGNORED, order=Order.DEFINED):
    """Raises Difference unless the two raw replies are alike, or their difference is a decision."""
    if oracle == pando:
        return
    if os.environ.get("PANDO_ACCEPTANCE_TEXTS"):
        texts = Texts.COMPARED
    paths = [*known.ignored_paths(request), *ignore]
    left, right = (_alike(raw, paths, texts, order) for raw in (oracle, pando))
    path = first_difference(left, right)
    if path is None:
        return
    decoded = [bson.decode(raw, LENIENT) for raw in (oracle, pando)]
    if known.reason_for(request, *decoded) is None:
        codes = tuple(map(code_of, decoded))
        raise Difference(_shown(request), whole(oracle), whole(pando), path, None if None in codes else codes)


def code_of(reply):
    """The code with which a decoded reply refuses the request or its first statement, or None."""
    errors = reply.get("writeErrors")
    return errors[0]["code"] if errors else reply.get("code")


def _alike(raw, paths, texts, order):
    """A reply as it is compared: an Exact."""
    fields = dict(without(raw, paths))
    if "explainVersion" in fields:
        return exactly(stage_names(bson.decode(raw, LENIENT)))
    duplicate = fields.get("code") == exactly(DUPLICATE_KEY)
    if texts is Texts.IGNORED and not duplicate:
        fields.pop("errmsg", None)
    elif "errmsg" in fields:
        fields["errmsg"] = exactly(BUILD.sub("", fields["errmsg"].python()))
    if texts is Texts.IGNORED and "writeConcernError" in fields:
        fields["writeConcernError"] = _without_text(fields["writeConcernError"])
    if texts is Texts.IGNORED and "writeErrors" in fields:
        fields["writeErrors"] = _array(_write_error(error) for _, error in fields["writeErrors"].pairs)
    if "cursor" in fields:
        fields["cursor"] = _cursor(dict(fields["cursor"].pairs), order)
    return _in_order(fields)


def _in_order(fields):
    """An object with its fields sorted by name."""
    return Exact(3, assemble(sorted(fields.items(), key=lambda pair: pair[0])))


def _array(values):
    return Exact(4, assemble((str(at), value) for at, value in enumerate(values)))


def _without_text(error):
    return Exact(3, assemble((name, value) for name, value in error.pairs if name != "errmsg"))


def _write_error(error):
    return error if ("code", exactly(DUPLICATE_KEY)) in error.pairs else _without_text(error)


def _cursor(fields, order):
    if "id" in fields:
        is_long = fields["id"].type_byte == 18
        fields["id"] = exactly(("closed" if fields["id"].python() == 0 else "open") if is_long else "not an int64")
    for name in ("firstBatch", "nextBatch"):
        if name in fields and order is Order.FREE:
            fields[name] = _array(sorted((value for _, value in fields[name].pairs), key=lambda value: value.payload))
    return _in_order(fields)


def stage_names(reply):
    """The stages of an explained plan, outermost first, inputs in brackets; a failure gives its code."""
    if not reply.get("ok"):
        return f"error {reply.get('code')}"
    if "stages" in reply:
        names = []
        for stage in reply["stages"]:
            name = next(iter(stage))
            if name == "$cursor":
                name = f"$cursor({_plan_names(stage[name]['queryPlanner']['winningPlan'])})"
            names.append(name)
        return " ".join(names)
    return _plan_names(reply["queryPlanner"]["winningPlan"])


def _plan_names(plan):
    plan = plan.get("queryPlan", plan)
    name = plan["stage"]
    inputs = [plan["inputStage"]] if "inputStage" in plan else plan.get("inputStages", [])
    return f"{name}({', '.join(map(_plan_names, inputs))})" if inputs else name
