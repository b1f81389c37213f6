//! Runs futures in plain tests, without a runtime.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Time limit of a future.
///
/// It is far longer than any test needs on a busy machine, so only an endless future reaches it.
const PATIENCE: Duration = Duration::from_mins(1);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future to its end on this thread, without a runtime.
///
/// Panics after a minute, because an endless test gives no information.
pub fn block_on<F: Future>(future: F) -> F::Output {
    block_on_for(PATIENCE, future)
}

/// Runs a future with another time limit, such as for writing a large store.
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
