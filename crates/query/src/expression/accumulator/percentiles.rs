//! `$median` and `$percentile`: values at given ranks of all numbers, as doubles; other values and NaN do not
//! count.
//!
//! 1. Up to [`EXACT_MAX`] numbers are kept as they are, and the result is exact: the least number that as
//!    large a part of all numbers does not exceed.
//! 2. Beyond, neighbours are merged into *centroids*, a mean with a weight: the merging t-digest of Dunning
//!    (2019). Centroids near both ends stay small, so that outer percentiles are exact nearly. A result is
//!    interpolated between the centres of two centroids.

use std::sync::Arc;

use pando_document::{ArrayWriter, RawValue};

use super::super::Evaluated;
use super::super::evaluated::array_of;
use super::{Accumulator, for_saved, not_saved};
use crate::error::QueryError;

/// Numbers that are kept as they are.
const EXACT_MAX: usize = 10_000;
/// The more, the more centroids are kept: about as many.
const COMPRESSION: f64 = 1_000.0;

/// How the result is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PercentileShape {
    /// The one value itself.
    Median,
    /// An array of one value for each rank.
    Array,
}

#[derive(Clone, Copy, Debug)]
struct Centroid {
    mean: f64,
    weight: f64,
}

#[derive(Debug)]
pub(crate) struct Percentiles {
    /// From 0 to 1.
    ranks: Arc<[f64]>,
    shape: PercentileShape,
    centroids: Vec<Centroid>,
}

impl Percentiles {
    pub(crate) fn new(ranks: &Arc<[f64]>, shape: PercentileShape) -> Percentiles {
        Percentiles { ranks: Arc::clone(ranks), shape, centroids: Vec::new() }
    }

    fn push(&mut self, centroid: Centroid) {
        self.centroids.push(centroid);
        if self.centroids.len() > EXACT_MAX {
            self.centroids = compressed(&self.sorted());
        }
    }

    fn sorted(&self) -> Vec<Centroid> {
        let mut sorted = self.centroids.clone();
        sorted.sort_by(|a, b| a.mean.total_cmp(&b.mean));
        sorted
    }
}

impl Accumulator for Percentiles {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        if let Some(number) = value.as_number()
            && !number.is_nan()
        {
            self.push(Centroid { mean: number.to_f64(), weight: 1.0 });
        }
        Ok(())
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        let sorted = self.sorted();
        let value = |rank: f64| value_at(&sorted, rank).map_or(RawValue::Null, RawValue::Double);
        match self.shape {
            PercentileShape::Median => Ok(Evaluated::Raw(value(0.5))),
            PercentileShape::Array => array_of(|writer| {
                self.ranks.iter().for_each(|rank| writer.push(value(*rank)));
                Ok(())
            }),
        }
    }

    fn held_bytes(&self) -> usize {
        self.centroids.capacity() * size_of::<Centroid>()
    }

    fn save(&self, out: &mut ArrayWriter<'_>) {
        let mut array = out.array();
        for centroid in &self.centroids {
            array.push(RawValue::Double(centroid.mean));
            array.push(RawValue::Double(centroid.weight));
        }
        array.finish();
    }

    fn merge(&mut self, saved: RawValue<'_>) -> Result<(), QueryError> {
        let mut mean = None;
        for_saved(saved, |part| {
            let RawValue::Double(part) = part else { return Err(not_saved()) };
            match mean.take() {
                None => mean = Some(part),
                Some(mean) => self.push(Centroid { mean, weight: part }),
            }
            Ok(())
        })
    }
}

/// Fewer centroids, of sorted ones.
fn compressed(sorted: &[Centroid]) -> Vec<Centroid> {
    let total: f64 = sorted.iter().map(|centroid| centroid.weight).sum();
    // The part of the whole that may lie in front of the end of a centroid that begins at a part.
    let limit_behind = |part: f64| {
        let scaled = COMPRESSION / std::f64::consts::TAU * (2.0 * part - 1.0).asin() + 1.0;
        let angle = (scaled * std::f64::consts::TAU / COMPRESSION).min(std::f64::consts::FRAC_PI_2);
        f64::midpoint(angle.sin(), 1.0)
    };
    let mut merged: Vec<Centroid> = Vec::new();
    let (mut before, mut limit) = (0.0, limit_behind(0.0));
    for next in sorted {
        match merged.last_mut() {
            Some(last)
                if (before + last.weight + next.weight) <= limit * total
                    && (last.mean == next.mean || (last.mean.is_finite() && next.mean.is_finite())) =>
            {
                last.weight += next.weight;
                if last.mean != next.mean {
                    last.mean += (next.mean - last.mean) * next.weight / last.weight;
                }
            }
            last => {
                if let Some(last) = last {
                    before += last.weight;
                    limit = limit_behind((before / total).min(1.0));
                }
                merged.push(*next);
            }
        }
    }
    merged
}

/// The value at a rank of sorted centroids; `None` where there are none.
fn value_at(sorted: &[Centroid], rank: f64) -> Option<f64> {
    if sorted.iter().all(|centroid| centroid.weight == 1.0) {
        let at = (rank * sorted.len() as f64).ceil() as usize;
        return sorted.get(at.saturating_sub(1)).map(|centroid| centroid.mean);
    }
    let total: f64 = sorted.iter().map(|centroid| centroid.weight).sum();
    let wanted = rank * total;
    let (mut before, mut lower) = (0.0, None::<(f64, f64)>);
    for centroid in sorted {
        let centre = before + centroid.weight / 2.0;
        if wanted <= centre {
            return Some(match lower {
                Some((at, mean)) if mean.is_finite() && centroid.mean.is_finite() => {
                    mean + (centroid.mean - mean) * (wanted - at) / (centre - at)
                }
                _ => centroid.mean,
            });
        }
        lower = Some((centre, centroid.mean));
        before += centroid.weight;
    }
    sorted.last().map(|centroid| centroid.mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percentiles(numbers: impl Iterator<Item = f64>, ranks: &[f64]) -> Vec<f64> {
        let mut state = Percentiles::new(&Arc::from(ranks), PercentileShape::Array);
        for number in numbers {
            state.add(&Evaluated::Raw(RawValue::Double(number))).unwrap();
        }
        assert!(state.centroids.len() <= EXACT_MAX);
        let sorted = state.sorted();
        ranks.iter().filter_map(|rank| value_at(&sorted, *rank)).collect()
    }

    #[test]
    fn few_numbers_give_exact_percentiles_and_nan_does_not_count() {
        let numbers = [5.0, f64::NAN, 1.0, 3.0, f64::INFINITY];
        assert_eq!(percentiles(numbers.into_iter(), &[0.0, 0.25, 0.5, 1.0]), [1.0, 1.0, 3.0, f64::INFINITY]);
        assert!(percentiles(std::iter::empty(), &[0.5]).is_empty());
    }

    #[test]
    fn many_numbers_give_nearly_exact_percentiles() {
        let count = 200_000_u64;
        let numbers = (0..count).map(|at| (at * 7_919 % count) as f64);
        let ranks = [0.001, 0.1, 0.5, 0.9, 0.999];
        for (found, rank) in percentiles(numbers, &ranks).into_iter().zip(ranks) {
            let error = (found / count as f64 - rank).abs();
            assert!(error < 0.002, "{rank}: {found}");
        }
    }
}
