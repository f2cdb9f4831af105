//! Reads files for their hashes, where nobody has seen their data pass.

use std::{fs::File, io, os::unix::fs::FileExt as _, time::Duration};

use anabranch_policy::transfer::Chunks;

use crate::{
    clock,
    tree::{ChunkHasher, Tree},
    wire::HASH_BYTES,
};

/// How much is read at once.
const PIECE_BYTES: usize = 64 << 10;
/// So much of a file is hashed before the tree is told.
const CHUNK_BYTES: u64 = 16 << 20;
/// How often whoever waits is told that the work goes on.
const TICK: Duration = Duration::from_secs(2);

/// The hash of a file that is cut so, of which the tree knows a part: reads what it does not know, which must be there.
/// `tick` is called every two seconds; if it fails, so does this.
pub(crate) fn complete<E>(
    file: &File,
    chunks: Chunks,
    tree: &mut Tree,
    tick: &mut dyn FnMut() -> Result<(), E>,
) -> Result<io::Result<[u8; HASH_BYTES]>, E> {
    let mut piece = Vec::new();
    let mut ticked_at = clock::now();
    while let Some(missing) = tree.missing() {
        piece.resize(PIECE_BYTES, 0);
        let count = (CHUNK_BYTES / chunks.len(0)).max(1);
        // Up to a multiple of so many grains, so that the parts are whole subtrees.
        let end = missing.end.min((missing.start / count + 1) * count);
        let mut hasher = ChunkHasher::new(chunks, missing.start..end);
        let mut at = chunks.offset(missing.start);
        let until = chunks.offset(end - 1) + chunks.len(end - 1);
        while at < until {
            let want = usize::try_from(until - at).unwrap_or(usize::MAX).min(PIECE_BYTES);
            if let Err(error) = file.read_exact_at(&mut piece[..want], at) {
                return Ok(Err(error));
            }
            hasher.update(&piece[..want]);
            at += want as u64;
        }
        for (subtree, value) in hasher.finish().values {
            tree.insert_first(subtree, value);
        }
        if clock::now().duration_since(ticked_at) >= TICK {
            ticked_at = clock::now();
            tick()?;
        }
    }
    Ok(Ok(tree.root().expect("nothing is missing")))
}
