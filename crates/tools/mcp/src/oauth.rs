//! Logins of the user to servers that ask for one (OAuth 2.1, as MCP demands).
//!
//! | file           | subject                                                                     |
//! |----------------|-----------------------------------------------------------------------------|
//! | `authorize`    | a new login: discovery, registration, the user's consent, the first token   |
//! | `callback`     | waits on this machine for the browser that comes back from the consent      |
//! | `login`        | the token of a login, renewed before it expires                             |
//! | `login_file`   | the file of a login                                                         |
//! | `oauth_http`   | requests to authorization servers, which remote parties name                |
//!
//! `rmcp` has the protocol: protected-resource and authorization-server metadata, PKCE with S256, dynamic
//! registration, the resource indicator, the check of the issuer, refresh. Here are its files and its connections.

mod authorize;
mod callback;
mod login;
mod login_file;
mod oauth_http;

pub use authorize::{Authorization, AuthorizeError};
pub use login::Login;
pub use login_file::LoginFile;
