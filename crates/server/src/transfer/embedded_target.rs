//! A data folder as target, opened in this process.

use std::path::Path;

use bson::{Bson, Document};
use pandodb::{DurabilityChoice, Options, Pando};

use super::error::TransferError;
use super::target::{Target, checked, insert_command, write_errors};

/// An open data folder.
pub(super) struct EmbeddedTarget {
    store: Pando,
}

impl EmbeddedTarget {
    pub(super) fn open(folder: &Path) -> Result<EmbeddedTarget, TransferError> {
        // Closing the store at the end syncs everything.
        let options = Options { durability: DurabilityChoice::Logged, ..Options::default() };
        Ok(EmbeddedTarget { store: Pando::open_with(folder, &options)? })
    }
}

impl Target for EmbeddedTarget {
    fn run(&mut self, database: &str, command: Document) -> Result<Document, TransferError> {
        checked(self.store.database(database).run_command(command)?)
    }

    fn insert(
        &mut self,
        database: &str,
        collection: &str,
        documents: Vec<Document>,
    ) -> Result<Vec<(usize, String)>, TransferError> {
        let mut command = insert_command(collection);
        command.insert("documents", documents.into_iter().map(Bson::Document).collect::<Vec<_>>());
        Ok(write_errors(&self.run(database, command)?))
    }

    fn close(self: Box<Self>) -> Result<(), TransferError> {
        Ok(self.store.close()?)
    }
}
