//! `configureFailPoint`: sets the fail points, on a server with commands for tests.

use std::time::Duration;

use pando_document::{Document, DocumentWriter, RawDocument, RawValue, Value};
use pando_query::expression::Optimisation;

use crate::arguments::Arguments;
use crate::context::Context;
use crate::error_code::ErrorCode;
use crate::fail_points::{FailCommand, FailMode, FailWrite, TestCommands};
use crate::{CommandError, Request};

/// The fail point of commands by name.
const COMMAND: &str = "failCommand";
/// The fail point of writes that drivers may retry.
const WRITE: &str = "onPrimaryTransactionalWrite";
/// The fail point that has pipelines carried out as they are written.
const UNOPTIMISED: &str = "disablePipelineOptimization";
/// The fail point that has time limits be over.
const TIME_OUT: &str = "maxTimeAlwaysTimeOut";
/// The fail point of `getMore`.
const GET_MORE: &str = "failGetMoreAfterCursorCheckout";
const ALL: [&str; 5] = [COMMAND, WRITE, UNOPTIMISED, TIME_OUT, GET_MORE];

/// Sets it.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let (name, value) = request.command()?;
    if context.shared.options.test_commands == TestCommands::Off {
        return Err(CommandError::failed(ErrorCode::CommandNotFound, format!("no such command: '{name}'")));
    }
    let point = value.as_str().filter(|name| ALL.contains(name));
    let Some(point) = point else {
        return Err(refused(&format!("the fail points are {}", ALL.join(", "))));
    };
    let (mut mode, mut data) = (None, None);
    for argument in Arguments::of_command("configureFailPoint", request.body) {
        let argument = argument?;
        match argument.name {
            "mode" => mode = Some(argument.value),
            "data" => data = argument.document()?,
            _ => argument.refuse_unless_generic()?,
        }
    }
    let mode = mode.ok_or_else(|| refused("configureFailPoint needs a mode"))?;
    if point == UNOPTIMISED {
        let optimisation = match read_mode(mode)? {
            None => Optimisation::On,
            Some(FailMode::Always) => Optimisation::Off,
            Some(_) => return Err(refused("disablePipelineOptimization is 'off' or 'alwaysOn'")),
        };
        context.shared.fail_points.leave_pipelines(optimisation);
        reply.append_i64("count", 0);
        return Ok(());
    }
    let (mode, data) = (read_mode(mode)?, data.unwrap_or(RawDocument::empty()));
    let points = &context.shared.fail_points;
    let count = match point {
        WRITE => points.write.set(armed(mode, || read_write(data))?),
        TIME_OUT => points.time_out.set(mode.map(|mode| (mode, ()))),
        GET_MORE => points.get_more.set(armed(mode, || read_code(data))?),
        _ => points.command.set(armed(mode, || read_data(data))?),
    };
    reply.append_i64("count", count);
    Ok(())
}

fn armed<E>(
    mode: Option<FailMode>,
    effect: impl FnOnce() -> Result<E, CommandError>,
) -> Result<Option<(FailMode, E)>, CommandError> {
    mode.map(|mode| Ok((mode, effect()?))).transpose()
}

fn read_code(data: &RawDocument) -> Result<i32, CommandError> {
    let code = data.get("errorCode")?.and_then(|code| code.as_i64_exact());
    code.and_then(|code| i32::try_from(code).ok()).ok_or_else(|| refused("errorCode has to be a number"))
}

fn read_mode(mode: RawValue<'_>) -> Result<Option<FailMode>, CommandError> {
    let wrong = || refused("mode has to be 'off', 'alwaysOn', {times: n} or {skip: n}");
    match mode {
        RawValue::String("off") => Ok(None),
        RawValue::String("alwaysOn") => Ok(Some(FailMode::Always)),
        RawValue::Document(mode) => {
            let (name, value) = mode.iter().next().ok_or_else(wrong)??;
            let number = value.as_i64_exact().and_then(|number| u64::try_from(number).ok());
            match (name, number.ok_or_else(wrong)?) {
                ("times", 0) => Ok(None),
                ("times", number) => Ok(Some(FailMode::Times(number))),
                ("skip", number) => Ok(Some(FailMode::Skip(number))),
                _ => Err(wrong()),
            }
        }
        _ => Err(wrong()),
    }
}

fn read_write(data: &RawDocument) -> Result<FailWrite, CommandError> {
    let mut effect = FailWrite { code_before_commit: None, closes_connection: true };
    for field in data.iter() {
        match field? {
            ("closeConnection", value) => effect.closes_connection = value.to_bool(),
            ("failBeforeCommitExceptionCode", value) => {
                let code = value.as_i64_exact().and_then(|code| i32::try_from(code).ok());
                let code = code.ok_or_else(|| refused("failBeforeCommitExceptionCode has to be a number"))?;
                effect.code_before_commit = Some(code);
            }
            (name, _) => return Err(refused(&format!("{WRITE} has no field '{name}'"))),
        }
    }
    Ok(effect)
}

fn read_data(data: &RawDocument) -> Result<FailCommand, CommandError> {
    let mut effect = FailCommand::default();
    let mut blocks = false;
    for field in data.iter() {
        match field? {
            ("failCommands", names) => effect.commands = strings("failCommands", names)?,
            ("appName", name) => effect.application = name.as_str().map(str::to_owned),
            ("blockConnection", value) => blocks = value.to_bool(),
            ("blockTimeMS", value) => {
                let time = value.as_i64_exact().and_then(|time| u64::try_from(time).ok());
                let time = time.ok_or_else(|| refused("blockTimeMS has to be a number of milliseconds"))?;
                effect.wait = Some(Duration::from_millis(time));
            }
            ("closeConnection", value) => effect.closes_connection = value.to_bool(),
            ("errorCode", value) => {
                let code = value.as_i64_exact().and_then(|code| i32::try_from(code).ok());
                effect.code = Some(code.ok_or_else(|| refused("errorCode has to be a number"))?);
            }
            ("errorLabels", labels) => effect.labels = Some(strings("errorLabels", labels)?),
            ("writeConcernError", RawValue::Document(error)) => {
                effect.concern_error = Some(with_code_name(Document::from_raw(error)?));
            }
            ("failInternalCommands" | "failLocalClients" | "failGRPC", _) => {}
            (name, _) => return Err(refused(&format!("failCommand has no field '{name}' of this type"))),
        }
    }
    if blocks && effect.wait.is_none() {
        return Err(refused("blockConnection needs blockTimeMS"));
    }
    effect.wait = effect.wait.filter(|_| blocks);
    Ok(effect)
}

fn strings(name: &str, list: RawValue<'_>) -> Result<Vec<String>, CommandError> {
    let wrong = || refused(&format!("{name} has to be a list of strings"));
    let RawValue::Array(list) = list else { return Err(wrong()) };
    list.iter().map(|one| one?.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
}

/// A `writeConcernError` with the name of its code.
fn with_code_name(mut error: Document) -> Document {
    if let (Some(Value::Int32(code)), None) = (error.get("code"), error.get("codeName")) {
        let name = ErrorCode::of(*code).name().into_owned();
        error.push("codeName", Value::from(name.as_str()));
    }
    error
}

fn refused(reason: &str) -> CommandError {
    CommandError::failed(ErrorCode::BadValue, reason)
}
