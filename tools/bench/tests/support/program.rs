//! Where the server's program is.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The server's program: what `PANDO` names, or beside the tool, built now if nobody did.
pub fn pando() -> PathBuf {
    if let Some(path) = std::env::var_os("PANDO") {
        return PathBuf::from(path);
    }
    let tool = Path::new(env!("CARGO_BIN_EXE_pando-bench"));
    let beside = tool.with_file_name("pando");
    static BUILT: std::sync::Once = std::sync::Once::new();
    BUILT.call_once(|| {
        if !beside.exists() {
            let target =
                tool.parent().and_then(Path::parent).expect("a profile's folder in the target folder");
            let built = Command::new(env!("CARGO"))
                .args(["build", "--quiet", "--package", "pando-server", "--target-dir"])
                .arg(target)
                .status()
                .expect("cargo starts");
            assert!(built.success(), "the server must build");
        }
    });
    beside
}
