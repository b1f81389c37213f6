//! Memory over the wire: requests of long conversations as four kinds of server get them.

mod day;
mod facts;
mod long_turns;
mod prompt_cache;
mod summariser;
mod support;
