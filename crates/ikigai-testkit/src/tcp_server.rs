//! A server on a free port of the loopback interface, with a thread for each connection.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time limit of every wait; only an endless test reaches it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The thread that accepts connections; it ends on drop.
#[derive(Debug)]
pub(crate) struct TcpServer {
    pub(crate) address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TcpServer {
    /// Starts to listen; `accept` is called for each connection, in order.
    ///
    /// Failures of connections are ignored: many tests end clients in the middle.
    pub(crate) fn start<S>(mut accept: impl FnMut() -> S + Send + 'static) -> Self
    where
        S: FnOnce(TcpStream) -> io::Result<()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let serve = accept();
                thread::spawn(move || {
                    let stream = stream?;
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(PATIENCE))?;
                    stream.set_write_timeout(Some(PATIENCE))?;
                    serve(stream)
                });
            }
        });
        let thread = Some(thread);
        Self {
            address,
            is_over,
            thread,
        }
    }
}

impl Drop for TcpServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Locks a mutex, also after a panic of another thread.
pub(crate) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
