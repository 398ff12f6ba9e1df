//! The tokens of one source file: the modules that it declares, the paths that it writes, and the re-exports
//! of its root.
//!
//! 1. An item under an attribute `#[cfg(…)]` that is false in a product is left out: `test`, the feature
//!    `fuzzing`, and combinations of them by `all`, `any` and `not`. A name that this does not know may be
//!    either.
//! 2. `mod x;` is a child in a file of its own; the tokens of `mod x { … }` count for the child.
//! 3. A path that begins with `crate::` or `super::` is noted with its first name, each member of a group
//!    (`crate::{a, b::C}`) by itself. Paths in macro calls and attributes count too; text and comments do
//!    not.
//!
//! Not here: which top module a name belongs to ([`super::module_uses`]).

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A path of a source file that leaves its module.
#[derive(Debug, PartialEq, Eq)]
pub struct Path {
    /// The line, from 1.
    pub line: usize,
    /// The module in which it stands, from the crate's root down.
    pub module: Vec<String>,
    /// How many modules it goes up from there.
    pub ups: Ups,
    /// The name that follows: a module, an item, or `*`.
    pub name: String,
}

/// How far a path goes up before its first name.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Ups {
    /// To the crate's root.
    Root,
    /// By this many modules.
    Modules(usize),
}

/// A module in a file of its own.
#[derive(Debug, PartialEq, Eq)]
pub struct Child {
    /// Its path from the crate's root.
    pub module: Vec<String>,
    /// The file that `#[path = "…"]` names, relative to the folder of the declaring file.
    pub file: Option<String>,
}

/// A `use` in the crate's root, for the names that it brings there.
#[derive(Debug, PartialEq, Eq)]
pub struct RootUse {
    /// The first name of the path.
    pub first: String,
    /// The name that the root has then; `*` for all.
    pub name: String,
}

/// All that a file's tokens say.
#[derive(Debug, Default)]
pub struct FileTokens {
    /// The modules that it declares, inline ones too.
    pub modules: Vec<Vec<String>>,
    /// Those of them that have files.
    pub children: Vec<Child>,
    /// The paths that leave a module.
    pub paths: Vec<Path>,
    /// The macros that `#[macro_export]` puts into the crate's root, each with the module in which it stands.
    pub exported_macros: Vec<(Vec<String>, String)>,
    /// The items that the crate's root defines itself; empty for other files.
    pub root_items: Vec<String>,
    /// The uses in the crate's root; empty for other files.
    pub root_uses: Vec<RootUse>,
}

/// Reads the tokens of a file that holds this module.
pub fn read(text: &str, module: &[String]) -> Result<FileTokens, proc_macro2::LexError> {
    let stream: TokenStream = text.parse()?;
    let mut reader = Reader { found: FileTokens::default(), module: module.to_vec() };
    reader.stream(stream);
    Ok(reader.found)
}

/// Keywords of items that have a name of their own.
const NAMED_ITEMS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];
/// Words before the keyword of an item.
const ITEM_WORDS: [&str; 9] =
    ["pub", "unsafe", "async", "extern", "mod", "use", "impl", "macro_rules", "let"];

struct Reader {
    found: FileTokens,
    /// Where the reader is.
    module: Vec<String>,
}

impl Reader {
    fn stream(&mut self, stream: TokenStream) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut at = 0;
        let mut attributes: Vec<Group> = Vec::new();
        while at < tokens.len() {
            if let Some((group, next, is_inner)) = attribute(&tokens, at) {
                if is_excluded(&group) {
                    at = if is_inner { tokens.len() } else { end_of_item(&tokens, next) };
                    attributes.clear();
                    continue;
                }
                self.stream(group.stream());
                attributes.push(group);
                at = next;
                continue;
            }
            at = self.token(&tokens, at, &attributes);
            // Attributes hold up to the keyword of their item, past words such as `pub`.
            let still_before =
                tokens.get(at - 1).is_some_and(|token| is_word(token, "pub") || is_parenthesis(token));
            if !still_before {
                attributes.clear();
            }
        }
    }

    /// Reads what begins at a token, and answers where to go on.
    fn token(&mut self, tokens: &[TokenTree], at: usize, attributes: &[Group]) -> usize {
        match &tokens[at] {
            TokenTree::Group(group) => self.stream(group.stream()),
            TokenTree::Ident(ident) => match ident.to_string().as_str() {
                "mod" => return self.module(tokens, at, attributes),
                "macro_rules" => self.macro_rules(tokens, at, attributes),
                "use" if self.module.is_empty() => self.root_use(tokens, at),
                "crate" if follows_colons(tokens, at) => self.path(tokens, at + 3, Ups::Root),
                "super" if follows_colons(tokens, at) => return self.super_path(tokens, at),
                keyword if self.module.is_empty() && NAMED_ITEMS.contains(&keyword) => {
                    self.found.root_items.extend(tokens.get(at + 1).and_then(word));
                }
                _ => {}
            },
            _ => {}
        }
        at + 1
    }

    fn module(&mut self, tokens: &[TokenTree], at: usize, attributes: &[Group]) -> usize {
        let Some(name) = tokens.get(at + 1).and_then(word) else { return at + 1 };
        let mut module = self.module.clone();
        module.push(name);
        match tokens.get(at + 2) {
            Some(TokenTree::Punct(punct)) if punct.as_char() == ';' => {
                let file = attributes.iter().find_map(path_attribute);
                self.found.children.push(Child { module: module.clone(), file });
            }
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let outside = std::mem::replace(&mut self.module, module.clone());
                self.stream(group.stream());
                self.module = outside;
            }
            _ => return at + 1,
        }
        self.found.modules.push(module);
        at + 3
    }

    fn macro_rules(&mut self, tokens: &[TokenTree], at: usize, attributes: &[Group]) {
        let is_exported = attributes.iter().any(|group| first_word(group).as_deref() == Some("macro_export"));
        if let Some(name) = tokens.get(at + 2).and_then(word).filter(|_| is_exported) {
            self.found.exported_macros.push((self.module.clone(), name));
        }
    }

    fn root_use(&mut self, tokens: &[TokenTree], at: usize) {
        let length = tokens[at..].iter().take_while(|token| !is_punct(token, ';')).count();
        use_tree(&tokens[at + 1..at + length], &mut Vec::new(), &mut self.found.root_uses);
    }

    /// `super::super::name`: goes up once for each `super`.
    fn super_path(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let mut last = at;
        let mut ups = 1;
        while tokens.get(last + 3).is_some_and(|token| is_word(token, "super"))
            && follows_colons(tokens, last)
        {
            last += 3;
            ups += 1;
        }
        if follows_colons(tokens, last) {
            self.path(tokens, last + 3, Ups::Modules(ups));
        }
        last + 1
    }

    /// Notes the name or the group of names at `to`.
    fn path(&mut self, tokens: &[TokenTree], to: usize, ups: Ups) {
        let Some(target) = tokens.get(to) else { return };
        match target {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let members: Vec<TokenTree> = group.stream().into_iter().collect();
                for member in members.split(|token| is_punct(token, ',')) {
                    if let Some(first) = member.first() {
                        self.note(first, ups);
                    }
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => self.note(target, ups),
            _ => {}
        }
    }

    fn note(&mut self, target: &TokenTree, ups: Ups) {
        let name = target.to_string();
        if name == "self" {
            return;
        }
        let line = target.span().start().line;
        self.found.paths.push(Path { line, module: self.module.clone(), ups, name });
    }
}

/// The names that a tree of uses brings into the root, with the first name of the path of each.
fn use_tree(tokens: &[TokenTree], before: &mut Vec<String>, uses: &mut Vec<RootUse>) {
    let length = before.len();
    let mut name = None;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => {
                let members: Vec<TokenTree> = group.stream().into_iter().collect();
                for member in members.split(|token| is_punct(token, ',')) {
                    use_tree(member, before, uses);
                }
                name = None;
            }
            TokenTree::Ident(ident) if *ident == "as" => {
                name = tokens.get(at + 1).and_then(word);
                break;
            }
            TokenTree::Ident(ident) if *ident == "crate" => {}
            // `a::{self, B}` brings `a`; `self::a` begins in the root.
            TokenTree::Ident(ident) if *ident == "self" => name = before.last().cloned(),
            TokenTree::Ident(ident) => {
                before.push(ident.to_string());
                name = Some(ident.to_string());
            }
            TokenTree::Punct(punct) if punct.as_char() == '*' => name = Some("*".to_owned()),
            _ => {}
        }
    }
    if let (Some(first), Some(name)) = (before.first(), name) {
        uses.push(RootUse { first: first.clone(), name });
    }
    before.truncate(length);
}

/// The attribute that begins here: its group, the place after it, and whether it is an inner one.
fn attribute(tokens: &[TokenTree], at: usize) -> Option<(Group, usize, bool)> {
    if !is_punct(&tokens[at], '#') {
        return None;
    }
    let is_inner = tokens.get(at + 1).is_some_and(|token| is_punct(token, '!'));
    let group_at = at + 1 + usize::from(is_inner);
    match tokens.get(group_at) {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => {
            Some((group.clone(), group_at + 1, is_inner))
        }
        _ => None,
    }
}

/// The place after the item, field or arm that begins here.
fn end_of_item(tokens: &[TokenTree], mut at: usize) -> usize {
    while let Some((_, next, _)) = tokens.get(at).and_then(|_| attribute(tokens, at)) {
        at = next;
    }
    let is_item = tokens
        .get(at)
        .and_then(word)
        .is_some_and(|word| NAMED_ITEMS.contains(&word.as_str()) || ITEM_WORDS.contains(&word.as_str()));
    while at < tokens.len() {
        let is_body = matches!(&tokens[at], TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
            && !(at > 0 && is_punct(&tokens[at - 1], ':'));
        let is_end = is_body || is_punct(&tokens[at], ';') || (!is_item && is_punct(&tokens[at], ','));
        at += 1;
        if is_end {
            break;
        }
    }
    at
}

/// Whether the attribute is a `cfg` that no product fulfils.
fn is_excluded(attribute: &Group) -> bool {
    let tokens: Vec<TokenTree> = attribute.stream().into_iter().collect();
    match tokens.as_slice() {
        [TokenTree::Ident(name), TokenTree::Group(group)] if *name == "cfg" => {
            let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
            predicate(&tokens) == Some(false)
        }
        _ => false,
    }
}

/// The value of a predicate in a product; `None` if it may be either.
fn predicate(tokens: &[TokenTree]) -> Option<bool> {
    let arguments = |group: &Group| -> Vec<Option<bool>> {
        let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
        let parts = tokens.split(|token| is_punct(token, ','));
        parts.filter(|part| !part.is_empty()).map(predicate).collect()
    };
    match tokens {
        [TokenTree::Ident(name)] if *name == "test" => Some(false),
        [TokenTree::Ident(name), _, TokenTree::Literal(value)]
            if *name == "feature" && value.to_string() == "\"fuzzing\"" =>
        {
            Some(false)
        }
        [TokenTree::Ident(name), TokenTree::Group(group)] => {
            let values = arguments(group);
            match name.to_string().as_str() {
                "not" => values.first().copied().flatten().map(|value| !value),
                "all" if values.contains(&Some(false)) => Some(false),
                "any" if values.contains(&Some(true)) => Some(true),
                "any" if values.iter().all(|value| *value == Some(false)) => Some(false),
                _ => None,
            }
        }
        _ => None,
    }
}

fn path_attribute(attribute: &Group) -> Option<String> {
    let tokens: Vec<TokenTree> = attribute.stream().into_iter().collect();
    match tokens.as_slice() {
        [TokenTree::Ident(name), _, TokenTree::Literal(value)] if *name == "path" => {
            Some(value.to_string().trim_matches('"').to_owned())
        }
        _ => None,
    }
}

fn first_word(group: &Group) -> Option<String> {
    group.stream().into_iter().next().as_ref().and_then(word)
}

fn word(token: &TokenTree) -> Option<String> {
    match token {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        _ => None,
    }
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if *ident == word)
}

fn is_parenthesis(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis)
}

fn is_punct(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == character)
}

/// Whether `::` follows the token.
fn follows_colons(tokens: &[TokenTree], at: usize) -> bool {
    [at + 1, at + 2].iter().all(|at| tokens.get(*at).is_some_and(|token| is_punct(token, ':')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str, module: &[&str]) -> FileTokens {
        let module: Vec<String> = module.iter().map(|name| (*name).to_owned()).collect();
        read(text, &module).expect("the fixture is Rust")
    }

    /// The paths as text: lines, module, ups and name.
    fn paths(text: &str) -> Vec<String> {
        let found = tokens(text, &["a"]).paths.into_iter();
        let ups = |ups| match ups {
            Ups::Root => "crate".to_owned(),
            Ups::Modules(ups) => format!("super*{ups}"),
        };
        found
            .map(|path| format!("{} {} {} {}", path.line, path.module.join("::"), ups(path.ups), path.name))
            .collect()
    }

    #[test]
    fn each_member_of_a_group_is_a_path() {
        let found = paths("use crate::{b::{C, d}, e as f,\n self};\nfn g() { crate::h::i() }\n");
        assert_eq!(found, ["1 a crate b", "1 a crate e", "3 a crate h"]);
    }

    #[test]
    fn chains_of_super_count_their_length_from_inline_modules_too() {
        let found = paths("use super::b;\nmod c {\n use super::super::d::E;\n use super::{F, g};\n}\n");
        assert_eq!(found, ["1 a super*1 b", "3 a::c super*2 d", "4 a::c super*1 F", "4 a::c super*1 g"]);
    }

    #[test]
    fn paths_in_macro_calls_and_attributes_count_and_those_in_text_do_not() {
        let found = paths(
            "fn f() { vec![crate::b::C, \"crate::d\"]; } // crate::e\n#[derive(crate::g::H)] struct I;\n",
        );
        assert_eq!(found, ["1 a crate b", "2 a crate g"]);
    }

    #[test]
    fn visibility_is_no_path() {
        assert!(paths("pub(crate) fn f() {} pub(super) struct G;").is_empty());
    }

    #[test]
    fn items_of_tests_and_fuzzing_are_left_out() {
        for attribute in [
            "#[cfg(test)]",
            "#[cfg(all(test, shuttle))]",
            "#[cfg(feature = \"fuzzing\")]",
            "#[cfg(any(test, feature = \"fuzzing\"))]",
            "#[cfg(not(not(test)))]",
        ] {
            for item in [
                "mod t { use crate::b; }",
                "fn f<A, B>() { crate::b() }",
                "use crate::{b, d};",
                "pub(crate) fn f() { crate::b() }",
            ] {
                let text = format!("{attribute}\n#[inline]\n{item}\nuse crate::c;\n");
                assert_eq!(paths(&text), ["4 a crate c"], "{text}");
            }
            let field = format!("struct S {{ {attribute} t: crate::b::T, u: crate::c::U }}");
            assert_eq!(paths(&field), ["1 a crate c"]);
        }
        assert!(paths("#![cfg(test)]\nuse crate::b;").is_empty());
    }

    #[test]
    fn items_that_may_be_in_a_product_count() {
        for attribute in
            ["#[cfg(not(test))]", "#[cfg(shuttle)]", "#[cfg(any(test, unix))]", "#[cfg(feature = \"x\")]"]
        {
            assert_eq!(paths(&format!("{attribute} use crate::b;")), ["1 a crate b"], "{attribute}");
        }
    }

    #[test]
    fn modules_come_with_their_files() {
        let found = tokens(
            "mod b;\n#[path = \"x/y.rs\"]\npub(crate) mod c;\nmod d { mod e; }\n#[cfg(test)]\nmod tests;\n",
            &[],
        );
        let children: Vec<_> =
            found.children.iter().map(|child| (child.module.join("::"), child.file.as_deref())).collect();
        assert_eq!(children, [("b".into(), None), ("c".into(), Some("x/y.rs")), ("d::e".into(), None)]);
        assert_eq!(found.modules.len(), 4);
    }

    #[test]
    fn the_roots_uses_bring_names() {
        let text =
            "pub use engine::{Betree, parts::{self, Tree as T}};\nuse self::log::*;\nuse crate::error::E;\n";
        let found = tokens(text, &[]).root_uses;
        let found: Vec<_> = found.iter().map(|found| format!("{} {}", found.first, found.name)).collect();
        assert_eq!(found, ["engine Betree", "engine parts", "engine T", "log *", "error E"]);
    }

    #[test]
    fn the_roots_own_items_and_exported_macros_are_known() {
        let found = tokens(
            "pub fn f() {}\nstruct S;\nmod m { #[macro_export] macro_rules! doc { () => {} } fn g() {} }",
            &[],
        );
        assert_eq!(found.root_items, ["f", "S"]);
        assert_eq!(found.exported_macros, [(vec!["m".to_owned()], "doc".to_owned())]);
    }
}
