//! The promises of the run folder, seen from outside.

use std::{collections::BTreeMap, fs, path::Path};

use anabranch_record::{
    Begin, Error, Identity, RunFolder, Staging, begin, begin_with,
    model::{Environment, Figure, Measurements, Scope, Series, Summary},
    open, read_series,
};

fn identity() -> Identity {
    Identity {
        scenario: "two-paths".into(),
        title: "Two paths".into(),
        canonical: r#"{"duration":"50 s","rates":[0.1,3e6,0.30000000000000004]}"#.into(),
        overrides: BTreeMap::from([("connection.meter.congestion".into(), "lia".into())]),
        engine: "sim".into(),
        version: "golden".into(),
    }
}

fn measurements() -> Measurements {
    let subflow = Scope::Subflow("meter".into(), "path1".into());
    Measurements {
        summary: Summary {
            figures: vec![
                Figure { scope: Scope::Run, metric: "jain_index", value: 1.0 },
                Figure { scope: subflow.clone(), metric: "goodput_bps", value: 2_345_678.9 },
            ],
        },
        series: vec![Series {
            scope: subflow,
            metric: "cwnd_packets",
            points: (0..500).map(|i| (i * 100_000_000, (i % 17) as f64)).collect(),
        }],
        ..Measurements::default()
    }
}

fn staged(root: &Path, force: bool) -> Staging {
    match begin(root, &identity(), 1, force).unwrap() {
        Begin::Staged(staging) => staging,
        Begin::Complete(folder) => panic!("{} was taken for complete", folder.path.display()),
    }
}

fn completed(root: &Path) -> RunFolder {
    match begin(root, &identity(), 1, false).unwrap() {
        Begin::Complete(folder) => folder,
        Begin::Staged(staging) => panic!("not complete: {:?}", staging.damaged),
    }
}

fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect()
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn equal_runs_are_equal_to_the_byte_and_known_beforehand() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = staged(one.path(), false).commit(&measurements()).unwrap();
    let second = staged(two.path(), false).commit(&measurements()).unwrap();
    let files = contents(&first.path);
    assert_eq!(files, contents(&second.path));
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(names, ["run.json", "series.parquet", "summary.csv", "summary.json"]);

    // The same on every machine. A change here changes every run folder: say so in CHANGELOG.md.
    let hashes: Vec<String> =
        files.values().map(|content| blake3::hash(content).to_hex()[..16].to_owned()).collect();
    assert_eq!(hashes, GOLDEN, "{}", String::from_utf8_lossy(&files["run.json"]));
}

const GOLDEN: [&str; 4] = ["096fe4ac52687598", "8cfbaae8d07219d3", "22dfd853207414e3", "acf3130e942d655b"];

#[test]
fn a_complete_run_is_found_again_and_read_back() {
    let root = tempfile::tempdir().unwrap();
    let written = staged(root.path(), false).commit(&measurements()).unwrap();
    let found = completed(root.path());
    assert_eq!(found, written);
    assert_eq!(found.manifest.canonical["rates"][2], 0.1 + 0.2);
    let series = read_series(&found.path).unwrap();
    assert_eq!(series.len(), 1);
    assert_eq!(series[0].times_s[499], 49.9);
}

#[test]
fn force_makes_a_complete_run_again_and_leaves_nothing_beside_it() {
    let root = tempfile::tempdir().unwrap();
    let old = staged(root.path(), false).commit(&measurements()).unwrap();
    let staging = staged(root.path(), true);
    assert_eq!(staging.damaged, None);
    let mut other = measurements();
    other.summary.figures[0].value = 0.5;
    let new = staging.commit(&other).unwrap();
    assert_eq!(old.path, new.path);
    assert_ne!(old.manifest, new.manifest);
    assert_eq!(open(&new.path).unwrap(), new);
    assert_eq!(fs::read_dir(new.path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn every_kind_of_damage_is_seen_and_mended() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 6] = [
        ("run.json", |folder| fs::remove_file(folder.join("run.json")).unwrap()),
        ("run.json", |folder| fs::write(folder.join("run.json"), b"{\"format\": 1").unwrap()),
        ("format 99", |folder| fs::write(folder.join("run.json"), b"{\"format\": 99}").unwrap()),
        ("summary.csv", |folder| fs::remove_file(folder.join("summary.csv")).unwrap()),
        ("bytes where", |folder| {
            let text = fs::read(folder.join("series.parquet")).unwrap();
            fs::write(folder.join("series.parquet"), &text[..text.len() / 2]).unwrap();
        }),
        ("content has changed", |folder| {
            let text = fs::read_to_string(folder.join("summary.json")).unwrap();
            fs::write(folder.join("summary.json"), text.replace("1.0", "2.0")).unwrap();
        }),
    ];
    for (reason, damage) in damages {
        let root = tempfile::tempdir().unwrap();
        let folder = staged(root.path(), false).commit(&measurements()).unwrap();
        damage(&folder.path);
        assert!(open(&folder.path).unwrap_err().to_string().contains(reason), "{reason}");
        let staging = staged(root.path(), false);
        assert!(staging.damaged.as_ref().unwrap().contains(reason), "{reason}: {:?}", staging.damaged);
        staging.commit(&measurements()).unwrap();
        assert_eq!(completed(root.path()), folder);
    }
}

#[test]
fn a_folder_of_another_run_is_not_reused() {
    let root = tempfile::tempdir().unwrap();
    let folder = staged(root.path(), false).commit(&measurements()).unwrap();
    fs::rename(&folder.path, folder.path.with_file_name("seed-2")).unwrap();
    match begin(root.path(), &identity(), 2, false).unwrap() {
        Begin::Staged(staging) => assert!(staging.damaged.as_ref().unwrap().contains("another run")),
        Begin::Complete(_) => panic!("seed 1 was taken for seed 2"),
    }
}

#[test]
fn a_run_that_is_given_up_leaves_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let root = parent.path().join("runs");
    let (one, two) = (staged(&root, false), staged(&root, false));
    drop(one);
    assert!(root.exists());
    let mut bad = measurements();
    bad.series[0].points[3].1 = f64::NAN;
    assert!(matches!(two.commit(&bad), Err(Error::Measurements(_))));
    assert!(is_empty(&root), "only the root may stay, when the run that made it was not the last");

    let kept = tempfile::tempdir().unwrap();
    drop(staged(kept.path(), false));
    assert!(is_empty(kept.path()), "a root that was there stays");
}

#[test]
fn two_that_make_the_same_run_at_once_both_succeed() {
    let root = tempfile::tempdir().unwrap();
    let (one, two) = (staged(root.path(), false), staged(root.path(), false));
    let first = one.commit(&measurements()).unwrap();
    let second = two.commit(&measurements()).unwrap();
    assert_eq!(first, second);
    assert_eq!(completed(root.path()), first);
    assert_eq!(fs::read_dir(first.path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_place_that_cannot_be_written_to_is_found_before_the_run() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, b"").unwrap();
    let error = begin(&file, &identity(), 1, false).unwrap_err();
    assert!(matches!(error, Error::Unwritable { .. }), "{error}");
    assert_eq!(fs::read(&file).unwrap(), b"");
}

#[test]
fn what_is_no_run_is_called_so() {
    let root = tempfile::tempdir().unwrap();
    assert!(matches!(open(root.path()), Err(Error::NotARun(_))));
    assert!(matches!(open(&root.path().join("missing")), Err(Error::NotARun(_))));
}

#[test]
fn further_files_are_verified_like_the_others_and_cannot_leave_the_folder() {
    let root = tempfile::tempdir().unwrap();
    let attached =
        |name: &str| Measurements { attachments: vec![(name.to_owned(), b"{}".to_vec())], ..measurements() };
    for bad in ["../x", "run.json", "summary.csv", ".hidden", ""] {
        let refused = staged(root.path(), false).commit(&attached(bad));
        assert!(matches!(refused, Err(Error::Measurements(_))), "{bad:?}");
        assert!(is_empty(root.path()), "{bad:?}");
    }
    let folder = staged(root.path(), false).commit(&attached("iperf3-meter.json")).unwrap();
    assert!(folder.manifest.files.contains_key("iperf3-meter.json"));
    fs::write(folder.path.join("iperf3-meter.json"), "[]").unwrap();
    assert!(matches!(open(&folder.path), Err(Error::Damaged { .. })));
}

#[test]
fn a_run_that_does_not_count_is_kept_and_made_again() {
    let root = tempfile::tempdir().unwrap();
    let environment =
        Environment { invalid: vec!["the emulator was late".into()], attempts: 3, ..Environment::default() };
    let late = Measurements { environment: Some(environment), ..measurements() };
    let folder = staged(root.path(), false).commit(&late).unwrap();
    let found = open(&folder.path).unwrap();
    assert!(!found.manifest.is_valid());
    assert_eq!(found.manifest.environment, late.environment);
    staged(root.path(), false).commit(&measurements()).unwrap();
    assert!(completed(root.path()).manifest.is_valid());
}

#[test]
fn a_run_without_a_file_that_is_wanted_is_made_again() {
    let root = tempfile::tempdir().unwrap();
    staged(root.path(), false).commit(&measurements()).unwrap();
    let wanting = |wanted: &[&str]| begin_with(root.path(), &identity(), 1, false, wanted).unwrap();
    assert!(matches!(wanting(&[]), Begin::Complete(_)));
    let Begin::Staged(staging) = wanting(&["packets.pcapng"]) else { panic!("it has no packets") };
    assert_eq!(staging.damaged, None);
    fs::write(staging.aside().join("packets.pcapng"), b"packets").unwrap();
    let written = vec!["packets.pcapng".to_owned()];
    let made = staging.commit(&Measurements { written, ..measurements() }).unwrap();
    assert_eq!(made.manifest.files["packets.pcapng"].bytes, 7);
    assert!(matches!(wanting(&["packets.pcapng"]), Begin::Complete(found) if found == made));
    fs::write(made.path.join("packets.pcapng"), b"parcels").unwrap();
    let error = open(&made.path).unwrap_err().to_string();
    assert!(error.contains("packets.pcapng: the content has changed"), "{error}");
}

#[test]
fn a_file_that_the_engine_has_not_written_is_an_error_and_nothing_is_left() {
    let root = tempfile::tempdir().unwrap();
    let written = vec!["packets.pcapng".to_owned()];
    let error = staged(root.path(), false).commit(&Measurements { written, ..measurements() }).unwrap_err();
    assert!(matches!(&error, Error::Write { path, .. } if path.ends_with("packets.pcapng")), "{error}");
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
}
