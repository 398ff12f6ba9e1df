//! Logs of a damaged or forged store: records that are whole but say anything. The store is refused, or opens
//! and is sound.

/// Inputs that are sound: the log of a small store.
pub fn examples() -> Vec<Vec<u8>> {
    pando_betree::fuzzing::examples().1
}

/// See the module.
pub fn run(bytes: &[u8]) {
    pando_betree::fuzzing::replay(bytes);
}
