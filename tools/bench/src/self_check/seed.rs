//! Whether two runs of one seed send the same requests, byte by byte, and runs of two seeds others.
//!
//! Looked at are the workloads whose clients are scripts and whose requests have no times in them: point, sysbench and kv.

use super::Answer;
use crate::address::Address;
use crate::client::{EmbeddedStore, NullReply, Turn};
use crate::command::{kv, point, sysbench};
use crate::error::BenchError;
use crate::target::Target;
use crate::workload::Workload;
use pando_document::Document;
use std::sync::Arc;

/// Clients, and requests of each.
const CLIENTS: u32 = 3;
const REQUESTS: i32 = 2000;

/// Compares them.
pub fn check() -> Result<Answer, BenchError> {
    let mut texts = Vec::new();
    let mut holds = true;
    for name in ["point", "sysbench", "kv"] {
        let sent = |seed| sent(workload(name, seed).as_ref());
        let (first, second, other) = (sent("5")?, sent("5")?, sent("6")?);
        let is_same = first == second && !first.is_empty();
        holds &= is_same && first != other;
        texts.push(format!(
            "{name}: {} bytes of {CLIENTS} clients, {}",
            first.len(),
            if is_same { "the same" } else { "NOT the same" }
        ));
    }
    Ok(Answer { text: format!("two runs of one seed send: {}", texts.join("; ")), holds })
}

fn workload(name: &'static str, seed: &'static str) -> Box<dyn Workload> {
    let arguments = [name, "--seed", seed];
    match name {
        "point" => Box::new(point::workload(&point::command().get_matches_from(arguments))),
        "sysbench" => Box::new(sysbench::workload(&sysbench::command().get_matches_from(arguments))),
        _ => Box::new(kv::workload(&kv::command().get_matches_from(arguments))),
    }
}

/// The first requests of each client, one after the other.
fn sent(workload: &dyn Workload) -> Result<Vec<u8>, BenchError> {
    let Some(NullReply::Document(reply)) = workload.null_reply() else { return Ok(Vec::new()) };
    let reply: Document = reply;
    let body = reply.to_raw();
    let target = Target::at(Address::Embedded(Arc::new(EmbeddedStore::null(&reply))));
    let mut all = Vec::new();
    for mut script in workload.null_clients(&target, CLIENTS)?.scripts {
        for request_id in 1..=REQUESTS {
            if script.request(request_id, &mut all) == Turn::Over {
                break;
            }
            script.judge(&body);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_seed_sends_the_same_requests_and_another_one_others() {
        let answer = super::check().expect("no server is needed");
        assert!(answer.holds, "{}", answer.text);
    }
}
