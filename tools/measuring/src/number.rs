//! Numbers as people read them.

/// A number with as many digits as one reads: three that count, or all of whole ones below 10,000.
pub fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 999_500.0 => format!("{}M", three_digits(value / 1e6)),
        large if large >= 9_999.5 => format!("{}k", three_digits(value / 1e3)),
        middle if middle >= 99.5 => thousands(value),
        _ => three_digits(value),
    }
}

/// Microseconds in the unit that fits.
pub fn time(us: f64) -> String {
    match us.abs() {
        long if long >= 999_500.0 => format!("{} s", three_digits(us / 1e6)),
        middle if middle >= 999.5 => format!("{} ms", three_digits(us / 1e3)),
        _ => format!("{} µs", three_digits(us)),
    }
}

/// Bytes in the unit that fits, in powers of 1,000.
pub fn size(bytes: f64) -> String {
    match bytes.abs() {
        large if large >= 999.5e6 => format!("{} GB", three_digits(bytes / 1e9)),
        middle if middle >= 999.5e3 => format!("{} MB", three_digits(bytes / 1e6)),
        small if small >= 1e3 => format!("{} KB", three_digits(bytes / 1e3)),
        _ => format!("{bytes:.0} B"),
    }
}

/// Three digits that count, at most two of them behind the point unless the number is below 0.1; no zeros at
/// the end.
fn three_digits(value: f64) -> String {
    let behind = match value.abs() {
        0.0 => 0,
        large if large >= 99.95 => 0,
        middle if middle >= 9.995 => 1,
        small if small >= 0.0995 => 2,
        // The first two digits that count, as far as a millionth.
        tiny => (1 - tiny.log10().floor() as i32).clamp(2, 6) as usize,
    };
    let text = format!("{value:.behind$}");
    if behind == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

/// Whole thousands apart: `1,234,567`.
pub fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = if value < 0.0 { "-".to_owned() } else { String::new() };
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The middle one of some values, of an even number the mean of the two in the middle; nothing of none.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = if values.len().is_multiple_of(2) { values[values.len() / 2 - 1] } else { upper };
    Some(f64::midpoint(lower, upper))
}

/// The distance between the ticks of an axis of this length, of which there are about so many. It is 1, 2
/// or 5 times a power of ten, so that every tick is a round number.
pub fn tick_step(length: f64, ticks: f64) -> f64 {
    let least = (length / ticks).max(1e-9);
    let unit = 10_f64.powf(least.log10().floor());
    // A step that rounding has put a hair below the wanted one is the wanted one.
    [1.0, 2.0, 5.0].iter().map(|step| step * unit).find(|step| *step >= least * 0.999).unwrap_or(10.0 * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_that_count_and_no_zeros_at_the_end() {
        let shown =
            [0.0, 0.25, 7.5, 42.4, 999.0, 1_234.0, 9_999.6, 12_500.0, 432_390.0, 999_600.0, 3e6].map(number);
        assert_eq!(shown, ["0", "0.25", "7.5", "42.4", "999", "1,234", "10k", "12.5k", "432k", "1M", "3M"]);
        assert_eq!([0.004, 0.000_42, 100.0, 2000.0].map(number), ["0.004", "0.00042", "100", "2,000"]);
        assert_eq!([1_234_567.4, 999.0, -1000.0].map(thousands), ["1,234,567", "999", "-1,000"]);
    }

    #[test]
    fn units_fit_their_values() {
        assert_eq!([0.5, 204.4, 12_345.0, 2_500_000.0].map(time), ["0.5 µs", "204 µs", "12.3 ms", "2.5 s"]);
        assert_eq!([12.0, 4096.0, 64e6, 1.5e9].map(size), ["12 B", "4.1 KB", "64 MB", "1.5 GB"]);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(median(vec![3.0, 1.0]), Some(2.0));
        assert_eq!(median(vec![5.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!([7.0, 123.0, 0.9, 60.0].map(|length| tick_step(length, 5.0)), [2.0, 50.0, 0.2, 20.0]);
    }
}
