//! The end of a connection, or its refusal: the cursor of its stream, and the note for those who look after
//! lost clients.

use super::Commands;
use crate::connection::FurtherReplies;
use crate::departures::{self, LostClient, host_of};
use crate::persona::Persona;
use crate::shared_state::SharedState;
use crate::{ConnectionState, StreamState};

impl Commands {
    /// Counts a connection that the network has closed as it came, because there were too many.
    pub fn connection_rejected(&self) {
        self.shared.counters.count_rejection();
    }

    /// Ends a connection of the network. Where a stream of batches is abandoned, its cursor is closed.
    pub fn disconnected(&self, connection: ConnectionState, stream: StreamState) {
        if let (StreamState::Abandoned, FurtherReplies::Batches { cursor }) =
            (stream, connection.further_replies())
        {
            self.shared.cursors.kill(cursor);
        }
        if self.shared.options.persona.persona == Persona::ReplicaSet {
            self.note_departure(&connection);
        }
    }

    /// Notes the end of a connection for those who look after clients that do not come back.
    fn note_departure(&self, connection: &ConnectionState) {
        let SharedState { departures, environment, options, .. } = &*self.shared;
        let (host, now) = (host_of(connection.peer()), environment.clock().monotonic());
        if connection.has_worked() {
            departures.note_work(host, now);
        } else if let Some(client) = connection.client() {
            let advertised = options.persona.advertised.as_deref();
            let address = connection.address(advertised).unwrap_or(&options.address).to_owned();
            let client = departures::describe(client);
            departures.note_departure(LostClient { host: host.to_owned(), client, address }, now);
        }
    }
}
