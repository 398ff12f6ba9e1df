//! Random numbers of workloads: one generator for each client, all of them seeded from the seed of the run.
//!
//! - [`Xoshiro`], seeded by [`split_mix`] of (run seed, client), is the default. Neighbouring clients share
//!   no draws.
//! - [`JavaRandom`] repeats the numbers of the original Java tools bit by bit (`--java-rng`).
//!
//! Both stand behind [`Random`]. [`distribution`] turns draws into keys, [`mask`] into text.

pub mod distribution;
pub mod java;
pub mod mask;
mod xoshiro;

use java::JavaRandom;
pub use pando_environment::split_mix;
use xoshiro::Xoshiro;

/// Which generator a run draws from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generator {
    /// xoshiro256++, seeded so that no two streams of a run are related.
    Xoshiro,
    /// java.util.Random, seeded as the original tools do: the client's number plus the seed. The class keeps
    /// 48 bits of a seed, which leaves none for a run: each run but the first adds a number of its own.
    Java,
}

impl Generator {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Generator::Xoshiro => "xoshiro256++",
            Generator::Java => "java.util.Random",
        }
    }
}

/// The number of a stream has that of its run in the bits from here on, and that of its client below.
pub const RUNS_FROM_BIT: u32 = 48;

/// Streams from here on belong to collections, those before to clients.
const COLLECTION_STREAMS: u64 = 1 << 32;

/// A source of chance.
#[derive(Clone, Debug)]
pub enum Random {
    /// See [`Generator::Xoshiro`].
    Xoshiro(Xoshiro),
    /// See [`Generator::Java`].
    Java(JavaRandom),
}

impl Random {
    /// The source of a client of a run, counted from 0.
    pub fn for_client(generator: Generator, run_seed: u64, client: u64) -> Random {
        Random::new(generator, run_seed, client)
    }

    /// The source of the documents of a collection, counted from 1. The data set depends on seed and
    /// collection only, not on the number of connections that load it.
    pub fn for_collection(generator: Generator, run_seed: u64, collection: u64) -> Random {
        match generator {
            Generator::Xoshiro => Random::new(generator, run_seed, COLLECTION_STREAMS + collection),
            // As the original: the collection's number is the seed.
            Generator::Java => Random::new(generator, run_seed, collection),
        }
    }

    fn new(generator: Generator, run_seed: u64, stream: u64) -> Random {
        match generator {
            Generator::Xoshiro => Random::Xoshiro(Xoshiro::new(split_mix(run_seed ^ split_mix(stream)))),
            Generator::Java => {
                let run = stream >> RUNS_FROM_BIT;
                let of_run = if run == 0 { 0 } else { split_mix(run) };
                Random::Java(JavaRandom::new(run_seed.wrapping_add(stream).wrapping_add(of_run)))
            }
        }
    }

    /// A uniform number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: u32) -> u32 {
        match self {
            Random::Xoshiro(source) => source.below(bound),
            Random::Java(source) => source.below(bound),
        }
    }

    /// A uniform digit, 0 to 9.
    pub fn digit(&mut self) -> u8 {
        match self {
            Random::Xoshiro(source) => source.digit(),
            Random::Java(source) => u8::try_from(source.below(10)).unwrap_or(0),
        }
    }

    /// A uniform number in 0..1.
    pub fn unit(&mut self) -> f64 {
        match self {
            Random::Xoshiro(source) => source.unit(),
            Random::Java(source) => source.unit(),
        }
    }

    /// A number of the normal distribution with mean 0 and deviation 1.
    pub fn gaussian(&mut self) -> f64 {
        match self {
            Random::Xoshiro(source) => gaussian_pair(|| source.unit()).0,
            Random::Java(source) => source.gaussian(),
        }
    }
}

/// Two independent numbers of the normal distribution, from uniform ones of 0..1 (Marsaglia and Bray 1964).
fn gaussian_pair(mut unit: impl FnMut() -> f64) -> (f64, f64) {
    loop {
        let (a, b) = (2.0 * unit() - 1.0, 2.0 * unit() - 1.0);
        let square = a * a + b * b;
        if square < 1.0 && square != 0.0 {
            let factor = (-2.0 * square.ln() / square).sqrt();
            return (a * factor, b * factor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_one_run_do_not_begin_alike() {
        // The original's convoy: with seeds 0..63 every client chose the same first collection of 8.
        let first = |stream| Random::new(Generator::Xoshiro, 0, stream).below(8);
        let mut chosen = [0; 8];
        (0..64).for_each(|stream| chosen[first(stream) as usize] += 1);
        assert!(chosen.iter().all(|count| *count > 0), "{chosen:?}");
        let java = |stream| Random::new(Generator::Java, 0, stream).below(8);
        assert!((0..64).all(|stream| java(stream) == java(0)), "the quirk is there when it is asked for");
    }

    #[test]
    fn a_later_run_of_java_draws_other_numbers_and_the_first_one_those_of_the_original() {
        let numbers = |run: u64| -> Vec<u32> {
            let mut random = Random::for_client(Generator::Java, 42, run << RUNS_FROM_BIT);
            (0..8).map(|_| random.below(100)).collect()
        };
        assert_eq!(numbers(0), [30, 63, 48, 84, 70, 25, 5, 18]);
        assert_ne!(numbers(1), numbers(0));
        assert_ne!(numbers(2), numbers(1));
    }

    #[test]
    fn the_same_seed_and_stream_repeat() {
        let numbers = |seed| -> Vec<u32> {
            let mut random = Random::new(Generator::Xoshiro, seed, 3);
            (0..8).map(|_| random.below(1_000_000)).collect()
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
    }
}
