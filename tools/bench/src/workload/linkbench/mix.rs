//! The ten operations, and the share of each.

use crate::client::Kind;
use crate::error::BenchError;
use pando_measuring::random::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    AddNode,
    UpdateNode,
    DeleteNode,
    GetNode,
    AddLink,
    DeleteLink,
    UpdateLink,
    /// How many links of a type a node has.
    CountLink,
    /// Some links by their keys.
    MultigetLink,
    GetLinksList,
}

/// All of them, in the order of LinkBench's rows.
pub const OPERATIONS: [Operation; 10] = [
    Operation::AddNode,
    Operation::UpdateNode,
    Operation::DeleteNode,
    Operation::GetNode,
    Operation::AddLink,
    Operation::DeleteLink,
    Operation::UpdateLink,
    Operation::CountLink,
    Operation::MultigetLink,
    Operation::GetLinksList,
];
/// In the order of [`OPERATIONS`]: the name in LinkBench's output, the setting that holds the percentage, and
/// the percentage unless told otherwise.
const FACTS: [(&str, &str, f64); OPERATIONS.len()] = [
    ("ADD_NODE", "addnode", 2.573_278_9),
    ("UPDATE_NODE", "updatenode", 7.366_437),
    ("DELETE_NODE", "deletenode", 1.011_591_4),
    ("GET_NODE", "getnode", 12.932_668_3),
    ("ADD_LINK", "addlink", 8.988_660_1),
    ("DELETE_LINK", "deletelink", 2.990_766_4),
    ("UPDATE_LINK", "updatelink", 8.012_212_5),
    ("COUNT_LINK", "countlink", 4.886_356_7),
    ("MULTIGET_LINK", "getlink", 0.526_114_2),
    ("GET_LINKS_LIST", "getlinklist", 50.711_914_5),
];
/// The original adds up its percentages from this place of [`OPERATIONS`] on, and then those before it.
const DRAWN_FROM: usize = 4;

impl Operation {
    pub fn name(self) -> &'static str {
        FACTS[self as usize].0
    }

    pub fn property(self) -> &'static str {
        FACTS[self as usize].1
    }

    /// Its place in [`OPERATIONS`].
    pub fn kind(self) -> Kind {
        Kind::new(self as u8)
    }
}

/// How often each operation comes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// In the order of [`OPERATIONS`]; they add up to 100.
    percentages: [f64; OPERATIONS.len()],
}

impl Mix {
    /// Of percentages in the order of [`OPERATIONS`]. If any is told, those that are not are 0; if none is,
    /// all are LinkBench's.
    pub fn of(told: [Option<f64>; OPERATIONS.len()]) -> Result<Mix, BenchError> {
        let any = told.iter().any(Option::is_some);
        let default = |operation: Operation| if any { 0.0 } else { FACTS[operation as usize].2 };
        let mut percentages = [0.0; OPERATIONS.len()];
        for ((percentage, told), operation) in percentages.iter_mut().zip(told).zip(OPERATIONS) {
            *percentage = told.unwrap_or_else(|| default(operation));
            if !(0.0..=100.0).contains(percentage) {
                let cause = format!("{} cannot be {percentage} percent", operation.property());
                return Err(BenchError::option("D", cause));
            }
        }
        let sum: f64 = percentages.iter().sum();
        if (sum - 100.0).abs() > 0.01 {
            let names = OPERATIONS.map(Operation::property).join(" + ");
            let cause = format!("{names} must be 100 percent together, they are {sum}");
            return Err(BenchError::option("D", cause));
        }
        Ok(Mix { percentages })
    }

    /// The percentages, in the order of [`OPERATIONS`].
    pub fn percentages(&self) -> [f64; OPERATIONS.len()] {
        self.percentages
    }

    pub fn draw(&self, random: &mut Random) -> Operation {
        let mut left = random.unit() * 100.0;
        for operation in OPERATIONS[DRAWN_FROM..].iter().chain(&OPERATIONS[..DRAWN_FROM]) {
            left -= self.percentages[operation.kind().index()];
            if left <= 0.0 {
                return *operation;
            }
        }
        Operation::GetNode
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_measuring::random::Generator;

    #[test]
    fn the_default_adds_up_as_the_specification_says() {
        let mix = Mix::of([None; 10]).expect("it is sound");
        let mut sum = 0.0;
        let drawn = OPERATIONS[DRAWN_FROM..].iter().chain(&OPERATIONS[..DRAWN_FROM]);
        let cumulative: Vec<f64> = drawn
            .map(|operation| {
                sum += mix.percentages[operation.kind().index()];
                sum
            })
            .collect();
        let expected = [
            8.988_660_1,
            11.979_426_5,
            19.991_639,
            24.877_995_7,
            25.404_109_9,
            76.116_024_4,
            78.689_303_3,
            86.055_740_3,
            87.067_331_7,
            100.0,
        ];
        assert!(
            cumulative.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-6),
            "{cumulative:?}"
        );
    }

    #[test]
    fn operations_come_as_often_as_they_should() {
        let mix = Mix::of([None; 10]).expect("it is sound");
        let mut random = Random::for_client(Generator::Xoshiro, 1, 1);
        let mut counts = [0_u32; 10];
        (0..100_000).for_each(|_| counts[mix.draw(&mut random).kind().index()] += 1);
        for (count, percentage) in counts.iter().zip(mix.percentages) {
            let expected = percentage * 1000.0;
            assert!((f64::from(*count) - expected).abs() < 4.5 * expected.sqrt(), "{counts:?}");
        }
    }

    #[test]
    fn percentages_that_are_told_must_add_up() {
        let only = |percentage| {
            let mut told = [None; 10];
            told[9] = Some(percentage);
            Mix::of(told)
        };
        let mut random = Random::for_client(Generator::Xoshiro, 1, 1);
        let lists = only(100.0).expect("all of it");
        assert!((0..100).all(|_| lists.draw(&mut random) == Operation::GetLinksList));
        assert!(only(50.0).is_err() && only(-1.0).is_err() && only(f64::NAN).is_err());
    }
}
