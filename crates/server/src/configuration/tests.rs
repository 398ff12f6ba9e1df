//! Precedence, refusals, sizes, and the page that is generated.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Write;
use std::time::Duration;

use super::*;

fn resolve(
    flags: &[(&'static str, &str)],
    environment: &[(&str, &str)],
    file: Option<&str>,
) -> Result<Configuration, ConfigurationError> {
    let environment: HashMap<String, OsString> =
        environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    let mut written = tempfile::NamedTempFile::new().unwrap();
    written.write_all(file.unwrap_or("").as_bytes()).unwrap();
    let sources = Sources {
        flags: flags.iter().map(|(name, text)| (*name, (*text).to_owned())).collect(),
        familiar: Vec::new(),
        file: file.map(|_| written.path().to_owned()),
    };
    sources.resolve(|name| environment.get(name).cloned())
}

fn refusal(flags: &[(&'static str, &str)], environment: &[(&str, &str)], file: Option<&str>) -> String {
    resolve(flags, environment, file).expect_err("this configuration is wrong").to_string()
}

#[test]
fn the_defaults_are_valid_and_listen_on_loopback_only() {
    let configuration = resolve(&[], &[], None).unwrap();
    assert_eq!(configuration.listen, ["127.0.0.1:27017"]);
    assert_eq!(configuration.open_to_others, OpenToOthers::Refused);
    assert_eq!(configuration.engine, EngineName::Betree);
    assert_eq!(configuration.cache.bytes(), 256 << 20);
    assert_eq!(configuration.blocking_threads, 64);
    assert_eq!(configuration.query_memory, None);
    assert_eq!(configuration.stop_grace, Duration::from_secs(10));
}

#[test]
fn the_memory_of_queries_is_a_size_of_a_megabyte_at_least_or_chosen_by_the_cache() {
    let memory_of = |text| resolve(&[("query-memory", text)], &[], None).map(|found| found.query_memory);
    assert_eq!(memory_of("64MiB").unwrap().map(ByteSize::bytes), Some(64 << 20));
    assert_eq!(memory_of("auto").unwrap(), None);
    assert!(refusal(&[("query-memory", "1000")], &[], None).contains("expected at least 1MB"));
    assert!(refusal(&[("cache", "1MB")], &[], None).contains("expected at least 16MB"));
    let bytes = refusal(&[], &[], Some("cache = 64"));
    assert!(bytes.contains("64 is a number of bytes: write a unit, such as 64MB"), "{bytes}");
}

#[test]
fn a_file_takes_numbers_with_fractions_and_lists_only_for_options_with_several_values() {
    let file = Some("slow-sample-rate = 0.5");
    assert_eq!(
        resolve(&[], &[], file).unwrap().monitoring,
        resolve(&[("slow-sample-rate", "0.5")], &[], None).unwrap().monitoring
    );
    let refused = refusal(&[], &[], Some("data = ['d3', 'd4']"));
    assert!(refused.contains("'data' takes one value"), "{refused}");
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file_and_that_over_the_default() {
    let file = Some("cache = '100MB'\nmax-connections = 7\nblocking-threads = 3");
    let environment = [("PANDO_CACHE", "200MB"), ("PANDO_MAX_CONNECTIONS", "8")];
    let configuration = resolve(&[("cache", "300MB")], &environment, file).unwrap();
    assert_eq!(configuration.cache.bytes(), 300 << 20);
    assert_eq!(configuration.max_connections, 8);
    assert_eq!(configuration.blocking_threads, 3);
    assert_eq!(configuration.engine, EngineName::Betree);
}

#[test]
fn several_addresses_come_as_repeated_flags_commas_or_a_list() {
    let expected = ["127.0.0.1:1", "[::1]:2"];
    let flags = [("listen", "127.0.0.1:1"), ("listen", "[::1]:2")];
    assert_eq!(resolve(&flags, &[], None).unwrap().listen, expected);
    assert_eq!(resolve(&[], &[("PANDO_LISTEN", "127.0.0.1:1, [::1]:2")], None).unwrap().listen, expected);
    assert_eq!(resolve(&[], &[], Some("listen = ['127.0.0.1:1', '[::1]:2']")).unwrap().listen, expected);
}

#[test]
fn a_misspelt_variable_is_told_and_one_of_another_program_is_not() {
    let names = ["PANDO_CACH", "PANDO_AUHT", "PANDO_CACHE", "PANDO_CONFIG", "PANDO_BENCH", "PANDO", "HOME"];
    let told = super::misspelt_variables(names.map(str::to_owned));
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].contains("PANDO_CACHE is the nearest") && told[1].contains("PANDO_AUTH is the"),
        "{told:?}"
    );
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_name() {
    for (key, nearest) in [("max_connections", "max-connections"), ("cach", "cache"), ("Listen", "listen")] {
        let message = refusal(&[], &[], Some(&format!("{key} = '1'")));
        assert!(message.contains(&format!("did you mean '{nearest}'?")), "{message}");
    }
    let message = refusal(&[], &[], Some("zzz = 1"));
    assert!(message.contains("no option 'zzz'") && !message.contains("did you mean"), "{message}");
}

#[test]
fn a_wrong_value_is_refused_with_its_origin_and_what_would_be_right() {
    let cases = [
        (refusal(&[("engine", "rocks")], &[], None), ["--engine", "betree, memory"]),
        (refusal(&[], &[("PANDO_CACHE", "much")], None), ["PANDO_CACHE", "256MB"]),
        (refusal(&[], &[("PANDO_CACHE", "1MB")], None), ["PANDO_CACHE", "16MB"]),
        (refusal(&[], &[], Some("max-connections = 0")), ["max-connections in", "from 1 to"]),
        (
            refusal(&[], &[], Some("allow-unauthenticated = 'maybe'")),
            ["allow-unauthenticated in", "true, false"],
        ),
        (refusal(&[("listen", "27017")], &[], None), ["--listen", "127.0.0.1:27017"]),
        (refusal(&[("listen", "::1:27017")], &[], None), ["--listen", "[::1]:27017"]),
        (refusal(&[("listen", "127.0.0.1:70000")], &[], None), ["--listen", "port"]),
        (refusal(&[("data", "")], &[], None), ["--data", "found none"]),
        (refusal(&[("data", "~/x")], &[], None), ["--data", "write the home folder out"]),
        (refusal(&[], &[], Some("data = '~/x'")), ["data in", "write the home folder out"]),
        (refusal(&[("stop-grace", "soon")], &[], None), ["--stop-grace", "10s"]),
        (refusal(&[("log-level", "info=,=")], &[], None), ["--log-level", "debug"]),
        (refusal(&[("log-level", "verbose")], &[], None), ["--log-level", "debug"]),
        (refusal(&[("log-level", "info,pando_server=loud")], &[], None), ["--log-level", "debug"]),
        (refusal(&[("log-level", "")], &[], None), ["--log-level", "debug"]),
        (refusal(&[("log-format", "xml")], &[], None), ["--log-format", "json"]),
        (refusal(&[], &[], Some("data = 1979-05-27")), ["'data' must be text", ""]),
        (refusal(&[], &[], Some("data = ")), ["not a valid TOML file", ""]),
    ];
    for (message, parts) in cases {
        for part in parts {
            assert!(message.contains(part), "'{part}' in: {message}");
        }
    }
}

#[test]
fn a_value_that_is_not_believed_in_the_end_is_checked_nevertheless() {
    let message = refusal(&[("cache", "300MB")], &[("PANDO_CACHE", "nonsense")], None);
    assert!(message.contains("PANDO_CACHE"), "{message}");
}

#[test]
fn options_of_the_engine_are_pairs_and_their_flag_may_be_repeated() {
    let flags = [("engine-option", "logBudget=2GB"), ("engine-option", "directIo = off")];
    let configuration = resolve(&flags, &[], Some("engine-option = ['fanout=16']")).unwrap();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(configuration.engine_options, [pair("logBudget", "2GB"), pair("directIo", "off")]);
    assert!(resolve(&[], &[], None).unwrap().engine_options.is_empty());
    let flags = [
        ("engine-option", "configString=direct_io=[data,log],type=lsm"),
        ("engine-option", "a=lsm=(x=1,y=2)"),
    ];
    assert_eq!(
        resolve(&flags, &[], None).unwrap().engine_options,
        [pair("configString", "direct_io=[data,log]"), pair("type", "lsm"), pair("a", "lsm=(x=1,y=2)")]
    );
    for text in ["logBudget", "=2GB", "logBudget="] {
        let message = refusal(&[("engine-option", text)], &[], None);
        assert!(message.contains("a name and a value"), "{message}");
    }
    for flags in [[("engine-option", "cache=2GB")], [("engine-option", "fanout=16,cache=2GB")]] {
        let message = refusal(&flags, &[], None);
        assert!(message.ends_with("use --cache 2GB"), "{message}");
    }
}

#[test]
fn levels_and_filters_of_the_log_are_taken() {
    for text in ["error", "INFO", "off", "info,pando_server=debug", "warn,pando_betree::log=trace"] {
        assert_eq!(resolve(&[("log-level", text)], &[], None).unwrap().log_level, text);
    }
}

#[test]
fn no_two_options_have_one_name() {
    let mut names: Vec<&str> = all_options().map(|entry| entry.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all_options().count());
}

#[test]
fn the_page_about_configuration_is_current() {
    let page = include_str!("../../../../docs/configuration.md");
    assert!(
        page == markdown_page(),
        "run: cargo run -p pando-server -- options --markdown > docs/configuration.md"
    );
}

fn familiar(
    switches: &[(&'static str, &str)],
    flags: &[(&'static str, &str)],
) -> Result<Configuration, ConfigurationError> {
    let owned = |pairs: &[(&'static str, &str)]| {
        pairs.iter().map(|(name, text)| (*name, (*text).to_owned())).collect()
    };
    Sources { flags: owned(flags), familiar: owned(switches), file: None }.resolve(|_| None)
}

#[test]
fn switches_of_other_servers_become_options_and_say_so() {
    let switches = [
        ("syncdelay", "30"),
        ("storageEngine", "BeTree"),
        ("wiredTigerCacheSizeGB", "0.5"),
        ("directoryperdb", "true"),
        ("journalCommitInterval", "5"),
        ("defaultCompression", "quicklz"),
        ("defaultFanout", "8"),
        ("defaultReadPageSize", "64KB"),
        ("fastUpdates", "true"),
    ];
    let configuration = familiar(&switches, &[("engine-option", "fanout=16")]).unwrap();
    assert_eq!((configuration.engine, configuration.cache.bytes()), (EngineName::Betree, 1 << 29));
    let options =
        [("fanout", "16"), ("checkpointPeriod", "30"), ("compression", "lz4"), ("pageSize", "64KB")];
    assert_eq!(
        configuration.engine_options,
        options.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
    let lines = &configuration.familiar_lines;
    assert_eq!(lines.len(), switches.len(), "one line each: {lines:?}");
    for line in [
        "the switch --storageEngine BeTree became --engine betree",
        "the switch --wiredTigerCacheSizeGB 0.5 became --cache 512MB",
        "the switch --syncdelay 30 became --engine-option checkpointPeriod=30",
        "the switch --defaultFanout 8 became nothing: --engine-option fanout=16 is set",
        "the switch --directoryperdb became nothing: a store keeps all databases in the same files",
    ] {
        assert!(lines.iter().any(|one| one == line), "{line}: {lines:?}");
    }
    let memory = familiar(&[("storageEngine", "inMemory"), ("syncdelay", "0")], &[]).unwrap();
    assert_eq!(memory.engine, EngineName::Memory);
    assert!(memory.engine_options.is_empty() && memory.familiar_lines[1].contains("became nothing"));
}

#[test]
fn wrong_values_of_familiar_switches_are_refused_with_the_switch() {
    for (name, text, words) in [
        ("storageEngine", "mmapv1", "--default-layout heap"),
        ("storageEngine", "x", "an engine of this build"),
        ("wiredTigerCacheSizeGB", "4GB", "a number of GiB"),
        ("wiredTigerCacheSizeGB", "-1", "a number of GiB"),
        ("rocksdbCacheSizeGB", "NaN", "a number of GiB"),
        ("rocksdbCacheSizeGB", "0.001", "at least 16MB"),
        ("syncdelay", "x", "a whole number"),
        ("journalCommitInterval", "-5", "a whole number"),
    ] {
        let said = familiar(&[(name, text)], &[]).unwrap_err().to_string();
        assert!(said.contains(&format!("--{name}")) && said.contains(words), "{said}");
    }
}

#[test]
fn the_default_layout_is_clustered_or_a_heap() {
    let layout_of = |text| resolve(&[("default-layout", text)], &[], None).map(|found| found.default_layout);
    assert_eq!(layout_of("heap").unwrap(), pando_commands::DefaultLayout::Heap);
    assert_eq!(layout_of("clustered").unwrap(), pando_commands::DefaultLayout::Clustered);
    assert!(refusal(&[("default-layout", "tree")], &[], None).contains("clustered, heap"));
}

#[test]
fn the_memory_of_queries_is_a_part_of_the_cache_and_the_option_is_told() {
    let refused = |flags: &[(&'static str, &str)]| resolve(flags, &[], None).unwrap_err().to_string();
    let told = refused(&[("query-memory", "1GB")]);
    let expected =
        "--query-memory: '1GB' is no valid value: expected at most 256MB, the size of the cache (--cache)";
    assert_eq!(told, expected);
    assert!(resolve(&[("query-memory", "1GB"), ("cache", "1GB")], &[], None).is_ok());
    assert!(resolve(&[("query-memory", "1GB"), ("engine", "memory")], &[], None).is_ok());
    let variable = resolve(&[], &[("PANDO_QUERY_MEMORY", "1GB")], None).unwrap_err().to_string();
    assert!(variable.starts_with("environment variable PANDO_QUERY_MEMORY: '1GB'"), "{variable}");
}
