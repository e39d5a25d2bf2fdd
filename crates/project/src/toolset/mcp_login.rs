//! Logins of the user to MCP servers that ask for one.

use antiphon_mcp::oauth::{Authorization, AuthorizeError, LoginFile};
use antiphon_mcp::{HttpConfig, Launch, McpConfig, ServerName};

use super::mcp_pool::LOGINS;
use crate::environment::Environment;
use crate::error::ProjectError;
use crate::state::state_base;

/// A configured server that can be logged in to.
pub struct McpLogin {
    name: ServerName,
    config: HttpConfig,
    folder: std::path::PathBuf,
}

/// A login that waits for its user.
pub struct PendingLogin {
    name: ServerName,
    authorization: Authorization,
}

impl McpLogin {
    /// The server of this name. Fails when it is not configured, is a program, or has a key in its configuration.
    pub fn find(
        servers: &McpConfig,
        environment: &Environment,
        name: &str,
    ) -> Result<Self, ProjectError> {
        let invalid = ProjectError::InvalidInput;
        let configured = || {
            let names: Vec<&str> = servers.0.keys().map(ServerName::as_str).collect();
            if names.is_empty() { "none is".to_owned() } else { names.join(", ") }
        };
        let found = servers.0.iter().find(|(found, _)| found.as_str() == name);
        let (name, server) = found.ok_or_else(|| {
            invalid(format!(
                "no MCP server `{name}` is configured (configured: {}): add `[mcp.{name}]` with its `url`, see \
                 docs/mcp.md",
                configured()
            ))
        })?;
        let Launch::Http(config) = &server.launch else {
            let message = format!("the MCP server `{name}` is a program: it needs no login");
            return Err(invalid(message));
        };
        let has_header =
            config.headers.keys().any(|header| header.eq_ignore_ascii_case("authorization"));
        if config.bearer_token_env.is_some() || has_header {
            return Err(invalid(format!(
                "the MCP server `{name}` has a key in its configuration: remove `bearer_token_env` and the header \
                 `Authorization` to log in instead"
            )));
        }
        let folder = state_base(environment)?.join(LOGINS);
        Ok(Self { name: name.clone(), config: config.clone(), folder })
    }

    /// Begins a login: the user opens [`PendingLogin::url`] next.
    pub async fn begin(&self) -> Result<PendingLogin, ProjectError> {
        let parent = self.folder.parent().unwrap_or(&self.folder);
        std::fs::create_dir_all(parent).map_err(|error| {
            ProjectError::Failed(format!("cannot create {}: {error}", parent.display()))
        })?;
        let authorization = Authorization::begin(&self.folder, &self.name, &self.config).await;
        let authorization = authorization.map_err(|error| failed(&self.name, error))?;
        Ok(PendingLogin { name: self.name.clone(), authorization })
    }

    /// Deletes the login. Returns whether there was one.
    pub fn end(&self) -> Result<bool, ProjectError> {
        let file = LoginFile::new(&self.folder, &self.name, &self.config.url);
        file.delete().map_err(|error| ProjectError::Failed(format!("cannot log out: {error}")))
    }
}

impl PendingLogin {
    /// The address where the user consents.
    pub fn url(&self) -> &str {
        self.authorization.url()
    }

    /// Waits for the user, and stores the login.
    pub async fn finish(self) -> Result<(), ProjectError> {
        self.authorization.finish().await.map_err(|error| failed(&self.name, error))
    }
}

fn failed(name: &ServerName, error: AuthorizeError) -> ProjectError {
    let message = format!("cannot log in to the MCP server `{name}`: {error}");
    match error {
        AuthorizeError::Refused(_) => ProjectError::Refused(message),
        AuthorizeError::Failed(_) => ProjectError::Unavailable(message),
        AuthorizeError::Listen(_) | AuthorizeError::TooLate => ProjectError::Failed(message),
    }
}
