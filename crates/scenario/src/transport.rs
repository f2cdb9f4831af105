//! Transport settings: a profile, then single values on top.

use crate::Error;
use crate::congestion::Named;
use crate::keys::DATAGRAM_MAX;
use crate::model::{DelayedAck, IpVersion, Join, Nanos, Protocol, Recovery, RtoRule, Transport};
use crate::quantity::Dimension;
use crate::reader::Table;

const MS: Nanos = 1_000_000;
const SECOND: Nanos = 1_000 * MS;
/// RFC 1122 section 4.2.3.2 allows up to 500 ms; 200 ms is the timer of BSD and the upper bound of Linux's.
const RFC_DELAYED_ACK: DelayedAck =
    DelayedAck { timeout: 200 * MS, every: 2, timeout_max: 200 * MS, quick: 0 };
/// As measured on Linux 6.18 (docs/validation.md): 40 ms, the floor of its timer, and 16 quick ones.
const LINUX_DELAYED_ACK: DelayedAck =
    DelayedAck { timeout: 40 * MS, every: 2, timeout_max: 200 * MS, quick: 16 };

/// Values that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Profile {
    Ns2,
    Rfc,
    Linux,
}

/// The sizes on a 1500-byte MTU: IPv4 and TCP 20 each, timestamps 12 with padding (RFC 7323). MPTCP adds the DSS
/// option (RFC 8684 section 3.3): 4 of its own, then on data a mapping and a 4-byte data ACK (4 + 4 + 4 + 2, or an
/// 8-byte mapping without a data ACK), 20 with padding; on a pure ACK the 8-byte data ACK that answers 8-byte
/// sequence numbers, 12 together. Linux sends the data ACK in 8 bytes on data too, 24 with padding (measured on 6.18). IPv6's header (RFC 8200 section 3) has 20 bytes more than IPv4's.
const HEADERS: u32 = 52;
const IPV6_MORE: u32 = 20;
const DSS_DATA: u32 = 20;
const DSS_DATA_LINUX: u32 = 24;
const DSS_ACK: u32 = 12;
const MTU: u32 = 1500;

fn profile_values(profile: Profile, protocol: Protocol, ip: IpVersion) -> Transport {
    let (dss_data, dss_data_linux, dss_ack) = match protocol {
        Protocol::Tcp => (0, 0, 0),
        Protocol::Mptcp => (DSS_DATA, DSS_DATA_LINUX, DSS_ACK),
    };
    let headers = match ip {
        IpVersion::V4 => HEADERS,
        IpVersion::V6 => HEADERS + IPV6_MORE,
    };
    let rfc = Transport {
        segment_bytes: MTU - headers - dss_data,
        header_bytes: headers + dss_data,
        ack_bytes: headers + dss_ack,
        initial_window: 10,
        initial_ssthresh: None,
        window_cap: None,
        initial_rto: SECOND,
        min_rto: SECOND,
        rto_granularity: MS,
        max_rto: 60 * SECOND,
        rto_rule: RtoRule::Rfc6298,
        delayed_ack: Some(RFC_DELAYED_ACK),
        limited_transmit: true,
        recovery: Recovery::Sack,
        prr: false,
        undo: false,
        ecn: false,
        opportunistic_retransmission: false,
        penalisation: false,
        receive_buffer: None,
        receive_buffer_tuning: false,
        send_buffer: None,
        send_buffer_tuning: false,
        stale_after: None,
        pacing: false,
        join: Join::Established,
        send_jitter: 0,
    };
    match profile {
        Profile::Rfc => rfc,
        // ns-default.tcl of ns-2.35: packetSize_ 1000, windowInit_ 2, minrto_ 0.2, rtxcur_init_ 3.0, maxrto_ 60,
        // tcpTick_ 0.01.
        Profile::Ns2 => Transport {
            segment_bytes: 1000,
            header_bytes: 40,
            ack_bytes: 40,
            initial_window: 2,
            initial_rto: 3 * SECOND,
            min_rto: 200 * MS,
            rto_granularity: 10 * MS,
            delayed_ack: None,
            recovery: Recovery::NewReno,
            join: Join::Immediately,
            ..rfc
        },
        // TCP_DELACK_MIN, TCP_RTO_MIN and TCP_RTO_MAX; the third values of tcp_rmem (newer kernels have 32 MiB, which
        // changes nothing behind this send buffer) and tcp_wmem; net.mptcp.stale_loss_cnt. The kernel charges its own overhead per packet to
        // these buffers, the simulator counts payload. Linux paces Reno and CUBIC only under the queue discipline fq
        // or with SO_MAX_PACING_RATE. It answers a peer that asks for ECN but does not ask by itself (tcp_ecn = 2), so
        // two of them do without; its MPTCP neither retransmits opportunistically nor penalises.
        Profile::Linux => Transport {
            segment_bytes: MTU - headers - dss_data_linux,
            header_bytes: headers + dss_data_linux,
            min_rto: 200 * MS,
            max_rto: 120 * SECOND,
            rto_rule: RtoRule::Linux,
            delayed_ack: Some(LINUX_DELAYED_ACK),
            recovery: Recovery::Rack,
            prr: true,
            undo: true,
            receive_buffer: Some(6 << 20),
            receive_buffer_tuning: true,
            send_buffer: Some(4 << 20),
            stale_after: Some(4),
            ..rfc
        },
    }
}

/// The keys of one transport table that were given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    profile: Option<Profile>,
    segment: Option<u32>,
    header: Option<u32>,
    ack: Option<u32>,
    initial_window: Option<u32>,
    initial_ssthresh: Option<Option<u64>>,
    window_cap: Option<Option<u64>>,
    initial_rto: Option<Nanos>,
    min_rto: Option<Nanos>,
    rto_granularity: Option<Nanos>,
    max_rto: Option<Nanos>,
    rto_rule: Option<RtoRule>,
    delayed_ack: Option<DelayedAckSetting>,
    limited_transmit: Option<bool>,
    recovery: Option<Recovery>,
    prr: Option<bool>,
    undo: Option<bool>,
    ecn: Option<bool>,
    opportunistic_retransmission: Option<bool>,
    penalisation: Option<bool>,
    receive_buffer: Option<Option<u64>>,
    receive_buffer_tuning: Option<bool>,
    stale_after: Option<u32>,
    pacing: Option<bool>,
    send_buffer: Option<Option<u64>>,
    send_buffer_tuning: Option<bool>,
    join: Option<Join>,
    send_jitter: Option<Nanos>,
}

#[derive(Clone, Copy, Debug)]
enum DelayedAckSetting {
    Off,
    On { timeout: Option<Nanos>, every: Option<u32>, timeout_max: Option<Nanos>, quick: Option<u32> },
}

impl Settings {
    pub(crate) fn read(table: &Table<'_>) -> Result<Self, Error> {
        let profile = match table.has("profile").then(|| table.one_of("profile")).transpose()?.flatten() {
            None => None,
            Some("ns2") => Some(Profile::Ns2),
            Some("linux") => Some(Profile::Linux),
            Some(_) => Some(Profile::Rfc),
        };
        let linux_rule = |word| if word == "linux" { RtoRule::Linux } else { RtoRule::Rfc6298 };
        let join = |word| if word == "immediately" { Join::Immediately } else { Join::Established };
        Ok(Self {
            profile,
            segment: table.small("segment")?,
            header: table.small("header")?,
            ack: table.small("ack")?,
            initial_window: table.small("initial_window")?,
            initial_ssthresh: table.limit("initial_ssthresh")?,
            window_cap: table.limit("window_cap")?,
            initial_rto: table.quantity("initial_rto")?,
            min_rto: table.quantity("min_rto")?,
            rto_granularity: table.quantity("rto_granularity")?,
            max_rto: table.quantity("max_rto")?,
            rto_rule: table.one_of("rto_rule")?.map(linux_rule),
            delayed_ack: read_delayed_ack(table)?,
            limited_transmit: table.boolean("limited_transmit")?,
            recovery: table.one_of("recovery")?.map(recovery_of),
            prr: table.boolean("prr")?,
            undo: table.boolean("undo")?,
            ecn: table.boolean("ecn")?,
            opportunistic_retransmission: table.boolean("opportunistic_retransmission")?,
            penalisation: table.boolean("penalisation")?,
            receive_buffer: table.limit("receive_buffer")?,
            receive_buffer_tuning: table.boolean("receive_buffer_tuning")?,
            stale_after: table.integer("stale_after")?.map(|n| n as u32),
            pacing: table.boolean("pacing")?,
            send_buffer: table.limit("send_buffer")?,
            send_buffer_tuning: table.boolean("send_buffer_tuning")?,
            join: table.one_of("join")?.map(join),
            send_jitter: table.quantity("send_jitter")?,
        })
    }

    fn apply(&self, to: &mut Transport) {
        fn set<T: Copy>(to: &mut T, value: Option<T>) {
            *to = value.unwrap_or(*to);
        }
        let packets = |limit: Option<u64>| {
            limit.map(|packets| u32::try_from(packets).expect("the key table bounds it"))
        };
        set(&mut to.segment_bytes, self.segment);
        set(&mut to.header_bytes, self.header);
        set(&mut to.ack_bytes, self.ack);
        set(&mut to.initial_window, self.initial_window);
        set(&mut to.initial_ssthresh, self.initial_ssthresh.map(packets));
        set(&mut to.window_cap, self.window_cap.map(packets));
        set(&mut to.initial_rto, self.initial_rto);
        set(&mut to.min_rto, self.min_rto);
        set(&mut to.rto_granularity, self.rto_granularity);
        set(&mut to.max_rto, self.max_rto);
        set(&mut to.rto_rule, self.rto_rule);
        set(&mut to.limited_transmit, self.limited_transmit);
        set(&mut to.recovery, self.recovery);
        set(&mut to.prr, self.prr);
        set(&mut to.undo, self.undo);
        set(&mut to.ecn, self.ecn);
        set(&mut to.opportunistic_retransmission, self.opportunistic_retransmission);
        set(&mut to.penalisation, self.penalisation);
        set(&mut to.receive_buffer, self.receive_buffer);
        set(&mut to.receive_buffer_tuning, self.receive_buffer_tuning);
        set(&mut to.stale_after, self.stale_after.map(Some));
        set(&mut to.pacing, self.pacing);
        set(&mut to.send_buffer, self.send_buffer);
        set(&mut to.send_buffer_tuning, self.send_buffer_tuning);
        set(&mut to.join, self.join);
        set(&mut to.send_jitter, self.send_jitter);
        match self.delayed_ack {
            None => {}
            Some(DelayedAckSetting::Off) => to.delayed_ack = None,
            Some(DelayedAckSetting::On { timeout, every, timeout_max, quick }) => {
                let base = to.delayed_ack.unwrap_or(RFC_DELAYED_ACK);
                // A timeout without a maximum is not adaptive.
                let inherited = timeout.unwrap_or(base.timeout_max);
                to.delayed_ack = Some(DelayedAck {
                    timeout: timeout.unwrap_or(base.timeout),
                    every: every.unwrap_or(base.every),
                    timeout_max: timeout_max.unwrap_or(inherited),
                    quick: quick.unwrap_or(base.quick),
                });
            }
        }
    }
}

fn read_delayed_ack(table: &Table<'_>) -> Result<Option<DelayedAckSetting>, Error> {
    if table.is_word("delayed_ack", "off") {
        return Ok(Some(DelayedAckSetting::Off));
    }
    let Some(inner) = table.table("delayed_ack")? else { return Ok(None) };
    Ok(Some(DelayedAckSetting::On {
        timeout: inner.quantity("timeout")?,
        every: inner.small("every")?,
        timeout_max: inner.quantity("timeout_max")?,
        quick: inner.small("quick")?,
    }))
}

fn recovery_of(word: &str) -> Recovery {
    match word {
        "rack" => Recovery::Rack,
        "sack" => Recovery::Sack,
        "tahoe" => Recovery::Tahoe,
        _ => Recovery::NewReno,
    }
}

/// The settings of one connection: the profile, then what the name of its congestion control says of recovery, then the
/// file's, then its own.
///
/// # Errors
/// If values that are each in range contradict each other; `table` is the connection.
pub(crate) fn resolve(
    table: &Table<'_>,
    protocol: Protocol,
    ip: IpVersion,
    of_file: &Settings,
    named: Option<&Named>,
) -> Result<Transport, Error> {
    let own_table = table.table("transport")?;
    let own = own_table.as_ref().map(Settings::read).transpose()?.unwrap_or_default();
    let profile = own.profile.or(of_file.profile).unwrap_or(Profile::Rfc);
    let mut transport = profile_values(profile, protocol, ip);
    if let Some(named) = named {
        named.check(own.recovery.or(of_file.recovery)).map_err(|what| table.error_at("congestion", &what))?;
        transport.recovery = named.recovery;
    }
    of_file.apply(&mut transport);
    own.apply(&mut transport);
    check(&transport).map_err(|what| table.error_at("transport", &what))?;
    Ok(transport)
}

fn check(transport: &Transport) -> Result<(), String> {
    let bytes = |value: u64| Dimension::Bytes.show(value);
    let time = |value: Nanos| Dimension::Time.show(value);
    let segment = u64::from(transport.segment_bytes);
    let packet = segment + u64::from(transport.header_bytes);
    if packet > DATAGRAM_MAX {
        return Err(format!(
            "segment and header are {} together; the most is {}",
            bytes(packet),
            bytes(DATAGRAM_MAX)
        ));
    }
    for (name, buffer) in
        [("receive_buffer", transport.receive_buffer), ("send_buffer", transport.send_buffer)]
    {
        if let Some(buffer) = buffer.filter(|buffer| *buffer < segment) {
            let (buffer, segment) = (bytes(buffer), bytes(segment));
            return Err(format!("{name} {buffer} does not hold one segment of {segment}"));
        }
    }
    if let Some(ack) = transport.delayed_ack.filter(|ack| ack.timeout > ack.timeout_max) {
        let (least, most) = (time(ack.timeout), time(ack.timeout_max));
        return Err(format!("delayed_ack.timeout {least} is above delayed_ack.timeout_max {most}"));
    }
    for (name, rto) in [("min_rto", transport.min_rto), ("initial_rto", transport.initial_rto)] {
        if rto > transport.max_rto {
            return Err(format!("{name} {} is above max_rto {}", time(rto), time(transport.max_rto)));
        }
    }
    Ok(())
}
