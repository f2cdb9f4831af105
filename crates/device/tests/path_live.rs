//! `anabranchd path` in conversation with the kernel.

mod live;

use std::io::{BufRead as _, BufReader};

use live::{
    Conversation,
    common::{lab::Lab, skip},
    daemon, done, run, shown, subflows, wait,
};
use serde_json::Value;

#[test]
fn endpoints_and_their_flags_are_those_of_ip_mptcp() {
    if skip("endpoints_and_their_flags_are_those_of_ip_mptcp") {
        return;
    }
    let lab = Lab::unshaped();
    let client = &lab.client;
    done(client, "path add 10.77.2.1 dev c2 id 2 subflow backup");
    assert_eq!(client.run("ip", "mptcp endpoint show").trim(), "10.77.2.1 id 2 subflow backup dev c2");
    let endpoints = shown(client)["endpoints"].clone();
    assert_eq!(endpoints[0]["dev"], "c2");
    assert_eq!(endpoints[0]["flags"], serde_json::json!(["subflow", "backup"]));
    done(client, "path prio id 2 nobackup");
    assert_eq!(client.run("ip", "mptcp endpoint show").trim(), "10.77.2.1 id 2 subflow dev c2");
    assert!(done(client, "path show").contains("\nendpoint 10.77.2.1 id 2 subflow dev c2"));
    done(client, "path del 10.77.2.1");
    assert_eq!(client.run("ip", "mptcp endpoint show").trim(), "");
    let (code, _, err) = run(client, "path del id 2");
    assert_eq!(code, 1, "{err}");
    let (code, _, err) = run(client, "path add 10.77.2.1 dev c3 id 2");
    assert_eq!((code, err.trim()), (2, "anabranchd: there is no interface `c3`; the nearest name is `c1`"));
}

#[test]
fn subflows_of_a_connection_are_opened_ranked_and_closed_by_hand() {
    if skip("subflows_of_a_connection_are_opened_ranked_and_closed_by_hand") {
        return;
    }
    let lab = Lab::unshaped();
    let client = &lab.client;
    client.run("sysctl", "-qw net.mptcp.pm_type=1");
    let conversation = Conversation::open(&lab);
    let shown = shown(client);
    assert_eq!(shown["path_manager"], "userspace");
    let token = shown["connections"][0]["token"].as_str().expect("a token").to_owned();
    assert_eq!(shown["connections"][0]["subflows"][0]["id"], 0);

    done(client, &format!("path add --token {token} 10.77.2.1 dev c2 id 2"));
    let second =
        wait("the second subflow", || subflows(client).into_iter().find(|subflow| subflow["id"] == 2));
    assert_eq!(
        (&second["dev"], &second["backup"], &second["opened_here"]),
        (&"c2".into(), &false.into(), &true.into())
    );
    done(client, &format!("path prio --token {token} id 2 backup"));
    wait("the backup", || {
        subflows(client).into_iter().find(|subflow| subflow["id"] == 2 && subflow["backup"] == true)
    });
    let (code, _, err) = run(client, &format!("path del --token {token} to 10.78.0.2"));
    assert_eq!(code, 2);
    assert!(err.contains("2 subflows"), "{err}");
    done(client, &format!("path del --token {token} id 2"));
    wait("one subflow", || (subflows(client).len() == 1).then_some(()));
    conversation.speak();
    let (code, _, err) = run(client, "path del --token 00000bad id 2");
    assert_eq!((code, err.trim()), (1, "anabranchd: there is no connection 00000bad; see `path show`"));
}

#[test]
fn events_are_told_as_they_come_one_object_per_line() {
    if skip("events_are_told_as_they_come_one_object_per_line") {
        return;
    }
    let lab = Lab::unshaped();
    let mut watch = daemon(&lab.client, "path watch --json").spawn().expect("it starts");
    let mut lines = BufReader::new(watch.stdout.take().expect("it is a pipe")).lines();
    // Until it listens, there is nothing to hear: the address is added again and again.
    let heard = wait("the first event", || {
        lab.client.ip("addr add 10.77.9.1/24 dev c1");
        lab.client.ip("addr del 10.77.9.1/24 dev c1");
        std::thread::sleep(std::time::Duration::from_millis(50));
        Some(lines.next()?.expect("a line"))
    });
    assert!(heard.starts_with("{\"address\":") || heard.starts_with("{\"event\":"), "{heard}");
    let conversation = Conversation::open(&lab);
    drop(conversation);
    let mut words = Vec::new();
    for line in lines {
        let event: Value = serde_json::from_str(&line.expect("a line")).expect("it is JSON");
        words.push(event["event"].as_str().expect("a word").to_owned());
        if event["event"] == "CLOSED" {
            break;
        }
    }
    let of_connection: Vec<_> = words.iter().filter(|word| !word.starts_with("ADDRESS")).collect();
    assert!(of_connection.starts_with(&[&"CREATED".to_owned(), &"ESTABLISHED".to_owned()]), "{words:?}");
    watch.kill().and_then(|()| watch.wait()).expect("it ends");
}
