//! PEM files: a chain of certificates with its private key, certificates of issuers, lists of revoked ones.

use std::path::Path;
use std::sync::Arc;

use pkcs8::{EncryptedPrivateKeyInfoRef, SecretDocument};
use rustls::RootCertStore;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

use crate::{TlsError, provider};

/// The content of a certificate-key file, for people.
const CERTIFICATE_AND_KEY: &str = "a certificate, those of its issuers, and its private key";
/// The content of a file of issuers, for people.
const ISSUERS: &str = "the certificates of issuers that are trusted";
/// The content of a file of revoked certificates, for people.
const REVOKED: &str = "lists of revoked certificates";
/// The label of a PEM block with an encrypted key.
const BEGIN_ENCRYPTED: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const END_ENCRYPTED: &str = "-----END ENCRYPTED PRIVATE KEY-----";
/// The content of a file with a password, for people.
const PASSWORD: &str = "the password of a private key";
/// The header of an older PEM block whose key is encrypted.
const ENCRYPTED_HEADER: &[u8] = b"Proc-Type: 4,ENCRYPTED";

#[allow(
    clippy::disallowed_methods,
    reason = "certificates are files of the machine and not of the store, which tests simulate"
)]
fn read(file: &Path, content: &'static str) -> Result<Vec<u8>, TlsError> {
    std::fs::read(file).map_err(|source| TlsError::Read { file: file.to_owned(), content, source })
}

fn pem_error(file: &Path, error: &PemError) -> TlsError {
    TlsError::Pem { file: file.to_owned(), cause: error.to_string() }
}

/// Every PEM block of one kind.
fn blocks<T: PemObject>(file: &Path, bytes: &[u8]) -> Result<Vec<T>, TlsError> {
    T::pem_slice_iter(bytes).collect::<Result<_, _>>().map_err(|error| pem_error(file, &error))
}

/// Reads a chain of certificates and the private key of the first one, which may be encrypted by the password
/// in the first line of another file.
pub(crate) fn certificate_and_key(
    file: &Path,
    password_file: Option<&Path>,
) -> Result<CertifiedKey, TlsError> {
    let bytes = read(file, CERTIFICATE_AND_KEY)?;
    let has = |needle: &[u8]| bytes.windows(needle.len()).any(|part| part == needle);
    // The headers of such a block are no base64, so that no block of the file could be read.
    if has(ENCRYPTED_HEADER) {
        return Err(TlsError::OldEncryption { file: file.to_owned() });
    }
    let chain: Vec<CertificateDer<'static>> = blocks(file, &bytes)?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate { file: file.to_owned(), content: CERTIFICATE_AND_KEY });
    }
    let key = match (has(BEGIN_ENCRYPTED.as_bytes()), password_file) {
        (true, None) => return Err(TlsError::EncryptedKey { file: file.to_owned() }),
        (true, Some(password_file)) => decrypted_key(file, &bytes, password_file)?,
        (false, _) => match PrivateKeyDer::from_pem_slice(&bytes) {
            Ok(key) => key,
            Err(PemError::NoItemsFound) => return Err(TlsError::NoKey { file: file.to_owned() }),
            Err(error) => return Err(pem_error(file, &error)),
        },
    };
    CertifiedKey::from_der(chain, key, &provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => TlsError::WrongKey { file: file.to_owned() },
        other => TlsError::Unusable { file: file.to_owned(), cause: other.to_string() },
    })
}

/// Decrypts the first encrypted key of a file.
fn decrypted_key(
    file: &Path,
    bytes: &[u8],
    password_file: &Path,
) -> Result<PrivateKeyDer<'static>, TlsError> {
    let content = read(password_file, PASSWORD)?;
    let line = content.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let password = line.strip_suffix(b"\r").unwrap_or(line);
    let undone = |cause: String| TlsError::Decryption { file: file.to_owned(), cause };
    let text = String::from_utf8_lossy(bytes);
    let block = text.split_once(BEGIN_ENCRYPTED).and_then(|(_, rest)| rest.split_once(END_ENCRYPTED));
    let (block, _) = block.ok_or_else(|| undone("its block has no end".to_owned()))?;
    let (_, document) = SecretDocument::from_pem(&format!("{BEGIN_ENCRYPTED}{block}{END_ENCRYPTED}\n"))
        .map_err(|error| undone(error.to_string()))?;
    let encrypted = EncryptedPrivateKeyInfoRef::try_from(document.as_bytes())
        .map_err(|error| undone(error.to_string()))?;
    let decrypted = encrypted.decrypt(password).map_err(|error| undone(error.to_string()))?;
    Ok(PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(decrypted.as_bytes().to_vec())))
}

/// Reads the certificates of issuers.
pub(crate) fn issuers(file: &Path) -> Result<Arc<RootCertStore>, TlsError> {
    let certificates: Vec<CertificateDer<'static>> = blocks(file, &read(file, ISSUERS)?)?;
    if certificates.is_empty() {
        return Err(TlsError::NoCertificate { file: file.to_owned(), content: ISSUERS });
    }
    let mut store = RootCertStore::empty();
    for certificate in certificates {
        store
            .add(certificate)
            .map_err(|error| TlsError::Issuers { file: file.to_owned(), cause: error.to_string() })?;
    }
    Ok(Arc::new(store))
}

/// Reads lists of revoked certificates.
pub(crate) fn revoked(file: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let lists: Vec<CertificateRevocationListDer<'static>> = blocks(file, &read(file, REVOKED)?)?;
    if lists.is_empty() {
        return Err(TlsError::NoRevoked { file: file.to_owned() });
    }
    Ok(lists)
}
