//! BLAKE3 of whole files.

use std::{fs::File, io, os::unix::fs::FileExt as _, time::Duration};

use crate::{clock, wire::HASH_BYTES};

/// How much is read at once.
const PIECE_BYTES: usize = 64 << 10;
/// How often whoever waits is told that the work goes on.
const TICK: Duration = Duration::from_secs(2);

/// The hash of the first `size_bytes` of a file, which must have as many. `tick` is called every two seconds; if it fails, so does this.
pub(crate) fn hash_of<E>(
    file: &File,
    size_bytes: u64,
    tick: &mut dyn FnMut() -> Result<(), E>,
) -> Result<io::Result<[u8; HASH_BYTES]>, E> {
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; PIECE_BYTES];
    let (mut at, mut ticked_at) = (0, clock::now());
    while at < size_bytes {
        let want = usize::try_from(size_bytes - at).unwrap_or(usize::MAX).min(PIECE_BYTES);
        if let Err(error) = file.read_exact_at(&mut piece[..want], at) {
            return Ok(Err(error));
        }
        hasher.update(&piece[..want]);
        at += want as u64;
        if at % (8 << 20) == 0 && clock::now().duration_since(ticked_at) >= TICK {
            ticked_at = clock::now();
            tick()?;
        }
    }
    Ok(Ok(*hasher.finalize().as_bytes()))
}
