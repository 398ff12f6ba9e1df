//! The options of the engine `lmdb`: typed, each with a name. Unknown names are refused.

use pando_storage::{ByteSize, ErrorKind, StorageError};

/// Options of a store in LMDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LmdbOptions {
    /// Address space for LMDB's map, in bytes. The file can grow to this length before the map has to grow,
    /// for which reads wait a moment. It costs no memory and no disk. Default: 1 TiB; where the system grants
    /// less, a half, a quarter and so on.
    pub map_bytes: usize,
    /// Transactions that may live at once; more are refused as [`Busy`](pando_storage::ErrorKind::Busy).
    /// Default: 4,096, of 64 bytes each.
    pub readers_max: u32,
    /// Whether the kernel reads ahead of a page that it fetches. Where the data is larger than memory and the
    /// reads are of single keys, that fetches much that nobody wants. Default: true.
    pub readahead: bool,
}

const KNOWN: &str = "mapSize (1MB … 1024GB), readersMax (1 … 1000000), readahead (on, off)";

impl LmdbOptions {
    /// These options with some changed by name: sizes as `256MB`.
    ///
    /// # Errors
    /// A name that does not exist, or a value that the option cannot have.
    pub fn with_entries(mut self, entries: &[(String, String)]) -> Result<LmdbOptions, StorageError> {
        for (name, value) in entries {
            let bad = || {
                let message = format!("the option `{name}` cannot be {value:?}: there are {KNOWN}");
                StorageError::new(ErrorKind::InvalidInput, message)
            };
            match name.as_str() {
                "mapSize" => self.map_bytes = parse_map_size(value).ok_or_else(bad)?,
                "readersMax" => {
                    let readers = value.parse().ok().filter(|readers| (1..=1_000_000).contains(readers));
                    self.readers_max = readers.ok_or_else(bad)?;
                }
                "readahead" => {
                    self.readahead = match value.as_str() {
                        "on" => true,
                        "off" => false,
                        _ => return Err(bad()),
                    };
                }
                _ => {
                    let message = format!("the engine `lmdb` has no option `{name}`: there are {KNOWN}");
                    return Err(StorageError::new(ErrorKind::InvalidInput, message));
                }
            }
        }
        Ok(self)
    }
}

/// A size that a map can have.
pub(crate) fn parse_map_size(value: &str) -> Option<usize> {
    let size = value.parse::<ByteSize>().ok()?.bytes();
    usize::try_from(size).ok().filter(|size| (1 << 20..=1 << 40).contains(size))
}

impl Default for LmdbOptions {
    fn default() -> LmdbOptions {
        LmdbOptions { map_bytes: 1 << 40, readers_max: 4_096, readahead: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Result<LmdbOptions, String> {
        let entries = [(name.to_owned(), value.to_owned())];
        LmdbOptions::default().with_entries(&entries).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_set_by_name_and_unknown_ones_refused() {
        assert_eq!(with("mapSize", "2GB").map(|options| options.map_bytes), Ok(2 << 30));
        assert_eq!(with("readersMax", "10").map(|options| options.readers_max), Ok(10));
        assert_eq!(with("readahead", "off").map(|options| options.readahead), Ok(false));
        for (name, value) in
            [("cache", "1GB"), ("mapSize", "1KB"), ("readersMax", "0"), ("readahead", "a little")]
        {
            let refused = with(name, value).expect_err(name);
            assert!(refused.contains(name) && refused.contains("readersMax"), "{refused}");
        }
    }
}
