//! Configurations of the device agent: files beside the scenario, one for each node that names one.
//!
//! Of a connection that such a node opens the first entry that matches decides which path manager it has, and the roles of the
//! interfaces which of its paths are spare ones. A path is a subflow of the scenario, whose interface has the name of its first link
//! or medium. What identifies a run is the content: in the canonical form the path gives way to the content's hash.
//!
//! Left out, since nothing stands for it here: `set_pm_type`, `beside_managers`, `state`, `bpf`, `keepalive` and `probe`; a `cap` counts
//! what the path has carried and not the whole interface.

use std::net::SocketAddr;
use std::sync::Arc;

use anabranch_agent_config::{Config, Policy, Role};

use crate::Error;
use crate::files;
use crate::model::{AgentPath, Connection, Hop, Link, Medium, Node, PathManager, Subflow};
use crate::quantity::shown;
use crate::reader::Table;
use crate::tree::{Item, Place, Source, Value};

/// The configurations of a scenario, each once.
#[derive(Default)]
pub(crate) struct Agents {
    read: Vec<File>,
}

/// One file.
struct File {
    path: String,
    hash: String,
    config: Arc<Config>,
}

impl Agents {
    /// What a node's table names, if it does.
    pub(crate) fn read(&mut self, table: &Table<'_>) -> Result<Option<Arc<Config>>, Error> {
        let Some(path) = table.text("agent")? else { return Ok(None) };
        if let Some(known) = self.read.iter().find(|known| known.path == path) {
            return Ok(Some(Arc::clone(&known.config)));
        }
        let Some(folder) = table.source().folder else {
            let what = "there is no folder to find it in; expected a scenario that is read from a file";
            return Err(table.error_at("agent", what));
        };
        let read = files::read(folder, &path, ("a configuration", "the configuration of an agent"));
        let (text, hash) = read.map_err(|what| table.error_at("agent", &what))?;
        let config = Config::parse(&text, &path).map_err(|error| table.error_at("agent", &error.0))?;
        let config = Arc::new(config);
        self.read.push(File { path, hash, config: Arc::clone(&config) });
        Ok(Some(config))
    }

    /// Puts in the tree the hashes of the files in the place of their paths.
    pub(crate) fn identify(&self, root: &mut Item) {
        let Some(Value::Array(nodes)) = root.entry_mut("node").map(|item| &mut item.value) else { return };
        for node in nodes {
            let Some(Value::Text(path)) = node.entry_mut("agent").map(|item| &mut item.value) else {
                continue;
            };
            if let Some(known) = self.read.iter().find(|known| known.path == *path) {
                *path = format!("blake3:{}", known.hash);
            }
        }
    }
}

/// A connection that an agent decides about, and where it stands in the file.
pub(crate) struct Managed {
    connection: usize,
    peer: Option<SocketAddr>,
    place: Place,
    path: String,
}

impl Managed {
    pub(crate) fn new(connection: usize, table: &Table<'_>, peer: Option<SocketAddr>) -> Self {
        Self { connection, peer, place: table.place(), path: table.path().to_owned() }
    }
}

/// The peer's end of a connection as entries of configurations know it.
pub(crate) fn peer(table: &Table<'_>) -> Result<Option<SocketAddr>, Error> {
    let Some(text) = table.text("peer")? else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        let what = format!(
            "{}; expected an address and a port like \"192.0.2.7:443\" or \"[2001:db8::7]:443\"",
            shown(&text)
        );
        table.error_at("peer", &what)
    })
}

/// Gives the connections of nodes with an agent their path managers and their paths.
///
/// # Errors
/// What the configuration does not say of the scenario.
pub(crate) fn apply(
    managed: &[Managed],
    source: Source<'_>,
    nodes: &[Node],
    links: &[Link],
    media: &[Medium],
    connections: &mut [Connection],
) -> Result<(), Error> {
    for of in managed {
        let connection = &mut connections[of.connection];
        let config = nodes[connection.from].agent.as_ref().expect("it is managed by one");
        let interface = |subflow: &Subflow| match *subflow.hops.first().expect("a path has a hop") {
            Hop::Wire { link, .. } => links[link].name.as_str(),
            Hop::Medium { medium, .. } => media[medium].name.as_str(),
        };
        let decided =
            policy(config, of.peer).and_then(|policy| manage(connection, config, policy, interface));
        decided.map_err(|what| source.error(of.place, &of.path, &what))?;
    }
    Ok(())
}

/// What the first entry that matches says.
fn policy(config: &Config, peer: Option<SocketAddr>) -> Result<Option<&Policy>, String> {
    if let Some(peer) = peer {
        return Ok(config.policy(peer.ip(), peer.port()));
    }
    let Some(first) = config.connections.first() else { return Ok(None) };
    if first.to.is_none() && first.port.is_none() {
        return Ok(first.policy.as_ref());
    }
    Err("entries of the agent's configuration match by `to` or `port`; expected `peer`, the end of the server that they know"
        .to_owned())
}

fn manage<'n>(
    connection: &mut Connection,
    config: &Config,
    policy: Option<&Policy>,
    interface: impl Fn(&Subflow) -> &'n str,
) -> Result<(), String> {
    let Some(policy) = policy else {
        // It is left alone: nobody opens a second subflow where the path manager is in user space.
        connection.subflows.truncate(1);
        connection.path_manager = Some(PathManager { name: "default".to_owned(), params: Vec::new() });
        return Ok(());
    };
    let name = &connection.name;
    let own = interface(&connection.subflows[0]);
    if config.place(own).is_none() {
        let what = "is opened over an interface that the agent's configuration does not allow; expected an [[interface]] for";
        return Err(format!("{} {what} {}", shown(name), shown(own)));
    }
    let is_allowed = |subflow: &Subflow| config.place(interface(subflow)).is_some();
    connection.subflows.retain(is_allowed);
    // As the agent lists them: by address of the peer, the interface of the first subflow first, then as the file has them.
    let mut remotes: Vec<Option<Hop>> = Vec::new();
    let mut keyed: Vec<_> = Vec::new();
    for (number, subflow) in std::mem::take(&mut connection.subflows).into_iter().enumerate() {
        let remote = subflow.hops.last().copied().filter(|_| subflow.announced);
        let remote_number = remotes.iter().position(|known| *known == remote).unwrap_or_else(|| {
            remotes.push(remote);
            remotes.len() - 1
        });
        let local = interface(&subflow);
        let key = (remote_number, local != own, config.place(local), local);
        if let Some((_, _, other)) = keyed.iter().find(|(known, _, _)| *known == key) {
            let other: &Subflow = other;
            return Err(format!(
                "subflows {} and {} of {} go over one pair of addresses, of which an agent opens one; expected one of the two",
                shown(&other.name),
                shown(&subflow.name),
                shown(name)
            ));
        }
        keyed.push((key, number, subflow));
    }
    keyed.sort_by_key(|&((remote, is_other, place, _), number, _)| (remote, is_other, place, number));
    let mut paths = Vec::new();
    for (_, number, mut subflow) in keyed {
        let rule = config.interface(interface(&subflow)).expect("it is allowed");
        let spare = match rule.role {
            Role::Primary => false,
            Role::Backup => true,
            Role::Metered => !policy.knows_cost(),
        };
        (subflow.backup, subflow.cap_bytes) = (spare && number > 0, rule.cap_bytes);
        paths.push(AgentPath { spare, radio: rule.radio });
        connection.subflows.push(subflow);
    }
    connection.path_manager =
        Some(PathManager { name: policy.info.name.to_owned(), params: policy.values.clone() });
    connection.agent = Some(paths);
    Ok(())
}
