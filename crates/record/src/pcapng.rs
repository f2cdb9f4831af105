//! The blocks of pcapng (draft-ietf-opsawg-pcapng), as many as a capture needs.
//!
//! Written here because it is little: four kinds of blocks, each a type, its length, a body that is padded to
//! four bytes, and its length again. Numbers are little-endian on every machine, so that equal captures are equal files.

use std::io;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

/// Packets that begin with an IPv4 or IPv6 header.
const LINKTYPE_RAW: u16 = 101;

/// Options of the blocks above.
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;

/// No block that is written here is longer; one that claims to be is damaged.
const LONGEST_BLOCK: u32 = 1 << 20;

/// Type, two lengths, and of a packet interface, time in two halves, kept and real length.
const PACKET_OVERHEAD: usize = 32;

/// What an interface has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets, those left out included.
    pub seen: u64,
    /// Packets that are not in the file.
    pub left_out: u64,
}

/// Appends a block whose body `fill` writes.
fn block(to: &mut Vec<u8>, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let begin = to.len();
    to.extend(kind.to_le_bytes());
    to.extend([0; 4]);
    fill(to);
    pad(to, begin);
    let length = ((to.len() + 4 - begin) as u32).to_le_bytes();
    to.extend(length);
    to[begin + 4..begin + 8].copy_from_slice(&length);
}

/// Fills up to a multiple of four bytes, counted from `begin`.
fn pad(to: &mut Vec<u8>, begin: usize) {
    let length = (to.len() - begin).next_multiple_of(4);
    to.resize(begin + length, 0);
}

fn option(to: &mut Vec<u8>, code: u16, value: &[u8]) {
    let begin = to.len();
    to.extend(code.to_le_bytes());
    to.extend((value.len() as u16).to_le_bytes());
    to.extend(value);
    pad(to, begin);
}

fn end_of_options(to: &mut Vec<u8>) {
    option(to, 0, &[]);
}

/// Upper half, then lower half.
fn time(to: &mut Vec<u8>, at_ns: u64) {
    to.extend(((at_ns >> 32) as u32).to_le_bytes());
    to.extend((at_ns as u32).to_le_bytes());
}

/// The beginning of a file: version 1.0, of unknown length; `application` is the program that writes it.
pub fn begin_section(to: &mut Vec<u8>, application: &str) {
    block(to, SECTION_HEADER, |to| {
        to.extend(0x1a2b_3c4d_u32.to_le_bytes());
        to.extend(1_u16.to_le_bytes());
        to.extend(0_u16.to_le_bytes());
        to.extend((-1_i64).to_le_bytes());
        option(to, SHB_USERAPPL, application.as_bytes());
        end_of_options(to);
    });
}

/// An interface; they are numbered from 0 in the order of their descriptions. Without bound, `snaplen` is 0.
pub fn describe_interface(to: &mut Vec<u8>, name: &str, snaplen: u32) {
    block(to, INTERFACE_DESCRIPTION, |to| {
        to.extend(LINKTYPE_RAW.to_le_bytes());
        to.extend([0; 2]);
        to.extend(snaplen.to_le_bytes());
        option(to, IF_NAME, name.as_bytes());
        // A power of ten: nanoseconds.
        option(to, IF_TSRESOL, &[9]);
        end_of_options(to);
    });
}

/// Size of the block of a packet of which so much is kept.
pub fn packet_size(kept: usize) -> usize {
    PACKET_OVERHEAD + kept.next_multiple_of(4)
}

/// A packet of which `kept` are the first of `bytes` bytes.
pub fn packet(to: &mut Vec<u8>, interface: u32, at_ns: u64, kept: &[u8], bytes: u32) {
    block(to, ENHANCED_PACKET, |to| {
        to.extend(interface.to_le_bytes());
        time(to, at_ns);
        to.extend((kept.len() as u32).to_le_bytes());
        to.extend(bytes.to_le_bytes());
        to.extend(kept);
    });
}

/// What an interface has seen up to a time.
pub fn interface_statistics(to: &mut Vec<u8>, interface: u32, at_ns: u64, counts: &Counts) {
    block(to, INTERFACE_STATISTICS, |to| {
        to.extend(interface.to_le_bytes());
        time(to, at_ns);
        option(to, ISB_IFRECV, &counts.seen.to_le_bytes());
        option(to, ISB_IFDROP, &counts.left_out.to_le_bytes());
        end_of_options(to);
    });
}

/// A block, as far as this crate looks into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// An interface.
    Interface { name: String },
    /// A packet of an interface; `kept` are the first of its `bytes` bytes.
    Packet { interface: u32, at_ns: u64, bytes: u32, kept: Vec<u8> },
    /// What interfaces have seen.
    Statistics,
}

/// The next block of a file that this module has written; `None` at its end.
pub(crate) fn next(from: &mut impl io::Read) -> io::Result<Option<Read>> {
    let mut head = [0; 8];
    match from.read(&mut head[..1])? {
        0 => return Ok(None),
        _ => from.read_exact(&mut head[1..])?,
    }
    let (kind, length) = (word(&head, 0)?, word(&head, 4)?);
    if length < 12 || length % 4 != 0 || length > LONGEST_BLOCK {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a block of {length} bytes")));
    }
    let mut body = vec![0; length as usize - 8];
    from.read_exact(&mut body)?;
    match kind {
        SECTION_HEADER => next(from),
        INTERFACE_DESCRIPTION => Ok(Some(Read::Interface { name: name_of(&body)? })),
        ENHANCED_PACKET => {
            let kept = word(&body, 12)? as usize;
            let kept = body.get(20..20 + kept).ok_or(io::ErrorKind::UnexpectedEof)?.to_vec();
            let at_ns = u64::from(word(&body, 4)?) << 32 | u64::from(word(&body, 8)?);
            Ok(Some(Read::Packet { interface: word(&body, 0)?, at_ns, bytes: word(&body, 16)?, kept }))
        }
        INTERFACE_STATISTICS => Ok(Some(Read::Statistics)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, format!("a block of kind {kind}"))),
    }
}

/// The name among the options of an interface, which comes first.
fn name_of(body: &[u8]) -> io::Result<String> {
    let (code, length) = ((word(body, 8)? & 0xffff) as u16, (word(body, 8)? >> 16) as usize);
    let name = body.get(12..12 + length).filter(|_| code == IF_NAME).ok_or(io::ErrorKind::InvalidData)?;
    Ok(String::from_utf8_lossy(name).into_owned())
}

fn word(bytes: &[u8], at: usize) -> io::Result<u32> {
    let word = bytes.get(at..at + 4).ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(u32::from_le_bytes(word.try_into().expect("four bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits into blocks: type and body. Both lengths must be the same.
    fn blocks(mut bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let word =
            |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let mut blocks = Vec::new();
        while !bytes.is_empty() {
            let length = word(bytes, 4) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(word(bytes, length - 4) as usize, length);
            blocks.push((word(bytes, 0), bytes[8..length - 4].to_vec()));
            bytes = &bytes[length..];
        }
        blocks
    }

    #[test]
    fn blocks_have_their_length_at_both_ends() {
        let mut bytes = Vec::new();
        begin_section(&mut bytes, "test");
        describe_interface(&mut bytes, "a to b", 128);
        interface_statistics(&mut bytes, 0, 1, &Counts { seen: 3, left_out: 1 });
        let kinds: Vec<u32> = blocks(&bytes).iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [SECTION_HEADER, INTERFACE_DESCRIPTION, INTERFACE_STATISTICS]);
    }

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = Vec::new();
        begin_section(&mut bytes, "test");
        describe_interface(&mut bytes, "a to b", 128);
        packet(&mut bytes, 0, (3 << 32) | 5, &[0xaa; 7], 1500);
        interface_statistics(&mut bytes, 0, 1, &Counts::default());
        let mut rest = bytes.as_slice();
        let mut blocks = Vec::new();
        while let Some(block) = next(&mut rest).expect("it is whole") {
            blocks.push(block);
        }
        let packet = Read::Packet { interface: 0, at_ns: (3 << 32) | 5, bytes: 1500, kept: vec![0xaa; 7] };
        assert_eq!(blocks, [Read::Interface { name: "a to b".to_owned() }, packet, Read::Statistics]);
        for cut in 1..bytes.len() {
            let mut rest = &bytes[..cut];
            while let Ok(Some(_)) = next(&mut rest) {}
        }
    }

    #[test]
    fn a_packet_takes_the_room_that_was_told() {
        for kept in 0..9 {
            let mut bytes = Vec::new();
            packet(&mut bytes, 7, (3 << 32) | 5, &[0xaa; 9][..kept], 1500);
            assert_eq!(bytes.len(), packet_size(kept));
            let (kind, body) = blocks(&bytes).remove(0);
            assert_eq!(kind, ENHANCED_PACKET);
            let expected = [7_u32, 3, 5, kept as u32, 1500].map(u32::to_le_bytes).concat();
            assert_eq!(body[..20], expected);
            assert_eq!(body[20..20 + kept], [0xaa; 9][..kept]);
        }
    }
}
