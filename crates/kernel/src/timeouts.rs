//! Hearing of each retransmission timeout of a subflow, for which the kernel has no event of its own.

use std::{
    cell::RefCell,
    fs,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::MetadataExt as _,
    },
    rc::Rc,
};

use libbpf_rs::{Link, MapCore as _, Object, ObjectBuilder, RingBuffer, RingBufferBuilder};

use crate::{KernelError, check_host, objects};

/// The section with the namespace's number, of `bpf/timeouts.bpf.c`.
const NET: &str = ".rodata.net";
const EVENTS: &str = "ab_timeouts";
/// Bytes of its `struct ab_timeout`.
const EVENT: usize = 12;

/// A retransmission timeout of a subflow, whose first packet has been sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout {
    /// Names the connection.
    pub token: u32,
    /// Of the subflow.
    pub local_port: u16,
    /// Of the subflow.
    pub remote_port: u16,
    /// Timeouts in a row, this one included; told again if more is sent again before anything is acknowledged.
    pub timeouts: u32,
}

impl Timeout {
    fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; EVENT] = bytes.get(..EVENT)?.try_into().ok()?;
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *bytes;
        Some(Self {
            token: u32::from_ne_bytes([a, b, c, d]),
            timeouts: u32::from_ne_bytes([e, f, g, h]),
            local_port: u16::from_ne_bytes([i, j]),
            remote_port: u16::from_be_bytes([k, l]),
        })
    }
}

/// Hears of the subflows of the network namespace that the thread was in when it began; until dropped.
///
/// Its descriptor is readable when there is something to [`take`](Self::take).
pub struct Timeouts {
    ring: RingBuffer<'static>,
    told: Rc<RefCell<Vec<Timeout>>>,
    // Declared before the object: what is attached goes before the programs do.
    _link: Link,
    _object: Object,
}

impl Timeouts {
    /// Begins to hear.
    ///
    /// # Errors
    /// [`KernelError::NotBuilt`], [`KernelError::NotPermitted`], [`KernelError::NoBtf`] or [`KernelError::KernelTooOld`] where BPF
    /// cannot be used, [`KernelError::NoTimeouts`] if the kernel refuses.
    pub fn hear() -> Result<Self, KernelError> {
        let elf = objects::timeouts_elf()?;
        check_host()?;
        let refused = |source| KernelError::NoTimeouts { source };
        let net = fs::metadata("/proc/thread-self/ns/net").map_err(|error| refused(error.into()))?.ino();
        // Numbers of namespaces have 32 bits in the kernel.
        let net = (net as u32).to_ne_bytes();
        let mut open = ObjectBuilder::default().open_memory(elf).map_err(refused)?;
        let mut map = open.maps_mut().find(|map| map.name() == NET).expect("the program has this section");
        map.initial_value_mut().expect("it has contents")[..net.len()].copy_from_slice(&net);
        let object = open.load().map_err(refused)?;
        let program = object.progs_mut().next().expect("it is one program");
        let link = program.attach().map_err(refused)?;

        let told = Rc::new(RefCell::new(Vec::new()));
        let into = Rc::clone(&told);
        let events = object.maps().find(|map| map.name() == EVENTS).expect("the program has this map");
        let mut ring = RingBufferBuilder::new();
        ring.add(&events, move |bytes| {
            into.borrow_mut().extend(Timeout::read(bytes));
            0
        })
        .map_err(refused)?;
        let ring = ring.build().map_err(refused)?;
        Ok(Self { ring, told, _link: link, _object: object })
    }

    /// What has been told since the last call, in order.
    ///
    /// # Errors
    /// [`KernelError::Read`].
    pub fn take(&mut self) -> Result<Vec<Timeout>, KernelError> {
        self.ring.consume().map_err(|source| KernelError::Read { what: EVENTS, source })?;
        Ok(std::mem::take(&mut self.told.borrow_mut()))
    }
}

impl AsFd for Timeouts {
    #[allow(unsafe_code)]
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring owns this descriptor, and lives as long as the borrow.
        unsafe { BorrowedFd::borrow_raw(self.ring.epoll_fd()) }
    }
}

impl std::fmt::Debug for Timeouts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Timeouts")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_twelve_bytes_and_ports_of_two_orders() {
        let mut bytes = [0; EVENT];
        bytes[..4].copy_from_slice(&0xbeef_u32.to_ne_bytes());
        bytes[4..8].copy_from_slice(&2u32.to_ne_bytes());
        bytes[8..10].copy_from_slice(&50_011u16.to_ne_bytes());
        bytes[10..].copy_from_slice(&443u16.to_be_bytes());
        let read = Timeout { token: 0xbeef, local_port: 50_011, remote_port: 443, timeouts: 2 };
        assert_eq!(Timeout::read(&bytes), Some(read));
        assert_eq!(Timeout::read(&bytes[..11]), None);
    }
}
