//! Energy of interfaces, against the closed forms of both models.

#[allow(unreachable_pub)] // public for whichever test binary uses it
mod common;

use anabranch_record::model::{Measurements, Scope};
use common::{figure, link, parse, run};

fn interface(run: &Measurements, node: &str, link: &str, metric: &str) -> f64 {
    figure(run, &Scope::Interface(node.into(), link.into()), metric)
}

fn total(run: &Measurements, metric: &str) -> f64 {
    figure(run, &Scope::Run, metric)
}

fn near(what: &str, value: f64, expected: f64, share: f64) {
    assert!((value - expected).abs() <= share * expected.abs(), "{what}: {value} is not {expected}");
}

/// A phone with a Wi-Fi and an LTE link of these rates, and further tables.
fn phone(top: &str, loss: &str, more: &str) -> String {
    format!(
        r#"
name = "phone"
{top}
node = [{{ names = ["phone", "ap", "tower", "server"] }}]
link = [
    {{ name = "wifi", between = ["phone", "ap"], rate = "8 Mbit/s", delay = "10 ms", queue = "60 packets", loss = "{loss}" }},
    {{ name = "lte", between = ["tower", "phone"], rate = "18 Mbit/s", delay = "30 ms", queue = "100 packets" }},
    {{ name = "dsl", between = ["ap", "server"], rate = "1 Gbit/s", delay = "10 ms", queue = "unlimited" }},
    {{ name = "core", between = ["tower", "server"], rate = "1 Gbit/s", delay = "10 ms", queue = "unlimited" }},
]
interface = [
    {{ node = "phone", link = "wifi", radio = "wifi" }},
    {{ node = "phone", link = "lte", radio = "lte" }},
]
{more}"#
    )
}

fn datagrams(name: &str, via: &str, rate: &str, on: &str) -> String {
    format!(
        "[[datagram]]\nname = \"{name}\"\nfrom = \"phone\"\nto = \"server\"\nvia = [\"{via}\"]\nrate = \"{rate}\"\n\
         packet = \"1000 B\"\non = [{on}]\n"
    )
}

const UPLOAD: &str = r#"
[[connection]]
name = "upload"
from = "phone"
to = "server"
protocol = "mptcp"
congestion = "reno"
subflow = [{ name = "wifi", via = ["ap"] }, { name = "lte", via = ["tower"] }]
"#;

#[test]
fn ten_seconds_at_8_and_18_mbits_take_what_ee_mptcp_reckons_within_a_percent() {
    // One percent: the first and the last of the hundred bins are not full.
    let both = datagrams("a", "ap", "8 Mbit/s", r#"["1 s", "11 s"]"#)
        + &datagrams("b", "tower", "18 Mbit/s", r#"["1 s", "11 s"]"#);
    let run = run(&parse(&phone("duration = \"12 s\"", "0 %", &both)), 1);
    near("wifi", interface(&run, "phone", "wifi", "energy_linear_j"), 12.289, 0.01);
    near("lte", interface(&run, "phone", "lte", "energy_linear_j"), 22.24, 0.01);
    near("both", total(&run, "energy_linear_j"), 34.529, 0.01);
    // Eq. (4): nJ/bit, here of 26 Mbit/s that are all delivered.
    near("per bit", total(&run, "energy_linear_per_bit_j") * 1e9, 34_529.0 / 260.0, 0.01);
}

#[test]
fn an_mptcp_upload_takes_what_both_models_reckon_of_its_throughput_within_a_percent() {
    let top = "duration = \"14 s\"\nmeasure = { from = \"3 s\", to = \"13 s\" }";
    let run = run(&parse(&phone(top, "0 %", UPLOAD)), 1);
    let rate_mbps = |name: &str| link(&run, name, "throughput_bps") / 1e6;
    for (name, up, down, b, theta, (alpha_up, alpha_down, beta)) in [
        ("wifi", "wifi", "wifi/reverse", 137.0, 132.9, (283.17, 137.01, 132.86)),
        ("lte", "lte/reverse", "lte", 52.0, 1288.0, (438.39, 51.97, 1288.04)),
    ] {
        let (up, down) = (rate_mbps(up), rate_mbps(down));
        assert!(up > 7.0 && down > 0.05, "{name} carries the upload and its acknowledgements: {up} {down}");
        let linear_j = (b * (up + down) + theta) * 10.0 / 1e3;
        near(name, interface(&run, "phone", name, "energy_linear_j"), linear_j, 0.01);
        let huang_j = (alpha_up * up + alpha_down * down + beta) * 10.0 / 1e3;
        near(name, interface(&run, "phone", name, "energy_huang_active_j"), huang_j, 0.01);
        assert_eq!(interface(&run, "phone", name, "energy_huang_tail_j"), 0.0);
        assert_eq!(interface(&run, "phone", name, "promotions"), 0.0, "it was awake when the window began");
    }
}

#[test]
fn an_isolated_lte_packet_costs_12_585_joules_beside_its_bin() {
    let one = datagrams("one", "tower", "8 Mbit/s", r#"["1 s", "1.001 s"]"#);
    let run = run(&parse(&phone("duration = \"20 s\"", "0 %", &one)), 1);
    let lte = |metric| interface(&run, "phone", "lte", metric);
    // The vector has five digits.
    near("promotion and tail", lte("energy_huang_promotion_j") + lte("energy_huang_tail_j"), 12.585, 1e-4);
    near("its bin", lte("energy_huang_active_j"), 1.28804 * 0.1 + 438.39e-9 * 8_000.0, 1e-9);
    assert_eq!((lte("promotions"), lte("energy_huang_tail_left_j")), (1.0, 0.0));
    // What Wi-Fi takes while nothing is carried: the mean power of its wake-ups.
    let idle = interface(&run, "phone", "wifi", "energy_huang_j");
    near("wifi", idle, 0.0772 * 7.6 / 307.6 * 20.0, 1e-9);
    assert_eq!(interface(&run, "phone", "wifi", "energy_linear_j"), 0.0);
}

#[test]
fn a_tail_that_outlasts_the_window_is_told_apart() {
    let one = datagrams("one", "tower", "8 Mbit/s", r#"["1 s", "1.001 s"]"#);
    let top = "duration = \"20 s\"\nmeasure.to = \"5 s\"";
    let run = run(&parse(&phone(top, "0 %", &one)), 1);
    let lte = |metric| interface(&run, "phone", "lte", metric);
    near("tail", lte("energy_huang_tail_j") + lte("energy_huang_tail_left_j"), 1.06 * 11.576, 1e-9);
    near("until 5 s", lte("energy_huang_tail_j"), 1.06 * 3.9, 0.01);
}

#[test]
fn what_is_lost_on_the_way_costs_its_sender_and_not_its_receiver() {
    let flow = datagrams("a", "ap", "4 Mbit/s", r#"["0 s", "10 s"]"#);
    let receiver = "interface = [\n    { node = \"ap\", link = \"wifi\", radio = \"wifi\" },";
    let text = phone("duration = \"12 s\"", "30 %", &flow).replace("interface = [", receiver);
    let run = run(&parse(&text), 1);
    let sent = interface(&run, "phone", "wifi", "bytes_up");
    assert_eq!(sent, 5e6, "5000 packets of 1000 bytes");
    let received = interface(&run, "ap", "wifi", "bytes_down");
    assert_eq!(received, sent - 1000.0 * link(&run, "wifi", "losses"));
    assert!((0.6..0.8).contains(&(received / sent)), "{received}");
}

#[test]
fn an_interface_that_connections_share_is_counted_once() {
    let air = r#"
name = "air"
duration = "5 s"
node = [{ names = ["a", "b", "c"] }]
medium = [{ name = "air", stations = ["a", "b", "c"], rate = "11 Mbit/s", queue = "50 packets" }]
interface = [
    { node = "a", link = "air", radio = "wifi" },
    { node = "b", link = "air", radio = "wifi" },
    { node = "c", link = "air", radio = "wifi" },
]
connection = [
    { name = "one", from = "a", to = "b", congestion = "reno" },
    { name = "two", from = "a", to = "b", congestion = "reno" },
    { name = "three", from = "c", to = "a", congestion = "reno" },
]
"#;
    let run = run(&parse(air), 1);
    let sum = |metric| ["a", "b", "c"].iter().map(|node| interface(&run, node, "air", metric)).sum::<f64>();
    let carried = link(&run, "air", "throughput_bps") * 5.0 / 8.0;
    near("received by all", sum("bytes_down"), carried, 1e-12);
    assert!(sum("bytes_up") >= sum("bytes_down"), "given-up frames cost their sender");
    near("sent by all", sum("bytes_up"), carried, 0.01);
    let of_a = interface(&run, "a", "air", "active_s");
    assert!((4.9..=5.0).contains(&of_a), "two connections do not take the time twice: {of_a}");
}

#[test]
fn two_windows_take_together_what_one_over_both_takes() {
    let energies = |from: &str, to: &str| {
        let top = format!("duration = \"10 s\"\nmeasure = {{ from = \"{from}\", to = \"{to}\" }}");
        let file = UPLOAD.to_owned() + "traffic = { kind = \"file\", size = \"2 MB\", start = \"1 s\" }\n";
        let run = run(&parse(&phone(&top, "1 %", &file)), 1);
        ["energy_linear_j", "energy_huang_j", "energy_huang_tail_j"].map(|metric| total(&run, metric))
    };
    // At the end of a bin: elsewhere the window would cut one, of which either part may be without traffic.
    let (first, second, both) =
        (energies("0 s", "1.7 s"), energies("1.7 s", "10 s"), energies("0 s", "10 s"));
    for ((first, second), both) in first.into_iter().zip(second).zip(both) {
        near("sum", first + second, both, 1e-12);
        assert!(first > 0.0 || second > 0.0);
    }
}

#[test]
fn interfaces_change_nothing_but_their_own_figures() {
    let text = phone("duration = \"5 s\"", "1 %", UPLOAD);
    let bare: String =
        text.lines().filter(|line| !line.contains("radio =")).map(|line| format!("{line}\n")).collect();
    let (with, without) = (run(&parse(&text), 7), run(&parse(&bare), 7));
    let is_of_energy = |metric: &str| metric.contains("energy") || metric.contains("joule");
    let figures = with.summary.figures.iter();
    let figures = figures.filter(|of| !matches!(of.scope, Scope::Interface(..)) && !is_of_energy(of.metric));
    assert!(figures.eq(without.summary.figures.iter()));
    let series = with.series.iter().filter(|of| !matches!(of.scope, Scope::Interface(..)));
    assert!(series.eq(without.series.iter()));
    assert_eq!(with.series.len() - without.series.len(), 4);
}
