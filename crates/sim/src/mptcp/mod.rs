//! The data level of a connection (RFC 8684 section 3.3): what the application wrote, what is
//! acknowledged, what is held out of order. A TCP connection has it too, with one subflow.

pub(crate) mod later;
pub(crate) mod meta_receiver;
pub(crate) mod meta_sender;
pub(crate) mod remedy;
pub(crate) mod send_buffer;
pub(crate) mod stale;
pub(crate) mod waits;
pub(crate) mod window;
