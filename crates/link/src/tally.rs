//! Bytes that the counters of links and media do not tell, for whoever needs to know what a node has sent and
//! received: what links have lost after transmitting it, and what the stations of media have carried.
//!
//! On a medium a frame counts once, however often it was repeated; one that was given up counts for its sender.
//!
//! Left out, and who could notice: packets that are on a link when it goes down, which their sender has paid for.

/// Counts bytes since the start.
#[derive(Clone, Debug)]
pub struct Tally {
    lost: Vec<u64>,
    /// Position of the first station of each medium in `stations`.
    first_station: Vec<usize>,
    /// Sent and received.
    stations: Vec<(u64, u64)>,
}

impl Tally {
    /// For so many links before the media, by their numbers, and media with so many stations each.
    pub fn new(links: usize, media: impl IntoIterator<Item = usize>) -> Self {
        let (mut first_station, mut stations) = (Vec::new(), 0);
        for of_medium in media {
            first_station.push(stations);
            stations += of_medium;
        }
        Self { lost: vec![0; links], first_station, stations: vec![(0, 0); stations] }
    }

    /// A link has transmitted a packet and lost it.
    #[cold]
    pub fn lost_on_the_way(&mut self, link: usize, bytes: u32) {
        self.lost[link] += u64::from(bytes);
    }

    /// A packet has left station `from` of a medium, and arrived at station `to` unless it was given up.
    pub fn medium_carried(&mut self, medium: usize, from: usize, to: Option<usize>, bytes: u32) {
        let first = self.first_station[medium];
        self.stations[first + from].0 += u64::from(bytes);
        if let Some(to) = to {
            self.stations[first + to].1 += u64::from(bytes);
        }
    }

    /// Bytes that a link has transmitted and lost.
    pub fn lost_by(&self, link: usize) -> u64 {
        self.lost[link]
    }

    /// Bytes that a station has sent and received.
    pub fn of_station(&self, medium: usize, station: usize) -> (u64, u64) {
        self.stations[self.first_station[medium] + station]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_that_was_given_up_counts_for_its_sender_alone() {
        let mut tally = Tally::new(2, [2, 3]);
        tally.medium_carried(1, 2, Some(0), 100);
        tally.medium_carried(1, 2, None, 10);
        tally.medium_carried(0, 0, Some(1), 7);
        tally.lost_on_the_way(1, 1500);
        assert_eq!((tally.of_station(1, 2), tally.of_station(1, 0)), ((110, 0), (0, 100)));
        assert_eq!((tally.of_station(0, 0), tally.of_station(0, 1)), ((7, 0), (0, 7)));
        assert_eq!((tally.lost_by(0), tally.lost_by(1)), (0, 1500));
    }
}
