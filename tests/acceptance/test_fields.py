"""Every documented field of every command with a value of every kind, missing and unknown: the same answers and error codes."""

import pytest

import field_values
from both import Difference

DOCUMENTS = [{"_id": at, "x": at * 10, "a": [at, {"b": at}]} for at in range(5)]


def prepare(both):
    """The same collections on both, whatever was there: only the last reply is compared."""
    index = {"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x_1"}]}
    for request in ({"drop": "d"}, {"drop": "c"}, {"insert": "c", "documents": DOCUMENTS}):
        both.ask_oracle(request), both.ask_pando(request)
    both.same(index)


def server_and_request(both, name):
    if name in field_values.COMMANDS:
        return both, field_values.COMMANDS[name][0]
    request = field_values.ON_ADMIN[name][0]
    named = {key: value.replace("DB.", f"{both.name}.") if isinstance(value, str) else value for key, value in request.items()}
    return both.on("admin"), named


def differences(both, name, requests):
    """Asks all requests and gives what differs; the collections are put back after each change."""
    server, found = server_and_request(both, name)[0], []
    for kind, request in requests:
        try:
            replies = server.same(request)
            # What comes later is refused by Pando alone.
            has_changed = 1 in (replies.oracle["ok"], replies.pando["ok"])
        except Difference as difference:
            found.append(f"{kind}:{difference}")
            has_changed = True
        if has_changed:
            put_back(both, request)
    return found


CHANGES_DOCUMENTS = {"insert", "update", "delete", "findAndModify"}
CHANGES_COLLECTIONS = {"create", "drop", "createIndexes", "dropIndexes", "collMod", "dropDatabase", "renameCollection"}


def put_back(both, request):
    name = next(iter(request))
    if name in CHANGES_COLLECTIONS:
        prepare(both)
    elif name in CHANGES_DOCUMENTS:
        request = {"delete": "c", "deletes": [{"q": {}, "limit": 0}]}
        both.ask_oracle(request), both.ask_pando(request)
        both.same({"insert": "c", "documents": DOCUMENTS})


@pytest.mark.parametrize("name,field", field_values.CASES)
def test_a_field_takes_and_refuses_the_same_values(both, name, field):
    prepare(both)
    _, request = server_and_request(both, name)
    requests = [(kind, field_values.with_field(request, field, value)) for kind, value in field_values.values_for(field)]
    if field is not None:
        requests.append(("missing", field_values.without_field(request, field)))
    found = differences(both, name, requests)
    assert not found, f"{len(found)} of {len(requests)} values differ\n" + "\n".join(found)
