//! The source of nonces: a random start of 96 bits, and a count from there.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::EncryptionError;
use crate::aead_key::NONCE_BYTES;
use crate::secret_key::fill_random;

/// See the [module](self).
pub(crate) struct NonceSource {
    start: u128,
    count: AtomicU64,
}

impl NonceSource {
    pub(crate) fn new() -> Result<NonceSource, EncryptionError> {
        let mut start = [0; 16];
        fill_random(&mut start[..NONCE_BYTES])?;
        Ok(NonceSource { start: u128::from_le_bytes(start), count: AtomicU64::new(0) })
    }

    /// A nonce that this source has not given before, nor will again.
    pub(crate) fn next(&self) -> [u8; NONCE_BYTES] {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let bytes = self.start.wrapping_add(u128::from(count)).to_le_bytes();
        std::array::from_fn(|at| bytes[at])
    }

    /// Nonces that were given.
    pub(crate) fn given(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_do_not_repeat_where_the_count_carries_over() {
        let source = NonceSource { start: (1 << 96) - 3, count: AtomicU64::new(0) };
        let nonces: std::collections::HashSet<_> = (0..1_000).map(|_| source.next()).collect();
        assert_eq!((nonces.len(), source.given()), (1_000, 1_000));
        assert_ne!(NonceSource::new().unwrap().next(), NonceSource::new().unwrap().next());
    }
}
