//! The names of collections as a snapshot saw them.

use std::sync::Arc;

use pando_storage::{Begin, ErrorKind, SharedTime, Transaction};

use crate::catalog::Names;
use crate::error::CatalogError;
use crate::{Catalog, Collection};

/// See the module's head. It is taken right after its snapshot: a collection that appears between the two is
/// empty at the snapshot.
#[derive(Clone)]
pub struct SeenNames {
    names: Arc<Names>,
}

impl Catalog {
    /// The names as they are now.
    pub fn seen_names(&self) -> SeenNames {
        SeenNames { names: self.names() }
    }

    /// Begins a reader at a moment of the clock of a shared store, with the collections of then. `None` where
    /// the moment lies too far back, or the catalog has changed since. Blocks.
    ///
    /// # Errors
    /// The cluster could not be reached.
    pub fn begin_at(
        &self,
        moment: SharedTime,
    ) -> Result<Option<(Box<dyn Transaction>, SeenNames)>, CatalogError> {
        let Some(sharing) = &self.store().sharing else { return Ok(None) };
        let reader = match self.begin(Begin::read_at(moment.snapshot())) {
            Err(error) if error.kind() == ErrorKind::InvalidInput => return Ok(None),
            begun => begun?,
        };
        let version = sharing.version_at(&*reader)?;
        let (names, is_of_then) = {
            let _changing = self.store().changing.lock();
            (self.seen_names(), version == sharing.seen() && sharing.found_at() <= moment)
        };
        if !is_of_then {
            reader.rollback();
            return Ok(None);
        }
        Ok(Some((reader, names)))
    }
}

impl SeenNames {
    pub(crate) fn get(&self, database: &str, collection: &str) -> Option<&Arc<Collection>> {
        self.names.get(database)?.get(collection)
    }

    /// The collection of this name, for reading at the snapshot. One that was dropped or replaced since has
    /// its old description.
    pub fn collection(&self, catalog: &Catalog, database: &str, collection: &str) -> Option<Arc<Collection>> {
        let seen = self.get(database, collection)?;
        match catalog.collection(database, collection) {
            // The newest description lacks the indexes that have been dropped since.
            Some(now) if now.number() == seen.number() => Some(now),
            Some(_) | None => Some(Arc::clone(seen)),
        }
    }
}
