"""docs/measurements.md, the claims of README.md and their chart are what the generator makes of the raw results."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "measurements"))

import chart  # noqa: E402
import compare  # noqa: E402
import contract  # noqa: E402
import engine_chart  # noqa: E402
import engines  # noqa: E402
import lab  # noqa: E402
import matrix  # noqa: E402
import page  # noqa: E402
import raw  # noqa: E402

MACHINE = {"processor": "A", "cores": 2, "memory_gb": 24, "kernel": "6.18", "file_system": "ext4"}


def result(measure, figures, commit="abc1234", machine=MACHINE):
    summaries = {name: raw.summary(samples) for name, samples in figures.items()}
    return {
        "measure": measure,
        "command": "make measure",
        "commit": commit,
        "date": "2026-11-23",
        "machine": machine,
        "figures": summaries,
    }


def promise(results, **entry):
    return page.Promise({"text": "a promise", "unit": "/s", **entry}, {}, results)


def test_the_pages_are_those_of_the_raw_results():
    stale = [str(path.relative_to(ROOT)) for path in page.differing()]
    assert not stale, f"{stale} differ from docs/measurements/*.json: run make measure-pages"


def test_the_page_is_short_and_its_readme_fits_a_terminal():
    assert len(page.PAGE.read_text().splitlines()) <= page.LINES_MAX
    claims = page.README.read_text().split(page.CLAIMS_BEGIN)[1].split(page.CLAIMS_END)[0]
    assert max(map(len, claims.splitlines())) <= 120


def test_every_promise_names_known_keys_only():
    keys = {
        "raw",
        "text",
        "claim",
        "claim_note",
        "figures",
        "unit",
        "peer",
        "peers",
        "times_at_least",
        "times_at_most",
        "at_least",
        "at_most",
        "lowest",
        "each_step",
        "judged",
        "judged_unit",
        "note",
        "peer_note",
    }
    for found in page.read_promises({}):
        assert set(found.entry) <= keys, found.entry
        assert found.entry.get("lowest") or len(found.entry.get("peers", [])) in (
            0,
            len(found.entry["figures"]),
        ), found.entry


def test_a_changed_raw_result_makes_the_page_differ():
    results = {"point": result("point", {"pando.c1.p50_us": [70.0], "mongodb.c1.p50_us": [140.0]})}
    before = page.page_text(page.read_promises(results), results)
    assert "| 70 µs " in before and "MongoDB 140 (0.50 ×)" in before
    results["point"]["figures"]["pando.c1.p50_us"] = raw.summary([71.0])
    assert page.page_text(page.read_promises(results), results) != before


def test_a_missed_target_says_so_and_a_reached_one_does_not():
    results = {"m": result("m", {"own": [100.0], "peer": [60.0]})}
    entry = {"raw": "m", "figures": ["own"], "peer": "P", "peers": ["peer"]}
    assert promise(results, **entry, times_at_least=1.5).target_cell() == "≥ 1.5 ×"
    assert promise(results, **entry, times_at_least=2.0).target_cell() == "**missed**: ≥ 2 ×"
    assert promise(results, **entry, at_most=100).target_cell() == "≤ 100"
    assert promise(results, **entry).target_cell() == "none"


def test_the_lowest_is_that_of_all_peers_that_were_measured():
    results = {"m": result("m", {"betree.mb": [295.0], "rocksdb.mb": [322.0], "redb.mb": [290.0]})}
    entry = {"raw": "m", "figures": ["betree.mb"], "lowest": True}
    found = promise(results, **entry, peers=["rocksdb.mb", "lmdb.mb"])
    assert (found.target_cell(), found.peer_cell()) == ("lowest", "RocksDB 322 (only peer)")
    found = promise(results, **entry, peers=["rocksdb.mb", "lmdb.mb", "redb.mb"])
    assert (found.target_cell(), found.peer_cell()) == ("**missed**: lowest", "redb 290 (of 2)")
    assert not promise(results, **entry, peers=["lmdb.mb"]).is_measured()


def test_one_missed_figure_of_several_is_a_missed_target():
    results = {"m": result("m", {"a": [3.0], "b": [1.0], "c": [2.0]})}
    entry = {"raw": "m", "figures": ["a", "b", "c"]}
    assert promise(results, **entry, at_least=[3.0, 1.0, 2.0]).target_cell() == "≥ 3; 1; 2"
    assert promise(results, **entry, at_least=[3.0, 1.1, 2.0]).target_cell().startswith("**missed**")
    assert promise(results, **entry, each_step=True).target_cell() == "**missed**: each step grows"


def test_ratios_are_taken_within_a_round():
    results = {"m": result("m", {"own": [10.0, 40.0, 30.0], "peer": [10.0, 20.0, 10.0]})}
    found = promise(results, raw="m", figures=["own"], peer="P", peers=["peer"])
    assert found.ratios() == [2.0]
    assert found.runs_cell() == "3 (100 %; 100 %)", "a ratio is as sure as both of its sides"
    assert promise(results, raw="m", figures=["own"]).runs_cell() == "3 (100 %)"


def test_a_figure_that_is_judged_by_another_one_says_what_was_measured():
    results = {"replay": result("replay", {"start_s": [0.21], "log_mb": [310.0], "s_a_gb": [0.68]})}
    entry = {"raw": "replay", "figures": ["start_s"], "unit": "s", "judged": ["s_a_gb"], "judged_unit": " s a GB"}
    found = promise(results, **entry, at_most=15, text="Replay of {log_mb} MB", note="(log: {log_mb})")
    assert (found.words("text"), found.figure_cell()) == ("Replay of 310 MB", "0.21 s (log: 310)")
    assert found.target_cell() == "≤ 15 s a GB"
    assert promise(results, **entry, at_most=0.5).target_cell().startswith("**missed**")


def test_the_newest_file_that_has_the_figures_counts_and_of_a_search_that_with_the_most_peers():
    old = result("engines", {"own": [0.48], "a": [0.7], "b": [0.6], "seldom": [1.0]})
    new = result("inserts", {"own": [0.8], "a": [0.9]})
    new["date"] = "2026-11-24"
    results = {"engines": old, "inserts": new}
    of = lambda **entry: page.Promise({"raw": "engines", **entry}, {"inserts": "i"}, results, ["inserts"])
    assert of(figures=["own"]).figure_cell() == "0.80" and of(figures=["own"]).command == "i"
    assert of(figures=["seldom"]).figure_cell() == "1", "the newer one does not have it"
    lowest = of(figures=["own"], peers=["a", "b"], lowest=True)
    assert lowest.figure_cell() == "0.48", "the newer one has no figure of the second peer"


def test_a_target_that_a_round_misses_is_not_shown():
    results = {"m": result("m", {"own": [10.0, 11.4, 9.7], "peer": [10.0, 10.0, 10.0]})}
    entry = {"raw": "m", "figures": ["own"], "peer": "P", "peers": ["peer"]}
    assert promise(results, **entry, times_at_most=1.01).target_cell() == "**not shown**: ≤ 1.01 ×"
    assert promise(results, **entry, times_at_most=1.15).target_cell() == "≤ 1.15 ×"
    assert promise(results, **entry, times_at_most=0.99).target_cell() == "**missed**: ≤ 0.99 ×"
    assert promise(results, **entry, at_least=9.8).target_cell() == "**not shown**: ≥ 9.8"
    one = promise(results, **entry, times_at_most=1.01)
    assert page.missed_text([one]).startswith("0 of the 1 targets of all promises are missed. 1 more are not shown")


def test_a_claim_has_its_condition_below_the_table():
    results = {"m": result("m", {"own": [10.0], "documents": [2_151_000.0]})}
    claimed = promise(results, raw="m", figures=["own"], claim="Inserts", claim_note="Stopped at {documents}.")
    assert "\n\n- Stopped at 2.15 M.\n" in page.claims_text([claimed], results)


def test_the_late_rate_is_that_of_the_last_fifth_of_the_whole_seconds():
    points = [[second * 10, 10] for second in range(1, 29)] + [[280 + second * 20, 20] for second in range(1, 8)]
    assert raw.late_rate(points) == 20.0, "7 of 35 seconds"
    results = raw.read_all(raw.DOCUMENTED)["chart"]
    for side, line in results["timelines"].items():
        assert results["figures"][f"{side}.late.rate"]["median"] == raw.rounded(raw.late_rate(line))


def test_the_page_names_the_version_of_rocksdb_that_the_raw_results_know():
    known = result("inserts", {"betree.a": [1.0], "rocksdb.a": [1.0]}) | {"versions": {"RocksDB": "11.8.1"}}
    results = {"inserts": known, "contract": result("contract", {"rocksdb.get": [0.9]})}
    commands = {"inserts": "make i", "contract": "make c"}
    of = lambda raw, figures, peers: page.Promise({"raw": raw, "figures": figures, "peers": peers}, commands, results)
    both = [of("inserts", ["betree.a"], ["rocksdb.a"]), of("contract", ["rocksdb.get"], [])]
    told = page.library_versions(both)
    assert told == "RocksDB 11.8.1 (`make i`), of a version not recorded (`make c`)"


def test_a_missed_limit_is_not_rounded_to_the_limit():
    results = {"m": result("m", {"own": [0.7986]})}
    assert promise(results, raw="m", figures=["own"], at_least=0.8, unit="").figure_cell() == "0.799"


def test_promises_without_raw_results_are_listed_and_have_no_row():
    text = page.page_text(page.read_promises({}), {})
    assert "## Not measured on this commit" in text and "Point queries, 100 clients, cached" in text
    assert not [line for line in text.splitlines() if line.startswith("|")]
    # A peer that a target needs, and that was not measured, leaves the promise open, too.
    results = {"m": result("m", {"own": [1.0]})}
    assert not promise(results, raw="m", figures=["own"], peer="P", peers=["peer"], times_at_least=1.0).is_measured()


def test_rows_of_another_commit_or_machine_are_marked():
    old = result(
        "load",
        {"pando.load.rate": [2.0], "mongodb.load.rate": [1.0]},
        commit="fff0000",
        machine={**MACHINE, "processor": "B"},
    )
    point = result("point", {"pando.c1.p50_us": [70.0], "mongodb.c1.p50_us": [140.0]})
    results = {"point": point, "idle": result("idle", {"memory_mb": [12.0]}), "load": old}
    text = page.page_text(page.read_promises(results), results)
    assert "Commit: abc1234." in text
    assert "2026-11-23 fff0000 †" in text and "† marks another machine: 2 cores of B" in text


@pytest.mark.parametrize(
    "value, text",
    [
        (0, "0"),
        (0.0027, "0.0027"),
        (0.83, "0.83"),
        (34.21, "34.2"),
        (368, "368"),
        (12345.6, "12,346"),
        (2_700_000, "2.70 M"),
    ],
)
def test_numbers_have_as_many_digits_as_one_reads(value, text):
    assert page.number(value) == text


def test_the_engines_results_become_samples_by_peer_and_figure():
    def run(rate):
        outcome = {
            "peer": "betree",
            "phase": "capped",
            "figures": {"capped.inserts.late.rate": rate, "capped.disk_mb": 295.0},
            "timeline": [
                {"at": 1.0, "documents": 100, "longest_ms": 1.0},
                {"at": 3.0, "documents": 500, "longest_ms": 1.0},
            ],
        }
        setup = {"cache_bytes": 64, "headroom_bytes": 192}
        return {"setup": setup, "outcomes": [outcome], "failures": [], "versions": {"rocksdb": "11.8.1"}}

    record = engines.record_of("engines", [run(10.0), run(12.0)], "make measure-engines")
    assert record.figures["betree.capped.inserts.late.rate"] == [10.0, 12.0]
    assert record.figures["betree.derived.disk_mb"] == [295.0, 295.0]
    assert record.timelines["betree"] == [[100, 100], [500, 200]]
    assert record.versions == {"RocksDB": "11.8.1"}


def test_the_labs_output_becomes_figures():
    output = """floor      holds     client CPU of a point query with 100 clients: 4.17 us, of a bare loop of the same bytes: 3.97 us, above it: 0.22 us (bound 4)
counters   holds     with counters by without, medians of 7 pairs: rate 1.0050, CPU a query 1.0000; a reading of all counters costs 73 us
open-loop  DOES NOT  closed loop 5/s, open loop asked for 2/s and did 2/s: off by 0.005 % (bound 1 %), 0 not begun
seed       holds     two runs of one seed send: point the same
holds    rate at the same client CPU: 14.6 times the Node driver's (bound 5)
holds    rate at the same client CPU: 2.3 times the Rust driver's (bound 2)
"""
    found = {name: samples[0] for name, samples in lab.record_of(output).figures.items()}
    assert found == {
        "floor.above_us": 0.22,
        "counters.rate_ratio": 1.005,
        "open_loop.off_percent": 0.005,
        "seed.differing": 0.0,
        "drivers.node_ratio": 14.6,
        "drivers.rust_ratio": 2.3,
    }


def test_a_comparison_knows_which_way_is_worse():
    def side(rate, cpu):
        return {"point: rate": rate, "point: server_cpu_us": cpu, "engine: capped.inserts.late.reads": 0.0}

    rounds = [
        {"before": side(100, 10), "after": side(96, 9)},
        {"before": side(100, 10), "after": side(99, 10.2)},
        {"before": side(100, 10), "after": side(95, 10.1)},
    ]
    table, worse = compare.report(rounds, 3.0)
    assert worse == ["point: rate"], "its median ratio is 0.96; a figure that is nearly nothing has none"
    assert "WORSE by 4.2 %" in table
    assert compare.report([{"before": side(100, 10), "after": side(100, 11)}], 3.0)[1] == ["point: server_cpu_us"]


def test_the_chart_has_a_panel_for_each_timeline_and_none_without():
    assert chart.picture({}) is None
    points = [[second * 100_000, 100_000] for second in range(1, 40)]
    setup = {
        "cache_bytes": 64_000_000,
        "cap_bytes": 1 << 28,
        "document_bytes": 109,
        "documents_max": 5_000_000,
        "seconds_max": 300,
    }
    results = {"chart": {"timelines": {"pando": points, "mongodb": points[:10]}, "setup": setup}}
    one = chart.picture(results)
    assert "MongoDB (stopped after 300 s)" in one and "RocksDB" not in one
    assert "each with a cache of 64 MB and a memory cap of 256 MiB" in one
    results["engines"] = {"timelines": {"betree": points, "rocksdb": points}, "setup": setup}
    assert "RocksDB" in chart.picture(results)


def cell(server, cache, rate, workload="sysbench"):
    figures = {"rate": rate, "latency_us": {"p99": 9.0}, "per_operation": {"disk_reads": 0.5, "server_cpu_us": 7.0}}
    return {"workload": workload, "labels": {"server": server, "cache": cache, "run": "sysbench"}, "figures": figures}


def test_a_matrix_of_engines_names_the_best_of_the_others():
    results = [
        cell("betree", "64 MB, slow", 90.0),
        cell("betree as B-tree", "64 MB, slow", 80.0),
        cell("wiredtiger btree", "64 MB, slow", 20.0),
        cell("wiredtiger lsm", "64 MB, slow", 60.0),
        cell("betree", "1024 MB", 1.0, workload="sysbench load"),
    ]
    figures = matrix.record_of(results).figures
    assert figures["betree.64-slow.rate"] == [90.0] and figures["betree.64-slow.disk_reads"] == [0.5]
    assert figures["best-other.64-slow.rate"] == [60.0] and figures["lsm-by-btree.64-slow.rate"] == [3.0]
    assert not any("1024" in name for name in figures)
    assert matrix.cache_of("cache below the data") == "below"


def test_the_chart_of_engines_has_a_line_for_each_that_was_measured_at_all_caches():
    rates = {f"betree.{cache}-slow.rate": [float(cache)] for cache in (64, 128, 256)}
    rates |= {"rocksdb.64-slow.rate": [9.0]}
    picture = engine_chart.picture({"engine-matrix": result("engine-matrix", rates)})
    assert picture.count('class="line"') == 1 and ">betree<" in picture and "RocksDB" not in picture
    assert engine_chart.picture({}) is None


def test_rates_behind_the_contract_are_taken_by_those_of_the_bare_library():
    outcomes = [
        {"peer": "rocksdb", "phase": "cached", "figures": {"cached.drained.rate": 200.0}},
        {"peer": "rocksdb-engine", "phase": "cached", "figures": {"cached.drained.rate": 180.0}},
        {"peer": "lmdb", "phase": "cached", "figures": {"cached.drained.rate": 100.0}},
    ]
    assert contract.record_of([{"outcomes": outcomes}]).figures == {"rocksdb.get": [0.9]}
