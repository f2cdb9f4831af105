//! The answer to a request: messages up to an acknowledgement.

use netlink_packet_core::{NLM_F_DUMP_INTR, NLMSG_DONE, NLMSG_ERROR, NLMSG_NOOP, NLMSG_OVERRUN};

use super::{Acknowledgement, Malformed, messages};

/// A message of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Its type.
    pub kind: u16,
    /// What follows its header.
    pub bytes: Vec<u8>,
}

/// How an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is whole.
    Whole(Vec<Body>),
    /// What was listed has changed meanwhile, so that something may be there twice or not at all (`NLM_F_DUMP_INTR`).
    Unsteady,
    /// The kernel refuses.
    Refused(Acknowledgement),
}

/// Collects the answer to one request.
#[derive(Debug)]
pub struct Answer {
    sequence: u32,
    bodies: Vec<Body>,
    is_unsteady: bool,
}

impl Answer {
    /// To the request with that number.
    pub fn new(sequence: u32) -> Self {
        Self { sequence, bodies: Vec::new(), is_unsteady: false }
    }

    /// Takes the next datagram; how the answer ended if it did. Messages that answer other requests are passed over.
    ///
    /// # Errors
    /// If the datagram is malformed.
    pub fn take(&mut self, datagram: &[u8]) -> Result<Option<Ending>, Malformed> {
        for message in messages(datagram) {
            let message = message?;
            if message.sequence != self.sequence {
                continue;
            }
            self.is_unsteady |= message.flags & NLM_F_DUMP_INTR != 0;
            let acknowledgement = match message.kind {
                NLMSG_ERROR => Acknowledgement::of_error(&message)?,
                NLMSG_DONE => Acknowledgement::of_done(&message)?,
                NLMSG_NOOP => continue,
                NLMSG_OVERRUN => return Err(Malformed("a part of the answer is lost")),
                kind => {
                    self.bodies.push(Body { kind, bytes: message.body.to_vec() });
                    continue;
                }
            };
            return Ok(Some(match acknowledgement.errno {
                0 if self.is_unsteady => Ending::Unsteady,
                0 => Ending::Whole(std::mem::take(&mut self.bodies)),
                _ => Ending::Refused(acknowledgement),
            }));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::message::framed;

    #[test]
    fn an_answer_is_what_has_its_number_up_to_the_end() {
        let datagram = [
            framed(20, 0, 7, b"another's"),
            framed(20, 0, 8, b"mine"),
            framed(NLMSG_DONE, 0, 8, &[0; 4]),
            framed(20, 0, 8, b"late"),
        ];
        let ending = Answer::new(8).take(&datagram.concat());
        assert_eq!(ending, Ok(Some(Ending::Whole(vec![Body { kind: 20, bytes: b"mine".to_vec() }]))));
    }

    #[test]
    fn an_answer_may_take_several_datagrams() {
        let mut answer = Answer::new(8);
        assert_eq!(answer.take(&framed(20, 2, 8, b"one ")), Ok(None));
        assert_eq!(answer.take(&framed(20, 2, 8, b"two ")), Ok(None));
        let Ok(Some(Ending::Whole(bodies))) = answer.take(&framed(NLMSG_DONE, 2, 8, &[])) else {
            panic!("it has ended")
        };
        assert_eq!(bodies.len(), 2);
    }

    #[test]
    fn a_list_that_changed_while_it_was_made_is_unsteady() {
        let datagram = [framed(20, NLM_F_DUMP_INTR, 8, b"one "), framed(NLMSG_DONE, 0, 8, &[0; 4])].concat();
        assert_eq!(Answer::new(8).take(&datagram), Ok(Some(Ending::Unsteady)));
    }

    #[test]
    fn an_acknowledgement_with_an_error_number_is_a_refusal() {
        let refused = framed(NLMSG_ERROR, 0, 8, &(-libc::EPERM).to_ne_bytes());
        let Ok(Some(Ending::Refused(said))) = Answer::new(8).take(&refused) else { panic!("it is refused") };
        assert_eq!(said.errno, libc::EPERM);
        let carried_out = framed(NLMSG_ERROR, 0, 8, &[0; 20]);
        assert_eq!(Answer::new(8).take(&carried_out), Ok(Some(Ending::Whole(Vec::new()))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Answer::new(0).take(&bytes);
        }

        #[test]
        fn an_answer_that_is_cut_has_not_ended(cut in 0usize..56) {
            let whole = [framed(20, 0, 8, b"list"), framed(NLMSG_DONE, 0, 8, &[0; 20])].concat();
            prop_assert_eq!(whole.len(), 56);
            let ending = Answer::new(8).take(&whole[..cut]);
            prop_assert!(!matches!(ending, Ok(Some(_))), "{:?}", ending);
        }
    }
}
