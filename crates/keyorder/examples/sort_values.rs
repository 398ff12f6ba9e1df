//! Sorts values as Pando does, for comparison with another server: see `tests/acceptance/sort_order.py`.
//!
//! Reads one document in Extended JSON a line from standard input, sorts by the field `v` (a line without it
//! counts as null) and prints the lines' numbers, from 0, each with a mark: `=` if its value is equal to the
//! one before, else `<`. With `--keys` it sorts by key bytes instead of by comparing values, and also checks
//! that the keys decode to the values.

use std::cmp::Ordering;
use std::error::Error;
use std::io::{BufRead, Write};

use pando_document::{Value, compare, parse_json_line};
use pando_keyorder::{Direction, TypeBits, decode, encode};

fn main() -> Result<(), Box<dyn Error>> {
    let by_keys = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--keys") => true,
        Some(other) => return Err(format!("unknown argument {other}").into()),
    };
    let mut values = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let mut document = parse_json_line(&line?)?;
        values.push(document.remove("v").unwrap_or(Value::Null));
    }
    let order =
        if by_keys { sorted(&keys(&values)?, Vec::cmp) } else { sorted(&values, |a, b| compare(a, b)) };
    let mut out = std::io::stdout().lock();
    for (number, mark) in order {
        writeln!(out, "{mark} {number}")?;
    }
    Ok(())
}

/// The numbers of the items in their order, each with its mark.
fn sorted<T>(items: &[T], order: impl Fn(&T, &T) -> Ordering) -> Vec<(usize, char)> {
    let mut numbers: Vec<usize> = (0..items.len()).collect();
    numbers.sort_by(|a, b| order(&items[*a], &items[*b]));
    let marks = std::iter::once('<').chain(
        numbers.windows(2).map(
            |pair| {
                if order(&items[pair[0]], &items[pair[1]]).is_eq() { '=' } else { '<' }
            },
        ),
    );
    numbers.iter().copied().zip(marks).collect()
}

fn keys(values: &[Value]) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let mut keys = Vec::new();
    for value in values {
        let (mut key, mut bits) = (Vec::new(), TypeBits::new());
        encode(value, Direction::Ascending, &mut key, &mut bits);
        let decoded = decode(&key, bits.as_bytes(), &[Direction::Ascending])?;
        if decoded.as_slice() != std::slice::from_ref(value) {
            return Err(format!("{value:?} came back as {decoded:?}").into());
        }
        keys.push(key);
    }
    Ok(keys)
}
