//! What the kernel has of a sender's sockets, and what the sender says in the end.

use std::{collections::BTreeMap, io::Read as _, thread, time::Duration};

use anabranch_netlink::{
    diag::{SocketDiag, Subflow},
    mptcp::Token,
};
use serde_json::Value;

use super::{Running, lab::Namespace};

/// The sockets of a namespace: of each connection its subflows that are established, the first one first.
pub fn sockets(client: &Namespace) -> Vec<Vec<Subflow>> {
    let listed = client.enter(|| SocketDiag::open().and_then(|mut diag| diag.subflows()).unwrap());
    let mut of: BTreeMap<Token, Vec<Subflow>> = BTreeMap::new();
    for subflow in listed.into_iter().filter(|subflow| subflow.state.is_established()) {
        of.entry(subflow.token).or_default().push(subflow);
    }
    let mut sockets: Vec<_> = of.into_values().collect();
    for subflows in &mut sockets {
        subflows.sort_by_key(|subflow| subflow.flags.is_join());
    }
    sockets
}

/// What `look` finds, once it does; until then it says what there is.
///
/// # Panics
/// If it does not within fifteen seconds.
pub fn wait<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let mut seen = String::new();
    for _ in 0..300 {
        match look() {
            Ok(found) => return found,
            Err(other) => seen = other,
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("not within fifteen seconds: {what}; {seen}");
}

/// The outcome of a sender that must succeed.
pub fn outcome(sender: &mut Running) -> Value {
    let code = sender.end();
    let mut said = String::new();
    sender.0.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(code, Some(0), "{said}");
    serde_json::from_str(&said).unwrap()
}
