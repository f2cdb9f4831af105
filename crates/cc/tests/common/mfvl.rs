//! Which algorithm a subflow of MFVL runs, seen from outside.

use anabranch_cc::{Context, Out};

use super::Connection;

/// The algorithm that a subflow of MFVL runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Role {
    MVegas,
    MFast,
    Lia,
}
use Role::{Lia, MFast, MVegas};

/// What subflow `k` does at a loss and a timeout tells its algorithm. The connection is left as it was.
pub(crate) fn role(connection: &Connection, k: usize) -> Role {
    let mut view = connection.subflows[k].view;
    view.cwnd = 100;
    let mut conn = connection.conn.clone();
    let mut controller = connection.subflows[k].controller.clone();
    let mut out = Out::default();
    let kept = controller
        .loss(Context { view: &view, peers: &connection.peers, conn: &mut conn }, &mut Out::default());
    view.cwnd = 1;
    controller.rto(Context { view: &view, peers: &connection.peers, conn: &mut conn }, &mut out);
    match (kept, out.cwnd) {
        (75, 2) => MVegas,
        (50, 2) => MFast,
        (50, 0) => Lia,
        other => panic!("no algorithm of MFVL answers {other:?}"),
    }
}

/// The same of every subflow.
pub(crate) fn roles(connection: &Connection) -> Vec<Role> {
    (0..connection.subflows.len()).map(|k| role(connection, k)).collect()
}
