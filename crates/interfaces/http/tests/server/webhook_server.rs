//! A server that takes events, and a sender that signs them.

use antiphon_core::{AgentName, HandlingMode, Salience, SourceName, Wake};
use antiphon_http::{
    Scheme, WEBHOOK_BODY_BYTES_MAX, Webhook, WebhookContent, WebhookSecret, Webhooks,
};
use antiphon_interface_transport::ServerLimits;
use antiphon_keys::RateLimit;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::Utc;
use ring::hmac;

use crate::client::{Reply, say};
use crate::world::{TestServer, with_webhooks};

pub(crate) const SECRET: &str = "a secret of the source, and of nobody else";

/// A source whose events are read by `reviewer`.
pub(crate) fn webhook(source: &str, scheme: Scheme) -> Webhook {
    Webhook {
        source: SourceName::parse(source).unwrap(),
        agent: AgentName::parse("reviewer").unwrap(),
        secret: WebhookSecret::new(&SECRET.into()).unwrap(),
        scheme,
        reads: WebhookContent::Body,
        wake: Wake::Yes,
        mode: HandlingMode::Queue,
        salience: Some(Salience::Important),
        body_bytes_max: WEBHOOK_BODY_BYTES_MAX,
        rate: None,
    }
}

/// The sources that most tests need.
pub(crate) fn sources() -> Vec<Webhook> {
    let small = Webhook { body_bytes_max: 100, ..webhook("small", Scheme::Standard) };
    let agent = AgentName::parse("nobody").unwrap();
    let unread = Webhook { agent, ..webhook("unread", Scheme::Standard) };
    let whole = Webhook { reads: WebhookContent::Payload, ..webhook("whole", Scheme::Standard) };
    let twice = Some(RateLimit::per_minute(2).unwrap());
    let rare = Webhook { rate: twice, ..webhook("rare", Scheme::Standard) };
    let quiet = Webhook { wake: Wake::No, ..webhook("quiet", Scheme::Standard) };
    let standard = webhook("ci", Scheme::Standard);
    vec![standard, webhook("github", Scheme::Github), small, unread, whole, rare, quiet]
}

pub(crate) async fn webhook_server() -> TestServer {
    webhook_server_with(ServerLimits::default()).await
}

pub(crate) async fn webhook_server_with(limits: ServerLimits) -> TestServer {
    TestServer::with_config(|mut deps| {
        deps.limits = limits;
        with_webhooks(deps, Some(Webhooks::new(sources()).unwrap()))
    })
    .await
}

/// A delivery before it is sent.
#[derive(Clone)]
pub(crate) struct Delivery {
    pub(crate) source: &'static str,
    pub(crate) id: String,
    pub(crate) timestamp: String,
    pub(crate) body: String,
    pub(crate) secret: String,
    /// Further lines of the head.
    pub(crate) more: String,
}

impl Delivery {
    pub(crate) fn new(source: &'static str, id: &str, body: &str) -> Self {
        Self {
            source,
            id: id.to_owned(),
            timestamp: Utc::now().timestamp().to_string(),
            body: body.to_owned(),
            secret: SECRET.to_owned(),
            more: String::new(),
        }
    }

    pub(crate) fn signature(&self) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.secret.as_bytes());
        let signed = format!("{}.{}.{}", self.id, self.timestamp, self.body);
        format!("v1,{}", STANDARD.encode(hmac::sign(&key, signed.as_bytes())))
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        vec![
            format!("webhook-id: {}", self.id),
            format!("webhook-timestamp: {}", self.timestamp),
            format!("webhook-signature: {}", self.signature()),
        ]
    }

    pub(crate) async fn send(&self, server: &TestServer) -> Reply {
        self.send_with(server, &self.lines()).await
    }

    /// With these lines in place of those that sign it.
    pub(crate) async fn send_with(&self, server: &TestServer, lines: &[String]) -> Reply {
        say(server.address, &self.text(server, lines)).await
    }

    pub(crate) fn text(&self, server: &TestServer, lines: &[String]) -> String {
        format!(
            "POST /v1/events/{} HTTP/1.0\r\nhost: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n{}{}\r\n\r\n{}",
            self.source,
            server.address,
            self.body.len(),
            self.more,
            lines.join("\r\n"),
            self.body
        )
    }
}

/// The line by which GitHub signs a body.
pub(crate) fn github(body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let tag = hmac::sign(&key, body.as_bytes());
    let digits: Vec<String> = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("x-hub-signature-256: sha256={}", digits.concat())
}
