mod common;
use common::*;
#[test]
fn look() {
    for cc in ["lia", "reno", "cubic", "vegas", "fast", "mvegas", "mfast", "mfvl"] {
        for path in ["bench/c.toml", "papers/mfvl/setup3.toml"] {
            let over = [("connection.meter.congestion", cc)];
            let s = scenario(path, if cc == "mfvl" && path.starts_with("pap") { &[] } else { &over });
            let m = run(&s, 1);
            eprintln!("{cc:7} {path:24} {:.4} {:?} drops {}", connection(&m, "meter", "goodput_bps") / 1e6, s.connections[0].subflows.iter().map(|f| { let g = |k| subflow(&m, "meter", &f.name, k); format!("{:.4} cw {:.1} dr {} rx {} to {} fr {} rtt {:.3}/{:.3}", g("throughput_bps") / 1e6, g("mean_cwnd_packets"), g("drops"), g("retransmits"), g("timeouts"), g("fast_retransmits"), g("mean_srtt_s"), g("min_rtt_s")) }).collect::<Vec<_>>(), connection(&m, "meter", "drops"));
        }
    }
    let s = scenario("bench/a.toml", &[]);
    let runs: Vec<_> = (1..=5).map(|seed| run(&s, seed)).collect();
    let g = mean(&runs, |m| figure(m, &anabranch_record::model::Scope::Run, "goodput_bps")) / (1e8 / 1.04);
    let name = s.links.iter().find(|l| l.forward.rate_bps == 100_000_000).unwrap().name.clone();
    eprintln!("A goodput {g:.4} drops {} q {:.2} jain {:.4}", mean(&runs, |m| link(m, &name, "drops")), mean(&runs, |m| link(m, &name, "mean_queue_packets")), mean(&runs, |m| figure(m, &anabranch_record::model::Scope::Run, "jain_index")));
}
