//! Names to addresses.

use std::io;
use std::net::IpAddr;

use async_trait::async_trait;

/// Turns names into addresses.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// The addresses of `name`, in the order to try them.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        // The final dot keeps the resolver from adding a search domain.
        let absolute = if name.contains('.') { format!("{name}.") } else { name.to_owned() };
        let found = tokio::net::lookup_host((absolute, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}
