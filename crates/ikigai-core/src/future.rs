//! The boxed future of our traits.

use std::pin::Pin;

/// Boxed future that another thread may poll.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
