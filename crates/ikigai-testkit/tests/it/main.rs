//! Tests of the testkit itself: a fake that is not honest makes every other test lie.

mod generate;
mod kit;
mod memory;
