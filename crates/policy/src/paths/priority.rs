//! MP_PRIO where it changes something.

use super::{Action, Decision, Observation};

/// Makes a path a backup or a regular one, unless it is that already.
pub(super) fn set(
    seen: &Observation<'_>,
    path: usize,
    backup: bool,
    code: &'static str,
    numbers: &[(&'static str, u64)],
    decisions: &mut Vec<Decision>,
) {
    if seen.paths[path].backup != backup {
        let action = if backup { Action::Backup } else { Action::Regular };
        decisions.push(Decision::new(path, action, code, numbers));
    }
}
