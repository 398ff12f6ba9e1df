//! The faults of a specification.

/// See the module's head. The text is MongoDB's, without the specification that stands behind it there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecificationFault {
    /// There is no `locale`.
    #[error("BSON field '{0}.locale' is missing but a required field")]
    MissingLocale(String),
    /// A field that no specification has.
    #[error("BSON field '{0}' is an unknown field.")]
    UnknownField(String),
    /// A field stands twice.
    #[error("BSON field '{0}' is a duplicate field")]
    DuplicateField(String),
    /// A field has a value of another type.
    #[error("BSON field '{path}' is the wrong type '{found}', expected type{expected}")]
    WrongType {
        /// The field, with the path to it.
        path: String,
        /// The type that it has.
        found: &'static str,
        /// The types that it may have.
        expected: &'static str,
    },
    /// `strength` is above 5 or below 0.
    #[error("BSON field 'strength' value must be {limit}, actual value '{actual}'")]
    StrengthOutOfRange {
        /// The limit that it does not keep.
        limit: &'static str,
        /// The value.
        actual: i32,
    },
    /// A value that the option does not have.
    #[error("Enumeration value '{value}' for field '{path}' is not a valid value.")]
    UnknownValue {
        /// The field, with the path to it.
        path: String,
        /// The value.
        value: String,
    },
    /// A locale that does not exist.
    #[error("Field 'locale' is invalid: {0}")]
    InvalidLocale(String),
    /// Options that do not go together.
    #[error("{0}")]
    Contradiction(&'static str),
    /// A locale of MongoDB's whose rules are not among the data.
    #[error("the rules of the locale '{0}' are not supported; choose the locale without '@collation={1}'")]
    RulesNotThere(String, String),
    /// The program was built without the rules of languages.
    #[error(
        "the locale '{0}' needs the rules of languages, and this program was built without them: build it with the \
         feature 'collation', or use the locale 'simple'"
    )]
    WithoutRules(String),
    /// The version of another collection of rules.
    #[error("Requested collation version {0} but the only available collator version was {version}.", version = crate::VERSION)]
    OtherVersion(String),
    /// The document is not sound.
    #[error("the collation is no sound document: {0}")]
    Malformed(String),
}
