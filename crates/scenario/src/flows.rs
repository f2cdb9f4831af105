//! Connections and UDP flows, and the paths they take.

use std::rc::Rc;

use crate::Error;
use crate::agents::{self, Managed};
use crate::congestion::{self, Choice};
use crate::model::{
    Connection, Datagram, Direction, Hop, IpVersion, Nanos, PathManager, Protocol, Scheduler, Subflow,
    Traffic, Transport, When,
};
use crate::names::{Names, Pattern};
use crate::path_manager;
use crate::quantity::{Dimension, shown};
use crate::reader::{Reference, Table, given};
use crate::routes::{Graph, Leg};
use crate::scheduler;
use crate::topology::{Family, check_references, insert};
use crate::traffic;
use crate::transport::{self, Settings};
use crate::tree::{Place, Source};

/// What every flow is read against.
pub(crate) struct Context<'a> {
    pub(crate) nodes: &'a Names,
    pub(crate) duration: Nanos,
    /// By node, whether an agent runs on it.
    pub(crate) has_agent: &'a [bool],
    pub(crate) family_limit: u64,
}

/// The way-points of one path, and where it stands in the file.
pub(crate) struct Route {
    stops: Vec<usize>,
    place: Place,
    path: Rc<str>,
}

/// The ends and way-points of the members of a family.
struct Ends {
    from: Reference,
    to: Reference,
}

impl Ends {
    fn read(table: &Table<'_>, family: Family) -> Result<Self, Error> {
        let ends = Self { from: given(table.reference("from")?), to: given(table.reference("to")?) };
        check_references(table, family, [&ends.from, &ends.to])?;
        Ok(ends)
    }

    fn resolve(&self, table: &Table<'_>, nodes: &Names, index: u64) -> Result<(usize, usize), Error> {
        let from = self.from.resolve(table.source(), nodes, "node", index)?;
        let to = self.to.resolve(table.source(), nodes, "node", index)?;
        if from == to {
            return Err(table.error_at("to", "the flow ends where it begins; expected another node"));
        }
        Ok((from, to))
    }
}

/// The way-points of a path.
struct Via {
    points: Vec<Reference>,
    place: Place,
    path: Rc<str>,
}

impl Via {
    fn read(table: &Table<'_>, family: Family) -> Result<Self, Error> {
        let points = table.references("via")?.unwrap_or_default();
        check_references(table, family, &points)?;
        Ok(Self { points, place: table.place(), path: table.path().into() })
    }

    fn route(
        &self,
        source: Source<'_>,
        nodes: &Names,
        ends: (usize, usize),
        index: u64,
    ) -> Result<Route, Error> {
        let mut stops = Vec::with_capacity(self.points.len() + 2);
        stops.push(ends.0);
        for point in &self.points {
            let node = point.resolve(source, nodes, "node", index)?;
            if stops.contains(&node) || node == ends.1 {
                let what =
                    "the path passes this node already; expected way-points between its ends, each once";
                return Err(source.error(point.place, &point.path, what));
            }
            stops.push(node);
        }
        stops.push(ends.1);
        Ok(Route { stops, place: self.place, path: self.path.clone() })
    }
}

/// A connection remembers in one word which subflows have carried a segment.
pub(crate) const MAX_SUBFLOWS: usize = 32;

/// A connection whose subflows follow from the topology, and where it stands in the file.
pub(crate) struct Mesh {
    pub(crate) connection: usize,
    pub(crate) place: Place,
    pub(crate) path: Rc<str>,
}

/// A subflow of every member of a family.
struct SubflowTemplate {
    name: String,
    via: Via,
    backup: bool,
    weight: u32,
    start: Option<Nanos>,
    announced: bool,
    cap_bytes: Option<u64>,
    congestion: Choice,
}

pub(crate) fn connections(
    tables: &[Table<'_>],
    settings: &Settings,
    context: &Context<'_>,
    names: &mut Names,
    routes: &mut Vec<Route>,
    meshes: &mut Vec<Mesh>,
    managed: &mut Vec<Managed>,
) -> Result<Vec<Connection>, Error> {
    let mut connections = Vec::new();
    for table in tables {
        let family = Family::read(table, context.family_limit)?;
        let name = family_name(table, family)?;
        let ends = Ends::read(table, family)?;
        let protocol = match given(table.one_of("protocol")?) {
            "mptcp" => Protocol::Mptcp,
            _ => Protocol::Tcp,
        };
        let ip_version = read_ip(table)?;
        let path_manager = path_manager::read(table, protocol)?;
        let scheduler = scheduler::read(table, "scheduler")?;
        let subflows = subflows(table, family, protocol, &scheduler, path_manager.as_ref())?;
        let from_topology =
            path_manager.as_ref().is_some_and(|manager| manager.name != "default") && !table.has("subflow");
        let peer = agents::peer(table)?;
        let traffic = match table.table("traffic")? {
            None => Traffic::Ftp { start: When::At(0), stop: None, direction: Direction::Upload },
            Some(table) => traffic::read(&table, context)?,
        };
        let transport: Transport = {
            let choices = subflows.iter().map(|template| &template.congestion);
            let named = congestion::named_recovery(table, choices)?;
            transport::resolve(table, protocol, ip_version, settings, named)?
        };
        for index in 0..family.members {
            let name = name.name(index);
            insert(names, table, "name", "connection or datagram flow", &name)?;
            let (from, to) = ends.resolve(table, context.nodes, index)?;
            let has_agent = context.has_agent[from] && protocol == Protocol::Mptcp;
            if has_agent {
                check_agents(table, &subflows, path_manager.as_ref())?;
                managed.push(Managed::new(connections.len(), table, peer));
            }
            for subflow in &subflows {
                routes.push(subflow.via.route(table.source(), context.nodes, (from, to), index)?);
            }
            let subflows = subflows.iter().map(|template| Subflow {
                name: template.name.clone(),
                hops: Vec::new(),
                backup: template.backup,
                weight: template.weight,
                start: template.start,
                announced: template.announced,
                cap_bytes: template.cap_bytes,
                congestion: template.congestion.congestion.clone(),
            });
            if from_topology || has_agent && !table.has("subflow") {
                let (connection, place, path) = (connections.len(), table.place(), table.path().into());
                meshes.push(Mesh { connection, place, path });
            }
            connections.push(Connection {
                name,
                member_of: None,
                protocol,
                ip_version,
                from,
                to,
                traffic,
                transport,
                scheduler: scheduler.clone(),
                subflows: subflows.collect(),
                path_manager: path_manager.clone(),
                agent: None,
            });
        }
    }
    Ok(connections)
}

fn read_ip(table: &Table<'_>) -> Result<IpVersion, Error> {
    Ok(match given(table.one_of("ip")?) {
        "v6" => IpVersion::V6,
        _ => IpVersion::V4,
    })
}

fn family_name(table: &Table<'_>, family: Family) -> Result<Pattern, Error> {
    let name = given(table.reference("name")?).pattern;
    family.check(table, "name", &name)?;
    Ok(name)
}

fn subflows(
    table: &Table<'_>,
    family: Family,
    protocol: Protocol,
    scheduler: &Scheduler,
    manager: Option<&PathManager>,
) -> Result<Vec<SubflowTemplate>, Error> {
    let common = congestion::read(table, "congestion")?;
    let inner = table.tables("subflow")?;
    if inner.is_empty() {
        let via = Via { points: Vec::new(), place: table.place(), path: table.path().into() };
        let congestion = common.ok_or_else(|| table.missing("congestion"))?;
        return Ok(vec![SubflowTemplate {
            name: "0".to_owned(),
            via,
            backup: false,
            weight: 1,
            start: None,
            announced: false,
            cap_bytes: None,
            congestion,
        }]);
    }
    if protocol == Protocol::Tcp && inner.len() > 1 {
        let what =
            format!("{} subflows, but tcp has exactly one; expected protocol = \"mptcp\"", inner.len());
        return Err(table.error_at("subflow", &what));
    }
    if inner.len() > MAX_SUBFLOWS {
        let what = format!("{} subflows; expected at most {MAX_SUBFLOWS}", inner.len());
        return Err(table.error_at("subflow", &what));
    }
    let mut names = Names::new();
    let mut subflows = Vec::with_capacity(inner.len());
    for (at, subflow) in inner.iter().enumerate() {
        let name = match subflow.reference("name")? {
            None => at.to_string(),
            Some(name) => {
                check_references(subflow, Family::single(), [&name])?;
                name.pattern.name(0)
            }
        };
        insert(&mut names, subflow, "name", "subflow", &name)?;
        let own = congestion::read(subflow, "congestion")?;
        let congestion = own.or_else(|| common.clone()).ok_or_else(|| table.missing("congestion"))?;
        let backup = given(subflow.boolean("backup")?);
        if backup && protocol == Protocol::Tcp {
            return Err(
                subflow.error_at("backup", "tcp has no backup subflows; expected protocol = \"mptcp\"")
            );
        }
        let weight = scheduler::weight(subflow, scheduler)?;
        let (start, announced) = read_opening(subflow, at == 0)?;
        let cap_bytes = subflow.quantity("cap")?;
        check_managed(subflow, manager)?;
        let via = Via::read(subflow, family)?;
        subflows.push(SubflowTemplate { name, via, backup, weight, start, announced, cap_bytes, congestion });
    }
    Ok(subflows)
}

/// A path manager opens subflows by itself, and only `cost` knows of caps.
fn check_managed(subflow: &Table<'_>, manager: Option<&PathManager>) -> Result<(), Error> {
    if let Some(manager) = manager.filter(|_| subflow.has("start")) {
        let what =
            format!("the path manager {} opens subflows; expected one of the two", shown(&manager.name));
        return Err(subflow.error_at("start", &what));
    }
    if subflow.has("cap") && manager.is_none_or(|manager| manager.name != "cost") {
        return Err(subflow.error_at("cap", "nothing looks at it; expected path_manager = \"cost\""));
    }
    Ok(())
}

/// An agent decides what else these keys would.
fn check_agents(
    table: &Table<'_>,
    subflows: &[SubflowTemplate],
    manager: Option<&PathManager>,
) -> Result<(), Error> {
    let decides = "the agent of its node decides; expected";
    if manager.is_some() {
        return Err(table.error_at("path_manager", &format!("{decides} one of the two")));
    }
    let keys = [
        ("backup", "the role of its interface", subflows.iter().any(|subflow| subflow.backup)),
        ("start", "no such key", subflows.iter().any(|subflow| subflow.start.is_some())),
    ];
    match keys.into_iter().find(|&(.., is_given)| is_given) {
        None => Ok(()),
        Some((key, instead, _)) => Err(table.error_at("subflow", &format!("`{key}`: {decides} {instead}"))),
    }
}

/// When a subflow is opened if not as soon as it may, and whether it waits for its address to be announced.
fn read_opening(subflow: &Table<'_>, first: bool) -> Result<(Option<Nanos>, bool), Error> {
    let (start, announced) = (subflow.quantity("start")?, given(subflow.boolean("announced")?));
    for (key, given) in [("start", start.is_some()), ("announced", announced)] {
        if given && first {
            let what = "the first subflow opens with the connection; expected no such key, or traffic.start";
            return Err(subflow.error_at(key, what));
        }
    }
    if start.is_some() && announced {
        return Err(subflow.error_at("start", "beside announced; expected one of the two"));
    }
    Ok((start, announced))
}

pub(crate) fn datagrams(
    tables: &[Table<'_>],
    context: &Context<'_>,
    names: &mut Names,
    routes: &mut Vec<Route>,
) -> Result<Vec<Datagram>, Error> {
    let mut datagrams = Vec::new();
    for table in tables {
        let family = Family::read(table, context.family_limit)?;
        let name = family_name(table, family)?;
        let ends = Ends::read(table, family)?;
        let via = Via::read(table, family)?;
        let phase_jitter = given(table.quantity("phase_jitter")?);
        let on = table.intervals("on")?.unwrap_or_else(|| vec![(0, context.duration)]);
        check_jitter(table, &on, phase_jitter)?;
        let rate_bps = given(table.quantity("rate")?);
        let packet_bytes = given(table.small("packet")?);
        let ip_version = read_ip(table)?;
        let pattern = traffic::pattern(table)?;
        for index in 0..family.members {
            let name = name.name(index);
            insert(names, table, "name", "connection or datagram flow", &name)?;
            let (from, to) = ends.resolve(table, context.nodes, index)?;
            routes.push(via.route(table.source(), context.nodes, (from, to), index)?);
            let on = on.clone();
            datagrams.push(Datagram {
                name,
                from,
                to,
                hops: Vec::new(),
                rate_bps,
                packet_bytes,
                ip_version,
                on,
                phase_jitter,
                pattern,
            });
        }
    }
    Ok(datagrams)
}

/// Shifted by the jitter, an interval must still begin after the one before it and before its own end.
fn check_jitter(table: &Table<'_>, on: &[(Nanos, Nanos)], jitter: Nanos) -> Result<(), Error> {
    let mut free_from = 0;
    for (at, (start, end)) in on.iter().enumerate() {
        let early = at > 0 && start.saturating_sub(jitter) < free_from;
        if early || start + jitter >= *end {
            let what = format!(
                "{} moves the interval from {} over its neighbour or its own end; expected less",
                Dimension::Time.show(jitter),
                Dimension::Time.show(*start)
            );
            return Err(table.error_at("phase_jitter", &what));
        }
        free_from = *end;
    }
    Ok(())
}

/// The hops of every route, in order.
///
/// # Errors
/// The first route that does not exist or passes a node twice.
pub(crate) fn resolve(
    routes: &[Route],
    source: Source<'_>,
    nodes: &Names,
    graph: &Graph<'_>,
) -> Result<Vec<Vec<Hop>>, Error> {
    let legs: Vec<Leg> = routes
        .iter()
        .flat_map(|route| route.stops.windows(2).map(|w| Leg { from: w[0], to: w[1] }))
        .collect();
    let mut paths = graph.paths(&legs).into_iter().zip(legs);
    let node_name = |node: usize| nodes.all().nth(node).expect("an index of a node");
    let mut resolved = Vec::with_capacity(routes.len());
    for route in routes {
        let mut hops: Vec<Hop> = Vec::new();
        for (path, leg) in paths.by_ref().take(route.stops.len() - 1) {
            let Some(path) = path else {
                let what = format!(
                    "no path leads from {:?} to {:?}; expected links or media that join them",
                    node_name(leg.from),
                    node_name(leg.to)
                );
                return Err(source.error(route.place, &route.path, &what));
            };
            hops.extend(path);
        }
        if let Some(node) = graph.first_revisited(route.stops[0], &hops) {
            let what = format!(
                "the shortest path through the way-points passes {:?} twice; expected way-points that lead on",
                node_name(node)
            );
            return Err(source.error(route.place, &route.path, &what));
        }
        resolved.push(hops);
    }
    Ok(resolved)
}
