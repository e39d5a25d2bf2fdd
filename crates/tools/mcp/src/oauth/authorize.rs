//! A new login. The user consents in a browser; the login is in its file when this is done.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::visible;
use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession,
};

use super::callback::Callback;
use super::login_file::LoginFile;
use super::oauth_http::OAuthHttp;
use crate::config::{HttpConfig, ServerName};

/// How this client is named at an authorization server.
const CLIENT_NAME: &str = "Antiphon";

/// How long the user may take.
const CONSENT_WAIT: Duration = Duration::from_secs(15 * 60);

/// Why there is no new login.
#[derive(Debug, thiserror::Error)]
pub enum AuthorizeError {
    /// No port on this machine can be used.
    #[error("cannot wait for the browser: {0}")]
    Listen(#[from] std::io::Error),
    /// The user did not come back.
    #[error("the browser did not come back within 15 minutes: try again")]
    TooLate,
    /// The authorization server said no, in its own words.
    #[error("the authorization server refused: {0}")]
    Refused(String),
    /// The server or its authorization server does not do what OAuth for MCP needs.
    #[error("{0}")]
    Failed(String),
}

impl From<AuthError> for AuthorizeError {
    fn from(error: AuthError) -> Self {
        Self::Failed(visible(&error.to_string()))
    }
}

/// A login that waits for its user.
pub struct Authorization {
    session: AuthorizationSession,
    callback: Callback,
}

impl Authorization {
    /// Finds the authorization server, registers this client there unless the configuration has its id, and waits for
    /// the browser from now on.
    pub async fn begin(
        folder: &Path,
        server: &ServerName,
        config: &HttpConfig,
    ) -> Result<Self, AuthorizeError> {
        let callback = Callback::listen().await?;
        let http = Arc::new(OAuthHttp::new(&config.url));
        let mut manager =
            AuthorizationManager::new_with_oauth_http_client(config.url.clone(), http).await?;
        manager.set_credential_store(LoginFile::new(folder, server, &config.url));
        let found = manager.resolve_metadata().await?;
        manager.set_metadata(found.metadata);
        let mut request = AuthorizationRequest::new(callback.url())
            .with_client_name(CLIENT_NAME)
            .with_initial_scope_selection()
            .with_scopes(config.oauth.scopes.iter().cloned());
        if let Some(client_id) = &config.oauth.client_id {
            request = request.with_preregistered_client(client_id.clone());
        }
        let session = AuthorizationSession::new(manager, request).await;
        let session = session.map_err(|(_, error)| AuthorizeError::from(error))?;
        Ok(Self { session, callback })
    }

    /// The address where the user consents.
    pub fn url(&self) -> &str {
        self.session.get_authorization_url()
    }

    /// Waits for the user, and stores the login.
    pub async fn finish(self) -> Result<(), AuthorizeError> {
        let came_back = tokio::time::timeout(CONSENT_WAIT, self.callback.wait()).await;
        let came_back = came_back.map_err(|_| AuthorizeError::TooLate)??;
        if let Some(refusal) = refusal(&came_back) {
            return Err(AuthorizeError::Refused(refusal));
        }
        self.session.handle_callback_url(&came_back).await?;
        Ok(())
    }
}

/// What an authorization server that refused says.
fn refusal(came_back: &str) -> Option<String> {
    let url = Url::parse(came_back).ok()?;
    let value = |name: &str| {
        let mut pairs = url.query_pairs();
        pairs.find(|(found, _)| found == name).map(|(_, value)| value.into_owned())
    };
    let error = value("error")?;
    let text = match value("error_description") {
        Some(description) => format!("{error}: {description}"),
        None => error,
    };
    Some(visible(&text))
}
