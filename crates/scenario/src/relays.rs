//! Relays, and the connections that they join.

use crate::Error;
use crate::model::{Connection, Direction, Relay, Traffic, When};
use crate::names::{Names, did_you_mean};
use crate::quantity::shown;
use crate::reader::{Reference, Table, given};
use crate::topology::{Family, check_references, insert};

/// Reads the relays; the connections that they write to lose their traffic.
pub(crate) fn relays(
    tables: &[Table<'_>],
    connections: &mut [Connection],
    family_limit: u64,
    names: &mut Names,
) -> Result<Vec<Relay>, Error> {
    let mut relays: Vec<Relay> = Vec::new();
    for table in tables {
        let family = Family::read(table, family_limit)?;
        let name = given(table.reference("name")?);
        let (input, output) = (given(table.reference("in")?), given(table.reference("out")?));
        check_references(table, family, [&name, &input, &output])?;
        family.check(table, "name", &name.pattern)?;
        let buffer_bytes = given(table.quantity("buffer")?);
        let delay = given(table.quantity("delay")?);
        for index in 0..family.members {
            let name = name.pattern.name(index);
            insert(names, table, "name", "connection, datagram flow or relay", &name)?;
            let input = connection(table, &input, connections, index)?;
            let output = connection(table, &output, connections, index)?;
            check_input(table, &connections[input])?;
            check_output(table, &connections[input], &connections[output])?;
            if relays.iter().any(|relay| relay.input == input) {
                return Err(table.error_at("in", "another relay reads it; expected another connection"));
            }
            connections[output].traffic = Traffic::Relayed;
            relays.push(Relay { name, input, output, buffer_bytes, delay });
        }
    }
    Ok(relays)
}

pub(crate) fn connection(
    table: &Table<'_>,
    reference: &Reference,
    connections: &[Connection],
    index: u64,
) -> Result<usize, Error> {
    let name = reference.pattern.name(index);
    connections.iter().position(|connection| connection.name == name).ok_or_else(|| {
        let help = did_you_mean(&name, connections.iter().map(|connection| connection.name.as_str()));
        let what = format!("no connection is called {}{help}", shown(&name));
        table.source().error(reference.place, &reference.path, &what)
    })
}

fn check_input(table: &Table<'_>, input: &Connection) -> Result<(), Error> {
    let one_way = matches!(input.traffic, Traffic::Ftp { .. } | Traffic::File { .. } | Traffic::Source(_));
    if !one_way || input.traffic.direction() != Direction::Upload {
        let what = "a relay carries data one way; expected a connection with ftp, file, cbr or onoff upwards";
        return Err(table.error_at("in", what));
    }
    if input.transport.receive_buffer.is_none() {
        let what = format!(
            "the receive buffer of {} is unlimited, so nothing would hold its sender back; expected a \
             transport.receive_buffer",
            input.name
        );
        return Err(table.error_at("in", &what));
    }
    Ok(())
}

fn check_output(table: &Table<'_>, input: &Connection, output: &Connection) -> Result<(), Error> {
    if input.to != output.from {
        let what = "it does not begin where the other one ends; expected a connection from that node";
        return Err(table.error_at("out", what));
    }
    let plain = Traffic::Ftp { start: When::At(0), stop: None, direction: Direction::Upload };
    if output.traffic != plain {
        let what = "it has traffic of its own, or another relay writes to it; expected one without `traffic`";
        return Err(table.error_at("out", what));
    }
    Ok(())
}
