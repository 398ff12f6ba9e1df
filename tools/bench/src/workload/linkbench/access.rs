//! The choice of the node and of the links of an operation.
//!
//! # Nodes
//! A rank is drawn by Zipf's distribution, and a shuffler makes an id of it. Accesses to links mostly use
//! another shuffler than degrees do (*uncorrelated*: how hot a node is does not go with how many links it
//! has), and sometimes the same. A write of links takes the uncorrelated one in 95 of 100 cases with shape
//! 0.741; the original has a mistake there, and takes the reads' 99.5 of 100 with shape 0.8
//! ([`Writes::AsOriginal`]).
//!
//! # Links
//! The load gives a node links to the ids right after its own. So a link exists with probability P if its
//! distance is drawn from ceil(links / P) places, at least one.

use super::degree::Degrees;
use super::shuffler::{LINKS_SEED, NODES_SEED, Shuffler, UNCORRELATED_SEED};
use super::zipf::Zipf;
use pando_measuring::random::Random;

/// The share of reads of links whose heat goes with their number.
const READS_CORRELATED: f64 = 0.005;
/// The same of writes.
const WRITES_CORRELATED: f64 = 0.05;
/// How often a link of a multiget is drawn again because it was drawn already.
const DRAWS_MAX: u32 = 101;
/// The parameter of the number of links in a multiget.
const MULTIGET_P: f64 = 0.382;
const MULTIGET_MAX: u32 = 128;

/// How writes of links choose their node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// As LinkBench's configuration says.
    AsConfigured,
    /// As its code does.
    AsOriginal,
}

/// How many links a multiget has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multigets {
    /// 1 to 128, 2.6 in the mean.
    FromOne,
    /// As the original's code does: one more, 2 to 127.
    FromTwo,
}

/// The probability that a link exists which an operation is about.
pub mod existence {
    /// Of a read.
    pub const GET: f64 = 0.5;
    /// Of an update.
    pub const UPDATE: f64 = 0.9;
    /// Of a delete.
    pub const DELETE: f64 = 0.9;
    /// Of an insert.
    pub const ADD: f64 = 0.05;
}

#[derive(Clone, Debug)]
pub struct Access {
    first_id: i64,
    nodes: u64,
    degrees: Degrees,
    writes: Writes,
    multigets: Multigets,
    correlated: Shuffler,
    uncorrelated: Shuffler,
    node_shuffler: Shuffler,
    link_reads: Zipf,
    link_writes: Zipf,
    node_reads: Zipf,
    node_updates: Zipf,
}

impl Access {
    /// Over the nodes from `first_id` on that have these degrees.
    pub fn new(first_id: i64, nodes: u64, degrees: Degrees, writes: Writes, multigets: Multigets) -> Access {
        Access {
            first_id,
            nodes,
            degrees,
            writes,
            multigets,
            correlated: Shuffler::new(nodes, LINKS_SEED),
            uncorrelated: Shuffler::new(nodes, UNCORRELATED_SEED),
            node_shuffler: Shuffler::new(nodes, NODES_SEED),
            link_reads: Zipf::new(nodes, 0.8),
            link_writes: Zipf::new(nodes, 0.741),
            node_reads: Zipf::new(nodes, 0.625),
            node_updates: Zipf::new(nodes, 0.606),
        }
    }

    fn id(&self, place: u64) -> i64 {
        self.first_id + i64::try_from(place).unwrap_or(i64::MAX)
    }

    pub fn link_read(&self, random: &mut Random) -> i64 {
        let shuffler = if random.unit() < READS_CORRELATED { &self.correlated } else { &self.uncorrelated };
        self.id(shuffler.permute(self.link_reads.draw(random)))
    }

    pub fn link_write(&self, random: &mut Random) -> i64 {
        let (correlated, uncorrelated_zipf) = match self.writes {
            Writes::AsConfigured => (WRITES_CORRELATED, &self.link_writes),
            Writes::AsOriginal => (READS_CORRELATED, &self.link_reads),
        };
        if random.unit() < correlated {
            self.id(self.correlated.permute(self.link_writes.draw(random)))
        } else {
            self.id(self.uncorrelated.permute(uncorrelated_zipf.draw(random)))
        }
    }

    pub fn node_read(&self, random: &mut Random) -> i64 {
        self.id(self.node_shuffler.permute(self.node_reads.draw(random)))
    }

    pub fn node_update(&self, random: &mut Random) -> i64 {
        self.id(self.node_shuffler.permute(self.node_updates.draw(random)))
    }

    /// The node that is deleted: any.
    pub fn node_delete(&self, random: &mut Random) -> i64 {
        self.id(self.node_shuffler.permute(below(random, self.nodes)))
    }

    /// The node that a link goes to, which exists with this probability.
    pub fn link_target(&self, random: &mut Random, id1: i64, link_type: u32, existence: f64) -> i64 {
        id1.saturating_add(i64::try_from(below(random, self.range(id1, link_type, existence))).unwrap_or(0))
    }

    /// The nodes that the links of a multiget go to: all different.
    pub fn multiget_targets(&self, random: &mut Random, id1: i64, link_type: u32) -> Vec<i64> {
        let wanted = self.multiget_size(random);
        let range = self.range(id1, link_type, existence::GET);
        if range <= u64::from(wanted) {
            return (0..i64::from(wanted)).map(|distance| id1 + distance).collect();
        }
        let mut targets: Vec<i64> = Vec::with_capacity(wanted as usize);
        for _ in 0..wanted {
            let mut draws = (0..DRAWS_MAX).map(|_| self.link_target(random, id1, link_type, existence::GET));
            targets.extend(draws.find(|target| !targets.contains(target)));
        }
        targets
    }

    fn multiget_size(&self, random: &mut Random) -> u32 {
        let draw = ((1.0 - random.unit()).ln() / (1.0 - MULTIGET_P).ln()).ceil() as u32;
        match self.multigets {
            Multigets::FromOne => draw.clamp(1, MULTIGET_MAX),
            Multigets::FromTwo => (draw.max(1) + 1).min(MULTIGET_MAX - 1),
        }
    }

    fn range(&self, id1: i64, link_type: u32, existence: f64) -> u64 {
        let place = u64::try_from(id1 - self.first_id).unwrap_or(0);
        let links = self.degrees.links(place, u64::from(link_type)) as f64;
        ((links / existence).ceil() as u64).max(1)
    }
}

/// A uniform number below a bound, which may be more than 2^32.
fn below(random: &mut Random, bound: u64) -> u64 {
    match u32::try_from(bound) {
        Ok(bound) => u64::from(random.below(bound)),
        Err(_) => ((random.unit() * bound as f64) as u64).min(bound - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::degree::{Split, Table};
    use super::*;
    use pando_measuring::random::Generator;

    const NODES: u64 = 100_000;

    fn access(writes: Writes, multigets: Multigets) -> Access {
        let degrees = Degrees::new(NODES, 2, Split::Even, u64::MAX, Table::built_in());
        Access::new(1, NODES, degrees, writes, multigets)
    }

    fn random() -> Random {
        Random::for_client(Generator::Xoshiro, 1, 1)
    }

    /// The share of accesses to the node with this place of a shuffler.
    fn share_of(id: i64, mut draw: impl FnMut() -> i64) -> f64 {
        (0..50_000).filter(|_| draw() == id).count() as f64 / 50_000.0
    }

    #[test]
    fn all_nodes_are_within_what_was_loaded() {
        let (access, mut random) = (access(Writes::AsConfigured, Multigets::FromOne), random());
        for _ in 0..5000 {
            let ids = [
                access.link_read(&mut random),
                access.link_write(&mut random),
                access.node_read(&mut random),
                access.node_update(&mut random),
                access.node_delete(&mut random),
            ];
            assert!(ids.iter().all(|id| (1..=NODES as i64).contains(id)), "{ids:?}");
        }
    }

    #[test]
    fn the_hottest_node_of_link_reads_is_not_the_one_with_the_most_links() {
        let (access, mut random) = (access(Writes::AsConfigured, Multigets::FromOne), random());
        let hottest = 1 + access.uncorrelated.permute(0) as i64;
        let most_links = 1 + access.correlated.permute(0) as i64;
        let expected = 1.0 / 45.58; // 1 / (100,000^0.2 / 0.2 + 0.58 - 5)
        let share = share_of(hottest, || access.link_read(&mut random));
        assert!((share - expected * 0.995).abs() < 0.004, "{share}");
        assert!(share_of(most_links, || access.link_read(&mut random)) < 0.002);
    }

    #[test]
    fn writes_follow_the_configuration_or_the_originals_mistake() {
        let share = |writes| {
            let (access, mut random) = (access(writes, Multigets::FromOne), random());
            let hottest = 1 + access.uncorrelated.permute(0) as i64;
            share_of(hottest, || access.link_write(&mut random))
        };
        assert!(share(Writes::AsOriginal) > 1.4 * share(Writes::AsConfigured), "0.8 is steeper than 0.741");
    }

    #[test]
    fn links_exist_as_often_as_asked_for() {
        let (access, mut random) = (access(Writes::AsConfigured, Multigets::FromOne), random());
        let rich = (1..).find(|id| access.degrees.links(*id as u64 - 1, 0) == 9).expect("some node has nine");
        let existing = (0..20_000)
            .filter(|_| access.link_target(&mut random, rich, 0, existence::GET) < rich + 9)
            .count() as f64;
        assert!((existing / 20_000.0 - 0.5).abs() < 0.02, "{existing}");
        let poor =
            (1..).find(|id| access.degrees.links(*id as u64 - 1, 0) == 0).expect("nearly half have none");
        assert_eq!(access.link_target(&mut random, poor, 0, existence::ADD), poor);
    }

    #[test]
    fn multigets_have_the_sizes_of_the_specification_and_no_link_twice() {
        for (multigets, mean, least) in [(Multigets::FromOne, 2.618, 1), (Multigets::FromTwo, 3.618, 2)] {
            let (access, mut random) = (access(Writes::AsConfigured, multigets), random());
            let sizes: Vec<u32> = (0..50_000).map(|_| access.multiget_size(&mut random)).collect();
            let found = sizes.iter().map(|size| f64::from(*size)).sum::<f64>() / 50_000.0;
            assert!((found - mean).abs() < 0.04, "{found}");
            assert_eq!(sizes.iter().min(), Some(&least));
            for _ in 0..500 {
                let id1 = access.link_read(&mut random);
                let mut targets = access.multiget_targets(&mut random, id1, 1);
                let count = targets.len();
                targets.sort_unstable();
                targets.dedup();
                assert_eq!(targets.len(), count);
            }
        }
    }
}
