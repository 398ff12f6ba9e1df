//! The distribution of the keys that are asked for.
//!
//! | name | shape | source |
//! |---|---|---|
//! | `uniform` | every key alike | default of sysbench today |
//! | `zipf:THETA` | the key of rank r in proportion to 1 / r^THETA; ranks scattered over the keys | YCSB's idea, any THETA > 0 |
//! | `special` | 75 % of the draws on the middle 1 % of the keys, the others the mean of 12 uniform draws | default of sysbench 1.0 |
//! | `latest` | like `zipf:0.99`, the highest key being the hottest | YCSB |
//!
//! Zipf draws by rejection from the integral of the density (Hörmann and Derflinger 1996). It needs no table,
//! so a distribution over a billion keys is set up at once.

use super::Random;

/// The exponent of `latest`.
const LATEST_EXPONENT: f64 = 0.99;
/// Of `special`: one draw in four is not on the special keys.
const SPECIAL_ONE_IN: u32 = 4;
/// Of `special`: one key in a hundred is special.
const SPECIAL_KEYS_DIVISOR: u32 = 100;
/// Of `special`: the other draws are the mean of this many.
const SPECIAL_MEAN_OF: u32 = 12;

/// A shape, as named on the command line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Every key alike.
    Uniform,
    /// By rank with this exponent.
    Zipf(f64),
    /// Few keys take most draws.
    Special,
    /// The newest keys take most draws.
    Latest,
}

/// A name that is no shape.
#[derive(Debug, thiserror::Error)]
#[error("`{name}` is none of uniform, zipf:THETA (0 < THETA <= 10), special, latest")]
pub struct UnknownShape {
    name: String,
}

impl std::str::FromStr for Shape {
    type Err = UnknownShape;

    fn from_str(name: &str) -> Result<Shape, UnknownShape> {
        let exponent = name.strip_prefix("zipf:").and_then(|theta| theta.parse::<f64>().ok());
        match (name, exponent) {
            ("uniform", _) => Ok(Shape::Uniform),
            ("special", _) => Ok(Shape::Special),
            ("latest", _) => Ok(Shape::Latest),
            (_, Some(theta)) if theta > 0.0 && theta <= 10.0 => Ok(Shape::Zipf(theta)),
            _ => Err(UnknownShape { name: name.to_owned() }),
        }
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Shape::Uniform => f.write_str("uniform"),
            Shape::Zipf(theta) => write!(f, "zipf:{theta}"),
            Shape::Special => f.write_str("special"),
            Shape::Latest => f.write_str("latest"),
        }
    }
}

/// A shape over the keys 0 to `keys - 1`.
#[derive(Clone, Debug)]
pub struct Distribution {
    keys: u32,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Uniform,
    /// Ranks, and the factor that scatters them.
    Scattered(Ranks, u32),
    Special,
    Latest(Ranks),
}

impl Distribution {
    /// A shape over this many keys, at least 1.
    pub fn new(shape: Shape, keys: u32) -> Distribution {
        assert!(keys > 0, "a distribution needs a key");
        let kind = match shape {
            Shape::Uniform => Kind::Uniform,
            Shape::Zipf(theta) => Kind::Scattered(Ranks::new(keys, theta), scattering_factor(keys)),
            Shape::Special => Kind::Special,
            Shape::Latest => Kind::Latest(Ranks::new(keys, LATEST_EXPONENT)),
        };
        Distribution { keys, kind }
    }

    /// A key.
    pub fn draw(&self, random: &mut Random) -> u32 {
        match &self.kind {
            Kind::Uniform => random.below(self.keys),
            Kind::Scattered(ranks, factor) => {
                let scattered = u64::from(ranks.draw(random) - 1) * u64::from(*factor) % u64::from(self.keys);
                u32::try_from(scattered).unwrap_or(0)
            }
            Kind::Special => self.draw_special(random),
            Kind::Latest(ranks) => self.keys - ranks.draw(random),
        }
    }

    fn draw_special(&self, random: &mut Random) -> u32 {
        if random.below(SPECIAL_ONE_IN) == 0 {
            let sum: u64 = (0..SPECIAL_MEAN_OF).map(|_| u64::from(random.below(self.keys))).sum();
            return u32::try_from(sum / u64::from(SPECIAL_MEAN_OF)).unwrap_or(0);
        }
        let special = (self.keys / SPECIAL_KEYS_DIVISOR).max(1);
        (self.keys - special) / 2 + random.below(special)
    }
}

/// A factor without common divisor with `keys`, near their golden section, so that multiplying by it permutes
/// the keys and puts neighbouring ranks far apart.
pub fn scattering_factor(keys: u32) -> u32 {
    let golden = (f64::from(keys) * 0.618_033_988_75) as u32;
    (golden.max(1)..).find(|factor| greatest_common_divisor(*factor, keys) == 1).unwrap_or(1)
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// Ranks 1 to `count` in proportion to rank^-exponent.
#[derive(Clone, Debug)]
struct Ranks {
    count: f64,
    exponent: f64,
    integral_from: f64,
    integral_to: f64,
}

impl Ranks {
    fn new(count: u32, exponent: f64) -> Ranks {
        let count = f64::from(count);
        // The bar of rank 1 stands for its whole weight, 1, left of 1.5.
        let integral_from = integral(1.5, exponent) - 1.0;
        Ranks { count, exponent, integral_from, integral_to: integral(count + 0.5, exponent) }
    }

    fn draw(&self, random: &mut Random) -> u32 {
        loop {
            let under = self.integral_to + random.unit() * (self.integral_from - self.integral_to);
            let rank = inverse_integral(under, self.exponent).round().clamp(1.0, self.count);
            let weight = rank.powf(-self.exponent);
            if under >= integral(rank + 0.5, self.exponent) - weight {
                return rank as u32;
            }
        }
    }
}

/// The integral of x^-exponent, up to a constant.
fn integral(x: f64, exponent: f64) -> f64 {
    let power = 1.0 - exponent;
    if power.abs() < 1e-9 { x.ln() } else { (x.powf(power) - 1.0) / power }
}

fn inverse_integral(value: f64, exponent: f64) -> f64 {
    let power = 1.0 - exponent;
    if power.abs() < 1e-9 { value.exp() } else { (1.0 + value * power).max(0.0).powf(1.0 / power) }
}

#[cfg(test)]
mod tests {
    use super::super::Generator;
    use super::*;

    const DRAWS: u32 = 200_000;

    fn histogram(shape: Shape, keys: u32) -> Vec<u32> {
        let distribution = Distribution::new(shape, keys);
        let mut random = Random::new(Generator::Xoshiro, 1, 1);
        let mut counts = vec![0; keys as usize];
        (0..DRAWS).for_each(|_| counts[distribution.draw(&mut random) as usize] += 1);
        counts
    }

    fn share(count: u32) -> f64 {
        f64::from(count) / f64::from(DRAWS)
    }

    #[test]
    fn uniform_gives_every_key_its_part() {
        let counts = histogram(Shape::Uniform, 10);
        assert!(counts.iter().all(|count| (share(*count) - 0.1).abs() < 0.01), "{counts:?}");
    }

    #[test]
    fn zipf_gives_each_rank_its_share() {
        for theta in [0.5, 0.99, 1.0, 2.0] {
            let mut counts = histogram(Shape::Zipf(theta), 100);
            counts.sort_unstable_by(|a, b| b.cmp(a));
            let total: f64 = (1..=100).map(|rank| f64::from(rank).powf(-theta)).sum();
            for rank in [1_u32, 2, 5] {
                let expected = f64::from(rank).powf(-theta) / total;
                let found = share(counts[rank as usize - 1]);
                assert!(
                    (found - expected).abs() < 0.05 * expected + 0.002,
                    "{theta} {rank}: {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn scattering_reaches_every_key() {
        for keys in [1, 2, 7, 100, 1000] {
            let factor = u64::from(scattering_factor(keys));
            let mut reached: Vec<u64> =
                (0..u64::from(keys)).map(|rank| rank * factor % u64::from(keys)).collect();
            reached.sort_unstable();
            reached.dedup();
            assert_eq!(reached.len(), keys as usize);
        }
    }

    #[test]
    fn special_puts_three_quarters_on_the_middle_hundredth() {
        let counts = histogram(Shape::Special, 1000);
        let middle: u32 = counts[495..505].iter().sum();
        assert!((share(middle) - 0.77).abs() < 0.03, "{}", share(middle));
    }

    #[test]
    fn latest_is_hottest_at_the_highest_key() {
        let counts = histogram(Shape::Latest, 1000);
        assert_eq!(counts.iter().max(), counts.last());
    }

    #[test]
    fn one_key_is_drawn_whatever_the_shape() {
        for shape in [Shape::Uniform, Shape::Zipf(0.99), Shape::Special, Shape::Latest] {
            assert_eq!(histogram(shape, 1), [DRAWS]);
        }
    }

    #[test]
    fn names_are_read_and_printed_alike_and_nonsense_is_refused() {
        for name in ["uniform", "zipf:0.99", "special", "latest"] {
            let shape: Shape = name.parse().expect("a known name");
            assert_eq!(shape.to_string(), name);
        }
        for name in ["", "zipf", "zipf:", "zipf:-1", "zipf:nan", "zipf:inf", "pareto"] {
            assert!(name.parse::<Shape>().is_err(), "{name}");
        }
    }
}
