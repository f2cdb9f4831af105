//! Endpoints and subflows by hand: adding, deleting, backup or not.

use std::{fmt, net::SocketAddr};

use anabranch_netlink::{
    diag::{SocketDiag, Subflow},
    mptcp::{Endpoint, EndpointFlags, PathManager, Token},
};

use super::{Interfaces, Words};
use crate::DeviceError;

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done(String);

impl fmt::Display for Done {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Adds an endpoint; with a token, opens a subflow of that connection.
///
/// # Errors
/// [`DeviceError::Input`] for words that do not make one, [`DeviceError::Netlink`] with the kernel's reason.
pub fn add(token: Option<Token>, words: &Words) -> Result<Done, DeviceError> {
    refuse_no_flags(words)?;
    let endpoint = words.endpoint(&Interfaces::read()?)?;
    let mut manager = PathManager::open()?;
    let Some(token) = token else {
        refuse_to(words)?;
        manager.add_endpoint(&endpoint)?;
        return Ok(Done(format!("added the endpoint {endpoint}")));
    };
    let remote = remote(token, words)?;
    manager.create_subflow(token, &endpoint, remote)?;
    Ok(Done(format!("opening a subflow of {token} from {endpoint} to {remote}")))
}

/// Deletes an endpoint; with a token, closes a subflow of that connection.
///
/// # Errors
/// As [`add`].
pub fn delete(token: Option<Token>, words: &Words) -> Result<Done, DeviceError> {
    refuse_no_flags(words)?;
    let mut manager = PathManager::open()?;
    if let Some(token) = token {
        let subflow = one_subflow(token, words)?;
        manager.destroy_subflow(token, subflow.address)?;
        return Ok(Done(format!("closed the subflow {} of {token}", subflow.address)));
    }
    refuse_to(words)?;
    let id = match (words.id, words.address) {
        (Some(0), Some(address)) => {
            manager.delete_first(address)?;
            return Ok(Done(format!("closed the first subflows from {address}")));
        }
        (Some(0), None) => {
            let text =
                "the endpoint with id 0 is the first subflows' address: say it, `path del id 0 ADDRESS`";
            return Err(DeviceError::Input(text.to_owned()));
        }
        (Some(id), _) => id,
        (None, Some(address)) => {
            let of_address = |endpoint: &Endpoint| endpoint.address == address;
            let found = manager.endpoints()?.into_iter().find(of_address);
            found.map(|endpoint| endpoint.id).ok_or_else(|| {
                DeviceError::Refused(format!(
                    "there is no endpoint with the address {address}; see `path show`"
                ))
            })?
        }
        (None, None) => return Err(DeviceError::Input("expected `id NUMBER` or an address".to_owned())),
    };
    manager.delete_endpoint(id)?;
    Ok(Done(format!("deleted the endpoint {id}")))
}

/// Makes an endpoint a backup or not, part of a full mesh or not; with a token, a subflow of that connection a backup or
/// not.
///
/// # Errors
/// As [`add`].
pub fn prioritise(token: Option<Token>, words: &Words) -> Result<Done, DeviceError> {
    let mut manager = PathManager::open()?;
    if words.flags == EndpointFlags::NONE && words.no_flags == EndpointFlags::NONE {
        let text = "expected backup, nobackup, fullmesh or nofullmesh";
        return Err(DeviceError::Input(text.to_owned()));
    }
    if let Some(token) = token {
        let backup = words.flags == EndpointFlags::BACKUP;
        if !backup && words.no_flags != EndpointFlags::BACKUP {
            return Err(DeviceError::Input("of a subflow, expected backup or nobackup".to_owned()));
        }
        let subflow = one_subflow(token, words)?;
        manager.set_subflow_backup(token, subflow.address, backup)?;
        let word = if backup { "a backup" } else { "regular" };
        return Ok(Done(format!("made the subflow {} of {token} {word}", subflow.address)));
    }
    refuse_to(words)?;
    let id = words.id.ok_or_else(|| DeviceError::Input("expected `id NUMBER`".to_owned()))?;
    let before = manager.endpoint(id)?.flags;
    let changeable = (EndpointFlags::BACKUP | EndpointFlags::FULLMESH).bits();
    let bits = (before.bits() | words.flags.bits()) & !words.no_flags.bits() & changeable;
    manager.set_endpoint_flags(id, EndpointFlags::from_bits(bits))?;
    let after = manager.endpoint(id)?;
    Ok(Done(format!("the endpoint is {after}")))
}

fn refuse_no_flags(words: &Words) -> Result<(), DeviceError> {
    match words.no_flags {
        EndpointFlags::NONE => Ok(()),
        _ => Err(DeviceError::Input("nobackup and nofullmesh are for `path prio`".to_owned())),
    }
}

fn refuse_to(words: &Words) -> Result<(), DeviceError> {
    match words.to {
        None => Ok(()),
        Some(_) => Err(DeviceError::Input("`to` is for subflows: say --token, too".to_owned())),
    }
}

/// The peer's end of a new subflow: as said, else that of the connection.
fn remote(token: Token, words: &Words) -> Result<SocketAddr, DeviceError> {
    if let Some(to) = words.to.filter(|to| to.port() != 0) {
        return Ok(to);
    }
    let connections = SocketDiag::open()?.connections()?;
    let found = connections.iter().find(|connection| connection.token == token);
    let of = found.ok_or_else(|| no_connection(token))?.address.remote;
    Ok(words.to.map_or(of, |to| SocketAddr::new(to.ip(), of.port())))
}

fn no_connection(token: Token) -> DeviceError {
    DeviceError::Refused(format!("there is no connection {token}; see `path show`"))
}

/// The only subflow of a connection that the words are about.
fn one_subflow(token: Token, words: &Words) -> Result<Subflow, DeviceError> {
    let mut found = SocketDiag::open()?.subflows()?;
    found.retain(|subflow| subflow.token == token);
    if found.is_empty() {
        return Err(no_connection(token));
    }
    found.retain(|subflow| {
        words.id.is_none_or(|id| subflow.local_id == id)
            && words.address.is_none_or(|address| subflow.address.local.ip().to_canonical() == address)
            && words.to.is_none_or(|to| {
                let remote = subflow.address.remote;
                remote.ip().to_canonical() == to.ip() && (to.port() == 0 || remote.port() == to.port())
            })
    });
    match found[..] {
        [one] => Ok(one),
        [] => Err(DeviceError::Refused(format!("connection {token} has no such subflow; see `path show`"))),
        _ => Err(DeviceError::Input(format!(
            "{} subflows of {token} are meant: say `id`, the local address or `to`, as `path show` prints them",
            found.len()
        ))),
    }
}
