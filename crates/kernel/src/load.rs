//! Loading, registering and reading one algorithm.

use anabranch_cc::{Algorithm, Hosts};
use libbpf_rs::{ErrorKind, Link, MapCore, MapFlags, MapMut, MapType, Object, ObjectBuilder, libbpf_sys};

use crate::{Counters, KernelError, check_host, objects};

pub(crate) const PARAMS_SECTION: &str = ".rodata.params";
pub(crate) const COUNTERS_MAP: &str = "ab_counters";
pub(crate) const CONNECTIONS_MAP: &str = "ab_conns";

/// The name under which sockets choose the algorithm.
pub fn kernel_name(algorithm: &Algorithm) -> String {
    format!("ab_{}", algorithm.name())
}

/// A congestion control registered with the kernel, until dropped.
pub struct Attached {
    algorithm: &'static Algorithm,
    // Declared before the object: the name goes before the programs do.
    _link: Link,
    object: Object,
}

impl Attached {
    /// Loads and registers the algorithm `name` with parameters in the registry's order, as stored.
    ///
    /// # Errors
    /// Any [`KernelError`] but [`KernelError::Read`].
    pub fn load(name: &str, params: &[u32]) -> Result<Self, KernelError> {
        let mut prepared = Prepared::load(name, params)?;
        let link = prepared.register()?;
        Ok(Self { algorithm: prepared.algorithm, _link: link, object: prepared.object })
    }

    /// Loads and registers the algorithm `name` with its default parameters.
    ///
    /// # Errors
    /// As [`Attached::load`].
    pub fn load_with_defaults(name: &str) -> Result<Self, KernelError> {
        let params = default_params(find(name)?);
        Self::load(name, &params)
    }

    /// The algorithm.
    pub fn algorithm(&self) -> &'static Algorithm {
        self.algorithm
    }

    /// The name under which sockets choose it.
    pub fn kernel_name(&self) -> String {
        kernel_name(self.algorithm)
    }

    /// The parameters the kernel holds, in the registry's order, as stored.
    ///
    /// # Errors
    /// [`KernelError::Read`].
    pub fn params(&self) -> Result<Vec<u32>, KernelError> {
        read_params(self.map(PARAMS_SECTION), self.algorithm)
    }

    /// What the shim has counted so far.
    ///
    /// # Errors
    /// [`KernelError::Read`].
    pub fn counters(&self) -> Result<Counters, KernelError> {
        read_counters(self.map(COUNTERS_MAP))
    }

    /// Tokens of the MPTCP connections with at least one subflow in a slot; none if the algorithm does not
    /// couple. Sorted.
    pub fn connections(&self) -> Vec<u32> {
        let map = self.object.maps().find(|map| map.name() == CONNECTIONS_MAP);
        map.map(read_tokens).unwrap_or_default()
    }

    fn map(&self, name: &str) -> impl MapCore {
        self.object.maps().find(|map| map.name() == name).expect("every object has this map")
    }
}

impl std::fmt::Debug for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Attached({})", self.kernel_name())
    }
}

/// Programs and maps of an algorithm in the kernel, not yet registered.
pub(crate) struct Prepared {
    pub(crate) algorithm: &'static Algorithm,
    pub(crate) object: Object,
}

impl Prepared {
    pub(crate) fn load(name: &str, params: &[u32]) -> Result<Self, KernelError> {
        let algorithm = find(name)?;
        check_params(algorithm, params)?;
        let elf = objects::elf(algorithm.name())?;
        check_host()?;

        let refused = |source| KernelError::Refused { kernel_name: kernel_name(algorithm), source };
        let mut open = ObjectBuilder::default().open_memory(elf).map_err(refused)?;
        for mut map in open.maps_mut() {
            if map.map_type() == MapType::StructOps {
                // By default a registration outlives its loader, which suits bpftool; ours is held by a link.
                let flags = map.map_flags() | libbpf_sys::BPF_F_LINK;
                map.set_map_flags(flags).map_err(refused)?;
            } else if map.name() == PARAMS_SECTION
                && let Some(values) = map.initial_value_mut()
            {
                for (bytes, value) in values.chunks_exact_mut(4).zip(params) {
                    bytes.copy_from_slice(&value.to_ne_bytes());
                }
            }
        }
        Ok(Self { algorithm, object: open.load().map_err(refused)? })
    }

    /// Registers it until the link is gone.
    pub(crate) fn register(&mut self) -> Result<Link, KernelError> {
        let is_table = |map: &MapMut<'_>| map.map_type() == MapType::StructOps;
        let mut table = self.object.maps_mut().find(is_table).expect("the shim defines one struct_ops table");
        let kernel_name = kernel_name(self.algorithm);
        table.attach_struct_ops().map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => KernelError::NameTaken { kernel_name },
            _ => KernelError::Refused { kernel_name, source },
        })
    }
}

/// The default parameters in the registry's order, as stored.
pub(crate) fn default_params(algorithm: &Algorithm) -> Vec<u32> {
    algorithm.params().iter().map(|param| param.default).collect()
}

/// The parameters in a map that is the section `.rodata.params`.
pub(crate) fn read_params(map: impl MapCore, algorithm: &Algorithm) -> Result<Vec<u32>, KernelError> {
    let failed = |source| KernelError::Read { what: PARAMS_SECTION, source };
    let values = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(failed)?;
    let values = values.expect("an array has its first element");
    let words = values.chunks_exact(4).take(algorithm.params().len());
    Ok(words.map(|bytes| u32::from_ne_bytes(bytes.try_into().expect("chunks of four"))).collect())
}

/// The counters in a map `ab_counters`.
pub(crate) fn read_counters(map: impl MapCore) -> Result<Counters, KernelError> {
    let failed = |source| KernelError::Read { what: COUNTERS_MAP, source };
    let per_cpu = map.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(failed)?;
    Ok(Counters::sum(&per_cpu.expect("a per-CPU array has its first element")))
}

fn read_tokens(map: impl MapCore) -> Vec<u32> {
    let mut tokens: Vec<u32> =
        map.keys().map(|key| u32::from_ne_bytes(key.try_into().expect("the key is a token"))).collect();
    tokens.sort_unstable();
    tokens
}

pub(crate) fn find(name: &str) -> Result<&'static Algorithm, KernelError> {
    let Some(algorithm) = anabranch_cc::find(name) else {
        let nearest = anabranch_cc::algorithms()
            .iter()
            .map(Algorithm::name)
            .min_by_key(|candidate| strsim::damerau_levenshtein(name, candidate))
            .expect("the registry is not empty");
        return Err(KernelError::Unknown { name: name.to_owned(), nearest });
    };
    match algorithm.hosts() {
        Hosts::Both => Ok(algorithm),
        Hosts::Sim => Err(KernelError::SimulatorOnly { name: algorithm.name() }),
    }
}

fn check_params(algorithm: &'static Algorithm, params: &[u32]) -> Result<(), KernelError> {
    let name = algorithm.name();
    let expected = algorithm.params().len();
    if params.len() != expected {
        return Err(KernelError::ParameterCount { name, expected, found: params.len() });
    }
    for (&value, param) in params.iter().zip(algorithm.params()) {
        if !(param.min..=param.max).contains(&value) {
            let (min, max) = (param.min, param.max);
            return Err(KernelError::ParameterRange { name, parameter: param.name, value, min, max });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let error = Attached::load_with_defaults("lai").expect_err("there is no `lai`");
        assert_eq!(error.to_string(), "no congestion control `lai`; the nearest name is `lia`");
    }

    #[test]
    fn parameters_are_checked_before_the_kernel_sees_them() {
        let count = Attached::load("lia", &[]).expect_err("lia has parameters");
        assert!(matches!(count, KernelError::ParameterCount { expected: 1, found: 0, .. }), "{count}");
        let range = Attached::load("lia", &[7]).expect_err("precision has two values");
        assert_eq!(range.to_string(), "`lia`: parameter `precision` is 7, expected 0 to 1");
    }
}
