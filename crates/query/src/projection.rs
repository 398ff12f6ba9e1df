//! Projections: which fields of a document a reply shows, and which it computes.
//!
//! One engine serves `find`, `$project`, `$addFields`/`$set` and `$unset`. It is a tree of paths (`tree`)
//! with a rule for all other fields, carried out on bytes in one pass. `find` alone has the cuts of arrays
//! (`finish`): `$slice` and `path.$`, and `$elemMatch`.
//!
//! 1. [`Projection::parse`], [`Projection::parse_stage`], [`Projection::add_fields`] and
//!    [`Projection::unset`] check the specification and build the tree.
//! 2. [`Projection::apply`] appends the projected document to a buffer. For plain inclusion of top-level
//!    fields it copies the bytes of whole fields and stops at the last one.
//!
//! Invariants: the order of included fields is the document's; `_id` is included unless the projection says
//! otherwise. Not here: which documents are projected, covered queries (`plan`; see
//! [`Projection::needed_paths`]).

mod add_fields;
mod fault;
mod finish;
mod parse;
mod tree;

use pando_document::{DocumentWriter, RawArray, RawDocument, RawDocumentBuf, RawValue};

pub use self::fault::ProjectionFault;

use self::finish::Finish;
use self::tree::{Child, Computed, Fallback, Fields};
use crate::error::QueryError;
use crate::expression::{Evaluated, FAILED_TO_FOLD, FieldPath, Frame, ParseScope};
use crate::metadata::{MetadataSet, is_not_available};
use crate::needs::Needs;

/// A parsed projection.
#[derive(Clone, Debug)]
pub struct Projection {
    tree: Fields,
    fallback: Fallback,
    finish: Finish,
    /// Whether whole top-level fields are included and nothing else.
    is_plain: bool,
}

/// The command or stage whose rules a projection follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flavour {
    Find,
    Stage,
}

impl Projection {
    fn new(tree: Fields, fallback: Fallback, finish: Finish) -> Projection {
        let is_plain = fallback == Fallback::Drop && tree.is_plain();
        Projection { tree, fallback, finish, is_plain }
    }

    /// Parses the projection of `find` or `findAndModify`. An empty one shows whole documents.
    pub fn parse(specification: &RawDocument, scope: &ParseScope) -> Result<Projection, QueryError> {
        parse::parse(specification, Flavour::Find, scope)
    }

    /// Parses a `$project` stage.
    pub fn parse_stage(specification: &RawDocument, scope: &ParseScope) -> Result<Projection, QueryError> {
        parse::parse(specification, Flavour::Stage, scope)
    }

    /// Parses an `$addFields` stage.
    pub fn add_fields(specification: &RawDocument, scope: &ParseScope) -> Result<Projection, QueryError> {
        add_fields::parse(specification, scope)
    }

    /// Puts the values of variables at paths, like `$addFields`: that of the first slot at the first path.
    pub(crate) fn of_slots(paths: &[&str]) -> Result<Projection, QueryError> {
        let names: Vec<String> = (0..paths.len()).map(|slot| format!("s{slot}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (scope, _) = ParseScope::default().with_slots(&names);
        let mut bytes = Vec::new();
        let mut writer = DocumentWriter::begin(&mut bytes);
        for (path, name) in paths.iter().zip(names) {
            writer.append(path, RawValue::String(&format!("$${name}")));
        }
        writer.finish();
        add_fields::parse(&RawDocumentBuf::from_vec(bytes)?, &scope)
    }

    /// The document with the values of [slots](Projection::of_slots) in their places.
    pub(crate) fn filled_slots(
        &self,
        document: &RawDocument,
        mut values: Vec<Evaluated<'static>>,
    ) -> Result<Vec<u8>, QueryError> {
        let mut bytes = Vec::with_capacity(document.as_bytes().len() + values.len() * 16);
        self.fill_slots(document, &mut values, &mut bytes)?;
        Ok(bytes)
    }

    /// Appends the same; takes the values.
    pub(crate) fn fill_slots(
        &self,
        document: &RawDocument,
        values: &mut Vec<Evaluated<'static>>,
        out: &mut Vec<u8>,
    ) -> Result<(), QueryError> {
        let mut writer = DocumentWriter::begin(out);
        if self.tree.is_computed_at_top() {
            self.tree.place_at_top(document, values, &mut writer)?;
            values.clear();
        } else {
            let mut frame = Frame::new(document);
            for (slot, value) in values.drain(..).enumerate() {
                frame.write(slot, value);
            }
            self.tree.apply(document, &mut frame, self.fallback, &mut writer)?;
        }
        writer.finish();
        Ok(())
    }

    /// The exclusion of some paths.
    pub fn unset(paths: &RawArray) -> Result<Projection, QueryError> {
        let mut bytes = Vec::new();
        let mut writer = DocumentWriter::begin(&mut bytes);
        for path in paths.iter() {
            match path? {
                RawValue::String(path) => {
                    FieldPath::parse(path)?;
                    writer.append_bool(path, false);
                }
                other => {
                    return Err(QueryError::type_mismatch(format!(
                        "a path to unset must be a string, not {}",
                        other.element_type().alias()
                    )));
                }
            }
        }
        writer.finish();
        parse::parse(&RawDocumentBuf::from_vec(bytes)?, Flavour::Stage, &ParseScope::default())
    }

    /// The removal of hidden fields.
    pub fn without_metadata(metadata: MetadataSet) -> Projection {
        let mut tree = Fields::default();
        metadata.iter().for_each(|kind| tree.prepend(kind.field(), Child::Drop));
        Projection::new(tree, Fallback::Keep, Finish::default())
    }

    /// Whether a projection names a positional path at its top, before it is parsed.
    pub fn is_positional(specification: &RawDocument) -> bool {
        specification.iter().flatten().any(|(path, _)| path.ends_with(".$"))
    }

    /// Whether applying it changes nothing.
    pub fn is_identity(&self) -> bool {
        self.fallback == Fallback::Keep && self.tree.children().is_empty() && self.finish.is_empty()
    }

    /// Whether it has a positional `path.$`, so that [`Projection::apply`] needs the index of the match.
    pub fn needs_matched_index(&self) -> bool {
        self.finish.has_positional()
    }

    /// The paths that the result is made of, if no other part of the document is needed, for covered queries.
    ///
    /// `None` where fields are computed or cut, or where it is an exclusion.
    pub fn needed_paths(&self) -> Option<Vec<String>> {
        if self.fallback == Fallback::Keep || !self.finish.is_empty() {
            return None;
        }
        let mut paths = Vec::new();
        collect_paths(&self.tree, "", &mut paths)?;
        Some(paths)
    }

    /// Whether the values at a path are the same in the result.
    pub(crate) fn passes(&self, path: &str) -> bool {
        let mut fields = &self.tree;
        if !self.finish.is_empty() {
            return false;
        }
        for name in path.split('.') {
            match fields.child(name) {
                None => return self.fallback == Fallback::Keep,
                Some(Child::Keep) => return true,
                Some(Child::Nested(below)) => fields = below,
                Some(Child::Drop | Child::Computed(_)) => return false,
            }
        }
        // Something below the path is dropped or computed.
        false
    }

    /// The path of the document whose value stands at a path of the result, where a top-level field of the
    /// result is just a field of the document under another name.
    pub(crate) fn source_of(&self, path: &str) -> Option<String> {
        let name = crate::needs::first_name(path);
        let Some(Child::Computed(Computed::Expression(expression))) = self.tree.child(name) else {
            return None;
        };
        match expression.as_field_path()?.names() {
            [source] if self.finish.is_empty() => Some(format!("{source}{}", &path[name.len()..])),
            _ => None,
        }
    }

    /// The fields that are read, where `behind` are looked at in the result.
    pub(crate) fn needs(&self, behind: Needs) -> Needs {
        if !self.finish.is_empty() {
            return Needs::Everything;
        }
        let mut needs = match self.fallback {
            Fallback::Keep => behind,
            Fallback::Drop => Needs::nothing(),
        };
        self.tree.add_needs("", &mut needs);
        needs
    }

    /// Appends the projected document to `out`.
    ///
    /// `matched_index` is the index of the array element by which the filter matched, for `path.$`.
    pub fn apply(
        &self,
        document: &RawDocument,
        matched_index: Option<usize>,
        out: &mut Vec<u8>,
    ) -> Result<(), QueryError> {
        let start = out.len();
        match self.write(document, matched_index, out) {
            Ok(()) => Ok(()),
            Err(error) => {
                out.truncate(start);
                Err(error)
            }
        }
    }

    /// The projected document.
    pub fn project(&self, document: &RawDocument) -> Result<RawDocumentBuf, QueryError> {
        let mut bytes = Vec::with_capacity(document.as_bytes().len());
        self.apply(document, None, &mut bytes)?;
        Ok(RawDocumentBuf::from_vec(bytes)?)
    }

    fn write(
        &self,
        document: &RawDocument,
        matched_index: Option<usize>,
        out: &mut Vec<u8>,
    ) -> Result<(), QueryError> {
        if self.finish.is_empty() {
            let mut writer = DocumentWriter::begin(out);
            self.write_tree(document, &mut writer)?;
            writer.finish();
            return Ok(());
        }
        let mut included = Vec::with_capacity(document.as_bytes().len());
        let mut writer = DocumentWriter::begin(&mut included);
        self.write_tree(document, &mut writer)?;
        writer.finish();
        let mut writer = DocumentWriter::begin(out);
        self.finish.apply(RawDocument::from_bytes(&included)?, matched_index, &mut writer)?;
        writer.finish();
        Ok(())
    }

    fn write_tree(&self, document: &RawDocument, writer: &mut DocumentWriter<'_>) -> Result<(), QueryError> {
        if self.is_plain {
            return self.write_plain(document, writer);
        }
        self.tree.apply(document, &mut Frame::new(document), self.fallback, writer)
    }

    /// Whole top-level fields: their bytes are copied, and the fields behind the last of them are not read.
    fn write_plain(&self, document: &RawDocument, writer: &mut DocumentWriter<'_>) -> Result<(), QueryError> {
        let bytes = document.as_bytes();
        let mut missing = self.tree.children().len();
        let mut fields = document.iter();
        while missing > 0 {
            let start = fields.offset();
            let Some(name) = fields.step().transpose()? else { break };
            if self.tree.place_of(name).is_some() {
                writer.append_raw_fields(&bytes[start..fields.offset()]);
                missing -= 1;
            }
        }
        Ok(())
    }
}

fn collect_paths(fields: &Fields, prefix: &str, paths: &mut Vec<String>) -> Option<()> {
    for (name, child) in fields.children() {
        let path = format!("{prefix}{name}");
        match child {
            Child::Keep => paths.push(path),
            Child::Nested(below) => collect_paths(below, &format!("{path}."), paths)?,
            Child::Drop | Child::Computed(_) => return None,
        }
    }
    Some(())
}

/// Puts the name of a stage before the message of an error of its projection.
pub(crate) fn in_stage(stage: &str, error: QueryError) -> QueryError {
    // MongoDB folds, and looks for metadata, when it puts the stages together, not when it parses one.
    if error.message().starts_with(FAILED_TO_FOLD) || is_not_available(&error) {
        return error;
    }
    error.prefixed(format_args!("Invalid {stage} :: caused by :: "))
}
