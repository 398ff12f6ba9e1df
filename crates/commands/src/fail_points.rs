//! The fail points: requests fail on purpose, for tests of drivers and applications.
//!
//! `configureFailPoint` sets them, on a server with `--test-commands on`.
//!
//! | fail point | a request meets it | effect |
//! |---|---|---|
//! | `failCommand` | if its command is named, and the application too where one is named | in this order: it waits; its connection is closed; it fails with a code; or it runs, and is told a `writeConcernError` |
//! | `onPrimaryTransactionalWrite` | if it is a write that its driver may retry | it fails before its commit, or it runs; and its connection is closed unless asked otherwise |
//! | `disablePipelineOptimization` | if it has a pipeline | the pipeline is carried out as it is written |
//! | `maxTimeAlwaysTimeOut` | if it has a time limit | the limit is over at once |
//! | `failGetMoreAfterCursorCheckout` | if it is a `getMore` | it fails with a code |

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pando_document::{Document, Value};
use pando_query::expression::Optimisation;
use parking_lot::Mutex;

use crate::error::Failure;
use crate::error_code::ErrorCode;

/// Whether the server has the commands for tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TestCommands {
    /// It has not.
    #[default]
    Off,
    /// It has.
    On,
}

/// The requests that a fail point hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailMode {
    /// All that meet it.
    Always,
    /// So many from now on.
    Times(u64),
    /// All but the first so many.
    Skip(u64),
}

/// The effect of the fail point.
#[derive(Clone, Debug, Default)]
pub(crate) struct FailCommand {
    pub commands: Vec<String>,
    pub application: Option<String>,
    pub wait: Option<Duration>,
    pub closes_connection: bool,
    pub code: Option<i32>,
    /// The labels in the place of those that follow from the code.
    pub labels: Option<Vec<String>>,
    pub concern_error: Option<Document>,
}

impl FailCommand {
    /// The failure of a request.
    pub fn failure(&self, code: i32) -> Failure {
        let mut failure = Failure::new(ErrorCode::of(code), "Failing command via 'failCommand' failpoint");
        let of_code = (code == ErrorCode::ChangeStreamFatalError.code())
            .then(|| Value::Array(vec![Value::from("NonResumableChangeStreamError")]));
        if let Some(labels) = self.label_list().or(of_code) {
            failure.details.push("errorLabels", labels);
        }
        failure
    }

    /// The labels that the fail point names.
    pub fn label_list(&self) -> Option<Value> {
        let labels = self.labels.as_ref()?;
        Some(Value::Array(labels.iter().map(|label| Value::from(label.as_str())).collect()))
    }
}

/// The effect of `onPrimaryTransactionalWrite`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FailWrite {
    /// The code with which the write fails before its commit; otherwise it commits.
    pub code_before_commit: Option<i32>,
    pub closes_connection: bool,
}

#[derive(Debug)]
struct Armed<E> {
    mode: FailMode,
    effect: Arc<E>,
}

/// One fail point, with effects of one kind.
#[derive(Debug)]
pub(crate) struct FailPoint<E> {
    is_armed: AtomicBool,
    state: Mutex<Option<Armed<E>>>,
    /// Requests that it has hit.
    hits: Mutex<i64>,
}

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct FailPoints {
    /// `failCommand`.
    pub command: FailPoint<FailCommand>,
    /// `onPrimaryTransactionalWrite`.
    pub write: FailPoint<FailWrite>,
    /// `maxTimeAlwaysTimeOut`.
    pub time_out: FailPoint<()>,
    /// `failGetMoreAfterCursorCheckout`, with the code.
    pub get_more: FailPoint<i32>,
    leaves_pipelines: AtomicBool,
}

impl FailPoints {
    /// Sets whether pipelines are carried out as they are written.
    pub fn leave_pipelines(&self, leaves: Optimisation) {
        self.leaves_pipelines.store(leaves == Optimisation::Off, Ordering::Relaxed);
    }

    /// Whether pipelines are optimised.
    pub fn optimisation(&self) -> Optimisation {
        match self.leaves_pipelines.load(Ordering::Relaxed) {
            true => Optimisation::Off,
            false => Optimisation::On,
        }
    }

    /// Whether a request could be hit.
    pub fn is_armed(&self) -> bool {
        self.command.is_armed() || self.write.is_armed()
    }

    /// Fails a request with a time limit, if the limit is to be over at once.
    pub fn check_time_limit(&self, limit: Option<Duration>) -> Result<(), Failure> {
        if limit.is_none() || !self.time_out.is_armed() || self.time_out.hit().is_none() {
            return Ok(());
        }
        Err(Failure::new(ErrorCode::MaxTimeMsExpired, "operation exceeded time limit"))
    }

    /// The failure of the next `getMore`, if it is to fail.
    pub fn get_more_failure(&self) -> Option<Failure> {
        if !self.get_more.is_armed() {
            return None;
        }
        let code = self.get_more.hit()?;
        let reason = "Throwing from failpoint failGetMoreAfterCursorCheckout";
        Some(Failure::new(ErrorCode::of(*code), reason))
    }
}

impl FailPoint<FailCommand> {
    /// Whether a request meets the fail point.
    pub fn is_met(&self, command: &str, application: Option<&str>) -> bool {
        self.state.lock().as_ref().is_some_and(|armed| {
            let Armed { effect, .. } = armed;
            // The older greeting has two spellings.
            let is_named = effect.commands.iter().any(|name| {
                name == command
                    || (name.eq_ignore_ascii_case("isMaster") && name.eq_ignore_ascii_case(command))
            });
            is_named && effect.application.as_deref().is_none_or(|wanted| application == Some(wanted))
        })
    }
}

impl<E> Default for FailPoint<E> {
    fn default() -> FailPoint<E> {
        FailPoint { is_armed: AtomicBool::new(false), state: Mutex::new(None), hits: Mutex::new(0) }
    }
}

impl<E> FailPoint<E> {
    /// Sets the fail point, or takes it away. Gives the number of requests that it has hit before.
    pub fn set(&self, armed: Option<(FailMode, E)>) -> i64 {
        let mut state = self.state.lock();
        self.is_armed.store(armed.is_some(), Ordering::Release);
        *state = armed.map(|(mode, effect)| Armed { mode, effect: Arc::new(effect) });
        *self.hits.lock()
    }

    /// Whether a request could be hit.
    pub fn is_armed(&self) -> bool {
        self.is_armed.load(Ordering::Acquire)
    }

    /// The effect on the next request that is hit.
    pub fn effect(&self) -> Option<Arc<E>> {
        self.state.lock().as_ref().map(|armed| Arc::clone(&armed.effect))
    }

    /// Counts a request that meets the fail point; gives the effect if it is hit.
    pub fn hit(&self) -> Option<Arc<E>> {
        let mut state = self.state.lock();
        let Armed { mode, effect } = state.as_mut()?;
        let effect = Arc::clone(effect);
        match mode {
            FailMode::Always | FailMode::Skip(0) => {}
            FailMode::Skip(left) => {
                *left -= 1;
                return None;
            }
            FailMode::Times(left) => {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    *state = None;
                    self.is_armed.store(false, Ordering::Release);
                }
            }
        }
        *self.hits.lock() += 1;
        Some(effect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(command: &str) -> FailCommand {
        FailCommand { commands: vec![command.to_owned()], ..FailCommand::default() }
    }

    #[test]
    fn modes_count_the_requests_that_meet_the_point() {
        let points = FailPoint::default();
        assert!(!points.is_armed() && points.hit().is_none());
        points.set(Some((FailMode::Times(2), on("find"))));
        assert!(points.is_met("find", None) && !points.is_met("insert", None));
        assert!(points.hit().is_some() && points.hit().is_some() && points.hit().is_none());
        assert!(!points.is_armed());
        points.set(Some((FailMode::Skip(1), on("find"))));
        assert!(points.hit().is_none() && points.hit().is_some() && points.hit().is_some());
        assert_eq!(points.set(None), 4);
        assert!(!points.is_met("find", None));
    }

    #[test]
    fn an_application_is_hit_by_its_name() {
        let points = FailPoint::default();
        let effect = FailCommand { application: Some("a".to_owned()), ..on("find") };
        points.set(Some((FailMode::Always, effect)));
        assert!(points.is_met("find", Some("a")));
        assert!(!points.is_met("find", Some("b")) && !points.is_met("find", None));
    }
}
