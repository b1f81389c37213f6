//! What the core promises, requirement by requirement.

mod failures;
mod forks;
mod kinds;
mod loading;
mod messages;
mod model;
mod properties;
mod reading;
mod replay;
mod settings;
mod shapes;
mod source;
mod time;
