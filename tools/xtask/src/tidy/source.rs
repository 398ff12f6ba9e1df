//! A Rust file, cut into code and comments.
//!
//! The scanner knows comments (nested ones too), string, byte and character literals, raw strings and
//! lifetimes; it does not parse. The *code* is the text with every character of a comment or literal replaced
//! by a space, byte for byte and line for line. So an offset in the code is an offset in the text.
//!
//! A *test region* is the body of an inline `#[cfg(test)] mod`. A *test file* is one in a `tests` or
//! `benches` folder, or one that is called `tests.rs` or ends with `_tests.rs`.

/// A line comment or a block comment.
#[derive(Debug, PartialEq, Eq)]
pub struct Comment {
    /// The line where it begins, from 1.
    pub line: usize,
    /// Its text, with its slashes.
    pub text: String,
}

/// A scanned file.
#[derive(Debug)]
pub struct Source {
    /// Relative to the root of the workspace.
    pub path: String,
    /// The file as it is.
    pub text: String,
    /// The text without comments and literals.
    pub code: String,
    /// The comments, in order.
    pub comments: Vec<Comment>,
}

impl Source {
    /// Scans a file's text.
    pub fn scan(path: &str, text: &str) -> Source {
        let mut scanner = Scanner {
            bytes: text.as_bytes(),
            at: 0,
            code: Vec::with_capacity(text.len()),
            comments: Vec::new(),
        };
        scanner.run();
        let comments = scanner.comments.iter().map(|(from, to)| Comment {
            line: line_of(text, *from),
            text: String::from_utf8_lossy(&text.as_bytes()[*from..*to]).into_owned(),
        });
        let comments = comments.collect();
        let code = String::from_utf8_lossy(&scanner.code).into_owned();
        Source { path: path.to_owned(), text: text.to_owned(), code, comments }
    }

    /// The line of an offset, from 1.
    pub fn line_of(&self, offset: usize) -> usize {
        line_of(&self.text, offset)
    }

    /// Whether the whole file is tests.
    pub fn is_test_file(&self) -> bool {
        let mut parts = self.path.rsplit('/');
        let name = parts.next().unwrap_or_default();
        name == "tests.rs"
            || name.ends_with("_tests.rs")
            || parts.any(|folder| folder == "tests" || folder == "benches")
    }

    /// The lines of the file.
    pub fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// The lines that are not tests.
    pub fn production_lines(&self) -> usize {
        if self.is_test_file() {
            return 0;
        }
        let mut lines = self.lines();
        let mut from = 0;
        while let Some(at) = self.code[from..].find("#[cfg(test)]").map(|at| from + at) {
            from = at + 1;
            let Some(open) = self.code[at..].find(['{', ';']).map(|open| at + open) else { break };
            if self.code.as_bytes()[open] == b'{' {
                let close = closing_brace(&self.code, open);
                lines = lines.saturating_sub(self.line_of(close) - self.line_of(at) + 1);
                from = close;
            }
        }
        lines
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

/// The offset of the brace that closes the one at `open`; the end of the code if none does.
pub fn closing_brace(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return at,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

/// Whether a byte can be part of a name.
pub fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The offsets in `code` where `word` stands as a word of its own.
pub fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    code.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = at.checked_sub(1).is_none_or(|before| !is_name_byte(bytes[before]));
        let after = bytes.get(at + word.len()).is_none_or(|after| !is_name_byte(*after));
        before && after
    })
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    code: Vec<u8>,
    /// From, to.
    comments: Vec<(usize, usize)>,
}

impl Scanner<'_> {
    fn run(&mut self) {
        while let Some(byte) = self.peek(0) {
            match byte {
                b'/' if self.peek(1) == Some(b'/') => self.line_comment(),
                b'/' if self.peek(1) == Some(b'*') => self.block_comment(),
                b'"' => self.quoted(b'"'),
                b'\'' if self.is_character_literal() => self.quoted(b'\''),
                b'r' if !self.follows_name() => match self.raw_string_hashes() {
                    Some(hashes) => self.raw_string(hashes),
                    None => self.keep(),
                },
                _ => self.keep(),
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn keep(&mut self) {
        self.code.push(self.bytes[self.at]);
        self.at += 1;
    }

    /// Replaces the next byte by a space; ends of lines stay.
    fn blank(&mut self) {
        self.code.push(if self.bytes[self.at] == b'\n' { b'\n' } else { b' ' });
        self.at += 1;
    }

    fn blank_to(&mut self, end: usize) {
        while self.at < end.min(self.bytes.len()) {
            self.blank();
        }
    }

    /// Whether the byte before is part of a name other than a literal's prefix `b` or `c`.
    fn follows_name(&self) -> bool {
        let before = |back: usize| self.at.checked_sub(back).map(|at| self.bytes[at]);
        match before(1) {
            Some(b'b' | b'c') => before(2).is_some_and(is_name_byte),
            Some(byte) => is_name_byte(byte),
            None => false,
        }
    }

    fn line_comment(&mut self) {
        let from = self.at;
        let length =
            self.bytes[from..].iter().position(|byte| *byte == b'\n').unwrap_or(self.bytes.len() - from);
        self.blank_to(from + length);
        self.comments.push((from, self.at));
    }

    fn block_comment(&mut self) {
        let from = self.at;
        let mut depth = 0_usize;
        while self.at < self.bytes.len() {
            match (self.peek(0), self.peek(1)) {
                (Some(b'/'), Some(b'*')) => depth += 1,
                (Some(b'*'), Some(b'/')) => depth -= 1,
                _ => {
                    self.blank();
                    continue;
                }
            }
            self.blank_to(self.at + 2);
            if depth == 0 {
                break;
            }
        }
        self.comments.push((from, self.at));
    }

    fn quoted(&mut self, quote: u8) {
        self.blank();
        while let Some(byte) = self.peek(0) {
            if byte == b'\\' {
                self.blank_to(self.at + 2);
                continue;
            }
            self.blank();
            if byte == quote {
                break;
            }
        }
    }

    /// `'a'` and `'\n'` are literals, `'a` is a lifetime.
    fn is_character_literal(&self) -> bool {
        match self.peek(1) {
            Some(b'\\') => true,
            Some(first) if first.is_ascii() => self.peek(2) == Some(b'\''),
            // No lifetime begins with a byte beyond ASCII in this project's sources.
            Some(_) => true,
            None => false,
        }
    }

    /// At an `r`: the number of hashes if a raw string begins here.
    fn raw_string_hashes(&self) -> Option<usize> {
        let hashes = self.bytes[self.at + 1..].iter().take_while(|byte| **byte == b'#').count();
        (self.peek(1 + hashes) == Some(b'"')).then_some(hashes)
    }

    fn raw_string(&mut self, hashes: usize) {
        let content = self.at + hashes + 2;
        let mut end = vec![b'"'];
        end.resize(hashes + 1, b'#');
        let length = self.bytes[content..].windows(end.len()).position(|window| window == end);
        self.blank_to(length.map_or(self.bytes.len(), |length| content + length + end.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        let source = Source::scan("crates/x/src/y.rs", text);
        assert_eq!(source.code.len(), text.len(), "offsets must stay");
        assert_eq!(source.code.lines().count(), text.lines().count());
        source.code
    }

    #[test]
    fn comments_and_literals_leave_the_code() {
        assert_eq!(code("let a = \"}\"; // {"), "let a =    ;     ");
        assert_eq!(code("a /* { /* } */ { */ b"), "a                   b");
        assert_eq!(code("let a = \"\\\"{\";"), "let a =      ;");
    }

    #[test]
    fn raw_strings_end_at_their_own_hashes() {
        assert_eq!(code("r#\"a\"{\"# + b"), "         + b");
        assert_eq!(code("br\"{\" + b"), "b     + b");
        assert_eq!(code("for_each(r)"), "for_each(r)");
    }

    #[test]
    fn lifetimes_are_not_character_literals() {
        assert_eq!(code("fn f<'a>(x: &'a str) { '{' }"), "fn f<'a>(x: &'a str) {     }");
        assert_eq!(code("'\\'' '\\u{7b}' x"), "              x");
    }

    #[test]
    fn an_unfinished_literal_or_comment_ends_with_the_file() {
        for text in ["\"abc", "/* abc", "r#\"abc", "'\\", "//", "r", "'"] {
            code(text);
        }
    }

    #[test]
    fn comments_come_with_their_lines() {
        let source = Source::scan("x.rs", "a\n// one\nb /* two */\n");
        let expected =
            [Comment { line: 2, text: "// one".into() }, Comment { line: 3, text: "/* two */".into() }];
        assert_eq!(source.comments, expected);
    }

    #[test]
    fn inline_test_modules_are_not_production() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        assert_eq!(Source::scan("x/src/y.rs", text).production_lines(), 2);
        assert_eq!(Source::scan("x/src/y.rs", "fn a() {}\n#[cfg(test)]\nmod tests;\n").production_lines(), 3);
        assert_eq!(Source::scan("x/tests/y.rs", text).production_lines(), 0);
        assert_eq!(Source::scan("x/src/y/tests.rs", text).production_lines(), 0);
    }
}
