//! The impact factors of S4's Table 2 with the signs recovered from Table 3, and the subsets of Table 3.

use super::super::pcdc::{ranked, subset};

const CONTROLS: [&str; 6] = ["Cubic", "OLIA", "Hybla", "Reno", "Scalable", "Vegas"];

/// Name of the subflow, and its factor in thousandths by congestion control.
type Row = (&'static str, [i64; 6]);

const SRL_HU: [Row; 8] = [
    ("K-C", [496, 376, 396, 469, 292, 356]),
    ("K-CU", [248, 359, 174, -27, 190, 135]),
    ("P-C", [-313, 98, -23_667, 174, -324, 86]),
    ("P-CU", [184, 172, -366, -496, 240, 77]),
    ("T-C", [32, -544, -713, 140, 57, 80]),
    ("T-CU", [46, 105, -13_235, 85, 20, 57]),
    ("U-C", [239, 305, 209, 235, 301, 325]),
    ("U-CU", [63, 113, 258, 165, 72, 189]),
];

const UNIS_HIN: [Row; 6] = [
    ("T-B", [-14, 17, -19, 61, -154, 14]),
    ("T-P", [-63, 2, 1, 28, -30, -4]),
    ("T-U", [-11, -47, -13, -34, 36, 27]),
    ("U-B", [-46, 25, -25, 20, -8, 94]),
    ("U-P", [-75, 54, -3, -1, 4, -130]),
    ("U-U", [897, 916, 921, 920, 923, 852]),
];

const UIT_HAW: [Row; 2] = [("P-D", [590, 610, 550, 570, 610, 580]), ("T-D", [440, 460, 440, 430, 450, 440])];

fn chosen(rows: &[Row], control: usize) -> Vec<&'static str> {
    let impacts: Vec<i64> = rows.iter().map(|(_, impacts)| 1000 * impacts[control]).collect();
    subset(&impacts).into_iter().map(|at| rows[at].0).collect()
}

#[test]
fn the_subsets_of_table_3_follow_from_the_factors_of_table_2_over_srl_hu() {
    let table_3: [&[&str]; 6] = [
        &["K-C", "K-CU", "P-CU", "T-C", "T-CU", "U-C", "U-CU"],
        &["K-C", "K-CU", "P-C", "P-CU", "T-CU", "U-C", "U-CU"],
        &["K-C", "K-CU", "U-C", "U-CU"],
        &["K-C", "P-C", "T-C", "T-CU", "U-C", "U-CU"],
        &["K-C", "K-CU", "P-CU", "T-C", "T-CU", "U-C", "U-CU"],
        &["K-C", "K-CU", "P-C", "P-CU", "T-C", "T-CU", "U-C", "U-CU"],
    ];
    for (control, expected) in table_3.iter().enumerate() {
        assert_eq!(chosen(&SRL_HU, control), *expected, "{}", CONTROLS[control]);
    }
}

#[test]
fn the_subsets_of_table_3_follow_from_the_factors_of_table_2_over_unis_hin() {
    let table_3: [&[&str]; 6] = [
        &["U-U"],
        &["T-B", "T-P", "U-B", "U-P", "U-U"],
        &["T-P", "U-U"],
        &["T-B", "T-P", "U-B", "U-U"],
        &["T-U", "U-P", "U-U"],
        &["T-B", "T-U", "U-B", "U-U"],
    ];
    for (control, expected) in table_3.iter().enumerate() {
        assert_eq!(chosen(&UNIS_HIN, control), *expected, "{}", CONTROLS[control]);
    }
}

#[test]
fn over_uit_haw_both_subflows_are_used_with_every_congestion_control() {
    for (control, name) in CONTROLS.iter().enumerate() {
        assert_eq!(chosen(&UIT_HAW, control), ["P-D", "T-D"], "{name}");
    }
}

#[test]
fn with_hybla_over_srl_hu_the_first_to_stand_in_is_p_cu() {
    let impacts: Vec<i64> = SRL_HU.iter().map(|(_, impacts)| impacts[2]).collect();
    let order: Vec<&str> = ranked(&impacts).into_iter().map(|at| SRL_HU[at].0).collect();
    assert_eq!(order, ["K-C", "U-CU", "U-C", "K-CU", "P-CU", "T-C", "T-CU", "P-C"]);
}
