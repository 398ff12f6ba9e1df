//! A request that found the device in its way, and goes on from there when it is handled again.
//!
//! 1. A command that cannot go on without a read leaves here what it has worked out, with a copy of its request.
//! 2. The same request, handled again on the same connection, goes on with that: nothing is parsed, looked up or begun twice.
//!    A different request finds nothing; what waited is dropped, and so is its snapshot. So it is when the connection cannot go on
//!    because its client does not read ([`ConnectionState::let_go`](crate::ConnectionState::let_go)).
//!
//! Only point lookups are worth it: with data larger than memory nearly all of them come by here, and a second look at the
//! request costs them as much as the first.

use std::fmt;

use pando_document::RawDocument;

use crate::Request;
use crate::crud::point_lookup::PointLookup;

/// What waits; see the module's head.
pub(crate) struct Parked {
    body: Vec<u8>,
    lookup: PointLookup,
}

impl Parked {
    /// Parks a lookup with its request.
    pub fn new(body: &RawDocument, lookup: PointLookup) -> Parked {
        Parked { body: body.as_bytes().to_vec(), lookup }
    }

    /// Whether it is this request's. A find comes without document sequences.
    pub fn is_of(&self, request: &Request<'_>) -> bool {
        request.sequences.is_empty() && self.body == request.body.as_bytes()
    }

    /// What to go on with.
    pub fn lookup(&self) -> &PointLookup {
        &self.lookup
    }
}

impl fmt::Debug for Parked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a lookup in {}", self.lookup.collection.full_name())
    }
}
