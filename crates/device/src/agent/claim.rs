//! Whether the agent may manage this network namespace, and that it alone does.

use std::path::Path;

use anabranch_netlink::mptcp::{Choice, Turn};

use super::{Config, control::Control};
use crate::{DeviceError, doctor::Facts};

/// The right to manage the namespace, held while the value lives.
pub(super) struct Claim {
    pub(super) control: Control,
    before: String,
    /// What to write where when it is over.
    restore: Option<(Choice, String)>,
}

impl Claim {
    pub(super) fn make(config: &Config) -> Result<Self, DeviceError> {
        // Until it is chosen, nobody else may have it otherwise for a moment.
        let turn = Turn::take()?;
        let facts = Facts::read(Path::new("/"), std::env::consts::ARCH);
        match facts.mptcp_enabled {
            Some(true) => {}
            Some(false) => {
                return Err(unavailable("net.mptcp.enabled is 0; sysctl -w net.mptcp.enabled=1"));
            }
            None => return Err(unavailable("this kernel has no Multipath TCP; see `anabranchd doctor`")),
        }
        if facts.missing_capabilities.contains(&"CAP_NET_ADMIN") {
            return Err(unavailable("the agent needs CAP_NET_ADMIN; run it as root (sudo)"));
        }
        if !facts.managers.is_empty() && !config.beside_managers {
            return Err(DeviceError::Refused(format!(
                "{} runs and may manage Multipath TCP, too. To hand over: of NetworkManager, `nmcli connection modify NAME \
                 connection.mptcp-flags disabled` for each connection; of mptcpd, `systemctl disable --now mptcp`. Then, or if it does \
                 something else, set `beside_managers = true` under [agent]",
                facts.managers.join(" and ")
            )));
        }
        let control = Control::open()?;
        let before = facts.path_manager.unwrap_or_else(|| "kernel".to_owned());
        let restore = match before.as_str() {
            "userspace" => None,
            _ if config.set_pm_type => Some(take(&turn)?),
            _ => {
                return Err(DeviceError::Refused(format!(
                    "the path manager of this network namespace is `{before}`: set `set_pm_type = true` under [agent], or \
                     sysctl -w net.mptcp.pm_type=1"
                )));
            }
        };
        Ok(Self { control, before, restore })
    }

    /// Who managed connections that began before.
    pub(super) fn before(&self) -> &str {
        &self.before
    }

    /// Connections that begin from now on have the path manager that they had before the agent.
    pub(super) fn release(self) -> Result<(), DeviceError> {
        match self.restore {
            None => Ok(()),
            Some((choice, before)) => Ok(choice.restore(&before)?),
        }
    }
}

fn unavailable(text: &str) -> DeviceError {
    DeviceError::Unavailable(text.to_owned())
}

/// Lets user space manage connections that begin from now on; what to undo.
fn take(turn: &Turn) -> Result<(Choice, String), DeviceError> {
    let lacking = "this kernel has no path manager in user space (Linux 5.19)";
    let choice = Choice::find().ok_or_else(|| unavailable(lacking))?;
    let before = choice.choose_user_space(turn)?;
    Ok((choice, before))
}
