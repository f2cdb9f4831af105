//! Loading, registering and reading one algorithm.

use anabranch_cc::{Algorithm, Hosts};
use libbpf_rs::{
    ErrorKind, Link, MapCore as _, MapFlags, MapMut, MapType, Object, ObjectBuilder, libbpf_sys,
};

use crate::{Counters, KernelError, check_host, objects};

const PARAMS_SECTION: &str = ".rodata.params";
const COUNTERS_MAP: &str = "ab_counters";
const CONNECTIONS_MAP: &str = "ab_conns";

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
        let algorithm = find(name)?;
        check_params(algorithm, params)?;
        let elf = objects::elf(algorithm.name())?;
        check_host()?;

        let kernel_name = kernel_name(algorithm);
        let refused = |source| KernelError::Refused { kernel_name: kernel_name.clone(), source };
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
        let mut object = open.load().map_err(refused)?;
        let link = attach(&mut object).map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => KernelError::NameTaken { kernel_name: kernel_name.clone() },
            _ => refused(source),
        })?;
        Ok(Self { algorithm, _link: link, object })
    }

    /// Loads and registers the algorithm `name` with its default parameters.
    ///
    /// # Errors
    /// As [`Attached::load`].
    pub fn load_with_defaults(name: &str) -> Result<Self, KernelError> {
        let params: Vec<u32> = find(name)?.params().iter().map(|param| param.default).collect();
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
        let failed = |source| KernelError::Read { what: PARAMS_SECTION, source };
        let map =
            self.object.maps().find(|map| map.name() == PARAMS_SECTION).expect("every object has parameters");
        let values = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(failed)?;
        let values = values.expect("an array has its first element");
        let words = values.chunks_exact(4).take(self.algorithm.params().len());
        Ok(words.map(|bytes| u32::from_ne_bytes(bytes.try_into().expect("chunks of four"))).collect())
    }

    /// What the shim has counted so far.
    ///
    /// # Errors
    /// [`KernelError::Read`].
    pub fn counters(&self) -> Result<Counters, KernelError> {
        let failed = |source| KernelError::Read { what: COUNTERS_MAP, source };
        let map =
            self.object.maps().find(|map| map.name() == COUNTERS_MAP).expect("every object has counters");
        let per_cpu = map.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(failed)?;
        Ok(Counters::sum(&per_cpu.expect("a per-CPU array has its first element")))
    }

    /// Tokens of the MPTCP connections with at least one subflow in a slot; none if the algorithm does not
    /// couple. Sorted.
    pub fn connections(&self) -> Vec<u32> {
        let Some(map) = self.object.maps().find(|map| map.name() == CONNECTIONS_MAP) else {
            return Vec::new();
        };
        let mut tokens: Vec<u32> =
            map.keys().map(|key| u32::from_ne_bytes(key.try_into().expect("the key is a token"))).collect();
        tokens.sort_unstable();
        tokens
    }
}

impl std::fmt::Debug for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Attached({})", self.kernel_name())
    }
}

fn attach(object: &mut Object) -> Result<Link, libbpf_rs::Error> {
    let is_table = |map: &MapMut<'_>| map.map_type() == MapType::StructOps;
    let mut table = object.maps_mut().find(is_table).expect("the shim defines one struct_ops table");
    table.attach_struct_ops()
}

fn find(name: &str) -> Result<&'static Algorithm, KernelError> {
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
