//! Carrying out what policies decide.

use std::net::SocketAddr;

use anabranch_netlink::{
    NetlinkError,
    mptcp::{Endpoint, EndpointFlags, Token},
};
use anabranch_policy::paths::{Action, CAP_REACHED, DEAD, Decision, Nanos, State};

use super::{
    log::Line,
    managed::Managed,
    run::{Agent, MS},
};
use crate::DeviceError;

/// Distance of looks while a subflow is in timeouts, whose end is no event.
const LOOK_TIMEOUTS: Nanos = 100 * MS;
/// Greatest distance of looks while a connection is managed.
const LOOK_MAX: Nanos = 1_000 * MS;
/// After the kernel has refused something.
const LOOK_REFUSED: Nanos = 100 * MS;
/// How many identifiers are tried for a local address.
const IDS: u8 = 4;

impl Agent<'_> {
    /// Closes the subflows that nothing can answer: what they have not delivered goes over the others at once.
    pub(super) fn close_orphans(&mut self, managed: &mut Managed) -> Result<(), DeviceError> {
        for (subflow, reason) in std::mem::take(&mut managed.orphans) {
            let line = Line::new(Action::Close.name(), managed.token)
                .with("subflow", subflow.to_string())
                .with("reason", reason);
            match self.manager.destroy_subflow(managed.token, subflow) {
                Err(error) if error.errno() == Some(libc::EPERM) => return Err(error.into()),
                Err(error) => self.say_of(managed.token, &line.with("error", error.to_string())),
                Ok(()) => {
                    self.report.count(Action::Close.name(), reason);
                    self.say_of(managed.token, &line);
                }
            }
        }
        Ok(())
    }

    /// Does what a policy has decided; says when to look at the connection again.
    pub(super) fn carry_out(
        &mut self,
        managed: &mut Managed,
        decisions: &[Decision],
        now: Nanos,
    ) -> Result<Nanos, DeviceError> {
        let (mut is_changed, mut is_refused) = (false, false);
        for decision in decisions {
            let done = self.act(managed, decision);
            if matches!(&done, Ok(false)) && decision.action != Action::Keep {
                continue;
            }
            let pair = &managed.pairs[decision.path];
            let mut line = Line::new(decision.action.name(), managed.token)
                .with("dev", pair.dev.as_str())
                .with("to", pair.remote.to_string())
                .with("reason", decision.reason.code);
            for (name, value) in &decision.reason.numbers {
                line = line.with(name, *value);
            }
            match done {
                Ok(done) => {
                    is_changed |= done;
                    self.report.count(decision.action.name(), decision.reason.code);
                }
                Err(error) if error.errno() == Some(libc::EPERM) => return Err(error.into()),
                Err(error) => {
                    is_refused = true;
                    self.report.refusals += 1;
                    line = line.with("error", error.to_string());
                }
            }
            self.say_of(managed.token, &line);
        }
        let looks = [
            managed.look_at,
            is_changed.then_some(now),
            managed.has_timeouts.then_some(now + LOOK_TIMEOUTS),
            // A little later than the timer, so that the timeout has been; where the kernel tells of it, that is soon enough.
            managed
                .timeout_in_ms
                .filter(|_| self.timeouts.why_not().is_some())
                .map(|ms| now + (u64::from(ms) + 5) * MS),
            Some(now + LOOK_MAX),
        ];
        let next = looks.into_iter().flatten().min().unwrap_or(now + LOOK_MAX);
        Ok(if is_refused { next.max(now + LOOK_REFUSED) } else { next })
    }

    /// Whether something was done.
    fn act(&mut self, managed: &mut Managed, decision: &Decision) -> Result<bool, NetlinkError> {
        let (state, token) = (managed.paths[decision.path].state, managed.token);
        let pair = &managed.pairs[decision.path];
        match decision.action {
            Action::Open if state == State::Closed => {
                let Some(local) = pair.local else { return Ok(false) };
                let flags = match managed.paths[decision.path].backup {
                    true => EndpointFlags::BACKUP,
                    false => EndpointFlags::NONE,
                };
                let endpoint = Endpoint {
                    id: managed.id_of(pair, local),
                    interface: Some(pair.interface),
                    flags,
                    ..Endpoint::new(local)
                };
                self.open_subflow(token, endpoint, pair.remote)?;
                Ok(true)
            }
            Action::Close if decision.reason.code == DEAD && managed.is_last(decision.path) => {
                managed.park(decision.path);
                Ok(true)
            }
            Action::Close => {
                let mut is_done = false;
                for subflow in &pair.subflows {
                    // What lies in its queue would be sent before it is closed in order: more than a cap allows.
                    if decision.reason.code == CAP_REACHED
                        && self.diag.abort(*subflow, pair.interface).is_ok()
                    {
                        is_done = true;
                        continue;
                    }
                    match self.manager.destroy_subflow(token, *subflow) {
                        Ok(()) => is_done = true,
                        Err(error) if error.errno() == Some(libc::ESRCH) => {}
                        Err(error) => return Err(error),
                    }
                }
                managed.paths[decision.path].state = State::Closed;
                Ok(is_done)
            }
            Action::Backup | Action::Regular if state != State::Opening => {
                let backup = decision.action == Action::Backup;
                for subflow in &pair.subflows {
                    self.manager.set_subflow_backup(token, *subflow, backup)?;
                }
                managed.paths[decision.path].backup = backup;
                Ok(true)
            }
            Action::Open | Action::Backup | Action::Regular | Action::Keep => Ok(false),
        }
    }

    /// Opens a subflow; if another address has the identifier, with another one.
    fn open_subflow(
        &mut self,
        token: Token,
        endpoint: Endpoint,
        remote: SocketAddr,
    ) -> Result<(), NetlinkError> {
        let mut refused = None;
        for number in 0..IDS {
            let id = if number == 0 { endpoint.id } else { 250 + number };
            match self.manager.create_subflow(token, &Endpoint { id, ..endpoint }, remote) {
                Err(error) if error.errno() == Some(libc::EINVAL) => refused = refused.or(Some(error)),
                outcome => return outcome,
            }
        }
        refused.map_or(Ok(()), Err)
    }
}
