//! What the conversations with the kernel share: skipping by name, namespaces, waiting for events.

// Every test binary compiles this module and uses a part of it.
#![allow(dead_code, unreachable_pub)]

#[path = "../../../kernel/tests/common/lab.rs"]
pub mod lab;
pub mod pair;
mod skip;

use std::{fmt::Debug, time::Duration};

use anabranch_netlink::{Listener, Notification};

pub use skip::skip;

/// How long an event may take to come.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The next event that `take` makes something of.
///
/// # Panics
/// If none comes in time.
pub fn until<E: Notification + Debug, T>(
    events: &mut Listener<E>,
    mut take: impl FnMut(&E) -> Option<T>,
) -> T {
    let mut others = Vec::new();
    while let Some(event) = events.wait(PATIENCE).expect("events are readable") {
        if let Some(taken) = take(&event) {
            return taken;
        }
        others.push(event);
    }
    panic!("not within {PATIENCE:?}; there was {others:#?}");
}
