//! Tests of the testkit itself: a fake that is not honest makes every other test lie.

mod kit;
mod memory;
