//! The output of a connection: replies on their way to the socket, and those that it did not take.

use std::io;

use super::{BURST_BYTES, Connection};
use crate::network::handler::Handler;
use crate::network::phase::Phase;
use crate::network::stream::WriteOutcome;
use crate::network::thread_state::ThreadState;

impl<S: Send + 'static> Connection<S> {
    /// Whether a connection that closes waits for nothing but its peer, which has read nothing since the last
    /// call.
    pub(in crate::network) fn is_stuck(&mut self) -> bool {
        let unsent = self.output.len();
        let before = std::mem::replace(&mut self.unsent_noted, unsent);
        matches!(self.phase, Phase::Closing) && unsent > 0 && unsent == before
    }

    /// Sends the thread's output. The connection keeps the bytes that the socket does not take.
    pub(super) fn send<H: Handler<Session = S>>(&mut self, thread: &mut ThreadState<H>) -> io::Result<()> {
        if thread.out.is_empty() {
            return Ok(());
        }
        let sent = self.stream.send(&thread.out, &mut self.output);
        thread.out.clear();
        thread.out.shrink_to(2 * BURST_BYTES);
        sent
    }

    /// Sends the bytes that the socket did not take before.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        match self.stream.write_raw(&self.output)? {
            WriteOutcome::All => self.output = Vec::new(),
            WriteOutcome::Partly(written) => drop(self.output.drain(..written)),
        }
        Ok(())
    }
}
