//! The caps of a started server: memory and disk, as they are written on the command line.

use std::str::FromStr;

/// The limits of a server; without a cap it has the whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// Memory and page cache together, in bytes.
    pub memory_bytes: Option<u64>,
    pub io: IoCap,
}

impl Caps {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        *self == Caps::default()
    }
}

/// Limits of the device under the data folder, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCap {
    pub reads: Option<u64>,
    pub writes: Option<u64>,
    /// Bytes read.
    pub read_bytes: Option<u64>,
    /// Bytes written.
    pub written_bytes: Option<u64>,
}

/// Bytes with a unit: `640MB`, `1.5GB`, `4096`. Units are powers of ten, `KiB`, `MiB`, `GiB` of two.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits =
        text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "" | "B" => 1.0,
        "KB" | "K" => 1e3,
        "MB" | "M" => 1e6,
        "GB" | "G" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(format!("`{unit}` is no unit: KB, MB, GB, KiB, MiB, GiB")),
    };
    let bytes = number.parse::<f64>().map_err(|_| format!("`{number}` is no number"))? * factor;
    if (1.0..=1e18).contains(&bytes) { Ok(bytes as u64) } else { Err(format!("`{text}` is no size")) }
}

impl FromStr for IoCap {
    type Err = String;

    /// Limits with `|` between: `200riops`, `200wiops`, `200iops` (both), `20MBps` (both), `20MBrps`,
    /// `20MBwps`.
    fn from_str(text: &str) -> Result<IoCap, String> {
        let mut cap = IoCap::default();
        for part in text.split(['|', ',']) {
            cap.take(part.trim())?;
        }
        Ok(cap)
    }
}

impl IoCap {
    fn take(&mut self, part: &str) -> Result<(), String> {
        let requests = |number: &str| match number.parse::<u64>() {
            Ok(number) if number > 0 => Ok(Some(number)),
            _ => Err(format!("`{number}` is no number of requests")),
        };
        let bytes = |number: &str| parse_bytes(number).map(Some);
        if let Some(number) = part.strip_suffix("riops") {
            self.reads = requests(number)?;
        } else if let Some(number) = part.strip_suffix("wiops") {
            self.writes = requests(number)?;
        } else if let Some(number) = part.strip_suffix("iops") {
            self.reads = requests(number)?;
            self.writes = self.reads;
        } else if let Some(number) = part.strip_suffix("rps") {
            self.read_bytes = bytes(number)?;
        } else if let Some(number) = part.strip_suffix("wps") {
            self.written_bytes = bytes(number)?;
        } else if let Some(number) = part.strip_suffix("ps") {
            self.read_bytes = bytes(number)?;
            self.written_bytes = self.read_bytes;
        } else {
            return Err(format!("`{part}` is no cap: 200riops, 200wiops, 200iops, 20MBps, 20MBrps, 20MBwps"));
        }
        Ok(())
    }

    /// The limits that are set.
    pub fn limits(&self) -> Vec<(LimitNames, u64)> {
        let all = [
            (LimitNames { group_2: "riops", group_1: "read_iops", systemd: "IOReadIOPSMax" }, self.reads),
            (LimitNames { group_2: "wiops", group_1: "write_iops", systemd: "IOWriteIOPSMax" }, self.writes),
            (
                LimitNames { group_2: "rbps", group_1: "read_bps", systemd: "IOReadBandwidthMax" },
                self.read_bytes,
            ),
            (
                LimitNames { group_2: "wbps", group_1: "write_bps", systemd: "IOWriteBandwidthMax" },
                self.written_bytes,
            ),
        ];
        all.into_iter().filter_map(|(names, limit)| Some((names, limit?))).collect()
    }
}

/// The names of a limit: in `io.max` of control groups of version 2, in the files of version 1, and as a
/// property of systemd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitNames {
    pub group_2: &'static str,
    pub group_1: &'static str,
    pub systemd: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_limits_are_read_with_their_units() {
        assert_eq!(parse_bytes("640MB"), Ok(640_000_000));
        assert_eq!(parse_bytes("1.5GiB"), Ok(1_610_612_736));
        let cap: IoCap = "200riops|20MBps".parse().expect("the example of the documentation");
        let limits = |cap: IoCap| -> Vec<(&str, u64)> {
            cap.limits().into_iter().map(|(names, limit)| (names.group_2, limit)).collect()
        };
        assert_eq!(limits(cap), [("riops", 200), ("rbps", 20_000_000), ("wbps", 20_000_000)]);
        assert_eq!(limits("9iops".parse().expect("both")), [("riops", 9), ("wiops", 9)]);
    }

    #[test]
    fn a_text_that_is_no_cap_is_refused() {
        for text in ["", "fast", "0riops", "-3riops", "20XBps", "1e99MBps"] {
            assert!(text.parse::<IoCap>().is_err(), "{text}");
        }
        for text in ["", "MB", "-1", "0", "1TBs"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }
}
