//! `getParameter`: settings by name, or all of them for `'*'`.

use pando_document::{DocumentWriter, RawValue};

use super::parameters::{self, Shown, wants_help, write_help};
use crate::arguments::{unknown_field, wrong_type};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// The options of a request.
#[derive(Default)]
struct Options {
    scope: Scope,
    form: Form,
}

/// The parameters that are wanted.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Scope {
    /// Those that the request names.
    #[default]
    Named,
    All,
}

/// How a parameter is shown.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Form {
    /// By its value.
    #[default]
    Value,
    /// With the times at which it can be set.
    Details,
}

/// Answers the parameters that the request names.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    if wants_help(request)? {
        write_help("getParameter gets parameters of the running server", context, reply);
        return Ok(());
    }
    let options = Options::of(request.command()?.1)?;
    let mut found = 0;
    for shown in parameters::all(context) {
        if options.scope == Scope::All || request.body.get(&shown.name)?.is_some() {
            found += 1;
            write(&shown, options.form, reply);
        }
    }
    if found == 0 {
        return Err(CommandError::failed(ErrorCode::Untold, "no option found to get"));
    }
    Ok(())
}

impl Options {
    /// The options that the value of the command's own field says.
    fn of(value: RawValue<'_>) -> Result<Options, CommandError> {
        let mut options = Options::default();
        let fields = match value {
            RawValue::String("*") => return Ok(Options { scope: Scope::All, ..options }),
            RawValue::Document(fields) => fields,
            _ => return Ok(options),
        };
        for field in fields.iter() {
            let (name, value) = field?;
            let is_set = matches!(value, RawValue::Boolean(_)) || value.is_number();
            match name {
                "allParameters" | "showDetails" if !is_set => {
                    let place = format!("getParameter.{name}");
                    return Err(wrong_type(&place, value, "types '[bool, long, int, decimal, double']"));
                }
                "allParameters" if value.to_bool() => options.scope = Scope::All,
                "showDetails" if value.to_bool() => options.form = Form::Details,
                "allParameters" | "showDetails" => {}
                _ => return Err(unknown_field("getParameter", name)),
            }
        }
        Ok(options)
    }
}

fn write(shown: &Shown, form: Form, reply: &mut DocumentWriter<'_>) {
    match form {
        Form::Value => reply.append_value(&shown.name, &shown.value),
        Form::Details => {
            let mut details = reply.document(&shown.name);
            details.append_value("value", &shown.value);
            details.append_bool("settableAtRuntime", shown.at_runtime);
            details.append_bool("settableAtStartup", shown.at_start);
            details.finish();
        }
    }
}
