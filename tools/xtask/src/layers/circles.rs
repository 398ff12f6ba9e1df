//! Circles among arrows.
//!
//! A *circle group* is a largest set of names of which each leads to each other. Within it runs at least one
//! circle.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The arrows as pairs of names.
pub type ArrowSet<'a> = BTreeSet<(&'a str, &'a str)>;

/// The circle groups, each in order of names.
pub fn groups<'a>(arrows: &ArrowSet<'a>) -> Vec<BTreeSet<&'a str>> {
    let names: BTreeSet<&str> = arrows.iter().flat_map(|(from, to)| [*from, *to]).collect();
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        names.iter().map(|name| (*name, reached(arrows, name))).collect();
    let mut groups = Vec::new();
    let mut grouped: BTreeSet<&str> = BTreeSet::new();
    for name in names {
        if grouped.contains(name) || !reach[name].contains(name) {
            continue;
        }
        let group: BTreeSet<&str> =
            reach[name].iter().copied().filter(|other| reach[other].contains(name)).collect();
        grouped.extend(&group);
        groups.push(group);
    }
    groups
}

/// A shortest circle through a name: the names in order, the first one again at the end; `None` if there is
/// none.
pub fn shortest_through<'a>(arrows: &ArrowSet<'a>, name: &'a str) -> Option<Vec<&'a str>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut queue = VecDeque::from([name]);
    while let Some(at) = queue.pop_front() {
        for (_, to) in arrows.iter().filter(|(from, _)| *from == at) {
            if *to == name {
                let mut circle = vec![name, at];
                while let Some(before) = came_from.get(circle[circle.len() - 1]) {
                    circle.push(before);
                }
                if at == name {
                    circle.pop();
                    circle.push(name);
                }
                circle.reverse();
                return Some(circle);
            }
            if !came_from.contains_key(to) {
                came_from.insert(to, at);
                queue.push_back(to);
            }
        }
    }
    None
}

/// The names in an order in which users come before the used, names of one circle group together.
pub fn from_users_to_used<'a>(names: &BTreeSet<&'a str>, arrows: &ArrowSet<'a>) -> Vec<&'a str> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        names.iter().map(|name| (*name, reached(arrows, name))).collect();
    let mut order: Vec<&str> = names.iter().copied().collect();
    // A name reaches more than any name that it uses, or as much within one circle group.
    order.sort_by_key(|name| (std::cmp::Reverse(reach[name].len()), *name));
    order
}

/// The names that a name reaches by at least one arrow.
fn reached<'a>(arrows: &ArrowSet<'a>, name: &str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut todo = vec![name];
    while let Some(at) = todo.pop() {
        for (_, to) in arrows.iter().filter(|(from, _)| *from == at) {
            if seen.insert(*to) {
                todo.push(to);
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows(text: &'static str) -> ArrowSet<'static> {
        text.split(' ').filter_map(|arrow| arrow.split_once('>')).collect()
    }

    #[test]
    fn a_tree_has_no_circle() {
        assert!(groups(&arrows("a>b a>c b>d c>d")).is_empty());
        assert_eq!(shortest_through(&arrows("a>b b>c"), "a"), None);
    }

    #[test]
    fn each_circle_group_is_found_once() {
        let found = groups(&arrows("a>b b>c c>a b>a c>d d>e e>d f>a"));
        assert_eq!(found, [BTreeSet::from(["a", "b", "c"]), BTreeSet::from(["d", "e"])]);
    }

    #[test]
    fn the_shortest_circle_is_written_from_its_name_to_its_name() {
        let arrows = arrows("a>b b>c c>a b>a c>b");
        assert_eq!(shortest_through(&arrows, "a"), Some(vec!["a", "b", "a"]));
        assert_eq!(shortest_through(&arrows, "c"), Some(vec!["c", "b", "c"]));
        let long = ["a", "b", "c", "d", "a"];
        assert_eq!(shortest_through(&super::tests::arrows("a>b b>c c>d d>a"), "a"), Some(long.to_vec()));
    }

    #[test]
    fn users_come_before_the_used() {
        let arrows = arrows("top>mid mid>low top>low side>low");
        let names = BTreeSet::from(["low", "mid", "side", "top"]);
        assert_eq!(from_users_to_used(&names, &arrows), ["top", "mid", "side", "low"]);
    }
}
