//! `pandoBackup`: a hot backup of the whole store into a folder of the server's machine. Pando's own command.
//!
//! `{pandoBackup: 1, to: "/backups/monday", since: "/backups/sunday"}`; with `since`, the content of that
//! backup is left out. The reply has `moment` (the last commit in the backup), `incremental` and `bytes`.
//! Only clients on the same machine may ask for it, because it writes wherever the server may.

use std::error::Error;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use pando_catalog::{BackupExtent, BackupRequest, StorageError};
use pando_document::DocumentWriter;
use pando_environment::EnvironmentError;

use crate::accounts::Ends;
use crate::arguments::{Arguments, missing};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Makes the backup.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    check_ends(context.connection.ends(), &context.shared.options.unix_socket)?;
    let (mut to, mut since) = (None, None);
    for argument in Arguments::of_command("pandoBackup", request.body) {
        let argument = argument?;
        match argument.name {
            "to" => to = argument.string()?,
            "since" => since = argument.string()?,
            _ => argument.refuse_unless_generic()?,
        }
    }
    let folder = absolute("to", to.ok_or_else(|| missing("pandoBackup", "to"))?)?;
    let since = since.map(|since| absolute("since", since)).transpose()?;
    check_place(folder, context.shared.options.folder.as_deref())?;
    let environment = &context.shared.environment;
    let operation = Some(context.operation);
    let request = BackupRequest { environment, folder, since, operation };
    let (place, began) = (folder.display(), context.shared.uptime_ms());
    tracing::info!("a backup into {place} begins");
    let report = context.catalog().engine().backup(&request).map_err(|error| {
        tracing::warn!(%error, "the backup into {place} has failed");
        refusal(error, folder)
    })?;
    tracing::info!(
        bytes = report.bytes,
        moment = report.moment.get(),
        incremental = report.extent == BackupExtent::Incremental,
        "the backup into {place} is whole, after {} s",
        (context.shared.uptime_ms() - began) / 1000
    );
    reply.append_i64("moment", i64::try_from(report.moment.get()).unwrap_or(i64::MAX));
    reply.append_bool("incremental", report.extent == BackupExtent::Incremental);
    reply.append_i64("bytes", i64::try_from(report.bytes).unwrap_or(i64::MAX));
    Ok(())
}

/// The error of a backup. Where this process holds the folder, another backup writes there: the store's own
/// folder is refused before.
fn refusal(error: StorageError, folder: &Path) -> CommandError {
    let mut causes = std::iter::successors(error.source(), |cause| (*cause).source());
    let is_held_here = causes.any(|cause| {
        let shared = cause.downcast_ref::<Arc<EnvironmentError>>().map(Arc::as_ref);
        let found = shared.or_else(|| cause.downcast_ref::<EnvironmentError>());
        matches!(found, Some(EnvironmentError::Locked { pid, .. }) if *pid == Some(std::process::id()))
    });
    if !is_held_here {
        return error.into();
    }
    let reason =
        format!("another backup writes to {}: wait for it, or name another folder", folder.display());
    CommandError::failed(ErrorCode::BadValue, reason)
}

/// A client on another machine must not choose where the server writes. Unix sockets and callers in this
/// process have no network address.
fn check_ends(ends: Ends, unix_socket: &str) -> Result<(), CommandError> {
    if ends.share_a_machine() {
        return Ok(());
    }
    let socket = match unix_socket {
        "" => String::new(),
        uri => format!(", such as by {uri}"),
    };
    let reason = format!("pandoBackup writes files of the server's machine: ask for it from there{socket}");
    Err(CommandError::failed(ErrorCode::Unauthorized, reason))
}

/// A backup within the store's own folder is lost with it. Links are not followed.
fn check_place(to: &Path, store: Option<&Path>) -> Result<(), CommandError> {
    let store = store.and_then(|store| std::path::absolute(store).ok());
    let Some(store) = store.filter(|store| normalized(to).starts_with(normalized(store))) else {
        return Ok(());
    };
    let reason = format!(
        "pandoBackup.to lies in the data folder {}: a backup wants a folder of its own, if possible on another device",
        store.display()
    );
    Err(CommandError::failed(ErrorCode::BadValue, reason))
}

/// The path without `.` and `..`.
fn normalized(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                whole.pop();
            }
            other => whole.push(other),
        }
    }
    whole
}

/// A path must be absolute, because the working folder of the server means nothing to its clients.
fn absolute<'p>(name: &str, path: &'p str) -> Result<&'p Path, CommandError> {
    let path = Path::new(path);
    if path.is_absolute() {
        return Ok(path);
    }
    let reason = format!("pandoBackup.{name} must be an absolute path on the server's machine");
    Err(CommandError::failed(ErrorCode::BadValue, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_does_not_lie_in_the_folder_of_its_store() {
        let check = |to: &str| check_place(Path::new(to), Some(Path::new("/srv/data")));
        for within in ["/srv/data", "/srv/data/backup", "/srv/x/../data/./backup"] {
            assert!(check(within).is_err(), "{within}");
        }
        for beside in ["/srv/data2", "/srv/backup", "/srv/data/../backup"] {
            assert!(check(beside).is_ok(), "{beside}");
        }
        assert!(check_place(Path::new("/srv"), None).is_ok());
    }

    #[test]
    fn only_clients_of_the_same_machine_may_have_files_written() {
        let check = |client: &str, server: &str| {
            let [client, server] = [client, server].map(|address| address.parse().ok());
            check_ends(Ends { client, server }, "mongodb://%2Fsrv%2Fpando.sock")
        };
        for (client, server) in [
            ("127.0.0.1", "127.0.0.1"),
            ("::1", "::1"),
            ("::ffff:127.0.0.1", "127.0.0.1"),
            // The machine's own address, as in --uri mongodb://db.example.com.
            ("10.0.0.7", "10.0.0.7"),
            ("::ffff:10.0.0.7", "10.0.0.7"),
            // A unix socket has no addresses.
            ("", ""),
        ] {
            assert!(check(client, server).is_ok(), "{client} {server}");
        }
        for (client, server) in [("10.0.0.7", "10.0.0.8"), ("2001:db8::1", "::1"), ("10.0.0.7", "")] {
            let refused = check(client, server).expect_err("it is elsewhere").to_string();
            assert!(refused.contains("such as by mongodb://%2Fsrv%2Fpando.sock"), "{refused}");
        }
        assert!(absolute("to", "backups").is_err());
    }
}
