//! Parameters that are set at the start of a process, before the first request.

use std::sync::Arc;

use pando_catalog::Operation;
use pando_document::{Document, DocumentWriter, Value, parse_json_value};

use super::Commands;
use crate::connection::ConnectionState;
use crate::context::{Addressed, Attempt, Context};
use crate::diagnostic::{parameters, set_parameter};
use crate::{CommandError, Request};

/// Why a parameter of the start is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the parameter {name} cannot be {text}: {fault}")]
pub struct StartParameterError {
    name: String,
    text: String,
    fault: String,
}

/// Whether a store of this engine has a parameter of this name that `setParameter` changes. Of the engine's
/// own ones the engine knows more when it is open.
pub fn is_parameter(engine: &str, name: &str) -> bool {
    parameters::may_be(engine, name)
}

impl Commands {
    /// Sets a parameter, as `setParameter` does. The text is a number, `true`, `false` or a document in JSON;
    /// any other one is a string.
    ///
    /// # Errors
    /// There is no such parameter, or it does not take the value.
    pub fn set_parameter_at_start(&self, name: &str, text: &str) -> Result<(), StartParameterError> {
        let value = parse_json_value(text).unwrap_or_else(|_| Value::String(text.to_owned()));
        self.set_parameter(name, value).map_err(|error| StartParameterError {
            name: name.to_owned(),
            text: text.to_owned(),
            fault: error.to_string(),
        })
    }

    fn set_parameter(&self, name: &str, value: Value) -> Result<(), CommandError> {
        let mut body = Document::new();
        body.insert("setParameter", 1);
        body.insert(name, value);
        let body = body.to_raw();
        let clock = self.shared.environment.clock();
        let operation = Arc::new(Operation::new(clock));
        let entered = self.shared.running.enter_background("parameters of the start", &operation);
        let attempt = Attempt::of_server(entered.record(), clock.monotonic());
        let mut connection = ConnectionState::new(0, "");
        let mut context = Context::new(&self.shared, &mut connection, attempt, Addressed::of_server("admin"));
        let mut reply = Vec::new();
        let mut writer = DocumentWriter::begin(&mut reply);
        set_parameter::run(&mut context, &Request::of(&body), &mut writer)
    }
}
