//! Events of subflows: what ip(8) and ss(8) are told about the endpoints of a host when they come.
//!
//! The kernel's own path manager knows endpoints alone, and joins with each once per connection. So an address is opened again
//! by an endpoint that is taken away and made anew, with another identifier: the REMOVE_ADDR of the old one may arrive after
//! the new join. A subflow is closed by aborting its socket (`SOCK_DESTROY`), which sends a reset as in the simulator.
//! A first subflow has the identifier 0 whatever the endpoint's is (RFC 8684 section 3.4.2), so that its endpoint goes
//! as soon as it is closed, and whoever opens it again within a round trip may find the join refused.

use std::net::IpAddr;

use anabranch_scenario::model::Action;

use super::{
    Namespace,
    commands::{add_endpoint, addresses, any, default_route},
    tool::run,
};
use crate::{
    BedError,
    plan::{Address, Endpoint, Host, Interface, Role},
};

/// The endpoints of a host, as events have left them.
#[derive(Debug)]
pub struct Endpoints {
    namespace: String,
    states: Vec<State>,
}

/// An address with an endpoint.
#[derive(Debug)]
struct State {
    interface: Interface,
    address: Address,
    endpoint: Endpoint,
    /// Packets from the address go nowhere.
    is_lost: bool,
}

impl Endpoints {
    /// Those of a host that has just been set up.
    pub fn new(host: &Host, namespace: &Namespace) -> Self {
        let state = |(interface, address): (&Interface, &Address)| {
            let (interface, address) = (interface.clone(), address.clone());
            address.endpoint.clone().map(|endpoint| State { interface, address, endpoint, is_lost: false })
        };
        Self { namespace: namespace.name().to_owned(), states: addresses(host).filter_map(state).collect() }
    }

    /// Lets an event happen to the subflows from an address.
    ///
    /// # Errors
    /// [`BedError::Failed`] with the words of ip(8) or ss(8).
    ///
    /// # Panics
    /// If the address has no endpoint.
    pub fn carry_out(&mut self, ip: IpAddr, action: Action) -> Result<(), BedError> {
        let in_use = match action {
            Action::Open | Action::Close => self.has_subflows(ip)?,
            Action::Remove | Action::Backup | Action::Regular => false,
        };
        let is_unused = |id: &u8| self.states.iter().all(|state| state.endpoint.id != *id);
        let unused = (1..=u8::MAX).find(is_unused).expect("a host has few endpoints");
        let state = self.states.iter_mut().find(|state| state.address.ip == ip);
        let state = state.expect("the plan gives addresses with events an endpoint");
        let (first, aborts, then) = state.change(action, in_use, unused);
        self.ip(&first)?;
        if aborts {
            self.ss(&["-K", "-tn", "src", &in_brackets(ip)])?;
        }
        self.ip(&then)
    }

    fn ip(&self, batch: &str) -> Result<(), BedError> {
        if batch.is_empty() {
            return Ok(());
        }
        run("ip", &["-n", &self.namespace, "-batch", "-"], Some(batch)).map(|_| ())
    }

    fn has_subflows(&self, ip: IpAddr) -> Result<bool, BedError> {
        let states = ["-Htn", "state", "established", "state", "syn-sent"];
        let listed = self.ss(&[&states[..], &["src", &in_brackets(ip)]].concat())?;
        Ok(!listed.trim().is_empty())
    }

    fn ss(&self, arguments: &[&str]) -> Result<String, BedError> {
        run("ss", &[&["-N", self.namespace.as_str()], arguments].concat(), None)
    }
}

impl State {
    /// What ip(8) is told, whether subflows are aborted after that, and what ip(8) is told then. `unused` is an identifier
    /// that no endpoint has.
    fn change(&mut self, action: Action, in_use: bool, unused: u8) -> (String, bool, String) {
        let nothing = || (String::new(), false, String::new());
        match action {
            Action::Open if self.endpoint.present && in_use => nothing(),
            Action::Open => (self.open(unused), false, String::new()),
            Action::Close if !in_use => nothing(),
            Action::Close => {
                let then = if self.endpoint.role == Role::First { self.delete() } else { String::new() };
                (String::new(), true, then)
            }
            Action::Remove if self.is_lost => nothing(),
            Action::Remove => (self.lose(), true, self.delete()),
            Action::Backup | Action::Regular => {
                (self.prioritise(action == Action::Backup), false, String::new())
            }
        }
    }

    fn open(&mut self, unused: u8) -> String {
        let mut batch = String::new();
        if std::mem::take(&mut self.is_lost) {
            batch += &self.delete_route();
            batch += &default_route(&self.interface, &self.address, self.address.table);
            batch += "\n";
        }
        if self.endpoint.present {
            batch += &self.delete();
            self.endpoint.id = unused;
        }
        self.endpoint.present = true;
        batch + &add_endpoint(&self.interface, self.address.ip, &self.endpoint) + "\n"
    }

    /// Lets packets from the address go nowhere, so that nothing is heard of it any more.
    fn lose(&mut self) -> String {
        self.is_lost = true;
        let Address { ip, table, .. } = self.address;
        format!("{}route add blackhole {} table {table}\n", self.delete_route(), any(ip))
    }

    fn delete_route(&self) -> String {
        format!("route del {} table {}\n", any(self.address.ip), self.address.table)
    }

    fn delete(&mut self) -> String {
        if !std::mem::take(&mut self.endpoint.present) {
            return String::new();
        }
        format!("mptcp endpoint delete id {}\n", self.endpoint.id)
    }

    fn prioritise(&mut self, backup: bool) -> String {
        if std::mem::replace(&mut self.endpoint.backup, backup) == backup || !self.endpoint.present {
            return String::new();
        }
        let word = if backup { "backup" } else { "nobackup" };
        format!("mptcp endpoint change id {} {word}\n", self.endpoint.id)
    }
}

/// As ss(8) wants it.
fn in_brackets(ip: IpAddr) -> String {
    if ip.is_ipv4() { ip.to_string() } else { format!("[{ip}]") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(role: Role, present: bool) -> State {
        let endpoint = Endpoint { id: 1, backup: false, role, present };
        let address = Address {
            ip: "10.0.0.2".parse().unwrap(),
            table: 1002,
            route_options: vec!["initcwnd 4".to_owned()],
            endpoint: Some(endpoint.clone()),
            reaches: Vec::new(),
        };
        let interface =
            Interface { name: "if1".to_owned(), link: "lte".to_owned(), mtu: 1500, addresses: Vec::new() };
        State { interface, address, endpoint, is_lost: false }
    }

    const ADD: &str = "mptcp endpoint add 10.0.0.2 dev if1 id";

    fn told(first: &str, aborts: bool, then: &str) -> (String, bool, String) {
        (first.to_owned(), aborts, then.to_owned())
    }

    #[test]
    fn an_endpoint_that_joins_again_has_another_identifier() {
        let mut state = state(Role::Subflow, false);
        assert_eq!(state.change(Action::Open, false, 7), told(&format!("{ADD} 1 subflow\n"), false, ""));
        assert_eq!(state.change(Action::Open, true, 7), told("", false, ""), "it is open");
        assert_eq!(state.change(Action::Close, true, 7), told("", true, ""));
        assert_eq!(state.change(Action::Close, false, 7), told("", false, ""), "it is closed");
        let again = format!("mptcp endpoint delete id 1\n{ADD} 7 subflow\n");
        assert_eq!(state.change(Action::Open, false, 7), told(&again, false, ""));
    }

    #[test]
    fn the_endpoint_of_a_first_subflow_goes_when_it_is_closed() {
        let mut state = state(Role::First, true);
        assert_eq!(state.change(Action::Close, true, 7), told("", true, "mptcp endpoint delete id 1\n"));
        assert_eq!(state.change(Action::Open, false, 7), told(&format!("{ADD} 1 subflow\n"), false, ""));
    }

    #[test]
    fn a_lost_address_is_silent_before_it_is_given_up_and_has_its_route_again_later() {
        let mut state = state(Role::Subflow, true);
        let silent = "route del 0.0.0.0/0 table 1002\nroute add blackhole 0.0.0.0/0 table 1002\n";
        let lost = told(silent, true, "mptcp endpoint delete id 1\n");
        assert_eq!(state.change(Action::Remove, false, 7), lost);
        assert_eq!(state.change(Action::Remove, false, 7), told("", false, ""));
        let back = format!(
            "route del 0.0.0.0/0 table 1002\nroute add 0.0.0.0/0 dev if1 table 1002 initcwnd 4\n{ADD} 1 subflow\n"
        );
        assert_eq!(state.change(Action::Open, false, 7), told(&back, false, ""));
    }

    #[test]
    fn a_priority_is_kept_for_an_endpoint_that_is_not_there_yet() {
        let mut state = state(Role::Subflow, false);
        assert_eq!(state.change(Action::Backup, false, 7), told("", false, ""));
        let opened = format!("{ADD} 1 subflow backup\n");
        assert_eq!(state.change(Action::Open, false, 7), told(&opened, false, ""));
        let regular = "mptcp endpoint change id 1 nobackup\n";
        assert_eq!(state.change(Action::Regular, false, 7), told(regular, false, ""));
        assert_eq!(state.change(Action::Regular, false, 7), told("", false, ""), "it is regular");
    }
}
