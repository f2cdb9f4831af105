//! One path's worker: opens its connection, again and again if it must, and sends what it claims.

use std::{
    collections::BTreeSet,
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use anabranch_netlink::mptcp::Kept;
use socket2::SockRef;

use super::{
    Sender,
    ahead::{Ahead, Claimed, Read},
    answers::{Answers, Unanswered},
    outcome::Standing,
    plan::{Job, Plan},
    rate::Rate,
    source::Source,
    trouble::{Broken, Trouble},
};
use crate::{
    ChannelError, Stop,
    backup::Backups,
    channel::{Channel, Incoming},
    clock,
    path::{Opened, Transport},
    sockets::{Sockets, transport_of},
    tree::ChunkHasher,
    wire::{Code, Frame, Have, Held, Hello, Malformed, Offer, Place, Problem, VERSION, chunk_prefix},
};

/// What answers that have not come may take at most, in bytes: the inbox holds them all.
const ANSWERS_BYTES_MAX: usize = 7 << 10;
/// A map of more grains than that is waited for before anything else is sent: the inbox need not hold it.
const MAP_UNASKED_GRAINS: u64 = 512;
/// After so long without anything to say, one says that.
const ALIVE: Duration = Duration::from_secs(5);
/// First and longest pause between attempts to connect.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(8));

/// One path, and what its worker shares with the others.
pub(super) struct Worker<'a> {
    pub(super) sender: &'a Sender,
    pub(super) plan: &'a Plan,
    pub(super) number: usize,
    pub(super) session: [u8; 16],
    /// Everything ends early.
    pub(super) stop: &'a Stop,
    /// Nothing is left to do: whoever is still connecting need not go on, while others say farewell.
    pub(super) over: &'a Stop,
    pub(super) backups: Option<&'a Backups<'a>>,
    pub(super) sockets: &'a Sockets,
}

impl Worker<'_> {
    /// Works until there is nothing left to do, or it is told to stop.
    pub(super) fn work(&self) {
        let mut pause = PAUSES.0;
        while !self.stop.is_raised() && !self.plan.has_ended() {
            let began_at = clock::now();
            let trouble = match self.connect() {
                Ok((mut channel, kept)) => {
                    channel.set_stop(self.stop.clone());
                    let _presence = self.sockets.enter(channel.socket());
                    let _backed =
                        self.backups.map(|backups| backups.enter(self.number, channel.socket(), kept));
                    let mut connection = Connection::new(self, channel);
                    let outcome = connection.run();
                    self.plan.lost(self.number);
                    if outcome.is_ok() {
                        return connection.channel.close();
                    }
                    outcome.err()
                }
                Err(trouble) => Some(trouble),
            };
            match trouble.expect("what ends well has returned") {
                Trouble::Lasting(why) => {
                    self.plan.stand(self.number, Standing::Down(why.clone()), None);
                    return self.plan.retire(self.number, why);
                }
                Trouble::Passing(why) => self.plan.stand(self.number, Standing::Down(why), None),
            }
            if clock::now().duration_since(began_at) > PAUSES.1 {
                pause = PAUSES.0;
            }
            let until = clock::now() + pause;
            while clock::now() < until && !self.stop.is_raised() && !self.plan.has_ended() {
                self.plan.wait(Duration::from_millis(100).min(pause));
            }
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Opens a connection up to the receiver's welcome.
    fn connect(&self) -> Result<(Channel, Option<Kept>), Trouble> {
        let sender = self.sender;
        let (path, patience) = (&sender.paths[self.number], sender.patience);
        let choice = self.backups.and_then(Backups::choice);
        let opened = path.connect(sender.peer, &sender.sockets, choice, patience, self.over);
        let Opened { socket, transport, kept } =
            opened.map_err(|error| Trouble::Passing(error.to_string()))?;
        let tls = sender.security.as_ref().map(|(tls, _)| tls.connection());
        let channel = Channel::new(socket, tls, sender.piece_bytes, self.over.clone(), patience);
        let mut channel = channel.map_err(|error| Trouble::Passing(error.to_string()))?;
        channel.set_deadline(Some(clock::now() + patience));
        channel.handshake()?;
        let token = sender.security.as_ref().and_then(|(_, token)| *token);
        channel.send_frame(&Frame::Hello(Hello { version: VERSION, session: self.session, token }))?;
        match channel.receive_frame()? {
            Incoming::Frame(Frame::Welcome(_)) => {}
            Incoming::Frame(Frame::Error(problem)) => {
                return Err(match problem.code {
                    Code::Busy | Code::Stopped => Trouble::Passing(problem.text),
                    _ => Trouble::Lasting(problem.text),
                });
            }
            _ => return Err(Trouble::Passing("the receiver answered HELLO with something else".to_owned())),
        }
        channel.set_deadline(None);
        let transport = transport_of(channel.socket(), transport);
        self.plan.stand(self.number, Standing::Up, Some(transport));
        Ok((channel, kept))
    }
}

/// A connection that is open.
struct Connection<'a> {
    worker: &'a Worker<'a>,
    plan: &'a Plan,
    channel: Channel,
    offered: BTreeSet<u32>,
    unanswered: Answers,
    rate: Rate,
    /// What the socket was told to hold unsent at most.
    unsent_bytes: Option<u32>,
    heard_at: Instant,
    /// When a frame that wants an answer was sent last.
    asked_at: Instant,
    /// When it was last said that there is nothing to say.
    greeted_at: Instant,
    piece: Vec<u8>,
    /// On a fast path, chunks that are read while others are sent.
    ahead: Option<Ahead>,
}

impl<'a> Connection<'a> {
    fn new(worker: &'a Worker<'a>, channel: Channel) -> Self {
        let now = clock::now();
        Self {
            worker,
            plan: worker.plan,
            channel,
            offered: BTreeSet::new(),
            unanswered: Answers::default(),
            rate: Rate::new(now),
            unsent_bytes: None,
            heard_at: now,
            asked_at: now,
            greeted_at: now,
            piece: vec![0; worker.sender.piece_bytes],
            ahead: None,
        }
    }

    fn run(&mut self) -> Result<(), Trouble> {
        self.bound_unsent();
        loop {
            while self.channel.is_readable(Duration::ZERO)? {
                self.hear()?;
            }
            let under_way_bytes = self.unanswered.data_bytes();
            let is_full = self.unanswered.answer_bytes() >= ANSWERS_BYTES_MAX
                || (under_way_bytes >= self.rate.window_bytes() && under_way_bytes > 0);
            let (has_room, has_claimed) =
                self.ahead.as_ref().map_or((true, false), |ahead| (ahead.has_room(), !ahead.is_empty()));
            // None: what has been claimed ahead.
            let job = match is_full {
                true => Some(Job::Wait),
                false if has_room => {
                    let job = self.plan.next(self.worker.number, |bytes| self.rate.chunk_grains(bytes));
                    (!has_claimed || !matches!(job, Job::Wait)).then_some(job)
                }
                false => None,
            };
            let outcome = match job {
                None => self.send_ahead(),
                Some(Job::Chunk(file, source, grains)) if self.reads_ahead() => {
                    self.claim_ahead(file, source, grains);
                    continue;
                }
                Some(Job::Offer(file, source)) => self.offer(file, &source),
                Some(Job::Whole(file, source, grains)) => self.whole(file, &source, grains),
                Some(Job::Chunk(file, source, grains)) => self.chunk(file, &source, grains),
                Some(Job::Finish(file, source)) => self.finish(file, &source),
                Some(Job::Wait) => {
                    self.wait()?;
                    continue;
                }
                Some(Job::End) => {
                    // It may have fallen back since it began, as long as it had one subflow.
                    if transport_of(self.channel.socket(), Transport::Mptcp) == Transport::FallenBack {
                        self.plan.fell_back(self.worker.number);
                    }
                    return self.part();
                }
            };
            self.asked_at = clock::now();
            outcome?;
        }
    }

    /// Tells the socket how much to hold unsent, if that has changed by a quarter or more. Where the kernel cannot (older ones, for
    /// Multipath TCP), a path claims earlier.
    fn bound_unsent(&mut self) {
        let wanted = self.rate.unsent_bytes();
        if self.unsent_bytes.is_none_or(|set| set.abs_diff(wanted) > set / 4) {
            let _ = SockRef::from(self.channel.socket()).set_tcp_notsent_lowat(wanted);
            self.unsent_bytes = Some(wanted);
        }
    }

    /// Says farewell, and waits until the receiver has heard it, with all that was said before.
    fn part(&mut self) -> Result<(), Trouble> {
        self.channel.send_frame(&Frame::Bye)?;
        self.channel.set_deadline(Some(clock::now() + self.worker.sender.patience));
        while self.hear().is_ok() {}
        Ok(())
    }

    /// There is nothing to send: waits for answers, or for work.
    fn wait(&mut self) -> Result<(), Trouble> {
        self.channel.send_held()?;
        if self.unanswered.is_empty() {
            self.plan.wait(Duration::from_millis(10));
        } else {
            self.channel.is_readable(Duration::from_millis(20))?;
        }
        let now = clock::now();
        if now.duration_since(self.asked_at.max(self.greeted_at)) > ALIVE {
            self.channel.send_frame(&Frame::Alive)?;
            self.greeted_at = now;
        }
        // A receiver that works at something long says so, every two seconds; and it answers a greeting.
        let patience = self.worker.sender.patience;
        let patience = if self.unanswered.is_empty() { patience.max(2 * ALIVE) } else { patience };
        if now.duration_since(self.heard_at.max(self.asked_at)) > patience {
            return Err(ChannelError::Silent(self.worker.sender.patience).into());
        }
        Ok(())
    }

    fn offer(&mut self, file: u32, source: &Source) -> Result<(), Broken> {
        let offer = source.offer(file);
        let grains = offer.grains().count();
        self.channel.hold_frame(&Frame::Offer(offer))?;
        self.offered.insert(file);
        self.unanswered.push(Unanswered::Offer { file, grains });
        if grains > MAP_UNASKED_GRAINS {
            let waits =
                |item: &Unanswered| matches!(item, Unanswered::Offer { file: asked, .. } if *asked == file);
            self.channel.send_held()?;
            while self.unanswered.has(waits) {
                self.hear()?;
            }
        }
        Ok(())
    }

    fn offer_once(&mut self, file: u32, source: &Source) -> Result<(), Broken> {
        if self.offered.contains(&file) { Ok(()) } else { self.offer(file, source) }
    }

    fn chunk(&mut self, file: u32, source: &Arc<Source>, grains: Range<u64>) -> Result<(), Broken> {
        if source.has_changed() {
            return self.withdraw(file);
        }
        self.offer_once(file, source)?;
        self.send_chunk(file, source, grains)
    }

    /// Whether chunks are read while others are sent.
    fn reads_ahead(&mut self) -> bool {
        let is_of_use = self.rate.is_fast() && self.worker.sender.reads_ahead;
        if is_of_use && self.ahead.is_none() {
            // Without the thread it is slower, and that is all.
            self.ahead = Ahead::start().ok();
        }
        is_of_use && self.ahead.is_some()
    }

    fn claim_ahead(&mut self, file: u32, source: Arc<Source>, grains: Range<u64>) {
        let place = place_of(&source.offer(file), &grains);
        let ahead = self.ahead.as_mut().expect("asked for before");
        ahead.push(Claimed { source, place, grains });
    }

    /// Sends the chunk that was claimed first.
    fn send_ahead(&mut self) -> Result<(), Broken> {
        let next = self.ahead.as_mut().and_then(Ahead::next);
        let Some((Claimed { source, place, grains }, read)) = next else { return Ok(()) };
        let Read::Ready(data, hashed) = read else { return self.withdraw(place.file) };
        self.offer_once(place.file, &source)?;
        self.channel.send_parts([&chunk_prefix(place), &data, &hashed.check])?;
        source.note(hashed.values);
        self.ahead.as_mut().expect("it was there before").give_back(data);
        self.unanswered.push(Unanswered::Chunk { place, grains, written: clock::now() });
        Ok(())
    }

    fn send_chunk(&mut self, file: u32, source: &Arc<Source>, grains: Range<u64>) -> Result<(), Broken> {
        let offer = source.offer(file);
        let place = place_of(&offer, &grains);
        let prefix = chunk_prefix(place);
        let mut hasher = ChunkHasher::new(offer.grains(), grains.clone());
        let (mut at, end) = (place.offset, place.offset + u64::from(place.bytes));
        let mut piece = std::mem::take(&mut self.piece);
        let outcome = loop {
            let want = usize::try_from(end - at).unwrap_or(usize::MAX).min(piece.len());
            if source.read(&mut piece[..want], at).is_err() {
                // What was begun cannot be ended: the receiver waits for data that there is not.
                self.plan.changed(file);
                break Err(Broken::Source);
            }
            hasher.update(&piece[..want]);
            let before: &[u8] = if at == place.offset { &prefix } else { &[] };
            at += want as u64;
            if at == end {
                let hashed = hasher.finish();
                let sent = self.channel.send_parts([before, &piece[..want], &hashed.check]);
                break sent.map(|()| source.note(hashed.values)).map_err(Broken::from);
            }
            if let Err(error) = self.channel.send_parts([before, &piece[..want], &[]]) {
                break Err(error.into());
            }
        };
        self.piece = piece;
        outcome?;
        self.unanswered.push(Unanswered::Chunk { place, grains, written: clock::now() });
        Ok(())
    }

    /// Offers a small file, sends it and finishes it, without waiting for an answer in between. Whether it has changed is looked at once,
    /// at the end.
    fn whole(&mut self, file: u32, source: &Arc<Source>, grains: Range<u64>) -> Result<(), Broken> {
        self.offer_once(file, source)?;
        if !grains.is_empty() {
            self.send_chunk(file, source, grains)?;
        }
        self.finish(file, source)
    }

    fn finish(&mut self, file: u32, source: &Source) -> Result<(), Broken> {
        let (plan, stop, channel) = (self.plan, self.worker.stop, &mut self.channel);
        let mut tick = || {
            if stop.is_raised() {
                return Err(ChannelError::Stopped);
            }
            plan.moved();
            channel.send_frame(&Frame::Alive)
        };
        // What has been sent is known already; what the receiver had before is read now.
        let hash = source.complete_hash(&mut tick)?;
        let Some(hash) = hash.ok().filter(|_| !source.has_changed()) else { return self.withdraw(file) };
        self.offer_once(file, source)?;
        self.channel.hold_frame(&Frame::Finish { file, hash })?;
        let grains = source.offer(file).grains().count();
        self.unanswered.push(Unanswered::Finish { file, grains });
        Ok(())
    }

    /// The file has changed: what the receiver has of it is of no use.
    fn withdraw(&mut self, file: u32) -> Result<(), Broken> {
        if self.plan.changed(file) && self.offered.contains(&file) {
            let problem = Problem::new(Code::Changed, Some(file), "the file has changed");
            self.channel.send_frame(&Frame::Error(problem))?;
        }
        Ok(())
    }

    /// Reads one frame.
    fn hear(&mut self) -> Result<(), Broken> {
        let said = self.channel.receive_frame()?;
        self.heard_at = clock::now();
        match said {
            Incoming::Frame(Frame::Have(have)) => self.told_what_is_there(&have),
            Incoming::Frame(Frame::Arrived(place)) => self.told_of_arrival(place),
            Incoming::Frame(Frame::Done(file)) => {
                self.unanswered
                    .take(|item| matches!(item, Unanswered::Finish { file: waits, .. } if *waits == file));
                self.plan.done(file);
                Ok(())
            }
            Incoming::Frame(Frame::Alive) => {
                self.plan.moved();
                Ok(())
            }
            Incoming::Frame(Frame::Error(problem)) => match problem.file {
                None => Err(Broken::Told(problem.text)),
                Some(file) => {
                    self.unanswered.forget(file, |_| true);
                    self.forget_ahead(file);
                    self.plan.refused(file, &problem);
                    Ok(())
                }
            },
            _ => Err(malformed("that is for a sender to say")),
        }
    }

    fn told_what_is_there(&mut self, have: &Have) -> Result<(), Broken> {
        let answered = self.unanswered.take(|item| item.file() == have.file && !item.is_chunk());
        let answered = answered.ok_or_else(|| malformed("an answer to nothing"))?;
        let was_finished = matches!(answered, Unanswered::Finish { .. });
        if have.held != Held::Part {
            self.forget_ahead(have.file);
        }
        match have.held {
            Held::Part => {}
            Held::Whole => self.unanswered.forget(have.file, |_| true),
            // What of it is under way is thrown away without a word.
            Held::Alike => self.unanswered.forget(have.file, Unanswered::is_chunk),
        }
        let outcome = self.plan.have(self.worker.number, have, was_finished);
        outcome.map_err(|error| ChannelError::from(error).into())
    }

    /// What is claimed of a file is not sent: nobody would answer.
    fn forget_ahead(&mut self, file: u32) {
        if let Some(ahead) = &mut self.ahead {
            ahead.forget(file);
        }
    }

    fn told_of_arrival(&mut self, arrived: Place) -> Result<(), Broken> {
        let answered =
            self.unanswered.take(|item| matches!(item, Unanswered::Chunk { place, .. } if *place == arrived));
        let Some(Unanswered::Chunk { grains, written, .. }) = answered else {
            return Err(malformed("a chunk has arrived that was not sent"));
        };
        let bytes = u64::from(arrived.bytes);
        self.rate.arrived(bytes, written, self.heard_at);
        self.bound_unsent();
        self.plan.arrived(self.worker.number, arrived.file, grains, bytes);
        Ok(())
    }
}

fn malformed(what: &'static str) -> Broken {
    ChannelError::from(Malformed(what)).into()
}

/// Where a run of grains lies.
fn place_of(offer: &Offer, grains: &Range<u64>) -> Place {
    let grain_bytes = u64::from(offer.grain_bytes);
    let offset = grains.start * grain_bytes;
    let end = (grains.end * grain_bytes).min(offer.size_bytes);
    Place { file: offer.file, offset, bytes: u32::try_from(end - offset).expect("chunks are limited") }
}
