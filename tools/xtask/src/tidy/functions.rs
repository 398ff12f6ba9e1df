//! The functions of a file: name, line, length, parameters.

use super::source::{Source, closing_brace, is_name_byte, words};

/// A function with a body or a method signature without one.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of its `fn`, from 1.
    pub line: usize,
    /// From the line of `fn` to the line of the closing brace; 0 without a body.
    pub lines: usize,
    /// Whether it is `pub` without restriction.
    pub is_public: bool,
    /// The text between the parentheses.
    pub parameters: String,
}

/// The functions of a file, nested ones too.
pub fn functions(source: &Source) -> Vec<Function> {
    words(&source.code, "fn").filter_map(|at| function_at(source, at)).collect()
}

fn function_at(source: &Source, at: usize) -> Option<Function> {
    let code = source.code.as_bytes();
    let name_at = at + 2 + code[at + 2..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let name_bytes = code[name_at..].iter().take_while(|byte| is_name_byte(**byte)).count();
    // `fn(u32) -> u32` is a type.
    if name_bytes == 0 {
        return None;
    }
    let name = source.code[name_at..name_at + name_bytes].to_owned();
    let open = parameters_open(code, name_at + name_bytes)?;
    let close = closing_parenthesis(code, open)?;
    let body = body_open(code, close);
    let line = source.line_of(at);
    let lines = body.map_or(0, |body| source.line_of(closing_brace(&source.code, body)) - line + 1);
    let parameters = source.code[open + 1..close].to_owned();
    Some(Function { name, line, lines, is_public: is_public(&source.code[..at]), parameters })
}

/// Past the generic parameters, where angle brackets may hold parentheses (`F: Fn(u32) -> u32`).
fn parameters_open(code: &[u8], from: usize) -> Option<usize> {
    let mut angles = 0_usize;
    for at in from..code.len() {
        match code[at] {
            b'<' => angles += 1,
            b'>' if code[at - 1] != b'-' => angles = angles.saturating_sub(1),
            b'(' if angles == 0 => return Some(at),
            b'{' | b';' if angles == 0 => return None,
            _ => {}
        }
    }
    None
}

fn closing_parenthesis(code: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.iter().enumerate().skip(open) {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => return Some(at),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The brace of the body; `None` if a semicolon comes first, other than the one in `[u8; 4]`.
fn body_open(code: &[u8], from: usize) -> Option<usize> {
    let mut brackets = 0_usize;
    for (at, byte) in code.iter().enumerate().skip(from) {
        match byte {
            b'[' => brackets += 1,
            b']' => brackets = brackets.saturating_sub(1),
            b'{' if brackets == 0 => return Some(at),
            b';' if brackets == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Whether what stands before `fn` on its line says `pub`.
fn is_public(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default();
    line.split_whitespace().any(|word| word == "pub")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str) -> Vec<Function> {
        functions(&Source::scan("x.rs", text))
    }

    #[test]
    fn a_function_runs_from_its_first_line_to_its_closing_brace() {
        let found = scan("\npub fn a(x: u32)\n -> u32 {\n    if x { 1 } else { 2 }\n}\nfn b() {}\n");
        let shape: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.line, f.lines, f.is_public)).collect();
        assert_eq!(shape, [("a", 2, 4, true), ("b", 6, 1, false)]);
    }

    #[test]
    fn generics_with_parentheses_do_not_hide_the_parameters() {
        let found = scan("pub fn each<F: Fn(bool) -> u32>(f: F) -> [u8; 4] { [0; 4] }");
        assert_eq!((found[0].parameters.as_str(), found[0].lines), ("f: F", 1));
    }

    #[test]
    fn function_types_are_not_functions_and_methods_need_no_body() {
        let found = scan("type A = fn(u32) -> u32; trait B { fn c(&self) -> u32; }");
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), found[0].lines), ("c", 0));
    }

    #[test]
    fn restricted_visibility_is_not_public() {
        assert!(!scan("pub(crate) fn a() {}")[0].is_public);
        assert!(scan("pub const unsafe fn a() {}")[0].is_public);
    }

    #[test]
    fn unfinished_code_is_met_without_a_panic() {
        for text in ["fn", "fn a", "fn a<", "fn a(", "fn a()", "fn a() {", "fn a() -> [u8; "] {
            scan(text);
        }
    }
}
