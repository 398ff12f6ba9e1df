//! The names of collections as a snapshot saw them.

use std::sync::Arc;

use crate::catalog::Names;
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
