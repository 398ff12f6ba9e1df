"""BSON without loss: what PyMongo's own types cannot tell apart (int32 and int64, symbol and string, undefined and null,
two NaNs, a decimal's trailing zeros) stays apart here.

* `encode(value)` gives a `RawBSONDocument` for a dict that may hold `sort_order.Value`s (any type byte with its payload).
* `decode(bytes)` gives a list of (name, Exact) pairs; an `Exact` prints as the shell would show it.
* `first_difference(left, right)` gives the path of the first value that differs, or None.
"""

import struct
import sys

import bson
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.raw_bson import RawBSONDocument

from sort_order import Value, cstring

# Documents may be nested 200 levels deep and more, and each level takes several frames here.
sys.setrecursionlimit(5000)
LENIENT = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS)
NAMES = {1: "double", 2: "string", 3: "object", 4: "array", 5: "binary", 6: "undefined", 7: "objectId", 8: "bool", 9: "date",
         10: "null", 11: "regex", 12: "dbPointer", 13: "code", 14: "symbol", 15: "codeWithScope", 16: "int", 17: "timestamp",
         18: "long", 19: "decimal", 127: "maxKey", 255: "minKey"}
FIXED = {1: 8, 6: 0, 7: 12, 8: 1, 9: 8, 10: 0, 16: 4, 17: 8, 18: 8, 19: 16, 127: 0, 255: 0}
EMBEDDED = (3, 4)


def encode(fields):
    """A dict as a raw document; lists, dicts, raw documents and `sort_order.Value`s may stand anywhere in it."""
    return RawBSONDocument(_document(fields.items()))


def _document(pairs):
    body = b"".join(_element(name, value) for name, value in pairs)
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def _element(name, value):
    if isinstance(value, Value):
        return bytes([value.type_byte]) + cstring(name) + value.payload
    if isinstance(value, RawBSONDocument):
        return b"\3" + cstring(name) + value.raw
    if isinstance(value, dict):
        return b"\3" + cstring(name) + _document(value.items())
    if isinstance(value, list):
        return b"\4" + cstring(name) + _document((str(at), item) for at, item in enumerate(value))
    encoded = bson.encode({"v": value})
    return encoded[4:5] + cstring(name) + encoded[7:-1]


class Exact:
    """One value: its type byte, and its payload or, of objects and arrays, its (name, value) pairs."""

    def __init__(self, type_byte, payload):
        self.type_byte = type_byte
        self.payload = payload
        self.pairs = decode(payload) if type_byte in EMBEDDED else None

    def __eq__(self, other):
        return isinstance(other, Exact) and (self.type_byte, self.payload) == (other.type_byte, other.payload)

    def __hash__(self):
        return hash((self.type_byte, self.payload))

    def python(self):
        """The value as PyMongo has it."""
        size = 4 + 1 + 2 + len(self.payload) + 1
        raw = struct.pack("<i", size) + bytes([self.type_byte]) + b"v\0" + self.payload + b"\0"
        return bson.decode(raw, LENIENT)["v"]

    def __repr__(self):
        if self.type_byte == 3:
            return "{" + ", ".join(f"{name}: {value!r}" for name, value in self.pairs) + "}"
        if self.type_byte == 4:
            return "[" + ", ".join(repr(value) for _, value in self.pairs) + "]"
        if self.type_byte == 2:
            return repr(self.python())
        if self.type_byte in (6, 10, 127, 255):
            return NAMES[self.type_byte]
        return f"{NAMES[self.type_byte]}({self.python()})"


def decode(raw):
    """The (name, Exact) pairs of a document."""
    pairs, at = [], 4
    while raw[at]:
        type_byte = raw[at]
        end = raw.index(0, at + 1)
        name = raw[at + 1 : end].decode(errors="replace")
        at = end + 1
        size = _size(type_byte, raw, at)
        pairs.append((name, Exact(type_byte, raw[at : at + size])))
        at += size
    return pairs


def _size(type_byte, raw, at):
    if type_byte in FIXED:
        return FIXED[type_byte]
    if type_byte == 11:
        return raw.index(0, raw.index(0, at) + 1) + 1 - at
    length = struct.unpack_from("<i", raw, at)[0]
    if type_byte in (3, 4, 15):
        return length
    return length + 4 + {5: 1, 12: 12}.get(type_byte, 0)


def whole(raw):
    """A whole document as one value."""
    return Exact(3, bytes(raw))


def first_difference(left, right, path=""):
    """The path of the first difference, with what stands there on both sides; None if both are equal."""
    if left == right:
        return None
    if left.type_byte != right.type_byte or left.pairs is None:
        return f"{path or '(whole)'}: {left!r} against {right!r}"
    for (left_name, left_value), (right_name, right_value) in zip(left.pairs, right.pairs):
        here = f"{path}.{left_name}" if path else left_name
        if left_name != right_name:
            return f"{here}: the other has the field {right_name} in this place"
        found = first_difference(left_value, right_value, here)
        if found:
            return found
    if len(left.pairs) > len(right.pairs):
        name, value = left.pairs[len(right.pairs)]
        return f"{path}.{name}: {value!r} against nothing"
    name, value = right.pairs[len(left.pairs)]
    return f"{path}.{name}: nothing against {value!r}"


def without(raw, names):
    """A document's pairs without the named fields, which are paths with dots; `*` stands for any name."""
    wanted = [name.split(".") for name in names]
    return decode(_without(decode(raw), wanted))


def _without(pairs, wanted):
    kept = []
    for name, value in pairs:
        inside = [path[1:] for path in wanted if path[0] in (name, "*")]
        if [] in inside:
            continue
        if inside and value.pairs is not None:
            value = Exact(value.type_byte, _without(value.pairs, inside))
        kept.append((name, value))
    return assemble(kept)


def assemble(pairs):
    """The raw document of (name, Exact) pairs."""
    body = b"".join(bytes([value.type_byte]) + cstring(name) + value.payload for name, value in pairs)
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def exactly(value):
    """A Python value as an Exact."""
    return decode(encode({"v": value}).raw)[0][1]
