//! Control socket: its path, server and client.

mod client;
mod server;
mod socket_path;

pub(crate) use client::{Client, Clients};
pub(crate) use server::Server;
pub(crate) use socket_path::{check, directory, instances, socket_of};
