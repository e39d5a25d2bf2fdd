//! Decides about a host, resolves it once, and connects to an address that was checked.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use antiphon_hosts::{Access, AddressClass, Host, HostAccess, HostPort};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::metered::Metered;
use crate::resolver::Resolve;
use crate::traffic::{Refusal, Traffic};

/// How long the resolver may take.
const RESOLVE_MAX: Duration = Duration::from_secs(10);

/// How long one address may take to connect.
const CONNECT_MAX: Duration = Duration::from_secs(15);

/// Most addresses of a host that are tried.
const ADDRESSES_MAX: usize = 4;

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum NoConnection {
    /// The rules refuse it.
    Refused(Refusal),
    /// The host cannot be reached.
    Failed(String),
}

/// Connects to `target`, if the rules allow it. Records the outcome.
pub(crate) async fn connect(
    target: &HostPort,
    access: &HostAccess,
    resolver: &dyn Resolve,
    traffic: &Traffic,
) -> Result<Metered, NoConnection> {
    let outcome = match allowed_addresses(target, access, resolver).await {
        Ok(addresses) => connect_to(&addresses).await,
        Err(none) => Err(none),
    };
    match outcome {
        Ok(stream) => {
            let _ = stream.set_nodelay(true);
            Ok(Metered::new(stream, traffic.connected(target), traffic.total()))
        }
        Err(none) => {
            match &none {
                NoConnection::Refused(refusal) => traffic.refused(target, refusal.clone()),
                NoConnection::Failed(reason) => traffic.failed(target, reason.clone()),
            }
            Err(none)
        }
    }
}

/// The addresses of `target` that may be reached: at least one.
async fn allowed_addresses(
    target: &HostPort,
    access: &HostAccess,
    resolver: &dyn Resolve,
) -> Result<Vec<SocketAddr>, NoConnection> {
    match access.of(target) {
        Access::Allowed => {}
        Access::NotAllowed => return Err(NoConnection::Refused(Refusal::NotAllowed)),
        Access::Denied => return Err(NoConnection::Refused(Refusal::Denied)),
    }
    let found = addresses(&target.host, resolver).await.map_err(NoConnection::Failed)?;
    let is_allowed = |address: &IpAddr| access.allows_address(target, *address);
    let mut allowed: Vec<SocketAddr> = found
        .iter()
        .filter(|address| is_allowed(address))
        .map(|address| SocketAddr::new(*address, target.port))
        .collect();
    allowed.truncate(ADDRESSES_MAX);
    match found.first() {
        _ if !allowed.is_empty() => Ok(allowed),
        Some(address) => {
            let class = AddressClass::of(*address);
            Err(NoConnection::Refused(Refusal::Address { address: *address, class }))
        }
        None => Err(NoConnection::Failed("it has no address".to_owned())),
    }
}

async fn addresses(host: &Host, resolver: &dyn Resolve) -> Result<Vec<IpAddr>, String> {
    match host {
        Host::Address(address) => Ok(vec![*address]),
        // No resolver may give it another meaning.
        Host::Name(_) if host.is_localhost() => {
            Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
        }
        Host::Name(name) => match timeout(RESOLVE_MAX, resolver.resolve(name)).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => Err(format!("its name cannot be resolved: {error}")),
            Err(_) => Err(format!("its name was not resolved in {} s", RESOLVE_MAX.as_secs())),
        },
    }
}

async fn connect_to(addresses: &[SocketAddr]) -> Result<TcpStream, NoConnection> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in addresses {
        match timeout(CONNECT_MAX, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::Error::from(io::ErrorKind::TimedOut),
        }
    }
    Err(NoConnection::Failed(format!("it cannot be reached: {last}")))
}
