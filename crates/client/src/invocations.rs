//! Invocations: several targets dispatched at once.

use std::num::NonZeroU32;

use antiphon_core::{Invocation, InvocationResult};
use reqwest::Method;
use serde::Serialize;

use crate::client::{Client, Query};
use crate::error::ClientError;

/// How long the server waits for results.
#[derive(Serialize)]
struct WaitQuery {
    wait_s: Option<NonZeroU32>,
}

impl Client {
    /// Dispatches the targets of an invocation, each of which becomes a task. Returns their results, or the
    /// ids of the tasks when they are detached or have not ended within `wait_s` seconds. With the same
    /// `key` they are the same tasks.
    pub async fn invoke(
        &self,
        invocation: &Invocation,
        wait_s: Option<NonZeroU32>,
        key: Option<&str>,
    ) -> Result<InvocationResult, ClientError> {
        let query = Query::of(&WaitQuery { wait_s })?;
        let request = self.request(Method::POST, &["v1", "invocations"], query)?;
        self.send_json(request, invocation, key).await
    }
}
