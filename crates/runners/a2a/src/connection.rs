//! A connection to a remote agent: its interface, and a client that reaches that host alone.
//!
//! Redirects are not followed, replies are bounded in size and time. A reply that is no valid one is refused.

use std::sync::Arc;
use std::time::{Duration, Instant};

use a2a::{SVC_PARAM_VERSION, SendMessageRequest, SendMessageResponse, Task, VERSION, error_code};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::address;
use crate::call::Call;
use crate::card::{self, AgentEndpoint, Binding, CARD_BYTES_MAX};
use crate::event_stream::EventStream;
use crate::failure::{Failure, words};
use crate::remote_agents::RemoteAgent;

/// Largest reply, in bytes.
pub(crate) const REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How long a reply may take.
const REPLY_WAIT: Duration = Duration::from_secs(30);

/// How long a card and the addresses of a host count.
const FRESH: Duration = Duration::from_secs(60);

/// Newest messages of a task that are read.
const HISTORY: u32 = 100;

/// A connection to a remote agent.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) endpoint: AgentEndpoint,
    agent: Arc<RemoteAgent>,
    client: Client,
    since: Instant,
}

/// A connection to an agent: the last one, as long as its card counts.
pub(crate) async fn connect(agent: &Arc<RemoteAgent>) -> Result<Arc<Connection>, Failure> {
    let mut last = agent.connection.lock().await;
    if let Some(last) = last.as_ref().filter(|last| last.since.elapsed() < FRESH) {
        return Ok(Arc::clone(last));
    }
    *last = None;
    let client = address::client(&agent.rules, &agent.card).await?;
    // The card may need the credentials; its address is the user's own.
    let request = with_credentials(agent, client.get(agent.card.clone()));
    let response = send(request.header(ACCEPT, "application/json")).await?;
    check_redirect(&response)?;
    let status = response.status();
    if !status.is_success() {
        return Err(of_status(status, "its card"));
    }
    let bytes = read(response, CARD_BYTES_MAX).await?;
    let endpoint = card::choose(agent, &bytes)?;
    let client = address::client(&agent.rules, &endpoint.url).await?;
    let (agent, since) = (Arc::clone(agent), Instant::now());
    let connection = Arc::new(Connection { endpoint, agent, client, since });
    *last = Some(Arc::clone(&connection));
    Ok(connection)
}

impl Connection {
    /// Sends a message. The reply comes at once, with the task as it is.
    pub(crate) async fn send(
        &self,
        message: &SendMessageRequest,
    ) -> Result<SendMessageResponse, Failure> {
        let mut message = message.clone();
        let configuration = a2a::SendMessageConfiguration {
            accepted_output_modes: None,
            task_push_notification_config: None,
            history_length: None,
            return_immediately: Some(true),
        };
        message.configuration = Some(configuration);
        self.call(&Call::Send(&message)).await
    }

    /// Sends a message and follows its task.
    pub(crate) async fn stream(
        &self,
        message: &SendMessageRequest,
    ) -> Result<EventStream, Failure> {
        self.open(&Call::Stream(message)).await
    }

    /// The task as it is now.
    pub(crate) async fn task(&self, task_id: &str) -> Result<Task, Failure> {
        let task: Task = self.call(&Call::Get { task_id, history: HISTORY }).await?;
        if task.id != task_id {
            return Err(Failure::Refused("it answered about another task".to_owned()));
        }
        Ok(task)
    }

    /// Cancels a task. One that has ended stays ended, and one that is gone is as good as canceled.
    pub(crate) async fn cancel(&self, task_id: &str) -> Result<(), Failure> {
        match self.call::<Task>(&Call::Cancel { task_id }).await {
            Err(failure) if failure.is_not_found() || failure.is_past() => Ok(()),
            canceled => canceled.map(drop),
        }
    }

    /// Follows a task from now on.
    pub(crate) async fn subscribe(&self, task_id: &str) -> Result<EventStream, Failure> {
        self.open(&Call::Subscribe { task_id }).await
    }

    async fn call<T: DeserializeOwned>(&self, call: &Call<'_>) -> Result<T, Failure> {
        let response = send(self.request(call)?.header(ACCEPT, self.accepts())).await?;
        let value = self.value(response).await?;
        serde_json::from_value(value).map_err(|error| malformed(&error.to_string()))
    }

    async fn open(&self, call: &Call<'_>) -> Result<EventStream, Failure> {
        let response = send(self.request(call)?.header(ACCEPT, "text/event-stream")).await?;
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if response.status().is_success()
            && kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
        {
            return Ok(EventStream::new(response, self.endpoint.binding));
        }
        // An error, or one event as a whole.
        self.value(response).await?;
        Err(malformed("it did not open a stream"))
    }

    fn accepts(&self) -> &'static str {
        match self.endpoint.binding {
            Binding::JsonRpc => "application/json",
            Binding::HttpJson => "application/a2a+json, application/json",
        }
    }

    fn request(&self, call: &Call<'_>) -> Result<RequestBuilder, Failure> {
        let endpoint = &self.endpoint;
        let (builder, body) = match endpoint.binding {
            Binding::JsonRpc => {
                let params = call.params(endpoint.tenant.as_deref())?;
                let method = call.method();
                let body =
                    json!({ "jsonrpc": "2.0", "id": "1", "method": method, "params": params });
                (self.client.post(endpoint.url.clone()), Some(body))
            }
            Binding::HttpJson => {
                let call = call.http(endpoint)?;
                (self.client.request(call.method, call.url), call.body)
            }
        };
        let builder = builder.header(SVC_PARAM_VERSION, VERSION);
        let builder = with_credentials(&self.agent, builder);
        Ok(match body {
            Some(body) => builder.header(CONTENT_TYPE, "application/json").body(body.to_string()),
            None => builder,
        })
    }

    /// The value of a reply, or its error.
    async fn value(&self, response: Response) -> Result<Value, Failure> {
        check_redirect(&response)?;
        let status = response.status();
        let bytes = read(response, REPLY_BYTES_MAX).await?;
        let json = serde_json::from_slice(&bytes);
        match (self.endpoint.binding, json) {
            (_, Err(_)) if !status.is_success() => Err(of_status(status, "it")),
            (_, Err(error)) => Err(malformed(&error.to_string())),
            (Binding::JsonRpc, Ok(json)) => match result(json) {
                Err(Failure::Refused(_)) if !status.is_success() => Err(of_status(status, "it")),
                other => other,
            },
            (Binding::HttpJson, Ok(json)) if status.is_success() => Ok(json),
            (Binding::HttpJson, Ok(json)) => Err(http_error(status, &json)),
        }
    }
}

/// The result of a JSON-RPC response.
pub(crate) fn result(mut json: Value) -> Result<Value, Failure> {
    if let Some(error) = json.get("error").filter(|error| error.is_object()) {
        let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
        let code = i32::try_from(code).unwrap_or(error_code::INTERNAL_ERROR);
        let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
        let reasons = error.get("data").and_then(Value::as_array).into_iter().flatten();
        let mut reasons = reasons.filter_map(|detail| detail.get("reason")?.as_str());
        let is_busy = reasons.any(|reason| matches!(reason, "RESOURCE_EXHAUSTED" | "UNAVAILABLE"));
        return Err(if code == error_code::INTERNAL_ERROR || is_busy {
            Failure::Unreachable(format!("it has an error of its own: {}", words(message)))
        } else {
            Failure::error(code, message)
        });
    }
    match json.get_mut("result") {
        Some(result) => Ok(result.take()),
        None => Err(malformed("it is no JSON-RPC response")),
    }
}

/// The error of a response of HTTP+JSON: by the reason in its details, or by its status.
pub(crate) fn http_error(status: StatusCode, json: &Value) -> Failure {
    let error = json.get("error").unwrap_or(json);
    let details = error.get("details").and_then(Value::as_array);
    let mut reasons =
        details.into_iter().flatten().filter_map(|detail| detail.get("reason")?.as_str());
    let code = reasons.find_map(a2a::reason_to_error_code);
    let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
    match code.filter(|code| *code != error_code::INTERNAL_ERROR) {
        Some(code) => Failure::error(code, message),
        None => of_status(status, "it"),
    }
}

fn with_credentials(agent: &RemoteAgent, builder: RequestBuilder) -> RequestBuilder {
    match &agent.credentials {
        Some((name, value)) => builder.header(name.clone(), value.clone()),
        None => builder,
    }
}

/// Sends a request and waits for the head of its response.
async fn send(builder: RequestBuilder) -> Result<Response, Failure> {
    let sent = tokio::time::timeout(REPLY_WAIT, builder.send()).await;
    let sent = sent.map_err(|_| Failure::Unreachable("it does not answer".to_owned()))?;
    sent.map_err(|error| unreachable(&error))
}

/// The body of a response, up to a size.
async fn read(mut response: Response, bytes_max: usize) -> Result<Vec<u8>, Failure> {
    let reading = async {
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(&error))? {
            if bytes.len() + chunk.len() > bytes_max {
                let reason = format!("its answer has more than {bytes_max} bytes");
                return Err(Failure::Refused(reason));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    };
    let read = tokio::time::timeout(REPLY_WAIT, reading).await;
    read.map_err(|_| Failure::Unreachable("its answer takes too long".to_owned()))?
}

pub(crate) fn unreachable(error: &reqwest::Error) -> Failure {
    let mut reason = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        reason = cause.to_string();
        source = cause.source();
    }
    Failure::Unreachable(words(&reason))
}

fn check_redirect(response: &Response) -> Result<(), Failure> {
    if response.status().is_redirection() {
        let reason =
            "it redirects to another address, which is not followed: name that address in `card`";
        return Err(Failure::Refused(reason.to_owned()));
    }
    Ok(())
}

/// The failure that a status alone tells.
fn of_status(status: StatusCode, what: &str) -> Failure {
    let reason = format!("{what} answers with HTTP {}", status.as_u16());
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Failure::Refused(format!("{reason}: it does not accept our credentials"))
        }
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Failure::Unreachable(reason),
        status if status.is_server_error() => Failure::Unreachable(reason),
        _ => Failure::Refused(reason),
    }
}

pub(crate) fn malformed(reason: &str) -> Failure {
    Failure::Refused(format!("its answer is not one of A2A: {}", words(reason)))
}
