use anabranch_scenario::model::*;
const MS: u64 = 1_000_000;
fn wire(rate_bps: u64, delay: u64, queue: QueueLimit) -> Wire {
    Wire { rate_bps, delay, queue, loss: Loss::None }
}
fn dumbbell(n: usize, rate: u64, q: u32, secs: u64, warm: u64, spread: u64) -> Scenario {
    let mut nodes = vec![Node { name: "r1".into() }, Node { name: "r2".into() }];
    let u = QueueLimit::Unlimited;
    let mut links = vec![Link {
        name: "r1-r2".into(),
        a: 0,
        b: 1,
        forward: wire(rate, 10 * MS, QueueLimit::Packets(q)),
        reverse: wire(rate, 10 * MS, u),
    }];
    let mut connections = vec![];
    for i in 0..n {
        let (s, d) = (nodes.len(), nodes.len() + 1);
        nodes.push(Node { name: format!("s{i}") });
        nodes.push(Node { name: format!("d{i}") });
        let l = links.len();
        for (a, b) in [(s, 0), (1, d)] {
            links.push(Link {
                name: format!("l{}", links.len()),
                a,
                b,
                forward: wire(1_000_000_000, MS, u),
                reverse: wire(1_000_000_000, MS, u),
            });
        }
        let transport = Transport {
            segment_bytes: 1000,
            header_bytes: 40,
            ack_bytes: 40,
            initial_window: 2,
            initial_ssthresh: None,
            window_cap: None,
            initial_rto: 3000 * MS,
            min_rto: 200 * MS,
            max_rto: 60_000 * MS,
            rto_rule: RtoRule::Rfc6298,
            delayed_ack: None,
            limited_transmit: true,
            recovery: if std::env::var("SACK").is_ok() { Recovery::Sack } else { Recovery::NewReno },
            receive_buffer: None,
            send_buffer: None,
            join: Join::Immediately,
            send_jitter: 8000,
        };
        connections.push(Connection {
            name: format!("f{i}"),
            protocol: Protocol::Tcp,
            from: s,
            to: d,
            traffic: Traffic::Ftp { start: When::Uniform { from: 0, to: spread * 1000 * MS }, stop: None },
            transport,
            scheduler: "minrtt".into(),
            subflows: vec![Subflow {
                name: "0".into(),
                hops: vec![
                    Hop::Wire { link: l, forward: true },
                    Hop::Wire { link: 0, forward: true },
                    Hop::Wire { link: l + 1, forward: true },
                ],
                backup: false,
                congestion: Congestion { name: "reno".into(), params: vec![] },
            }],
        });
    }
    Scenario {
        name: "x".into(),
        title: String::new(),
        description: String::new(),
        source: String::new(),
        duration: secs * 1000 * MS,
        measure: Measure { from: warm * 1000 * MS, to: secs * 1000 * MS, interval: 100 * MS },
        nodes,
        links,
        media: vec![],
        connections,
        datagrams: vec![],
        changes: vec![],
    }
}
fn main() {
    for (name, s) in [
        ("A", dumbbell(10, 100_000_000, 100, 100, 20, 1)),
        ("B", dumbbell(200, 1_000_000_000, 1000, 20, 5, 2)),
    ] {
        let t = std::time::Instant::now();
        let mut outs = vec![];
        for seed in 1..=5 {
            outs.push(anabranch_sim::run(&s, seed, &Default::default()).unwrap());
        }
        let el = t.elapsed().as_secs_f64() / 5.0;
        let get = |m: &anabranch_record::model::Measurements, k: &str| {
            m.summary
                .figures
                .iter()
                .find(|f| f.scope == anabranch_record::model::Scope::Run && f.metric == k)
                .unwrap()
                .value
        };
        let link = |m: &anabranch_record::model::Measurements, k: &str| {
            m.summary
                .figures
                .iter()
                .find(|f| matches!(&f.scope, anabranch_record::model::Scope::Link(_)) && f.metric == k)
                .unwrap()
                .value
        };
        let hops = outs.iter().map(|m| get(m, "packet_hops")).sum::<f64>() / 5.0;
        println!("{name} hops {hops} {el:.3}s {:.1} M/s", hops / el / 1e6);
        for m in &outs {
            let cw: Vec<f64> = m
                .summary
                .figures
                .iter()
                .filter(|f| f.metric == "mean_cwnd_packets")
                .map(|f| f.value)
                .collect();
            let to: f64 = m.summary.figures.iter().filter(|f| f.metric == "timeouts").map(|f| f.value).sum();
            println!(
                "  goodput {:.4} jain {:.4} drops {} q {:.2} cwnd {:.2} rto {to}",
                get(m, "goodput_bps") / (s.links[0].forward.rate_bps as f64 * 1000.0 / 1040.0),
                get(m, "jain_index"),
                link(m, "drops"),
                link(m, "mean_queue_packets"),
                cw.iter().sum::<f64>() / cw.len() as f64
            );
        }
    }
}
