//! Logins, at a server with an authorization server of its own.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use antiphon_mcp::oauth::{Authorization, AuthorizeError, LoginFile};
use antiphon_mcp::{HttpConfig, Launch, Mcp, McpOptions, ServerName};
use axum::extract::{Json, Query, State};
use axum::http::header::{AUTHORIZATION, LOCATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::task::JoinSet;

use crate::world::{START, config, status, text};

type Fields = BTreeMap<String, String>;

/// What the server knows, and how it behaves.
#[derive(Default)]
struct Known {
    base: String,
    /// Named as authorization server in place of this one.
    elsewhere: Option<String>,
    /// How long tokens hold, in seconds.
    holds_s: u64,
    /// Refuses to renew.
    is_final: bool,
    /// Refuses the user.
    denies: bool,
    /// Changes the state of the browser.
    forges: bool,
    registered: u32,
    renewed: u32,
    /// Fields of the last `/authorize`.
    authorized: Fields,
    /// The token that holds now.
    token: String,
}

type Shared = Arc<Mutex<Known>>;

fn lock(known: &Shared) -> MutexGuard<'_, Known> {
    known.lock().unwrap()
}

/// A server that asks for a login, and its authorization server.
struct Server {
    known: Shared,
    folder: tempfile::TempDir,
    _serving: JoinSet<()>,
}

impl Server {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let known = Known { base, holds_s: 3600, ..Known::default() };
        let known = Arc::new(Mutex::new(known));
        let routes = axum::Router::new()
            .route("/mcp", post(mcp))
            .route("/.well-known/oauth-protected-resource", get(resource))
            .route("/.well-known/oauth-protected-resource/mcp", get(resource))
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .with_state(Arc::clone(&known));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { known, folder: tempfile::tempdir().unwrap(), _serving: serving }
    }

    fn logins(&self) -> std::path::PathBuf {
        self.folder.path().join("logins")
    }

    fn entry(&self, oauth: &Value) -> Value {
        json!({ "url": format!("{}/mcp", lock(&self.known).base), "oauth": oauth })
    }

    fn config(&self, oauth: &Value) -> HttpConfig {
        let mut servers = config(json!({ "s": self.entry(oauth) })).0;
        match servers.remove(&name()).unwrap().launch {
            Launch::Http(http) => http,
            Launch::Stdio(_) => unreachable!(),
        }
    }

    /// Logs in as a user whose browser follows every redirect.
    async fn log_in(&self, oauth: &Value) -> Result<(), AuthorizeError> {
        let pending = Authorization::begin(&self.logins(), &name(), &self.config(oauth)).await?;
        let url = pending.url().to_owned();
        let (came, finished) = tokio::join!(reqwest::get(url), pending.finish());
        came.unwrap();
        finished
    }

    async fn client(&self) -> Mcp {
        let options = McpOptions { token_folder: Some(self.logins()), ..McpOptions::default() };
        let mcp = Mcp::new(config(json!({ "s": self.entry(&json!({})) })), options);
        mcp.connect_all(START).await;
        mcp
    }
}

fn name() -> ServerName {
    "s".parse().unwrap()
}

async fn resource(State(known): State<Shared>) -> Json<Value> {
    let known = lock(&known);
    let server = known.elsewhere.clone().unwrap_or_else(|| known.base.clone());
    Json(json!({
        "resource": format!("{}/mcp", known.base), "authorization_servers": [server],
        "scopes_supported": ["tools"],
    }))
}

async fn metadata(State(known): State<Shared>) -> Json<Value> {
    let base = &lock(&known).base;
    Json(json!({
        "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
        "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": true,
    }))
}

async fn register(
    State(known): State<Shared>,
    Json(asked): Json<Value>,
) -> (StatusCode, Json<Value>) {
    let mut known = lock(&known);
    known.registered += 1;
    let client = format!("registered-{}", known.registered);
    let answer = json!({ "client_id": client, "redirect_uris": asked["redirect_uris"] });
    (StatusCode::CREATED, Json(answer))
}

async fn authorize(State(known): State<Shared>, Query(fields): Query<Fields>) -> Response {
    let mut known = lock(&known);
    assert_eq!(fields["response_type"], "code");
    assert_eq!(fields["code_challenge_method"], "S256");
    assert_eq!(fields["resource"], format!("{}/mcp", known.base));
    assert!(fields["redirect_uri"].starts_with("http://127.0.0.1:"), "{fields:?}");
    let state = if known.forges { "forged" } else { &fields["state"] };
    let outcome = if known.denies { "error=access_denied" } else { "code=consent" };
    let place = format!("{}?{outcome}&state={state}&iss={}", fields["redirect_uri"], known.base);
    known.authorized = fields;
    (StatusCode::FOUND, [(LOCATION, place)]).into_response()
}

async fn token(State(known): State<Shared>, body: String) -> Response {
    let fields: Fields = url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    let mut known = lock(&known);
    assert_eq!(fields["client_id"], known.authorized["client_id"]);
    assert_eq!(fields["resource"], known.authorized["resource"]);
    let refuse =
        || (StatusCode::BAD_REQUEST, Json(json!({ "error": "invalid_grant" }))).into_response();
    if fields["grant_type"] == "refresh_token" {
        if known.is_final || fields["refresh_token"] != format!("renews-{}", known.renewed) {
            return refuse();
        }
        known.renewed += 1;
    } else {
        let digest = Sha256::digest(fields["code_verifier"].as_bytes());
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(digest);
        if fields["code"] != "consent" || challenge != known.authorized["code_challenge"] {
            return refuse();
        }
    }
    known.token = format!("token-{}", known.renewed);
    Json(json!({
        "access_token": known.token, "token_type": "Bearer", "expires_in": known.holds_s,
        "refresh_token": format!("renews-{}", known.renewed),
    }))
    .into_response()
}

/// A server of the older generation with one tool.
async fn mcp(
    State(known): State<Shared>,
    headers: HeaderMap,
    Json(asked): Json<Value>,
) -> Response {
    let known = lock(&known);
    let expected = format!("Bearer {}", known.token);
    if known.token.is_empty() || headers.get(AUTHORIZATION).is_none_or(|found| *found != *expected)
    {
        let place = format!("{}/.well-known/oauth-protected-resource/mcp", known.base);
        let challenge = format!("Bearer resource_metadata=\"{place}\"");
        return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, challenge)]).into_response();
    }
    let Some(id) = asked.get("id") else { return StatusCode::ACCEPTED.into_response() };
    let answer = match asked["method"].as_str().unwrap() {
        "initialize" => json!({ "result": {
            "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "s", "version": "1" },
        }}),
        "tools/list" => json!({ "result": { "tools": [
            { "name": "echo", "inputSchema": { "type": "object" } },
        ]}}),
        "tools/call" => {
            json!({ "result": { "content": [{ "type": "text", "text": known.token }] } })
        }
        _ => json!({ "error": { "code": -32601, "message": "there is no such method" } }),
    };
    let mut answer = answer;
    answer["jsonrpc"] = json!("2.0");
    answer["id"] = id.clone();
    Json(answer).into_response()
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|kind| kind == "json")).collect()
}

#[tokio::test]
async fn a_server_that_asks_for_a_login_says_which_command_logs_in() {
    let server = Server::start().await;
    let reason = status(&server.client().await, "s").last_error.unwrap();
    assert!(reason.contains("run `antiphon mcp login s`"), "{reason}");
}

#[tokio::test]
async fn a_login_is_kept_for_its_user_alone_and_used_for_every_request() {
    let server = Server::start().await;
    server.log_in(&json!({})).await.unwrap();
    let [file] = &files(&server.logins())[..] else { unreachable!() };
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(text(&server.client().await, "echo", json!({})).await, "token-0");
    {
        let known = lock(&server.known);
        assert_eq!((known.registered, known.renewed), (1, 0));
        assert_eq!(known.authorized["client_id"], "registered-1");
        assert!(known.authorized["scope"].contains("tools"), "{:?}", known.authorized);
    }
    let url = server.config(&json!({})).url;
    let login = LoginFile::new(&server.logins(), &name(), &url);
    assert!(login.delete().unwrap());
    assert!(!login.delete().unwrap());
    assert!(status(&server.client().await, "s").last_error.is_some());
}

#[tokio::test]
async fn a_configured_client_is_not_registered() {
    let server = Server::start().await;
    server.log_in(&json!({ "client_id": "mine", "scopes": ["special"] })).await.unwrap();
    let known = lock(&server.known);
    assert_eq!((known.registered, &*known.authorized["client_id"]), (0, "mine"));
    assert_eq!(known.authorized["scope"], "special");
}

#[tokio::test]
async fn a_token_is_renewed_before_it_expires() {
    let server = Server::start().await;
    lock(&server.known).holds_s = 1;
    server.log_in(&json!({})).await.unwrap();
    lock(&server.known).holds_s = 3600;
    assert_eq!(text(&server.client().await, "echo", json!({})).await, "token-1");
    assert_eq!(lock(&server.known).renewed, 1, "once for all requests");
}

#[tokio::test]
async fn a_token_that_the_server_does_not_take_any_longer_is_renewed_once() {
    let server = Server::start().await;
    server.log_in(&json!({})).await.unwrap();
    let mcp = server.client().await;
    lock(&server.known).token = "revoked".to_owned();
    assert_eq!(text(&mcp, "echo", json!({})).await, "token-1");
}

#[tokio::test]
async fn a_login_that_cannot_be_renewed_says_which_command_logs_in() {
    let server = Server::start().await;
    server.log_in(&json!({})).await.unwrap();
    {
        let mut known = lock(&server.known);
        (known.is_final, known.token) = (true, "revoked".to_owned());
    }
    let reason = status(&server.client().await, "s").last_error.unwrap();
    assert!(reason.contains("run `antiphon mcp login s`"), "{reason}");
}

#[tokio::test]
async fn a_refusal_a_forged_state_and_a_server_elsewhere_give_no_login() {
    let server = Server::start().await;
    lock(&server.known).denies = true;
    let denied = server.log_in(&json!({})).await.unwrap_err();
    assert_eq!(denied.to_string(), "the authorization server refused: access_denied");
    {
        let mut known = lock(&server.known);
        (known.denies, known.forges) = (false, true);
    }
    assert!(server.log_in(&json!({})).await.is_err());
    {
        let mut known = lock(&server.known);
        (known.forges, known.elsewhere) = (false, Some("http://10.0.0.1:1".to_owned()));
    }
    assert!(server.log_in(&json!({})).await.is_err());
    assert_eq!(files(&server.logins()), Vec::<std::path::PathBuf>::new());
}
