//! What the shim has counted. Mirrors `bpf/counters.h`.

use anabranch_cc::MAX_PEERS;

/// The events of the contract that the shim makes, in the order of [`Counters::events`].
pub const EVENTS: [&str; 13] = [
    "init",
    "rtt_sample",
    "loss",
    "rto",
    "recovery_exit",
    "undo",
    "ecn",
    "ack",
    "rate",
    "idle_restart",
    "peer_join",
    "peer_leave",
    "release",
];

const WORDS: usize = EVENTS.len() + MAX_PEERS + 1 + 7;

/// Counts since the algorithm was loaded, over all sockets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls per event, in the order of [`EVENTS`].
    pub events: [u64; EVENTS.len()],
    /// Handler calls of a coupled algorithm by number of usable subflows; index 1 is uncoupled.
    pub by_usable: [u64; MAX_PEERS + 1],
    /// Subflows that got a slot of their connection.
    pub joined: u64,
    /// Sockets of a coupled algorithm that are not MPTCP.
    pub plain_tcp: u64,
    /// Subflows beyond the eighth, which run uncoupled.
    pub no_slot: u64,
    /// Subflows whose connection got no map entry, which run uncoupled.
    pub map_full: u64,
    /// Sockets that got no storage, whose window never grows.
    pub no_memory: u64,
    /// Handler calls repeated because a peer had changed the connection's words meanwhile.
    pub conflicts: u64,
    /// Changes of the connection's words given up after repeated conflicts.
    pub dropped_writes: u64,
}

impl Counters {
    /// Calls of one event.
    ///
    /// # Panics
    /// If `event` is not one of [`EVENTS`].
    pub fn event(&self, event: &str) -> u64 {
        let index = EVENTS.iter().position(|name| *name == event);
        self.events[index.unwrap_or_else(|| panic!("`{event}` is not an event"))]
    }

    /// Handler calls with at least two usable subflows.
    pub fn coupled(&self) -> u64 {
        self.by_usable[2..].iter().sum()
    }

    /// Handler calls of a coupled algorithm with one usable subflow.
    pub fn uncoupled(&self) -> u64 {
        self.by_usable[1]
    }

    /// Adds up the values of all CPUs, each a `struct ab_counters`.
    pub(crate) fn sum(per_cpu: &[Vec<u8>]) -> Self {
        let mut words = [0u64; WORDS];
        for cpu in per_cpu {
            assert_eq!(cpu.len(), WORDS * 8, "struct ab_counters and its mirror differ");
            for (word, bytes) in words.iter_mut().zip(cpu.chunks_exact(8)) {
                *word += u64::from_ne_bytes(bytes.try_into().expect("chunks of eight"));
            }
        }
        let mut rest = words.into_iter();
        let mut next = || rest.next().expect("WORDS counts them all");
        Self {
            events: std::array::from_fn(|_| next()),
            by_usable: std::array::from_fn(|_| next()),
            joined: next(),
            plain_tcp: next(),
            no_slot: next(),
            map_full: next(),
            no_memory: next(),
            conflicts: next(),
            dropped_writes: next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = include_str!("../bpf/counters.h");

    #[test]
    fn events_are_those_of_the_shim_in_its_order() {
        let names: Vec<&str> =
            HEADER.lines().filter_map(|line| line.trim().strip_prefix("X(")?.split(')').next()).collect();
        assert_eq!(names, EVENTS);
    }

    #[test]
    fn the_mirror_has_the_fields_of_the_header() {
        let fields: Vec<&str> = HEADER
            .lines()
            .skip_while(|line| *line != "struct ab_counters {")
            .take_while(|line| *line != "};")
            .filter_map(|line| line.trim().strip_prefix("u64 ")?.split([';', '[']).next())
            .collect();
        let expected = [
            "events",
            "by_usable",
            "joined",
            "plain_tcp",
            "no_slot",
            "map_full",
            "no_memory",
            "conflicts",
            "dropped_writes",
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn cpus_are_added_field_by_field() {
        let cpu: Vec<u8> = (0..WORDS as u64).flat_map(u64::to_ne_bytes).collect();
        let sum = Counters::sum(&[cpu.clone(), cpu]);
        assert_eq!(sum.event("init"), 0);
        assert_eq!(sum.event("release"), 24);
        assert_eq!(sum.by_usable[0], 26);
        assert_eq!(sum.coupled(), (15..=21).map(|word| 2 * word).sum());
        assert_eq!(sum.dropped_writes, 2 * (WORDS as u64 - 1));
    }
}
