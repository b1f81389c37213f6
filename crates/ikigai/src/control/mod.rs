//! The control socket: a file beside which others find this program, whoever listens there, and
//! whoever asks.

mod client;
mod place;
mod server;

pub(crate) use client::{Client, Clients};
pub(crate) use place::{check, directory, instances, socket_of};
pub(crate) use server::Server;
