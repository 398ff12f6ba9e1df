//! The contract of a store: one trait for a client's connection, one for the database behind it. Another
//! database is one file.
//!
//! # Invariant while no operation is under way
//! For each node and link type, the count is the number of its visible links. Every change of a link's
//! visibility changes the count with it; [`LinkDatabase::check`] counts.

use crate::error::BenchError;
use crate::workload::Finding;

/// The way in which a link and its count change together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transactions {
    /// Nothing: each change is atomic by itself.
    None,
    /// A transaction: of a session over MongoDB's protocol, of a connection over MySQL's.
    Session,
    /// A document that says how far the change has come, by which it is ended after a crash.
    TwoPhase,
    /// TokuMX's transaction of a connection.
    TokuMx,
}

impl Transactions {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Transactions::None => "none",
            Transactions::Session => "session",
            Transactions::TwoPhase => "two-phase",
            Transactions::TokuMx => "tokumx",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Transactions> {
        [Transactions::None, Transactions::Session, Transactions::TwoPhase, Transactions::TokuMx]
            .into_iter()
            .find(|level| level.name() == name)
    }

    /// Its promise, in words.
    pub fn promise(self) -> &'static str {
        match self {
            Transactions::None => "none: a crash or a lost connection can leave a wrong count",
            Transactions::Session => "of a session: a link and its count change together",
            Transactions::TwoPhase => "two-phase: what a crash leaves half done is ended by the next run",
            Transactions::TokuMx => "of TokuMX: a link and its count change together",
        }
    }
}

/// A link, from one node to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Which one.
    pub key: LinkKey,
    /// Milliseconds since 1970.
    pub time: i64,
    /// Counts changes of the data's form.
    pub version: i32,
    /// The content.
    pub data: Vec<u8>,
}

/// Which link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkKey {
    /// From this node.
    pub id1: i64,
    /// Of this type.
    pub link_type: i64,
    /// To this node.
    pub id2: i64,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its number.
    pub id: i64,
    /// Counts its changes.
    pub version: i64,
    /// Seconds since 1970.
    pub time: i32,
    /// The content.
    pub data: Vec<u8>,
}

/// The visible links of a node of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The node.
    pub id: i64,
    /// The type.
    pub link_type: i64,
    /// How many.
    pub count: i64,
    /// When it changed last, in milliseconds since 1970.
    pub time: i64,
}

/// The effect of adding a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkChange {
    /// It was not there.
    Inserted,
    /// It was there and hidden.
    Shown,
    /// It was there and visible.
    Changed,
}

/// Whether something was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It was.
    Yes,
    /// It was not.
    No,
}

impl Found {
    /// Of a number of documents.
    pub fn of(count: i64) -> Found {
        if count > 0 { Found::Yes } else { Found::No }
    }
}

/// A part of a node's visible links of one type, the newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListQuery {
    /// The node.
    pub id1: i64,
    /// The type.
    pub link_type: i64,
    /// The newest time that counts; the oldest is 0.
    pub time_to: i64,
    /// So many are left out.
    pub offset: u32,
    /// So many at most.
    pub limit: u32,
}

/// The result of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// How many links.
    pub links: u32,
    /// The time of the last one.
    pub last_time: Option<i64>,
}

/// A client's connection. Errors other than [`BenchError::Refused`] mean that it is lost.
pub trait LinkStore: Send {
    /// Adds a link, or changes and shows the one that is there; keeps the count. Also LinkBench's update of a
    /// link.
    fn add_link(&mut self, link: &Link) -> Result<LinkChange, BenchError>;
    /// Hides a link, at this time; keeps the count.
    fn delete_link(&mut self, key: LinkKey, time: i64) -> Result<Found, BenchError>;
    /// The count; 0 if there is none.
    fn count_links(&mut self, id1: i64, link_type: i64) -> Result<i64, BenchError>;
    /// How many of these links there are, hidden ones included.
    fn get_links(&mut self, id1: i64, link_type: i64, id2s: &[i64]) -> Result<u32, BenchError>;
    /// A part of the visible links.
    fn list_links(&mut self, query: ListQuery) -> Result<Listed, BenchError>;
    /// Adds a node with a new number.
    fn add_node(&mut self, node: &Node) -> Result<(), BenchError>;
    /// Changes a node.
    fn update_node(&mut self, node: &Node) -> Result<Found, BenchError>;
    /// Takes a node away.
    fn delete_node(&mut self, id: i64) -> Result<Found, BenchError>;
    /// Reads a node.
    fn get_node(&mut self, id: i64) -> Result<Found, BenchError>;

    /// Loads nodes that are not there.
    fn load_nodes(&mut self, nodes: &[Node]) -> Result<(), BenchError>;
    /// Loads links that are not there.
    fn load_links(&mut self, links: &[Link]) -> Result<(), BenchError>;
    /// Loads counts that are not there.
    fn load_counts(&mut self, counts: &[Count]) -> Result<(), BenchError>;

    /// How often something was done once more since this was asked last.
    fn take_retries(&mut self) -> u64;
}

/// How much is in a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Nodes.
    pub nodes: u64,
    /// Links, hidden ones included.
    pub links: u64,
}

/// The size of a graph as it was loaded. A load leaves it beside the graph, since requests change what could
/// be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadRecord {
    /// The first node.
    pub first_id: i64,
    /// Nodes.
    pub nodes: u64,
    /// Links.
    pub links: u64,
}

impl LoadRecord {
    /// Whether a graph can be the one that was loaded: requests hide links, and give links to its nodes only.
    /// Another tool may have loaded another graph beside the record.
    pub(crate) fn can_be_of(self, contents: Contents, last_linked: i64) -> bool {
        let end_id = self.first_id.saturating_add_unsigned(self.nodes);
        contents.links >= self.links && last_linked < end_id
    }
}

/// Which counts are checked after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckExtent {
    /// All.
    Full,
    /// Those of so many nodes, evenly spread over the numbers up to this one.
    Sample {
        /// How many.
        nodes: u32,
        /// The highest number.
        id_max: i64,
    },
    /// None.
    Nothing,
}

/// The database behind the connections.
pub trait LinkDatabase: Send + Sync {
    /// That the server can do what is asked; refused before anything begins.
    fn check_ability(&self) -> Result<(), BenchError>;
    /// That what is there can be worked on; refused before a run begins.
    fn check_contents(&self) -> Result<(), BenchError> {
        Ok(())
    }
    /// Empty collections or tables, with their indexes, and no record of a load.
    fn recreate(&self) -> Result<(), BenchError>;
    /// Keeps the size of the graph that has just been loaded.
    fn record_load(&self, record: LoadRecord) -> Result<(), BenchError>;
    /// The size of the graph as it was loaded; nothing of one that LinkBench or an earlier version of this
    /// tool loaded, or whose load did not end.
    fn load_record(&self) -> Result<Option<LoadRecord>, BenchError>;
    /// Ends what an interrupted client left half done; gives how much that was.
    fn recover(&self) -> Result<u64, BenchError> {
        Ok(0)
    }
    /// How much is there.
    fn contents(&self) -> Result<Contents, BenchError>;
    /// The highest number of a node, 0 if there is none.
    fn highest_node(&self) -> Result<i64, BenchError>;
    /// The highest number of a node that has links, hidden ones included; 0 if there is none. Requests add
    /// nodes behind those that were loaded, and never links of theirs.
    fn highest_linked_node(&self) -> Result<i64, BenchError>;
    /// A connection, one of so many.
    fn open(&self, clients: u32) -> Result<Box<dyn LinkStore>, BenchError>;
    /// Compares counts with visible links.
    fn check(&self, extent: CheckExtent) -> Result<Option<Finding>, BenchError>;
}

/// Makes databases of another protocol than MongoDB's.
pub trait StoreChoice: std::fmt::Debug + Send + Sync {
    /// The database of this name, with this level of transactions.
    fn database(&self, name: &str, transactions: Transactions) -> Box<dyn LinkDatabase>;
}
