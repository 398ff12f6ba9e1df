//! The number of links of a node.
//!
//! # The table
//! The original draws from an empirical distribution: pairs of a number of links and the percentage of nodes
//! that have at most as many. With `data_file` (LinkBench's `Distribution.dat`) the table is that file's
//! section `nlinks`. Without one it is the built-in curve through the published points of it (see
//! [`POINTS`]), between which it goes on straight in logarithms: the same head, the same quantiles, a mean
//! within some percent, and not the same totals.
//!
//! # From an id to its links
//! 1. rank = the id's place in the order of degrees ([`Shuffler::inverse`]), rank 0 having the most.
//! 2. u = 1 - rank / n; the first entry of the table whose cumulative share is at least u is the node's total
//!    T.
//! 3. T is split over the link types: evenly, the first types having one more where it does not come out
//!    even.
//!
//! The original's split gives `T - T/types` types one more, not `T mod types`, and so creates more links than
//! T; [`Split::AsOriginal`] does so, too.

use super::shuffler::{LINKS_SEED, Shuffler};
use crate::error::{BenchError, read_text};
use std::path::Path;

/// Number of links, and the percentage of nodes that have at most as many: the published points.
const POINTS: [(f64, f64); 15] = [
    (0.0, 45.3316),
    (1.0, 77.4626),
    (2.0, 86.9581),
    (3.0, 91.9931),
    (4.0, 94.4508),
    (5.0, 95.8281),
    (10.0, 98.3280),
    (15.0, 99.0),
    (20.0, 99.3270),
    (50.0, 99.7216),
    (264.0, 99.9),
    (6051.0, 99.99),
    (24_000.0, 99.999),
    (100_000.0, 99.9999),
    (961_963.0, 100.0),
];

/// The totals of LinkBench's own table for two link types, by number of nodes.
pub const OWN_TOTALS: [Totals; 5] = [
    Totals { nodes: 10_000, links: 992_404, links_as_original: 995_140, nodes_without: 4_533 },
    Totals { nodes: 100_000, links: 1_341_526, links_as_original: 1_368_899, nodes_without: 45_331 },
    Totals { nodes: 1_000_000, links: 4_975_697, links_as_original: 5_249_370, nodes_without: 453_316 },
    Totals { nodes: 10_000_000, links: 41_721_824, links_as_original: 44_458_555, nodes_without: 4_533_160 },
    Totals {
        nodes: 100_000_000,
        links: 410_085_127,
        links_as_original: 437_452_810,
        nodes_without: 45_331_605,
    },
];
/// The graphs that are small enough to be counted at each start.
const QUICK_TOTALS: usize = 3;

/// How many links a table gives to a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    pub nodes: u64,
    /// The sum of their totals.
    pub links: u64,
    /// The links by the original's split.
    pub links_as_original: u64,
    /// Nodes that have no links.
    pub nodes_without: u64,
}

/// How a total is split over the link types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// The parts add up to the total.
    Even,
    /// With the original's mistake: they add up to more.
    AsOriginal,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Number of links, and the share (0..=1) of nodes that have at most as many; both ascend.
    entries: Vec<(u64, f64)>,
}

impl Table {
    pub fn built_in() -> Table {
        let mut entries = Vec::new();
        for two in POINTS.windows(2) {
            let ((from, from_percent), (to, to_percent)) = (two[0], two[1]);
            entries.push((from as u64, from_percent / 100.0));
            // Shares of nodes with more links, in logarithms; what none has more than is a thousandth of the
            // point before.
            let more = |percent: f64| (100.0 - percent).max((100.0 - from_percent) / 1000.0).ln();
            // Steps of a twentieth keep the table small where single links no longer matter.
            let mut links = from + (from / 20.0).floor().max(1.0);
            while links < to {
                let place = (links.ln() - from.max(1.0).ln()) / (to.ln() - from.max(1.0).ln());
                let percent =
                    100.0 - (more(from_percent) + place * (more(to_percent) - more(from_percent))).exp();
                entries.push((links as u64, percent / 100.0));
                links += (links / 20.0).floor().max(1.0);
            }
        }
        let (most, _) = POINTS[POINTS.len() - 1];
        entries.push((most as u64, 1.0));
        Table { entries }
    }

    /// The section `nlinks` of a file of LinkBench's form: a line with the section's name, then lines `NUMBER
    /// PERCENT`.
    pub fn read(path: &Path) -> Result<Table, BenchError> {
        let text = read_text(path)?;
        Table::parse(&text).map_err(|(line, cause)| BenchError::FileForm {
            path: path.to_owned(),
            line,
            cause,
        })
    }

    fn parse(text: &str) -> Result<Table, (usize, String)> {
        let mut entries: Vec<(u64, f64)> = Vec::new();
        let mut inside = false;
        for (number, line) in text.lines().enumerate().map(|(number, line)| (number + 1, line.trim())) {
            let mut words = line.split_whitespace();
            match (words.next(), words.next()) {
                (None, _) => {}
                (Some(section), None) => inside = section == "nlinks",
                (Some(links), Some(percent)) if inside => {
                    let wrong = |_| (number, "expected a number of links and a percentage".to_owned());
                    let links = links.parse::<u64>().map_err(|error| wrong(error.to_string()))?;
                    let share = percent.parse::<f64>().map_err(|error| wrong(error.to_string()))? / 100.0;
                    if entries.last().is_some_and(|last| last.0 >= links || last.1 > share)
                        || !(0.0..=1.0001).contains(&share)
                    {
                        return Err((
                            number,
                            "numbers and percentages must ascend, to 100 at most".to_owned(),
                        ));
                    }
                    entries.push((links, share));
                }
                _ => {}
            }
        }
        if entries.is_empty() {
            return Err((0, "there is no section nlinks".to_owned()));
        }
        Ok(Table { entries })
    }

    /// Whether it is LinkBench's own, by the exact totals that this gives.
    pub fn is_linkbenchs_own(&self) -> bool {
        OWN_TOTALS.iter().take(QUICK_TOTALS).all(|own| self.totals(own.nodes) == *own)
    }

    /// The totals of a graph of so many nodes and two link types.
    pub fn totals(&self, nodes: u64) -> Totals {
        let (mut links, mut links_as_original, mut nodes_without) = (0, 0, 0);
        for total in self.degrees_of_ranks(nodes) {
            links += total;
            links_as_original +=
                (0..2).map(|link_type| part(total, link_type, 2, Split::AsOriginal)).sum::<u64>();
            nodes_without += u64::from(total == 0);
        }
        Totals { nodes, links, links_as_original, nodes_without }
    }

    /// The degree of each rank of so many, rank 0 first. What [`Table::links_at`] says of each, without
    /// searching: shares descend from rank to rank, and so does the place in the table.
    fn degrees_of_ranks(&self, nodes: u64) -> impl Iterator<Item = u64> {
        let mut place = self.entries.len();
        (0..nodes).map(move |rank| {
            let share = share_of(rank, nodes);
            while place > 0 && self.entries[place - 1].1 >= share {
                place -= 1;
            }
            self.entries[place.min(self.entries.len() - 1)].0
        })
    }

    /// The number of links at a share (0..=1): of the first entry that reaches it.
    pub fn links_at(&self, share: f64) -> u64 {
        let place = self.entries.partition_point(|(_, cumulative)| *cumulative < share);
        self.entries[place.min(self.entries.len() - 1)].0
    }
}

/// The share of nodes that have at most as many links as a rank.
fn share_of(rank: u64, nodes: u64) -> f64 {
    1.0 - rank as f64 / nodes as f64
}

/// The part of a node's total that one link type gets.
fn part(total: u64, link_type: u64, types: u64, split: Split) -> u64 {
    let base = total / types;
    let one_more = match split {
        Split::Even => total % types,
        Split::AsOriginal => total - base,
    };
    base + u64::from(link_type < one_more)
}

/// The degrees of all nodes.
#[derive(Clone, Debug)]
pub struct Degrees {
    nodes: u64,
    types: u64,
    split: Split,
    most: u64,
    shuffler: Shuffler,
    table: Table,
}

impl Degrees {
    /// Of so many nodes with so many link types; no node has more than `most` links.
    pub fn new(nodes: u64, types: u64, split: Split, most: u64, table: Table) -> Degrees {
        assert!(types > 0, "there is a link type");
        Degrees { nodes, types, split, most, shuffler: Shuffler::new(nodes, LINKS_SEED), table }
    }

    fn total_of_rank(&self, rank: u64) -> u64 {
        self.table.links_at(share_of(rank, self.nodes)).min(self.most)
    }

    fn part(&self, total: u64, link_type: u64) -> u64 {
        part(total, link_type, self.types, self.split)
    }

    /// The links of a node (from 0) of a link type (from 0).
    pub fn links(&self, node: u64, link_type: u64) -> u64 {
        self.part(self.total_of_rank(self.shuffler.inverse(node)), link_type)
    }

    /// Those of another number of nodes.
    pub fn of_nodes(&self, nodes: u64) -> Degrees {
        Degrees { nodes, shuffler: Shuffler::new(nodes, LINKS_SEED), ..self.clone() }
    }

    /// The last node (from 0) that has links, if any has.
    pub fn last_linked(&self) -> Option<u64> {
        (0..self.nodes).rev().find(|node| (0..self.types).any(|link_type| self.links(*node, link_type) > 0))
    }

    /// The links of all nodes of all types: what a load creates.
    pub fn all_links(&self) -> u64 {
        let of_total = |total: u64| {
            let total = total.min(self.most);
            (0..self.types).map(|link_type| self.part(total, link_type)).sum::<u64>()
        };
        self.table.degrees_of_ranks(self.nodes).map(of_total).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn degrees(nodes: u64, split: Split) -> Degrees {
        Degrees::new(nodes, 2, split, u64::MAX, Table::built_in())
    }

    #[test]
    fn the_head_and_the_quantiles_are_the_published_ones() {
        let table = Table::built_in();
        let quantiles =
            [(0.5, 1), (0.9, 3), (0.95, 5), (0.99, 15), (0.999, 264), (0.9999, 6051), (0.99999, 24_000)];
        for (share, links) in quantiles {
            // A hair less: percentages and shares are not the same doubles.
            assert_eq!(table.links_at(share - 1e-9), links, "{share}");
        }
        assert_eq!((table.links_at(0.45), table.links_at(0.4534), table.links_at(1.0)), (0, 1, 961_963));
        assert!(table.entries.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1));
    }

    #[test]
    fn the_same_nodes_have_no_links_as_in_the_original() {
        for Totals { nodes, nodes_without, .. } in OWN_TOTALS.into_iter().take(QUICK_TOTALS) {
            let found = Table::built_in().totals(nodes).nodes_without;
            assert!(found.abs_diff(nodes_without) <= 1, "{found} of {nodes}, not {nodes_without}");
        }
    }

    #[test]
    fn totals_are_near_those_of_the_originals_table() {
        // The table's own totals; the curve between its published points is within a tenth of them.
        for Totals { nodes, links, .. } in OWN_TOTALS.into_iter().take(QUICK_TOTALS) {
            let found = degrees(nodes, Split::Even).all_links();
            assert!((found as f64 / links as f64 - 1.0).abs() < 0.1, "{nodes} nodes: {found}, not {links}");
        }
    }

    #[test]
    fn another_table_does_not_pass_for_linkbenchs_own() {
        assert!(!Table::built_in().is_linkbenchs_own());
        let flat = Table::parse("nlinks\n0 50\n1 100\n").expect("the form is right");
        assert!(!flat.is_linkbenchs_own());
    }

    #[test]
    fn the_links_that_the_originals_split_adds_are_those_of_the_specification() {
        // Of each node: nothing for T = 0 and 1, one for T = 2 and odd T from 3 on, two for even T from 4 on.
        for Totals { nodes, .. } in OWN_TOTALS.into_iter().take(QUICK_TOTALS) {
            let (even, original) = (degrees(nodes, Split::Even), degrees(nodes, Split::AsOriginal));
            let added: u64 = (0..nodes)
                .map(|rank| match even.total_of_rank(rank) {
                    0 | 1 => 0,
                    2 => 1,
                    total => 2 - total % 2,
                })
                .sum();
            assert_eq!(original.all_links() - even.all_links(), added, "{nodes} nodes");
        }
    }

    #[test]
    fn going_through_the_ranks_gives_what_a_search_for_each_gives() {
        for nodes in [1, 7, 1000] {
            let degrees = degrees(nodes, Split::AsOriginal);
            let searched: Vec<u64> = (0..nodes).map(|rank| degrees.total_of_rank(rank)).collect();
            assert_eq!(Table::built_in().degrees_of_ranks(nodes).collect::<Vec<_>>(), searched);
            let links: u64 = (0..nodes).map(|node| degrees.links(node, 0) + degrees.links(node, 1)).sum();
            let totals = Table::built_in().totals(nodes);
            assert_eq!((totals.links, totals.links_as_original), (searched.iter().sum(), links));
        }
    }

    #[test]
    fn the_first_rank_has_the_most_links_however_few_nodes_there_are_unless_they_are_capped() {
        let all = degrees(10_000, Split::Even);
        let hottest = all.shuffler.permute(0);
        assert_eq!(all.links(hottest, 0) + all.links(hottest, 1), 961_963);
        let capped = Degrees::new(10_000, 2, Split::Even, 100, Table::built_in());
        assert_eq!(capped.links(hottest, 0) + capped.links(hottest, 1), 100);
    }

    #[test]
    fn the_originals_split_creates_links_and_the_even_one_does_not() {
        // T = 1 -> 1 + 0; T = 2 -> 2 + 1; odd T >= 3 -> T + 1; even T >= 4 -> T + 2.
        let (even, original) = (degrees(10, Split::Even), degrees(10, Split::AsOriginal));
        let sum = |degrees: &Degrees, total| degrees.part(total, 0) + degrees.part(total, 1);
        assert_eq!([0, 1, 2, 3, 4, 5].map(|total| sum(&original, total)), [0, 1, 3, 4, 6, 6]);
        assert_eq!([0, 1, 2, 3, 4, 5].map(|total| sum(&even, total)), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_file_of_linkbench_is_read_and_another_is_refused_with_its_line() {
        let table =
            Table::parse("nlinks\n0 50\n1 90.5\n7 100\nlink_nreads\n5 1\n").expect("the form is right");
        assert_eq!(table.entries, [(0, 0.5), (1, 0.905), (7, 1.0)]);
        assert_eq!((table.links_at(0.5), table.links_at(0.6), table.links_at(1.0)), (0, 1, 7));
        for (text, line) in [
            ("nlinks\n0 x\n", 2),
            ("nlinks\n5 50\n4 60\n", 3),
            ("link_nreads\n0 1\n", 0),
            ("nlinks\n0 200\n", 2),
        ] {
            assert_eq!(Table::parse(text).map_err(|(line, _)| line), Err(line), "{text}");
        }
    }
}
