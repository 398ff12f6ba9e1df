//! Coverings: cells of S2 that together hold a shape or a region.
//!
//! # Terms
//! - *Cell number*: the 64 bits of a cell's place on the curve through all cells, as a signed number. The
//!   numbers of the cells within a cell are one range.
//!
//! # Keys and bounds
//! A document has the cells that cover its shapes as keys, and no others. A query looks for cells within
//! those of its own covering, and for each cell around them: a shape that meets a cell has a key in one of
//! these ([`ranges_of`]).

use s2rst::s1::Angle;
use s2rst::s2::metric::MAX_DIAG;
use s2rst::s2::region_coverer::RegionCoverer;
use s2rst::s2::region_intersection::RegionIntersection;
use s2rst::s2::{Cap, CellId, CellUnion, Level};

use super::sphere_shape::Part;
use super::{PlanePoint, Region, SphereShape};

/// The levels of the cells of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellLevels {
    coarsest: Level,
    finest: Level,
}

/// Cells of one covering.
const CELLS_MAX: usize = 20;

impl Default for CellLevels {
    /// From a face of the cube down to cells of about one metre.
    fn default() -> CellLevels {
        CellLevels { coarsest: Level::MIN, finest: Level::new(23) }
    }
}

impl CellLevels {
    /// Levels between 0 and 30, the coarsest first; `None` for others.
    pub fn new(coarsest: i64, finest: i64) -> Option<CellLevels> {
        let level = |number: i64| Level::try_new(u8::try_from(number).ok()?);
        let (coarsest, finest) = (level(coarsest)?, level(finest)?);
        (coarsest <= finest).then_some(CellLevels { coarsest, finest })
    }

    /// The coverer of a region that is searched. Its cells may be coarser than those of keys: the keys within
    /// them are ranges all the same, and a large region has no more cells than a small one.
    fn searched(self) -> RegionCoverer {
        RegionCoverer::new().max_level(self.finest).max_cells(CELLS_MAX)
    }

    fn coverer(self) -> RegionCoverer {
        RegionCoverer::new().min_level(self.coarsest).max_level(self.finest).max_cells(CELLS_MAX)
    }
}

/// The numbers of the cells that hold a shape.
pub fn keys_of(shape: &SphereShape, levels: CellLevels) -> Vec<i64> {
    let mut keys = Vec::with_capacity(1);
    for part in shape.parts() {
        match part {
            Part::Point(point) => {
                keys.push(number_of(CellId::from_point(&point.point()).parent_at_level(levels.finest)));
            }
            Part::Line(line) => keys.extend(numbers_of(&levels.coverer().covering(&line.region()))),
            Part::Polygon(polygon) => {
                keys.extend(numbers_of(&levels.coverer().covering(&polygon.region())));
            }
        }
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The ranges of cell numbers, both ends included, in which each shape has a key that meets a region; `None`
/// for a region of the plane.
pub fn ranges_of_region(region: &Region, levels: CellLevels) -> Option<Vec<(i64, i64)>> {
    let coverer = levels.searched();
    let cells = match region {
        Region::Shape(shape) => {
            let coverings = shape.parts().iter().flat_map(|part| match part {
                Part::Point(point) => {
                    vec![CellId::from_point(&point.point()).parent_at_level(levels.finest)]
                }
                Part::Line(line) => coverer.covering(&line.region()).cell_ids().to_vec(),
                Part::Polygon(polygon) => coverer.covering(&polygon.region()).cell_ids().to_vec(),
            });
            CellUnion::from_cell_ids(coverings.collect())
        }
        Region::Cap(cap) => coverer.covering(&cap.cap),
        Region::Box(_) | Region::Polygon(_) | Region::Circle(_) => return None,
    };
    Some(ranges_of(&cells, levels))
}

/// The ranges for the ring between two angles, in radians, around a longitude and a latitude.
pub fn ranges_of_ring(centre: PlanePoint, inner: f64, outer: f64, levels: CellLevels) -> Vec<(i64, i64)> {
    /// Rounding of the distance of a point, in radians.
    const SLACK: f64 = 1e-9;
    let centre = centre.on_sphere();
    let cap = |angle: f64| Cap::from_center_angle(centre, Angle::from_radians(angle));
    let (inner, outer) = (inner - SLACK, outer + SLACK);
    let outside = if outer >= std::f64::consts::PI { Cap::full() } else { cap(outer) };
    let cells = if inner <= 0.0 {
        levels.searched().covering(&outside)
    } else {
        let ring =
            RegionIntersection::from_regions(vec![Box::new(outside), Box::new(cap(inner).complement())]);
        levels.searched().covering(&ring)
    };
    ranges_of(&cells, levels)
}

/// The range of the cells within the one of a level around a longitude and a latitude.
pub fn range_around(centre: PlanePoint, level: u8, levels: CellLevels) -> (i64, i64) {
    let level = Level::try_new(level).unwrap_or(levels.finest).clamp(levels.coarsest, levels.finest);
    let cell = CellId::from_point(&centre.on_sphere()).parent_at_level(level);
    (number_of(cell.range_min()), number_of(cell.range_max()))
}

/// The least and the greatest angle, in radians, between a longitude and a latitude and the places of the
/// cell with a number; `None` where no cell has it. They are bounds: the cell is taken for the circle around
/// its centre that is as wide as the longest diagonal of its level.
pub fn angles_of_cell(centre: PlanePoint, number: i64) -> Option<(f64, f64)> {
    let cell = CellId(number.cast_unsigned());
    if !cell.is_valid() {
        return None;
    }
    let chord = (cell.to_point() - centre.on_sphere()).0.norm();
    let angle = 2.0 * (chord / 2.0).min(1.0).asin();
    let diagonal = MAX_DIAG.value(cell.level());
    Some(((angle - diagonal).max(0.0), angle + diagonal))
}

/// The ranges of the cells within those of a covering, and of each cell around them.
fn ranges_of(cells: &CellUnion, levels: CellLevels) -> Vec<(i64, i64)> {
    let mut ranges = Vec::with_capacity(2 * CELLS_MAX);
    for cell in cells.cell_ids() {
        ranges.push((number_of(cell.range_min()), number_of(cell.range_max())));
        let mut around = *cell;
        while around.level() > levels.coarsest {
            around = around.parent();
            ranges.push((number_of(around), number_of(around)));
        }
    }
    ranges.sort_unstable();
    ranges.dedup();
    ranges
}

fn numbers_of(cells: &CellUnion) -> impl Iterator<Item = i64> {
    cells.cell_ids().iter().map(|cell| number_of(*cell))
}

/// The bits of a cell's number. The cells within one keep together: no cell but the whole sphere holds both
/// signs.
fn number_of(cell: CellId) -> i64 {
    cell.id().cast_signed()
}

/// The distance in radians to which the cells of a level are about as wide.
pub fn width_of_level(level: u8) -> f64 {
    std::f64::consts::FRAC_PI_2 / f64::from(1_u32 << level.min(30))
}
