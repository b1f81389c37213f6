//! What the core promises, requirement by requirement.

mod kinds;
mod loading;
mod messages;
mod model;
mod replay;
mod forks;
mod time;
mod failures;
mod shapes;
mod properties;
