//! Refused options: the server does not start, and names the reason.

use crate::running_server::{Server, run};

/// Runs `pando serve` with these arguments, which must fail, and gives what it says.
fn refusal(arguments: &[&str]) -> String {
    let (status, _, said) = run(&[&["serve"], arguments].concat());
    assert!(!status.success(), "{arguments:?} was accepted");
    said
}

#[test]
fn an_address_that_others_can_reach_is_refused_unless_allowed_and_then_warned_of() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let said = refusal(&["--engine", "memory", "--listen", address]);
        assert!(said.contains("--allow-unauthenticated"), "{said}");
    }
    let server = Server::start(&["--engine", "memory", "--listen", "0.0.0.0:0", "--allow-unauthenticated"]);
    assert!(server.address.starts_with("127.0.0.1:"), "{}", server.welcome);
    server.signal(rustix::process::Signal::TERM);
    let (status, log) = server.ended();
    assert!(status.success());
    assert!(log.contains("WARN") && log.contains("--allow-unauthenticated is set"), "{log}");
    let port = server_port(&log);
    assert!(log.contains(&format!("every client that reaches 0.0.0.0:{port} can")), "{log}");
}

/// The port in the line of the log that says where the server listens.
fn server_port(log: &str) -> &str {
    let from = log.find("0.0.0.0:").expect("the log names the address") + "0.0.0.0:".len();
    log[from..].split(|digit: char| !digit.is_ascii_digit()).next().unwrap_or_default()
}

#[test]
fn a_wrong_value_ends_as_a_wrong_command_line() {
    for arguments in [["--listen", "127.0.0.1"], ["--cache", "abc"], ["--log-level", "loud"]] {
        let (status, _, said) = run(&[&["serve", "--engine", "memory"], &arguments[..]].concat());
        assert!(status.code() == Some(2) && said.contains("is no valid value"), "{said}");
    }
}

#[test]
fn a_cache_beyond_the_memory_of_the_machine_is_told() {
    let server = Server::start(&["--engine", "memory", "--listen", "127.0.0.1:0", "--cache", "900TB"]);
    server.signal(rustix::process::Signal::TERM);
    let (_, log) = server.ended();
    assert!(log.contains("is larger than the memory of this machine"), "{log}");
}

#[test]
fn a_unix_socket_that_cannot_be_listened_on_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("d".repeat(100));
    let server = Server::over(&deep);
    server.signal(rustix::process::Signal::TERM);
    let (status, log) = server.ended();
    assert!(status.success(), "{log}");
    let path = deep.join("pando.sock");
    let said = format!(
        "not listening on the unix socket {}: its path has {} bytes",
        path.display(),
        path.as_os_str().len()
    );
    assert!(log.contains(&said) && log.contains("--unix-socket"), "{log}");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let server = Server::in_memory();
    let said = refusal(&["--engine", "memory", "--listen", &server.address]);
    assert!(said.contains(&server.address) && said.contains("is in use"), "{said}");
    // A refused server leaves no folder behind that the next one would take for a store of its own.
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for data in [&data, &data.join("of/several")] {
        let said = refusal(&["--data", data.to_str().unwrap(), "--listen", &server.address]);
        assert!(said.contains("is in use"), "{said}");
    }
    assert!(!data.exists());
}

#[test]
fn a_data_folder_that_is_a_file_is_refused_by_its_name() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let said = refusal(&["--data", path, "--listen", "127.0.0.1:0"]);
    assert!(said.contains(path) && said.contains("is a file: a store is a folder"), "{said}");
}

#[test]
fn a_data_folder_in_use_is_refused_and_its_user_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::over(folder.path());
    let said = refusal(&["--data", folder.path().to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    assert!(said.contains("in use"), "{said}");
    crate::connection::Connection::tcp(&server).ping();
}

#[test]
fn options_that_the_engine_does_not_have_are_answered_with_those_that_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let start = ["--data", folder.path().to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let said = refusal(&[&start[..], &["--engine-option", "logBuget=64MB"]].concat());
    assert!(said.contains("the options are bufferBudget, "), "the cache is --cache: {said}");
    assert!(said.contains("logBuget") && said.contains("logBudget"), "{said}");
    let said = refusal(&[&start[..], &["--engine-option", "fanout=many"]].concat());
    assert!(said.contains("fanout") && said.contains("many"), "{said}");
    let said =
        refusal(&["--engine", "memory", "--listen", "127.0.0.1:0", "--engine-option", "logBudget=64MB"]);
    assert!(said.contains("logBudget") && !said.contains("cannot open"), "{said}");
}

#[test]
fn mistyped_options_are_answered_with_the_right_ones() {
    let said = refusal(&["--chache", "1GB"]);
    assert!(said.contains("--cache"), "{said}");
    let said = refusal(&["--cache", "1 apple"]);
    assert!(said.contains("256MB"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pando.toml");
    std::fs::write(&file, "max_conections = 5\n").unwrap();
    let (status, _, said) = run(&["serve", "--config", file.to_str().unwrap()]);
    // A service manager does not start it again.
    assert_eq!(status.code(), Some(2));
    assert!(said.contains("did you mean 'max-connections'?"), "{said}");
}

#[test]
fn version_and_help_answer_on_standard_output() {
    let (status, version, _) = run(&["--version"]);
    assert!(status.success());
    assert_eq!(version.trim(), concat!("pando ", env!("CARGO_PKG_VERSION"), " (speaks MongoDB 8.0)"));
    for arguments in [&["--help"][..], &["serve", "--help"], &["import", "--help"], &["export", "--help"]] {
        let (status, help, _) = run(arguments);
        assert!(status.success() && help.contains("Examples:"), "{help}");
    }
    let (status, ..) = run(&[]);
    assert!(!status.success());
}

#[test]
fn flags_of_mongod_are_answered_with_those_of_pando() {
    for (flag, value, answer) in [
        ("--port", "1234", "--listen 127.0.0.1:1234"),
        ("--bind_ip", "0.0.0.0", "--listen"),
        ("--dbpath", "/data", "--data"),
        ("--maxConns", "4", "--max-connections"),
    ] {
        let (status, _, said) = run(&["serve", flag, value]);
        assert_eq!(status.code(), Some(2));
        assert!(said.contains(flag) && said.contains(answer), "{said}");
    }
}

#[test]
fn familiar_switches_are_taken_with_a_log_line_and_mistyped_ones_named_with_the_nearest() {
    let switches = ["--storageEngine", "inMemory", "--wiredTigerCacheSizeGB", "0.25", "--directoryperdb"];
    let server = Server::start(&[&switches[..], &["--listen", "127.0.0.1:0"]].concat());
    server.signal(rustix::process::Signal::TERM);
    let (status, log) = server.ended();
    assert!(status.success(), "{log}");
    for line in ["became --engine memory", "became --cache 256MB", "--directoryperdb became nothing"] {
        assert_eq!(log.matches(line).count(), 1, "{line}: {log}");
    }
    let both = ["serve", "--wiredTigerCacheSizeGB", "1", "--cache", "1GB"];
    for (arguments, words) in
        [(&both[..], "cannot be used with"), (&["serve", "--syncdela", "5"], "--syncdelay")]
    {
        let (status, _, said) = run(arguments);
        assert!(status.code() == Some(2) && said.contains(words), "{said}");
    }
}

#[test]
fn a_level_of_the_log_that_does_not_exist_is_refused() {
    let said = refusal(&["--engine", "memory", "--listen", "127.0.0.1:0", "--log-level", "verbose"]);
    assert!(said.contains("'verbose'") && said.contains("warn, info, debug"), "{said}");
}

#[test]
fn a_command_without_a_store_names_both_ways_to_give_one() {
    for arguments in [&["backup", "--to", "x"][..], &["verify"]] {
        let (status, _, said) = run(arguments);
        assert_eq!(status.code(), Some(2));
        assert!(said.contains("--uri") && said.contains("data"), "{said}");
    }
    let (_, _, said) = run(&["backup", "--to", "x"]);
    assert!(said.contains("--data"), "{said}");
}

#[test]
fn shells_and_man_learn_the_command_line() {
    for shell in ["bash", "zsh", "fish"] {
        let (status, text, said) = run(&["completions", shell]);
        assert!(status.success() && text.contains("upsert-fields"), "{shell}: {said}");
        assert!(!text.contains("authenticationMechanism"), "flags that only scripts have are not offered");
    }
    let folder = tempfile::tempdir().unwrap();
    let (status, _, said) = run(&["man", "--to", folder.path().to_str().unwrap()]);
    assert!(status.success(), "{said}");
    for page in ["pando.1", "pando-serve.1", "pando-import.1", "pando-verify.1"] {
        let text = std::fs::read_to_string(folder.path().join(page)).unwrap();
        assert!(text.starts_with(".ie") || text.contains(".TH"), "{page}");
    }
    let (_, text, _) = run(&["man"]);
    assert!(text.contains(".TH pando"), "{text}");
}

#[test]
fn a_place_or_a_value_that_cannot_be_is_a_wrong_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.csv");
    std::fs::write(&file, "a\n1\n").unwrap();
    let file = file.to_str().unwrap();
    let nobody = "mongodb://127.0.0.1:1";
    for (arguments, answer) in [
        (&["import", file, "--types", "a=str", "--uri", nobody][..], "--types: "),
        (&["import", file, "--types", "a", "--uri", nobody], "COLUMN=TYPE"),
        (&["import", file, "--resume", "foo", "--uri", nobody], "--resume: "),
        (&["import", file, "--archive", "--uri", nobody], "mongodump --out"),
        (&["import", file, "--gzip", "--uri", nobody], "by itself"),
        (&["import", file, "--uri", "http://127.0.0.1:1"], "no usable connection string"),
        (&["import", file, "--uri", "mongodb+srv://cluster0.example"], "is not looked up"),
        (&["copy", "--from", "http://127.0.0.1:1", "--to", "x"], "no usable connection string"),
        (&["verify", nobody], "--uri mongodb://127.0.0.1:1"),
        (&["user", "list", "--data", nobody], "--uri mongodb://127.0.0.1:1"),
        (&["user", "list", "--uri", nobody, "-u", "ada"], "--username needs a password"),
        (&["serve", "--replSet", "shop"], "--replica-set shop"),
        (&["serve", "--query-memory", "1GB"], "--query-memory: '1GB'"),
        (&["verify", "x", "--bytes-per-second", "1MB"], "cannot be used with"),
    ] {
        let (status, _, said) = run(arguments);
        assert!(status.code() == Some(2) && said.contains(answer), "{arguments:?}: {said}");
    }
}

#[test]
fn a_unix_socket_whose_path_is_too_long_is_refused_with_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s".repeat(110));
    let said =
        refusal(&["--engine", "memory", "--listen", "127.0.0.1:0", "--unix-socket", path.to_str().unwrap()]);
    assert!(said.contains("and 107 are the limit"), "{said}");
}

#[test]
fn an_audit_trail_without_lines_proves_nothing() {
    let (status, out, said) = run(&["audit", "verify", "/dev/null"]);
    assert_eq!(status.code(), Some(1));
    assert!(out.is_empty() && said.contains("/dev/null has no lines: nothing is proved"), "{out}{said}");
}

/// A service manager starts a server again that ends with code 1, and not one that ends with code 2.
#[test]
fn settings_that_only_an_edit_mends_end_with_the_code_of_a_wrong_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let write = |name: &str, content: &str| {
        std::fs::write(at(name), content).unwrap();
        at(name)
    };
    let (short, foreign) = (write("short", "AAAA"), at("foreign"));
    std::fs::set_permissions(&short, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::create_dir(&foreign).unwrap();
    write("foreign/mongod.lock", "");
    let text = write("text", "no certificate");
    let (new, absent) = (at("new"), at("absent"));
    let tls = ["--tls-mode", "requireTLS", "--tls-certificate-key-file"];
    for (arguments, code, words) in [
        (vec!["--engine-option", "nosuch=1"], 2, "nosuch"),
        (vec!["--engine-option", "pageSize=abc"], 2, "abc"),
        (vec!["--user", "nobody-of-this-name"], 2, "--user"),
        (vec!["--encryption-key-file", &short], 2, "no master key"),
        (vec!["--encryption-cipher", "aes256-gcm"], 2, "--encryption-key-file"),
        (vec!["--data", &foreign], 2, "mongod.lock"),
        (vec!["--engine-option", "nosuch=1", "--log-format", "json"], 2, "nosuch"),
        (vec!["--tls-certificate-key-file", &text], 2, "has no effect with --tls-mode disabled"),
        ([&tls[..], &[&text]].concat(), 2, "certificate"),
        // These may be there at the next start, such as on a disk that is mounted late.
        ([&tls[..], &[&absent]].concat(), 1, "cannot read"),
        (vec!["--encryption-key-file", &absent], 1, "cannot read the key file"),
    ] {
        let data = if arguments.contains(&"--data") { vec![] } else { vec!["--data", &new] };
        let (status, _, said) = run(&[&["serve", "--listen", "127.0.0.1:0"], &data[..], &arguments].concat());
        assert!(status.code() == Some(code) && said.contains(words), "{arguments:?}: {status} {said}");
    }
}

#[test]
fn an_audit_trail_in_a_file_of_the_store_or_a_pipe_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let made = Server::over(&data);
    made.signal(rustix::process::Signal::TERM);
    assert!(made.ended().0.success());
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let segment = std::fs::read_dir(data.join("wal")).unwrap().next().unwrap().unwrap().path();
    for (path, reason) in [
        (data.join("data.0000"), "one of the store's"),
        (segment, "one of the store's"),
        (data.join("wal/new.json"), "one of the store's"),
        (data.join("scratch"), "one of the store's"),
        (pipe, "a pipe or socket"),
    ] {
        let (data, path) = (data.to_str().unwrap(), path.to_str().unwrap());
        let said = refusal(&[
            "--data",
            data,
            "--listen",
            "127.0.0.1:0",
            "--audit-destination",
            "file",
            "--audit-path",
            path,
        ]);
        assert!(said.contains(reason), "{said}");
    }
}
