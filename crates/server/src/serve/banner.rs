//! The banner of a started server: its addresses, its data folder, a command to try next.
//!
//! It is for people. Where the log is JSON there is none, because standard output and standard error often go
//! to one reader; the line `serving` of the log has its facts.

use std::io::Write;

use pando_commands::MONGODB_VERSION;
use pandodb::{EngineName, FolderState};

use crate::configuration::{Configuration, LogFormat, TlsMode};

/// Prints it to standard output; the log goes to standard error. A server whose banner nobody reads, as after
/// `pando serve | head -1`, serves all the same.
pub(super) fn print(configuration: &Configuration, endpoints: &[String], found: FolderState) {
    if configuration.log_format == LogFormat::Json {
        return;
    }
    let keeps = match configuration.engine {
        EngineName::Memory => "kept in memory only, gone when the server ends".to_owned(),
        _ => {
            let data = &configuration.data;
            let whole = std::path::absolute(data).unwrap_or_else(|_| data.clone());
            let made = if found == FolderState::Vacant { " (a new store)" } else { "" };
            format!("{}{made}", whole.display())
        }
    };
    let mut lines = vec![
        format!("Pando {} is ready.", env!("CARGO_PKG_VERSION")),
        format!("  speaks      the protocol of MongoDB {MONGODB_VERSION}"),
        format!("  listens on  {}", endpoints.join(", ")),
        format!("  data        {keeps}"),
    ];
    if let Some(endpoint) = endpoints.iter().find(|endpoint| !endpoint.starts_with('/')) {
        let place = reachable(endpoint);
        lines.push("Try next:".to_owned());
        lines.push(match configuration.transport.tls_mode {
            // Shells take a question mark for the name of files.
            TlsMode::Require => {
                format!("  mongosh 'mongodb://{place}/?tls=true'   (with --tlsCAFile FILE if the issuer is your own)")
            }
            _ => format!("  mongosh mongodb://{place}"),
        });
    }
    let _ = writeln!(std::io::stdout(), "{}", lines.join("\n"));
}

/// The endpoint as a client on this machine can use it: loopback instead of "every address".
fn reachable(endpoint: &str) -> String {
    endpoint.replace("0.0.0.0:", "127.0.0.1:").replace("[::]:", "[::1]:")
}
