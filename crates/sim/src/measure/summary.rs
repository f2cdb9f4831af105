//! The figures of a run over its window.

use anabranch_policy::scheduler::Sends;
use anabranch_record::{
    model::{Figure, Scope, Summary},
    times,
};
use anabranch_scenario::model::{Direction, Protocol, Strips};

use super::{Counts, SubflowCounts, scheduling, seconds};
use crate::{engine::heads::Key, net::LinkRef, scheduler, world::World};

impl<K: Key> World<'_, K> {
    pub(super) fn summary(&self, begin: &Counts, end: &Counts) -> Summary {
        let window_s = seconds(self.scenario.measure.to - self.scenario.measure.from);
        let mut figures = Vec::new();
        let mut goodputs = self.connection_figures(&mut figures, begin, end, window_s);
        goodputs.extend(self.workload_figures(&mut figures, begin, end, window_s));
        self.relay_figures(&mut figures);
        self.transfer_figures(&mut figures);
        self.datagram_figures(&mut figures, begin, end, window_s);
        self.link_figures(&mut figures, begin, end, window_s);
        let mut run = |metric, value| figures.push(Figure { scope: Scope::Run, metric, value });
        let total: f64 = goodputs.iter().sum();
        run("goodput_bps", total);
        let squares: f64 = goodputs.iter().map(|x| x * x).sum();
        if squares > 0.0 {
            run("jain_index", total * total / (goodputs.len() as f64 * squares));
        }
        run("packet_hops", self.net.hops as f64);
        if let Some(memory) = &self.meter.memory {
            memory.figures(self.scenario, &mut figures);
        }
        self.energy_figures(&mut figures, begin, end);
        Summary { figures }
    }

    fn connection_figures(
        &self,
        figures: &mut Vec<Figure>,
        begin: &Counts,
        end: &Counts,
        window_s: f64,
    ) -> Vec<f64> {
        let mut goodputs = Vec::new();
        let mut first_subflow = 0;
        for (index, model) in self.scenario.connections.iter().enumerate() {
            let connection = &self.connections[index];
            let subflows = first_subflow..first_subflow + model.subflows.len();
            first_subflow = subflows.end;
            if model.member_of.is_some() {
                continue;
            }
            let scope = Scope::Connection(model.name.clone());
            let mut figure = |metric, value| figures.push(Figure { scope: scope.clone(), metric, value });
            let (begin_bytes, end_bytes) = (begin.delivered[index], end.delivered[index]);
            let bytes = end_bytes.total() - begin_bytes.total();
            let goodput = bytes as f64 * 8.0 / window_s;
            goodputs.push(goodput);
            figure("goodput_bps", goodput);
            figure("bytes_delivered", bytes as f64);
            if model.traffic.direction() == Direction::Both {
                let rate = |begin: u64, end: u64| (end - begin) as f64 * 8.0 / window_s;
                figure("goodput_up_bps", rate(begin_bytes.up, end_bytes.up));
                figure("goodput_down_bps", rate(begin_bytes.down, end_bytes.down));
            }
            if let Some(latencies) = connection.application.as_ref().and_then(|of| of.latencies()) {
                figure("messages", latencies.values.len() as f64);
                times::LATENCY.of(&latencies.values, &mut figure);
            }
            if let Some(manager) = &connection.manager {
                figure("path_decisions", manager.decisions as f64);
            }
            if let Some(completed) = connection.completed_at {
                figure("completion_s", seconds(completed - connection.opened_at));
            }
            let total = |count: &dyn Fn(&SubflowCounts) -> u64| -> u64 {
                subflows.clone().map(|s| count(&end.subflows[s]) - count(&begin.subflows[s])).sum()
            };
            let sent = total(&|s| s.sender.packets);
            let drops = total(&|s| s.drops);
            figure("packets_sent", sent as f64);
            figure("retransmits", total(&|s| s.sender.retransmits) as f64);
            figure("drops", drops as f64);
            figure("loss_rate", drops as f64 / (sent as f64).max(1.0));
            if model.transport.ecn {
                figure("ecn_marks", total(&|s| s.ecn_marks) as f64);
            }
            if model.protocol == Protocol::Mptcp {
                let [opener, acceptor] = &connection.sides;
                let held_max = opener.receive.held_bytes_max.max(acceptor.receive.held_bytes_max);
                figure("reinjections", (opener.send.reinjections + acceptor.send.reinjections) as f64);
                figure("duplicates", (opener.receive.duplicates + acceptor.receive.duplicates) as f64);
                figure("out_of_order_max_bytes", held_max as f64);
                if scheduler::info(model).sends == Sends::Copies {
                    figure("copies", (opener.send.copies + acceptor.send.copies) as f64);
                }
                if let (Some(opener), Some(acceptor)) = (&opener.mechanics, &acceptor.mechanics)
                    && let (Some(opener), Some(acceptor)) = (&opener.remedy, &acceptor.remedy)
                {
                    let retransmissions = opener.retransmissions + acceptor.retransmissions;
                    figure("opportunistic_retransmissions", retransmissions as f64);
                    figure("penalisations", (opener.penalties + acceptor.penalties) as f64);
                }
                if self.scenario.links.iter().any(|link| link.strips != Strips::Nothing) {
                    figure("fallback", f64::from(u8::from(connection.fell_back)));
                    figure("joins_refused", f64::from(connection.joins_refused));
                }
                if self.scenario.measure.head_of_line {
                    let (begin, end) = (begin.waited[index], end.waited[index]);
                    figure("hol_blocked_s", seconds(end.blocked - begin.blocked));
                    let bytes = end.bytes - begin.bytes;
                    if bytes > 0 {
                        let byte_time = (end.byte_time - begin.byte_time) as f64;
                        figure("hol_delay_mean_s", byte_time / 1e9 / bytes as f64);
                        figure("hol_delay_max_s", seconds(end.longest));
                    }
                }
            }
            let first_sent = |subflow: usize| {
                let [begin, end] =
                    [begin, end].map(|counts| scheduling::first_sent(&counts.subflows[subflow]));
                (end - begin) as f64
            };
            let all_first_sent: f64 = subflows.clone().map(first_sent).sum();
            let shares = all_first_sent > 0.0 && scheduling::is_told(self.scenario, model);
            let eventful = self.scenario.events.iter().any(|event| event.connection == index);
            for (subflow, path) in subflows.zip(&model.subflows) {
                let scope = Scope::Subflow(model.name.clone(), path.name.clone());
                let counts = (begin.subflows[subflow], end.subflows[subflow]);
                self.subflow_figures(figures, &scope, subflow, counts, window_s);
                if shares {
                    let value = first_sent(subflow) / all_first_sent;
                    figures.push(Figure { scope: scope.clone(), metric: "data_share", value });
                }
                if model.transport.ecn {
                    let marks = counts.1.ecn_marks - counts.0.ecn_marks;
                    figures.push(Figure { scope: scope.clone(), metric: "ecn_marks", value: marks as f64 });
                }
                if eventful || model.transport.stale_after.is_some() {
                    let failures = counts.1.sender.failures - counts.0.sender.failures;
                    figures.push(Figure { scope, metric: "subflow_failures", value: f64::from(failures) });
                }
            }
        }
        goodputs
    }

    fn subflow_figures(
        &self,
        figures: &mut Vec<Figure>,
        scope: &Scope,
        index: usize,
        (begin, end): (SubflowCounts, SubflowCounts),
        window_s: f64,
    ) {
        let mut figure = |metric, value| figures.push(Figure { scope: scope.clone(), metric, value });
        let sent = end.sender.packets - begin.sender.packets;
        let drops = end.drops - begin.drops;
        figure("throughput_bps", (end.bytes_acked - begin.bytes_acked) as f64 * 8.0 / window_s);
        figure("packets_sent", sent as f64);
        figure("retransmits", (end.sender.retransmits - begin.sender.retransmits) as f64);
        figure("timeouts", f64::from(end.sender.timeouts - begin.sender.timeouts));
        figure("fast_retransmits", (end.sender.recoveries - begin.sender.recoveries) as f64);
        figure("drops", drops as f64);
        figure("loss_rate", drops as f64 / (sent as f64).max(1.0));
        let means = self.meter.subflow_means[index];
        if let Some(cwnd) = means.cwnd.get() {
            figure("mean_cwnd_packets", cwnd);
        }
        if let Some(srtt_s) = means.srtt_s.get() {
            figure("mean_srtt_s", srtt_s);
        }
        let min_us = self.endpoints[self.meter.senders[index].endpoint as usize].sender.rtt.min_us;
        if min_us > 0 {
            figure("min_rtt_s", f64::from(min_us) / 1e6);
        }
    }

    fn datagram_figures(&self, figures: &mut Vec<Figure>, begin: &Counts, end: &Counts, window_s: f64) {
        for (index, model) in self.scenario.datagrams.iter().enumerate() {
            let (begin, end) = (begin.datagrams[index], end.datagrams[index]);
            let scope = Scope::Connection(model.name.clone());
            let mut figure = |metric, value| figures.push(Figure { scope: scope.clone(), metric, value });
            figure("packets_sent", (end.0 - begin.0) as f64);
            figure("packets_received", (end.1 - begin.1) as f64);
            figure("throughput_bps", (end.2 - begin.2) as f64 * 8.0 / window_s);
        }
    }

    fn link_figures(&self, figures: &mut Vec<Figure>, begin: &Counts, end: &Counts, window_s: f64) {
        let wires = 2 * self.scenario.links.len();
        for (index, (link, name)) in self.meter.links.iter().enumerate() {
            let (position, rate_bps, marks) = match *link {
                LinkRef::Wire(wire) => {
                    let model = &self.scenario.links[wire / 2];
                    let model = if wire % 2 == 0 { model.forward } else { model.reverse };
                    (wire, model.rate_bps, model.discipline.marks())
                }
                LinkRef::Medium(medium) => (wires + medium, self.scenario.media[medium].rate_bps, false),
            };
            let (begin, end) = (begin.links[position], end.links[position]);
            let scope = Scope::Link(name.clone());
            let mut figure = |metric, value| figures.push(Figure { scope: scope.clone(), metric, value });
            figure("drops", (end.drops - begin.drops) as f64);
            figure("losses", (end.losses - begin.losses) as f64);
            if marks {
                figure("marks", (end.marks - begin.marks) as f64);
            }
            figure("packets", (end.packets - begin.packets) as f64);
            let bits = (end.bytes - begin.bytes) as f64 * 8.0;
            figure("throughput_bps", bits / window_s);
            figure("utilization", bits / window_s / rate_bps as f64);
            if let Some(queue) = self.meter.queue_means[index].get() {
                figure("mean_queue_packets", queue);
            }
            if let (Some(begin), Some(end)) = (begin.air, end.air) {
                end.since(begin)
                    .figures(window_s)
                    .into_iter()
                    .for_each(|(metric, value)| figure(metric, value));
            }
        }
    }
}
