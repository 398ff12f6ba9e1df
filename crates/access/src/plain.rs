//! The one message of the mechanism PLAIN (RFC 4616): a name and a password as they are.

/// The longest message, in bytes.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// A name and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct PlainMessage {
    /// The name of the user.
    pub user: String,
    /// The password.
    pub password: String,
}

/// The message is none of PLAIN, or asks for the rights of another user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its message is none of PLAIN, or asks for the rights of another user")]
pub struct PlainFault;

/// The password stays out of logs.
impl std::fmt::Debug for PlainMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a name and a password")
    }
}

impl PlainMessage {
    /// Reads the message: the user to act for, which is empty or the same, the user, and the password, with a
    /// zero between them.
    ///
    /// # Errors
    /// See [`PlainFault`].
    pub fn read(message: &[u8]) -> Result<PlainMessage, PlainFault> {
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(PlainFault);
        }
        let text = std::str::from_utf8(message).map_err(|_| PlainFault)?;
        let mut parts = text.split('\0');
        let (Some(acting_for), Some(user), Some(password), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(PlainFault);
        };
        let is_own = acting_for.is_empty() || acting_for == user;
        if !is_own || user.is_empty() || password.is_empty() {
            return Err(PlainFault);
        }
        Ok(PlainMessage { user: user.to_owned(), password: password.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_a_password_are_read_and_all_else_is_refused() {
        let wanted = PlainMessage { user: "ada".to_owned(), password: "p".to_owned() };
        assert_eq!(PlainMessage::read(b"\0ada\0p"), Ok(wanted.clone()));
        assert_eq!(PlainMessage::read(b"ada\0ada\0p"), Ok(wanted.clone()));
        assert!(!format!("{wanted:?}").contains('p') || !format!("{wanted:?}").contains("\"p\""));
        for broken in [
            &b""[..],
            b"ada\0p",
            b"bob\0ada\0p",
            b"\0\0p",
            b"\0ada\0",
            b"\0ada\0p\0",
            b"\0ada\0p\0q",
            b"\0\xff\0p",
        ] {
            assert_eq!(PlainMessage::read(broken), Err(PlainFault), "{broken:?}");
        }
        assert_eq!(PlainMessage::read(&[b'x'; MESSAGE_BYTES_MAX + 1]), Err(PlainFault));
    }
}
