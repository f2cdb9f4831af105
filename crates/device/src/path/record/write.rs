//! A record as a scenario file: a link per interface to a network behind it, which leads to the peer at once.

use std::fmt::Write as _;

use super::meter::{Interface, Meter, Piece};

/// Queues hold this much at least, in bytes: a window of ten segments, and room for one more.
const QUEUE_MIN_BYTES: u64 = 30_000;
/// Of links of which one direction has carried next to nothing, in thousandths of the other.
const UNKNOWN_PERMILLE: u64 = 50;

/// The scenario.
pub(super) fn scenario(meter: &Meter) -> String {
    let seconds = meter.duration_ns() / 1_000_000_000;
    let interfaces: Vec<Described<'_>> = meter
        .interfaces()
        .map(|(name, of)| {
            let pieces = of.pieces(meter.duration_ns());
            Described { name, of, loss_ppm: of.loss_ppm(&pieces, meter.duration_ns()), pieces }
        })
        .filter(|interface| !interface.pieces.is_empty())
        .collect();
    let down = |piece: &Piece| piece.down_bps;
    let up = |piece: &Piece| piece.up_bps;
    let total = |of: fn(&Piece) -> u64| interfaces.iter().flat_map(|one| &one.pieces).map(of).sum::<u64>();
    let is_download = total(down) > total(up);
    let mut text = format!(
        "# The links of this machine, recorded by `anabranchd path record` over {seconds} s from the figures of its subflows.\n\
         # Rates: what was acknowledged or received each second, with headers. Where a window had room most of the time, they\n\
         # are lower bounds of the capacity, and a comment says so. Delays: half of the least round-trip time; longer ones are\n\
         # taken for queues. Losses: what this machine sent again while its round trip was not near its longest, as a full queue\n\
         # makes it, of what it sent then; that counts some that were not lost.\n\
         # Unknown: losses of what it receives, whether links share a bottleneck, and queues beyond the longest that was met.\n\
         name = \"recorded\"\n\
         title = \"Links recorded on a device\"\n\
         duration = \"{seconds} s\"\n\
         transport = {{ profile = \"linux\" }}\n\n\
         [[node]]\nname = \"device\"\n\n[[node]]\nnames = [\"peer\""
    );
    for Described { name, .. } in &interfaces {
        write!(text, ", \"{name}-net\"").expect("a string takes text");
    }
    text += "]\n";
    for interface in &interfaces {
        interface.describe(&mut text);
    }
    let direction = if is_download { "download" } else { "upload" };
    write!(
        text,
        "\n# What goes over them here is one transfer without end; put in its place what you want to know of.\n\
         [[connection]]\nname = \"transfer\"\nfrom = \"device\"\nto = \"peer\"\nprotocol = \"mptcp\"\ncongestion = \"cubic\"\n\
         traffic = {{ kind = \"ftp\", direction = \"{direction}\" }}\n"
    )
    .expect("a string takes text");
    for Described { name, .. } in &interfaces {
        write!(text, "\n[[connection.subflow]]\nname = \"{name}\"\nvia = [\"{name}-net\"]\n")
            .expect("a string takes text");
    }
    text
}

/// What was recorded, in words.
pub(super) fn lines(meter: &Meter) -> Vec<String> {
    let line = |(name, of): (&str, &Interface)| {
        let pieces = of.pieces(meter.duration_ns());
        let first = pieces.first()?;
        let bound = if of.is_lower_bound() { " at least" } else { "" };
        let shown = |rate: u64, other: u64| match is_unknown(rate, other) {
            true => "unknown".to_owned(),
            false => format!("{:.2} Mbit/s{bound}", rate as f64 / 1e6),
        };
        let (up, down) = (shown(first.up_bps, first.down_bps), shown(first.down_bps, first.up_bps));
        let rtt_ms = f64::from(of.least_rtt_us().unwrap_or(0)) / 1e3;
        let changes = pieces.len() - 1 + of.turns.len();
        let loss = of.loss_ppm(&pieces, meter.duration_ns()).map_or("unknown".to_owned(), percent);
        Some(format!(
            "{name}: up {up}, down {down}, round trip {rtt_ms:.1} ms, loss {loss}, changes: {changes}"
        ))
    };
    meter.interfaces().filter_map(line).collect()
}

struct Described<'a> {
    name: &'a str,
    of: &'a Interface,
    loss_ppm: Option<u64>,
    pieces: Vec<Piece>,
}

impl Described<'_> {
    fn describe(&self, text: &mut String) {
        let Self { name, of, loss_ppm, pieces } = self;
        let first = &pieces[0];
        let (up, down) = rates(first);
        let half_us = of.least_rtt_us().unwrap_or(0) / 2;
        // At most 2^32 us times 2^40 bit/s in 128 bits.
        let queue = u128::from(of.queueing_us()) * u128::from(up.max(down)) / 8_000_000;
        let queue = u64::try_from(queue).unwrap_or(u64::MAX).max(QUEUE_MIN_BYTES);
        text.push('\n');
        if of.is_lower_bound() {
            *text += "# Its window had room most of the time: the rates are lower bounds.\n";
        }
        if is_unknown(first.up_bps, first.down_bps) || is_unknown(first.down_bps, first.up_bps) {
            *text += "# One direction carried next to nothing: its rate is unknown, and taken to be that of the other.\n";
        }
        if loss_ppm.is_none() {
            *text += "# Its queue was full nearly all the time: losses at random are unknown, and taken to be none.\n";
        }
        write!(
            text,
            "[[link]]\nname = \"{name}\"\nbetween = [\"device\", \"{name}-net\"]\nrate = \"{up} bit/s\"\n\
             delay = \"{half_us} us\"\nqueue = \"{queue} B\"\nloss = \"{}\"\n\
             reverse = {{ rate = \"{down} bit/s\", loss = \"0 %\" }}\n\n\
             [[link]]\nname = \"{name}-peer\"\nbetween = [\"{name}-net\", \"peer\"]\nrate = \"100 Gbit/s\"\n\
             delay = \"0 s\"\nqueue = \"unlimited\"\n",
            percent(loss_ppm.unwrap_or(0))
        )
        .expect("a string takes text");
        for piece in &pieces[1..] {
            let (up, down) = rates(piece);
            let at = piece.from_ns / 1_000_000;
            write!(
                text,
                "\n[[change]]\nlink = \"{name}\"\nat = \"{at} ms\"\ndirection = \"forward\"\nrate = \"{up} bit/s\"\n\n\
                 [[change]]\nlink = \"{name}\"\nat = \"{at} ms\"\ndirection = \"reverse\"\n\
                 rate = \"{down} bit/s\"\n"
            )
            .expect("a string takes text");
        }
        for (at_ns, is_up) in &of.turns {
            let at = at_ns / 1_000_000;
            write!(text, "\n[[change]]\nlink = \"{name}\"\nat = \"{at} ms\"\nup = {is_up}\n")
                .expect("a string takes text");
        }
    }
}

/// Up and down; of which nothing is known, as the other.
fn rates(piece: &Piece) -> (u64, u64) {
    let Piece { up_bps, down_bps, .. } = *piece;
    let up = if is_unknown(up_bps, down_bps) { down_bps } else { up_bps };
    let down = if is_unknown(down_bps, up_bps) { up_bps } else { down_bps };
    (up.max(1), down.max(1))
}

fn is_unknown(rate_bps: u64, other_bps: u64) -> bool {
    rate_bps < other_bps / 1000 * UNKNOWN_PERMILLE
}

fn percent(ppm: u64) -> String {
    format!("{}.{:04} %", ppm / 10_000, ppm % 10_000)
}

#[cfg(test)]
mod tests {
    use super::{super::meter::tests::metered, *};

    #[test]
    fn a_record_is_a_scenario_with_a_link_per_interface_and_its_changes() {
        let text = scenario(&metered(12, |second| if second < 6 { 1_400_000 } else { 700_000 }));
        assert!(
            text.contains(
                "name = \"wlan0\"\nbetween = [\"device\", \"wlan0-net\"]\nrate = \"12000000 bit/s\""
            ),
            "{text}"
        );
        assert!(text.contains("delay = \"20000 us\"\nqueue = \"30000 B\"\nloss = \"1.0000 %\""), "{text}");
        assert!(
            text.contains("at = \"6000 ms\"\ndirection = \"forward\"\nrate = \"6000000 bit/s\""),
            "{text}"
        );
        assert!(text.contains("# One direction carried next to nothing"), "{text}");
        assert!(!text.contains("lower bounds.\n[[link]]"), "{text}");
        assert!(text.contains("direction = \"upload\""), "{text}");
    }

    #[test]
    fn a_line_says_what_was_recorded_and_what_is_unknown() {
        let meter = metered(12, |second| if second < 6 { 1_400_000 } else { 700_000 });
        assert_eq!(
            lines(&meter),
            ["wlan0: up 12.00 Mbit/s, down unknown, round trip 40.0 ms, loss 1.0000 %, changes: 1"]
        );
    }

    #[test]
    fn a_direction_of_which_nothing_is_known_has_the_rate_of_the_other() {
        let piece = |up_bps, down_bps| Piece { from_ns: 0, up_bps, down_bps };
        assert_eq!(rates(&piece(10_000_000, 400_000)), (10_000_000, 10_000_000));
        assert_eq!(rates(&piece(10_000_000, 600_000)), (10_000_000, 600_000));
        assert_eq!(rates(&piece(0, 600_000)), (600_000, 600_000));
    }
}
