//! The dictionary of metrics in `docs/run-folder.md` is the one of the tables.
//!
//! `ANABRANCH_ACCEPT=1 cargo test -p anabranch-record --test dictionary` writes it anew.

use std::{fs, path::Path};

const MARK: &str = "<!-- Generated from here on: ANABRANCH_ACCEPT=1 cargo test -p anabranch-record --test dictionary -->\n\n";

#[test]
fn the_dictionary_in_the_docs_is_current() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/run-folder.md");
    let text = fs::read_to_string(&page).expect("the page is there");
    let (by_hand, generated) = text.split_once(MARK).expect("the page has the mark");
    let current = anabranch_record::metrics::reference();
    if std::env::var_os("ANABRANCH_ACCEPT").is_some() {
        fs::write(&page, format!("{by_hand}{MARK}{current}")).expect("docs/ is writable");
        return;
    }
    assert!(
        generated == current,
        "crates/record/src/metrics.rs has changed; run\n\
         ANABRANCH_ACCEPT=1 cargo test -p anabranch-record --test dictionary"
    );
}
