//! A point lookup that lacks a page, kept by its connection until its request is handled again.
//!
//! 1. A find that lacks one read of the device answers `WouldBlock` and leaves its [`PointLookup`] here, with
//!    a copy of the request's bytes.
//! 2. The caller makes the read and handles the same request again on the same connection. The lookup goes
//!    on: the request is neither parsed again nor given a new snapshot.
//! 3. A different request drops the suspended one, and its snapshot with it. So does a client that does not
//!    read its replies ([`ConnectionState::stall`](crate::ConnectionState::stall)).
//!
//! Only point lookups are suspended. Where the data is larger than memory nearly all of them come by here,
//! and parsing the request a second time would cost as much as the lookup.

use std::fmt;

use pando_document::RawDocument;

use crate::Request;
use crate::point_lookup::PointLookup;

/// A suspended find.
pub(crate) struct SuspendedFind {
    body: Vec<u8>,
    lookup: PointLookup,
}

impl SuspendedFind {
    /// Suspends a lookup with its request.
    pub fn new(body: &RawDocument, lookup: PointLookup) -> SuspendedFind {
        SuspendedFind { body: body.as_bytes().to_vec(), lookup }
    }

    /// Whether this request is the suspended one. A find comes without document sequences.
    pub fn is_of(&self, request: &Request<'_>) -> bool {
        request.sequences.is_empty() && self.body == request.body.as_bytes()
    }

    /// The lookup that goes on.
    pub fn lookup(&self) -> &PointLookup {
        &self.lookup
    }
}

impl fmt::Debug for SuspendedFind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a lookup in {}", self.lookup.collection.full_name())
    }
}
