//! What a person sees who has started a server: where it is, where the data is, what to try next.

use pandodb::EngineName;

use crate::configuration::Configuration;

/// Prints it to standard output; the log goes to standard error.
pub(super) fn print(configuration: &Configuration, places: &[String]) {
    let keeps = match configuration.engine {
        EngineName::Memory => "kept in memory only, gone when the server ends".to_owned(),
        _ => {
            let data = &configuration.data;
            std::path::absolute(data).unwrap_or_else(|_| data.clone()).display().to_string()
        }
    };
    println!("Pando {} is ready.", env!("CARGO_PKG_VERSION"));
    println!("  listens on  {}", places.join(", "));
    println!("  data        {keeps}");
    if let Some(place) = places.iter().find(|place| !place.starts_with('/')) {
        println!("Try next:");
        println!("  mongosh mongodb://{}", reachable(place));
    }
}

/// An address that a client on this machine can use: one that means "every address" does not do.
fn reachable(place: &str) -> String {
    place.replace("0.0.0.0:", "127.0.0.1:").replace("[::]:", "[::1]:")
}
