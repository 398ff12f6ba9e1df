//! Licence expressions of SPDX: identifiers, `AND`, `OR`, `WITH` and parentheses. The `/` of old packages is
//! an `OR`.
//!
//! `AND` binds closer than `OR`, and `WITH` closer than both. An exception (`WITH`) only gives further
//! rights, so that the licence before it decides.

/// Whether an expression can be fulfilled by licences that `allows` accepts.
///
/// # Errors
/// The expression is malformed; the text says where.
pub fn is_allowed(expression: &str, allows: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, at: 0, allows };
    let outcome = reader.either()?;
    match reader.peek() {
        None => Ok(outcome),
        Some(word) => Err(format!("'{word}' is not expected")),
    }
}

struct Reader<'w> {
    words: &'w [&'w str],
    at: usize,
    allows: &'w dyn Fn(&str) -> bool,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&str> {
        self.words.get(self.at).copied()
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_next = self.peek() == Some(word);
        self.at += usize::from(is_next);
        is_next
    }

    fn either(&mut self) -> Result<bool, String> {
        let mut outcome = self.both()?;
        while self.takes("OR") {
            outcome |= self.both()?;
        }
        Ok(outcome)
    }

    fn both(&mut self) -> Result<bool, String> {
        let mut outcome = self.term()?;
        while self.takes("AND") {
            outcome &= self.term()?;
        }
        Ok(outcome)
    }

    fn term(&mut self) -> Result<bool, String> {
        if self.takes("(") {
            let outcome = self.either()?;
            return if self.takes(")") { Ok(outcome) } else { Err("a ')' is missing".to_owned()) };
        }
        let licence = self.name()?;
        if self.takes("WITH") {
            self.name()?;
        }
        Ok((self.allows)(&licence))
    }

    fn name(&mut self) -> Result<String, String> {
        let word = self.peek().ok_or("it ends too early")?.to_owned();
        if ["AND", "OR", "WITH", "(", ")"].contains(&word.as_str()) {
            return Err(format!("'{word}' is not expected"));
        }
        self.at += 1;
        Ok(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expression: &str) -> Result<bool, String> {
        is_allowed(expression, &|licence| ["MIT", "Apache-2.0", "ISC"].contains(&licence))
    }

    #[test]
    fn expressions_are_weighed_by_their_operators() {
        for (expression, allowed) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("MIT/GPL-3.0", true),
            ("Apache-2.0 / GPL-3.0", true),
            ("MIT AND GPL-3.0", false),
            ("MIT AND GPL-3.0 OR ISC", true),
            ("MIT AND (GPL-3.0 OR ISC)", true),
            ("(MIT OR ISC) AND GPL-3.0", false),
            ("GPL-3.0 OR MIT AND CDDL-1.0", false),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("GPL-3.0 WITH Classpath-exception-2.0", false),
            ("mit", false),
        ] {
            assert_eq!(check(expression), Ok(allowed), "{expression}");
        }
    }

    #[test]
    fn malformed_expressions_are_refused() {
        for expression in ["", "MIT OR", "AND MIT", "(MIT", "MIT)", "MIT ISC", "MIT WITH", "()"] {
            assert!(check(expression).is_err(), "{expression}");
        }
    }
}
