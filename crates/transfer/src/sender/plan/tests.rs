use super::*;
use crate::wire::Held;

const GRAIN: u64 = 16 << 10;

fn plan(place: &tempfile::TempDir, sizes: &[u64], paths: usize) -> Plan {
    let files: Vec<PathBuf> = (0..sizes.len()).map(|number| place.path().join(number.to_string())).collect();
    let path = PathStatus {
        name: String::new(),
        transport: None,
        standing: Standing::New,
        arrived_bytes: 0,
        chunks: 0,
        connections: 0,
    };
    let plan = Plan::new(&files, vec![path; paths], None, None);
    for (index, (path, size_bytes)) in files.iter().zip(sizes).enumerate() {
        std::fs::File::create(path).unwrap().set_len(*size_bytes).unwrap();
        assert!(plan.to_open().flatten().is_some());
        plan.opened(index, Source::open(path));
    }
    plan
}

/// What a job is, in short; a chunk of at most so many grains is asked for.
fn next(plan: &Plan, worker: usize, grains: u64) -> String {
    match plan.next(worker, |_| grains) {
        Job::Offer(file, _) => format!("offer {file}"),
        Job::Whole(file, _, grains) => format!("whole {file} {grains:?}"),
        Job::Chunk(file, _, grains) => format!("chunk {file} {grains:?}"),
        Job::Finish(file, _) => format!("finish {file}"),
        Job::Wait => "wait".to_owned(),
        Job::End => "end".to_owned(),
    }
}

fn nothing_there(plan: &Plan, worker: usize, file: u32) {
    plan.have(worker, &Have { file, held: Held::Part, map: Vec::new() }, false).unwrap();
}

#[test]
fn after_an_offer_of_which_nothing_was_there_a_file_goes_whole_if_it_is_one_chunk_of_its_path() {
    let place = tempfile::tempdir().unwrap();
    let plan = plan(&place, &[1, 4 * GRAIN, 5 * GRAIN, 6 * GRAIN], 1);
    assert_eq!(next(&plan, 0, 5), "offer 0");
    nothing_there(&plan, 0, 0);
    assert_eq!(next(&plan, 0, 5), "chunk 0 0..1");
    assert_eq!(next(&plan, 0, 1), "whole 2 0..4", "64 KiB in any case");
    assert_eq!(next(&plan, 0, 5), "whole 4 0..5");
    assert_eq!(next(&plan, 0, 5), "offer 6", "two chunks");
    assert_eq!(next(&plan, 0, 5), "wait");
}

#[test]
fn of_a_file_a_path_takes_half_of_its_share_of_what_is_left_at_most_and_the_only_path_all_of_it() {
    let place = tempfile::tempdir().unwrap();
    for (paths, expected) in [(1, "chunk 0 0..16"), (2, "chunk 0 0..4"), (4, "chunk 0 0..2")] {
        let plan = plan(&place, &[16 * GRAIN], paths);
        assert_eq!(next(&plan, 0, 99), "offer 0");
        nothing_there(&plan, 0, 0);
        assert_eq!(next(&plan, 0, 99), expected);
    }
}

#[test]
fn what_a_lost_path_was_at_is_done_by_another_and_the_end_is_when_all_have_ended() {
    let place = tempfile::tempdir().unwrap();
    let plan = plan(&place, &[GRAIN, GRAIN], 2);
    assert_eq!([next(&plan, 0, 1), next(&plan, 1, 1)], ["offer 0", "offer 2"]);
    plan.lost(0);
    assert_eq!(next(&plan, 1, 1), "offer 0");
    nothing_there(&plan, 1, 0);
    nothing_there(&plan, 1, 2);
    assert_eq!(next(&plan, 0, 1), "chunk 0 0..1");
    plan.lost(0);
    assert_eq!([next(&plan, 1, 1), next(&plan, 1, 1)], ["chunk 0 0..1", "chunk 2 0..1"]);
    for file in [0, 2] {
        plan.arrived(1, file, 0..1, GRAIN);
        assert_eq!(next(&plan, 1, 1), format!("finish {file}"));
        plan.done(file);
    }
    assert!(plan.has_ended());
    assert_eq!(next(&plan, 1, 1), "end");
}
