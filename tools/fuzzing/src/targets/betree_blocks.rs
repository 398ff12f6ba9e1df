//! Blocks and log records of a damaged store: no bytes make a decoder panic or accept an impossible value.

/// Inputs that are sound: every block of a small store.
pub fn examples() -> Vec<Vec<u8>> {
    pando_betree::fuzzing::examples().0
}

/// See the module.
pub fn run(bytes: &[u8]) {
    pando_betree::fuzzing::decode_all(bytes);
}
