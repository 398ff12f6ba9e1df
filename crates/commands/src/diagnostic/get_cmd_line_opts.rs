//! `getCmdLineOpts`: the command line of the server, and its settings under MongoDB's names.

use pando_document::{DocumentWriter, RawValue, Value};

use crate::access::AccessControl;
use crate::arguments::no_more;
use crate::context::Context;
use crate::persona::Persona;
use crate::{CommandError, Request};

/// Answers the command line.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    no_more("getCmdLineOpts", request.body)?;
    let mut words = reply.array("argv");
    for word in &context.shared.options.command_line {
        words.push(RawValue::String(word));
    }
    words.finish();
    let mut settings = settings(context);
    settings.sort_by(|(one, _), (other, _)| one.cmp(other));
    write_settings(&settings, &mut reply.document("parsed"));
    Ok(())
}

/// The settings by their paths, as they are in force: they may come from flags, a file or the environment.
fn settings(context: &Context<'_>) -> Vec<(String, Value)> {
    let options = &context.shared.options;
    let mut settings = options.settings.clone();
    let mut set = |path: &str, value: Value| settings.push((path.to_owned(), value));
    let text = |text: &str| Value::String(text.to_owned());
    if let Some((host, port)) = options.address.rsplit_once(':') {
        set("net.bindIp", text(host.trim_start_matches('[').trim_end_matches(']')));
        if let Ok(port) = port.parse::<u16>() {
            set("net.port", Value::Int32(i32::from(port)));
        }
    }
    if options.persona.persona == Persona::ReplicaSet {
        set("replication.replSet", text(&options.persona.set_name));
    }
    if options.access_control == AccessControl::On {
        set("security.authorization", text("enabled"));
    }
    if let Some(folder) = &options.folder {
        set("storage.dbPath", text(&folder.display().to_string()));
    }
    set("storage.engine", text(context.catalog().engine().name()));
    settings
}

/// Appends sorted settings. Those whose paths begin alike stand in one section.
fn write_settings(settings: &[(String, Value)], document: &mut DocumentWriter<'_>) {
    fn section(path: &str) -> Option<&str> {
        path.split_once('.').map(|(section, _)| section)
    }
    for settings in
        settings.chunk_by(|(one, _), (other, _)| section(one).is_some() && section(one) == section(other))
    {
        let Some((name, _)) = settings[0].0.split_once('.') else {
            document.append_value(&settings[0].0, &settings[0].1);
            continue;
        };
        let inner = |(path, value): &(String, Value)| (path[name.len() + 1..].to_owned(), value.clone());
        let inner: Vec<(String, Value)> = settings.iter().map(inner).collect();
        let mut within = document.document(name);
        write_settings(&inner, &mut within);
        within.finish();
    }
}
