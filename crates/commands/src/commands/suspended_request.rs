//! The wait of a request that is handled again afterwards: it is listed meanwhile.

use std::sync::Arc;

use pando_catalog::OperationWait;

use super::Commands;
use crate::ConnectionState;
use crate::context::Suspension;
use crate::operations::{ConnectionRecord, RunningRequest};
use crate::reply_timers::TimerWait;
use crate::reply_wait::ReplyWait;

impl Commands {
    /// The wait of a request, listed as one that waits.
    pub(super) fn suspended(
        &self,
        connection: &mut ConnectionState,
        record: &Arc<ConnectionRecord>,
        wait: Suspension,
        listed: impl FnOnce() -> RunningRequest,
    ) -> Box<dyn ReplyWait> {
        match wait {
            Suspension::Intent(wait) => {
                self.shared.wait_figures.count_retry();
                if let Some(waiting) = connection.wait_mut() {
                    let running = &self.shared.running;
                    waiting.list(|| running.list_wait(record, listed(), OperationWait::Intent));
                }
                Box::new(wait)
            }
            Suspension::Tail(wait) => {
                let listed = self.shared.running.list_wait(record, listed(), OperationWait::Tail);
                connection.list_tail(listed);
                Box::new(wait)
            }
            Suspension::Topology(moment) => {
                connection.note_topology_wait();
                Box::new(TimerWait { timers: Arc::clone(&self.shared.reply_timers), moment })
            }
        }
    }
}
