//! What the path manager of this network namespace has: endpoints, limits, connections and their subflows; how to change it by
//! hand; and events as they come. In the words of ip-mptcp(8) and ss(8).
//!
//! Left out: what happened before [`watch`] began, and connections that are listed without a token (they have fallen back to TCP and
//! ended).

mod change;
mod record;
mod show;
mod watch;
mod words;

pub use change::{Done, add, delete, prioritise};
pub use record::{duration_ns, record};
pub use show::{ConnectionShown, EndpointShown, LimitsShown, Shown, SubflowShown, show};
pub use watch::{Told, watch};
pub use words::Words;

use anabranch_netlink::{mptcp::Token, rtnetlink::Rtnetlink};

use crate::DeviceError;

/// The names of interfaces by their numbers.
#[derive(Clone, Debug, Default)]
pub struct Interfaces(Vec<(u32, String)>);

impl Interfaces {
    /// Those that there are now.
    ///
    /// # Errors
    /// [`DeviceError::Netlink`].
    pub fn read() -> Result<Self, DeviceError> {
        let links = Rtnetlink::open()?.links()?;
        Ok(Self(links.into_iter().map(|link| (link.index, link.name)).collect()))
    }

    /// The name of one, or its number if it is not known.
    pub fn name(&self, number: u32) -> String {
        let found = self.0.iter().find(|(other, _)| *other == number);
        found.map_or_else(|| number.to_string(), |(_, name)| name.clone())
    }

    /// The number of one.
    ///
    /// # Errors
    /// [`DeviceError::Input`] with the nearest name.
    pub fn number(&self, name: &str) -> Result<u32, DeviceError> {
        if let Some((number, _)) = self.0.iter().find(|(_, other)| other == name) {
            return Ok(*number);
        }
        let names = self.0.iter().map(|(_, name)| name.as_str());
        let nearest = nearest(name, names).map(|nearest| format!("; the nearest name is `{nearest}`"));
        Err(DeviceError::Input(format!("there is no interface `{name}`{}", nearest.unwrap_or_default())))
    }
}

/// Reads a token in hexadecimal digits, as `path show`, `ss -M` and `ip mptcp monitor` show it.
///
/// # Errors
/// What is expected.
pub fn token(text: &str) -> Result<Token, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let number = u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'));
    number
        .map(Token)
        .ok_or_else(|| "expected up to eight hexadecimal digits, as `path show` prints".to_owned())
}

/// The candidate that is most like a name.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates.min_by_key(|candidate| strsim::damerau_levenshtein(name, candidate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_is_shown() {
        assert_eq!(token("0000beef"), Ok(Token(0xbeef)));
        assert_eq!(token("0xBEEF"), Ok(Token(0xbeef)));
        for wrong in ["", "+1", "123456789", "beer"] {
            assert!(token(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_unknown_interface_is_answered_with_the_nearest_name() {
        let interfaces = Interfaces(vec![(1, "lo".into()), (2, "wlan0".into()), (3, "wwan0".into())]);
        assert_eq!(interfaces.number("wwan0").unwrap(), 3);
        assert_eq!(interfaces.name(2), "wlan0");
        let error = interfaces.number("wlam0").unwrap_err();
        assert_eq!(error.to_string(), "there is no interface `wlam0`; the nearest name is `wlan0`");
    }
}
