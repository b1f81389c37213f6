//! Web access: allowed addresses, HTTP client, conversion of pages to text.

pub(crate) mod address;
pub(crate) mod client;
pub(crate) mod decode;
mod html;
pub(crate) mod markdown;
mod text;
