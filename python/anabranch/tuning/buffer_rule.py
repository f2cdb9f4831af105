"""The traditional size of a multipath buffer (MPCOA, eq. (1)), in two readings.

It keeps what all subflows carry while the slowest one retransmits. The paper prints ``3 max RTT + max RTO``;
the sizes in its Table 5 come of ``3 (max RTT + max RTO)`` alone. Hence two functions.
"""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.tuning.grid import MIB


def printed_mib(rtts_s: Sequence[float], rtos_s: Sequence[float], rates_bps: Sequence[float]) -> float:
    """Return ``(3 max RTT + max RTO) sum BW`` in MiB: eq. (1) as it can be read.

    Parameters
    ----------
    rtts_s
        Round-trip times of the subflows, one each, in seconds.
    rtos_s
        Their retransmission timeouts, in seconds.
    rates_bps
        Their rates, in bit/s.

    Returns
    -------
    float
        The size, in MiB.

    Raises
    ------
    ValueError
        There is no subflow.
    """
    return _mib(3 * max(rtts_s) + max(rtos_s), rates_bps)


def of_table_5_mib(rtts_s: Sequence[float], rtos_s: Sequence[float], rates_bps: Sequence[float]) -> float:
    """Return ``3 (max RTT + max RTO) sum BW`` in MiB, which alone gives the values of the paper's Table 5.

    Parameters, result and errors are those of :func:`printed_mib`.
    """
    return _mib(3 * (max(rtts_s) + max(rtos_s)), rates_bps)


def _mib(time_s: float, rates_bps: Sequence[float]) -> float:
    """Return what these rates carry together in a time, in MiB."""
    return time_s * sum(rates_bps) / 8 / MIB
