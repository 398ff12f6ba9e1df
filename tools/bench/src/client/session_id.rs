//! The id of a session of MongoDB's protocol, as commands carry it.

use pando_document::{Binary, Document, doc};
use pando_measuring::random::split_mix;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// An id that no session had before, of this or another process: a server remembers the transactions of a
/// session.
pub fn session_id() -> Document {
    static SESSIONS: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
    let process = u64::from(std::process::id()) << 32;
    let mut bytes = split_mix(now as u64 ^ process).to_be_bytes().to_vec();
    bytes.extend_from_slice(&split_mix(process | number).to_be_bytes());
    // The bits that say: a UUID of random bits.
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    let id = Binary { subtype: 4, bytes };
    doc! { "id": id }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_sessions_have_one_id() {
        let mut ids: Vec<String> = (0..1000).map(|_| format!("{:?}", session_id())).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 1000);
    }
}
