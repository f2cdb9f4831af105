//! The smallest XDP program: every packet goes to the socket.

use std::{
    ffi::CStr,
    io,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
};

/// Commands and types of bpf(2).
const MAP_CREATE: libc::c_long = 0;
const MAP_UPDATE: libc::c_long = 2;
const PROGRAM_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;
const MAP_OF_SOCKETS: u32 = 17;
const PROGRAM_OF_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;

/// The program is attached for as long as this lives.
pub(crate) struct Attached {
    _link: OwnedFd,
}

/// Calls bpf(2) with a structure of the layout that belongs to the command.
fn bpf<T>(command: libc::c_long, attributes: &T) -> io::Result<libc::c_long> {
    // SAFETY: the attributes live through the call, and their size is given.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw const *attributes, size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn descriptor(result: libc::c_long) -> OwnedFd {
    // SAFETY: the kernel has just made it for us.
    unsafe { OwnedFd::from_raw_fd(result as i32) }
}

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
}

#[repr(C)]
struct MapUpdate {
    map: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    instructions: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    device: u32,
    attach_type: u32,
    flags: u32,
}

/// An instruction: code, destination and source register, offset, immediate.
const fn instruction(code: u8, destination: u8, source: u8, offset: i16, immediate: u32) -> u64 {
    code as u64
        | (destination as u64) << 8
        | (source as u64) << 12
        | (offset as u16 as u64) << 16
        | (immediate as u64) << 32
}

/// Attaches the program to a device, by its number in the calling thread's namespace, for the socket on the
/// device's only queue.
pub(crate) fn attach(device: u32, socket: &OwnedFd) -> io::Result<Attached> {
    let map = descriptor(bpf(
        MAP_CREATE,
        &MapCreate { kind: MAP_OF_SOCKETS, key_bytes: 4, value_bytes: 4, entries: 1 },
    )?);
    let (key, value) = (0_u32, socket.as_raw_fd());
    let (key, value) = ((&raw const key) as u64, (&raw const value) as u64);
    bpf(MAP_UPDATE, &MapUpdate { map: map.as_raw_fd() as u32, key, value, flags: 0 })?;
    let code = [
        // r2 = ctx->rx_queue_index
        instruction(0x61, 2, 1, 16, 0),
        // r1 = map
        instruction(0x18, 1, 1, 0, map.as_raw_fd() as u32),
        instruction(0, 0, 0, 0, 0),
        // r3 = XDP_PASS, if there is no socket
        instruction(0xb7, 3, 0, 0, 2),
        // return bpf_redirect_map(r1, r2, r3)
        instruction(0x85, 0, 0, 0, 51),
        instruction(0x95, 0, 0, 0, 0),
    ];
    let license: &CStr = c"Dual MIT/GPL";
    let program = descriptor(bpf(
        PROGRAM_LOAD,
        &ProgramLoad {
            kind: PROGRAM_OF_XDP,
            instructions: code.len() as u32,
            code: code.as_ptr() as u64,
            license: license.as_ptr() as u64,
            log_level: 0,
            log_bytes: 0,
            log: 0,
            kernel_version: 0,
            flags: 0,
        },
    )?);
    let program = program.as_raw_fd() as u32;
    let link = bpf(LINK_CREATE, &LinkCreate { program, device, attach_type: ATTACH_XDP, flags: 0 })?;
    Ok(Attached { _link: descriptor(link) })
}
