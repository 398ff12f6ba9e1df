//! The time that documents live, and the granularity of a time series, changed by `collMod`.
//!
//! A time series may become coarser, and never finer. Its older buckets stay as they are: the window by which
//! reads look for buckets only grows, and it grows before that of inserts does.

use pando_catalog::{Collection, Namespace};
use pando_document::{Document, RawDocumentBuf, RawValue, Value};

use super::invalid;
use crate::CommandError;
use crate::admin::time_series_options::{self, GivenSpan};
use crate::arguments::{Argument, Arguments, whole};
use crate::context::Context;

const EXPIRY: &str = "expireAfterSeconds";

/// A change of how long documents live, or of how fine a time series is.
#[derive(Default)]
pub(super) struct LifeChange<'a> {
    expiry: Option<WantedExpiry<'a>>,
    series: Option<GivenSpan>,
}

/// An expiry as a request gives it.
#[derive(Clone, Copy)]
enum WantedExpiry<'a> {
    Seconds(i64),
    Word(&'a str),
}

/// An expiry that was checked.
#[derive(Clone, Copy)]
pub(super) enum NewExpiry {
    Never,
    Seconds(i64),
}

impl<'a> LifeChange<'a> {
    /// Takes an option over.
    pub(super) fn take(&mut self, argument: &Argument<'a>) -> Result<(), CommandError> {
        match (argument.name, argument.value) {
            (EXPIRY, RawValue::String(word)) => self.expiry = Some(WantedExpiry::Word(word)),
            (EXPIRY, value) if value.is_number() => self.expiry = Some(WantedExpiry::Seconds(whole(value))),
            (EXPIRY, _) => return Err(argument.wrong_type("types '[string, long']")),
            _ => {
                let Some(given) = argument.document()? else { return Ok(()) };
                let mut span = GivenSpan::default();
                for option in Arguments::inside("collMod.timeseries", given) {
                    let option = option?;
                    if !span.take(&option)? {
                        return Err(option.unknown());
                    }
                }
                self.series = Some(span);
            }
        }
        Ok(())
    }

    /// The new expiry of a collection that is no time series.
    pub(super) fn of_collection(
        &self,
        context: &Context<'_>,
        collection: &Collection,
    ) -> Result<Option<NewExpiry>, CommandError> {
        if self.expiry.is_some() && collection.options().get("clusteredIndex")?.is_none() {
            return Err(invalid(
                "'expireAfterSeconds' option is only supported on collections clustered by _id",
            ));
        }
        if self.series.is_some() {
            return Err(invalid("option only supported on a time-series collection: isTimeseriesNamespace"));
        }
        self.checked(context)
    }

    fn checked(&self, context: &Context<'_>) -> Result<Option<NewExpiry>, CommandError> {
        let reason = match self.expiry {
            None => return Ok(None),
            Some(WantedExpiry::Word("off")) => return Ok(Some(NewExpiry::Never)),
            Some(WantedExpiry::Word(word)) => format!(
                "Invalid string value for the 'clusteredIndex::expireAfterSeconds' option. Got: '{word}'. Accepted value is 'off'"
            ),
            Some(WantedExpiry::Seconds(..0)) => {
                "TTL index 'expireAfterSeconds' option cannot be less than 0".to_owned()
            }
            // Nothing is older than 1970.
            Some(WantedExpiry::Seconds(seconds)) if seconds > context.shared.now_ms() / 1000 => {
                "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a lower number"
                    .to_owned()
            }
            Some(WantedExpiry::Seconds(seconds)) => return Ok(Some(NewExpiry::Seconds(seconds))),
        };
        Err(invalid(&reason))
    }

    /// Changes a time series.
    pub(super) fn carry_out_on_series(
        &self,
        context: &mut Context<'_>,
        series: &Namespace,
        buckets: &Collection,
    ) -> Result<(), CommandError> {
        let expiry = self.checked(context)?;
        if let Some(span) = &self.series {
            time_series_options::make_coarser(context, series, buckets, span)?;
        }
        match expiry {
            Some(expiry) => expiry.set_on(context, buckets.namespace()),
            None => Ok(()),
        }
    }
}

impl NewExpiry {
    /// Changes the option of a collection.
    pub(super) fn set_on(self, context: &Context<'_>, namespace: &Namespace) -> Result<(), CommandError> {
        context
            .catalog()
            .change_options(namespace, context.operation, |collection| self.options_of(collection))
    }

    fn options_of(self, collection: &Collection) -> Result<RawDocumentBuf, CommandError> {
        let mut had = Document::from_raw(collection.options())?;
        had.remove(EXPIRY);
        let mut options = Document::new();
        let is_series = had.get("timeseries").is_some();
        let push_expiry = |options: &mut Document| {
            if let NewExpiry::Seconds(seconds) = self {
                options.push(EXPIRY, Value::Int64(seconds));
            }
        };
        // A time series shows its expiry first.
        if is_series {
            push_expiry(&mut options);
        }
        for (name, value) in had.iter() {
            options.push(name, value.clone());
        }
        if !is_series {
            push_expiry(&mut options);
        }
        Ok(options.to_raw())
    }
}
