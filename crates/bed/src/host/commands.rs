//! What ip(8) and tc(8) are told for one host. Pure: text from a plan.

use std::{fmt::Write as _, net::IpAddr};

use crate::plan::{Address, Endpoint, Host, Interface, Role};

/// Packets that a TUN device holds until the emulator reads them; the kernel drops what comes while it is full.
/// Far above what a pause of the emulator lets collect: 400 ms at 50,000 packets per second.
const QUEUE_PACKETS: u32 = 20_000;

/// The kernel's limit for an alias (`IFALIASZ`), less its end mark.
const ALIAS_BYTES_MAX: usize = 255;

/// Sysctls that every namespace gets before it has a device, so that a device begins with them: no packets but
/// the scenario's, and no check that an address belongs to the path a packet takes.
pub(super) fn base_sysctls(ipv6: bool) -> Vec<(String, String)> {
    let v4 = [("net.ipv4.conf.all.rp_filter", "0"), ("net.ipv4.conf.default.rp_filter", "0")];
    let v6 = [
        ("net.ipv6.conf.all.disable_ipv6", "0"),
        ("net.ipv6.conf.default.disable_ipv6", "0"),
        ("net.ipv6.conf.default.accept_ra", "0"),
        ("net.ipv6.conf.default.autoconf", "0"),
        ("net.ipv6.conf.default.router_solicitations", "0"),
        ("net.ipv6.conf.default.accept_dad", "0"),
        // No link-local address: nothing here asks for one, and it would announce itself.
        ("net.ipv6.conf.default.addr_gen_mode", "1"),
    ];
    let v6 = v6.iter().take(if ipv6 { v6.len() } else { 0 });
    v4.iter().chain(v6).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Sysctls of a host's devices, then the plan's own. A host without an IPv6 address has no IPv6; one that has an address
/// takes packets for it from all devices, as with IPv4.
pub(super) fn sysctls(host: &Host, ipv6: bool) -> Vec<(String, String)> {
    let mut addresses = host.interfaces.iter().flat_map(|interface| &interface.addresses);
    let silent = ipv6 && !addresses.any(is_v6);
    let silent = host.interfaces.iter().filter(|_| silent);
    let silent =
        silent.map(|interface| (format!("net.ipv6.conf.{}.disable_ipv6", interface.name), "1".to_owned()));
    silent.chain(host.sysctls.iter().cloned()).collect()
}

/// For `tc -batch`: packets go from the kernel's TCP straight to the device, whatever the host's
/// `net.core.default_qdisc` is.
pub(super) fn queueing(host: &Host) -> String {
    let line = |interface: &Interface| format!("qdisc replace dev {} root noqueue\n", interface.name);
    host.interfaces.iter().map(line).collect()
}

/// For `ip -batch`: everything but rules from IPv6 addresses.
pub(super) fn setup(host: &Host) -> String {
    let mut batch = String::from("link set lo up\n");
    // A device that is up before all addresses are there may announce itself in between; so links come last of
    // what does not need them, and routes, which do, after them.
    for interface in &host.interfaces {
        let Interface { name, link, mtu, .. } = interface;
        let alias = &link[..link.len().min(ALIAS_BYTES_MAX)];
        let _ = writeln!(batch, "link set dev {name} mtu {mtu} txqueuelen {QUEUE_PACKETS} alias {alias}");
        for address in &interface.addresses {
            let (ip, bits) = (address.ip, bits(address.ip));
            let nodad = if ip.is_ipv6() { " nodad" } else { "" };
            let _ = writeln!(batch, "address add {ip}/{bits} dev {name}{nodad}");
        }
        let _ = writeln!(batch, "link set dev {name} up");
    }
    for (interface, address) in addresses(host) {
        let _ = writeln!(batch, "{}", default_route(interface, address, address.table));
        if address.ip.is_ipv4() {
            let _ = writeln!(batch, "rule add from {} table {}", address.ip, address.table);
        }
    }
    // For sockets that are not bound to an address: they go by the first one, as a host with one uplink would.
    for family in [is_v4, is_v6] {
        if let Some((interface, address)) = addresses(host).find(|(_, address)| family(address)) {
            let route = default_route(interface, address, MAIN_TABLE);
            let _ = writeln!(batch, "{route} src {}", address.ip);
        }
    }
    for (interface, address) in addresses(host) {
        for &there in &address.reaches {
            let _ = writeln!(batch, "{} src {}", route(interface, address, MAIN_TABLE, there), address.ip);
        }
    }
    if let Some((subflows, accepted)) = host.mptcp_limits {
        let _ = writeln!(batch, "mptcp limits set subflows {subflows} add_addr_accepted {accepted}");
    }
    for (interface, address) in addresses(host) {
        if let Some(endpoint) = address.endpoint.as_ref().filter(|endpoint| endpoint.present) {
            let _ = writeln!(batch, "{}", add_endpoint(interface, address.ip, endpoint));
        }
    }
    batch
}

/// Adds an endpoint, present or not.
pub(super) fn add_endpoint(interface: &Interface, ip: IpAddr, endpoint: &Endpoint) -> String {
    let backup = if endpoint.backup { " backup" } else { "" };
    let flag = match endpoint.role {
        Role::Subflow | Role::First => "subflow",
        Role::Signal => "signal",
    };
    format!("mptcp endpoint add {ip} dev {} id {} {flag}{backup}", interface.name, endpoint.id)
}

/// For `ip -6 -batch`: rules from IPv6 addresses, whose family ip(8) does not see from the address.
pub(super) fn ipv6_rules(host: &Host) -> String {
    let addresses = addresses(host).filter(|(_, address)| is_v6(address));
    addresses.map(|(_, address)| format!("rule add from {} table {}\n", address.ip, address.table)).collect()
}

/// The routing table that a look-up ends in without a rule of its own (`RT_TABLE_MAIN`).
const MAIN_TABLE: u32 = 254;

/// A route to everywhere.
pub(super) fn default_route(interface: &Interface, address: &Address, table: u32) -> String {
    with_options(format!("route add {} dev {} table {table}", any(address.ip), interface.name), address)
}

/// Everywhere, in the words of ip-route(8).
pub(super) fn any(ip: IpAddr) -> &'static str {
    if ip.is_ipv4() { "0.0.0.0/0" } else { "::/0" }
}

fn route(interface: &Interface, address: &Address, table: u32, there: IpAddr) -> String {
    let destination = format!("{there}/{}", bits(there));
    with_options(format!("route add {destination} dev {} table {table}", interface.name), address)
}

fn with_options(mut route: String, address: &Address) -> String {
    for option in &address.route_options {
        let _ = write!(route, " {option}");
    }
    route
}

pub(super) fn addresses(host: &Host) -> impl Iterator<Item = (&Interface, &Address)> {
    host.interfaces
        .iter()
        .flat_map(|interface| interface.addresses.iter().map(move |address| (interface, address)))
}

fn is_v4(address: &Address) -> bool {
    address.ip.is_ipv4()
}

fn is_v6(address: &Address) -> bool {
    address.ip.is_ipv6()
}

fn bits(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        let address = |ip: &str, table, options: &[&str], endpoint| Address {
            ip: ip.parse().unwrap(),
            table,
            route_options: options.iter().map(|&option| option.to_owned()).collect(),
            endpoint,
            reaches: Vec::new(),
        };
        let endpoint = |id, backup, role, present| Some(Endpoint { id, backup, role, present });
        let interface = |name: &str, link: &str, mtu, addresses| Interface {
            name: name.to_owned(),
            link: link.to_owned(),
            mtu,
            addresses,
        };
        Host {
            node: 0,
            name: "meter.1".to_owned(),
            interfaces: vec![
                interface(
                    "if0",
                    "dsl",
                    1500,
                    vec![address("10.0.0.1", 1001, &["initcwnd 10"], endpoint(3, false, Role::First, false))],
                ),
                interface(
                    "if1",
                    "lte",
                    1400,
                    vec![
                        address("10.0.0.2", 1002, &[], endpoint(2, true, Role::Subflow, true)),
                        address("fd00::2", 1003, &["initcwnd 2", "rto_min 200ms"], None),
                    ],
                ),
            ],
            sysctls: vec![("net.ipv4.tcp_sack".to_owned(), "0".to_owned())],
            mptcp_limits: Some((4, 0)),
        }
    }

    #[test]
    fn each_address_has_a_route_of_its_own_and_the_first_of_a_family_the_main_one() {
        let expected = "\
link set lo up
link set dev if0 mtu 1500 txqueuelen 20000 alias dsl
address add 10.0.0.1/32 dev if0
link set dev if0 up
link set dev if1 mtu 1400 txqueuelen 20000 alias lte
address add 10.0.0.2/32 dev if1
address add fd00::2/128 dev if1 nodad
link set dev if1 up
route add 0.0.0.0/0 dev if0 table 1001 initcwnd 10
rule add from 10.0.0.1 table 1001
route add 0.0.0.0/0 dev if1 table 1002
rule add from 10.0.0.2 table 1002
route add ::/0 dev if1 table 1003 initcwnd 2 rto_min 200ms
route add 0.0.0.0/0 dev if0 table 254 initcwnd 10 src 10.0.0.1
route add ::/0 dev if1 table 254 initcwnd 2 rto_min 200ms src fd00::2
mptcp limits set subflows 4 add_addr_accepted 0
mptcp endpoint add 10.0.0.2 dev if1 id 2 subflow backup
";
        assert_eq!(setup(&host()), expected);
        assert_eq!(ipv6_rules(&host()), "rule add from fd00::2 table 1003\n");
    }

    #[test]
    fn a_host_without_ipv6_address_has_no_ipv6_and_the_plan_has_the_last_word() {
        let own = [("net.ipv4.tcp_sack".to_owned(), "0".to_owned())];
        assert_eq!(sysctls(&host(), true), own, "if0 takes packets for the address of if1");
        let mut v4_alone = host();
        v4_alone.interfaces[1].addresses.pop();
        let silent =
            ["if0", "if1"].map(|name| (format!("net.ipv6.conf.{name}.disable_ipv6"), "1".to_owned()));
        assert_eq!(sysctls(&v4_alone, true), [silent.as_slice(), &own].concat());
        assert_eq!(sysctls(&v4_alone, false), own);
    }

    #[test]
    fn an_alias_is_cut_at_the_kernel_s_limit() {
        let mut host = host();
        host.interfaces[0].link = "l".repeat(300);
        let longest = format!("alias {}\n", "l".repeat(255));
        assert!(setup(&host).contains(&longest));
    }
}
