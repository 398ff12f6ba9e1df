"""Sorts the same random values in a MongoDB server and in Pando, and compares the orders.

Values of every BSON type, with numbers chosen to be nasty, are written as raw BSON for the server and as Extended JSON for
the example `sort_values` of crates/keyorder. The server ranks them twice: by comparing (`$denseRank`, which also tells what
it holds to be equal), and by walking an index. Pando sorts them twice as well: by comparing, and by key bytes. All four must
agree, and equal values must be equal everywhere.

    cargo build -p pando-keyorder --example sort_values
    python3 tests/acceptance/sort_order.py --uri mongodb://127.0.0.1:27017 [--values 5000] [--seed 1] [--program PATH]

The values stand within a document (`{x: value}`), because a sort by a field that is an array would go by its elements.
Needs pymongo. Leaves nothing behind. Exit code 1 and the first differences if the orders differ.
"""

import argparse
import base64
import json
import math
import random
import struct
import subprocess
import sys
from decimal import Decimal

from bson.decimal128 import Decimal128, create_decimal128_context
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient


class Value:
    """A value's type byte and payload in BSON, and its Extended JSON."""

    def __init__(self, type_byte, payload, extended):
        self.type_byte, self.payload, self.extended = type_byte, payload, extended


def cstring(text):
    return text.encode() + b"\0"


def string(text):
    encoded = text.encode() + b"\0"
    return struct.pack("<i", len(encoded)) + encoded


def document(fields):
    body = b"".join(bytes([value.type_byte]) + cstring(name) + value.payload for name, value in fields)
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def of_double(number):
    if math.isnan(number):
        text = "NaN"
    elif math.isinf(number):
        text = "Infinity" if number > 0 else "-Infinity"
    else:
        text = repr(number)
    return Value(1, struct.pack("<d", number), {"$numberDouble": text})


def of_int32(number):
    return Value(16, struct.pack("<i", number), {"$numberInt": str(number)})


def of_int64(number):
    return Value(18, struct.pack("<q", number), {"$numberLong": str(number)})


def of_decimal(decimal):
    return Value(19, decimal.bid, {"$numberDecimal": str(decimal)})


def of_string(text):
    return Value(2, string(text), text)


def of_document(fields):
    return Value(3, document(fields), {name: value.extended for name, value in fields})


def of_array(values):
    named = [(str(index), value) for index, value in enumerate(values)]
    return Value(4, document(named), [value.extended for value in values])


def of_binary(subtype, content):
    extended = {"$binary": {"base64": base64.b64encode(content).decode(), "subType": f"{subtype:02x}"}}
    return Value(5, struct.pack("<iB", len(content), subtype) + content, extended)


def of_object_id(content):
    return Value(7, content, {"$oid": content.hex()})


def of_date(milliseconds):
    return Value(9, struct.pack("<q", milliseconds), {"$date": {"$numberLong": str(milliseconds)}})


def of_regex(pattern, options):
    extended = {"$regularExpression": {"pattern": pattern, "options": options}}
    return Value(11, cstring(pattern) + cstring(options), extended)


def of_db_pointer(namespace, content):
    extended = {"$dbPointer": {"$ref": namespace, "$id": {"$oid": content.hex()}}}
    return Value(12, string(namespace) + content, extended)


def of_scoped_code(code, scope):
    inner = string(code) + scope.payload
    payload = struct.pack("<i", len(inner) + 4) + inner
    return Value(15, payload, {"$code": code, "$scope": scope.extended})


def of_timestamp(time, increment):
    return Value(17, struct.pack("<II", increment, time), {"$timestamp": {"t": time, "i": increment}})


SINGLE = [
    Value(255, b"", {"$minKey": 1}),
    Value(127, b"", {"$maxKey": 1}),
    Value(6, b"", {"$undefined": True}),
    Value(10, b"", None),
    Value(8, b"\0", False),
    Value(8, b"\1", True),
]

DOUBLES = [0.0, -0.0, 1.0, 0.1, 0.5, 100.0, 2.0**52, 2.0**53, 2.0**63, 2.0**64, 1e22, 1e23, 5e-324, 2.2250738585072014e-308]
DOUBLES += [1.7976931348623157e308, math.inf, math.nan]


class Generator:
    """Random values; the same seed gives the same values."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.context = create_decimal128_context()

    def double(self):
        kind = self.random.randrange(4)
        if kind == 0:
            number = struct.unpack("<d", self.random.randbytes(8))[0]
        elif kind == 1:
            number = self.random.randrange(-2000, 2000) / 16
        elif kind == 2:
            number = math.ldexp(1.0, self.random.randrange(-1074, 1024))
        else:
            number = self.random.choice(DOUBLES)
        for _ in range(self.random.randrange(3)):
            number = math.nextafter(number, self.random.choice([math.inf, -math.inf]))
        return math.nan if math.isnan(number) else number * self.random.choice([1, -1])

    def integer(self, bits):
        kind = self.random.randrange(3)
        if kind == 0:
            number = self.random.randrange(-300, 300)
        elif kind == 1:
            number = self.random.choice([1, -1]) * (2 ** self.random.randrange(bits)) + self.random.randrange(-2, 3)
        else:
            number = self.random.getrandbits(bits) - 2 ** (bits - 1)
        return max(-(2 ** (bits - 1)), min(2 ** (bits - 1) - 1, number))

    def decimal(self):
        kind = self.random.randrange(5)
        sign = self.random.choice(["", "-"])
        if kind == 0:
            text = f"{sign}{self.random.randrange(10**34)}E{self.random.randrange(-6176, 6112)}"
        elif kind == 1:
            text = f"{sign}{self.random.randrange(2000)}E{self.random.randrange(-6, 6)}"
        elif kind == 2:
            text = self.random.choice(["NaN", "Infinity", "-Infinity", "0", "-0", "0E+6111", "0E-6176", "1E-6176"])
        elif kind == 3:
            text = f"{self.integer(64)}.{self.random.choice(['0', '5', '00', '0000000001', ''])}".rstrip(".")
        else:
            return self.decimal_near_double()
        return Decimal128(text)

    def decimal_near_double(self):
        number = self.double()
        if not math.isfinite(number):
            return Decimal128("Infinity")
        # The double's value to 34 digits, and from there up to one unit away.
        sign, digits, exponent = self.context.create_decimal(Decimal(number)).as_tuple()
        coefficient = int("".join(map(str, digits))) * 10 ** (34 - len(digits))
        exponent -= 34 - len(digits)
        keep = self.random.choice([34, 34, 20, 17, 10])
        coefficient = coefficient // 10 ** (34 - keep) + self.random.choice([-1, 0, 0, 1])
        coefficient = max(0, min(10**34 - 1, coefficient))
        return Decimal128(f"{'-' if sign else ''}{coefficient}E{exponent + 34 - keep}")

    def text(self):
        alphabet = ["\0", "\1", "\2", "a", "b", "é", "\uffff", "😀"]
        return "".join(self.random.choice(alphabet) for _ in range(self.random.randrange(5)))

    def name(self):
        return self.text().replace("\0", "c").replace("$", "d")

    def number(self):
        kind = self.random.randrange(4)
        if kind == 0:
            return of_int32(self.integer(32))
        if kind == 1:
            return of_int64(self.integer(64))
        if kind == 2:
            return of_double(self.double())
        return of_decimal(self.decimal())

    def scalar(self):
        some_bytes = bytes(self.random.choice([0, 1, 128, 255]) for _ in range(12))
        choices = [
            lambda: self.random.choice(SINGLE),
            lambda: of_string(self.text()),
            lambda: Value(14, string(text := self.text()), {"$symbol": text}),
            lambda: of_binary(self.random.choice([0, 3, 5, 128]), some_bytes[: self.random.randrange(4)]),
            lambda: of_binary(0, bytes([self.random.randrange(256)]) * self.random.randrange(250, 260)),
            lambda: of_object_id(some_bytes),
            lambda: of_date(self.integer(64)),
            lambda: of_regex(self.name(), self.random.choice(["", "i", "im"])),
            # The server contradicts itself here: its indexes go by length, namespace and id, its comparisons by length, id
            # and namespace, and both read a namespace up to its first NUL only. So there is one namespace of each length.
            lambda: of_db_pointer("abcd"[: self.random.randrange(5)], some_bytes),
            lambda: Value(13, string(code := self.text()), {"$code": code}),
            lambda: of_timestamp(self.random.choice([0, 1, 2**31, 2**32 - 1]), self.random.getrandbits(32)),
        ]
        return self.random.choice(choices)()

    def value(self, depth=0):
        kind = self.random.randrange(12 if depth < 3 else 8)
        if kind < 5:
            return self.number()
        if kind < 8:
            return self.scalar()
        if kind < 10:
            return of_array([self.value(depth + 1) for _ in range(self.random.randrange(4))])
        fields = [(name, self.value(depth + 1)) for name in {self.name() for _ in range(self.random.randrange(4))}]
        fields.sort(key=lambda field: field[0])
        self.random.shuffle(fields)
        if kind == 10:
            return of_document(fields)
        return of_scoped_code(self.text(), of_document(fields))


def server_ranks(collection, values):
    """For each value its rank by comparing, and the order in which an index has them."""
    collection.drop()
    for start in range(0, len(values), 500):
        batch = enumerate(values[start : start + 500], start)
        collection.insert_many(
            [
                RawBSONDocument(document([("_id", of_int32(number)), ("w", of_document([("x", value)]))]))
                for number, value in batch
            ]
        )
    window = {"$setWindowFields": {"sortBy": {"w": 1}, "output": {"rank": {"$denseRank": {}}}}}
    ranks = [0] * len(values)
    for found in collection.aggregate([window, {"$project": {"rank": 1}}], allowDiskUse=True):
        ranks[found["_id"]] = found["rank"]
    collection.create_index([("w", 1)], name="w")
    walked = collection.find({}, {"_id": 1}).sort("w", 1).hint("w")
    by_index = [found["_id"] for found in walked]
    return ranks, by_index


def our_ranks(program, values, arguments):
    # An empty field name or a `$` name would be read as a type; values are generated without either at the top.
    lines = "".join(json.dumps({"v": value.extended}) + "\n" for value in values)
    done = subprocess.run([program, *arguments], input=lines, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{program} failed: {done.stderr}")
    ranks, rank = [0] * len(values), 0
    for line in done.stdout.splitlines():
        mark, number = line.split()
        rank += mark == "<"
        ranks[int(number)] = rank
    return ranks


def differences(name, values, expected, found):
    """Prints pairs of neighbours in the server's order that we hold to be in another order."""
    order = sorted(range(len(values)), key=lambda number: expected[number])
    wrong = 0
    for first, second in zip(order, order[1:]):
        server = (expected[first] > expected[second]) - (expected[first] < expected[second])
        ours = (found[first] > found[second]) - (found[first] < found[second])
        if server != ours:
            wrong += 1
            if wrong <= 10:
                signs = {-1: "<", 0: "=", 1: ">"}
                print(f"{name}: server {signs[server]}, we {signs[ours]}:")
                print("   ", json.dumps(values[first].extended))
                print("   ", json.dumps(values[second].extended))
    print(f"{name}: {wrong} of {len(values) - 1} neighbours differ")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--uri", required=True, help="the MongoDB server to compare with")
    parser.add_argument("--program", default="target/debug/examples/sort_values")
    parser.add_argument("--values", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    generator = Generator(arguments.seed)
    values = [generator.value() for _ in range(arguments.values)]
    client = MongoClient(arguments.uri)
    collection = client["sort_order_acceptance"]["values"]
    try:
        expected, by_index = server_ranks(collection, values)
    finally:
        client.drop_database("sort_order_acceptance")

    wrong = differences("by comparing", values, expected, our_ranks(arguments.program, values, []))
    keys = our_ranks(arguments.program, values, ["--keys"])
    wrong += differences("by key bytes", values, expected, keys)
    backwards = [pair for pair in zip(by_index, by_index[1:]) if keys[pair[0]] > keys[pair[1]]]
    for first, second in backwards[:10]:
        print("the server's index has this before that, our keys after:")
        print("   ", json.dumps(values[first].extended))
        print("   ", json.dumps(values[second].extended))
    print(f"by the server's index: {len(backwards)} of {len(values) - 1} neighbours differ")
    sys.exit(1 if wrong or backwards else 0)


if __name__ == "__main__":
    main()
