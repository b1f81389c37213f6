//! `ikigai acp`, as editors use it.

mod client;
mod sessions;
mod turns;
