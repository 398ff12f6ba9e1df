//! `$_internalUnpackBucket`: the measurements of the buckets of a time series. The view of a time series
//! begins with it.
//!
//! As in MongoDB a client may name the stage, too, and bring documents that no server has written. Columns of
//! a few bytes can stand for many values, so the values of a bucket are counted in the query's account.

use std::collections::BTreeSet;
use std::sync::Arc;

use pando_catalog::{Bytes, Reservation};
use pando_document::{RawDocument, RawValue};

use super::{Definition, Flow, RunOptions, Sink, Source, Stage, document_in, pulled};
use crate::error::QueryError;
use crate::memory::hold_value;
use crate::needs::Needs;
use crate::time_series::{Series, TimeSpan, UNPACK_STAGE};

/// Measurements that are given between two checks whether the operation has to end.
const GIVEN_A_CHECK: usize = 64;
/// Bytes of the measurements that wait for a sink which takes them one by one.
const WAITING_BYTES_MAX: usize = 64 << 10;

#[derive(Clone, Debug)]
struct UnpackBucket {
    series: Arc<Series>,
    span: TimeSpan,
}

struct Run {
    series: Arc<Series>,
    /// Measurements outside match nothing behind the stage.
    span: TimeSpan,
    /// The top-level fields that are looked at behind the stage; `None` for all.
    wanted: Option<BTreeSet<String>>,
    /// The values of the bucket at hand.
    reservation: Reservation,
    /// A bucket of which some measurements were given.
    current: Option<Opened>,
    /// The measurement at hand; one buffer for all.
    written: Vec<u8>,
}

/// A bucket of which some measurements were given. The next ones wait as documents, since its columns are
/// read as a whole.
struct Opened {
    bucket: Bytes,
    /// The measurements that were given or wait.
    written: usize,
    waiting: Vec<u8>,
    /// Where the next one begins among those that wait.
    begin: usize,
}

pub(super) fn parse(argument: RawValue<'_>) -> Result<Arc<dyn Definition>, QueryError> {
    let options = argument.as_document().unwrap_or(RawDocument::empty());
    let series = Series::of(options).ok_or_else(|| {
        QueryError::failed_to_parse(format!(
            "{UNPACK_STAGE} needs 'timeField' and 'bucketMaxSpanSeconds', and takes 'metaField'"
        ))
    })?;
    Ok(Arc::new(UnpackBucket { series: Arc::new(series), span: TimeSpan::of_argument(options) }))
}

impl Definition for UnpackBucket {
    fn looks_at_each_alone(&self) -> bool {
        true
    }

    fn start(&self, options: &RunOptions) -> Box<dyn Stage> {
        self.start_for(options, &Needs::Everything)
    }

    fn start_for(&self, options: &RunOptions, behind: &Needs) -> Box<dyn Stage> {
        let wanted = behind.fields().map(|fields| fields.into_iter().map(str::to_owned).collect());
        let series = Arc::clone(&self.series);
        let reservation = options.memory.account.reserve();
        Box::new(Run { series, span: self.span, wanted, reservation, current: None, written: Vec::new() })
    }
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        pulled(self, input)
    }

    fn for_each(&mut self, input: &mut dyn Source, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        loop {
            let (bucket, given) = match &mut self.current {
                Some(opened) => {
                    if opened.give_waiting(input, sink)? == Flow::Enough {
                        return Ok(());
                    }
                    let Some(Opened { bucket, written, .. }) = self.current.take() else { continue };
                    (bucket, written)
                }
                None => match input.next()? {
                    Some(bucket) => (bucket, 0),
                    None => {
                        self.reservation.shrink_to(0);
                        return Ok(());
                    }
                },
            };
            self.current = self.give(bucket, given, input, sink)?;
            if self.current.is_some() {
                return Ok(());
            }
        }
    }
}

impl Opened {
    /// Gives the measurements that wait.
    fn give_waiting(&mut self, input: &mut dyn Source, sink: &mut Sink<'_>) -> Result<Flow, QueryError> {
        while let Some(document) = first_document(&self.waiting[self.begin..])? {
            input.check()?;
            self.begin += document.as_bytes().len();
            if sink(document, &mut || input.check())? == Flow::Enough {
                return Ok(Flow::Enough);
            }
        }
        Ok(Flow::More)
    }
}

/// The document at the front of several, one behind the other.
fn first_document(bytes: &[u8]) -> Result<Option<&RawDocument>, QueryError> {
    let Some(length) = bytes.first_chunk::<4>() else { return Ok(None) };
    let length = usize::try_from(i32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let document = bytes.get(..length).map(RawDocument::from_bytes).transpose()?;
    Ok(document)
}

impl Run {
    /// Gives the measurements of a bucket from one on. Where the sink has enough, the others wait.
    fn give(
        &mut self,
        bucket: Bytes,
        given: usize,
        input: &mut dyn Source,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Opened>, QueryError> {
        // The reservation stays as it is for the next bucket, which has about as many values.
        let mut hold = |bytes| hold_value(&mut self.reservation, bytes, UNPACK_STAGE);
        let unpacked = self.series.unpack_within(document_in(&bucket)?, self.wanted.as_ref(), &mut hold)?;
        for at in given..unpacked.len() {
            if at % GIVEN_A_CHECK == 0 {
                input.check()?;
            }
            if !unpacked.is_within(at, self.span) {
                continue;
            }
            self.written.clear();
            unpacked.write(at, &mut self.written);
            let measurement = RawDocument::from_bytes(&self.written)?;
            if sink(measurement, &mut || input.check())? == Flow::Enough {
                let (mut written, mut waiting) = (at + 1, Vec::new());
                while written < unpacked.len() && waiting.len() < WAITING_BYTES_MAX {
                    if unpacked.is_within(written, self.span) {
                        unpacked.write(written, &mut waiting);
                    }
                    written += 1;
                }
                return Ok(Some(Opened { bucket, written, waiting, begin: 0 }));
            }
        }
        Ok(None)
    }
}
