//! A tournament tree: finds the least of k sources again and again, with log₂ k comparisons each time.
//!
//! An inner node keeps the loser of its match, so a source that has moved on plays only the losers on its way
//! up (Knuth, The Art of Computer Programming 3, 5.4.1).

/// See the module's head. Sources are numbers; the caller compares them.
#[derive(Debug, Default)]
pub(crate) struct Tournament {
    /// By node, from 1; source `s` of `k` is below node `(s + k) / 2`.
    losers: Vec<usize>,
    winner: usize,
}

impl Tournament {
    /// Plays all matches of so many sources, at least one.
    pub(crate) fn new(sources: usize, is_less: impl Fn(usize, usize) -> bool) -> Tournament {
        let mut winners: Vec<usize> = (0..sources).chain(0..sources).collect();
        let mut losers = vec![0; sources];
        for node in (1..sources).rev() {
            let (one, other) = (winners[2 * node], winners[2 * node + 1]);
            let is_one = is_less(one, other);
            winners[node] = if is_one { one } else { other };
            losers[node] = if is_one { other } else { one };
        }
        Tournament { losers, winner: winners.get(1).copied().unwrap_or(0) }
    }

    /// The least source.
    pub(crate) fn winner(&self) -> usize {
        self.winner
    }

    /// Plays the matches of the winner anew, after it has moved on.
    pub(crate) fn replay(&mut self, is_less: impl Fn(usize, usize) -> bool) {
        let mut winner = self.winner;
        let mut node = (winner + self.losers.len()) / 2;
        while node > 0 {
            if is_less(self.losers[node], winner) {
                std::mem::swap(&mut self.losers[node], &mut winner);
            }
            node /= 2;
        }
        self.winner = winner;
    }
}

#[cfg(test)]
mod tests {
    use pando_environment::Random;
    use pando_environment::SeededRandom;

    use super::*;

    #[test]
    fn any_number_of_sources_comes_out_in_order() {
        let random = SeededRandom::new(5);
        for count in 1..40 {
            let sources: Vec<Vec<u64>> = (0..count)
                .map(|_| {
                    let mut source: Vec<u64> =
                        (0..random.next_u64() % 9).map(|_| random.next_u64() % 50).collect();
                    source.sort_unstable();
                    source
                })
                .collect();
            let mut places = vec![0; count];
            let next = |places: &[usize], source: usize| sources[source].get(places[source]).copied();
            // Sources at their end come last; equal ones in the order of their numbers.
            let less = |places: &[usize], one: usize, other: usize| {
                (next(places, one).unwrap_or(u64::MAX), one)
                    < (next(places, other).unwrap_or(u64::MAX), other)
            };
            let mut tournament = Tournament::new(count, |one, other| less(&places, one, other));
            let mut merged = Vec::new();
            while let Some(value) = next(&places, tournament.winner()) {
                merged.push(value);
                places[tournament.winner()] += 1;
                tournament.replay(|one, other| less(&places, one, other));
            }
            let mut expected: Vec<u64> = sources.concat();
            expected.sort_unstable();
            assert_eq!(merged, expected);
        }
    }
}
