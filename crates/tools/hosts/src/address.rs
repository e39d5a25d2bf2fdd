//! Classes of addresses, and which of them a command may reach.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddressClass {
    /// The Internet.
    Public,
    /// This machine.
    Loopback,
    /// A private network: of a company, a home, a carrier or an overlay.
    Private,
    /// The link, where clouds put their metadata services.
    LinkLocal,
    /// A service of a cloud that gives out credentials, at an address of another class.
    Metadata,
    /// Many receivers.
    Multicast,
    /// An IPv6 address that stands for an IPv4 address, of any class.
    Translated,
    /// No host, or none that a command needs: unspecified, broadcast, documentation, future use.
    Reserved,
}

/// Metadata services outside of the link-local range, by address.
const METADATA_V4: [Ipv4Addr; 3] = [
    // Alibaba Cloud, Oracle Cloud, Azure.
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];

/// The same for IPv6: Amazon (three services), Google.
const METADATA_V6: [Ipv6Addr; 4] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x253),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x123),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

impl AddressClass {
    /// The class of an address.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    /// Whether a rule can allow this class at all.
    pub fn may_be_allowed(self) -> bool {
        match self {
            Self::Public | Self::Loopback | Self::Private => true,
            Self::LinkLocal
            | Self::Metadata
            | Self::Multicast
            | Self::Translated
            | Self::Reserved => false,
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        if METADATA_V4.contains(&address) {
            return Self::Metadata;
        }
        match address.octets() {
            [127, ..] => Self::Loopback,
            [10, ..] | [192, 168, ..] => Self::Private,
            [172, second, ..] if (16..32).contains(&second) => Self::Private,
            // Shared by carriers and used by overlay networks.
            [100, second, ..] if (64..128).contains(&second) => Self::Private,
            [169, 254, ..] => Self::LinkLocal,
            [224..=239, ..] => Self::Multicast,
            // The relays of 6to4.
            [192, 88, 99, _] => Self::Translated,
            [0 | 240..=255, ..]
            | [192, 0, 0 | 2, _]
            | [198, 18 | 19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _] => Self::Reserved,
            _ => Self::Public,
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        if METADATA_V6.contains(&address) {
            return Self::Metadata;
        }
        match address.segments() {
            [0, 0, 0, 0, 0, 0, 0, 1] => Self::Loopback,
            [0, 0, 0, 0, 0, 0, 0, 0] => Self::Reserved,
            // IPv4-compatible, IPv4-mapped, IPv4-translated, NAT64, Teredo, 6to4, ISATAP.
            [0, 0, 0, 0, 0, 0 | 0xffff, ..]
            | [0, 0, 0, 0, 0xffff, 0, ..]
            | [0x64, 0xff9b, ..]
            | [0x2001, 0, ..]
            | [0x2002, ..]
            | [_, _, _, _, 0 | 0x200, 0x5efe, ..] => Self::Translated,
            [first, ..] if first & 0xffc0 == 0xfe80 => Self::LinkLocal,
            [first, ..] if first & 0xfe00 == 0xfc00 => Self::Private,
            [first, ..] if first & 0xff00 == 0xff00 => Self::Multicast,
            [0x2001, 0x0db8, ..] => Self::Reserved,
            [0x2001, second, ..] if second < 0x200 => Self::Reserved,
            [0x3fff, second, ..] if second < 0x1000 => Self::Reserved,
            [first, ..] if first & 0xe000 == 0x2000 => Self::Public,
            _ => Self::Reserved,
        }
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "a public address",
            Self::Loopback => "an address of this machine",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "the address of a metadata service",
            Self::Multicast => "a multicast address",
            Self::Translated => "an address that stands for another one",
            Self::Reserved => "a reserved address",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_special_range_is_known_at_both_ends() {
        let table = [
            (
                AddressClass::Public,
                "1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 \
                 128.0.0.0 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 \
                 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255 \
                 2606:4700::1111 2a00:1450::1 2001:4860:4860::8888 2001:200::1",
            ),
            (AddressClass::Loopback, "127.0.0.1 127.255.255.255 ::1"),
            (
                AddressClass::Private,
                "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.1 100.64.0.0 \
                 100.127.255.255 fc00::1 fdff:ffff::1",
            ),
            (AddressClass::LinkLocal, "169.254.0.0 169.254.169.254 169.254.170.2 fe80::1 febf::1"),
            (
                AddressClass::Metadata,
                "100.100.100.200 192.0.0.192 168.63.129.16 fd00:ec2::254 fd20:ce::254",
            ),
            (AddressClass::Multicast, "224.0.0.1 239.255.255.255 ff02::1"),
            (
                AddressClass::Translated,
                "::ffff:127.0.0.1 ::ffff:8.8.8.8 ::127.0.0.1 ::ffff:0:10.0.0.1 \
                 64:ff9b::a9fe:a9fe 64:ff9b:1::1 2002:7f00:1:: 2001::1 2606:4700::5efe:7f00:1 \
                 192.88.99.1",
            ),
            (
                AddressClass::Reserved,
                "0.0.0.0 0.1.2.3 192.0.0.1 192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.1 \
                 240.0.0.1 255.255.255.255 :: 2001:db8::1 2001:20::1 3fff::1 fec0::1 100::1 \
                 5f00::1 4000::1",
            ),
        ];
        for (class, addresses) in table {
            for address in addresses.split_whitespace() {
                assert_eq!(AddressClass::of(address.parse().unwrap()), class, "{address}");
            }
        }
    }
}
