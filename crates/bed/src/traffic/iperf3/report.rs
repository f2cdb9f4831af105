//! What iperf3 says about a connection.

use serde::Deserialize;

use crate::BedError;

/// iperf3's output and what it comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// All of it, as iperf3 wrote it.
    pub json: Vec<u8>,
    /// The figures.
    pub summary: Summary,
}

/// The figures of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// What the sending iperf3 has written, up to the last byte that its kernel took.
    pub sender: Transfer,
    /// What the receiving iperf3 has read, until the sender told it to end. Data that were still under way
    /// then are missing here.
    pub receiver: Transfer,
    /// Segments sent again; with MPTCP only those of the first subflow, because iperf3 asks the connection for
    /// `TCP_INFO`. `None` if iperf3 could not tell.
    pub retransmits: Option<u64>,
    /// Congestion control that the sender's kernel named.
    pub congestion: Option<String>,
}

/// One end's view.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Transfer {
    /// Payload.
    pub bytes: u64,
    /// How long it took.
    pub seconds: f64,
    /// Their quotient.
    pub bits_per_second: f64,
}

#[derive(Deserialize)]
struct Output {
    error: Option<String>,
    #[serde(default)]
    end: End,
}

#[derive(Default, Deserialize)]
struct End {
    sum_sent: Option<Sent>,
    sum_received: Option<Transfer>,
    sender_tcp_congestion: Option<String>,
}

#[derive(Deserialize)]
struct Sent {
    #[serde(flatten)]
    transfer: Transfer,
    retransmits: Option<u64>,
}

impl Report {
    /// Reads the output of `iperf3 -c … -J`.
    ///
    /// # Errors
    /// [`BedError::Failed`] with iperf3's own message if it reports an error, or if this is not its output.
    pub fn parse(json: Vec<u8>) -> Result<Self, BedError> {
        let output: Output = serde_json::from_slice(&json)
            .map_err(|error| BedError::Failed(format!("iperf3 wrote what is not its JSON: {error}")))?;
        if let Some(error) = output.error {
            return Err(BedError::Failed(format!("iperf3: {error}")));
        }
        let (Some(sent), Some(receiver)) = (output.end.sum_sent, output.end.sum_received) else {
            let text = "iperf3 wrote no sums; expected end.sum_sent and end.sum_received";
            return Err(BedError::Failed(text.to_owned()));
        };
        let summary = Summary {
            sender: sent.transfer,
            receiver,
            retransmits: sent.retransmits,
            congestion: output.end.sender_tcp_congestion,
        };
        Ok(Self { json, summary })
    }
}
