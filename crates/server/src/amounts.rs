//! Counts, sizes, times and rates, as people read them.

use std::time::Duration;

/// `1,234,567`.
pub(crate) fn count_text(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 document`, `7 documents`, `2 indexes`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let ending = match noun {
        _ if count == 1 => "",
        "index" => "es",
        _ => "s",
    };
    format!("{count} {noun}{ending}")
}

/// `980 B`, `3.2 MB`, `74 GB`: two or three digits, in units of a thousand.
pub(crate) fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let shown = if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") };
    format!("{shown} {}", UNITS[unit])
}

/// `40 ms`, `2.3 s`, `12 s`, `4 min 5 s`.
pub(crate) fn time_text(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        ..0.9995 => format!("{:.0} ms", seconds * 1000.0),
        ..9.95 => format!("{seconds:.1} s"),
        ..59.5 => format!("{seconds:.0} s"),
        _ => {
            let whole = seconds.round() as u64;
            format!("{} min {} s", whole / 60, whole % 60)
        }
    }
}

/// Things in a second, rounded.
pub(crate) fn rate(count: u64, time: Duration) -> u64 {
    (count as f64 / time.as_secs_f64().max(0.001)).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_few_digits_and_a_unit() {
        let counts = [0, 999, 1000, 1_234_567].map(count_text);
        assert_eq!(counts, ["0", "999", "1,000", "1,234,567"]);
        let sizes = [0, 999, 1000, 9_949, 9_951, 999_499, 999_501, 74_000_000_000, u64::MAX].map(bytes_text);
        assert_eq!(
            sizes,
            ["0 B", "999 B", "1.0 kB", "9.9 kB", "10 kB", "999 kB", "1.0 MB", "74 GB", "18447 PB"]
        );
        let times =
            [0.04, 9.94, 9.96, 59.4, 245.0].map(|seconds| time_text(Duration::from_secs_f64(seconds)));
        assert_eq!(times, ["40 ms", "9.9 s", "10 s", "59 s", "4 min 5 s"]);
    }
}
