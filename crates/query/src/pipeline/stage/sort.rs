//! `$sort`: all documents are read, then given in the order of a pattern. With a `$limit` right behind it,
//! only so many are held. At the front of a pipeline the plan does both.

use std::any::Any;
use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::{Document, RawDocument, RawValue, Value};

use super::{Check, Definition, Flow, Gathering, Memory, Nesting, RunOptions, Source, Stage, same_stage};
use crate::error::QueryError;
use crate::expression::{FieldPath, ParseScope};
use crate::needs::Needs;
use crate::pipeline::PipelineFault;
use crate::pipeline::measured::long;
use crate::pipeline::wanted_metadata::check_order;
use crate::shell_text;
use crate::sort::{DocumentSorter, SortFault, SortPattern};

/// The most documents of a sort with a limit that are sorted in parts.
const GATHERED_MAX: u64 = 10_000;

#[derive(Debug)]
pub(super) struct Sort {
    pattern: Arc<SortPattern>,
    /// How many of the first are drawn; `None` for all.
    limit: Option<u64>,
}

struct Run {
    sorter: DocumentSorter,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Reading,
    Giving,
}

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Arc<dyn Definition>, QueryError> {
    let RawValue::Document(pattern) = argument else {
        return Err(PipelineFault::SortNotObject.error("the $sort key specification must be an object"));
    };
    if pattern.is_empty() {
        return Err(PipelineFault::SortEmpty.error("$sort stage must have at least one sort key"));
    }
    for part in pattern.iter() {
        let (path, direction) = part?;
        FieldPath::parse(path)?;
        if !direction.is_number() && direction.as_document().is_none() {
            return Err(SortFault::BadValue.error(format!(
                "Illegal key in $sort specification: {path}: {}",
                shell_text::value_text(direction)
            )));
        }
    }
    let pattern = SortPattern::parse(pattern)?.collated_by(scope.text_order());
    check_order(&pattern, scope)?;
    Ok(Arc::new(Sort::by(pattern)))
}

impl Sort {
    pub(super) fn by(pattern: SortPattern) -> Sort {
        Sort { pattern: Arc::new(pattern), limit: None }
    }

    pub(super) fn limited_by(pattern: &SortPattern, limit: u64) -> Sort {
        Sort { pattern: Arc::new(pattern.clone()), limit: Some(limit) }
    }
}

impl Definition for Sort {
    /// A run that holds few documents gives them to another one cheaply.
    fn gathers(&self) -> bool {
        self.limit.is_some_and(|limit| limit <= GATHERED_MAX)
    }

    fn nesting(&self) -> Nesting {
        Nesting::Kept
    }

    fn memory(&self) -> Memory {
        Memory::Reserved
    }

    fn shown(&self, _text: &RawDocument) -> Document {
        let mut sort = Document::new();
        sort.push("sortKey", RawValue::Document(&self.pattern.to_document()).to_owned());
        if let Some(limit) = self.limit {
            sort.push("limit", long(limit));
        }
        let mut shown = Document::new();
        shown.push("$sort", Value::Document(sort));
        shown
    }

    fn sort_pattern(&self) -> Option<&Arc<SortPattern>> {
        // No group has the scores of a search.
        (self.limit.is_none() && self.pattern.metadata().is_empty()).then_some(&self.pattern)
    }

    fn is_transparent(&self) -> bool {
        true
    }

    fn passes(&self, _path: &str) -> bool {
        true
    }

    fn limited(&self, wanted: u64) -> Option<Box<dyn Definition>> {
        Some(Box::new(Sort { pattern: Arc::clone(&self.pattern), limit: Some(wanted) }))
    }

    fn needs(&self, mut behind: Needs) -> Needs {
        self.pattern.parts().iter().for_each(|part| behind.add(part.path.as_str()));
        behind
    }

    fn start(&self, options: &RunOptions) -> Box<dyn Stage> {
        Box::new(Run {
            sorter: DocumentSorter::new(Arc::clone(&self.pattern), self.limit, &options.memory),
            phase: Phase::Reading,
        })
    }
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        if self.phase == Phase::Reading {
            self.gather(input)?;
            self.phase = Phase::Giving;
        }
        input.check()?;
        let next = self.sorter.next(&mut || input.check())?;
        Ok(next.map(|sorted| Bytes::copy_from_slice(sorted.document)))
    }

    fn gathering(&mut self) -> Option<&mut dyn Gathering> {
        Some(self)
    }

    fn explain(&self, shown: &mut Document) {
        shown.push("totalDataSizeSortedBytesEstimate", long(self.sorter.total_bytes()));
    }
}

impl Gathering for Run {
    fn gather(&mut self, input: &mut dyn Source) -> Result<(), QueryError> {
        input.for_each(&mut |document, check| {
            self.sorter.take(document, &[], check)?;
            Ok(Flow::More)
        })
    }

    /// Documents of equal keys stay in the order of the input: those of the later run come behind.
    fn absorb(&mut self, later: &mut dyn Gathering, check: Check<'_>) -> Result<(), QueryError> {
        let later = same_stage::<Run>(later);
        while let Some(sorted) = later.sorter.next(check)? {
            self.sorter.take(RawDocument::from_bytes(sorted.document)?, &[], check)?;
        }
        Ok(())
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
