//! Writes what follows from the key tables: `docs/schema/scenario.schema.json` and the end of `docs/scenario.md`.

use std::path::Path;

const MARK: &str =
    "<!-- Generated from here on: cargo run -p anabranch-scenario --example write_reference -->\n\n";

fn main() -> std::io::Result<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    std::fs::write(docs.join("schema/scenario.schema.json"), anabranch_scenario::schema())?;
    let page = docs.join("scenario.md");
    let text = std::fs::read_to_string(&page)?;
    let (by_hand, _) =
        text.split_once(MARK).ok_or_else(|| std::io::Error::other("docs/scenario.md has no mark"))?;
    std::fs::write(page, format!("{by_hand}{MARK}{}", anabranch_scenario::reference()))
}
