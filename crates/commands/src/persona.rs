//! The persona of the server towards its clients: the kind of MongoDB deployment that they take it for.
//!
//! Drivers choose by it what they send. Towards a standalone server they retry no writes, and some refuse to
//! begin a transaction. A replica set of one node has all of that. Its drivers connect to the addresses that
//! `hello` lists, so that these must be right from where the client is.

/// The kind of deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Persona {
    /// One server.
    #[default]
    Standalone,
    /// A replica set of one node, its primary.
    ReplicaSet,
    /// A router of a sharded cluster.
    Mongos,
}

impl Persona {
    /// The persona of a server that is not told any.
    pub const OF_SERVERS: Persona = Persona::ReplicaSet;

    /// Every persona.
    pub const ALL: [Persona; 3] = [Persona::Standalone, Persona::ReplicaSet, Persona::Mongos];

    /// The word for it in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Persona::Standalone => "standalone",
            Persona::ReplicaSet => "replica-set",
            Persona::Mongos => "mongos",
        }
    }
}

/// The persona, with the names that go with it.
#[derive(Clone, Debug, Default)]
pub struct PersonaOptions {
    /// The persona.
    pub persona: Persona,
    /// The name of the replica set.
    pub set_name: String,
    /// The `host:port` that drivers of a replica set connect to. `None` is the address that each of them came
    /// in by.
    pub advertised: Option<String>,
}
