//! One path's worker: opens its connection, again and again if it must, and sends what it claims.

use std::{
    collections::{BTreeSet, VecDeque},
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    Sender,
    outcome::Standing,
    plan::{Job, Plan},
    rate::Rate,
    source::{Broken, Source},
};
use crate::{
    ChannelError, Stop,
    channel::{Channel, Incoming},
    clock,
    path::{Path, PathError},
    wire::{Code, Frame, Have, Hello, Malformed, Offer, Place, Problem, VERSION, chunk_prefix},
};

/// Frames that wait for an answer at most: what answers take stays within the smallest of buffers.
const UNANSWERED_MAX: usize = 64;
/// A map of more grains than that is waited for before anything else is sent: the inbox need not hold it.
const MAP_UNASKED_GRAINS: u64 = 512;
/// After so long without anything to say, one says that.
const ALIVE: Duration = Duration::from_secs(5);
/// First and longest pause between attempts to connect.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(8));

/// What waits for an answer.
enum Unanswered {
    Offer(u32),
    Chunk { place: Place, grains: Range<u64> },
    Finish(u32),
}

/// Why an attempt failed.
enum Trouble {
    /// Another attempt may fare better.
    Passing(String),
    /// None will.
    Lasting(String),
}

impl From<ChannelError> for Trouble {
    fn from(error: ChannelError) -> Self {
        match error {
            ChannelError::Tls(error) => Self::Lasting(explain(&error)),
            error => Self::Passing(error.to_string()),
        }
    }
}

impl From<Broken> for Trouble {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Channel(error) => error.into(),
            Broken::Told(why) => Self::Passing(why),
            Broken::Source => Self::Passing("a file has changed in the middle of a chunk".to_owned()),
        }
    }
}

/// What rustls says, for people: whose key is not known to whom.
fn explain(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(_) => {
            "the receiver has another key than the one that was given with --peer or in the token".to_owned()
        }
        rustls::Error::AlertReceived(_) => {
            format!(
                "the receiver does not trust this key ({error}): `anabranchd receive --trust` names whom it does"
            )
        }
        error => format!("TLS: {error}"),
    }
}

/// Works until there is nothing left to do, or it is told to stop. `over` is raised when nothing is left: whoever is still connecting then
/// need not go on, while others say farewell.
pub(super) fn work(sender: &Sender, plan: &Plan, worker: usize, session: [u8; 16], [stop, over]: [&Stop; 2]) {
    let path = &sender.paths[worker];
    let mut pause = PAUSES.0;
    while !stop.is_raised() && !plan.has_ended() {
        let began_at = clock::now();
        let trouble = match connect(sender, path, session, plan, worker, over) {
            Ok(mut channel) => {
                channel.set_stop(stop.clone());
                let mut connection = Connection::new(sender, plan, worker, channel);
                let outcome = connection.run();
                plan.lost(worker);
                match outcome {
                    Ok(()) => {
                        connection.channel.close();
                        return;
                    }
                    Err(trouble) => trouble,
                }
            }
            Err(trouble) => trouble,
        };
        match trouble {
            Trouble::Lasting(why) => {
                plan.stand(worker, Standing::Down(why.clone()), None);
                plan.retire(worker, why);
                return;
            }
            Trouble::Passing(why) => plan.stand(worker, Standing::Down(why), None),
        }
        if clock::now().duration_since(began_at) > PAUSES.1 {
            pause = PAUSES.0;
        }
        let until = clock::now() + pause;
        while clock::now() < until && !stop.is_raised() && !plan.has_ended() {
            plan.wait(Duration::from_millis(100).min(pause));
        }
        pause = (pause * 2).min(PAUSES.1);
    }
}

/// Opens a connection up to the receiver's welcome.
fn connect(
    sender: &Sender,
    path: &Path,
    session: [u8; 16],
    plan: &Plan,
    worker: usize,
    stop: &Stop,
) -> Result<Channel, Trouble> {
    let patience = sender.patience;
    let (socket, transport) =
        path.connect(sender.peer, &sender.sockets, patience, stop).map_err(|error| match error {
            PathError::Stopped => Trouble::Passing("stopped".to_owned()),
            error => Trouble::Passing(error.to_string()),
        })?;
    let tls = sender.security.as_ref().map(|(tls, _)| tls.connection());
    let channel = Channel::new(socket, tls, sender.piece_bytes, stop.clone(), patience);
    let mut channel = channel.map_err(|error| Trouble::Passing(error.to_string()))?;
    channel.set_deadline(Some(clock::now() + patience));
    channel.handshake()?;
    let token = sender.security.as_ref().and_then(|(_, token)| *token);
    channel.send_frame(&Frame::Hello(Hello { version: VERSION, session, token }))?;
    match channel.receive_frame()? {
        Incoming::Frame(Frame::Welcome(_)) => {}
        Incoming::Frame(Frame::Error(problem)) => {
            let is_passing = matches!(problem.code, Code::Busy | Code::Stopped);
            return Err(if is_passing {
                Trouble::Passing(problem.text)
            } else {
                Trouble::Lasting(problem.text)
            });
        }
        _ => return Err(Trouble::Passing("the receiver answered HELLO with something else".to_owned())),
    }
    channel.set_deadline(None);
    plan.stand(worker, Standing::Up, Some(transport));
    Ok(channel)
}

/// A connection that is open.
struct Connection<'a> {
    sender: &'a Sender,
    plan: &'a Plan,
    worker: usize,
    channel: Channel,
    offered: BTreeSet<u32>,
    unanswered: VecDeque<Unanswered>,
    /// Bytes of chunks that wait for an answer.
    under_way_bytes: u64,
    rate: Rate,
    heard_at: Instant,
    /// When a frame that wants an answer was sent last.
    asked_at: Instant,
    /// When it was last said that there is nothing to say.
    greeted_at: Instant,
    piece: Vec<u8>,
}

impl<'a> Connection<'a> {
    fn new(sender: &'a Sender, plan: &'a Plan, worker: usize, channel: Channel) -> Self {
        let now = clock::now();
        Self {
            sender,
            plan,
            worker,
            channel,
            offered: BTreeSet::new(),
            unanswered: VecDeque::new(),
            under_way_bytes: 0,
            rate: Rate::new(now),
            heard_at: now,
            asked_at: now,
            greeted_at: now,
            piece: vec![0; sender.piece_bytes],
        }
    }

    fn run(&mut self) -> Result<(), Trouble> {
        loop {
            while self.channel.is_readable(Duration::ZERO)? {
                self.hear()?;
            }
            let is_full = self.unanswered.len() + 2 > UNANSWERED_MAX
                || (self.under_way_bytes >= self.rate.window_bytes() && self.under_way_bytes > 0);
            let job = match is_full {
                true => Job::Wait,
                false => self.plan.next(self.worker, |grain_bytes| self.rate.chunk_grains(grain_bytes)),
            };
            let outcome = match job {
                Job::Offer(file, source) => self.offer(file, &source),
                Job::Chunk(file, source, grains) => self.chunk(file, &source, grains),
                Job::Finish(file, source) => self.finish(file, &source),
                Job::Wait => {
                    self.wait()?;
                    continue;
                }
                Job::End => return self.part(),
            };
            self.asked_at = clock::now();
            outcome?;
        }
    }

    /// Says farewell, and waits until the receiver has heard it, with all that was said before.
    fn part(&mut self) -> Result<(), Trouble> {
        self.channel.send_frame(&Frame::Bye)?;
        self.channel.set_deadline(Some(clock::now() + self.sender.patience));
        while self.hear().is_ok() {}
        Ok(())
    }

    /// There is nothing to send: waits for answers, or for work.
    fn wait(&mut self) -> Result<(), Trouble> {
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
        let patience = self.sender.patience;
        let patience = if self.unanswered.is_empty() { patience.max(2 * ALIVE) } else { patience };
        if now.duration_since(self.heard_at.max(self.asked_at)) > patience {
            return Err(ChannelError::Silent(self.sender.patience).into());
        }
        Ok(())
    }

    fn offer(&mut self, file: u32, source: &Source) -> Result<(), Broken> {
        let offer = source.offer(file);
        let grains = offer.grains().count();
        self.channel.send_frame(&Frame::Offer(offer))?;
        self.offered.insert(file);
        self.unanswered.push_back(Unanswered::Offer(file));
        if grains > MAP_UNASKED_GRAINS {
            while self
                .unanswered
                .iter()
                .any(|item| matches!(item, Unanswered::Offer(asked) if *asked == file))
            {
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
        let place = place_of(&source.offer(file), &grains);
        self.channel.send(&chunk_prefix(place))?;
        let mut hasher = blake3::Hasher::new();
        let (mut at, mut left) = (place.offset, place.bytes as usize);
        while left > 0 {
            let want = left.min(self.piece.len());
            if source.read(&mut self.piece[..want], at).is_err() {
                // What was begun cannot be ended: the receiver waits for data that there is not.
                self.plan.changed(file);
                return Err(Broken::Source);
            }
            hasher.update(&self.piece[..want]);
            self.channel.send(&self.piece[..want])?;
            at += want as u64;
            left -= want;
        }
        self.channel.send(hasher.finalize().as_bytes())?;
        self.under_way_bytes += u64::from(place.bytes);
        self.unanswered.push_back(Unanswered::Chunk { place, grains });
        Ok(())
    }

    fn finish(&mut self, file: u32, source: &Source) -> Result<(), Broken> {
        if source.has_changed() {
            return self.withdraw(file);
        }
        self.offer_once(file, source)?;
        self.channel.send_frame(&Frame::Finish(file))?;
        self.unanswered.push_back(Unanswered::Finish(file));
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
                self.unanswered.retain(|item| !matches!(item, Unanswered::Finish(waits) if *waits == file));
                self.plan.done(file);
                Ok(())
            }
            Incoming::Frame(Frame::Alive) => Ok(()),
            Incoming::Frame(Frame::Error(problem)) => match problem.file {
                None => Err(Broken::Told(problem.text)),
                Some(file) => {
                    self.forget(file);
                    self.plan.refused(file, &problem);
                    Ok(())
                }
            },
            _ => Err(malformed("that is for a sender to say")),
        }
    }

    fn told_what_is_there(&mut self, have: &Have) -> Result<(), Broken> {
        let answered = self.unanswered.iter().position(|item| match item {
            Unanswered::Offer(file) | Unanswered::Finish(file) => *file == have.file,
            Unanswered::Chunk { .. } => false,
        });
        let answered = answered.and_then(|at| self.unanswered.remove(at));
        let answered = answered.ok_or_else(|| malformed("an answer to nothing"))?;
        let was_finished = matches!(answered, Unanswered::Finish(_));
        if have.is_done {
            self.forget(have.file);
        }
        let outcome = self.plan.have(self.worker, have, was_finished);
        outcome.map_err(|error| ChannelError::from(error).into())
    }

    fn told_of_arrival(&mut self, arrived: Place) -> Result<(), Broken> {
        let answered = self
            .unanswered
            .iter()
            .position(|item| matches!(item, Unanswered::Chunk { place, .. } if *place == arrived));
        let answered = answered.and_then(|at| self.unanswered.remove(at));
        let Some(Unanswered::Chunk { grains, .. }) = answered else {
            return Err(malformed("a chunk has arrived that was not sent"));
        };
        let bytes = u64::from(arrived.bytes);
        self.under_way_bytes -= bytes;
        self.rate.arrived(bytes, self.heard_at);
        self.plan.arrived(self.worker, arrived.file, grains, bytes);
        Ok(())
    }

    /// No answers come any more about a file.
    fn forget(&mut self, file: u32) {
        self.unanswered.retain(|item| match item {
            Unanswered::Chunk { place, .. } if place.file == file => {
                self.under_way_bytes -= u64::from(place.bytes);
                false
            }
            Unanswered::Offer(waits) | Unanswered::Finish(waits) => *waits != file,
            Unanswered::Chunk { .. } => true,
        });
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
