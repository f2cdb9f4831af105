//! Many texts that grow together and end up one behind the other in a file, with little memory for each.

use std::{
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom},
    path::PathBuf,
};

use super::output::Output;

/// A text gets a place in the file of parts whenever it has grown by this much.
const PART_BYTES: usize = 8 << 10;

/// Texts in the making.
pub(super) struct Spool {
    parts: Output,
    /// Length of the file of parts.
    length: u64,
    texts: Vec<Text>,
}

#[derive(Default)]
struct Text {
    /// Places of its parts: offset and length.
    parts: Vec<(u64, usize)>,
    /// What has no place yet.
    end: String,
}

impl Spool {
    /// Room for so many texts; `file` holds their parts until [`Spool::finish`].
    pub(super) fn new(texts: usize, file: PathBuf) -> Self {
        let texts = (0..texts).map(|_| Text::default()).collect();
        Self { parts: Output::create(file), length: 0, texts }
    }

    /// Has a text grow by what `write` appends.
    pub(super) fn append(&mut self, text: usize, write: impl FnOnce(&mut String)) {
        let text = &mut self.texts[text];
        write(&mut text.end);
        if text.end.len() >= PART_BYTES {
            self.parts.write(text.end.as_bytes());
            text.parts.push((self.length, text.end.len()));
            self.length += text.end.len() as u64;
            text.end.clear();
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.parts.has_failed()
    }

    /// Gives the texts to `put`, piece by piece, and removes the file of parts.
    pub(super) fn finish(self, mut put: impl FnMut(usize, &[u8])) -> Result<(), (PathBuf, io::Error)> {
        let path = self.parts.path().to_owned();
        self.parts.finish()?;
        let mut copy = || {
            let mut file = File::open(&path)?;
            let mut piece = Vec::new();
            for (number, text) in self.texts.iter().enumerate() {
                for &(offset, length) in &text.parts {
                    piece.resize(length, 0);
                    file.seek(SeekFrom::Start(offset))?;
                    file.read_exact(&mut piece)?;
                    put(number, &piece);
                }
                put(number, text.end.as_bytes());
            }
            fs::remove_file(&path)
        };
        copy().map_err(|error| (path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_out_whole_and_one_behind_the_other() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let file = folder.path().join("parts");
        let mut spool = Spool::new(3, file.clone());
        let mut expected = [String::new(), String::new(), String::new()];
        for number in 0..5000_usize {
            let text = number * number % 2;
            spool.append(text, |to| to.push_str(&number.to_string()));
            expected[text].push_str(&number.to_string());
        }
        assert!(spool.length > 0, "some of it is in the file");
        let mut found = vec![Vec::<u8>::new(); 3];
        let mut last = 0;
        let put = |text: usize, piece: &[u8]| {
            assert!(text >= last);
            last = text;
            found[text].extend(piece);
        };
        spool.finish(put).expect("the disk has room");
        assert_eq!(found, expected.map(String::into_bytes));
        assert!(!file.exists());
    }
}
