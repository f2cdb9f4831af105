//! No datagram makes the readers of netlink panic, and none ends an answer that it does not belong to.
//!
//! The first byte chooses what the rest is read as: the answer to request 1, a socket of a list, or events. The body of a message is read as each kind
//! of event too, so that a fuzzer need not find the header first.

#![no_main]

use anabranch_netlink::{
    Notification as _, diag, mptcp, rtnetlink,
    wire::{Answer, Message, messages},
};
use libfuzzer_sys::fuzz_target;

/// Whether an event is one that only a socket can tell.
fn is_lost(message: &Message<'_>) -> bool {
    mptcp::Event::read(message) == mptcp::Event::Lost || rtnetlink::Event::read(message) == rtnetlink::Event::Lost
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, datagram)) = data.split_first() else { return };
    if choice & 2 == 2 {
        let (connection, subflow) = (diag::Connection::read(datagram), diag::Subflow::read(datagram));
        // A name that nothing has, or a state that was not asked for, is never told.
        assert!(!matches!(subflow, Ok(Some(subflow)) if subflow.token.0 == 0));
        assert!(datagram.len() >= 72 || connection.is_err() && subflow.is_err());
    } else if choice & 1 == 0 {
        let ending = Answer::new(1).take(datagram);
        let is_answered = messages(datagram).any(|message| message.is_ok_and(|message| message.sequence == 1));
        assert!(is_answered || !matches!(ending, Ok(Some(_))), "{ending:?}");
    } else {
        for message in messages(datagram).flatten() {
            assert!(!is_lost(&message));
        }
        for kind in [16, 17, 20, 21, 24, 25] {
            assert!(!is_lost(&Message { kind, flags: 0, sequence: 0, body: datagram }));
        }
    }
});
