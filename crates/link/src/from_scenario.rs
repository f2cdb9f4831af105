//! The links of a scenario, for every engine: which state machine stands for what, with which stream of random
//! numbers, and what a change does to it.
//!
//! Directions of links are numbered `2 * link` forward and `2 * link + 1` back. A direction is a plain [`Wire`] unless
//! its settings, or those that a change gives it, need a [`Shaped`] link. **Numbers of links** order simultaneous events
//! and are part of the results: a wire has the number of its direction (which stays unused where the direction is
//! shaped), then come the shaped links in the order of their directions, then the media.

use anabranch_scenario::model::{self, Change, ChangeTarget, Discipline, QueueLimit, Scenario};

use crate::{
    Drop, Fate, Frame, GilbertElliott, JitterConfig, JitterDistribution, Limit, LinkCounters, Loss, Medium,
    MediumConfig, NEVER, Nanos, Probability, Rate, Rng, Shaped, ShapedConfig, Streams, Tally, Wire,
    WireConfig,
    queue::{CoDelConfig, FqCoDelConfig, QueueConfig, RedConfig},
    shaped::ShapedStreams,
};

/// All links of a scenario, without packets.
pub struct Links<P> {
    /// By direction; where a shaped link stands for it, its wire stays idle.
    pub wires: Vec<Wire<P>>,
    /// In the order of their directions.
    pub shaped: Vec<Shaped<P>>,
    /// In the scenario's order.
    pub media: Vec<Medium<P>>,
    /// By direction: its place in `shaped`.
    shaped_at: Vec<Option<usize>>,
    streams: Streams,
}

/// The state machine that stands for a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Index into [`Links::wires`].
    Wire(usize),
    /// Index into [`Links::shaped`].
    Shaped(usize),
}

/// Whether each direction needs a shaped link.
fn shaped_directions(scenario: &Scenario) -> Vec<bool> {
    let of_link = |link: &model::Link| [link.forward, link.reverse].map(|wire| is_shaped(&wire));
    let mut shaped: Vec<bool> = scenario.links.iter().flat_map(of_link).collect();
    for change in &scenario.changes {
        let ChangeTarget::Link { link, forward, reverse } = change.target else { continue };
        let bursts = matches!(change.loss, Some(model::Loss::GilbertElliott { .. }));
        shaped[2 * link] |= bursts && forward;
        shaped[2 * link + 1] |= bursts && reverse;
    }
    shaped
}

fn is_shaped(wire: &model::Wire) -> bool {
    wire.discipline != Discipline::DropTail
        || matches!(wire.loss, model::Loss::GilbertElliott { .. })
        || wire.jitter.is_some()
        || wire.trace.is_some()
}

impl<P: Frame> Links<P> {
    /// How many numbers of links a scenario takes.
    pub fn count(scenario: &Scenario) -> usize {
        let shaped = shaped_directions(scenario);
        shaped.len() + shaped.iter().filter(|&&shaped| shaped).count() + scenario.media.len()
    }

    /// The links of a scenario, idle and up.
    pub fn new(scenario: &Scenario, streams: Streams) -> Self {
        let directions: Vec<_> =
            scenario.links.iter().flat_map(|link| [link.forward, link.reverse]).collect();
        let wire = |(index, wire): (usize, &model::Wire)| {
            Wire::new(wire_config(wire), streams.stream(&format!("wire/{index}")))
        };
        let medium = |(index, medium): (usize, &model::Medium)| {
            let rng = streams.stream(&format!("medium/{index}"));
            let mut air = Medium::new(MediumConfig::from(medium), rng);
            air.set_bursts(bursts(medium.transmitters[0].rates[0].loss));
            air
        };
        let mut links = Self {
            wires: directions.iter().enumerate().map(wire).collect(),
            shaped: Vec::new(),
            media: scenario.media.iter().enumerate().map(medium).collect(),
            shaped_at: vec![None; directions.len()],
            streams,
        };
        for (index, shaped) in shaped_directions(scenario).into_iter().enumerate() {
            if shaped {
                links.shaped_at[index] = Some(links.shaped.len());
                let streams = ShapedStreams {
                    loss: streams.stream(&format!("wire/{index}")),
                    queue: streams.stream(&format!("wire/{index}/queue")),
                    jitter: streams.stream(&format!("wire/{index}/jitter")),
                };
                links.shaped.push(Shaped::new(shaped_config(scenario, &directions[index]), streams));
            }
        }
        links
    }

    /// Lets the traces begin at `zero` instead of 0.
    pub fn begin_at(&mut self, zero: Nanos) {
        self.shaped.iter_mut().for_each(|link| link.begin_at(zero));
    }

    /// What stands for a direction.
    pub fn place(&self, direction: usize) -> Place {
        self.shaped_at[direction].map_or(Place::Wire(direction), Place::Shaped)
    }

    /// The number of what stands for a direction.
    pub fn number(&self, direction: usize) -> usize {
        match self.place(direction) {
            Place::Wire(index) => index,
            Place::Shaped(index) => self.wires.len() + index,
        }
    }

    /// A tally of nothing for these links.
    pub fn tally(&self, scenario: &Scenario) -> Tally {
        Tally::new(self.first_medium(), scenario.media.iter().map(|medium| medium.stations.len()))
    }

    /// Bytes that an interface's node has sent and received by it so far: sent is what its link has transmitted, lost on
    /// the way or not, and received what has arrived at it.
    pub fn carried_by(&self, tally: &Tally, interface: &model::Interface) -> (u64, u64) {
        match interface.attachment {
            model::Attachment::Link { link, sends_forward } => {
                let (up, down) =
                    (2 * link + usize::from(!sends_forward), 2 * link + usize::from(sends_forward));
                let arrived = |direction| self.counters(direction).delivered_bytes;
                (arrived(up) + tally.lost_by(self.number(up)), arrived(down))
            }
            model::Attachment::Medium { medium, station } => tally.of_station(medium, station),
        }
    }

    /// The number of the first medium.
    pub fn first_medium(&self) -> usize {
        self.wires.len() + self.shaped.len()
    }

    /// Whether no packet is on any link.
    pub fn is_empty(&self) -> bool {
        self.wires.iter().all(|wire| wire.next_arrival() == NEVER)
            && self.shaped.iter().all(|link| link.next_event() == NEVER)
            && self.media.iter().all(|medium| medium.next_event() == NEVER)
    }

    /// Packets in the queue of a direction at `now`, the one in transmission included.
    pub fn queued(&mut self, now: Nanos, direction: usize) -> u32 {
        match self.place(direction) {
            Place::Wire(index) => self.wires[index].queued(now),
            Place::Shaped(index) => self.shaped[index].queued(),
        }
    }

    /// What a direction has done since the start.
    pub fn counters(&self, direction: usize) -> LinkCounters {
        match self.place(direction) {
            Place::Wire(index) => self.wires[index].counters(),
            Place::Shaped(index) => self.shaped[index].counters(),
        }
    }

    /// Carries out the change number `index` of the scenario at `now`. Packets that are lost by it go to `gone`, and
    /// to `next` the number of each link that it concerns, with the time of its next event.
    pub fn change(
        &mut self,
        now: Nanos,
        change: &Change,
        index: usize,
        mut gone: impl FnMut(P, Drop),
        mut next: impl FnMut(usize, Nanos),
    ) {
        match change.target {
            ChangeTarget::Link { link, forward, reverse } => {
                for (direction, wanted) in [(2 * link, forward), (2 * link + 1, reverse)] {
                    if !wanted {
                        continue;
                    }
                    let stream = self.streams.stream(&format!("change/{index}/wire/{direction}"));
                    match self.place(direction) {
                        Place::Wire(wire) => {
                            let wire = &mut self.wires[wire];
                            change_wire(wire, now, change, stream, &mut gone);
                            next(direction, wire.next_arrival());
                        }
                        Place::Shaped(index) => {
                            let link = &mut self.shaped[index];
                            change_shaped(link, now, change, stream, &mut gone);
                            next(self.wires.len() + index, link.next_event());
                        }
                    }
                }
            }
            ChangeTarget::Medium(index) => {
                let number = self.first_medium() + index;
                let medium = &mut self.media[index];
                change_medium(medium, now, change, &mut gone);
                next(number, medium.next_event());
            }
        }
    }
}

fn change_wire<P: Frame>(
    wire: &mut Wire<P>,
    now: Nanos,
    change: &Change,
    stream: Rng,
    gone: &mut impl FnMut(P, Drop),
) {
    if let Some(rate_bps) = change.rate_bps {
        wire.set_rate(now, rate_bps);
    }
    if let Some(delay) = change.delay {
        wire.set_delay(now, delay);
    }
    if let Some(loss) = change.loss {
        wire.set_loss(independent(loss), stream);
    }
    if let Some(up) = change.up {
        wire.set_up(now, up, |packet| gone(packet, Drop::Down));
    }
}

fn change_shaped<P: Frame>(
    link: &mut Shaped<P>,
    now: Nanos,
    change: &Change,
    stream: Rng,
    gone: &mut impl FnMut(P, Drop),
) {
    let mut fate = |fate: Fate<P>| match fate {
        Fate::Dropped(packet, why) => gone(packet, why),
        Fate::Arrived(_) => unreachable!("packets arrive when the link is advanced"),
    };
    if let Some(rate_bps) = change.rate_bps {
        link.set_rate(now, rate_bps, &mut fate);
    }
    if let Some(delay) = change.delay {
        link.set_delay(now, delay, &mut fate);
    }
    if let Some(new) = change.loss {
        link.set_loss(now, loss(new), stream, &mut fate);
    }
    if let Some(up) = change.up {
        link.set_up(now, up, &mut fate);
    }
}

fn change_medium<P: Frame>(
    medium: &mut Medium<P>,
    now: Nanos,
    change: &Change,
    gone: &mut impl FnMut(P, Drop),
) {
    if let Some(rate_bps) = change.rate_bps {
        medium.set_rate(rate_bps);
    }
    if let Some(delay) = change.delay {
        medium.set_delay(delay);
    }
    if let Some(loss) = change.loss {
        medium.set_loss(independent(loss));
        medium.set_bursts(bursts(loss));
    }
    if let Some(up) = change.up {
        medium.set_up(now, up, |packet| gone(packet, Drop::Down));
    }
}

/// Settings of a plain wire.
pub fn wire_config(wire: &model::Wire) -> WireConfig {
    WireConfig {
        rate_bps: wire.rate_bps,
        delay: wire.delay,
        limit: limit(wire.queue),
        loss: independent(wire.loss),
    }
}

fn shaped_config(scenario: &Scenario, wire: &model::Wire) -> ShapedConfig {
    ShapedConfig {
        rate: match wire.trace {
            None => Rate::Constant(wire.rate_bps),
            Some(trace) => Rate::Trace(scenario.traces[trace].clone()),
        },
        delay: wire.delay,
        limit: limit(wire.queue),
        queue: queue(wire.discipline),
        loss: loss(wire.loss),
        jitter: wire.jitter.map(jitter),
    }
}

pub(crate) fn limit(queue: QueueLimit) -> Limit {
    match queue {
        QueueLimit::Unlimited => Limit::Unlimited,
        QueueLimit::Packets(packets) => Limit::Packets(packets),
        QueueLimit::Bytes(bytes) => Limit::Bytes(bytes),
    }
}

fn queue(discipline: Discipline) -> QueueConfig {
    match discipline {
        Discipline::DropTail => QueueConfig::DropTail,
        Discipline::Red(red) => QueueConfig::Red(RedConfig {
            min_packets: red.min_packets,
            max_packets: red.max_packets,
            max_p: Probability::new(red.max_p),
            weight: ((red.weight * (1_u64 << 32) as f64) as u64).max(1),
            gentle: red.gentle,
            ecn: red.ecn,
        }),
        Discipline::CoDel(codel) => QueueConfig::CoDel(codel_config(codel)),
        Discipline::FqCoDel { codel, flows, quantum_bytes } => {
            QueueConfig::FqCoDel(FqCoDelConfig { codel: codel_config(codel), flows, quantum_bytes })
        }
    }
}

fn codel_config(codel: model::CoDel) -> CoDelConfig {
    CoDelConfig { target: codel.target, interval: codel.interval, ecn: codel.ecn }
}

fn loss(loss: model::Loss) -> Loss {
    bursts(loss).map_or_else(|| Loss::Bernoulli(independent(loss)), Loss::GilbertElliott)
}

/// The probability of independent losses; 0 if they come in bursts.
pub(crate) fn independent(loss: model::Loss) -> Probability {
    match loss {
        model::Loss::None | model::Loss::GilbertElliott { .. } => Probability::ZERO,
        model::Loss::Bernoulli(p) => Probability::new(p),
    }
}

/// The channel of losses that come in bursts.
fn bursts(loss: model::Loss) -> Option<GilbertElliott> {
    let model::Loss::GilbertElliott { p, r, loss_good, loss_bad } = loss else { return None };
    let [p, r, loss_good, loss_bad] = [p, r, loss_good, loss_bad].map(Probability::new);
    Some(GilbertElliott { p, r, loss_good, loss_bad, is_bad: false })
}

fn jitter(jitter: model::Jitter) -> JitterConfig {
    let distribution = match jitter.distribution {
        model::JitterDistribution::Uniform => JitterDistribution::Uniform,
        model::JitterDistribution::Exponential => JitterDistribution::Exponential,
        model::JitterDistribution::Normal => JitterDistribution::Normal,
    };
    JitterConfig { range: jitter.range, distribution, reorder: jitter.reorder }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Default)]
    struct Packet;

    impl Frame for Packet {
        fn bytes(&self) -> u32 {
            1000
        }
    }

    fn links(settings: [&str; 2], more: &str) -> (Scenario, Links<Packet>) {
        let [first, second] = settings;
        let text = format!(
            r#"
            name = "x"
            duration = "1 s"
            node = [{{ names = ["a", "b", "c"] }}]
            [[link]]
            name = "first"
            between = ["a", "b"]
            rate = "8 Mbit/s"
            delay = "1 ms"
            queue = "9 packets"
            {first}
            [[link]]
            name = "second"
            between = ["b", "c"]
            rate = "8 Mbit/s"
            delay = "1 ms"
            {second}
            [[medium]]
            name = "air"
            stations = ["a", "c"]
            rate = "11 Mbit/s"
            queue = "9 packets"
            [[datagram]]
            name = "flow"
            from = "a"
            to = "c"
            rate = "1 Mbit/s"
            packet = "1000 B"
            {more}"#
        );
        let loaded = anabranch_scenario::load(&text, "test.toml", &[]);
        let scenario = loaded.unwrap_or_else(|error| panic!("{error}")).scenario;
        let links = Links::new(&scenario, Streams::new(1));
        assert_eq!(Links::<Packet>::count(&scenario), links.first_medium() + links.media.len());
        (scenario, links)
    }

    fn places(links: &Links<Packet>) -> [Place; 4] {
        [0, 1, 2, 3].map(|direction| links.place(direction))
    }

    #[test]
    fn a_direction_is_a_wire_unless_its_own_settings_need_more() {
        use Place::{Shaped, Wire};
        let plain = "queue = \"unlimited\"";
        let (_, all) = links(["loss = 0.1", plain], "");
        assert_eq!(places(&all), [Wire(0), Wire(1), Wire(2), Wire(3)]);
        assert_eq!(all.first_medium(), 4);
        let (_, all) = links(["reverse = { jitter = \"1 ms\" }", "queue = { kind = \"codel\" }"], "");
        assert_eq!(places(&all), [Wire(0), Shaped(0), Shaped(1), Shaped(2)]);
        assert_eq!(all.first_medium(), 7);
    }

    #[test]
    fn a_change_to_losses_in_bursts_shapes_the_direction_from_the_start_and_is_carried_out() {
        use Place::{Shaped, Wire};
        let change = r#"
            [[change]]
            at = "10 ms"
            link = "second"
            direction = "reverse"
            loss = { kind = "gilbert-elliott", p = 1, r = 1, loss_good = 1 }"#;
        let (scenario, mut links) = links(["", "queue = \"unlimited\""], change);
        assert_eq!(places(&links), [Wire(0), Wire(1), Wire(2), Shaped(0)]);
        let mut told = Vec::new();
        links.change(
            10_000_000,
            &scenario.changes[0],
            0,
            |_, _| unreachable!("nothing is on the link"),
            |link, next| told.push((link, next)),
        );
        assert_eq!(told, [(4, NEVER)]);
        let mut lost = 0;
        links.shaped[0].offer(10_000_000, Packet, |_| unreachable!("there is room"));
        let departs = links.shaped[0].next_event();
        links.shaped[0]
            .advance(departs, |fate| lost += u32::from(matches!(fate, Fate::Dropped(_, Drop::Loss))));
        assert_eq!((departs, lost, links.counters(3).lost), (11_000_000, 1, 1));
        assert!(links.is_empty());
    }
}
