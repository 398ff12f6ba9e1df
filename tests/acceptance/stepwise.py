"""MongoDB's answer to a pipeline that it carries out stage by stage, each stage on documents that went through BSON.

    Stepwise(ask).answer(request)      # the documents in raw BSON, or the reply of the stage that failed

What a pipeline gives is what its stages give, one after the other. MongoDB's answer to the whole may be another one: its optimiser moves
stages and leaves some out, with the errors that they would have met, it reads only the paths that it thinks are needed, and its documents
in memory have what BSON has not, as holes in arrays and the places of removed fields. Where the answers of the two servers differ and the
one made here is Pando's, the difference is MongoDB's with itself.

The pipelines of `$facet` and `$unionWith` are taken apart as well. That of a `$lookup` is not, since it depends on each document: its
stages are only kept apart from each other.
"""

import bson
from bson.raw_bson import RawBSONDocument

from exact import encode

# MongoDB's optimiser moves nothing over this stage.
BORDER = {"$_internalInhibitOptimization": {}}
LARGE_BATCH = 1_000_000
# Stages that can only be the first.
SOURCES = {"$collStats", "$documents", "$geoNear", "$indexStats", "$planCacheStats"}


class Failed(Exception):
    """A stage failed; `reply` is the raw reply."""

    def __init__(self, reply):
        super().__init__(reply)
        self.reply = reply


class Stepwise:
    """Takes pipelines apart. `ask(request)` sends a request to MongoDB and gives the raw reply."""

    def __init__(self, ask):
        self.ask, self.options = ask, {}

    def answer(self, request):
        """A list of raw documents, or the raw reply that tells an error."""
        self.options = {name: value for name, value in request.items() if name in ("let", "collation")}
        try:
            return [bytes(document.raw) for document in self._of_collection(request["aggregate"], request["pipeline"])]
        except Failed as failed:
            return failed.reply

    def _of_collection(self, collection, stages):
        """What a pipeline makes of a collection."""
        first = stages[:1] if stages and SOURCES & set(stages[0]) else []
        return self._behind(self._run(collection, first), stages[len(first) :])

    def _behind(self, documents, stages):
        for stage in stages:
            documents = self._step(documents, stage)
        return documents

    def _step(self, documents, stage):
        name, argument = next(iter(stage.items()))
        if name == "$facet":
            return [encode({field: self._behind(documents, stages) for field, stages in argument.items()})]
        if name == "$unionWith":
            source = argument if isinstance(argument, dict) else {"coll": argument}
            return documents + self._of_collection(source.get("coll", 1), source.get("pipeline", []))
        return self._run(1, [{"$documents": {"$literal": documents}}, BORDER, _apart(name, argument)])

    def _run(self, collection, pipeline):
        request = {"aggregate": collection, "pipeline": pipeline, "cursor": {"batchSize": LARGE_BATCH}, **self.options}
        raw = self.ask(request)
        reply = bson.decode(raw, bson.codec_options.CodecOptions(document_class=RawBSONDocument))
        if not reply["ok"]:
            raise Failed(raw)
        return list(reply["cursor"]["firstBatch"])


def _apart(name, argument):
    """The stage, with the stages of its own pipeline kept apart."""
    if name != "$lookup" or not isinstance(argument.get("pipeline"), list):
        return {name: argument}
    inner = [part for stage in argument["pipeline"] for part in (stage, BORDER)]
    return {name: {**argument, "pipeline": inner}}
