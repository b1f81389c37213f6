//! The suite that every store must pass.
//!
//! An engine's test target defines how its stores are made and runs every check as a separate
//! test:
//!
//! ```text
//! use ikigai_testkit::conformance::Rig;
//!
//! struct SqliteRig { /* a temporary directory, the store, the second process */ }
//! impl SqliteRig { fn new() -> Self { … } }
//! impl Rig for SqliteRig { … }
//!
//! ikigai_testkit::store_conformance!(SqliteRig::new());
//! ```
//!
//! The expression is evaluated once per test and must yield a fresh, empty log each time. Checks
//! run under [`crate::block_on`], which is no tokio runtime.
//!
//! A check is a function in one of the folder's modules and one line in `store_checks!`.

/// Asserts that a commit was refused with an error that fits the pattern.
macro_rules! assert_refused {
    ($outcome:expr, $error:pat $(if $guard:expr)? $(, $($label:tt)+)?) => {
        match &$outcome {
            Err($error) $(if $guard)? => {}
            other => panic!("{other:?} {}", assert_refused!(@label $($($label)+)?)),
        }
    };
    (@label) => { "" };
    (@label $($label:tt)+) => { format_args!($($label)+) };
}

mod agents;
mod budgets;
mod identity;
mod jobs;
mod leases;
mod mail;
mod outlines;
mod read_marks;
mod requests;
mod rows;
mod samples;
mod search;
mod side_tables;
mod workbench;

use std::sync::Arc;

use ikigai_core::{AgentId, RowRef};
use ikigai_store::Log;

/// A log on which two processes work.
pub trait Rig {
    /// The first process's store; the same one each time.
    fn store(&self) -> Arc<dyn Log>;

    /// The second process's store on the same log; made at the first call, then the same one.
    fn second(&self) -> Arc<dyn Log>;

    /// Ends the second process as a crash does: its lock is gone, and it gives nothing back.
    ///
    /// Checks drop the store from [`Self::second`] before, and do not request it again.
    fn kill_second(&self);

    /// Appends a row without any check, as an older, newer or faulty program might.
    ///
    /// Its kind name, control flag and time are arbitrary.
    fn inject(
        &self,
        agent: AgentId,
        kind_name: &str,
        content: Option<&str>,
        data: Option<&str>,
        control: bool,
    ) -> RowRef;
}

/// Makes one `#[test]` per check; see [`crate::conformance`].
#[macro_export]
macro_rules! store_conformance {
    ($rig:expr) => {
        $crate::store_checks! { [$crate::store_conformance_tests] { $rig } }
    };
}

/// Makes tests of the list of checks.
#[doc(hidden)]
#[macro_export]
macro_rules! store_conformance_tests {
    ({ $rig:expr } $($module:ident: $($check:ident)*;)*) => {
        $($(
            #[test]
            fn $check() {
                $crate::conformance::checks::$check(&$rig);
            }
        )*)*
    };
}

/// The list of all checks, by module.
#[doc(hidden)]
#[macro_export]
macro_rules! store_checks {
    ([$($callback:tt)*] $argument:tt) => {
        $($callback)* ! {
            $argument
            rows:
                insert_and_read_back_every_kind
                insert_refuses_unknown_kind
                foreign_rows_are_read_as_they_are
                row_without_owner_is_refused
                sequence_has_no_gaps
                rows_of_several_agents_keep_their_order
                order_ignores_timestamps
                range_start_exclusive_end_inclusive
                rows_of_several_spans_come_in_one_go
                an_agent_is_opened_with_one_question
                control_rows_come_newest_first
                usage_rows_come_newest_first
                messages_of_spans_are_counted
                command_text_round_trips
                clear_and_rewind_delete_no_rows
            ;
            agents:
                fork_is_atomic
                an_empty_batch_is_stored_as_nothing
                contradicting_batches_are_refused
                names_are_valid_and_unique_among_the_living
                times_are_microseconds_on_both_engines
                sessions_are_told_in_the_order_they_were_made
                agents_are_told_with_head_time_and_owner
                agents_are_made_once_and_in_a_session
                an_agent_is_made_with_its_first_rows
                relatives_names_and_the_dead_are_found
            ;
            outlines:
                outlines_name_the_row_that_decides
                outlines_show_the_living_and_the_dead
                merges_are_found_with_the_rows_that_bend_the_path
            ;
            identity:
                names_are_unique_in_a_workspace_only
                a_session_is_a_directory_of_a_machine
                rows_and_mail_keep_their_authors
            ;
            leases:
                stale_lease_write_is_refused
                lease_free_rows_keep_sequence
                only_fork_and_kill_rows_need_no_lease
                one_writer_per_agent_dead_owner_replaced_at_once
                second_process_watches_forks_kills_and_mails_only
                a_lease_that_is_held_is_kept
                a_lease_given_back_is_free
                things_are_made_before_rows
            ;
            jobs:
                processes_are_listed_until_they_end
                refused_processes_leave_no_record
                notices_are_mail_about_a_process
            ;
            requests:
                a_request_is_taken_by_the_holder_and_answered_once
            ;
            mail:
                mail_is_delivered_once_bounced_or_withdrawn
                mail_to_the_dead_is_refused
                mail_names_a_sender_if_an_agent_sent_it
            ;
            side_tables:
                drafts_grow_and_go_with_the_rows
                drafts_are_fenced
                open_runs_are_told_until_they_end
                blobs_are_told_when_whole
                snapshots_are_found_at_or_before_a_row
                snapshots_are_made_of_rows_that_came
                watch_tells_of_commits
                the_pulse_beats_with_rows_and_mail_only
                effects_of_a_failed_batch_are_taken_back
            ;
            read_marks:
                marks_of_readers_are_only_raised
            ;
            budgets:
                reservations_keep_a_tree_below_its_cap
                a_repeated_reservation_counts_once
                totals_of_a_cap_follow_usage_rows
                reservations_end_with_process_and_lease
                processes_reserve_one_after_the_other
                agents_below_a_cap_are_counted
            ;
            search:
                rows_are_found_by_their_words
                words_without_spaces_are_found_within_others
                tool_output_is_found_in_rows_and_blobs
                what_is_typed_has_no_meaning_but_quotes_and_stars
                hits_are_narrowed_by_agent_kind_model_time_and_directory
                hits_come_newest_first_in_pages
                the_best_hits_come_first_if_they_are_asked_for
                rows_that_cannot_be_read_are_searched_too
            ;
        }
    };
}

/// Makes functions of the listed checks; the compiler reports an unlisted one as dead.
macro_rules! check_functions {
    ({} $($module:ident: $($check:ident)*;)*) => {
        $($(
            /// Runs the check of this name; see its definition.
            pub fn $check(rig: &dyn super::Rig) {
                crate::block_on(super::$module::$check(rig));
            }
        )*)*
    };
}

/// The checks, each run to its end.
pub mod checks {
    store_checks! { [check_functions] {} }
}
