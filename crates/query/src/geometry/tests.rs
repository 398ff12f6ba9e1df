//! Tests of shapes, regions and coverings.

use pando_document::{Document, Value, doc};

use super::covering::{CellLevels, angles_of_cell, keys_of, ranges_of_region, ranges_of_ring};
use super::*;

const STRICT: &str = "urn:x-mongodb:crs:strictwinding:EPSG:4326";

fn ring(points: &[(f64, f64)]) -> Value {
    let pair = |(x, y): &(f64, f64)| Value::Array(vec![Value::Double(*x), Value::Double(*y)]);
    Value::Array(points.iter().chain(points.first()).map(pair).collect())
}

fn polygon(rings: &[&[(f64, f64)]]) -> Document {
    doc! { "type": "Polygon", "coordinates": (Value::Array(rings.iter().map(|points| ring(points)).collect())) }
}

fn point(x: f64, y: f64) -> Document {
    doc! { "type": "Point", "coordinates": [x, y] }
}

fn line(points: &[(f64, f64)]) -> Document {
    let Value::Array(mut points) = ring(points) else { unreachable!() };
    points.pop();
    doc! { "type": "LineString", "coordinates": (Value::Array(points)) }
}

fn stored(value: impl Into<Value>) -> Result<StoredGeometry, GeometryFault> {
    let document = doc! { "l": (value.into()) }.to_raw();
    StoredGeometry::parse("l", document.get("l").unwrap().unwrap())
}

fn region(fields: &Document) -> Region {
    Region::parse(&fields.to_raw()).unwrap().unwrap()
}

fn fault(value: impl Into<Value>) -> String {
    stored(value).unwrap_err().0
}

const SQUARE: [(f64, f64); 4] = [(0.0, 0.0), (0.0, 10.0), (10.0, 10.0), (10.0, 0.0)];
const HOLE: [(f64, f64); 4] = [(4.0, 4.0), (4.0, 6.0), (6.0, 6.0), (6.0, 4.0)];

#[test]
fn rings_are_checked() {
    assert!(stored(polygon(&[&SQUARE, &HOLE])).is_ok());
    assert!(fault(polygon(&[&HOLE, &SQUARE])).starts_with("Secondary loops not contained"));
    assert!(fault(polygon(&[&SQUARE, &SQUARE])).contains("Duplicate edge"));
    let crossed = [(0.0, 0.0), (1.0, 1.0), (0.0, 1.0), (1.0, 0.0)];
    assert!(fault(polygon(&[&crossed])).contains("cross"));
    assert!(fault(polygon(&[&[(0.0, 0.0), (0.0, 1.0)]])).contains("at least 3 different vertices"));
    let twice = [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.0, 1.0), (-1.0, 1.0)];
    assert!(fault(polygon(&[&twice])).contains("Duplicate vertices: 1 and 3"));
    assert!(fault(doc! { "type": "Polygon", "coordinates": [] }).contains("has no loops"));
    let second = [(5.0, 3.0), (5.0, 7.0), (7.0, 7.0), (7.0, 3.0)];
    assert!(fault(polygon(&[&SQUARE, &HOLE, &second])).starts_with("Polygon isn't valid"));
}

#[test]
fn polygons_hold_what_lies_within_and_not_in_their_holes() {
    let own = region(&doc! { "$geometry": (polygon(&[&SQUARE, &HOLE])) });
    let holds = |value: Document| own.contains(&stored(value).unwrap());
    let meets = |value: Document| own.intersects(&stored(value).unwrap());
    assert!(holds(point(1.0, 1.0)) && !holds(point(5.0, 5.0)) && !holds(point(11.0, 1.0)));
    assert!(holds(line(&[(1.0, 1.0), (9.0, 1.0)])) && !holds(line(&[(5.0, 1.0), (5.0, 9.0)])));
    assert!(meets(line(&[(5.0, 5.0), (5.0, 9.0)])) && !meets(line(&[(4.5, 4.5), (5.5, 5.5)])));
    assert!(meets(line(&[(-5.0, 5.0), (20.0, 5.0)])));
    let inner = [(1.0, 1.0), (1.0, 2.0), (2.0, 2.0), (2.0, 1.0)];
    assert!(holds(polygon(&[&inner])) && !holds(polygon(&[&SQUARE])) && meets(polygon(&[&SQUARE])));
    assert!(holds(doc! { "lng": 1, "lat": 9 }) && !holds(doc! { "lng": 200, "lat": 9 }));
}

/// As MongoDB 6.0 answers for each of them, by `$geoWithin` and `$geoIntersects`.
#[test]
fn lines_touch_a_border_from_inside_and_do_not_meet_it_from_outside() {
    let square = [(0.0, 0.0), (25.0, 0.0), (25.0, 25.0), (0.0, 25.0)];
    let square = region(&doc! { "$geometry": (polygon(&[&square])) });
    for (points, answers) in [
        (&[(1.0, 1.0), (10.0, 3.0)][..], [true, true]),
        (&[(0.0, 5.0), (10.0, 3.0)], [true, true]),
        (&[(0.0, 0.0), (10.0, 3.0)], [true, true]),
        (&[(1.0, 1.0), (0.0, 5.0), (10.0, 3.0)], [true, true]),
        (&[(0.0, 5.0), (25.0, 5.0)], [true, true]),
        (&[(5.0, 2.0), (-5.0, -5.0)], [false, true]),
        // Out and back.
        (&[(5.0, 2.0), (-5.0, -5.0), (5.0, 2.0), (0.0, 5.0)], [false, true]),
        // On the border, and at a corner.
        (&[(0.0, 0.0), (0.0, 25.0)], [false, false]),
        (&[(-5.0, -5.0), (0.0, 0.0)], [false, false]),
        (&[(-5.0, -5.0), (-5.0, 5.0)], [false, false]),
    ] {
        let line = stored(line(points)).unwrap();
        assert_eq!([square.contains(&line), square.intersects(&line)], answers, "{points:?}");
    }
}

#[test]
fn polygons_cross_the_antimeridian_and_hold_poles() {
    let wide = region(
        &doc! { "$geometry": (polygon(&[&[(170.0, -10.0), (-170.0, -10.0), (-170.0, 10.0), (170.0, 10.0)]])) },
    );
    for (x, y, is_inside) in [(180.0, 0.0, true), (-175.0, 5.0, true), (175.0, -5.0, true), (0.0, 0.0, false)]
    {
        assert_eq!(wide.contains(&stored(point(x, y)).unwrap()), is_inside, "{x} {y}");
    }
    let around = [(0.0, 80.0), (90.0, 80.0), (180.0, 80.0), (-90.0, 80.0)];
    let cap = region(&doc! { "$geometry": (polygon(&[&around])) });
    assert!(
        cap.contains(&stored(point(45.0, 90.0)).unwrap()) && cap.contains(&stored(point(1.0, 89.0)).unwrap())
    );
    assert!(!cap.contains(&stored(point(45.0, 70.0)).unwrap()));
}

#[test]
fn strict_winding_takes_the_left_side_and_is_for_queries_only() {
    let mut clockwise = polygon(&[&SQUARE]);
    clockwise.push("crs", doc! { "type": "name", "properties": { "name": STRICT } });
    let outside = region(&doc! { "$geometry": (clockwise.clone()) });
    assert!(outside.contains(&stored(point(50.0, 50.0)).unwrap()));
    assert!(!outside.contains(&stored(point(5.0, 5.0)).unwrap()));
    assert!(outside.contains(&stored(line(&[(20.0, 0.0), (100.0, 0.0)])).unwrap()));
    assert!(matches!(stored(clockwise), Ok(StoredGeometry::StrictWinding)));
}

#[test]
fn regions_of_the_plane_hold_points_with_their_edges() {
    let holds = |fields: Document, x: f64, y: f64| {
        region(&fields).contains(&stored(Value::Array(vec![x.into(), y.into()])).unwrap())
    };
    let square = || doc! { "$box": [[10, 10], [0, 0]] };
    assert!(holds(square(), 10.0, 0.0) && holds(square(), 5.0, 5.0) && !holds(square(), 10.1, 5.0));
    let triangle = || doc! { "$polygon": [[0, 0], [10, 0], [0, 10]] };
    assert!(holds(triangle(), 5.0, 5.0) && holds(triangle(), 0.0, 0.0) && holds(triangle(), 3.0, 0.0));
    assert!(holds(triangle(), 1.0, 1.0) && !holds(triangle(), 6.0, 6.0) && !holds(triangle(), -1.0, 0.0));
    let circle = || doc! { "$center": [[0, 0], 5] };
    assert!(holds(circle(), 3.0, 4.0) && !holds(circle(), 3.1, 4.0));
    let flat = region(&square());
    assert!(flat.contains(&stored(point(1.0, 1.0)).unwrap()));
    assert!(!flat.contains(&stored(line(&[(1.0, 1.0), (2.0, 2.0)])).unwrap()));
}

#[test]
fn distances_are_those_of_a_sphere_of_the_right_radius() {
    let near = NearQuery {
        centre: PlanePoint { x: 0.0, y: 0.0 },
        form: NearCentre::GeoJson,
        metric: Metric::Metres,
        least: 0.0,
        greatest: f64::MAX,
    };
    let distance = |value: Document| near.distance(&stored(value).unwrap()).unwrap();
    let close = |a: f64, b: f64| (a - b).abs() <= b * 1e-9;
    // The distances of MongoDB 6.0.
    assert!(close(distance(point(1.0, 0.0)), 111_318.845_021_450_34));
    assert!(close(distance(point(180.0, 0.0)), 20_037_392.103_861_06));
    let below = [(-10.0, -10.0), (-10.0, -5.0), (-5.0, -5.0), (-5.0, -10.0)];
    assert!(close(distance(polygon(&[&below])), 786_642.899_270_763));
    assert_eq!(distance(polygon(&[&[(-1.0, -1.0), (-1.0, 1.0), (1.0, 1.0), (1.0, -1.0)]])), 0.0);
    assert!(distance(line(&[(-1.0, 1.0), (1.0, 1.0)])) < distance(point(1.0, 1.0)));
}

#[test]
fn the_keys_of_a_shape_lie_in_the_ranges_of_the_regions_that_it_meets() {
    let shapes = [
        point(5.0, 5.0),
        point(180.0, 89.0),
        line(&[(4.0, 4.0), (90.0, 45.0)]),
        polygon(&[&SQUARE, &HOLE]),
        polygon(&[&[(170.0, -10.0), (-170.0, -10.0), (-170.0, 10.0), (170.0, 10.0)]]),
        polygon(&[&[(4.9, 4.9), (4.9, 5.1), (5.1, 5.1), (5.1, 4.9)]]),
    ];
    let is_met = |keys: &[i64], ranges: &[(i64, i64)]| {
        keys.iter().any(|key| ranges.iter().any(|(first, last)| (*first..=*last).contains(key)))
    };
    for levels in [CellLevels::default(), CellLevels::new(4, 9).unwrap(), CellLevels::new(0, 30).unwrap()] {
        for shape in &shapes {
            let own = stored(shape.clone()).unwrap();
            let keys = keys_of(&own.on_sphere().unwrap(), levels);
            assert!(!keys.is_empty() && keys.is_sorted());
            for other in &shapes {
                let region = region(&doc! { "$geometry": (other.clone()) });
                let ranges = ranges_of_region(&region, levels).unwrap();
                assert!(!region.intersects(&own) || is_met(&keys, &ranges), "{shape:?} {other:?} {levels:?}");
            }
            let centre = PlanePoint { x: 4.0, y: 3.0 };
            let angle = own.on_sphere().unwrap().distance(centre.on_sphere());
            for width in [1e-7, 0.01, 1.0] {
                let ranges = ranges_of_ring(centre, (angle - width).max(0.0), angle + width, levels);
                assert!(is_met(&keys, &ranges), "{shape:?} at {angle} in a ring of {width}");
            }
        }
    }
}

#[test]
fn cells_bound_the_distances_of_their_geometries() {
    let chance = pando_environment::SeededRandom::new(1);
    let number = |least: f64, greatest: f64| {
        use pando_environment::Random;
        least + (greatest - least) * (chance.next_u64() as f64 / u64::MAX as f64)
    };
    for round in 0..2_000 {
        let centre = PlanePoint { x: number(-180.0, 180.0), y: number(-90.0, 90.0) };
        // Some are near, and some on the other side.
        let width = [180.0, 1.0, 0.01, 0.000_01][round % 4];
        let x = (centre.x + number(-width, width)).clamp(-180.0, 180.0);
        let y = (centre.y + number(-width, width)).clamp(-90.0, 90.0);
        let near = NearQuery {
            centre,
            form: NearCentre::GeoJson,
            metric: Metric::Radians,
            least: 0.0,
            greatest: f64::MAX,
        };
        let place = stored(point(x, y)).unwrap();
        let distance = near.distance(&place).unwrap();
        for finest in [0, 5, 23, 30] {
            let levels = CellLevels::new(0, finest).unwrap();
            let keys = keys_of(&place.on_sphere().unwrap(), levels);
            let (least, greatest) = angles_of_cell(centre, keys[0]).unwrap();
            assert!((least..=greatest).contains(&distance), "{centre:?} to {x}, {y} at {finest}");
        }
        let far = stored(line(&[(x, y), (number(-180.0, 180.0), number(-89.0, 89.0))])).unwrap();
        let distance = near.distance(&far).unwrap();
        let keys = keys_of(&far.on_sphere().unwrap(), CellLevels::default());
        let least = keys.iter().map(|key| angles_of_cell(centre, *key).unwrap().0);
        assert!(least.fold(f64::MAX, f64::min) <= distance, "{centre:?} to a line from {x}, {y}");
    }
    assert!(angles_of_cell(PlanePoint { x: 0.0, y: 0.0 }, 0).is_none());
}
