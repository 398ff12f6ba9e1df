//! Each workload from end to end against a real server, small.

use serde_json::Value;

use crate::support::Server;

/// The figures of the only run of a workload, which must be a measurement.
fn figures(server: &Server, workload: &str) -> Value {
    let mut files = server.files(workload);
    assert_eq!(files.len(), 1, "one run of {workload}");
    let file = files.remove(0);
    assert_eq!(file["flagged"], false, "{}", file["warnings"]);
    assert!(file["server_process"].is_u64() && file["figures"]["disk_source"].is_string(), "{file}");
    file["figures"].clone()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("a number instead of {value}"))
}

#[test]
fn point_queries_are_loaded_run_and_written_down() {
    let server = Server::start();
    let printed = server.bench(
        "point --collections 3 --docs 500 --batch 100 --clients 4 --duration 1 --warmup 0 --no-ceiling",
    );
    assert!(printed.contains("disk I/O of 4 clients from"), "{printed}");
    let load = &server.files("point load")[0];
    assert_eq!(number(&load["figures"]["operations"]), 1500);
    let figures = figures(&server, "point");
    assert!(number(&figures["operations"]) > 100 && number(&figures["missed"]) == 0);
    let buckets = figures["histogram_us"].as_array().expect("a histogram");
    assert_eq!(buckets.iter().map(|bucket| number(&bucket[1])).sum::<u64>(), number(&figures["units"]));
}

#[test]
fn a_checkpoint_is_forced_before_and_after_a_run() {
    let server = Server::start();
    let printed = server.bench(
        "point --collections 1 --docs 500 --clients 2 --duration 1 --warmup 0 --no-ceiling --force-checkpoint",
    );
    for when in ["a checkpoint was forced before the run", "another one was forced after it"] {
        assert!(printed.contains(when), "{printed}");
    }
    let sizes = &server.files("point")[0]["why"]["sizes_written"];
    assert!(number(&sizes["data"]) > 0, "{sizes}");
}

#[test]
fn a_load_forces_a_checkpoint_and_takes_sizes_after_it() {
    let server = Server::start();
    let printed = server.bench("load --collections 1 --docs 500 --force-checkpoint");
    assert!(printed.contains("a checkpoint was forced after the load"), "{printed}");
    assert!(printed.contains("size after a forced checkpoint: "), "{printed}");
    let sizes = &server.files("sysbench load")[0]["why"]["sizes_written"];
    assert!(number(&sizes["data"]) > 0, "{sizes}");
}

#[test]
fn documents_in_answers_and_changes_of_the_status_are_those_of_the_window() {
    let server = Server::start();
    server.bench("load --collections 1 --docs 100");
    server.bench(
        r#"commands --database sbtest --command {"find":"sbtest1","limit":1} --clients 2 --duration 1 --warmup 2 --no-ceiling"#,
    );
    let file = &server.files("commands")[0];
    let (done, documents) = (
        number(&file["figures"]["operations"]),
        number(&file["figures"]["notes"]["documents in the answers"]),
    );
    assert!(done > 100 && documents.abs_diff(done) <= 2, "{documents} documents, {done} commands");
    assert_eq!(file["why"]["status_span"], "window");
    let queries = file["why"]["status"]["opcounters.query"].as_f64().expect("a number");
    let ratio = queries / done as f64;
    // The warm-up is twice as long as the window. On a busy machine the two looks at the status come late.
    assert!((0.2..2.0).contains(&ratio), "{queries} by the server, {done} by the tool");
}

#[test]
fn an_open_loop_holds_its_rate() {
    let server = Server::start();
    server.bench(
        "point --collections 1 --docs 100 --clients 8 --duration 2 --warmup 0 --no-ceiling --rate 200",
    );
    let figures = figures(&server, "point");
    let done = number(&figures["units"]);
    assert!((392..=408).contains(&done), "{done} of 400");
    assert!(figures["service_us"]["p50"].is_number());
}

#[test]
fn sysbench_transactions_leave_every_document_in_its_place() {
    let server = Server::start();
    let printed = server.bench(
        "sysbench --databases 2 --collections 2 --docs 300 --clients 4 --duration 2 --warmup 0 --no-ceiling --interval 1 \
         --range-size 150",
    );
    assert!(printed.contains("documents that must be there: 600 checked, 0 wrong"), "{printed}");
    let figures = figures(&server, "sysbench");
    let done = |name: &str| {
        let kinds = figures["kinds"].as_array().expect("kinds");
        let kind = kinds.iter().find(|kind| kind["name"] == name).expect("this kind");
        // Between a delete and the insert after it another client finds nothing.
        number(&kind["done"]) + number(&kind["missed"])
    };
    let transactions = number(&figures["units"]);
    assert!(transactions > 5, "{figures}");
    assert!(done("point").abs_diff(transactions * 10) <= 10 * 4, "ten points in each transaction");
    assert!(done("insert").abs_diff(transactions) <= 4, "and an insert");
    let columns = server.text(".tps.tsv");
    assert!(columns.starts_with("elap_secs\tcum_tps\tint_tps\tcum_ips\tint_ips\t"), "{columns}");
    assert_eq!(columns.lines().count(), 3, "a heading and two seconds");
    let cell = |line: usize, name: &str| {
        let place =
            columns.lines().next().and_then(|names| names.split('\t').position(|found| found == name));
        let line = columns.lines().nth(line).expect("a line");
        line.split('\t')
            .nth(place.unwrap_or_else(|| panic!("{name} in {columns}")))
            .expect("a cell")
            .to_owned()
    };
    for name in [
        "int_p50",
        "int_p999",
        "int_max",
        "point_p99",
        "sum_range_p50",
        "insert_max",
        "wKB/op",
        "cs/op",
        "cpu_us/op",
    ] {
        assert!(cell(1, name).parse::<f64>().is_ok(), "{name}: {columns}");
    }
    let counted: u64 = (1..3).map(|line| cell(line, "point_n").parse::<u64>().expect("a number")).sum();
    assert_eq!(counted, done("point"), "intervals have what the run has");
    assert!(cell(2, "dbGB").parse::<f64>().is_ok_and(|gigabytes| gigabytes > 0.0), "{columns}");
    assert!(
        cell(1, "ckpt").parse::<u32>().is_ok_and(|seconds| seconds <= 1),
        "Pando counts its checkpoints: {columns}"
    );
}

#[test]
fn kv_reads_every_key_of_its_set_in_every_round() {
    let server = Server::start();
    let printed = server.bench(
        "kv --rows 1000 --reads 400 --rounds 3 --clients 7 --id-gap 5 --null-pct 20 --shuffle-load --preload --load-format json \
         --no-ceiling",
    );
    assert!(printed.contains("reads/s by round:"), "{printed}");
    let columns = server.text(".load.tsv");
    assert!(columns.starts_with("tot_inserts\telap_secs\tcum_ips\tint_ips\tint_lat\tint_p50\t"), "{columns}");
    assert!(columns.lines().nth(1).is_some_and(|line| line.starts_with("1000\t1\t")), "{columns}");
    let figures = figures(&server, "kv");
    assert_eq!(number(&figures["operations"]), 1200);
    let rounds = figures["kinds"].as_array().expect("rounds");
    assert_eq!(rounds.iter().map(|round| number(&round["done"])).collect::<Vec<_>>(), [400, 400, 400]);
}

#[test]
fn rows_and_purchases_are_spread_over_collections_and_databases() {
    let server = Server::start();
    let printed = server.bench(
        "kv --rows 1000 --reads 400 --rounds 2 --clients 7 --collections 5 --databases 2 --shuffle-load --preload --no-ceiling",
    );
    assert!(printed.contains("in 5 collections of 2 databases"), "{printed}");
    let read = figures(&server, "kv");
    assert_eq!((number(&read["operations"]), number(&read["missed"])), (800, 0));
    let printed = server.bench(
        "iibench --docs 6020 --batch 100 --clients 3 --collections 4 --databases 4 --queries 20 --query-interval 1 --query-begin 500 \
         --guided-queries --no-ceiling",
    );
    assert!(printed.contains("against the collections: 6020 checked, 0 wrong"), "{printed}");
    assert!(printed.contains("index price_customerid: 6020 checked, 0 wrong"), "{printed}");
    let why = server.refused("kv --collections 2 --databases 3");
    assert!(why.contains("--databases") && why.contains("2 collections"), "{why}");
}

#[test]
fn iibench_inserts_all_documents_into_all_indexes_while_it_asks() {
    let server = Server::start();
    let printed = server.bench(
        "iibench --docs 30030 --batch 100 --clients 3 --queries 40 --query-interval 1 --query-begin 500 --guided-queries \
         --char-fields 1 --char-field-length 100 --interval 1",
    );
    assert!(printed.contains("index price_dateandtime_customerid: 30030 checked, 0 wrong"), "{printed}");
    assert!(printed.contains("per 200 documents: vm.cs"), "{printed}");
    assert!(printed.contains("to the last insert:") && printed.contains(" idle after "), "{printed}");
    let figures = figures(&server, "iibench");
    assert_eq!(number(&figures["operations"]), 30_030);
    let queries: u64 = (1..4).map(|kind| number(&figures["kinds"][kind]["done"])).sum();
    assert!(queries > 0, "{figures}");
    let columns = server.text(".ips.tsv");
    assert!(columns.starts_with("tot_inserts\telap_secs\tcum_ips\tint_ips\tcum_qry_avg"), "{columns}");
    assert!(columns.lines().last().is_some_and(|line| line.starts_with("30030\t")), "{columns}");
}

#[test]
fn linkbench_keeps_every_count_through_all_ten_operations() {
    let server = Server::start();
    let stats = server.folder.path().join("stats.csv");
    let arguments = format!(
        "linkbench -l -r --max-degree 60 -D maxid1=3001 -D requesters=6 -D requests=400 -D loaders=3 -D loader_chunk_size=500 \
         -D range_limit=20 -D getlinklist_history=20 -csvstats {}",
        stats.display()
    );
    let printed = server.bench(&arguments);
    assert!(printed.contains("counts against visible links:") && printed.contains(" 0 wrong"), "{printed}");
    assert!(printed.contains("LOAD PHASE COMPLETED.  Loaded 3000 nodes (Expected 3000)."), "{printed}");
    assert!(printed.contains("REQUEST PHASE COMPLETED. 2400 requests done"), "{printed}");
    let load = &server.files("linkbench load")[0];
    assert_eq!(number(&load["figures"]["kinds"][0]["done"]), 6, "six pieces of 500 nodes");
    assert!(number(&load["parameters"]["graph"]["links"]) > 3000, "{load}");
    let figures = figures(&server, "linkbench");
    assert_eq!(number(&figures["operations"]), 2400);
    let kinds = figures["kinds"].as_array().expect("kinds");
    assert!(kinds.iter().all(|kind| number(&kind["done"]) > 0 && number(&kind["failed"]) == 0), "{kinds:?}");
    let sum = |name: &str| kinds.iter().map(|kind| number(&kind[name])).sum::<u64>();
    assert_eq!(sum("done") + sum("missed"), 2400, "a miss is not counted as done, too: {kinds:?}");
    assert!(sum("missed") > 0 && sum("missed") == number(&figures["missed"]), "{kinds:?}");
    assert!(number(&figures["notes"]["lists of history"]) > 0, "{}", figures["notes"]);
    let stats = std::fs::read_to_string(stats).expect("the tool wrote it");
    assert!(stats.starts_with("op,count,p25_low,p25_high"), "{stats}");
    assert_eq!(stats.lines().count(), 11, "a heading and ten operations");
}

#[test]
fn linkbench_refuses_a_graph_of_another_size_and_takes_its_own_after_runs() {
    let server = Server::start();
    let run = |nodes: u32| {
        format!("linkbench -r --nodes {nodes} --max-degree 20 --clients 4 -D requests=200 --no-ceiling")
    };
    let refused = || {
        for nodes in [100, 2000, 2900, 2999, 3001, 3100, 50_000] {
            let why = server.refused(&run(nodes));
            let sizes = format!("a graph of about 3000 nodes, the run is to have {nodes}");
            assert!(why.contains(&sizes), "{why}");
            assert!(why.contains("run with the --nodes") && why.contains("--load yes"), "{why}");
        }
        let why = server.refused(&run(3000).replace("--max-degree 20", "--max-degree 19"));
        assert!(why.contains("graph-linkbench.link"), "other links at as many nodes: {why}");
        let why = server.refused(&format!("{} -D startid1=11 -D maxid1=3011", run(3000)));
        assert!(why.contains("startid1"), "other numbers of as many nodes: {why}");
    };
    server.bench("linkbench -l --nodes 3000 --max-degree 20");
    refused();
    // Runs add nodes and links.
    let adding = format!("{} -D addnode=50 -D addlink=50", run(3000));
    server.bench(&adding);
    server.bench(&adding);
    refused();
    server.bench(&run(3000));
    server.bench(&run(100).replace("-r", "-l -r"));
    assert!(server.refused(&run(3000)).contains("a graph of about 100 nodes"), "loaded anew");
}

#[test]
fn linkbench_judges_a_graph_without_a_record_of_its_load_by_its_nodes_and_links() {
    let server = Server::start();
    let run = |nodes: u32| {
        format!("linkbench -r --nodes {nodes} --max-degree 20 --clients 4 -D requests=200 --no-ceiling")
    };
    server.bench("linkbench -l --nodes 3000 --max-degree 20");
    server.bench(
        r#"commands --database graph-linkbench --command {"delete":"load","deletes":[{"q":{},"limit":0}]} --clients 1 --duration 1 --warmup 0"#,
    );
    for nodes in [100, 2900, 3100, 50_000] {
        let why = server.refused(&run(nodes));
        assert!(why.contains(&format!("a graph of about 3000 nodes, the run is to have {nodes}")), "{why}");
    }
    server.bench(&run(3000));
    server.bench(&run(3000));
    for nodes in [100, 2000, 50_000] {
        assert!(server.refused(&run(nodes)).contains("holds a graph of about "), "{nodes}");
    }
}

#[test]
fn linkbench_counts_stay_right_when_all_clients_write_the_same_few_links() {
    let server = Server::start();
    let printed = server.bench(
        "linkbench -l -r --max-degree 10 -D maxid1=11 -D requesters=16 -D requests=300 -D loaders=2 -D addlink=40 \
         -D deletelink=40 -D updatelink=20",
    );
    let verified =
        printed.lines().find(|line| line.contains("counts against visible links")).expect("it is verified");
    assert!(verified.ends_with("checked, 0 wrong"), "{printed}");
    let figures = figures(&server, "linkbench");
    assert!(number(&figures["missed"]) > 0, "some links were hidden already");
}

#[test]
fn linkbench_with_the_plugins_commands_gets_its_wrong_counts_and_says_so() {
    let server = Server::start();
    let graph = "--max-degree 10 -D maxid1=101 -D requesters=4 -D requests=100 --warmup 0 --no-ceiling";
    let printed = server.flagged(&format!("linkbench -l -r --faithful {graph}"));
    assert!(printed.contains("plugin") && printed.contains("counts against visible links"), "{printed}");
    let run = &server.files("linkbench")[0];
    assert!(run["flagged"] == true && run["figures"]["failed"] == 0, "{printed}");
    assert!(run["findings"][0]["wrong"].as_u64() > Some(0), "{printed}");
    let why = server.refused(&format!("linkbench -r {graph}"));
    assert!(why.contains("--faithful") && why.contains("loaded with it"), "{why}");
    server.bench(&format!("linkbench -l -r {graph}"));
}

#[test]
fn linkbench_in_two_phases_keeps_counts_right_and_ends_what_a_kill_left_half_done() {
    let server = Server::start();
    let busy = "--max-degree 10 -D maxid1=11 -D requesters=16 -D addlink=40 -D deletelink=40 -D updatelink=20 \
                -D loaders=2 --txn two-phase --no-ceiling";
    let (load, request) = (format!("linkbench -l {busy}"), format!("linkbench -r {busy}"));
    server.bench(&load);
    // A machine with other work takes longer until all clients write.
    let ended = [2, 5, 12].into_iter().any(|seconds| {
        let mut killed =
            server.start_bench(&format!("{request} -D requests=1000000 -D maxtime=60 --warmup 0"));
        std::thread::sleep(std::time::Duration::from_secs(seconds));
        killed.kill().expect("it is our own process");
        killed.wait().expect("it is our own process");
        let printed = server.bench(&format!("{request} -D requests=100"));
        let verified = printed.lines().find(|line| line.contains("counts against visible links"));
        assert!(verified.expect("it is verified").ends_with("checked, 0 wrong"), "{printed}");
        printed.contains("that an interrupted run left half done were ended")
    });
    assert!(ended, "sixteen clients were writing: some of them were in the middle");
}

#[test]
fn linkbench_runs_in_the_transactions_of_sessions_and_of_tokumx() {
    let server = Server::start();
    for level in ["session", "tokumx"] {
        // Counts are compared with links at its end.
        server.bench(&format!(
            "linkbench --nodes 100 --max-degree 10 -D requests=20 --clients 2 --no-ceiling --load yes --txn {level}"
        ));
    }
}

#[test]
fn every_workload_has_a_ceiling_beside_its_result() {
    let server = Server::start();
    for arguments in [
        "point --collections 1 --docs 100 --clients 2 --duration 1 --warmup 0",
        "sysbench --collections 1 --docs 100 --clients 2 --duration 1 --warmup 0",
        "kv --rows 200 --reads 100 --rounds 2 --clients 2",
        "iibench --docs 2000 --batch 100 --clients 2",
        "linkbench --nodes 100 --max-degree 10 -D requests=20 --clients 2",
    ] {
        server.bench(arguments);
        let workload = arguments.split(' ').next().unwrap_or_default();
        let file = server.files(workload).remove(0);
        assert!(file["ceiling"].as_f64().is_some_and(|rate| rate > 50.0), "{workload}: {}", file["ceiling"]);
    }
}

#[test]
fn the_same_seed_reads_the_same_and_two_runs_are_compared() {
    let server = Server::start();
    let call =
        "point --collections 1 --docs 100 --clients 2 --duration 1 --warmup 0 --no-ceiling --repeats 2";
    server.bench(call);
    let out = server.out();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_pando-bench"))
        .arg("compare")
        .args([&out, &out])
        .output()
        .expect("the tool starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("point, 2 clients, closed: 2 and 2 runs"), "{text}");
    assert!(text.contains("no difference shown"), "a set against itself: {text}");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_pando-bench"))
        .arg("report")
        .arg(&out)
        .output()
        .expect("the tool starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(out.join("report.html")).expect("the tool wrote it");
    assert!(page.contains("<h2>point</h2>") && page.contains("<svg"), "{page}");
}
