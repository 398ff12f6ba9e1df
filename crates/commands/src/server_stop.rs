//! The end of the process that serves the store, as the commands ask for it.

use std::fmt;

/// Has the process stop, as a signal would.
pub trait ServerStop: fmt::Debug + Send + Sync {
    /// Asks for it. The stop begins at once; the request that asks is still answered.
    fn ask(&self);
}
