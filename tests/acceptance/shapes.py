"""Random geometry, well formed and malformed.

Coordinates are random doubles, so that no point lies on an edge: there rounding decides, on each server for itself."""

import math

STRICT = {"type": "name", "properties": {"name": "urn:x-mongodb:crs:strictwinding:EPSG:4326"}}
NAN, INFINITY = float("nan"), float("inf")
SQUARE = [[0.1, 0.2], [0.1, 5.3], [5.4, 5.1], [5.2, 0.3], [0.1, 0.2]]
HOLE = [[1.1, 1.2], [1.1, 2.3], [2.4, 2.1], [2.2, 1.3], [1.1, 1.2]]


def geo(kind, coordinates, **more):
    return {"type": kind, "coordinates": coordinates, **more}


def collection(*members):
    return {"type": "GeometryCollection", "geometries": list(members)}


def position(random, spread=None, centre=(0, 0)):
    """A longitude and a latitude, anywhere or near a centre."""
    if spread is None:
        return [random.uniform(-180, 180), math.degrees(math.asin(random.uniform(-1, 1)))]
    longitude = centre[0] + random.uniform(-spread, spread)
    latitude = centre[1] + random.uniform(-spread, spread)
    if abs(latitude) > 90:
        latitude = math.copysign(180 - abs(latitude), latitude)
    return [(longitude + 180) % 360 - 180, latitude]


def star(random, centre, radius, count=7):
    """A ring around a centre whose edges do not cross, counter-clockwise."""
    turns = sorted(random.uniform(0, 2 * math.pi) for _ in range(count))
    if max(b - a for a, b in zip(turns, turns[1:] + [turns[0] + 2 * math.pi])) > 2.8:
        turns = [at * 2 * math.pi / count for at in range(count)]
    ring = []
    for turn in turns:
        reach = radius * random.uniform(0.4, 1)
        latitude = max(-89.9, min(89.9, centre[1] + reach * math.sin(turn)))
        longitude = centre[0] + reach * math.cos(turn) / max(0.2, math.cos(math.radians(latitude)))
        ring.append([(longitude + 180) % 360 - 180, latitude])
    return ring + ring[:1]


def polygon(random, centre, radius):
    rings = [star(random, centre, radius)]
    if random.random() < 0.3:
        rings.append(star(random, centre, radius * 0.1, 4))
    return rings


def shape(random, spread, centre):
    """A GeoJSON shape or a legacy pair near a centre."""
    at = lambda: position(random, spread, centre)
    some = lambda make, most=4: [make() for _ in range(random.randint(1, most))]
    line = lambda: [at() for _ in range(random.randint(2, 5))]
    area = lambda: polygon(random, at(), spread * random.uniform(0.05, 0.5))
    match random.randrange(10):
        case 0: return at()
        case 1: return dict(zip(("lng", "lat"), at()))
        case 2 | 3: return geo("Point", at())
        case 4: return geo("LineString", line())
        case 5 | 6: return geo("Polygon", area())
        case 7: return geo("MultiPoint", some(at))
        case 8: return random.choice([geo("MultiLineString", some(line, 2)), geo("MultiPolygon", [area()])])
        case _: return collection(geo("Point", at()), geo("LineString", line()))


def region(random, spread, centre):
    """The argument of $geoWithin: one of every kind."""
    at = lambda: position(random, spread, centre)
    match random.randrange(7):
        case 0: return {"$box": [at(), at()]}
        case 1: return {"$polygon": star(random, at(), spread * 0.8)[:-1]}
        case 2: return {"$center": [at(), spread * random.random()]}
        case 3: return {"$centerSphere": [at(), math.radians(spread * random.random())]}
        case 4: return {"$geometry": geo("MultiPolygon", [polygon(random, at(), spread * 0.5)])}
        case 5: return {"$geometry": geo("Polygon", [star(random, at(), spread * 0.7)], crs=STRICT)}
        case _: return {"$geometry": geo("Polygon", polygon(random, at(), spread * 0.9))}


# Shapes that are none, or hardly. Each stands for one rule of the parser.
SHAPES = [
    5, "x", None, True, [], {}, [1], [1, 2], [1, 2, 3], [1, 2, 3, 4], ["a", 1], [1, "a"], [NAN, 1], [INFINITY, 1], [200, 1], [1, 95], [None, 1], [[]], [[1, 2]],
    [[1, 2], [3, 4]], [[1, 2], "x"], [{"a": 1}], {"a": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}, {"a": {"b": 1}}, {"x": "a"}, {"lat": 1, "lng": 200},
    {"x": 1, "y": 2, "type": "Point"}, {"type": "Point"}, {"coordinates": [1, 2]}, {"coordinates": [1, 2], "type": "Point"}, {"type": "point", "coordinates": [1, 2]},
    {"type": 5, "coordinates": [1, 2]}, geo("Foo", [1, 2]),
    *[geo("Point", value) for value in (5, None, [], [1], [1, 2], [1, 2, 3], ["a", 1], [181, 1], [1, 91], [-180, -90], {"a": 1, "b": 2}, {"a": 1}, [NAN, 1], [INFINITY, 1], [[1, 2]])],
    *[geo("LineString", value) for value in (5, None, [], [[1, 2]], [[1, 2], [1, 2]], [[1, 2], [1, 2], [3, 4]], [[1, 2], [181, 4]], [[1, 2], 5], [[1, 2], {"a": 1, "b": 2}],
                                             [1, 2], [[1, 2], [-179, -2]], {"a": [1, 2], "b": [3, 4]}, [[1, "a"], [2, 3]])],
    *[geo("Polygon", value) for value in (5, None, [], [[]], [5], [[[0, 0], [0, 1], [0, 0]]], [[[0, 0], [0, 1], [1, 1]]], [[[0, 0], [0, 1], [1, 1], [2, 2]]],
                                          [[[0, 0], [0, 1], [1, 1], [0, 0]]], [[[0, 0], [0, 1], [0, 1], [1, 1], [0, 0]]], [[[0, 0], [0, 1], [0, 0], [0, 1], [0, 0]]],
                                          [[[0, 0], [1, 1], [0, 1], [1, 0], [0, 0]]], [[[0, 0], [0, 5], [5, 5], [2, 2], [5, 0], [2, 2], [0, 0]]], [[[0, 0], [0, 95], [5, 5], [0, 0]]],
                                          [[[0, 0], [0, 5], 5, [5, 0], [0, 0]]], [SQUARE], [SQUARE, HOLE], [HOLE, SQUARE], [SQUARE, SQUARE], [SQUARE, HOLE, HOLE],
                                          [SQUARE, [[11, 1], [11, 2], [12, 2], [12, 1], [11, 1]]], [SQUARE, [[1, 1], [1, 2], [12, 2], [12, 1], [1, 1]]],
                                          [SQUARE, HOLE, [[2, 2], [2, 4], [4, 4], [4, 2], [2, 2]]], SQUARE, [[[0, 1], [90, 2], [179, 1], [-90, 2], [0, 1]]])],
    *[geo("Polygon", [SQUARE], crs=crs) for crs in (5, None, {}, {"type": "foo"}, {"type": "name"}, {"type": "name", "properties": {}}, {"type": "name", "properties": {"name": 5}},
                                                   {"type": "name", "properties": {"name": "foo"}}, {"type": "name", "properties": {"name": "EPSG:4326"}},
                                                   {"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}, STRICT)],
    geo("Polygon", [SQUARE, HOLE], crs=STRICT), geo("Point", [1, 2], crs=STRICT), geo("LineString", [[1, 2], [3, 4]], crs=STRICT), geo("MultiPolygon", [[SQUARE]], crs=STRICT),
    *[geo("MultiPoint", value) for value in (5, None, [], [5], [[1, 2]], [[1, 200]], [[1, 2], [1, 2]])],
    *[geo("MultiLineString", value) for value in (5, [], [5], [[]], [[[1, 2]]], [[[1, 2], [3, 4]]])],
    *[geo("MultiPolygon", value) for value in (5, [], [5], [[]], [[[]]], [[SQUARE]], [[SQUARE, HOLE]], [[SQUARE], [HOLE]])],
    {"type": "GeometryCollection"}, *[{"type": "GeometryCollection", "geometries": value} for value in (5, [], [5], [{}], [{"type": "Foo"}], {"a": geo("Point", [1, 2])})],
    collection({"type": "GeometryCollection", "geometries": []}), collection(geo("Point", [1, 200])), collection(geo("Point", [1, 2]), geo("LineString", [[1, 2], [3, 4]])),
]

# Arguments of $geoWithin and $geoIntersects that are none, or hardly.
REGIONS = [
    5, None, "x", [], {}, [1, 2], {"$foo": 1}, {"foo": 1}, {"$foo": {}}, {"$uniqueDocs": True}, {"$uniqueDocs": True, "$box": [[1, 2], [3, 4]]},
    {"$geometry": geo("Polygon", [SQUARE]), "$box": [[1, 2], [3, 4]]}, {"$box": [[1, 2], [3, 4]], "$geometry": geo("Polygon", [SQUARE])},
    {"$geometry": geo("Polygon", [SQUARE]), "foo": 1}, {"$box": [[1, 2], [3, 4]], "$maxDistance": 5},
    *[{"$box": value} for value in (5, [], [[1, 2]], [[1, 2], [3]], [[1, 2], [3, 4]], [[3, 4], [1, 2]], [[1, 2], [3, 4], [5, 6]], [[1, 2], ["a", 4]], [[1, 2], [1, 2]], {"a": [1, 2], "b": [3, 4]},
                                    [{"x": 1, "y": 1}, {"x": 2, "y": 3}], [[NAN, 1], [2, 3]], [[-1000, -1000], [1000, 1000]])],
    *[{"$polygon": value} for value in (5, [], [[1, 2], [2, 3]], [[0, 0], [0, 5], [5, 5]], [[1, 2], [2, 3], [5]], [[1, 2], [2, 3], 5], {"a": [0, 0], "b": [0, 5], "c": [5, 5]}, [[0, 0], [0, 5], [5, 5], [0, 0]],
                                        [[0, 0], [0, 0], [0, 0]])],
    *[{"$center": value} for value in (5, [], [[1, 2]], [[1, 2], -1], [[1, 2], "a"], [[1, 2], 1, 3], [1, 2], [[1, 2], NAN], [[1, 2], INFINITY], [[1, 2], 0], [[1, 2], 3], [{"x": 1, "y": 2}, 3], {"a": [1, 2], "b": 3})],
    *[{"$centerSphere": value} for value in (5, [], [[1, 2]], [[1, 2], -1], [[1, 2], "a"], [[1, 2], 1, 3], [[200, 2], 1], [geo("Point", [1, 2]), 0.1], [[1, 2], 4], [[1, 2], NAN], [[1, 2], 0.1], [[1, 2], 0])],
]
