//! Namespaces, devices, addresses and routes: what a plan needs on the machine, and its removal.

mod awake;
mod commands;
mod endpoints;
mod interrupt;
mod lab;
mod ledger;
mod lock;
pub mod namespace;
mod requirements;
mod session;
mod supervise;
mod sysctl;
mod tool;
pub mod tun;

pub(crate) use awake::Awake;
pub use endpoints::Endpoints;
pub use interrupt::Interrupt;
pub use lab::{DeviceDrops, Lab};
pub use ledger::Leftover;
pub use namespace::Namespace;
pub use requirements::check as check_requirements;
pub use session::{Session, clean};
pub use supervise::supervised;
pub use tool::ip;
