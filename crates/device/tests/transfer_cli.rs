//! `anabranchd keygen`, `send` and `receive`: arguments, exit codes, and what signals leave.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use nix::{
    pty::{Winsize, openpty},
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

fn anabranchd(home: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranchd"));
    command.args(arguments.split_whitespace()).env("HOME", home).env_remove("XDG_CONFIG_HOME");
    command
}

fn run(home: &Path, arguments: &str) -> Output {
    anabranchd(home, arguments).output().expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

fn interrupt(child: &Child) {
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
}

/// A receiver, and what it says first.
fn receive(home: &Path, arguments: &str) -> (Child, Value) {
    let arguments =
        format!("receive --dir {} --listen 127.0.0.1:0 --json {arguments}", home.join("in").display());
    let mut child = anabranchd(home, &arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    // The rest of what it says fits into the pipe.
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    (child, serde_json::from_str(&line).unwrap())
}

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("in")).unwrap();
    home
}

#[test]
fn a_key_is_made_once_for_its_owner_alone_and_keeps_its_fingerprint() {
    let home = home();
    let first = run(home.path(), "keygen");
    assert!(text(&first.stdout).starts_with("sha256:"), "{first:?}");
    let again = run(home.path(), "keygen");
    assert_eq!(first.stdout, again.stdout);
    let path = home.path().join(".config/anabranch/transfer.key");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let exposed = run(home.path(), "keygen");
    assert_eq!(exposed.status.code(), Some(2));
    assert!(text(&exposed.stderr).contains("chmod 600"), "{exposed:?}");
}

#[test]
fn what_cannot_work_is_refused_with_exit_code_2_before_anything_is_done() {
    let home = home();
    let fingerprint = format!("sha256:{}", "0".repeat(64));
    for (arguments, expected) in [
        ("send a 127.0.0.1".to_owned(), "--plaintext"),
        ("send a 127.0.0.1 --peer sha256:12".to_owned(), "64 hexadecimal digits"),
        (format!("send a 127.0.0.1 --peer {fingerprint}"), "`anabranchd keygen` makes one"),
        ("send a 127.0.0.1 --token 12".to_owned(), "64 hexadecimal digits"),
        ("send a 127.0.0.1 --plaintext --memory 10K".to_owned(), "too few for 1 connections"),
        ("send a 127.0.0.1 --plaintext --memory much".to_owned(), "no amount of bytes"),
        ("send a 127.0.0.1 --plaintext --via nowhere0".to_owned(), "no interface \"nowhere0\""),
        ("send a no.such.host.invalid --plaintext".to_owned(), "no.such.host.invalid"),
        ("receive --dir /no/such/folder --plaintext".to_owned(), "a folder that is there"),
        ("receive --dir /tmp".to_owned(), "--trust"),
    ] {
        let said = run(home.path(), &arguments);
        assert_eq!(said.status.code(), Some(2), "{arguments}: {said:?}");
        assert!(text(&said.stderr).contains(expected), "{arguments}: {said:?}");
    }
}

#[test]
fn a_token_carries_one_transfer_and_once_ends_the_receiver() {
    let home = home();
    let file = home.path().join("a");
    fs::write(&file, [7; 100_000]).unwrap();
    let (mut receiver, listening) = receive(home.path(), "--token --once");
    let (address, token) = (listening["address"].as_str().unwrap(), listening["token"].as_str().unwrap());
    let said = run(home.path(), &format!("send {} {address} --token {token} --json", file.display()));
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    let outcome: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(outcome["files"][0]["blake3"], blake3::hash(&[7; 100_000]).to_hex().as_str());
    assert!(outcome["peak_resident_bytes"].as_u64().unwrap() > 0);
    assert_eq!(receiver.wait().unwrap().code(), Some(0));
    assert_eq!(fs::read(home.path().join("in/a")).unwrap(), [7; 100_000]);
}

#[test]
fn an_interrupted_sender_and_an_interrupted_receiver_exit_with_130_and_leave_what_can_be_resumed() {
    let home = home();
    let file = home.path().join("large");
    fs::write(&file, vec![7; 30 << 20]).unwrap();
    let (mut receiver, listening) = receive(home.path(), "--plaintext --max-rate 4M");
    let address = listening["address"].as_str().unwrap().to_owned();
    let arguments = format!("send {} {address} --plaintext --tcp --memory 256K", file.display());
    let mut sender = anabranchd(home.path(), &arguments).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(2500));
    interrupt(&sender);
    assert_eq!(sender.wait().unwrap().code(), Some(130));
    interrupt(&receiver);
    assert_eq!(receiver.wait().unwrap().code(), Some(130));
    assert_eq!(fs::read_dir(home.path().join("in")).unwrap().count(), 2, "a partial file and a journal");

    let (mut receiver, listening) = receive(home.path(), "--plaintext --once");
    let address = listening["address"].as_str().unwrap().to_owned();
    let said = run(home.path(), &format!("send {} {address} --plaintext --json", file.display()));
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    let outcome: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert!(outcome["files"][0]["resumed_bytes"].as_u64().unwrap() > 1 << 20, "{outcome}");
    assert_eq!(receiver.wait().unwrap().code(), Some(0));
    assert!(fs::read(home.path().join("in/large")).unwrap() == vec![7; 30 << 20]);
}

/// What the command writes to a terminal of that width.
fn on_terminal(columns: u16, home: &Path, arguments: &str, no_color: bool) -> String {
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = openpty(&size, None).unwrap();
    let mut command = anabranchd(home, arguments);
    command.stdout(Stdio::null()).stderr(terminal.slave).env("TERM", "xterm");
    if no_color {
        command.env("NO_COLOR", "1");
    }
    let mut child = command.spawn().unwrap();
    // This end of the terminal, which the command holds, is closed with the command's own.
    drop(command);
    let (mut said, mut piece) = (Vec::new(), [0; 4096]);
    let mut master = fs::File::from(terminal.master);
    // At its end a terminal gives an error.
    while let Ok(count @ 1..) = master.read(&mut piece) {
        said.extend_from_slice(&piece[..count]);
    }
    assert!(child.wait().unwrap().success());
    String::from_utf8(said).unwrap()
}

/// Without the sequences that move the cursor or colour the text: ESC [ … letter.
fn without_sequences(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + part.split_once(|sign: char| sign.is_ascii_alphabetic()).map_or("", |(_, rest)| rest)
    })
}

#[test]
fn the_bar_keeps_to_its_line_whatever_the_terminals_width_and_without_a_terminal_there_is_none() {
    let home = home();
    let file = home.path().join("a-file");
    fs::write(&file, vec![7; 3 << 20]).unwrap();
    for (columns, no_color) in [(40, false), (80, true), (200, false)] {
        let (mut receiver, listening) = receive(home.path(), "--plaintext --once --overwrite --max-rate 2M");
        let address = listening["address"].as_str().unwrap();
        let ways = "--plaintext --via 127.0.0.1 --via 127.0.0.2";
        let arguments = format!("send {} {address} {ways}", file.display());
        let said = on_terminal(columns, home.path(), &arguments, no_color);
        let drawn = without_sequences(&said);
        let bars: Vec<&str> = drawn.split(['\r', '\n']).filter(|line| line.contains(" % ")).collect();
        assert!(bars.len() >= 3, "it moves: {drawn:?}");
        for bar in &bars {
            assert!(bar.trim_end().chars().count() <= columns.into(), "{columns}: {bar:?}");
        }
        assert_eq!(bars.iter().any(|bar| bar.contains('░')), columns >= 64, "{bars:?}");
        assert!(!no_color || !said.contains("\u{1b}[3"), "no colour: {said:?}");
        assert_eq!(receiver.wait().unwrap().code(), Some(0));
        fs::remove_file(home.path().join("in/a-file")).unwrap();
    }
    let (mut receiver, listening) = receive(home.path(), "--plaintext --once");
    let address = listening["address"].as_str().unwrap();
    let said = run(home.path(), &format!("send {} {address} --plaintext", file.display()));
    assert!(!text(&said.stderr).contains(['%', '\u{1b}']), "{said:?}");
    assert_eq!(receiver.wait().unwrap().code(), Some(0));
}
