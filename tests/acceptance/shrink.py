"""Makes a failing case small: fewer documents, then less in the documents and in the request, as long as it still fails."""


def shrink(documents, request, still_fails, attempts=400):
    """The smallest documents and request that were found with which `still_fails(documents, request)` holds."""
    budget = [attempts]

    def fails(candidate_documents, candidate_request):
        budget[0] -= 1
        return budget[0] >= 0 and still_fails(candidate_documents, candidate_request)

    documents = _fewer(documents, lambda candidate: fails(candidate, request))
    while budget[0] > 0:
        smaller = next((candidate for candidate in _smaller(request) if fails(documents, candidate)), None)
        if smaller is None:
            break
        request = smaller
    while budget[0] > 0:
        smaller = next((candidate for candidate in _smaller(documents) if _have_ids(candidate) and fails(candidate, request)), None)
        if smaller is None:
            break
        documents = smaller
    return documents, request


def _have_ids(documents):
    return all("_id" in document for document in documents)


def _fewer(items, fails):
    """Leaves out ever smaller runs of items."""
    size = len(items)
    while size:
        start = 0
        while start < len(items):
            candidate = items[:start] + items[start + size :]
            if fails(candidate):
                items = candidate
            else:
                start += size
        size //= 2
    return items


def _smaller(value):
    """Copies of the value with one thing left out or replaced by a part of itself, the largest changes first."""
    if isinstance(value, dict):
        for name in value:
            yield {other: value[other] for other in value if other != name}
        for name, inner in value.items():
            for candidate in _smaller(inner):
                yield {**value, name: candidate}
            if isinstance(inner, dict) and len(inner) == 1:
                yield {**value, name: next(iter(inner.values()))}
            if isinstance(inner, list) and len(inner) == 1:
                yield {**value, name: inner[0]}
    elif isinstance(value, list):
        for at in range(len(value)):
            yield value[:at] + value[at + 1 :]
        for at, inner in enumerate(value):
            for candidate in _smaller(inner):
                yield [*value[:at], candidate, *value[at + 1 :]]
