//! The check of the client's cost: a point query against the floor. The floor is an epoll loop that reads
//! replies and writes requests of the same bytes, and looks at neither.

use super::{Answer, Effort, QUERIES, median, null_server, queries};
use crate::client::{Listening, Pace, Session, ThreadUsage};
use crate::error::{BenchError, no_resource};
use crate::run;
use crate::target::Target;
use crate::workload::{RunNumber, Workload};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// The client's allowed cost above it, in microseconds of CPU per query.
const BOUND_US: f64 = 4.0;
const BUFFER_BYTES: usize = 64 * 1024;

/// Measures both, in turn.
pub fn check(effort: Effort) -> Result<Answer, BenchError> {
    let workload = queries();
    let server = null_server(&workload)?;
    let target = Target::at(server.address());
    let mut request = Vec::new();
    let mut scripts = workload.clients(&target, 1, RunNumber::FIRST)?.scripts;
    if let Some(script) = scripts.first_mut() {
        script.request(1, &mut request);
    }
    let (mut bare, mut client) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        bare.push(bare_loop(server.address(), &request, effort)?);
        let clients = workload.null_clients(&target, effort.clients)?;
        let measured = run::run(effort.plan(Pace::Closed), server.address(), clients, QUERIES, None)?;
        let cpu: f64 = measured.tally.threads.iter().map(|thread| thread.cpu_us).sum();
        client.push(cpu / measured.tally.operations().max(1) as f64);
    }
    let above = median(client.iter().zip(&bare).map(|(client, bare)| client - bare).collect());
    let text = format!(
        "client CPU of a point query with {} clients: {:.2} us, of a bare loop of the same bytes: {:.2} us, above it: {above:.2} us \
         (bound {BOUND_US})",
        effort.clients,
        median(client),
        median(bare)
    );
    Ok(Answer { text, holds: above <= BOUND_US })
}

/// CPU microseconds per exchange of a loop that does nothing else.
fn bare_loop(address: SocketAddr, request: &[u8], effort: Effort) -> Result<f64, BenchError> {
    let resource = no_resource("an epoll instance");
    let mut poll = Poll::new().map_err(resource)?;
    let mut streams = Vec::new();
    for place in 0..effort.clients as usize {
        let mut stream = Session::open(address)?.into_stream().ok_or(BenchError::Closed)?;
        stream.set_nonblocking().map_err(BenchError::Connection)?;
        let file = stream.as_raw_fd();
        poll.registry().register(&mut SourceFd(&file), Token(place), Interest::READABLE).map_err(resource)?;
        stream.write_all(request).map_err(BenchError::Connection)?;
        streams.push(stream);
    }
    let mut events = Events::with_capacity(256);
    let mut buffer = vec![0; BUFFER_BYTES];
    let (mut exchanges, before) = (0_u64, ThreadUsage::now()?);
    let end = Instant::now() + Duration::from_secs(u64::from(effort.seconds));
    while Instant::now() < end {
        poll.poll(&mut events, Some(Duration::from_millis(100))).map_err(resource)?;
        for event in &events {
            let stream = &mut streams[event.token().0];
            match stream.read(&mut buffer) {
                Ok(0) => return Err(BenchError::Closed),
                Ok(_) => {
                    exchanges += 1;
                    stream.write_all(request).map_err(BenchError::Connection)?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(BenchError::Connection(error)),
            }
        }
    }
    Ok(ThreadUsage::now()?.since(&before).cpu_us / exchanges.max(1) as f64)
}
