//! The topology version: this process, and the count of changes that a driver's monitor has to know of.
//!
//! The topology never changes while the process runs, so the counter stays 0. A monitor that knows it already
//! waits in its next `hello` until the time that it names is over: see `diagnostic/hello.rs`.

use std::time::Duration;

use pando_document::{DocumentWriter, ObjectId, RawDocument, RawValue};

use crate::arguments::{missing, unknown_field, whole, wrong_type};
use crate::persona::Persona;
use crate::{CommandError, ErrorCode, Request};

/// The counter of this process.
const COUNTER: i64 = 0;
/// The longest wait. A client that asks for more is answered earlier, and asks again.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The codes of errors that carry the version, where the server is a member of a replica set: it is no
/// primary, or no more. A driver that knows the version already keeps its picture of the server, and asks
/// again at once. Without the version it waits for its next heartbeat, up to ten seconds. MongoDB 6.0.27
/// was observed to add it to these, and to no code of a shutdown.
const TOPOLOGY_CODES: [i32; 5] = [189, 10_107, 11_602, 13_435, 13_436];

/// Whether an error of this code carries the version.
pub(crate) fn is_carried_by(code: i32, persona: Persona) -> bool {
    persona == Persona::ReplicaSet && TOPOLOGY_CODES.contains(&code)
}

/// Appends the version.
pub(crate) fn write(process: ObjectId, reply: &mut DocumentWriter<'_>) {
    let mut version = reply.document("topologyVersion");
    version.append_object_id("processId", process);
    version.append_i64("counter", COUNTER);
    version.finish();
}

/// The time that a `hello` waits: as long as its client says, where the client knows this version.
pub(crate) fn awaited(request: &Request<'_>, process: ObjectId) -> Result<Option<Duration>, CommandError> {
    let refused = |code, sentence: &str| Err(CommandError::failed(ErrorCode::Location(code), sentence));
    let version = request.body.get("topologyVersion")?.filter(|version| !version.is_null());
    let limit = request.body.get("maxAwaitTimeMS")?.filter(|limit| !limit.is_null());
    let limit = limit.map(await_time).transpose()?;
    match (version, limit) {
        (None, None) => Ok(None),
        (None, Some(_)) => {
            refused(31_368, "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'")
        }
        (Some(version), limit) => {
            let RawValue::Document(version) = version else {
                return Err(wrong_type("hello.topologyVersion", version, "type 'object'"));
            };
            let (known, counter) = read(version)?;
            let Some(limit) = limit else {
                return refused(31_368, "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'");
            };
            if counter < 0 {
                return refused(31_372, "topologyVersion must have a non-negative counter");
            }
            if known != process {
                return Ok(None);
            }
            if counter > COUNTER {
                let sentence = format!(
                    "Received a topology version with counter: {counter} which is greater than the server topology version counter: {COUNTER}"
                );
                return refused(31_382, &sentence);
            }
            Ok(Some(limit.min(WAIT_MAX)))
        }
    }
}

fn await_time(value: RawValue<'_>) -> Result<Duration, CommandError> {
    if !value.is_number() {
        return Err(wrong_type("hello.maxAwaitTimeMS", value, "types '[long, int, decimal, double']"));
    }
    u64::try_from(whole(value)).map(Duration::from_millis).map_err(|_| {
        let sentence =
            format!("BSON field 'maxAwaitTimeMS' value must be >= 0, actual value '{}'", whole(value));
        CommandError::failed(ErrorCode::Location(51_024), sentence)
    })
}

/// The process and the counter of a version.
fn read(version: &RawDocument) -> Result<(ObjectId, i64), CommandError> {
    const PLACE: &str = "hello.topologyVersion";
    let (mut process, mut counter) = (None, None);
    for field in version.iter() {
        match field? {
            ("processId", RawValue::ObjectId(id)) => process = Some(id),
            ("processId", other) => {
                return Err(wrong_type(&format!("{PLACE}.processId"), other, "type 'objectId'"));
            }
            ("counter", RawValue::Int64(number)) => counter = Some(number),
            ("counter", other) => return Err(wrong_type(&format!("{PLACE}.counter"), other, "type 'long'")),
            (name, _) => return Err(unknown_field(PLACE, name)),
        }
    }
    let process = process.ok_or_else(|| missing(PLACE, "processId"))?;
    Ok((process, counter.ok_or_else(|| missing(PLACE, "counter"))?))
}

#[cfg(test)]
mod tests {
    use pando_document::{Document, doc};

    use super::*;

    fn asked(body: Document) -> Result<Option<Duration>, i32> {
        let body = body.to_raw();
        let process = ObjectId::from_bytes([7; 12]);
        awaited(&Request::of(&body), process).map_err(|error| match error {
            CommandError::Failed(failure) => failure.code.code(),
            CommandError::WouldBlock(_) => panic!("nothing is read"),
        })
    }

    #[test]
    fn errors_of_a_member_that_is_no_primary_carry_the_version() {
        assert!(is_carried_by(10_107, Persona::ReplicaSet) && !is_carried_by(10_107, Persona::Standalone));
        assert!(!is_carried_by(91, Persona::ReplicaSet) && !is_carried_by(112, Persona::ReplicaSet));
    }

    fn version(process: u8, counter: i64) -> Document {
        doc! { "processId": ObjectId::from_bytes([process; 12]), "counter": counter }
    }

    #[test]
    fn only_a_client_that_knows_this_version_waits() {
        let known = doc! { "hello": 1, "topologyVersion": version(7, 0), "maxAwaitTimeMS": 300 };
        assert_eq!(asked(known), Ok(Some(Duration::from_millis(300))));
        let long = doc! { "hello": 1, "topologyVersion": version(7, 0), "maxAwaitTimeMS": 1_000_000_000 };
        assert_eq!(asked(long), Ok(Some(WAIT_MAX)));
        let other = doc! { "hello": 1, "topologyVersion": version(8, 5), "maxAwaitTimeMS": 300 };
        assert_eq!(asked(other), Ok(None));
        assert_eq!(asked(doc! { "hello": 1 }), Ok(None));
    }

    #[test]
    fn wrong_fields_are_refused_with_the_codes_of_mongodb() {
        for (body, code) in [
            (doc! { "hello": 1, "topologyVersion": version(7, 0) }, 31_368),
            (doc! { "hello": 1, "maxAwaitTimeMS": 1 }, 31_368),
            (doc! { "hello": 1, "topologyVersion": version(7, 0), "maxAwaitTimeMS": -1 }, 51_024),
            (doc! { "hello": 1, "topologyVersion": version(7, 0), "maxAwaitTimeMS": "x" }, 14),
            (doc! { "hello": 1, "topologyVersion": 1, "maxAwaitTimeMS": 1 }, 14),
            (doc! { "hello": 1, "topologyVersion": {}, "maxAwaitTimeMS": 1 }, 40_414),
            (doc! { "hello": 1, "topologyVersion": version(7, -1), "maxAwaitTimeMS": 1 }, 31_372),
            (doc! { "hello": 1, "topologyVersion": version(7, 1), "maxAwaitTimeMS": 1 }, 31_382),
            (doc! { "hello": 1, "topologyVersion": { "x": 1 }, "maxAwaitTimeMS": 1 }, 40_415),
        ] {
            assert_eq!(asked(body.clone()), Err(code), "{body:?}");
        }
    }
}
