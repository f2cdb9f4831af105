//! The path manager of hosts whose connections differ in their subflows: opens those of the scenario as soon as the kernel
//! says that a connection may have them (RFC 8684 section 3.2), each with its own priority.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anabranch_netlink::{
    NetlinkError,
    mptcp::{Connection, Endpoint, EndpointFlags, Event, Events, PathManager},
};

use crate::{
    BedError,
    host::Namespace,
    plan::{Join, Plan},
};

/// The end of a run is seen at the latest after this.
const ATTENTION: Duration = Duration::from_millis(50);

/// Threads that open subflows, one per host; dropping ends them.
pub(super) struct Joiner {
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<Vec<String>, NetlinkError>>>,
}

impl Joiner {
    /// Begins to listen at the hosts that have such connections.
    ///
    /// # Errors
    /// [`BedError::Failed`] if the kernel has no path manager for user space, [`BedError::System`] if there can be no thread.
    pub(super) fn start(plan: &Plan, hosts: &[Namespace]) -> Result<Self, BedError> {
        let mut this = Self { ended: Arc::default(), threads: Vec::new() };
        for (index, namespace) in hosts.iter().enumerate() {
            let own = plan.connections.iter().filter(|connection| connection.client == index);
            let joins: BTreeMap<u16, Vec<Join>> = own
                .filter(|connection| !connection.joins.is_empty())
                .map(|connection| (connection.port, connection.joins.clone()))
                .collect();
            if joins.is_empty() {
                continue;
            }
            let (events, manager) = namespace.enter(|| (Events::open(), PathManager::open()))?;
            let (events, manager) = (events.map_err(failed)?, manager.map_err(failed)?);
            let ended = Arc::clone(&this.ended);
            let thread = thread::Builder::new().name("joiner".to_owned());
            let thread = thread.spawn(move || join_all(events, manager, &joins, &ended));
            this.threads.push(thread.map_err(BedError::system("starting a thread for subflows"))?);
        }
        Ok(this)
    }

    /// Ends them. What the kernel refused to open, one sentence each.
    ///
    /// # Errors
    /// [`BedError::Failed`] if the events of a host could not be read.
    ///
    /// # Panics
    /// If a thread did.
    pub(super) fn end(mut self) -> Result<Vec<String>, BedError> {
        self.ended.store(true, Ordering::Release);
        let mut refused = Vec::new();
        for thread in self.threads.drain(..) {
            let result = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            refused.extend(result.map_err(failed)?);
        }
        Ok(refused)
    }
}

impl Drop for Joiner {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            // Nobody asked for the result.
            let _ = thread.join();
        }
    }
}

fn failed(error: NetlinkError) -> BedError {
    BedError::Failed(error.to_string())
}

/// Opens subflows until the end; `joins` are those of the connections, by the port that they lead to.
fn join_all(
    mut events: Events,
    mut manager: PathManager,
    joins: &BTreeMap<u16, Vec<Join>>,
    ended: &AtomicBool,
) -> Result<Vec<String>, NetlinkError> {
    let mut refused = Vec::new();
    while !ended.load(Ordering::Acquire) {
        let Some(event) = events.wait(ATTENTION)? else { continue };
        match event {
            Event::Established(connection) if !connection.is_server_side => {
                let own = joins.get(&connection.first.remote.port());
                for join in own.into_iter().flatten() {
                    if let Err(error) = open(&mut manager, &connection, *join) {
                        refused.push(error.to_string());
                    }
                }
            }
            Event::Lost | Event::Unreadable => {
                refused.push("events of connections were lost; subflows may be missing".to_owned());
            }
            _ => {}
        }
    }
    Ok(refused)
}

fn open(manager: &mut PathManager, connection: &Connection, join: Join) -> Result<(), NetlinkError> {
    if join.id == 0 {
        return manager.set_subflow_backup(connection.token, connection.first, join.backup);
    }
    let flags = if join.backup { EndpointFlags::BACKUP } else { EndpointFlags::NONE };
    let local = Endpoint { id: join.id, flags, ..Endpoint::new(join.address) };
    manager.create_subflow(connection.token, &local, connection.first.remote)
}
