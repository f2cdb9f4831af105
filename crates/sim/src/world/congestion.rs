//! The host's side of the congestion-control contract (`algorithms/include/anabranch/cc.h`).

use anabranch_cc::{
    Conn, Context, Controller, Kind, MAX_PEERS, OUT_CWND, OUT_CWND_CNT, OUT_PACING, OUT_PUB, OUT_SSTHRESH,
    Out, Peer, View,
};

use super::{Endpoint, Phase, World, connection::Group, price::Price};
use crate::{
    engine::heads::Key,
    tcp::{
        ack::{Absorbed, RateSample},
        sender::Sender,
    },
};

/// Peers and words of a subflow whose algorithm does not couple, and so neither reads nor writes them.
pub(super) struct Idle {
    peers: [Peer; MAX_PEERS],
    words: Conn,
}

impl Default for Idle {
    fn default() -> Self {
        Self { peers: [Peer::default(); MAX_PEERS], words: Conn::default() }
    }
}

impl<K: Key> World<'_, K> {
    /// Tells an endpoint's congestion control of an event: `call` is the event's method of [`Controller`].
    #[inline]
    pub(super) fn congestion<R>(
        &mut self,
        index: usize,
        absorbed: &Absorbed,
        rtt_us: Option<u32>,
        call: impl FnOnce(&mut Controller, Context<'_>, &mut Out) -> R,
    ) -> R {
        let endpoint = &mut self.endpoints[index];
        let mut view = view(endpoint, absorbed, self.now, rtt_us);
        let mut out = Out::default();
        let Some((group, slot)) = endpoint.coupled else {
            let context = Context { view: &view, peers: &self.idle.peers, conn: &mut self.idle.words };
            let answer = call(&mut endpoint.controller, context, &mut out);
            apply(endpoint, &out);
            return answer;
        };
        let side = &mut self.connections[endpoint.connection as usize].sides[index & 1];
        let group = &mut side.groups[group as usize];
        let price = self.prices.get(index).copied().flatten();
        publish(endpoint, price, &mut group.peers[usize::from(slot)]);
        view.self_index = slot;
        view.n_usable = usable(group);
        if absorbed.stamped {
            view.owd_us = one_way_delay_us(absorbed, view.now_us);
            view.owd_valid = 1;
        }
        let context = Context { view: &view, peers: &group.peers, conn: &mut group.words };
        let answer = call(&mut endpoint.controller, context, &mut out);
        apply(endpoint, &out);
        if out.mask & OUT_PUB != 0 {
            group.peers[usize::from(slot)].public = out.public;
        }
        answer
    }

    /// An endpoint can send from now on: congestion control begins, and its peers hear of it.
    pub(super) fn begin_congestion_control(&mut self, index: usize) {
        if self.endpoints[index].life.only_listens {
            return;
        }
        let nothing = Absorbed::default();
        self.endpoints[index].last_ack_us = self.now_us();
        self.congestion(index, &nothing, None, Controller::init);
        self.tell_peers(index, Controller::peer_join);
    }

    /// An endpoint can send no more, and its peers hear that it has gone.
    pub(super) fn end_congestion_control(&mut self, index: usize) {
        if self.endpoints[index].life.only_listens {
            return;
        }
        let nothing = Absorbed::default();
        self.congestion(index, &nothing, None, Controller::release);
        self.tell_peers(index, Controller::peer_leave);
    }

    /// An acknowledgement for a rate algorithm.
    pub(super) fn rate(&mut self, index: usize, absorbed: &Absorbed, rtt_us: Option<u32>) {
        let endpoint = &mut self.endpoints[index];
        let mut absorbed = *absorbed;
        absorbed.random = endpoint.pacer.as_mut().map_or(0, |pacer| pacer.toss());
        // The draft, section 3.3: a shorter interval than the least RTT comes from a spurious retransmission.
        if absorbed.rate.interval_us() < endpoint.sender.rtt.min_us {
            absorbed.rate = RateSample::default();
        }
        self.congestion(index, &absorbed, rtt_us, Controller::rate);
    }

    /// Changes the state of a sender. A window that a rate algorithm owns stays (cc.h); says whether it does.
    pub(super) fn change_state(&mut self, index: usize, change: impl FnOnce(&mut Sender)) -> bool {
        let endpoint = &mut self.endpoints[index];
        let window = endpoint.sender.cwnd;
        change(&mut endpoint.sender);
        let stays = endpoint.controller.kind() == Kind::Rate;
        if stays {
            endpoint.sender.cwnd = window;
        }
        stays
    }

    /// Tells the coupled peers of an endpoint that it has come or gone.
    fn tell_peers(&mut self, index: usize, event: fn(&mut Controller, Context<'_>, &mut Out)) {
        let Some((group, _)) = self.endpoints[index].coupled else { return };
        let side = &mut self.connections[self.endpoints[index].connection as usize].sides[index & 1];
        let group = &mut side.groups[group as usize];
        group.words.n = u32::from(usable(group));
        for member in group.members.clone() {
            let member = member as usize;
            if member != index && self.endpoints[member].phase == Phase::Established {
                self.congestion(member, &Absorbed::default(), None, event);
            }
        }
    }
}

fn usable(group: &Group) -> u8 {
    group.peers[..group.members.len()].iter().map(|peer| peer.usable).sum::<u8>().max(1)
}

#[inline]
fn view(endpoint: &Endpoint, absorbed: &Absorbed, now: u64, rtt_us: Option<u32>) -> View {
    let sender = &endpoint.sender;
    let now_us = now / 1000;
    View {
        now_us,
        bytes_acked: sender.bytes_acked,
        rs_prior_delivered: sender.delivered - u64::from(absorbed.rate.delivered),
        delivered: sender.delivered,
        cwnd: sender.cwnd,
        cwnd_cnt: sender.cwnd_cnt,
        cwnd_clamp: sender.clamp,
        ssthresh: sender.ssthresh,
        prior_cwnd: sender.prior_cwnd,
        in_flight: sender.in_flight(),
        prior_in_flight: absorbed.prior_in_flight,
        acked: absorbed.fresh,
        acked_sacked: absorbed.fresh + absorbed.sacked,
        newly_lost: absorbed.newly_lost,
        total_retrans: sender.counters.retransmits as u32,
        mss: u32::from(endpoint.segment_bytes),
        rtt_us: rtt_us.unwrap_or(0),
        srtt8_us: sender.rtt.srtt8_us,
        mdev4_us: sender.rtt.mdev4_us,
        min_rtt_us: sender.rtt.min_us,
        idle_us: absorbed.idle_us,
        delivered_ce: endpoint.ecn.delivered_marked,
        rs_delivered: absorbed.rate.delivered,
        rs_interval_us: absorbed.rate.interval_us(),
        rs_snd_us: absorbed.rate.snd_us,
        rs_rcv_us: absorbed.rate.rcv_us,
        rs_losses: absorbed.newly_lost,
        owd_us: 0,
        ack_gap_us: (now_us as u32).wrapping_sub(endpoint.last_ack_us),
        acked_bytes_gap: absorbed.acked_bytes as u32,
        random: absorbed.random,
        ca_state: sender.state as u8,
        cwnd_limited: u8::from(sender.is_cwnd_limited()),
        app_limited: u8::from(sender.is_app_limited()),
        rs_app_limited: u8::from(absorbed.rate.app_limited),
        rtt_valid: u8::from(rtt_us.is_some()),
        owd_valid: 0,
        round_start: u8::from(absorbed.round_start),
        ece: u8::from(endpoint.ecn.echoed),
        self_index: 0,
        n_usable: 1,
        reserved: [0; 2],
    }
}

/// From the sending of the packet that was echoed to that of its acknowledgement, as the ticks of 1 ms show it that
/// Linux puts into its timestamps. Only coupled subflows get it: the others would pay for what nobody reads.
fn one_way_delay_us(absorbed: &Absorbed, now_us: u64) -> u32 {
    let tick = |stamp_us: u32| (now_us - u64::from((now_us as u32).wrapping_sub(stamp_us))) / 1000;
    ((tick(absorbed.tsval_us) - tick(absorbed.tsecr_us)) * 1000) as u32
}

fn publish(endpoint: &Endpoint, price: Option<Price>, slot: &mut Peer) {
    let sender = &endpoint.sender;
    let bytes = u32::from(endpoint.segment_bytes);
    *slot = Peer {
        bytes_since_loss: sender.bytes_since_loss,
        bytes_between_losses: sender.bytes_between_losses,
        public: slot.public,
        cwnd: sender.cwnd,
        ssthresh: sender.ssthresh,
        mss: bytes,
        srtt8_us: sender.rtt.srtt8_us,
        base_rtt_us: sender.rtt.min_us,
        loss_events: sender.loss_events,
        retrans: sender.counters.retransmits as u32,
        energy_nj_per_bit: price.map_or(0, |price| price.nj_per_bit(sender.cwnd, bytes, sender.rtt.srtt8_us)),
        usable: u8::from(endpoint.phase == Phase::Established),
        backup: u8::from(endpoint.backup),
        in_slow_start: u8::from(sender.cwnd < sender.ssthresh),
        ca_state: sender.state as u8,
        reserved: [0; 4],
    };
}

#[inline]
fn apply(endpoint: &mut Endpoint, out: &Out) {
    let sender = &mut endpoint.sender;
    if out.mask & OUT_CWND != 0 {
        sender.cwnd = out.cwnd.clamp(1, sender.clamp);
    }
    if out.mask & OUT_CWND_CNT != 0 {
        sender.cwnd_cnt = out.cwnd_cnt;
    }
    if out.mask & OUT_SSTHRESH != 0 {
        sender.ssthresh = out.ssthresh.max(1);
    }
    if out.mask & OUT_PACING != 0 {
        endpoint.pacer.get_or_insert_default().set_rate = Some(out.pacing_bytes_per_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_that_never_sends_keeps_no_slots_for_coupling() {
        for (direction, groups) in [("upload", [1, 0]), ("download", [0, 1]), ("both", [1, 1])] {
            let text = format!(
                r#"
                name = "silent"
                duration = "1 s"
                node = [{{ names = ["S", "D"] }}]
                link = [{{ between = ["S", "D"], rate = "1 Mbit/s", delay = "1 ms", queue = "unlimited" }}]
                [[connection]]
                name = "flow"
                from = "S"
                to = "D"
                protocol = "mptcp"
                congestion = "lia"
                traffic = {{ kind = "file", size = "10 kB", direction = "{direction}" }}
                subflow = [{{ name = "0" }}]"#
            );
            let loaded = anabranch_scenario::load(&text, "silent.toml", &[]);
            let scenario = loaded.unwrap_or_else(|error| panic!("{error}")).scenario;
            let world = World::<u64>::new(&scenario, 1);
            assert_eq!(
                world.connections[0].sides.each_ref().map(|side| side.groups.len()),
                groups,
                "{direction}"
            );
        }
    }

    /// As in the kernel: a subflow without a slot, and TCP, see themselves as the only peer.
    #[test]
    fn what_is_coupled_with_nothing_has_words_of_its_own() {
        let text = r#"
            name = "alone"
            duration = "1 s"
            node = [{ names = ["S", "D"] }]
            link = [{ between = ["S", "D"], rate = "1 Mbit/s", delay = "1 ms", queue = "unlimited" }]
            connection = [
                { name = "tcp{i}", from = "S", to = "D", congestion = "mfvl", count = 2 },
                { name = "ten", from = "S", to = "D", protocol = "mptcp", congestion = "lia", subflow = [SUBFLOWS] },
            ]"#
        .replace("SUBFLOWS", &(0..10).map(|k| format!("{{ name = \"{k}\" }}")).collect::<Vec<_>>().join(", "));
        let loaded = anabranch_scenario::load(&text, "alone.toml", &[]);
        let scenario = loaded.unwrap_or_else(|error| panic!("{error}")).scenario;
        let world = World::<u64>::new(&scenario, 1);
        let members = |connection: usize| -> Vec<usize> {
            world.connections[connection].sides[0].groups.iter().map(|group| group.members.len()).collect()
        };
        assert_eq!((members(0), members(1)), (vec![1], vec![1]));
        assert_eq!(members(2), [8, 1, 1]);
    }

    #[test]
    fn reductions_leave_the_window_of_a_rate_algorithm_alone() {
        for (congestion, stays) in [("bbr", true), ("reno", false)] {
            let text = format!(
                r#"
                name = "window"
                duration = "1 s"
                node = [{{ names = ["S", "D"] }}]
                link = [{{ between = ["S", "D"], rate = "1 Mbit/s", delay = "1 ms", queue = "unlimited" }}]
                connection = [{{ name = "flow", from = "S", to = "D", congestion = "{congestion}" }}]"#
            );
            let loaded = anabranch_scenario::load(&text, "window.toml", &[]);
            let scenario = loaded.unwrap_or_else(|error| panic!("{error}")).scenario;
            let mut world = World::<u64>::new(&scenario, 1);
            let changes: [fn(&mut Sender); 3] =
                [|sender| sender.begin_cwr(20), Sender::end_cwr, |sender| sender.note_repaired(10)];
            world.endpoints[0].sender.cwnd = 40;
            for (change, reduced) in changes.into_iter().zip([20, 20, 10]) {
                assert_eq!(world.change_state(0, change), stays);
                assert_eq!(world.endpoints[0].sender.cwnd, if stays { 40 } else { reduced }, "{congestion}");
            }
        }
    }

    #[test]
    fn a_one_way_delay_is_a_difference_of_whole_milliseconds_across_the_wrap_of_the_clock_too() {
        let delay = |sent_us: u64, received_us: u64, now_us: u64| {
            let (tsval_us, tsecr_us) = (received_us as u32, sent_us as u32);
            one_way_delay_us(&Absorbed { tsval_us, tsecr_us, stamped: true, ..Absorbed::default() }, now_us)
        };
        assert_eq!(delay(1_999, 12_000, 30_000), 11_000);
        assert_eq!(delay(1_000, 11_999, 30_000), 10_000);
        let wrap = 1 << 32; // 4,294,967,296 us
        assert_eq!(delay(wrap - 10_000, wrap + 5_000, wrap + 20_000), 15_000);
        assert_eq!(delay(wrap - 10_000, wrap - 5_000, wrap + 20_000), 5_000);
        assert_eq!(delay(3 * wrap + 704, 3 * wrap + 2_704, 3 * wrap + 2_704), 2_000);
    }

    #[test]
    fn a_rate_that_congestion_control_sets_is_kept_by_the_pacer_though_the_scenario_does_not_ask_for_pacing()
    {
        let text = r#"
            name = "rate"
            duration = "1 s"
            node = [{ names = ["S", "D"] }]
            link = [{ between = ["S", "D"], rate = "1 Mbit/s", delay = "1 ms", queue = "unlimited" }]
            connection = [{ name = "flow", from = "S", to = "D", congestion = "reno" }]"#;
        let loaded = anabranch_scenario::load(text, "rate.toml", &[]);
        let scenario = loaded.unwrap_or_else(|error| panic!("{error}")).scenario;
        let mut world = World::<u64>::new(&scenario, 1);
        assert!(world.endpoints[0].pacer.is_none());
        for rate in [5_000, 7_000] {
            world.congestion(0, &Absorbed::default(), None, |_, _, out| {
                out.mask |= OUT_PACING;
                out.pacing_bytes_per_s = rate;
            });
            world.congestion(0, &Absorbed::default(), None, |_, _, _| ());
            assert_eq!(world.endpoints[0].pacer.as_ref().and_then(|pacer| pacer.set_rate), Some(rate));
        }
    }
}
