//! Registering and unregistering, by our loader and without it.

mod common;

use std::{
    fs,
    path::Path,
    process::Command,
    sync::{Mutex, PoisonError},
};

use anabranch_kernel::{Attached, KernelError, available};
use common::{skip, skip_for};

/// Names of congestion controls are host-wide.
static TURN: Mutex<()> = Mutex::new(());

fn registered(kernel_name: &str) -> bool {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    names.expect("it is readable").split_whitespace().any(|name| name == kernel_name)
}

#[test]
fn every_algorithm_of_both_hosts_registers_until_dropped() {
    if skip("every_algorithm_of_both_hosts_registers_until_dropped") {
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for name in available().expect("the build has made objects") {
        let attached = Attached::load_with_defaults(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        let kernel_name = attached.kernel_name();
        assert!(registered(&kernel_name), "{kernel_name}");
        let defaults: Vec<u32> = attached.algorithm().params().iter().map(|param| param.default).collect();
        assert_eq!(attached.params().expect("they are readable"), defaults, "{name}");
        assert_eq!(attached.counters().expect("they are readable"), Default::default());
        drop(attached);
        assert!(!registered(&kernel_name), "{kernel_name} after the drop");
    }
}

#[test]
fn parameters_reach_the_kernel() {
    if skip("parameters_reach_the_kernel") {
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for name in available().expect("the build has made objects") {
        let algorithm = anabranch_cc::find(name).expect("objects are made from the registry");
        let largest: Vec<u32> = algorithm.params().iter().map(|param| param.max).collect();
        let attached = Attached::load(name, &largest).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(attached.params().expect("they are readable"), largest, "{name}");
    }
}

#[test]
fn a_name_that_is_taken_is_refused() {
    if skip("a_name_that_is_taken_is_refused") {
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let first = Attached::load_with_defaults("reno").expect("ab_reno loads");
    match Attached::load_with_defaults("reno") {
        Err(KernelError::NameTaken { kernel_name }) => assert_eq!(kernel_name, "ab_reno"),
        other => panic!("{other:?}"),
    }
    assert!(registered("ab_reno"), "the failure does not touch the first");
    drop(first);
}

#[test]
fn bpftool_registers_the_objects_without_our_loader() {
    if skip("bpftool_registers_the_objects_without_our_loader") {
        return;
    }
    let there = Command::new("bpftool").arg("version").output().is_ok();
    if !there
        && skip_for(
            "bpftool_registers_the_objects_without_our_loader",
            "no bpftool",
            "apt-get install -y bpftool",
        )
    {
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let objects = Path::new(env!("ANABRANCH_BPF_DIR")).ancestors().nth(4).expect("target").join("bpf");
    for name in available().expect("the build has made objects") {
        let kernel_name = format!("ab_{name}");
        let object = objects.join(format!("{kernel_name}.bpf.o"));
        let by_hand = RegisteredByBpftool::new(&object);
        assert!(registered(&kernel_name), "{kernel_name} was registered");
        drop(by_hand);
        assert!(!registered(&kernel_name), "{kernel_name} is gone again");
    }
}

/// An object that bpftool has registered, until dropped.
struct RegisteredByBpftool {
    /// Names do not do: the kernel keeps an object that our loader has taken back until the last connection that
    /// used it is gone, and bpftool would try to unregister that one, too.
    id: u32,
}

impl RegisteredByBpftool {
    fn new(object: &Path) -> Self {
        let output = Command::new("bpftool").args(["struct_ops", "register"]).arg(object).output();
        let output = output.expect("bpftool starts");
        let said =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert!(output.status.success(), "{}: {said}", object.display());
        let id = said.rsplit_once(" id ").and_then(|(_, id)| id.split_whitespace().next()?.parse().ok());
        Self { id: id.unwrap_or_else(|| panic!("bpftool says which id it gave: {said}")) }
    }
}

impl Drop for RegisteredByBpftool {
    fn drop(&mut self) {
        let id = self.id.to_string();
        // A test that has failed already must not abort here; one that has not checks afterwards.
        let _ = Command::new("bpftool").args(["struct_ops", "unregister", "id", &id]).output();
    }
}
