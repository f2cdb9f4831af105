//! Small scenarios, and their runs with packets.

use std::{collections::BTreeMap, path::PathBuf};

use anabranch_record::{
    Begin, Identity, RunFolder,
    model::{Measurements, Scope},
};
use anabranch_scenario::Loaded;
use anabranch_sim::{Control, Records};

/// Losses at random both ways, a queue that overflows, a file of each transport's segments, a datagram flow.
pub(crate) fn tcp(profile: &str, ip: &str) -> String {
    format!(
        r#"
        name = "tcp"
        duration = "20 s"
        measure.interval = "0 s"
        transport = {{ profile = "{profile}" }}
        node = [{{ names = ["S", "R", "D"] }}]

        [[link]]
        name = "access"
        between = ["S", "R"]
        rate = "100 Mbit/s"
        delay = "1 ms"
        queue = "unlimited"

        [[link]]
        name = "wire"
        between = ["R", "D"]
        rate = "5 Mbit/s"
        delay = "10 ms"
        queue = "20 packets"
        loss = "1 %"

        [[connection]]
        name = "up"
        ip = "{ip}"
        from = "S"
        to = "D"
        congestion = "reno"
        traffic = {{ kind = "file", size = "1000123 B" }}

        [[datagram]]
        name = "noise"
        ip = "{ip}"
        from = "S"
        to = "D"
        rate = "100 kbit/s"
        packet = "500 B"
        on = [["0 s", "2 s"]]
        "#
    )
}

/// Two subflows over lossy paths of different delay.
pub(crate) fn mptcp(profile: &str, ip: &str) -> String {
    format!(
        r#"
        name = "mptcp"
        duration = "20 s"
        measure.interval = "0 s"
        transport = {{ profile = "{profile}" }}
        node = [{{ names = ["S", "R0", "R1", "D"] }}]

        [[link]]
        name = "access0"
        between = ["S", "R0"]
        rate = "100 Mbit/s"
        delay = "1 ms"
        queue = "unlimited"

        [[link]]
        name = "access1"
        between = ["S", "R1"]
        rate = "100 Mbit/s"
        delay = "1 ms"
        queue = "unlimited"

        [[link]]
        name = "wire0"
        between = ["R0", "D"]
        rate = "4 Mbit/s"
        delay = "10 ms"
        queue = "20 packets"
        loss = "1 %"

        [[link]]
        name = "wire1"
        between = ["R1", "D"]
        rate = "2 Mbit/s"
        delay = "20 ms"
        queue = "20 packets"
        loss = "0.5 %"

        [[connection]]
        name = "up"
        ip = "{ip}"
        from = "S"
        to = "D"
        protocol = "mptcp"
        congestion = "lia"
        traffic = {{ kind = "file", size = "1000123 B" }}

        [[connection.subflow]]
        name = "wifi"
        via = ["R0"]

        [[connection.subflow]]
        name = "cell"
        via = ["R1"]
        "#
    )
}

/// Every signal: a subflow changes its priority, is closed and opened again, loses its address and gets it back; a third
/// one is announced.
pub(crate) fn eventful(profile: &str, ip: &str) -> String {
    let mut text = mptcp(profile, ip).replace("1000123 B", "5000123 B");
    text += "[[connection.subflow]]\nname = \"more\"\nvia = [\"R1\"]\nannounced = true\n";
    for (at_ms, action) in [
        (1000, "backup"),
        (1500, "regular"),
        (2000, "close"),
        (2500, "open"),
        (3500, "remove"),
        (4000, "open"),
    ] {
        text += &format!(
            "[[event]]\nat = \"{at_ms} ms\"\nconnection = \"up\"\nsubflow = \"cell\"\naction = \"{action}\"\n"
        );
    }
    text
}

/// A run with its folder.
pub(crate) struct Recorded {
    pub(crate) folder: RunFolder,
    pub(crate) measured: Measurements,
    /// Removed at the end.
    pub(crate) place: tempfile::TempDir,
}

impl Recorded {
    /// Runs a scenario with packets, kept whole.
    pub(crate) fn new(text: &str, seed: u64) -> Self {
        Self::with(text, seed, Records { packets: true, whole_packets: true, ..Records::default() })
    }

    pub(crate) fn with(text: &str, seed: u64, records: Records) -> Self {
        let Loaded { scenario, canonical, .. } =
            anabranch_scenario::load(text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
        let identity = Identity {
            scenario: scenario.name.clone(),
            title: scenario.title.clone(),
            canonical,
            overrides: BTreeMap::new(),
            engine: "sim".to_owned(),
            version: "test".to_owned(),
        };
        let place = tempfile::tempdir().expect("a temporary folder can be made");
        let Ok(Begin::Staged(staging)) = anabranch_record::begin(place.path(), &identity, seed, false) else {
            panic!("the folder is new");
        };
        let measured = anabranch_sim::record(&scenario, seed, &Control::default(), staging.aside(), records)
            .unwrap_or_else(|error| panic!("{error}"));
        let folder = staging.commit(&measured).unwrap_or_else(|error| panic!("{error}"));
        Self { folder, measured, place }
    }

    pub(crate) fn packets(&self) -> PathBuf {
        self.folder.path.join("packets.pcapng")
    }

    /// What a host sees, as classic pcap.
    pub(crate) fn at(&self, host: &str) -> PathBuf {
        let file = self.place.path().join(format!("{host}.pcap"));
        let exported = anabranch_record::export_packets(&self.folder, Some(host), &file);
        assert_eq!(exported.unwrap_or_else(|error| panic!("{error}")).host, host);
        file
    }

    /// A figure of a connection or datagram flow.
    pub(crate) fn figure(&self, flow: &str, metric: &str) -> u64 {
        let scope = Scope::Connection(flow.to_owned());
        let figures = &self.measured.summary.figures;
        let found = figures.iter().find(|figure| figure.scope == scope && figure.metric == metric);
        found.unwrap_or_else(|| panic!("no {metric} of {flow}")).value as u64
    }
}
