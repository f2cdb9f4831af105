//! The counters of a network namespace, as nstat(8) shows them, and what they tell of a fallback to TCP.

use std::{collections::BTreeMap, fs, io};

/// Counters by their names as nstat(8) has them: `TcpExtTCPLossProbes`, `MPTcpExtMPJoinSynTx`, `Ip6InReceives`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(BTreeMap<String, i64>);

/// Counters that move when a connection that was meant to be MPTCP becomes TCP, with the reason they stand for.
/// Older kernels lack the last ones. No counter tells of a peer that never spoke MPTCP to our listener: that
/// is not a fallback, and [`Sample::is_mptcp`](super::Sample::is_mptcp) shows it.
const FALLBACKS: [(&str, &str); 14] = [
    ("MPCapableFallbackSYNACK", "the peer answered MP_CAPABLE with a SYN/ACK of plain TCP"),
    ("MPCapableFallbackACK", "the last packet of the handshake came without MP_CAPABLE"),
    ("MPCapableSYNTXDrop", "SYNs with MP_CAPABLE got no answer, the next was sent without"),
    ("MPCapableSYNTXDisabled", "MP_CAPABLE was not sent because such SYNs had got no answer before"),
    ("Blackhole", "SYNs with MP_CAPABLE vanish on the way, MPTCP is switched off for a while"),
    ("MPFallbackTokenInit", "no token could be had for a new connection"),
    ("MPCapableDataFallback", "the first data came without MP_CAPABLE and without DSS"),
    ("DssFallback", "data came without DSS or with one that was wrong"),
    ("DSSCorruptionFallback", "a DSS was wrong while there was one subflow"),
    ("InfiniteMapTx", "we sent the infinite mapping"),
    ("InfiniteMapRx", "the peer sent the infinite mapping"),
    ("MD5SigFallback", "TCP MD5 signatures leave no room for MPTCP"),
    ("SimultConnectFallback", "both ends connected at the same time"),
    ("FallbackFailed", "a fallback was due when it was no longer allowed, the connection was reset"),
];

impl Counters {
    /// Reads `/proc/net` as the calling thread's namespace shows it.
    ///
    /// # Errors
    /// If `/proc` is not mounted or has not the expected form.
    pub fn read() -> io::Result<Self> {
        let mut counters = BTreeMap::new();
        // /proc/net itself would show the namespace of the process's first thread.
        for file in ["snmp", "netstat"] {
            let path = format!("/proc/thread-self/net/{file}");
            let text = fs::read_to_string(&path)?;
            let malformed = || io::Error::new(io::ErrorKind::InvalidData, format!("{path} is malformed"));
            read_tables(&text, &mut counters).ok_or_else(malformed)?;
        }
        match fs::read_to_string("/proc/thread-self/net/snmp6") {
            Ok(text) => read_list(&text, &mut counters),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {} // IPv6 is switched off.
            Err(error) => return Err(error),
        }
        Ok(Self(counters))
    }

    /// A counter by nstat's name; `None` if this kernel has none of that name.
    pub fn get(&self, name: &str) -> Option<i64> {
        self.0.get(name).copied()
    }

    /// What has changed since `before`, by how much. A gauge such as `TcpCurrEstab` may have fallen.
    pub fn since(&self, before: &Self) -> BTreeMap<String, i64> {
        let difference = |(name, value): (&String, &i64)| {
            let difference = value - before.get(name).unwrap_or(0);
            (difference != 0).then(|| (name.clone(), difference))
        };
        self.0.iter().filter_map(difference).collect()
    }
}

/// One sentence for every counter that tells of a fallback from MPTCP to TCP and has moved from `before` to
/// `after`; none if nothing of the kind has happened.
pub fn fallback_reasons(before: &Counters, after: &Counters) -> Vec<String> {
    let changes = after.since(before);
    let reason = |&(name, reason): &(&str, &str)| {
        let name = format!("MPTcpExt{name}");
        let times = *changes.get(&name)?;
        (times > 0).then(|| format!("{reason} ({name}: {times})"))
    };
    FALLBACKS.iter().filter_map(reason).collect()
}

/// `snmp` and `netstat`: pairs of lines, `Tcp: RtoMin ...` and `Tcp: 200 ...`.
fn read_tables(text: &str, counters: &mut BTreeMap<String, i64>) -> Option<()> {
    let mut lines = text.lines();
    while let Some(names) = lines.next() {
        let (table, names) = names.split_once(':')?;
        let (same, values) = lines.next()?.split_once(':')?;
        if same != table {
            return None;
        }
        for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
            counters.insert(format!("{table}{name}"), parse(value)?);
        }
    }
    Some(())
}

/// `snmp6`: one name and value per line.
fn read_list(text: &str, counters: &mut BTreeMap<String, i64>) {
    let pairs = text.lines().filter_map(|line| line.split_once(char::is_whitespace));
    counters.extend(pairs.filter_map(|(name, value)| Some((name.to_owned(), parse(value.trim())?))));
}

/// The kernel's counters are unsigned and wrap; some values are signed.
fn parse(value: &str) -> Option<i64> {
    value.parse().ok().or_else(|| value.parse::<u64>().ok().map(u64::cast_signed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(text: &str) -> Counters {
        let mut counters = BTreeMap::new();
        read_tables(text, &mut counters).expect("it has the form of netstat");
        Counters(counters)
    }

    #[test]
    fn tables_are_read_by_name_not_by_place() {
        let read = counters("Tcp: RtoMin MaxConn\nTcp: 200 -1\nMPTcpExt: A B\nMPTcpExt: 3 4\n");
        assert_eq!(
            (read.get("TcpMaxConn"), read.get("MPTcpExtB"), read.get("TcpB")),
            (Some(-1), Some(4), None)
        );
        assert!(read_tables("Tcp: A\nUdp: 1\n", &mut BTreeMap::new()).is_none());
        assert!(read_tables("Tcp: A\n", &mut BTreeMap::new()).is_none());
        let mut list = BTreeMap::new();
        read_list("Ip6InReceives                   \t27\nIp6OutNoRoutes \t0\n", &mut list);
        assert_eq!(list.get("Ip6InReceives"), Some(&27));
    }

    #[test]
    fn only_what_has_changed_is_a_difference() {
        let before = counters("Tcp: A B C\nTcp: 1 2 3\n");
        let after = counters("Tcp: A B D C\nTcp: 1 5 7 2\n");
        let expected = [("TcpB", 3), ("TcpC", -1), ("TcpD", 7)];
        assert_eq!(after.since(&before), expected.map(|(name, by)| (name.to_owned(), by)).into());
    }

    #[test]
    fn a_counter_of_fallbacks_is_a_reason_once_it_has_moved() {
        let before = counters("MPTcpExt: MPCapableFallbackACK DssFallback MPJoinSynTx\nMPTcpExt: 1 4 0\n");
        let after = counters("MPTcpExt: MPCapableFallbackACK DssFallback MPJoinSynTx\nMPTcpExt: 3 4 9\n");
        let reasons = fallback_reasons(&before, &after);
        assert_eq!(reasons.len(), 1, "{reasons:?}");
        assert!(reasons[0].ends_with("(MPTcpExtMPCapableFallbackACK: 2)"), "{reasons:?}");
        assert!(fallback_reasons(&after, &after).is_empty());
    }
}
