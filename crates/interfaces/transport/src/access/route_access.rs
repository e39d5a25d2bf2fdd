//! Which credentials a route needs.

use std::sync::Arc;

use antiphon_keys::Level;
use axum::http::{HeaderMap, Method};

use crate::access::caller::level_for;
use crate::access::own_work::OwnWork;
use crate::interface::{ErrorShape, Interface};
use crate::openapi::ApiRouter;
use crate::state::AppState;

/// How routes may be reached.
#[derive(Debug, Default)]
pub(crate) struct RouteAccess {
    open: Vec<&'static str>,
    signed: Vec<&'static str>,
    agent_writable: Vec<&'static str>,
    admin: Vec<&'static str>,
    own_work: Vec<(&'static str, OwnWork)>,
    error_shapes: Vec<ErrorShape>,
}

impl RouteAccess {
    /// Builds the routes, and takes their access apart.
    pub(crate) fn split(interface: Interface) -> (ApiRouter<Arc<AppState>>, Self) {
        let Interface { routes, open, signed, agent_writable, admin, own_work, error_shapes } =
            interface;
        (routes(), Self { open, signed, agent_writable, admin, own_work, error_shapes })
    }

    /// Whether a request needs no credentials, by its path or by the route that matches it.
    pub(crate) fn is_open(&self, path: &str, route: Option<&str>) -> bool {
        self.open.contains(&path) || route.is_some_and(|route| self.open.contains(&route))
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

    /// The shape of an error, if it is not the native one.
    pub(crate) fn error_shape(&self, path: &str, headers: &HeaderMap) -> Option<ErrorShape> {
        self.error_shapes.iter().find(|shape| shape.is_for(path, headers)).copied()
    }

    /// What a route shows a key of scope `own`; nothing when absent.
    pub(crate) fn own_work(&self, route: &str) -> Option<OwnWork> {
        let found = self.own_work.iter().find(|(listed, _)| *listed == route);
        found.map(|(_, work)| *work)
    }

    /// Whether an agent's key may change something through a route.
    pub(crate) fn is_agent_writable(&self, route: Option<&str>) -> bool {
        route.is_some_and(|route| self.agent_writable.contains(&route))
    }
}
