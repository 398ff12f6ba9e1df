//! Numbers as people read them.

/// A number with as many digits as one reads.
pub fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 1e6 => format!("{}M", trimmed(value / 1e6)),
        large if large >= 1e4 => format!("{}k", trimmed(value / 1e3)),
        middle if middle >= 10.0 => format!("{value:.0}"),
        0.0 => "0".to_owned(),
        _ => trimmed(value),
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
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

/// The middle one of some values, of an even number the upper; nothing of none.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The next number of one digit that counts, or of 1.5 or 2.5: where an axis ends.
pub fn round_up(value: f64) -> f64 {
    let unit = 10_f64.powf(value.max(1e-9).log10().floor());
    let steps = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.iter().map(|step| step * unit).find(|step| *step >= value).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_axes_round() {
        assert_eq!(
            [0.0, 0.25, 7.5, 42.4, 12_500.0, 3e6].map(number),
            ["0", "0.25", "7.5", "42", "12.5k", "3M"]
        );
        assert_eq!(
            [7.0, 123.0, 0.9].map(round_up).map(|value| format!("{value:.1}")),
            ["8.0", "150.0", "1.0"]
        );
        assert_eq!([1_234_567.4, 999.0, -1000.0].map(thousands), ["1,234,567", "999", "-1,000"]);
    }
}
