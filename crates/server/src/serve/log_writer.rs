//! The way of log lines to standard error: a thread writes them, so that a reader who has stalled stops no
//! request and no end of the server.
//!
//! # Steps
//! 1. A line goes into a queue of at most [`QUEUE_BYTES`]. One that has no room there is lost and counted.
//! 2. The thread writes what the queue has, and tells of lost lines once it can write again.
//! 3. The end of the process [flushes](LogWriter::flush_lines): it waits until all is written, for a second
//!    at most.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tracing::warn;

/// Bytes of lines that wait.
const QUEUE_BYTES: usize = 4 << 20;
/// The longest that an end of the process waits for its last lines.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// See the module's head.
#[derive(Debug, Default)]
pub(super) struct LogWriter {
    queue: Mutex<Queue>,
    /// There are lines to write.
    filled: Condvar,
    /// All lines are written.
    emptied: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    lines: Vec<u8>,
    /// Whether lines are being written.
    under_way: bool,
    /// Lines that had no room, and that the log has not told of.
    lost: u64,
}

impl LogWriter {
    /// A writer, and its thread, which ends with the process.
    ///
    /// # Errors
    /// The thread could not be started.
    pub(super) fn start(mut output: impl Write + Send + 'static) -> io::Result<Arc<LogWriter>> {
        let writer = Arc::new(LogWriter::default());
        let its_own = Arc::clone(&writer);
        thread::Builder::new().name("pando-log".to_owned()).spawn(move || {
            loop {
                let lost = its_own.write_next(&mut output);
                if lost > 0 {
                    warn!("{lost} lines of the log are lost: nobody has read standard error; getLog has the last lines");
                }
            }
        })?;
        Ok(writer)
    }

    /// Writes what the queue has, waiting for it; how many lines were lost meanwhile.
    fn write_next(&self, output: &mut impl Write) -> u64 {
        let mut queue = self.queue.lock();
        while queue.lines.is_empty() {
            queue.under_way = false;
            self.emptied.notify_all();
            self.filled.wait(&mut queue);
        }
        queue.under_way = true;
        let lines = std::mem::take(&mut queue.lines);
        drop(queue);
        // A log that cannot be written stops nothing.
        let _lost = output.write_all(&lines).and_then(|()| output.flush());
        std::mem::take(&mut self.queue.lock().lost)
    }

    /// Waits until all lines are written, for a second at most.
    pub(super) fn flush_lines(&self) {
        let end = Instant::now() + FLUSH_MAX;
        let mut queue = self.queue.lock();
        while !queue.lines.is_empty() || queue.under_way {
            if self.emptied.wait_until(&mut queue, end).timed_out() {
                return;
            }
        }
    }
}

impl Write for &LogWriter {
    /// Takes a line. The subscriber writes each in one call.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut queue = self.queue.lock();
        if queue.lines.len() + line.len() > QUEUE_BYTES {
            queue.lost += 1;
        } else {
            queue.lines.extend_from_slice(line);
            self.filled.notify_one();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// An output that writes when it is told to.
    struct Stalled {
        go_on: Receiver<()>,
        written: Sender<usize>,
    }

    impl Write for Stalled {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.go_on.recv().map_err(io::Error::other)?;
            self.written.send(bytes.len()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_who_has_stalled_loses_lines_and_stops_nobody() {
        let ((go, go_on), (written, writes)) = (channel(), channel());
        let writer = LogWriter::start(Stalled { go_on, written }).unwrap();
        let line = vec![b'x'; 64 << 10];
        (&*writer).write_all(&line).unwrap();
        while !writer.queue.lock().under_way {
            thread::yield_now();
        }
        for _ in 0..66 {
            (&*writer).write_all(&line).unwrap();
        }
        assert_eq!(writer.queue.lock().lost, 2);
        writer.flush_lines();
        assert!(writer.queue.lock().under_way, "it gave up");
        go.send(()).unwrap();
        go.send(()).unwrap();
        let sizes = [writes.recv().unwrap(), writes.recv().unwrap()];
        assert_eq!(sizes, [line.len(), QUEUE_BYTES]);
        writer.flush_lines();
        let queue = writer.queue.lock();
        assert!(queue.lines.is_empty() && !queue.under_way && queue.lost == 0);
    }

    #[test]
    fn a_flush_waits_until_all_is_written() {
        let (written, writes) = channel();
        let (go, go_on) = channel();
        let writer = LogWriter::start(Stalled { go_on, written }).unwrap();
        (&*writer).write_all(b"one\n").unwrap();
        go.send(()).unwrap();
        writer.flush_lines();
        assert_eq!(writes.try_recv(), Ok(4));
    }
}
