//! TUN devices: IP packets of a namespace at a file descriptor.

use std::{
    fs::OpenOptions,
    io,
    os::fd::{AsFd, AsRawFd as _, OwnedFd},
    os::unix::fs::OpenOptionsExt as _,
};

mod sys {
    nix::ioctl_write_int!(
        /// `TUNSETIFF`, whose argument is the address of an `ifreq`.
        tun_set_iff, b'T', 202
    );
    nix::ioctl_write_ptr!(
        /// `TUNSETCARRIER`, whose argument points to an `int`.
        tun_set_carrier, b'T', 226, libc::c_int
    );
}

/// Makes the TUN device `name` in the namespace of the calling thread. It is down, has no addresses, and goes
/// when the descriptor is closed. A read returns one whole IP packet, a write delivers one; neither blocks.
///
/// # Errors
/// What `open(2)` of `/dev/net/tun` or `TUNSETIFF` says.
///
/// # Panics
/// If the name is longer than 15 bytes.
pub fn open(name: &str) -> io::Result<OwnedFd> {
    let file =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    assert!(name.len() < libc::IFNAMSIZ, "{name:?} is too long for a device");
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: (libc::IFF_TUN | libc::IFF_NO_PI) as i16 },
    };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    #[allow(unsafe_code)]
    // SAFETY: the request is a whole `ifreq` that lives through the call, which is what TUNSETIFF reads.
    unsafe { sys::tun_set_iff(file.as_raw_fd(), (&raw const request) as u64) }?;
    Ok(file.into())
}

/// Takes the carrier of a device away, as a Wi-Fi that loses its access point, or gives it back.
///
/// # Errors
/// What `TUNSETCARRIER` (Linux 5.0) says.
pub fn set_carrier(device: impl AsFd, up: bool) -> io::Result<()> {
    let carrier = libc::c_int::from(up);
    #[allow(unsafe_code)]
    // SAFETY: the kernel reads one `int`, which lives through the call.
    unsafe { sys::tun_set_carrier(device.as_fd().as_raw_fd(), &raw const carrier) }?;
    Ok(())
}
