//! Shared media: presets of the physical layers, rates, stations that differ.

use crate::Error;
use crate::model::{AfterFailure, Fallback, Framing, Loss, Medium, Nanos, RateStep, Transmitter};
use crate::names::Names;
use crate::quantity::Dimension;
use crate::reader::{Table, given};
use crate::shaping::{self, independent_loss};
use crate::topology::{Family, check_references, insert};

const US: Nanos = 1_000;
const MBPS: u64 = 1_000_000;

/// What a physical layer of IEEE 802.11 prescribes.
struct Phy {
    slot: Nanos,
    sifs: Nanos,
    framing: Framing,
    cw_min: u32,
    /// The highest mandatory rate, at which control frames are sent.
    basic_rate_bps: u64,
    lowest_rate_bps: u64,
}

/// Clauses 16 (HR/DSSS, here with the long preamble), 17 (OFDM, 20 MHz), 18 (ERP-OFDM, short slots) and 19 (HT, mixed
/// format at 5 GHz, one stream, long guard interval) of IEEE 802.11-2020.
fn phy(name: &str) -> Phy {
    const OFDM_PREAMBLE: Nanos = 20 * US;
    // L-STF 8, L-LTF 8, L-SIG 4, HT-SIG 8, HT-STF 4 and one HT-LTF 4.
    const HT_PREAMBLE: Nanos = 36 * US;
    let ofdm = Phy {
        slot: 9 * US,
        sifs: 16 * US,
        framing: Framing {
            preamble: OFDM_PREAMBLE,
            control_preamble: OFDM_PREAMBLE,
            symbol: Some(4 * US),
            extension: 0,
        },
        cw_min: 15,
        basic_rate_bps: 24 * MBPS,
        lowest_rate_bps: 6 * MBPS,
    };
    match name {
        "802.11a" => ofdm,
        "802.11g" => Phy { sifs: 10 * US, framing: Framing { extension: 6 * US, ..ofdm.framing }, ..ofdm },
        "802.11n" => Phy { framing: Framing { preamble: HT_PREAMBLE, ..ofdm.framing }, ..ofdm },
        _ => Phy {
            slot: 20 * US,
            sifs: 10 * US,
            framing: Framing { preamble: 192 * US, control_preamble: 192 * US, symbol: None, extension: 0 },
            cw_min: 31,
            basic_rate_bps: 2 * MBPS,
            lowest_rate_bps: MBPS,
        },
    }
}

pub(crate) fn medium(table: &Table<'_>, nodes: &Names, names: &mut Names) -> Result<Medium, Error> {
    let name = given(table.reference("name")?);
    let stations = given(table.references("stations")?);
    check_references(table, Family::single(), stations.iter().chain([&name]))?;
    let name = name.pattern.name(0);
    insert(names, table, "name", "link or medium", &name)?;
    let mut station_names = Names::new();
    let mut indices = Vec::with_capacity(stations.len());
    for station in &stations {
        let node = station.resolve(table.source(), nodes, "node", 0)?;
        if !station_names.insert(&station.pattern.name(0)) {
            let what = "the station is named twice; expected different nodes";
            return Err(table.source().error(station.place, &station.path, what));
        }
        indices.push(node);
    }
    let small = |key| -> Result<Option<u32>, Error> {
        Ok(table.integer(key)?.map(|value| u32::try_from(value).expect("the key table bounds it")))
    };
    let phy = phy(given(table.one_of("phy")?));
    let preamble = table.quantity("preamble")?;
    let framing = Framing {
        preamble: preamble.unwrap_or(phy.framing.preamble),
        control_preamble: preamble.unwrap_or(phy.framing.control_preamble),
        ..phy.framing
    };
    let basic_rate_bps = table.quantity("basic_rate")?.unwrap_or(phy.basic_rate_bps);
    let threshold = given(table.limit("rts_threshold")?);
    let medium = Medium {
        name,
        stations: indices,
        rate_bps: given(table.quantity("rate")?),
        transmitters: transmitters(table, &station_names, stations.len())?,
        fallback: fallback(table)?,
        basic_rate_bps,
        lowest_rate_bps: phy.lowest_rate_bps.min(basic_rate_bps),
        delay: given(table.quantity("delay")?),
        queue: given(table.queue("queue")?),
        ack_loss: given(independent_loss(table, "ack_loss")?),
        slot: table.quantity("slot")?.unwrap_or(phy.slot),
        sifs: table.quantity("sifs")?.unwrap_or(phy.sifs),
        framing,
        mac_header_bytes: given(table.small("mac_header")?),
        cw_min: small("cw_min")?.unwrap_or(phy.cw_min),
        cw_max: given(small("cw_max")?),
        retry_limit: given(small("retry")?),
        long_retry_limit: given(small("long_retry")?),
        rts_threshold_bytes: threshold.map(|bytes| u32::try_from(bytes).expect("the key table bounds it")),
        after_failure: match given(table.one_of("after_failure")?) {
            "eifs" => AfterFailure::Extended,
            "difs" => AfterFailure::Nothing,
            _ => AfterFailure::Acknowledgement,
        },
        backoff_when_busy: given(table.boolean("backoff_when_busy")?),
    };
    if medium.cw_min > medium.cw_max {
        let what = format!("{} is below cw_min, {}", medium.cw_max, medium.cw_min);
        return Err(table.error_at("cw_max", &what));
    }
    if medium.fallback.is_some() && medium.transmitters.iter().all(|of| of.rates.len() == 1) {
        return Err(
            table.error_at("fallback", "no station has several rates; expected the key rates as well")
        );
    }
    Ok(medium)
}

/// Losses in bursts are those of a channel, whoever sends and however fast.
fn check_bursts(table: &Table<'_>, loss: Loss) -> Result<(), Error> {
    let beside = ["rates", "transmitter"].into_iter().find(|key| table.has(key));
    match (loss, beside) {
        (Loss::GilbertElliott { .. }, Some(key)) => {
            Err(table.error_at("loss", &format!("losses in bursts beside {key}; expected a probability")))
        }
        _ => Ok(()),
    }
}

/// What each station sends with, in the order of `stations`.
fn transmitters(table: &Table<'_>, stations: &Names, count: usize) -> Result<Vec<Transmitter>, Error> {
    let rate_bps = given(table.quantity("rate")?);
    let loss = given(shaping::loss(table)?);
    check_bursts(table, loss)?;
    let rates = rates(table, loss)?;
    let common = match &rates {
        Some(rates) => Transmitter { rates: rates.clone(), start: place_of(table, rates, rate_bps)? },
        None => Transmitter { rates: vec![RateStep { rate_bps, loss }], start: 0 },
    };
    let mut all = vec![common; count];
    let mut seen = Names::new();
    for own in table.tables("transmitter")? {
        let station = given(own.reference("station")?);
        check_references(&own, Family::single(), [&station])?;
        let index = station.resolve(own.source(), stations, "station of the medium", 0)?;
        if !seen.insert(&station.pattern.name(0)) {
            return Err(own.error_at("station", "the second transmitter of this station; expected one"));
        }
        let own_rate = own.quantity("rate")?.unwrap_or(rate_bps);
        let own_loss = independent_loss(&own, "loss")?;
        let own_rates = self::rates(&own, own_loss.unwrap_or(loss))?;
        if own_loss.is_some() && own_rates.is_none() && rates.is_some() {
            let what = "the medium's rates have a loss each; expected no such key, or rates beside it";
            return Err(own.error_at("loss", what));
        }
        all[index] = match own_rates.or_else(|| rates.clone()) {
            Some(rates) => {
                let start = place_of(if own.has("rate") { &own } else { table }, &rates, own_rate)?;
                Transmitter { rates, start }
            }
            None => {
                let only = RateStep { rate_bps: own_rate, loss: own_loss.unwrap_or(loss) };
                Transmitter { rates: vec![only], start: 0 }
            }
        };
    }
    Ok(all)
}

/// The key `rates`; a rate without `loss` has the one given.
fn rates(table: &Table<'_>, loss: Loss) -> Result<Option<Vec<RateStep>>, Error> {
    if !table.has("rates") {
        return Ok(None);
    }
    let mut rates: Vec<RateStep> = Vec::new();
    for step in table.tables("rates")? {
        let rate_bps = given(step.quantity("rate")?);
        if let Some(last) = rates.last().filter(|last| last.rate_bps >= rate_bps) {
            let show = |rate| Dimension::Rate.show(rate);
            let what = format!(
                "{} after {}; expected rates in ascending order",
                show(rate_bps),
                show(last.rate_bps)
            );
            return Err(step.error_at("rate", &what));
        }
        rates.push(RateStep { rate_bps, loss: independent_loss(&step, "loss")?.unwrap_or(loss) });
    }
    if rates.is_empty() {
        return Err(table.error_at("rates", "the array is empty; expected at least one rate"));
    }
    Ok(Some(rates))
}

/// Where a station begins among its rates; `table` has the key `rate`.
fn place_of(table: &Table<'_>, rates: &[RateStep], rate_bps: u64) -> Result<usize, Error> {
    rates.iter().position(|step| step.rate_bps == rate_bps).ok_or_else(|| {
        let show = |rate| Dimension::Rate.show(rate);
        let known: Vec<String> = rates.iter().map(|step| show(step.rate_bps)).collect();
        let what = format!("{} is not among the rates; expected one of {}", show(rate_bps), known.join(", "));
        table.error_at("rate", &what)
    })
}

fn fallback(table: &Table<'_>) -> Result<Option<Fallback>, Error> {
    let Some(table) = table.table("fallback")? else { return Ok(None) };
    let count = |key| -> Result<u32, Error> {
        Ok(u32::try_from(given(table.integer(key)?)).expect("the key table bounds it"))
    };
    Ok(Some(Fallback { down: count("down")?, up: count("up")? }))
}

/// Refuses a change of what the stations have several of.
pub(crate) fn check_change(table: &Table<'_>, medium: &Medium) -> Result<(), Error> {
    let first = &medium.transmitters[0];
    if first.rates.len() == 1 && medium.transmitters.iter().all(|of| of == first) {
        return Ok(());
    }
    match ["rate", "loss"].into_iter().find(|key| table.has(key)) {
        None => Ok(()),
        Some(key) => {
            let what = "the medium has rates or transmitter, each with its own; expected no such key";
            Err(table.error_at(key, what))
        }
    }
}
