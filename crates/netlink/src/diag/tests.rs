//! Messages as the kernel writes them, and any others.

use proptest::prelude::*;

use super::*;
use crate::mptcp::Token;

/// An `inet_diag_msg` of a socket of IPv4.
fn header(state: u8) -> Vec<u8> {
    let mut bytes = vec![0; ANSWER];
    bytes[0] = libc::AF_INET as u8;
    bytes[1] = state;
    bytes[4..6].copy_from_slice(&40000u16.to_be_bytes());
    bytes[6..8].copy_from_slice(&5001u16.to_be_bytes());
    bytes[8..12].copy_from_slice(&[10, 0, 0, 1]);
    bytes[24..28].copy_from_slice(&[10, 0, 0, 2]);
    bytes
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&value);
}

fn with(mut header: Vec<u8>, attributes: Writer) -> Vec<u8> {
    header.extend(attributes.into_bytes());
    header
}

fn subflow_told(token: u32) -> Writer {
    let told = Writer::default().u32(1, 7).u32(2, token).u32(8, 1 << 3 | 1 << 5 | 1 << 6).u8(9, 4).u8(10, 2);
    Writer::default().nested(ULP_INFO, Writer::default().bytes(1, b"mptcp\0").nested(3, told))
}

#[test]
fn a_connection_is_read_with_what_older_kernels_tell() {
    let mut info = vec![0; 44];
    put(&mut info, 0, [1, 2, 3, 8]);
    put(&mut info, 8, 2u32.to_ne_bytes());
    put(&mut info, 12, 0xabcd_u32.to_ne_bytes());
    put(&mut info, 16, 5_000u64.to_ne_bytes());
    put(&mut info, 24, 4_100u64.to_ne_bytes());
    let message = with(header(1), Writer::default().bytes(INFO, &info));
    let read = connection::read(&message).unwrap().expect("it has figures");
    assert_eq!((read.token, read.state, read.unacked_bytes), (Token(0xabcd), TcpState::Established, 900));
    assert_eq!(
        (read.further_subflows, read.announced, read.accepted, read.further_subflows_max),
        (1, 2, 3, 8)
    );
    assert!(read.has_remote_key && !read.is_fallen_back);
    assert_eq!((read.retransmits, read.sent_bytes, read.last_sent_ms), (None, None, None));
    assert_eq!(read.address.to_string(), "10.0.0.1:40000 > 10.0.0.2:5001");
}

#[test]
fn an_acknowledgement_that_overtook_the_count_of_what_was_written_leaves_nothing_unacknowledged() {
    let mut info = vec![0; 96];
    put(&mut info, 16, 4_000u64.to_ne_bytes());
    put(&mut info, 24, 4_001u64.to_ne_bytes());
    let message = with(header(1), Writer::default().bytes(INFO, &info));
    assert_eq!(connection::read(&message).unwrap().expect("it has figures").unacked_bytes, 0);
}

#[test]
fn a_subflow_is_a_tcp_socket_whose_upper_layer_is_multipath_tcp() {
    let mut info = vec![0; 248];
    put(&mut info, 2, [3, 0, 2]);
    put(&mut info, 76, SSTHRESH.to_ne_bytes());
    put(&mut info, 148, u32::MAX.to_ne_bytes());
    put(&mut info, 240, 9u16.to_ne_bytes());
    let mut timed = header(1);
    timed[2] = RETRANSMISSION_TIMER;
    put(&mut timed, 52, 150u32.to_ne_bytes());
    put(&mut timed, 40, 3u32.to_ne_bytes());
    let attributes = subflow_told(0xfeed).bytes(INFO, &info);
    let read = subflow::read(&with(timed, attributes)).unwrap().expect("it is a subflow");
    assert_eq!((read.token, read.local_id, read.remote_id), (Token(0xfeed), 2, 4));
    assert_eq!((read.interface, read.retransmit_in_ms), (Some(3), Some(150)));
    assert!(read.flags.is_opened_here() && read.flags.is_join() && read.flags.is_backup_here());
    assert!(!read.flags.is_backup_of_peer() && read.flags.is_fully_established());
    let figures = read.figures;
    assert_eq!((figures.timeouts, figures.backoff, figures.timeouts_total), (3, 2, Some(9)));
    assert_eq!((figures.ssthresh_segments, figures.min_rtt_us), (None, None));

    let plain = with(header(1), Writer::default().bytes(INFO, &info));
    assert_eq!(subflow::read(&plain), Ok(None));
    let tls = Writer::default().nested(ULP_INFO, Writer::default().bytes(1, b"tls\0")).bytes(INFO, &info);
    assert_eq!(subflow::read(&with(header(1), tls)), Ok(None));
    let without_token = subflow_told(0).bytes(INFO, &info);
    assert_eq!(subflow::read(&with(header(1), without_token)), Ok(None));
}

const SSTHRESH: u32 = 0x7fff_ffff;

#[test]
fn figures_that_are_too_short_are_refused() {
    assert!(connection::read(&with(header(1), Writer::default().bytes(INFO, &[0; 31]))).is_err());
    assert!(subflow::read(&with(header(1), subflow_told(1).bytes(INFO, &[0; 215]))).is_err());
    assert!(subflow::read(&with(header(1), subflow_told(1).bytes(INFO, &[0; 216]))).is_ok());
    assert!(subflow::read(&with(header(1), subflow_told(1))).is_err());
    assert!(connection::read(&header(1)[..ANSWER - 1]).is_err());
}

#[test]
fn a_state_or_a_family_that_was_not_asked_for_is_refused() {
    for state in [0, 6, 7, 10, 12, 13, 255] {
        assert!(connection::read(&header(state)).is_err(), "{state}");
    }
    let mut foreign = header(1);
    foreign[0] = libc::AF_NETLINK as u8;
    assert!(connection::read(&foreign).is_err());
}

#[test]
fn the_protocol_that_has_no_room_in_the_request_is_an_attribute() {
    let request = request(libc::AF_INET, libc::IPPROTO_MPTCP);
    assert_eq!((request[0], request[1]), (libc::AF_INET as u8, 255));
    let attributes = crate::wire::Attributes::<4>::read(&request[REQUEST..]).unwrap();
    assert_eq!(attributes.u32(REQUEST_PROTOCOL), Ok(Some(262)));
}

#[test]
fn memory_is_read_with_the_connection_that_a_subflow_belongs_to() {
    let mut told = vec![0; 36];
    for (index, value) in [(0, 100u32), (5, 300), (7, 20), (8, 9)] {
        put(&mut told, 4 * index, value.to_ne_bytes());
    }
    let alone = with(header(1), Writer::default().bytes(MEMORY, &told));
    let read = memory::read(&alone).unwrap().expect("it has memory");
    assert_eq!(read.memory, Memory { receive_bytes: 100, backlog_bytes: 20, send_bytes: 300 });
    assert_eq!((read.connection, read.state), (None, TcpState::Established));
    let subflow: Vec<u8> = alone.iter().copied().chain(subflow_told(9).into_bytes()).collect();
    assert_eq!(memory::read(&subflow).unwrap().map(|read| read.connection), Some(Some(Token(9))));
    assert!(memory::read(&with(header(1), Writer::default().bytes(MEMORY, &told[..28]))).is_err());
    assert_eq!(memory::read(&with(header(1), Writer::default())), Ok(None));
}

proptest! {
    #[test]
    fn any_bytes_are_sockets_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        let _ = (connection::read(&bytes), subflow::read(&bytes), memory::read(&bytes));
    }

    #[test]
    fn a_subflow_that_is_cut_is_refused_or_no_subflow(cut in 0usize..350) {
        let whole = with(header(1), Writer::default().bytes(INFO, &[0; 220]).bytes(9, &[0; 8])).into_iter();
        let whole: Vec<u8> = whole.chain(subflow_told(9).into_bytes()).collect();
        prop_assume!(cut < whole.len());
        prop_assert!(!matches!(subflow::read(&whole[..cut]), Ok(Some(_))), "{cut}");
    }
}
