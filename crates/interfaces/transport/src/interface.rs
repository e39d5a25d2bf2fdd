//! An HTTP interface: its routes, and how each may be reached.

use std::sync::Arc;

use antiphon_keys::Level;
use axum::http::Method;

use crate::access::caller::level_for;
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

/// How routes may be reached.
#[derive(Debug, Default)]
pub(crate) struct RouteAccess {
    open: Vec<&'static str>,
    signed: Vec<&'static str>,
    agent_writable: Vec<&'static str>,
    admin: Vec<&'static str>,
}

impl RouteAccess {
    /// Builds the routes, and takes their access apart.
    pub(crate) fn split(interface: Interface) -> (ApiRouter<Arc<AppState>>, Self) {
        let Interface { routes, open, signed, agent_writable, admin } = interface;
        (routes(), Self { open, signed, agent_writable, admin })
    }

    /// Whether a route needs no credentials.
    pub(crate) fn is_open(&self, route: &str) -> bool {
        self.open.contains(&route)
    }

    /// Whether a request needs no credentials because its sender signs it.
    pub(crate) fn is_signed(&self, method: &Method, route: Option<&str>) -> bool {
        *method == Method::POST && route.is_some_and(|route| self.signed.contains(&route))
    }

    /// The level that a person's key needs for a request.
    pub(crate) fn level(&self, method: &Method, route: Option<&str>) -> Level {
        match level_for(method) {
            Level::Write if route.is_some_and(|route| self.admin.contains(&route)) => Level::Admin,
            level @ (Level::Read | Level::Write | Level::Admin) => level,
        }
    }

    /// Whether an agent's key may change something through a route.
    pub(crate) fn is_agent_writable(&self, route: Option<&str>) -> bool {
        route.is_some_and(|route| self.agent_writable.contains(&route))
    }
}
