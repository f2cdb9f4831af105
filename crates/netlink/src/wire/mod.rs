//! Bytes to messages and back (netlink(7), RFC 3549).
//!
//! Strict in form and lenient in content: a length that does not fit makes a message [`Malformed`] as a whole, since what is cut
//! off might have changed its meaning; an attribute of a type that is not known is passed over, since kernels grow.

mod acknowledgement;
mod answer;
pub(crate) mod attributes;
mod message;

pub use acknowledgement::Acknowledgement;
pub use answer::{Answer, Body, Ending};
pub(crate) use attributes::{Attributes, Writer};
pub(crate) use message::Question;
pub use message::{Message, messages};

/// Bytes that are no message, and what is wrong with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);
