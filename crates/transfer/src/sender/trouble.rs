//! What ends a connection, and whether another attempt may fare better.

use crate::ChannelError;

/// Why a piece of work on a connection ended before it was done.
#[derive(Debug)]
pub(super) enum Broken {
    /// The connection is of no further use.
    Channel(ChannelError),
    /// The receiver ends it, and says why.
    Told(String),
    /// The file is not any more what it was, in the middle of a chunk.
    Source,
}

impl From<ChannelError> for Broken {
    fn from(error: ChannelError) -> Self {
        Self::Channel(error)
    }
}

/// Why an attempt failed.
pub(super) enum Trouble {
    /// Another attempt may fare better.
    Passing(String),
    /// None will.
    Lasting(String),
}

impl From<ChannelError> for Trouble {
    fn from(error: ChannelError) -> Self {
        match error {
            ChannelError::Tls(error) => Self::Lasting(explain(&error)),
            error => Self::Passing(error.to_string()),
        }
    }
}

impl From<Broken> for Trouble {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Channel(error) => error.into(),
            Broken::Told(why) => Self::Passing(why),
            Broken::Source => Self::Passing("a file has changed in the middle of a chunk".to_owned()),
        }
    }
}

/// What rustls says, for people: whose key is not known to whom.
fn explain(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(_) => {
            "the receiver has another key than the one that was given with --peer or in the token".to_owned()
        }
        rustls::Error::AlertReceived(_) => {
            format!(
                "the receiver does not trust this key ({error}): `anabranchd receive --trust` names whom it does"
            )
        }
        error => format!("TLS: {error}"),
    }
}
