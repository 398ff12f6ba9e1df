//! Whole runs against servers that behave well, badly, or not at all.

use crate::client::{
    ClientState, Clients, Draws, Judgement, Kind, Listening, Misses, NullServer, Pace, Performed, Script,
    Spacing, Task, Turn, Verdict,
};
use crate::run::{Counting, Measured, Observer, Plan, run};
use crate::target::Target;
use crate::workload::insert::{Batch, BatchSource, Inserter, OnFailure};
use crate::workload::load::{Durability, IndexBuild};
use crate::workload::point::{PointQuery, Projection};
use crate::workload::sysbench::documents::DataSet;
use crate::workload::sysbench::loading::Load;
use crate::workload::{RunNumber, Workload};
use pando_document::{Document, RawDocument, doc};
use pando_measuring::counters::{ProcessId, Sources};
use pando_measuring::random::Generator;
use pando_measuring::random::distribution::Shape;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const PLAN: Plan =
    Plan { clients: 5, threads: 2, warmup_s: 0, duration_s: 1, pace: Pace::Closed, interval_s: 10 };
const QUERIES: Counting = Counting { kinds: 0, misses: Misses::AreFaults };

/// A small data set.
pub fn load(collections: u32, documents: u32) -> Load {
    Load {
        data: DataSet { database: "sbtest".into(), databases: 1, collections, documents },
        generator: Generator::Xoshiro,
        seed: 1,
        connections: 2,
        batch: 10,
        index: IndexBuild::Before,
        durability: Durability::W1,
    }
}

fn workload() -> PointQuery {
    PointQuery { load: load(2, 100), shape: Shape::Uniform, projection: Projection::C }
}

fn clients(count: u32) -> Clients {
    let target = Target::parse("mongodb://127.0.0.1:1").expect("an address");
    workload().clients(&target, count, RunNumber::FIRST).expect("the template fits")
}

fn hit() -> Document {
    workload().null_reply().expect("there is one")
}

fn run_against(reply: &Document) -> Measured {
    run_with(PLAN, reply)
}

fn run_with(plan: Plan, reply: &Document) -> Measured {
    let server = NullServer::start(reply).expect("loopback is there");
    let mut sources = Sources::find(ProcessId::behind_port(server.address()), None);
    run(plan, server.address(), clients(plan.clients), QUERIES, Some(Observer::of_costs(&mut sources)))
        .expect("the server answers")
}

#[test]
fn a_run_counts_what_its_clients_did_and_what_it_cost() {
    let measured = run_against(&hit());
    assert!(measured.tally.done() > 100, "{}", measured.tally.done());
    assert_eq!((measured.tally.missed, measured.tally.failed), (0, 0));
    assert_eq!((measured.tally.seconds.len(), measured.seconds), (1, 1.0));
    assert_eq!(measured.tally.threads.len(), 2, "one entry per worker");
    assert!(measured.tally.latencies.quantile_us(0.5) > 0.0);
    assert_eq!(measured.usage_per_second.len(), 1);
    let usage = measured.usage.expect("it was asked for");
    let server = usage.server.expect("the server is this process");
    assert!(server.cpu_us() > 0.0 && server.switches > 0, "{server:?}");
    assert!((0.9..1.5).contains(&usage.seconds), "{}", usage.seconds);
}

#[test]
fn an_open_loop_begins_as_many_units_as_it_was_told() {
    let poisson = Spacing::Poisson(Draws { seed: 0, stream: 0 });
    for (spacing, slack) in [(Spacing::Even, 0.05), (poisson, 0.2)] {
        let pace = Pace::Open { rate: 1000.0, spacing };
        let measured = run_with(Plan { pace, ..PLAN }, &hit());
        let done = measured.tally.done() as f64;
        assert!((done - 1000.0).abs() <= 1000.0 * slack, "{done} of 1,000 {spacing:?}");
        assert!(measured.tally.service.is_some());
    }
}

#[test]
fn a_stall_shows_in_every_unit_that_was_due_in_it() {
    // One client, 1,000 units a second, and a server that sleeps 300 ms before one of its replies.
    let address = server(1, |mut stream| {
        let reply = hit();
        let mut served = 0;
        while let Some(id) = read_request(&mut stream) {
            served += 1;
            if served == 200 {
                std::thread::sleep(Duration::from_millis(300));
            }
            if stream.write_all(&reply_frame(id, &reply)).is_err() {
                return;
            }
        }
    });
    let pace = Pace::Open { rate: 1000.0, spacing: Spacing::Even };
    let plan = Plan { clients: 1, threads: 1, pace, ..PLAN };
    let measured = run(plan, address, clients(1), QUERIES, None).expect("the server answers");
    let late = |latencies: &pando_measuring::histogram::Latencies| {
        latencies.count() - latencies.count_up_to_us(50_000.0)
    };
    let service = measured.tally.service.as_ref().expect("the loop is open");
    assert!(late(service) <= 20, "the stall itself, and what a busy machine adds: {}", late(service));
    assert!(
        late(&measured.tally.latencies) >= 200,
        "of about 250 units: {}",
        late(&measured.tally.latencies)
    );
}

#[test]
fn a_stall_shows_in_the_latencies_of_a_kind_of_every_unit_that_was_due_in_it() {
    struct Endless;
    impl BatchSource for Endless {
        fn next_batch(&mut self, out: &mut Vec<u8>) -> Option<Batch> {
            out.extend_from_slice(doc! { "_id": 1 }.to_raw().as_bytes());
            Some(Batch { database: "d".into(), collection: "c".into(), documents: 1 })
        }
    }
    let address = server(1, |mut stream| {
        let mut served = 0;
        while let Some(id) = read_request(&mut stream) {
            served += 1;
            if served == 200 {
                std::thread::sleep(Duration::from_millis(300));
            }
            if stream.write_all(&reply_frame(id, &doc! { "n": 1, "ok": 1.0 })).is_err() {
                return;
            }
        }
    });
    let inserter = Inserter::new(Durability::W1, Endless, OnFailure::GoOn).of_kind(Kind::new(0));
    let pace = Pace::Open { rate: 1000.0, spacing: Spacing::Even };
    let plan = Plan { clients: 1, threads: 1, pace, ..PLAN };
    let counting = Counting { kinds: 1, misses: Misses::AreFaults };
    let clients = Clients::of_scripts(vec![Box::new(inserter)]);
    let measured = run(plan, address, clients, counting, None).expect("the server answers");
    let latencies = &measured.tally.kinds[0].latencies;
    let late = latencies.count() - latencies.count_up_to_us(50_000.0);
    assert!(late >= 200, "of about 250 units: {late}");
}

#[test]
fn a_rate_that_the_server_cannot_reach_leaves_units_that_have_not_begun() {
    let address = server(1, |mut stream| {
        let reply = hit();
        while let Some(id) = read_request(&mut stream) {
            std::thread::sleep(Duration::from_millis(10));
            if stream.write_all(&reply_frame(id, &reply)).is_err() {
                return;
            }
        }
    });
    let pace = Pace::Open { rate: 1000.0, spacing: Spacing::Even };
    let plan = Plan { clients: 1, threads: 1, pace, ..PLAN };
    let measured = run(plan, address, clients(1), QUERIES, None).expect("the server answers");
    assert!(measured.tally.not_begun > 800, "{}", measured.tally.not_begun);
    assert!(measured.tally.longest_wait > Duration::from_millis(800), "{:?}", measured.tally.longest_wait);
}

/// A client with so many units to do, each of which takes some time.
struct Units {
    left: u32,
    each: Duration,
}

impl Task for Units {
    fn prepare(&mut self) -> Turn {
        self.left = match self.left.checked_sub(1) {
            Some(left) => left,
            None => return Turn::Over,
        };
        Turn::Request
    }

    fn perform(&mut self) -> Performed {
        std::thread::sleep(self.each);
        Performed {
            statements: Vec::new(),
            verdict: Verdict::Done,
            operations: 1,
            retries: 0,
            client: ClientState::GoesOn,
        }
    }
}

#[test]
fn an_open_loop_that_ends_with_its_work_counts_units_up_to_that_end_and_not_to_that_of_the_window() {
    let measured = |rate, each| {
        let server = NullServer::start(&hit()).expect("loopback is there");
        let task = || -> Box<dyn Task> { Box::new(Units { left: 20, each }) };
        let clients = Clients { scripts: Vec::new(), tasks: (0..4).map(|_| task()).collect() };
        let pace = Pace::Open { rate, spacing: Spacing::Even };
        let plan = Plan { clients: 4, duration_s: 60, pace, ..PLAN };
        run(plan, server.address(), clients, QUERIES, None).expect("nothing fails")
    };
    let held = measured(200.0, Duration::ZERO);
    assert_eq!(held.tally.done(), 80);
    assert!(held.tally.not_begun <= 8, "of 11,920 until the end of the window: {}", held.tally.not_begun);
    assert!(held.tally.longest_wait < Duration::from_secs(1), "{:?}", held.tally.longest_wait);
    let behind = measured(2000.0, Duration::from_millis(10));
    let due = 2000.0 * behind.seconds;
    let begun_and_not = (80 + behind.tally.not_begun) as f64;
    assert!((due - 5.0..=due + 5.0).contains(&begun_and_not), "{begun_and_not} of {due} that were due");
}

#[test]
fn connections_that_end_with_their_work_leave_the_units_that_were_due_by_then() {
    struct Thirty(u32);
    impl BatchSource for Thirty {
        fn next_batch(&mut self, out: &mut Vec<u8>) -> Option<Batch> {
            self.0 = self.0.checked_sub(1)?;
            out.extend_from_slice(doc! { "_id": 1 }.to_raw().as_bytes());
            Some(Batch { database: "d".into(), collection: "c".into(), documents: 1 })
        }
    }
    let address = server(1, |mut stream| {
        while let Some(id) = read_request(&mut stream) {
            std::thread::sleep(Duration::from_millis(10));
            if stream.write_all(&reply_frame(id, &doc! { "n": 1, "ok": 1.0 })).is_err() {
                return;
            }
        }
    });
    let inserter = Inserter::new(Durability::W1, Thirty(30), OnFailure::GoOn).of_kind(Kind::new(0));
    let pace = Pace::Open { rate: 1000.0, spacing: Spacing::Even };
    let plan = Plan { clients: 1, threads: 1, duration_s: 60, pace, ..PLAN };
    let counting = Counting { kinds: 1, misses: Misses::AreFaults };
    let clients = Clients::of_scripts(vec![Box::new(inserter)]);
    let measured = run(plan, address, clients, counting, None).expect("the server answers");
    let due = 1000.0 * measured.seconds;
    let begun_and_not = (30 + measured.tally.not_begun) as f64;
    assert!((due - 5.0..=due + 5.0).contains(&begun_and_not), "{begun_and_not} of {due} that were due");
}

#[test]
fn a_server_that_finds_nothing_gives_misses_and_no_work() {
    let measured = run_against(&doc! { "cursor": { "firstBatch": [], "id": 0_i64, "ns": "a.b" }, "ok": 1.0 });
    assert_eq!(measured.tally.done(), 0);
    assert!(measured.tally.missed > 0 && measured.tally.failed == 0);
}

#[test]
fn a_server_that_refuses_gives_failures_with_its_message() {
    let measured = run_against(&doc! { "ok": 0.0, "errmsg": "not today", "code": 13 });
    assert_eq!((measured.tally.done(), measured.tally.missed), (0, 0));
    assert!(measured.tally.failed > 0);
    assert_eq!(measured.tally.failures[0], "not today (code 13)");
}

#[test]
fn nobody_at_the_address_is_an_error_that_asks_for_the_server() {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("loopback");
    let error = run(PLAN, port, clients(5), QUERIES, None).expect_err("nobody listens any more");
    assert!(error.to_string().contains("is the server running?"), "{error}");
}

/// A server on a thread of its own that answers each connection's hello, and then lets `serve` have it.
fn server(connections: usize, serve: fn(std::net::TcpStream)) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().take(connections) {
            let mut stream = stream.expect("a client connects");
            let id = read_request(&mut stream).expect("a hello");
            stream.write_all(&reply_frame(id, &doc! { "ok": 1.0 })).expect("the client waits");
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Reads one request; gives its id, or nothing at the end of the connection.
fn read_request(stream: &mut std::net::TcpStream) -> Option<i32> {
    let mut header = [0; pando_wire::HEADER_BYTES];
    stream.read_exact(&mut header).ok()?;
    let header = pando_wire::Header::decode(&header).ok()?;
    let mut rest = vec![0; header.length - pando_wire::HEADER_BYTES];
    stream.read_exact(&mut rest).ok()?;
    Some(header.request_id)
}

fn reply_frame(response_to: i32, body: &Document) -> Vec<u8> {
    let mut frame = Vec::new();
    let writer = pando_wire::OpMsgWriter::begin(&mut frame, 1, response_to, pando_wire::MsgFlags::NONE);
    writer.body(&mut frame, body.to_raw().as_bytes());
    writer.finish(&mut frame).expect("it is small");
    frame
}

#[test]
fn a_reply_that_comes_in_pieces_is_put_together() {
    let address = server(5, |mut stream| {
        let reply = hit();
        while let Some(id) = read_request(&mut stream) {
            for piece in reply_frame(id, &reply).chunks(50) {
                if stream.write_all(piece).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    let measured = run(PLAN, address, clients(5), QUERIES, None).expect("the server answers");
    assert!(measured.tally.done() > 10, "{}", measured.tally.done());
    assert_eq!(measured.tally.failed, 0, "{:?}", measured.tally.failures);
}

#[test]
fn a_script_whose_connection_breaks_is_told_so() {
    struct Told {
        script: Box<dyn Script>,
        lost: Arc<AtomicU32>,
    }
    impl Script for Told {
        fn request(&mut self, request_id: i32, out: &mut Vec<u8>) -> Turn {
            self.script.request(request_id, out)
        }
        fn judge(&mut self, body: &RawDocument) -> Judgement {
            self.script.judge(body)
        }
        fn lost(&mut self) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
    let hangs_up = server(5, |mut stream| {
        let _ = read_request(&mut stream);
    });
    let lost = Arc::<AtomicU32>::default();
    let told = |script| -> Box<dyn Script> { Box::new(Told { script, lost: lost.clone() }) };
    let scripts = clients(5).scripts.into_iter().map(told).collect();
    run(PLAN, hangs_up, Clients::of_scripts(scripts), QUERIES, None).expect("failures are counted");
    assert_eq!(lost.load(Ordering::Relaxed), 5, "once for each client");
}

#[test]
fn a_server_that_hangs_up_or_sends_nonsense_fails_the_run_without_ending_it() {
    let hangs_up = server(5, |mut stream| {
        let _ = read_request(&mut stream);
    });
    let nonsense = server(5, |mut stream| {
        read_request(&mut stream);
        let _ = stream.write_all(&[0xFF; 64]);
        let _ = read_request(&mut stream);
    });
    let wrong_reply = server(5, |mut stream| {
        let id = read_request(&mut stream).unwrap_or(0);
        let _ = stream.write_all(&reply_frame(id + 1, &hit()));
        let _ = read_request(&mut stream);
    });
    for address in [hangs_up, nonsense, wrong_reply] {
        let measured = run(PLAN, address, clients(5), QUERIES, None).expect("failures are counted");
        assert_eq!((measured.tally.done(), measured.tally.failed), (0, 5), "{:?}", measured.tally.failures);
    }
}
