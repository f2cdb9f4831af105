//! `anabranchd send` across network namespaces: each of its sockets has a backup over each other path, and nothing else is touched.

mod transfer_lab;

use std::{
    fs,
    net::IpAddr,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use anabranch_netlink::diag::Subflow;
use nix::sys::signal::Signal;
use serde_json::Value;
use transfer_lab::{
    ADDRESSES, Place, Running,
    lab::{Namespace, random::Random},
    looks::{outcome, sockets, wait},
    number, output,
    skip::skip,
    write_noise,
};

const ADDRESSES_6: [&str; 3] = ["fd77:1::1", "fd77:2::1", "fd77:2::2"];

/// Waits for as many sockets as paths, with as many subflows each, and checks that these are what they should be.
fn wait_for_backups(client: &Namespace, addresses: &[&str]) -> Vec<Vec<Subflow>> {
    let mut wanted: Vec<IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
    wanted.sort();
    let is_complete = |sockets: &[Vec<Subflow>]| {
        sockets.len() == wanted.len() && sockets.iter().all(|subflows| subflows.len() == wanted.len())
    };
    let sockets = wait("a backup over each other path", || {
        let sockets = sockets(client);
        if is_complete(&sockets) { Ok(sockets) } else { Err(format!("{sockets:#?}")) }
    });
    let mut firsts: Vec<_> = sockets.iter().map(|subflows| subflows[0].address.local.ip()).collect();
    firsts.sort();
    assert_eq!(firsts, wanted, "a socket per path");
    for subflows in &sockets {
        let mut locals: Vec<_> = subflows.iter().map(|subflow| subflow.address.local.ip()).collect();
        locals.sort();
        assert_eq!(locals, wanted, "each path once, its own included");
        assert!(!subflows[0].flags.is_join() && !subflows[0].flags.is_backup_here(), "{subflows:?}");
        let is_backup = |subflow: &Subflow| subflow.flags.is_join() && subflow.flags.is_backup_here();
        assert!(subflows[1..].iter().all(is_backup), "{subflows:?}");
    }
    sockets
}

/// What is everybody's in a network namespace.
fn settings(client: &Namespace) -> [String; 3] {
    let setting = client.run("sysctl", "-n net.mptcp.pm_type");
    [setting, client.run("ip", "mptcp endpoint show"), client.run("ip", "mptcp limits show")]
}

fn via(addresses: &[&str]) -> String {
    addresses.iter().map(|address| format!(" --via {address}")).collect()
}

#[test]
fn each_socket_has_a_backup_over_each_other_path_and_none_over_its_own() {
    if skip("each_socket_has_a_backup_over_each_other_path_and_none_over_its_own") {
        return;
    }
    let place = Place::new();
    let client = &place.lab.client;
    let _receiver = place.receive(false, "--max-rate 2M");
    let before = settings(client);
    for paths in 1..=4 {
        let name = format!("over-{paths}");
        write_noise(&place.file(&name), 4 << 20, paths as u64);
        let mut sender = Running(place.send(&name, false, &via(&ADDRESSES[..paths])).spawn().unwrap());
        wait_for_backups(client, &ADDRESSES[..paths]);
        assert_eq!(settings(client), before, "what is everybody's is as it was, while files are sent");
        thread::sleep(Duration::from_millis(1500));
        let sockets = wait_for_backups(client, &ADDRESSES[..paths]);
        for subflows in sockets {
            let sent: Vec<u64> = subflows.iter().map(|subflow| subflow.figures.sent_bytes).collect();
            // What the data level sends again goes over whichever subflow the kernel takes: some kilobytes, once or twice.
            assert!(sent[1..].iter().sum::<u64>() * 10 < sent[0], "{sent:?}");
        }
        let outcome = outcome(&mut sender);
        let way = if paths > 1 { "subflows".into() } else { Value::Null };
        assert_eq!((&outcome["backups"], &outcome["no_backups"]), (&way, &Value::Null), "{outcome}");
        assert_eq!(client.mib("MPTcpExt", "MPPrioTx"), 0, "no first subflow was made a backup");
        place.check(&name, &name);
    }
}

#[test]
fn over_ipv6_it_is_the_same() {
    if skip("over_ipv6_it_is_the_same") {
        return;
    }
    let place = Place::new();
    let (client, router, server) = (&place.lab.client, &place.lab.router, &place.lab.server);
    for (link, address) in [(1, ADDRESSES_6[0]), (2, ADDRESSES_6[1]), (2, ADDRESSES_6[2])] {
        client.ip(&format!("addr add {address}/64 dev c{link} nodad"));
    }
    for link in [1, 2] {
        router.ip(&format!("addr add fd77:{link}::fe/64 dev r{link} nodad"));
        client.ip(&format!("-6 route add default via fd77:{link}::fe dev c{link} table {link}"));
        client.ip(&format!("-6 rule add from fd77:{link}::/64 table {link}"));
    }
    client.ip("-6 route add default via fd77:1::fe dev c1");
    router.ip("addr add fd78::fe/64 dev r0 nodad");
    server.ip("addr add fd78::2/64 dev s0 nodad");
    server.ip("-6 route add default via fd78::fe dev s0");
    router.run("sysctl", "-qw net.ipv6.conf.all.forwarding=1");

    write_noise(&place.file("large"), 6 << 20, 6);
    let mut receiving = place.inside(server);
    receiving.args(["receive", "--listen", "[::]:7427", "--plaintext", "--max-rate", "2M", "--dir"]);
    let _receiver = Running(receiving.arg(place.file("in")).stdout(Stdio::null()).spawn().unwrap());
    let mut sending = place.inside(client);
    sending.arg("send").arg(place.file("large")).args(["[fd78::2]:7427", "--plaintext", "--json"]);
    let mut sender =
        Running(sending.args(via(&ADDRESSES_6).split_whitespace()).stderr(Stdio::null()).spawn().unwrap());
    wait_for_backups(client, &ADDRESSES_6);
    outcome(&mut sender);
    place.check("large", "IPv6");
}

#[test]
fn a_receiver_that_allows_two_further_subflows_gets_two_and_the_file() {
    if skip("a_receiver_that_allows_two_further_subflows_gets_two_and_the_file") {
        return;
    }
    let place = Place::new();
    place.lab.server.ip("mptcp limits set subflow 2 add_addr_accepted 0");
    write_noise(&place.file("large"), 8 << 20, 1);
    let _receiver = place.receive(false, "--max-rate 2M");
    let mut sender = Running(place.send("large", false, &via(&ADDRESSES)).spawn().unwrap());
    let lengths = || sockets(&place.lab.client).iter().map(Vec::len).collect::<Vec<_>>();
    wait("two backups each", || if lengths() == [3; 4] { Ok(()) } else { Err(format!("{:?}", lengths())) });
    thread::sleep(Duration::from_millis(1500));
    assert_eq!(lengths(), [3; 4], "the third is refused again and again");
    outcome(&mut sender);
    place.check("large", "two further subflows");
}

#[test]
fn a_sender_that_is_killed_at_any_moment_leaves_nothing() {
    if skip("a_sender_that_is_killed_at_any_moment_leaves_nothing") {
        return;
    }
    let place = Place::new();
    let client = &place.lab.client;
    write_noise(&place.file("large"), 12 << 20, 1);
    let _receiver = place.receive(false, "--max-rate 2M");
    let before = settings(client);
    let seed = number("ANABRANCH_TRANSFER_SEED", 1);
    let mut random = Random(seed);
    for case in 0..number("ANABRANCH_TRANSFER_CASES", 6) {
        let mut sender = Running(place.send("large", false, &via(&ADDRESSES)).spawn().unwrap());
        thread::sleep(Duration::from_millis(random.below(1200)));
        sender.signal(Signal::SIGKILL);
        // What several have sent a part of is there in the end.
        if sender.end() == Some(0) {
            fs::remove_file(place.file("in/large")).unwrap();
        }
        assert_eq!(settings(client), before, "ANABRANCH_TRANSFER_SEED={seed}, case {case}");
    }
}

#[test]
fn subflows_that_are_gone_are_opened_again_as_what_they_were() {
    if skip("subflows_that_are_gone_are_opened_again_as_what_they_were") {
        return;
    }
    let place = Place::new();
    let (client, server) = (&place.lab.client, &place.lab.server);
    write_noise(&place.file("large"), 24 << 20, 1);
    let _receiver = place.receive(false, "--max-rate 2M");
    let mut sender = Running(place.send("large", false, "").spawn().unwrap());
    let paths = &ADDRESSES[..2];
    let ports = |sockets: &[Vec<Subflow>]| -> Vec<_> {
        sockets.iter().flatten().map(|subflow| subflow.address.local).collect()
    };
    let before = wait_for_backups(client, paths);

    // All of one address: of one socket the backup, of the other its own.
    server.run("ss", &format!("-K -tn dst {}", paths[1]));
    let is_new = |subflow: &Subflow| !ports(&before).contains(&subflow.address.local);
    let again = wait("new subflows in place of the old", || {
        let sockets = sockets(client);
        let new: Vec<_> = sockets.iter().flatten().filter(|subflow| is_new(subflow)).copied().collect();
        let all = sockets.iter().map(Vec::len).sum::<usize>();
        if (all, new.len()) == (4, 2) { Ok(new) } else { Err(format!("{sockets:#?}")) }
    });
    assert!(again.iter().all(|subflow| subflow.address.local.ip().to_string() == paths[1]), "{again:#?}");
    let own: Vec<_> = again.iter().filter(|subflow| !subflow.flags.is_backup_here()).collect();
    assert_eq!(own.len(), 1, "a backup came back as one, the socket's own subflow not: {again:#?}");
    let of = |token| before.iter().find(|subflows| subflows[0].token == token).unwrap();
    assert_eq!(of(own[0].token)[0].address.local.ip().to_string(), paths[1]);

    // An address that goes, and comes back.
    client.ip("addr del 10.77.2.1/24 dev c2");
    wait("subflows of an address that is gone are closed", || {
        let sockets = sockets(client);
        let all = ports(&sockets);
        let is_gone = all.iter().all(|local| local.ip().to_string() != paths[1]);
        if is_gone { Ok(()) } else { Err(format!("{all:?}")) }
    });
    client.ip("addr add 10.77.2.1/24 dev c2");
    place.up(2);
    wait("they are back", || {
        let sockets = sockets(client);
        let locals = ports(&sockets);
        let is_back = locals.iter().filter(|local| local.ip().to_string() == paths[1]).count() == 2;
        if is_back { Ok(()) } else { Err(format!("{locals:?}")) }
    });
    let outcome = outcome(&mut sender);
    for path in outcome["paths"].as_array().unwrap() {
        assert_eq!((&path["connections"], &path["down"]), (&1.into(), &Value::Null), "{outcome}");
    }
    place.check("large", "subflows that go and come");
}

#[test]
fn a_path_that_dies_takes_no_connection_with_it_and_has_its_own_back_when_it_returns() {
    if skip("a_path_that_dies_takes_no_connection_with_it_and_has_its_own_back_when_it_returns") {
        return;
    }
    let place = Place::new();
    let client = &place.lab.client;
    write_noise(&place.file("large"), 20 << 20, 1);
    let _receiver = place.receive(false, "--max-rate 2M");
    let mut sender = Running(place.send("large", false, "").spawn().unwrap());
    wait_for_backups(client, &ADDRESSES[..2]);
    client.ip("link set c2 down");
    wait("each socket has one subflow, over the first link", || {
        let sockets = sockets(client);
        let locals: Vec<_> = sockets.iter().flatten().map(|subflow| subflow.address.local.ip()).collect();
        let is_left = locals.len() == 2 && locals.iter().all(|local| local.to_string() == ADDRESSES[0]);
        if is_left { Ok(()) } else { Err(format!("{locals:?}")) }
    });
    thread::sleep(Duration::from_millis(1500));
    place.up(2);
    wait("each socket has its own subflow and its backup again", || {
        let sockets = sockets(client);
        let is_whole = |subflows: &Vec<Subflow>| {
            let backups = subflows.iter().filter(|subflow| subflow.flags.is_backup_here()).count();
            (subflows.len(), backups) == (2, 1)
        };
        if sockets.len() == 2 && sockets.iter().all(is_whole) { Ok(()) } else { Err(format!("{sockets:#?}")) }
    });
    let outcome = outcome(&mut sender);
    for path in outcome["paths"].as_array().unwrap() {
        assert_eq!((&path["connections"], &path["down"]), (&1.into(), &Value::Null), "{outcome}");
    }
    place.check("large", "a path that dies");
}

#[test]
fn where_the_setting_is_read_only_each_interface_is_an_endpoint_while_files_are_sent() {
    if skip("where_the_setting_is_read_only_each_interface_is_an_endpoint_while_files_are_sent") {
        return;
    }
    let place = Place::new();
    write_noise(&place.file("large"), 12 << 20, 1);
    let _receiver = place.receive(false, "--max-rate 2M");
    let client = &place.lab.client;
    let read_only = "mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys && exec \"$@\"";
    let mut sender = Running(wrapped(&place, &["sh", "-c", read_only, "sh"]).spawn().unwrap());
    thread::sleep(Duration::from_millis(2000));
    let endpoints = client.run("ip", "mptcp endpoint show");
    assert_eq!(endpoints.matches("subflow backup").count(), 2, "{endpoints}");
    assert!(client.mib("MPTcpExt", "MPJoinSynAckRx") >= 2, "each socket has the other interface, too");
    assert_eq!(client.mib("MPTcpExt", "MPPrioTx"), 0, "no first subflow was made a backup");
    client.ip("link set c2 down");
    let outcome = outcome(&mut sender);
    assert_eq!(outcome["backups"], "endpoints", "{outcome}");
    let second = &outcome["paths"][1];
    assert_eq!(
        (&second["name"], &second["connections"], &second["down"]),
        (&"c2".into(), &1.into(), &Value::Null),
        "{outcome}"
    );
    assert_eq!(client.run("ip", "mptcp endpoint show"), "", "they are gone");
    place.check("large", "a backup");
}

/// The sender of the file `large`, started by another program.
fn wrapped(place: &Place, by: &[&str]) -> Command {
    let sending = place.send("large", false, "");
    let mut words = sending.get_args();
    let mut command = Command::new(sending.get_program());
    // `netns exec NAME`, then what is executed there.
    command.args(words.by_ref().take(3)).args(by).args(words);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

#[test]
fn without_the_right_there_are_no_backups_and_it_says_so() {
    if skip("without_the_right_there_are_no_backups_and_it_says_so") {
        return;
    }
    let place = Place::new();
    write_noise(&place.file("large"), 1 << 20, 1);
    let _receiver = place.receive(false, "");
    let powerless = ["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"];
    let said = output(wrapped(&place, &powerless).stderr(Stdio::piped()));
    let outcome: Value = serde_json::from_slice(&said.stdout).unwrap();
    let why = outcome["no_backups"].as_str().expect("there are none");
    assert!(outcome["backups"].is_null() && why.contains("CAP_NET_ADMIN"), "{outcome}");
    assert!(String::from_utf8(said.stderr).unwrap().contains(why));
    place.check("large", "without the right");

    let said = output(&mut place.send("large", false, "--no-backup"));
    let outcome: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!((&outcome["backups"], &outcome["no_backups"]), (&Value::Null, &Value::Null), "{outcome}");
    assert_eq!(place.lab.client.mib("MPTcpExt", "MPJoinSynAckRx"), 0, "nothing was opened");
    place.check("large", "without backups");
}

#[test]
fn beside_an_agent_the_sockets_are_the_senders_own() {
    if skip("beside_an_agent_the_sockets_are_the_senders_own") {
        return;
    }
    let place = Place::new();
    let client = &place.lab.client;
    let config = "[agent]\nset_pm_type = true\n[[interface]]\nname = \"c1\"\n[[interface]]\nname = \"c2\"\n\
                  [[connection]]\npolicy = \"fullmesh\"\n";
    fs::write(place.file("agent.toml"), config).unwrap();
    let log = fs::File::create(place.file("agent.log")).unwrap();
    let mut managing = place.inside(client);
    managing.args(["agent", "--json", "--config"]).arg(place.file("agent.toml")).stdout(log);
    let _agent = Running(managing.spawn().unwrap());
    wait("the agent", || match client.run("sysctl", "-n net.mptcp.pm_type").trim() {
        "1" => Ok(()),
        other => Err(other.to_owned()),
    });
    write_noise(&place.file("large"), 6 << 20, 1);
    let _receiver = place.receive(false, "--max-rate 2M");
    let mut sender = Running(place.send("large", false, "").spawn().unwrap());
    wait_for_backups(client, &ADDRESSES[..2]);
    thread::sleep(Duration::from_millis(1500));
    wait_for_backups(client, &ADDRESSES[..2]);
    outcome(&mut sender);
    let said = fs::read_to_string(place.file("agent.log")).unwrap();
    assert_eq!(said.matches("managed-by-its-program").count(), 2, "{said}");
    assert!(!said.contains("\"managed\""), "{said}");
    assert_eq!(client.run("sysctl", "-n net.mptcp.pm_type").trim(), "1", "still the agent's");
    place.check("large", "beside an agent");
}
