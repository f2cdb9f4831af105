//! Against receive buffers that a slow subflow fills: what a sender remembers of its opportunistic retransmissions and
//! penalties (Raiciu et al., NSDI 2012, section 4.2). What they do is in `world/blocked.rs`.

use anabranch_link::Nanos;
use anabranch_scenario::model::{Connection, Protocol};

/// State of one sending side.
#[derive(Debug, Default)]
pub(crate) struct Remedy {
    /// The oldest segment is sent again on another subflow.
    pub(crate) retransmits: bool,
    /// The subflow that holds it up is slowed down.
    pub(crate) penalises: bool,
    /// When each subflow was penalised last.
    penalised_at: Vec<Option<Nanos>>,
    /// Segments sent again so far.
    pub(crate) retransmissions: u64,
    /// Windows halved so far.
    pub(crate) penalties: u64,
}

impl Remedy {
    /// What a connection asks for; `None`: nothing.
    pub(crate) fn new(model: &Connection) -> Option<Box<Self>> {
        let transport = &model.transport;
        let (retransmits, penalises) = (transport.opportunistic_retransmission, transport.penalisation);
        let wanted = model.protocol == Protocol::Mptcp && (retransmits || penalises);
        let penalised_at = vec![None; model.subflows.len()];
        wanted.then(|| Box::new(Self { retransmits, penalises, penalised_at, ..Self::default() }))
    }

    /// Whether a subflow with this smoothed round-trip time may be penalised now: at most once in that time. It then is.
    pub(crate) fn penalise(&mut self, subflow: usize, now: Nanos, srtt: Nanos) -> bool {
        let last = &mut self.penalised_at[subflow];
        let may = last.is_none_or(|at| now - at >= srtt);
        if may {
            *last = Some(now);
            self.penalties += 1;
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raiciu_4_2_a_subflow_is_penalised_at_most_once_per_round_trip() {
        let mut remedy = Remedy { penalised_at: vec![None; 2], ..Remedy::default() };
        let penalised: Vec<bool> =
            [0, 99, 100, 150, 199, 200].map(|now| remedy.penalise(1, now, 100)).to_vec();
        assert_eq!(penalised, [true, false, true, false, false, true]);
        assert!(remedy.penalise(0, 200, 100), "the other one has a time of its own");
        assert_eq!(remedy.penalties, 4);
    }
}
