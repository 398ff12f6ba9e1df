//! Words in braces that commands of servers may have: `{port}`, `{data}`, `{cache_mb}`, `{cache_gb}`,
//! `{cache_bytes}`.

use std::collections::BTreeMap;

/// The values of the words.
#[derive(Clone, Debug, Default)]
pub struct Words {
    values: BTreeMap<&'static str, String>,
}

impl Words {
    /// No words.
    pub fn new() -> Words {
        Words::default()
    }

    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl ToString) -> Words {
        self.values.insert(name, value.to_string());
        self
    }

    /// And those of a cache of so many megabytes (10^6 bytes).
    #[must_use]
    pub fn with_cache(self, megabytes: u64) -> Words {
        let gigabytes = megabytes as f64 / 1_073.741_824;
        self.with("cache_mb", megabytes)
            .with("cache_bytes", megabytes.saturating_mul(1_000_000))
            // mongod takes gigabytes of 2^30 bytes, and fractions of them.
            .with("cache_gb", format!("{gigabytes:.3}"))
    }

    /// The text with its words replaced, or why it cannot be. A word that is not known is refused: a typing
    /// error would reach the server as it stands.
    pub fn fill(&self, text: &str) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(before);
            let Some((word, behind)) = after.split_once('}') else {
                return Err(format!("`{text}` has a brace that is not closed"));
            };
            let value = self.values.get(word).ok_or_else(|| {
                let known: Vec<&str> = self.values.keys().copied().collect();
                format!("`{{{word}}}` stands for nothing here; there are: {}", known.join(", "))
            })?;
            filled.push_str(value);
            rest = behind;
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_replaced_and_unknown_ones_refused() {
        let words = Words::new().with("port", 7).with_cache(640);
        let filled = words.fill("a --port {port} --cache {cache_gb} {cache_bytes}").expect("all known");
        assert_eq!(filled, "a --port 7 --cache 0.596 640000000");
        let error = words.fill("{prot}").expect_err("a typing error");
        assert!(error.contains("{prot}") && error.contains("port"), "{error}");
        assert!(words.fill("{port").is_err());
    }
}
