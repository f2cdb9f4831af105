//! Endpoints and subflows as ip-mptcp(8) writes them: `10.0.2.1 dev wlan0 id 2 subflow backup`.

use std::net::{IpAddr, SocketAddr};

use anabranch_netlink::mptcp::{Endpoint, EndpointFlags};

use super::{Interfaces, nearest};
use crate::DeviceError;

/// Words that stand before a value.
const KEYS: [&str; 4] = ["dev", "id", "port", "to"];

/// Words for the flags of an endpoint; those with `no` take one away.
const FLAGS: [(&str, EndpointFlags); 5] = [
    ("signal", EndpointFlags::SIGNAL),
    ("subflow", EndpointFlags::SUBFLOW),
    ("backup", EndpointFlags::BACKUP),
    ("fullmesh", EndpointFlags::FULLMESH),
    ("laminar", EndpointFlags::LAMINAR),
];
const NO_FLAGS: [(&str, EndpointFlags); 2] =
    [("nobackup", EndpointFlags::BACKUP), ("nofullmesh", EndpointFlags::FULLMESH)];

/// What was said of an endpoint or a subflow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The local address.
    pub address: Option<IpAddr>,
    /// Name of the interface.
    pub interface: Option<String>,
    /// Identifier of the local address.
    pub id: Option<u8>,
    /// The port that is announced with it.
    pub port: Option<u16>,
    /// The peer's end, with port 0 if none was said.
    pub to: Option<SocketAddr>,
    /// Flags that were said.
    pub flags: EndpointFlags,
    /// Flags that were taken away.
    pub no_flags: EndpointFlags,
}

impl Words {
    /// Reads them.
    ///
    /// # Errors
    /// [`DeviceError::Input`] with what is expected, and the nearest word.
    pub fn read(words: &[String]) -> Result<Self, DeviceError> {
        let mut read = Self::default();
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            if KEYS.contains(&word) {
                let value = words.next();
                read.take(word, value.ok_or_else(|| input(format!("`{word}` needs a value")))?)?;
            } else if let Some((_, flag)) = FLAGS.iter().find(|(name, _)| *name == word) {
                read.flags = read.flags | *flag;
            } else if let Some((_, flag)) = NO_FLAGS.iter().find(|(name, _)| *name == word) {
                read.no_flags = read.no_flags | *flag;
            } else if let (Ok(address), None) = (word.parse(), read.address) {
                read.address = Some(address);
            } else {
                let known = FLAGS.iter().chain(&NO_FLAGS).map(|(name, _)| *name).chain(KEYS);
                let nearest = nearest(word, known).expect("there are words");
                return Err(input(format!(
                    "`{word}` is no address and no word of ip-mptcp(8); the nearest word is `{nearest}`"
                )));
            }
        }
        if let Some((name, _)) =
            NO_FLAGS.iter().find(|(_, flag)| read.flags.contains(*flag) && read.no_flags.contains(*flag))
        {
            return Err(input(format!("`{name}` contradicts another word")));
        }
        Ok(read)
    }

    fn take(&mut self, key: &str, value: &str) -> Result<(), DeviceError> {
        let expected = |what: &str| input(format!("`{key} {value}`: expected {what}"));
        match key {
            "dev" => self.interface = Some(value.to_owned()),
            "id" => self.id = Some(value.parse().map_err(|_| expected("a number from 0 to 255"))?),
            "port" => self.port = Some(value.parse().map_err(|_| expected("a number from 0 to 65535"))?),
            _ => {
                let end = value.parse().or_else(|_| value.parse().map(|address| SocketAddr::new(address, 0)));
                self.to = Some(end.map_err(|_| expected("ADDRESS or ADDRESS:PORT"))?);
            }
        }
        Ok(())
    }

    /// As an endpoint; the address must have been said.
    ///
    /// # Errors
    /// [`DeviceError::Input`].
    pub fn endpoint(&self, interfaces: &Interfaces) -> Result<Endpoint, DeviceError> {
        let address = self.address.ok_or_else(|| input("expected a local address".to_owned()))?;
        let interface = self.interface.as_deref().map(|name| interfaces.number(name)).transpose()?;
        Ok(Endpoint { id: self.id.unwrap_or(0), address, port: self.port, interface, flags: self.flags })
    }
}

fn input(text: String) -> DeviceError {
    DeviceError::Input(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Words, DeviceError> {
        Words::read(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn an_endpoint_is_said_as_in_ip_mptcp() {
        let words = read("10.0.2.1 dev wlan0 id 2 subflow backup").unwrap();
        let interfaces = Interfaces(vec![(7, "wlan0".into())]);
        let endpoint = words.endpoint(&interfaces).unwrap();
        assert_eq!(endpoint.to_string(), "10.0.2.1 id 2 subflow backup dev 7");
        assert_eq!(read("2001:db8::1 signal port 5001").unwrap().port, Some(5001));
    }

    #[test]
    fn the_peers_end_may_lack_its_port() {
        assert_eq!(read("to 10.0.0.1:80").unwrap().to, Some("10.0.0.1:80".parse().unwrap()));
        assert_eq!(read("to 10.0.0.1").unwrap().to, Some("10.0.0.1:0".parse().unwrap()));
        assert_eq!(read("to [2001:db8::1]:80").unwrap().to, Some("[2001:db8::1]:80".parse().unwrap()));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_is_expected() {
        let said = |line| read(line).unwrap_err().to_string();
        assert_eq!(
            said("10.0.2.1 bakup"),
            "`bakup` is no address and no word of ip-mptcp(8); the nearest word is `backup`"
        );
        assert_eq!(said("10.0.2.1 id 300"), "`id 300`: expected a number from 0 to 255");
        assert_eq!(said("10.0.2.1 dev"), "`dev` needs a value");
        assert_eq!(said("id 2 backup nobackup"), "`nobackup` contradicts another word");
        assert!(said("10.0.2.1 10.0.2.2").starts_with("`10.0.2.2` is no address"));
    }
}
