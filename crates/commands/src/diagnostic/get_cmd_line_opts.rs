//! `getCmdLineOpts`: the command line of the server, and its settings under MongoDB's names.

use pando_document::{DocumentWriter, RawValue};

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
    write_settings(context, &mut reply.document("parsed"));
    Ok(())
}

/// Appends the settings, as they are in force: they may come from flags, a file or the environment.
fn write_settings(context: &Context<'_>, settings: &mut DocumentWriter<'_>) {
    let options = &context.shared.options;
    if let Some((host, port)) = options.address.rsplit_once(':') {
        let mut net = settings.document("net");
        net.append_str("bindIp", host.trim_start_matches('[').trim_end_matches(']'));
        if let Ok(port) = port.parse::<u16>() {
            net.append_i32("port", i32::from(port));
        }
        net.finish();
    }
    if options.persona.persona == Persona::ReplicaSet {
        let mut replication = settings.document("replication");
        replication.append_str("replSet", &options.persona.set_name);
        replication.finish();
    }
    if options.access_control == AccessControl::On {
        let mut security = settings.document("security");
        security.append_str("authorization", "enabled");
        security.finish();
    }
    let mut storage = settings.document("storage");
    if let Some(folder) = &options.folder {
        storage.append_str("dbPath", &folder.display().to_string());
    }
    storage.append_str("engine", context.catalog().engine().name());
    storage.finish();
}
