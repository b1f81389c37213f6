//! What the modules of the terminal do together, and what holds whatever is typed.

mod input;
