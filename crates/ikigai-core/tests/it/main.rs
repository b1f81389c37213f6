//! What the core promises, requirement by requirement.

mod failures;
mod forks;
mod fuzz;
mod kinds;
mod loading;
mod messages;
mod model;
mod pairing;
mod properties;
mod reading;
mod replay;
mod settings;
mod shapes;
mod source;
mod table;
mod time;
mod tool_data;
mod window;
