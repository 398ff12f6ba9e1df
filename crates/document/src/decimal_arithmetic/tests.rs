//! Arithmetic of decimals against the answers of MongoDB's server, and its laws on random numbers.

use proptest::prelude::*;

use super::*;

fn decimal(text: &str) -> Decimal128 {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

type Operation = fn(Decimal128, Decimal128) -> Decimal128;

fn check(operation: Operation, cases: &[(&str, &str, &str)]) {
    for (a, b, expected) in cases {
        assert_eq!(operation(decimal(a), decimal(b)).to_string(), *expected, "{a} and {b}");
    }
}

#[test]
fn sums_are_those_of_the_server() {
    check(
        Decimal128::add,
        &[
            ("1.10", "2", "3.10"),
            ("1", "1E-100", "1.000000000000000000000000000000000"),
            ("1", "-1E-300", "1.000000000000000000000000000000000"),
            ("1", "0E-100", "1.000000000000000000000000000000000"),
            ("1E+5", "1", "100001"),
            ("0E+10", "1E+5", "1E+5"),
            ("-0", "-0", "-0"),
            ("-0", "0", "0"),
            ("1E+40", "1", "1.000000000000000000000000000000000E+40"),
            ("1E+40", "-1", "1.000000000000000000000000000000000E+40"),
            ("9999999999999999999999999999999999", "0.5", "1.000000000000000000000000000000000E+34"),
            ("1111111111111111111111111111111112", "0.5", "1111111111111111111111111111111112"),
            ("1111111111111111111111111111111111", "0.5", "1111111111111111111111111111111112"),
            ("9.999999999999999999999999999999999E6144", "9E6144", "Infinity"),
            ("1E+6111", "1E+6111", "2E+6111"),
            ("Infinity", "-Infinity", "NaN"),
            ("Infinity", "5", "Infinity"),
            ("NaN", "1", "NaN"),
        ],
    );
    check(
        Decimal128::subtract,
        &[("1", "1", "0"), ("-0", "0", "-0"), ("0E+10", "1E+5", "-1E+5"), ("1.5", "2", "-0.5")],
    );
}

#[test]
fn products_are_those_of_the_server() {
    check(
        Decimal128::multiply,
        &[
            ("1.10", "2.0", "2.200"),
            ("1E-6176", "0.5", "0E-6176"),
            ("1E-6176", "0.51", "1E-6176"),
            ("0", "-1", "-0"),
            ("Infinity", "0", "NaN"),
            ("-Infinity", "2", "-Infinity"),
            (
                "9999999999999999999999999999999999",
                "9999999999999999999999999999999999",
                "9.999999999999999999999999999999998E+67",
            ),
            ("1E6000", "1E6000", "Infinity"),
            ("0E6000", "1E6000", "0E+6111"),
            ("1E6000", "1E120", "1.000000000E+6120"),
        ],
    );
}

#[test]
fn quotients_are_those_of_the_server() {
    check(
        Decimal128::divide,
        &[
            ("1", "3", "0.3333333333333333333333333333333333"),
            ("-2", "-3", "0.6666666666666666666666666666666667"),
            ("10", "2", "5"),
            ("1.00", "2", "0.50"),
            ("0", "5.00", "0E+2"),
            ("1E6111", "1E-6176", "Infinity"),
            ("1E-6176", "3", "0E-6176"),
            ("6E-6176", "4", "2E-6176"),
            ("7", "7.000", "1"),
            ("1E+3", "8", "125"),
            ("0E10", "1E-5", "0E+15"),
            ("5", "Infinity", "0E-6176"),
            ("Infinity", "Infinity", "NaN"),
            ("1", "0", "Infinity"),
            ("0", "0", "NaN"),
        ],
    );
}

#[test]
fn remainders_are_those_of_the_server() {
    check(
        Decimal128::modulo,
        &[
            ("-7.5", "2", "-1.5"),
            ("1E100", "7", "4"),
            ("7", "0.3", "0.1"),
            ("-6", "3", "-0"),
            ("6.00", "3", "0.00"),
            ("5.5", "2.00", "1.50"),
            ("1E-100", "3", "1E-100"),
            ("5", "-3", "2"),
            ("1E+6111", "7E-6176", "5E-6176"),
            ("7E+3", "2E+2", "0E+2"),
            ("Infinity", "2", "NaN"),
            ("5", "Infinity", "5"),
            ("1", "0", "NaN"),
        ],
    );
}

#[test]
fn roots_are_those_of_the_server() {
    for (number, expected) in [
        ("2", "1.414213562373095048801688724209698"),
        ("4", "2"),
        ("0.25", "0.5"),
        ("0.001", "0.03162277660168379331998893544432719"),
        ("1E+5", "316.2277660168379331998893544432719"),
        ("100", "10"),
        ("16E+2", "4E+1"),
        ("1.0", "1.0"),
        ("4.00", "2.0"),
        ("-0", "-0"),
        ("1E-6175", "3.162277660168379331998893544432719E-3088"),
        ("-1", "NaN"),
        ("Infinity", "Infinity"),
    ] {
        assert_eq!(decimal(number).square_root().to_string(), expected, "{number}");
    }
}

#[test]
fn rounding_to_a_place_is_that_of_the_server() {
    use Rounding::{Ceiling, Floor, HalfEven, TowardZero};
    for (number, exponent, rounding, expected) in [
        ("2.5", 0, HalfEven, "2"),
        ("-2.5", 0, HalfEven, "-2"),
        ("3.14159", -2, HalfEven, "3.14"),
        ("3.1", -5, HalfEven, "3.10000"),
        ("-3.99", -1, TowardZero, "-3.9"),
        ("1E+5", 0, TowardZero, "100000"),
        ("-1.5", 0, Floor, "-2"),
        ("-1.5", 0, Ceiling, "-1"),
        ("12345", 2, HalfEven, "1.23E+4"),
        ("1E-6176", -100, HalfEven, "0E-100"),
        ("9.995", -2, HalfEven, "10.00"),
        ("99", 2, HalfEven, "1E+2"),
        ("-0.4", 0, HalfEven, "-0"),
        ("12345.678", 6, TowardZero, "0E+6"),
        ("-0.5", 0, Floor, "-1"),
        ("-0.5", 0, Ceiling, "-0"),
        ("1E-3000", 5, Ceiling, "1E+5"),
        ("1E+40", 0, HalfEven, "1.000000000000000000000000000000000E+40"),
        ("1.5", -50, HalfEven, "1.500000000000000000000000000000000"),
        ("0", -50, HalfEven, "0E-50"),
        ("Infinity", -2, HalfEven, "Infinity"),
    ] {
        assert_eq!(
            decimal(number).with_exponent(exponent, rounding).to_string(),
            expected,
            "{number} {rounding:?}"
        );
    }
}

#[test]
fn doubles_become_the_decimals_that_the_server_makes_of_them() {
    for (number, fifteen, thirty_four) in [
        (0.1, "0.100000000000000", "0.1000000000000000055511151231257827"),
        (0.5, "0.500000000000000", "0.5"),
        (-1.5, "-1.50000000000000", "-1.5"),
        (1e22, "1.00000000000000E+22", "10000000000000000000000"),
        (1e23, "1.00000000000000E+23", "99999999999999991611392"),
        (999_999_999_999_999.9, "1.00000000000000E+15", "999999999999999.875"),
        (5e-324, "4.94065645841247E-324", "4.940656458412465441765687928682214E-324"),
        (1e300, "1.00000000000000E+300", "1.000000000000000052504760255204420E+300"),
        (1.0 / 3.0, "0.333333333333333", "0.3333333333333333148296162562473910"),
        (2.5e-310, "2.50000000000002E-310", "2.500000000000017065614167786750201E-310"),
        (-0.0, "-0", "-0"),
        (f64::NAN, "NaN", "NaN"),
        (f64::NEG_INFINITY, "-Infinity", "-Infinity"),
    ] {
        assert_eq!(Decimal128::from_f64(number, DoubleDigits::Fifteen).to_string(), fifteen, "{number}");
        assert_eq!(
            Decimal128::from_f64(number, DoubleDigits::ThirtyFour).to_string(),
            thirty_four,
            "{number}"
        );
    }
}

fn decimals() -> impl Strategy<Value = Decimal128> {
    let limit = COEFFICIENT_MAX + 1;
    prop_oneof![
        (any::<bool>(), 0..limit, EXPONENT_MIN..=EXPONENT_MAX).prop_map(|(n, c, e)| finite(n, c, e)),
        (any::<bool>(), 0..limit, -40..40).prop_map(|(n, c, e)| finite(n, c, e)),
        (any::<bool>(), 0..1000u128, -5..5).prop_map(|(n, c, e)| finite(n, c, e)),
        Just(infinity(true)),
        Just(Decimal128::NAN),
    ]
}

fn compare(a: Decimal128, b: Decimal128) -> std::cmp::Ordering {
    crate::compare_values(RawValue::Decimal128(a), RawValue::Decimal128(b))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn operations_on_any_two_decimals_end_in_a_decimal(a in decimals(), b in decimals()) {
        assert_eq!(a.add(b), b.add(a));
        assert_eq!(a.multiply(b), b.multiply(a));
        let _ = (a.divide(b), a.subtract(b), a.square_root());
        let rest = a.modulo(b);
        assert!(!rest.is_finite() || compare(rest.magnitude(), b.magnitude()).is_lt() || !b.is_finite());
        assert_eq!(a.to_string().parse(), Ok(a));
    }

    #[test]
    fn a_sum_less_one_term_is_the_other_where_nothing_is_rounded(a in 0..1u128 << 64, b in 0..1u128 << 64, e in -8..8i32) {
        let (a, b) = (finite(false, a, 0), finite(true, b, e));
        assert!(compare(a.add(b).subtract(b), a).is_eq());
        assert!(compare(a.add(b).subtract(a), b).is_eq());
    }

    #[test]
    fn a_quotient_times_the_divisor_is_near_the_dividend(a in 1..COEFFICIENT_MAX, b in 1..COEFFICIENT_MAX, e in -300..300i32) {
        let (a, b) = (finite(false, a, 0), finite(false, b, e));
        let error = a.divide(b).multiply(b).subtract(a).magnitude();
        assert!(compare(error, a.multiply(finite(false, 1, -32))).is_lt());
    }

    #[test]
    fn a_square_root_squared_is_near_the_number(a in 1..COEFFICIENT_MAX, e in -6000..6000i32) {
        let a = finite(false, a, e);
        let root = a.square_root();
        let error = root.multiply(root).subtract(a).magnitude();
        assert!(compare(error, a.multiply(finite(false, 1, -32))).is_lt());
    }

    #[test]
    fn a_double_that_becomes_a_decimal_comes_back(number in any::<f64>()) {
        prop_assume!(!number.is_nan());
        assert_eq!(f64::from(Decimal128::from_f64(number, DoubleDigits::ThirtyFour)), number);
    }
}
