//! The fault of a handshake that failed, as far as the client can tell.

use std::io;

use rustls::{AlertDescription, Error};

/// See the module's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeFault {
    /// The other end has not answered in TLS, or has refused it before a certificate was seen: as a rule it
    /// speaks no TLS.
    NoTls,
    /// Any other, such as a certificate of an unknown issuer.
    Other,
}

impl HandshakeFault {
    /// The fault that an error of a client's handshake tells of.
    pub fn of(error: &io::Error) -> HandshakeFault {
        let is_closed = matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted
        );
        match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
            Some(Error::InvalidMessage(_) | Error::AlertReceived(AlertDescription::HandshakeFailure)) => {
                HandshakeFault::NoTls
            }
            None if is_closed => HandshakeFault::NoTls,
            Some(_) | None => HandshakeFault::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_speaks_no_tls_is_told_from_a_wrong_certificate() {
        let fault = |error: Error| HandshakeFault::of(&io::Error::new(io::ErrorKind::InvalidData, error));
        assert_eq!(fault(Error::AlertReceived(AlertDescription::HandshakeFailure)), HandshakeFault::NoTls);
        assert_eq!(fault(Error::AlertReceived(AlertDescription::CertificateRequired)), HandshakeFault::Other);
        assert_eq!(HandshakeFault::of(&io::Error::from(io::ErrorKind::UnexpectedEof)), HandshakeFault::NoTls);
        let unknown = Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        assert_eq!(fault(unknown), HandshakeFault::Other);
    }
}
