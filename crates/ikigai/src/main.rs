//! ikigai: a terminal coding agent that never loses history and can fork.

mod acp;
mod agents;
mod allocator;
mod arguments;
mod background;
mod blame;
mod completions;
mod config;
mod config_list;
mod context;
mod control;
mod copy;
mod cost;
mod ctl;
mod descriptors;
mod diagnostics;
mod diff;
mod doctor;
mod export;
mod headless;
mod identity;
mod inbox;
mod index;
mod keepers;
mod last_agent;
mod legacy_import;
mod log;
mod machine;
mod man;
mod mcp;
mod models;
mod output;
mod package_caches;
mod private_file;
mod progress_reader;
mod run;
mod runtime;
mod screen;
mod search;
mod secret_paths;
mod sql;
mod store;
mod store_location;
mod tool_list;
mod tools;
mod trust;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;

use arguments::{Arguments, Verb};

fn main() -> ExitCode {
    allocator::use_one_heap();
    let arguments = Arguments::read();
    ikigai_tools::process::protect();
    diagnostics::start();
    let ended = descriptors::check().and_then(|()| match arguments.verb {
        None if arguments.screen.headless => headless::headless(arguments.db, &arguments.screen),
        None => screen::screen(arguments.db, &arguments.screen),
        Some(verb) => carry_out(arguments.db, verb),
    });
    ended.unwrap_or_else(|error| output::report(&error))
}

fn carry_out(db: Option<String>, verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::Run(order) => run::run(db, &order),
        Verb::Acp(order) => acp::acp(db, &order),
        Verb::Log(order) => log::log(db, &order),
        Verb::Diff(order) => diff::diff(db, &order),
        Verb::Blame(order) => blame::blame(db, &order),
        Verb::Agents(order) => agents::agents(db, &order),
        Verb::Workspace(order) => workspace::workspace(db, &order),
        Verb::Inbox(order) => inbox::inbox(db, &order),
        Verb::Search(order) => search::search(db, &order),
        Verb::Sql(order) => sql::sql(db, &order),
        Verb::Export(order) => export::export(db, &order),
        Verb::Import(order) => export::import(db, &order),
        Verb::Copy(order) => copy::copy(&order),
        Verb::Cost(order) => cost::cost(db, &order),
        Verb::Models(order) => models::models(&order),
        Verb::Mcp(order) => mcp::mcp(db, &order),
        Verb::Tools(order) => tool_list::tools(db, &order),
        Verb::Trust(order) => trust::trust_command(&order),
        Verb::Doctor(order) => doctor::doctor(db, &order),
        Verb::Ctl(order) => ctl::ctl(&order),
        Verb::Config(order) => config_list::config(db, &order),
        Verb::Completions(order) => completions::completions(&order),
        Verb::Man(order) => man::man(&order),
        Verb::Keeper => keepers::keep(),
    }
}
