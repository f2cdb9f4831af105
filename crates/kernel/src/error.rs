//! What can go wrong between a name and a registered congestion control.

/// Why an algorithm cannot be loaded, or its state not read.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// No algorithm has this name.
    #[error("no congestion control `{name}`; the nearest name is `{nearest}`")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The registry's name that resembles it most.
        nearest: &'static str,
    },
    /// The algorithm exists, but not for the kernel.
    #[error("`{name}` runs in the simulator only")]
    SimulatorOnly {
        /// The algorithm.
        name: &'static str,
    },
    /// The crate was built without a BPF compiler.
    #[error("no BPF objects: {why}; on Debian `apt-get install clang-14`, then build again")]
    NotBuilt {
        /// What was missing.
        why: &'static str,
    },
    /// The wrong number of parameters.
    #[error("`{name}` has {expected} parameters, not {found}")]
    ParameterCount {
        /// The algorithm.
        name: &'static str,
        /// How many it has.
        expected: usize,
        /// How many were given.
        found: usize,
    },
    /// A parameter out of its range.
    #[error("`{name}`: parameter `{parameter}` is {value}, expected {min} to {max}")]
    ParameterRange {
        /// The algorithm.
        name: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// What was given, as stored.
        value: u32,
        /// Smallest value, as stored.
        min: u32,
        /// Largest value, as stored.
        max: u32,
    },
    /// The process may not load BPF programs.
    #[error("loading BPF programs needs root, or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN")]
    NotPermitted,
    /// The kernel does not describe its types.
    #[error("the kernel has no BTF (/sys/kernel/btf/vmlinux); it must be built with CONFIG_DEBUG_INFO_BTF")]
    NoBtf,
    /// The kernel cannot hold a congestion control by a link.
    #[error("Linux {found} is too old: BPF congestion control needs {needed} or later")]
    KernelTooOld {
        /// The running release.
        found: String,
        /// The oldest that works.
        needed: &'static str,
    },
    /// The kernel's name is taken; names are host-wide.
    #[error(
        "a congestion control `{kernel_name}` is registered already; unload it first \
         (`bpftool struct_ops unregister name {kernel_name}`)"
    )]
    NameTaken {
        /// The name.
        kernel_name: String,
    },
    /// The kernel refused the programs.
    #[error(
        "the kernel refused `{kernel_name}`: {source}; `bpftool -d struct_ops register {kernel_name}.bpf.o` \
         in target/bpf shows the verifier's reason"
    )]
    Refused {
        /// The name.
        kernel_name: String,
        /// libbpf's error.
        source: libbpf_rs::Error,
    },
    /// The kernel refused the program that tells of retransmission timeouts.
    #[error("the kernel refused the program that tells of retransmission timeouts: {source}")]
    NoTimeouts {
        /// libbpf's error.
        source: libbpf_rs::Error,
    },
    /// A map of the loaded algorithm could not be read.
    #[error("cannot read `{what}` of the loaded algorithm: {source}")]
    Read {
        /// Map.
        what: &'static str,
        /// libbpf's error.
        source: libbpf_rs::Error,
    },
}
