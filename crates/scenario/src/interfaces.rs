//! Interfaces and the constants of their radios.

use std::collections::BTreeSet;

use anabranch_policy::energy::Radio;

use crate::Error;
use crate::model::{Attachment, Interface, Link, Medium, Nanos};
use crate::names::Names;
use crate::quantity::shown;
use crate::reader::{Table, given};
use crate::topology::{Family, check_references};

/// What interfaces can be attached to, with their names: links, then media.
pub(crate) struct Attachable<'a> {
    pub(crate) nodes: &'a Names,
    pub(crate) names: &'a Names,
    pub(crate) links: &'a [Link],
    pub(crate) media: &'a [Medium],
}

pub(crate) fn interfaces(
    tables: &[Table<'_>],
    at: &Attachable<'_>,
    limit: u64,
) -> Result<Vec<Interface>, Error> {
    let (mut interfaces, mut taken) = (Vec::new(), BTreeSet::new());
    for table in tables {
        let family = Family::read(table, limit)?;
        let node_name = given(table.reference("node")?);
        let link_name = given(table.reference("link")?);
        check_references(table, family, [&node_name, &link_name])?;
        let radio = radio(table)?;
        for index in 0..family.members {
            let node = node_name.resolve(table.source(), at.nodes, "node", index)?;
            let link = link_name.resolve(table.source(), at.names, "link or medium", index)?;
            let names = (node_name.pattern.name(index), link_name.pattern.name(index));
            let attachment = at.attach(table, node, link, &names)?;
            if !taken.insert((node, link)) {
                let what = format!(
                    "the second interface of {} on {}; expected one of each node and link",
                    shown(&names.0),
                    shown(&names.1)
                );
                return Err(table.error_at("link", &what));
            }
            interfaces.push(Interface { node, attachment, radio });
        }
    }
    Ok(interfaces)
}

impl Attachable<'_> {
    /// How a node is attached to link number `link`, or the error if it is not.
    fn attach(
        &self,
        table: &Table<'_>,
        node: usize,
        link: usize,
        (node_name, link_name): &(String, String),
    ) -> Result<Attachment, Error> {
        let (found, ends) = match self.links.get(link) {
            Some(&Link { a, b, .. }) => {
                let is_end = node == a || node == b;
                (is_end.then_some(Attachment::Link { link, sends_forward: node == a }), vec![a, b])
            }
            None => {
                let medium = link - self.links.len();
                let stations = &self.media[medium].stations;
                let station = stations.iter().position(|&station| station == node);
                (station.map(|station| Attachment::Medium { medium, station }), stations.clone())
            }
        };
        found.ok_or_else(|| {
            let names = self.nodes.all().enumerate().filter(|(node, _)| ends.contains(node));
            let what = format!(
                "{} is not attached to {}; expected one of {}",
                shown(node_name),
                shown(link_name),
                names.map(|(_, name)| name).collect::<Vec<_>>().join(", ")
            );
            table.error_at("node", &what)
        })
    }
}

/// The constants of the preset, as far as the table does not give others.
fn radio(table: &Table<'_>) -> Result<Radio, Error> {
    let name = given(table.one_of("radio")?);
    let mut radio = Radio::find(name).expect("the key table has the names of the registry");
    let Some(power) = table.table("power")? else { return Ok(radio) };
    let huang = &mut radio.huang;
    let [first_tail, second_tail] = &mut huang.tail;
    // From the base units, µW and pJ/bit, to mW and nJ/bit.
    let thousandths: [(&str, &mut f64); 9] = [
        ("b", &mut radio.linear.b_mw_per_mbps),
        ("theta", &mut radio.linear.theta_mw),
        ("alpha_up", &mut huang.alpha_up_mw_per_mbps),
        ("alpha_down", &mut huang.alpha_down_mw_per_mbps),
        ("beta", &mut huang.beta_mw),
        ("promotion", &mut huang.promotion.power_mw),
        ("tail", &mut first_tail.power_mw),
        ("second_tail", &mut second_tail.power_mw),
        ("idle", &mut huang.idle.power_mw),
    ];
    for (key, constant) in thousandths {
        if let Some(value) = power.quantity(key)? {
            *constant = value as f64 / 1e3;
        }
    }
    let times: [(&str, &mut Nanos); 5] = [
        ("promotion_time", &mut huang.promotion.duration_ns),
        ("tail_time", &mut first_tail.duration_ns),
        ("second_tail_time", &mut second_tail.duration_ns),
        ("idle_on", &mut huang.idle.on_ns),
        ("idle_period", &mut huang.idle.period_ns),
    ];
    for (key, constant) in times {
        if let Some(value) = power.quantity(key)? {
            *constant = value;
        }
    }
    if radio.huang.idle.on_ns > radio.huang.idle.period_ns {
        return Err(power.error_at("idle_on", "a wake-up is longer than idle_period; expected at most that"));
    }
    Ok(radio)
}
