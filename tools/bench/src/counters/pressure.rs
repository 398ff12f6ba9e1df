//! `/proc/pressure/cpu`, `io` and `memory`: for how long at least one task of the machine waited for each (PSI, the lines
//! `some`).

use std::path::Path;

/// Microseconds in which somebody waited; nothing where the kernel does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Pressure {
    /// For a core.
    pub cpu_us: Option<u64>,
    /// For a device.
    pub io_us: Option<u64>,
    /// For memory.
    pub memory_us: Option<u64>,
}

impl Pressure {
    /// As of now, since boot.
    pub fn read() -> Pressure {
        let of = |name: &str| parse(&super::read(&Path::new("/proc/pressure").join(name)).ok()?);
        Pressure { cpu_us: of("cpu"), io_us: of("io"), memory_us: of("memory") }
    }

    /// What was added since an earlier reading.
    pub fn since(&self, before: &Pressure) -> Pressure {
        let difference = |after: Option<u64>, before: Option<u64>| {
            after.zip(before).map(|(after, before)| after.saturating_sub(before))
        };
        Pressure {
            cpu_us: difference(self.cpu_us, before.cpu_us),
            io_us: difference(self.io_us, before.io_us),
            memory_us: difference(self.memory_us, before.memory_us),
        }
    }
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`.
fn parse(text: &str) -> Option<u64> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    some.split_whitespace().find_map(|field| field.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_the_line_some_is_read() {
        let text = "some avg10=0.00 avg60=0.01 avg300=0.00 total=777\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
        assert_eq!(parse(text), Some(777));
        assert_eq!(parse("full avg10=0.00 total=5\n"), None);
    }

    #[test]
    fn what_is_not_counted_stays_uncounted() {
        let at = |io_us| Pressure { cpu_us: None, io_us: Some(io_us), memory_us: None };
        assert_eq!(at(9).since(&at(4)), at(5));
    }
}
