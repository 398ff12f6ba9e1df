//! Index specifications: the options that are allowed, and the form in which they are kept.
//!
//! # Steps
//! 1. Each field is checked by itself: a wrong type, an unknown option.
//! 2. Key pattern, name and version are checked together with the options: some are for the index on `_id`
//!    alone, some not for it.
//! 3. The specification is kept as `{v, key, name, background, unique, hidden, sparse, …}`, in this order,
//!    which is the one that MongoDB lists; `unique`, `hidden` and TokuMX's `clustering` only where they are
//!    true.
//!
//! Options and kinds of index that Pando does not carry out yet are refused: an index that silently means
//! something else is worse than none.

use pando_collation::TextOrder;
use pando_document::{Document, Number, RawDocument, RawValue, Value, doc};
use pando_query::partial_index::{self, PARTIAL_FILTER};
use pando_query::shell_text::{document_text, value_text};
use pando_query::text_index::TextRefusal;
use pando_query::text_index::specification as text_index;
use pando_query::wildcard_index::WILDCARD_PROJECTION;

use super::clustered_index::{self, CLUSTERED};
use super::geo_specification::GeoRefusal;
use super::specification_text::with_version;
use super::wildcard_specification::WildcardRefusal;
use super::{geo_specification, index_key_pattern, storage_engine_options, wildcard_specification};
use crate::arguments::whole;
use crate::collation::parse as parse_collation;
use crate::{CommandError, ErrorCode, short_options};

/// The option of an index that says how its strings compare.
pub(super) const COLLATION: &str = "collation";
/// Options of text indexes; other kinds keep them as they are.
const OF_TEXT: [&str; 3] = ["default_language", "language_override", "textIndexVersion"];
/// The option that is not carried out yet.
const NOT_YET: &str = "columnstoreProjection";
/// The only fields of the specification of the index on `_id`.
const OF_ID_INDEX: [&str; 5] = ["key", "name", "ns", "v", "collation"];
/// The longest time that an index may let its documents live, in seconds.
const EXPIRY_MAX: i64 = i32::MAX as i64;

/// The treatment of unknown options.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UnknownOptions {
    /// The specification is refused.
    Refused,
    /// They are left out.
    LeftOut,
}

/// The words in front of a reason.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    /// The specification as it was given.
    Given,
    /// The specification with its version.
    WithVersion,
    /// None.
    Nothing,
}

/// Why a specification is refused.
struct Refusal {
    code: ErrorCode,
    reason: String,
    quoting: Quoting,
}

impl From<(ErrorCode, String)> for Refusal {
    fn from((code, reason): (ErrorCode, String)) -> Refusal {
        Refusal { code, reason, quoting: Quoting::Given }
    }
}

impl From<WildcardRefusal> for Refusal {
    fn from(refusal: WildcardRefusal) -> Refusal {
        let quoting = match refusal.shown {
            wildcard_specification::Shown::Given => Quoting::Given,
            wildcard_specification::Shown::WithVersion => Quoting::WithVersion,
        };
        Refusal { code: refusal.code, reason: refusal.reason, quoting }
    }
}

impl From<GeoRefusal> for Refusal {
    fn from(refusal: GeoRefusal) -> Refusal {
        let quoting = match refusal.shown {
            geo_specification::Shown::Given => Quoting::Given,
            geo_specification::Shown::WithVersion => Quoting::WithVersion,
            geo_specification::Shown::Nothing => Quoting::Nothing,
        };
        Refusal { code: refusal.code, reason: refusal.reason, quoting }
    }
}

impl Refusal {
    fn quoting(self, quoting: Quoting) -> Refusal {
        Refusal { quoting, ..self }
    }
}

/// Checks a specification and gives it the form in which it is kept. `engine` is the engine's name.
pub(super) fn normalise(
    given: &RawDocument,
    unknown: UnknownOptions,
    engine: &str,
) -> Result<Document, CommandError> {
    Reading { given, unknown, engine }.normalise().map_err(|refusal| {
        let shown = match refusal.quoting {
            Quoting::Given => document_text(given),
            Quoting::WithVersion => document_text(&with_version(given)),
            Quoting::Nothing => return CommandError::failed(refusal.code, refusal.reason),
        };
        let reason = format!("Error in specification {shown} :: caused by :: {}", refusal.reason);
        CommandError::failed(refusal.code, reason)
    })
}

/// Checks the specification of the index on `_id` that a new collection is to have.
pub(super) fn check_id_index(given: &RawDocument, engine: &str) -> Result<(), CommandError> {
    let reading = Reading { given, unknown: UnknownOptions::Refused, engine };
    let normalised = reading.normalise().and_then(|kept| {
        let Some(Value::Document(key)) = kept.get("key") else {
            unreachable!("a specification has a key when it is normalised")
        };
        reading.check_as_id_index(&key.to_raw())
    });
    normalised.map_err(|refusal| CommandError::failed(refusal.code, refusal.reason))
}

/// A specification that is being read.
struct Reading<'a> {
    given: &'a RawDocument,
    unknown: UnknownOptions,
    engine: &'a str,
}

impl Reading<'_> {
    fn normalise(&self) -> Result<Document, Refusal> {
        let mut kept = Kept::default();
        for field in self.given.iter() {
            let (name, value) = field.map_err(|error| (ErrorCode::InvalidBson, error.to_string()))?;
            self.take(name, value, &mut kept)?;
        }
        let key = kept.key.take().ok_or_else(|| missing("key"))?;
        let name = kept.name.take().ok_or_else(|| missing("name"))?;
        self.check_name(&name, &key)?;
        if matches!(self.given.get(CLUSTERED), Ok(Some(_))) {
            clustered_index::check_specification(self.given)?;
            return Ok(doc! { "v": 2, "key": &*key, "name": name, "unique": true, CLUSTERED: true });
        }
        if index_key_pattern::is_of_id(&key) {
            self.check_as_id_index(&key)?;
        }
        wildcard_specification::check(self.given, &key)?;
        geo_specification::check_kinds(&key)?;
        for (option, value) in geo_specification::kept(self.given, &key)?.iter() {
            kept.others.push(option, value.clone());
        }
        self.check_expiry(&key)?;
        check_partial(&kept)?;
        check_hashed(&key, &kept)?;
        self.check_prepared(&kept)?;
        if let Some(option) = kept.not_yet {
            let reason = format!("the index option '{option}' is not supported yet");
            return Err((ErrorCode::CommandNotSupported, reason).into());
        }
        let key = if self.is_text() { self.take_text(&key, &mut kept)? } else { key };
        let short = std::mem::take(&mut kept.short);
        storage_engine_options::add(&mut kept.in_order(key, name), &short, self.engine).map_err(of_command)
    }

    /// Takes one field over, or refuses it.
    fn take(&self, name: &str, value: RawValue<'_>, kept: &mut Kept) -> Result<(), Refusal> {
        match (name, value) {
            ("key", RawValue::Document(pattern)) => {
                index_key_pattern::check(pattern)?;
                kept.key = Some(pattern.to_owned());
            }
            ("key", other) => return Err(wrong_type("key", "an object", other)),
            ("name", RawValue::String(text)) => kept.name = Some(text.to_owned()),
            ("name", other) => return Err(wrong_type("name", "a string", other)),
            ("v", value) => kept.version = self.version(value)?,
            // MongoDB's message names the wrong field here.
            ("hidden", RawValue::Boolean(hidden)) => kept.hidden = hidden,
            ("hidden", other) => return Err(wrong_type("name", "a bool", other)),
            ("unique", value) => kept.unique = boolean(name, value)?,
            ("prepareUnique", value) => kept.prepared = boolean(name, value)?,
            ("clustering", value) => kept.clustering = boolean(name, value)?,
            ("sparse", value) => kept.sparse = Some(boolean(name, value)?),
            ("background", value) => kept.background = Some(boolean(name, value)?),
            ("dropDups", value) => boolean(name, value).map(drop)?,
            ("ns", _) => {}
            ("storageEngine", value) => {
                self.check_storage_engine(value).map_err(|refusal| refusal.quoting(Quoting::WithVersion))?;
                kept.others.push(name, value.to_owned());
            }
            (short_options::FAST_UPDATES, value) => {
                boolean(name, value).map(|_| short_options::log_fast_updates())?;
            }
            _ if short_options::is_short_option(name) => {
                let short = short_options::short_option(name, value, self.engine);
                let (setting, value) = short.map_err(of_command)?;
                kept.short.push(setting, value);
            }
            ("collation", RawValue::Document(collation)) if collation.is_empty() => {
                let reason = "The field 'collation' cannot be an empty object.".to_owned();
                return Err((ErrorCode::BadValue, reason).into());
            }
            ("collation", RawValue::Document(collation)) => take_collation(collation, kept)?,
            (PARTIAL_FILTER, RawValue::Document(filter)) => take_filter(filter, kept)?,
            ("collation" | PARTIAL_FILTER, other) => {
                return Err(wrong_type(name, "an object", other));
            }
            ("weights", value) => self.check_weights(value)?,
            // Checked together with the key.
            (WILDCARD_PROJECTION, value) => kept.others.push(name, value.to_owned()),
            ("expireAfterSeconds", value) => kept.expiry = Some(kept_expiry(value)),
            _ if OF_TEXT.contains(&name) => self.take_text_option(name, value, kept)?,
            (NOT_YET, _) => kept.not_yet = Some(name.to_owned()),
            // Checked with the whole specification.
            (CLUSTERED, _) => {}
            _ if geo_specification::is_option(name) => geo_specification::check_type(name, value)?,
            _ if self.unknown == UnknownOptions::LeftOut => {}
            _ => {
                let given = document_text(self.given);
                let reason = format!(
                    "The field '{name}' is not valid for an index specification. Specification: {given}"
                );
                return Err((ErrorCode::InvalidIndexSpecificationOption, reason).into());
            }
        }
        Ok(())
    }

    /// Checks the form of weights; which there can be is checked together with the key.
    fn check_weights(&self, value: RawValue<'_>) -> Result<(), Refusal> {
        match value {
            RawValue::String(_) | RawValue::Document(_) | RawValue::Array(_) if self.is_text() => Ok(()),
            RawValue::String(_) | RawValue::Document(_) | RawValue::Array(_) => {
                let given = document_text(self.given);
                let reason = format!(
                    "Invalid index specification {given}; the field 'weights' can only be specified with text indexes"
                );
                Err((ErrorCode::CannotCreateIndex, reason).into())
            }
            other => Err(wrong_type("weights", "an object", other)),
        }
    }

    /// Checks an option of text indexes. Other indexes keep it as it is.
    fn take_text_option(&self, name: &str, value: RawValue<'_>, kept: &mut Kept) -> Result<(), Refusal> {
        match name {
            "textIndexVersion" if !value.is_number() => Err(wrong_type(name, "a number", value)),
            "default_language" | "language_override" if value.as_str().is_none() => {
                Err(wrong_type(name, "a string", value))
            }
            _ => {
                if !self.is_text() {
                    kept.others.push(name, value.to_owned());
                }
                Ok(())
            }
        }
    }

    /// Takes the options of a text index; gives the key pattern in its kept form.
    fn take_text(
        &self,
        key: &RawDocument,
        kept: &mut Kept,
    ) -> Result<pando_document::RawDocumentBuf, Refusal> {
        let with_version = |reason: String| {
            Refusal::from((ErrorCode::CannotCreateIndex, reason)).quoting(Quoting::WithVersion)
        };
        let (key, options) = text_index::kept_form(self.given, key).map_err(|refusal| match refusal {
            TextRefusal::Cannot(reason) => with_version(reason),
            TextRefusal::NotYet(reason) => (ErrorCode::CommandNotSupported, reason).into(),
        })?;
        for (name, value) in options.iter() {
            kept.others.push(name, value.clone());
        }
        Ok(key.to_raw())
    }

    /// Whether the key pattern is that of a text index.
    fn is_text(&self) -> bool {
        matches!(self.given.get("key"), Ok(Some(RawValue::Document(key))) if text_index::is_text(key))
    }

    /// Refuses an index that is unique and is to become it.
    fn check_prepared(&self, kept: &Kept) -> Result<(), Refusal> {
        if !(kept.unique && kept.prepared) {
            return Ok(());
        }
        let given = document_text(self.given);
        let reason = format!(
            "Invalid index specification {given}; cannot create an index with the 'unique' option and the 'prepareUnique' option"
        );
        Err((ErrorCode::CannotCreateIndex, reason).into())
    }

    fn version(&self, value: RawValue<'_>) -> Result<i32, Refusal> {
        if !value.is_number() {
            return Err(wrong_type("v", "a number", value));
        }
        let exact = value.as_i64_exact().and_then(|number| i32::try_from(number).ok());
        match exact {
            Some(version @ (1 | 2)) => Ok(version),
            Some(version) => {
                let given = document_text(self.given);
                let reason =
                    format!("Invalid index specification {given}; cannot create an index with v={version}");
                Err((ErrorCode::CannotCreateIndex, reason).into())
            }
            None => {
                let shown = value_text(value);
                let reason =
                    format!("Index version must be representable as a 32-bit integer, but got {shown}");
                Err((ErrorCode::BadValue, reason).into())
            }
        }
    }

    fn check_storage_engine(&self, value: RawValue<'_>) -> Result<(), Refusal> {
        let refused = |reason: &str| Err((ErrorCode::CannotCreateIndex, reason.to_owned()).into());
        match value {
            RawValue::Document(options) if options.is_empty() => refused(
                "Empty \"storageEngine\" options are invalid. Please remove the field or include valid options.",
            ),
            RawValue::Document(options) => Ok(storage_engine_options::check(options, self.engine)?),
            _ => refused("\"storageEngine\" options must be a document if present"),
        }
    }

    fn check_name(&self, name: &str, key: &RawDocument) -> Result<(), Refusal> {
        let refused = |reason: &str, quoting| {
            Err(Refusal::from((ErrorCode::CannotCreateIndex, reason.to_owned())).quoting(quoting))
        };
        let bad_value =
            |reason: String| Err(Refusal::from((ErrorCode::BadValue, reason)).quoting(Quoting::Nothing));
        match name {
            "" => refused("index name cannot be empty", Quoting::WithVersion),
            "*" => bad_value("The index name '*' is not valid.".to_owned()),
            "_id_" if !index_key_pattern::is_of_id(key) => {
                let key = document_text(key);
                bad_value(format!(
                    "The index name '_id_' is reserved for the _id index, which must have key pattern {{_id: 1}}, found key: {key}"
                ))
            }
            name if name.contains('\0') => {
                refused("index name cannot contain NUL bytes", Quoting::WithVersion)
            }
            _ => Ok(()),
        }
    }

    /// Checks what is meant to be the index on `_id`, which is there anyway.
    fn check_as_id_index(&self, key: &RawDocument) -> Result<(), Refusal> {
        let refused = |code, reason: String| Err(Refusal::from((code, reason)).quoting(Quoting::Nothing));
        let ascending = pando_document::doc! { "_id": 1 }.to_raw();
        if !index_key_pattern::same(key, &ascending) {
            let key = document_text(key);
            return refused(
                ErrorCode::BadValue,
                format!("The field 'key' for an _id index must be {{_id: 1}}, but got {key}"),
            );
        }
        for field in self.given.iter() {
            let (name, _) = field.map_err(|error| (ErrorCode::InvalidBson, error.to_string()))?;
            if !OF_ID_INDEX.contains(&name) {
                let given = document_text(&with_version(self.given));
                return refused(
                    ErrorCode::InvalidIndexSpecificationOption,
                    format!(
                        "The field '{name}' is not valid for an _id index specification. Specification: {given}"
                    ),
                );
            }
        }
        Ok(())
    }

    /// Checks the time that documents are to live.
    fn check_expiry(&self, key: &RawDocument) -> Result<(), Refusal> {
        let Ok(Some(value)) = self.given.get("expireAfterSeconds") else { return Ok(()) };
        let reason = if !value.is_number() {
            let found = value.element_type().alias();
            format!(
                "TTL index 'expireAfterSeconds' option must be numeric, but received a type of '{found}'."
            )
        } else if whole(value) < 0 {
            "TTL index 'expireAfterSeconds' option cannot be less than 0.".to_owned()
        } else if whole(value) > EXPIRY_MAX {
            "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a lower number."
                .to_owned()
        } else if key.iter().count() > 1 {
            "TTL indexes are single-field indexes, compound indexes do not support TTL.".to_owned()
        } else {
            return Ok(());
        };
        let reason = format!("{reason} Index spec: {}", document_text(self.given));
        Err(Refusal::from((ErrorCode::CannotCreateIndex, reason)).quoting(Quoting::Nothing))
    }
}

/// The parts of a specification that are kept.
struct Kept {
    version: i32,
    key: Option<pando_document::RawDocumentBuf>,
    name: Option<String>,
    background: Option<bool>,
    unique: bool,
    prepared: bool,
    hidden: bool,
    sparse: Option<bool>,
    /// Seconds.
    expiry: Option<i32>,
    /// The filter of a partial index.
    partial: Option<pando_document::RawDocumentBuf>,
    /// Why an index cannot have that filter.
    refused_filter: Option<String>,
    /// The completed collation.
    collation: Option<pando_document::RawDocumentBuf>,
    /// TokuMX's option: entries hold the documents.
    clustering: bool,
    others: Document,
    /// Settings of the engine in the words of TokuMX.
    short: Document,
    /// An option that is not carried out yet.
    not_yet: Option<String>,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept {
            version: 2,
            key: None,
            name: None,
            background: None,
            unique: false,
            prepared: false,
            hidden: false,
            sparse: None,
            expiry: None,
            partial: None,
            refused_filter: None,
            collation: None,
            clustering: false,
            others: Document::new(),
            short: Document::new(),
            not_yet: None,
        }
    }
}

impl Kept {
    fn in_order(self, key: pando_document::RawDocumentBuf, name: String) -> Document {
        let mut document = Document::new();
        document.push("v", Value::Int32(self.version));
        document.push("key", RawValue::Document(&key).to_owned());
        document.push("name", Value::from(name.as_str()));
        let push_flags = |document: &mut Document, flags: &[(&str, Option<bool>)]| {
            for (option, value) in flags {
                if let Some(value) = value {
                    document.push(*option, Value::Boolean(*value));
                }
            }
        };
        let early = [
            ("background", self.background),
            ("unique", self.unique.then_some(true)),
            ("hidden", self.hidden.then_some(true)),
            ("prepareUnique", self.prepared.then_some(true)),
        ];
        push_flags(&mut document, &early);
        if let Some(filter) = &self.partial {
            document.push(PARTIAL_FILTER, RawValue::Document(filter).to_owned());
        }
        let late = [("sparse", self.sparse), ("clustering", self.clustering.then_some(true))];
        push_flags(&mut document, &late);
        if let Some(seconds) = self.expiry {
            document.push("expireAfterSeconds", Value::Int32(seconds));
        }
        for (option, value) in self.others.iter() {
            document.push(option, value.clone());
        }
        if let Some(collation) = &self.collation {
            document.push(COLLATION, RawValue::Document(collation).to_owned());
        }
        document
    }
}

/// Refuses a hashed index that there cannot be.
fn check_hashed(key: &RawDocument, kept: &Kept) -> Result<(), Refusal> {
    let refused = |code, reason: String| {
        Err(Refusal::from((ErrorCode::Location(code), reason)).quoting(Quoting::Nothing))
    };
    match index_key_pattern::hashed_fields(key) {
        0 => Ok(()),
        1 if kept.unique => refused(
            16_764,
            "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.".to_owned(),
        ),
        1 => Ok(()),
        number => refused(
            31_303,
            format!(
                "A maximum of one index field is allowed to be hashed but found {number} for 'key' {}",
                document_text(key)
            ),
        ),
    }
}

/// Takes the filter of a partial index. Whether an index can have it is told together with the name.
fn take_filter(filter: &RawDocument, kept: &mut Kept) -> Result<(), Refusal> {
    let parsed =
        partial_index::parse(filter, &TextOrder::SIMPLE).map_err(|error| of_command(error.into()))?;
    kept.refused_filter = partial_index::check(&parsed, filter).err();
    kept.partial = Some(filter.to_owned());
    Ok(())
}

/// Refuses a filter that an index cannot have, alone or together with other options.
fn check_partial(kept: &Kept) -> Result<(), Refusal> {
    let refused = |reason: &str| {
        Err(Refusal::from((ErrorCode::CannotCreateIndex, reason.to_owned())).quoting(Quoting::WithVersion))
    };
    match (&kept.partial, &kept.refused_filter) {
        (Some(_), _) if kept.sparse == Some(true) => {
            refused("cannot mix \"partialFilterExpression\" and \"sparse\" options")
        }
        (Some(_), Some(reason)) => refused(reason),
        _ => Ok(()),
    }
}

/// Takes the collation. The simple one is kept as well: it overrides that of the collection.
fn take_collation(collation: &RawDocument, kept: &mut Kept) -> Result<(), Refusal> {
    let order = parse_collation(collation, "collation");
    let order = order.map_err(|error| of_command(error).quoting(Quoting::Nothing))?;
    let simple = pando_document::doc! { "locale": "simple" }.to_raw();
    kept.collation = Some(order.document().cloned().unwrap_or(simple));
    Ok(())
}

/// The refusal of an option that other commands have, too.
fn of_command(error: CommandError) -> Refusal {
    match error {
        CommandError::Failed(failure) => (failure.code, failure.message).into(),
        CommandError::WouldBlock(_) => (ErrorCode::InternalError, "an option waits".to_owned()).into(),
    }
}

fn boolean(name: &str, value: RawValue<'_>) -> Result<bool, Refusal> {
    if value.is_number() || value.as_bool().is_some() {
        return Ok(value.to_bool());
    }
    let shown = value_text(value);
    // The missing quotation mark is MongoDB's.
    let reason = format!("The field '{name} has value {name}: {shown}, which is not convertible to bool");
    Err((ErrorCode::TypeMismatch, reason).into())
}

/// The time that documents are to live, in seconds, as it is kept. A number that is none means forever.
fn kept_expiry(value: RawValue<'_>) -> i32 {
    match Number::from_value(value) {
        Some(number) if number.is_nan() => i32::MAX,
        _ => i32::try_from(whole(value)).unwrap_or(i32::MAX),
    }
}

fn wrong_type(field: &str, wanted: &str, value: RawValue<'_>) -> Refusal {
    let reason = format!("The field '{field}' must be {wanted}, but got {}", value.element_type().alias());
    (ErrorCode::TypeMismatch, reason).into()
}

fn missing(field: &str) -> Refusal {
    let reason = format!("The '{field}' field is a required property of an index specification");
    (ErrorCode::FailedToParse, reason).into()
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    fn code_of(given: &Document) -> i32 {
        match normalise(&given.to_raw(), UnknownOptions::Refused, "betree") {
            Err(CommandError::Failed(failure)) => failure.code.code(),
            other => panic!("not refused: {other:?}"),
        }
    }

    #[test]
    fn a_specification_is_kept_in_the_order_in_which_it_is_listed() {
        let given = doc! { "sparse": 1, "hidden": true, "background": false, "unique": true, "name": "x", "key": { "x": 1 } };
        let kept = normalise(&given.to_raw(), UnknownOptions::Refused, "betree").unwrap();
        let wanted = doc! {
            "v": 2, "key": { "x": 1 }, "name": "x", "background": false, "unique": true, "hidden": true, "sparse": true
        };
        assert_eq!(kept, wanted);
    }

    #[test]
    fn wrong_options_and_options_that_come_later_have_codes_of_their_own() {
        assert_eq!(code_of(&doc! { "key": { "x": 1 } }), 9);
        assert_eq!(code_of(&doc! { "key": { "x": 1 }, "name": "x", "bogus": 1 }), 197);
        assert_eq!(code_of(&doc! { "key": { "x": 1 }, "name": "x", "unique": "x" }), 14);
        assert_eq!(code_of(&doc! { "key": { "x": 1 }, "name": "_id_" }), 2);
        assert_eq!(code_of(&doc! { "key": { "_id": 1 }, "name": "_id_", "unique": true }), 197);
        assert_eq!(code_of(&doc! { "key": { "x": 1 }, "name": "x", "expireAfterSeconds": -1 }), 67);
        assert_eq!(code_of(&doc! { "key": { "x": 1, "y": 1 }, "name": "x", "expireAfterSeconds": 5 }), 67);
        assert!(
            normalise(
                &doc! { "key": { "x": 1 }, "name": "x", "bogus": 1 }.to_raw(),
                UnknownOptions::LeftOut,
                "betree"
            )
            .is_ok()
        );
    }
}
