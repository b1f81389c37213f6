//! The terminal itself: what it sends, and what is done with it.

mod decode;

pub use decode::{Decoder, LONGEST_PASTE};
