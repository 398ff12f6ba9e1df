//! The snapshot that a statement reads: that of its transaction, a past one, the newest, or a recent one.

use std::sync::Arc;
use std::time::Duration;

use pando_catalog::{Begin, ErrorKind, StorageError, Transaction};

use super::Context;
use crate::CommandError;
use crate::generic_arguments::Recency;
use crate::reader::{PastReader, Reader};

/// What other servers have committed this long ago is seen by every read: the bound of those that may lag.
const LAG_MAX: Duration = Duration::from_secs(1);

impl Context<'_> {
    /// The snapshot that a statement reads.
    pub fn reader(&self) -> Result<Reader, CommandError> {
        match (self.open_transaction(), &self.past) {
            (Some(open), _) => Ok(Reader::Session(Arc::clone(open))),
            (None, Some(held)) => {
                let transaction = held.begin(self.catalog())?;
                Ok(Reader::Past(PastReader { held: Arc::clone(held), transaction }))
            }
            (None, None) => Ok(Reader::Own(self.begin_statement_read()?)),
        }
    }

    /// Begins a reader of the newest snapshot, or of a recent one where the request takes that and it is
    /// cheaper.
    fn begin_statement_read(&self) -> Result<Box<dyn Transaction>, StorageError> {
        if self.read.recency == Recency::MayLag
            && let Some(recent) = self.catalog().recent_snapshot(LAG_MAX)
        {
            self.require_reads()?;
            match self.catalog().begin(Begin { at: Some(recent), ..Begin::READ }) {
                // It has become too old meanwhile.
                Err(error) if error.kind() == ErrorKind::InvalidInput => {}
                begun => return begun,
            }
        }
        self.begin_read()
    }
}
