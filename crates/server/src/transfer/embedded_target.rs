//! A data folder as target, opened in this process.

use bson::{Document, RawDocumentBuf};
use pando_commands::ByteSize;
use pando_document::RawDocument;
use pandodb::{
    DocumentSequence, DurabilityChoice, EngineName, EngineOptions, FolderState, MissingStore, Options, Pando,
    RawSession, Request, engine_of_folder, inspect_folder,
};
use tempfile::TempDir;

use super::cluster_store::ClusterStore;
use super::data_folder::DataFolder;
use super::error::TransferError;
use super::target::{Beside, Target};

use crate::error_text::tell_line;
use crate::folder_owner::warn_root_in;

/// An open data folder.
pub(super) struct EmbeddedTarget {
    store: Pando,
    session: RawSession,
    /// The folder of a server that is there for this run alone.
    _folder: Option<TempDir>,
}

impl EmbeddedTarget {
    /// Opens a folder: with this engine, or with that of its files, and with options of the engine by name.
    pub(super) fn open(
        folder: &DataFolder,
        missing_store: MissingStore,
        engine: Option<EngineName>,
        named: &[(String, String)],
    ) -> Result<EmbeddedTarget, TransferError> {
        let engine = engine.unwrap_or_else(|| engine_of_folder(folder));
        // Closing the store at the end syncs everything.
        let durability = DurabilityChoice::Logged;
        let encryption = folder.encryption.clone();
        let engine_options = EngineOptions { encryption, ..options_of(named.to_vec())? };
        let is_new = matches!(inspect_folder(engine, folder, missing_store), Ok(FolderState::Vacant));
        let options = Options { engine, engine_options, durability, missing_store, ..Options::default() };
        warn_root_in(folder);
        let store = Pando::open_with(&**folder, &options)?;
        if is_new {
            // A wrong path is seen by it.
            tell_line!("made a new store in {}", folder.display());
        }
        Ok(EmbeddedTarget::over(store, None))
    }

    /// Opens a store in a cluster as one more server. A keyspace without a store gets one.
    pub(super) fn open_in_cluster(
        cluster: &ClusterStore,
        more: &[(String, String)],
    ) -> Result<EmbeddedTarget, TransferError> {
        let engine = ClusterStore::engine()?;
        let folder = tempfile::tempdir().map_err(TransferError::Folder)?;
        let mut named = cluster.engine_options();
        named.extend_from_slice(more);
        let engine_options = options_of(named)?;
        let durability = DurabilityChoice::Logged;
        let options = Options { engine, engine_options, durability, ..Options::default() };
        let store = Pando::open_with(folder.path(), &options)?;
        Ok(EmbeddedTarget::over(store, Some(folder)))
    }

    fn over(store: Pando, folder: Option<TempDir>) -> EmbeddedTarget {
        let session = store.raw_session();
        EmbeddedTarget { store, session, _folder: folder }
    }
}

/// The options of an engine by name, of which the cache has a field of its own.
fn options_of(named: Vec<(String, String)>) -> Result<EngineOptions, TransferError> {
    let (caches, named): (Vec<_>, Vec<_>) = named.into_iter().partition(|(name, _)| name == "cache");
    let mut options = EngineOptions { named, ..EngineOptions::default() };
    if let Some((_, text)) = caches.last() {
        let size: ByteSize = text.parse().map_err(|_| TransferError::Cache { text: text.clone() })?;
        options.cache_bytes = size.bytes();
    }
    Ok(options)
}

impl Target for EmbeddedTarget {
    fn run_raw(
        &mut self,
        database: &str,
        mut command: Document,
        beside: Option<Beside<'_>>,
    ) -> Result<RawDocumentBuf, TransferError> {
        command.insert("$db", database);
        let bytes = command.to_vec()?;
        let body = RawDocument::from_bytes(&bytes).map_err(|_| TransferError::Command)?;
        let documents: Vec<u8> = beside
            .iter()
            .flat_map(|beside| beside.documents)
            .flat_map(|one| one.as_bytes())
            .copied()
            .collect();
        let sequence =
            beside.map(|beside| DocumentSequence { identifier: beside.identifier, documents: &documents });
        let mut reply = Vec::new();
        self.session.handle(&Request { body, sequences: sequence.as_slice() }, &mut reply)?;
        Ok(RawDocumentBuf::from_bytes(reply)?)
    }

    fn close(self: Box<Self>) -> Result<(), TransferError> {
        Ok(self.store.close()?)
    }
}
