//! The caps of a started server: memory and disk, as they are written on the command line.

use std::str::FromStr;

/// What a server may have; without a cap it has what the machine gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// Memory and page cache together, in bytes.
    pub memory_bytes: Option<u64>,
    /// Its disk.
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
    /// Read requests.
    pub reads: Option<u64>,
    /// Write requests.
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

    /// The limits that are set, with their names in `io.max` of control groups.
    pub fn limits(&self) -> Vec<(&'static str, u64)> {
        let all = [
            ("riops", self.reads),
            ("wiops", self.writes),
            ("rbps", self.read_bytes),
            ("wbps", self.written_bytes),
        ];
        all.into_iter().filter_map(|(name, limit)| Some((name, limit?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_limits_are_read_with_their_units() {
        assert_eq!(parse_bytes("640MB"), Ok(640_000_000));
        assert_eq!(parse_bytes("1.5GiB"), Ok(1_610_612_736));
        let cap: IoCap = "200riops|20MBps".parse().expect("the example of the documentation");
        assert_eq!(cap.limits(), [("riops", 200), ("rbps", 20_000_000), ("wbps", 20_000_000)]);
        assert_eq!("9iops".parse::<IoCap>().expect("both").limits(), [("riops", 9), ("wiops", 9)]);
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
