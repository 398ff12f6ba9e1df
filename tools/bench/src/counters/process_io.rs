//! `/proc/PID/io`: bytes that a process read from devices and gave to be written; no count of requests.
//!
//! The last resort: a write is counted when a page gets dirty, not when it reaches the device.

use super::disk::DiskCounts;

/// The counters in the file's text.
pub fn parse(text: &str) -> Option<DiskCounts> {
    let value = |name: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
    };
    let written = value("write_bytes:")?.saturating_sub(value("cancelled_write_bytes:")?);
    Some(DiskCounts { reads: None, writes: None, read_bytes: value("read_bytes:")?, written_bytes: written })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_bytes_are_told_from_all_bytes() {
        let text = "rchar: 999\nwchar: 999\nsyscr: 9\nsyscw: 9\nread_bytes: 4096\nwrite_bytes: 8192\n\
                    cancelled_write_bytes: 4096\n";
        let expected = DiskCounts { reads: None, writes: None, read_bytes: 4096, written_bytes: 4096 };
        assert_eq!(parse(text), Some(expected));
        assert_eq!(parse("rchar: 1\n"), None);
    }
}
