//! Files that several connections carry in chunks, each connection with a path of its own and the others as backups.

mod common;

use common::{texts::Transfer, turn::Turn};

/// A file over a socket on each of two paths of 8 and 4 Mbit/s, with the other path as its backup.
fn transfer(keys: &str, more: &str) -> String {
    let keys = format!("chunk = \"20 kB\", {keys}");
    Transfer { duration: "6 s", keys: &keys, backups: true, transport: "", more }.text()
}

#[test]
fn a_file_comes_over_both_sockets_each_on_its_own_path() {
    let Some(turn) = Turn::begin("a_file_comes_over_both_sockets_each_on_its_own_path") else { return };
    for direction in ["upload", "download"] {
        let run = turn.result(&transfer(&format!("direction = \"{direction}\""), ""), &[]);
        run.assert_sound();
        let notes = run.manifest["environment"]["notes"].to_string();
        assert!(!notes.contains("never opened"), "user space opens what the path manager cannot: {notes}");
        let of_file = |metric| run.figure("connections", &["file", metric]);
        assert_eq!((of_file("bytes_transferred"), of_file("chunks_delivered")), (2e6, 100.0), "{direction}");
        let completion_s = of_file("completion_s");
        // 16 Mbit over 12 Mbit/s less headers, slow start, and a chunk on the slow path.
        assert!((1.3..3.0).contains(&completion_s), "{direction}: {completion_s} s");
        let chunks = |socket| run.figure("connections", &[socket, "chunks_delivered"]);
        let part = chunks("on-wifi") / 100.0;
        assert!((0.5..0.85).contains(&part), "{direction}: {part} of the chunks on 8 of 12 Mbit/s");
        for socket in ["on-wifi", "on-cell"] {
            let carried = |subflow| run.figure("subflows", &[socket, subflow, "throughput_bps"]);
            assert_eq!(carried("other"), 0.0, "{direction}: {socket} has a backup that is not needed");
            assert!(carried("own") > 0.0);
        }
    }
}

#[test]
fn a_file_arrives_whole_when_a_path_dies_in_the_middle() {
    let Some(turn) = Turn::begin("a_file_arrives_whole_when_a_path_dies_in_the_middle") else { return };
    let down = "[[change]]\nat = \"700 ms\"\nlink = \"phone-wifi\"\nup = false\n";
    let run = turn.result(&transfer("give_up = \"2 s\"", down), &[]);
    run.assert_sound();
    assert_eq!(run.figure("connections", &["file", "bytes_transferred"]), 2e6);
    let carried = |socket, subflow| run.figure("subflows", &[socket, subflow, "throughput_bps"]);
    assert!(carried("on-wifi", "other") > 0.0, "the backup takes over what the dead path held");
    assert_eq!(carried("on-cell", "other"), 0.0, "a dead path is no help to the other socket");
}
