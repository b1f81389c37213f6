//! Running futures in plain tests, and how many cases a test runs.

use std::env;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::ChosenEngine;

/// How long a future may take in all; far longer than any test needs on a busy machine, so that
/// only one that would never end is given up.
const PATIENCE: Duration = Duration::from_mins(1);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future to its end on this thread, without a runtime.
///
/// Panics if it takes longer than a minute: a test that waits for ever says nothing.
pub fn block_on<F: Future>(future: F) -> F::Output {
    block_on_for(PATIENCE, future)
}

/// The same for what takes its time, such as writing a large store to a busy disk.
pub(crate) fn block_on_for<F: Future>(patience: Duration, future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let deadline = Instant::now() + patience;
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(
            !left.is_zero(),
            "the future has not ended within {patience:?}"
        );
        thread::park_timeout(left);
    }
}

/// An engine takes so many times as long for a case as memory.
const SLOWER: u32 = 8;

/// Says how many cases to run: `long` of them if `IKIGAI_TEST_LONG=1`, else `short`; an eighth of
/// that where the log is on an engine.
pub fn cases(short: u32, long: u32) -> u32 {
    let cases = if env::var_os("IKIGAI_TEST_LONG").is_some_and(|value| value == "1") {
        long
    } else {
        short
    };
    if ChosenEngine::here() == ChosenEngine::Memory {
        cases
    } else {
        cases.div_ceil(SLOWER)
    }
}
