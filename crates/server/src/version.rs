//! The version of the program, and that of the protocol.

use pando_commands::{MONGODB_VERSION, PANDO_VERSION};

/// `0.1.0 (speaks MongoDB 8.0)`.
pub(crate) fn version_text() -> String {
    let series = MONGODB_VERSION.rsplit_once('.').map_or(MONGODB_VERSION, |(series, _)| series);
    format!("{PANDO_VERSION} (speaks MongoDB {series})")
}

#[cfg(test)]
mod tests {
    #[test]
    fn both_versions_are_said() {
        let text = super::version_text();
        assert!(text.starts_with(env!("CARGO_PKG_VERSION")), "{text}");
        assert!(text.ends_with(" (speaks MongoDB 8.0)"), "{text}");
    }
}
