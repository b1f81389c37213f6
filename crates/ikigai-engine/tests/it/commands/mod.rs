//! Slash commands: output, stored rows, and the same screen and request after a restart.

mod arguments;
mod budget;
mod cost;
mod inbox;
mod lines;
mod message_size;
mod pins;
mod restored_files;
mod search;
mod settings;
mod summary_edit;
mod support;
mod table;
mod time;
mod turns;
mod window;
