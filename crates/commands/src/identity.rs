//! The identity of the server towards its clients: versions and limits.

/// The MongoDB version whose behaviour clients may expect: drivers and tools choose by it.
pub const MONGODB_VERSION: &str = "8.0.0";
/// The parts of [`MONGODB_VERSION`] as `versionArray` shows them.
pub const MONGODB_VERSION_PARTS: [i32; 4] = [8, 0, 0, 0];
/// The feature compatibility version that goes with [`MONGODB_VERSION`].
pub const FEATURE_COMPATIBILITY_VERSION: &str = "8.0";
/// The newest wire version spoken, that of [`MONGODB_VERSION`]. Drivers send `bulkWrite` from this one on.
pub const MAX_WIRE_VERSION: i32 = 25;
/// The oldest wire version spoken.
pub const MIN_WIRE_VERSION: i32 = 0;
/// Pando's own version.
pub const PANDO_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Largest document, in bytes.
pub const BSON_OBJECT_BYTES_MAX: i32 = 16 * 1024 * 1024;
/// Largest message, in bytes.
pub const MESSAGE_BYTES_MAX: i32 = 48_000_000;
/// Most writes in one command.
pub const WRITE_BATCH_MAX: usize = 100_000;
/// How long a session lives without use, in minutes.
pub const SESSION_TIMEOUT_MINUTES: i32 = 30;

/// A 16-byte identity in groups of hexadecimal digits.
pub(crate) fn uuid_text(bytes: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_agree() {
        let parts = MONGODB_VERSION_PARTS;
        assert_eq!(MONGODB_VERSION, format!("{}.{}.{}", parts[0], parts[1], parts[2]));
        assert_eq!(FEATURE_COMPATIBILITY_VERSION, format!("{}.{}", parts[0], parts[1]));
    }
}
