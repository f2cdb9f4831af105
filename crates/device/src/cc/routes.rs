//! Routes whose connections use an algorithm: `congctl` of ip-route(8), by rtnetlink(7).
//!
//! A route is read, given another congestion control and put back in its place, with everything else as it was. All
//! tables but `local` count, because a host with several networks has a default route per network in tables of its own,
//! and connections take those. Left out: whoever renews the route afterwards (a DHCP client, router advertisements); the
//! renewed one is without it.

use std::{
    io,
    net::{IpAddr, Ipv4Addr},
    str::FromStr,
};

use anabranch_cc::Algorithm;
use anabranch_kernel::kernel_name;
use nix::sys::socket::SockProtocol;

use super::{
    netlink::{Message, Netlink, attributes, push_attribute, text, u32_at},
    selection::require_loaded,
};
use crate::DeviceError;

/// Size of `rtmsg`.
const HEADER: usize = 12;
/// Places in `rtmsg`.
const DST_LEN: usize = 1;
const TYPE: usize = 7;
const FLAGS: usize = 8;
/// Attributes and values that the `libc` crate lacks (`linux/rtnetlink.h`).
const RTA_VIA: u16 = 18;
const RTA_NH_ID: u16 = 30;
const RTAX_CC_ALGO: u16 = 16;
/// The flag of a next hop that is the user's; the others tell its state.
const RTNH_F_ONLINK: u32 = 4;
/// Size of `rtnexthop`, and the place of its flags.
const HOP: usize = 8;
const HOP_FLAGS: usize = 2;

/// The destination of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl FromStr for Prefix {
    type Err = String;

    /// Reads `192.0.2.0/24`, `2001:db8::/32`, an address alone, or `default`, which is `0.0.0.0/0`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "default" {
            return Ok(Self { address: Ipv4Addr::UNSPECIFIED.into(), length: 0 });
        }
        let (address, length) = text.split_once('/').map_or((text, None), |(ip, len)| (ip, Some(len)));
        let expected = || "expected a prefix such as 192.0.2.0/24, 2001:db8::/32, ::/0 or default".to_owned();
        let address: IpAddr = address.parse().map_err(|_| expected())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Ok(longest), str::parse).map_err(|_| expected())?;
        if length > longest {
            return Err(expected());
        }
        Ok(Self { address, length })
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// A route that [`use_on_routes`] has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedRoute {
    /// Its destination.
    pub prefix: Prefix,
    /// Number of its table; 254 is `main`.
    pub table: u32,
    /// The congestion control that it named before.
    pub before: Option<String>,
}

/// Has connections over the routes to exactly these prefixes use the algorithm, or, without one, whatever they would use
/// otherwise; in this network namespace.
///
/// # Errors
/// [`DeviceError::Refused`] if it is not loaded, or there is no such route; [`DeviceError::System`]. Nothing is changed if a
/// prefix has no route.
pub fn use_on_routes(
    algorithm: Option<&Algorithm>,
    prefixes: &[Prefix],
) -> Result<Vec<ChangedRoute>, DeviceError> {
    if let Some(algorithm) = algorithm {
        require_loaded(algorithm)?;
    }
    let chosen = algorithm.map(kernel_name);
    let failed = |what: &str| DeviceError::system(format!("{what} routes"));
    let mut netlink = Netlink::open(SockProtocol::NetlinkRoute).map_err(failed("asking for"))?;
    let mut changes = Vec::new();
    for prefix in prefixes {
        let found = routes(&mut netlink, prefix).map_err(failed("asking for"))?;
        if found.is_empty() {
            return Err(DeviceError::Refused(format!(
                "no route to exactly {prefix} (`ip route show table all {prefix}`); nothing was changed"
            )));
        }
        changes.extend(found.into_iter().map(|route| (*prefix, route)));
    }
    let mut done = Vec::new();
    for (prefix, route) in changes {
        let (request, before) = changed(&route, chosen.as_deref());
        let flags = libc::NLM_F_ACK | libc::NLM_F_REPLACE;
        netlink.ask(libc::RTM_NEWROUTE, flags, &request).map_err(failed("changing"))?;
        done.push(ChangedRoute { prefix, table: table(&route).unwrap_or_default(), before });
    }
    Ok(done)
}

/// The bodies of the unicast routes to a prefix.
fn routes(netlink: &mut Netlink, prefix: &Prefix) -> io::Result<Vec<Vec<u8>>> {
    let mut request = [0; HEADER];
    request[0] = if prefix.address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 } as u8;
    let answer = netlink.ask(libc::RTM_GETROUTE, libc::NLM_F_DUMP, &request)?;
    let bodies = answer.into_iter().map(|Message { body, .. }| body);
    Ok(bodies.filter(|body| is_to(body, prefix)).collect())
}

fn is_to(body: &[u8], prefix: &Prefix) -> bool {
    let Some((header, rest)) = body.split_at_checked(HEADER) else { return false };
    let octets = match prefix.address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let destination = attributes(rest).find(|(kind, _)| *kind == libc::RTA_DST).map(|(_, value)| value);
    let destination = destination.unwrap_or_default();
    header[TYPE] == libc::RTN_UNICAST
        && header[DST_LEN] == prefix.length
        && table(body) != Some(u32::from(libc::RT_TABLE_LOCAL))
        && (destination == octets || destination.is_empty() && prefix.length == 0)
}

fn table(body: &[u8]) -> Option<u32> {
    let mut found = attributes(body.get(HEADER..)?).filter(|(kind, _)| *kind == libc::RTA_TABLE);
    u32_at(found.next()?.1, 0)
}

/// The route with another congestion control, and the one it named.
fn changed(body: &[u8], chosen: Option<&str>) -> (Vec<u8>, Option<String>) {
    let (header, rest) = body.split_at(HEADER);
    let mut request = header.to_vec();
    let flags = u32_at(header, FLAGS).unwrap_or(0) & RTNH_F_ONLINK;
    request[FLAGS..].copy_from_slice(&flags.to_ne_bytes());
    // A next hop by number is told together with what it stands for, and must be given alone.
    let by_number = attributes(rest).any(|(kind, _)| kind == RTA_NH_ID);
    let mut metrics = Vec::new();
    let mut before = None;
    for (kind, value) in attributes(rest) {
        match kind {
            libc::RTA_METRICS => {
                for (metric, value) in attributes(value) {
                    if metric == RTAX_CC_ALGO {
                        before = Some(text(value).to_owned());
                    } else {
                        push_attribute(&mut metrics, metric, value);
                    }
                }
            }
            libc::RTA_CACHEINFO => {}
            libc::RTA_OIF | libc::RTA_GATEWAY | RTA_VIA | libc::RTA_MULTIPATH if by_number => {}
            libc::RTA_MULTIPATH => push_attribute(&mut request, kind, &without_state(value)),
            _ => push_attribute(&mut request, kind, value),
        }
    }
    if let Some(name) = chosen {
        push_attribute(&mut metrics, RTAX_CC_ALGO, &[name.as_bytes(), b"\0"].concat());
    }
    push_attribute(&mut request, libc::RTA_METRICS, &metrics);
    (request, before)
}

/// The hops of a route over several, without the flags that only tell their state.
fn without_state(hops: &[u8]) -> Vec<u8> {
    let mut hops = hops.to_vec();
    let mut at = 0;
    while let Some(length) = hops.get(at..at + 2).map(|two| u16::from_ne_bytes([two[0], two[1]])) {
        let length = usize::from(length);
        if length < HOP || at + length > hops.len() {
            break;
        }
        hops[at + HOP_FLAGS] &= RTNH_F_ONLINK as u8;
        at += length.next_multiple_of(4);
    }
    hops
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A route to 192.0.2.0/24 by a gateway, with an MTU.
    fn route(congestion: Option<&[u8]>) -> Vec<u8> {
        let mut body = vec![libc::AF_INET as u8, 24, 0, 0, 254, 4, 0, libc::RTN_UNICAST, 16 | 4, 0, 0, 0];
        let mut metrics = Vec::new();
        push_attribute(&mut metrics, 2, &1400u32.to_ne_bytes());
        if let Some(name) = congestion {
            push_attribute(&mut metrics, RTAX_CC_ALGO, name);
        }
        push_attribute(&mut body, libc::RTA_TABLE, &254u32.to_ne_bytes());
        push_attribute(&mut body, libc::RTA_DST, &[192, 0, 2, 0]);
        push_attribute(&mut body, libc::RTA_METRICS, &metrics);
        push_attribute(&mut body, libc::RTA_GATEWAY, &[10, 0, 0, 1]);
        push_attribute(&mut body, libc::RTA_CACHEINFO, &[0; 32]);
        body
    }

    fn metrics(request: &[u8]) -> Vec<(u16, Vec<u8>)> {
        let found = attributes(&request[HEADER..]).find(|(kind, _)| *kind == libc::RTA_METRICS);
        let metrics = attributes(found.expect("there are metrics").1);
        metrics.map(|(metric, value)| (metric, value.to_vec())).collect()
    }

    #[test]
    fn only_the_congestion_control_of_a_route_changes() {
        let mtu = (2, 1400u32.to_ne_bytes().to_vec());
        let (request, before) = changed(&route(None), Some("ab_lia"));
        assert_eq!(before, None);
        assert_eq!(metrics(&request), [mtu.clone(), (RTAX_CC_ALGO, b"ab_lia\0".to_vec())]);
        assert_eq!(request[..FLAGS], route(None)[..FLAGS]);
        assert_eq!(u32_at(&request, FLAGS), Some(RTNH_F_ONLINK), "linkdown is a state and goes");
        let kinds: Vec<u16> = attributes(&request[HEADER..]).map(|(kind, _)| kind).collect();
        assert_eq!(kinds, [libc::RTA_TABLE, libc::RTA_DST, libc::RTA_GATEWAY, libc::RTA_METRICS]);

        let (undone, before) = changed(&route(Some(b"ab_lia\0")), None);
        assert_eq!(before.as_deref(), Some("ab_lia"));
        assert_eq!(metrics(&undone), [mtu]);
    }

    #[test]
    fn a_route_is_found_by_its_whole_prefix() {
        let is = |prefix: &str| is_to(&route(None), &prefix.parse().unwrap());
        assert!(is("192.0.2.0/24"));
        assert!(!is("192.0.2.0/25") && !is("192.0.3.0/24") && !is("default") && !is("::/0"));
        let mut local = vec![libc::AF_INET as u8, 0, 0, 0, 255, 2, 0, libc::RTN_UNICAST, 0, 0, 0, 0];
        push_attribute(&mut local, libc::RTA_TABLE, &255u32.to_ne_bytes());
        assert!(!is_to(&local, &"default".parse().unwrap()));
        assert!(!is_to(&[0; 5], &"default".parse().unwrap()));
    }

    #[test]
    fn states_of_hops_are_left_out() {
        let hop = |flags: u8| [16, 0, flags, 0, 2, 0, 0, 0, 8, 0, 5, 0, 10, 0, 0, 1];
        let hops = [hop(16 | 4), hop(1)].concat();
        assert_eq!(without_state(&hops), [hop(4), hop(0)].concat());
        assert_eq!(without_state(&hops[..17]), [&hop(4)[..], &[16]].concat());
    }

    #[test]
    fn prefixes_are_read_and_others_refused() {
        let shown = |text: &str| text.parse::<Prefix>().map(|prefix| prefix.to_string());
        assert_eq!(shown("default"), Ok("0.0.0.0/0".to_owned()));
        assert_eq!(shown("2001:db8::/32"), Ok("2001:db8::/32".to_owned()));
        assert_eq!(shown("10.0.0.1"), Ok("10.0.0.1/32".to_owned()));
        for bad in ["10.0.0.0/33", "10.0.0/8", "all", "::/129", "::/-1", ""] {
            assert!(shown(bad).unwrap_err().starts_with("expected a prefix"), "{bad}");
        }
    }
}
