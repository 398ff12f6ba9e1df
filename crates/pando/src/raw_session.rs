//! A session that takes commands as bytes, for callers that have BSON already, such as a benchmark.

use pando_commands::{ConnectionState, Request};

use crate::{Error, Pando};

/// A connection to an open store that takes command documents as they would stand on the wire. One request at
/// a time; use one for each thread.
#[derive(Debug)]
pub struct RawSession {
    store: Pando,
    connection: ConnectionState,
}

impl RawSession {
    pub(crate) fn new(store: Pando, connection: ConnectionState) -> RawSession {
        RawSession { store, connection }
    }

    /// Handles a request and appends the reply document to `reply`, a refusal (`ok: 0`) included; the request
    /// names its database in `$db`. Returns when the write is on the device, if the request asks for that.
    pub fn handle(&mut self, request: &Request<'_>, reply: &mut Vec<u8>) -> Result<(), Error> {
        self.store.handle(&mut self.connection, request, reply)
    }
}

#[cfg(test)]
mod tests {
    use crate::{DocumentSequence, EngineName, Options, Pando, Request};
    use pando_document::{RawDocument, doc};

    #[test]
    fn documents_go_in_beside_the_command_and_a_refusal_is_a_reply() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let options = Options { engine: EngineName::Memory, ..Options::default() };
        let store = Pando::open_with(folder.path(), &options).expect("memory opens");
        let mut session = store.raw_session();
        let mut run = |body: pando_document::Document, sequences: &[DocumentSequence<'_>]| {
            let body = body.to_raw();
            let mut reply = Vec::new();
            let request = Request { body: &body, sequences };
            session.handle(&request, &mut reply).expect("the engine runs");
            RawDocument::from_bytes(&reply).expect("a reply is a document").to_owned()
        };
        let documents = doc! { "_id": 7 }.to_raw();
        let sequence = DocumentSequence { identifier: "documents", documents: documents.as_bytes() };
        let inserted = run(doc! { "insert": "c", "$db": "a" }, &[sequence]);
        assert!(
            inserted.get("n").expect("whole").is_some_and(|n| n.as_i64_exact() == Some(1)),
            "{inserted:?}"
        );
        let refused = run(doc! { "noSuchCommand": 1, "$db": "a" }, &[]);
        assert!(refused.get("errmsg").expect("whole").is_some(), "{refused:?}");
    }
}
