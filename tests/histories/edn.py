"""Histories in Elle's format: one EDN map a line, an invocation and a completion for each transaction.

`elle-cli --model list-append FILE` and `elle-cli --model rw-register FILE` read such a file, which is how a
verdict of this checker can be compared with Elle's.
"""

import re

from history import OK, History

NAMES = {"append": ":append", "r": ":r", "w": ":w"}


def text_of_value(value):
    if value is None:
        return "nil"
    if isinstance(value, (tuple, list)):
        return f"[{' '.join(map(text_of_value, value))}]"
    if isinstance(value, int):
        return str(value)
    return f'"{value}"'


def text_of_operations(operations):
    return (
        "["
        + " ".join(f"[{NAMES[name]} {text_of_value(key)} {text_of_value(value)}]" for name, key, value in operations)
        + "]"
    )


def without_reads(operations):
    """The micro-operations as they are before they are run: nobody knows yet what a read will find."""
    return [(name, key, None if name == "r" else value) for name, key, value in operations]


def write(history, path):
    """Writes the history to a file. A failed or unknown transaction has the micro-operations that it had come to."""
    events = []
    for transaction in history:
        invoked = without_reads(transaction.operations)
        events.append((transaction.began_ns, 0, transaction, "invoke", invoked))
        events.append((transaction.ended_ns, 1, transaction, transaction.outcome, transaction.operations))
    events.sort(key=lambda event: (event[0], event[1], event[2].index))
    with open(path, "w") as file:
        for index, (time_ns, _, transaction, kind, operations) in enumerate(events):
            error = re.sub(r'["\\\s]+', " ", transaction.error) if kind not in ("invoke", "ok") else ""
            error = f', :error "{error}"' if error else ""
            file.write(
                f"{{:index {index}, :type :{kind}, :process {transaction.process}, :f :txn, "
                f":value {text_of_operations(operations)}, :time {time_ns}{error}}}\n"
            )


TOKEN = re.compile(r'"[^"]*"|[\[\]{}]|[^\s,\[\]{}"]+')


def parsed(tokens):
    """One value of EDN, of as much of the language as histories use."""
    token = next(tokens)
    if token in "[{":
        items = []
        while (item := parsed(tokens)) not in ("]", "}"):
            items.append(item)
        return tuple(items) if token == "[" else dict(zip(items[::2], items[1::2]))
    if token in ("]", "}") or token.startswith(":"):
        return token
    if token.startswith('"'):
        return token[1:-1]
    if token == "nil":
        return None
    return int(token) if token.lstrip("-").isdigit() else token


def read(path):
    """The history of a file, of this program or of Jepsen's."""
    history, begun = History(), {}
    with open(path) as file:
        tokens = iter(TOKEN.findall(re.sub(r"(?m)^\s*;.*$", "", file.read())))
    position = 0
    while True:
        try:
            event = parsed(tokens)
        except StopIteration:
            return history
        position += 1
        process, time_ns = event.get(":process", 0), event.get(":time", position)
        kind = event[":type"].removeprefix(":")
        if kind == "invoke":
            begun[process] = time_ns
        else:
            operations = [(name.removeprefix(":"), key, value) for name, key, value in event[":value"]]
            if kind != OK:  # a read without a value has not been made
                operations = [operation for operation in operations if operation[0] != "r" or operation[2] is not None]
            history.add(process, kind, operations, begun.pop(process, time_ns), time_ns, event.get(":error", ""))
