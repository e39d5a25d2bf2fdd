//! Network traffic of a command, in words for the model.

use std::fmt::Write;

use antiphon_egress_proxy::{HostTraffic, Refusal, TrafficReport};
use antiphon_hosts::{AddressClass, HostPort};

use crate::report::size;

/// Longest text about the network in one result, in bytes. Further hosts are counted.
const TEXT_BYTES_MAX: usize = 1_200;

/// One line for each host.
pub(crate) fn lines(report: &TrafficReport) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut bytes, mut left_out) = (0, report.others);
    // What was refused matters most.
    let (refused, others): (Vec<_>, Vec<_>) =
        report.hosts.iter().partition(|host| host.refusal.is_some());
    for host in refused.into_iter().chain(others) {
        let line = line(host);
        bytes += line.len() + 1;
        if bytes > TEXT_BYTES_MAX {
            left_out += 1;
        } else {
            lines.push(line);
        }
    }
    if left_out > 0 {
        lines.push(format!("[network: {left_out} more attempts are not listed]"));
    }
    lines
}

fn line(host: &HostTraffic) -> String {
    let target = &host.target;
    if let Some(refusal) = &host.refusal {
        return format!("[network: refused {target}: {}]", advice(target, refusal));
    }
    let mut line = format!("[network: {target}: ");
    if host.connections > 0 || host.failure.is_none() {
        let (sent, received) = (size(host.sent_bytes), size(host.received_bytes));
        let connections = match host.connections {
            1 => "1 connection".to_owned(),
            count => format!("{count} connections"),
        };
        // Writing to a string does not fail.
        let _ = write!(line, "{connections}, {sent} sent, {received} received");
    }
    if let Some(failure) = &host.failure {
        if host.connections > 0 {
            line.push_str("; ");
        }
        line.push_str(failure);
    }
    line.push(']');
    line
}

/// Why a host was refused, and what to do.
fn advice(target: &HostPort, refusal: &Refusal) -> String {
    let name = match target.port {
        80 | 443 => target.host.to_string(),
        _ => target.to_string(),
    };
    let ask = |host: &str| {
        format!("To ask the user for it, run the command again with \"hosts\": [\"{host}\"]")
    };
    match refusal {
        Refusal::NotAllowed => format!("the user has not allowed this host. {}", ask(&name)),
        Refusal::Denied => "a rule of the user denies this host. Do without it".to_owned(),
        Refusal::Address { address, class } => {
            let what = format!("its address {address} is {class}");
            match class {
                AddressClass::Private => format!("{what}. {}", ask(&format!("{name}=private"))),
                AddressClass::Loopback => format!("{what}. {}", ask(&format!("{name}=loopback"))),
                AddressClass::Public
                | AddressClass::LinkLocal
                | AddressClass::Metadata
                | AddressClass::Multicast
                | AddressClass::Translated
                | AddressClass::Reserved => format!("{what}, which no command may reach"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(target: &str) -> HostTraffic {
        HostTraffic {
            target: HostPort::parse(target, None).unwrap(),
            connections: 0,
            sent_bytes: 0,
            received_bytes: 0,
            refusal: None,
            failure: None,
        }
    }

    fn text(host: HostTraffic) -> String {
        lines(&TrafficReport { hosts: vec![host], others: 0 }).concat()
    }

    #[test]
    fn a_refused_host_comes_with_what_to_do() {
        let refused =
            |target, refusal| text(HostTraffic { refusal: Some(refusal), ..host(target) });
        assert_eq!(
            refused("example.org:443", Refusal::NotAllowed),
            "[network: refused example.org:443: the user has not allowed this host. To ask the user \
             for it, run the command again with \"hosts\": [\"example.org\"]]"
        );
        assert!(refused("a.org:8080", Refusal::NotAllowed).contains("[\"a.org:8080\"]"));
        let at = |address: &str| {
            let address = address.parse().unwrap();
            Refusal::Address { address, class: AddressClass::of(address) }
        };
        assert!(refused("a.corp:443", at("10.0.0.1")).contains("[\"a.corp=private\"]"));
        let never = refused("a.org:80", at("169.254.169.254"));
        assert!(never.contains("no command may reach") && !never.contains("hosts"), "{never}");
    }

    #[test]
    fn traffic_is_counted_in_units() {
        let moved = HostTraffic {
            connections: 2,
            sent_bytes: 900,
            received_bytes: 1_250_000,
            ..host("pypi.org:443")
        };
        let expected = "[network: pypi.org:443: 2 connections, 900 bytes sent, 1.1 MiB received]";
        assert_eq!(text(moved), expected);
        let failed = HostTraffic { failure: Some("it is down".to_owned()), ..host("a.org:80") };
        assert_eq!(text(failed), "[network: a.org:80: it is down]");
    }

    #[test]
    fn the_text_is_bounded() {
        let hosts = (0..32).map(|n| HostTraffic {
            refusal: Some(Refusal::NotAllowed),
            ..host(&format!("{n}{}.org:443", "a".repeat(60)))
        });
        let report = TrafficReport { hosts: hosts.collect(), others: 3 };
        let text = lines(&report).join("\n");
        assert!(text.len() < TEXT_BYTES_MAX + 100, "{}", text.len());
        assert!(text.ends_with("more attempts are not listed]"), "{text}");
    }
}
