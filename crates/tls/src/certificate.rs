//! The facts of one certificate that people and logins need: its name and its dates.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::Decode;

use crate::distinguished_name;

/// Name and dates of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFacts {
    /// Its subject in the form of RFC 2253, such as `CN=app,OU=clients,O=example`.
    pub subject: String,
    /// It is valid from this time on, since 1970.
    pub valid_from: Duration,
    /// It is valid up to this time, since 1970.
    pub valid_to: Duration,
    /// The same for people, such as `2027-01-31T00:00:00Z`.
    pub valid_to_text: String,
}

/// Whether a certificate can be used now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// Its time has not come.
    NotYet,
    /// It is valid.
    Now,
    /// It is valid, and ends within this number of days.
    EndsWithinDays(u64),
    /// Its time is over.
    Over,
}

/// An operator wants to know of the end of a certificate for this long before.
const NOTICE: Duration = Duration::from_secs(30 * DAY_SECONDS);
const DAY_SECONDS: u64 = 24 * 60 * 60;

impl CertificateFacts {
    /// Reads them from a certificate; `None` if it is broken.
    pub fn of_der(certificate: &[u8]) -> Option<CertificateFacts> {
        let certificate = CertificateInner::<Raw>::from_der(certificate).ok()?;
        let certificate = certificate.tbs_certificate();
        let validity = certificate.validity();
        Some(CertificateFacts {
            subject: distinguished_name::text(certificate.subject()),
            valid_from: validity.not_before.to_unix_duration(),
            valid_to: validity.not_after.to_unix_duration(),
            valid_to_text: validity.not_after.to_date_time().to_string(),
        })
    }

    /// Whether it can be used at this time.
    pub fn validity(&self, now: SystemTime) -> Validity {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        if now < self.valid_from {
            return Validity::NotYet;
        }
        match self.valid_to.checked_sub(now) {
            None => Validity::Over,
            Some(left) if left < NOTICE => Validity::EndsWithinDays(left.as_secs() / DAY_SECONDS),
            Some(_) => Validity::Now,
        }
    }
}
