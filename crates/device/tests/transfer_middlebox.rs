//! `anabranchd send` through a middlebox that removes options of Multipath TCP one way only, or from the middle of a connection on: the
//! file arrives whole, and who has fallen back to TCP is told.

mod middlebox;
mod transfer_lab;

use std::{thread, time::Duration};

use middlebox::{Middlebox, Strips, Way};
use serde_json::Value;
use transfer_lab::{
    ADDRESSES, Place, Running,
    looks::{outcome, sockets, wait},
    skip::skip,
    write_noise,
};

/// Waits until data flow on as many sockets.
fn wait_for_data(place: &Place, paths: usize) {
    const SOME: u64 = 100_000;
    wait("data on each path", || {
        let sockets = sockets(&place.lab.client);
        let sent: Vec<u64> = sockets.iter().map(|subflows| subflows[0].figures.sent_bytes).collect();
        let flow = sent.len() == paths && sent.iter().all(|&bytes| bytes > SOME);
        if flow { Ok(()) } else { Err(format!("{sent:?}")) }
    });
}

/// What the middlebox strips from the middle of a file on, one after the other.
const LATER: [Strips; 3] = [Strips::Others(Way::ToServer), Strips::Others(Way::ToClient), Strips::All];

/// Begins to send a file of so many MiB past a middlebox that strips nothing, and waits until data flow on as many sockets.
fn begun(
    place: &Place,
    middlebox: &Middlebox,
    (number, mebibytes): (u64, u64),
    arguments: &str,
    paths: usize,
) -> (String, Running) {
    middlebox.strip(Strips::Nothing);
    let name = format!("file-{number}");
    write_noise(&place.file(&name), mebibytes << 20, number);
    let sender = Running(place.send(&name, false, arguments).spawn().unwrap());
    wait_for_data(place, paths);
    (name, sender)
}

#[test]
fn one_way_from_the_beginning_the_connection_falls_back_and_the_file_arrives() {
    if skip("one_way_from_the_beginning_the_connection_falls_back_and_the_file_arrives") {
        return;
    }
    let place = Place::new();
    let middlebox = Middlebox::new(&place.lab);
    let _receiver = place.receive(false, "");
    for (number, (strips, is_fallen_back)) in [
        (Strips::Nothing, false),
        (Strips::Syns(Way::ToServer), true),
        (Strips::Syns(Way::ToClient), true),
        (Strips::Others(Way::ToServer), true),
        (Strips::Others(Way::ToClient), true),
        (Strips::All, true),
    ]
    .into_iter()
    .enumerate()
    {
        middlebox.strip(strips);
        let name = format!("file-{number}");
        write_noise(&place.file(&name), 1 << 20, number as u64);
        let mut sender = Running(place.send(&name, false, "--via c1").spawn().unwrap());
        let path = outcome(&mut sender)["paths"][0].clone();
        let transport = if is_fallen_back { "TCP" } else { "MPTCP" };
        let told = (&path["transport"], &path["is_fallen_back"], &path["connections"]);
        assert_eq!(told, (&transport.into(), &is_fallen_back.into(), &1.into()), "{strips:?}: {path}");
        place.check(&name, &format!("{strips:?}"));
    }
}

#[test]
fn from_the_middle_on_a_connection_of_one_path_falls_back_or_is_opened_again_and_the_file_arrives() {
    if skip("from_the_middle_on_a_connection_of_one_path_falls_back_or_is_opened_again_and_the_file_arrives")
    {
        return;
    }
    let place = Place::new();
    let middlebox = Middlebox::new(&place.lab);
    let _receiver = place.receive(false, "--max-rate 2M");
    for (number, strips) in (0..).zip(LATER) {
        let (name, mut sender) = begun(&place, &middlebox, (number, 4), "--via c1 --timeout 3", 1);
        middlebox.strip(strips);
        let path = outcome(&mut sender)["paths"][0].clone();
        assert_eq!(path["is_fallen_back"], true, "{strips:?}: {path}");
        assert!(path["connections"].as_u64().unwrap() <= 2, "{strips:?}: {path}");
        place.check(&name, &format!("{strips:?}"));
    }
}

#[test]
fn from_the_middle_on_a_connection_with_a_backup_loses_the_subflow_and_goes_on_over_the_backup() {
    if skip("from_the_middle_on_a_connection_with_a_backup_loses_the_subflow_and_goes_on_over_the_backup") {
        return;
    }
    let place = Place::new();
    let middlebox = Middlebox::new(&place.lab);
    let _receiver = place.receive(false, "--max-rate 2M");
    for (number, strips) in (0..).zip(LATER) {
        let (name, mut sender) = begun(&place, &middlebox, (number, 8), "", 2);
        thread::sleep(Duration::from_millis(300));
        middlebox.strip(strips);
        wait("the socket of the first link has lost its first subflow", || {
            let sockets = sockets(&place.lab.client);
            let mut firsts = sockets.iter().flatten().filter(|subflow| !subflow.flags.is_join());
            let is_lost = firsts.all(|subflow| subflow.address.local.ip().to_string() != ADDRESSES[0]);
            if sockets.len() == 2 && is_lost { Ok(()) } else { Err(format!("{strips:?}: {sockets:#?}")) }
        });
        let outcome = outcome(&mut sender);
        for path in outcome["paths"].as_array().unwrap() {
            let told = (&path["connections"], &path["is_fallen_back"], &path["down"]);
            assert_eq!(told, (&1.into(), &false.into(), &Value::Null), "{strips:?}: {outcome}");
        }
        place.check(&name, &format!("{strips:?}"));
    }
}
