//! `blkio.throttle.io_serviced_recursive` and `…io_service_bytes_recursive` of a control group (version 1):
//! `MAJOR:MINOR Read N`, a line per device and kind.
//!
//! Buffered writes are charged to the root group, not to this one.

use super::disk::DiskCounts;

/// The counters in the texts of both files.
pub fn parse(requests: &str, bytes: &str) -> Option<DiskCounts> {
    Some(DiskCounts {
        reads: Some(sum(requests, "Read")?),
        writes: Some(sum(requests, "Write")?),
        read_bytes: sum(bytes, "Read")?,
        written_bytes: sum(bytes, "Write")?,
    })
}

/// The sum over all devices of one kind.
fn sum(text: &str, kind: &str) -> Option<u64> {
    let mut sum = 0_u64;
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if let [_, found, value] = fields.as_slice()
            && *found == kind
        {
            sum += value.parse::<u64>().ok()?;
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_add_up_and_totals_are_left_out() {
        let requests =
            "254:0 Read 3\n254:0 Write 4\n254:0 Sync 7\n254:0 Total 7\n8:0 Read 2\n8:0 Write 0\nTotal 9\n";
        let bytes = "254:0 Read 4096\n254:0 Write 8192\n254:0 Total 12288\nTotal 12288\n";
        let expected = DiskCounts { reads: Some(5), writes: Some(4), read_bytes: 4096, written_bytes: 8192 };
        assert_eq!(parse(requests, bytes), Some(expected));
        assert_eq!(parse("254:0 Read x\n", ""), None);
    }
}
