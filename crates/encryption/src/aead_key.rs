//! A key that is ready to seal and open bytes.
//!
//! Ring does not overwrite the memory of its keys, so they are kept where this type can.

use std::mem::MaybeUninit;

use ring::aead::{Aad, LessSafeKey, Nonce, UnboundKey};
use zeroize::Zeroize;

use crate::{Cipher, SecretKey};

/// Bytes of a nonce.
pub(crate) const NONCE_BYTES: usize = 12;
/// Bytes of an authentication tag.
pub(crate) const TAG_BYTES: usize = 16;

/// See the [module](self).
pub(crate) struct AeadKey {
    // Always initialised. On the heap, so that no copy stays behind where the owner moves.
    key: Box<MaybeUninit<LessSafeKey>>,
}

impl AeadKey {
    pub(crate) fn new(cipher: Cipher, key: &SecretKey) -> AeadKey {
        let key =
            UnboundKey::new(cipher.algorithm(), key.bytes()).expect("both ciphers have keys of 32 bytes");
        AeadKey { key: Box::new(MaybeUninit::new(LessSafeKey::new(key))) }
    }

    fn get(&self) -> &LessSafeKey {
        // SAFETY: `new` initialises it, and only `drop` overwrites it.
        unsafe { self.key.assume_init_ref() }
    }

    /// Encrypts in place and returns the tag, which authenticates `bound` as well.
    pub(crate) fn seal(&self, nonce: [u8; NONCE_BYTES], bound: &[u8], bytes: &mut [u8]) -> [u8; TAG_BYTES] {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self.get().seal_in_place_separate_tag(nonce, Aad::from(bound), bytes);
        let tag = tag.expect("blocks and records are shorter than the 64 GiB that one nonce covers");
        let mut out = [0; TAG_BYTES];
        out.copy_from_slice(tag.as_ref());
        out
    }

    /// Decrypts the bytes before the tag at the end of `sealed`, in place; `None` if any of them, `bound` or
    /// the nonce is not what was sealed.
    pub(crate) fn open<'b>(
        &self,
        nonce: [u8; NONCE_BYTES],
        bound: &[u8],
        sealed: &'b mut [u8],
    ) -> Option<&'b mut [u8]> {
        self.get().open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(bound), sealed).ok()
    }
}

impl Drop for AeadKey {
    fn drop(&mut self) {
        const { assert!(!std::mem::needs_drop::<LessSafeKey>(), "overwriting a key would leak what it owns") };
        let start = self.key.as_mut_ptr().cast::<MaybeUninit<u8>>();
        // SAFETY: the box owns these bytes. They may be padding, which `MaybeUninit` allows, and a key needs
        // no drop, so that none looks at them afterwards.
        let bytes = unsafe { std::slice::from_raw_parts_mut(start, size_of::<LessSafeKey>()) };
        bytes.zeroize();
    }
}
