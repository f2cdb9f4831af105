//! Mirror of `algorithms/include/anabranch/cc.h`. A test compares the layouts.

use std::ffi::{c_char, c_void};

/// Subflows that can be coupled.
pub const MAX_PEERS: usize = 8;
/// Bytes of an algorithm's hot state.
pub const HOT_STATE_BYTES: usize = 88;
/// Words an algorithm may publish to its peers.
pub const PUBLIC_WORDS: usize = 4;
/// An ssthresh that never ends slow start.
pub const SSTHRESH_INFINITE: u32 = 0x7fff_ffff;
pub(crate) const MAX_PARAMS: usize = 17;
const CONN_WORDS: usize = 64;

/// [`Out::cwnd`] counts.
pub const OUT_CWND: u32 = 1 << 0;
/// [`Out::cwnd_cnt`] counts.
pub const OUT_CWND_CNT: u32 = 1 << 1;
/// [`Out::ssthresh`] counts.
pub const OUT_SSTHRESH: u32 = 1 << 2;
/// [`Out::pacing_bytes_per_s`] counts.
pub const OUT_PACING: u32 = 1 << 3;
/// [`Out::public`] counts.
pub const OUT_PUB: u32 = 1 << 4;

/// State of loss recovery, with the kernel's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum CaState {
    /// Nothing special.
    #[default]
    Open = 0,
    /// Duplicate acknowledgements have been seen.
    Disorder = 1,
    /// The window is being reduced after a congestion mark.
    Cwr = 2,
    /// Fast recovery.
    Recovery = 3,
    /// Recovery after a timeout.
    Loss = 4,
}

/// `struct ab_view`: what the host knows at an event. Windows in packets, times in microseconds.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
#[allow(missing_docs)] // the fields are described where the contract is: cc.h
pub struct View {
    pub now_us: u64,
    pub bytes_acked: u64,
    pub rs_prior_delivered: u64,
    pub delivered: u64,
    pub cwnd: u32,
    pub cwnd_cnt: u32,
    pub cwnd_clamp: u32,
    pub ssthresh: u32,
    pub prior_cwnd: u32,
    pub in_flight: u32,
    pub prior_in_flight: u32,
    pub acked: u32,
    pub acked_sacked: u32,
    pub newly_lost: u32,
    pub total_retrans: u32,
    pub mss: u32,
    pub rtt_us: u32,
    pub srtt8_us: u32,
    pub mdev4_us: u32,
    pub min_rtt_us: u32,
    pub idle_us: u32,
    pub delivered_ce: u32,
    pub rs_delivered: u32,
    pub rs_interval_us: u32,
    pub rs_snd_us: u32,
    pub rs_rcv_us: u32,
    pub rs_losses: u32,
    pub owd_us: u32,
    pub ack_gap_us: u32,
    pub acked_bytes_gap: u32,
    pub random: u32,
    pub ca_state: u8,
    pub cwnd_limited: u8,
    pub app_limited: u8,
    pub rs_app_limited: u8,
    pub rtt_valid: u8,
    pub owd_valid: u8,
    pub round_start: u8,
    pub ece: u8,
    pub self_index: u8,
    pub n_usable: u8,
    pub reserved: [u8; 2],
}

/// `struct ab_peer`: what a subflow publishes for the others.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Peer {
    pub bytes_since_loss: u64,
    pub bytes_between_losses: u64,
    pub public: [u64; PUBLIC_WORDS],
    pub cwnd: u32,
    pub ssthresh: u32,
    pub mss: u32,
    pub srtt8_us: u32,
    pub base_rtt_us: u32,
    pub loss_events: u32,
    pub retrans: u32,
    pub energy_nj_per_bit: u32,
    pub usable: u8,
    pub backup: u8,
    pub in_slow_start: u8,
    pub ca_state: u8,
    pub reserved: [u8; 4],
}

/// `struct ab_conn`: what the algorithm keeps per connection.
#[derive(Clone, Debug)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Conn {
    pub period_start_us: u64,
    pub n: u32,
    pub mode: u32,
    pub epoch: u32,
    pub coupled_epochs: u32,
    pub words: [u64; CONN_WORDS],
}

impl Default for Conn {
    fn default() -> Self {
        Self { period_start_us: 0, n: 0, mode: 0, epoch: 0, coupled_epochs: 0, words: [0; CONN_WORDS] }
    }
}

/// `struct ab_out`: what the algorithm wants changed. A field counts if its bit is in `mask`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Out {
    pub pacing_bytes_per_s: u64,
    pub public: [u64; PUBLIC_WORDS],
    pub mask: u32,
    pub cwnd: u32,
    pub cwnd_cnt: u32,
    pub ssthresh: u32,
}

#[repr(C)]
pub(crate) struct Call {
    pub(crate) view: *const View,
    pub(crate) peers: *const Peer,
    pub(crate) conn: *mut Conn,
    pub(crate) out: *mut Out,
    pub(crate) params: *const c_void,
    pub(crate) state: *mut c_void,
    pub(crate) cold: *mut c_void,
}

pub(crate) type Handler = unsafe extern "C" fn(*const Call);
type HandlerU32 = unsafe extern "C" fn(*const Call) -> u32;

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RawOps {
    pub(crate) init: Handler,
    pub(crate) rtt_sample: Handler,
    pub(crate) rto: Handler,
    pub(crate) recovery_exit: Handler,
    pub(crate) ecn: Handler,
    pub(crate) ack: Handler,
    pub(crate) rate: Handler,
    pub(crate) idle_restart: Handler,
    pub(crate) peer_join: Handler,
    pub(crate) peer_leave: Handler,
    pub(crate) release: Handler,
    pub(crate) loss: HandlerU32,
    pub(crate) undo: HandlerU32,
}

#[repr(C)]
pub(crate) struct RawParam {
    pub(crate) name: *const c_char,
    pub(crate) doc: *const c_char,
    pub(crate) unit: u32,
    pub(crate) default: u32,
    pub(crate) min: u32,
    pub(crate) max: u32,
}

#[repr(C)]
pub(crate) struct RawAlgorithm {
    pub(crate) name: *const c_char,
    pub(crate) tag: *const c_char,
    pub(crate) title: *const c_char,
    pub(crate) params: *const RawParam,
    pub(crate) n_params: u32,
    pub(crate) kind: u32,
    pub(crate) coupling: u32,
    pub(crate) hosts: u32,
    pub(crate) state_bytes: u32,
    pub(crate) cold_bytes: u32,
    pub(crate) ops: RawOps,
}

#[allow(unsafe_code)]
// SAFETY: these are the constants that host/registry.c defines, with these types.
unsafe extern "C" {
    pub(crate) static ab_registry: [RawAlgorithm; 0];
    pub(crate) static ab_registry_len: u32;
    pub(crate) static ab_ignored: Handler;
    #[cfg(test)]
    pub(crate) static ab_layout: [u32; 0];
    #[cfg(test)]
    pub(crate) static ab_layout_len: u32;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    #[test]
    fn the_mirror_has_the_layout_of_the_contract() {
        #[allow(unsafe_code)]
        // SAFETY: ab_layout has ab_layout_len elements, both constant.
        let layout = unsafe {
            std::slice::from_raw_parts((&raw const ab_layout).cast::<u32>(), ab_layout_len as usize)
        };
        let mirror = [
            size_of::<View>(),
            offset_of!(View, cwnd),
            offset_of!(View, rtt_us),
            offset_of!(View, rs_delivered),
            offset_of!(View, random),
            offset_of!(View, ca_state),
            offset_of!(View, n_usable),
            size_of::<Peer>(),
            offset_of!(Peer, public),
            offset_of!(Peer, cwnd),
            offset_of!(Peer, usable),
            offset_of!(Peer, ca_state),
            size_of::<Conn>(),
            offset_of!(Conn, words),
            size_of::<Out>(),
            offset_of!(Out, mask),
            offset_of!(Out, ssthresh),
            size_of::<Call>(),
        ];
        assert_eq!(layout, mirror.map(|value| value as u32));
    }
}
