//! The check of seeds: two runs of one seed send the same requests, byte by byte, and runs of two seeds
//! others.
//!
//! All five workloads are compared as they speak MongoDB's protocol. A store that answers everything with one
//! document records the requests. Fields that depend on the clock are left out: times, and iibench's
//! ascending `_id`, whose first bytes are seconds. The queries beside iibench's inserts are left out too,
//! because they ask for times since the start.

use super::Answer;
use crate::client::Address;
use crate::client::{EmbeddedClient, EmbeddedStore, Record, Task, Turn};
use crate::command::{SUBJECTS, Subject};
use crate::error::BenchError;
use crate::protocol::Job;
use crate::target::Target;
use crate::workload::Workload;
use pando_document::{Document, Value};
use pando_wire::{Body, Message};
use std::sync::{Arc, PoisonError};

/// The workloads.
/// Clients, and units of each.
const CLIENTS: u32 = 3;
const UNITS: u32 = 500;
/// Fields that hang on the clock.
const TIMES: [&str; 2] = ["time", "dateandtime"];

pub fn check() -> Result<Answer, BenchError> {
    let mut texts = Vec::new();
    let mut holds = true;
    for subject in &SUBJECTS {
        let sent = |seed| sent(workload(subject, seed)?.as_ref());
        let (first, second, other) = (sent("5")?, sent("5")?, sent("6")?);
        let is_same = first == second && !first.is_empty();
        holds &= is_same && first != other;
        texts.push(format!(
            "{}: {} bytes of {CLIENTS} clients, {}",
            subject.name,
            first.len(),
            if is_same { "the same" } else { "NOT the same" }
        ));
    }
    Ok(Answer { text: format!("two runs of one seed send: {}", texts.join("; ")), holds })
}

fn workload(subject: &Subject, seed: &'static str) -> Result<Box<dyn Workload>, BenchError> {
    // A small batch, so that clients send many of them.
    let small: &[&str] = if subject.name == "iibench" { &["--batch", "10"] } else { &[] };
    let arguments = [subject.name, "--seed", seed].into_iter().chain(small.iter().copied());
    (subject.job)(&(subject.command)().get_matches_from(arguments)).map(Job::into_workload)
}

/// The first requests of each client, one client after the other, without times.
fn sent(workload: &dyn Workload) -> Result<Vec<u8>, BenchError> {
    let Some(reply) = workload.null_reply() else { return Ok(Vec::new()) };
    let record = Record::default();
    let store = Arc::new(EmbeddedStore::recording(&reply, record.clone()));
    let clients = workload.null_clients(&Target::at(Address::embedded(store.clone())), CLIENTS)?;
    let scripted = clients
        .scripts
        .into_iter()
        .map(|script| -> Box<dyn Task> { Box::new(EmbeddedClient::new(&store, script)) });
    for mut task in scripted.chain(clients.tasks) {
        for _ in 0..UNITS {
            if task.prepare() == Turn::Over {
                break;
            }
            task.perform();
        }
    }
    let frames = std::mem::take(&mut *record.lock().unwrap_or_else(PoisonError::into_inner));
    let mut all = Vec::new();
    frames.iter().try_for_each(|frame| append_without_times(frame, &mut all))?;
    Ok(all)
}

fn append_without_times(frame: &[u8], out: &mut Vec<u8>) -> Result<(), BenchError> {
    let message = Message::decode(frame)?;
    let Body::Msg(message) = message.body else {
        return Err(BenchError::ReplyKind { op_code: message.header.op_code });
    };
    let mut append = |bytes: &[u8]| -> Result<(), BenchError> {
        let mut document = Document::from_raw(pando_document::RawDocument::from_bytes(bytes)?)?;
        leave_times_out(&mut document);
        document.write_to(out);
        Ok(())
    };
    append(message.body())?;
    for sequence in message.sequences() {
        for document in sequence.documents() {
            append(document)?;
        }
    }
    Ok(())
}

fn leave_times_out(document: &mut Document) {
    for (name, value) in document.iter_mut() {
        if TIMES.contains(&name) || matches!(value, Value::ObjectId(_)) {
            *value = Value::Null;
        }
        leave_times_out_of(value);
    }
}

fn leave_times_out_of(value: &mut Value) {
    match value {
        Value::Document(inner) => leave_times_out(inner),
        Value::Array(values) => values.iter_mut().for_each(leave_times_out_of),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_document::doc;

    #[test]
    fn one_seed_sends_the_same_requests_and_another_one_others() {
        let answer = check().expect("no server is needed");
        assert!(answer.holds, "{}", answer.text);
        assert!(SUBJECTS.iter().all(|subject| answer.text.contains(subject.name)));
    }

    #[test]
    fn only_times_are_left_out() {
        let mut document = doc! { "a": [{ "time": 5, "k": 1 }], "dateandtime": 7_i64, "price": 2.5 };
        leave_times_out(&mut document);
        assert_eq!(
            document,
            doc! { "a": [{ "time": Value::Null, "k": 1 }], "dateandtime": Value::Null, "price": 2.5 }
        );
    }
}
