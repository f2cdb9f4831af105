//! Why a policy has decided as it has, for logs and for whoever reads them.

/// Why something is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// A word of the policy's page.
    pub code: &'static str,
    /// The numbers that decided it, with their units in the names.
    pub numbers: Vec<(&'static str, i64)>,
}

impl Reason {
    /// With these numbers; those beyond 2^63 - 1 count as that.
    pub(crate) fn new(code: &'static str, numbers: &[(&'static str, u64)]) -> Self {
        let numbers = numbers.iter().map(|&(name, value)| (name, i64::try_from(value).unwrap_or(i64::MAX)));
        Self { code, numbers: numbers.collect() }
    }
}
