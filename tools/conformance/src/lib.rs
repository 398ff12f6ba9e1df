//! The storage contract as tests: the whole test file of a new engine.
//!
//! ```text
//! pando_conformance::engine_conformance!(my_engine, |folder| {
//!     Arc::new(MyEngine::open(folder).expect("it opens"))
//! });
//! ```
//!
//! makes one test for each promise of the contract, named by the promise, in a module `my_engine`. The second
//! argument opens the store in a folder. The folder is empty at first; later it has the data that the engine
//! left there after a close or a crash (a drop without `close`). The capabilities that an engine declares
//! decide which answers are expected of it.
//!
//! # Modules
//! | module | promises |
//! |---|---|
//! | [`trees`] | creating, listing, dropping, names used again |
//! | [`values`] | single keys and values: lengths, emptiness, blocking modes |
//! | [`merges`] | operators on values that are not read |
//! | [`patches`] | update operators on documents that are not read |
//! | [`ranges`] | whole ranges of keys deleted at once |
//! | [`isolation`] | snapshots, own writes, the winner of a conflict |
//! | [`serializable`] | claims of what transactions have read |
//! | [`scans`] | order, bounds, directions, batches, savepoints |
//! | [`durability`] | receipts, wakers, close, restart, crash |
//! | [`backups`] | online backup, the engine's own and the emulation |
//! | [`figures`] | estimates, sizes, live transactions |
//! | [`large`] | transactions of thousands of writes |
//! | [`threads`] | promises for any interleaving |
//! | [`history`] | every read of many threads, explained by the commits |
//! | [`model`] | thousands of random operations against plain maps |
//!
//! [`shrink`] makes a failing history of any of them, or of an engine's own tests, small.
//!
//! Every engine runs under [`CheckedEngine`](pando_storage::CheckedEngine), which watches the rules of single
//! calls. [`EmulatedEngine`] around an engine leaves all optional methods to the emulations, which keep the
//! same promises.
//!
//! Engines that reach the outside only through an [`Environment`](pando_environment::Environment) make a
//! second call, [`engine_power_cuts!`]. It runs many lives on a simulated disk that loses power at any call;
//! see [`power_cuts`].
#![warn(missing_docs)]

pub mod backups;
pub mod change;
pub mod durability;
pub mod emulated;
pub mod figures;
pub mod history;
pub mod isolation;
pub mod large;
pub mod merges;
pub mod model;
pub mod patches;
pub mod power_cuts;
pub mod ranges;
pub mod scans;
pub mod serializable;
pub mod shrink;
pub mod subject;
pub mod threads;
pub mod trees;
pub mod values;

pub use emulated::EmulatedEngine;
pub use subject::Subject;

/// The whole conformance suite for one engine, as tests in a module of the given name. See the crate's head.
#[macro_export]
macro_rules! engine_conformance {
    ($name:ident, $open:expr) => {
        mod $name {
            #[allow(unused_imports, reason = "what opens the engine may need nothing from outside")]
            use super::*;
            $crate::every_test!($open);
        }
    };
}

/// The list of all tests, each named as its function. A test of this crate sees to it that none is left out.
#[doc(hidden)]
#[macro_export]
macro_rules! every_test {
    ($open:expr) => {
        $crate::tests_of!($open, trees:
            a_created_tree_is_empty_listed_and_its_name_is_taken
            any_text_can_be_the_name_of_a_tree
            unknown_options_of_a_tree_are_refused
            trees_do_not_share_keys
            a_dropped_tree_is_not_found
            an_unknown_tree_is_not_found
            an_older_transaction_goes_on_reading_a_dropped_tree
            the_name_of_a_dropped_tree_can_be_used_again_and_its_number_never
            a_new_tree_serves_transactions_that_began_before_it
            a_write_to_a_tree_that_is_dropped_meanwhile_is_lost
            hundreds_of_trees_live_side_by_side
        );
        $crate::tests_of!($open, values:
            a_key_holds_its_last_value_until_it_is_deleted
            empty_keys_and_empty_values_are_entries
            keys_are_any_bytes_and_ordered_as_unsigned_bytes
            the_longest_key_is_taken_and_one_byte_more_is_refused
            many_of_the_longest_keys_keep_their_order
            the_longest_value_is_taken_and_one_byte_more_is_refused
            values_of_all_sizes_come_back_whole
            gets_see_own_writes_over_committed_ones
            a_read_that_must_not_block_is_answered_or_would_block
            delete_range_removes_the_range_and_nothing_beside_it
            an_empty_tree_is_loaded_with_sorted_entries
            a_load_of_nothing_leaves_an_empty_tree
            loads_that_cannot_be_are_refused
            any_thread_may_go_on_with_a_transaction
        );
        $crate::tests_of!($open, merges:
            operators_do_to_values_what_they_say
            a_transaction_sees_its_own_merges
            blind_merges_at_the_same_time_all_count_or_conflict
            a_merge_with_an_intent_conflicts_as_a_put_does
            snapshots_between_merges_each_see_their_value
            merges_are_applied_exactly_once_across_restarts
            merges_that_cannot_be_are_refused
        );
        $crate::tests_of!($open, patches:
            a_patch_changes_a_document_and_leaves_all_else_alone
            patches_follow_the_own_writes_of_a_transaction
            a_patch_conflicts_as_a_put_does_and_snapshots_stay
            patches_are_applied_exactly_once_across_restarts
        );
        $crate::tests_of!($open, ranges:
            a_range_delete_stands_in_order_with_the_writes_of_its_transaction
            a_range_delete_can_be_taken_back
            older_snapshots_see_what_a_range_delete_took_away
            a_range_delete_conflicts_with_updates_within_it
            a_range_delete_does_not_conflict_beside_its_range
            a_range_delete_loses_nothing_that_it_has_not_seen
            a_range_delete_by_one_message_counts_as_one_write
            a_range_delete_survives_restarts
        );
        $crate::tests_of!($open, isolation:
            a_snapshot_sees_what_was_committed_before_it_and_nothing_later
            expected_gets_see_the_snapshot_and_own_writes
            many_snapshots_each_keep_their_own_state
            a_transaction_sees_its_own_writes
            a_commit_is_visible_to_the_next_transaction
            a_rolled_back_or_dropped_transaction_leaves_nothing
            a_lost_update_is_refused
            write_skew_is_allowed
            the_first_updater_wins_while_it_lives
            a_commit_after_the_snapshot_conflicts_whatever_it_did
            the_loser_of_a_conflict_leaves_nothing_and_frees_its_keys
            keys_are_free_after_commit_and_after_rollback
            transactions_on_different_keys_do_not_conflict
            blind_writes_are_writes
            a_reading_transaction_refuses_writes
            a_past_snapshot_can_be_begun_at_while_it_is_held
            commits_are_numbered_in_their_order
            a_great_transaction_is_atomic
        );
        $crate::tests_of!($open, serializable:
            an_engine_without_read_claims_refuses_serializable_transactions
            write_skew_is_refused
            a_phantom_is_refused_in_a_scanned_range
            the_absence_of_a_key_is_claimed
            blind_writes_and_merges_meet_claims
            a_deleted_range_meets_claims
            a_plain_writer_is_refused_whether_it_writes_before_or_after_the_read
            a_scan_claims_what_it_has_read_and_no_more
            an_overtaken_transaction_reads_on_and_does_not_write
            a_conflict_is_told_at_the_read_of_a_transaction_that_has_written
            read_claims_end_with_their_transaction
            a_large_commit_meets_claims
            serializable_transactions_of_many_threads_have_a_serial_order
        );
        $crate::tests_of!($open, scans:
            every_kind_of_bound_is_kept_in_both_directions
            own_writes_are_overlaid_within_every_kind_of_bound
            deletions_hide_whole_batches
            batches_of_any_size_add_up_to_the_whole
            an_entry_beyond_the_limit_of_a_batch_is_delivered
            a_range_without_entries_is_done_at_once
            a_cursor_is_not_disturbed_by_later_commits
            a_writer_may_write_while_it_scans
            a_cursor_can_jump_ahead
            a_savepoint_undoes_the_writes_after_it
            intents_outlive_a_rollback_to_a_savepoint
        );
        $crate::tests_of!($open, durability:
            receipts_are_ordered_and_nothing_written_needs_no_log
            waiting_brings_the_log_to_the_wanted_durability
            wakers_are_called_once_when_the_commit_is_durable
            closing_wakes_everyone_who_waits
            a_closed_engine_says_so
            a_clean_restart_keeps_everything
            a_restart_brings_nothing_back
            a_crash_keeps_what_was_acknowledged_and_a_prefix_of_the_rest
            a_tree_survives_with_the_commits_that_follow_it
            checkpoints_change_nothing_that_can_be_seen
        );
        $crate::tests_of!($open, figures:
            the_estimate_of_a_tree_is_near_the_truth
            a_narrow_range_is_estimated_below_a_wide_one
            entries_take_room
            live_transactions_are_listed_until_they_end
            live_transactions_are_in_order_while_others_begin
            an_engine_has_a_name_and_statistics
        );
        $crate::tests_of!($open, backups:
            a_backup_leaves_the_store_as_it_was
            a_backup_may_be_made_since_an_earlier_one
            a_backup_is_restored_into_an_empty_engine
            a_damaged_backup_of_the_emulation_is_refused
        );
        $crate::tests_of!($open, large:
            a_transaction_of_thousands_of_writes_is_answered_as_by_a_model
            large_transactions_conflict_where_they_meet
            readers_see_all_of_a_large_commit_or_nothing
        );
        $crate::tests_of!($open, threads:
            the_sum_of_all_accounts_never_changes
            concurrent_increments_are_all_counted
            concurrent_merges_are_all_counted
            concurrent_inserts_of_different_keys_all_arrive
            trees_come_and_go_beside_writers_and_checkpoints
        );
        $crate::tests_of!($open, history:
            every_read_is_explained_by_the_commits_that_its_snapshot_sees
        );
        $crate::tests_of!($open, model:
            random_operations_are_answered_as_by_a_model
        );
    };
}

/// The tests of one module.
#[doc(hidden)]
#[macro_export]
macro_rules! tests_of {
    ($open:expr, $module:ident: $($test:ident)*) => {
        mod $module {
            #[allow(unused_imports, reason = "what opens the engine may need nothing from outside")]
            use super::*;
            $(
                #[test]
                fn $test() {
                    $crate::$module::$test(&$crate::Subject::new($open));
                }
            )*
        }
    };
}

#[cfg(test)]
mod tests {
    /// The text of this file, with the list in it.
    const LIST: &str = include_str!("lib.rs");

    /// The text of every module that has tests.
    const MODULES: [&str; 15] = [
        include_str!("backups.rs"),
        include_str!("trees.rs"),
        include_str!("values.rs"),
        include_str!("merges.rs"),
        include_str!("patches.rs"),
        include_str!("ranges.rs"),
        include_str!("isolation.rs"),
        include_str!("scans.rs"),
        include_str!("serializable.rs"),
        include_str!("durability.rs"),
        include_str!("figures.rs"),
        include_str!("large.rs"),
        include_str!("threads.rs"),
        include_str!("history.rs"),
        include_str!("model.rs"),
    ];

    #[test]
    fn no_test_is_left_out_of_the_list() {
        let mut tests = 0;
        for text in MODULES {
            for line in text.lines().filter_map(|line| line.strip_prefix("pub fn ")) {
                let Some((name, _)) = line.split_once("(subject: &Subject)") else { continue };
                assert!(LIST.lines().any(|line| line.trim() == name), "`{name}` is not in the list of tests");
                tests += 1;
            }
        }
        assert!(tests > 50, "only {tests} tests were found");
    }
}
