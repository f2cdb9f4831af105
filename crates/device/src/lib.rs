//! What `anabranchd` does: look at a machine, and run the congestion controls of `algorithms/` in its kernel.
//! What `anabranchd send` and `receive` do is the library `anabranch-transfer`.
//!
//! [`doctor`] only reads files, under a root that is an argument. [`cc`] loads, selects and shows; it needs the feature
//! `cc`, and root. [`path`] shows and changes what the path manager of Multipath TCP has, and [`agent`]
//! is one; they need the feature `agent`.

#[cfg(feature = "agent")]
pub mod agent;
#[cfg(feature = "cc")]
pub mod cc;
pub mod doctor;
mod error;
#[cfg(feature = "agent")]
pub mod path;

pub use error::DeviceError;
