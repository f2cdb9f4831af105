//! AF_XDP sockets in copy mode (Documentation/networking/af_xdp.rst), one queue per device.
#![allow(
    unsafe_code,
    reason = "rings in memory that is shared with the kernel; each block says why it is sound"
)]

mod program;

use std::{
    io,
    mem::zeroed,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
    ptr::{self, null_mut},
    slice,
    sync::atomic::{AtomicU32, Ordering},
};

use crate::{
    packet::{checked, set},
    path::{BATCH, Buffer, Port},
};

/// Frames of one socket: the first half to receive into, the second to send from.
const FRAMES: u32 = 4096;
const FRAME_BYTES: u32 = 2048;
/// Entries of each ring, a power of two.
const RING: u32 = FRAMES / 2;

/// Memory from mmap(2).
struct Mapping {
    base: *mut u8,
    length: usize,
}

impl Mapping {
    fn new(length: usize, descriptor: Option<(&OwnedFd, i64)>) -> io::Result<Self> {
        let (flags, raw, offset) = match descriptor {
            Some((socket, offset)) => (libc::MAP_SHARED, socket.as_raw_fd(), offset),
            None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0),
        };
        let flags = flags | libc::MAP_POPULATE;
        // SAFETY: the kernel chooses a place that nobody uses.
        let base =
            unsafe { libc::mmap(null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, flags, raw, offset) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { base: base.cast(), length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nobody keeps references into it.
        unsafe { libc::munmap(self.base.cast(), self.length) };
    }
}

/// A ring of entries `T` that one side fills and the other empties.
struct Ring<T> {
    _mapping: Mapping,
    producer: *const AtomicU32,
    consumer: *const AtomicU32,
    entries: *mut T,
    /// Our own end: the next entry that we fill or empty.
    own: u32,
}

impl<T: Copy> Ring<T> {
    fn map(socket: &OwnedFd, page_offset: i64, offsets: &libc::xdp_ring_offset) -> io::Result<Self> {
        let length = offsets.desc as usize + RING as usize * size_of::<T>();
        let mapping = Mapping::new(length, Some((socket, page_offset)))?;
        // SAFETY: the kernel put the ring's parts at these offsets of the mapping, aligned.
        let [producer, consumer, entries] = [offsets.producer, offsets.consumer, offsets.desc]
            .map(|at| unsafe { mapping.base.add(at as usize) });
        Ok(Self {
            producer: producer.cast(),
            consumer: consumer.cast(),
            entries: entries.cast(),
            own: 0,
            _mapping: mapping,
        })
    }

    fn entry(&self, index: u32) -> *mut T {
        // SAFETY: the index is reduced to one of the ring's entries.
        unsafe { self.entries.add((index & (RING - 1)) as usize) }
    }

    /// Fills one entry; the ring has room.
    fn put(&mut self, value: T) {
        // SAFETY: the entry is ours until the producer's index passes it.
        unsafe { ptr::write_volatile(self.entry(self.own), value) };
        self.own = self.own.wrapping_add(1);
        // SAFETY: the index lies in the mapping, which lives as long as we do.
        unsafe { (*self.producer).store(self.own, Ordering::Release) };
    }

    /// Empties one entry, if there is one.
    fn take(&mut self) -> Option<T> {
        // SAFETY: the index lies in the mapping, which lives as long as we do.
        if unsafe { (*self.producer).load(Ordering::Acquire) } == self.own {
            return None;
        }
        // SAFETY: the entry is ours until the consumer's index passes it.
        let value = unsafe { ptr::read_volatile(self.entry(self.own)) };
        self.own = self.own.wrapping_add(1);
        // SAFETY: as above.
        unsafe { (*self.consumer).store(self.own, Ordering::Release) };
        Some(value)
    }
}

/// An AF_XDP socket on one device.
pub(crate) struct Xdp {
    receive: Ring<libc::xdp_desc>,
    transmit: Ring<libc::xdp_desc>,
    fill: Ring<u64>,
    completion: Ring<u64>,
    /// Frames to send from.
    free: Vec<u64>,
    // The program is detached before the socket goes.
    _program: program::Attached,
    socket: OwnedFd,
    frames: Mapping,
}

// SAFETY: the pointers lead into mappings that are the value's own; no thread keeps others.
unsafe impl Send for Xdp {}

impl Xdp {
    /// A socket on a device of the calling thread's namespace, all packets of which it takes from now on.
    pub(crate) fn new(device: &str) -> io::Result<Self> {
        let index = nix::net::if_::if_nametoindex(device)?;
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers are involved, and the descriptor is fresh.
        let socket = unsafe { OwnedFd::from_raw_fd(checked(libc::socket(libc::AF_XDP, kind, 0))?) };
        let length = FRAMES as usize * FRAME_BYTES as usize;
        let frames = Mapping::new(length, None)?;
        let memory = libc::xdp_umem_reg {
            addr: frames.base as u64,
            len: length as u64,
            chunk_size: FRAME_BYTES,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set(&socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &memory)?;
        // The kernel refuses to say where the rings' parts lie before it knows their sizes.
        for option in
            [libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_RX_RING, libc::XDP_TX_RING]
        {
            set(&socket, libc::SOL_XDP, option, &RING)?;
        }
        let offsets = offsets(&socket)?;
        let mut fill = Ring::map(&socket, libc::XDP_UMEM_PGOFF_FILL_RING as i64, &offsets.fr)?;
        let completion = Ring::map(&socket, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64, &offsets.cr)?;
        let receive = Ring::map(&socket, libc::XDP_PGOFF_RX_RING, &offsets.rx)?;
        let transmit = Ring::map(&socket, libc::XDP_PGOFF_TX_RING, &offsets.tx)?;
        let frame = |number: u32| u64::from(number * FRAME_BYTES);
        (0..RING).for_each(|number| fill.put(frame(number)));
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: libc::XDP_COPY,
            sxdp_ifindex: index,
            sxdp_queue_id: 0,
            sxdp_shared_umem_fd: 0,
        };
        let size = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
        // SAFETY: the address lives through the call, and its size is given.
        checked(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) })?;
        let program = program::attach(index, &socket)?;
        let free = (RING..FRAMES).map(frame).collect();
        Ok(Self { receive, transmit, fill, completion, free, _program: program, socket, frames })
    }
}

fn offsets(socket: &OwnedFd) -> io::Result<libc::xdp_mmap_offsets> {
    // SAFETY: offsets of zeroes are valid.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { zeroed() };
    let mut size = size_of::<libc::xdp_mmap_offsets>() as libc::socklen_t;
    let to = (&raw mut offsets).cast();
    // SAFETY: the kernel writes at most `size` bytes to the offsets.
    checked(unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, to, &raw mut size)
    })?;
    Ok(offsets)
}

impl Port for Xdp {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn receive(&mut self, buffers: &mut [Buffer]) -> io::Result<usize> {
        for (count, buffer) in buffers.iter_mut().enumerate() {
            let Some(packet) = self.receive.take() else { return Ok(count) };
            buffer.length = packet.len as usize;
            // SAFETY: the kernel names a part of the frames, which is ours until we give the frame back.
            let bytes =
                unsafe { slice::from_raw_parts(self.frames.base.add(packet.addr as usize), buffer.length) };
            buffer.bytes[..buffer.length].copy_from_slice(bytes);
            self.fill.put(packet.addr & !u64::from(FRAME_BYTES - 1));
        }
        Ok(buffers.len())
    }

    fn send(&mut self, packets: &[Buffer]) -> io::Result<()> {
        while let Some(frame) = self.completion.take() {
            self.free.push(frame);
        }
        for packet in packets {
            // Without a free frame the device is full, and the packet is gone.
            let Some(addr) = self.free.pop() else { break };
            // SAFETY: the frame is free, so nobody else reads or writes it, and a buffer is no larger.
            unsafe {
                let frame = self.frames.base.add(addr as usize);
                ptr::copy_nonoverlapping(packet.bytes.as_ptr(), frame, packet.length);
            }
            self.transmit.put(libc::xdp_desc { addr, len: packet.length as u32, options: 0 });
        }
        // One call sends a limited number of packets; a kernel that has no memory for more loses them.
        for _ in 0..BATCH {
            let flags = libc::MSG_DONTWAIT;
            // SAFETY: nothing is named; the call tells the kernel to look at the ring.
            let result =
                unsafe { libc::sendto(self.socket.as_raw_fd(), null_mut(), 0, flags, null_mut(), 0) };
            match checked(result as libc::c_int) {
                Ok(_) => break,
                Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {}
                Err(error) if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::ENOBUFS)) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
