//! This machine's links as a scenario: what its subflows of Multipath TCP tell of them while they carry data.
//!
//! Ten times a second the figures of all subflows are read (sock_diag) and put together by interface; [`meter`] reckons with them,
//! [`loss`] tells losses at random from the drops of a full queue, [`write`] writes the scenario. Interfaces have the names that they
//! have here, so that a configuration of the agent fits both.
//!
//! Left out, and who could notice: a longer propagation delay is not told from a queue; losses are those of what this machine sends; and
//! whether a bottleneck is behind the interface or farther on, perhaps shared, cannot be seen from here.

mod loss;
mod meter;
mod write;

use std::{
    fs::{self, OpenOptions},
    os::fd::AsFd as _,
    path::Path,
};

use anabranch_netlink::{
    NetlinkError,
    diag::SocketDiag,
    rtnetlink::{Address, Link, Rtnetlink},
};
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        signal::{SigSet, Signal},
        signalfd::{SfdFlags, SignalFd},
        time::TimeValLike as _,
    },
    time::{ClockId, clock_gettime},
};

use self::meter::{Meter, Sample};
use crate::DeviceError;

/// From one reading to the next.
const SAMPLE_NS: u64 = 100_000_000;
/// Shortest record: a few windows of [`meter::WINDOW_NS`].
const DURATION_MIN_NS: u64 = 3_000_000_000;
/// Longest record.
const DURATION_MAX_NS: u64 = 3_600_000_000_000;

/// How long is recorded, in words like `60s`.
///
/// # Errors
/// What is expected.
pub fn duration_ns(text: &str) -> Result<u64, String> {
    let duration = anabranch_agent_config::time(text)?;
    let is_possible = (DURATION_MIN_NS..=DURATION_MAX_NS).contains(&duration);
    if is_possible { Ok(duration) } else { Err("expected a time from 3 s to 1 h".to_owned()) }
}

/// Records for so long, or until SIGINT, and writes the scenario; says what was recorded, in a line per interface.
///
/// # Errors
/// [`DeviceError::Refused`] if no subflow has carried data; [`DeviceError::Netlink`]; [`DeviceError::System`].
pub fn record(file: &Path, duration_ns: u64) -> Result<Vec<String>, DeviceError> {
    // Found out now and not after a minute; what is in a file stays until there is something better.
    let was_there = file.exists();
    let opened = OpenOptions::new().append(true).create(true).open(file);
    opened.map_err(DeviceError::system(format!("writing {}", file.display())))?;
    let recorded = recorded(duration_ns).and_then(|meter| {
        let text = write::scenario(&meter);
        fs::write(file, text).map_err(DeviceError::system(format!("writing {}", file.display())))?;
        Ok(meter)
    });
    match recorded {
        Ok(meter) => Ok(write::lines(&meter)),
        Err(error) => {
            if !was_there {
                // An empty scenario would only be in the way.
                let _ = fs::remove_file(file);
            }
            Err(error)
        }
    }
}

fn recorded(duration_ns: u64) -> Result<Meter, DeviceError> {
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
    signals.thread_block().map_err(DeviceError::system("blocking signals"))?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let signals =
        SignalFd::with_flags(&signals, flags).map_err(DeviceError::system("waiting for signals"))?;
    let (mut diag, mut rtnetlink) = (SocketDiag::open()?, Rtnetlink::open()?);
    let mut meter = Meter::default();
    let begin = monotonic();
    for number in 0.. {
        let due = begin + number * SAMPLE_NS;
        let now = monotonic();
        if now < due {
            let timeout = PollTimeout::try_from((due - now).div_ceil(1_000_000)).unwrap_or(PollTimeout::MAX);
            let mut sockets = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
            // A signal or an error ends the record early; what there is until then is written.
            if poll(&mut sockets, timeout) != Ok(0) {
                break;
            }
        }
        let at_ns = monotonic() - begin;
        if at_ns > duration_ns {
            break;
        }
        match read(&mut diag, &mut rtnetlink) {
            Ok((links, addresses, samples)) => meter.take(at_ns, &links, &addresses, &samples),
            // The tables changed while they were listed; the next reading makes good for it.
            Err(NetlinkError::Unsteady { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if meter.interfaces().next().is_none() {
        return Err(DeviceError::Refused(
            "no subflow of Multipath TCP has carried data meanwhile: run something over it (`mptcpize run …`, `anabranchd send`), \
             and this as root, for only CAP_NET_ADMIN sees them"
                .to_owned(),
        ));
    }
    Ok(meter)
}

type Read = (Vec<Link>, Vec<Address>, Vec<Sample>);

fn read(diag: &mut SocketDiag, rtnetlink: &mut Rtnetlink) -> Result<Read, NetlinkError> {
    let (links, addresses) = (rtnetlink.links()?, rtnetlink.addresses()?);
    let samples = diag.subflows()?.iter().map(Sample::of).collect();
    Ok((links, addresses, samples))
}

fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock");
    u64::try_from(time.num_nanoseconds()).expect("the clock does not run before 0")
}
