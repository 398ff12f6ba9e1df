//! `doc!`: documents written down as they look.

/// A [`Document`](crate::Document), as in `doc! { "a": 1, "b": { "c": [true, null] }, "d": some_expression
/// }`. Values are anything that is `Into<Value>`; `null` stands for itself; a name is a literal or an
/// expression in parentheses.
#[macro_export]
macro_rules! doc {
    () => { $crate::Document::new() };
    ($($fields:tt)+) => {{
        let mut document = $crate::Document::new();
        $crate::doc_fields!(document $($fields)+);
        document
    }};
}

/// Pushes the fields of [`doc!`] one by one.
#[doc(hidden)]
#[macro_export]
macro_rules! doc_fields {
    ($document:ident) => {};
    ($document:ident $name:tt : null $(, $($rest:tt)*)?) => {
        $document.push($name, $crate::Value::Null);
        $crate::doc_fields!($document $($($rest)*)?);
    };
    ($document:ident $name:tt : { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $document.push($name, $crate::Value::Document($crate::doc!($($inner)*)));
        $crate::doc_fields!($document $($($rest)*)?);
    };
    ($document:ident $name:tt : [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $document.push($name, $crate::Value::Array($crate::doc_values!($($inner)*)));
        $crate::doc_fields!($document $($($rest)*)?);
    };
    ($document:ident $name:tt : $value:expr $(, $($rest:tt)*)?) => {
        $document.push($name, $crate::Value::from($value));
        $crate::doc_fields!($document $($($rest)*)?);
    };
}

/// The values of an array in [`doc!`].
#[doc(hidden)]
#[macro_export]
macro_rules! doc_values {
    () => { ::std::vec::Vec::<$crate::Value>::new() };
    ($($values:tt)+) => {{
        let mut values = $crate::no_values();
        $crate::doc_values_pushed!(values $($values)+);
        values
    }};
}

/// Where [`doc!`] starts an array: a function, because pushing onto a `Vec::new()` in sight is a lint in the
/// caller's code.
#[doc(hidden)]
pub fn no_values() -> Vec<crate::Value> {
    Vec::new()
}

/// Pushes the values of an array in [`doc!`] one by one.
#[doc(hidden)]
#[macro_export]
macro_rules! doc_values_pushed {
    ($array:ident) => {};
    ($array:ident null $(, $($rest:tt)*)?) => {
        $array.push($crate::Value::Null);
        $crate::doc_values_pushed!($array $($($rest)*)?);
    };
    ($array:ident { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $array.push($crate::Value::Document($crate::doc!($($inner)*)));
        $crate::doc_values_pushed!($array $($($rest)*)?);
    };
    ($array:ident [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $array.push($crate::Value::Array($crate::doc_values!($($inner)*)));
        $crate::doc_values_pushed!($array $($($rest)*)?);
    };
    ($array:ident $value:expr $(, $($rest:tt)*)?) => {
        $array.push($crate::Value::from($value));
        $crate::doc_values_pushed!($array $($($rest)*)?);
    };
}

#[cfg(test)]
mod tests {
    use crate::{Document, Value};

    #[test]
    fn a_document_written_down_has_the_fields_in_their_order() {
        let two = 2i64;
        let written = doc! { "a": 1, "b": { "c": [true, null, [1.5, {}], { "d": "x" }] }, ("e".to_owned()): two + 1, "f": null, "g": -7, };
        let mut inner = Document::new();
        inner.push("d", "x");
        let array = vec![
            Value::Boolean(true),
            Value::Null,
            Value::Array(vec![Value::Double(1.5), Value::Document(Document::new())]),
            Value::Document(inner),
        ];
        let mut expected = Document::new();
        expected.push("a", Value::Int32(1));
        expected.push("b", [("c", array)].into_iter().collect::<Document>());
        expected.push("e", Value::Int64(3));
        expected.push("f", Value::Null);
        expected.push("g", Value::Int32(-7));
        assert_eq!(written, expected);
        assert_eq!(doc! {}, Document::new());
    }
}
