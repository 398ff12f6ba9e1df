//! From characters to values.

use crate::extended_json::error::{JsonError, JsonFault};
use crate::extended_json::type_wrapper::unwrap_type;
use crate::{Document, NESTING_MAX, Value};

/// Levels of JSON: those of documents, and a few for `{"$…": {…}}` around a value.
const JSON_NESTING_MAX: usize = NESTING_MAX + 4;

/// Reads one document, which is all of the text but for space around it.
pub fn parse_json_line(text: &str) -> Result<Document, JsonError> {
    let mut parser = Parser::new(text);
    let document = parser.document()?;
    parser.end()?;
    Ok(document)
}

/// Reads the document at the front of the text, after space; gives it and the bytes it took. `None` if there
/// is only space. Where the error [is incomplete](JsonError::is_incomplete), the same call with more text may
/// succeed. So documents can be read one by one from a buffer that is filled from a file.
pub fn parse_json_prefix(text: &str) -> Result<Option<(Document, usize)>, JsonError> {
    let mut parser = Parser::new(text);
    parser.skip_space();
    if parser.offset == text.len() {
        return Ok(None);
    }
    let document = parser.document()?;
    Ok(Some((document, parser.offset)))
}

/// Reads one value of any type, which is all of the text but for space around it.
pub fn parse_json_value(text: &str) -> Result<Value, JsonError> {
    let mut parser = Parser::new(text);
    let value = parser.value(0)?;
    parser.end()?;
    Ok(value)
}

struct Parser<'a> {
    text: &'a str,
    offset: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, offset: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.offset).copied()
    }

    fn fault<T>(&self, fault: JsonFault) -> Result<T, JsonError> {
        Err(JsonError { offset: self.offset, fault })
    }

    /// The error for wrong text at this place, or for text that ends here.
    fn unexpected<T>(&self, expected: &'static str) -> Result<T, JsonError> {
        match self.peek() {
            None => self.fault(JsonFault::Incomplete),
            Some(_) => self.fault(JsonFault::Unexpected { expected }),
        }
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.offset += 1;
        }
    }

    /// Skips space and, if it stands there, the byte.
    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        let found = self.peek() == Some(byte);
        self.offset += usize::from(found);
        found
    }

    fn end(&mut self) -> Result<(), JsonError> {
        self.skip_space();
        if self.offset == self.text.len() { Ok(()) } else { self.fault(JsonFault::TrailingText) }
    }

    fn document(&mut self) -> Result<Document, JsonError> {
        self.skip_space();
        let start = self.offset;
        match self.value(0)? {
            Value::Document(document) => Ok(document),
            _ => Err(JsonError { offset: start, fault: JsonFault::Unexpected { expected: "a document" } }),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, JsonError> {
        if depth > JSON_NESTING_MAX {
            return self.fault(JsonFault::TooDeep { nesting_max: JSON_NESTING_MAX });
        }
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Boolean(true)),
            Some(b'f') => self.word("false", Value::Boolean(false)),
            Some(b'n') => self.word("null", Value::Null),
            _ => self.unexpected("a value"),
        }
    }

    fn word(&mut self, word: &'static str, value: Value) -> Result<Value, JsonError> {
        let rest = &self.text.as_bytes()[self.offset..];
        if rest.starts_with(word.as_bytes()) {
            self.offset += word.len();
            Ok(value)
        } else if word.as_bytes().starts_with(rest) {
            self.fault(JsonFault::Incomplete)
        } else {
            self.unexpected("a value")
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, JsonError> {
        self.offset += 1;
        let mut values = Vec::new();
        if self.take(b']') {
            return Ok(Value::Array(values));
        }
        loop {
            values.push(self.value(depth + 1)?);
            if self.take(b']') {
                return Ok(Value::Array(values));
            }
            if !self.take(b',') {
                return self.unexpected("`,` or `]`");
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, JsonError> {
        let start = self.offset;
        let document = self.fields(depth)?;
        if !document.names().next().is_some_and(|name| name.starts_with('$')) {
            return Ok(Value::Document(document));
        }
        unwrap_type(document)
            .map_err(|name| JsonError { offset: start, fault: JsonFault::InvalidType { name } })
    }

    fn fields(&mut self, depth: usize) -> Result<Document, JsonError> {
        self.offset += 1;
        let mut document = Document::new();
        if self.take(b'}') {
            return Ok(document);
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return self.unexpected("a field name in quotes");
            }
            let name_start = self.offset;
            let name = self.string()?;
            if name.contains('\0') {
                return Err(JsonError { offset: name_start, fault: JsonFault::NulInName });
            }
            if !self.take(b':') {
                return self.unexpected("`:`");
            }
            let value = self.value(depth + 1)?;
            document.push(name, value);
            if self.take(b'}') {
                return Ok(document);
            }
            if !self.take(b',') {
                return self.unexpected("`,` or `}`");
            }
        }
    }

    /// A string, from its quote on.
    fn string(&mut self) -> Result<String, JsonError> {
        self.offset += 1;
        let mut string = String::new();
        loop {
            let rest = &self.text[self.offset..];
            // No byte of a longer character looks like one of these.
            let Some(plain) = rest.bytes().position(|byte| byte == b'"' || byte == b'\\' || byte < b' ')
            else {
                self.offset = self.text.len();
                return self.fault(JsonFault::Incomplete);
            };
            string.push_str(&rest[..plain]);
            self.offset += plain;
            match rest.as_bytes()[plain] {
                b'"' => {
                    self.offset += 1;
                    return Ok(string);
                }
                b'\\' => {
                    let character = self.escape()?;
                    string.push(character);
                }
                _ => return self.fault(JsonFault::InvalidString),
            }
        }
    }

    /// An escape, from its backslash on.
    fn escape(&mut self) -> Result<char, JsonError> {
        let Some(letter) = self.text.as_bytes().get(self.offset + 1).copied() else {
            return self.fault(JsonFault::Incomplete);
        };
        let character = match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => return self.fault(JsonFault::InvalidString),
        };
        self.offset += 2;
        Ok(character)
    }

    /// `\uXXXX`, twice for characters beyond the first 65,536.
    fn unicode_escape(&mut self) -> Result<char, JsonError> {
        let first = self.code_unit()?;
        if let Some(character) = char::from_u32(first) {
            return Ok(character);
        }
        let second = match self.text.as_bytes().get(self.offset..self.offset + 2) {
            Some(b"\\u") => self.code_unit()?,
            None => return self.fault(JsonFault::Incomplete),
            Some(_) => return self.fault(JsonFault::InvalidString),
        };
        match (first, second) {
            (0xD800..=0xDBFF, 0xDC00..=0xDFFF) => {
                let code = 0x10000 + ((first - 0xD800) << 10 | (second - 0xDC00));
                Ok(char::from_u32(code).expect("a surrogate pair is a character"))
            }
            _ => self.fault(JsonFault::InvalidString),
        }
    }

    fn code_unit(&mut self) -> Result<u32, JsonError> {
        let Some(digits) = self.text.as_bytes().get(self.offset + 2..self.offset + 6) else {
            return self.fault(JsonFault::Incomplete);
        };
        let mut unit = 0;
        for digit in digits {
            match char::from(*digit).to_digit(16) {
                Some(digit) => unit = unit << 4 | digit,
                None => return self.fault(JsonFault::InvalidString),
            }
        }
        self.offset += 6;
        Ok(unit)
    }

    /// Skips digits; false if there is none.
    fn digits(&mut self) -> bool {
        let start = self.offset;
        while let Some(b'0'..=b'9') = self.peek() {
            self.offset += 1;
        }
        self.offset > start
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let start = self.offset;
        if self.peek() == Some(b'-') {
            self.offset += 1;
        }
        let leading_zero = self.peek() == Some(b'0');
        let whole_start = self.offset;
        if !self.digits() {
            return self.unexpected("a number");
        }
        if leading_zero && self.offset > whole_start + 1 {
            let fault = JsonFault::Unexpected { expected: "a number without leading zeros" };
            return Err(JsonError { offset: start, fault });
        }
        let mut whole = true;
        if self.peek() == Some(b'.') {
            whole = false;
            self.offset += 1;
            if !self.digits() {
                return self.unexpected("a digit");
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            whole = false;
            self.offset += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.offset += 1;
            }
            if !self.digits() {
                return self.unexpected("a digit");
            }
        }
        let token = &self.text[start..self.offset];
        if let Ok(integer) = token.parse::<i64>()
            && whole
        {
            return Ok(i32::try_from(integer).map_or(Value::Int64(integer), Value::Int32));
        }
        match token.parse::<f64>() {
            Ok(double) if double.is_finite() => Ok(Value::Double(double)),
            _ => Err(JsonError { offset: start, fault: JsonFault::NumberTooLarge }),
        }
    }
}
