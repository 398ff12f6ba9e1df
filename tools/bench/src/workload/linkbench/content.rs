//! The data of links and nodes: its length and its bytes.
//!
//! Lengths are log-normal around a median, rounded and cut. Bytes come in chunks: a chunk is fresh, or copied
//! out of a *motif* buffer that the generator filled at its beginning; how often decides how well the data
//! compresses. Most links are one short chunk, so that they resemble others and not themselves.

use pando_measuring::random::Random;

/// The length of a chunk.
const CHUNK_BYTES: usize = 128;
/// The length of the motif buffer that the original uses, whatever its configuration asks for.
pub const ORIGINAL_MOTIF_BYTES: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Content {
    pub median_bytes: f64,
    /// The most bytes.
    pub bytes_max: usize,
    pub bytes: (u8, u8),
    /// The share (0..=1) of fresh chunks.
    pub uniqueness: f64,
    pub motif_bytes: usize,
}

impl Content {
    /// Of links; about 30 % of their size are left by compression.
    pub const LINKS: Content =
        Content { median_bytes: 8.0, bytes_max: 254, bytes: (32, 100), uniqueness: 0.225, motif_bytes: 128 };
    /// Of nodes; about 60 % are left.
    pub const NODES: Content = Content {
        median_bytes: 128.0,
        bytes_max: 1_048_575,
        bytes: (50, 220),
        uniqueness: 0.63,
        motif_bytes: ORIGINAL_MOTIF_BYTES,
    };
    /// The deviation of the logarithm of a length.
    const SIGMA: f64 = 1.0;
}

#[derive(Clone, Debug)]
pub struct ContentMaker {
    content: Content,
    motif: Vec<u8>,
}

impl ContentMaker {
    pub fn new(content: Content, random: &mut Random) -> ContentMaker {
        let mut maker = ContentMaker { content, motif: Vec::new() };
        maker.motif = (0..content.motif_bytes).map(|_| maker.byte(random)).collect();
        maker
    }

    pub fn make(&self, random: &mut Random) -> Vec<u8> {
        let length = self.length(random);
        let mut data = Vec::with_capacity(length);
        while data.len() < length {
            let chunk = CHUNK_BYTES.min(length - data.len());
            if random.unit() < self.content.uniqueness {
                data.extend((0..chunk).map(|_| self.byte(random)));
            } else {
                let places = u32::try_from(self.motif.len() - chunk + 1).unwrap_or(u32::MAX);
                let from = random.below(places) as usize;
                data.extend_from_slice(&self.motif[from..from + chunk]);
            }
        }
        data
    }

    fn length(&self, random: &mut Random) -> usize {
        let length = (self.content.median_bytes.ln() + Content::SIGMA * random.gaussian()).exp().round();
        (length as usize).min(self.content.bytes_max)
    }

    fn byte(&self, random: &mut Random) -> u8 {
        let (low, high) = self.content.bytes;
        low + u8::try_from(random.below(u32::from(high - low) + 1)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_measuring::random::Generator;

    fn all(content: Content, count: u32) -> Vec<Vec<u8>> {
        let mut random = Random::for_client(Generator::Xoshiro, 1, 1);
        let maker = ContentMaker::new(content, &mut random);
        (0..count).map(|_| maker.make(&mut random)).collect()
    }

    #[test]
    fn lengths_have_the_median_and_the_mean_of_the_specification() {
        for (content, median, mean) in [(Content::LINKS, 8.0, 13.2), (Content::NODES, 128.0, 211.0)] {
            let mut lengths: Vec<f64> = all(content, 20_000).iter().map(|data| data.len() as f64).collect();
            lengths.sort_by(f64::total_cmp);
            assert!((lengths[10_000] / median - 1.0).abs() < 0.05, "{}", lengths[10_000]);
            let found = lengths.iter().sum::<f64>() / 20_000.0;
            assert!((found / mean - 1.0).abs() < 0.05, "{found}");
            assert!(lengths.iter().all(|length| *length <= content.bytes_max as f64));
        }
    }

    #[test]
    fn bytes_stay_in_their_range_and_reach_both_ends() {
        for content in [Content::LINKS, Content::NODES] {
            let bytes: Vec<u8> = all(content, 20_000).concat();
            assert_eq!(
                (bytes.iter().min(), bytes.iter().max()),
                (Some(&content.bytes.0), Some(&content.bytes.1))
            );
        }
    }

    #[test]
    fn chunks_repeat_as_often_as_they_are_not_fresh() {
        let mut random = Random::for_client(Generator::Xoshiro, 1, 1);
        let content = Content { median_bytes: 100_000.0, ..Content::NODES };
        let maker = ContentMaker::new(content, &mut random);
        let data = maker.make(&mut random);
        let chunks: Vec<&[u8]> = data.chunks_exact(CHUNK_BYTES).collect();
        let copied =
            chunks.iter().filter(|chunk| maker.motif.windows(CHUNK_BYTES).any(|part| part == **chunk));
        let share = copied.count() as f64 / chunks.len() as f64;
        assert!((share - 0.37).abs() < 0.08, "{share} of {}", chunks.len());
    }
}
