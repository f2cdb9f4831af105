//! Generic netlink: families have numbers that the kernel gives (`linux/genetlink.h`).

use netlink_sys::protocols::NETLINK_GENERIC;

use crate::{
    NetlinkError,
    socket::Socket,
    wire::{Attributes, Malformed, Question, Writer},
};

/// Length of the header of a generic netlink message, `struct genlmsghdr`.
pub(crate) const HEADER: usize = 4;

const CONTROLLER: u16 = 16;
const CONTROLLER_VERSION: u8 = 2;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const GROUPS: u16 = 7;
const GROUP_NAME: u16 = 1;
const GROUP_ID: u16 = 2;

/// A family that the kernel has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Family {
    /// Type of its messages.
    pub(crate) id: u16,
    /// Its multicast groups, by name.
    groups: Vec<(String, u32)>,
}

impl Family {
    /// Asks for the family of that name. `what` says what a kernel without it lacks.
    pub(crate) fn find(name: &str, what: &'static str) -> Result<(Socket, Self), NetlinkError> {
        let mut socket = Socket::open(NETLINK_GENERIC)?;
        let attributes = Writer::default().bytes(FAMILY_NAME, &[name.as_bytes(), &[0]].concat());
        let question = Question {
            what: format!("looking for the netlink family {name}"),
            kind: CONTROLLER,
            body: body(GET_FAMILY, CONTROLLER_VERSION, attributes),
            attributes_at: HEADER,
            words: |path| (path == [FAMILY_NAME]).then_some("family's name"),
        };
        let answer = match socket.ask(&question) {
            Err(error) if error.errno() == Some(libc::ENOENT) => {
                return Err(NetlinkError::Unsupported { what });
            }
            answer => answer?,
        };
        let family = answer.first().ok_or(Malformed("it is empty")).and_then(|body| Self::read(&body.bytes));
        let family = family.map_err(|source| NetlinkError::Malformed { request: question.what, source })?;
        Ok((socket, family))
    }

    fn read(body: &[u8]) -> Result<Self, Malformed> {
        let (_, attributes) = split::<8>(body)?;
        let id = attributes.u16(FAMILY_ID)?.ok_or(Malformed("a family has no number"))?;
        let mut groups = Vec::new();
        for place in attributes.bytes(GROUPS).map(listed).transpose()?.unwrap_or_default() {
            let group = Attributes::<3>::read(place)?;
            if let (Some(name), Some(id)) = (group.text(GROUP_NAME), group.u32(GROUP_ID)?) {
                groups.push((name, id));
            }
        }
        Ok(Self { id, groups })
    }

    /// The number of a multicast group.
    pub(crate) fn group(&self, name: &str) -> Option<u32> {
        self.groups.iter().find(|(other, _)| other == name).map(|(_, id)| *id)
    }
}

/// The values of attributes whose types only count.
fn listed(bytes: &[u8]) -> Result<Vec<&[u8]>, Malformed> {
    /// More groups than any family has.
    const MOST: usize = 64;
    let places = Attributes::<MOST>::read(bytes)?;
    Ok((0..MOST as u16).filter_map(|kind| places.bytes(kind)).collect())
}

/// The command of a message of generic netlink, and its attributes.
pub(crate) fn split<const N: usize>(body: &[u8]) -> Result<(u8, Attributes<'_, N>), Malformed> {
    let (header, attributes) =
        body.split_first_chunk::<HEADER>().ok_or(Malformed("a message is too short"))?;
    Ok((header[0], Attributes::read(attributes)?))
}

/// The body of a message of generic netlink.
pub(crate) fn body(command: u8, version: u8, attributes: Writer) -> Vec<u8> {
    [&[command, version, 0, 0], &attributes.into_bytes()[..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_has_its_number_and_its_groups() {
        let group = |name: &[u8], id| Writer::default().bytes(GROUP_NAME, name).u32(GROUP_ID, id);
        let groups =
            Writer::default().nested(1, group(b"mptcp_pm_cmds\0", 4)).nested(2, group(b"events\0", 5));
        let attributes = Writer::default().u16(FAMILY_ID, 31).nested(GROUPS, groups).u32(9, 1);
        let family = Family::read(&body(1, 2, attributes)).unwrap();
        assert_eq!((family.id, family.group("events"), family.group("none")), (31, Some(5), None));
    }

    #[test]
    fn a_family_without_groups_is_one() {
        let family = Family::read(&body(1, 2, Writer::default().u16(FAMILY_ID, 31))).unwrap();
        assert_eq!(family, Family { id: 31, groups: Vec::new() });
        assert!(Family::read(&body(1, 2, Writer::default())).is_err());
        assert!(Family::read(&[1, 2, 0]).is_err());
    }
}
