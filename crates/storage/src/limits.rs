//! The longest key and value, and the checks that precede every write.

use crate::error::{ErrorKind, StorageError};

/// Longest key that an engine takes, in bytes.
pub const KEY_BYTES_MAX: usize = 1_900;

/// Longest value that an engine takes, in bytes: a 16 MiB document with room for what surrounds it.
pub const VALUE_BYTES_MAX: usize = 17 * 1024 * 1024;

/// Refuses a key that is longer than [`KEY_BYTES_MAX`].
pub fn check_key(key: &[u8]) -> Result<(), StorageError> {
    if key.len() <= KEY_BYTES_MAX {
        return Ok(());
    }
    let message =
        format!("a key of {} bytes is longer than the {KEY_BYTES_MAX} that a key may have", key.len());
    Err(StorageError::new(ErrorKind::InvalidInput, message))
}

/// Refuses a value that is longer than [`VALUE_BYTES_MAX`].
pub fn check_value(value: &[u8]) -> Result<(), StorageError> {
    if value.len() <= VALUE_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "a value of {} bytes is longer than the {VALUE_BYTES_MAX} that a value may have",
        value.len()
    );
    Err(StorageError::new(ErrorKind::InvalidInput, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_key_and_value_are_taken_and_one_byte_more_is_refused() {
        assert!(check_key(&[7; KEY_BYTES_MAX]).is_ok());
        assert_eq!(check_key(&[7; KEY_BYTES_MAX + 1]).map_err(|e| e.kind()), Err(ErrorKind::InvalidInput));
        assert!(check_value(&vec![7; VALUE_BYTES_MAX]).is_ok());
        let too_long = check_value(&vec![7; VALUE_BYTES_MAX + 1]);
        assert_eq!(too_long.map_err(|e| e.kind()), Err(ErrorKind::InvalidInput));
    }
}
