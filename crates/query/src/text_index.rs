//! Text indexes: the words of documents with their scores, and searches for words.
//!
//! # Parts
//! - [`specification`]: the fields with their weights, and the language.
//! - `strings`: the strings of a document that an index has, each with its language and weight.
//! - `tokenizer`: the words of a string; `language` has stop words and stemmers, `folding` case and
//!   diacritics.
//! - `scores`: the terms of a document with their scores. `keys`: the keys that stand for them.
//! - [`search`]: a search, and whether a document passes it.
//!
//! # Score (measured on MongoDB 6.0)
//! Of a term in one string: `weight * frequency * (0.5 * count / words + 0.5) * boost`.
//! - `count` is how often the term stands there, `words` the number of words that are no stop words.
//! - `frequency` is 1 + 1/2 + 1/4 + …, a summand for each occurrence.
//! - `boost` is 1.1 if the string is the term and nothing else, in whatever case; else 1.
//!
//! The scores of all strings of a document add up, and so do those of all terms of a search.
//!
//! # Not here
//! Which query may search (`plan::text`), and the search in the entries (`execute::text_source`).

mod folding;
mod keys;
mod language;
mod phrase;
mod scores;
pub mod search;
pub mod specification;
mod strings;
mod tokenizer;

pub(crate) use self::keys::TextKeys;
pub use self::language::Language;
pub(crate) use self::language::check_built;
pub use self::search::{SearchArguments, TextSearch};
pub use self::specification::{TextRefusal, TextSpecification};
pub use self::tokenizer::Sensitivity;
