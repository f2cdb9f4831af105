//! The congestion controls of `algorithms/` in this machine's kernel: what there is, loading, unloading, selecting.
//!
//! Everything here works on the running kernel and needs root but for [`catalogue()`] and [`export()`].

mod catalogue;
mod cgroups;
mod export;
mod load;
mod namespaces;
mod netlink;
mod params;
mod routes;
mod selection;
mod sockets;
mod status;
mod unload;

use std::fs;

use anabranch_cc::Algorithm;
use anabranch_kernel::{KernelError, kernel_name};

pub use catalogue::{Entry, Parameter, catalogue};
pub use cgroups::{stop_in_cgroup, use_in_cgroup};
pub use export::export;
pub use load::{Request, load};
pub use namespaces::Namespace;
pub use routes::{ChangedRoute, Prefix, use_on_routes};
pub use selection::{Replaced, Selection, stop_in_namespace, use_in_namespace};
pub use sockets::SocketInUse;
pub use status::{Counted, Status, status};
pub use unload::{Unloaded, unload};

use crate::DeviceError;

/// Where registrations are kept unless another folder is given.
pub const PIN_FOLDER: &str = "/sys/fs/bpf/anabranch";

/// The algorithm of that name, or of that name in the kernel.
///
/// # Errors
/// [`DeviceError::Pins`] with [`KernelError::Unknown`], which has the nearest name.
pub fn find(name: &str) -> Result<&'static Algorithm, DeviceError> {
    let plain = name.strip_prefix("ab_").unwrap_or(name);
    anabranch_cc::find(plain).ok_or_else(|| {
        let nearest = nearest(plain, anabranch_cc::algorithms().iter().map(Algorithm::name));
        let nearest = nearest.expect("the registry is not empty");
        DeviceError::Pins(KernelError::Unknown { name: name.to_owned(), nearest }.into())
    })
}

/// Whether the kernel has the algorithm under its name now, from whatever loader.
pub(crate) fn is_registered(algorithm: &Algorithm) -> bool {
    registered().contains(&kernel_name(algorithm))
}

/// Names of the congestion controls that the kernel has now.
fn registered() -> Vec<String> {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    names.split_whitespace().map(str::to_owned).collect()
}

/// The candidate that resembles `name` most.
fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates.min_by_key(|candidate| strsim::damerau_levenshtein(name, candidate))
}
