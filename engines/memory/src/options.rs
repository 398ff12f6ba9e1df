//! The options of the engine `memory`: they have it act as other engines do, for tests of what is above.

use pando_storage::{ByteSize, ErrorKind, StorageError};

/// Options of a store in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryOptions {
    /// Bytes of keys and values from which a transaction calls itself
    /// [large](pando_storage::Transaction::is_large), as those over a network do. Default: none does.
    pub large_bytes: Option<usize>,
}

const KNOWN: &str = "largeTransaction (1KB … 1024KB)";

impl MemoryOptions {
    /// These options with some changed by name.
    ///
    /// # Errors
    /// A name that does not exist, or a value that the option cannot have.
    pub fn with_entries(mut self, entries: &[(String, String)]) -> Result<MemoryOptions, StorageError> {
        for (name, value) in entries {
            match name.as_str() {
                "largeTransaction" => {
                    let told = format!("the option `{name}` cannot be {value:?}: there is {KNOWN}");
                    self.large_bytes = Some(large_bytes(value).ok_or_else(|| invalid(told))?);
                }
                _ => {
                    return Err(invalid(format!(
                        "the engine `memory` has no option `{name}`: there is {KNOWN}"
                    )));
                }
            }
        }
        Ok(self)
    }
}

fn large_bytes(value: &str) -> Option<usize> {
    let size = usize::try_from(value.parse::<ByteSize>().ok()?.bytes()).ok()?;
    (1 << 10..=1 << 20).contains(&size).then_some(size)
}

fn invalid(message: String) -> StorageError {
    StorageError::new(ErrorKind::InvalidInput, message)
}
