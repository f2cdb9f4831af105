use super::*;
use crate::tree::ChunkHasher;

const GRAIN: usize = 16 << 10;

fn offer() -> Offer {
    let (modified_s, modified_ns, grain_bytes) = (5, 6, GRAIN as u32);
    let name = b"meter.log".to_vec();
    Offer { file: 3, size_bytes: 3 * GRAIN as u64, modified_s, modified_ns, grain_bytes, name }
}

fn incoming(place: &tempfile::TempDir) -> Incoming {
    Incoming::open(Arc::new(Folder::open(place.path()).unwrap()), offer()).unwrap()
}

/// Each grain is of one letter.
fn data(grains: Range<u64>) -> Vec<u8> {
    grains.flat_map(|grain| vec![b'a' + grain as u8; GRAIN]).collect()
}

fn write(writing: Writing<'_>) {
    let grains = writing.grains.clone();
    let data = data(grains.clone());
    writing.write(&data, grains.start * GRAIN as u64).unwrap();
    let mut hasher = ChunkHasher::new(offer().grains(), grains);
    hasher.update(&data);
    writing.arrived(hasher.finish().values);
}

fn verdict(incoming: &Incoming) -> Result<Finish, Refusal> {
    let hash = *blake3::hash(&data(0..3)).as_bytes();
    incoming.finish(hash, &mut || Ok::<(), ()>(())).unwrap()
}

/// Two connections carry the middle grain; the second breaks off after it has written other bytes there.
fn with_a_broken_second(place: &tempfile::TempDir) -> Incoming {
    let incoming = incoming(place);
    let (first, second) = (incoming.begin(0..2).unwrap(), incoming.begin(1..3).unwrap());
    write(first);
    second.write(&[b'x'; GRAIN], GRAIN as u64).unwrap();
    drop(second);
    incoming
}

#[test]
fn what_two_have_written_is_looked_at_again_and_wrong_bytes_do_not_pass() {
    let place = tempfile::tempdir().unwrap();
    let incoming = with_a_broken_second(&place);
    assert!(matches!(verdict(&incoming), Ok(Finish::Incomplete)));
    write(incoming.begin(2..3).unwrap());
    assert_eq!(verdict(&incoming).map(drop).unwrap_err().code, Code::WrongHash);
}

#[test]
fn what_two_have_written_passes_if_the_last_bytes_are_right() {
    let place = tempfile::tempdir().unwrap();
    let incoming = with_a_broken_second(&place);
    write(incoming.begin(1..3).unwrap());
    assert!(matches!(verdict(&incoming), Ok(Finish::Verified)));
    assert!(incoming.begin(0..3).is_none(), "all of it has come before");
}

#[test]
fn after_an_end_the_journal_knows_the_values_and_nothing_is_read_again_that_was_written_once() {
    let place = tempfile::tempdir().unwrap();
    let first = incoming(&place);
    write(first.begin(0..2).unwrap());
    first.sync(true).unwrap();
    drop(first);
    let second = incoming(&place);
    assert_eq!(lock(&second.progress).map.set_count(), 2);
    assert_eq!(lock(&second.progress).tree.missing(), Some(2..3));
    write(second.begin(2..3).unwrap());
    assert_eq!(lock(&second.progress).tree.missing(), None);
    assert!(matches!(verdict(&second), Ok(Finish::Verified)));
}
