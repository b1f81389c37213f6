//! Control socket: its path, server and client.

mod client;
mod server;
mod socket_path;

pub(crate) use client::{Clients, ControlClient};
pub(crate) use server::ControlServer;
pub(crate) use socket_path::{check, directory, instances, socket_of};
