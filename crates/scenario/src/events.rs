//! Events of subflows, and the subflows that start late.

use crate::Error;
use crate::model::{Action, Connection, Event, Protocol};
use crate::names::{Names, did_you_mean};
use crate::quantity::shown;
use crate::reader::{Table, given};
use crate::topology::{Family, check_references};

/// The events of the file, and those that `start` of subflows stands for, in order of time; `names` are those of the
/// connections, then the datagram flows.
pub(crate) fn read(
    tables: &[Table<'_>],
    names: &Names,
    connections: &[Connection],
) -> Result<Vec<Event>, Error> {
    let mut events =
        tables.iter().map(|table| event(table, names, connections)).collect::<Result<Vec<_>, _>>()?;
    for (index, connection) in connections.iter().enumerate() {
        for (subflow, model) in connection.subflows.iter().enumerate() {
            let open = |at| Event { at, connection: index, subflow, action: Action::Open };
            events.extend(model.start.map(open));
        }
    }
    events.sort_by_key(|event| event.at);
    Ok(events)
}

fn event(table: &Table<'_>, names: &Names, connections: &[Connection]) -> Result<Event, Error> {
    let at = given(table.quantity("at")?);
    let (flow, subflow) = (given(table.reference("connection")?), given(table.reference("subflow")?));
    check_references(table, Family::single(), [&flow, &subflow])?;
    let index = flow.resolve(table.source(), names, "connection", 0)?;
    let Some(connection) = connections.get(index) else {
        return Err(table.error_at("connection", "only connections have subflows; expected the name of one"));
    };
    if connection.protocol != Protocol::Mptcp {
        let what = "the one subflow of tcp has no events; expected a connection with protocol = \"mptcp\"";
        return Err(table.error_at("connection", what));
    }
    let wanted = subflow.pattern.name(0);
    let own = || connection.subflows.iter().map(|subflow| subflow.name.as_str());
    let Some(subflow) = own().position(|name| name == wanted) else {
        let help = did_you_mean(&wanted, own());
        let what = format!("no subflow of {} is called {}{help}", shown(&connection.name), shown(&wanted));
        return Err(table.error_at("subflow", &what));
    };
    let action = match given(table.one_of("action")?) {
        "open" => Action::Open,
        "close" => Action::Close,
        "remove" => Action::Remove,
        "backup" => Action::Backup,
        _ => Action::Regular,
    };
    Ok(Event { at, connection: index, subflow, action })
}
