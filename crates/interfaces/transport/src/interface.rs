//! An HTTP interface: its routes, and how each may be reached.

use std::sync::Arc;

use crate::openapi::ApiRouter;
use crate::state::AppState;

/// Builds described routes. The generator of the document collects schemas per thread, so the routes of all
/// interfaces are built together, where the document is made.
pub type RouteBuilder = Box<dyn FnOnce() -> ApiRouter<Arc<AppState>> + Send>;

/// The routes of one HTTP interface. A route that no list names needs the token or a person's API key.
pub struct Interface {
    /// Builds the routes, described for the `OpenAPI` document.
    pub routes: RouteBuilder,
    /// Routes that need no credentials.
    pub open: Vec<&'static str>,
    /// Routes whose `POST` requests are signed by the sender and need no other credentials. The handler
    /// verifies the signature.
    pub signed: Vec<&'static str>,
    /// Routes through which an agent's key may change something. Their handlers restrict what the agent may
    /// ask for.
    pub agent_writable: Vec<&'static str>,
    /// Routes whose changes need level `admin`: their handlers have a [`Decider`](crate::Decider).
    pub admin: Vec<&'static str>,
}

impl Interface {
    /// Routes that all need the token or a person's API key.
    pub fn new(routes: impl FnOnce() -> ApiRouter<Arc<AppState>> + Send + 'static) -> Self {
        Self {
            routes: Box::new(routes),
            open: Vec::new(),
            signed: Vec::new(),
            agent_writable: Vec::new(),
            admin: Vec::new(),
        }
    }

    /// The routes of both interfaces.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.open.extend(other.open);
        self.signed.extend(other.signed);
        self.agent_writable.extend(other.agent_writable);
        self.admin.extend(other.admin);
        let (routes, others) = (self.routes, other.routes);
        Self { routes: Box::new(move || routes().merge(others())), ..self }
    }
}
