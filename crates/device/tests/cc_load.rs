//! Loading and unloading on the running kernel, by processes that contend.

mod common;

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt as _, symlink},
        process::CommandExt as _,
    },
    process::Command,
};

use anabranch_kernel::Attached;
use common::{
    Daemon, events,
    kernel::{
        lab::Lab,
        transfer::{Connection, End},
    },
    names, registered, said, skip,
};
use serde_json::Value;
use socket2::Protocol;

const LIA: End = End { protocol: Protocol::MPTCP, congestion: "ab_lia" };
const KERNEL_RENO: End = End { protocol: Protocol::MPTCP, congestion: "reno" };

#[test]
fn loading_again_does_nothing_and_other_parameters_are_refused() {
    if skip("loading_again_does_nothing_and_other_parameters_are_refused") {
        return;
    }
    let daemon = Daemon::new();
    assert_eq!(daemon.done("load lia reno"), "loaded ab_lia\nloaded ab_reno\n");
    assert!(registered("ab_lia") && registered("ab_reno"));
    assert_eq!(names(&daemon.folder.join("ab_lia")), ["build", "conns", "counters", "link", "params"]);

    let again = daemon.done("load lia --param precision=exact");
    assert_eq!(again, "ab_lia is loaded already, with these parameters\n");
    let other = daemon.run("load lia --param precision=kernel");
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(other.err.contains("unload it first (`anabranchd cc unload lia`)"), "{other:?}");
    assert_eq!(daemon.loaded("lia")["params"]["precision"], "exact");

    assert_eq!(daemon.done("unload lia"), "unloaded ab_lia\n");
    assert!(!registered("ab_lia") && registered("ab_reno"));
    assert_eq!(daemon.done("load lia --param precision=kernel"), "loaded ab_lia\n");
    assert_eq!(daemon.loaded("lia")["params"]["precision"], "kernel");
    assert_eq!(daemon.done("unload --all"), "unloaded ab_reno\nunloaded ab_lia\n");
    assert_eq!(names(&daemon.folder), Vec::<String>::new());
    assert!(!registered("ab_lia") && !registered("ab_reno"));
}

#[test]
fn what_another_build_has_loaded_is_not_read_and_can_be_unloaded() {
    if skip("what_another_build_has_loaded_is_not_read_and_can_be_unloaded") {
        return;
    }
    let daemon = Daemon::new();
    daemon.done("load reno");
    let build = daemon.folder.join("ab_reno/build");
    fs::remove_file(&build).expect("it is there");
    symlink("0123456789abcdef", &build).expect("it can be made");
    let loaded = daemon.loaded("reno");
    assert_eq!((&loaded["is_this_build"], &loaded["counters"]), (&Value::Bool(false), &Value::Null));
    assert!(daemon.done("status").contains(" by user 0, from another build\n"));
    let refused = daemon.run("load reno");
    assert!(refused.code == Some(1) && refused.err.contains("from another build of it"), "{refused:?}");
    assert_eq!(daemon.done("unload reno"), "unloaded ab_reno\n");
}

#[test]
fn bad_input_is_answered_before_the_kernel_sees_it() {
    if skip("bad_input_is_answered_before_the_kernel_sees_it") {
        return;
    }
    let daemon = Daemon::new();
    for (arguments, answer) in [
        ("load reno lai", "the nearest name is `lia`"),
        ("load lia --param precison=exact", "the nearest name is `precision`"),
        ("load lia --param precision=2", "expected one of exact, kernel"),
        ("load lia --param precision", "expected KEY=VALUE"),
    ] {
        let said = daemon.run(arguments);
        assert_eq!(said.code, Some(2), "{arguments}: {said:?}");
        assert!(said.err.contains(answer), "{arguments}: {said:?}");
    }
    assert!(!registered("ab_reno"), "names are checked before anything is loaded");
    let absent = daemon.run("unload lia");
    assert_eq!((absent.code, absent.err.as_str()), (Some(1), "anabranchd: `lia` is not loaded\n"));
    assert_eq!(daemon.done("unload --all"), "nothing is loaded\n");
}

#[test]
fn an_ordinary_user_changes_nothing_and_his_folder_is_not_used() {
    if skip("an_ordinary_user_changes_nothing_and_his_folder_is_not_used") {
        return;
    }
    const NOBODY: u32 = 65534;
    let daemon = Daemon::new();
    // Where he can reach it.
    let place = tempfile::tempdir().expect("a temporary folder");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let program = place.path().join("anabranchd");
    fs::copy(env!("CARGO_BIN_EXE_anabranchd"), &program).expect("it can be copied");
    for arguments in [["load", "reno"], ["unload", "--all"], ["status", "--json"]] {
        let mut command = Command::new(&program);
        command.arg("cc").args(arguments).arg("--pin").arg(&daemon.folder).uid(NOBODY).gid(NOBODY);
        let refused = said(command.output().expect("it starts"));
        assert_eq!(refused.code, Some(4), "{refused:?}");
        assert!(refused.err.contains("needs root, or CAP_BPF"), "{refused:?}");
        assert!(!daemon.folder.exists(), "{arguments:?} made the folder");
    }
    fs::create_dir(&daemon.folder).expect("root may make it");
    std::os::unix::fs::chown(&daemon.folder, Some(NOBODY), None).expect("root may give it away");
    let refused = daemon.run("load reno");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("belongs to user 65534; remove it"), "{refused:?}");
    assert!(!registered("ab_reno"));

    let mut command = Command::new(&program);
    command.args(["cc", "load", "reno", "--pin"]).arg(place.path().join("pins"));
    let outside = said(command.output().expect("it starts"));
    assert_eq!(outside.code, Some(4), "{outside:?}");
    assert!(outside.err.contains("mount -t bpf bpf /sys/fs/bpf"), "{outside:?}");
}

#[test]
fn what_is_in_use_is_not_unloaded_and_its_sockets_are_named() {
    if skip("what_is_in_use_is_not_unloaded_and_its_sockets_are_named") {
        return;
    }
    let daemon = Daemon::new();
    daemon.done("load lia");
    let lab = Lab::new(20);
    let connection = Connection::open(&lab, KERNEL_RENO, LIA);
    let refused = daemon.run("unload lia");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let socket = format!("ab_lia: established 10.78.0.2:5001 -> 10.77.1.1:{}", client_port(&connection));
    let place = format!("in network namespace {}\n", lab.server.name);
    assert!(refused.err.contains(&format!("{socket} {place}")), "{refused:?}");
    assert!(refused.err.contains(&format!("ab_lia: listening 0.0.0.0:5001 {place}")), "{refused:?}");
    assert!(registered("ab_lia"));

    assert_eq!(daemon.done("unload lia --force"), "unloaded ab_lia; 2 sockets keep it until they close\n");
    assert!(!registered("ab_lia"));
    connection.transfer(1_000_000, 100_000, || {
        let listing = lab.server.run("ss", "-tinHO state established");
        assert!(listing.contains(" ab_lia "), "the socket keeps it: {listing}");
    });

    // The name is free again while the old programs still serve the old socket.
    daemon.done("load lia");
    assert_eq!(events(&daemon.loaded("lia"), "ack"), 0, "another registration, with counters of its own");
    drop(connection);
}

fn client_port(connection: &Connection) -> u16 {
    let address = connection.client.local_addr().expect("it is bound");
    address.as_socket().expect("it is IP").port()
}

#[test]
fn a_name_that_another_loader_holds_is_refused_and_nothing_is_left() {
    if skip("a_name_that_another_loader_holds_is_refused_and_nothing_is_left") {
        return;
    }
    let daemon = Daemon::new();
    let other = Attached::load_with_defaults("reno").expect("ab_reno loads");
    let refused = daemon.run("load reno");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("a congestion control `ab_reno` is registered already"), "{refused:?}");
    assert_eq!(names(&daemon.folder), Vec::<String>::new());
    assert!(daemon.done("status").contains("ab_reno is registered, but not by this program from"));
    let unloading = daemon.run("unload reno --force");
    assert!(unloading.code == Some(1) && unloading.err.contains("by other means"), "{unloading:?}");
    assert!(registered("ab_reno"), "the other's is untouched");
    drop(other);
    assert_eq!(daemon.done("load reno"), "loaded ab_reno\n");
}

#[test]
fn of_loaders_at_once_one_loads_and_the_others_see_it() {
    if skip("of_loaders_at_once_one_loads_and_the_others_see_it") {
        return;
    }
    let daemon = Daemon::new();
    let loaders: Vec<_> = (0..4).map(|_| daemon.start("load lia")).collect();
    let mut outcomes: Vec<String> = loaders
        .into_iter()
        .map(|loader| {
            let said = said(loader.wait_with_output().expect("it ends"));
            assert_eq!(said.code, Some(0), "{said:?}");
            said.out
        })
        .collect();
    outcomes.sort();
    let already = "ab_lia is loaded already, with these parameters\n";
    assert_eq!(outcomes, [already, already, already, "loaded ab_lia\n"]);
}

#[test]
fn leftovers_are_recognised_and_removed() {
    if skip("leftovers_are_recognised_and_removed") {
        return;
    }
    let daemon = Daemon::new();
    daemon.done("load lia");
    let subfolder = daemon.folder.join("ab_lia");
    fs::remove_file(subfolder.join("link")).expect("it is there");
    common::kernel::transfer::wait_for("the name to go with its link", || !registered("ab_lia"));
    fs::create_dir(daemon.folder.join("ab_other")).expect("it can be made");
    let status = daemon.done("status");
    assert!(status.contains(&format!("{} was left by a loader", subfolder.display())), "{status}");
    let loaded = daemon.done("load reno");
    assert!(loaded.contains(&format!("removed {}", subfolder.display())), "{loaded}");
    assert_eq!(names(&daemon.folder), ["ab_reno"]);
}

#[test]
fn exported_objects_register_without_this_command() {
    if skip("exported_objects_register_without_this_command") {
        return;
    }
    let there = Command::new("bpftool").arg("version").output().is_ok();
    if !there
        && common::kernel::skip_for(
            "exported_objects_register_without_this_command",
            "no bpftool",
            "apt-get install -y bpftool",
        )
    {
        return;
    }
    let daemon = Daemon::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let listed = daemon.done(&format!("export {}", folder.path().display()));
    let files: Vec<&str> = listed.lines().collect();
    assert_eq!(files.len(), anabranch_kernel::available().expect("there are objects").len());
    // crates/kernel registers each object of the build; these are the same bytes.
    for name in anabranch_kernel::available().expect("there are objects") {
        let written = fs::read(folder.path().join(format!("ab_{name}.bpf.o"))).expect("it was written");
        assert!(written == anabranch_kernel::elf(name).expect("it is built"), "{name}");
    }
    let object = folder.path().join("ab_reno.bpf.o");
    let registration = Command::new("bpftool").args(["struct_ops", "register"]).arg(&object).output();
    let answer = said(registration.expect("bpftool starts"));
    assert!(registered("ab_reno"), "{answer:?}");
    let removal = Command::new("bpftool").args(["struct_ops", "unregister", "name", "ab_reno"]).output();
    assert!(removal.expect("bpftool starts").status.success());
    assert!(!registered("ab_reno"));
}
