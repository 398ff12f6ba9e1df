"""Documents, indexes and counters of a database agree: what must hold whenever no client is at work.

For each collection: `validate` with `full` finds nothing, the counter equals a scan, and a scan of each
index, forward and backward, gives exactly the documents of the collection.
"""

from anomaly import Anomaly
from bson import MinKey


def disagreements(db):
    return [
        Anomaly("disagreement", [], [fact])
        for name in sorted(db.list_collection_names())
        for fact in faults_of(db, name)
    ]


def faults_of(db, name):
    report = db.command("validate", name, full=True)
    if not report["valid"] or report.get("errors"):
        yield f"validate {name}: {report.get('errors')}"
    documents = {document["_id"]: document for document in db[name].find({}).hint([("$natural", 1)])}
    counter = db.command("count", name)["n"]
    if counter != len(documents):
        yield f"{name}: its counter says {counter}, a scan finds {len(documents)}"
    counted = db[name].count_documents({})
    if counted != len(documents):
        yield f"{name}: count_documents says {counted}, a scan finds {len(documents)}"
    for index, description in db[name].index_information().items():
        yield from faults_of_index(db[name], index, description["key"], documents)


def faults_of_index(collection, index, key, documents):
    where = f"index {index} of {collection.name}"
    for direction in (1, -1):
        order = [(field, way * direction) for field, way in key]
        found = list(collection.find({}, sort=order, hint=index))
        if len(found) != len(documents):
            yield f"{where} finds {len(found)} documents, a scan {len(documents)}"
        elif {document["_id"]: document for document in found} != documents:
            yield f"{where} finds other documents than a scan"
    field = key[0][0]
    with_field = {id for id, document in documents.items() if document.get(field, []) != []}
    found = {document["_id"] for document in collection.find({field: {"$gt": MinKey()}}, {"_id": 1}, hint=index)}
    if not with_field <= found:
        yield f"{where} lacks {sorted(map(str, with_field - found))[:5]} in a range scan"
