//! Events as they come: of connections as `ip mptcp monitor` names them, and of links and addresses.

use std::{fmt, net::SocketAddr, os::fd::AsFd as _};

use anabranch_netlink::{
    mptcp::{self, Connection, Subflow, Token},
    rtnetlink,
};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
};
use serde_json::{Map, Value};

use crate::DeviceError;

/// One event: a word, and what it says.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    event: &'static str,
    fields: Map<String, Value>,
}

impl Told {
    fn new(event: &'static str, fields: &[(&str, Value)]) -> Self {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Self { event, fields }
    }

    fn and(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// As an object: `event` and the fields.
    pub fn json(&self) -> Value {
        let mut object = Map::new();
        object.insert("event".to_owned(), self.event.into());
        object.extend(self.fields.clone());
        Value::Object(object)
    }

    /// What happened to a connection; nothing if it is from a later kernel.
    pub fn of_connection(event: &mptcp::Event) -> Option<Self> {
        use mptcp::Event;
        Some(match event {
            Event::Created(connection) => of_first("CREATED", connection),
            Event::Established(connection) => of_first("ESTABLISHED", connection),
            Event::Closed(token) => Self::new("CLOSED", &[("token", hexadecimal(*token))]),
            Event::Announced(announced) => {
                let told = Self::new("ANNOUNCED", &[("token", hexadecimal(announced.token))])
                    .and("remid", announced.remote_id)
                    .and("address", announced.address.to_string());
                announced.port.map_or(told.clone(), |port| told.and("port", port))
            }
            Event::Removed { token, remote_id } => {
                Self::new("REMOVED", &[("token", hexadecimal(*token))]).and("remid", *remote_id)
            }
            Event::SubflowEstablished(subflow) => of_subflow("SF_ESTABLISHED", subflow),
            Event::SubflowClosed(closed) => {
                let mut told = of_subflow("SF_CLOSED", &closed.subflow);
                if let Some(error) = closed.error {
                    told = told.and("error", Errno::from_raw(error.into()).desc());
                }
                if let Some(reset) = closed.reset {
                    told = told.and("reset_reason", reset.reason).and("reset_transient", reset.is_transient);
                }
                told
            }
            Event::SubflowPriority(subflow) => of_subflow("SF_PRIO", subflow),
            Event::ListenerCreated(at) => Self::new("LISTENER_CREATED", &[("local", text(*at))]),
            Event::ListenerClosed(at) => Self::new("LISTENER_CLOSED", &[("local", text(*at))]),
            Event::Lost | Event::Unreadable => Self::new("LOST", &[("of", "connections".into())]),
            Event::Unknown { .. } => return None,
        })
    }

    /// What happened to a link or an address; nothing if it is about routes.
    pub fn of_network(event: &rtnetlink::Event) -> Option<Self> {
        use rtnetlink::Event;
        let link = |word, link: &rtnetlink::Link| {
            Self::new(word, &[("dev", link.name.clone().into())])
                .and("up", link.is_up)
                .and("running", link.is_running)
        };
        let address = |word, address: &rtnetlink::Address| {
            Self::new(word, &[("address", address.address.to_string().into())])
                .and("interface", address.interface)
                .and("usable", address.is_usable)
        };
        Some(match event {
            Event::LinkChanged(of) => link("LINK", of),
            Event::LinkGone(of) => link("LINK_GONE", of),
            Event::AddressChanged(of) => address("ADDRESS", of),
            Event::AddressGone(of) => address("ADDRESS_GONE", of),
            Event::Lost | Event::Unreadable => Self::new("LOST", &[("of", "links".into())]),
            Event::RouteChanged(_) | Event::RouteGone(_) | Event::Unknown { .. } => return None,
        })
    }
}

impl fmt::Display for Told {
    /// `[SF_CLOSED] token=0000beef locid=2 …`, as `ip mptcp monitor`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "[{}]", self.event)?;
        for (name, value) in &self.fields {
            match value {
                Value::String(text) if text.contains(' ') => write!(out, " {name}={text:?}")?,
                Value::String(text) => write!(out, " {name}={text}")?,
                value => write!(out, " {name}={value}")?,
            }
        }
        Ok(())
    }
}

fn hexadecimal(token: Token) -> Value {
    token.to_string().into()
}

fn text(end: SocketAddr) -> Value {
    end.to_string().into()
}

fn of_first(event: &'static str, connection: &Connection) -> Told {
    Told::new(event, &[("token", hexadecimal(connection.token))])
        .and("local", text(connection.first.local))
        .and("remote", text(connection.first.remote))
        .and("server_side", connection.is_server_side)
        .and("deny_join_id0", connection.denies_join_id0)
}

fn of_subflow(event: &'static str, subflow: &Subflow) -> Told {
    let told = Told::new(event, &[("token", hexadecimal(subflow.token))])
        .and("locid", subflow.local_id)
        .and("remid", subflow.remote_id)
        .and("local", text(subflow.address.local))
        .and("remote", text(subflow.address.remote))
        .and("backup", subflow.is_backup);
    subflow.interface.map_or(told.clone(), |interface| told.and("interface", interface))
}

/// Hears events and hands them on until `take` says that it is enough.
///
/// # Errors
/// [`DeviceError::Netlink`]; [`DeviceError::System`].
pub fn watch(mut take: impl FnMut(&Told) -> bool) -> Result<(), DeviceError> {
    let mut connections = mptcp::Events::open()?;
    let mut network = rtnetlink::Events::open()?;
    loop {
        while let Some(event) = connections.next()? {
            if Told::of_connection(&event).is_some_and(|told| !take(&told)) {
                return Ok(());
            }
        }
        while let Some(event) = network.next()? {
            if Told::of_network(&event).is_some_and(|told| !take(&told)) {
                return Ok(());
            }
        }
        let sockets = [connections.as_fd(), network.as_fd()];
        match poll(&mut sockets.map(|socket| PollFd::new(socket, PollFlags::POLLIN)), PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(DeviceError::system("waiting for events")(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_netlink::mptcp::{Closed, Event, Reset, SubflowAddress};

    use super::*;

    #[test]
    fn a_closed_subflow_is_told_with_its_error_and_the_reason_of_the_reset() {
        let address = SubflowAddress {
            local: "10.0.2.1:4000".parse().unwrap(),
            remote: "10.0.0.1:80".parse().unwrap(),
        };
        let subflow = Subflow {
            token: Token(0xbeef),
            local_id: 2,
            remote_id: 0,
            address,
            is_backup: false,
            interface: None,
        };
        let reset = Some(Reset { reason: 6, is_transient: false });
        let told =
            Told::of_connection(&Event::SubflowClosed(Closed { subflow, error: Some(104), reset })).unwrap();
        let json = told.json();
        assert_eq!((&json["event"], &json["token"]), (&"SF_CLOSED".into(), &"0000beef".into()));
        assert_eq!((&json["error"], &json["reset_reason"]), (&"Connection reset by peer".into(), &6.into()));
        let line = told.to_string();
        assert!(line.starts_with("[SF_CLOSED] "), "{line}");
        assert!(line.contains(" error=\"Connection reset by peer\""), "{line}");
    }
}
