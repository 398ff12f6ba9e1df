//! Dates, formats of dates and time zones of strangers: three lines of text. A date that is read is printed
//! so that it reads the same.

use pando_document::{Document, Value, doc};
use pando_query::QueryError;
use pando_query::expression::{Expression, ParseScope};

/// Dates whose year has four digits, in milliseconds.
const FOUR_DIGIT_YEARS: std::ops::Range<i64> = -62_167_219_200_000..253_402_300_800_000;

/// Inputs that are sound.
pub fn examples() -> Vec<Vec<u8>> {
    const TEXTS: [&str; 8] = [
        "2024-02-29T12:34:56.789Z\n%Y-%m-%dT%H:%M:%S.%LZ\nUTC",
        "2024-10-27 02:30:00+02:00\n%Y-%m-%d %H:%M:%S%z\nEurope/Berlin",
        "0001-01-01\n%Y-%m-%d\n-0530",
        "9999-12-31T23:59:59.999\n%G-W%V-%u\nAmerica/New_York",
        "March 5, 2019 4:05 pm\n%B %d, %Y\n+01",
        "2019 W13 7\n%G W%V %u %%\nAsia/Kolkata",
        "31/12/1969 060\n%d/%m/%Y %j %Z\nGMT",
        "20240229T123456Z\n%Y%m%dT%H%M%S\nPacific/Apia",
    ];
    TEXTS.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// See the module.
pub fn run(text: &str) {
    let mut lines = text.splitn(3, '\n').chain(std::iter::repeat(""));
    let (Some(date), Some(format), Some(zone)) = (lines.next(), lines.next(), lines.next()) else { return };
    let _by_format = read(doc! { "dateString": date, "format": format, "timezone": zone });
    let _in_zone = read(doc! { "dateString": date, "timezone": zone });
    let Ok(Value::DateTime(millis)) = read(doc! { "dateString": date }) else { return };
    let _printed = print(millis, format, zone);
    if FOUR_DIGIT_YEARS.contains(&millis) {
        let printed = print(millis, "%Y-%m-%dT%H:%M:%S.%LZ", "UTC").expect("the format is a good one");
        let again = read(doc! { "dateString": printed.clone() }).expect("what was printed can be read");
        assert_eq!(again, Value::DateTime(millis), "{printed:?}");
    }
}

fn read(arguments: Document) -> Result<Value, QueryError> {
    evaluate(doc! { "$dateFromString": arguments })
}

fn print(millis: i64, format: &str, zone: &str) -> Result<Value, QueryError> {
    let date = Value::DateTime(millis);
    evaluate(doc! { "$dateToString": doc! { "date": date, "format": format, "timezone": zone } })
}

fn evaluate(expression: Document) -> Result<Value, QueryError> {
    let (expression, root) = (doc! { "value": expression }.to_raw(), doc! {}.to_raw());
    let value = expression.get("value")?.expect("it was put there");
    let parsed = Expression::parse(value, &ParseScope::at(0))?;
    Ok(parsed.evaluate(&root)?.raw().map_or(Value::Null, Value::from))
}
