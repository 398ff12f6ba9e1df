//! The collation of a statement: the one that its request gives, or that of its collection.
//!
//! # Rules
//! - An empty document counts as none. `{locale: "simple"}` overrides the collation of the collection.
//! - A view has the collation that it was created with, or the simple one; a request may give no other.
//! - Where a collection does not exist, there is no collation to take over.

use std::borrow::Cow;

use pando_catalog::Collection;
use pando_collation::{SpecificationFault, TextOrder};
use pando_document::RawDocument;
use pando_query::expression::ParseScope;
use pando_query::shell_text::document_text;

use crate::{CommandError, ErrorCode};

/// See the module's head.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum CollationChoice<'a> {
    /// That of the collection.
    #[default]
    Inherited,
    /// That of this specification.
    Given(&'a RawDocument),
    /// That of the scope: of a pipeline whose documents a statement writes.
    OfScope,
}

impl<'a> CollationChoice<'a> {
    /// The choice of a request with this `collation`.
    pub fn of(collation: Option<&'a RawDocument>) -> CollationChoice<'a> {
        match collation {
            Some(collation) if !collation.is_empty() => CollationChoice::Given(collation),
            _ => CollationChoice::Inherited,
        }
    }

    /// The order that the request gives.
    ///
    /// # Errors
    /// In MongoDB's words: a specification that is no sound one, or whose rules are not there.
    pub fn given(self) -> Result<Option<TextOrder>, CommandError> {
        match self {
            CollationChoice::Given(collation) => parse(collation, "collation").map(Some),
            CollationChoice::Inherited | CollationChoice::OfScope => Ok(None),
        }
    }

    /// The scope of a statement on a collection. Without a collation it is the one of the request.
    pub fn scope_in<'s>(
        self,
        scope: &'s ParseScope,
        collection: Option<&Collection>,
    ) -> Result<Cow<'s, ParseScope>, CommandError> {
        match self {
            CollationChoice::OfScope => Ok(Cow::Borrowed(scope)),
            CollationChoice::Given(collation) => {
                Ok(Cow::Owned(scope.clone().collated_by(&parse(collation, "collation")?)))
            }
            CollationChoice::Inherited => Ok(match collection.map(Collection::text_order) {
                Some(order) if !order.is_simple() => Cow::Owned(scope.clone().collated_by(order)),
                _ => Cow::Borrowed(scope),
            }),
        }
    }
}

/// The order of a specification; `path` is the field's name in messages.
pub(crate) fn parse(collation: &RawDocument, path: &str) -> Result<TextOrder, CommandError> {
    TextOrder::parse(collation, path).map_err(|fault| refused(&fault, collation))
}

/// A fault of a specification in MongoDB's words and codes.
fn refused(fault: &SpecificationFault, collation: &RawDocument) -> CommandError {
    use SpecificationFault as F;
    let code = match fault {
        F::MissingLocale(_) => ErrorCode::IdlFailedToParse,
        F::UnknownField(_) => ErrorCode::IdlUnknownField,
        F::DuplicateField(_) => ErrorCode::Location(40_413),
        F::WrongType { .. } => ErrorCode::TypeMismatch,
        F::StrengthOutOfRange { .. } => ErrorCode::Location(51_024),
        F::UnknownValue { .. } | F::InvalidLocale(_) | F::Contradiction(_) => ErrorCode::BadValue,
        F::RulesNotThere(..) | F::WithoutRules(_) => ErrorCode::CommandNotSupported,
        F::OtherVersion(_) => ErrorCode::IncompatibleCollationVersion,
        F::Malformed(_) => ErrorCode::InvalidBson,
    };
    let shown = document_text(collation);
    let message = match fault {
        F::InvalidLocale(_) => format!("Field 'locale' is invalid in: {shown}"),
        F::Contradiction(_) => format!("{fault} in: {shown}"),
        F::OtherVersion(_) => format!("{fault} Requested collation spec: {shown}"),
        _ => fault.to_string(),
    };
    CommandError::failed(code, message)
}
