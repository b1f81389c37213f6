//! The terminal: what is on the screen, and what keys do.
//!
//! A front end like any other: it says intents to the engine, is told updates, and reads pages of
//! rows. Everything that can be seen is drawn into a [`Grid`](paint::Grid) by code that knows no
//! terminal, so that a program without one shows the same.

pub mod app;
pub mod complete;
pub mod control;
pub mod drafts;
pub mod input;
pub mod key;
pub mod keys;
pub mod line;
pub mod list;
pub mod look;
pub mod markdown;
pub mod outbox;
pub mod paint;
pub mod plain;
pub mod rows;
pub mod screen;
pub mod scrollback;
pub mod terminal;
pub mod text;
pub mod width;
