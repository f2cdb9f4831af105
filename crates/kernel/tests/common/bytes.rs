//! The contract's structures as bytes, and its events by name.

use anabranch_cc::{Conn, Context, Controller, MAX_PEERS, Out, Peer, View};

/// Structures of the contract: `repr(C)`, integers only, padding spelt out as `reserved`.
pub trait Plain {}
impl Plain for View {}
impl Plain for Out {}
impl Plain for Conn {}
impl Plain for [Peer; MAX_PEERS] {}

pub fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    #[allow(unsafe_code)]
    // SAFETY: a Plain value has no padding, so all its bytes are initialised; it outlives the slice.
    unsafe {
        std::slice::from_raw_parts(std::ptr::from_ref(value).cast::<u8>(), size_of::<T>())
    }
}

/// # Panics
/// If there are fewer bytes than the structure has.
pub fn from_bytes<T: Plain>(bytes: &[u8]) -> T {
    assert_eq!(bytes.len(), size_of::<T>());
    #[allow(unsafe_code)]
    // SAFETY: the bytes are as many as a T has, and any bytes are a Plain value; they need not be aligned.
    unsafe {
        std::ptr::read_unaligned(bytes.as_ptr().cast())
    }
}

/// Calls the handler of an event by its name; 0 where an event has no answer.
pub fn call(controller: &mut Controller, event: &str, context: Context<'_>, out: &mut Out) -> u32 {
    let mut answer = 0;
    match event {
        "init" => controller.init(context, out),
        "rtt_sample" => controller.rtt_sample(context, out),
        "loss" => answer = controller.loss(context, out),
        "rto" => controller.rto(context, out),
        "recovery_exit" => controller.recovery_exit(context, out),
        "undo" => answer = controller.undo(context, out),
        "ecn" => controller.ecn(context, out),
        "ack" => controller.ack(context, out),
        "rate" => controller.rate(context, out),
        "idle_restart" => controller.idle_restart(context, out),
        "peer_join" => controller.peer_join(context, out),
        "peer_leave" => controller.peer_leave(context, out),
        "release" => controller.release(context, out),
        other => unreachable!("{other} is not an event"),
    }
    answer
}
