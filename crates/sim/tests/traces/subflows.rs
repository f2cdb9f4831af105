//! Subflows that end, begin again and change their priority, and middleboxes that remove options: RFC 8684.

use crate::golden::{lines, lossy, paths};
use crate::packets::{Line, Lines, What};

/// Windows of four, so that the traces stay short.
const TRANSPORT: &str =
    r#"profile = "rfc", segment = "1000 B", window_cap = "4 packets", min_rto = "100 ms""#;

/// A file over wires of 10 and 20 ms with these events of subflows: (milliseconds, subflow, action).
fn run(file: &str, events: &[(u64, u32, &str)], more: &str) -> Lines {
    let event = |(at, subflow, action): &(u64, u32, &str)| {
        format!(
            "\n[[event]]\nat = \"{at} ms\"\nconnection = \"file\"\nsubflow = \"{subflow}\"\naction = \"{action}\"\n"
        )
    };
    let events: String = events.iter().map(event).collect();
    lines("subflows", &paths(TRANSPORT, file, &[10, 20], &(events + more)))
}

/// When a packet arrives at the other end: over the access link of 1 ms and a wire, at 10 Mbit/s both.
fn arrives_us(line: &Line) -> u64 {
    let wire_us = [10_000, 20_000][line.subflow as usize];
    line.time_us + 1_000 + wire_us + 2 * 8 * line.bytes / 10
}

fn says<'l>(lines: &'l Lines, signal: &str) -> Vec<&'l Line> {
    lines.0.iter().filter(|line| line.signal.as_deref() == Some(signal)).collect()
}

fn check_complete(lines: &Lines, segments: u64) {
    assert_eq!(lines.acks().iter().filter_map(|line| line.dack).max(), Some(segments));
}

/// Data-level numbers that a subflow had been given up to a time and that no acknowledgement had covered then, neither
/// its own nor at the data level.
fn unacknowledged(lines: &Lines, subflow: u32, time_us: u64) -> Vec<u64> {
    let heard = lines.acks().into_iter().filter(|line| arrives_us(line) <= time_us);
    let dack = heard.clone().filter_map(|line| line.dack).max();
    let una = heard.filter(|line| line.subflow == subflow).filter_map(|line| line.ack).max();
    let of = lines.of(subflow);
    let given = of.data().into_iter().filter(|line| line.time_us <= time_us);
    given.filter(|line| line.seq >= una && line.dsn >= dack).filter_map(|line| line.dsn).collect()
}

fn check_taken_over(lines: &Lines, dsns: &[u64], subflow: u32, from_us: u64) {
    assert!(!dsns.is_empty());
    for &dsn in dsns {
        let taken =
            lines.of(subflow).data().into_iter().any(|line| line.dsn == Some(dsn) && line.time_us >= from_us);
        assert!(taken, "{dsn} goes over the other subflow");
    }
}

#[test]
fn rfc_8684_3_6_a_subflow_that_is_closed_is_reset_and_its_data_goes_over_the_other_one() {
    let lines = run("80 kB", &[(150, 1, "close")], &lossy("wire1", ("forward", 100_000, 150_500)));
    let resets = says(&lines, "RST");
    assert!(resets.iter().all(|reset| reset.subflow == 1 && reset.what == What::Forth));
    assert_eq!(resets[0].time_us, 150_000);
    let second = lines.of(1);
    assert!(second.data().iter().all(|line| line.time_us <= 150_000));
    let heard_us = arrives_us(resets[0]);
    assert!(second.acks().iter().all(|line| line.time_us <= heard_us), "the peer has closed it too");
    // RFC 9293 section 3.5.2: whatever comes to what is closed is answered by a reset.
    let late = second.acks().iter().filter(|line| arrives_us(line) > 150_000).count();
    assert_eq!(resets.len(), 1 + late);
    check_taken_over(&lines, &unacknowledged(&lines, 1, 150_000), 0, 150_000);
    check_complete(&lines, 80);
}

#[test]
fn rfc_8684_3_2_a_subflow_that_is_opened_again_joins_as_a_new_one() {
    for subflow in [0, 1] {
        let lines = run("160 kB", &[(150, subflow, "close"), (300, subflow, "open")], "");
        let of = lines.of(subflow);
        let later: Vec<&Line> = of.0.iter().filter(|line| line.time_us >= 300_000).collect();
        let (forth, back) = (What::Forth, What::Back);
        let opening: Vec<_> = later[..4].iter().map(|line| (line.what, line.syn, line.join)).collect();
        let expected = [(forth, true, true), (back, true, true), (forth, false, true), (back, false, false)];
        assert_eq!(opening, expected, "the first subflow joins too");
        assert_eq!(later[0].time_us, 300_000);
        let before = of.data().iter().filter(|line| line.time_us < 300_000).filter_map(|line| line.seq).max();
        let first = of.data().into_iter().find(|line| line.time_us >= 300_000).expect("it carries data");
        assert_eq!(
            first.seq,
            before.map(|seq| seq + 2),
            "a number of its own separates it from the one before"
        );
        assert!(first.time_us.abs_diff(arrives_us(later[3])) <= 1);
        assert_eq!(of.sent_at(first.time_us).len(), 4, "with a window of its own");
        check_complete(&lines, 160);
    }
}

#[test]
fn a_reset_that_is_lost_does_not_hinder_the_next_subflow() {
    let losses = lossy("wire1", ("forward", 150_500, 250_000));
    let lines = run("160 kB", &[(150, 1, "close"), (300, 1, "open")], &losses);
    assert!(says(&lines, "RST").iter().any(|line| line.what == What::Lost));
    assert!(lines.of(1).data().iter().any(|line| line.time_us > 300_000));
    check_complete(&lines, 160);
}

#[test]
fn rfc_8684_3_4_2_an_address_that_is_lost_is_told_on_the_other_subflow() {
    let lines = run("80 kB", &[(150, 1, "remove")], &lossy("wire1", ("forward", 100_000, 150_500)));
    let told = says(&lines, "REMOVE_ADDR=1");
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].subflow, told[0].time_us), (0, 150_000));
    let second = lines.of(1);
    assert!(second.0.iter().all(|line| line.what != What::Forth || line.time_us <= 150_000));
    assert!(second.acks().iter().all(|line| line.time_us <= 150_000 + 21_000 + 4_000));
    assert!(says(&lines, "RST").is_empty(), "nothing is sent from an address that is gone");
    check_taken_over(&lines, &unacknowledged(&lines, 1, 150_000), 0, 150_000);
    check_complete(&lines, 80);
}

#[test]
fn rfc_8684_3_3_8_a_backup_gets_no_data_until_it_is_regular_again() {
    let lines = run("200 kB", &[(150, 1, "backup"), (300, 1, "regular")], "");
    for (at_us, signal) in [(150_000, "MP_PRIO=backup"), (300_000, "MP_PRIO=regular")] {
        let told = says(&lines, signal);
        assert_eq!(told.len(), 1, "{signal}");
        assert_eq!((told[0].subflow, told[0].time_us, told[0].what), (1, at_us, What::Forth));
    }
    let second = lines.of(1);
    let times: Vec<u64> = second.data().iter().map(|line| line.time_us).collect();
    assert!(times.iter().any(|time| *time < 150_000));
    assert!(!times.iter().any(|time| (150_000..300_000).contains(time)), "{times:?}");
    assert_eq!(second.sent_at(300_000).len(), 4, "its window is free");
    check_complete(&lines, 200);
}

#[test]
fn rfc_8684_3_3_8_data_goes_over_a_backup_while_no_other_subflow_is_there() {
    let lines = run("200 kB", &[(150, 1, "backup"), (250, 0, "close")], "");
    let times: Vec<u64> = lines.of(1).data().iter().map(|line| line.time_us).collect();
    assert!(!times.iter().any(|time| (150_000..250_000).contains(time)), "{times:?}");
    assert!(times.contains(&250_000));
    check_complete(&lines, 200);
}

fn announced(losses: &str) -> Lines {
    let text = paths(TRANSPORT, "60 kB", &[10, 20], losses);
    lines("announced", &text.replace("via = [\"R1\"]", "via = [\"R1\"]\nannounced = true"))
}

#[test]
fn rfc_8684_3_4_1_an_announced_address_is_echoed_and_joined() {
    let lines = announced("");
    let third = lines.0.iter().find(|line| line.what == What::Forth && !line.syn).expect("a third packet");
    let told = says(&lines, "ADD_ADDR=1");
    assert_eq!((told.len(), told[0].subflow, told[0].what), (1, 0, What::Back));
    assert!(told[0].time_us.abs_diff(arrives_us(third)) <= 1, "as soon as the connection is there");
    assert_eq!(told[0].bytes, 64 + 16, "four bytes, the address and eight of HMAC");
    let echo = says(&lines, "ADD_ADDR_ECHO=1");
    assert_eq!((echo.len(), echo[0].subflow, echo[0].what), (1, 0, What::Forth));
    assert!(echo[0].time_us.abs_diff(arrives_us(told[0])) <= 1);
    let syn = lines.of(1).0[0].clone();
    let first = lines.0.iter().find(|line| line.is_ack() && line.dack > Some(0)).expect("a DATA_ACK");
    assert!(syn.join && syn.time_us.abs_diff(arrives_us(first)) <= 1, "a join needs both: {syn:?}");
    check_complete(&lines, 60);
}

#[test]
fn rfc_8684_3_4_1_an_announcement_that_is_lost_is_repeated() {
    let told_us = says(&announced(""), "ADD_ADDR=1")[0].time_us;
    let lines = announced(&lossy("wire0", ("reverse", told_us - 5, told_us + 5)));
    let told: Vec<u64> = says(&lines, "ADD_ADDR=1")
        .iter()
        .filter(|line| line.what == What::Back)
        .map(|line| line.time_us)
        .collect();
    assert_eq!(told.len(), 2);
    assert_eq!(told[1] - told[0], 1_000_000, "after the initial retransmission timeout");
    assert!(lines.of(1).0[0].time_us > told[1]);
    check_complete(&lines, 60);
}

#[test]
fn a_subflow_with_a_start_joins_then() {
    let text = paths(TRANSPORT, "200 kB", &[10, 20], "");
    let lines = lines("late", &text.replace("via = [\"R1\"]", "via = [\"R1\"]\nstart = \"300 ms\""));
    let first = &lines.of(1).0[0];
    assert!(first.join && first.syn);
    assert_eq!(first.time_us, 300_000);
    check_complete(&lines, 200);
}

/// Subflow 1 loses everything from 160 ms on: what was lost first, and when a data acknowledgement last made progress.
fn silent(file: &str) -> (Lines, Vec<u64>, u64) {
    let transport = format!("{TRANSPORT}, stale_after = 3");
    let losses = lossy("wire1", ("forward", 160_000, 5_000_000));
    let lines = lines("stale", &paths(&transport, file, &[10, 20], &losses));
    let mut lost: Vec<u64> =
        lines.of(1).0.iter().filter(|line| line.what == What::Lost).filter_map(|line| line.dsn).collect();
    lost.sort_unstable();
    lost.dedup();
    let progress = lines.acks().into_iter().filter(|line| line.dack == lost.first().copied());
    let progress_us = progress.map(arrives_us).min().expect("all before it is acknowledged");
    (lines, lost, progress_us)
}

/// When the other subflow sends a segment.
fn moves(lines: &Lines, dsn: u64) -> Vec<u64> {
    lines.of(0).data().into_iter().filter(|line| line.dsn == Some(dsn)).map(|line| line.time_us).collect()
}

/// The first and the third period are what is left of the other subflow's timeout of 100 ms, which each of its
/// acknowledgements, 24 ms apart at most, begins anew; the second and the fourth are 200 ms, for it has a count then. Three
/// may be silent, the fourth is one too many. What goes again waits for the next acknowledgements of the other subflow.
#[test]
fn linux_a_subflow_is_stale_after_so_many_silent_periods_and_all_that_is_unacknowledged_goes_again() {
    let (lines, lost, progress_us) = silent("400 kB");
    let stale_us = progress_us + 2 * 76_000 + 400_000..=progress_us + 600_000;
    for &dsn in &lost {
        let moved = moves(&lines, dsn);
        assert_eq!(moved.len(), 1, "{dsn}");
        assert!((*stale_us.start()..=stale_us.end() + 2 * 24_000).contains(&moved[0]), "{dsn}: {moved:?}");
    }
    let stale_us = moves(&lines, lost[0])[0];
    let [first, second] = [0, 1].map(|subflow| lines.of(subflow));
    let own = first.data().into_iter().filter(|line| line.time_us < stale_us && line.dsn > Some(lost[0]));
    let own_again = own.filter_map(|line| line.dsn).filter(|&dsn| moves(&lines, dsn).len() == 2).count();
    assert!(own_again > 0, "what the other subflow has sent itself goes again too");
    let fresh = second.data().into_iter().filter(|line| (stale_us..5_000_000).contains(&line.time_us));
    assert!(fresh.filter_map(|line| line.dsn).all(|dsn| lost.contains(&dsn)), "it gets nothing new");
    check_complete(&lines, 400);
}

#[test]
fn linux_an_idle_subflow_gets_the_oldest_data_with_the_first_silent_period() {
    let (lines, lost, progress_us) = silent("80 kB");
    for &dsn in &lost {
        let moved = moves(&lines, dsn);
        assert_eq!(moved.len(), 1, "{dsn}");
        assert!((progress_us..progress_us + 2 * 76_000 + 200_000).contains(&moved[0]), "{dsn}: {moved:?}");
    }
    check_complete(&lines, 80);
}

fn stripped(link: &str, what: &str) -> Lines {
    let text = paths(TRANSPORT, "60 kB", &[10, 20], "");
    let (from, to) = (format!("name = \"{link}\""), format!("name = \"{link}\"\nstrips = \"{what}\""));
    lines("stripped", &text.replace(&from, &to))
}

#[test]
fn rfc_8684_3_7_a_connection_whose_options_are_removed_goes_on_as_tcp() {
    let lines = stripped("wire0", "mptcp");
    let capable: Vec<What> = lines.0.iter().filter(|line| line.capable).map(|line| line.what).collect();
    assert_eq!(capable, [What::Forth], "the SYN alone; its answer is that of TCP");
    assert!(lines.0.iter().all(|line| line.subflow == 0 && !line.join && line.dack.is_none()));
    lines.check(60);
}

#[test]
fn rfc_8684_3_7_a_join_whose_option_is_removed_fails_alone() {
    for what in ["joins", "mptcp"] {
        let lines = stripped("wire1", what);
        let second = lines.of(1);
        let seen: Vec<_> = second.0.iter().map(|line| (line.what, line.syn, line.join)).collect();
        let (forth, back) = (What::Forth, What::Back);
        assert_eq!(seen, [(forth, true, true), (back, true, false), (forth, false, false)]);
        assert_eq!(second.0[2].signal.as_deref(), Some("RST"));
        assert!(second.0[2].time_us.abs_diff(arrives_us(&second.0[1])) <= 1);
        check_complete(&lines, 60);
        lines.of(0).check(60);
    }
}

#[test]
fn rfc_8684_3_7_joins_that_are_removed_on_the_first_path_do_not_touch_the_connection() {
    let lines = stripped("wire0", "joins");
    assert!(lines.of(1).data().len() > 5, "the other path joins");
    check_complete(&lines, 60);
}
