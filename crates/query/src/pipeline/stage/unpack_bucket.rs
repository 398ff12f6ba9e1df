//! `$_internalUnpackBucket`: the measurements of the buckets of a time series. The view of a time series
//! begins with it.

use std::collections::BTreeSet;
use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::{RawDocument, RawValue};

use super::{Definition, Flow, RunOptions, Sink, Source, Stage, document_in, pulled};
use crate::error::QueryError;
use crate::needs::Needs;
use crate::time_series::{Series, UNPACK_STAGE};

/// Measurements that are given between two checks whether the operation has to end.
const GIVEN_A_CHECK: usize = 64;

#[derive(Clone, Debug)]
struct UnpackBucket {
    series: Arc<Series>,
}

struct Run {
    series: Arc<Series>,
    /// The top-level fields that are looked at behind the stage; `None` for all.
    wanted: Option<BTreeSet<String>>,
    /// A bucket of which some measurements were given, and their number.
    current: Option<(Bytes, usize)>,
    /// The measurement at hand; one buffer for all.
    written: Vec<u8>,
}

pub(super) fn parse(argument: RawValue<'_>) -> Result<Arc<dyn Definition>, QueryError> {
    let series = argument.as_document().and_then(Series::of);
    let series = series.ok_or_else(|| {
        QueryError::failed_to_parse(format!(
            "{UNPACK_STAGE} needs 'timeField' and 'bucketMaxSpanSeconds', and takes 'metaField'"
        ))
    })?;
    Ok(Arc::new(UnpackBucket { series: Arc::new(series) }))
}

impl Definition for UnpackBucket {
    fn looks_at_each_alone(&self) -> bool {
        true
    }

    fn start(&self, options: &RunOptions) -> Box<dyn Stage> {
        self.start_for(options, &Needs::Everything)
    }

    fn start_for(&self, _: &RunOptions, behind: &Needs) -> Box<dyn Stage> {
        let wanted = behind.fields().map(|fields| fields.into_iter().map(str::to_owned).collect());
        let series = Arc::clone(&self.series);
        Box::new(Run { series, wanted, current: None, written: Vec::new() })
    }
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        pulled(self, input)
    }

    fn for_each(&mut self, input: &mut dyn Source, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        loop {
            let (bytes, given) = match self.current.take() {
                Some(current) => current,
                None => match input.next()? {
                    Some(bytes) => (bytes, 0),
                    None => return Ok(()),
                },
            };
            if let Some(given) = self.give(&bytes, given, input, sink)? {
                self.current = Some((bytes, given));
                return Ok(());
            }
        }
    }
}

impl Run {
    /// Gives the measurements of a bucket from one on. Where the sink has enough, it is told how many were
    /// given.
    fn give(
        &mut self,
        bytes: &Bytes,
        given: usize,
        input: &mut dyn Source,
        sink: &mut Sink<'_>,
    ) -> Result<Option<usize>, QueryError> {
        let unpacked = self.series.unpack(document_in(bytes)?, self.wanted.as_ref())?;
        for at in given..unpacked.len() {
            if at % GIVEN_A_CHECK == 0 {
                input.check()?;
            }
            self.written.clear();
            unpacked.write(at, &mut self.written);
            let measurement = RawDocument::from_bytes(&self.written)?;
            if sink(measurement, &mut || input.check())? == Flow::Enough {
                return Ok(Some(at + 1));
            }
        }
        Ok(None)
    }
}
