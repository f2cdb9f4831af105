//! Data that flow while links come and go.

use std::{
    io::{Read as _, Write as _},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use serde_json::Value;

use super::{Conversation, common::lab::Namespace, subflows, wait};

/// The subflow from an address, once there is one that is established.
pub fn subflow_from(namespace: &Namespace, address: &str) -> Value {
    wait(&format!("a subflow from {address}"), || {
        subflows(namespace)
            .into_iter()
            .find(|subflow| subflow["local"].as_str().is_some_and(|at| at.starts_with(address)))
    })
}

/// Takes a link of the client down or up; its routes go and come with it, as a DHCP client would have it.
pub fn set_link(client: &Namespace, link: u32, up: bool) {
    client.ip(&format!("link set c{link} {}", if up { "up" } else { "down" }));
    if up {
        client.ip(&format!("route replace default via 10.77.{link}.254 dev c{link} table {link}"));
    }
}

/// Sends bytes from the client to the server until the test is over, and counts what arrives.
pub struct Stream<'a> {
    conversation: &'a Conversation,
    sent: AtomicU64,
    arrived: AtomicU64,
    is_paused: AtomicBool,
    is_over: AtomicBool,
}

impl<'a> Stream<'a> {
    pub fn run<T>(conversation: &'a Conversation, work: impl FnOnce(&Self) -> T) -> T {
        let stream = Self {
            conversation,
            sent: AtomicU64::new(0),
            arrived: AtomicU64::new(0),
            is_paused: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        };
        thread::scope(|scope| {
            scope.spawn(|| stream.send());
            scope.spawn(|| stream.receive());
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&stream)));
            stream.is_over.store(true, Ordering::Relaxed);
            conversation.client.shutdown(std::net::Shutdown::Both).expect("it is open");
            conversation.server.shutdown(std::net::Shutdown::Both).expect("it is open");
            outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// 1 kB every 5 ms.
    fn send(&self) {
        while !self.is_over.load(Ordering::Relaxed) {
            if !self.is_paused.load(Ordering::Relaxed) {
                if (&self.conversation.client).write_all(&[7; 1000]).is_err() {
                    break;
                }
                self.sent.fetch_add(1000, Ordering::Relaxed);
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends no more, and waits until everything that was sent has arrived; how much it was.
    pub fn finish(&self) -> u64 {
        self.is_paused.store(true, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(50));
        let sent = self.sent.load(Ordering::Relaxed);
        wait("everything", || (self.arrived.load(Ordering::Relaxed) == sent).then_some(()));
        sent
    }

    fn receive(&self) {
        let mut buffer = [0; 4096];
        while !self.is_over.load(Ordering::Relaxed) {
            match (&self.conversation.server).read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(bytes) => self.arrived.fetch_add(bytes as u64, Ordering::Relaxed),
            };
        }
    }

    /// Waits until so many bytes more have arrived.
    pub fn flows(&self, bytes: u64) {
        let before = self.arrived.load(Ordering::Relaxed);
        wait("data", || (self.arrived.load(Ordering::Relaxed) >= before + bytes).then_some(()));
    }
}
