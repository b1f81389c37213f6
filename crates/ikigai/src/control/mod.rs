//! Control socket: its path, server and client.

mod client;
mod server;
mod socket_path;
mod store_requests;

pub(crate) use client::{Clients, ControlClient};
pub(crate) use server::ControlServer;
pub(crate) use socket_path::{check, directory, instances, socket_of};
pub(crate) use store_requests::StoreRequests;
