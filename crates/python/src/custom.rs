//! Congestion controls written in Python.
//!
//! A class becomes an algorithm of the registry (`anabranch_cc::register`); each subflow gets an instance. An exception
//! ends the run: the first one is kept for the caller, and nothing is called any more.

use std::{
    cell::RefCell,
    collections::HashMap,
    sync::{Arc, Mutex, atomic::Ordering},
};

use anabranch_cc::{
    Conn, Context, Coupling, Custom, Declaration, Event, Kind, OUT_CWND, OUT_CWND_CNT, OUT_PACING, OUT_PUB,
    OUT_SSTHRESH, Out, PUBLIC_WORDS, Param, Peer, Refused, Unit, View,
};
use anabranch_sim as sim;
use pyo3::{
    exceptions::{PyIndexError, PyTypeError, PyValueError},
    prelude::*,
    types::PyDict,
};

/// Largest window or ssthresh of the contract, in packets; an ssthresh may also be infinite.
const MAX_WINDOW: u32 = 1 << 30;

/// What a run on this thread leaves for its caller.
struct Watch {
    control: Arc<sim::Control>,
    error: Option<PyErr>,
}

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// Runs `run` on this thread; the error is what a Python callback has raised meanwhile.
pub(crate) fn watched<R>(control: &Arc<sim::Control>, run: impl FnOnce() -> R) -> (R, Option<PyErr>) {
    WATCH.set(Some(Watch { control: Arc::clone(control), error: None }));
    let result = run();
    (result, WATCH.take().and_then(|watch| watch.error))
}

/// Ends the run of this thread with an error; what fails outside of a run has no caller to tell.
fn fail(error: PyErr) {
    WATCH.with_borrow_mut(|watch| {
        if let Some(watch) = watch {
            watch.control.cancel.store(true, Ordering::Relaxed);
            watch.error.get_or_insert(error);
        }
    });
}

/// Whether a Python callback of this thread's run has raised an error.
pub(crate) fn has_failed() -> bool {
    WATCH.with_borrow(|watch| watch.as_ref().is_some_and(|watch| watch.error.is_some()))
}

/// Which text a registered class had: part of what tells one run from another.
static TEXTS: Mutex<Option<HashMap<String, String>>> = Mutex::new(None);

/// The registered classes that a scenario's canonical text names, with a hash of the text of each.
pub(crate) fn texts_named_in(canonical: &str) -> Vec<(String, String)> {
    let texts = TEXTS.lock().expect("no thread panics with this lock");
    let mut named: Vec<(String, String)> = texts
        .iter()
        .flatten()
        .filter(|(name, _)| canonical.contains(&format!("\"{name}\"")))
        .map(|(name, text)| (name.clone(), text.clone()))
        .collect();
    named.sort();
    named
}

/// A parameter as the Python side declares it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Declared {
    name: String,
    unit: String,
    default: u32,
    min: u32,
    max: u32,
    doc: String,
    choices: Vec<String>,
}

/// Makes a class of congestion controls known to scenarios.
///
/// `events` names those that it handles; `text` is a hash of its source.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // they are the declaration, named on the Python side
pub(crate) fn register_algorithm(
    class: Py<PyAny>,
    name: String,
    title: String,
    kind: &str,
    coupled: bool,
    params: Vec<Bound<'_, PyDict>>,
    events: Vec<String>,
    text: String,
) -> PyResult<()> {
    if anabranch_scenario::NAMED.iter().any(|named| named.name == name) {
        return Err(PyValueError::new_err(refusal(&name, &Refused::Taken)));
    }
    let kind = match kind {
        "window" => Kind::Window,
        "rate" => Kind::Rate,
        other => {
            return Err(PyValueError::new_err(format!("{name}: kind is {other:?}; expected window or rate")));
        }
    };
    let params = params.iter().map(|one| declared(&name, one.extract()?)).collect::<PyResult<Vec<_>>>()?;
    let handled = Event::ALL.map(|event| events.iter().any(|one| one == event.name()));
    let names: Vec<&'static str> = params.iter().map(|param| param.name).collect();
    let of = name.clone();
    let declaration = Declaration {
        name: name.clone(),
        title,
        kind,
        coupling: if coupled { Coupling::Coupled } else { Coupling::Single },
        handles_rtt_sample: handled[Event::RttSample as usize],
        params,
        make: Box::new(move |values| {
            let instance = Python::attach(|py| instance(py, &class, &names, values));
            let instance = instance.map_err(|error| fail(located(error, &of, "making it"))).ok();
            Box::new(InPython { name: of.clone(), instance, handled, coupled })
        }),
    };
    anabranch_cc::register(declaration).map_err(|refused| PyValueError::new_err(refusal(&name, &refused)))?;
    TEXTS.lock().expect("no thread panics with this lock").get_or_insert_default().insert(name, text);
    Ok(())
}

fn declared(algorithm: &str, declared: Declared) -> PyResult<Param> {
    let unit = match declared.unit.as_str() {
        "count" => Unit::Count,
        "packets" => Unit::Packets,
        "us" => Unit::Micros,
        "q10" => Unit::Q10,
        "q16" => Unit::Q16,
        "permille" => Unit::Permille,
        "bool" => Unit::Bool,
        "choice" => Unit::Choice,
        other => {
            return Err(PyValueError::new_err(format!(
                "{algorithm}: parameter {}: unit is {other:?}; expected count, packets, us, q10, q16, permille, \
                 bool or choice",
                declared.name
            )));
        }
    };
    let choices: Vec<&'static str> =
        declared.choices.into_iter().map(|choice| -> &'static str { choice.leak() }).collect();
    let doc = match unit {
        Unit::Choice => format!("{}: {}", choices.join("|"), declared.doc),
        _ => declared.doc,
    };
    Ok(Param {
        name: declared.name.leak(),
        unit,
        default: declared.default,
        min: declared.min,
        max: declared.max,
        doc: doc.leak(),
        choices,
    })
}

fn refusal(name: &str, refused: &Refused) -> String {
    match refused {
        Refused::Name => format!(
            "name is {name:?}; expected 1 to 12 characters: a lower-case letter, then those, digits and _"
        ),
        Refused::Taken => format!("{name}: the registry has an algorithm of this name; choose another"),
        Refused::Param(param) => {
            format!("{name}: parameter {param}: the default lies outside of min to max")
        }
        Refused::TooManyParams => format!("{name}: more than 17 parameters"),
    }
}

fn instance(
    py: Python<'_>,
    class: &Py<PyAny>,
    names: &[&'static str],
    values: &[u32],
) -> PyResult<Py<PyAny>> {
    let instance = class.bind(py).call0()?;
    let parameters = PyDict::new(py);
    for (name, value) in names.iter().zip(values) {
        parameters.set_item(name, value)?;
    }
    instance.setattr("values", parameters)?;
    Ok(instance.unbind())
}

/// The control of one subflow; without an instance once making it has failed.
struct InPython {
    name: String,
    instance: Option<Py<PyAny>>,
    handled: [bool; Event::ALL.len()],
    coupled: bool,
}

impl Custom for InPython {
    fn event(&mut self, event: Event, context: Context<'_>, out: &mut Out) -> u32 {
        let view = context.view;
        let usual = match event {
            Event::Loss => (view.cwnd / 2).max(2),
            Event::Undo => view.cwnd.max(view.prior_cwnd),
            _ => 0,
        };
        if !self.handled[event as usize] || has_failed() {
            return usual;
        }
        let Some(instance) = &self.instance else { return usual };
        let answer = Python::attach(|py| self.ask(py, instance, event, context, out));
        answer.unwrap_or_else(|error| {
            fail(error);
            usual
        })
    }
}

impl InPython {
    fn ask(
        &self,
        py: Python<'_>,
        instance: &Py<PyAny>,
        event: Event,
        context: Context<'_>,
        out: &mut Out,
    ) -> PyResult<u32> {
        let connection =
            self.coupled.then(|| (context.peers.map(|peer| Subflow { peer }), Conn::clone(context.conn)));
        let call = Call { view: *context.view, connection, out: Out::default() };
        let call = Bound::new(py, call)?;
        let answer = instance
            .bind(py)
            .call_method1(event.name(), (&call,))
            .map_err(|error| located(error, &self.name, event.name()))?;
        let packets = match event {
            Event::Loss | Event::Undo => window(&answer, &self.name, event)?,
            _ => 0,
        };
        let call = call.borrow();
        *out = call.out;
        if let Some((_, conn)) = &call.connection {
            context.conn.clone_from(conn);
        }
        Ok(packets)
    }
}

fn window(answer: &Bound<'_, PyAny>, name: &str, event: Event) -> PyResult<u32> {
    let wanted = format!("{name}.{}: expected a window of 1 to {MAX_WINDOW} packets", event.name());
    let packets: u32 = answer
        .extract()
        .map_err(|_| PyTypeError::new_err(format!("{wanted}, as an int; it returned {answer:?}")))?;
    if (1..=MAX_WINDOW).contains(&packets) {
        Ok(packets)
    } else {
        Err(PyValueError::new_err(format!("{wanted}; it returned {packets}")))
    }
}

/// The same error with a note on where it happened.
fn located(error: PyErr, name: &str, what: &str) -> PyErr {
    Python::attach(|py| {
        let note = format!("in congestion control {name}: {what}");
        // An exception that takes no note is raised without one.
        let _ = error.value(py).call_method1("add_note", (note,));
    });
    error
}

/// Another subflow's published values.
#[pyclass(frozen, module = "anabranch._engine")]
#[derive(Clone, Copy)]
pub(crate) struct Subflow {
    peer: Peer,
}

/// One call of a congestion control: what the host knows, and what is to be changed.
#[pyclass(module = "anabranch._engine")]
pub(crate) struct Call {
    view: View,
    connection: Option<([Subflow; anabranch_cc::MAX_PEERS], Conn)>,
    out: Out,
}

macro_rules! fields {
    ($class:ident . $source:ident: $($name:ident: $type:ty = $from:expr;)* $({ $($method:tt)* })?) => {
        #[pymethods]
        impl $class {
            $(
                #[getter]
                fn $name(&self) -> $type {
                    let $source = &self.$source;
                    $from
                }
            )*
            $($($method)*)?
        }
    };
}

fields! { Subflow.peer:
    bytes_since_loss: u64 = peer.bytes_since_loss;
    bytes_between_losses: u64 = peer.bytes_between_losses;
    public: [u64; PUBLIC_WORDS] = peer.public;
    cwnd: u32 = peer.cwnd;
    ssthresh: u32 = peer.ssthresh;
    mss: u32 = peer.mss;
    srtt8_us: u32 = peer.srtt8_us;
    base_rtt_us: u32 = peer.base_rtt_us;
    loss_events: u32 = peer.loss_events;
    retrans: u32 = peer.retrans;
    energy_nj_per_bit: u32 = peer.energy_nj_per_bit;
    usable: bool = peer.usable != 0;
    backup: bool = peer.backup != 0;
    in_slow_start: bool = peer.in_slow_start != 0;
    ca_state: u8 = peer.ca_state;
}

fields! { Call.view:
    now_us: u64 = view.now_us;
    bytes_acked: u64 = view.bytes_acked;
    rs_prior_delivered: u64 = view.rs_prior_delivered;
    delivered: u64 = view.delivered;
    cwnd: u32 = view.cwnd;
    cwnd_cnt: u32 = view.cwnd_cnt;
    cwnd_clamp: u32 = view.cwnd_clamp;
    ssthresh: u32 = view.ssthresh;
    prior_cwnd: u32 = view.prior_cwnd;
    in_flight: u32 = view.in_flight;
    prior_in_flight: u32 = view.prior_in_flight;
    acked: u32 = view.acked;
    acked_sacked: u32 = view.acked_sacked;
    newly_lost: u32 = view.newly_lost;
    total_retrans: u32 = view.total_retrans;
    mss: u32 = view.mss;
    rtt_us: Option<u32> = (view.rtt_valid != 0).then_some(view.rtt_us);
    srtt8_us: u32 = view.srtt8_us;
    mdev4_us: u32 = view.mdev4_us;
    min_rtt_us: u32 = view.min_rtt_us;
    idle_us: u32 = view.idle_us;
    delivered_ce: u32 = view.delivered_ce;
    rs_delivered: u32 = view.rs_delivered;
    rs_interval_us: u32 = view.rs_interval_us;
    rs_snd_us: u32 = view.rs_snd_us;
    rs_rcv_us: u32 = view.rs_rcv_us;
    rs_losses: u32 = view.rs_losses;
    owd_us: Option<u32> = (view.owd_valid != 0).then_some(view.owd_us);
    ack_gap_us: u32 = view.ack_gap_us;
    acked_bytes_gap: u32 = view.acked_bytes_gap;
    random: u32 = view.random;
    ca_state: u8 = view.ca_state;
    cwnd_limited: bool = view.cwnd_limited != 0;
    app_limited: bool = view.app_limited != 0;
    rs_app_limited: bool = view.rs_app_limited != 0;
    round_start: bool = view.round_start != 0;
    ece: bool = view.ece != 0;
    self_index: u8 = view.self_index;
    n_usable: u8 = view.n_usable;
    in_slow_start: bool = view.cwnd < view.ssthresh;
{
    #[getter]
    fn peers(&self) -> PyResult<Vec<Subflow>> {
        Ok(self.connection()?.0.to_vec())
    }

    fn set_cwnd(&mut self, packets: u32) -> PyResult<()> {
        within("cwnd", packets, MAX_WINDOW)?;
        self.out.cwnd = packets.min(self.view.cwnd_clamp);
        self.out.mask |= OUT_CWND;
        Ok(())
    }

    fn set_cwnd_cnt(&mut self, packets: u32) {
        self.out.cwnd_cnt = packets;
        self.out.mask |= OUT_CWND_CNT;
    }

    fn set_ssthresh(&mut self, packets: u32) -> PyResult<()> {
        within("ssthresh", packets, anabranch_cc::SSTHRESH_INFINITE)?;
        self.out.ssthresh = packets;
        self.out.mask |= OUT_SSTHRESH;
        Ok(())
    }

    fn set_pacing(&mut self, bytes_per_s: u64) {
        self.out.pacing_bytes_per_s = bytes_per_s;
        self.out.mask |= OUT_PACING;
    }

    fn publish(&mut self, words: [u64; PUBLIC_WORDS]) -> PyResult<()> {
        self.connection()?;
        self.out.public = words;
        self.out.mask |= OUT_PUB;
        Ok(())
    }

    fn word(&self, index: usize) -> PyResult<u64> {
        let words = &self.connection()?.1.words;
        words.get(index).copied().ok_or_else(|| no_word(words.len()))
    }

    fn set_word(&mut self, index: usize, value: u64) -> PyResult<()> {
        self.connection()?;
        let Some((_, conn)) = &mut self.connection else { return Ok(()) };
        let count = conn.words.len();
        *conn.words.get_mut(index).ok_or_else(|| no_word(count))? = value;
        Ok(())
    }
}
}

impl Call {
    fn connection(&self) -> PyResult<&([Subflow; anabranch_cc::MAX_PEERS], Conn)> {
        self.connection.as_ref().ok_or_else(|| {
            PyTypeError::new_err("only a class with coupled = True sees the other subflows of its connection")
        })
    }
}

fn within(what: &str, packets: u32, max: u32) -> PyResult<()> {
    if (1..=max).contains(&packets) {
        Ok(())
    } else {
        Err(PyValueError::new_err(format!("{what} is {packets}; expected 1 to {max} packets")))
    }
}

fn no_word(count: usize) -> PyErr {
    PyIndexError::new_err(format!("a connection has the words 0 to {}", count - 1))
}
