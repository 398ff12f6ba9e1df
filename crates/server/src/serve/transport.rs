//! TLS of a server from its configuration, the renewal of its certificates, and the memory that a crash
//! leaves.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use pando_commands::{CertificateRotation, OwnCertificate};
use pando_tls::{CertificateFacts, ServerTls, TlsError, Validity};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tracing::{info, warn};

use super::ServeError;
use crate::configuration::{Configuration, CoreDumps, TlsMode};
use crate::error_text::error_text;
use crate::network::{PlainText, Security};

/// The certificates of a running server.
#[derive(Debug)]
pub(super) struct Certificates {
    tls: Arc<ServerTls>,
    /// The file of the server's private key.
    key: PathBuf,
}

impl Certificates {
    /// Reads the files again, for connections that come from now on.
    pub(super) fn renew(&self) -> Result<(), TlsError> {
        let renewed = self.tls.reload();
        match &renewed {
            Ok(()) => {
                tell(&self.tls.certificate(), "read the certificates again");
                warn_of_open_key(&self.key);
            }
            Err(error) => warn!("the former certificates stay in use: {}", error_text(error)),
        }
        renewed
    }
}

impl CertificateRotation for Certificates {
    fn rotate(&self) -> Result<(), String> {
        self.renew().map_err(|error| error_text(&error))
    }

    fn own(&self) -> Option<OwnCertificate> {
        let CertificateFacts { subject, valid_to, .. } = self.tls.certificate();
        Some(OwnCertificate { subject, valid_to_ms: i64::try_from(valid_to.as_millis()).unwrap_or(i64::MAX) })
    }
}

/// Reads the files of TLS, if it is asked for.
pub(super) fn load_tls(configuration: &Configuration) -> Result<Option<Arc<Certificates>>, ServeError> {
    let transport = &configuration.transport;
    let mode = transport.tls_mode.word();
    let has_file = !transport.tls.certificate_key.as_os_str().is_empty();
    if transport.tls_mode == TlsMode::Disabled {
        // A user who names a certificate expects encryption.
        return match has_file {
            true => Err(ServeError::TlsOff { option: "--tls-certificate-key-file" }),
            false if transport.tls.issuers.is_some() => Err(ServeError::TlsOff { option: "--tls-ca-file" }),
            false => Ok(None),
        };
    }
    if !has_file {
        return Err(ServeError::NoCertificate { mode });
    }
    let tls = ServerTls::load(transport.tls.clone()).map_err(|source| ServeError::Tls { mode, source })?;
    tell(&tls.certificate(), "TLS is on");
    if transport.tls.issuers.is_none() {
        info!("no client is asked for a certificate, because --tls-ca-file names no issuers");
    }
    let key = transport.tls.certificate_key.clone();
    warn_of_open_key(&key);
    Ok(Some(Arc::new(Certificates { tls: Arc::new(tls), key })))
}

/// Logs that every user of the machine can read the private key.
fn warn_of_open_key(key: &Path) {
    let is_open = std::fs::metadata(key).is_ok_and(|found| found.permissions().mode() & 0o004 != 0);
    if is_open {
        warn!(
            "the mode of {} lets every user read the private key in it; run chmod o-rwx on it",
            key.display()
        );
    }
}

/// Logs the server's certificate, and what an operator has to do about its dates.
fn tell(certificate: &CertificateFacts, event: &str) {
    let CertificateFacts { subject, valid_to_text, .. } = certificate;
    info!("{event}: the certificate is that of {subject}, valid to {valid_to_text}");
    match certificate.validity(SystemTime::now()) {
        Validity::Now => {}
        Validity::NotYet => warn!(
            "the certificate of {subject} is not valid yet, so clients refuse it; look at the clock of this machine, or renew \
             the certificate"
        ),
        Validity::EndsWithinDays(days) => {
            warn!(
                "the certificate of {subject} ends within {} days ({valid_to_text}); renew it, then send SIGHUP",
                days + 1
            );
        }
        Validity::Over => warn!(
            "the certificate of {subject} has ended ({valid_to_text}), so clients refuse it; renew it, then send SIGHUP"
        ),
    }
}

/// The security of the TCP listeners.
pub(super) fn security(configuration: &Configuration, tls: Option<&Arc<Certificates>>) -> Security {
    let Some(certificates) = tls else { return Security::Plain };
    let plain = match configuration.transport.tls_mode {
        TlsMode::Require => PlainText::Refused,
        TlsMode::Disabled | TlsMode::Allow | TlsMode::Prefer => PlainText::Served,
    };
    Security::Tls { tls: Arc::clone(&certificates.tls), plain }
}

/// Keeps the memory of the process out of core dumps, where it has secrets. It also keeps other processes of
/// the same user from reading the memory.
pub(super) fn limit_core_dumps(configuration: &Configuration) {
    let transport = &configuration.transport;
    let off = match transport.core_dumps {
        CoreDumps::On => false,
        CoreDumps::Off => true,
        CoreDumps::WithoutSecrets => {
            transport.tls_mode != TlsMode::Disabled || configuration.encryption.is_on()
        }
    };
    if !off {
        return;
    }
    match set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        Ok(()) => info!("core dumps are off, so that no key gets to the disk; --core-dumps on allows them"),
        Err(error) => warn!(
            "cannot turn core dumps off ({error}); a crash may leave keys on the disk; set the limit with ulimit -c 0"
        ),
    }
}
