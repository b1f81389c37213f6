//! ikigai: an operating environment for living LLM agents.

mod agents;
mod arguments;
mod config;
mod cost;
mod diagnostics;
mod doctor;
mod index;
mod log;
mod models;
mod output;
mod place;
mod run;
mod tool_list;
mod tools;
mod world;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Verb};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    ikigai_tools::process::protect();
    diagnostics::start();
    let ended = match arguments.verb {
        Verb::Run(order) => run::run(arguments.db, &order),
        Verb::Log(order) => log::log(arguments.db, &order),
        Verb::Agents(order) => agents::agents(arguments.db, &order),
        Verb::Cost(order) => cost::cost(arguments.db, &order),
        Verb::Models(order) => models::models(&order),
        Verb::Tools(order) => tool_list::tools(arguments.db, &order),
        Verb::Doctor(order) => doctor::doctor(arguments.db, &order),
    };
    ended.unwrap_or_else(|error| output::report(&error))
}
