//! The terminal front end: screen, input, completion, rendering.
//!
//! It sends requests to the engine, receives its events, and reads pages of rows. It draws into a
//! [`Grid`](paint::Grid) with code that knows no terminal, so that a program without one can show
//! the same.
//!
//! Modules use only modules of the lines below them:
//!
//! ```text
//! screen · plain                      front ends: a full screen, appended lines
//! control                             requests of the control socket
//! driver                              executes effects, loads pages, passes events on
//! app                                 layers, panes, roster
//! protocol · outbox · complete        messages of the socket, unsent lines, completion
//! drafts · keys · list · rows · scrollback
//! input · markdown · paint · terminal
//! key · signs · text                  key presses, symbols, wrapping
//! line · width                        styled lines, columns of characters
//! look                                roles and styles of text
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod app;
pub mod complete;
pub mod control;
pub mod drafts;
pub mod driver;
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
pub mod protocol;
pub mod rows;
pub mod screen;
pub mod scrollback;
pub mod signs;
pub mod terminal;
pub mod text;
pub mod width;
