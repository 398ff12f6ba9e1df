//! From PCRE's syntax to that of the crates `regex` and `fancy-regex`.
//!
//! The differences that are translated:
//! - `\d`, `\w`, `\s` are ASCII in PCRE (as MongoDB uses it) and Unicode in Rust.
//! - `$` and `\Z` in PCRE hold before a newline at the very end, too.
//! - In a class, `[`, `&&`, `--`, `~~` are plain characters in PCRE and operators in Rust. With the flag `x`,
//!   white space in a class counts in PCRE and not in Rust.
//! - `{` that begins no count is a plain character in PCRE and an error in Rust.
//! - `\Q…\E`, `\h`, `\R`, `\N`, `\e`, `\cX`, octal numbers, comments `(?#…)` and names in quotes exist in
//!   PCRE alone.
//!
//! Not here: recursion, conditions and callouts, which neither crate has; they are refused as invalid.

/// The flags of a regular expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    pub ignore_case: bool,
    pub multi_line: bool,
    pub dot_all: bool,
    pub extended: bool,
}

impl Flags {
    /// Reads options; the error is the first letter that is none. `u` is what we always do.
    pub fn parse(options: &str) -> Result<Flags, char> {
        let mut flags = Flags::default();
        for flag in options.chars() {
            match flag {
                'i' => flags.ignore_case = true,
                'm' => flags.multi_line = true,
                's' => flags.dot_all = true,
                'x' => flags.extended = true,
                'u' => {}
                other => return Err(other),
            }
        }
        Ok(flags)
    }

    /// The flags as a group to put in front of a pattern.
    pub fn inline(self) -> String {
        let letters: String =
            [(self.ignore_case, 'i'), (self.multi_line, 'm'), (self.dot_all, 's'), (self.extended, 'x')]
                .into_iter()
                .filter_map(|(on, letter)| on.then_some(letter))
                .collect();
        if letters.is_empty() { letters } else { format!("(?{letters})") }
    }
}

/// A pattern in Rust's syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Translation {
    pub pattern: String,
    /// It holds something that the plain crate does not have, or reads with another meaning.
    pub needs_backtracking: bool,
    /// The fault of the pattern in PCRE alone, in PCRE's words.
    pub fault: Option<&'static str>,
}

/// Translates a pattern.
pub(super) fn translate(pattern: &str, flags: Flags) -> Translation {
    let mut translator = Translator {
        rest: pattern,
        flags: Flags { multi_line: flags.multi_line || sets_multi_line(pattern), ..flags },
        out: String::with_capacity(pattern.len() + 16),
        needs_backtracking: false,
        fault: None,
        groups: pattern.matches('(').count(),
    };
    translator.run();
    let Translator { out, needs_backtracking, fault, .. } = translator;
    Translation { pattern: out, needs_backtracking, fault }
}

/// Whether a pattern begins with a group of flags that has `m` in it.
fn sets_multi_line(pattern: &str) -> bool {
    let letters =
        pattern.strip_prefix("(?").and_then(|rest| rest.split_once(')')).map(|(letters, _)| letters);
    letters
        .is_some_and(|letters| letters.bytes().all(|byte| byte.is_ascii_lowercase()) && letters.contains('m'))
}

/// The beginning of every matching text: for a pattern `^` and plain characters, no
/// alternatives, and matching case.
pub(super) fn literal_prefix(pattern: &str, options: &str) -> Option<String> {
    if options.contains(['i', 'm', 'x']) || pattern.contains('|') {
        return None;
    }
    let mut rest = pattern.strip_prefix('^').or_else(|| pattern.strip_prefix("\\A"))?.chars().peekable();
    let mut prefix = String::new();
    while let Some(character) = rest.next() {
        let plain = match character {
            '\\' => match rest.next() {
                Some(escaped) if escaped.is_ascii_punctuation() => escaped,
                _ => break,
            },
            '.' | '[' | '(' | ')' | '*' | '+' | '?' | '{' | '^' | '$' => break,
            plain => plain,
        };
        match rest.peek() {
            // The character may be absent.
            Some('*' | '?' | '{') => break,
            _ => prefix.push(plain),
        }
    }
    (!prefix.is_empty()).then_some(prefix)
}

struct Translator<'p> {
    rest: &'p str,
    flags: Flags,
    out: String,
    needs_backtracking: bool,
    fault: Option<&'static str>,
    /// Groups at most: a greater number behind a backslash is a character's, not a group's.
    groups: usize,
}

const HORIZONTAL: &str = r" \t\x{A0}\x{1680}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}";
const VERTICAL: &str = r"\n\x0B\f\r\x{85}\x{2028}\x{2029}";

/// The content of a class for a letter, in lower case, that stands for many characters.
fn class_of(letter: char) -> Option<&'static str> {
    match letter {
        'd' => Some("0-9"),
        'w' => Some("0-9A-Za-z_"),
        's' => Some(r"\x20\t\n\x0B\f\r"),
        'h' => Some(HORIZONTAL),
        'v' => Some(VERTICAL),
        _ => None,
    }
}

impl Translator<'_> {
    fn run(&mut self) {
        while let Some(character) = self.take() {
            match character {
                '\\' => self.escape(),
                '[' => self.class(),
                '$' if self.flags.multi_line => self.out.push('$'),
                '$' => self.out.push_str(r"(?:\n?\z)"),
                '{' => self.brace(),
                '}' => self.out.push_str(r"\}"),
                '(' => self.group(),
                '*' | '+' | '?' => self.quantifier(character),
                other => self.out.push(other),
            }
        }
    }

    fn take(&mut self) -> Option<char> {
        let character = self.rest.chars().next()?;
        self.rest = &self.rest[character.len_utf8()..];
        Some(character)
    }

    fn skip(&mut self, prefix: &str) -> bool {
        let found = self.rest.strip_prefix(prefix);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    /// A quantifier, with the possessive `+` behind it noticed: the plain crate would
    /// take it for a second one.
    fn quantifier(&mut self, character: char) {
        self.out.push(character);
        if self.rest.starts_with('+') {
            self.needs_backtracking = true;
            self.skip("+");
            self.out.push('+');
        } else if self.skip("?") {
            self.out.push('?');
        }
    }

    /// `{` begins a count, or is plain.
    fn brace(&mut self) {
        let count = self.rest.split_once('}').map(|(count, _)| count).filter(|count| is_count(count));
        match count {
            Some(count) => {
                self.out.push('{');
                self.out.push_str(count);
                self.rest = &self.rest[count.len() + 1..];
                self.quantifier('}');
            }
            None => self.out.push_str(r"\{"),
        }
    }

    fn group(&mut self) {
        if self.rest.starts_with("?#") {
            self.rest = self.rest.split_once(')').map_or("", |(_, rest)| rest);
        } else if self.rest.starts_with("?'") {
            let inner = &self.rest[2..];
            let (name, rest) = inner.split_once('\'').unwrap_or((inner, ""));
            self.out.push_str("(?<");
            self.out.push_str(name);
            self.out.push('>');
            self.rest = rest;
        } else {
            const BEYOND_THE_PLAIN: [&str; 7] = ["?=", "?!", "?<=", "?<!", "?>", "?(", "?|"];
            self.needs_backtracking |= BEYOND_THE_PLAIN.iter().any(|start| self.rest.starts_with(start));
            self.out.push('(');
            if self.skip("?") {
                self.out.push('?');
            }
        }
    }

    /// An escape outside a class; the backslash is taken.
    fn escape(&mut self) {
        let Some(character) = self.take() else {
            self.out.push('\\');
            return;
        };
        match character {
            'Z' => self.out.push_str(r"(?:\n?\z)"),
            'G' => self.out.push_str(r"\A"),
            'R' => self.out.push_str(&format!(r"(?:\r\n|[{VERTICAL}])")),
            'N' => self.out.push_str(r"[^\n]"),
            'Q' => self.quoted(),
            'E' => {}
            'b' => self.out.push_str(r"(?-u:\b)"),
            'A' | 'z' | 'B' | 'p' | 'P' => self.kept(character),
            'K' | 'k' | 'g' => {
                self.needs_backtracking = true;
                self.kept(character);
            }
            '1'..='9' => self.number(character),
            // The case of letters is folded over all of Unicode, but these classes stay ASCII.
            other => match (class_of(other), class_of(other.to_ascii_lowercase())) {
                (Some(class), _) => self.out.push_str(&format!("(?-i:[{class}])")),
                (None, Some(class)) => self.out.push_str(&format!("(?-i:[^{class}])")),
                (None, None) => self.escaped_character(other),
            },
        }
    }

    /// An escape that both sides write alike, with what stands behind it in braces.
    fn kept(&mut self, character: char) {
        self.out.push('\\');
        self.out.push(character);
        self.braced();
    }

    /// Takes over `{…}` as it stands.
    fn braced(&mut self) {
        if self.rest.starts_with('{') {
            let end = self.rest.find('}').map_or(self.rest.len(), |end| end + 1);
            self.out.push_str(&self.rest[..end]);
            self.rest = &self.rest[end..];
        }
    }

    /// A number behind a backslash: a group that has matched, or a character in octal.
    fn number(&mut self, first: char) {
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = format!("{first}{}", &self.rest[..digits]);
        let octal = number.bytes().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
        if digits > 0 && octal > 0 && number.parse().is_ok_and(|number: usize| number > self.groups) {
            self.code(u32::from_str_radix(&number[..octal], 8).unwrap_or(0));
            self.rest = &self.rest[octal - 1..];
        } else {
            self.needs_backtracking = true;
            self.out.push('\\');
            self.out.push_str(&number);
            self.rest = &self.rest[digits..];
        }
    }

    /// `\Q…\E`: everything between is plain.
    fn quoted(&mut self) {
        let (quoted, rest) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
        self.rest = rest;
        self.out.push_str(&regex::escape(quoted));
    }

    /// An escape that stands for one character, in a class or not.
    fn escaped_character(&mut self, character: char) {
        match character {
            'e' => self.out.push_str(r"\x1B"),
            'c' => {
                let control = self.take().map_or(0, |letter| u32::from(letter.to_ascii_uppercase()) ^ 64);
                self.code(control);
            }
            '0' => {
                let digits =
                    self.rest.bytes().take(2).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
                let code = u32::from_str_radix(&self.rest[..digits], 8).unwrap_or(0);
                self.rest = &self.rest[digits..];
                self.code(code);
            }
            'x' if self.rest.starts_with('{') => self.out.push_str(r"\x"),
            'x' => {
                let digits = self.rest.bytes().take(2).take_while(u8::is_ascii_hexdigit).count();
                let code = u32::from_str_radix(&self.rest[..digits], 16).unwrap_or(0);
                self.rest = &self.rest[digits..];
                self.code(code);
            }
            'a' | 'f' | 'n' | 'r' | 't' => {
                self.out.push('\\');
                self.out.push(character);
            }
            letter if letter.is_ascii_alphanumeric() => {
                // PCRE knows no such escape either: the compiler will say so.
                self.out.push('\\');
                self.out.push(letter);
            }
            plain => self.plain(plain),
        }
        // A braced hexadecimal number is taken over whole, lest its brace be read as a count.
        if character == 'x' {
            self.braced();
        }
    }

    fn code(&mut self, code: u32) {
        self.out.push_str(&format!(r"\x{{{code:X}}}"));
    }

    /// A character that stands for itself.
    fn plain(&mut self, character: char) {
        if character.is_ascii() && !character.is_ascii_alphanumeric() {
            self.code(u32::from(character));
        } else {
            self.out.push(character);
        }
    }

    /// A class; its bracket is taken.
    fn class(&mut self) {
        self.out.push('[');
        if self.skip("^") {
            self.out.push('^');
        }
        if self.skip("]") {
            self.out.push_str(r"\]");
        }
        while let Some(character) = self.take() {
            match character {
                ']' => {
                    self.out.push(']');
                    return;
                }
                '[' if self.rest.starts_with(':') && self.rest.contains(":]") => self.posix_class(),
                '\\' => self.class_escape(),
                '-' if self.rest.starts_with('-') => {
                    self.skip("-");
                    self.out.push_str(r"-\-");
                }
                '[' | '&' | '~' | '#' => self.plain(character),
                space if space.is_ascii_whitespace() => self.plain(space),
                other => self.out.push(other),
            }
        }
    }

    /// `[:alpha:]` and its kin; the bracket is taken.
    fn posix_class(&mut self) {
        const NAMES: [&str; 14] = [
            "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
            "space", "upper", "word", "xdigit",
        ];
        let end = self.rest.find(":]").map_or(self.rest.len(), |end| end + 2);
        let (class, rest) = self.rest.split_at(end);
        if !NAMES.contains(&class.trim_start_matches(":^").trim_matches([':', ']'])) {
            self.fault = Some("unknown POSIX class name");
        }
        self.out.push('[');
        self.out.push_str(class);
        self.rest = rest;
    }

    /// An escape in a class; the backslash is taken.
    fn class_escape(&mut self) {
        let Some(character) = self.take() else {
            self.out.push('\\');
            return;
        };
        match (class_of(character), class_of(character.to_ascii_lowercase())) {
            (Some(class), _) => self.out.push_str(class),
            (None, Some(class)) => self.out.push_str(&format!("[^{class}]")),
            (None, None) => match character {
                'b' => self.code(8),
                'p' | 'P' => self.kept(character),
                'E' => {}
                other => self.escaped_character(other),
            },
        }
    }
}

/// Whether the text between braces is a count: `3`, `3,` or `3,5`.
fn is_count(text: &str) -> bool {
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once(',') {
        Some((least, most)) => !least.is_empty() && digits(least) && digits(most),
        None => !text.is_empty() && digits(text),
    }
}
