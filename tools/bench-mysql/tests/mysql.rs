//! All workloads against a real MariaDB, which the tests start: needs `mariadb-install-db`, `mariadbd` and
//! the plugin `ha_rocksdb` (Debian: mariadb-server, mariadb-plugin-rocksdb). They say so when it is not
//! there.

mod mariadb;

use mariadb::MariaDb;

/// What a call printed, which must have been a measurement.
fn measured(server: &MariaDb, arguments: &str) -> String {
    let output = server.bench(arguments);
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments}\n{text}");
    text
}

/// Why a call was refused.
fn refused(server: &MariaDb, arguments: &str) -> String {
    let output = server.bench(arguments);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Every workload, small, with one engine.
fn all_workloads(server: &MariaDb, engine: &str) {
    let data = "--collections 2 --docs 400 --batch 100 --clients 4 --warmup 0 --duration 1 --no-ceiling";
    let has_handler = engine == "innodb";
    let by_handler = ["point --api handler"].into_iter().filter(|_| has_handler);
    for workload in ["point", "sysbench", "sysbench --txn session"].into_iter().chain(by_handler) {
        let text = measured(server, &format!("{workload} {data} --mysql-engine {engine} --force-checkpoint"));
        assert!(text.contains("a checkpoint was forced before the run"), "{text}");
        assert!(text.contains("rows that must be there: 800 checked, 0 wrong"), "{text}");
        assert!(text.contains("waits: "), "{text}");
    }
    // Before the checkpoint MyRocks has so little in its memory only.
    let sizes = &server.last_file("sysbench")["why"]["sizes_written"];
    assert!(["data", "indexes", "folder"].iter().all(|part| sizes[part].as_u64() > Some(0)), "{sizes}");
    let status = &server.last_file("sysbench")["why"]["status"];
    assert!(status["Com_stmt_execute"].as_f64() > Some(100.0), "{status}");
    for api in ["sql", "handler"].into_iter().filter(|api| *api == "sql" || has_handler) {
        let text = measured(
            server,
            &format!(
                "kv --rows 1000 --reads 400 --rounds 3 --clients 7 --id-gap 5 --null-pct 20 --shuffle-load --load yes \
                 --preload --load-format json --mysql-engine {engine} --api {api}"
            ),
        );
        assert!(text.contains("reads/s by round:"), "{text}");
        let file = server.last_file("kv");
        assert_eq!(file["figures"]["operations"], 1200);
        assert_eq!((&file["figures"]["missed"], &file["figures"]["failed"]), (&0.into(), &0.into()));
        assert_eq!(file["parameters"]["api"], api);
        assert!(file["ceiling"].as_f64().is_some_and(|rate| rate > 100.0), "{}", file["ceiling"]);
    }
    let text = measured(
        server,
        &format!(
            "iibench --docs 20030 --batch 100 --clients 3 --queries 40 --query-interval 1 --query-begin 500 --guided-queries \
             --char-fields 1 --char-field-length 100 --mysql-engine {engine}"
        ),
    );
    assert!(text.contains("index price_dateandtime_customerid: 20030 checked, 0 wrong"), "{text}");
    let timeline = server.last_file("iibench")["figures"]["timeline"].as_array().cloned().expect("seconds");
    assert!(
        timeline.iter().any(|second| second["background_bytes"].is_u64() || second["behind_bytes"].is_u64()),
        "{timeline:?}"
    );
    for arguments in [
        "kv --rows 500 --reads 200 --rounds 2 --clients 3 --collections 3 --databases 2 --preload --load yes",
        "iibench --docs 3010 --batch 100 --clients 2 --collections 3 --queries 20 --query-interval 1 --query-begin 500",
    ] {
        let text = measured(server, &format!("{arguments} --no-ceiling --mysql-engine {engine}"));
        assert!(text.contains("in 3 collections"), "{text}");
        assert!(
            arguments.starts_with("kv") || text.contains("against the tables: 3010 checked, 0 wrong"),
            "{text}"
        );
    }
    for level in ["session", "none"] {
        let text = measured(
            server,
            &format!(
                "linkbench -l -r --max-degree 60 -D maxid1=2001 -D requesters=6 -D requests=300 -D loaders=3 \
                 -D loader_chunk_size=500 -D range_limit=20 -D getlinklist_history=20 --txn {level} --mysql-engine {engine}"
            ),
        );
        let verified = text.lines().find(|line| line.contains("counts against visible links"));
        assert!(verified.is_some_and(|line| line.ends_with(" 0 wrong")), "{text}");
        let file = server.last_file("linkbench");
        let kinds = file["figures"]["kinds"].as_array().expect("kinds");
        assert!(kinds.iter().all(|kind| kind["done"].as_u64() > Some(0)), "{text}");
        assert!(file["ceiling"].is_number(), "the ceiling is measured, too");
    }
}

#[test]
fn every_workload_is_loaded_run_and_verified_with_innodb_and_waits_are_written_down() {
    let server =
        MariaDb::start(&["--performance-schema=ON", "--performance-schema-instrument=wait/synch/%=ON"]);
    all_workloads(&server, "innodb");
    let waits = server.last_file("linkbench")["extras"]["waits"].clone();
    let first = &waits[0];
    assert!(
        first["name"].as_str().is_some_and(|name| name.starts_with("wait/")) && first["seconds"].is_number(),
        "{waits}"
    );
    let busy = measured(
        &server,
        "linkbench -l -r --max-degree 10 -D maxid1=11 -D requesters=16 -D requests=150 -D loaders=2 -D addlink=40 \
         -D deletelink=40 -D updatelink=20 --no-ceiling",
    );
    let verified = busy.lines().find(|line| line.contains("counts against visible links"));
    assert!(verified.is_some_and(|line| line.ends_with(" 0 wrong")), "{busy}");
}

#[test]
fn every_workload_is_loaded_run_and_verified_with_myrocks() {
    let server = MariaDb::start(&["--plugin-load-add=ha_rocksdb", "--plugin-maturity=experimental"]);
    all_workloads(&server, "rocksdb");
    let why = refused(&server, "point --mysql-engine rocksdb --api handler");
    assert!(why.contains("--api") && why.contains("ROCKSDB"), "{why}");
    let settings = server.last_file("kv")["server"]["settings"].clone();
    assert!(
        settings.as_str().is_some_and(|text| text.contains("rocksdb_flush_log_at_trx_commit")),
        "{settings}"
    );
}

#[test]
fn a_run_beyond_the_servers_abilities_is_refused_before_anything_starts() {
    let server = MariaDb::start(&["--innodb-flush-method=fsync"]);
    let small = "--nodes 50 -D requests=5 --clients 2 --no-ceiling";
    let cases = [
        ("kv --mysql-engine rocksdb".to_owned(), ["--mysql-engine", "ha_rocksdb"]),
        ("kv --mysql-engine ndb".to_owned(), ["no engine ndbcluster", "InnoDB"]),
        (format!("linkbench {small} --api handler"), ["--api", "point and kv"]),
        (format!("linkbench {small} --txn two-phase"), ["--txn", "none and session"]),
        (format!("linkbench {small} --txn session --mysql-engine myisam"), ["--txn", "no transactions"]),
        ("sysbench --docs 10 --txn session --mysql-engine myisam".to_owned(), ["--txn", "no transactions"]),
        ("sysbench --docs 10 --txn tokumx".to_owned(), ["--txn", "none and session"]),
        ("iibench --batch 60000".to_owned(), ["--batch", "13107"]),
        ("kv --durability j".to_owned(), ["--durability", "innodb_flush_log_at_trx_commit"]),
        ("kv --mysql-settings posts".to_owned(), ["--mysql-settings", "--innodb-flush-method=O_DIRECT"]),
    ];
    for (arguments, parts) in cases {
        let why = refused(&server, &arguments);
        assert!(parts.iter().all(|part| why.contains(part)), "{arguments}: {why}");
    }
    measured(&server, &format!("linkbench {small} --txn none --mysql-engine myisam"));
}

#[test]
fn data_of_another_size_or_without_the_index_is_refused_with_what_to_do() {
    let server = MariaDb::start(&[]);
    let point = "point --collections 1 --docs 200 --clients 1 --duration 1 --warmup 0 --no-ceiling";
    measured(&server, &format!("{point} --secondary-index off"));
    let why = refused(&server, point);
    assert!(why.contains("has no index on k") && why.contains("--secondary-index off"), "{why}");
    measured(&server, &format!("{point} --load yes --index-build after"));
    measured(&server, &point.replace("point", "sysbench"));
    let why = refused(&server, &format!("{point} --secondary-index off"));
    assert!(why.contains("has an index on k") && why.contains("--secondary-index on"), "{why}");
    let graph = "--max-degree 20 -D requests=50 --clients 2 --no-ceiling";
    measured(&server, &format!("linkbench -l --nodes 500 {graph}"));
    let why = refused(&server, &format!("linkbench -r --nodes 100 {graph}"));
    assert!(why.contains("holds a graph of about 500 nodes") && why.contains("--nodes"), "{why}");
    measured(&server, &format!("linkbench -r --nodes 500 {graph} -D addnode=50"));
    for nodes in [490, 499, 501] {
        let why = refused(&server, &format!("linkbench -r --nodes {nodes} {graph}"));
        assert!(why.contains("holds a graph of about 500 nodes"), "runs add nodes: {why}");
    }
    measured(&server, &format!("linkbench -r --nodes 500 {graph}"));
}

#[test]
fn several_endpoints_are_asked_in_turn_and_one_without_the_data_is_refused() {
    let (first, second) = (MariaDb::start(&[]), MariaDb::start(&[]));
    let kv = "kv --rows 200 --reads 100 --rounds 2 --clients 4 --no-ceiling";
    // The same server under two addresses of loopback.
    let output =
        first.bench_at(kv, &["127.0.0.1", "127.0.0.2"].map(|host| format!("{host}:{}", first.port())));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(first.last_file("kv")["parameters"]["endpoints"].as_array().map(Vec::len), Some(2));
    let output = first.bench_at(kv, &[&first, &second].map(|server| format!("127.0.0.1:{}", server.port())));
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && why.contains("several endpoints"), "{why}");
}

#[test]
fn a_wrong_login_is_told_at_once_and_its_password_nowhere() {
    let server = MariaDb::start(&[]);
    let began = std::time::Instant::now();
    for login in ["root:wr0ng-secret", "nobody:wr0ng-secret", "nobody"] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_pando-bench-mysql"))
            .args(["kv", "--uri", &format!("mysql://{login}@127.0.0.1:{}", server.port())])
            .output()
            .expect("the tool starts");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("refused the login: Access denied") && text.contains("1045"), "{text}");
        assert!(!text.contains("secret") && output.stdout.is_empty(), "{text}");
    }
    assert!(began.elapsed() < std::time::Duration::from_secs(10));
}
