//! The audit trail of a server, from its configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pando_commands::{AuditFilter, AuditTrail};
use pando_document::parse_json_line;
use tracing::info;

use super::ServeError;
use crate::audit_file::{AuditFile, Chaining};
use crate::configuration::{Audit, Configuration};

/// The trail that is asked for, before its file is opened.
pub(super) struct WantedTrail {
    path: PathBuf,
    chaining: Chaining,
    /// The events that are wanted; `None`: all.
    filter: Option<AuditFilter>,
}

/// Reads the options of the trail, if it is asked for. Touches no file.
pub(super) fn wanted(configuration: &Configuration) -> Result<Option<WantedTrail>, ServeError> {
    let Audit { is_on, path, filter, is_chained } = &configuration.transport.audit;
    if !is_on {
        return Ok(None);
    }
    let path = path.clone().unwrap_or_else(|| configuration.data.join(pandodb::AUDIT_NAME));
    if is_of_store(&configuration.data, &path) {
        return Err(ServeError::AuditInStore { path });
    }
    let chaining = if *is_chained { Chaining::On } else { Chaining::Off };
    let filter = match filter.as_str() {
        "" | "{}" => None,
        text => {
            let query = parse_json_line(text).map_err(|error| faulty(error.to_string()))?.to_raw();
            Some(AuditFilter::parse(&query).map_err(faulty)?)
        }
    };
    Ok(Some(WantedTrail { path, chaining, filter }))
}

/// Files and folders of a store of betree beside its data files, which begin with `data.`.
const OF_STORE: [&str; 6] = ["LOCK", "keys", "wal", "spill", "scratch", pandodb::SOCKET_NAME];

/// Whether a path is that of a file of the store, or within a folder of it.
fn is_of_store(data: &Path, path: &Path) -> bool {
    // The file may be new. The store may be, too: then its folder is taken as it is named.
    let folder = path.parent().map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.to_owned()));
    let (Some(folder), Some(name)) = (folder, path.file_name()) else { return false };
    let data = data.canonicalize().unwrap_or_else(|_| data.to_owned());
    let path = path.canonicalize().unwrap_or_else(|_| folder.join(name));
    let within = path.strip_prefix(data).ok().and_then(|within| within.iter().next()?.to_str());
    within.is_some_and(|name| OF_STORE.contains(&name) || name.starts_with("data."))
}

impl WantedTrail {
    /// Opens the file.
    pub(super) fn open(self) -> Result<AuditTrail, ServeError> {
        let file = AuditFile::open(&self.path, self.chaining)
            .map_err(|source| ServeError::AuditFile { path: self.path.clone(), source })?;
        info!("the audit trail goes to {}", self.path.display());
        Ok(AuditTrail::new(Arc::new(file), self.filter))
    }
}

fn faulty(cause: String) -> ServeError {
    ServeError::AuditFilter { cause }
}
