//! One client of the request phase: it draws an operation with its node, links and data, and asks its store.
//!
//! Data and keys are made before the clock of the operation starts. The client remembers lists that came back
//! full, for up to [`HISTORY_MAX`] nodes. Now and then it asks for the part before such a list instead.
//!
//! Only requests that are counted use up the client's requests and stand in its csvstream: those of the
//! warm-up do not.
//!
//! An answer that something is not there is a miss: deleted nodes stay deleted, and half of the links that
//! are asked for were never there.

use super::access::{Access, existence};
use super::content::{Content, ContentMaker};
use super::mix::Operation;
use super::settings::Settings;
use super::store::{Found, Link, LinkKey, LinkStore, ListQuery, Node};
use super::stream::ClientStream;
use crate::client::{ClientState, Note, Performed, Task, Turn, Verdict};
use crate::error::BenchError;
use crate::workload::now_ms;
use pando_measuring::random::Random;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// The first link type.
pub const FIRST_LINK_TYPE: i64 = 123_456_789;
/// How many lists a client remembers.
const HISTORY_MAX: usize = 2048;

#[derive(Debug)]
pub struct Shared {
    /// Nodes and links by chance.
    pub access: Access,
    pub settings: Settings,
    /// The number of the next node that is added.
    pub next_node: AtomicI64,
    pub link_content: Content,
    pub node_content: Content,
}

/// An operation with all that it needs.
#[derive(Clone, Debug, PartialEq)]
enum Request {
    AddNode(Node),
    UpdateNode(Node),
    DeleteNode(i64),
    GetNode(i64),
    /// Also an update, which is the same to the store.
    WriteLink(Link),
    DeleteLink(LinkKey),
    CountLinks(i64, i64),
    GetLinks(i64, i64, Vec<i64>),
    ListLinks(ListQuery),
    /// The place in the client's history, and the query.
    ListHistory(usize, ListQuery),
}

/// A list that may have more.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Remembered {
    id1: i64,
    link_type: i64,
    last_time: i64,
}

pub struct Requester {
    shared: Arc<Shared>,
    store: Box<dyn LinkStore>,
    random: Random,
    makers: Makers,
    left: u64,
    next: Option<(Operation, Request)>,
    ended: Option<Ended>,
    /// The links of the list that this request has got.
    listed: Option<u32>,
    history: Vec<Remembered>,
    failures: i64,
    counts: Counts,
    stream: ClientStream,
}

/// A request that has ended; without a latency it failed.
#[derive(Clone, Copy, Debug)]
struct Ended {
    operation: Operation,
    latency: Option<Duration>,
}

/// Makers of data: one for additions, one for updates, as in the original.
struct Makers {
    added_links: ContentMaker,
    updated_links: ContentMaker,
    added_nodes: ContentMaker,
    updated_nodes: ContentMaker,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    history_queries: u64,
    listed_links: u64,
    ended_by_failures: u64,
}

impl Requester {
    pub fn new(
        shared: Arc<Shared>,
        store: Box<dyn LinkStore>,
        mut random: Random,
        requests: u64,
        stream: ClientStream,
    ) -> Requester {
        let (links, nodes) = (shared.link_content, shared.node_content);
        let makers = Makers {
            added_links: ContentMaker::new(links, &mut random),
            updated_links: ContentMaker::new(links, &mut random),
            added_nodes: ContentMaker::new(nodes, &mut random),
            updated_nodes: ContentMaker::new(nodes, &mut random),
        };
        Requester {
            shared,
            store,
            random,
            makers,
            left: requests,
            next: None,
            ended: None,
            listed: None,
            history: Vec::new(),
            failures: 0,
            counts: Counts::default(),
            stream,
        }
    }

    fn draw(&mut self) -> (Operation, Request) {
        let shared = self.shared.clone();
        let (access, random) = (&shared.access, &mut self.random);
        let operation = shared.settings.mix.draw(random);
        let type_number = random.below(shared.settings.link_types);
        let link_type = FIRST_LINK_TYPE + i64::from(type_number);
        let seconds = i32::try_from(now_ms() / 1000).unwrap_or(i32::MAX);
        let request = match operation {
            Operation::AddNode => {
                let id = shared.next_node.fetch_add(1, Ordering::Relaxed);
                let data = self.makers.added_nodes.make(random);
                Request::AddNode(Node { id, version: 1, time: seconds, data })
            }
            Operation::UpdateNode => {
                let id = access.node_update(random);
                let data = self.makers.updated_nodes.make(random);
                Request::UpdateNode(Node { id, version: 2, time: seconds, data })
            }
            Operation::DeleteNode => Request::DeleteNode(access.node_delete(random)),
            Operation::GetNode => Request::GetNode(access.node_read(random)),
            Operation::AddLink | Operation::UpdateLink => {
                let is_new = operation == Operation::AddLink;
                let (maker, existence) = if is_new {
                    (&self.makers.added_links, existence::ADD)
                } else {
                    (&self.makers.updated_links, existence::UPDATE)
                };
                let id1 = access.link_write(random);
                let id2 = access.link_target(random, id1, type_number, existence);
                let data = maker.make(random);
                Request::WriteLink(Link {
                    key: LinkKey { id1, link_type, id2 },
                    time: now_ms(),
                    version: 0,
                    data,
                })
            }
            Operation::DeleteLink => {
                let id1 = access.link_write(random);
                let id2 = access.link_target(random, id1, type_number, existence::DELETE);
                Request::DeleteLink(LinkKey { id1, link_type, id2 })
            }
            Operation::CountLink => Request::CountLinks(access.link_read(random), link_type),
            Operation::MultigetLink => {
                let id1 = access.link_read(random);
                Request::GetLinks(id1, link_type, access.multiget_targets(random, id1, type_number))
            }
            Operation::GetLinksList => self.draw_list(&shared, link_type),
        };
        (operation, request)
    }

    fn draw_list(&mut self, shared: &Shared, link_type: i64) -> Request {
        let is_history = self.random.unit() * 100.0 < shared.settings.history_percent;
        if is_history && !self.history.is_empty() {
            let place = self.random.below(u32::try_from(self.history.len()).unwrap_or(1)) as usize;
            let Remembered { id1, link_type, last_time } = self.history[place];
            // The last link of the list before is left out.
            let query = ListQuery {
                id1,
                link_type,
                time_to: last_time,
                offset: 1,
                limit: shared.settings.list_limit,
            };
            return Request::ListHistory(place, query);
        }
        let id1 = shared.access.link_read(&mut self.random);
        Request::ListLinks(ListQuery {
            id1,
            link_type,
            time_to: i64::MAX,
            offset: 0,
            limit: shared.settings.list_limit,
        })
    }

    fn ask(&mut self, request: &Request) -> Result<Found, BenchError> {
        let store = &mut self.store;
        Ok(match request {
            Request::AddNode(node) => {
                store.add_node(node)?;
                Found::Yes
            }
            Request::UpdateNode(node) => store.update_node(node)?,
            Request::DeleteNode(id) => store.delete_node(*id)?,
            Request::GetNode(id) => store.get_node(*id)?,
            Request::WriteLink(link) => {
                store.add_link(link)?;
                Found::Yes
            }
            Request::DeleteLink(key) => store.delete_link(*key, now_ms())?,
            // A count of 0 is an answer.
            Request::CountLinks(id1, link_type) => {
                store.count_links(*id1, *link_type)?;
                Found::Yes
            }
            Request::GetLinks(id1, link_type, id2s) => {
                Found::of(i64::from(store.get_links(*id1, *link_type, id2s)?))
            }
            Request::ListLinks(query) => {
                let listed = store.list_links(*query)?;
                self.counts.listed_links += u64::from(listed.links);
                self.listed = Some(listed.links);
                if let (true, Some(last_time)) = (listed.links >= query.limit, listed.last_time) {
                    self.remember(Remembered { id1: query.id1, link_type: query.link_type, last_time });
                }
                Found::of(i64::from(listed.links))
            }
            Request::ListHistory(place, query) => {
                let listed = store.list_links(*query)?;
                self.counts.history_queries += 1;
                self.listed = Some(listed.links);
                self.counts.listed_links += u64::from(listed.links);
                match listed.last_time {
                    Some(last_time) if listed.links >= query.limit => {
                        self.history[*place].last_time = last_time
                    }
                    _ => {
                        self.history.swap_remove(*place);
                    }
                }
                Found::of(i64::from(listed.links))
            }
        })
    }

    /// Remembers a full list: one for each node and type; of too many, any goes.
    fn remember(&mut self, list: Remembered) {
        let is_same = |old: &&mut Remembered| old.id1 == list.id1 && old.link_type == list.link_type;
        if let Some(old) = self.history.iter_mut().find(is_same) {
            *old = list;
        } else if self.history.len() < HISTORY_MAX {
            self.history.push(list);
        } else {
            let place = self.random.below(HISTORY_MAX as u32) as usize;
            self.history[place] = list;
        }
    }
}

impl Task for Requester {
    fn prepare(&mut self) -> Turn {
        if self.left == 0 {
            return Turn::Over;
        }
        self.listed = None;
        self.next = Some(self.draw());
        Turn::Request
    }

    fn perform(&mut self) -> Performed {
        let (operation, request) = self.next.take().expect("a request was prepared");
        let began = Instant::now();
        let outcome = self.ask(&request);
        let latency = began.elapsed();
        let verdict = outcome.map(|found| if found == Found::Yes { Verdict::Done } else { Verdict::Missed });
        let mut performed = Performed::of(operation.kind(), latency, verdict);
        if let Verdict::Failed(message) = &mut performed.verdict {
            *message = format!("{}: {message}", operation.name());
            self.ended = Some(Ended { operation, latency: None });
            self.failures += 1;
            if self.shared.settings.failures_max >= 0 && self.failures > self.shared.settings.failures_max {
                self.counts.ended_by_failures = 1;
                performed.client = ClientState::Out;
            }
        } else {
            self.ended = Some(Ended { operation, latency: Some(latency) });
        }
        Performed { retries: self.store.take_retries(), ..performed }
    }

    fn counted(&mut self) {
        self.left = self.left.saturating_sub(1);
        let Some(Ended { operation, latency }) = self.ended.take() else { return };
        if let Some(links) = self.listed.take() {
            self.stream.listed(links);
        }
        match latency {
            Some(latency) => self.stream.done(operation, latency),
            None => self.stream.failed(operation),
        }
    }

    fn notes(&self) -> Vec<Note> {
        vec![
            Note { name: "lists of history", count: self.counts.history_queries },
            Note { name: "links in lists", count: self.counts.listed_links },
            Note { name: "clients that ended after too many failures", count: self.counts.ended_by_failures },
        ]
    }
}
