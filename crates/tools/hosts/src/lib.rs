//! Network hosts as rules name them: which host a command may reach, on which port, and at which
//! class of addresses. Pure: nothing is resolved and nothing is sent here.
//!
//! | text                     | means                                                               |
//! |--------------------------|---------------------------------------------------------------------|
//! | `example.com`            | this host; where it allows: on ports 80 and 443                     |
//! | `example.com:8443`       | this host on this port                                              |
//! | `*.example.com`          | every host below it, and not `example.com` itself                   |
//! | `localhost:8081`         | this machine, named literally                                       |
//! | `10.1.2.3:8080`, `[::1]` | this address, named literally                                       |
//! | `registry.corp=private`  | this host, also if it has a private address                         |
//! | `registry.test=loopback` | this host, also if its address is this machine                      |
//! | `registries`, `pypi`, …  | the hosts of a [preset](PRESETS)                                    |
//!
//! Names are compared label by label, after IDNA, in lower case, without a final dot. Whatever a
//! rule says, link-local and metadata addresses and addresses that hide another one are never
//! reached ([`AddressClass::may_be_allowed`]).

mod access;
mod address;
mod host;
mod preset;
mod rule;

pub use access::{Access, HostAccess, HostLayer, HostPolicy};
pub use address::AddressClass;
pub use host::{Host, HostError, HostPort, url_host};
pub use preset::PRESETS;
pub use rule::{HostRule, REQUESTED_HOSTS_MAX, host_rules, requested_hosts};
