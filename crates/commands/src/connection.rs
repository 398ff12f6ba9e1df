//! What the commands remember of a connection.

use pando_document::RawDocumentBuf;

/// The state of one connection: made by the server at accept, handed to every request of it.
#[derive(Clone, Debug)]
pub struct ConnectionState {
    id: i64,
    peer: String,
    /// What the client said of itself in its first `hello`.
    client: Option<RawDocumentBuf>,
}

impl ConnectionState {
    /// A connection: its number (from 1) and the address at its other end (`127.0.0.1:41484`, or the socket's path).
    pub fn new(id: i64, peer: impl Into<String>) -> ConnectionState {
        ConnectionState { id, peer: peer.into(), client: None }
    }

    /// Its number, as `hello` shows it.
    pub fn id(&self) -> i64 {
        self.id
    }

    /// The address at its other end.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// What the client said of itself.
    pub fn client(&self) -> Option<&RawDocumentBuf> {
        self.client.as_ref()
    }

    /// Remembers what the client says of itself, the first time.
    pub(crate) fn remember_client(&mut self, client: RawDocumentBuf) {
        self.client.get_or_insert(client);
    }
}
