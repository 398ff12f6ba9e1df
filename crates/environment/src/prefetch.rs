//! Hints to the processor: memory that will be read soon is fetched into the cache while other work goes on.

/// The bytes that come from memory at once.
const LINE_BYTES: usize = 64;

/// Asks for these bytes. The hint changes only the time that later reads take. It has no effect on processors
/// that are not known here.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    let ends = bytes.last().into_iter();
    bytes.iter().step_by(LINE_BYTES).chain(ends).for_each(prefetch_line);
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn prefetch_line(byte: &u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads nothing that can be seen and faults at no address, and this one is a byte's.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn prefetch_line(_: &u8) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_can_be_asked_for() {
        let bytes = [7; 1000];
        for length in [0, 1, 63, 64, 65, 1000] {
            prefetch(&bytes[..length]);
        }
        assert_eq!(bytes, [7; 1000]);
    }
}
