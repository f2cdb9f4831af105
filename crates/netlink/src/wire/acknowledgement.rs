//! How a request ended, and what the kernel adds to an error number: extended acknowledgements (netlink(7), `NETLINK_EXT_ACK`).

use netlink_packet_core::{ErrorBuffer, NLM_F_ACK_TLVS, NLM_F_CAPPED};

use super::{
    Attributes, Malformed, Question,
    attributes::path_at,
    message::{HEADER, Message},
};
use crate::Refusal;

const MESSAGE: u16 = 1;
const OFFSET: u16 = 2;
const MISSING_TYPE: u16 = 5;
const MISSING_NEST: u16 = 6;

/// How a request ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgement {
    /// A positive error number, 0 if it was carried out.
    pub errno: i32,
    /// The kernel's words.
    pub message: Option<String>,
    /// Where in the request the attribute begins that the kernel refuses.
    pub offset: Option<u32>,
    /// Type of the attribute that the kernel misses.
    pub missing_type: Option<u32>,
    /// Where in the request the nest begins that it is missing from, if it is in one.
    pub missing_nest: Option<u32>,
}

impl Acknowledgement {
    /// Of a message of type `NLMSG_ERROR`.
    ///
    /// # Errors
    /// If it is too short, or its attributes are malformed.
    pub fn of_error(message: &Message<'_>) -> Result<Self, Malformed> {
        let error = ErrorBuffer::new_checked(message.body).map_err(|_| TOO_SHORT)?;
        let errno = error.code().map_or(0, |code| code.get().saturating_neg());
        if message.flags & NLM_F_ACK_TLVS == 0 {
            return Self::with(errno, &[]);
        }
        // Behind the error number comes the header of the request, then the rest of the request unless it was left off.
        let request = error.payload();
        let length = request.first_chunk().map(|length| u32::from_ne_bytes(*length) as usize);
        let length = if message.flags & NLM_F_CAPPED == 0 { length.ok_or(TOO_SHORT)? } else { HEADER };
        let attributes = length.checked_next_multiple_of(4).and_then(|length| request.get(length..));
        Self::with(errno, attributes.ok_or(TOO_SHORT)?)
    }

    /// Of a message of type `NLMSG_DONE`, which ends a list.
    ///
    /// # Errors
    /// If its attributes are malformed.
    pub fn of_done(message: &Message<'_>) -> Result<Self, Malformed> {
        // Some kernels send none of it.
        let Some((code, attributes)) = message.body.split_first_chunk() else { return Ok(Self::default()) };
        let errno = i32::from_ne_bytes(*code).saturating_neg().max(0);
        Self::with(errno, if message.flags & NLM_F_ACK_TLVS == 0 { &[] } else { attributes })
    }

    fn with(errno: i32, attributes: &[u8]) -> Result<Self, Malformed> {
        let attributes = Attributes::<7>::read(attributes)?;
        Ok(Self {
            errno,
            message: attributes.text(MESSAGE),
            offset: attributes.u32(OFFSET)?,
            missing_type: attributes.u32(MISSING_TYPE)?,
            missing_nest: attributes.u32(MISSING_NEST)?,
        })
    }

    /// In the words of the request.
    pub(crate) fn refusal(self, question: &Question) -> Refusal {
        let start = HEADER + question.attributes_at;
        let attributes = question.body.get(question.attributes_at..).unwrap_or_default();
        let path = |offset: u32| path_at(attributes, start, offset as usize);
        let name = |path: &[u16]| match (question.words)(path) {
            Some(name) => name.to_owned(),
            None => format!("attribute {path:?}"),
        };
        let missing = self.missing_type.map(|kind| {
            let mut place = self.missing_nest.and_then(path).unwrap_or_default();
            place.push(u16::try_from(kind).unwrap_or(u16::MAX));
            name(&place)
        });
        Refusal {
            errno: self.errno,
            message: self.message,
            attribute: self.offset.and_then(path).map(|path| name(&path)),
            missing,
        }
    }
}

const TOO_SHORT: Malformed = Malformed("an acknowledgement is too short");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Writer;

    fn question() -> Question {
        let body = Writer::default().u32(4, 9).nested(1, Writer::default().u8(2, 3)).into_bytes();
        let words = |path: &[u16]| match path {
            [4] => Some("token"),
            [1, 2] => Some("identifier"),
            _ => None,
        };
        Question { what: "a question".into(), kind: 30, body, attributes_at: 0, words }
    }

    fn error(flags: u16, request: &[u8], attributes: Writer) -> Acknowledgement {
        let body = [&(-libc::EINVAL).to_ne_bytes()[..], request, &attributes.into_bytes()].concat();
        Acknowledgement::of_error(&Message { kind: 2, flags, sequence: 1, body: &body }).expect("it is whole")
    }

    #[test]
    fn the_attribute_is_named_whether_the_request_comes_back_or_not() {
        let asked = question().emit(0, 1);
        for (flags, request) in [(NLM_F_ACK_TLVS, &asked[..]), (NLM_F_ACK_TLVS | NLM_F_CAPPED, &asked[..16])]
        {
            let said =
                error(flags, request, Writer::default().bytes(MESSAGE, b"invalid token\0").u32(OFFSET, 16));
            let refusal = said.refusal(&question());
            assert_eq!(
                refusal.to_string(),
                "invalid token: Invalid argument (os error 22), because of the token"
            );
        }
    }

    #[test]
    fn what_is_missing_is_named_in_its_nest() {
        let attributes = Writer::default().u32(MISSING_TYPE, 2).u32(MISSING_NEST, 24);
        let refusal = error(NLM_F_ACK_TLVS | NLM_F_CAPPED, &[0; 16], attributes).refusal(&question());
        assert_eq!(refusal.to_string(), "Invalid argument (os error 22), the identifier is missing");
    }

    #[test]
    fn without_the_flag_nothing_behind_the_number_is_read() {
        let said = error(0, &[0xff; 3], Writer::default());
        assert_eq!(said, Acknowledgement { errno: libc::EINVAL, ..Acknowledgement::default() });
    }

    #[test]
    fn an_unknown_place_is_left_out() {
        let attributes = Writer::default().u32(OFFSET, 17);
        let refusal = error(NLM_F_ACK_TLVS | NLM_F_CAPPED, &[0; 16], attributes).refusal(&question());
        assert_eq!(refusal.attribute, None);
    }
}
