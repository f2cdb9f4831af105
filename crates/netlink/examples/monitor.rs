//! Prints what happens to connections of Multipath TCP, links, addresses and routes, as `ip mptcp monitor` and `ip monitor` do.
//!
//! `sudo -E env PATH="$PATH" cargo run -p anabranch-netlink --example monitor`

use std::io::Write as _;

use anabranch_netlink::{mptcp, rtnetlink};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::os::fd::AsFd as _;

    let mut out = std::io::stdout();
    for link in rtnetlink::Rtnetlink::open()?.links()? {
        writeln!(out, "{link:?}")?;
    }
    for endpoint in mptcp::PathManager::open()?.endpoints()? {
        writeln!(out, "endpoint {endpoint}")?;
    }
    let mut connections = mptcp::Events::open()?;
    let mut network = rtnetlink::Events::open()?;
    loop {
        while let Some(event) = connections.next()? {
            writeln!(out, "{event:?}")?;
        }
        while let Some(event) = network.next()? {
            writeln!(out, "{event:?}")?;
        }
        let sockets = [connections.as_fd(), network.as_fd()];
        poll(&mut sockets.map(|socket| PollFd::new(socket, PollFlags::POLLIN)), PollTimeout::NONE)?;
    }
}
