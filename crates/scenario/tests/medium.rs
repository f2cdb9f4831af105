//! Media: presets of the physical layers, rates, stations that differ.

use anabranch_scenario::load;
use anabranch_scenario::model::{AfterFailure, Fallback, Loss, Medium, RateStep, Transmitter};

const US: u64 = 1_000;
const MBPS: u64 = 1_000_000;

fn medium(keys: &str) -> Medium {
    let text = format!(
        r#"
        name = "test"
        duration = "1 s"
        node = [{{ names = ["A", "B", "C"] }}]
        [[medium]]
        name = "air"
        stations = ["A", "B", "C"]
        queue = "9 packets"
        {keys}
        [[datagram]]
        name = "flow"
        from = "A"
        to = "B"
        rate = "1 Mbit/s"
        packet = "1000 B"
        "#
    );
    let loaded = load(&text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    loaded.scenario.media.into_iter().next().expect("there is one")
}

fn step(rate_bps: u64, loss: Loss) -> RateStep {
    RateStep { rate_bps, loss }
}

fn only(rate_bps: u64, loss: Loss) -> Transmitter {
    Transmitter { rates: vec![step(rate_bps, loss)], start: 0 }
}

#[test]
fn a_medium_that_says_no_more_is_802_11b() {
    let air = medium(r#"rate = "11 Mbit/s""#);
    assert_eq!(air, medium("rate = \"11 Mbit/s\"\nphy = \"802.11b\""));
    assert_eq!(air.transmitters, vec![only(11 * MBPS, Loss::None); 3]);
    assert_eq!((air.fallback, air.rts_threshold_bytes, air.ack_loss), (None, None, Loss::None));
    assert_eq!((air.after_failure, air.backoff_when_busy), (AfterFailure::Acknowledgement, false));
    assert_eq!((air.retry_limit, air.long_retry_limit), (7, 4));
    assert_eq!((air.basic_rate_bps, air.lowest_rate_bps), (2 * MBPS, MBPS));
}

/// IEEE 802.11-2020: clauses 16 to 19.
#[test]
fn the_presets_are_those_of_the_standard() {
    // Slot, SIFS, preamble, that of control frames, symbol, extension in us; cw_min, basic and lowest rate in Mbit/s.
    let expected = [
        ("802.11b", (20, 10), (192, 192, 0, 0), (31, 2, 1)),
        ("802.11a", (9, 16), (20, 20, 4, 0), (15, 24, 6)),
        ("802.11g", (9, 10), (20, 20, 4, 6), (15, 24, 6)),
        ("802.11n", (9, 16), (36, 20, 4, 0), (15, 24, 6)),
    ];
    for (name, spaces, framing, rest) in expected {
        let air = medium(&format!("rate = \"6 Mbit/s\"\nphy = \"{name}\""));
        assert_eq!((air.slot / US, air.sifs / US), spaces, "{name}");
        let of = air.framing;
        let symbol = of.symbol.unwrap_or(0);
        assert_eq!(
            (of.preamble / US, of.control_preamble / US, symbol / US, of.extension / US),
            framing,
            "{name}"
        );
        assert_eq!((air.cw_min, air.basic_rate_bps / MBPS, air.lowest_rate_bps / MBPS), rest, "{name}");
        assert_eq!(air.cw_max, 1023);
    }
}

#[test]
fn keys_come_before_the_preset() {
    let keys = "rate = \"54 Mbit/s\"\nphy = \"802.11n\"\nslot = \"20 us\"\npreamble = \"40 us\"\nbasic_rate = \"1 Mbit/s\"\ncw_min = 7";
    let air = medium(keys);
    assert_eq!((air.slot, air.sifs, air.cw_min), (20 * US, 16 * US, 7));
    assert_eq!((air.framing.preamble, air.framing.control_preamble), (40 * US, 40 * US));
    assert_eq!(
        (air.basic_rate_bps, air.lowest_rate_bps),
        (MBPS, MBPS),
        "the lowest is not above the basic rate"
    );
}

#[test]
fn rates_take_the_loss_of_the_medium_unless_they_have_their_own() {
    let air = medium(
        r#"
        rate = "2 Mbit/s"
        loss = "1 %"
        rates = [{ rate = "1 Mbit/s", loss = 0 }, { rate = "2 Mbit/s" }, { rate = "11 Mbit/s", loss = "20 %" }]
        fallback = { up = 5 }
        "#,
    );
    let rates = vec![
        step(MBPS, Loss::None),
        step(2 * MBPS, Loss::Bernoulli(0.01)),
        step(11 * MBPS, Loss::Bernoulli(0.2)),
    ];
    assert_eq!(air.transmitters, vec![Transmitter { rates, start: 1 }; 3]);
    assert_eq!(air.fallback, Some(Fallback { down: 2, up: 5 }));
}

#[test]
fn a_station_may_differ_in_rate_loss_and_rates() {
    let air = medium(
        r#"
        rate = "11 Mbit/s"
        loss = "1 %"
        [[medium.transmitter]]
        station = "C"
        rate = "1 Mbit/s"
        [[medium.transmitter]]
        station = "B"
        loss = "5 %"
        rates = [{ rate = "2 Mbit/s" }, { rate = "11 Mbit/s", loss = "30 %" }]
        "#,
    );
    let b = vec![step(2 * MBPS, Loss::Bernoulli(0.05)), step(11 * MBPS, Loss::Bernoulli(0.3))];
    assert_eq!(air.transmitters[0], only(11 * MBPS, Loss::Bernoulli(0.01)));
    assert_eq!(air.transmitters[1], Transmitter { rates: b, start: 1 });
    assert_eq!(air.transmitters[2], only(MBPS, Loss::Bernoulli(0.01)));
}

#[test]
fn what_follows_a_failure_has_three_words() {
    let words = [
        ("ack", AfterFailure::Acknowledgement),
        ("difs", AfterFailure::Nothing),
        ("eifs", AfterFailure::Extended),
    ];
    for (word, expected) in words {
        let air = medium(&format!("rate = \"2 Mbit/s\"\nafter_failure = \"{word}\""));
        assert_eq!(air.after_failure, expected);
    }
    let air =
        medium("rate = \"2 Mbit/s\"\nrts_threshold = \"500 B\"\nbackoff_when_busy = true\nack_loss = 0.5");
    assert_eq!((air.rts_threshold_bytes, air.ack_loss), (Some(500), Loss::Bernoulli(0.5)));
    assert!(air.backoff_when_busy);
}
