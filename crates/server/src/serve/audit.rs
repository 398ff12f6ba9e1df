//! The audit trail of a server, from its configuration.

use std::path::PathBuf;
use std::sync::Arc;

use pando_commands::AuditTrail;
use pando_document::parse_json_line;
use tracing::info;

use super::ServeError;
use crate::audit_file::{AuditFile, Chaining};
use crate::configuration::{Audit, Configuration};

/// Opens the trail, if it is asked for.
pub(super) fn open(configuration: &Configuration) -> Result<Option<AuditTrail>, ServeError> {
    let Audit { is_on, path, filter, is_chained } = &configuration.transport.audit;
    if !is_on {
        return Ok(None);
    }
    let path: PathBuf = path.clone().unwrap_or_else(|| configuration.data.join(pandodb::AUDIT_NAME));
    let chaining = if *is_chained { Chaining::On } else { Chaining::Off };
    let file = AuditFile::open(&path, chaining)
        .map_err(|source| ServeError::AuditFile { path: path.clone(), source })?;
    let faulty = |cause: String| ServeError::AuditFilter { cause };
    let wanted = match filter.as_str() {
        "" | "{}" => None,
        text => Some(parse_json_line(text).map_err(|error| faulty(error.to_string()))?.to_raw()),
    };
    let trail = AuditTrail::new(Arc::new(file), wanted.as_deref()).map_err(faulty)?;
    info!("the audit trail goes to {}", path.display());
    Ok(Some(trail))
}
