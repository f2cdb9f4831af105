//! How the memory that a transfer may take is shared out.
//!
//! Counted are the buffers of the sockets, with the kernel's overhead as `SO_SNDBUF` and `SO_RCVBUF` have it, and this program's own for
//! each connection. Left out, as they do not grow with speed or delay: the program itself, its threads' stacks, the map of each file
//! (32 KiB at most) and what is known of its hash (72 KiB at most), and what the kernel keeps for a socket beside its buffers. A socket's buffers are those of its connection; subflows of Multipath TCP share
//! them, except that each has a send queue of its own, bounded by the same number.

use crate::channel::own_bytes;

/// Pieces without a bound, with one, and with a tight one, in bytes.
const PIECES: [usize; 3] = [64 << 10, 16 << 10, 8 << 10];
/// The buffer of the direction in which there are answers only, in bytes as the kernel counts.
const ANSWERS_BYTES: usize = 16 << 10;
/// Least buffer of the direction in which there is data, in bytes as the kernel counts.
const DATA_BYTES_MIN: usize = 16 << 10;

/// What one connection may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// In how large pieces data is passed on, in bytes.
    pub piece_bytes: usize,
    /// Buffer for data, in bytes as the kernel counts; none: the kernel adapts it.
    pub data_bytes: Option<usize>,
    /// Buffer for answers, likewise.
    pub answer_bytes: Option<usize>,
}

/// There is less memory than a connection needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{total_bytes} bytes of memory are too few for {connections} connections; expected {} or more", least(*connections, *has_tls))]
pub struct TooLittle {
    total_bytes: usize,
    connections: usize,
    has_tls: bool,
}

/// Least memory for so many connections, in bytes.
pub fn least(connections: usize, has_tls: bool) -> usize {
    connections * (own_bytes(has_tls, PIECES[2]) + ANSWERS_BYTES + DATA_BYTES_MIN)
}

impl Share {
    /// Of so many bytes, or as much as it likes, for each of so many connections.
    ///
    /// # Errors
    /// If that is too little.
    pub fn of(total_bytes: Option<usize>, connections: usize, has_tls: bool) -> Result<Self, TooLittle> {
        let Some(total_bytes) = total_bytes else {
            return Ok(Self { piece_bytes: PIECES[0], data_bytes: None, answer_bytes: None });
        };
        let each = total_bytes / connections.max(1);
        // Data in flight is worth more than large pieces: these get a sixteenth at most, as long as there is a smaller one.
        let piece_bytes = PIECES.into_iter().find(|piece| piece * 16 <= each).unwrap_or(PIECES[2]);
        let data_bytes = each
            .checked_sub(own_bytes(has_tls, piece_bytes) + ANSWERS_BYTES)
            .filter(|bytes| *bytes >= DATA_BYTES_MIN)
            .ok_or(TooLittle { total_bytes, connections, has_tls })?;
        Ok(Self { piece_bytes, data_bytes: Some(data_bytes), answer_bytes: Some(ANSWERS_BYTES) })
    }
}

/// The most memory of this process that was resident so far, in bytes (`VmHWM` of proc_pid_status(5)); none if the system does not tell.
pub fn peak_resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_what_there_is_and_the_least_is_just_enough() {
        for has_tls in [false, true] {
            for connections in 1..5 {
                let total = least(connections, has_tls);
                assert!(Share::of(Some(total - 1), connections, has_tls).is_err());
                for total in [total, 256 << 10, 1 << 20, 16 << 20].into_iter().filter(|bytes| *bytes >= total)
                {
                    let share = Share::of(Some(total), connections, has_tls).unwrap();
                    let each = share.data_bytes.unwrap()
                        + share.answer_bytes.unwrap()
                        + own_bytes(has_tls, share.piece_bytes);
                    assert!(each * connections <= total && (each + 1) * connections > total, "{share:?}");
                }
            }
        }
    }

    #[test]
    fn a_quarter_of_a_megabyte_is_enough_for_two_secret_connections() {
        let share = Share::of(Some(256 << 10), 2, true).unwrap();
        assert!(share.data_bytes.unwrap() >= 48 << 10, "{share:?}");
    }

    #[test]
    fn without_a_bound_the_kernel_adapts_its_buffers() {
        assert_eq!(Share::of(None, 4, true).unwrap().data_bytes, None);
    }
}
