//! A call without options.

use crate::Error;

/// A call without options; [`Action::run`] carries it out.
#[must_use = "an action does nothing until it is run"]
pub struct Action<'a, R> {
    call: Box<dyn FnOnce() -> Result<R, Error> + 'a>,
}

impl<'a, R> Action<'a, R> {
    pub(crate) fn new(call: impl FnOnce() -> Result<R, Error> + 'a) -> Action<'a, R> {
        Action { call: Box::new(call) }
    }

    /// Carries the call out.
    ///
    /// # Errors
    /// The store refuses the call, or is closed.
    pub fn run(self) -> Result<R, Error> {
        (self.call)()
    }
}
