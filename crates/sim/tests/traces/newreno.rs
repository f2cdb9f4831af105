//! Recovery by duplicate acknowledgements: RFC 5681, 6582, 3042, and the timer of RFC 6298.

use crate::golden::{Losses, one_path, trace};
use crate::packets::{Arrival, Lines};

const WIRE_MS: u64 = 20;
const SEGMENTS: u64 = 30;

/// Every segment is acknowledged at once; ten segments at first and congestion avoidance from there.
const TRANSPORT: &str = r#"profile = "ns2", initial_window = "10 packets", initial_ssthresh = "10 packets""#;

fn run(name: &str, losses: Losses<'_>) -> (Lines, Vec<Arrival>) {
    let lines = trace(name, &one_path(TRANSPORT, "30 kB", losses));
    lines.check(SEGMENTS);
    let arrivals = lines.arrivals(WIRE_MS);
    (lines, arrivals)
}

/// One segment of a window of 11 is lost.
fn single_loss() -> (Lines, Vec<Arrival>) {
    let (lines, arrivals) = run("newreno-single-loss", &[("forward", 89_200, 89_600)]);
    assert_eq!(lines.lost(), [12]);
    (lines, arrivals)
}

/// Three segments of a window of 11 are lost.
fn several_losses() -> (Lines, Vec<Arrival>) {
    let losses = [("forward", 88_400, 88_700), ("forward", 90_000, 90_400), ("forward", 92_500, 92_900)];
    let (lines, arrivals) = run("newreno-several-losses", &losses);
    assert_eq!(lines.lost(), [11, 13, 16]);
    (lines, arrivals)
}

/// The rest of a window is lost, and so are its first two repetitions.
fn timeouts() -> (Lines, Vec<Arrival>) {
    let (lines, arrivals) = run("newreno-timeouts", &[("forward", 89_200, 800_000)]);
    assert_eq!(lines.lost(), [12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 12, 12]);
    (lines, arrivals)
}

fn duplicates(arrivals: &[Arrival]) -> Vec<&Arrival> {
    arrivals.iter().filter(|arrival| arrival.duplicate).collect()
}

#[test]
fn rfc_3042_the_first_two_duplicates_let_out_a_new_segment_each() {
    for (lines, arrivals) in [single_loss(), several_losses()] {
        let duplicates = duplicates(&arrivals);
        let last = lines.new_at(arrivals.iter().find(|a| a.ack == duplicates[0].ack).expect("first").time_us);
        let next = last.last().expect("the window was full") + 1;
        assert_eq!(lines.sent_at(duplicates[0].time_us), [next]);
        assert_eq!(lines.sent_at(duplicates[1].time_us), [next + 1]);
    }
}

#[test]
fn rfc_5681_3_2_the_third_duplicate_brings_the_retransmission_at_once_and_only_once() {
    let (lines, arrivals) = single_loss();
    let third = duplicates(&arrivals)[2].time_us;
    assert_eq!(lines.sent_at(third), [12], "no new data with it: the window is halved");
    assert_eq!(lines.again().len(), 1);
}

#[test]
fn rfc_5681_3_2_the_window_is_half_the_flight_plus_one_for_each_duplicate() {
    let (lines, arrivals) = single_loss();
    let duplicates = duplicates(&arrivals);
    // Limited transmit does not count (RFC 5681 section 3.2, step 2): 11 were out before the first duplicate.
    let flight = lines.outstanding(&arrivals, duplicates[0].time_us) - 1;
    assert_eq!(flight, 11);
    let ssthresh = flight / 2;
    for (count, duplicate) in (1..).zip(&duplicates).skip(3) {
        let before = lines.outstanding(&arrivals, duplicate.time_us - 2);
        let room = (ssthresh + count).saturating_sub(before);
        assert_eq!(lines.new_at(duplicate.time_us).len() as u64, room, "duplicate {count}");
    }
}

#[test]
fn rfc_6582_3_2_a_full_acknowledgement_deflates_the_window_to_ssthresh() {
    let (lines, arrivals) = single_loss();
    let full = arrivals.iter().find(|arrival| arrival.ack > 12).expect("recovery ends");
    assert_eq!(full.ack, 25, "all that was sent before recovery began, limited transmit included");
    assert_eq!(lines.outstanding(&arrivals, full.time_us), 11 / 2);
}

#[test]
fn rfc_6582_3_2_a_partial_acknowledgement_brings_the_next_hole_at_once() {
    let (lines, arrivals) = several_losses();
    let again = lines.again();
    let holes: Vec<u64> = again.iter().map(|&(_, number)| number).collect();
    assert_eq!(holes, [11, 13, 16], "exactly one retransmission per hole");
    for &(time_us, number) in &again[1..] {
        let partial = arrivals.iter().find(|arrival| arrival.ack == number).expect("a partial one");
        assert!(partial.time_us.abs_diff(time_us) <= 1, "hole {number}");
    }
}

#[test]
fn rfc_6582_3_2_a_partial_acknowledgement_deflates_by_what_it_acknowledges_and_adds_one() {
    let (lines, arrivals) = several_losses();
    let mut window = 11 / 2;
    let mut una = 11;
    for arrival in arrivals.iter().filter(|arrival| arrival.duplicate || arrival.ack > 11) {
        if arrival.ack >= 24 {
            break; // all that was sent before recovery began
        }
        window = if arrival.duplicate { window + 1 } else { window + 1 - (arrival.ack - una) };
        una = arrival.ack;
        if window > 11 / 2 + 3 {
            let outstanding = lines.outstanding(&arrivals, arrival.time_us);
            let before = lines.outstanding(&arrivals, arrival.time_us - 2);
            let data_left = outstanding + una < SEGMENTS;
            assert!(outstanding <= window.max(before), "{outstanding} out with a window of {window}");
            assert!(outstanding >= window || !data_left, "{outstanding} out with a window of {window}");
        }
    }
}

#[test]
fn rfc_6298_5_each_expiry_doubles_the_timeout() {
    let (lines, arrivals) = timeouts();
    let again = lines.again();
    let last_new_ack = arrivals.iter().rfind(|a| a.time_us < again[0].0).expect("the window began well");
    let times: Vec<u64> =
        std::iter::once(last_new_ack.time_us).chain(again[..3].iter().map(|&(time_us, _)| time_us)).collect();
    let waits: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(waits, [200_000, 400_000, 800_000], "from the last acknowledgement of new data on (5.3, 5.5)");
    assert!(again[..3].iter().all(|&(_, number)| number == 12), "the earliest unacknowledged segment (5.4)");
}

#[test]
fn rfc_5681_3_1_after_a_timeout_the_window_is_one_and_slow_start_doubles_it_up_to_half_the_flight() {
    let (lines, arrivals) = timeouts();
    let after: Vec<&Arrival> = arrivals.iter().filter(|arrival| arrival.ack > 12).collect();
    // One more per acknowledgement up to ssthresh = 11 / 2, then one more per window.
    let windows = [2, 3, 4, 5, 5, 5, 5];
    for (arrival, window) in after.iter().zip(windows) {
        let last = lines.sent_at(arrival.time_us).into_iter().max().expect("the window opens");
        assert_eq!(last + 1 - arrival.ack, window, "when {} is acknowledged", arrival.ack);
    }
}

#[test]
fn go_back_n_repeats_in_order_what_was_outstanding_and_then_goes_on() {
    let (lines, _) = timeouts();
    let repeated: Vec<u64> = lines.again()[2..].iter().map(|&(_, number)| number).collect();
    assert!(repeated.iter().copied().eq(12..23), "{repeated:?}");
}

#[test]
fn without_delay_every_segment_that_arrives_is_acknowledged() {
    for (lines, _) in [single_loss(), several_losses(), timeouts()] {
        assert_eq!(lines.acks().len(), lines.data().len() - lines.lost().len());
    }
}
