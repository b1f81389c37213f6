//! The web: whom a tool may talk to, how it asks, and how a page becomes text.

pub(crate) mod address;
pub(crate) mod client;
pub(crate) mod decode;
mod entities;
mod html;
pub(crate) mod markdown;
mod text;
