//! The token of a login, for every request to its server.

use std::path::Path;
use std::sync::Arc;

use reqwest::Url;
use rmcp::transport::auth::{AuthError, AuthorizationManager};
use tokio::sync::Mutex;

use super::login_file::LoginFile;
use super::oauth_http::OAuthHttp;
use crate::config::ServerName;

/// The login of the user to one server, if there is one.
pub struct Login {
    file: LoginFile,
    url: Url,
    /// Made with the first token. One request renews the token, and the others wait for it.
    manager: Mutex<Option<Manager>>,
}

struct Manager {
    manager: AuthorizationManager,
    /// Whether it knows the authorization server, which renewing needs.
    is_prepared: bool,
}

impl Login {
    /// The login to a server, in the folder of logins. Reads nothing yet.
    pub fn new(folder: &Path, server: &ServerName, url: &Url) -> Self {
        let file = LoginFile::new(folder, server, url);
        Self { file, url: url.clone(), manager: Mutex::default() }
    }

    /// The token now, renewed if it is about to expire; `None` without a login, or when it cannot be renewed.
    pub(crate) async fn token(&self) -> Option<String> {
        if !self.file.exists() {
            return None;
        }
        let mut slot = self.manager.lock().await;
        let found = async {
            let manager = self.manager(&mut slot).await?;
            match manager.manager.get_access_token().await {
                Ok(token) => Ok(token),
                // It has to be renewed: the authorization server is asked for the first time.
                Err(_) if !manager.is_prepared => {
                    manager.prepare().await?;
                    manager.manager.get_access_token().await
                }
                Err(error) => Err(error),
            }
        };
        found.await.inspect_err(|error| tracing::info!(%error, "no token of a login")).ok()
    }

    /// A token that is not `refused`: the server does not take that one any longer, whatever it said before.
    pub(crate) async fn renewed(&self, refused: &str) -> Option<String> {
        let mut slot = self.manager.lock().await;
        let found = async {
            let manager = self.manager(&mut slot).await?;
            // Another request may have renewed it meanwhile.
            let current = manager.manager.get_access_token().await.ok();
            if let Some(current) = current.filter(|token| token != refused) {
                return Ok(current);
            }
            manager.prepare().await?;
            manager.manager.refresh_token().await?;
            manager.manager.get_access_token().await
        };
        found.await.inspect_err(|error| tracing::info!(%error, "a login was not renewed")).ok()
    }

    async fn manager<'a>(
        &self,
        slot: &'a mut Option<Manager>,
    ) -> Result<&'a mut Manager, AuthError> {
        if slot.is_none() {
            let http = Arc::new(OAuthHttp::new(&self.url));
            let mut manager =
                AuthorizationManager::new_with_oauth_http_client(self.url.clone(), http).await?;
            manager.set_credential_store(self.file.clone());
            *slot = Some(Manager { manager, is_prepared: false });
        }
        slot.as_mut().ok_or(AuthError::AuthorizationRequired)
    }
}

impl Manager {
    async fn prepare(&mut self) -> Result<(), AuthError> {
        if !self.is_prepared {
            self.is_prepared = self.manager.initialize_from_store().await?;
        }
        if self.is_prepared { Ok(()) } else { Err(AuthError::AuthorizationRequired) }
    }
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("file", &self.file).finish_non_exhaustive()
    }
}
