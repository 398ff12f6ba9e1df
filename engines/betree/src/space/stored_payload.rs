//! The payload of a block as compression left it: a part of the bytes that were read, or decrypted from them.

use std::ops::Deref;

use pando_encryption::{SealBroken, Vault};

use crate::memory::ObjectPool;

/// A longer buffer is freed after use, in bytes.
const KEPT_BUFFER_BYTES: usize = 2 * 1024 * 1024;

/// Buffers of decrypted payloads. They are in use while a page is decompressed.
static BUFFERS: ObjectPool<Vec<u8>, 32> = ObjectPool::new();

/// See the [module](self).
pub(crate) struct StoredPayload<'b>(Kind<'b>);

enum Kind<'b> {
    Plain(&'b [u8]),
    /// A pooled buffer, and how much of it is the payload.
    Unsealed(Vec<u8>, usize),
}

impl<'b> StoredPayload<'b> {
    pub(super) const fn plain(payload: &'b [u8]) -> StoredPayload<'b> {
        StoredPayload(Kind::Plain(payload))
    }

    /// Decrypts a payload with its seal, which binds it to the header.
    pub(super) fn unsealed(
        vault: &Vault,
        header: &[u8],
        sealed: &[u8],
    ) -> Result<StoredPayload<'b>, SealBroken> {
        let mut buffer = BUFFERS.take().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(sealed);
        match vault.unseal(header, &mut buffer).map(|payload| payload.len()) {
            Ok(length) => Ok(StoredPayload(Kind::Unsealed(buffer, length))),
            Err(broken) => {
                BUFFERS.put(buffer);
                Err(broken)
            }
        }
    }
}

impl Deref for StoredPayload<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Kind::Plain(payload) => payload,
            Kind::Unsealed(buffer, length) => &buffer[..*length],
        }
    }
}

impl Drop for StoredPayload<'_> {
    fn drop(&mut self) {
        if let Kind::Unsealed(buffer, _) = &mut self.0
            && buffer.capacity() <= KEPT_BUFFER_BYTES
        {
            BUFFERS.put(std::mem::take(buffer));
        }
    }
}
