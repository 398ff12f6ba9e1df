//! Values that were read ahead of the gets that a transaction was told of.
//!
//! Each leaves with the first get of it, so that an open cursor keeps no more than it has not given yet.
//! Several readers of one transaction, such as the sides of a join, tell of their keys in turn. Where what
//! they have left is too much, it is forgotten: a get of it is a request of its own again.

use std::collections::HashMap;

/// Bytes of keys and values from which on those of earlier calls are forgotten.
const BYTES_MAX: usize = 16 << 20;

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    /// Stored values by key of the cluster; `None`: the key is absent.
    values: HashMap<Vec<u8>, Option<Vec<u8>>>,
    bytes: usize,
}

impl Expected {
    /// Takes what the cluster has found of some keys.
    pub(crate) fn add(&mut self, keys: Vec<Vec<u8>>, found: Vec<(Vec<u8>, Vec<u8>)>) {
        if self.bytes > BYTES_MAX {
            self.values.clear();
            self.bytes = 0;
        }
        let found = found.into_iter().map(|(key, value)| (key, Some(value)));
        for (key, value) in keys.into_iter().map(|key| (key, None)).chain(found) {
            let bytes_of_key = key.len();
            self.bytes += size_of(bytes_of_key, value.as_deref());
            if let Some(before) = self.values.insert(key, value) {
                self.bytes -= size_of(bytes_of_key, before.as_deref());
            }
        }
    }

    /// The value of a key, if it was read ahead; `Some(None)`: the key is absent.
    pub(crate) fn take(&mut self, key: &[u8]) -> Option<Option<Vec<u8>>> {
        let value = self.values.remove(key)?;
        self.bytes -= size_of(key.len(), value.as_deref());
        Some(value)
    }
}

fn size_of(bytes_of_key: usize, value: Option<&[u8]>) -> usize {
    bytes_of_key + value.map_or(0, <[u8]>::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(from: usize, to: usize) -> Vec<Vec<u8>> {
        (from..to).map(|number| number.to_be_bytes().to_vec()).collect()
    }

    #[test]
    fn values_are_given_once_and_those_of_several_calls_stay_beside_each_other() {
        let mut expected = Expected::default();
        expected.add(keys(0, 3), vec![(keys(1, 2).remove(0), b"one".to_vec())]);
        expected.add(keys(3, 5), Vec::new());
        let [none, one] = [keys(0, 1).remove(0), keys(1, 2).remove(0)];
        assert_eq!(expected.take(&one), Some(Some(b"one".to_vec())));
        assert_eq!((expected.take(&one), expected.take(&none)), (None, Some(None)));
        for key in keys(2, 5) {
            assert_eq!(expected.take(&key), Some(None));
        }
        assert_eq!((expected.values.len(), expected.bytes), (0, 0));
    }

    #[test]
    fn values_that_nobody_has_asked_for_are_forgotten_where_they_are_much() {
        let mut expected = Expected::default();
        for call in 0..40 {
            let told = keys(call * 1_000, call * 1_000 + 1_000);
            let found = told.iter().map(|key| (key.clone(), vec![0; 4_096])).collect();
            expected.add(told, found);
            assert!(expected.bytes < BYTES_MAX + (5 << 20));
        }
        assert!(expected.values.len() >= 1_000);
        assert_eq!(expected.take(&keys(39_999, 40_000)[0]), Some(Some(vec![0; 4_096])));
    }
}
