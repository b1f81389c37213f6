//! Words of a panic are not written across the screen.

use std::io::Write as _;
use std::panic;
use std::sync::{Mutex, PoisonError};

/// Message of the last panic while a screen was visible.
static SAID: Mutex<Option<String>> = Mutex::new(None);

/// Installs a panic hook that keeps messages off the screen.
/// A panic that ends the program is printed on standard error after the screen is gone;
/// [`take_panic`] returns others. Without a screen the previous hook runs.
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

/// Takes the message of the last panic that was kept.
pub fn take_panic() -> Option<String> {
    SAID.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Prints the panic that ends this program, if any.
pub(super) fn print_message() {
    if std::thread::panicking()
        && let Some(said) = take_panic()
    {
        // A failure here cannot be reported anywhere.
        let _ = writeln!(std::io::stderr(), "error: {said}");
    }
}
