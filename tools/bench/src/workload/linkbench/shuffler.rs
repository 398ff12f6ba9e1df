//! A cheap bijection between ranks and ids, which puts the hot and the many-linked ids apart.
//!
//! Ranks 0 to n - 1 are dealt out to G = min(1024, n) groups, rank i to group i mod G. Within its group, a
//! rank goes round by as many places as the group's rotation says; rotations are drawn from java.util.Random
//! with a fixed seed, so that they are the original's. What a rank is modulo G stays.
//!
//! Example: with n = 10,000,000, m = floor(n / G) = 9765 and the links' seed, group 0 rotates by 347: rank 0
//! becomes 347 * 1024 = 355,328.

use pando_measuring::random::java::JavaRandom;

/// Most groups.
const GROUPS_MAX: u64 = 1024;
/// The seed for the number of links of a node, and for accesses that go with it.
pub const LINKS_SEED: u64 = 20_343_988_438_726_021;
/// The seed for accesses to links that do not go with their number.
pub const UNCORRELATED_SEED: u64 = 53_238_253_823_453;
/// The seed for accesses to nodes.
pub const NODES_SEED: u64 = 4_766_565_305_853_767_165;

#[derive(Clone, Debug)]
pub struct Shuffler {
    ranks: u64,
    groups: u64,
    rotations: Vec<u64>,
}

impl Shuffler {
    /// Over so many ranks, at least 1 and fewer than 2^41.
    pub fn new(ranks: u64, seed: u64) -> Shuffler {
        assert!(ranks > 0, "there is a rank");
        let groups = GROUPS_MAX.min(ranks);
        let places = u32::try_from(ranks / groups).expect("the number of nodes was checked");
        let mut random = JavaRandom::new(seed);
        let rotations = (0..groups).map(|_| u64::from(random.below(places))).collect();
        Shuffler { ranks, groups, rotations }
    }

    /// The id (from 0) of a rank.
    pub fn permute(&self, rank: u64) -> u64 {
        let (group, members) = self.group_of(rank);
        (rank / self.groups + self.rotations[group as usize]) % members * self.groups + group
    }

    /// The rank of an id (from 0).
    pub fn inverse(&self, id: u64) -> u64 {
        let (group, members) = self.group_of(id);
        (id / self.groups + members - self.rotations[group as usize]) % members * self.groups + group
    }

    /// The group, and how many members it has: the first ones have one more if they do not come out even.
    fn group_of(&self, number: u64) -> (u64, u64) {
        assert!(number < self.ranks, "ranks and ids are below their number");
        let group = number % self.groups;
        let one_more = u64::from(group < self.ranks % self.groups);
        (group, self.ranks / self.groups + one_more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rotations_are_the_originals() {
        for (seed, expected) in [
            (LINKS_SEED, [347, 5629, 1728, 6331, 8819]),
            (UNCORRELATED_SEED, [5777, 7391, 3650, 7109, 7444]),
            (NODES_SEED, [6047, 7075, 2965, 3711, 6513]),
        ] {
            assert_eq!(Shuffler::new(10_000_000, seed).rotations[..5], expected);
        }
    }

    #[test]
    fn ten_million_are_shuffled_as_the_original_does() {
        let shuffler = Shuffler::new(10_000_000, LINKS_SEED);
        let four = |of: &dyn Fn(u64) -> u64| [of(0), of(1), of(2), of(3)];
        assert_eq!(four(&|rank| shuffler.permute(rank)), [355_328, 5_764_097, 1_769_474, 6_482_947]);
        assert_eq!(four(&|id| shuffler.inverse(id)), [9_645_056, 4_236_289, 8_230_914, 3_517_443]);
    }

    #[test]
    fn every_id_has_one_rank() {
        for ranks in [1, 5, 1023, 1024, 1025, 10_000, 100_000, 1_000_003] {
            let shuffler = Shuffler::new(ranks, LINKS_SEED);
            let mut seen = vec![false; ranks as usize];
            for rank in 0..ranks {
                let id = shuffler.permute(rank);
                assert!(!std::mem::replace(&mut seen[id as usize], true), "{ranks}: {id} twice");
                assert_eq!(shuffler.inverse(id), rank);
            }
        }
    }
}
