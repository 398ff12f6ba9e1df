//! `io.stat` of a control group (version 2): `MAJOR:MINOR rbytes= wbytes= rios= wios= …`, a line per device.

use super::disk::DiskCounts;

/// The sum over all devices.
pub fn parse(text: &str) -> Option<DiskCounts> {
    let mut sum = DiskCounts { reads: Some(0), writes: Some(0), read_bytes: 0, written_bytes: 0 };
    for line in text.lines() {
        for (name, value) in line.split_whitespace().skip(1).filter_map(|pair| pair.split_once('=')) {
            let value: u64 = value.parse().ok()?;
            match name {
                "rbytes" => sum.read_bytes += value,
                "wbytes" => sum.written_bytes += value,
                "rios" => sum.reads = sum.reads.map(|reads| reads + value),
                "wios" => sum.writes = sum.writes.map(|writes| writes + value),
                _ => {}
            }
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_add_up() {
        let text = "8:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n8:16 rbytes=100 wbytes=0 rios=3 wios=0\n";
        let expected = DiskCounts { reads: Some(4), writes: Some(2), read_bytes: 4196, written_bytes: 8192 };
        assert_eq!(parse(text), Some(expected));
    }

    #[test]
    fn a_group_that_did_no_io_has_an_empty_file() {
        assert_eq!(parse("").map(|counts| counts.reads), Some(Some(0)));
        assert_eq!(parse("8:0 rbytes=many\n"), None);
    }
}
