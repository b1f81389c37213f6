//! Connections for queries: made at the first use, and again after they broke.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::timeout;

use super::connect::{ConnectionRole, Link, PostgresTarget};
use super::errors::{ServerError, sql_error};
use super::values::{QueryFailure, Result};
use crate::error::StoreError;

/// Timeout of a reply: longer than the server's own.
pub(super) const PATIENCE: Duration = Duration::from_secs(35);

/// One connection on which queries of one role run concurrently.
pub(super) struct ReadConnection {
    target: Arc<PostgresTarget>,
    role: ConnectionRole,
    link: Mutex<Option<Arc<Link>>>,
}

impl ReadConnection {
    pub(super) fn new(
        target: Arc<PostgresTarget>,
        role: ConnectionRole,
        link: Option<Link>,
    ) -> Self {
        Self {
            target,
            role,
            link: Mutex::new(link.map(Arc::new)),
        }
    }

    /// Returns the connection. Call it on the store's runtime.
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

    /// Runs a short query.
    pub(super) async fn ask<T, F>(&self, read: impl FnOnce(Arc<Link>) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T>>,
    {
        let link = self.link().await?;
        if let Ok(answer) = timeout(PATIENCE, read(link)).await {
            return answer.map_err(|failure| self.store_error(failure));
        }
        // A stopped server answers no other query either.
        self.link.lock().await.take();
        Err(ServerError::Silence.store_error(self.target.url()))
    }

    fn store_error(&self, failure: QueryFailure) -> StoreError {
        match failure {
            QueryFailure::Sql(error) => sql_error(self.target.url(), error),
            QueryFailure::Value(what) => StoreError::Value(what),
        }
    }
}
