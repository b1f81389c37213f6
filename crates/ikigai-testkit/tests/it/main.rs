//! Tests of the testkit: a wrong fake would make other tests worthless.

mod generate;
mod kit;
mod memory;
