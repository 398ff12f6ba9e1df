//! The check of a file that may be the table of degrees that LinkBench came with, by the totals that are
//! known of it: links and nodes without links of graphs of 10,000 to 100,000,000 nodes. The file is
//! LinkBench's (`config/Distribution.dat`), stands in no package registry, and is no part of this project:
//! whoever has a copy of LinkBench names theirs.

use super::Answer;
use crate::error::BenchError;
use crate::workload::linkbench::degree::{OWN_TOTALS, Table, Totals};
use std::path::Path;

pub fn check(path: &Path) -> Result<Answer, BenchError> {
    Ok(compare(&Table::read(path)?))
}

fn compare(table: &Table) -> Answer {
    let mut texts = Vec::new();
    let mut holds = true;
    for own in OWN_TOTALS {
        let found = table.totals(own.nodes);
        holds &= found == own;
        texts.push(if found == own {
            in_words(found)
        } else {
            format!("{}, NOT {}", in_words(found), in_words(own))
        });
    }
    Answer { text: texts.join("; "), holds }
}

fn in_words(totals: Totals) -> String {
    let Totals { nodes, links, links_as_original, nodes_without } = totals;
    format!(
        "{nodes} nodes: {links} links ({links_as_original} as the original splits them), {nodes_without} nodes without"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_not_linkbenchs_is_told_by_every_total_that_differs() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("Distribution.dat");
        // Half of the nodes without links, the others with one.
        std::fs::write(&path, "nlinks\n0 50\n1 100\n").expect("writable");
        let answer = check(&path).expect("the form is right");
        assert!(!answer.holds);
        assert!(
            answer.text.starts_with(
                "10000 nodes: 5000 links (5000 as the original splits them), 5000 nodes without, NOT"
            ),
            "{}",
            answer.text
        );
        assert!(check(&folder.path().join("missing")).is_err());
    }
}
