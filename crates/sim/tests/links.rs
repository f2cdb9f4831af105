//! Shaped links in whole runs: what their pieces promise holds behind real senders too.

#[allow(unreachable_pub)] // public for whichever test binary uses it
mod common;

use common::{connection, link, parse, run, scenario};

/// One flow over a bottleneck of 10 Mbit/s with a round trip of 40 ms.
fn flow(settings: &str, traffic: &str) -> String {
    format!(
        r#"
        name = "link"
        duration = "60 s"
        measure = {{ from = "20 s" }}
        transport = {{ profile = "ns2" }}
        node = [{{ names = ["S", "D"] }}]
        [[link]]
        name = "wire"
        between = ["S", "D"]
        rate = "10 Mbit/s"
        delay = "20 ms"
        reverse = {{ queue = "unlimited", loss = 0, jitter = "0 s" }}
        {settings}
        {traffic}"#
    )
}

const RENO: &str = "[[connection]]\nname = \"flow\"\nfrom = \"S\"\nto = \"D\"\ncongestion = \"reno\"";
/// 12 Mbit/s, whatever comes of them.
const TOO_MUCH: &str =
    "[[datagram]]\nname = \"cbr\"\nfrom = \"S\"\nto = \"D\"\nrate = \"12 Mbit/s\"\npacket = \"1000 B\"";

#[test]
fn codel_keeps_the_queue_of_a_long_flow_short_and_the_link_full() {
    let figures = |queue: &str| {
        let run = run(&parse(&flow(&format!("queue = {queue}"), RENO)), 1);
        (link(&run, "wire", "mean_queue_packets"), link(&run, "wire", "utilization"))
    };
    let (long, full) = figures("\"500 packets\"");
    let (short, used) = figures("{ kind = \"codel\", limit = \"500 packets\" }");
    assert!(long > 250.0 && full > 0.99, "{long} packets, {full}");
    // A packet of 1040 B takes 0.83 ms: the target is 6 packets. Without any queue a window between half and all of what the
    // path holds would use three quarters of the link.
    assert!(short < 6.0 && used > 0.75, "{short} packets, {used}");
}

#[test]
fn red_holds_an_unresponsive_flow_where_its_probability_is_the_excess() {
    // 12 Mbit/s into 10 Mbit/s: a sixth must go. p at the average q is 0.5 (q - 20) / 60, and the spread of drops makes
    // 2 / (1 / p + 1) of it (one drop in (1 / p + 1) / 2 packets): 1/6 at p = 1/11, q = 20 + 60 / 5.5 = 30.9.
    let queue = r#"queue = { kind = "red", limit = "500 packets", min = "20 packets", max = "80 packets", max_p = 0.5 }"#;
    let run = run(&parse(&flow(queue, TOO_MUCH)), 1);
    let mean = link(&run, "wire", "mean_queue_packets");
    // Within 5 %: the queue varies, and the probability is not quite linear in it.
    assert!((mean / 30.9 - 1.0).abs() < 0.05, "{mean} packets");
    let received = connection(&run, "cbr", "packets_received") / connection(&run, "cbr", "packets_sent");
    assert!((received - 10.0 / 12.0).abs() < 0.005, "{received}");
}

#[test]
fn losses_in_bursts_take_their_share_of_a_link() {
    let settings =
        "queue = \"1000 packets\"\nloss = { kind = \"gilbert-elliott\", p = \"1 %\", r = \"20 %\" }";
    let traffic = TOO_MUCH.replace("12 Mbit/s", "8 Mbit/s");
    let run = run(&parse(&flow(settings, &traffic)), 1);
    let (lost, carried) = (link(&run, "wire", "losses"), link(&run, "wire", "packets"));
    let (share, exact, correlation) = (lost / (lost + carried), 1.0 / 21.0, 0.79);
    let independent = (exact * (1.0 - exact) / (lost + carried)).sqrt();
    let allowed = 3.0 * independent * f64::sqrt((1.0 + correlation) / (1.0 - correlation));
    assert!((share - exact).abs() < allowed, "{share} for {exact}, three standard errors: {allowed}");
}

#[test]
fn jitter_that_reorders_costs_a_sender_and_jitter_in_order_does_not() {
    let goodput = |jitter: &str| {
        let settings = format!("queue = \"100 packets\"\njitter = {jitter}");
        let run = run(&parse(&flow(&settings, RENO)), 1);
        (connection(&run, "flow", "goodput_bps"), connection(&run, "flow", "retransmits"))
    };
    let (steady, _) = goodput("\"0 ms\"");
    let (in_order, _) = goodput("\"10 ms\"");
    let (reordered, needless) = goodput("{ range = \"10 ms\", reorder = true }");
    assert!(in_order > 0.95 * steady, "{in_order} of {steady}");
    assert!(
        reordered < 0.8 * steady && needless > 100.0,
        "{reordered} of {steady}, {needless} retransmissions"
    );
}

#[test]
fn a_saturated_link_carries_the_mean_of_its_trace() {
    let tutorial = scenario("tutorial/lte-drive.toml", &[]);
    let lte = tutorial.links.iter().find(|link| link.name == "lte").expect("it is there");
    let trace = &tutorial.traces[lte.forward.trace.expect("it follows one")];
    let mean_bps = trace.mean_bps() as f64;
    assert_eq!(60_000_000_000 % trace.period(), 0, "whole repetitions");
    let flood = r#"
        name = "flood"
        duration = "60 s"
        node = [{ names = ["S", "D"] }]
        link = [{ name = "wire", between = ["S", "D"], rate = "1 Mbit/s", delay = "0 s", queue = "1000 packets" }]
        datagram = [{ name = "cbr", from = "S", to = "D", rate = "100 Mbit/s", packet = "1500 B" }]"#;
    let mut flood = parse(flood);
    flood.traces = tutorial.traces.clone();
    flood.links[0].forward.trace = Some(0);
    let carried = link(&run(&flood, 1), "wire", "throughput_bps");
    // What is missing is what the first packets found no queue for, and one packet at the end.
    assert!(carried <= mean_bps && carried > 0.999 * mean_bps, "{carried} for {mean_bps}");
}
