//! The rows: each follows from the seed and its place only.

use crate::error::BenchError;
use pando_document::{DocumentWriter, RawDocument};
use pando_measuring::random::split_mix;

/// The bytes of a row without nulls.
pub const ROW_BYTES: usize = 46;

/// Which rows there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Rows {
    /// How many.
    pub count: u32,
    /// The distance of their ids, at least 1.
    pub gap: u32,
    /// The seed of the values.
    pub seed: u64,
    /// How many of a hundred values are null.
    pub null_percent: u32,
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// `_id`.
    pub id: i64,
    /// `value1`; nothing for null.
    pub value1: Option<i32>,
    /// `value2`; nothing for null.
    pub value2: Option<f64>,
}

impl Rows {
    /// The row at a place, from 0.
    pub fn row(&self, place: u32) -> Row {
        let id = (i64::from(place) + 1) * i64::from(self.gap);
        let bits = split_mix(self.seed ^ split_mix(u64::from(place)));
        let more = split_mix(bits);
        let nulls = split_mix(more);
        let is_null = |bits: u64| bits % 100 < u64::from(self.null_percent);
        Row {
            id,
            value1: (!is_null(nulls >> 32)).then_some((bits >> 32) as i32),
            value2: (!is_null(nulls & 0xFFFF_FFFF)).then_some((more >> 11) as f64 / (1_u64 << 53) as f64),
        }
    }
}

impl Row {
    /// Appends it as a document.
    pub fn append(&self, out: &mut Vec<u8>) {
        let mut writer = DocumentWriter::begin(out);
        writer.append_i64("_id", self.id);
        match self.value1 {
            Some(value) => writer.append_i32("value1", value),
            None => writer.append_null("value1"),
        }
        match self.value2 {
            Some(value) => writer.append_f64("value2", value),
            None => writer.append_null("value2"),
        }
        writer.finish();
    }

    pub(crate) fn matches(&self, document: &RawDocument) -> Result<bool, BenchError> {
        let number = |name: &str| -> Result<Option<f64>, BenchError> {
            use pando_document::RawValue;
            Ok(match document.get(name)? {
                Some(RawValue::Double(value)) => Some(value),
                Some(value) => value.as_i64_exact().map(|value| value as f64),
                None => None,
            })
        };
        let id = document.get("_id")?.and_then(|id| id.as_i64_exact());
        Ok(id == Some(self.id)
            && number("value1")? == self.value1.map(f64::from)
            && number("value2")? == self.value2
            && document.iter().count() == 3)
    }

    /// The message of a reply that is not this row, where the values are to be those of a seed.
    pub fn wrong(&self, seed: u64) -> String {
        format!(
            "wrong document for _id {}: its values are not those of --seed {seed}; name the seed that it was loaded with",
            self.id
        )
    }

    /// Whether a document has as many bytes as this row: all that a null server's reply can be held to.
    pub fn has_size_of(&self, document: &RawDocument) -> bool {
        let nulls = if self.value1.is_none() { 4 } else { 0 } + if self.value2.is_none() { 8 } else { 0 };
        document.as_bytes().len() == ROW_BYTES - nulls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(null_percent: u32) -> Rows {
        Rows { count: 1000, gap: 10, seed: 1, null_percent }
    }

    fn bytes(row: &Row) -> Vec<u8> {
        let mut out = Vec::new();
        row.append(&mut out);
        out
    }

    #[test]
    fn a_row_has_the_size_of_the_specification_and_is_known_again() {
        let row = rows(0).row(41);
        let bytes = bytes(&row);
        assert_eq!((row.id, bytes.len()), (420, ROW_BYTES));
        let document = RawDocument::from_bytes(&bytes).expect("a document");
        assert!(row.matches(document).expect("sound") && row.has_size_of(document));
        assert!(!rows(0).row(42).matches(document).expect("sound"));
    }

    #[test]
    fn nulls_are_as_many_as_asked_for() {
        let nulls = (0..1000).filter(|place| rows(30).row(*place).value1.is_none()).count();
        assert!((250..350).contains(&nulls), "{nulls}");
        let row = (0..1000)
            .map(|place| rows(30).row(place))
            .find(|row| row.value1.is_none() && row.value2.is_none());
        let row = row.expect("nine of a hundred");
        assert!(row.has_size_of(RawDocument::from_bytes(&bytes(&row)).expect("a document")));
    }

    #[test]
    fn values_are_uniform() {
        let values: Vec<Row> = (0..1000).map(|place| rows(0).row(place)).collect();
        let mean = values.iter().filter_map(|row| row.value2).sum::<f64>() / 1000.0;
        assert!((mean - 0.5).abs() < 0.04, "{mean}");
        let negative = values.iter().filter(|row| row.value1.is_some_and(|value| value < 0)).count();
        assert!((430..570).contains(&negative), "{negative}");
    }
}
