//! What applications send: the keys of `traffic`, and patterns of datagram flows.

use anabranch_draw::{Distribution, Pattern, distribution::Pareto};

use crate::Error;
use crate::flows::Context;
use crate::model::{Arrivals, Direction, Flows, Nanos, Request, Source, Telemetry, Traffic, When};
use crate::quantity::Dimension;
use crate::reader::{Draw, Table, given};

/// The kinds to which a key means something; a key that is not here goes with all of them.
const KINDS: [(&str, &[&str]); 17] = [
    ("stop", &["ftp", "cbr", "onoff", "telemetry", "request", "flows"]),
    ("direction", &["ftp", "file", "cbr", "onoff", "flows"]),
    ("size", &["file", "cbr", "onoff", "telemetry", "flows"]),
    ("rate", &["cbr", "onoff"]),
    ("pattern", &["onoff"]),
    ("mean_on", &["onoff"]),
    ("mean_off", &["onoff"]),
    ("shape", &["onoff"]),
    ("period", &["telemetry"]),
    ("jitter", &["telemetry"]),
    ("ack", &["telemetry"]),
    ("request", &["request"]),
    ("response", &["request"]),
    ("think", &["request"]),
    ("arrivals", &["flows"]),
    ("interval", &["flows"]),
    ("count", &["telemetry", "request", "flows"]),
];

pub(crate) fn read(table: &Table<'_>, context: &Context<'_>) -> Result<Traffic, Error> {
    let kind = given(table.one_of("kind")?);
    check_keys(table, kind)?;
    let start = given(table.when("start")?);
    let stop = table.quantity("stop")?;
    check_stop(table, start, stop)?;
    let direction = match given(table.one_of("direction")?) {
        "upload" => Direction::Upload,
        "download" => Direction::Download,
        _ => Direction::Both,
    };
    if direction == Direction::Both && !matches!(kind, "ftp" | "file") {
        let what =
            format!("both is for ftp and file; expected upload or download, or another kind than {kind}");
        return Err(table.error_at("direction", &what));
    }
    Ok(match kind {
        "ftp" => Traffic::Ftp { start, stop, direction },
        "file" => Traffic::File { start, bytes: fixed_size(table)?, direction },
        "cbr" | "onoff" => Traffic::Source(Source {
            start,
            stop,
            direction,
            rate_bps: table.quantity("rate")?.ok_or_else(|| table.missing("rate"))?,
            write_bytes: message_size(table)?,
            pattern: if kind == "cbr" {
                Pattern::Cbr
            } else {
                bursts(table, given(table.one_of("pattern")?))?
            },
        }),
        "telemetry" => telemetry(table, start, stop)?,
        "request" => Traffic::Request(Request {
            start,
            stop,
            request: given(distribution(table, "request")?),
            response: distribution(table, "response")?.ok_or_else(|| table.missing("response"))?,
            think: given(distribution(table, "think")?),
            count: table.integer("count")?,
        }),
        _ => flows(table, (start, stop), direction, context)?,
    })
}

fn check_keys(table: &Table<'_>, kind: &str) -> Result<(), Error> {
    for (key, kinds) in KINDS {
        if !table.has(key) || kinds.contains(&kind) {
            continue;
        }
        let what = match (kind, key) {
            ("file", "stop") => "a file ends by itself; expected no such key, or kind = \"ftp\"".to_owned(),
            ("ftp", "size") => "ftp is unlimited; expected no such key, or kind = \"file\"".to_owned(),
            _ => format!(
                "it means nothing to {kind}; expected no such key, or a kind among {}",
                kinds.join(", ")
            ),
        };
        return Err(table.error_at(key, &what));
    }
    Ok(())
}

fn check_stop(table: &Table<'_>, start: When, stop: Option<Nanos>) -> Result<(), Error> {
    let latest = match start {
        When::At(at) => at,
        When::Uniform { to, .. } => to,
    };
    let Some(stop) = stop.filter(|stop| *stop <= latest) else { return Ok(()) };
    let (stop, start) = (Dimension::Time.show(stop), Dimension::Time.show(latest));
    Err(table.error_at("stop", &format!("{stop} is not after the start at {start}; expected a later time")))
}

fn fixed_size(table: &Table<'_>) -> Result<u64, Error> {
    match table.draw("size")? {
        Some(Draw::Fixed(bytes)) => Ok(bytes),
        Some(Draw::Table(_)) => {
            let what = "only flows differ in size; expected a size such as \"64 kB\", or kind = \"flows\"";
            Err(table.error_at("size", what))
        }
        None => Err(table.missing("size")),
    }
}

/// The size of a write or a message, which an application holds at once.
fn message_size(table: &Table<'_>) -> Result<u32, Error> {
    let bytes = fixed_size(table)?;
    u32::try_from(bytes).ok().filter(|bytes| *bytes <= 1 << 30).ok_or_else(|| {
        let what = format!("{} is written at once; expected at most 1 GiB", Dimension::Bytes.show(bytes));
        table.error_at("size", &what)
    })
}

fn telemetry(table: &Table<'_>, start: When, stop: Option<Nanos>) -> Result<Traffic, Error> {
    let period = table.quantity("period")?.ok_or_else(|| table.missing("period"))?;
    let jitter = given(table.quantity("jitter")?);
    if jitter > period {
        let what = format!(
            "{} moves messages past one another; expected at most the period, {}",
            Dimension::Time.show(jitter),
            Dimension::Time.show(period)
        );
        return Err(table.error_at("jitter", &what));
    }
    Ok(Traffic::Telemetry(Telemetry {
        start,
        stop,
        period,
        jitter,
        message_bytes: message_size(table)?,
        answer_bytes: given(table.small("ack")?),
        count: table.integer("count")?,
    }))
}

fn flows(
    table: &Table<'_>,
    (start, stop): (When, Option<Nanos>),
    direction: Direction,
    context: &Context<'_>,
) -> Result<Traffic, Error> {
    let (interval, count) = (table.quantity("interval")?, table.integer("count")?);
    let arrivals = given(table.one_of("arrivals")?);
    if arrivals != "poisson" && interval.is_some() {
        let what =
            format!("{arrivals} arrivals have none; expected `count` alone, or arrivals = \"poisson\"");
        return Err(table.error_at("interval", &what));
    }
    let arrivals = match (arrivals, count) {
        ("poisson", _) => {
            Arrivals::Poisson { interval: interval.ok_or_else(|| table.missing("interval"))?, count }
        }
        (_, None) => return Err(table.missing("count")),
        ("uniform", Some(count)) => Arrivals::Uniform { count },
        (_, Some(count)) => Arrivals::Synchronised { count },
    };
    let earliest = match start {
        When::At(at) | When::Uniform { from: at, .. } => at,
    };
    let span = stop.unwrap_or(context.duration).min(context.duration).saturating_sub(earliest);
    let (key, expected) = match arrivals {
        Arrivals::Poisson { interval, count } => {
            ("interval", (span / interval).min(count.unwrap_or(u64::MAX)))
        }
        Arrivals::Uniform { count } | Arrivals::Synchronised { count } => ("count", count),
    };
    let most = context.family_limit.min(FLOWS_MAX);
    if expected > most {
        return Err(table.error_at(key, &format!("it makes about {expected} flows; expected at most {most}")));
    }
    let size = distribution(table, "size")?.ok_or_else(|| table.missing("size"))?;
    Ok(Traffic::Flows(Flows { start, stop, direction, arrivals, size }))
}

/// The most flows of a workload: each is a connection with a state of its own.
const FLOWS_MAX: u64 = 100_000;

/// The distribution at a key, if there is one.
fn distribution(table: &Table<'_>, key: &str) -> Result<Option<Distribution>, Error> {
    Ok(match table.draw(key)? {
        None => None,
        Some(Draw::Fixed(value)) => Some(Distribution::Fixed(value)),
        Some(Draw::Table(inner)) => Some(read_distribution(&inner)?),
    })
}

fn read_distribution(table: &Table<'_>) -> Result<Distribution, Error> {
    let [mean, min, max] = [table.quantity("mean")?, table.quantity("min")?, table.quantity("max")?];
    let shape = table.thousandths("shape")?;
    if given(table.one_of("distribution")?) == "exponential" {
        if let Some(key) = ["shape", "min", "max"].into_iter().find(|key| table.has(key)) {
            let what = "an exponential distribution has a mean alone; expected no such key, or \"pareto\"";
            return Err(table.error_at(key, what));
        }
        return Ok(Distribution::Exponential { mean: mean.ok_or_else(|| table.missing("mean"))? });
    }
    let shape = shape.ok_or_else(|| table.missing("shape"))?;
    let (key, least) = match (mean, min) {
        (Some(mean), None) => ("mean", mean),
        (None, Some(min)) => ("min", min),
        (None, None) => return Err(table.missing("mean")),
        (Some(_), Some(_)) => {
            return Err(table.error_at("min", "the mean fixes it; expected one of the two keys, mean or min"));
        }
    };
    if max.is_some_and(|max| max <= least) {
        return Err(table.error_at("max", &format!("it is not above the {key}; expected a larger one")));
    }
    if key == "mean" && max.is_none() && shape <= 1_000 {
        let what =
            "without a maximum, there is no mean; expected a shape above 1, a max, or min in place of mean";
        return Err(table.error_at("shape", what));
    }
    Ok(Distribution::Pareto(match mean {
        Some(mean) => Pareto::with_mean(mean, shape, max),
        None => Pareto::with_min(least, shape, max),
    }))
}

/// Bursts and pauses with the keys of a table, exponential or Pareto.
fn bursts(table: &Table<'_>, pattern: &str) -> Result<Pattern, Error> {
    let mean = |key| -> Result<u64, Error> { table.quantity(key)?.ok_or_else(|| table.missing(key)) };
    let (on, off) = (mean("mean_on")?, mean("mean_off")?);
    let shape = given(table.thousandths("shape")?);
    if pattern == "exponential" {
        if table.has("shape") {
            let what = "exponential bursts have none; expected no such key, or pattern = \"pareto\"";
            return Err(table.error_at("shape", what));
        }
        let exponential = |mean| Distribution::Exponential { mean };
        return Ok(Pattern::OnOff { on: exponential(on), off: exponential(off) });
    }
    let pareto = |mean| Distribution::Pareto(Pareto::with_mean(mean, shape, None));
    Ok(Pattern::OnOff { on: pareto(on), off: pareto(off) })
}

/// The pattern of a datagram flow.
pub(crate) fn pattern(table: &Table<'_>) -> Result<Pattern, Error> {
    let pattern = given(table.one_of("pattern")?);
    let plain = match pattern {
        "cbr" => Pattern::Cbr,
        "poisson" => Pattern::Poisson,
        _ => return bursts(table, pattern),
    };
    match ["mean_on", "mean_off", "shape"].into_iter().find(|key| table.has(key)) {
        None => Ok(plain),
        Some(key) => {
            let what =
                "only bursts have it; expected no such key, or pattern = \"exponential\" or \"pareto\"";
            Err(table.error_at(key, what))
        }
    }
}
