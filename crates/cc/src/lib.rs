//! The congestion controls of `algorithms/`, which are C, behind a safe interface.
//!
//! The C side is pure: a call reads the view, its own state, the peers and the parameters, and writes
//! its state, the connection's words and the answer. [`Controller`] owns the state and makes the calls.
//! The contract, with the order of events, is described in `algorithms/include/anabranch/cc.h`. A program can add
//! congestion controls of its own with [`register`].

mod abi;
mod custom;
mod registry;

pub use abi::{
    CaState, Conn, HOT_STATE_BYTES, MAX_PEERS, OUT_CWND, OUT_CWND_CNT, OUT_PACING, OUT_PUB, OUT_SSTHRESH,
    Out, PUBLIC_WORDS, Peer, SSTHRESH_INFINITE, View,
};
pub use custom::{Custom, Declaration, Event, Make, Refused, register, registered};
pub use registry::{Algorithm, Coupling, Hosts, Kind, Param, Unit, algorithms, find};

use abi::{Call, RawOps};

/// One congestion control of one subflow: an algorithm, its parameters and its state.
///
/// One of `algorithms/` can be copied with its state; copying one that a program has added panics.
#[derive(Clone)]
pub struct Controller {
    ops: &'static RawOps,
    algorithm: &'static Algorithm,
    kind: Kind,
    handles_rtt_sample: bool,
    params: [u32; abi::MAX_PARAMS],
    state: [u64; abi::HOT_STATE_BYTES / 8],
    cold: Option<Box<Cold>>,
}

/// What few algorithms have beside the hot state.
enum Cold {
    Words(Box<[u64]>),
    Custom(Box<dyn Custom>),
}

impl Cold {
    /// What a handler finds at `ab_cc.cold`: the words, or the custom control for the handlers of [`custom`].
    fn pointer(&mut self) -> *mut std::ffi::c_void {
        match self {
            Cold::Words(words) => words.as_mut_ptr().cast(),
            Cold::Custom(custom) => std::ptr::from_mut(custom).cast(),
        }
    }
}

impl Clone for Cold {
    fn clone(&self) -> Self {
        match self {
            Cold::Words(words) => Cold::Words(words.clone()),
            Cold::Custom(_) => panic!("a control that a program has added cannot be copied"),
        }
    }
}

/// What a call may read and write besides the controller's own state.
pub struct Context<'a> {
    /// What the host knows.
    pub view: &'a View,
    /// The published slots of the connection's subflows.
    pub peers: &'a [Peer; MAX_PEERS],
    /// The connection's words.
    pub conn: &'a mut Conn,
}

impl Controller {
    /// A controller with the given parameters, in declaration order.
    ///
    /// # Panics
    /// If `params` has not exactly the algorithm's number of values, or one is out of its range: the
    /// scenario has checked them.
    pub fn new(algorithm: &'static Algorithm, params: &[u32]) -> Self {
        assert_eq!(params.len(), algorithm.params().len(), "{}: parameter count", algorithm.name());
        for (value, param) in params.iter().zip(algorithm.params()) {
            assert!(
                (param.min..=param.max).contains(value),
                "{}: {} out of range",
                algorithm.name(),
                param.name
            );
        }
        let mut words = [0; abi::MAX_PARAMS];
        words[..params.len()].copy_from_slice(params);
        let cold_words = algorithm.cold_bytes().div_ceil(8);
        let cold = match &algorithm.make {
            Some(make) => Some(Cold::Custom(make(params))),
            None => (cold_words > 0).then(|| Cold::Words(vec![0; cold_words].into_boxed_slice())),
        };
        Self {
            ops: &algorithm.ops,
            algorithm,
            kind: algorithm.kind(),
            handles_rtt_sample: algorithm.handles_rtt_sample(),
            params: words,
            state: [0; abi::HOT_STATE_BYTES / 8],
            cold: cold.map(Box::new),
        }
    }

    /// A controller with the algorithm's default parameters.
    pub fn with_defaults(algorithm: &'static Algorithm) -> Self {
        let params: Vec<u32> = algorithm.params().iter().map(|p| p.default).collect();
        Self::new(algorithm, &params)
    }

    /// The algorithm.
    pub fn algorithm(&self) -> &'static Algorithm {
        self.algorithm
    }

    /// What the algorithm controls.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether `rtt_sample` does anything, so that a caller may save the call.
    #[inline]
    pub fn handles_rtt_sample(&self) -> bool {
        self.handles_rtt_sample
    }

    /// The hot state as the algorithm left it, for tests and traces.
    pub fn state_bytes(&self) -> [u8; HOT_STATE_BYTES] {
        let mut bytes = [0; HOT_STATE_BYTES];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(self.state) {
            chunk.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    #[inline]
    fn call<R>(
        &mut self,
        handler: impl Fn(&RawOps) -> unsafe extern "C" fn(*const Call) -> R,
        context: &mut Context<'_>,
        out: &mut Out,
    ) -> R {
        let call = Call {
            view: context.view,
            peers: context.peers.as_ptr(),
            conn: context.conn,
            out,
            params: self.params.as_ptr().cast(),
            state: self.state.as_mut_ptr().cast(),
            cold: self.cold.as_deref_mut().map_or(std::ptr::null_mut(), Cold::pointer),
        };
        #[allow(unsafe_code)]
        // SAFETY: the handler comes from the registry's table and follows the contract of cc.h: it reads
        // view, MAX_PEERS peers and the declared parameters, writes conn, out, at most HOT_STATE_BYTES of
        // state and the declared cold bytes, keeps no pointer and calls nothing. All of these are alive
        // and exclusively borrowed (or shared where const) for the length of the call, and aligned to 8.
        // An algorithm with `make` has the handlers of `custom` instead, whose cold part `new` has made.
        unsafe {
            handler(self.ops)(&call)
        }
    }
}

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident -> $result:ty;)*) => {
        impl Controller {
            $(
                $(#[$doc])*
                #[inline]
                pub fn $name(&mut self, mut context: Context<'_>, out: &mut Out) -> $result {
                    self.call(|ops| ops.$name, &mut context, out)
                }
            )*
        }
    };
}

events! {
    /// Before the first data packet.
    init -> ();
    /// A valid round-trip sample, in recovery too.
    rtt_sample -> ();
    /// A recovery episode begins; returns ssthresh.
    loss -> u32;
    /// The retransmission timer has expired; after `loss`, with the window already reduced.
    rto -> ();
    /// Recovery has ended and the window is ssthresh.
    recovery_exit -> ();
    /// The last reduction was spurious; returns the window to go back to.
    undo -> u32;
    /// A congestion mark was echoed.
    ecn -> ();
    /// Packets were newly acknowledged and the window may grow (window algorithms).
    ack -> ();
    /// An ACK has arrived (rate algorithms).
    rate -> ();
    /// Sending resumes after `idle_us`.
    idle_restart -> ();
    /// Another subflow of the connection has been established.
    peer_join -> ();
    /// Another subflow of the connection has gone.
    peer_leave -> ();
    /// The subflow is gone.
    release -> ();
}
