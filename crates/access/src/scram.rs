//! One SCRAM exchange, the server's side (RFC 5802, RFC 7677), without channel binding.
//!
//! 1. [`ClientFirst::read`]: the user and the client's nonce.
//! 2. [`Exchange::begin`] adds a nonce of the server and names salt and rounds.
//! 3. [`Exchange::finish`] checks the client's proof in constant time, and proves that the server knows the
//!    credential, too.

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};
use ring::{digest, hmac, pbkdf2};

/// The longest message of a client, in bytes.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// A mechanism by which clients log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mechanism {
    /// With SHA-1, and a password that MongoDB digests by MD5 before.
    ScramSha1,
    /// With SHA-256, and a password prepared by SASLprep.
    ScramSha256,
}

/// The client is not logged in. The reason is for the log of the server and never for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScramFault {
    /// Its message is none of SCRAM.
    #[error("its message is none of SCRAM")]
    Form,
    /// Its nonce is not that of this exchange.
    #[error("its nonce is that of another exchange")]
    Nonce,
    /// It does not know the password.
    #[error("it could not prove that it knows the password")]
    Proof,
    /// Its password has characters that SASLprep forbids.
    #[error("the password has characters that SASLprep forbids")]
    Password,
    /// Its password has characters beyond ASCII, and this build has no SASLprep.
    #[error("the password has characters beyond ASCII, for which this build has no SASLprep")]
    NotBuilt,
}

/// The keys that are stored for a user. The password cannot be computed from them.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// The rounds of the derivation.
    pub rounds: u32,
    /// The salt.
    pub salt: Vec<u8>,
    /// The hash of the client's key.
    pub stored_key: Vec<u8>,
    /// The key of the server's signature.
    pub server_key: Vec<u8>,
}

/// Keys stay out of logs.
impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a credential for {}", self.mechanism.name())
    }
}

impl Mechanism {
    /// All, in the order in which clients prefer them.
    pub const ALL: [Mechanism; 2] = [Mechanism::ScramSha256, Mechanism::ScramSha1];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::ScramSha1 => "SCRAM-SHA-1",
            Mechanism::ScramSha256 => "SCRAM-SHA-256",
        }
    }

    /// The mechanism of this name.
    pub fn of_name(name: &str) -> Option<Mechanism> {
        [Mechanism::ScramSha1, Mechanism::ScramSha256].into_iter().find(|known| known.name() == name)
    }

    /// The rounds of new credentials, as MongoDB has them.
    pub fn rounds(self) -> u32 {
        match self {
            Mechanism::ScramSha1 => 10_000,
            Mechanism::ScramSha256 => 15_000,
        }
    }

    /// The bytes of the salt of new credentials, as MongoDB has them.
    pub fn salt_bytes(self) -> usize {
        match self {
            Mechanism::ScramSha1 => 16,
            Mechanism::ScramSha256 => 28,
        }
    }

    /// The bytes of each key of a credential.
    pub fn key_bytes(self) -> usize {
        match self {
            Mechanism::ScramSha1 => 20,
            Mechanism::ScramSha256 => 32,
        }
    }

    /// The secret that the keys are derived from.
    ///
    /// # Errors
    /// The password has characters that SASLprep forbids. A build without the feature `saslprep` takes
    /// ASCII only.
    pub fn secret(self, user: &str, password: &str) -> Result<String, ScramFault> {
        match self {
            Mechanism::ScramSha1 => {
                let digest = Md5::digest(format!("{user}:mongo:{password}"));
                Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
            }
            Mechanism::ScramSha256 => prepared(password),
        }
    }

    /// The key that all others are derived from.
    pub(crate) fn salted(self, secret: &str, salt: &[u8], rounds: u32) -> Vec<u8> {
        let algorithm = match self {
            Mechanism::ScramSha1 => pbkdf2::PBKDF2_HMAC_SHA1,
            Mechanism::ScramSha256 => pbkdf2::PBKDF2_HMAC_SHA256,
        };
        // As long as a hash.
        let mut salted = vec![0; self.key_bytes()];
        let rounds = NonZeroU32::new(rounds).unwrap_or(NonZeroU32::MIN);
        pbkdf2::derive(algorithm, rounds, salt, secret.as_bytes(), &mut salted);
        salted
    }

    pub(crate) fn hmac(self, key: &[u8], data: &[u8]) -> Vec<u8> {
        let algorithm = match self {
            Mechanism::ScramSha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Mechanism::ScramSha256 => hmac::HMAC_SHA256,
        };
        mac_of(algorithm, key, data)
    }

    pub(crate) fn hash(self, data: &[u8]) -> Vec<u8> {
        let algorithm = match self {
            Mechanism::ScramSha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Mechanism::ScramSha256 => &digest::SHA256,
        };
        digest::digest(algorithm, data).as_ref().to_vec()
    }
}

/// A password prepared by SASLprep (RFC 4013).
#[cfg(feature = "saslprep")]
fn prepared(password: &str) -> Result<String, ScramFault> {
    stringprep::saslprep(password).map(std::borrow::Cow::into_owned).map_err(|_| ScramFault::Password)
}

/// A password prepared by SASLprep, which leaves printable ASCII as it is and forbids the rest of ASCII.
#[cfg(not(feature = "saslprep"))]
fn prepared(password: &str) -> Result<String, ScramFault> {
    match password.bytes().find(|byte| !matches!(byte, 0x20..=0x7E)) {
        None => Ok(password.to_owned()),
        Some(byte) if byte.is_ascii() => Err(ScramFault::Password),
        Some(_) => Err(ScramFault::NotBuilt),
    }
}

fn mac_of(algorithm: hmac::Algorithm, key: &[u8], data: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(algorithm, key), data).as_ref().to_vec()
}

/// Whether two secrets are one, in a time that does not tell where they differ: their codes under one key are
/// compared.
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"comparison");
    hmac::verify(&key, one, hmac::sign(&key, other).as_ref()).is_ok()
}

impl Credential {
    /// The keys of a secret ([`Mechanism::secret`]).
    pub fn derive(mechanism: Mechanism, secret: &str, salt: &[u8], rounds: u32) -> Credential {
        let salted = mechanism.salted(secret, salt, rounds);
        let stored_key = mechanism.hash(&mechanism.hmac(&salted, b"Client Key"));
        let server_key = mechanism.hmac(&salted, b"Server Key");
        Credential { mechanism, rounds, salt: salt.to_vec(), stored_key, server_key }
    }

    /// Whether a password of this user has these keys. It takes as long for a wrong one.
    pub fn is_of(&self, user: &str, password: &str) -> bool {
        let Ok(secret) = self.mechanism.secret(user, password) else { return false };
        let derived = Credential::derive(self.mechanism, &secret, &self.salt, self.rounds);
        // Both are compared in any case.
        are_equal(&derived.stored_key, &self.stored_key) & are_equal(&derived.server_key, &self.server_key)
    }
}

/// Credentials of users that there are not: an exchange with one of them looks like that of a user whose
/// password the client does not know.
#[derive(Clone)]
pub struct Decoys {
    secret: [u8; 32],
}

/// The secret stays out of logs.
impl std::fmt::Debug for Decoys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "decoys")
    }
}

impl Decoys {
    /// Those that follow from a secret of the server. The same name has the same salt for as long as the
    /// secret stays, as a real user has.
    pub fn new(seed: &[u8]) -> Decoys {
        let mut secret = [0; 32];
        secret.copy_from_slice(digest::digest(&digest::SHA256, seed).as_ref());
        Decoys { secret }
    }

    /// The credential for a user. No password belongs to it.
    pub fn credential(&self, mechanism: Mechanism, database: &str, user: &str) -> Credential {
        let part = |purpose: &str, bytes: usize| {
            let named = format!("{purpose}\0{}\0{database}\0{user}", mechanism.name());
            let mut derived = mac_of(hmac::HMAC_SHA256, &self.secret, named.as_bytes());
            derived.truncate(bytes);
            derived
        };
        let key_bytes = mechanism.key_bytes();
        Credential {
            mechanism,
            rounds: mechanism.rounds(),
            salt: part("salt", mechanism.salt_bytes()),
            stored_key: part("stored key", key_bytes),
            server_key: part("server key", key_bytes),
        }
    }
}

/// The first message of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFirst {
    /// The name of the user, without escapes.
    pub user: String,
    nonce: String,
    bare: String,
}

impl ClientFirst {
    /// Reads the message.
    ///
    /// # Errors
    /// It is none of SCRAM, or asks for channel binding or for the rights of another user.
    pub fn read(message: &[u8]) -> Result<ClientFirst, ScramFault> {
        let text = text_of(message)?;
        let bare = text.strip_prefix("n,,").ok_or(ScramFault::Form)?;
        let (user, nonce) = bare.split_once(',').ok_or(ScramFault::Form)?;
        let user = unescaped(user.strip_prefix("n=").ok_or(ScramFault::Form)?)?;
        let nonce = nonce.strip_prefix("r=").ok_or(ScramFault::Form)?;
        let is_nonce = nonce.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
        if user.is_empty() || nonce.is_empty() || !is_nonce {
            return Err(ScramFault::Form);
        }
        Ok(ClientFirst { user, nonce: nonce.to_owned(), bare: bare.to_owned() })
    }
}

fn text_of(message: &[u8]) -> Result<&str, ScramFault> {
    if message.len() > MESSAGE_BYTES_MAX || message.contains(&0) {
        return Err(ScramFault::Form);
    }
    std::str::from_utf8(message).map_err(|_| ScramFault::Form)
}

/// A name without the escapes of `,` and `=`.
fn unescaped(name: &str) -> Result<String, ScramFault> {
    let mut parts = name.split('=');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (character, rest) = match (part.strip_prefix("2C"), part.strip_prefix("3D")) {
            (Some(rest), _) => (',', rest),
            (None, Some(rest)) => ('=', rest),
            (None, None) => return Err(ScramFault::Form),
        };
        plain.push(character);
        plain.push_str(rest);
    }
    Ok(plain)
}

/// An exchange whose second message the client owes.
#[derive(Clone, Debug)]
pub struct Exchange {
    credential: Credential,
    nonce: String,
    /// The two first messages, as they are signed.
    signed: String,
}

impl Exchange {
    /// Answers the first message of a client. `server_nonce` is random and has no comma.
    pub fn begin(first: &ClientFirst, credential: Credential, server_nonce: &str) -> (Exchange, String) {
        let nonce = format!("{}{server_nonce}", first.nonce);
        let salt = STANDARD.encode(&credential.salt);
        let reply = format!("r={nonce},s={salt},i={}", credential.rounds);
        let signed = format!("{},{reply}", first.bare);
        (Exchange { credential, nonce, signed }, reply)
    }

    /// The credential that the client has to know the password of.
    pub fn credential(&self) -> &Credential {
        &self.credential
    }

    /// Checks the proof of the client. Gives the last message.
    ///
    /// # Errors
    /// The message is broken or from another exchange, or the proof is wrong.
    pub fn finish(self, message: &[u8]) -> Result<String, ScramFault> {
        let text = text_of(message)?;
        let (without_proof, proof) = text.rsplit_once(",p=").ok_or(ScramFault::Form)?;
        let nonce = without_proof.strip_prefix("c=biws,r=").ok_or(ScramFault::Form)?;
        if !are_equal(nonce.as_bytes(), self.nonce.as_bytes()) {
            return Err(ScramFault::Nonce);
        }
        let proof = STANDARD.decode(proof).map_err(|_| ScramFault::Form)?;
        let Credential { mechanism, stored_key, server_key, .. } = &self.credential;
        let signed = format!("{},{without_proof}", self.signed);
        let signature = mechanism.hmac(stored_key, signed.as_bytes());
        if proof.len() != signature.len() {
            return Err(ScramFault::Proof);
        }
        let client_key: Vec<u8> = proof.iter().zip(&signature).map(|(left, right)| left ^ right).collect();
        if !are_equal(&mechanism.hash(&client_key), stored_key) {
            return Err(ScramFault::Proof);
        }
        let own = mechanism.hmac(server_key, signed.as_bytes());
        Ok(format!("v={}", STANDARD.encode(own)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(mechanism: Mechanism, nonces: (&str, &str), salt: &str) -> Exchange {
        let salt = STANDARD.decode(salt).unwrap();
        let credential = Credential::derive(mechanism, "pencil", &salt, 4096);
        let first = ClientFirst::read(format!("n,,n=user,r={}", nonces.0).as_bytes()).unwrap();
        Exchange::begin(&first, credential, nonces.1).0
    }

    fn of_rfc_7677() -> Exchange {
        let nonces = ("rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0");
        exchange(Mechanism::ScramSha256, nonces, "W22ZaJ0SNY7soEsUEjb6gQ==")
    }

    const FINAL: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=";

    #[test]
    fn the_examples_of_the_standards_are_answered_as_they_say() {
        let nonces = ("fyko+d2lbbFgONRv9qkxdawL", "3rfcNHYJY1ZVvWVs7j");
        let sha1 = exchange(Mechanism::ScramSha1, nonces, "QSXCR+Q6sek8bf92");
        let last = "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=";
        assert_eq!(sha1.finish(last.as_bytes()).unwrap(), "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=");
        let last = format!("{FINAL}dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
        let answer = of_rfc_7677().finish(last.as_bytes()).unwrap();
        assert_eq!(answer, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn a_wrong_proof_a_foreign_nonce_and_broken_messages_are_refused() {
        let refused = |message: String| of_rfc_7677().finish(message.as_bytes()).unwrap_err();
        assert_eq!(refused(format!("{FINAL}AAAA")), ScramFault::Proof);
        assert_eq!(refused(format!("{FINAL}{}", STANDARD.encode([0; 32]))), ScramFault::Proof);
        assert_eq!(refused(format!("{FINAL}!")), ScramFault::Form);
        assert_eq!(refused("c=biws,r=other,p=AAAA".to_owned()), ScramFault::Nonce);
        assert_eq!(refused("c=eSws,r=other,p=AAAA".to_owned()), ScramFault::Form);
        for message in [
            "",
            "n,,",
            "n,,n=u",
            "y,,n=u,r=x",
            "n,a=v,n=u,r=x",
            "n,,n=,r=x",
            "n,,n=a=2c,r=x",
            "n,,n=u,r=a,m=b",
        ] {
            assert_eq!(ClientFirst::read(message.as_bytes()), Err(ScramFault::Form), "{message}");
        }
    }

    #[test]
    fn a_decoy_has_the_form_of_a_credential_and_stays_the_same() {
        let decoys = Decoys::new(b"seed");
        for mechanism in [Mechanism::ScramSha1, Mechanism::ScramSha256] {
            let real = Credential::derive(mechanism, "pencil", &[7; 28][..mechanism.salt_bytes()], 1);
            let decoy = decoys.credential(mechanism, "admin", "ada");
            assert_eq!(decoy.salt.len(), real.salt.len());
            assert_eq!(decoy.stored_key.len(), real.stored_key.len());
            assert_eq!(decoy.server_key.len(), real.server_key.len());
            assert!(decoy == decoys.credential(mechanism, "admin", "ada"));
            assert!(decoy.salt != decoys.credential(mechanism, "admin", "bob").salt);
            assert!(decoy.salt != decoys.credential(mechanism, "test", "ada").salt);
            assert!(decoy.salt != Decoys::new(b"other").credential(mechanism, "admin", "ada").salt);
        }
    }

    #[test]
    fn a_password_is_known_by_its_keys() {
        for mechanism in Mechanism::ALL {
            let secret = mechanism.secret("ada", "pencil").unwrap();
            let credential = Credential::derive(mechanism, &secret, b"salt", 2);
            assert!(credential.is_of("ada", "pencil") && !credential.is_of("ada", "pencils"));
            assert!(!Decoys::new(b"seed").credential(mechanism, "admin", "ada").is_of("ada", "pencil"));
        }
    }

    #[test]
    fn a_name_may_have_commas_and_equal_signs() {
        assert_eq!(ClientFirst::read(b"n,,n=a=2Cb=3Dc,r=x").unwrap().user, "a,b=c");
    }

    #[test]
    fn the_prepared_password_depends_on_the_mechanism() {
        let secret = |mechanism: Mechanism, password| mechanism.secret("user", password);
        assert_eq!(
            secret(Mechanism::ScramSha1, "pencil").as_deref(),
            Ok("1c33006ec1ffd90f9cadcbcc0e118200"),
            "the MD5 of user:mongo:pencil"
        );
        assert_eq!(secret(Mechanism::ScramSha256, "\u{2168}").as_deref(), Ok("IX"), "as SASLprep has it");
        assert_eq!(secret(Mechanism::ScramSha256, "a\u{7}"), Err(ScramFault::Password));
    }
}
