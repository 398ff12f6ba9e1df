//! Zipf's distribution over ranks as the original draws it, by the approximation of Gray et al. ("Quickly
//! generating billion-record synthetic databases", 1994). (`point` draws Zipf exactly; here the original's
//! shape is what counts.)

use pando_measuring::random::Random;

/// From so many ranks on, the sum of the weights is approximated by its integral.
const APPROXIMATE_FROM: u64 = 100_000;

/// Rank r (from 0) in proportion to (r + 1)^-shape.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    ranks: u64,
    shape: f64,
    sum: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    /// Over so many ranks, with a shape between 0 and 1.
    pub fn new(ranks: u64, shape: f64) -> Zipf {
        assert!(ranks > 0 && shape > 0.0 && shape < 1.0, "ranks and shape were checked");
        let n = ranks as f64;
        let rest = 1.0 - shape;
        let sum = if ranks >= APPROXIMATE_FROM {
            n.powf(rest) / rest + 0.58 - 1.0 / rest
        } else {
            (1..=ranks).map(|rank| (rank as f64).powf(-shape)).sum()
        };
        let eta = (1.0 - (2.0 / n).powf(rest)) / (1.0 - (1.0 + 2.0_f64.powf(-shape)) / sum);
        Zipf { ranks, shape, sum, alpha: 1.0 / rest, eta }
    }

    pub fn draw(&self, random: &mut Random) -> u64 {
        let p = random.unit();
        let weighted = p * self.sum;
        let rank = if weighted < 1.0 {
            0
        } else if weighted < 1.0 + 0.5_f64.powf(self.shape) {
            1
        } else {
            (self.ranks as f64 * (self.eta * p - self.eta + 1.0).powf(self.alpha)) as u64
        };
        rank.min(self.ranks - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_measuring::random::Generator;

    /// Shape, sum, eta, percent of rank 0, percent of the top 0.1, 1 and 10 percent of the ranks.
    const TEN_MILLION: [(f64, f64, f64, f64, [f64; 3]); 4] = [
        (0.8, 121.1743, 0.966831, 0.825, [22.5, 37.7, 61.8]),
        (0.741, 247.7343, 0.987968, 0.404, [15.7, 29.5, 54.5]),
        (0.625, 1122.4373, 0.998391, 0.089, [7.3, 17.7, 42.1]),
        (0.606, 1451.8390, 0.998846, 0.069, [6.5, 16.2, 40.3]),
    ];

    #[test]
    fn the_constants_are_those_of_the_specification() {
        for (shape, sum, eta, first, _) in TEN_MILLION {
            let zipf = Zipf::new(10_000_000, shape);
            assert!((zipf.sum - sum).abs() < 1e-4 && (zipf.eta - eta).abs() < 1e-6, "{zipf:?}");
            assert!((100.0 / zipf.sum - first).abs() < 0.001);
        }
    }

    #[test]
    fn the_hottest_ids_get_their_shares() {
        const DRAWS: u32 = 200_000;
        for (shape, _, _, _, shares) in TEN_MILLION {
            let zipf = Zipf::new(10_000_000, shape);
            let mut random = Random::for_client(Generator::Xoshiro, 1, 1);
            let ranks: Vec<u64> = (0..DRAWS).map(|_| zipf.draw(&mut random)).collect();
            for (top, share) in [10_000, 100_000, 1_000_000].into_iter().zip(shares) {
                let found =
                    ranks.iter().filter(|rank| **rank < top).count() as f64 * 100.0 / f64::from(DRAWS);
                assert!((found - share).abs() < 0.6, "{shape}: {found} % on the first {top}, not {share}");
            }
        }
    }

    #[test]
    fn few_ranks_stay_in_range() {
        let mut random = Random::for_client(Generator::Xoshiro, 1, 1);
        for ranks in [1, 2, 3, 50] {
            let zipf = Zipf::new(ranks, 0.8);
            assert!((0..1000).all(|_| zipf.draw(&mut random) < ranks));
        }
    }
}
