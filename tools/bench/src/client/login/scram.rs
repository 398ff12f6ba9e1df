//! One SCRAM exchange, the client's side (RFC 5802, RFC 7677), without channel binding.
//!
//! 1. [`Exchange::first`]: the user and a nonce.
//! 2. The server adds to the nonce, and names salt and rounds; [`Exchange::answer`] proves that the password
//!    is known.
//! 3. The server proves that it knows it, too: [`Exchange::check`].
//!
//! Deriving the key takes thousands of rounds, milliseconds each time: [`Keys`] keeps the last one for the
//! other clients of a run.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use pbkdf2::pbkdf2_hmac;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::sync::{Mutex, PoisonError};

/// Fewer rounds are not what a server of ours would ask for (RFC 7677).
const ROUNDS_MIN: u32 = 4096;
/// More would keep a client busy for many seconds.
const ROUNDS_MAX: u32 = 1_000_000;

/// How to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// With SHA-1, and a password that MongoDB digests by MD5 before.
    ScramSha1,
    /// With SHA-256.
    ScramSha256,
}

/// A fault in the server's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScramFault {
    /// It is no message of SCRAM.
    #[error("its message is none of SCRAM")]
    Form,
    #[error("its nonce does not begin with ours")]
    Nonce,
    /// The password would be derived too cheaply, or for ever.
    #[error("it asks for {0} rounds, not for {ROUNDS_MIN} to {ROUNDS_MAX}")]
    Rounds(u32),
    /// It does not know the password.
    #[error("it could not prove that it knows the password")]
    Proof,
}

impl Mechanism {
    /// All, in the order in which they are preferred.
    pub const ALL: [Mechanism; 2] = [Mechanism::ScramSha256, Mechanism::ScramSha1];

    pub fn name(self) -> &'static str {
        match self {
            Mechanism::ScramSha1 => "SCRAM-SHA-1",
            Mechanism::ScramSha256 => "SCRAM-SHA-256",
        }
    }

    pub fn of_name(name: &str) -> Option<Mechanism> {
        Mechanism::ALL.into_iter().find(|mechanism| mechanism.name() == name)
    }

    /// The secret behind the key; nothing if the password has characters that SCRAM does not take.
    pub fn secret(self, user: &str, password: &str) -> Option<String> {
        match self {
            Mechanism::ScramSha1 => {
                let digest = Md5::digest(format!("{user}:mongo:{password}"));
                Some(digest.iter().map(|byte| format!("{byte:02x}")).collect())
            }
            Mechanism::ScramSha256 => stringprep::saslprep(password).ok().map(|secret| secret.into_owned()),
        }
    }

    fn hash(self, data: &[u8]) -> Vec<u8> {
        match self {
            Mechanism::ScramSha1 => Sha1::digest(data).to_vec(),
            Mechanism::ScramSha256 => Sha256::digest(data).to_vec(),
        }
    }

    fn hmac(self, key: &[u8], data: &[u8]) -> Vec<u8> {
        match self {
            Mechanism::ScramSha1 => mac_of::<Hmac<Sha1>>(key, data),
            Mechanism::ScramSha256 => mac_of::<Hmac<Sha256>>(key, data),
        }
    }

    fn derive(self, secret: &str, salt: &[u8], rounds: u32) -> Vec<u8> {
        // As long as a hash.
        let mut key = self.hash(b"");
        match self {
            Mechanism::ScramSha1 => pbkdf2_hmac::<Sha1>(secret.as_bytes(), salt, rounds, &mut key),
            Mechanism::ScramSha256 => pbkdf2_hmac::<Sha256>(secret.as_bytes(), salt, rounds, &mut key),
        }
        key
    }
}

fn mac_of<M: KeyInit + Mac>(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(data);
    mac.finalize().into_bytes().to_vec()
}

/// The key that was derived last, and from what.
#[derive(Default)]
pub struct Keys {
    last: Mutex<Option<Derived>>,
}

struct Derived {
    mechanism: Mechanism,
    salt: Vec<u8>,
    rounds: u32,
    key: Vec<u8>,
}

impl Keys {
    fn of(&self, mechanism: Mechanism, secret: &str, salt: &[u8], rounds: u32) -> Vec<u8> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last
            .as_ref()
            .filter(|last| last.mechanism == mechanism && last.salt == salt && last.rounds == rounds);
        if let Some(known) = known {
            return known.key.clone();
        }
        let key = mechanism.derive(secret, salt, rounds);
        *last = Some(Derived { mechanism, salt: salt.to_vec(), rounds, key: key.clone() });
        key
    }
}

pub struct Exchange {
    mechanism: Mechanism,
    secret: String,
    nonce: String,
    first_bare: String,
    /// The server's proof, once the client has given its own.
    expected: Vec<u8>,
}

impl Exchange {
    pub fn new(mechanism: Mechanism, user: &str, secret: String, nonce: String) -> Exchange {
        let user = user.replace('=', "=3D").replace(',', "=2C");
        let first_bare = format!("n={user},r={nonce}");
        Exchange { mechanism, secret, nonce, first_bare, expected: Vec::new() }
    }

    /// The first message.
    pub fn first(&self) -> String {
        format!("n,,{}", self.first_bare)
    }

    /// The answer to the server's first message.
    pub fn answer(&mut self, server: &str, keys: &Keys) -> Result<String, ScramFault> {
        let nonce = attribute(server, 'r')?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(ScramFault::Nonce);
        }
        let salt = STANDARD.decode(attribute(server, 's')?).map_err(|_| ScramFault::Form)?;
        let rounds = attribute(server, 'i')?.parse().map_err(|_| ScramFault::Form)?;
        if !(ROUNDS_MIN..=ROUNDS_MAX).contains(&rounds) {
            return Err(ScramFault::Rounds(rounds));
        }
        let of = self.mechanism;
        let salted = keys.of(of, &self.secret, &salt, rounds);
        let client_key = of.hmac(&salted, b"Client Key");
        // "biws" is the base64 of "n,,": no channel binding.
        let without_proof = format!("c=biws,r={nonce}");
        let signed = format!("{},{server},{without_proof}", self.first_bare);
        let signature = of.hmac(&of.hash(&client_key), signed.as_bytes());
        let proof: Vec<u8> =
            client_key.iter().zip(&signature).map(|(key, signature)| key ^ signature).collect();
        self.expected = of.hmac(&of.hmac(&salted, b"Server Key"), signed.as_bytes());
        Ok(format!("{without_proof},p={}", STANDARD.encode(proof)))
    }

    /// Whether the server's last message proves that it knows the password.
    pub fn check(&self, server: &str) -> Result<(), ScramFault> {
        let proof = STANDARD.decode(attribute(server, 'v')?).map_err(|_| ScramFault::Form)?;
        if self.expected.is_empty() || proof != self.expected { Err(ScramFault::Proof) } else { Ok(()) }
    }
}

fn attribute(message: &str, name: char) -> Result<&str, ScramFault> {
    let of_name = |part: &str| part.strip_prefix(name).is_some_and(|rest| rest.starts_with('='));
    message.split(',').find(|part| of_name(part)).map(|part| &part[2..]).ok_or(ScramFault::Form)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An exchange with what the server says in it; gives the client's proof.
    fn exchange(mechanism: Mechanism, secret: &str, nonce: &str, first: &str, last: &str) -> String {
        let mut exchange = Exchange::new(mechanism, "user", secret.to_owned(), nonce.to_owned());
        assert_eq!(exchange.first(), format!("n,,n=user,r={nonce}"));
        let answer = exchange.answer(first, &Keys::default()).expect("the server's message is good");
        assert_eq!(exchange.check(last), Ok(()));
        assert_eq!(exchange.check("v=AAAA"), Err(ScramFault::Proof));
        answer.rsplit_once(",p=").expect("a proof").1.to_owned()
    }

    #[test]
    fn the_exchanges_of_the_standards_come_out() {
        let sha256 = exchange(
            Mechanism::ScramSha256,
            "pencil",
            "rOprNGfwEbeRWgbNEkqO",
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
        );
        assert_eq!(sha256, "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
        let sha1 = exchange(
            Mechanism::ScramSha1,
            "pencil",
            "fyko+d2lbbFgONRv9qkxdawL",
            "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
            "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
        );
        assert_eq!(sha1, "v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=");
    }

    #[test]
    fn the_prepared_password_depends_on_the_mechanism() {
        let secret = |mechanism: Mechanism, password| mechanism.secret("user", password);
        assert_eq!(
            secret(Mechanism::ScramSha1, "pencil").as_deref(),
            Some("1c33006ec1ffd90f9cadcbcc0e118200"),
            "the MD5 of user:mongo:pencil"
        );
        assert_eq!(secret(Mechanism::ScramSha256, "\u{2168}").as_deref(), Some("IX"), "as SASLprep has it");
        assert_eq!(secret(Mechanism::ScramSha256, "a\u{7}"), None);
    }

    #[test]
    fn servers_that_answer_wrongly_are_not_believed() {
        let answer = |server: &str| {
            Exchange::new(Mechanism::ScramSha256, "a,b=c", "s".into(), "nonce".into())
                .answer(server, &Keys::default())
        };
        assert_eq!(answer("r=other,s=AAAA,i=4096"), Err(ScramFault::Nonce));
        assert_eq!(answer("r=nonce,s=AAAA,i=4096"), Err(ScramFault::Nonce), "nothing was added");
        assert_eq!(answer("r=nonce1,s=AAAA,i=1"), Err(ScramFault::Rounds(1)));
        assert_eq!(answer("r=nonce1,s=AAAA,i=4000000000"), Err(ScramFault::Rounds(4_000_000_000)));
        for wrong in ["", "r", "r=nonce1", "r=nonce1,s=*,i=4096", "r=nonce1,s=AAAA,i=many"] {
            assert_eq!(answer(wrong), Err(ScramFault::Form), "{wrong}");
        }
        let exchange = Exchange::new(Mechanism::ScramSha1, "a,b=c", "s".into(), "x".into());
        assert_eq!(exchange.first(), "n,,n=a=2Cb=3Dc,r=x", "what separates is written otherwise");
        assert_eq!(exchange.check("v=AAAA"), Err(ScramFault::Proof), "nothing was asked yet");
    }
}
