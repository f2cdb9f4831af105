//! Paths with the fewest hops.
//!
//! One breadth-first search from each distinct destination serves all who go there. A node behind a single
//! wire is reached through its neighbour, so that many leaves behind one router share one search.

use std::collections::BTreeSet;

use crate::model::{Hop, Link, Medium};

/// A wish to get from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leg {
    pub(crate) from: usize,
    pub(crate) to: usize,
}

const UNSEEN: u32 = u32::MAX;

/// The topology as a compressed adjacency list: at each node its links, then its media, in the order of the file.
pub(crate) struct Graph<'a> {
    links: &'a [Link],
    media: &'a [Medium],
    first: Vec<usize>,
    edges: Vec<Edge>,
}

/// What a node is attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    Link(usize),
    Medium(usize),
}

impl<'a> Graph<'a> {
    pub(crate) fn new(nodes: usize, links: &'a [Link], media: &'a [Medium]) -> Self {
        let link_ends = links.iter().enumerate().flat_map(|(at, link)| [(link.a, at), (link.b, at)]);
        let link_ends = link_ends.map(|(node, at)| (node, Edge::Link(at)));
        let stations = media
            .iter()
            .enumerate()
            .flat_map(|(at, medium)| medium.stations.iter().map(move |node| (*node, at)));
        let ends: Vec<(usize, Edge)> =
            link_ends.chain(stations.map(|(node, at)| (node, Edge::Medium(at)))).collect();
        let mut first = vec![0; nodes + 1];
        for (node, _) in &ends {
            first[node + 1] += 1;
        }
        for node in 0..nodes {
            first[node + 1] += first[node];
        }
        let mut next_free = first.clone();
        let mut edges = vec![Edge::Link(0); ends.len()];
        for (node, edge) in ends {
            edges[next_free[node]] = edge;
            next_free[node] += 1;
        }
        Self { links, media, first, edges }
    }

    /// The hops of every leg; `None` where there is no way.
    ///
    /// Of several shortest paths the one whose first different hop stands first in the file is taken,
    /// links before media.
    pub(crate) fn paths(&self, legs: &[Leg]) -> Vec<Option<Vec<Hop>>> {
        let mut order: Vec<(usize, usize)> =
            legs.iter().enumerate().map(|(at, leg)| (self.anchor(*leg).0, at)).collect();
        order.sort_unstable();
        let mut paths = vec![None; legs.len()];
        let mut search = Search::new(self);
        for group in order.chunk_by(|a, b| a.0 == b.0) {
            search.label(group[0].0, group.iter().map(|(_, at)| legs[*at].from));
            for (_, at) in group {
                let last_hop = self.anchor(legs[*at]).1;
                paths[*at] = search.walk(legs[*at].from).map(|mut hops| {
                    hops.extend(last_hop);
                    hops
                });
            }
        }
        paths
    }

    /// The first node that a path from `from` comes to a second time.
    pub(crate) fn first_revisited(&self, from: usize, hops: &[Hop]) -> Option<usize> {
        let ends = hops.iter().map(|hop| match *hop {
            Hop::Wire { link, forward: true } => self.links[link].b,
            Hop::Wire { link, forward: false } => self.links[link].a,
            Hop::Medium { to, .. } => to,
        });
        let mut seen = BTreeSet::from([from]);
        ends.into_iter().find(|node| !seen.insert(*node))
    }

    /// What a node is attached to: links, then media, in the order of the file.
    pub(crate) fn edges_of(&self, node: usize) -> &[Edge] {
        &self.edges[self.first[node]..self.first[node + 1]]
    }

    /// Where the search for a leg begins: the destination, or its neighbour and the last hop.
    fn anchor(&self, leg: Leg) -> (usize, Option<Hop>) {
        match self.edges_of(leg.to) {
            [Edge::Link(link)] if leg.from != leg.to => {
                let forward = self.links[*link].b == leg.to;
                (self.other_end(*link, leg.to), Some(Hop::Wire { link: *link, forward }))
            }
            _ => (leg.to, None),
        }
    }

    fn other_end(&self, link: usize, node: usize) -> usize {
        let Link { a, b, .. } = self.links[link];
        if a == node { b } else { a }
    }
}

/// Distances to one destination and the hops found so far; cleared by the next search.
struct Search<'g, 'a> {
    graph: &'g Graph<'a>,
    distance: Vec<u32>,
    medium_seen: Vec<bool>,
    next: Vec<Option<(Hop, usize)>>,
    gateway: Vec<Option<usize>>,
    touched: Vec<usize>,
}

impl<'g, 'a> Search<'g, 'a> {
    fn new(graph: &'g Graph<'a>) -> Self {
        let nodes = graph.first.len() - 1;
        Self {
            graph,
            distance: vec![UNSEEN; nodes],
            medium_seen: vec![false; graph.media.len()],
            next: vec![None; nodes],
            gateway: vec![None; graph.media.len()],
            touched: Vec::new(),
        }
    }

    /// Labels nodes with their distance to `target`, level by level, until all of `sources` have one.
    fn label(&mut self, target: usize, sources: impl Iterator<Item = usize>) {
        for node in self.touched.drain(..) {
            self.distance[node] = UNSEEN;
            self.next[node] = None;
        }
        self.medium_seen.fill(false);
        self.gateway.fill(None);
        let mut sources: Vec<usize> = sources.collect();
        self.distance[target] = 0;
        self.touched.push(target);
        let mut level_start = 0;
        while level_start < self.touched.len() {
            while sources.last().is_some_and(|node| self.distance[*node] != UNSEEN) {
                sources.pop();
            }
            if sources.is_empty() {
                return;
            }
            let level = level_start..self.touched.len();
            level_start = level.end;
            for at in level {
                self.expand(self.touched[at]);
            }
        }
    }

    fn expand(&mut self, node: usize) {
        let graph = self.graph;
        let distance = self.distance[node] + 1;
        for edge in graph.edges_of(node) {
            match *edge {
                Edge::Link(link) => self.reach(graph.other_end(link, node), distance),
                Edge::Medium(medium) if !self.medium_seen[medium] => {
                    self.medium_seen[medium] = true;
                    for station in &graph.media[medium].stations {
                        self.reach(*station, distance);
                    }
                }
                Edge::Medium(_) => {}
            }
        }
    }

    fn reach(&mut self, node: usize, distance: u32) {
        if self.distance[node] == UNSEEN {
            self.distance[node] = distance;
            self.touched.push(node);
        }
    }

    fn walk(&mut self, from: usize) -> Option<Vec<Hop>> {
        if self.distance[from] == UNSEEN {
            return None;
        }
        let mut hops = Vec::with_capacity(self.distance[from] as usize + 1);
        let mut node = from;
        while self.distance[node] > 0 {
            let (hop, neighbour) = self.next[node].unwrap_or_else(|| self.first_hop(node));
            self.next[node] = Some((hop, neighbour));
            hops.push(hop);
            node = neighbour;
        }
        Some(hops)
    }

    /// The first edge that leads one step nearer. All nodes nearer than `node` have been labelled.
    fn first_hop(&mut self, node: usize) -> (Hop, usize) {
        let graph = self.graph;
        let nearer = self.distance[node] - 1;
        for edge in graph.edges_of(node) {
            match *edge {
                Edge::Link(link) => {
                    let neighbour = graph.other_end(link, node);
                    if self.distance[neighbour] == nearer {
                        return (Hop::Wire { link, forward: graph.links[link].a == node }, neighbour);
                    }
                }
                Edge::Medium(medium) => {
                    let gateway = self.gateway_of(medium);
                    if self.distance[gateway] == nearer {
                        return (Hop::Medium { medium, from: node, to: gateway }, gateway);
                    }
                }
            }
        }
        unreachable!("a labelled node has a nearer neighbour")
    }

    /// The first of the stations that are nearest.
    fn gateway_of(&mut self, medium: usize) -> usize {
        let stations = &self.graph.media[medium].stations;
        let distance = &self.distance;
        *self.gateway[medium].get_or_insert_with(|| {
            *stations.iter().min_by_key(|node| distance[**node]).expect("a medium has stations")
        })
    }
}
