//! Network traffic of the commands of one call.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon_hosts::{AddressClass, HostPort};

/// Most hosts that are recorded for one call. Further ones are counted.
const HOSTS_MAX: usize = 32;

/// Why a host was not reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// No rule allows the host: a person can allow it.
    NotAllowed,
    /// A rule denies the host.
    Denied,
    /// The host is allowed, but not at this address.
    Address {
        /// The address.
        address: IpAddr,
        /// The class of the address.
        class: AddressClass,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAllowed => f.write_str("this host is not allowed"),
            Self::Denied => f.write_str("a rule denies this host"),
            Self::Address { address, class } => write!(f, "its address {address} is {class}"),
        }
    }
}

/// Records what the commands of one call did in the network.
#[derive(Debug, Default)]
pub struct Traffic {
    hosts: Mutex<BTreeMap<HostPort, Record>>,
    others: AtomicU64,
    total: Arc<AtomicU64>,
}

/// What happened since the last report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrafficReport {
    /// Each host with something new.
    pub hosts: Vec<HostTraffic>,
    /// Attempts to reach further hosts, which were not recorded.
    pub others: u64,
}

/// Traffic with one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostTraffic {
    /// The host and port.
    pub target: HostPort,
    /// Connections that were made.
    pub connections: u64,
    /// Bytes to the host.
    pub sent_bytes: u64,
    /// Bytes from the host.
    pub received_bytes: u64,
    /// Why it was refused, if it was.
    pub refusal: Option<Refusal>,
    /// Why it could not be reached, if so.
    pub failure: Option<String>,
}

#[derive(Debug, Default)]
struct Record {
    counters: Arc<Counters>,
    refusal: Option<Refusal>,
    failure: Option<String>,
}

/// Counters of one host.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    connections: AtomicU64,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
}

impl Traffic {
    /// What happened since the last call of this function.
    pub fn take(&self) -> TrafficReport {
        let mut hosts = Vec::new();
        for (target, record) in self.lock().iter_mut() {
            let taken = HostTraffic {
                target: target.clone(),
                connections: record.counters.connections.swap(0, Ordering::Relaxed),
                sent_bytes: record.counters.sent_bytes.swap(0, Ordering::Relaxed),
                received_bytes: record.counters.received_bytes.swap(0, Ordering::Relaxed),
                refusal: record.refusal.take(),
                failure: record.failure.take(),
            };
            let counted = taken.connections + taken.sent_bytes + taken.received_bytes > 0;
            if counted || taken.refusal.is_some() || taken.failure.is_some() {
                hosts.push(taken);
            }
        }
        TrafficReport { hosts, others: self.others.swap(0, Ordering::Relaxed) }
    }

    pub(crate) fn refused(&self, target: &HostPort, refusal: Refusal) {
        self.record(target, |record| record.refusal = Some(refusal));
    }

    pub(crate) fn failed(&self, target: &HostPort, reason: String) {
        self.record(target, |record| record.failure = Some(reason));
    }

    /// Counts a connection. Returns the counters for its bytes.
    pub(crate) fn connected(&self, target: &HostPort) -> Arc<Counters> {
        let mut counters = Arc::default();
        self.record(target, |record| counters = Arc::clone(&record.counters));
        counters.connections.fetch_add(1, Ordering::Relaxed);
        counters
    }

    /// All bytes of the call, in both directions.
    pub(crate) fn total(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.total)
    }

    fn record(&self, target: &HostPort, change: impl FnOnce(&mut Record)) {
        let mut hosts = self.lock();
        if hosts.len() < HOSTS_MAX || hosts.contains_key(target) {
            change(hosts.entry(target.clone()).or_default());
        } else {
            self.others.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<HostPort, Record>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counters {
    pub(crate) fn add_sent(&self, bytes: u64) {
        self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_received(&self, bytes: u64) {
        self.received_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}
