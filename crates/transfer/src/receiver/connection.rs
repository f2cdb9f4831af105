//! One connection of a sender.

use std::{
    collections::BTreeMap,
    net::{SocketAddr, TcpStream},
    os::fd::AsFd as _,
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{self, Receiver},
    },
    time::{Duration, Instant},
};

use nix::sys::eventfd::{EfdFlags, EventFd};

use super::{
    Count, Event, Shared,
    folder::Refusal,
    incoming::{Finish, Incoming, Writing},
    publisher::{Finished, Published, Reply},
    shown,
    store::Offered,
};
use crate::{
    channel::{Channel, ChannelError, Incoming as Said},
    clock,
    path::Transport,
    security::Fingerprint,
    sockets::transport_of,
    tree::{ChunkHasher, Hashed},
    wire::{
        CHUNK_HEAD_BYTES, Code, Frame, HASH_BYTES, Have, Held, Malformed, Offer, Place, Problem, VERSION,
        Welcome, chunk_place,
    },
};

/// Files that a connection may have offered and not finished.
const FILES_MAX: usize = 256;
/// Files of a connection in all: its sender opens another one for more.
const NUMBERS_MAX: usize = 1 << 20;
/// Answers to chunks wait for others as long as there is something to read, but not longer than so much data has come. With fewer
/// answers, Multipath TCP of Linux 6.18 often tells the sender too late that there is room again (a quarter of a second).
const UNANSWERED_BYTES_MAX: u64 = 64 << 10;
/// A connection that has said nothing for so long waits for its files.
const IDLE: Duration = Duration::from_millis(1);
/// How often a sender is told that the work goes on.
const ALIVE: Duration = Duration::from_secs(2);

/// How a connection ends that does not end with the sender's farewell.
enum End {
    /// Something is wrong with it; the sender cannot be told.
    Channel(ChannelError),
    /// The sender is told why.
    Told(Problem),
}

impl From<ChannelError> for End {
    fn from(error: ChannelError) -> Self {
        match error {
            ChannelError::Malformed(Malformed(what)) => Self::protocol(what),
            error => Self::Channel(error),
        }
    }
}

impl End {
    fn protocol(what: &str) -> Self {
        Self::Told(Problem::new(Code::Protocol, None, what))
    }
}

/// What a number of a file stands for on this connection.
enum Slot {
    /// It is being received.
    Open(Arc<Incoming>),
    /// There is one of its name and length.
    Alike(Offer),
    /// It was there when it was offered, or is by now.
    There,
    /// It is not taken; what comes of it is thrown away.
    Refused,
}

struct Session<'a> {
    shared: &'a Shared,
    channel: Channel,
    who: Option<Fingerprint>,
    files: BTreeMap<u32, Slot>,
    /// How many files with the right hash have no name yet.
    unpublished: usize,
    /// Where those are told that have.
    published: Receiver<Published>,
    /// Who tells them.
    reply: Reply,
    /// Bytes of chunks whose answers are held.
    unanswered_bytes: u64,
    /// When the sender was last told something.
    said_at: Instant,
    piece: Vec<u8>,
}

/// Serves a connection to its end.
pub(super) fn serve(shared: &Shared, socket: TcpStream, peer: SocketAddr, stranger: Count<'_>) {
    let limits = &shared.receiver.limits;
    let _ = socket.set_nodelay(true);
    let tls = shared.receiver.security.as_ref().map(|(tls, _)| tls.connection());
    let channel = Channel::new(socket, tls, shared.receiver.piece_bytes, shared.stop.clone(), limits.silence);
    let event = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
    let (Ok(mut channel), Ok(event)) = (channel, event) else { return };
    channel.set_deadline(Some(clock::now() + limits.introduction));
    let (who, _known) = match introduce(shared, &mut channel) {
        Ok(known) => known,
        Err(end) => {
            let why = tell(&mut channel, end);
            channel.close();
            return shared.tell(Event::Closed { peer, why: Some(why), was_let_in: false });
        }
    };
    drop(stranger);
    channel.set_deadline(None);
    let transport = transport_of(channel.socket(), Transport::Mptcp);
    let _presence = shared.sockets.enter(channel.socket());
    shared.tell(Event::Connected { peer, who, transport });
    let piece = vec![0; shared.receiver.piece_bytes];
    let (outcomes, published) = mpsc::channel();
    let reply = Reply { outcomes, event: Arc::new(event) };
    let mut session = Session {
        shared,
        channel,
        who,
        files: BTreeMap::new(),
        unpublished: 0,
        unanswered_bytes: 0,
        published,
        reply,
        said_at: clock::now(),
        piece,
    };
    let why = session.run().err().map(|end| tell(&mut session.channel, end));
    session.see_published();
    for slot in session.files.values() {
        if let Slot::Open(file) = slot {
            shared.store.leave(file);
        }
    }
    shared.store.exit(who);
    session.channel.close();
    shared.tell(Event::Closed { peer, why, was_let_in: true });
}

/// Tells the sender why the connection ends, if that can be done. The reason, for people.
fn tell(channel: &mut Channel, end: End) -> String {
    match end {
        End::Channel(error) => error.to_string(),
        End::Told(problem) => {
            channel.set_deadline(Some(clock::now() + Duration::from_secs(1)));
            // It may not listen; it finds out by itself then.
            let _ = channel.send_frame(&Frame::Error(problem.clone()));
            problem.text
        }
    }
}

/// Who is it, and is it let in?
fn introduce<'a>(shared: &'a Shared, channel: &mut Channel) -> Result<(Option<Fingerprint>, Count<'a>), End> {
    let who = channel.handshake()?;
    let Said::Frame(Frame::Hello(hello)) = channel.receive_frame()? else {
        return Err(End::protocol("a connection begins with HELLO"));
    };
    if hello.version != VERSION {
        let text = format!("this receiver speaks version {VERSION} of the protocol");
        return Err(End::Told(Problem::new(Code::Version, None, &text)));
    }
    if let (Some((_, admission)), Some(who)) = (&shared.receiver.security, who)
        && !admission.lets_in(who, hello.token.as_ref())
    {
        let text = format!("the receiver does not trust {who}");
        return Err(End::Told(Problem::new(Code::NotTrusted, None, &text)));
    }
    let limits = &shared.receiver.limits;
    let busy = || End::Told(Problem::new(Code::Busy, None, "too many connections"));
    let known = Count::new(&shared.known, limits.all_connections).ok_or_else(busy)?;
    if !shared.store.enter(who, limits.connections) {
        return Err(busy());
    }
    let welcome = Frame::Welcome(Welcome { version: VERSION, connections: limits.connections });
    if let Err(error) = channel.send_frame(&welcome) {
        shared.store.exit(who);
        return Err(error.into());
    }
    Ok((who, known))
}

impl Session<'_> {
    fn run(&mut self) -> Result<(), End> {
        loop {
            while let Ok(published) = self.published.try_recv() {
                self.tell_published(published)?;
            }
            if (self.channel.has_held() || self.unpublished > 0)
                && !self.channel.has_more(Duration::ZERO, None)?
            {
                self.channel.send_held()?;
                if self.unpublished > 0 && !self.wait_for_more()? {
                    continue;
                }
            }
            match self.channel.receive_frame()? {
                Said::Chunk(bytes) => self.chunk(bytes)?,
                Said::Frame(Frame::Offer(offer)) => self.offer(&offer)?,
                Said::Frame(Frame::Finish { file, hash }) => self.finish(file, hash)?,
                Said::Frame(Frame::Alive) => self.channel.send_frame(&Frame::Alive)?,
                Said::Frame(Frame::Bye) => return self.part(),
                Said::Frame(Frame::Error(problem)) => match problem.file {
                    Some(file) => self.withdrawn(file),
                    None => return Err(End::Channel(ChannelError::Closed)),
                },
                Said::Frame(_) => return Err(End::protocol("that is for a receiver to say")),
            }
        }
    }

    /// There is nothing to read while files are published: waits for either. Whether there is.
    fn wait_for_more(&mut self) -> Result<bool, End> {
        for wait in [IDLE, ALIVE] {
            if self.channel.has_more(wait, Some(self.reply.event.as_fd()))? {
                return Ok(true);
            }
            // Set back before looking: what is told after that sets it again.
            if self.reply.event.read().is_ok() {
                return Ok(false);
            }
            self.shared.publisher.hurry();
        }
        if clock::now().duration_since(self.said_at) >= ALIVE {
            self.channel.send_frame(&Frame::Alive)?;
            self.said_at = clock::now();
        }
        Ok(false)
    }

    fn offer(&mut self, offer: &Offer) -> Result<(), End> {
        let file = offer.file;
        if matches!(self.files.get(&file), Some(Slot::Open(_) | Slot::Alike(_) | Slot::There)) {
            return Err(End::protocol("a number was given to two files"));
        }
        if self.files.len() >= NUMBERS_MAX
            || self.files.values().filter(|slot| matches!(slot, Slot::Open(_) | Slot::Alike(_))).count()
                >= FILES_MAX
        {
            return Err(End::protocol("too many files are offered and not finished"));
        }
        if offer.size_bytes > self.shared.receiver.limits.file_bytes {
            let text =
                format!("files of more than {} bytes are not taken", self.shared.receiver.limits.file_bytes);
            return self.refuse(file, &offer.name, Refusal::new(Code::TooLarge, text));
        }
        let receiver = &self.shared.receiver;
        let outcome = self.shared.store.offer(&receiver.folder, receiver.overwrite, self.who, offer);
        self.answer(offer, outcome)
    }

    /// Says what an offer has come to.
    fn answer(&mut self, offer: &Offer, outcome: Result<Offered, Refusal>) -> Result<(), End> {
        let file = offer.file;
        let (slot, have) = match outcome {
            Err(refusal) => return self.refuse(file, &offer.name, refusal),
            Ok(Offered::There) => (Slot::There, Have { file, held: Held::Whole, map: Vec::new() }),
            Ok(Offered::Alike) => {
                (Slot::Alike(offer.clone()), Have { file, held: Held::Alike, map: Vec::new() })
            }
            Ok(Offered::Wanted(incoming)) => {
                let (name, size_bytes) = (shown(&offer.name), offer.size_bytes);
                let arrived_bytes = incoming.arrived_bytes();
                self.shared.tell(Event::Began { name, size_bytes, arrived_bytes });
                let have = incoming.have(file);
                (Slot::Open(incoming), have)
            }
        };
        self.files.insert(file, slot);
        Ok(self.channel.hold_frame(&Frame::Have(have))?)
    }

    /// Tells the sender that a file is not taken, or not any more.
    fn refuse(&mut self, file: u32, name: &[u8], why: Refusal) -> Result<(), End> {
        if let Some(Slot::Open(incoming)) = self.files.insert(file, Slot::Refused) {
            self.shared.store.leave(&incoming);
        }
        self.channel.send_frame(&Frame::Error(Problem::new(why.code, Some(file), &why.text)))?;
        self.shared.tell(Event::Refused { name: shown(name), why });
        Ok(())
    }

    fn chunk(&mut self, bytes: u32) -> Result<(), End> {
        let mut head = [0; CHUNK_HEAD_BYTES];
        self.channel.receive(&mut head)?;
        let place = chunk_place(bytes, head);
        let incoming = match self.files.get(&place.file) {
            Some(Slot::Open(incoming)) => Some(incoming.clone()),
            Some(Slot::Alike(_) | Slot::There | Slot::Refused) => None,
            None => return Err(End::protocol("a chunk of a file that was not offered")),
        };
        let grains = match &incoming {
            Some(incoming) => incoming.offer().grains_of(place),
            None => Some(0..0),
        };
        let grains = grains.ok_or_else(|| End::protocol("a chunk does not lie in its file as grains do"))?;
        let writing = incoming.as_ref().and_then(|incoming| {
            let hasher = ChunkHasher::new(incoming.offer().grains(), grains.clone());
            incoming.begin(grains).map(|writing| (writing, hasher))
        });
        let outcome = self.take_in(place, writing)?;
        let Some(incoming) = incoming else { return Ok(()) };
        match outcome {
            Ok(is_due) => {
                if is_due {
                    self.shared.syncer.ask(incoming);
                }
                let frame = Frame::Arrived(place);
                self.unanswered_bytes += u64::from(place.bytes);
                match self.unanswered_bytes < UNANSWERED_BYTES_MAX {
                    true => self.channel.hold_frame(&frame)?,
                    false => {
                        self.unanswered_bytes = 0;
                        self.channel.send_frame(&frame)?;
                    }
                }
                Ok(())
            }
            Err(refusal) => self.refuse(place.file, &incoming.offer().name.clone(), refusal),
        }
    }

    /// Reads a chunk's data to its end and writes it, piece by piece, unless it is not wanted. Whether the journal is due.
    fn take_in(
        &mut self,
        place: Place,
        mut wanted: Option<(Writing<'_>, ChunkHasher)>,
    ) -> Result<Result<bool, Refusal>, End> {
        let mut outcome = Ok(());
        let (mut at, mut left) = (place.offset, place.bytes as usize);
        while left > 0 {
            // Pieces are filled, so that there are few writes; the data is there soon or never.
            let want = left.min(self.piece.len());
            self.channel.receive(&mut self.piece[..want])?;
            let piece = &self.piece[..want];
            if let Some((writing, hasher)) = &mut wanted {
                hasher.update(piece);
                if outcome.is_ok() {
                    outcome = writing.write(piece, at);
                }
            }
            at += want as u64;
            left -= want;
            self.shared.data_bytes.fetch_add(want as u64, Ordering::Relaxed);
            if let Some(pace) = &self.shared.pace {
                pace.wait_for(want);
            }
        }
        let mut hash = [0; HASH_BYTES];
        self.channel.receive(&mut hash)?;
        let Some((writing, hasher)) = wanted else { return Ok(Ok(false)) };
        let Hashed { check, values } = hasher.finish();
        if check != hash {
            return Err(End::protocol("a chunk has another hash than was sent with it"));
        }
        Ok(outcome.map(|()| writing.arrived(values)))
    }

    fn finish(&mut self, file: u32, hash: [u8; HASH_BYTES]) -> Result<(), End> {
        let mut tick = || self.channel.send_frame(&Frame::Alive);
        let incoming = match self.files.get(&file) {
            Some(Slot::Open(incoming)) => incoming.clone(),
            Some(Slot::Alike(offer)) => {
                let offer = offer.clone();
                let receiver = &self.shared.receiver;
                let (folder, overwrite) = (&receiver.folder, receiver.overwrite);
                let told = (&offer, hash);
                let outcome = self.shared.store.settle(folder, overwrite, self.who, told, &mut tick)?;
                return match outcome {
                    Ok(Offered::There) => {
                        self.files.insert(file, Slot::There);
                        Ok(self.channel.send_frame(&Frame::Done(file))?)
                    }
                    outcome => self.answer(&offer, outcome),
                };
            }
            Some(Slot::There) => return Ok(self.channel.send_frame(&Frame::Done(file))?),
            Some(Slot::Refused) => return Ok(()),
            None => return Err(End::protocol("a file is finished that was not offered")),
        };
        match incoming.finish(hash, &mut tick)? {
            Ok(Finish::Verified) => {
                self.unpublished += 1;
                let reply = self.reply.clone();
                self.shared.publisher.ask(Finished { file: incoming, number: file, reply });
            }
            Ok(Finish::Incomplete) => self.channel.send_frame(&Frame::Have(incoming.have(file)))?,
            Err(refusal) => {
                if refusal.code == Code::WrongHash {
                    incoming.discard();
                    self.shared.store.forget(&incoming);
                }
                self.refuse(file, &incoming.offer().name.clone(), refusal)?;
            }
        }
        Ok(())
    }

    /// A file has its name for good, or not.
    fn tell_published(&mut self, (file, incoming, outcome): Published) -> Result<(), End> {
        self.unpublished -= 1;
        self.said_at = clock::now();
        if let Err(refusal) = outcome {
            return self.refuse(file, &incoming.offer().name.clone(), refusal);
        }
        self.note_published(file, &incoming);
        Ok(self.channel.hold_frame(&Frame::Done(file))?)
    }

    fn note_published(&mut self, file: u32, incoming: &Arc<Incoming>) {
        self.shared.store.forget(incoming);
        self.files.insert(file, Slot::There);
        let offer = incoming.offer();
        self.shared.tell(Event::Received { name: shown(&offer.name), size_bytes: offer.size_bytes });
    }

    /// The sender has said farewell: tells it what is still to be told.
    fn part(&mut self) -> Result<(), End> {
        self.shared.publisher.hurry();
        while self.unpublished > 0 {
            match self.published.recv_timeout(ALIVE) {
                Ok(published) => self.tell_published(published)?,
                Err(_) => self.channel.send_frame(&Frame::Alive)?,
            }
        }
        Ok(self.channel.send_held()?)
    }

    /// Waits until no file of this connection is being published any more, which nobody is told of.
    fn see_published(&mut self) {
        self.shared.publisher.hurry();
        while self.unpublished > 0 {
            let (file, incoming, outcome) = self.published.recv().expect("this end can tell, too");
            self.unpublished -= 1;
            if outcome.is_ok() {
                self.note_published(file, &incoming);
            }
        }
    }

    /// The sender says that its file is not any more what it was.
    fn withdrawn(&mut self, file: u32) {
        if let Some(Slot::Open(incoming)) = self.files.insert(file, Slot::Refused) {
            incoming.discard();
            self.shared.store.forget(&incoming);
        }
    }
}
