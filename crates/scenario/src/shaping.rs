//! Queue disciplines, losses in bursts and varying delays of links.

use crate::Error;
use crate::model::{CoDel, Discipline, Jitter, JitterDistribution, Loss, QueueLimit, Red};
use crate::reader::{Table, given};

/// Keys of `queue` that belong to some kinds only.
const OF_RED: [&str; 5] = ["min", "max", "max_p", "weight", "gentle"];
const OF_CODEL: [&str; 2] = ["target", "interval"];
const OF_FLOWS: [&str; 2] = ["flows", "quantum"];

const MS: u64 = 1_000_000;

/// The queue at `queue`: a limit, or a table.
pub(crate) fn queue(table: &Table<'_>) -> Result<Option<(QueueLimit, Discipline)>, Error> {
    let Some(inner) = table.table_instead("queue")? else {
        return Ok(table.queue("queue")?.map(|limit| (limit, Discipline::DropTail)));
    };
    let kind = given(inner.one_of("kind")?);
    let foreign: &[&[&str]] = match kind {
        "red" => &[&OF_CODEL, &OF_FLOWS],
        "codel" => &[&OF_RED, &OF_FLOWS],
        "fq_codel" => &[&OF_RED],
        _ => &[&OF_RED, &OF_CODEL, &OF_FLOWS, &["ecn"]],
    };
    if let Some(key) = foreign.concat().into_iter().find(|key| inner.has(key)) {
        return Err(inner
            .error_at(key, &format!("{kind} has no such setting; expected another kind, or no such key")));
    }
    let limit = inner.queue("limit")?;
    let discipline = match kind {
        "red" => Discipline::Red(red(&inner)?),
        "codel" => Discipline::CoDel(codel(&inner)?),
        "fq_codel" => Discipline::FqCoDel {
            codel: codel(&inner)?,
            flows: inner.integer("flows")?.map_or(1024, |flows| flows as u32),
            quantum_bytes: inner.small("quantum")?.unwrap_or(1514),
        },
        _ => Discipline::DropTail,
    };
    let limit = match (limit, kind) {
        (Some(limit), _) => limit,
        (None, "codel") => QueueLimit::Packets(1000),
        (None, "fq_codel") => QueueLimit::Packets(10_240),
        (None, _) => return Err(inner.missing("limit")),
    };
    Ok(Some((limit, discipline)))
}

fn red(table: &Table<'_>) -> Result<Red, Error> {
    let min_packets = table.small("min")?.unwrap_or(5);
    let red = Red {
        min_packets,
        max_packets: table.small("max")?.unwrap_or(min_packets.saturating_mul(3)),
        max_p: table.probability("max_p")?.unwrap_or(0.1),
        weight: table.probability("weight")?.unwrap_or(0.002),
        gentle: table.boolean("gentle")?.unwrap_or(true),
        ecn: given(table.boolean("ecn")?),
    };
    if red.max_packets <= min_packets {
        let what = format!("{} packets are not above min, {min_packets} packets", red.max_packets);
        return Err(table.error_at("max", &format!("{what}; expected more")));
    }
    if red.weight == 0.0 {
        return Err(
            table.error_at("weight", "with 0 the average never moves; expected a number above 0, at most 1")
        );
    }
    Ok(red)
}

fn codel(table: &Table<'_>) -> Result<CoDel, Error> {
    Ok(CoDel {
        target: table.quantity("target")?.unwrap_or(5 * MS),
        interval: table.quantity("interval")?.unwrap_or(100 * MS),
        ecn: given(table.boolean("ecn")?),
    })
}

/// The loss at `loss`: a probability, or a table.
pub(crate) fn loss(table: &Table<'_>) -> Result<Option<Loss>, Error> {
    let Some(inner) = table.table_instead("loss")? else {
        let independent = |p| if p == 0.0 { Loss::None } else { Loss::Bernoulli(p) };
        return Ok(table.probability("loss")?.map(independent));
    };
    given(inner.one_of("kind")?);
    let r = given(inner.probability("r")?);
    if r == 0.0 {
        return Err(
            inner.error_at("r", "with 0 the bad state never ends; expected a number above 0, at most 1")
        );
    }
    Ok(Some(Loss::GilbertElliott {
        p: given(inner.probability("p")?),
        r,
        loss_good: given(inner.probability("loss_good")?),
        loss_bad: given(inner.probability("loss_bad")?),
    }))
}

/// The variation of the delay at `jitter`: a time, or a table. The inner `None` is a constant delay.
pub(crate) fn jitter(table: &Table<'_>) -> Result<Option<Option<Jitter>>, Error> {
    let Some(inner) = table.table_instead("jitter")? else {
        let uniform = |range| {
            (range > 0).then_some(Jitter { range, distribution: JitterDistribution::Uniform, reorder: false })
        };
        return Ok(table.quantity("jitter")?.map(uniform));
    };
    let distribution = match given(inner.one_of("distribution")?) {
        "exponential" => JitterDistribution::Exponential,
        "normal" => JitterDistribution::Normal,
        _ => JitterDistribution::Uniform,
    };
    let (range, reorder) = (given(inner.quantity("range")?), given(inner.boolean("reorder")?));
    Ok(Some(Some(Jitter { range, distribution, reorder })))
}
