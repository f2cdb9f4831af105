//! A plan made real: a namespace for each host, a TUN device for each interface, addresses and routes.

use std::{fs, os::fd::OwnedFd, path::Path};

use super::{Leftover, Namespace, Session, commands, namespace, sysctl, tool::run, tun};
use crate::{
    BedError,
    plan::{Host, Plan},
};

/// What a plan needs on the machine. Dropping it removes everything and strikes it off the session's ledger.
#[derive(Debug)]
pub struct Lab {
    /// One per host of the plan, in its order.
    pub hosts: Vec<Namespace>,
    /// Host by host, interface by interface.
    devices: Vec<Device>,
    session: Session,
}

#[derive(Debug)]
struct Device {
    host: usize,
    name: String,
    link: String,
    descriptor: OwnedFd,
}

/// Packets that the kernel has dropped between a namespace and the emulator: there should be none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceDrops {
    /// Index into the plan's hosts.
    pub host: usize,
    /// The interface's name in the namespace.
    pub interface: String,
    /// The name of its link or medium.
    pub link: String,
    /// Packets from the host that found the device's queue full, because the emulator did not read in time.
    pub from_host: u64,
    /// Packets from the emulator that the kernel did not take.
    pub to_host: u64,
}

/// Longest file name, and so longest name of a namespace.
const NAME_BYTES_MAX: usize = 255;

impl Lab {
    /// Builds what the plan says. On an error nothing of it is left.
    ///
    /// # Errors
    /// [`BedError::Input`] if a node's name or a sysctl cannot be, [`BedError::Unavailable`] if the kernel lacks
    /// something, [`BedError::Failed`] with the words of ip(8), [`BedError::System`].
    pub fn build(plan: &Plan, session: &Session) -> Result<Self, BedError> {
        let ipv6 = Path::new("/proc/sys/net/ipv6").exists();
        let names = names(plan, ipv6)?;
        session.note_all(names.iter().cloned().map(Leftover::Namespace))?;
        // From here on, what has been made goes by being dropped.
        let mut lab = Self { hosts: Vec::new(), devices: Vec::new(), session: session.clone() };
        match Namespace::new_all(&names) {
            Ok(hosts) => lab.hosts = hosts,
            Err(error) => {
                session.forget_all(&names.into_iter().map(Leftover::Namespace).collect::<Vec<_>>())?;
                return Err(error);
            }
        }
        for (index, host) in plan.hosts.iter().enumerate() {
            lab.set_up(index, host, ipv6)?;
        }
        Ok(lab)
    }

    fn set_up(&mut self, index: usize, host: &Host, ipv6: bool) -> Result<(), BedError> {
        let namespace = &self.hosts[index];
        let name = namespace.name();
        sysctl::set(namespace, &commands::base_sysctls(ipv6))?;
        let descriptors: Vec<_> = namespace.enter(|| {
            let open = |name: &String| {
                tun::open(name)
                    .map_err(BedError::system(format!("making TUN device {name} of {}", host.name)))
            };
            host.interfaces.iter().map(|interface| open(&interface.name)).collect::<Result<_, _>>()
        })??;
        for (interface, descriptor) in host.interfaces.iter().zip(descriptors) {
            self.devices.push(Device {
                host: index,
                name: interface.name.clone(),
                link: interface.link.clone(),
                descriptor,
            });
        }
        sysctl::set(namespace, &commands::sysctls(host, ipv6))?;
        run("tc", &["-n", name, "-batch", "-"], Some(&commands::queueing(host)))?;
        run("ip", &["-n", name, "-batch", "-"], Some(&commands::setup(host)))?;
        let rules = commands::ipv6_rules(host);
        if !rules.is_empty() {
            run("ip", &["-6", "-n", name, "-batch", "-"], Some(&rules))?;
        }
        Ok(())
    }

    /// A descriptor for each TUN device, host by host and interface by interface as the plan has them. The lab
    /// keeps the devices, and their counters, whether or not the descriptors are closed.
    ///
    /// # Errors
    /// [`BedError::System`] if the process has too many descriptors.
    pub fn devices(&self) -> Result<Vec<OwnedFd>, BedError> {
        let clone = |device: &Device| device.descriptor.try_clone();
        let clones: Result<_, _> = self.devices.iter().map(clone).collect();
        clones.map_err(BedError::system("duplicating the TUN devices' descriptors"))
    }

    /// The devices at which the kernel has dropped packets since they were made.
    ///
    /// # Errors
    /// [`BedError::System`] if the counters cannot be read.
    pub fn device_drops(&self) -> Result<Vec<DeviceDrops>, BedError> {
        let mut all = Vec::new();
        for (index, namespace) in self.hosts.iter().enumerate() {
            let table = namespace
                .enter(|| fs::read_to_string("/proc/thread-self/net/dev"))?
                .map_err(BedError::system(format!("reading the device counters of {}", namespace.name())))?;
            for device in self.devices.iter().filter(|device| device.host == index) {
                let (to_host, from_host) = dropped(&table, &device.name).ok_or_else(|| {
                    BedError::Failed(format!("device {} of {} is gone", device.name, namespace.name()))
                })?;
                if from_host + to_host > 0 {
                    let (interface, link) = (device.name.clone(), device.link.clone());
                    all.push(DeviceDrops { host: index, interface, link, from_host, to_host });
                }
            }
        }
        Ok(all)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let leftover = |host: &Namespace| Leftover::Namespace(host.name().to_owned());
        let leftovers: Vec<_> = self.hosts.iter().map(leftover).collect();
        self.devices.clear();
        self.hosts.clear();
        // An entry that stays only makes the session's end look for what is gone.
        let _ = self.session.forget_all(&leftovers);
    }
}

/// The namespaces' names, if every host of the plan can have one.
fn names(plan: &Plan, ipv6: bool) -> Result<Vec<String>, BedError> {
    let addresses =
        plan.hosts.iter().flat_map(|host| &host.interfaces).flat_map(|interface| &interface.addresses);
    if !ipv6 && addresses.into_iter().any(|address| address.ip.is_ipv6()) {
        let text = "this kernel has no IPv6, which the scenario asks for; use ip = \"v4\"";
        return Err(BedError::Unavailable(text.to_owned()));
    }
    let longest = NAME_BYTES_MAX - namespace::PREFIX.len();
    if let Some(host) = plan.hosts.iter().find(|host| host.name.len() > longest) {
        return Err(BedError::Input(format!(
            "node {} has a name of {} bytes; the test bed can name a network namespace after it if it has at \
             most {longest}",
            host.name,
            host.name.len()
        )));
    }
    Ok(plan.hosts.iter().map(|host| format!("{}{}", namespace::PREFIX, host.name)).collect())
}

/// Packets dropped by a device, received and sent as the kernel sees it, from the text of `/proc/net/dev`.
fn dropped(table: &str, device: &str) -> Option<(u64, u64)> {
    let counters =
        table.lines().find_map(|line| line.trim_start().strip_prefix(device)?.strip_prefix(':'))?;
    let counters: Vec<u64> =
        counters.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    // Receive: bytes packets errs drop fifo frame compressed multicast; transmit: bytes packets errs drop ...
    let sum = |at: usize| counters.get(at..at + 2).map(|pair| pair.iter().sum());
    Some((sum(2)?, sum(10)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_read_from_the_right_columns_of_the_right_device() {
        let table = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
   if1:    9000      60    1    2    4     8         16        32     4000      40    5    7   64   128     256        512
  if10:    9000      60    9    9    9     9          9         9     4000      40    9    9    9     9       9          9
";
        assert_eq!(dropped(table, "if1"), Some((3, 12)));
        assert_eq!(dropped(table, "if2"), None);
    }
}
