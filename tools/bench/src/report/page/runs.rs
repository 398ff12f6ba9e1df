//! The runs of a section of a page: a name that tells each from the others, and the look of its lines.
//!
//! - A server has one colour on the whole page, in bars and in charts; its runs differ in their dashes. Where
//!   the page has one server only, its runs differ in their colours, too.
//! - A run has one look in all charts of its section.

use super::{plain_server_name, run_name};
use crate::report::file::RunFile;
use pando_measuring::chart::{COLOURS, Line, Look};
use std::collections::{BTreeMap, BTreeSet};

/// The servers of a page, each with its colour.
#[derive(Clone, Debug)]
pub struct Colours {
    servers: BTreeSet<String>,
}

impl Colours {
    pub fn of(files: &[RunFile]) -> Colours {
        Colours { servers: files.iter().map(plain_server_name).collect() }
    }

    /// The number of a server's colour.
    pub fn colour(&self, server: &str) -> usize {
        self.place(server) % COLOURS
    }

    fn place(&self, server: &str) -> usize {
        self.servers.iter().position(|name| name == server).unwrap_or(0)
    }

    /// The look of a server's line with this number, from 0.
    fn look(&self, server: &str, number: usize) -> Look {
        if self.servers.len() < 2 {
            return Look::Stroke { colour: number % COLOURS, dashes: number / COLOURS };
        }
        Look::Stroke { colour: self.colour(server), dashes: self.place(server) / COLOURS + number }
    }
}

/// A run in its section.
#[derive(Clone, Debug)]
pub struct Run<'f> {
    pub file: &'f RunFile,
    /// Its server, cache, run of the suite, settings and clients, and which repeat it is where these are
    /// equal.
    pub name: String,
    pub look: Look,
}

impl Run<'_> {
    /// A line of its points, with its name and its look.
    pub fn line(&self, points: Vec<(f64, f64)>) -> Line {
        Line { look: self.look, ..Line::new(self.name.clone(), points) }
    }
}

/// The runs of a section.
pub fn runs<'f>(files: &[&'f RunFile], colours: &Colours) -> Vec<Run<'f>> {
    let mut all_of_name: BTreeMap<String, usize> = BTreeMap::new();
    files.iter().for_each(|file| *all_of_name.entry(run_name(file)).or_default() += 1);
    let (mut of_name, mut of_server) = (BTreeMap::new(), BTreeMap::new());
    let next = |counts: &mut BTreeMap<String, usize>, key: String| {
        let count = counts.entry(key).or_default();
        *count += 1;
        *count
    };
    let run = |file: &'f RunFile| {
        let (mut name, server) = (run_name(file), plain_server_name(file));
        let repeat = next(&mut of_name, name.clone());
        if all_of_name.get(&name).is_some_and(|count| *count > 1) {
            name = format!("{name}, repeat {repeat}");
        }
        let look = colours.look(&server, next(&mut of_server, server.clone()) - 1);
        Run { file, name, look }
    };
    files.iter().copied().map(run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::file::tests::file;

    fn of(server: &str, clients: u32) -> RunFile {
        let mut file = file("point", clients, 1.0);
        file.labels.insert("server".into(), server.into());
        file
    }

    #[test]
    fn equal_names_are_numbered_and_a_server_keeps_its_colour() {
        let files = [of("b", 8), of("a", 8), of("b", 8), of("b", 32)];
        let all: Vec<&RunFile> = files.iter().collect();
        let runs = runs(&all, &Colours::of(&files));
        let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
        assert_eq!(
            names,
            ["b, 8 clients, repeat 1", "a, 8 clients", "b, 8 clients, repeat 2", "b, 32 clients"]
        );
        let looks: Vec<Look> = runs.iter().map(|run| run.look).collect();
        let stroke = |colour, dashes| Look::Stroke { colour, dashes };
        assert_eq!(looks, [stroke(1, 0), stroke(0, 0), stroke(1, 1), stroke(1, 2)]);
    }

    #[test]
    fn the_runs_of_a_single_server_differ_in_their_colours() {
        let files: Vec<RunFile> = (1..=7).map(|clients| of("a", clients)).collect();
        let all: Vec<&RunFile> = files.iter().collect();
        let looks: Vec<Look> = runs(&all, &Colours::of(&files)).iter().map(|run| run.look).collect();
        assert_eq!(looks[5], Look::Stroke { colour: 5, dashes: 0 });
        assert_eq!(looks[6], Look::Stroke { colour: 0, dashes: 1 });
    }
}
