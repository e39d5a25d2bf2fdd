//! How commands reach the network when the sandbox has none of its own: through a proxy that lets
//! them reach allowed hosts.
//!
//! The worker opens a listening socket in the sandbox for each call and passes it to the shell, which
//! serves it from outside. So there is no file, no further process and no address that a command
//! could use to reach more than the proxy.

pub(crate) mod report;

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use antiphon_core::port::Rule;
use antiphon_egress_proxy::{Egress, Resolve, Traffic, TrafficReport};
use antiphon_hosts::{Host, HostAccess, HostRule};
use antiphon_sandbox::{Network, Policy, SandboxMode};
use rustix::io::ioctl_fionbio;
use rustix::net::sockopt::{socket_acceptconn, socket_domain, socket_type};
use rustix::net::{AddressFamily, SocketType};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::process::{Status, lock};

/// Names of the sandbox's own loopback interface, which clients reach without the proxy.
const OWN_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The hosts that commands may reach through a proxy.
#[derive(Clone)]
pub struct HostNetwork {
    egress: Egress,
    allowed: Arc<AllowedHosts>,
}

type AllowedHosts = dyn Fn(&[Rule]) -> HostAccess + Send + Sync;

impl HostNetwork {
    /// The network of hosts that `allowed` returns for the rules that were granted to a task. It is
    /// called for each command. Names are resolved by `resolver`.
    pub fn new(
        resolver: Arc<dyn Resolve>,
        allowed: impl Fn(&[Rule]) -> HostAccess + Send + Sync + 'static,
    ) -> Self {
        Self { egress: Egress::new(resolver), allowed: Arc::new(allowed) }
    }

    /// The network of one call that asked for the hosts `requested` and was allowed to run. `None`
    /// where a proxy would have no use: with a network, or where every host is denied.
    pub(crate) fn for_call(
        &self,
        policy: &Policy,
        granted: &[Rule],
        requested: &[HostRule],
    ) -> Option<CallNetwork> {
        match (policy.mode, policy.network) {
            (SandboxMode::Full, _) | (_, Network::On) => return None,
            (SandboxMode::ReadOnly | SandboxMode::Workspace, Network::Off) => {}
        }
        let access = (self.allowed)(granted).with_approved(requested.iter().cloned());
        (!access.is_closed()).then(|| CallNetwork {
            egress: self.egress.clone(),
            access,
            traffic: Arc::default(),
            serving: Mutex::default(),
        })
    }
}

impl fmt::Debug for HostNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostNetwork").finish_non_exhaustive()
    }
}

/// The network of one call.
#[derive(Debug)]
pub(crate) struct CallNetwork {
    egress: Egress,
    access: HostAccess,
    traffic: Arc<Traffic>,
    serving: Mutex<JoinSet<()>>,
}

impl CallNetwork {
    /// Hosts that clients must not use the proxy for. A name of this machine that a rule allows is
    /// reached through the proxy instead.
    pub(crate) fn no_proxy(&self) -> String {
        let machine = self.access.machine_hosts();
        let is_own = |own: &&&str| {
            let bracketed = format!("[{own}]");
            let parsed = Host::parse(own).or_else(|_| Host::parse(&bracketed));
            parsed.is_ok_and(|own| !machine.contains(&own))
        };
        OWN_HOSTS.iter().filter(is_own).copied().collect::<Vec<_>>().join(",")
    }

    /// Serves the socket that the worker opened in the sandbox, until no process of the call is
    /// left. A second socket, and one that is not what it should be, is closed.
    pub(crate) fn serve(&self, socket: OwnedFd, mut status: watch::Receiver<Status>) {
        let mut serving = lock(&self.serving);
        let Some(listener) = listener(socket).filter(|_| serving.is_empty()) else { return };
        let (egress, access) = (self.egress.clone(), self.access.clone());
        let traffic = Arc::clone(&self.traffic);
        serving.spawn(async move {
            tokio::select! {
                () = egress.serve(listener, access, traffic) => {}
                _ = status.wait_for(Status::is_gone) => {}
            }
        });
    }

    /// What happened since the last report.
    pub(crate) fn take_report(&self) -> TrafficReport {
        self.traffic.take()
    }
}

/// A listening TCP socket. The worker is as restricted as the commands it runs, so what it sends is
/// checked.
fn listener(socket: OwnedFd) -> Option<TcpListener> {
    let is_tcp = || -> io::Result<bool> {
        Ok(socket_acceptconn(&socket)?
            && socket_domain(&socket)? == AddressFamily::INET
            && socket_type(&socket)? == SocketType::STREAM)
    };
    if !is_tcp().unwrap_or(false) || ioctl_fionbio(&socket, true).is_err() {
        return None;
    }
    TcpListener::from_std(std::net::TcpListener::from(socket)).ok()
}
