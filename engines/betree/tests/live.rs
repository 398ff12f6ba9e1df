//! Inspection and changes of an open store: settings, tree options, statistics, waits, checks.

use std::path::Path;

use pando_betree::{Betree, DirectIo, Options, verify};
use pando_environment::simulated::{Fault, FaultRule};
use pando_environment::{Environment, Operation, Simulation};
use pando_storage::{
    Begin, BlockingMode, CheckRequest, CheckedEngine, Durability, Engine, ErrorKind, StorageError, TreeId,
    TreeOptions,
};

use crate::history::{self, Ending, FOLDER, History, tiny_options};

fn open(simulation: &Simulation, options: Options) -> std::sync::Arc<Betree> {
    Betree::open(&simulation.environment, Path::new(FOLDER), options).expect("it opens")
}

fn fill(engine: &Betree, tree: TreeId, from: u32, count: u32) {
    for chunk in (from..from + count).collect::<Vec<u32>>().chunks(100) {
        try_put(engine, tree, chunk).expect("the commit succeeds");
    }
}

fn try_put(engine: &Betree, tree: TreeId, numbers: &[u32]) -> Result<(), StorageError> {
    let mut writer = engine.begin(Begin::WRITE)?;
    numbers.iter().try_for_each(|number| writer.put(tree, &number.to_be_bytes(), &value_of(*number)))?;
    writer.commit(Durability::Logged).map(|_| ())
}

fn value_of(number: u32) -> Vec<u8> {
    (0..200_u32).map(|at| (number.wrapping_mul(at + 7) >> 3) as u8).collect()
}

fn setting(engine: &Betree, wanted: &str) -> String {
    let settings = engine.settings();
    settings.into_iter().find(|(name, _)| *name == wanted).expect("there is such a setting").1
}

fn figure(engine: &Betree, name: &str) -> u64 {
    engine.statistics().get(name).unwrap_or_else(|| panic!("there is no figure {name}"))
}

fn kind(outcome: Result<(), StorageError>) -> ErrorKind {
    outcome.expect_err("it must be refused").kind()
}

#[test]
fn a_smaller_cache_is_smaller_at_once() {
    let simulation = Environment::simulated(1);
    let mut options = tiny_options();
    options.cache_bytes = 8 << 20;
    let engine = open(&simulation, options);
    let tree = engine.create_tree("t", &TreeOptions::default()).expect("a tree is made");
    fill(&engine, tree, 0, 8_000);
    engine.checkpoint().expect("a checkpoint is made");
    let reader = engine.begin(Begin::READ).expect("a reader begins");
    for number in 0..8_000_u32 {
        let found = reader.get(tree, &number.to_be_bytes(), BlockingMode::MayBlock).expect("it is read");
        assert_eq!(found.map(|value| value.len()), Some(200));
    }
    let before = figure(&engine, "cache.page_bytes");
    assert!(before > 1 << 20, "{before} bytes in the cache");
    engine.change_settings(&[("cache", "1MB")]).expect("the cache is changed");
    let after = figure(&engine, "cache.page_bytes");
    assert!(after <= 1 << 20, "{after} bytes in a cache of 1 MiB");
    assert_eq!(
        (setting(&engine, "cache"), figure(&engine, "cache.limit_bytes")),
        ("1048576".into(), 1 << 20)
    );
    assert_eq!(figure(&engine, "buffers.budget_bytes"), 1 << 18);
    engine.change_settings(&[("bufferBudget", "512KB")]).expect("the budget is changed");
    assert_eq!(figure(&engine, "buffers.budget_bytes"), 1 << 19);
    fill(&engine, tree, 8_000, 500);
    assert_eq!(engine.tree_estimate(tree).expect("an estimate").entries / 1_000, 8);
}

#[test]
fn settings_that_cannot_be_are_refused_and_change_nothing() {
    let simulation = Environment::simulated(2);
    let engine = open(&simulation, Options::default());
    let before = engine.settings();
    for (name, value) in [
        ("cache", "1KB"),
        ("cache", "much"),
        ("bufferBudget", "1"),
        ("logBudget", "0"),
        ("checkpointPeriod", "0"),
        ("checkpointPeriod", "86401"),
        ("directIo", "sometimes"),
        ("mergeThreads", "3"),
        ("growthSize", "1MB"),
        ("compression", "gzip"),
        ("fanout", "1"),
        ("leafSize", "1KB"),
        ("colour", "blue"),
    ] {
        assert_eq!(kind(engine.change_settings(&[(name, value)])), ErrorKind::InvalidInput, "{name} {value}");
    }
    assert_eq!(engine.settings(), before);
    for second in [("cache", "1KB"), ("colour", "blue")] {
        let both = [("checkpointPeriod", "7"), second];
        assert_eq!(kind(engine.change_settings(&both)), ErrorKind::InvalidInput, "{second:?}");
        assert_eq!(engine.settings(), before, "the first of two is not changed where the second cannot be");
    }
    engine.change_settings(&[("checkpointPeriod", "7"), ("cache", "2MB")]).expect("both can be");
    assert_eq!(
        (setting(&engine, "checkpointPeriod"), setting(&engine, "cache")),
        ("7".into(), "2097152".into())
    );
}

#[test]
fn changed_defaults_of_trees_hold_for_new_ones() {
    let simulation = Environment::simulated(4);
    let engine = open(&simulation, Options::default());
    let shown = ["compression", "runCompression", "leafSize", "fanout"].map(|name| setting(&engine, name));
    assert_eq!(shown, ["zstd-1", "zstd-1", "524288", "32"]);
    // The bytes that the store grows by when a tree gets a megabyte of equal ones.
    let growth = |tree| {
        let before = engine.bytes_on_disk(None).expect("they are counted");
        let mut writer = engine.begin(Begin::WRITE).expect("a writer begins");
        let put = (0..2_000_u32).try_for_each(|number| writer.put(tree, &number.to_be_bytes(), &[7; 500]));
        put.and_then(|()| writer.commit(Durability::Logged)).expect("the commit succeeds");
        engine.checkpoint().expect("a checkpoint is made");
        engine.compact(&[tree], &pando_storage::Operation::default()).expect("it is compacted");
        engine.bytes_on_disk(None).expect("they are counted").saturating_sub(before)
    };
    let before = engine.create_tree("before", &TreeOptions::default()).expect("a tree is made");
    engine.change_settings(&[("compression", "none"), ("fanout", "8")]).expect("they can be");
    let shown = ["compression", "runCompression", "fanout"].map(|name| setting(&engine, name));
    assert_eq!(shown, ["none", "none", "8"]);
    let after = engine.create_tree("after", &TreeOptions::default()).expect("a tree is made");
    let grown = [growth(before), growth(after)];
    assert!(grown[0] < 300_000 && grown[1] > 1_000_000, "{grown:?}");
}

#[test]
fn a_shorter_checkpoint_period_holds_from_now_on() {
    let simulation = Environment::simulated(3);
    let engine = open(&simulation, Options::default());
    let tree = engine.create_tree("t", &TreeOptions::default()).expect("a tree is made");
    fill(&engine, tree, 0, 10);
    let pass = |seconds| {
        simulation.clock.advance(std::time::Duration::from_secs(seconds));
        simulation.tasks.run_until_idle();
        figure(&engine, "checkpoints.count")
    };
    let before = pass(5);
    engine.change_settings(&[("checkpointPeriod", "3")]).expect("the period is changed");
    assert_eq!(pass(5), before + 1);
}

#[test]
fn direct_io_can_be_turned_off_and_on_beneath_readers_and_writers() {
    // Where it is off at first as well, if the file system has it.
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut options = tiny_options();
    options.direct_io = DirectIo::Off;
    let engine = Betree::open(&Environment::real(), folder.path(), options).expect("it opens");
    assert_eq!(setting(&engine, "directIo"), "off");
    let other = tempfile::tempdir().expect("a temporary folder can be made");
    let mut options = tiny_options();
    options.direct_io = DirectIo::On;
    let has_direct = Betree::open(&Environment::real(), other.path(), options).is_ok();
    assert_eq!(engine.change_settings(&[("directIo", "on")]).is_ok(), has_direct);
    let on = if has_direct { "on" } else { "auto" };
    let tree = engine.create_tree("t", &TreeOptions::default()).expect("a tree is made");
    for round in 0..6_u32 {
        let wanted = ["off", on][round as usize % 2];
        engine.change_settings(&[("directIo", wanted)]).expect("the file system lets it");
        assert_eq!(setting(&engine, "directIo"), wanted);
        fill(&engine, tree, round * 500, 500);
        engine.checkpoint().expect("a checkpoint is made");
        let reader = engine.begin(Begin::READ).expect("a reader begins");
        for number in (0..(round + 1) * 500).step_by(7) {
            let found = reader.get(tree, &number.to_be_bytes(), BlockingMode::MayBlock).expect("it is read");
            assert!(found.is_some(), "{number}");
        }
    }
    engine.close().expect("it closes");
    drop(engine);
    assert!(verify(&Environment::real(), folder.path()).expect("it is checked").is_sound());
}

/// Bytes of a page of the tree `t`, on average.
fn page_bytes(simulation: &Simulation) -> u64 {
    let report = verify(&simulation.environment, Path::new(FOLDER)).expect("it is checked");
    assert!(report.is_sound(), "{:?}", report.damage);
    let tree = report.trees.iter().find(|tree| tree.name == "t").expect("the tree is there");
    tree.raw_bytes / tree.pages
}

#[test]
fn another_layout_of_a_tree_holds_for_what_is_written_from_then_on_and_survives_crashes() {
    let simulation = Environment::simulated(4);
    let layout = |size: &str| TreeOptions { entries: vec![("pageSize".to_owned(), size.to_owned())] };
    let mut options = tiny_options();
    options.cache_bytes = 4 << 20;
    let mut engine = open(&simulation, options.clone());
    let tree = engine.create_tree("t", &layout("512B")).expect("a tree is made");
    let reopen = |engine: std::sync::Arc<Betree>, crash: bool| {
        if crash {
            simulation.disk.crash(99);
        } else {
            engine.close().expect("it closes");
        }
        drop(engine);
        simulation.tasks.forget_all();
        simulation.disk.kill();
    };
    fill(&engine, tree, 0, 1_000);
    engine.checkpoint().expect("a checkpoint is made");
    reopen(engine, false);
    let small = page_bytes(&simulation);
    engine = open(&simulation, options.clone());
    let refused = engine.change_tree_options(tree, &layout("1B"));
    assert_eq!(kind(refused), ErrorKind::InvalidInput);
    engine.change_tree_options(tree, &layout("1KB")).expect("the layout is changed");
    // The change is in the log only.
    let mut writer = engine.begin(Begin::WRITE).expect("a writer begins");
    writer.put(tree, b"x", b"y").expect("the put succeeds");
    let receipt = writer.commit(Durability::Logged).expect("the commit succeeds");
    engine.wait_durable(receipt, Durability::Synced).expect("it is synced");
    reopen(engine, true);
    engine = open(&simulation, options.clone());
    fill(&engine, tree, 0, 1_000);
    engine.checkpoint().expect("a checkpoint is made");
    reopen(engine, false);
    let large = page_bytes(&simulation);
    assert!(large > small * 5 / 4, "{small} bytes a page, then {large}");
    // And it is in the catalog.
    engine = open(&simulation, options);
    fill(&engine, tree, 0, 1_000);
    engine.checkpoint().expect("a checkpoint is made");
    reopen(engine, false);
    assert!(page_bytes(&simulation) > small * 5 / 4);
}

#[test]
fn figures_say_what_was_written_for_what_and_for_whom() {
    let simulation = Environment::simulated(5);
    let engine = open(&simulation, tiny_options());
    let [one, two] =
        ["one", "two"].map(|name| engine.create_tree(name, &TreeOptions::default()).expect("a tree is made"));
    fill(&engine, one, 0, 3_000);
    fill(&engine, two, 0, 300);
    // Scattered keys wait in runs.
    for number in 0..3_000_u32 {
        let mut writer = engine.begin(Begin::WRITE).expect("a writer begins");
        let key = number.wrapping_mul(2_654_435_761).to_be_bytes();
        writer.put(one, &key, b"value").expect("the put succeeds");
        writer.commit(Durability::Logged).expect("the commit succeeds");
    }
    engine.checkpoint().expect("a checkpoint is made");
    for cause in ["leaves", "runs", "nodes", "catalog", "space_map"] {
        assert!(figure(&engine, &format!("{cause}.bytes_written")) > 0, "{cause}");
    }
    // Every call to the device has its cause, and a leaf's pages go with one.
    let causes = ["leaves", "large_values", "runs", "nodes", "catalog", "space_map"];
    let sum =
        |name: &str| causes.iter().map(|cause| figure(&engine, &format!("{cause}.{name}"))).sum::<u64>();
    assert_eq!(sum("write_calls"), figure(&engine, "data.writes"));
    assert_eq!(sum("read_calls"), figure(&engine, "data.reads"));
    assert!(figure(&engine, "leaves.write_calls") * 2 < figure(&engine, "leaves.blocks_written"));
    let of = |tree, name| engine.tree_statistics(tree).expect("it has figures").get(name).expect("a figure");
    let (first, second) = (of(one, "leaves.bytes_written"), of(two, "leaves.bytes_written"));
    assert_eq!(first + second, figure(&engine, "leaves.bytes_written"));
    assert!(first > 4 * second && second > 0, "{first} and {second}");
    assert!(figure(&engine, "write_amplification.permille") > 1_000);
    assert!(figure(&engine, "commits.bytes") >= 3_300 * 204);
    // The statistics show what a reader holds until it ends.
    let reader = engine.begin(Begin::READ).expect("a reader begins");
    assert!(reader.get(one, &7_u32.to_be_bytes(), BlockingMode::MayBlock).expect("it is read").is_some());
    simulation.clock.advance(std::time::Duration::from_secs(5));
    assert_eq!(figure(&engine, "history.oldest_snapshot_millis"), 5_000);
    drop(reader);
    assert_eq!(figure(&engine, "history.oldest_snapshot_millis"), 0);
    let waits = engine.waits();
    assert!(waits.iter().any(|wait| wait.name == "log.sync" && wait.count > 0), "{waits:?}");
    assert!(waits.is_sorted_by(|a, b| a.micros >= b.micros));
    engine.drop_tree(two).expect("it is dropped");
    assert_eq!(engine.tree_statistics(two).expect_err("it is gone").kind(), ErrorKind::NotFound);
}

#[test]
fn an_open_store_is_checked_and_damage_is_named_with_its_tree() {
    let simulation = Environment::simulated(6);
    let engine = open(&simulation, tiny_options());
    let [one, two] =
        ["one", "two"].map(|name| engine.create_tree(name, &TreeOptions::default()).expect("a tree is made"));
    fill(&engine, one, 0, 2_000);
    fill(&engine, two, 0, 2_000);
    engine.checkpoint().expect("a checkpoint is made");
    let check = |trees: &[TreeId]| {
        engine.check(&CheckRequest { trees, bytes_per_second: None, operation: None }).expect("it is checked")
    };
    let sound = check(&[]);
    assert!(sound.is_sound() && sound.trees == 2 && sound.entries >= 4_000, "{sound:?}");
    assert_eq!(check(&[two]).trees, 1);
    let path = Path::new(FOLDER).join("data.0000");
    // A page of each tree: the header names its tree at byte 8.
    for tree in [one, two] {
        simulation.disk.corrupt(&path, |bytes| {
            let is_page =
                |at: &usize| bytes[*at..*at + 5] == *b"PBLK\x02" && bytes[*at + 8] == tree.get() as u8;
            let pages: Vec<usize> = (128 << 10..bytes.len() - 512).step_by(32).filter(is_page).collect();
            for at in pages {
                bytes[at + 60] ^= 1;
            }
        });
        let found = check(&[tree]);
        assert!(!found.is_sound(), "{found:?}");
        let name = if tree == one { "(one)" } else { "(two)" };
        assert!(
            found.problems.iter().all(|problem| problem.contains(name) && problem.contains("0x")),
            "{found:?}"
        );
    }
    assert!(check(&[]).problems.len() > 2);
}

/// Lets background work run for this many seconds.
fn pass(simulation: &Simulation, seconds: u64) {
    for _ in 0..seconds {
        simulation.clock.advance(std::time::Duration::from_secs(1));
        simulation.tasks.run_until_idle();
    }
}

/// Leaves of sixteen pages. Values in blocks of their own would take a unit each.
fn layout_of_large_leaves() -> TreeOptions {
    let entries =
        [("compression", "none"), ("pageSize", "16KB"), ("leafSize", "256KB"), ("largeValueSize", "32MB")];
    TreeOptions { entries: entries.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec() }
}

/// A store with room for all of it in memory and in the log, whose checkpoints follow quickly.
fn options_of_large_leaves() -> Options {
    let mut options = tiny_options();
    (options.cache_bytes, options.log_budget_bytes) = (4 << 20, 64 << 20);
    options.checkpoint_period = std::time::Duration::from_secs(2);
    options.growth_bytes = 256 << 10;
    options
}

#[test]
fn the_file_shrinks_after_drops_and_what_lies_free_within_it_becomes_holes() {
    let (simulation, options) = (Environment::simulated(7), options_of_large_leaves());
    let engine = open(&simulation, options.clone());
    let layout = layout_of_large_leaves();
    let [first, second, third] =
        ["a", "b", "c"].map(|name| engine.create_tree(name, &layout).expect("a tree is made"));
    fill(&engine, first, 0, 60_000);
    engine.checkpoint().expect("a checkpoint is made");
    fill(&engine, second, 0, 2_000);
    engine.checkpoint().expect("a checkpoint is made");
    fill(&engine, third, 0, 60_000);
    engine.checkpoint().expect("a checkpoint is made");
    pass(&simulation, 10);
    let full = figure(&engine, "data.file_bytes");
    assert!(full > 20 << 20, "{full} bytes");
    // The end of the file becomes free, and goes.
    engine.drop_tree(third).expect("it is dropped");
    pass(&simulation, 20);
    let cut = figure(&engine, "data.file_bytes");
    assert!(cut + (6 << 20) < full, "{full} bytes, then {cut}");
    // The beginning becomes free, and becomes a hole.
    let holes = figure(&engine, "data.hole_bytes");
    engine.drop_tree(first).expect("it is dropped");
    pass(&simulation, 20);
    let more = figure(&engine, "data.hole_bytes") + cut - figure(&engine, "data.file_bytes");
    assert!(more > holes + (4 << 20), "{holes} bytes of holes, then {more} given back");
    // The blocks behind it have moved, so that the file is no longer than its content.
    pass(&simulation, 40);
    let (short, moved) = (figure(&engine, "data.file_bytes"), figure(&engine, "data.moved_bytes"));
    assert!(moved > 0 && short < 3 << 20, "{short} bytes after {moved} were moved");
    assert!(engine.check(&CheckRequest::default()).expect("it is checked").is_sound());
    // A device that fails and one that has no room give different errors when room is asked for, and no data
    // is lost.
    let tight = engine.create_tree("tight", &layout).expect("a tree is made");
    for (fault, is_full) in [(Fault::InputOutputError, false), (Fault::NoSpace, true)] {
        simulation.disk.inject(FaultRule::new(Operation::Allocate, fault).on("data.").always());
        // The writes need more than the room that is there. Either the writers or the checkpoint get the
        // error.
        let chunks = (0..20_000_u32).collect::<Vec<_>>();
        let refused = chunks.chunks(100).find_map(|chunk| try_put(&engine, tight, chunk).err());
        let error = refused.or_else(|| engine.checkpoint().err()).expect("there is no room");
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert_eq!(error.to_string().contains("no room"), is_full, "{error}");
        pass(&simulation, 3);
        simulation.disk.clear_faults();
        engine.checkpoint().expect("there is room again");
    }
    fill(&engine, tight, 0, 20_000);
    let fourth = engine.create_tree("d", &layout).expect("a tree is made");
    fill(&engine, fourth, 0, 20_000);
    engine.checkpoint().expect("holes are filled again");
    let reader = engine.begin(Begin::READ).expect("a reader begins");
    for (tree, count) in [(second, 2_000_u32), (tight, 20_000), (fourth, 20_000)] {
        for number in (0..count).step_by(37) {
            let found = reader.get(tree, &number.to_be_bytes(), BlockingMode::MayBlock).expect("it is read");
            assert!(found.is_some_and(|value| value.len() == 200), "{number}");
        }
    }
    drop(reader);
    engine.close().expect("it closes");
    drop(engine);
    let report = verify(&simulation.environment, Path::new(FOLDER)).expect("it is checked");
    assert!(report.is_sound(), "{:?}", report.damage);
    let engine = open(&simulation, options);
    pass(&simulation, 10);
    assert!(engine.check(&CheckRequest::default()).expect("it is checked").is_sound());
}

#[test]
fn a_leaf_that_is_damaged_stays_where_it_is_and_all_others_move() {
    let simulation = Environment::simulated(8);
    let engine = open(&simulation, options_of_large_leaves());
    let layout = layout_of_large_leaves();
    let [first, second] = ["a", "b"].map(|name| engine.create_tree(name, &layout).expect("a tree is made"));
    fill(&engine, first, 0, 60_000);
    engine.checkpoint().expect("a checkpoint is made");
    fill(&engine, second, 1_000_000, 2_000);
    engine.checkpoint().expect("a checkpoint is made");
    pass(&simulation, 10);
    let data = Path::new(FOLDER).join("data.0000");
    let damaged = 1_000_100_u32;
    simulation.disk.corrupt(&data, |content| {
        // Older copies as well, wherever they are.
        let value = value_of(damaged);
        let found = content.windows(value.len()).enumerate().filter(|(_, bytes)| **bytes == *value);
        let places: Vec<usize> = found.map(|(at, _)| at).collect();
        places.into_iter().for_each(|at| content[at] ^= 1);
    });
    engine.drop_tree(first).expect("it is dropped");
    pass(&simulation, 60);
    let (moved, reads) = (figure(&engine, "data.moved_bytes"), figure(&engine, "data.reads"));
    assert!(moved > 128 << 10, "{moved} bytes have moved");
    pass(&simulation, 20);
    assert_eq!(figure(&engine, "data.moved_bytes"), moved, "nothing is moved again");
    let more = figure(&engine, "data.reads") - reads;
    assert_eq!(more, 0, "the damaged leaf is not read again");
    assert_eq!(figure(&engine, "data.failed_returns"), 0);
    let reader = engine.begin(Begin::READ).expect("a reader begins");
    for number in (1_001_400..1_002_000_u32).step_by(37) {
        let found = reader.get(second, &number.to_be_bytes(), BlockingMode::MayBlock).expect("it is read");
        assert_eq!(found.as_deref(), Some(&*value_of(number)), "{number}");
    }
    drop(reader);
    let report = engine.check(&CheckRequest::default()).expect("it is checked");
    assert!(!report.is_sound(), "{report:?}");
    engine.close().expect("it closes");
}

#[test]
fn an_interrupted_check_or_backup_ends_with_an_error_and_may_be_made_again() {
    let simulation = Environment::simulated(11);
    let engine = open(&simulation, tiny_options());
    let tree = engine.create_tree("tree", &TreeOptions::default()).expect("a tree is made");
    fill(&engine, tree, 0, 5_000);
    engine.checkpoint().expect("a checkpoint is made");
    let operation = pando_storage::Operation::default();
    operation.interrupt(pando_storage::Interruption::Killed);
    let request = CheckRequest { operation: Some(&operation), ..CheckRequest::default() };
    let refused = engine.check(&request).expect_err("it is interrupted");
    assert_eq!(refused.kind(), ErrorKind::Busy);
    let environment = &simulation.environment;
    let folder = Path::new("/interrupted");
    let backup =
        pando_storage::BackupRequest { environment, folder, since: None, operation: Some(&operation) };
    assert_eq!(engine.backup(&backup).expect_err("it is interrupted").kind(), ErrorKind::Busy);
    operation.begin();
    assert!(engine.check(&request).expect("nothing interrupts it").is_sound());
    engine.backup(&backup).expect("an unfinished backup is begun anew");
    engine.close().expect("it closes");
}

#[test]
fn a_history_goes_on_beneath_checks_and_changing_layouts() {
    for seed in 200..206 {
        let mut history = History::new(seed);
        history.backups = Some(history::backups::Backups::default());
        history.changes_layouts = true;
        history.open().expect("a store is made");
        for round in 0..3 {
            history.run(150).expect("nothing fails");
            history.check_now();
            if round == 1 {
                history.end(Ending::PowerCut { seed });
                history.recover();
            } else {
                history.close_and_reopen();
            }
        }
    }
}

#[test]
fn a_transaction_that_grows_beyond_its_limit_is_refused_at_that_write_and_can_still_commit() {
    let simulation = Environment::simulated(1);
    let engine = CheckedEngine::shared(open(&simulation, Options::default()));
    let tree = engine.create_tree("t", &TreeOptions::default()).expect("the tree is created");
    engine.change_settings(&[("transactionLimit", "1MB")]).expect("the limit is changed");
    let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
    let mut written = 0_u32;
    let error = loop {
        match writer.put(tree, &written.to_be_bytes(), &[7; 1_000]) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 2_000, "the limit is not kept");
    };
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert!((900..1_048).contains(&written), "{written} writes");
    assert_eq!(writer.delete(tree, &[9; 1_900]).map_err(|error| error.kind()), Err(ErrorKind::TooLarge));
    writer.commit(Durability::None).expect("what there is can be committed");
    let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
    writer.put(tree, b"large", &vec![7; 2 << 20]).expect("one write is never too large");
    writer.commit(Durability::None).expect("it can be committed");
    engine.change_settings(&[("transactionLimit", "auto")]).expect("the limit is changed");
    assert!(engine.change_settings(&[("transactionLimit", "2000GB")]).is_err());
}
