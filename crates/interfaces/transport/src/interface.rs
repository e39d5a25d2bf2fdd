//! An HTTP interface: its routes, and how each may be reached.

use std::sync::Arc;

use antiphon_core::ErrorResponse;
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::access::own_work::OwnWork;
use crate::openapi::ApiRouter;
use crate::state::AppState;

/// Builds described routes. The generator of the document collects schemas per thread, so the routes of all
/// interfaces are built together, where the document is made.
pub type RouteBuilder = Box<dyn FnOnce() -> ApiRouter<Arc<AppState>> + Send>;

/// Writes an error of the guard or of an extractor in the shape of an interface.
pub type ShapeError = fn(StatusCode, &ErrorResponse) -> Value;

/// The shape of errors below some paths, also of requests that reach no handler.
#[derive(Debug, Clone, Copy)]
pub struct ErrorShape {
    /// Beginning of the paths: a path below it, or the path itself.
    pub path: &'static str,
    /// Only requests with such a path and such headers.
    pub applies: fn(&str, &HeaderMap) -> bool,
    /// Writes the body.
    pub body: ShapeError,
    /// Header of each response that holds an id of the request, if clients of the API show one.
    pub request_id: Option<&'static str>,
}

impl ErrorShape {
    pub(crate) fn is_for(&self, path: &str, headers: &HeaderMap) -> bool {
        let below = path.strip_prefix(self.path);
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            && (self.applies)(path, headers)
    }
}

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
    /// Routes for keys that see their own work alone, and what in them is checked. Such a key may use no other route.
    pub own_work: Vec<(&'static str, OwnWork)>,
    /// Shapes of errors that are not the native one; the first that applies.
    pub error_shapes: Vec<ErrorShape>,
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
            own_work: Vec::new(),
            error_shapes: Vec::new(),
        }
    }

    /// The routes of both interfaces.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.open.extend(other.open);
        self.signed.extend(other.signed);
        self.agent_writable.extend(other.agent_writable);
        self.admin.extend(other.admin);
        self.own_work.extend(other.own_work);
        self.error_shapes.extend(other.error_shapes);
        let (routes, others) = (self.routes, other.routes);
        Self { routes: Box::new(move || routes().merge(others())), ..self }
    }
}
