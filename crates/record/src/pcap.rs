//! Classic pcap: what one host sees of a run's `packets.pcapng`, for programs that read nothing newer.
//!
//! A capture of a run shows every packet where it enters the network and where it leaves it. A program that follows
//! TCP takes the second for a retransmission of the first; so does Wireshark. Here the packets are as `tcpdump` has
//! them at a host: those it sends as they enter the network, those it receives as they leave it.
//!
//! Left out: nanoseconds (times are cut to microseconds, which every reader knows). Ethernet headers with made-up
//! addresses stand before the packets, because mptcptrace and tcptrace look for them unless they are told otherwise.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Write as _},
    path::Path,
};

use crate::{Error, RunFolder, pcapng};

/// Name of a capture in the run folder.
const PACKETS: &str = "packets.pcapng";

/// A file with microseconds, written by a machine of this byte order.
const MAGIC: u32 = 0xa1b2_c3d4;
const VERSION: [u16; 2] = [2, 4];
const SNAPLEN: u32 = 262_144;
const LINKTYPE_ETHERNET: u32 = 1;
/// Locally administered addresses: the host's, and of whatever is behind its links.
const HERE: [u8; 6] = [2, 0, 0, 0, 0, 1];
const THERE: [u8; 6] = [2, 0, 0, 0, 0, 2];
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERNET_BYTES: u32 = 14;

/// What has been written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The host whose view it is.
    pub host: String,
    /// How many packets.
    pub packets: u64,
}

/// Writes what `host` sees of the packets of a run into `to`; unless given, it is the one that sends on the first path,
/// which is the opener of the first connection.
///
/// # Errors
/// [`Error::Export`] if the run has no packets or no such host, [`Error::Damaged`] if they cannot be read, and
/// [`Error::Write`].
pub fn export_packets(run: &RunFolder, host: Option<&str>, to: &Path) -> Result<Exported, Error> {
    let export = |reason: String| Error::Export { path: run.path.clone(), reason };
    if !run.manifest.files.contains_key(PACKETS) {
        return Err(export(format!("it has no {PACKETS}; make it again with --capture")));
    }
    let damaged = |error: io::Error| Error::damaged(&run.path, format!("{PACKETS}: {error}"));
    let mut reader = BufReader::new(File::open(run.path.join(PACKETS)).map_err(damaged)?);
    let mut points = Vec::new();
    let mut block = pcapng::next(&mut reader).map_err(damaged)?;
    while let Some(pcapng::Read::Interface { name }) = &block {
        let point = Point::parse(name);
        points.push(point.ok_or_else(|| damaged(invalid(format!("an interface is named {name:?}"))))?);
        block = pcapng::next(&mut reader).map_err(damaged)?;
    }
    let host = match (host, points.first()) {
        (Some(host), _) => host.to_owned(),
        (None, Some(first)) => first.host.clone(),
        (None, None) => return Err(export("nothing is sent in it".to_owned())),
    };
    if !points.iter().any(|point| point.host == host) {
        let mut hosts: Vec<&str> = points.iter().map(|point| point.host.as_str()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        return Err(export(format!(
            "no packets begin or end at {host:?}; expected one of {}",
            hosts.join(", ")
        )));
    }
    let unwritable = |error: io::Error| Error::write(to, error);
    let mut file = BufWriter::new(File::create(to).map_err(unwritable)?);
    file.write_all(&file_header()).map_err(unwritable)?;
    let mut packets = 0;
    while let Some(read) = block {
        if let pcapng::Read::Packet { interface, at_ns, bytes, kept } = read {
            let point = points.get(interface as usize);
            let point =
                point.ok_or_else(|| damaged(invalid(format!("there is no interface {interface}"))))?;
            if point.host == host {
                let record = record(at_ns, bytes, &kept, point.leaves_host);
                file.write_all(&record).map_err(unwritable)?;
                packets += 1;
            }
        }
        block = pcapng::next(&mut reader).map_err(damaged)?;
    }
    file.flush().map_err(unwritable)?;
    Ok(Exported { host, packets })
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Where an interface of a capture is: the host next to it, and whether packets there leave that host.
#[derive(Debug, PartialEq, Eq)]
struct Point {
    host: String,
    leaves_host: bool,
}

impl Point {
    /// Both engines name their interfaces `<host>/<link> to <host>/<link>, <more> (in)` or `(out)`.
    fn parse(name: &str) -> Option<Self> {
        let (place, leaves_host) = match name.strip_suffix(" (in)") {
            Some(rest) => (rest, true),
            None => (name.strip_suffix(" (out)")?.split_once(" to ")?.1, false),
        };
        let (host, _) = place.split_once('/')?;
        Some(Self { host: host.to_owned(), leaves_host })
    }
}

fn file_header() -> Vec<u8> {
    let mut to = MAGIC.to_le_bytes().to_vec();
    to.extend(VERSION.into_iter().flat_map(u16::to_le_bytes));
    to.extend([0; 8]);
    to.extend(SNAPLEN.to_le_bytes());
    to.extend(LINKTYPE_ETHERNET.to_le_bytes());
    to
}

fn record(at_ns: u64, bytes: u32, kept: &[u8], leaves_host: bool) -> Vec<u8> {
    let at_us = at_ns / 1000;
    let lengths = [kept.len() as u32 + ETHERNET_BYTES, bytes + ETHERNET_BYTES];
    let mut to = Vec::with_capacity(30 + kept.len());
    for word in [(at_us / 1_000_000) as u32, (at_us % 1_000_000) as u32, lengths[0], lengths[1]] {
        to.extend(word.to_le_bytes());
    }
    let [from, dest] = if leaves_host { [HERE, THERE] } else { [THERE, HERE] };
    to.extend(dest);
    to.extend(from);
    let is_ipv6 = kept.first().is_some_and(|byte| byte >> 4 == 6);
    to.extend(if is_ipv6 { ETHERTYPE_IPV6 } else { ETHERTYPE_IPV4 }.to_be_bytes());
    to.extend(kept);
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_next_to_an_interface_is_the_one_that_sends_before_and_receives_behind_the_network() {
        let path = "S/access to D/wire, 10.64.0.1 to 10.64.1.1, up/0";
        let host = |name: &str| Point::parse(name).map(|point| (point.host, point.leaves_host));
        assert_eq!(host(&format!("{path} (in)")), Some(("S".to_owned(), true)));
        assert_eq!(host(&format!("{path} (out)")), Some(("D".to_owned(), false)));
        assert_eq!(host(path), None);
        assert_eq!(host("eth0 (in)"), None);
    }

    #[test]
    fn times_are_cut_to_microseconds_and_lengths_count_the_ethernet_header() {
        let record = record(3_000_001_999, 1500, &[0x45, 0], true);
        let words: Vec<u32> = record[..16]
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")))
            .collect();
        assert_eq!(words, [3, 1, 16, 1514]);
        assert_eq!(record[28..], [0x08, 0x00, 0x45, 0]);
    }
}
