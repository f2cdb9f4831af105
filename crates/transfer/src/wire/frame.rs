//! Frames whose payload is read as a whole.

use anabranch_policy::transfer::{Bitmap, BitmapError, Chunks};

use super::{
    CHUNK_BYTES_MAX, GRAIN_BYTES_MAX, GRAIN_BYTES_MIN, GRAINS_MAX, HASH_BYTES, HEAD_BYTES, Head, Kind, MAGIC,
    Malformed, Reader, TEXT_BYTES_MAX, TOKEN_BYTES, is_file_name,
};

/// A frame other than a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Sender: the first frame of each connection.
    Hello(Hello),
    /// Receiver: the answer to it.
    Welcome(Welcome),
    /// Sender: a file; once on each connection that carries chunks of it, before them.
    Offer(Offer),
    /// Receiver: what it has of a file; the answer to an offer, and to a finish of a file that is not whole.
    Have(Have),
    /// Receiver: this chunk has been written and its hash was right.
    Arrived(Place),
    /// Sender: all of a file has been sent, and has this hash.
    Finish {
        /// The sender's number of it.
        file: u32,
        /// BLAKE3 of all of it.
        hash: [u8; HASH_BYTES],
    },
    /// Receiver: the file has the hash that was told, is on stable storage, and has its name.
    Done(u32),
    /// Either: what has gone wrong.
    Error(Problem),
    /// Either: I am here and have nothing to say. The receiver answers the sender's.
    Alive,
    /// Sender: nothing more comes.
    Bye,
}

/// Who opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Version that it speaks; a receiver that speaks another answers with [`Code::Version`].
    pub version: u16,
    /// Drawn by the sender; the same on all connections of a transfer.
    pub session: [u8; 16],
    /// What a one-time token proves with.
    pub token: Option<[u8; TOKEN_BYTES]>,
}

/// Who accepts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Version that both speak.
    pub version: u16,
    /// Most connections of one sender.
    pub connections: u16,
}

/// A file that a sender has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The sender's number of it.
    pub file: u32,
    /// Its length in bytes.
    pub size_bytes: u64,
    /// When it was changed: seconds since 1970.
    pub modified_s: i64,
    /// And nanoseconds.
    pub modified_ns: u32,
    /// Chunks begin at multiples of this, and end there or at the end of the file. A power of two.
    pub grain_bytes: u32,
    /// What it is called: see [`is_file_name`].
    pub name: Vec<u8>,
}

impl Offer {
    /// How the file is cut into grains.
    pub fn grains(&self) -> Chunks {
        Chunks::new(self.size_bytes, u64::from(self.grain_bytes))
    }

    /// The grains that a chunk is made of; none if it does not begin and end where grains do.
    pub fn grains_of(&self, place: Place) -> Option<std::ops::Range<u64>> {
        let grain_bytes = u64::from(self.grain_bytes);
        let end = place.offset.checked_add(u64::from(place.bytes))?;
        let is_aligned = place.offset.is_multiple_of(grain_bytes)
            && (end.is_multiple_of(grain_bytes) || end == self.size_bytes);
        (is_aligned && place.bytes > 0 && end <= self.size_bytes)
            .then(|| place.offset / grain_bytes..end.div_ceil(grain_bytes))
    }
}

/// What a receiver has of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Have {
    /// The sender's number of the file.
    pub file: u32,
    /// How much that is; the map is empty unless it is a part.
    pub held: Held,
    /// Bit `i % 8` of byte `i / 8` is set if grain `i` is there. Empty if none is.
    pub map: Vec<u8>,
}

/// How much of a file a receiver has, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Held {
    /// The grains of the map, or nothing.
    Part = 0,
    /// All of it, under its name.
    Whole = 1,
    /// A file of its name and length: a finish tells whether it is the same.
    Alike = 2,
}

impl Held {
    const ALL: [Self; 3] = [Self::Part, Self::Whole, Self::Alike];
}

impl Have {
    /// The answer that tells a map.
    pub fn of(file: u32, map: &Bitmap) -> Self {
        let bytes = if map.set_count() == 0 { Vec::new() } else { map.as_bytes().to_vec() };
        Self { file, held: Held::Part, map: bytes }
    }

    /// The map of a file of so many grains.
    ///
    /// # Errors
    /// If it is that of another file.
    pub fn bitmap(&self, grains: u64) -> Result<Bitmap, BitmapError> {
        if self.map.is_empty() { Ok(Bitmap::new(grains)) } else { Bitmap::from_bytes(grains, &self.map) }
    }
}

/// Where a chunk lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The sender's number of the file.
    pub file: u32,
    /// Its first byte in the file.
    pub offset: u64,
    /// How many bytes it has.
    pub bytes: u32,
}

/// What has gone wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What kind of thing.
    pub code: Code,
    /// With which file; none: with the connection, which ends.
    pub file: Option<u32>,
    /// For people: one line.
    pub text: String,
}

impl Problem {
    /// A problem whose text is cut to what a frame holds, without control characters.
    pub fn new(code: Code, file: Option<u32>, text: &str) -> Self {
        let mut text: String = text.chars().map(|sign| if sign.is_control() { ' ' } else { sign }).collect();
        let mut end = text.len().min(TEXT_BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        Self { code, file, text }
    }
}

/// Kinds of problems, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Code {
    /// The other end speaks another version.
    Version = 1,
    /// The receiver does not let this sender in.
    NotTrusted = 2,
    /// Too many connections.
    Busy = 3,
    /// The name is not one of a file, or is another's.
    Name = 4,
    /// The file is larger than the receiver takes.
    TooLarge = 5,
    /// There is no room for it.
    DiskFull = 6,
    /// The receiver could not write or read.
    Storage = 7,
    /// The whole has not the hash that was told; the receiver has dropped it.
    WrongHash = 8,
    /// The sender's file is not any more what it offered.
    Changed = 9,
    /// The other end does not keep to the protocol.
    Protocol = 10,
    /// This end was told to stop.
    Stopped = 11,
}

impl Code {
    const ALL: [Self; 11] = [
        Self::Version,
        Self::NotTrusted,
        Self::Busy,
        Self::Name,
        Self::TooLarge,
        Self::DiskFull,
        Self::Storage,
        Self::WrongHash,
        Self::Changed,
        Self::Protocol,
        Self::Stopped,
    ];
}

/// Stands for "no file" in a problem.
const NO_FILE: u32 = u32::MAX;

impl Frame {
    fn kind(&self) -> Kind {
        match self {
            Self::Hello(_) => Kind::Hello,
            Self::Welcome(_) => Kind::Welcome,
            Self::Offer(_) => Kind::Offer,
            Self::Have(_) => Kind::Have,
            Self::Arrived(_) => Kind::Arrived,
            Self::Finish { .. } => Kind::Finish,
            Self::Done(_) => Kind::Done,
            Self::Error(_) => Kind::Error,
            Self::Alive => Kind::Alive,
            Self::Bye => Kind::Bye,
        }
    }

    /// The frame as bytes, head included.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEAD_BYTES];
        let mut put = |part: &[u8]| bytes.extend_from_slice(part);
        match self {
            Self::Hello(hello) => {
                put(&MAGIC);
                put(&hello.version.to_be_bytes());
                put(&hello.session);
                put(hello.token.as_ref().map_or(&[], |token| token.as_slice()));
            }
            Self::Welcome(welcome) => {
                put(&welcome.version.to_be_bytes());
                put(&welcome.connections.to_be_bytes());
            }
            Self::Offer(offer) => {
                put(&offer.file.to_be_bytes());
                put(&offer.size_bytes.to_be_bytes());
                put(&offer.modified_s.to_be_bytes());
                put(&offer.modified_ns.to_be_bytes());
                put(&offer.grain_bytes.to_be_bytes());
                put(&offer.name);
            }
            Self::Have(have) => {
                put(&have.file.to_be_bytes());
                put(&[have.held as u8]);
                put(&have.map);
            }
            Self::Arrived(place) => {
                put(&place.file.to_be_bytes());
                put(&place.offset.to_be_bytes());
                put(&place.bytes.to_be_bytes());
            }
            Self::Finish { file, hash } => {
                put(&file.to_be_bytes());
                put(hash);
            }
            Self::Done(file) => put(&file.to_be_bytes()),
            Self::Error(problem) => {
                put(&(problem.code as u16).to_be_bytes());
                put(&problem.file.unwrap_or(NO_FILE).to_be_bytes());
                put(problem.text.as_bytes());
            }
            Self::Alive | Self::Bye => {}
        }
        let length = bytes.len() - HEAD_BYTES;
        bytes[..HEAD_BYTES].copy_from_slice(&Head::Whole { kind: self.kind(), length }.encode());
        bytes
    }

    /// Reads a payload, whose kind and length are from its head.
    ///
    /// # Errors
    /// If it is not a payload of that kind.
    ///
    /// # Panics
    /// If `kind` is [`Kind::Chunk`].
    pub fn decode(kind: Kind, payload: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(payload);
        let frame = match kind {
            Kind::Hello => Self::Hello(hello(&mut reader)?),
            Kind::Welcome => Self::Welcome(Welcome { version: reader.u16()?, connections: reader.u16()? }),
            Kind::Offer => Self::Offer(offer(&mut reader)?),
            Kind::Have => Self::Have(have(&mut reader)?),
            Kind::Chunk => panic!("chunks are read in pieces"),
            Kind::Arrived => Self::Arrived(arrived(&mut reader)?),
            Kind::Finish => Self::Finish { file: reader.u32()?, hash: reader.array()? },
            Kind::Done => Self::Done(reader.u32()?),
            Kind::Error => Self::Error(problem(&mut reader)?),
            Kind::Alive => Self::Alive,
            Kind::Bye => Self::Bye,
        };
        reader.end()?;
        Ok(frame)
    }
}

fn hello(reader: &mut Reader<'_>) -> Result<Hello, Malformed> {
    if reader.array::<4>()? != MAGIC {
        return Err(Malformed("it does not begin as a transfer does"));
    }
    let (version, session) = (reader.u16()?, reader.array()?);
    let token = match reader.rest() {
        [] => None,
        rest => Some(rest.try_into().map_err(|_| Malformed("a token has 16 bytes"))?),
    };
    Ok(Hello { version, session, token })
}

fn offer(reader: &mut Reader<'_>) -> Result<Offer, Malformed> {
    let offer = Offer {
        file: reader.u32()?,
        size_bytes: reader.u64()?,
        modified_s: reader.i64()?,
        modified_ns: reader.u32()?,
        grain_bytes: reader.u32()?,
        name: reader.rest().to_vec(),
    };
    let is_grain = offer.grain_bytes.is_power_of_two()
        && (GRAIN_BYTES_MIN..=GRAIN_BYTES_MAX).contains(&offer.grain_bytes);
    if !is_grain {
        return Err(Malformed("no such grain"));
    }
    if offer.grains().count() > GRAINS_MAX {
        return Err(Malformed("a file has too many grains"));
    }
    if offer.file == NO_FILE || offer.modified_ns >= 1_000_000_000 {
        return Err(Malformed("a number of an offer is out of range"));
    }
    if !is_file_name(&offer.name) {
        return Err(Malformed("a file's name is none"));
    }
    Ok(offer)
}

fn have(reader: &mut Reader<'_>) -> Result<Have, Malformed> {
    let file = reader.u32()?;
    let held = reader.u8()?;
    let held = Held::ALL.into_iter().find(|known| *known as u8 == held);
    let held = held.ok_or(Malformed("a file is there, or a part of it, or one like it"))?;
    let map = reader.rest().to_vec();
    if held != Held::Part && !map.is_empty() {
        return Err(Malformed("a whole file has no map"));
    }
    if !map.is_empty() && map.iter().all(|byte| *byte == 0) {
        return Err(Malformed("the map of nothing is empty"));
    }
    Ok(Have { file, held, map })
}

fn arrived(reader: &mut Reader<'_>) -> Result<Place, Malformed> {
    let place = Place { file: reader.u32()?, offset: reader.u64()?, bytes: reader.u32()? };
    if place.bytes == 0 || place.bytes > CHUNK_BYTES_MAX {
        return Err(Malformed("no chunk has that length"));
    }
    Ok(place)
}

fn problem(reader: &mut Reader<'_>) -> Result<Problem, Malformed> {
    let (code, file) = (reader.u16()?, reader.u32()?);
    let code = Code::ALL.into_iter().find(|known| *known as u16 == code);
    let code = code.ok_or(Malformed("an error of unknown kind"))?;
    let text = std::str::from_utf8(reader.rest()).map_err(|_| Malformed("an error's text is not UTF-8"))?;
    if text.chars().any(char::is_control) {
        return Err(Malformed("an error's text has control characters"));
    }
    Ok(Problem { code, file: (file != NO_FILE).then_some(file), text: text.to_owned() })
}
