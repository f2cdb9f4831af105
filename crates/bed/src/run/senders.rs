//! Who makes a run's traffic: our own applications, iperf3 for its connections, or anabranchd for its transfer.

use anabranch_record::model::{Figure, Measurements, Scope};
use anabranch_scenario::model::{Protocol, Scenario};

use super::{Application, anabranchd, attempt::Place};
use crate::{
    BedError, Nanos,
    host::{Leftover, Namespace},
    plan::Plan,
    traffic::{
        Applications, Outcomes,
        anabranchd::Anabranchd,
        iperf3::{Iperf3, Report},
    },
};

/// The applications of a run.
pub(super) struct Senders {
    own: Applications,
    other: Option<Other>,
}

/// Another program, for the connections.
enum Other {
    Iperf3(Iperf3),
    Anabranchd(Anabranchd),
}

/// What another program says of a run beside its figures.
#[derive(Default)]
pub(super) struct Said {
    /// By name.
    pub(super) facts: Vec<(&'static str, f64)>,
    /// Why the run does not count.
    pub(super) failure: Option<String>,
}

impl Senders {
    /// Starts them.
    ///
    /// # Errors
    /// As [`Applications::start`], [`Iperf3::start`] and [`Anabranchd::start`].
    pub(super) fn start(
        plan: &Plan,
        scenario: &Scenario,
        hosts: &[Namespace],
        zero: Nanos,
        application: Application,
        place: &Place<'_>,
    ) -> Result<Self, BedError> {
        let flag = place.interrupt.flag();
        match application {
            Application::Own => {
                let own = Applications::start(plan, scenario, hosts, zero, flag)?;
                Ok(Self { own, other: None })
            }
            Application::Iperf3 => {
                let session = place.session.clone();
                let on_child = move |pid: u32| {
                    // One that has ended already, or that the ledger does not take, ends with us all the same.
                    let child = i32::try_from(pid).map(Leftover::process);
                    if let Ok(Ok(child)) = child {
                        let _ = session.note(child);
                    }
                };
                let iperf3 = Iperf3::start(plan, scenario, hosts, zero, flag, on_child)?;
                let own = Applications::start_datagrams(plan, scenario, hosts, zero, flag)?;
                Ok(Self { own, other: Some(Other::Iperf3(iperf3)) })
            }
            Application::Anabranchd { tls } => {
                let session = place.session.clone();
                let note = move |leftover: Leftover| {
                    // What the ledger does not take ends with us all the same.
                    let _ = session.note(leftover);
                };
                let carrier = Anabranchd::start(plan, scenario, hosts, zero, flag, tls, note)?;
                let own = Applications::start_datagrams(plan, scenario, hosts, zero, flag)?;
                Ok(Self { own, other: Some(Other::Anabranchd(carrier)) })
            }
        }
    }

    /// Our own, which can be watched.
    pub(super) fn applications(&self) -> &Applications {
        &self.own
    }

    /// Ends them. What another program says takes the place of figures that only our own applications know.
    ///
    /// # Errors
    /// [`BedError::Failed`] with its message.
    pub(super) fn end(
        self,
        scenario: &Scenario,
        measured: &mut Measurements,
    ) -> Result<(Outcomes, Said), BedError> {
        let mut said = Said::default();
        match self.other {
            None => {}
            Some(Other::Iperf3(iperf3)) => {
                let reports: Vec<Report> = iperf3.finish().into_iter().collect::<Result<_, _>>()?;
                import(scenario, reports, measured);
            }
            Some(Other::Anabranchd(carrier)) => {
                let carried = carrier.finish()?;
                anabranchd::import(scenario, &carried, measured);
                said.facts.extend(anabranchd::facts(&carried));
                said.failure = carried.failure.map(|why| format!("anabranchd: {why}"));
            }
        }
        let mut outcomes = self.own.stop();
        if outcomes.connections.is_empty() {
            // Nobody of ours has carried any.
            outcomes.transfers.clear();
        }
        Ok((outcomes, said))
    }
}

/// Figures and output of iperf3. Its goodput counts from the opening to the end, not over the window; it does not know
/// when a file is complete, for its receiver ends when the sender does.
fn import(scenario: &Scenario, reports: Vec<Report>, measured: &mut Measurements) {
    let names: Vec<&str> = scenario.connections.iter().map(|model| model.name.as_str()).collect();
    // Not per bit: nobody knows what was delivered over the window.
    let is_energy = |metric: &str| metric.starts_with("energy_") && !metric.contains("per_bit");
    let is_known = |figure: &Figure| match &figure.scope {
        Scope::Connection(name) => !names.contains(&name.as_str()) || figure.metric == "drops",
        Scope::Subflow(..) => figure.metric == "drops",
        Scope::Run => figure.metric == "packet_hops" || is_energy(figure.metric),
        Scope::Link(_) | Scope::Interface(..) => true,
        Scope::Node(_) => false,
    };
    let is_empty = |series: &anabranch_record::model::Series| match &series.scope {
        Scope::Connection(name) => names.contains(&name.as_str()),
        Scope::Subflow(..) => series.metric != "drops",
        Scope::Run | Scope::Link(_) | Scope::Interface(..) => false,
        Scope::Node(_) => true,
    };
    measured.summary.figures.retain(is_known);
    measured.series.retain(|series| !is_empty(series));
    let mut total = 0.0;
    for (model, report) in scenario.connections.iter().zip(reports) {
        let scope = Scope::Connection(model.name.clone());
        let mut figure = |metric, value| {
            measured.summary.figures.push(Figure { scope: scope.clone(), metric, value });
        };
        let received = report.summary.receiver;
        total += received.bits_per_second;
        figure("goodput_bps", received.bits_per_second);
        figure("bytes_delivered", received.bytes as f64);
        // Of MPTCP it asks the first subflow only.
        if let Some(retransmits) = report.summary.retransmits.filter(|_| model.protocol == Protocol::Tcp) {
            figure("retransmits", retransmits as f64);
        }
        measured.attachments.push((format!("iperf3-{}.json", model.name), report.json));
    }
    measured.summary.figures.push(Figure { scope: Scope::Run, metric: "goodput_bps", value: total });
}
