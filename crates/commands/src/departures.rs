//! Departures: clients that left after their first `hello`, as drivers do that cannot reach the advertised
//! address.
//!
//! A driver of a replica set drops the address that it was given, and connects to the one that `hello` lists.
//! Where addresses are translated on the way, it never comes back. It then reports a time-out of server
//! selection, and the server hears no more of it. The log tells of such a client and of the cure.
//!
//! 1. A connection that only asked `hello` ends. Its host is noted.
//! 2. Some seconds later a chore looks. If no connection of the host is open, and none has worked since, the
//!    log has a line.
//!
//! A connection that waits for changes of the topology counts as one that works: its driver has found the
//! server.
//! Each host is told of once in a while. Clients behind one gateway are one host, so that a working one hides
//! the others.

use std::collections::HashMap;
use std::time::Duration;

use pando_document::RawDocument;
use pando_environment::Monotonic;
use parking_lot::Mutex;

/// The time in which a driver connects to the advertised address.
const PATIENCE: Duration = Duration::from_secs(5);
/// A host is told of once in this time.
const SILENCE: Duration = Duration::from_secs(60);
/// Hosts that are remembered. Others are not noted until these are forgotten.
const HOSTS_MAX: usize = 1000;

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    hosts: Mutex<HashMap<String, Host>>,
}

#[derive(Debug, Default)]
struct Host {
    /// The last end of a connection that has worked.
    worked: Option<Monotonic>,
    /// The first departure that was not judged yet, and who left.
    left: Option<(Monotonic, LostClient)>,
    told: Option<Monotonic>,
}

/// A client that seems not to reach the advertised address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LostClient {
    pub host: String,
    /// Its driver and application, as it names them.
    pub client: String,
    /// The address that it was told.
    pub address: String,
}

impl Departures {
    /// A connection that has worked has ended. Its host stands there without its port.
    pub fn note_work(&self, host: &str, now: Monotonic) {
        self.change(host, |noted| noted.worked = Some(now));
    }

    /// A connection has ended that only asked `hello`.
    pub fn note_departure(&self, client: LostClient, now: Monotonic) {
        self.change(&client.host.clone(), |noted| {
            noted.left.get_or_insert((now, client));
        });
    }

    fn change(&self, host: &str, change: impl FnOnce(&mut Host)) {
        let mut hosts = self.hosts.lock();
        if hosts.len() < HOSTS_MAX || hosts.contains_key(host) {
            change(hosts.entry(host.to_owned()).or_default());
        }
    }

    /// Judges the departures of some seconds ago. Gives the clients to tell of.
    pub fn judge(&self, now: Monotonic, is_connected: impl Fn(&str) -> bool) -> Vec<LostClient> {
        let mut lost = Vec::new();
        self.hosts.lock().retain(|name, host| {
            if let Some((left, client)) = host.left.take_if(|(left, _)| now.since(*left) >= PATIENCE) {
                let has_worked = host.worked.is_some_and(|worked| worked.plus(PATIENCE) >= left);
                let is_told = host.told.is_some_and(|told| now.since(told) < SILENCE);
                if !has_worked && !is_told && !is_connected(name) {
                    host.told = Some(now);
                    lost.push(client);
                }
            }
            let is_recent = |moment: Option<Monotonic>| moment.is_some_and(|at| now.since(at) < SILENCE);
            host.left.is_some() || is_recent(host.worked) || is_recent(host.told)
        });
        lost
    }
}

/// An address without its port.
pub(crate) fn host_of(peer: &str) -> &str {
    peer.rsplit_once(':').map_or(peer, |(host, _)| host)
}

/// The driver and the application, as far as the client names them.
pub(crate) fn describe(client: &RawDocument) -> String {
    let text = |section: &str, name: &str| {
        let section = client.get(section).ok()??.as_document()?;
        section.get(name).ok()??.as_str().map(str::to_owned)
    };
    let driver = [text("driver", "name"), text("driver", "version")].into_iter().flatten();
    let mut shown = driver.collect::<Vec<_>>().join(" ");
    if shown.is_empty() {
        shown.push_str("unknown driver");
    }
    if let Some(application) = text("application", "name") {
        shown = format!("{shown}, application {application}");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Monotonic = Monotonic::new(Duration::ZERO);

    fn after(seconds: u64) -> Monotonic {
        START.plus(Duration::from_secs(seconds))
    }

    fn client(host: &str) -> LostClient {
        LostClient {
            host: host.to_owned(),
            client: "PyMongo".to_owned(),
            address: "10.0.0.1:27017".to_owned(),
        }
    }

    fn lost(departures: &Departures, second: u64) -> usize {
        departures.judge(after(second), |host| host == "connected").len()
    }

    #[test]
    fn a_client_that_left_and_did_not_come_back_is_told_of_once_a_minute() {
        let departures = Departures::default();
        let leave = |second| departures.note_departure(client("h"), after(second));
        leave(0);
        assert_eq!(lost(&departures, 4), 0);
        let told = departures.judge(after(5), |_| false);
        assert_eq!(told, [client("h")]);
        leave(10);
        assert_eq!(lost(&departures, 30), 0);
        leave(70);
        assert_eq!(lost(&departures, 80), 1);
    }

    #[test]
    fn a_client_that_works_or_is_connected_is_not_told_of() {
        let departures = Departures::default();
        departures.note_departure(client("h"), after(0));
        departures.note_work("h", after(3));
        departures.note_departure(client("connected"), after(0));
        assert_eq!(lost(&departures, 6), 0);
    }

    #[test]
    fn hosts_are_forgotten_and_bounded() {
        let departures = Departures::default();
        for number in 0..2 * HOSTS_MAX {
            departures.note_work(&number.to_string(), START);
        }
        assert_eq!(departures.hosts.lock().len(), HOSTS_MAX);
        assert_eq!(lost(&departures, 100), 0);
        assert!(departures.hosts.lock().is_empty());
    }
}
