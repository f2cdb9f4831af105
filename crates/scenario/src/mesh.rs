//! Subflows that a path manager makes of the topology: one per pair of addresses, or several on one path.
//!
//! An end has one address per link or medium that it is attached to. The path of a pair is the shortest one between the
//! nodes behind them that does not lead through an end; a pair without one is left out. Of several, the one whose first different
//! hop stands first in the file is taken, links before media.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anabranch_policy::paths::find;

use crate::Error;
use crate::flows::{MAX_SUBFLOWS, Mesh};
use crate::model::{Connection, Hop, Link, Medium, Subflow};
use crate::routes::{Edge, Graph};
use crate::tree::Source;

/// Where the subflows go.
pub(crate) struct Topology<'a> {
    pub(crate) graph: &'a Graph<'a>,
    pub(crate) links: &'a [Link],
    pub(crate) media: &'a [Medium],
}

/// Gives connections whose subflows follow from the topology all of them; each has its first one with its path.
///
/// # Errors
/// More subflows than a connection can have.
pub(crate) fn expand(
    meshes: &[Mesh],
    source: Source<'_>,
    topology: &Topology<'_>,
    connections: &mut [Connection],
) -> Result<(), Error> {
    for mesh in meshes {
        let connection = &mut connections[mesh.connection];
        // An agent has one path per pair, too, and no path manager yet.
        let wanted = connection.path_manager.as_ref().and_then(|manager| {
            let info = find(&manager.name).expect("its name was checked");
            let at = info.params.iter().position(|param| param.name == "num_subflows")?;
            Some(manager.params[at] as usize)
        });
        let subflows = match wanted {
            Some(count) => vec![connection.subflows[0].clone(); count],
            None => topology.pairs(connection),
        };
        if subflows.len() > MAX_SUBFLOWS {
            let what = format!(
                "{} pairs of addresses; expected at most {MAX_SUBFLOWS}, or [[connection.subflow]]s",
                subflows.len()
            );
            return Err(source.error(mesh.place, &mesh.path, &what));
        }
        connection.subflows = subflows;
        let mut taken = BTreeSet::new();
        for (at, subflow) in connection.subflows.iter_mut().enumerate() {
            if !taken.insert(subflow.name.clone()) {
                subflow.name = at.to_string();
                taken.insert(subflow.name.clone());
            }
        }
    }
    Ok(())
}

impl Topology<'_> {
    /// A subflow for every pair: the first one as it is, then by the peer's addresses, in each by the local ones, in the
    /// order of the file. A further address of the peer must be announced before its pairs can be used.
    fn pairs(&self, connection: &Connection) -> Vec<Subflow> {
        let first = &connection.subflows[0];
        let first_pair = (self.first_edge(&first.hops), self.last_edge(&first.hops));
        let mut subflows = vec![Subflow { name: self.name(first_pair), ..first.clone() }];
        for &remote in self.graph.edges_of(connection.to) {
            let announced = remote != first_pair.1;
            for &local in self.graph.edges_of(connection.from) {
                if (local, remote) == first_pair {
                    continue;
                }
                if let Some(hops) = self.path(connection, local, remote) {
                    let name = self.name((local, remote));
                    subflows.push(Subflow { name, hops, announced, ..first.clone() });
                }
            }
        }
        subflows
    }

    fn first_edge(&self, hops: &[Hop]) -> Edge {
        edge(hops.first().expect("a path has a hop"))
    }

    fn last_edge(&self, hops: &[Hop]) -> Edge {
        edge(hops.last().expect("a path has a hop"))
    }

    fn name(&self, (local, remote): (Edge, Edge)) -> String {
        let name = |edge| match edge {
            Edge::Link(link) => &self.links[link].name,
            Edge::Medium(medium) => &self.media[medium].name,
        };
        if local == remote { name(local).clone() } else { format!("{}.{}", name(local), name(remote)) }
    }

    /// The path that leaves by one link and arrives by the other.
    fn path(&self, connection: &Connection, local: Edge, remote: Edge) -> Option<Vec<Hop>> {
        let (from, to) = (connection.from, connection.to);
        if local == remote {
            return self
                .hops_over(local, from)
                .into_iter()
                .find(|(_, end)| *end == to)
                .map(|(hop, _)| vec![hop]);
        }
        let mut best: Option<Vec<Hop>> = None;
        for (first, behind) in self.hops_over(local, from) {
            for (last, before) in self.hops_over(remote, to) {
                let last = last.reversed();
                let Some(between) = self.between([from, to], behind, before) else { continue };
                let hops: Vec<Hop> = [vec![first], between, vec![last]].concat();
                if best.as_ref().is_none_or(|best| hops.len() < best.len()) {
                    best = Some(hops);
                }
            }
        }
        best
    }

    /// The shortest path from one node to another that passes none of `ends`.
    fn between(&self, ends: [usize; 2], start: usize, goal: usize) -> Option<Vec<Hop>> {
        if ends.contains(&start) || ends.contains(&goal) {
            return None;
        }
        let mut came_by = BTreeMap::from([(start, None)]);
        let mut waiting = VecDeque::from([start]);
        while let Some(node) = waiting.pop_front().filter(|_| !came_by.contains_key(&goal)) {
            for &edge in self.graph.edges_of(node) {
                for (hop, next) in self.hops_over(edge, node) {
                    if !ends.contains(&next) && !came_by.contains_key(&next) {
                        came_by.insert(next, Some((node, hop)));
                        waiting.push_back(next);
                    }
                }
            }
        }
        let (mut hops, mut node) = (Vec::new(), goal);
        while let Some((before, hop)) = *came_by.get(&node)? {
            hops.push(hop);
            node = before;
        }
        hops.reverse();
        Some(hops)
    }

    /// The hops from a node over one link or medium, and where they end.
    fn hops_over(&self, edge: Edge, node: usize) -> Vec<(Hop, usize)> {
        match edge {
            Edge::Link(link) => {
                let Link { a, b, .. } = self.links[link];
                vec![if a == node {
                    (Hop::Wire { link, forward: true }, b)
                } else {
                    (Hop::Wire { link, forward: false }, a)
                }]
            }
            Edge::Medium(medium) => {
                let others = self.media[medium].stations.iter().filter(|&&station| station != node);
                others.map(|&to| (Hop::Medium { medium, from: node, to }, to)).collect()
            }
        }
    }
}

fn edge(hop: &Hop) -> Edge {
    match *hop {
        Hop::Wire { link, .. } => Edge::Link(link),
        Hop::Medium { medium, .. } => Edge::Medium(medium),
    }
}
