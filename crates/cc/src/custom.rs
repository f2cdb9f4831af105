//! Congestion controls that a program adds to the registry's: written in another language than C, for the
//! simulator only.
//!
//! They follow the same contract and are reached through the same table of handlers, so that the others pay
//! nothing for them.

use std::sync::RwLock;

use crate::{
    Conn, Context, Kind, MAX_PEERS, Out, Peer,
    abi::{self, Call, RawOps},
    registry::{Algorithm, Coupling, Hosts, Param, algorithms},
};

/// An event of the contract (`algorithms/include/anabranch/cc.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // the events are described where the contract is
pub enum Event {
    Init,
    RttSample,
    Loss,
    Rto,
    RecoveryExit,
    Undo,
    Ecn,
    Ack,
    Rate,
    IdleRestart,
    PeerJoin,
    PeerLeave,
    Release,
}

impl Event {
    /// All events.
    pub const ALL: [Event; 13] = [
        Event::Init,
        Event::RttSample,
        Event::Loss,
        Event::Rto,
        Event::RecoveryExit,
        Event::Undo,
        Event::Ecn,
        Event::Ack,
        Event::Rate,
        Event::IdleRestart,
        Event::PeerJoin,
        Event::PeerLeave,
        Event::Release,
    ];

    /// Its name in the contract.
    pub fn name(self) -> &'static str {
        match self {
            Event::Init => "init",
            Event::RttSample => "rtt_sample",
            Event::Loss => "loss",
            Event::Rto => "rto",
            Event::RecoveryExit => "recovery_exit",
            Event::Undo => "undo",
            Event::Ecn => "ecn",
            Event::Ack => "ack",
            Event::Rate => "rate",
            Event::IdleRestart => "idle_restart",
            Event::PeerJoin => "peer_join",
            Event::PeerLeave => "peer_leave",
            Event::Release => "release",
        }
    }
}

/// The congestion control of one subflow.
pub trait Custom: Send {
    /// Handles an event. What it returns counts for [`Event::Loss`] (ssthresh) and [`Event::Undo`] (window), in packets;
    /// the host uses at least 1.
    fn event(&mut self, event: Event, context: Context<'_>, out: &mut Out) -> u32;
}

/// Makes the control of one subflow from parameter values in declaration order.
pub type Make = Box<dyn Fn(&[u32]) -> Box<dyn Custom> + Send + Sync>;

/// What [`register`] wants to know.
pub struct Declaration {
    /// Name in scenarios: 1 to 12 characters, a lower-case letter, then those, digits and `_`.
    pub name: String,
    /// One line about it.
    pub title: String,
    /// What it controls.
    pub kind: Kind,
    /// Whether it looks at the connection's other subflows.
    pub coupling: Coupling,
    /// Whether it does anything at [`Event::RttSample`].
    pub handles_rtt_sample: bool,
    /// Parameters, at most 17.
    pub params: Vec<Param>,
    /// Makes the control of one subflow.
    pub make: Make,
}

/// Why a congestion control was not added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The name does not have the form of one.
    Name,
    /// The registry has an algorithm of that name.
    Taken,
    /// A parameter's range is empty, or its default lies outside of it; its name.
    Param(&'static str),
    /// There are more than 17 parameters.
    TooManyParams,
}

static CUSTOM: RwLock<Vec<&'static Algorithm>> = RwLock::new(Vec::new());

/// Adds a congestion control for this process. A later one of the same name replaces an earlier one for the
/// controllers made from then on; a declaration is kept until the process ends.
///
/// # Errors
/// [`Refused`].
pub fn register(declaration: Declaration) -> Result<&'static Algorithm, Refused> {
    let Declaration { name, title, kind, coupling, handles_rtt_sample, params, make } = declaration;
    let is_name = (1..=12).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '_');
    if !is_name {
        return Err(Refused::Name);
    }
    if algorithms().iter().any(|algorithm| algorithm.name() == name) {
        return Err(Refused::Taken);
    }
    if params.len() > abi::MAX_PARAMS {
        return Err(Refused::TooManyParams);
    }
    if let Some(odd) = params.iter().find(|param| !(param.min..=param.max).contains(&param.default)) {
        return Err(Refused::Param(odd.name));
    }
    let added: &'static Algorithm = Box::leak(Box::new(Algorithm {
        name: name.leak(),
        title: title.leak(),
        tag: "-",
        kind,
        coupling,
        hosts: Hosts::Sim,
        handles_rtt_sample,
        state_bytes: 0,
        cold_bytes: 0,
        params,
        ops: HANDLERS,
        make: Some(make),
    }));
    let mut all = CUSTOM.write().expect("no thread panics with this lock");
    match all.iter_mut().find(|one| one.name() == added.name()) {
        Some(earlier) => *earlier = added,
        None => all.push(added),
    }
    Ok(added)
}

/// The congestion controls that were added, in the order of their names' first addition.
pub fn registered() -> Vec<&'static Algorithm> {
    CUSTOM.read().expect("no thread panics with this lock").clone()
}

pub(crate) fn find(name: &str) -> Option<&'static Algorithm> {
    let all = CUSTOM.read().expect("no thread panics with this lock");
    all.iter().copied().find(|algorithm| algorithm.name() == name)
}

const HANDLERS: RawOps = RawOps {
    init: handle::<{ Event::Init as u8 }>,
    rtt_sample: handle::<{ Event::RttSample as u8 }>,
    rto: handle::<{ Event::Rto as u8 }>,
    recovery_exit: handle::<{ Event::RecoveryExit as u8 }>,
    ecn: handle::<{ Event::Ecn as u8 }>,
    ack: handle::<{ Event::Ack as u8 }>,
    rate: handle::<{ Event::Rate as u8 }>,
    idle_restart: handle::<{ Event::IdleRestart as u8 }>,
    peer_join: handle::<{ Event::PeerJoin as u8 }>,
    peer_leave: handle::<{ Event::PeerLeave as u8 }>,
    release: handle::<{ Event::Release as u8 }>,
    loss: answer::<{ Event::Loss as u8 }>,
    undo: answer::<{ Event::Undo as u8 }>,
};

#[allow(unsafe_code)]
// SAFETY: as for `answer`.
unsafe extern "C" fn handle<const EVENT: u8>(call: *const Call) {
    // SAFETY: the caller's promise is the same.
    unsafe {
        answer::<EVENT>(call);
    }
}

#[allow(unsafe_code)]
// SAFETY: only `Controller::call` calls it, with a `Call` whose pointers are alive for the call, exclusive where they
// are `mut`, and whose cold part is the `Box<dyn Custom>` that `Controller::new` has made for these handlers.
unsafe extern "C" fn answer<const EVENT: u8>(call: *const Call) -> u32 {
    // SAFETY: see above.
    let (call, custom) = unsafe {
        let call = &*call;
        (call, &mut *call.cold.cast::<Box<dyn Custom>>())
    };
    // SAFETY: see above; `peers` points to MAX_PEERS of them.
    let (view, peers, conn, out): (_, &[Peer; MAX_PEERS], &mut Conn, &mut Out) =
        unsafe { (&*call.view, &*call.peers.cast(), &mut *call.conn, &mut *call.out) };
    custom.event(Event::ALL[usize::from(EVENT)], Context { view, peers, conn }, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Controller, OUT_CWND, View, find};

    /// Adds its parameter at every ACK and halves at a loss.
    struct Step(u32);

    impl Custom for Step {
        fn event(&mut self, event: Event, context: Context<'_>, out: &mut Out) -> u32 {
            match event {
                Event::Ack => {
                    out.mask |= OUT_CWND;
                    out.cwnd = context.view.cwnd + self.0;
                    0
                }
                Event::Loss => context.view.cwnd / 2,
                Event::PeerJoin => {
                    context.conn.words[0] += 1;
                    0
                }
                _ => 0,
            }
        }
    }

    fn step(name: &str) -> Declaration {
        let param = Param {
            name: "step",
            unit: crate::Unit::Packets,
            default: 3,
            min: 1,
            max: 9,
            doc: "packets per ACK",
            choices: Vec::new(),
        };
        Declaration {
            name: name.to_owned(),
            title: "a step per ACK".to_owned(),
            kind: Kind::Window,
            coupling: Coupling::Single,
            handles_rtt_sample: false,
            params: vec![param],
            make: Box::new(|params| Box::new(Step(params[0]))),
        }
    }

    #[test]
    fn an_added_control_is_found_and_called_for_the_event_that_happened() {
        register(step("step")).expect("the declaration is sound");
        let algorithm = find("step").expect("it was added");
        let mut controller = Controller::new(algorithm, &[4]);
        let (view, peers, mut conn) =
            (View { cwnd: 20, ..View::default() }, [Peer::default(); MAX_PEERS], Conn::default());
        let mut out = Out::default();
        controller.ack(Context { view: &view, peers: &peers, conn: &mut conn }, &mut out);
        assert_eq!((out.mask, out.cwnd), (OUT_CWND, 24));
        let loss = controller.loss(Context { view: &view, peers: &peers, conn: &mut conn }, &mut out);
        assert_eq!(loss, 10);
        controller.peer_join(Context { view: &view, peers: &peers, conn: &mut conn }, &mut out);
        assert_eq!(conn.words[0], 1);
    }

    #[test]
    fn events_are_numbered_as_they_are_listed() {
        for (number, event) in Event::ALL.into_iter().enumerate() {
            assert_eq!(event as usize, number, "{}", event.name());
        }
    }

    #[test]
    fn a_later_declaration_replaces_an_earlier_one() {
        register(step("again")).expect("the declaration is sound");
        register(Declaration { title: "newer".to_owned(), ..step("again") }).expect("so is this");
        assert_eq!(find("again").map(Algorithm::title), Some("newer"));
        assert_eq!(registered().iter().filter(|one| one.name() == "again").count(), 1);
    }

    #[test]
    fn what_could_not_be_named_or_set_is_refused() {
        for name in ["", "Step", "2step", "a-step", "thirteen_long"] {
            assert_eq!(register(step(name)).err(), Some(Refused::Name), "{name}");
        }
        assert_eq!(register(step("reno")).err(), Some(Refused::Taken));
        let mut odd = step("odd");
        odd.params[0].default = 10;
        assert_eq!(register(odd).err(), Some(Refused::Param("step")));
        let mut many = step("many");
        many.params = vec![many.params[0].clone(); abi::MAX_PARAMS + 1];
        assert_eq!(register(many).err(), Some(Refused::TooManyParams));
    }
}
