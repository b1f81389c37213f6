//! Slash commands: what each prints and stores, and that a restart shows and sends the same.

mod arguments;
mod cost;
mod lines;
mod message_size;
mod pins;
mod search;
mod settings;
mod summary_edit;
mod support;
mod table;
mod time;
mod turns;
mod window;
