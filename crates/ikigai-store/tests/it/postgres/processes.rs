//! Several processes on one server, some of which die.

use ikigai_testkit::postgres::Database;

use crate::crash::kill_writers;
use crate::processes::{dead_owner_is_replaced, lose_no_row, watches_forks_kills_and_mails_only};
use crate::support::{Dice, is_long};

/// N5a, D12b: only the holder writes, and there are no gaps.
#[test]
fn many_processes_lose_no_row() {
    lose_no_row(&Database::fresh().url());
}

/// N5c: a process without the lease watches, forks, kills and mails an agent, no more.
#[test]
fn second_process_watches_forks_kills_and_mails_only() {
    watches_forks_kills_and_mails_only(&Database::fresh().url());
}

/// N5a: a killed owner is replaced as soon as the server notices its end.
#[test]
fn one_writer_per_agent_dead_owner_replaced_at_once() {
    let database = Database::fresh();

    dead_owner_is_replaced(&database.url(), || {
        let listening = "SELECT FROM pg_stat_activity
             WHERE datname = current_database() AND application_name = 'ikigai listen'";
        // The process that takes over listens too.
        while database.sql(listening).len() > 1 {
            std::thread::yield_now();
        }
    });
}

/// S2-28, D12b, D13b: acknowledged rows survive kills, without gaps and with whole forks.
#[test]
fn abort_then_restart_restores_all() {
    let database = Database::fresh();
    let kills = if is_long() { 200 } else { 8 };
    let one = |sql: &str| {
        let rows = database.sql(sql);
        rows[0][0].as_deref().unwrap().parse().unwrap()
    };

    let forks = kill_writers(&database.url(), kills, &mut Dice::roll(), &one);

    assert!(forks > 0, "no fork was ever made");
}
