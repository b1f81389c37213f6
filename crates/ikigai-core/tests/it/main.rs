//! Tests of the core, by requirement.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail the test at once, as the tests themselves do"
)]

mod failures;
mod files_shapes;
mod forks;
mod fuzz;
mod images;
mod kinds;
mod loading;
mod messages;
mod model;
mod pairing;
mod process_shapes;
mod properties;
mod reading;
mod repairs;
mod replay;
mod scale;
mod settings;
mod shapes;
mod source;
mod table;
mod time;
mod tool_data;
mod window;
