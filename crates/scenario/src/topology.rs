//! Nodes, links, media and their changes.

use crate::Error;
use crate::agents::Agents;
use crate::medium::{check_change as check_medium_change, medium};
use crate::model::{Change, ChangeTarget, Link, Medium, Node, Strips, Wire};
use crate::names::{Names, Pattern};
use crate::quantity::shown;
use crate::reader::{Reference, Table, given};
use crate::shaping;
use crate::traces::Traces;

/// How many members an entry's family has, and whether it is one.
#[derive(Clone, Copy)]
pub(crate) struct Family {
    pub(crate) members: u64,
    is_family: bool,
}

impl Family {
    /// An entry that cannot be repeated.
    pub(crate) fn single() -> Self {
        Self { members: 1, is_family: false }
    }

    pub(crate) fn read(table: &Table<'_>, limit: u64) -> Result<Self, Error> {
        let count = table.integer("count")?;
        if let Some(count) = count.filter(|count| *count > limit) {
            return Err(
                table.error_at("count", &format!("{count} is more than the limit of this reader, {limit}"))
            );
        }
        Ok(Self { members: count.unwrap_or(1), is_family: count.is_some() })
    }

    /// Refuses a name that does not vary although it must, or varies although it cannot.
    pub(crate) fn check(self, table: &Table<'_>, key: &str, name: &Pattern) -> Result<(), Error> {
        match (self.is_family, name.varies()) {
            (true, false) if self.members > 1 => {
                Err(table
                    .error_at(key, "the members of a family need different names; expected {i} in the name"))
            }
            (false, true) => Err(table.error_at(key, "{i} needs a family; expected the key count beside it")),
            _ => Ok(()),
        }
    }
}

/// Checks that references that vary stand in a family.
pub(crate) fn check_references<'r>(
    table: &Table<'_>,
    family: Family,
    references: impl IntoIterator<Item = &'r Reference>,
) -> Result<(), Error> {
    match references.into_iter().find(|reference| reference.pattern.varies() && !family.is_family) {
        None => Ok(()),
        Some(reference) => {
            let what = "{i} needs a family; expected the key count beside it";
            Err(table.source().error(reference.place, &reference.path, what))
        }
    }
}

/// Enters a name or refuses the second of that name.
pub(crate) fn insert(
    names: &mut Names,
    table: &Table<'_>,
    key: &str,
    noun: &str,
    name: &str,
) -> Result<(), Error> {
    if names.insert(name) {
        return Ok(());
    }
    Err(table
        .error_at(key, &format!("{} is the second {noun} of that name; expected another name", shown(name))))
}

pub(crate) fn nodes(
    tables: &[Table<'_>],
    agents: &mut Agents,
    limit: u64,
) -> Result<(Vec<Node>, Names), Error> {
    let mut names = Names::new();
    let mut nodes = Vec::new();
    for table in tables {
        let family = Family::read(table, limit)?;
        let (key, patterns) = match (table.reference("name")?, table.references("names")?) {
            (Some(one), None) => ("name", vec![one]),
            (None, Some(several)) => ("names", several),
            (None, None) => return Err(table.missing("name")),
            (Some(_), Some(_)) => return Err(table.error_at("names", "beside name; expected one of the two")),
        };
        for reference in &patterns {
            family.check(table, key, &reference.pattern)?;
        }
        let agent = agents.read(table)?;
        for index in 0..family.members {
            for reference in &patterns {
                let name = reference.pattern.name(index);
                insert(&mut names, table, key, "node", &name)?;
                nodes.push(Node { name, agent: agent.clone() });
            }
        }
    }
    Ok((nodes, names))
}

pub(crate) fn links(
    tables: &[Table<'_>],
    nodes: &Names,
    names: &mut Names,
    traces: &mut Traces,
    limit: u64,
) -> Result<Vec<Link>, Error> {
    let mut links = Vec::new();
    for table in tables {
        let family = Family::read(table, limit)?;
        let name = table.reference("name")?;
        let between = given(table.references("between")?);
        let [a, b] = between.as_slice() else {
            return Err(table.error_at("between", &format!("{} names; expected two", between.len())));
        };
        check_references(table, family, &between)?;
        let name_key = if name.is_some() { "name" } else { "between" };
        if let Some(name) = &name {
            family.check(table, name_key, &name.pattern)?;
        }
        let forward = forward(table, traces)?;
        let reverse = match table.table("reverse")? {
            None => forward,
            Some(table) => reverse(&table, forward, traces)?,
        };
        let strips = match given(table.one_of("strips")?) {
            "joins" => Strips::Joins,
            "mptcp" => Strips::Mptcp,
            _ => Strips::Nothing,
        };
        for index in 0..family.members {
            let link_name = match &name {
                Some(name) => name.pattern.name(index),
                None => format!("{}-{}", a.pattern.name(index), b.pattern.name(index)),
            };
            insert(names, table, name_key, "link or medium", &link_name)?;
            let a = a.resolve(table.source(), nodes, "node", index)?;
            let b = b.resolve(table.source(), nodes, "node", index)?;
            if a == b {
                return Err(table
                    .error_at("between", "the link joins a node to itself; expected two different nodes"));
            }
            links.push(Link { name: link_name, a, b, forward, reverse, strips });
        }
    }
    Ok(links)
}

fn forward(table: &Table<'_>, traces: &mut Traces) -> Result<Wire, Error> {
    let (rate_bps, trace) = rate(table, traces)?.ok_or_else(|| table.missing("rate"))?;
    let (queue, discipline) = given(shaping::queue(table)?);
    Ok(Wire {
        rate_bps,
        delay: given(table.quantity("delay")?),
        queue,
        discipline,
        loss: given(shaping::loss(table)?),
        jitter: shaping::jitter(table)?.flatten(),
        trace,
    })
}

fn reverse(table: &Table<'_>, forward: Wire, traces: &mut Traces) -> Result<Wire, Error> {
    let (rate_bps, trace) = rate(table, traces)?.unwrap_or((forward.rate_bps, forward.trace));
    let (queue, discipline) = shaping::queue(table)?.unwrap_or((forward.queue, forward.discipline));
    Ok(Wire {
        rate_bps,
        delay: table.quantity("delay")?.unwrap_or(forward.delay),
        queue,
        discipline,
        loss: shaping::loss(table)?.unwrap_or(forward.loss),
        jitter: shaping::jitter(table)?.unwrap_or(forward.jitter),
        trace,
    })
}

/// A rate, or a trace and its mean.
fn rate(table: &Table<'_>, traces: &mut Traces) -> Result<Option<(u64, Option<usize>)>, Error> {
    match (table.quantity("rate")?, traces.index(table)?) {
        (Some(_), Some(_)) => Err(table.error_at("trace", "beside rate; expected one of the two")),
        (None, Some(trace)) => Ok(Some((traces.mean_bps(trace), Some(trace)))),
        (rate_bps, None) => Ok(rate_bps.map(|rate_bps| (rate_bps, None))),
    }
}

pub(crate) fn media(tables: &[Table<'_>], nodes: &Names, names: &mut Names) -> Result<Vec<Medium>, Error> {
    tables.iter().map(|table| medium(table, nodes, names)).collect()
}

/// The changes in order of time; `names` are those of the links, then the media.
pub(crate) fn changes(
    tables: &[Table<'_>],
    names: &Names,
    links: &[Link],
    media: &[Medium],
) -> Result<Vec<Change>, Error> {
    let mut changes =
        tables.iter().map(|table| change(table, names, links, media)).collect::<Result<Vec<_>, _>>()?;
    changes.sort_by_key(|change| change.at);
    Ok(changes)
}

fn change(table: &Table<'_>, names: &Names, links: &[Link], media: &[Medium]) -> Result<Change, Error> {
    let at = given(table.quantity("at")?);
    let link = given(table.reference("link")?);
    check_references(table, Family::single(), [&link])?;
    let index = link.resolve(table.source(), names, "link or medium", 0)?;
    let direction = given(table.one_of("direction")?);
    let target = if index < links.len() {
        ChangeTarget::Link { link: index, forward: direction != "reverse", reverse: direction != "forward" }
    } else if table.has("direction") {
        return Err(table.error_at("direction", "a medium has no directions; expected no such key"));
    } else {
        check_medium_change(table, &media[index - links.len()])?;
        ChangeTarget::Medium(index - links.len())
    };
    let change = Change {
        at,
        target,
        rate_bps: table.quantity("rate")?,
        delay: table.quantity("delay")?,
        loss: shaping::loss(table)?,
        up: table.boolean("up")?,
    };
    if change.rate_bps.is_none() && change.delay.is_none() && change.loss.is_none() && change.up.is_none() {
        return Err(table.error("nothing changes; expected at least one of rate, delay, loss, up"));
    }
    if let ChangeTarget::Link { link, forward, reverse } = target
        && change.rate_bps.is_some()
        && (forward && links[link].forward.trace.is_some() || reverse && links[link].reverse.trace.is_some())
    {
        return Err(table.error_at("rate", "the rate of this link follows a trace; expected no such key"));
    }
    Ok(change)
}
