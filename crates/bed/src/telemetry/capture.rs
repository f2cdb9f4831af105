//! Packets of the emulated network in a pcapng file, which Wireshark and tshark read.
//!
//! Each path has two interfaces in the file, where packets enter it and where they leave it; a packet that is
//! at one and not at the other was lost. Times are those of `CLOCK_REALTIME`, in nanoseconds. Packets begin
//! with their IP header and are cut to a length that holds the headers, unless more is asked for.
//!
//! The emulator's thread only copies bytes into memory. It never waits for the disk: if the memory that is
//! set aside is full, packets are left out, and their number is reported and written into the file.

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::mpsc::{self, Receiver, Sender},
    thread::{self, JoinHandle},
};

use anabranch_record::pcapng::{self, Counts};

use crate::{BedError, emulator::Tap, plan::Plan};

/// Size of the pieces in which packets go to the disk.
const CHUNK_BYTES: usize = 1 << 16;
/// How many of them there are: 16 MiB, which is the traffic of a second at 500 Mbit/s, cut to headers.
const CHUNKS: usize = 256;

/// What is captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How much of a packet is kept, in bytes; `None`: all of it.
    pub snaplen: Option<u32>,
    /// Where packets are looked at.
    pub points: Points,
}

impl Default for Options {
    /// Headers, at both ends. 128 bytes hold those of IPv6 with the longest TCP header, which is 60 bytes.
    fn default() -> Self {
        Self { snaplen: Some(128), points: Points::Both }
    }
}

/// Where packets are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Points {
    /// As they enter the emulated network, before anything is lost.
    Entering,
    /// As they leave it.
    Leaving,
    /// Both, at different interfaces of the file.
    Both,
}

/// What has become of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// Packets in the file.
    pub packets: u64,
    /// Packets that are not, because the disk was too slow.
    pub left_out: u64,
}

enum Message {
    Chunk(Vec<u8>),
    End { statistics: Vec<u8>, captured: Captured },
}

/// A file that is being written.
#[derive(Debug)]
pub struct Capture {
    path: PathBuf,
    writer: JoinHandle<io::Result<Captured>>,
}

impl Capture {
    /// Begins a file with interfaces for every path, named by `names`, and returns what the emulator is to be
    /// given besides.
    ///
    /// # Errors
    /// [`BedError::System`] if the file cannot be made.
    pub fn start(path: &Path, names: &[String], options: Options) -> Result<(CaptureTap, Self), BedError> {
        let (full, to_write) = mpsc::channel();
        let (written, spare) = mpsc::channel();
        for _ in 0..CHUNKS {
            written.send(Vec::with_capacity(CHUNK_BYTES)).expect("the other end is here");
        }
        let mut head = Vec::new();
        pcapng::begin_section(&mut head, concat!("anabranch-bed ", env!("CARGO_PKG_VERSION")));
        let points: &[&str] = match options.points {
            Points::Entering => &["in"],
            Points::Leaving => &["out"],
            Points::Both => &["in", "out"],
        };
        for name in names {
            for point in points {
                let name = format!("{name} ({point})");
                pcapng::describe_interface(&mut head, &name, options.snaplen.unwrap_or(0));
            }
        }
        let start = || {
            let mut file = File::create(path)?;
            file.write_all(&head)?;
            let write = move || write(file, &to_write, &written);
            thread::Builder::new().name("capture".to_owned()).spawn(write)
        };
        let writer = start().map_err(BedError::system(format!("writing the capture {}", path.display())))?;
        let counts = vec![Counts::default(); names.len() * points.len()];
        let tap = CaptureTap { options, full, spare, chunk: Vec::new(), counts, latest_ns: 0 };
        Ok((tap, Self { path: path.to_owned(), writer }))
    }

    /// Waits until everything is written. The tap must have been dropped, which the emulator does as it stops:
    /// as long as it is there, there may be more to come.
    ///
    /// # Errors
    /// [`BedError::System`] if the file could not be written; its beginning is there nevertheless.
    ///
    /// # Panics
    /// If the writing thread has.
    pub fn finish(self) -> Result<Captured, BedError> {
        let result = self.writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        result.map_err(BedError::system(format!("writing the capture {}", self.path.display())))
    }
}

/// The writing thread.
fn write(mut file: File, full: &Receiver<Message>, spare: &Sender<Vec<u8>>) -> io::Result<Captured> {
    for message in full {
        match message {
            Message::Chunk(mut chunk) => {
                file.write_all(&chunk)?;
                chunk.clear();
                // The tap may have gone already.
                let _ = spare.send(chunk);
            }
            Message::End { statistics, captured } => {
                file.write_all(&statistics)?;
                return Ok(captured);
            }
        }
    }
    unreachable!("a tap says when it ends")
}

/// What the emulator shows its packets to.
#[derive(Debug)]
pub struct CaptureTap {
    options: Options,
    full: Sender<Message>,
    spare: Receiver<Vec<u8>>,
    chunk: Vec<u8>,
    /// By interface.
    counts: Vec<Counts>,
    latest_ns: u64,
}

impl CaptureTap {
    /// Packets left out so far, because the disk was too slow.
    pub fn left_out(&self) -> u64 {
        self.counts.iter().map(|counts| counts.left_out).sum()
    }

    /// Makes room for a block: whether there is any.
    fn has_room(&mut self, bytes: usize) -> bool {
        if !self.chunk.is_empty() && self.chunk.len() + bytes <= CHUNK_BYTES {
            return true;
        }
        let Ok(empty) = self.spare.try_recv() else { return false };
        let full = std::mem::replace(&mut self.chunk, empty);
        // After an error of the disk nobody listens any more; `Capture::finish` tells of it.
        full.is_empty() || self.full.send(Message::Chunk(full)).is_ok()
    }
}

impl Tap for CaptureTap {
    fn packet(&mut self, route: usize, leaves: bool, at_ns: u64, bytes: &[u8]) {
        let interface = match (self.options.points, leaves) {
            (Points::Both, _) => 2 * route + usize::from(leaves),
            (Points::Entering, false) | (Points::Leaving, true) => route,
            _ => return,
        };
        let kept = self.options.snaplen.map_or(bytes.len(), |snaplen| bytes.len().min(snaplen as usize));
        self.latest_ns = self.latest_ns.max(at_ns);
        let has_room = self.has_room(pcapng::packet_size(kept));
        let counts = &mut self.counts[interface];
        counts.seen += 1;
        if has_room {
            pcapng::packet(&mut self.chunk, interface as u32, at_ns, &bytes[..kept], bytes.len() as u32);
        } else {
            counts.left_out += 1;
        }
    }
}

impl Drop for CaptureTap {
    fn drop(&mut self) {
        let mut statistics = Vec::new();
        for (interface, counts) in self.counts.iter().enumerate() {
            pcapng::interface_statistics(&mut statistics, interface as u32, self.latest_ns, counts);
        }
        let left_out = self.left_out();
        let seen: u64 = self.counts.iter().map(|counts| counts.seen).sum();
        let captured = Captured { packets: seen - left_out, left_out };
        // If nobody listens, `Capture::finish` has the reason.
        let _ = self.full.send(Message::Chunk(std::mem::take(&mut self.chunk)));
        let _ = self.full.send(Message::End { statistics, captured });
    }
}

/// Names for the paths of a plan: where packets come in and go out, and their addresses.
pub fn path_names(plan: &Plan) -> Vec<String> {
    let end = |(host, interface): (usize, usize)| {
        let host = &plan.hosts[host];
        format!("{}/{}", host.name, host.interfaces[interface].link)
    };
    let name = |path: &crate::plan::Path| {
        format!("{} to {}, {} to {}", end(path.entry), end(path.exit), path.from, path.to)
    };
    plan.paths.iter().map(name).collect()
}
