//! The whole file: its sections in order, then the paths.

use crate::agents::{self, Agents};
use crate::events;
use crate::flows::{self, Context};
use crate::interfaces::{self, Attachable};
use crate::keys::SCENARIO;
use crate::mesh::{self, Topology};
use crate::model::{Connection, Datagram, Hop, Join, Link, Measure, Nanos, Protocol, Scenario, Strips};
use crate::names::Names;
use crate::quantity::Dimension;
use crate::reader::{Table, given};
use crate::routes::Graph;
use crate::traces::Traces;
use crate::transport::Settings;
use crate::tree::{Item, Source};
use crate::{Error, Loaded, overrides, relays, scheduler, topology, transfers};

pub(crate) fn load(source: Source<'_>, family_limit: u64) -> Result<Loaded, Error> {
    let mut root = Item::parse_file(source)?;
    overrides::apply(&mut root, source)?;
    let (mut traces, mut agents) = (Traces::default(), Agents::default());
    let mut scenario = read(source, &root, &mut traces, &mut agents, family_limit)?;
    traces.identify(&mut root);
    agents.identify(&mut root);
    scenario.traces = traces.into_model();
    let mut canonical = String::new();
    root.canonical(&mut canonical);
    Ok(Loaded { scenario, canonical })
}

fn read(
    source: Source<'_>,
    root: &Item,
    traces: &mut Traces,
    agents: &mut Agents,
    family_limit: u64,
) -> Result<Scenario, Error> {
    let top = Table::new(source, &SCENARIO, "", root)?;
    let name = given(top.reference("name")?).pattern;
    if name.varies() {
        return Err(top.error_at("name", "{i} needs a family; expected a plain name"));
    }
    let name = name.name(0);
    let title = top.text("title")?.unwrap_or_else(|| name.clone());
    let (description, origin) = (given(top.text("description")?), given(top.text("source")?));
    let duration = given(top.quantity("duration")?);
    let measure = read_measure(&top, duration)?;
    let settings = match top.table("transport")? {
        None => Settings::default(),
        Some(table) => Settings::read(&table)?,
    };

    if !top.has("node") {
        return Err(top.missing("node"));
    }
    let (nodes, node_names) = topology::nodes(&top.tables("node")?, agents, family_limit)?;
    let mut link_names = Names::new();
    let links = topology::links(&top.tables("link")?, &node_names, &mut link_names, traces, family_limit)?;
    let media = topology::media(&top.tables("medium")?, &node_names, &mut link_names)?;

    let has_agent: Vec<bool> = nodes.iter().map(|node| node.agent.is_some()).collect();
    let context = Context { nodes: &node_names, duration, has_agent: &has_agent, family_limit };
    let (mut flow_names, mut routes) = (Names::new(), Vec::new());
    let (mut meshes, mut managed) = (Vec::new(), Vec::new());
    let connections = top.tables("connection")?;
    let mut connections = flows::connections(
        &connections,
        &settings,
        &context,
        &mut flow_names,
        &mut routes,
        &mut meshes,
        &mut managed,
    )?;
    let datagrams = top.tables("datagram")?;
    let mut datagrams = flows::datagrams(&datagrams, &context, &mut flow_names, &mut routes)?;
    if connections.is_empty() && datagrams.is_empty() {
        return Err(top.error("nothing to run; expected at least one [[connection]] or [[datagram]]"));
    }
    let relays = top.tables("relay")?;
    let relays = relays::relays(&relays, &mut connections, family_limit, &mut flow_names)?;
    let transfers = top.tables("transfer")?;
    let transfers =
        transfers::transfers(&transfers, &mut connections, &relays, family_limit, &mut flow_names)?;
    let changes = topology::changes(&top.tables("change")?, &link_names, &links, &media)?;
    let attachable = Attachable { nodes: &node_names, names: &link_names, links: &links, media: &media };
    let interfaces = interfaces::interfaces(&top.tables("interface")?, &attachable, family_limit)?;
    check_bins(&top, duration, &measure, !interfaces.is_empty())?;

    let graph = Graph::new(nodes.len(), &links, &media);
    let paths = flows::resolve(&routes, source, &node_names, &graph)?;
    distribute(paths, &mut connections, &mut datagrams);
    let topology = Topology { graph: &graph, links: &links, media: &media };
    mesh::expand(&meshes, source, &topology, &mut connections)?;
    agents::apply(&managed, source, &nodes, &links, &media, &mut connections)?;
    let events = events::read(&top.tables("event")?, &flow_names, &connections)?;
    check_stripped(&top, &connections, &links)?;
    let scenario = Scenario {
        name,
        title,
        description,
        source: origin,
        duration,
        measure,
        nodes,
        links,
        media,
        connections,
        datagrams,
        traces: Vec::new(),
        changes,
        interfaces,
        relays,
        transfers,
        events,
    };
    scheduler::check_radios(&top, &scenario)?;
    Ok(scenario)
}

/// A connection that may fall back to TCP must not have joined before it can know.
fn check_stripped(top: &Table<'_>, connections: &[Connection], links: &[Link]) -> Result<(), Error> {
    let hasty = |flow: &&Connection| {
        flow.protocol == Protocol::Mptcp
            && flow.subflows.len() > 1
            && flow.transport.join == Join::Immediately
    };
    for connection in connections.iter().filter(hasty) {
        let hops = connection.subflows.iter().flat_map(|subflow| &subflow.hops);
        let mut stripping = hops.filter_map(|hop| match hop {
            Hop::Wire { link, .. } => Some(&links[*link]).filter(|link| link.strips != Strips::Nothing),
            Hop::Medium { .. } => None,
        });
        if let Some(link) = stripping.next() {
            let what = format!(
                "{} joins its subflows at once, but {} strips options; expected transport.join = \"established\"",
                connection.name, link.name
            );
            return Err(top.error_at("connection", &what));
        }
    }
    Ok(())
}

/// Gives the paths to their owners: subflows in order, then datagram flows.
fn distribute(paths: Vec<Vec<Hop>>, connections: &mut [Connection], datagrams: &mut [Datagram]) {
    let subflows = connections.iter_mut().flat_map(|connection| &mut connection.subflows);
    let places =
        subflows.map(|subflow| &mut subflow.hops).chain(datagrams.iter_mut().map(|flow| &mut flow.hops));
    for (place, hops) in places.zip(paths) {
        *place = hops;
    }
}

/// Points of the series; more than any plot or table can use.
const POINTS_MAX: u64 = 10_000_000;

fn read_measure(top: &Table<'_>, duration: Nanos) -> Result<Measure, Error> {
    let show = |time| Dimension::Time.show(time);
    let Some(table) = top.table("measure")? else {
        return Ok(Measure {
            from: 0,
            to: duration,
            interval: 100_000_000,
            energy_bin: 100_000_000,
            memory: false,
            head_of_line: false,
            scheduling: false,
        });
    };
    let measure = Measure {
        from: given(table.quantity("from")?),
        to: table.quantity("to")?.unwrap_or(duration),
        interval: given(table.quantity("interval")?),
        energy_bin: given(table.quantity("energy_bin")?),
        memory: given(table.boolean("memory")?),
        head_of_line: given(table.boolean("head_of_line")?),
        scheduling: given(table.boolean("scheduling")?),
    };
    if measure.to > duration {
        let what =
            format!("{} is after the end of the run; expected at most {}", show(measure.to), show(duration));
        return Err(table.error_at("to", &what));
    }
    if measure.from >= measure.to {
        let what = format!(
            "{} is not before the end of the window; expected less than {}",
            show(measure.from),
            show(measure.to)
        );
        return Err(table.error_at("from", &what));
    }
    if measure.interval > 0 && duration / measure.interval > POINTS_MAX {
        let what = format!(
            "{} makes more than {POINTS_MAX} points in {}; expected more",
            show(measure.interval),
            show(duration)
        );
        return Err(table.error_at("interval", &what));
    }
    Ok(measure)
}

/// Refuses bins that are too many where there are interfaces.
fn check_bins(
    top: &Table<'_>,
    duration: Nanos,
    measure: &Measure,
    has_interfaces: bool,
) -> Result<(), Error> {
    if !has_interfaces || duration / measure.energy_bin <= POINTS_MAX {
        return Ok(());
    }
    let show = |time| Dimension::Time.show(time);
    let what = format!(
        "{} makes more than {POINTS_MAX} bins in {}; expected more",
        show(measure.energy_bin),
        show(duration)
    );
    let table = top.table("measure")?;
    Err(table.map_or_else(|| top.error_at("measure", &what), |table| table.error_at("energy_bin", &what)))
}
