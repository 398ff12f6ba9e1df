//! The specification of a collation: its options, checked and completed as MongoDB does.

use pando_document::{Document, Number, RawDocument, RawValue, Value, doc};

use crate::locale::Locale;
use crate::{SpecificationFault, VERSION};

/// The version of the rules in every MongoDB since 3.4. Collections that come from there name it.
const VERSION_OF_MONGODB: &str = "57.1";

/// How many levels of differences count: 1 for letters, 2 for accents, 3 for case and variants, 4 for
/// punctuation, 5 for everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strength {
    Primary,
    Secondary,
    Tertiary,
    Quaternary,
    Identical,
}

/// Whether upper or lower case comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaseFirst {
    Off,
    Upper,
    Lower,
}

/// Whether spaces and punctuation are letters of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alternate {
    NonIgnorable,
    Shifted,
}

/// The characters that `alternate` is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MaxVariable {
    Punctuation,
    Space,
}

/// Whether accents compare from the end of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backwards {
    Off,
    On,
}

/// Whether an option is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    Off,
    On,
}

impl Switch {
    fn is_on(self) -> bool {
        self == Switch::On
    }
}

/// See the module's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Specification {
    locale: String,
    pub(crate) case_level: Switch,
    pub(crate) case_first: CaseFirst,
    pub(crate) strength: Strength,
    pub(crate) numeric_ordering: Switch,
    pub(crate) alternate: Alternate,
    pub(crate) max_variable: MaxVariable,
    /// Strings always compare as if they were normalized: `false` gives the same answers for all texts but
    /// those whose marks are in disorder. It is kept to be shown.
    normalization: Switch,
    pub(crate) backwards: Backwards,
}

impl Specification {
    /// Reads a specification; `None` is the simple collation. `path` is the field's name in messages.
    ///
    /// # Errors
    /// The first fault: of a field as it stands, then of all together.
    pub fn parse(document: &RawDocument, path: &str) -> Result<Option<Specification>, SpecificationFault> {
        let fields = Fields::read(document, path)?;
        let Some(locale) = fields.locale else {
            return Err(SpecificationFault::MissingLocale(path.to_owned()));
        };
        if locale == "simple" {
            return Ok(None);
        }
        if locale.is_empty() {
            return Err(SpecificationFault::Contradiction("Field 'locale' cannot be the empty string"));
        }
        if locale.contains('\0') {
            return Err(SpecificationFault::Contradiction("Field 'locale' cannot contain null byte."));
        }
        let Locale { habits, .. } = Locale::of_name(locale)?;
        let specification = Specification {
            locale: locale.to_owned(),
            case_level: fields.case_level.unwrap_or(Switch::Off),
            case_first: fields.case_first.unwrap_or(habits.case_first),
            strength: fields.strength.unwrap_or(Strength::Tertiary),
            numeric_ordering: fields.numeric_ordering.unwrap_or(Switch::Off),
            alternate: fields.alternate.unwrap_or(habits.alternate),
            max_variable: fields.max_variable.unwrap_or(MaxVariable::Punctuation),
            normalization: fields.normalization.unwrap_or(habits.normalization),
            backwards: fields.backwards.unwrap_or(habits.backwards),
        };
        specification.check()?;
        match fields.version {
            Some(version) if version != VERSION && version != VERSION_OF_MONGODB => {
                Err(SpecificationFault::OtherVersion(version.to_owned()))
            }
            _ => Ok(Some(specification)),
        }
    }

    fn check(&self) -> Result<(), SpecificationFault> {
        let is_without_case = matches!(self.strength, Strength::Primary | Strength::Secondary);
        if self.case_first != CaseFirst::Off && is_without_case && self.case_level == Switch::Off {
            return Err(SpecificationFault::Contradiction(
                "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2",
            ));
        }
        if self.backwards == Backwards::On && self.strength == Strength::Primary {
            return Err(SpecificationFault::Contradiction("'backwards' is invalid with 'strength' of 1"));
        }
        Ok(())
    }

    /// The name of the locale.
    #[cfg(not(feature = "icu"))]
    pub(crate) fn locale(&self) -> &str {
        &self.locale
    }

    /// The locale's rules.
    pub(crate) fn rules(&self) -> Result<Locale, SpecificationFault> {
        Locale::of_name(&self.locale)
    }

    /// All options, as `listCollections` and `explain` show them.
    pub fn to_document(&self) -> Document {
        let strength = match self.strength {
            Strength::Primary => 1,
            Strength::Secondary => 2,
            Strength::Tertiary => 3,
            Strength::Quaternary => 4,
            Strength::Identical => 5,
        };
        let case_first = match self.case_first {
            CaseFirst::Off => "off",
            CaseFirst::Upper => "upper",
            CaseFirst::Lower => "lower",
        };
        let alternate = match self.alternate {
            Alternate::NonIgnorable => "non-ignorable",
            Alternate::Shifted => "shifted",
        };
        let max_variable = match self.max_variable {
            MaxVariable::Punctuation => "punct",
            MaxVariable::Space => "space",
        };
        doc! {
            "locale": (self.locale.as_str()),
            "caseLevel": (self.case_level.is_on()),
            "caseFirst": case_first,
            "strength": (Value::Int32(strength)),
            "numericOrdering": (self.numeric_ordering.is_on()),
            "alternate": alternate,
            "maxVariable": max_variable,
            "normalization": (self.normalization.is_on()),
            "backwards": (self.backwards == Backwards::On),
            "version": VERSION,
        }
    }
}

/// The fields of a specification as they were given. A null counts as if it were not there, or as the option
/// that is off, where the locale may have another habit.
#[derive(Default)]
struct Fields<'d> {
    locale: Option<&'d str>,
    case_level: Option<Switch>,
    case_first: Option<CaseFirst>,
    strength: Option<Strength>,
    numeric_ordering: Option<Switch>,
    alternate: Option<Alternate>,
    max_variable: Option<MaxVariable>,
    normalization: Option<Switch>,
    backwards: Option<Backwards>,
    version: Option<&'d str>,
}

impl<'d> Fields<'d> {
    fn read(document: &'d RawDocument, path: &str) -> Result<Fields<'d>, SpecificationFault> {
        let mut fields = Fields::default();
        let mut seen: Vec<&str> = Vec::new();
        for field in document {
            let (name, value) = field.map_err(|error| SpecificationFault::Malformed(error.to_string()))?;
            let path = format!("{path}.{name}");
            if seen.contains(&name) {
                return Err(SpecificationFault::DuplicateField(path));
            }
            // Unknown names end the walk, so the list stays short.
            fields.take(name, value, path)?;
            seen.push(name);
        }
        Ok(fields)
    }

    fn take(&mut self, name: &str, value: RawValue<'d>, path: String) -> Result<(), SpecificationFault> {
        let is_known = matches!(
            name,
            "locale"
                | "caseLevel"
                | "caseFirst"
                | "strength"
                | "numericOrdering"
                | "alternate"
                | "maxVariable"
                | "normalization"
                | "backwards"
                | "version"
        );
        if !is_known {
            return Err(SpecificationFault::UnknownField(path));
        }
        if matches!(value, RawValue::Null | RawValue::Undefined) {
            match name {
                "caseFirst" => self.case_first = Some(CaseFirst::Off),
                "alternate" => self.alternate = Some(Alternate::NonIgnorable),
                "normalization" => self.normalization = Some(Switch::Off),
                _ => {}
            }
            return Ok(());
        }
        match name {
            "locale" => self.locale = Some(text(value, path)?),
            "caseLevel" => self.case_level = Some(switch(value, path)?),
            "caseFirst" => {
                let known =
                    [("upper", CaseFirst::Upper), ("lower", CaseFirst::Lower), ("off", CaseFirst::Off)];
                self.case_first = Some(one_of(&known, value, path)?);
            }
            "strength" => self.strength = Some(strength(value, path)?),
            "numericOrdering" => self.numeric_ordering = Some(switch(value, path)?),
            "alternate" => {
                let known = [("non-ignorable", Alternate::NonIgnorable), ("shifted", Alternate::Shifted)];
                self.alternate = Some(one_of(&known, value, path)?);
            }
            "maxVariable" => {
                let known = [("punct", MaxVariable::Punctuation), ("space", MaxVariable::Space)];
                self.max_variable = Some(one_of(&known, value, path)?);
            }
            "normalization" => self.normalization = Some(switch(value, path)?),
            "backwards" => {
                self.backwards = Some(match switch(value, path)? {
                    Switch::On => Backwards::On,
                    Switch::Off => Backwards::Off,
                });
            }
            _ => self.version = Some(text(value, path)?),
        }
        Ok(())
    }
}

fn wrong_type(value: RawValue<'_>, path: String, expected: &'static str) -> SpecificationFault {
    SpecificationFault::WrongType { path, found: value.element_type().alias(), expected }
}

fn text<'d>(value: RawValue<'d>, path: String) -> Result<&'d str, SpecificationFault> {
    match value {
        RawValue::String(text) => Ok(text),
        other => Err(wrong_type(other, path, " 'string'")),
    }
}

fn switch(value: RawValue<'_>, path: String) -> Result<Switch, SpecificationFault> {
    match value {
        RawValue::Boolean(true) => Ok(Switch::On),
        RawValue::Boolean(false) => Ok(Switch::Off),
        other => Err(wrong_type(other, path, " 'bool'")),
    }
}

fn one_of<T: Copy>(known: &[(&str, T)], value: RawValue<'_>, path: String) -> Result<T, SpecificationFault> {
    let given = text(value, path.clone())?;
    match known.iter().find(|(name, _)| *name == given) {
        Some((_, option)) => Ok(*option),
        None => Err(SpecificationFault::UnknownValue { path, value: given.to_owned() }),
    }
}

/// A number whose fraction does not count.
fn strength(value: RawValue<'_>, path: String) -> Result<Strength, SpecificationFault> {
    let Some(number) = Number::from_value(value) else {
        return Err(wrong_type(value, path, "s '[long, int, decimal, double']"));
    };
    // A cast of a float saturates, and NaN becomes 0.
    match number.to_f64() as i32 {
        1 => Ok(Strength::Primary),
        2 => Ok(Strength::Secondary),
        3 => Ok(Strength::Tertiary),
        4 => Ok(Strength::Quaternary),
        5 => Ok(Strength::Identical),
        0 => Err(SpecificationFault::UnknownValue { path, value: "0".to_owned() }),
        actual if actual > 5 => Err(SpecificationFault::StrengthOutOfRange { limit: "<= 5", actual }),
        actual => Err(SpecificationFault::StrengthOutOfRange { limit: ">= 0", actual }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(document: Document) -> Result<Option<Specification>, SpecificationFault> {
        Specification::parse(&document.to_raw(), "collation")
    }

    #[test]
    fn a_locale_is_completed_with_the_defaults() {
        let completed = parse(doc! { "locale": "en" }).unwrap().unwrap().to_document();
        assert_eq!(
            completed,
            doc! {
                "locale": "en", "caseLevel": false, "caseFirst": "off", "strength": 3, "numericOrdering": false,
                "alternate": "non-ignorable", "maxVariable": "punct", "normalization": false, "backwards": false,
                "version": VERSION,
            }
        );
        // The completed form is a specification of the same collation.
        assert_eq!(parse(completed.clone()).unwrap().unwrap().to_document(), completed);
        assert_eq!(parse(doc! { "locale": "simple", "strength": 2 }), Ok(None));
        let of = |locale: &str| parse(doc! { "locale": locale }).unwrap().unwrap();
        assert_eq!((of("da").case_first, of("th").alternate), (CaseFirst::Upper, Alternate::Shifted));
        assert_eq!((of("hi").normalization, of("de").normalization), (Switch::On, Switch::Off));
        let canadian = |backwards: Document| parse(backwards).unwrap().unwrap().backwards;
        assert_eq!(canadian(doc! { "locale": "fr_CA" }), Backwards::On);
        assert_eq!(canadian(doc! { "locale": "fr_CA", "backwards": false }), Backwards::Off);
    }

    #[test]
    fn faults_are_told_apart() {
        use SpecificationFault as F;
        let fault = |document: Document| parse(document).unwrap_err();
        assert!(matches!(fault(doc! { "strength": 2 }), F::MissingLocale(_)));
        assert!(matches!(fault(doc! { "locale": (Value::Null) }), F::MissingLocale(_)));
        assert!(matches!(fault(doc! { "foo": 1 }), F::UnknownField(_)));
        assert!(matches!(fault(doc! { "locale": "xx", "foo": 1 }), F::UnknownField(_)));
        assert!(matches!(fault(doc! { "locale": 1 }), F::WrongType { .. }));
        assert!(matches!(fault(doc! { "locale": "en", "caseLevel": 1 }), F::WrongType { .. }));
        assert!(matches!(fault(doc! { "locale": "en", "strength": "1" }), F::WrongType { .. }));
        assert!(matches!(fault(doc! { "locale": "en", "strength": 0 }), F::UnknownValue { .. }));
        assert!(matches!(fault(doc! { "locale": "en", "strength": 6 }), F::StrengthOutOfRange { .. }));
        assert!(matches!(fault(doc! { "locale": "en", "caseFirst": "no" }), F::UnknownValue { .. }));
        for name in
            ["xx", "en_GB", "de@collation=standard", "zh@collation=pinyin", "en-US", "de@phonebook", "EN"]
        {
            assert!(matches!(fault(doc! { "locale": name }), F::InvalidLocale(_)), "{name}");
        }
        for name in ["en@collation=search", "zh@collation=big5han", "ko@collation=searchjl"] {
            assert!(matches!(fault(doc! { "locale": name }), F::RulesNotThere(..)), "{name}");
        }
        assert!(matches!(fault(doc! { "locale": "" }), F::Contradiction(_)));
        assert!(matches!(
            fault(doc! { "locale": "en", "caseFirst": "upper", "strength": 1 }),
            F::Contradiction(_)
        ));
        assert!(
            parse(doc! { "locale": "en", "caseFirst": "upper", "strength": 1, "caseLevel": true }).is_ok()
        );
        assert!(matches!(
            fault(doc! { "locale": "en", "backwards": true, "strength": 1 }),
            F::Contradiction(_)
        ));
        assert!(matches!(fault(doc! { "locale": "en", "version": "58" }), F::OtherVersion(_)));
        assert!(parse(doc! { "locale": "en", "version": "57.1", "strength": 2.5 }).is_ok());
    }
}
