//! Cells of the plane: the keys of `2d` indexes.
//!
//! # Terms
//! - *Grid*: the square between two bounds, which each bit halves in both directions.
//! - *Hash*: the bits of both coordinates in turn, the first ones first, as a number in the order of the
//!   bits. The hashes of the points of a cell are one range.
//!
//! # Algorithm of a covering
//! Cells are taken apart breadth first, from the whole grid on. A cell outside of the region is dropped. A
//! cell within it, of the last bit, or for whose quarters there is no room, gives its range.

use std::collections::VecDeque;

use s2rst::r1::Interval;
use s2rst::s2::{Cap, Rect};

use super::region::SphereCap;
use super::{Metric, NearQuery, PlaneBox, PlanePoint, Region};

/// Ranges of one covering.
const RANGES_MAX: usize = 64;

/// A grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HashGrid {
    /// Bits of each coordinate, between 1 and 32.
    bits: u32,
    least: f64,
    greatest: f64,
}

/// The place of a cell with regard to a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// They have no point in common.
    Outside,
    /// They may have points in common.
    Partly,
    /// The cell lies within.
    Inside,
}

/// A cell: the first bits of both coordinates.
#[derive(Clone, Copy)]
struct GridCell {
    bits: u32,
    x: u64,
    y: u64,
}

impl Default for HashGrid {
    fn default() -> HashGrid {
        HashGrid { bits: 26, least: -180.0, greatest: 180.0 }
    }
}

impl HashGrid {
    /// A grid of up to 32 bits between two finite bounds; `None` for others.
    pub fn new(bits: i64, least: f64, greatest: f64) -> Option<HashGrid> {
        let bits = u32::try_from(bits).ok().filter(|bits| (1..=32).contains(bits))?;
        let is_area = least < greatest && (greatest - least).is_finite();
        is_area.then_some(HashGrid { bits, least, greatest })
    }

    /// The bounds as MongoDB prints them.
    pub fn bounds_text(&self) -> String {
        let text = crate::shell_text::general_text;
        format!("[ {}, {} ]", text(self.least), text(self.greatest))
    }

    /// The width of the smallest cells.
    pub fn cell_width(&self) -> f64 {
        (self.greatest - self.least) / 2.0_f64.powi(self.bits.cast_signed())
    }

    /// The distance of the farthest corner from a point.
    pub fn farthest(&self, point: PlanePoint) -> f64 {
        let along = |place: f64| (place - self.least).abs().max((place - self.greatest).abs());
        along(point.x).hypot(along(point.y))
    }

    /// The hash of a point; `None` outside of the grid.
    pub fn hash(&self, point: PlanePoint) -> Option<i64> {
        let cell = GridCell { bits: self.bits, x: self.place(point.x)?, y: self.place(point.y)? };
        Some(self.range(cell).0)
    }

    fn place(&self, coordinate: f64) -> Option<u64> {
        if !(self.least..=self.greatest).contains(&coordinate) {
            return None;
        }
        let cells = 1_u64 << self.bits;
        let share = (coordinate - self.least) / (self.greatest - self.least);
        Some(((share * cells as f64) as u64).min(cells - 1))
    }

    /// The hashes of the points of a cell, both ends included.
    fn range(&self, cell: GridCell) -> (i64, i64) {
        let interleaved = interleave(cell.x) << 1 | interleave(cell.y);
        let free_bits = 64 - 2 * cell.bits;
        let first = if free_bits == 64 { 0 } else { interleaved << free_bits };
        // The bits behind those of the grid are zeroes in every hash.
        let rest = if free_bits == 64 { u64::MAX } else { (1_u64 << free_bits) - 1 };
        // The order of unsigned numbers.
        let number = |bits: u64| (bits ^ (1 << 63)).cast_signed();
        (number(first), number(first | rest))
    }

    /// The square of a cell, somewhat widened, so that rounding leaves no point out.
    fn square(&self, cell: GridCell) -> PlaneBox {
        let whole = self.greatest - self.least;
        let width = whole / 2.0_f64.powi(cell.bits.cast_signed());
        let slack = whole * 1e-12;
        let at = |place: u64| self.least + place as f64 * width;
        PlaneBox {
            least: PlanePoint { x: at(cell.x) - slack, y: at(cell.y) - slack },
            greatest: PlanePoint { x: at(cell.x + 1) + slack, y: at(cell.y + 1) + slack },
        }
    }

    /// The ranges of hashes of the points of a region, both ends included, sorted and apart.
    pub fn ranges_of(&self, relation: &dyn Fn(&PlaneBox) -> Relation) -> Vec<(i64, i64)> {
        let mut ranges: Vec<(i64, i64)> = Vec::new();
        let mut cells = VecDeque::from([GridCell { bits: 0, x: 0, y: 0 }]);
        while let Some(cell) = cells.pop_front() {
            let is_room = ranges.len() + cells.len() + 4 <= RANGES_MAX;
            match relation(&self.square(cell)) {
                Relation::Outside => {}
                Relation::Partly if cell.bits < self.bits && is_room => {
                    for quarter in 0..4 {
                        cells.push_back(GridCell {
                            bits: cell.bits + 1,
                            x: cell.x << 1 | quarter >> 1,
                            y: cell.y << 1 | quarter & 1,
                        });
                    }
                }
                Relation::Partly | Relation::Inside => ranges.push(self.range(cell)),
            }
        }
        ranges.sort_unstable();
        let mut joined: Vec<(i64, i64)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match joined.last_mut() {
                Some(before) if before.1.checked_add(1) == Some(first) => before.1 = last,
                _ => joined.push((first, last)),
            }
        }
        joined
    }

    /// The ranges of a region's points; `None` for shapes, which a `2d` index does not serve.
    pub fn ranges_of_region(&self, region: &Region) -> Option<Vec<(i64, i64)>> {
        Some(match region {
            Region::Shape(_) => return None,
            Region::Box(own) => {
                self.ranges_of(&|cell| match (own.contains_box(cell), own.intersects(cell)) {
                    (true, _) => Relation::Inside,
                    (false, true) => Relation::Partly,
                    (false, false) => Relation::Outside,
                })
            }
            Region::Polygon(own) => {
                let bounds = own.bounds();
                self.ranges_of(&|cell| match bounds.intersects(cell) && own.may_meet(cell) {
                    true => Relation::Partly,
                    false => Relation::Outside,
                })
            }
            Region::Circle(own) => self.ranges_of(&|cell| within_ring(cell, own.centre, 0.0, own.radius)),
            Region::Cap(own) => self.ranges_of(&|cell| within_cap_ring(cell, None, own)),
        })
    }

    /// The ranges of the points between two distances from a centre.
    pub fn ranges_of_ring(&self, near: &NearQuery, inner: f64, outer: f64) -> Vec<(i64, i64)> {
        if near.metric == Metric::Plane {
            return self.ranges_of(&|cell| within_ring(cell, near.centre, inner, outer));
        }
        let cap = |distance: f64| SphereCap::new(near.centre, distance / near.radius());
        let (outer, inner) = (cap(outer + near.radius() * 1e-9), (inner > 0.0).then(|| cap(inner)));
        self.ranges_of(&|cell| within_cap_ring(cell, inner.as_ref(), &outer))
    }
}

/// Spreads the bits of a number, each before a zero.
fn interleave(number: u64) -> u64 {
    let mut spread = number & 0xFFFF_FFFF;
    for (shift, mask) in [
        (16, 0x0000_FFFF_0000_FFFF_u64),
        (8, 0x00FF_00FF_00FF_00FF),
        (4, 0x0F0F_0F0F_0F0F_0F0F),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ] {
        spread = (spread | spread << shift) & mask;
    }
    spread
}

fn within_ring(cell: &PlaneBox, centre: PlanePoint, inner: f64, outer: f64) -> Relation {
    let corners = [
        cell.least,
        cell.greatest,
        PlanePoint { x: cell.least.x, y: cell.greatest.y },
        PlanePoint { x: cell.greatest.x, y: cell.least.y },
    ];
    let farthest = corners.iter().map(|corner| centre.distance(*corner)).fold(0.0, f64::max);
    if cell.distance(centre) > outer || farthest < inner { Relation::Outside } else { Relation::Partly }
}

/// A cell as longitudes and latitudes, and a ring on the sphere.
fn within_cap_ring(cell: &PlaneBox, inner: Option<&SphereCap>, outer: &SphereCap) -> Relation {
    let latitudes =
        Interval::new(cell.least.y.max(-90.0).to_radians(), cell.greatest.y.min(90.0).to_radians());
    let longitudes = (cell.least.x.max(-180.0).to_radians(), cell.greatest.x.min(180.0).to_radians());
    if latitudes.lo > latitudes.hi || longitudes.0 > longitudes.1 {
        // Such points are not on the sphere.
        return Relation::Outside;
    }
    let square = Rect::new(latitudes, s2rst::s1::Interval::new(longitudes.0, longitudes.1));
    let is_around = |cap: &Cap| cap.contains(square.cap_bound());
    if inner.is_some_and(|inner| is_around(&inner.cap)) || !outer.cap.rect_bound().intersects(square) {
        return Relation::Outside;
    }
    Relation::Partly
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_point_lies_in_the_ranges_of_the_regions_that_hold_it() {
        for bits in [1, 5, 26, 32] {
            let grid = HashGrid::new(bits, -180.0, 180.0).unwrap();
            for (x, y) in [(0.0, 0.0), (-180.0, 180.0), (180.0, -180.0), (12.5, -77.125), (180.0, 180.0)] {
                let point = PlanePoint { x, y };
                let hash = grid.hash(point).unwrap();
                let least = PlanePoint { x: x - 0.01, y: y - 0.01 };
                let own = PlaneBox::of_corners(least, point);
                let ranges = grid.ranges_of_region(&Region::Box(own)).unwrap();
                assert!(
                    ranges.iter().any(|(first, last)| (*first..=*last).contains(&hash)),
                    "{bits} bits, {point:?}: {hash} is not in {ranges:?}"
                );
                assert!(ranges.len() <= RANGES_MAX);
            }
        }
    }

    #[test]
    fn points_outside_of_the_grid_have_no_hash() {
        let grid = HashGrid::new(10, 0.0, 10.0).unwrap();
        assert!(grid.hash(PlanePoint { x: 10.0, y: 0.0 }).is_some());
        assert_eq!(grid.hash(PlanePoint { x: 10.5, y: 0.0 }), None);
        assert_eq!(grid.hash(PlanePoint { x: f64::NAN, y: 0.0 }), None);
        assert!(HashGrid::new(33, 0.0, 10.0).is_none() && HashGrid::new(5, 1.0, 1.0).is_none());
        assert!(HashGrid::new(5, f64::MIN, f64::MAX).is_none());
    }

    #[test]
    fn hashes_are_in_the_order_of_cells() {
        let grid = HashGrid::new(2, 0.0, 4.0).unwrap();
        let hash = |x: f64, y: f64| grid.hash(PlanePoint { x, y }).unwrap();
        assert!(hash(0.5, 0.5) < hash(0.5, 1.5) && hash(0.5, 1.5) < hash(1.5, 0.5));
        assert!(hash(1.5, 1.5) < hash(2.5, 0.5));
        assert_eq!(hash(0.2, 0.9), hash(0.5, 0.5));
    }
}
