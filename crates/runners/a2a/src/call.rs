//! The operations of A2A that the runner uses, as both bindings write them.

use a2a::{SendMessageRequest, methods};
use reqwest::Method;
use serde_json::{Map, Value, json};
use url::Url;

use crate::card::AgentEndpoint;
use crate::failure::Failure;

/// An operation.
#[derive(Debug, Clone)]
pub(crate) enum Call<'a> {
    /// Sends a message and returns at once.
    Send(&'a SendMessageRequest),
    /// Sends a message and follows its task.
    Stream(&'a SendMessageRequest),
    /// Reads a task with its newest messages.
    Get { task_id: &'a str, history: u32 },
    /// Cancels a task.
    Cancel { task_id: &'a str },
    /// Follows a task.
    Subscribe { task_id: &'a str },
}

/// An operation in HTTP+JSON.
pub(crate) struct HttpCall {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) body: Option<Value>,
}

impl Call<'_> {
    /// The method of JSON-RPC.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Send(_) => methods::SEND_MESSAGE,
            Self::Stream(_) => methods::SEND_STREAMING_MESSAGE,
            Self::Get { .. } => methods::GET_TASK,
            Self::Cancel { .. } => methods::CANCEL_TASK,
            Self::Subscribe { .. } => methods::SUBSCRIBE_TO_TASK,
        }
    }

    /// The parameters of JSON-RPC.
    pub(crate) fn params(&self, tenant: Option<&str>) -> Result<Value, Failure> {
        let mut params = match self {
            Self::Send(request) | Self::Stream(request) => as_json(request)?,
            Self::Get { task_id, history } => json!({ "id": task_id, "historyLength": history }),
            Self::Cancel { task_id } | Self::Subscribe { task_id } => json!({ "id": task_id }),
        };
        if let (Some(tenant), Some(fields)) = (tenant, params.as_object_mut()) {
            fields.insert("tenant".to_owned(), tenant.into());
        }
        Ok(params)
    }

    /// The request of HTTP+JSON.
    pub(crate) fn http(&self, endpoint: &AgentEndpoint) -> Result<HttpCall, Failure> {
        let (method, path, body) = match self {
            Self::Send(request) => {
                (Method::POST, vec!["message:send".to_owned()], Some(as_json(request)?))
            }
            Self::Stream(request) => {
                (Method::POST, vec!["message:stream".to_owned()], Some(as_json(request)?))
            }
            Self::Get { task_id, .. } => (Method::GET, task(task_id, ""), None),
            Self::Cancel { task_id } => {
                (Method::POST, task(task_id, ":cancel"), Some(Value::Object(Map::new())))
            }
            Self::Subscribe { task_id } => (Method::GET, task(task_id, ":subscribe"), None),
        };
        let mut url = endpoint.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(endpoint.tenant.iter()).extend(path);
        }
        if let Self::Get { history, .. } = self {
            url.query_pairs_mut().append_pair("historyLength", &history.to_string());
        }
        Ok(HttpCall { method, url, body })
    }
}

fn task(task_id: &str, operation: &str) -> Vec<String> {
    vec!["tasks".to_owned(), format!("{task_id}{operation}")]
}

fn as_json(request: &SendMessageRequest) -> Result<Value, Failure> {
    serde_json::to_value(request)
        .map_err(|error| Failure::Refused(format!("the message cannot be written: {error}")))
}
