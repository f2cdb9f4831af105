//! Keys of events of subflows.

use super::Need::Required;
use super::{Kind, Section, key, time};

pub(super) static EVENT: Section = Section {
    name: "event",
    doc: "What the node `from` of an MPTCP connection does with one of its subflows while the scenario runs. An event that \
          finds nothing to do changes nothing.",
    keys: &[
        key("at", time(0), Required, "When."),
        key("connection", Kind::Name, Required, "The connection."),
        key("subflow", Kind::Name, Required, "Name of the subflow."),
        key(
            "action",
            Kind::OneOf(&["open", "close", "remove", "backup", "regular"]),
            Required,
            "`open`: it joins, or joins again; `close`: it is reset; `remove`: its address is lost, and REMOVE_ADDR says so \
             on the others; `backup`, `regular`: MP_PRIO.",
        ),
    ],
};
