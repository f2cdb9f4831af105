//! What a packet without payload says about subflows and addresses (RFC 8684), packed into its data sequence number.
//!
//! Left out: keys, HMACs and the addresses themselves (a signal names the subflow that is meant), and options that are too
//! long to stand beside SACK blocks: here they may, on a packet that is longer by them.

use anabranch_scenario::model::IpVersion;

use crate::packet::{Packet, flags};

/// A signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// RST with MP_TCPRST (section 3.6): the subflow is closed.
    Reset,
    /// MP_PRIO (section 3.3.8): the subflow is a backup from now on, or is not.
    Priority {
        /// The bit B.
        backup: bool,
    },
    /// ADD_ADDR (section 3.4.1): the address that this subflow leads to.
    AddAddress(u32),
    /// ADD_ADDR with the echo bit: it has been heard.
    AddAddressEcho(u32),
    /// REMOVE_ADDR (section 3.4.2): the address of this subflow is gone.
    RemoveAddress(u32),
}

impl Signal {
    /// The signal of a packet.
    pub(crate) fn of(packet: &Packet) -> Option<Self> {
        if !packet.has(flags::SIGNAL) {
            return None;
        }
        let subflow = packet.data_seq >> 8;
        Some(match packet.data_seq & 0xff {
            0 => Signal::Reset,
            1 => Signal::Priority { backup: subflow != 0 },
            2 => Signal::AddAddress(subflow),
            3 => Signal::AddAddressEcho(subflow),
            4 => Signal::RemoveAddress(subflow),
            other => unreachable!("no signal has the number {other}"),
        })
    }

    /// As it stands in a packet.
    pub(crate) fn code(self) -> u32 {
        match self {
            Signal::Reset => 0,
            Signal::Priority { backup } => 1 | u32::from(backup) << 8,
            Signal::AddAddress(subflow) => 2 | subflow << 8,
            Signal::AddAddressEcho(subflow) => 3 | subflow << 8,
            Signal::RemoveAddress(subflow) => 4 | subflow << 8,
        }
    }

    /// Length of its option, padded to whole words: ADD_ADDR has 4 B, an address and, unless it is an echo, 8 B of HMAC.
    pub(crate) fn option_bytes(self, ip: IpVersion) -> u16 {
        let address = match ip {
            IpVersion::V4 => 4,
            IpVersion::V6 => 16,
        };
        match self {
            Signal::Reset | Signal::Priority { .. } | Signal::RemoveAddress(_) => 4,
            Signal::AddAddress(_) => 12 + address,
            Signal::AddAddressEcho(_) => 4 + address,
        }
    }

    /// One word, for traces.
    pub(crate) fn word(self) -> String {
        match self {
            Signal::Reset => "RST".to_owned(),
            Signal::Priority { backup: true } => "MP_PRIO=backup".to_owned(),
            Signal::Priority { backup: false } => "MP_PRIO=regular".to_owned(),
            Signal::AddAddress(subflow) => format!("ADD_ADDR={subflow}"),
            Signal::AddAddressEcho(subflow) => format!("ADD_ADDR_ECHO={subflow}"),
            Signal::RemoveAddress(subflow) => format!("REMOVE_ADDR={subflow}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_survives_its_packet() {
        let all = [
            Signal::Reset,
            Signal::Priority { backup: true },
            Signal::Priority { backup: false },
            Signal::AddAddress(31),
            Signal::AddAddressEcho(7),
            Signal::RemoveAddress(1),
        ];
        for signal in all {
            let packet = Packet { flags: flags::SIGNAL, data_seq: signal.code(), ..Packet::default() };
            assert_eq!(Signal::of(&packet), Some(signal));
        }
        assert_eq!(Signal::of(&Packet::default()), None);
    }

    #[test]
    fn rfc_8684_3_4_1_an_announcement_has_an_hmac_and_its_echo_has_none() {
        let bytes = |signal: Signal| (signal.option_bytes(IpVersion::V4), signal.option_bytes(IpVersion::V6));
        assert_eq!(bytes(Signal::AddAddress(1)), (16, 28));
        assert_eq!(bytes(Signal::AddAddressEcho(1)), (8, 20));
    }
}
