//! Parts of connection strings, percent-encoded.

use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// Characters that stay as they are in a connection string.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A part of a connection string.
pub(crate) fn encoded(text: &str) -> String {
    percent_encode(text.as_bytes(), ENCODED).to_string()
}

/// The connection string of the server that listens on a unix socket.
pub(crate) fn socket_uri(path: &Path) -> String {
    format!("mongodb://{}", percent_encode(path.as_os_str().as_encoded_bytes(), ENCODED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_socket_is_the_host_of_its_connection_string() {
        assert_eq!(
            socket_uri(Path::new("/run/pan do/pando.sock")),
            "mongodb://%2Frun%2Fpan%20do%2Fpando.sock"
        );
    }
}
