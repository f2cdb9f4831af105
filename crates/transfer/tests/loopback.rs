//! Sender and receiver in one process, over the loopback interface.

mod common;

use std::{
    fs, io::Write as _, net::TcpStream, os::unix::fs::MetadataExt as _, sync::Arc, thread, time::Duration,
};

use anabranch_transfer::{
    Stop,
    path::Transport,
    receiver::Event,
    security::{Admission, ClientTls, Identity, OnceToken, ServerTls, Servers},
    sender::Failure,
};
use common::{GRAIN, Keys, Receiving, all_done, guarded, names, noise, send, sender};

#[test]
fn files_of_all_lengths_arrive_whole_over_one_to_four_paths() {
    let keys = Keys::new();
    let lengths = [0, 1, GRAIN - 1, GRAIN, GRAIN + 1, 3 * GRAIN, 5_000_000];
    // Slow enough that each path has its connection before all is there.
    let rate = Some(8 << 20);
    for (paths, is_secret) in [(1, false), (2, false), (3, true), (4, true)] {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let receiving = match is_secret {
            true => Receiving::start(to.path(), |receiver| {
                guarded(&keys, None)(receiver);
                receiver.limits.bytes_per_second = rate;
            }),
            false => Receiving::start(to.path(), |receiver| receiver.limits.bytes_per_second = rate),
        };
        let files: Vec<_> = lengths.iter().map(|length| from.path().join(format!("of {length}"))).collect();
        for (path, length) in files.iter().zip(lengths) {
            fs::write(path, noise(length, length as u64)).unwrap();
        }
        let mut sender = sender(files.clone(), receiving.address, paths);
        sender.security = is_secret.then(|| (keys.client(), None));
        let outcome = send(&sender);
        all_done(&outcome);
        assert_eq!(outcome.paths.iter().map(|path| path.connections).sum::<u64>(), u64::from(paths));
        for (path, length) in files.iter().zip(lengths) {
            let received = to.path().join(path.file_name().unwrap());
            assert!(fs::read(&received).unwrap() == noise(length, length as u64), "{length}");
            let [sent, received] = [path, &received].map(|path| fs::metadata(path).unwrap());
            assert_eq!((received.mtime(), received.mtime_nsec()), (sent.mtime(), sent.mtime_nsec()));
        }
        assert_eq!(names(to.path()).len(), lengths.len(), "nothing else is left");
        assert_eq!(receiving.complaints(), [""; 0]);
        assert_eq!(receiving.end(), lengths.iter().sum::<usize>() as u64, "each byte came once");
    }
}

#[test]
fn a_thousand_small_files_arrive_and_a_second_time_nothing_is_sent() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let receiving = Receiving::start(to.path(), |_| {});
    let files: Vec<_> = (0..1000).map(|number| from.path().join(format!("{number}"))).collect();
    for (number, path) in files.iter().enumerate() {
        fs::write(path, noise(10 * number, number as u64)).unwrap();
    }
    let sender = sender(files, receiving.address, 2);
    all_done(&send(&sender));
    for number in 0..1000 {
        let received = fs::read(to.path().join(format!("{number}"))).unwrap();
        assert!(received == noise(10 * number, number as u64), "{number}");
    }
    let again = send(&sender);
    all_done(&again);
    assert!(again.files.iter().all(|file| file.result == Ok(true)));
    assert_eq!(receiving.end(), (0..1000).map(|number| 10 * number).sum::<u64>());
}

#[test]
fn what_was_synced_before_an_end_is_not_sent_again() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = noise(40 << 20, 1);
    let path = from.path().join("large");
    fs::write(&path, &data).unwrap();
    let rate = Some(32 << 20);
    let receiving = Receiving::start(to.path(), |receiver| receiver.limits.bytes_per_second = rate);
    let stop = Stop::new();
    let mut sender = sender(vec![path], receiving.address, 2);
    let outcome = sender.run(&stop, &mut |status| {
        if status.there_bytes > 10 << 20 {
            stop.raise();
        }
    });
    assert_eq!(outcome.failure, Some(Failure::Stopped));
    let before = receiving.end();
    assert!(before < data.len() as u64, "{before}");
    assert_eq!(names(to.path()).len(), 2, "the partial file and its journal: {:?}", names(to.path()));

    let receiving = Receiving::start(to.path(), |_| {});
    sender.peer = receiving.address;
    let outcome = send(&sender);
    all_done(&outcome);
    let after = receiving.end();
    assert!(outcome.files[0].resumed_bytes > 9 << 20, "{outcome:?}");
    assert_eq!(after, data.len() as u64 - outcome.files[0].resumed_bytes);
    assert!(fs::read(to.path().join("large")).unwrap() == data);
    assert_eq!(names(to.path()), ["large"]);
}

#[test]
fn what_fast_paths_had_read_ahead_when_they_ended_comes_with_the_next_attempt() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = noise(160 << 20, 2);
    let paths = ["large", "small"].map(|name| from.path().join(name));
    fs::write(&paths[0], &data).unwrap();
    fs::write(&paths[1], &data[..100_000]).unwrap();
    let receiving = Receiving::start(to.path(), |_| {});
    let stop = Stop::new();
    let mut sender = sender(paths.to_vec(), receiving.address, 2);
    thread::scope(|scope| {
        scope.spawn(|| {
            let begun = || {
                let entries = fs::read_dir(to.path()).unwrap().flatten();
                let blocks: u64 =
                    entries.filter_map(|entry| entry.metadata().ok()).map(|data| data.blocks()).sum();
                blocks * 512 > 48 << 20
            };
            // If it is faster than this looks, the next attempt finds all of it.
            while !begun() && !stop.is_raised() {
                thread::sleep(Duration::from_millis(1));
            }
            stop.raise();
        });
        sender.run(&stop, &mut |_| {});
        stop.raise();
    });
    receiving.end();
    let receiving = Receiving::start(to.path(), |_| {});
    sender.peer = receiving.address;
    all_done(&send(&sender));
    assert!(fs::read(to.path().join("large")).unwrap() == data);
    assert!(fs::read(to.path().join("small")).unwrap() == data[..100_000]);
    assert_eq!(names(to.path()), ["large", "small"]);
}

#[test]
fn another_file_of_that_name_stays_unless_it_may_be_replaced() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("a");
    fs::write(&path, "new").unwrap();
    fs::write(to.path().join("a"), "old").unwrap();
    let receiving = Receiving::start(to.path(), |_| {});
    let outcome = send(&sender(vec![path.clone()], receiving.address, 1));
    let why = outcome.files[0].result.clone().unwrap_err();
    assert!(why.contains("--overwrite"), "{why}");
    assert_eq!(fs::read(to.path().join("a")).unwrap(), b"old");
    let receiving = Receiving::start(to.path(), |receiver| receiver.overwrite = true);
    all_done(&send(&sender(vec![path], receiving.address, 1)));
    assert_eq!(fs::read(to.path().join("a")).unwrap(), b"new");
}

#[test]
fn a_file_that_changes_while_it_is_sent_is_noticed_and_does_not_arrive() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("log");
    fs::write(&path, noise(20 << 20, 1)).unwrap();
    let rate = Some(16 << 20);
    let receiving = Receiving::start(to.path(), |receiver| receiver.limits.bytes_per_second = rate);
    let mut is_changed = false;
    let outcome = sender(vec![path.clone()], receiving.address, 2).run(&Stop::new(), &mut |status| {
        if status.there_bytes > 4 << 20 && !is_changed {
            is_changed = true;
            fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"more").unwrap();
        }
    });
    let why = outcome.files[0].result.clone().unwrap_err();
    assert!(why.contains("has changed"), "{why}");
    receiving.end();
    assert_eq!(names(to.path()), [""; 0], "nothing is kept of it");
}

#[test]
fn a_file_that_is_too_large_is_refused_and_the_others_arrive() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = ["small", "large", "missing"].map(|name| from.path().join(name));
    fs::write(&files[0], noise(1000, 1)).unwrap();
    fs::write(&files[1], noise(1001, 1)).unwrap();
    let receiving = Receiving::start(to.path(), |receiver| receiver.limits.file_bytes = 1000);
    let outcome = send(&sender(files.to_vec(), receiving.address, 2));
    let results: Vec<_> = outcome.files.iter().map(|file| file.result.clone()).collect();
    assert_eq!(results[0], Ok(false));
    assert!(results[1].clone().unwrap_err().contains("more than 1000 bytes"), "{results:?}");
    assert!(results[2].clone().unwrap_err().contains("No such file"), "{results:?}");
    assert_eq!(names(to.path()), ["small"]);
}

#[test]
fn strangers_get_nothing_in_and_learn_why() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("a");
    fs::write(&path, "a").unwrap();
    let keys = Keys::new();
    let receiving = Receiving::start(to.path(), guarded(&keys, None));
    let hopeless = |tls: Option<ClientTls>| {
        let mut sender = sender(vec![path.clone()], receiving.address, 2);
        sender.security = tls.map(|tls| (tls, None));
        sender.patience = Duration::from_secs(2);
        sender.give_up = Duration::from_secs(2);
        send(&sender).failure.expect("it fails").to_string()
    };
    let stranger = Identity::generate().0;
    let known = Servers::Pinned([keys.receiver.fingerprint()].into());
    let why = hopeless(Some(ClientTls::new(&stranger, known)));
    assert!(why.contains("does not trust this key"), "{why}");
    let why = hopeless(Some(ClientTls::new(&keys.sender, Servers::Pinned([stranger.fingerprint()].into()))));
    assert!(why.contains("another key"), "{why}");
    let why = hopeless(None);
    assert!(why.contains("nothing has moved"), "plaintext to a receiver that wants TLS: {why}");
    assert_eq!(names(to.path()), [""; 0]);
}

#[test]
fn a_token_is_good_for_one_sender() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("a");
    fs::write(&path, noise(100_000, 1)).unwrap();
    let keys = Keys::new();
    let token = OnceToken::new(keys.receiver.fingerprint());
    let receiving = Receiving::start(to.path(), guarded(&keys, Some(token.clone())));
    let attempt = |secret: Option<[u8; 16]>| {
        let mut sender = sender(vec![path.clone()], receiving.address, 3);
        let tls = ClientTls::new(&Identity::generate().0, Servers::OfToken(token.clone()));
        sender.security = Some((tls, secret));
        send(&sender)
    };
    for wrong in [None, Some([0; 16])] {
        let why = attempt(wrong).failure.expect("it fails").to_string();
        assert!(why.contains("does not trust"), "{why}");
    }
    all_done(&attempt(Some(token.secret())));
    let why = attempt(Some(token.secret())).failure.expect("the token is used up").to_string();
    assert!(why.contains("does not trust"), "{why}");
}

#[test]
fn who_says_nothing_or_nonsense_is_shown_out_and_the_others_are_served() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("a");
    fs::write(&path, "a").unwrap();
    let keys = Keys::new();
    for is_secret in [false, true] {
        let admission = Arc::new(Admission::new([keys.sender.fingerprint()], None));
        let tls = ServerTls::new(&keys.receiver, admission.clone());
        let receiving = Receiving::start(to.path(), |receiver| {
            receiver.security = is_secret.then_some((tls, admission));
            receiver.limits.introduction = Duration::from_millis(300);
            receiver.limits.strangers = 3;
        });
        let silent: Vec<_> = (0..3).map(|_| TcpStream::connect(receiving.address).unwrap()).collect();
        let mut loud = TcpStream::connect(receiving.address).unwrap();
        // One too many: dropped without an answer, perhaps before this is written.
        let _ = loud.write_all(b"GET / HTTP/1.1\r\n\r\n");
        let mut sender = sender(vec![path.clone()], receiving.address, 1);
        sender.security = is_secret.then(|| (keys.client(), None));
        all_done(&send(&sender));
        drop(silent);
        let mut nonsense = TcpStream::connect(receiving.address).unwrap();
        nonsense.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let is_shown_out = (0..50).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            receiving.complaints().iter().any(|why| why.contains("unknown kind") || why.contains("TLS"))
        });
        assert!(is_shown_out, "{:?}", receiving.complaints());
        let events = receiving.events.lock().unwrap().clone();
        assert_eq!(events.iter().filter(|event| matches!(event, Event::Connected { .. })).count(), 1);
        drop(receiving);
    }
}

#[test]
fn a_receiver_without_multipath_tcp_is_noticed_and_gets_the_file_all_the_same() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("a");
    fs::write(&path, noise(100_000, 1)).unwrap();
    for (mptcp, expected) in [(true, Transport::Mptcp), (false, Transport::FallenBack)] {
        let receiving = Receiving::start_over(mptcp, to.path(), |receiver| receiver.overwrite = true);
        let outcome = send(&sender(vec![path.clone()], receiving.address, 1));
        all_done(&outcome);
        assert_eq!(outcome.paths[0].transport, Some(expected));
        let events = receiving.events.lock().unwrap().clone();
        let connected = events.iter().find_map(|event| match event {
            Event::Connected { transport, .. } => Some(*transport),
            _ => None,
        });
        assert_eq!(connected, Some(if mptcp { Transport::Mptcp } else { Transport::Tcp }));
    }
}

#[test]
fn sockets_hold_something_and_no_more_than_their_bounds() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("a");
    fs::write(&path, noise(4 << 20, 1)).unwrap();
    let receiving = Receiving::start(to.path(), |receiver| receiver.limits.bytes_per_second = Some(8 << 20));
    let mut sender = sender(vec![path], receiving.address, 2);
    let bound = 128 << 10;
    sender.sockets.send_buffer_bytes = Some(bound);
    let outcome = send(&sender);
    all_done(&outcome);
    let held = outcome.sockets;
    assert!(held.samples >= 3, "{held:?}");
    // A connection may hold one more packet of 64 KiB than its bound, which is looked at before it is filled.
    let most = 2 * (bound + (64 << 10)) as u64;
    assert!((1..=most).contains(&held.peak_send_bytes), "{held:?}");
    assert!(held.peak_bytes >= held.peak_send_bytes.max(held.peak_receive_bytes), "{held:?}");
}

#[test]
fn without_a_receiver_the_sender_gives_up_after_its_time() {
    let from = tempfile::tempdir().unwrap();
    let path = from.path().join("a");
    fs::write(&path, "a").unwrap();
    let mut sender = sender(vec![path], "127.0.0.1:1".parse().unwrap(), 1);
    sender.give_up = Duration::from_millis(500);
    let outcome = send(&sender);
    assert!(matches!(outcome.failure, Some(Failure::GaveUp { .. })), "{outcome:?}");
    assert!(outcome.files[0].result.is_err());
}
