//! Transfers, and the connections that carry them.

use crate::Error;
use crate::model::{Connection, Direction, Relay, Traffic, Transfer, When};
use crate::names::Names;
use crate::quantity::Dimension;
use crate::reader::{Reference, Table, given};
use crate::relays::connection;
use crate::topology::{Family, check_references, insert};

/// The most chunks of a transfer; catches slips of the keyboard.
const CHUNKS_MAX: u64 = 10_000_000;

/// Reads the transfers; the connections that carry them lose their traffic.
pub(crate) fn transfers(
    tables: &[Table<'_>],
    connections: &mut [Connection],
    relays: &[Relay],
    family_limit: u64,
    names: &mut Names,
) -> Result<Vec<Transfer>, Error> {
    let mut transfers: Vec<Transfer> = Vec::new();
    for table in tables {
        let family = Family::read(table, family_limit)?;
        let (name, over) = (given(table.reference("name")?), given(table.references("over")?));
        check_references(table, family, over.iter().chain([&name]))?;
        family.check(table, "name", &name.pattern)?;
        let (size_bytes, chunk_bytes) = (given(table.quantity("size")?), given(table.quantity("chunk")?));
        check_chunks(table, size_bytes, chunk_bytes)?;
        let (start, give_up) = (given(table.quantity("start")?), table.quantity("give_up")?);
        let direction = match given(table.one_of("direction")?) {
            "download" => Direction::Download,
            _ => Direction::Upload,
        };
        for index in 0..family.members {
            let name = name.pattern.name(index);
            insert(names, table, "name", "connection, datagram flow, relay or transfer", &name)?;
            let mut members = Vec::with_capacity(over.len());
            for reference in &over {
                let member = connection(table, reference, connections, index)?;
                check_member(table, reference, &connections[member])?;
                connections[member].traffic = Traffic::Transfer { start, direction };
                members.push(member);
            }
            check_ends(table, &over, &members, connections, relays, direction)?;
            transfers.push(Transfer {
                name,
                over: members,
                size_bytes,
                chunk_bytes,
                start,
                direction,
                give_up,
            });
        }
    }
    Ok(transfers)
}

fn check_chunks(table: &Table<'_>, size_bytes: u64, chunk_bytes: u64) -> Result<(), Error> {
    let count = size_bytes.div_ceil(chunk_bytes);
    if count <= CHUNKS_MAX {
        return Ok(());
    }
    let (size, chunk) = (Dimension::Bytes.show(size_bytes), Dimension::Bytes.show(chunk_bytes));
    let what = format!("{chunk} make {count} chunks of {size}; expected at most {CHUNKS_MAX}");
    Err(table.error_at("chunk", &what))
}

fn check_member(table: &Table<'_>, reference: &Reference, member: &Connection) -> Result<(), Error> {
    let plain = Traffic::Ftp { start: When::At(0), stop: None, direction: Direction::Upload };
    if member.traffic == plain {
        return Ok(());
    }
    let what = format!(
        "{} has traffic of its own, or a relay or a transfer writes to it; expected one without `traffic`",
        member.name
    );
    Err(table.source().error(reference.place, &reference.path, &what))
}

/// All begin at one node and lead to one.
fn check_ends(
    table: &Table<'_>,
    over: &[Reference],
    members: &[usize],
    connections: &[Connection],
    relays: &[Relay],
    direction: Direction,
) -> Result<(), Error> {
    let ends = |member: usize| {
        let last = last_of_chain(relays, member);
        (connections[member].from, connections[last].to)
    };
    for (reference, &member) in over.iter().zip(members) {
        let refuse = |what: &str| Err(table.source().error(reference.place, &reference.path, what));
        let name = &connections[member].name;
        if direction == Direction::Download && relays.iter().any(|relay| relay.input == member) {
            return refuse(&format!(
                "a relay reads {name}, and carries data upwards; expected direction = \"upload\""
            ));
        }
        if ends(member) != ends(members[0]) {
            let first = &connections[members[0]].name;
            return refuse(&format!(
                "{name} does not begin and end where {first} does; expected connections between the same two nodes"
            ));
        }
    }
    Ok(())
}

/// The connection that delivers what is written to one: itself, or the last one of its relays.
fn last_of_chain(relays: &[Relay], connection: usize) -> usize {
    let next = |&at: &usize| relays.iter().find(|relay| relay.input == at).map(|relay| relay.output);
    std::iter::successors(Some(connection), next).last().expect("it begins with the connection")
}
