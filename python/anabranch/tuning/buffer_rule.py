"""The traditional size of a multipath buffer, MPCOA's eq. (1), in two readings."""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.tuning.grid import MIB


def printed_mib(rtts_s: Sequence[float], rtos_s: Sequence[float], rates_bps: Sequence[float]) -> float:
    """Return ``(3 max RTT + max RTO) sum BW`` in MiB: eq. (1) as it can be read.

    Parameters
    ----------
    rtts_s, rtos_s
        Round-trip times and retransmission timeouts of the subflows.
    rates_bps
        Their bit rates.

    Returns
    -------
    float
        The size, in MiB.
    """
    return (3 * max(rtts_s) + max(rtos_s)) * sum(rates_bps) / 8 / MIB


def of_table_5_mib(rtts_s: Sequence[float], rtos_s: Sequence[float], rates_bps: Sequence[float]) -> float:
    """Return ``3 (max RTT + max RTO) sum BW`` in MiB, which alone gives the values of the paper's Table 5.

    Parameters
    ----------
    rtts_s, rtos_s
        Round-trip times and retransmission timeouts of the subflows.
    rates_bps
        Their bit rates.

    Returns
    -------
    float
        The size, in MiB.
    """
    return 3 * (max(rtts_s) + max(rtos_s)) * sum(rates_bps) / 8 / MIB
