//! Transport settings of a scenario in the kernel's words: sysctls of the host and options of routes.

use std::collections::BTreeMap;

use anabranch_scenario::model::{
    Connection, DelayedAck, IpVersion, Join, Protocol, Recovery, RtoRule, Transport,
};

/// IPv4 and TCP headers and what IPv6 adds; timestamps (RFC 7323) with padding; the DSS option of a data packet as
/// Linux sends it, with a data acknowledgement and a data sequence number of 8 bytes each (RFC 8684 section 3.3).
const IPV4_AND_TCP: u32 = 40;
const IPV6_MORE: u32 = 20;
const TIMESTAMPS: u32 = 12;
const DSS: u32 = 24;

/// `tcp_rmem` and `tcp_wmem` where the scenario sets no limit.
const UNLIMITED_BUFFER: u64 = 64 << 20;
/// Where automatic tuning begins, the kernel's defaults.
const INITIAL_RECEIVE_BUFFER: u64 = 131_072;
const INITIAL_SEND_BUFFER: u64 = 16_384;
/// The least that `tcp_rmem` and `tcp_wmem` take: a page.
const LEAST_BUFFER: u64 = 4_096;

const MS: u64 = 1_000_000;
const KERNEL_INITIAL_RTO: u64 = 1_000 * MS;
const KERNEL_MAX_RTO: u64 = 120_000 * MS;
const KERNEL_DELAYED_ACK: DelayedAck =
    DelayedAck { timeout: 40 * MS, every: 2, timeout_max: 200 * MS, quick: 16 };

/// A connection's settings on the kernel.
pub(super) struct KernelTransport {
    /// Largest IP packet.
    pub(super) mtu: u32,
    /// By dotted name.
    pub(super) sysctls: BTreeMap<&'static str, String>,
    /// Of both ends' routes.
    pub(super) route_options: Vec<String>,
    /// What the kernel does in another way than the scenario says.
    pub(super) notes: Vec<String>,
}

impl KernelTransport {
    pub(super) fn new(connection: &Connection) -> Self {
        let transport = &connection.transport;
        let mptcp = connection.protocol == Protocol::Mptcp;
        let dss = if mptcp { DSS } else { 0 };
        let ip_and_tcp = match connection.ip_version {
            IpVersion::V4 => IPV4_AND_TCP,
            IpVersion::V6 => IPV4_AND_TCP + IPV6_MORE,
        };
        let timestamps = transport.header_bytes != ip_and_tcp;
        let header_bytes = ip_and_tcp + dss + if timestamps { TIMESTAMPS } else { 0 };
        let mtu = transport.segment_bytes + header_bytes;
        let sysctls = sysctls(transport, mptcp, timestamps);
        let mut built =
            Self { mtu, sysctls, route_options: route_options(transport, mtu), notes: Vec::new() };
        built.note_differences(connection, header_bytes);
        built
    }

    fn note_differences(&mut self, connection: &Connection, header_bytes: u32) {
        let transport = &connection.transport;
        let name = &connection.name;
        let mut differs = |is: bool, what: String| {
            if is {
                self.notes.push(format!("{name}: {what}"));
            }
        };
        differs(
            transport.header_bytes != header_bytes,
            format!("headers take {header_bytes} B, the scenario says {} B", transport.header_bytes),
        );
        differs(
            connection.protocol == Protocol::Mptcp && transport.join == Join::Immediately,
            "further subflows are opened once the connection is established, not at once".to_owned(),
        );
        differs(
            connection.protocol == Protocol::Mptcp
                && connection.subflows.len() > 1
                && !matches!(connection.scheduler.name.as_str(), "minrtt" | "linux"),
            format!("the kernel's default scheduler takes the place of {}", connection.scheduler.name),
        );
        differs(transport.send_jitter > 0, "there is no send_jitter".to_owned());
        differs(
            transport.initial_rto != KERNEL_INITIAL_RTO,
            "the retransmission timeout before the first sample is 1 s".to_owned(),
        );
        differs(
            transport.rto_rule != RtoRule::Linux,
            "the retransmission timeout follows the rule `linux`".to_owned(),
        );
        differs(!transport.limited_transmit, "limited transmit cannot be turned off".to_owned());
        differs(
            transport.delayed_ack.is_some_and(|delayed| delayed != KERNEL_DELAYED_ACK),
            "acknowledgements are delayed as Linux does: every second segment, 40 ms or more".to_owned(),
        );
        differs(
            transport.pacing && connection.protocol == Protocol::Mptcp,
            "pacing cannot be turned on for MPTCP".to_owned(),
        );
    }
}

/// What our congestion controls take from the route when a connection begins, and the kernel's own never for the first
/// one to a destination.
pub(super) fn not_native(connection: &Connection) -> Option<String> {
    let transport = &connection.transport;
    let wanted = transport.window_cap.is_some() || transport.initial_ssthresh.is_some();
    wanted.then(|| {
        format!(
            "{}: window_cap and initial_ssthresh do nothing with the kernel's own congestion control",
            connection.name
        )
    })
}

fn sysctls(transport: &Transport, mptcp: bool, timestamps: bool) -> BTreeMap<&'static str, String> {
    let flag = |on: bool| u8::from(on).to_string();
    let buffer = |limit: Option<u64>, initial: u64| {
        let most = limit.unwrap_or(UNLIMITED_BUFFER).max(LEAST_BUFFER);
        format!("{LEAST_BUFFER} {} {most}", initial.min(most))
    };
    let tuned = transport.receive_buffer_tuning;
    let initial_receive = if tuned { INITIAL_RECEIVE_BUFFER } else { u64::MAX };
    let (sack, rack, probes) = match transport.recovery {
        // Tahoe is refused before.
        Recovery::Tahoe | Recovery::NewReno => (false, 0, 0),
        Recovery::Sack => (true, 0, 0),
        Recovery::Rack => (true, 1, 3),
    };
    let mut sysctls = BTreeMap::from([
        ("net.ipv4.tcp_rmem", buffer(transport.receive_buffer, initial_receive)),
        ("net.ipv4.tcp_moderate_rcvbuf", flag(tuned)),
        ("net.ipv4.tcp_wmem", buffer(transport.send_buffer, INITIAL_SEND_BUFFER)),
        ("net.ipv4.tcp_sack", flag(sack)),
        ("net.ipv4.tcp_recovery", rack.to_string()),
        ("net.ipv4.tcp_early_retrans", probes.to_string()),
        ("net.ipv4.tcp_timestamps", flag(timestamps)),
        ("net.ipv4.tcp_ecn", flag(transport.ecn)),
        // What one connection has learnt must not reach the next one.
        ("net.ipv4.tcp_no_metrics_save", flag(true)),
        ("net.ipv4.tcp_mtu_probing", flag(false)),
    ]);
    if transport.max_rto != KERNEL_MAX_RTO {
        sysctls.insert("net.ipv4.tcp_rto_max_ms", (transport.max_rto / MS).to_string());
    }
    if mptcp {
        sysctls.insert("net.mptcp.enabled", flag(true));
        sysctls.insert("net.mptcp.checksum_enabled", flag(false));
        sysctls.insert("net.mptcp.scheduler", "default".to_owned());
        if let Some(timeouts) = transport.stale_after {
            sysctls.insert("net.mptcp.stale_loss_cnt", timeouts.to_string());
        }
        // A lossy path may need many SYNs; giving up MPTCP on it would make another experiment of it.
        sysctls.insert("net.mptcp.syn_retrans_before_tcp_fallback", "8".to_owned());
    }
    sysctls
}

/// In the words of ip-route(8).
fn route_options(transport: &Transport, mtu: u32) -> Vec<String> {
    let mut options = vec![
        format!("mtu lock {mtu}"),
        format!("initcwnd {}", transport.initial_window),
        format!("rto_min {}ms", (transport.min_rto / MS).max(1)),
    ];
    if let Some(packets) = transport.initial_ssthresh {
        options.push(format!("ssthresh {packets}"));
    }
    if let Some(packets) = transport.window_cap {
        options.push(format!("cwnd lock {packets}"));
    }
    if transport.delayed_ack.is_none() {
        options.push("quickack 1".to_owned());
    }
    options
}
