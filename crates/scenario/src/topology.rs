//! Nodes, links, media and their changes.

use crate::Error;
use crate::model::{Change, ChangeTarget, Link, Medium, Node, Strips, Wire};
use crate::names::{Names, Pattern};
use crate::quantity::shown;
use crate::reader::{Reference, Table, given};

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

pub(crate) fn nodes(tables: &[Table<'_>], limit: u64) -> Result<(Vec<Node>, Names), Error> {
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
        for index in 0..family.members {
            for reference in &patterns {
                let name = reference.pattern.name(index);
                insert(&mut names, table, key, "node", &name)?;
                nodes.push(Node { name });
            }
        }
    }
    Ok((nodes, names))
}

pub(crate) fn links(
    tables: &[Table<'_>],
    nodes: &Names,
    names: &mut Names,
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
        let forward = Wire {
            rate_bps: given(table.quantity("rate")?),
            delay: given(table.quantity("delay")?),
            queue: given(table.queue("queue")?),
            loss: given(table.loss("loss")?),
        };
        let reverse = match table.table("reverse")? {
            None => forward,
            Some(table) => Wire {
                rate_bps: table.quantity("rate")?.unwrap_or(forward.rate_bps),
                delay: table.quantity("delay")?.unwrap_or(forward.delay),
                queue: table.queue("queue")?.unwrap_or(forward.queue),
                loss: table.loss("loss")?.unwrap_or(forward.loss),
            },
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

pub(crate) fn media(tables: &[Table<'_>], nodes: &Names, names: &mut Names) -> Result<Vec<Medium>, Error> {
    tables.iter().map(|table| medium(table, nodes, names)).collect()
}

fn medium(table: &Table<'_>, nodes: &Names, names: &mut Names) -> Result<Medium, Error> {
    let name = given(table.reference("name")?);
    let stations = given(table.references("stations")?);
    check_references(table, Family::single(), stations.iter().chain([&name]))?;
    let name = name.pattern.name(0);
    insert(names, table, "name", "link or medium", &name)?;
    let mut seen = Names::new();
    let mut indices = Vec::with_capacity(stations.len());
    for station in &stations {
        let node = station.resolve(table.source(), nodes, "node", 0)?;
        if !seen.insert(&station.pattern.name(0)) {
            let what = "the station is named twice; expected different nodes";
            return Err(table.source().error(station.place, &station.path, what));
        }
        indices.push(node);
    }
    let small = |key| Ok(u32::try_from(given(table.integer(key)?)).expect("the key table bounds it"));
    let medium = Medium {
        name,
        stations: indices,
        rate_bps: given(table.quantity("rate")?),
        basic_rate_bps: given(table.quantity("basic_rate")?),
        delay: given(table.quantity("delay")?),
        queue: given(table.queue("queue")?),
        loss: given(table.loss("loss")?),
        slot: given(table.quantity("slot")?),
        sifs: given(table.quantity("sifs")?),
        preamble: given(table.quantity("preamble")?),
        mac_header_bytes: given(table.small("mac_header")?),
        cw_min: small("cw_min")?,
        cw_max: small("cw_max")?,
        retry_limit: small("retry")?,
    };
    if medium.cw_min > medium.cw_max {
        let what = format!("{} is below cw_min, {}", medium.cw_max, medium.cw_min);
        return Err(table.error_at("cw_max", &what));
    }
    Ok(medium)
}

/// The changes in order of time; `names` are those of the links, then the media.
pub(crate) fn changes(tables: &[Table<'_>], names: &Names, links: usize) -> Result<Vec<Change>, Error> {
    let mut changes =
        tables.iter().map(|table| change(table, names, links)).collect::<Result<Vec<_>, _>>()?;
    changes.sort_by_key(|change| change.at);
    Ok(changes)
}

fn change(table: &Table<'_>, names: &Names, links: usize) -> Result<Change, Error> {
    let at = given(table.quantity("at")?);
    let link = given(table.reference("link")?);
    check_references(table, Family::single(), [&link])?;
    let index = link.resolve(table.source(), names, "link or medium", 0)?;
    let direction = given(table.one_of("direction")?);
    let target = if index < links {
        ChangeTarget::Link { link: index, forward: direction != "reverse", reverse: direction != "forward" }
    } else if table.has("direction") {
        return Err(table.error_at("direction", "a medium has no directions; expected no such key"));
    } else {
        ChangeTarget::Medium(index - links)
    };
    let change = Change {
        at,
        target,
        rate_bps: table.quantity("rate")?,
        delay: table.quantity("delay")?,
        loss: table.loss("loss")?,
        up: table.boolean("up")?,
    };
    if change.rate_bps.is_none() && change.delay.is_none() && change.loss.is_none() && change.up.is_none() {
        return Err(table.error("nothing changes; expected at least one of rate, delay, loss, up"));
    }
    Ok(change)
}
