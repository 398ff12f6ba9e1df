//! One SCRAM exchange, the client's side (RFC 5802, RFC 7677), without channel binding.
//!
//! 1. [`Exchange::first`]: the user and a nonce.
//! 2. The server adds to the nonce, and names salt and rounds; [`Exchange::answer`] proves that the password
//!    is known.
//! 3. The server proves that it knows it, too: [`Exchange::check`].
//!
//! Deriving the key takes thousands of rounds, milliseconds each time: [`Keys`] keeps the last one for other
//! connections of the same client.

use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::scram::Mechanism;

/// Fewer rounds are not what a server of ours would ask for (RFC 7677).
const ROUNDS_MIN: u32 = 4096;
/// More would keep a client busy for many seconds.
const ROUNDS_MAX: u32 = 1_000_000;

/// A fault in the server's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerFault {
    /// It is no message of SCRAM.
    #[error("its message is none of SCRAM")]
    Form,
    /// It answers another client.
    #[error("its nonce does not begin with ours")]
    Nonce,
    /// The password would be derived too cheaply, or for ever.
    #[error("it asks for {0} rounds, not for {ROUNDS_MIN} to {ROUNDS_MAX}")]
    Rounds(u32),
    /// It does not know the password.
    #[error("it could not prove that it knows the password")]
    Proof,
}

/// The key that was derived last, and its origin.
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
        let key = mechanism.salted(secret, salt, rounds);
        *last = Some(Derived { mechanism, salt: salt.to_vec(), rounds, key: key.clone() });
        key
    }
}

/// An exchange.
pub struct Exchange {
    mechanism: Mechanism,
    secret: String,
    nonce: String,
    first_bare: String,
    /// The server's proof, once the client has given its own.
    expected: Vec<u8>,
}

impl Exchange {
    /// Begins one. The nonce is random and has no comma.
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
    ///
    /// # Errors
    /// The message is broken, or asks for a key that is derived too cheaply or for ever.
    pub fn answer(&mut self, server: &str, keys: &Keys) -> Result<String, ServerFault> {
        let nonce = attribute(server, 'r')?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(ServerFault::Nonce);
        }
        let salt = STANDARD.decode(attribute(server, 's')?).map_err(|_| ServerFault::Form)?;
        let rounds = attribute(server, 'i')?.parse().map_err(|_| ServerFault::Form)?;
        if !(ROUNDS_MIN..=ROUNDS_MAX).contains(&rounds) {
            return Err(ServerFault::Rounds(rounds));
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
    ///
    /// # Errors
    /// It does not.
    pub fn check(&self, server: &str) -> Result<(), ServerFault> {
        let proof = STANDARD.decode(attribute(server, 'v')?).map_err(|_| ServerFault::Form)?;
        if self.expected.is_empty() || proof != self.expected { Err(ServerFault::Proof) } else { Ok(()) }
    }
}

fn attribute(message: &str, name: char) -> Result<&str, ServerFault> {
    let of_name = |part: &str| part.strip_prefix(name).is_some_and(|rest| rest.starts_with('='));
    message.split(',').find(|part| of_name(part)).map(|part| &part[2..]).ok_or(ServerFault::Form)
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
        assert_eq!(exchange.check("v=AAAA"), Err(ServerFault::Proof));
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
    fn servers_that_answer_wrongly_are_not_believed() {
        let answer = |server: &str| {
            Exchange::new(Mechanism::ScramSha256, "a,b=c", "s".into(), "nonce".into())
                .answer(server, &Keys::default())
        };
        assert_eq!(answer("r=other,s=AAAA,i=4096"), Err(ServerFault::Nonce));
        assert_eq!(answer("r=nonce,s=AAAA,i=4096"), Err(ServerFault::Nonce), "nothing was added");
        assert_eq!(answer("r=nonce1,s=AAAA,i=1"), Err(ServerFault::Rounds(1)));
        assert_eq!(answer("r=nonce1,s=AAAA,i=4000000000"), Err(ServerFault::Rounds(4_000_000_000)));
        for wrong in ["", "r", "r=nonce1", "r=nonce1,s=*,i=4096", "r=nonce1,s=AAAA,i=many"] {
            assert_eq!(answer(wrong), Err(ServerFault::Form), "{wrong}");
        }
        let exchange = Exchange::new(Mechanism::ScramSha1, "a,b=c", "s".into(), "x".into());
        assert_eq!(exchange.first(), "n,,n=a=2Cb=3Dc,r=x", "what separates is written otherwise");
        assert_eq!(exchange.check("v=AAAA"), Err(ServerFault::Proof), "nothing was asked yet");
    }
}
