//! The opening of the catalog below the commands: alone, or as one of several servers.

use std::sync::Arc;

use pando_catalog::{Catalog, CatalogError, QueryMemory, ScratchSpace, SharedEngine, Sharing};
use pando_encryption::EphemeralFiles;
use pando_environment::Environment;
use pando_query::partial_index::IndexKinds;

use super::Commands;
use crate::persona::Persona;
use crate::shared_state::{CommandsOptions, ScratchFiles};

/// Opens the catalog of an engine. Blocks.
pub(super) fn open_catalog(
    engine: SharedEngine,
    environment: &Environment,
    options: &CommandsOptions,
) -> Result<Catalog, CatalogError> {
    let settings = &options.query_memory;
    let scratch = match &settings.scratch_folder {
        Some(folder) => match settings.scratch_files {
            ScratchFiles::Plain => Some(ScratchSpace::open(environment, folder)?),
            ScratchFiles::Encrypted => {
                Some(ScratchSpace::open(&EphemeralFiles::environment(environment), folder)?)
            }
        },
        None => None,
    };
    let memory = QueryMemory::new(&engine, settings.limit_bytes, scratch);
    let kinds = Arc::new(IndexKinds);
    match engine.capabilities().sharing {
        Sharing::Exclusive => Catalog::open_with(engine, memory, kinds),
        Sharing::Shared => {
            let clock = Arc::clone(environment.clock());
            let name = options.persona.advertised.as_deref().unwrap_or(&options.address);
            let opened = Catalog::open_shared(Arc::clone(&engine), memory, kinds, clock, name);
            if opened.is_err() {
                // The other servers need not wait for this one. A failure of the close changes nothing more.
                let _told_already = engine.close();
            }
            opened
        }
    }
}

impl Commands {
    /// The persona by which drivers take this server. It is another one than the options say where several
    /// servers share the store.
    pub fn persona(&self) -> Persona {
        self.shared.options.persona.persona
    }
}

/// The persona of a server. Several servers of one store cannot each be the primary of a replica set: a
/// driver that knows two of them would give one up.
pub(super) fn persona_of(catalog: &Catalog, wanted: Persona) -> Persona {
    match wanted {
        Persona::ReplicaSet if catalog.is_shared() => {
            tracing::info!(
                "drivers take this server for a mongos, because other servers may share its store"
            );
            Persona::Mongos
        }
        wanted => wanted,
    }
}
