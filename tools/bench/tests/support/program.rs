//! Where the server's program is, and a server that it runs.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

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

/// Starts a server over a folder. It chooses its port itself and announces it: a port that a test chooses may
/// go to another test, or to a client's connection, before the server takes it.
pub fn serve(data: &Path) -> (Child, u16) {
    let mut process = Command::new(pando())
        .args(["serve", "--listen", "127.0.0.1:0", "--unix-socket", "none", "--data"])
        .arg(data)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts");
    let mut said = BufReader::new(process.stdout.take().expect("it is piped")).lines();
    let announced = said.by_ref().find_map(|line| {
        let line = line.expect("text");
        line.trim().strip_prefix("listens on")?.trim().strip_prefix("127.0.0.1:")?.parse().ok()
    });
    // The server may say more.
    std::thread::spawn(move || said.for_each(drop));
    (process, announced.expect("the server announces its port"))
}
