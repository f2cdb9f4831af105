//! Packets of a run as others read them: the library `pcap-file`, and tshark where it is installed.

mod files;
mod qlog;
mod runs;
mod signals;
mod tshark;
