//! Counts wrong keys, by the peer that sends them and in total. A caller checks the key first: a right key is
//! never counted and never refused here, so wrong keys of other clients lock no client out.
//!
//! A peer over its own limit does not use up the total, so one peer cannot spend it alone. The number of peers
//! that are counted is bounded by the total and by [`BUCKETS_MAX`](crate::BUCKETS_MAX).

use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};

use super::bucket::Bucket;
use super::buckets::Buckets;
use super::rate_limit::RateLimit;
use super::verdict::RateDecision;

/// Bits of an IPv6 address that are one peer: a network of one customer, who can use all of its addresses.
const IPV6_PEER_BITS: u32 = 64;

/// Where wrong keys come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Peer {
    /// An IPv4 address, or an IPv6 network of 64 bits.
    Address(IpAddr),
    /// The Unix socket, which serves one user.
    Socket,
}

impl Peer {
    /// The peer of an address.
    pub fn of(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => {
                let network = address.to_bits() >> IPV6_PEER_BITS << IPV6_PEER_BITS;
                Ipv6Addr::from_bits(network).into()
            }
        })
    }
}

/// Counts wrong keys.
#[derive(Debug)]
pub struct WrongKeys {
    per_peer: RateLimit,
    in_total: RateLimit,
    counted: Mutex<Counted>,
}

#[derive(Debug)]
struct Counted {
    peers: Buckets<Peer>,
    total: Option<Bucket>,
}

impl WrongKeys {
    /// Limits of wrong keys per minute, of one peer and of all.
    pub fn new(per_peer: RateLimit, in_total: RateLimit) -> Self {
        let counted = Counted { peers: Buckets::new(), total: None };
        Self { per_peer, in_total, counted: Mutex::new(counted) }
    }

    /// Counts a wrong key of a peer. Over a limit, the refusal says so and nothing else.
    pub fn count(&self, peer: Peer, now: DateTime<Utc>) -> RateDecision {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(over) = counted.peers.over(peer, self.per_peer, now) {
            return over;
        }
        let total = counted.total.get_or_insert_with(|| Bucket::new(self.in_total, now));
        let verdict = total.take(self.in_total, now);
        if !verdict.is_allowed() {
            return verdict;
        }
        counted.peers.take(peer, self.per_peer, now)
    }

    /// Number of peers that are counted, at most [`BUCKETS_MAX`](crate::BUCKETS_MAX).
    pub fn peer_count(&self) -> usize {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner).peers.len()
    }
}
