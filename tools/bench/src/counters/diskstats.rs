//! `/proc/diskstats`: requests and sectors of a whole device, whoever made them.

use super::disk::{Device, DiskCounts};

/// A sector of this file has 512 bytes on every device.
const SECTOR_BYTES: u64 = 512;

/// The line of one device.
pub fn parse(text: &str, device: Device) -> Option<DiskCounts> {
    let fields = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).find(|fields| {
        fields.len() >= 10 && fields[0] == device.major.to_string() && fields[1] == device.minor.to_string()
    })?;
    let field = |number: usize| fields.get(number - 1)?.parse::<u64>().ok();
    Some(DiskCounts {
        reads: Some(field(4)?),
        read_bytes: field(6)?.checked_mul(SECTOR_BYTES)?,
        writes: Some(field(8)?),
        written_bytes: field(10)?.checked_mul(SECTOR_BYTES)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_device_is_read() {
        let text =
            " 254       0 vda 100 5 2000 7 50 6 800 9 0 1 2\n 254       1 vda1 1 1 1 1 1 1 1 1 0 1 2\n";
        let expected =
            DiskCounts { reads: Some(100), writes: Some(50), read_bytes: 1_024_000, written_bytes: 409_600 };
        assert_eq!(parse(text, Device { major: 254, minor: 0 }), Some(expected));
        assert_eq!(parse(text, Device { major: 8, minor: 0 }), None);
    }
}
