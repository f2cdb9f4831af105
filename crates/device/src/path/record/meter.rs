//! What figures of subflows say of the links that they go over. Pure: readings in, estimates out.
//!
//! Throughput is counted in windows of a second: what the peer has acknowledged (up) and what has come in order (down), with the
//! headers of full packets. A rate that is not limited by an application, a receiver or losses at random is that of the link; otherwise the link
//! has more, which is said of the first two alone.

use std::{collections::BTreeMap, net::IpAddr};

use anabranch_netlink::{
    diag::{Figures, Subflow},
    mptcp::SubflowAddress,
    rtnetlink::{Address, Link},
};

use super::loss::{Flow, Reading, random_ppm};

/// Length of a window.
pub(super) const WINDOW_NS: u64 = 1_000_000_000;
/// A rate counts as another one when it differs by more than this from the median so far, in thousandths.
const STEP_PERMILLE: u64 = 250;
/// Least length of what has one rate, in windows.
const PIECE_WINDOWS: usize = 2;

/// With more of them some can be left out.
const FEW_WINDOWS: usize = 2 * PIECE_WINDOWS;

/// What is read of a subflow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) address: SubflowAddress,
    pub(super) interface: Option<u32>,
    pub(super) figures: Figures,
}

impl Sample {
    pub(super) fn of(subflow: &Subflow) -> Self {
        Self { address: subflow.address, interface: subflow.interface, figures: subflow.figures }
    }
}

/// What an interface has carried, in bytes of payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Carried {
    up_bytes: u64,
    down_bytes: u64,
}

/// A second of an interface.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    carried: Carried,
    /// Readings, and those at which an application had nothing to send.
    readings: u32,
    idle_readings: u32,
}

/// What is known of an interface.
#[derive(Debug, Default)]
pub(super) struct Interface {
    mtu_bytes: u32,
    mss_bytes: u32,
    least_rtt_us: Option<u32>,
    longest_rtt_us: u32,
    windows: Vec<Window>,
    flows: BTreeMap<SubflowAddress, Flow>,
    /// When it went down or came up.
    pub(super) turns: Vec<(u64, bool)>,
    is_up: bool,
}

/// What has one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) from_ns: u64,
    /// Up: from this machine.
    pub(super) up_bps: u64,
    pub(super) down_bps: u64,
}

/// Everything that was read.
#[derive(Debug, Default)]
pub(super) struct Meter {
    interfaces: BTreeMap<String, Interface>,
    before: Vec<Sample>,
    end_ns: u64,
}

impl Meter {
    /// Takes a reading of a time since the beginning.
    pub(super) fn take(&mut self, at_ns: u64, links: &[Link], addresses: &[Address], samples: &[Sample]) {
        // What has changed since the reading before belongs to the second in which most of the time between them lies.
        let window = (self.end_ns.midpoint(at_ns) / WINDOW_NS) as usize;
        self.end_ns = at_ns;
        for sample in samples {
            let Some(link) = link_of(sample, links, addresses) else { continue };
            let before = self.before.iter().find(|before| before.address == sample.address);
            let is_known = self.interfaces.contains_key(&link.name);
            let carried = before.map(|before| difference(&before.figures, &sample.figures));
            if !is_known && carried.is_none_or(|carried| carried == Carried::default()) {
                continue;
            }
            let reading = before.map(|before| reading(window, &before.figures, &sample.figures));
            let interface = self.interfaces.entry(link.name.clone()).or_insert_with(|| Interface {
                mtu_bytes: link.mtu.unwrap_or(0),
                is_up: link.is_running,
                ..Interface::default()
            });
            interface.take(window, carried.unwrap_or_default(), &sample.figures);
            if let Some(reading) = reading {
                interface.flows.entry(sample.address).or_default().take(reading, sample.figures.min_rtt_us);
            }
        }
        for link in links {
            if let Some(interface) = self.interfaces.get_mut(&link.name)
                && std::mem::replace(&mut interface.is_up, link.is_running) != link.is_running
            {
                interface.turns.push((at_ns, link.is_running));
            }
        }
        self.before = samples.to_vec();
    }

    /// The interfaces that have carried something, by name.
    pub(super) fn interfaces(&self) -> impl Iterator<Item = (&str, &Interface)> {
        self.interfaces.iter().map(|(name, interface)| (name.as_str(), interface))
    }

    /// How long was recorded: whole windows.
    pub(super) fn duration_ns(&self) -> u64 {
        (self.end_ns / WINDOW_NS).max(1) * WINDOW_NS
    }
}

fn link_of<'l>(sample: &Sample, links: &'l [Link], addresses: &[Address]) -> Option<&'l Link> {
    let local: IpAddr = sample.address.local.ip().to_canonical();
    let by_address = || addresses.iter().find(|known| known.address == local).map(|known| known.interface);
    let number = sample.interface.or_else(by_address)?;
    links.iter().find(|link| link.index == number && !link.is_loopback)
}

fn difference(before: &Figures, now: &Figures) -> Carried {
    Carried {
        up_bytes: now.acked_bytes.saturating_sub(before.acked_bytes),
        down_bytes: now.received_bytes.saturating_sub(before.received_bytes),
    }
}

fn reading(window: usize, before: &Figures, now: &Figures) -> Reading {
    Reading {
        window,
        rtt_us: before.srtt_us.max(now.srtt_us),
        sent_bytes: now.sent_bytes.saturating_sub(before.sent_bytes),
        again_bytes: now.retransmitted_bytes.saturating_sub(before.retransmitted_bytes),
    }
}

impl Interface {
    fn take(&mut self, window: usize, carried: Carried, figures: &Figures) {
        if self.windows.len() <= window {
            self.windows.resize(window + 1, Window::default());
        }
        let of = &mut self.windows[window];
        of.carried.up_bytes += carried.up_bytes;
        of.carried.down_bytes += carried.down_bytes;
        of.readings += 1;
        of.idle_readings += u32::from(has_room(figures));
        self.mss_bytes = self.mss_bytes.max(figures.mss_bytes);
        self.least_rtt_us = [self.least_rtt_us, figures.min_rtt_us].into_iter().flatten().min();
        self.longest_rtt_us = self.longest_rtt_us.max(figures.srtt_us);
    }

    /// The least round-trip time; none if there was no sample.
    pub(super) fn least_rtt_us(&self) -> Option<u32> {
        self.least_rtt_us
    }

    /// How much longer the longest round trip took than the least one: the longest queue that was met.
    pub(super) fn queueing_us(&self) -> u32 {
        self.longest_rtt_us.saturating_sub(self.least_rtt_us.unwrap_or(self.longest_rtt_us))
    }

    /// Whether the windows were not used to the full most of the time, so that rates are lower bounds.
    pub(super) fn is_lower_bound(&self) -> bool {
        let sum = |of: fn(&Window) -> u32| self.windows.iter().map(of).sum::<u32>();
        2 * sum(|window| window.idle_readings) > sum(|window| window.readings)
    }

    /// Bits per second on the wire of so many bytes of payload in `windows` seconds.
    fn bps(&self, payload_bytes: u64, windows: u64) -> u64 {
        let (mtu, mss) = (u64::from(self.mtu_bytes), u64::from(self.mss_bytes));
        // A byte more than 2^50 in an hour would be 2 Tbit/s; times 8 and an MTU of 2^16 that still fits in 128 bits.
        let wire = match mss {
            0 => u128::from(payload_bytes),
            mss => u128::from(payload_bytes) * u128::from(mtu.max(mss)) / u128::from(mss),
        };
        u64::try_from(wire * 8 / u128::from(windows.max(1))).unwrap_or(u64::MAX)
    }

    /// The record in pieces, the first from 0 on, each of the mean of its seconds. Seconds without anything belong to the piece
    /// before them: nothing is known of the link in them. The last second is not whole, and left out; so is the first one with
    /// something, in which a window grows, unless there are few. Seconds in which windows had room say nothing of the link, and are
    /// left out where there are enough of others.
    pub(super) fn pieces(&self, duration_ns: u64) -> Vec<Piece> {
        let whole = (duration_ns / WINDOW_NS) as usize;
        let mut windows: Vec<(usize, &Window)> = self.windows[..whole.min(self.windows.len())]
            .iter()
            .enumerate()
            .filter(|(_, window)| window.carried.up_bytes + window.carried.down_bytes > 0)
            .collect();
        if windows.len() > FEW_WINDOWS {
            windows.remove(0);
        }
        let is_full = |window: &Window| 2 * window.idle_readings <= window.readings;
        if windows.iter().filter(|(_, window)| is_full(window)).count() > FEW_WINDOWS {
            windows.retain(|(_, window)| is_full(window));
        }
        let windows: Vec<(usize, Carried)> =
            windows.into_iter().map(|(place, window)| (place, window.carried)).collect();
        let mut pieces: Vec<Vec<(usize, Carried)>> = Vec::new();
        for (place, &window) in windows.iter().enumerate() {
            let is_other = |piece: &Vec<(usize, Carried)>| {
                let next = windows.get(place + 1).unwrap_or(&window);
                piece.len() >= PIECE_WINDOWS && differs(piece, &window.1) && differs(piece, &next.1)
            };
            match pieces.last_mut().filter(|piece| !is_other(piece)) {
                Some(piece) => piece.push(window),
                None => pieces.push(vec![window]),
            }
        }
        let piece = |(number, windows): (usize, &Vec<(usize, Carried)>)| {
            let sum = |of: fn(&Carried) -> u64| windows.iter().map(|(_, carried)| of(carried)).sum::<u64>();
            let count = windows.len() as u64;
            Piece {
                from_ns: if number == 0 { 0 } else { windows[0].0 as u64 * WINDOW_NS },
                up_bps: self.bps(sum(|of| of.up_bytes), count),
                down_bps: self.bps(sum(|of| of.down_bytes), count),
            }
        };
        pieces.iter().enumerate().map(piece).collect()
    }

    /// Losses at random of what this machine has sent, in millionths, in the seconds of these pieces and those that were left out for their
    /// rates; none if queues were full nearly all the time.
    pub(super) fn loss_ppm(&self, pieces: &[Piece], duration_ns: u64) -> Option<u64> {
        let begins = pieces.iter().map(|piece| (piece.from_ns / WINDOW_NS) as usize);
        let ends = begins.clone().skip(1).chain([(duration_ns / WINDOW_NS) as usize]);
        let windows: Vec<_> = begins.zip(ends).map(|(begin, end)| begin..end).collect();
        random_ppm(self.flows.values(), &windows, self.mss_bytes)
    }
}

/// Whether more than a quarter of the window is free: less is between two acknowledgements, or waits for a larger packet.
fn has_room(figures: &Figures) -> bool {
    u64::from(figures.unacked_segments) * 4 < u64::from(figures.cwnd_segments) * 3
}

/// Whether a second is of another rate than the median of those before it.
fn differs(piece: &[(usize, Carried)], window: &Carried) -> bool {
    let bytes = |of: &Carried| of.up_bytes.max(of.down_bytes);
    let mut before: Vec<u64> = piece.iter().map(|(_, of)| bytes(of)).collect();
    before.sort_unstable();
    let median = before[before.len() / 2];
    bytes(window).abs_diff(median) * 1000 > median * STEP_PERMILLE
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const MTU: u32 = 1500;
    const MSS: u32 = 1400;

    pub(in crate::path::record) fn link(name: &str, is_running: bool) -> Link {
        Link {
            index: 1,
            name: name.to_owned(),
            is_up: true,
            is_lower_up: is_running,
            is_running,
            is_loopback: false,
            mtu: Some(MTU),
            carried_bytes: None,
        }
    }

    /// A reading every 100 ms of one subflow that sends `bytes_per_s(second)`; one byte in a hundred is sent again. Its queue is long in the
    /// first tenth of each second.
    pub(in crate::path::record) fn metered(seconds: u64, bytes_per_s: impl Fn(u64) -> u64) -> Meter {
        let mut meter = Meter::default();
        let mut figures = Figures {
            mss_bytes: MSS,
            min_rtt_us: Some(40_000),
            srtt_us: 45_000,
            cwnd_segments: 10,
            unacked_segments: 10,
            ..Figures::default()
        };
        let end = |text: &str| text.parse().expect("an address");
        let address = SubflowAddress { local: end("10.0.0.1:1"), remote: end("10.0.0.2:2") };
        for tenth in 0..=10 * seconds {
            figures.srtt_us = if tenth % 10 == 0 { 60_000 } else { 45_000 };
            meter.take(
                tenth * 100_000_000,
                &[link("wlan0", true)],
                &[],
                &[Sample { address, interface: Some(1), figures }],
            );
            let bytes = bytes_per_s(tenth / 10) / 10;
            figures.acked_bytes += bytes;
            figures.sent_bytes += bytes;
            figures.retransmitted_bytes += bytes / 100;
        }
        meter
    }

    fn pieces(meter: &Meter) -> Vec<Piece> {
        let (_, interface) = meter.interfaces().next().expect("one carried something");
        interface.pieces(meter.duration_ns())
    }

    #[test]
    fn a_constant_rate_is_one_piece_with_the_headers_of_full_packets() {
        let meter = metered(10, |_| 1_400_000);
        let [piece] = pieces(&meter)[..] else { panic!("{:?}", pieces(&meter)) };
        assert_eq!((piece.from_ns, piece.up_bps, piece.down_bps), (0, 12_000_000, 0));
        let (_, interface) = meter.interfaces().next().unwrap();
        assert_eq!(interface.loss_ppm(&[piece], meter.duration_ns()), Some(10_000));
        assert_eq!((interface.least_rtt_us(), interface.queueing_us()), (Some(40_000), 20_000));
        assert!(!interface.is_lower_bound());
    }

    #[test]
    fn a_step_begins_a_new_piece_and_a_second_that_stands_out_does_not() {
        let meter = metered(12, |second| match second {
            3 => 2_800_000,
            0..6 => 1_400_000,
            _ => 700_000,
        });
        let found = pieces(&meter);
        let [first, second] = found[..] else { panic!("{found:?}") };
        assert_eq!((first.from_ns, second.from_ns, second.up_bps), (0, 6_000_000_000, 6_000_000));
    }

    #[test]
    fn a_window_with_room_makes_rates_lower_bounds() {
        let mut meter = metered(3, |_| 1_400_000);
        let interface = meter.interfaces.get_mut("wlan0").unwrap();
        for window in &mut interface.windows {
            window.idle_readings = window.readings;
        }
        assert!(interface.is_lower_bound());
    }

    #[test]
    fn seconds_with_room_say_nothing_where_there_are_enough_of_others() {
        let mut meter = metered(12, |second| if second < 8 { 1_400_000 } else { 700_000 });
        let interface = meter.interfaces.get_mut("wlan0").unwrap();
        for window in &mut interface.windows[8..] {
            window.idle_readings = window.readings;
        }
        assert_eq!(pieces(&meter).len(), 1, "the application had less to send");
        let room = |unacked_segments| {
            has_room(&Figures { unacked_segments, cwnd_segments: 100, ..Figures::default() })
        };
        assert_eq!((room(74), room(75)), (true, false));
    }

    #[test]
    fn a_link_that_goes_and_returns_is_noted() {
        let mut meter = metered(3, |_| 1_400_000);
        meter.take(3_500_000_000, &[link("wlan0", false)], &[], &[]);
        meter.take(4_500_000_000, &[link("wlan0", true)], &[], &[]);
        let (_, interface) = meter.interfaces().next().unwrap();
        assert_eq!(interface.turns, [(3_500_000_000, false), (4_500_000_000, true)]);
    }

    #[test]
    fn what_carries_nothing_is_no_interface() {
        assert!(metered(3, |_| 0).interfaces().next().is_none());
    }
}
