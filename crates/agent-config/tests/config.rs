//! The configuration as it is read, what counts of it, and what is refused.

use anabranch_agent_config::{Config, ProbeRule, Role};
use anabranch_policy::energy::Linear;

const GOOD: &str = r#"
        [[interface]]
        name = "wlan*"
        radio = "wifi"
        [[interface]]
        name = "wwan0"
        role = "metered"
        radio = "lte"
        power = { theta = "1 W" }
        cap = "2 GB"
        [[connection]]
        to = "192.0.2.0/24"
        port = 443
        policy = { name = "failover", hold = "2 s", dead_after = 3, jitter = 0.5 }
        [[connection]]
        to = "2001:db8::/32"
        policy = "none"
        [[connection]]
        policy = "impact"
    "#;

#[test]
fn the_first_rule_that_matches_counts() {
    let config = Config::parse(GOOD, "agent.toml").unwrap();
    assert_eq!(config.interface("wlan1").unwrap().role, Role::Primary);
    let wwan = config.interface("wwan0").unwrap();
    assert_eq!((wwan.role, wwan.cap_bytes), (Role::Metered, Some(2_000_000_000)));
    assert_eq!(wwan.radio, Some(Linear { b_mw_per_mbps: 52.0, theta_mw: 1000.0 }));
    assert_eq!(config.interface("eth0"), None);
    let name =
        |address: &str, port| config.policy(address.parse().unwrap(), port).map(|policy| policy.info.name);
    assert_eq!(name("192.0.2.9", 443), Some("failover"));
    assert_eq!(name("::ffff:192.0.2.9", 443), Some("failover"));
    assert_eq!(name("192.0.2.9", 80), Some("pcdc"));
    assert_eq!(name("192.0.3.9", 443), Some("pcdc"));
    assert_eq!(name("2001:db8:1::1", 443), None);
    assert_eq!(name("2001:db9::1", 443), Some("pcdc"));
    let failover = config.policy("192.0.2.9".parse().unwrap(), 443).unwrap();
    assert_eq!(failover.values, [3, 2_000_000_000, 500_000_000, 3_000_000_000, 500]);
}

#[test]
fn the_example_of_the_documents_is_good() {
    let document = include_str!("../../../docs/agent.md");
    let example = document.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let config = Config::parse(example.expect("it has one"), "agent.md").unwrap();
    assert!(config.set_pm_type);
    assert_eq!(config.policy("192.0.2.7".parse().unwrap(), 443).unwrap().info.name, "failover");
}

#[test]
fn the_shortest_prefix_is_everything() {
    let config = "[[interface]]\nname = \"*\"\n[[connection]]\nto = \"0.0.0.0/0\"\npolicy = \"fullmesh\"\n";
    let config = Config::parse(config, "agent.toml").unwrap();
    assert!(config.policy("203.0.113.1".parse().unwrap(), 1).is_some());
    assert!(config.policy("2001:db8::1".parse().unwrap(), 1).is_none());
    assert!(config.interface("anything").is_some());
}

/// The good configuration with one line replaced gives this message.
#[track_caller]
fn refused(line: &str, by: &str, message: &str) {
    assert!(GOOD.contains(line), "{line}");
    let error = Config::parse(&GOOD.replacen(line, by, 1), "agent.toml").expect_err(by);
    assert_eq!(error.to_string(), message);
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_the_nearest_name() {
    refused(
        "role = ",
        "rolle = ",
        "agent.toml:7:9: unknown field `rolle`, expected one of `name`, `allowed`, `role`, `radio`, `power`, `cap`, \
         `keepalive`, `probe`; the nearest name is `role`",
    );
    refused(
        "\"metered\"",
        "\"metred\"",
        "agent.toml:7:16: unknown variant `metred`, expected one of `primary`, `backup`, `metered`; \
         the nearest name is `metered`",
    );
    refused(
        "\"failover\"",
        "\"failver\"",
        "agent.toml:14:18: unknown policy `failver`, expected one of `default`, `fullmesh`, \
         `dedicated-backup`, `failover`, `reestablish`, `cost`, `energy`, `pcdc`, `impact`, `none`; the nearest name \
         is `failover`",
    );
    refused(
        "hold",
        "hald",
        "agent.toml:14:18: unknown parameter of `failover` `hald`, expected one of `dead_after`, `hold`, `retry`, \
         `retry_max`, `jitter`; the nearest name is `hold`",
    );
    refused("\"2 s\"", "2", "agent.toml:14:18: `hold`: expected a time from \"0 s\" to \"3600 s\"");
    refused(
        "dead_after = 3",
        "dead_after = 0",
        "agent.toml:14:18: `dead_after`: expected a whole number from 1 to 100",
    );
    refused(
        "\"2 GB\"",
        "\"2 gigs\"",
        "agent.toml:5:9: \"2 gigs\" is not a size like \"2 GB\"; units are B, kB, MB, GB, KiB, MiB, GiB",
    );
    refused(
        "\"192.0.2.0/24\"",
        "\"192.0.2.0/33\"",
        "agent.toml:11:9: \"192.0.2.0/33\" is no address and no prefix like \"192.0.2.0/24\"",
    );
    refused("\"impact\"", "1", "agent.toml:19:18: `policy` is a name or a table with a `name`");
}

#[test]
fn probes_and_keepalives_come_once_a_second_at_most() {
    let with = |line: &str| {
        let text = format!("[[interface]]\nname = \"c1\"\n{line}\n[[connection]]\npolicy = \"fullmesh\"\n");
        let config = Config::parse(&text, "agent.toml").map_err(|error| error.to_string())?;
        Ok::<_, String>((config.bpf, config.interfaces[0].keepalive, config.interfaces[0].probe))
    };
    let to = "192.0.2.1:443".parse().unwrap();
    assert_eq!(with(""), Ok((true, None, None)));
    assert_eq!(with("keepalive = \"2 min\""), Ok((true, Some(120_000_000_000), None)));
    let probe = Some(ProbeRule { to, every: 30_000_000_000 });
    assert_eq!(with("probe = { to = \"192.0.2.1:443\" }"), Ok((true, None, probe)));
    let refused = |line| with(line).unwrap_err();
    assert_eq!(
        refused("keepalive = \"20 ms\""),
        "agent.toml:1:1: `keepalive` is \"20 ms\", expected \"1 s\" or more"
    );
    assert_eq!(
        refused("probe = { to = \"192.0.2.1:443\", every = \"0 s\" }"),
        "agent.toml:1:1: `probe.every` is \"0 s\", expected \"1 s\" or more"
    );
    assert!(refused("probe = { to = \"192.0.2.1\" }").starts_with("agent.toml:3:16: invalid socket address"));
}

#[test]
fn a_configuration_that_does_nothing_is_refused() {
    let said = |text| Config::parse(text, "agent.toml").unwrap_err().to_string();
    assert!(said("").contains("no [[connection]] with a policy"));
    assert!(said("[[connection]]\npolicy = \"fullmesh\"\n").contains("no [[interface]] that is allowed"));
    let energy = "[[interface]]\nname = \"wlan0\"\n[[connection]]\npolicy = \"energy\"\n";
    assert_eq!(
        said(energy),
        "agent.toml:1:1: the policy `energy` needs the `radio` of the interface `wlan0`"
    );
}
