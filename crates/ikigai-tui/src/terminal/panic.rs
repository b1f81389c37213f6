//! Words of a panic are not written across the screen.

use std::io::Write as _;
use std::panic;
use std::sync::{Mutex, PoisonError};

/// What the last panic said while a screen was shown.
static SAID: Mutex<Option<String>> = Mutex::new(None);

/// From here on, panics while a screen is shown are kept: those that end the program are told on
/// standard error when its screen is gone, others can be had by [`take_panic`]. Without a screen all
/// is as before.
pub fn hold_panics() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if super::modes::is_entered() {
            let said = info.to_string();
            *SAID.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
        } else {
            before(info);
        }
    }));
}

/// What the last panic said that was kept.
pub fn take_panic() -> Option<String> {
    SAID.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Tells what ends this program, if a panic does.
pub(super) fn tell() {
    if std::thread::panicking()
        && let Some(said) = take_panic()
    {
        // Nobody is there to be told that this fails.
        let _ = writeln!(std::io::stderr(), "error: {said}");
    }
}
