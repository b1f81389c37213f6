//! Connections that are asked: made when they are first needed, and anew when they broke.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::timeout;

use super::connect::{Link, Role, Target};
use super::errors::{Cause, sql_error};
use super::values::{Failure, Result};
use crate::error::StoreError;

/// How long an answer may take: longer than the server allows itself.
pub(super) const PATIENCE: Duration = Duration::from_secs(35);

/// One connection for all questions of a kind, which are asked without waiting for each other.
pub(super) struct Reader {
    target: Arc<Target>,
    role: Role,
    link: Mutex<Option<Arc<Link>>>,
}

impl Reader {
    pub(super) fn new(target: Arc<Target>, role: Role, link: Option<Link>) -> Self {
        Self {
            target,
            role,
            link: Mutex::new(link.map(Arc::new)),
        }
    }

    /// The connection. To be called on the store's runtime.
    pub(super) async fn link(&self) -> Result<Arc<Link>, StoreError> {
        let mut slot = self.link.lock().await;
        if let Some(link) = slot.as_ref().filter(|link| !link.client.is_closed()) {
            return Ok(Arc::clone(link));
        }
        let link = self.target.connect(self.role).await;
        let link = Arc::new(link.map_err(|cause| cause.store_error(self.target.url()))?);
        *slot = Some(Arc::clone(&link));
        Ok(link)
    }

    /// Asks something that is answered at once.
    pub(super) async fn ask<T, F>(&self, read: impl FnOnce(Arc<Link>) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T>>,
    {
        let link = self.link().await?;
        if let Ok(answer) = timeout(PATIENCE, read(link)).await {
            return answer.map_err(|failure| self.store_error(failure));
        }
        // A server that is stopped answers nobody else either.
        self.link.lock().await.take();
        Err(Cause::Silence.store_error(self.target.url()))
    }

    fn store_error(&self, failure: Failure) -> StoreError {
        match failure {
            Failure::Sql(error) => sql_error(self.target.url(), error),
            Failure::Value(what) => StoreError::Value(what),
        }
    }
}
