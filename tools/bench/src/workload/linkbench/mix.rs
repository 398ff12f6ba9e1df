//! The ten operations, and the share of each.

use crate::client::Kind;
use crate::error::BenchError;
use pando_measuring::random::Random;

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A node with a new number.
    AddNode,
    /// New data of a node.
    UpdateNode,
    /// A node away.
    DeleteNode,
    /// A node by its number.
    GetNode,
    /// A link.
    AddLink,
    /// A link hidden.
    DeleteLink,
    /// New data of a link.
    UpdateLink,
    /// How many links of a type a node has.
    CountLink,
    /// Some links by their keys.
    MultigetLink,
    /// The newest links of a type.
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

/// The order in which the original adds up its percentages.
const DRAWN_IN_ORDER: [Operation; 10] = [
    Operation::AddLink,
    Operation::DeleteLink,
    Operation::UpdateLink,
    Operation::CountLink,
    Operation::MultigetLink,
    Operation::GetLinksList,
    Operation::AddNode,
    Operation::UpdateNode,
    Operation::DeleteNode,
    Operation::GetNode,
];

impl Operation {
    /// Its name in LinkBench's output.
    pub fn name(self) -> &'static str {
        match self {
            Operation::AddNode => "ADD_NODE",
            Operation::UpdateNode => "UPDATE_NODE",
            Operation::DeleteNode => "DELETE_NODE",
            Operation::GetNode => "GET_NODE",
            Operation::AddLink => "ADD_LINK",
            Operation::DeleteLink => "DELETE_LINK",
            Operation::UpdateLink => "UPDATE_LINK",
            Operation::CountLink => "COUNT_LINK",
            Operation::MultigetLink => "MULTIGET_LINK",
            Operation::GetLinksList => "GET_LINKS_LIST",
        }
    }

    /// The setting that holds its percentage.
    pub fn property(self) -> &'static str {
        match self {
            Operation::AddNode => "addnode",
            Operation::UpdateNode => "updatenode",
            Operation::DeleteNode => "deletenode",
            Operation::GetNode => "getnode",
            Operation::AddLink => "addlink",
            Operation::DeleteLink => "deletelink",
            Operation::UpdateLink => "updatelink",
            Operation::CountLink => "countlink",
            Operation::MultigetLink => "getlink",
            Operation::GetLinksList => "getlinklist",
        }
    }

    /// Its percentage, unless told otherwise.
    fn default_percentage(self) -> f64 {
        match self {
            Operation::AddNode => 2.573_278_9,
            Operation::UpdateNode => 7.366_437,
            Operation::DeleteNode => 1.011_591_4,
            Operation::GetNode => 12.932_668_3,
            Operation::AddLink => 8.988_660_1,
            Operation::DeleteLink => 2.990_766_4,
            Operation::UpdateLink => 8.012_212_5,
            Operation::CountLink => 4.886_356_7,
            Operation::MultigetLink => 0.526_114_2,
            Operation::GetLinksList => 50.711_914_5,
        }
    }

    /// Its place in [`OPERATIONS`].
    pub fn kind(self) -> Kind {
        Kind::new(OPERATIONS.iter().position(|operation| *operation == self).unwrap_or(0) as u8)
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
        let default = |operation: Operation| if any { 0.0 } else { operation.default_percentage() };
        let mut percentages = [0.0; OPERATIONS.len()];
        for ((percentage, told), operation) in percentages.iter_mut().zip(told).zip(OPERATIONS) {
            *percentage = told.unwrap_or_else(|| default(operation));
            if !(0.0..=100.0).contains(percentage) {
                let cause = format!("{} cannot be {percentage} percent", operation.property());
                return Err(BenchError::Option { option: "D", cause });
            }
        }
        let sum: f64 = percentages.iter().sum();
        if (sum - 100.0).abs() > 0.01 {
            let names = OPERATIONS.map(Operation::property).join(" + ");
            let cause = format!("{names} must be 100 percent together, they are {sum}");
            return Err(BenchError::Option { option: "D", cause });
        }
        Ok(Mix { percentages })
    }

    /// The percentages, in the order of [`OPERATIONS`].
    pub fn percentages(&self) -> [f64; OPERATIONS.len()] {
        self.percentages
    }

    /// An operation.
    pub fn draw(&self, random: &mut Random) -> Operation {
        let mut left = random.unit() * 100.0;
        for operation in DRAWN_IN_ORDER {
            left -= self.percentages[operation.kind().index()];
            if left <= 0.0 {
                return operation;
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
        let cumulative = DRAWN_IN_ORDER.map(|operation| {
            sum += mix.percentages[operation.kind().index()];
            sum
        });
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
